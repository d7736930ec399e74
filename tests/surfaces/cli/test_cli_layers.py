"""`memlane layers`."""

from __future__ import annotations

from commands import Run
from memlane import Bank


def test_the_layers_verbs(run: Run, bank: Bank) -> None:
    id = "shared-project/api/known_issues"
    made = run(
        "layers", "create", "### Bug\n**Status**: Resolved (2020-01-01)\n", "--project", "api", "--type", "known_issues"
    )
    assert made.json == {"id": id, "path": "projects/api/known_issues.md", "created": True}
    assert run("layers", "read", "--project", "api", "--type", "known_issues").json["staleness"] == "fresh"
    assert [item["action"] for item in run("layers", "prune", "--dry-run", "--json").json["steps"]] == ["remove"]
    assert run("layers", "append", id, "### Other\n**Status**: In Progress\n").json["pruned"] is True
    assert run("layers", "update", id, "# Issues\n").json["updated"] is True
    assert [entry["id"] for entry in run("layers", "project", "api", "--json").json] == [id]
    assert [entry["id"] for entry in run("layers", "stale", "--json").json["fresh"]] == [id]
    assert run("layers", "validate", id).json["id"] == id
    assert len(run("layers", "search", "Issues", "--json").json["matches"]) == 1
    assert run("layers", "read", "--project", "api", "--type", "gone").code == 3
    assert run("layers", "search", "(").code == 2
    assert "The scope project needs the name of a project." in run("layers", "prune", "--scope", "project").err


def test_a_file_is_named_by_its_id_or_by_options_in_every_verb(run: Run, bank: Bank) -> None:
    id, options = "skill-specific/review/api/x", ("--skill", "review", "--project", "api", "--type", "x")
    assert run("layers", "create", id, "# One").json["created"] is True
    assert run("layers", "update", *options, "# Two").json["updated"] is True
    assert run("layers", "append", f"layers:{id}", "more").json["appended"] is True
    read = run("layers", "read", id).json
    assert read == run("layers", "read", *options).json
    assert (read["id"], read["content"]) == (id, "# Two\nmore")
    assert run("layers", "validate", *options).json == run("layers", "validate", id).json
    assert run("layers", "upsert", *options, "# Three").json == {"id": id, "updated": True, "lineCount": 3}
    assert run("layers", "delete", *options).json == {"id": id, "deleted": True}
    assert run("layers", "delete", id).err == (
        f"error: layers:{id} was deleted.\nnext: `memlane restore layers:{id}` brings it back.\n"
    )
    assert run("layers", "upsert", f"layers:{id}", "# Four").json["created"] is True


def test_a_file_that_is_named_twice_or_not_at_all_is_asked_for(run: Run, bank: Bank) -> None:
    twice = run("layers", "update", "agent/zeus/x", "text", "--agent", "zeus", "--type", "x")
    assert (twice.code, twice.err.splitlines()[0]) == (
        2,
        "error: Give either an ID or the options that name the file.",
    )
    nothing = run("layers", "delete")
    assert (nothing.code, nothing.err.splitlines()[0]) == (
        2,
        "error: Which file? Give its ID, or --type and --project, --skill or --agent.",
    )
    assert run("layers", "create", "no-such-id", "text").code == 2


def test_get_reads_a_file_a_layer_or_a_whole_project_and_counts_the_use(run: Run, bank: Bank) -> None:
    ids = ["shared-project/api/project_profile", "skill-specific/review/api/x", "command/api/x", "agent/zeus/x"]
    profile, skill, command, agent = ids
    for id in ids:
        run("layers", "create", id, f"# {id}")

    def got(*words: str) -> list[str]:
        return [entry["id"] for entry in run("layers", "get", *words).json]

    assert run("layers", "get", profile).json["content"] == f"# {profile}"
    assert run("layers", "get", "--project", "api", "--type", "project_profile").json["id"] == profile
    assert got("--project", "api", "--layer", "shared-project") == [profile]
    assert got("--project", "api", "--skill", "review") == [skill]
    assert got("--project", "api", "--layer", "command") == [command]
    assert got("--agent", "zeus") == [agent]
    everything = run("layers", "get", "--project", "api").json
    assert [
        entry["id"] for entry in everything["shared"] + everything["skills"]["review"] + everything["commands"]
    ] == [
        profile,
        skill,
        command,
    ]
    run("layers", "read", profile)
    layers = bank.layers
    assert [layers.side_files.usage(id, layers.folder.path(id)).invocations for id in ids] == [4, 2, 2, 1]
    assert run("layers", "get", "agent/zeus/gone").code == 3
    assert "Give --project" in run("layers", "get", "--skill", "review").err


def test_archives_come_when_they_are_asked_for(run: Run, bank: Bank) -> None:
    run("layers", "create", "agent/zeus/x_archive", "old")
    assert run("layers", "get", "--agent", "zeus").json == []
    assert [entry["content"] for entry in run("layers", "get", "--agent", "zeus", "--archives").json] == ["old"]


def test_a_match_is_shown_between_its_lines(run: Run, bank: Bank) -> None:
    """S004-38"""
    run("layers", "create", "one\ntwo\nneedle\nfour\nfive\nsix", "--project", "api", "--type", "x")
    assert run("layers", "search", "needle").out == "\tone\n\ttwo\nprojects/api/x.md:5\tneedle\n\tfour\n\tfive\n"


def test_the_topics_are_listed_and_loaded_by_their_first_name(run: Run, bank: Bank) -> None:
    run("topics", "store", "auth/oauth2", "Refresh fails.", "--date", "2025-01-10")
    assert run("topics", "list").out == "auth/oauth2\t1\t2025-01-10\n"
    assert "Refresh fails." in run("topics", "load", "auth").out
    assert run("topics", "load", "nothing").err == "nothing is stored there; `memlane topics list` shows the topics\n"
