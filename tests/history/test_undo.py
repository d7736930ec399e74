"""`memlane undo`: everything that was applied can be taken back, and nothing that others wrote is lost by it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from commands import Run
from conftest import tree
from memlane import Bank, NotFound
from memlane.disk import journal
from memlane.history.undo import applied
from rotten import entries, note, plant, state


@pytest.fixture
def rotten(bank: Bank) -> Bank:
    plant(bank)
    return bank


def topic(bank: Bank, count: int = 12) -> Path:
    path = bank.root / "topics/auth/oauth2.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(entries(count))
    return path


def last(bank: Bank, what: str) -> str:
    """The id of the last change of this name."""
    return next(one.id for one in applied(bank) if one.what == what)


# -- taking back


def test_what_was_applied_is_taken_back(run: Run, rotten: Bank) -> None:
    before = state(rotten)
    done = run("review", "--apply", "--json").json
    assert done["applied"]
    assert state(rotten) != before
    undone = run("undo", "--json").json
    assert (undone["what"], undone["conflicts"]) == ("review", [])
    assert state(rotten) == before
    assert rotten.problems() == []
    assert [one.state for one in applied(rotten) if one.what == "review"] == ["undone"]


def test_an_undo_can_be_undone_and_that_too(run: Run, rotten: Bank) -> None:
    before = state(rotten)
    run("review", "--apply")
    after = state(rotten)
    for _ in range(2):
        undone = run("undo", "--json").json
        assert state(rotten) == before
        assert run("undo", undone["id"], "--json").json["conflicts"] == []
        assert state(rotten) == after
    states = [(one.what, one.state) for one in applied(rotten) if one.by == "cli"]
    assert states == [
        ("redo", "applied"), ("undo", "undone"), ("redo", "applied"), ("undo", "undone"), ("review", "applied"),
    ]  # fmt: skip


def test_plans_are_taken_back_one_after_the_other(run: Run, rotten: Bank) -> None:
    first = state(rotten)
    run("review", "--only", "prune", "--lane", "topics", "--apply")
    second = state(rotten)
    run("review", "--only", "prune", "--lane", "layers", "--apply")
    run("undo")
    assert state(rotten) == second
    run("undo")
    assert state(rotten) == first
    assert [one["state"] for one in run("undo", "--list", "--json").json if one["what"] == "review"] == ["undone"] * 2


def test_a_merge_is_taken_back(run: Run, bank: Bank) -> None:
    note(bank, "a", "one\n")
    note(bank, "b", "two\n")
    before = state(bank)
    assert run("merge", "a", "b", "--into", "c", "--text", "both").code == 0
    assert run("undo").out.split() == ["b.md", "a.md", "c.md"]
    assert state(bank) == before


def test_retained_records_are_taken_back_each_on_its_own(run: Run, rotten: Bank) -> None:
    before = state(rotten)
    kept = run("records", "retain", "--count", "1", "--apply", "--json").json["steps"]
    assert len(kept) == 2
    run("restore", kept[0]["id"])
    rotten.update(kept[0]["id"], text="said otherwise since")
    undone = run("undo", last(rotten, "records retain"), "--json")
    assert undone.code == 5
    assert [conflict["path"] for conflict in undone.json["conflicts"]] == [
        f"{kept[0]['id'].replace(':', '/')}.md",
    ]
    changed = f"{kept[0]['id'].replace(':', '/')}.md"
    assert {name for name, value in state(rotten).items() if before.get(name) != value} == {changed}


def test_nothing_is_noted_where_nothing_is_changed(run: Run, bank: Bank, tmp_path: Path) -> None:
    note(bank, "a", "one\n")
    before = tree(tmp_path)
    run("review", "--apply")
    run("review", "--only", "prune", "--apply")
    run("records", "retain", "--days", "1", "--apply")
    assert tree(tmp_path) == before
    assert run("undo", "--list").err == "nothing was changed yet\n"


# -- what others did since


def test_what_changed_since_is_left_with_all_that_belongs_to_it(run: Run, bank: Bank) -> None:
    """The archive is not emptied when the topic file cannot take its entries back."""
    path = topic(bank)
    run("review", "--only", "prune", "--apply")
    archive = bank.root / "topics/archive/auth/2025.md"
    archived = archive.read_text()
    path.write_text(path.read_text().replace("Entry 12", "Entry 12, corrected"))
    changed = path.read_text()
    undone = run("undo", "--json")
    assert undone.code == 5
    assert undone.json["restored"] == []
    assert undone.json["conflicts"] == [{"path": "topics/auth/oauth2.md", "why": "has changed since"}]
    assert (path.read_text(), archive.read_text()) == (changed, archived)
    assert [one.state for one in applied(bank) if one.what == "review"] == ["partly undone"]


def test_a_conflict_is_gone_when_the_change_is(run: Run, bank: Bank) -> None:
    path = topic(bank)
    before = state(bank)
    run("review", "--only", "prune", "--apply")
    pruned = path.read_text()
    path.write_text(pruned + "x")
    assert run("undo").code == 5
    path.write_text(pruned)
    assert run("undo").code == 0
    assert state(bank) == before


def test_the_index_of_the_topics_is_made_anew_where_others_have_changed_it(run: Run, bank: Bank) -> None:
    topic(bank)
    bank.topics.reindex()
    run("review", "--only", "prune", "--apply")
    bank.topics.store("db/postgres", "vacuum runs at night", title="Vacuum")
    assert run("undo", last(bank, "review")).code == 0
    index = (bank.root / "topics/index.md").read_text()
    bank.topics.reindex()
    assert (bank.root / "topics/index.md").read_text() == index
    assert "postgres" in index


def test_what_others_appended_to_the_vault_stays(run: Run, rotten: Bank) -> None:
    """The log is never cut: the record comes back as its next version."""
    before = rotten.vault.path.read_bytes()
    assert run("review", "--apply", "--only", "prune", "vault:aaaaaaaaaaaa").code == 0
    new = rotten.vault.add_memory("Written after the plan was applied", "shared", "other")
    assert run("undo", last(rotten, "review")).out == "vault:aaaaaaaaaaaa\n"
    assert rotten.vault.path.read_bytes().startswith(before)
    assert {record.id for record in rotten.vault.recall_memories()} >= {"aaaaaaaaaaaa", new}
    assert rotten.vault.get_memory("aaaaaaaaaaaa").version == 3


def test_a_record_comes_back_after_a_compaction(run: Run, rotten: Bank) -> None:
    run("review", "--apply", "--only", "prune", "vault:aaaaaaaaaaaa")
    rotten.vault.compact()
    assert run("undo", last(rotten, "review")).code == 0
    assert rotten.get("vault:aaaaaaaaaaaa").text == "The current sprint is about search quality"


def test_a_record_that_was_restored_and_changed_since_is_left(run: Run, rotten: Bank) -> None:
    run("review", "--apply", "--only", "prune", "vault:aaaaaaaaaaaa")
    run("restore", "vault:aaaaaaaaaaaa")
    rotten.vault.update_memory("aaaaaaaaaaaa", text="A statement of its own")
    conflicts = run("undo", last(rotten, "review"), "--json").json["conflicts"]
    assert conflicts == [{"path": "vault:aaaaaaaaaaaa", "why": "has changed since"}]
    assert rotten.get("vault:aaaaaaaaaaaa").text == "A statement of its own"


def test_what_was_restored_by_hand_is_no_conflict(run: Run, rotten: Bank) -> None:
    before = state(rotten)
    run("review", "--apply", "--only", "duplicate")
    run("restore", "notes:port-2")
    assert run("undo", last(rotten, "review")).code == 0
    assert state(rotten) == before


def test_an_emptied_trash_is_no_loss(run: Run, rotten: Bank) -> None:
    before = state(rotten)
    run("review", "--apply", "--only", "duplicate")
    for path in rotten.root.glob(".trash/port-2*"):
        path.unlink()
    assert run("undo", "--json").json["restored"] == ["port-2.md"]
    assert state(rotten) == before


# -- the journal


def _delete(bank: Bank, *ids: str) -> None:
    with journal.change("change"):
        for id in ids:
            bank.delete(id)


def test_an_error_in_between_leaves_what_can_be_undone(bank: Bank) -> None:
    note(bank, "a", "one\n")
    before = state(bank)
    with pytest.raises(NotFound):
        _delete(bank, "notes:a", "notes:none")
    assert [one.state for one in applied(bank)] == ["interrupted"]
    bank.undo()
    assert state(bank) == before


def test_an_id_that_is_none_is_said(run: Run, bank: Bank) -> None:
    assert run("undo", "20250101-000000").code == 3
    assert run("undo", "../x").code == 3
    assert run("undo", "x", "--list").code == 2


# -- kill -9


@pytest.mark.parametrize("verb", ["apply", "undo"])
def test_whoever_is_killed_leaves_what_undo_brings_back(verb: str, tmp_path: Path) -> None:
    """SIGKILL before one change to the disk after another, in the middle of an apply and of an undo."""
    program = Path(__file__).parent.parent / "rotten.py"
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path), verb, "5"], capture_output=True, text=True, cwd=program.parent
    )
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert report["wrong"] == []
    assert report["killed"] >= 8
