"""What others get through git and what stays with its user, with real repositories and clones."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from commands import Run
from conftest import tree
from memlane import Bank
from memlane.core.errors import AlreadyExists, InvalidInput
from memlane.exchange.export import write_block
from memlane.exchange.sharing import missing_drivers, share
from repositories import git, save

SAID = "What was said: the parser is rewritten because the old one could not stream."


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """A repository with a bank that captures privately: a shared note, a private one, and a record."""
    folder = tmp_path / "team"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "auth.py").write_text("def login():\n    return 1\n")
    with Bank.init(folder, git=True) as bank:
        bank.add("Deploys go out on Tuesdays.", title="deploy")
        bank.add("Ann earns too little, see [[auth.py]].", title="salary", scope="private")
        bank.add(SAID, lane="records", created_at="2025-01-10T14:30:22Z")
    save(folder)
    return folder


def committed(folder: Path) -> list[str]:
    return git(folder, "ls-files").splitlines()


def record_of(bank: Bank) -> str:
    return next(memory.id for memory in bank.list(lane="records"))


# -- private from the start


def test_what_is_captured_and_what_is_private_is_not_committed(team: Path) -> None:
    assert committed(team) == [
        ".memories/.gitattributes", ".memories/.gitignore", ".memories/deploy.md", "auth.py", "memlane.toml",
    ]  # fmt: skip


def test_what_was_captured_before_there_was_a_repository_is_not_committed(run: Run, tmp_path: Path) -> None:
    run("init")
    run("add", SAID, "--lane", "records")
    run("add", "Deploys go out on Tuesdays.", "--title", "deploy")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    assert committed(tmp_path) == [".memories/.gitignore", ".memories/deploy.md", "memlane.toml"]
    assert run("init", "--git").code == 0
    assert ".memories/records/" not in git(tmp_path, "status", "--porcelain", "-uall")


def test_the_user_finds_both(team: Path) -> None:
    with Bank.open(team) as bank:
        assert bank.get("notes:private/salary").scope is None
        assert "Ann earns" in bank.context("how much does Ann earn?")
        assert {hit.memory.id for hit in bank.search("parser stream")} == {record_of(bank)}


def test_no_committed_file_names_a_private_note(team: Path) -> None:
    """Its name tells: it is in no side file that others get."""
    with Bank.open(team) as bank:
        bank.add("Ann earns a little more.", title="salary now", replaces="notes:private/salary")
        assert bank.get("notes:private/salary").superseded_by == "notes:private/salary-now"
        assert [verdict.id for verdict in bank.fresh()] == ["notes:private/salary"]
    save(team)
    for name in committed(team):
        assert "salary" not in (team / name).read_text(), name


def test_what_takes_the_place_of_a_private_note_is_private(team: Path) -> None:
    with Bank.open(team) as bank:
        assert bank.add("Ann earns more.", replaces="notes:private/salary").id == "notes:private/ann-earns-more"


def test_a_block_in_an_agents_file_leaves_private_notes_out(team: Path) -> None:
    with Bank.open(team) as bank:
        bank.add("Pinned for all.", title="all", tags=["pinned"])
        bank.add("Pinned for Ann.", title="own", tags=["pinned"], scope="private")
        write_block(bank, team / "CLAUDE.md")
        assert "Pinned for Ann." in bank.snapshot()
    text = (team / "CLAUDE.md").read_text()
    assert ("Pinned for all." in text, "Pinned for Ann." in text) == (True, False)


@pytest.mark.parametrize("lane", ["vault", "topics", "layers"])
def test_a_lane_that_is_shared_as_a_whole_takes_nothing_private(team: Path, lane: str) -> None:
    with Bank.open(team) as bank, pytest.raises(InvalidInput, match="shared as a whole"):
        bank.add("Ann likes tea with milk.", lane=lane, scope="private")


def test_the_same_text_is_written_once_on_each_side(team: Path) -> None:
    with Bank.open(team) as bank:
        assert bank.add("Ann earns too little, see [[auth.py]].", scope="private").duplicate
        assert not bank.add("Deploys go out on Tuesdays.", scope="private").duplicate


def test_a_scope_does_not_make_a_note_private(run: Run, team: Path) -> None:
    result = run("--bank", team, "update", "notes:deploy", "--scope", "private")
    assert (result.code, "`memlane share --private ID` moves it." in result.err) == (2, True)


def test_init_says_so_and_keeps_what_is_captured_out_of_git(run: Run, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    assert "stays out of git; `memlane share ID` shares a record" in run("init").err
    assert git(tmp_path, "check-ignore", "--no-index", ".memories/records/a.md", ".memories/a.md", ok=True)
    assert not (tmp_path / ".memories/.gitattributes").exists()


def test_records_that_git_tracks_stay_shared_and_that_is_said(run: Run, team: Path) -> None:
    rules = team / ".memories/.gitignore"
    rules.write_text("")
    save(team)
    result = run("--bank", team, "init", team)
    assert f"git has {team}/.memories/records: what is captured is shared" in result.err
    assert "records/*.md" not in rules.read_text()
    (finding,) = run("--bank", team, "doctor", "--only", "git-private", "--json").json["findings"]
    assert finding["why"] == "is in git with 1 captured messages: they travel with every clone"
    said = run("--bank", team, "share", "--private", "records").err
    assert "`git rm -r --cached .memories/records` and commit, else it stays shared" in said
    git(team, "rm", "-r", "-q", "--cached", ".memories/records")
    save(team)
    assert [name for name in committed(team) if "records" in name] == []
    assert run("--bank", team, "doctor", "--only", "git-private", "--json").json["findings"] == []


def test_records_that_were_shared_before_there_were_any_stay_shared(run: Run, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    run("init")
    run("share", "records")
    assert run("init").code == 0
    run("add", "The build needs Java 21.", "--lane", "records")
    assert ".memories/records/" in git(tmp_path, "status", "--porcelain", "-uall")
    assert run("doctor", "--only", "git-private", "--json").json["findings"] == []
    run("share", "--private", "records")
    assert run("init").code == 0
    assert ".memories/records/" not in git(tmp_path, "status", "--porcelain", "-uall")


# -- moving between the two


def test_a_note_moves_with_its_anchors_links_and_what_it_replaced(team: Path) -> None:
    with Bank.open(team) as bank:
        bank.add("See [[memory:salary]] and [[memory:notes:private/salary]].", title="link")
        bank.add("Deploys go out on Fridays.", title="friday", replaces="notes:deploy")
        (shared,) = share(bank, ["salary"])
        assert (shared.id, shared.before, shared.remarks) == (
            "notes:salary", "notes:private/salary", ("commit it, and others get it",),
        )  # fmt: skip
        assert [verdict.id for verdict in bank.fresh()] == ["notes:salary"]
        assert [link.memory.id for link in bank.linked("notes:salary")] == ["notes:link"]
        (hidden,) = share(bank, ["friday"], private=True)
        assert bank.get("notes:deploy").superseded_by == hidden.id == "notes:private/friday"
    lines = (team / ".memories/anchors.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["notes:salary"]
    assert not (team / ".memories/replaced.jsonl").exists()


def test_a_committed_note_that_becomes_private_says_what_git_still_has(run: Run, team: Path) -> None:
    result = run("--bank", team, "share", "--private", "deploy")
    assert (result.code, result.out) == (0, "notes:private/deploy\n")
    assert "git has it: `git rm -r --cached .memories/deploy.md` and commit" in result.err
    save(team)
    assert ".memories/deploy.md" not in committed(team)
    assert run("--bank", team, "share", "private/deploy").out == "notes:deploy\n"
    assert "its history keeps it" in run("--bank", team, "share", "--private", "deploy").err


def test_a_record_is_shared_where_it_lies(run: Run, team: Path) -> None:
    with Bank.open(team) as bank:
        id = record_of(bank)
        before = bank.get(id)
        assert share(bank, [id])[0].id == id
        assert bank.get(id) == before
        assert not bank.records.capture_message(bank.records.answers.draft_of(before))[1]
    save(team)
    assert f".memories/records/{id[8:]}.md" in committed(team)
    run("init", team)
    assert "nothing to commit" in git(team, "status")
    assert f"!/records/{id[8:]}.md" in (team / ".memories/.gitignore").read_text()
    assert "git has it" in run("--bank", team, "share", "--private", id).err
    assert f"!/records/{id[8:]}.md" not in (team / ".memories/.gitignore").read_text()


def test_nothing_moves_when_one_of_them_cannot(team: Path) -> None:
    with Bank.open(team) as bank:
        vault = bank.add("Ann prefers tea over coffee.", lane="vault", tier="canon").id
        before = sorted(tree(team))
        with pytest.raises(InvalidInput, match="the vault lane is shared as a whole"):
            share(bank, ["deploy", vault], private=True)
        assert sorted(tree(team)) == before


def test_a_name_that_is_taken_on_the_other_side_is_refused(team: Path) -> None:
    with Bank.open(team) as bank:
        bank.add("Another one.", title="salary")
        with pytest.raises(AlreadyExists, match="There is a note salary already"):
            share(bank, ["notes:private/salary"])
        assert bank.get("notes:private/salary").text.startswith("Ann earns")


def test_deleted_and_restored_a_private_note_is_still_private(team: Path) -> None:
    with Bank.open(team) as bank:
        bank.delete("notes:private/salary")
        assert bank.restore("notes:private/salary").id == "notes:private/salary"
    assert git(team, "status", "--porcelain", "-uall") == "?? .memories/tombstones.jsonl"  # hashes, and no name


# -- a fresh clone


@pytest.fixture
def clone(team: Path, tmp_path: Path) -> Path:
    git(tmp_path, "clone", "-q", str(team), "clone")
    return tmp_path / "clone"


def test_trusting_a_clone_offers_what_merging_needs_and_init_does_it(run: Run, clone: Path) -> None:
    offer = "git does not know yet how to merge memory in this clone: `memlane init` teaches it"
    assert offer in run("--bank", clone, "trust", "--yes").err
    (finding,) = run("--bank", clone, "doctor", "--only", "git-drivers", "--json").json["findings"]
    assert (finding["severity"], finding["fix"]) == ("warning", f"memlane --bank {clone} init")
    assert run("--bank", clone, "init").code == 0
    assert missing_drivers(Bank.open(clone).config) == []
    assert run("--bank", clone, "doctor", "--only", "git-drivers", "--json").json["findings"] == []
    assert offer not in run("--bank", clone, "trust", "--yes").err


def test_a_driver_whose_program_is_gone_is_missing(run: Run, team: Path) -> None:
    git(team, "config", "merge.memlane-note.driver", "/gone/memlane merge-driver note %O %A %B %P")
    assert missing_drivers(Bank.open(team).config) == ["memlane-note"]


def test_what_is_captured_in_a_clone_is_private_at_once(run: Run, clone: Path) -> None:
    run("--bank", clone, "trust", "--yes")
    with Bank.open(clone) as bank:
        bank.add(SAID, lane="records")
    assert "nothing to commit" in git(clone, "status")


# -- in a linked worktree


def test_what_is_captured_in_a_worktree_outlives_it(team: Path) -> None:
    other = team.parent / "other"
    git(team, "worktree", "add", "-q", "-b", "other", str(other))
    with Bank.open(other) as bank:
        added = bank.add("What was said in the other worktree: it is done.", lane="records")
        bank.add("A note of the branch.", title="branch")
        lone = "it lies in this linked worktree alone, and goes when the worktree is removed"
        assert bank.add("Ann is away.", scope="private").remarks == (lone,)
        assert bank.root == other / ".memories"
        assert os.path.dirname(added.file) == str(team / ".memories/records")
        assert len(bank.list(lane="records")) == 2
        assert bank.as_of("HEAD").list() != []
    git(team, "worktree", "remove", "--force", str(other))
    with Bank.open(team) as bank:
        assert bank.get(added.id).text == added.text
