"""The lanes' own verbs as tools of the MCP server, and what every tool has in common."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import trusted
from mcp_calls import DEFAULT, call, calls, definitions, with_client
from memlane import Bank
from memlane.surfaces.mcp import resources, toolsets

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Bank.init(tmp_path)
    return tmp_path


# -- toolsets


def test_toolsets_are_chosen_by_the_configuration_or_the_command(folder: Path) -> None:
    def names(**options: Any) -> list[str]:
        return [tool["name"] for tool in definitions(folder, **options)]

    extra = names(more=["topics", "vault"])[len(DEFAULT) :]
    assert extra[0] == "vault_add_memory"
    topics = ["topics_store", "topics_search", "topics_load", "topics_list", "topics_embed"]
    assert extra[-5:] == topics
    (folder / "memlane.toml").write_text('[memory]\nenabled = true\n[mcp]\ntoolsets = ["topics"]\n')
    trusted(folder / "memlane.toml")
    assert names()[len(DEFAULT) :] == topics
    (folder / "memlane.toml").write_text("[memory]\nenabled = true\n[mcp]\ntoolsets = []\n")
    trusted(folder / "memlane.toml")
    assert names() == DEFAULT
    assert all(
        len(toolsets.tools([name])) > len(DEFAULT) and tool.name.startswith(name)
        for name in toolsets.NAMES
        if name not in ("knowledge-graph", "keys")  # which are no lane's
        for tool in toolsets.tools([name])[len(DEFAULT) :]
    )


def test_the_command_takes_every_toolset() -> None:
    from memlane.surfaces.cli.mcp import mcp

    (option,) = (each for each in mcp.params if each.name == "more")
    assert tuple(option.type.choices) == toolsets.NAMES  # type: ignore[attr-defined]


def test_what_is_missing_inside_an_argument_is_named(folder: Path) -> None:
    given = ("create_entities", {"entities": [{"name": "Bob", "observations": []}]})
    answer = calls(folder, given, more=("knowledge-graph",))[0]
    assert answer.startswith("create_entities cannot be called like that; entities.0.entityType: field required.")


def test_the_vaults_verbs_as_tools(folder: Path) -> None:
    project = {"scope": "shared", "category": "project", "tier": "register", "topic_id": "current_projects"}
    added, again, updated, listed, found, pairs, proposed = calls(
        folder,
        ("vault_add_memory", {"text": "Projects: dashboard.", **project}),
        ("vault_add_memory", {"text": "Projects: dashboard and search.", **project}),
        ("vault_update_by_topic", {"topic_id": "mood", "scope": "orion", "text": "Calm and busy."}),
        ("vault_recall_memories", {"scopes": ["shared"]}),
        ("vault_search_memories", {"query": "dashboard"}),
        ("vault_find_consolidation_candidates", {}),
        ("vault_propose_deletions", {}),
        more=["vault"],
    )
    assert added == again == {"id": listed[0]["id"]}
    assert (updated["topic_id"], updated["version"], updated["scope"]) == ("mood", 1, "orion")
    assert [(record["text"], record["version"]) for record in listed] == [("Projects: dashboard and search.", 2)]
    assert found == listed
    assert pairs == []
    assert proposed == []
    changed, promoted, snapshot, bulk, stats, deleted, both, compacted = calls(
        folder,
        ("vault_update_memory", {"id": f"vault:{added['id']}", "tags": ["work"]}),
        ("vault_promote_to_canon", {"memory_id": added["id"], "canonical_text": "We build a dashboard."}),
        ("vault_build_snapshot", {"scopes": ["shared"]}),
        ("vault_bulk_add", {"items": [{"text": "Mission: keep the runtime stable."}, {"text": "tick marker"}]}),
        ("vault_stats", {}),
        ("vault_delete_memory", {"id": added["id"]}),
        ("vault_bulk_delete", {"ids": [updated["id"], "000000000000"]}),
        ("vault_compact", {}),
        more=["vault"],
    )
    assert (changed["tags"], changed["version"]) == (["work"], 3)
    assert (promoted["tier"], promoted["source"]) == ("canon", "promotion")
    assert "We build a dashboard." in snapshot["text"]
    assert ([item["index"] for item in bulk["stored"]], [item["index"] for item in bulk["errors"]]) == ([0], [1])
    assert stats["active_count"] == 3
    assert deleted == {"deleted": True}
    assert both == {"deleted": [updated["id"]], "not_found": ["000000000000"]}
    assert compacted["lines_after"] == 1


def test_the_topics_verbs_as_tools(folder: Path) -> None:
    stored, found, loaded, block = calls(
        folder,
        (
            "topics_store",
            {"topic": "auth/oauth2", "title": "Refresh fails", "problem": "Clock skew.", "solution": "NTP."},
        ),
        ("topics_search", {"query": "skew"}),
        ("topics_load", {"topic": "auth/oauth2"}),
        ("topics_embed", {"query": "auth"}),
        more=["topics"],
    )
    assert call(folder, "topics_load", topic="auth", more=("topics",)) == loaded
    assert call(folder, "topics_list", more=("topics",)) == [
        {"topic": "auth/oauth2", "entries": 1, "newest": stored["entry"]["date"]}
    ]
    assert (stored["stored"], stored["path"]) == (True, str(folder / ".memories/topics/auth/oauth2.md"))
    assert [entry["title"] for entry in (*found, *loaded)] == ["Refresh fails"] * 2
    assert (block["ids"], block["left_out"]) == ([stored["entry"]["id"]], [])
    assert block["text"].startswith("<memlane-context>\n")
    assert 0 < block["tokens"] <= 1000


def test_remembering_without_a_topic_says_where_it_went(folder: Path) -> None:
    nowhere = call(folder, "remember", text="Walnuts are green in spring.", lane="topics")
    assert nowhere["id"].startswith("topics:general/general/")
    assert nowhere["remarks"] == [
        "no topic was named, so it is under general/general; a scope such as auth/oauth2 names one"
    ]
    named = call(folder, "remember", text="Sessions end after an hour.", lane="topics", topic_id="auth")
    assert (named["id"].rpartition("/")[0], named["remarks"]) == ("topics:auth/general", [])


def test_remembering_in_a_layer_takes_the_id_of_the_file(folder: Path) -> None:
    fact = {"text": "Deploys need two approvals.", "lane": "layers"}
    unnamed, stored, again = calls(
        folder,
        ("remember", fact),
        ("remember", {**fact, "topic_id": "skill-specific/review/api/known_issues"}),
        ("remember", {**fact, "topic_id": "layers:skill-specific/review/api/known_issues"}),
    )
    assert unnamed == (
        "A memory in a layer needs the name of its file. "
        'Name it, such as `remember(text=…, lane="layers", topic_id="shared-project/my-api/known_issues")`.'
    )
    assert (stored["id"], stored["remarks"]) == ("layers:skill-specific/review/api/known_issues", [])
    assert (again["id"], again["duplicate"]) == (stored["id"], True)


def test_the_layers_verbs_as_tools(folder: Path) -> None:
    id = "shared-project/my-api/project_profile"
    names = {"layer": "shared-project", "project_name": "my-api", "file_type": "project_profile"}
    history = "skill-specific/review/my-api/review_history"
    created, read, updated, appended, upserted, profile, shared, skill, by_project, report, found, quality = calls(
        folder,
        ("layers_create", {**names, "content": "# Profile"}),
        ("layers_read", names),
        ("layers_update", {"id": id, "content": "# Profile\n\nFastAPI service."}),
        ("layers_append", {"id": f"layers:{id}", "content": "Python 3.12."}),
        ("layers_upsert", {"id": history, "content": "## Review #1 - 2025-01-10"}),
        ("layers_get_project_profile", {"project_name": "my-api"}),
        ("layers_get_shared_project_memory", {"project_name": "my-api"}),
        ("layers_get_skill_memory", {"skill_name": "review", "project_name": "my-api"}),
        ("layers_get_by_project", {"project_name": "my-api"}),
        ("layers_get_staleness_report", {}),
        ("layers_search", {"pattern": "Fast(API)?"}),
        ("layers_validate", {"id": id}),
        more=["layers"],
    )
    assert created == {"id": id, "path": created["path"], "created": True}
    assert (read["id"], read["staleness"]) == (id, "fresh")
    assert (updated["id"], appended["id"], upserted["created"]) == (id, id, True)
    assert profile == shared[0]
    assert [entry["id"] for entry in skill] == [history]
    assert by_project == {"shared": shared, "skills": {"review": skill}, "commands": []}
    assert sorted(item["id"] for item in report["fresh"]) == [id, history]
    assert [match["lineContent"] for match in found["matches"]] == ["FastAPI service."]
    assert quality["id"] == id
    empty, agents, pruned, deleted, gone = calls(
        folder,
        ("layers_get_command_memory", {"project_name": "my-api"}),
        ("layers_get_agent_memory", {"agent_name": "hephaestus"}),
        ("layers_prune", {}),
        ("layers_delete", {"id": id}),
        ("layers_read", names),
        more=["layers"],
    )
    assert (empty, agents, pruned) == ([], [], {"pruned": [], "warnings": []})
    assert deleted == {"id": id, "deleted": True}
    assert gone is None


def test_what_is_not_there_is_null(folder: Path) -> None:
    """S004-10, S004-30"""
    names = {"layer": "shared-project", "project_name": "new", "file_type": "project_profile"}
    answers = calls(
        folder, ("layers_read", names), ("layers_get_project_profile", {"project_name": "new"}), more=["layers"]
    )
    assert answers == [None, None]


def test_pruning_layers_shows_it_first_and_can_be_undone(folder: Path) -> None:
    bank = Bank.open(folder)
    issue = "### Bug\n**Status**: Resolved (2020-01-01)\n"
    names = {"layer": "shared-project", "project_name": "api", "file_type": "known_issues"}
    bank.layers.create({**names, "content": issue})
    shown, done = calls(folder, ("layers_prune", {}), ("layers_prune", {"apply": True}), more=["layers"])
    assert [item["action"] for item in shown["pruned"]] == [item["action"] for item in done["pruned"]] == ["removed"]
    assert "### Bug" not in bank.get("layers:shared-project/api/known_issues").text
    bank.undo()
    assert "### Bug" in bank.get("layers:shared-project/api/known_issues").text


def test_the_records_verbs_as_tools(folder: Path) -> None:
    message = {"content": "All errors extend AppError.", "subject": "Error handling", "keywords": ["errors"]}
    created, again, listed, found, index, problems = calls(
        folder,
        ("records_create", {**message, "occurred_at": "2025-01-15T10:30:00Z"}),
        ("records_create", {**message, "occurred_at": "2025-01-15T10:30:00Z"}),
        ("records_list", {"keyword": "errors"}),
        ("records_find", {"query": "erors"}),
        ("records_index", {}),
        ("records_validate", {}),
        more=["records"],
    )
    assert created == again == listed[0] == found[0]
    assert (index["keywords"], problems) == ({"errors": [created["id"]]}, [])
    got, missing = calls(
        folder,
        ("records_get", {"id": f"records:{created['id']}"}),
        ("records_get", {"id": "550e8400-e29b-41d4-a716-446655440000"}),
        more=["records"],
    )
    assert got == created
    assert missing == "There is no such record. records_list shows what there is."


# -- the docs


def test_answers_show_nothing_that_nobody_sees(folder: Path) -> None:
    """A record keeps the bytes of a message; a model is shown what a person would see, in text and in data."""
    hidden = "\x1b[31mRed\x1b[0m first\u2028second\u200b \U000e0041line of it"
    seen = "Red first\nsecond line of it"
    made, found, recalled = calls(
        folder,
        ("records_create", {"content": hidden, "subject": "Colours", "keywords": ["red"]}),
        ("records_find", {"query": "red"}),
        ("recall", {"query": "red second line"}),
        more=["records"],
    )
    assert (made["content"], [record["content"] for record in found]) == (seen, [seen])
    assert "  second line of it\n" in recalled["block"]
    uri = resources.uri_of(f"records:{made['id']}")
    page = with_client(folder, lambda client: client.read_resource(uri))
    assert page.contents[0].text.endswith(seen)  # type: ignore[union-attr]
    assert Path(made["path"]).read_bytes().endswith(hidden.encode())


@pytest.mark.parametrize(
    ("tool", "arguments", "key"),
    [
        ("remember", {"text": "a\u2028b"}, "remarks"),
        ("create_memory", {"filename": "a", "content": "a\u2028b", "tags": []}, "remark"),
        ("update_memory", {"filename": "old", "content": "a\u2028b"}, "remark"),
        ("append_memory", {"filename": "old", "content": "a\u2028b"}, "remark"),
        ("merge_memories", {"source_files": ["old"], "target_file": "c", "summary_content": "a\u2028b"}, "remark"),
        ("vault_add_memory", {"text": "Wholly new\u2028text", "scope": "shared", "category": "goal"}, "remarks"),
        ("vault_update_by_topic", {"text": "Wholly new\u2028text", "scope": "shared", "topic_id": "t"}, "remarks"),
        ("topics_store", {"topic": "a/b", "content": "a\u2028b"}, "remarks"),
        ("layers_update", {"id": "agent/zeus/x", "content": "a\u2028b"}, "warning"),
        ("records_create", {"content": "Long enough.", "subject": "a\u2028b", "keywords": ["k"]}, "remarks"),
    ],
)
def test_every_tool_that_writes_says_what_the_gate_changed(
    folder: Path, tool: str, arguments: dict[str, Any], key: str
) -> None:
    with Bank.open(folder) as bank:
        bank.add("Old.", title="old")
        bank.layers.create({"layer": "agent", "agent": "zeus", "file_type": "x", "content": "x"})
    (answer,) = calls(folder, (tool, arguments), more=["vault", "topics", "layers", "records"])
    said = answer[key]
    first = said.partition("; ")[0] if isinstance(said, str) else said[0]
    assert first == "1 line separators became newlines"


def test_the_reference_is_what_the_code_says() -> None:
    script = ROOT / "scripts/mcp_reference.py"
    result = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
