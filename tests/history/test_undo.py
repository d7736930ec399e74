"""`memlane undo`: everything that was applied can be taken back, and nothing that others wrote is lost by it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from commands import Run
from conftest import tree, trusted
from memlane import Bank, NotFound
from memlane.history.undo import applied, recording
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
    assert run("undo").code == 3


def test_an_undo_can_be_undone_and_that_too(run: Run, rotten: Bank) -> None:
    before = state(rotten)
    run("review", "--apply")
    after = state(rotten)
    for _ in range(2):
        undone = run("undo", "--json").json
        assert state(rotten) == before
        assert run("undo", undone["id"], "--json").json["conflicts"] == []
        assert state(rotten) == after
    states = [(one.what, one.state) for one in applied(rotten)]
    assert (states[0], states[-1]) == (("undo", "applied"), ("review", "applied"))


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
    undone = run("undo", "--json")
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
    assert run("undo", "--list").err == "nothing was applied yet\n"


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
    assert run("undo").code == 0
    index = (bank.root / "topics/index.md").read_text()
    bank.topics.reindex()
    assert (bank.root / "topics/index.md").read_text() == index
    assert "postgres" in index


def test_what_others_appended_to_the_vault_stays(run: Run, rotten: Bank) -> None:
    """The log is never cut: the record comes back as its next version."""
    before = rotten.vault.path.read_bytes()
    assert run("review", "--apply", "--only", "prune", "vault:aaaaaaaaaaaa").code == 0
    new = rotten.vault.add_memory("Written after the plan was applied", "shared", "other")
    assert run("undo").out == "vault:aaaaaaaaaaaa\n"
    assert rotten.vault.path.read_bytes().startswith(before)
    assert {record.id for record in rotten.vault.recall_memories()} >= {"aaaaaaaaaaaa", new}
    assert rotten.vault.get_memory("aaaaaaaaaaaa").version == 3


def test_a_record_comes_back_after_a_compaction(run: Run, rotten: Bank) -> None:
    run("review", "--apply", "--only", "prune", "vault:aaaaaaaaaaaa")
    rotten.vault.compact()
    assert run("undo").code == 0
    assert rotten.get("vault:aaaaaaaaaaaa").text == "The current sprint is about search quality"


def test_a_record_that_was_restored_and_changed_since_is_left(run: Run, rotten: Bank) -> None:
    run("review", "--apply", "--only", "prune", "vault:aaaaaaaaaaaa")
    run("restore", "vault:aaaaaaaaaaaa")
    rotten.vault.update_memory("aaaaaaaaaaaa", text="A statement of its own")
    assert run("undo", "--json").json["conflicts"] == [{"path": "vault:aaaaaaaaaaaa", "why": "has changed since"}]
    assert rotten.get("vault:aaaaaaaaaaaa").text == "A statement of its own"


def test_what_was_restored_by_hand_is_no_conflict(run: Run, rotten: Bank) -> None:
    before = state(rotten)
    run("review", "--apply", "--only", "duplicate")
    run("restore", "notes:port-2")
    assert run("undo").code == 0
    assert state(rotten) == before


def test_an_emptied_trash_is_said(run: Run, rotten: Bank) -> None:
    run("review", "--apply", "--only", "duplicate")
    for path in rotten.root.glob(".trash/port-2*"):
        path.unlink()
    undone = run("undo", "--json")
    assert (undone.code, [conflict["path"] for conflict in undone.json["conflicts"]]) == (5, ["port-2.md"])


# -- the journal


def test_the_last_twenty_are_kept(bank: Bank) -> None:
    for number in range(25):
        with recording(bank, f"change {number}"):
            bank.add(f"text {number}", title=f"note {number}")
    assert [one.what for one in applied(bank)] == [f"change {number}" for number in range(24, 4, -1)]
    bank.undo()
    assert len(applied(bank)) == 20
    with pytest.raises(NotFound):
        bank.get("notes:note-24")


def test_git_does_not_see_it(run: Run, rotten: Bank) -> None:
    run("review", "--apply")
    assert (rotten.root / ".trash/undo/.gitignore").read_text() == "*\n"


def test_a_forged_journal_reaches_nothing_outside_the_bank(run: Run, bank: Bank, tmp_path: Path) -> None:
    target = tmp_path / "profile"
    target.write_text("mine")
    for name in ("../profile", str(target), ".trash/../../profile"):
        folder = bank.root / ".trash/undo/20250101-000000"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "1.md").write_text("theirs")
        lines = [{"what": "review"}, {"path": name, "was": None, "now": None, "copy": "1.md"}]
        (folder / "journal.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
        assert run("undo").code == 5
        assert target.read_text() == "mine"


HASH = hashlib.blake2b(b"theirs", digest_size=16).hexdigest()


def _forged(bank: Bank, *lines: str) -> None:
    folder = bank.root / ".trash/undo/20990101-000000"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "1.md").write_bytes(b"theirs")
    (folder / "journal.jsonl").write_text("".join(f"{line}\n" for line in lines))


def test_a_forged_journal_reaches_nothing_of_gits(run: Run, tmp_path: Path) -> None:
    """Where the bank is the top of a repository, .git is below it, and with it the hooks that git runs."""
    (tmp_path / "memlane.toml").write_text('[memory]\nenabled = true\n[memory_configuration]\nexternal_path = "."\n')
    trusted(tmp_path / "memlane.toml")
    (tmp_path / "vault.jsonl").touch()
    (tmp_path / ".git/hooks").mkdir(parents=True)
    entry = {"path": ".git/hooks/post-checkout", "was": HASH, "copy": "1.md", "now": None}
    _forged(Bank.open(tmp_path), '{"what":"review"}', json.dumps(entry))
    assert run("undo").code == 5
    assert os.listdir(tmp_path / ".git/hooks") == []


@pytest.mark.parametrize(
    "line",
    [
        '{"path":5}', '{"path":"a.md"}', '{"move":["a.md"],"was":"x"}', '{"move":5,"was":"x"}', '{"vault":1}', "null",
        '{"path":"a.md","was":{},"now":null}', "[" * 100_000,
    ],
)  # fmt: skip
def test_a_damaged_line_keeps_its_step_as_it_is(line: str, run: Run, bank: Bank) -> None:
    other = {"path": "b.md", "was": HASH, "copy": "1.md", "now": None}
    _forged(bank, '{"what":"review"}', '{"step":"notes:b","action":"delete"}', json.dumps(other), line)
    found = run("undo")
    assert (found.code, found.err.splitlines()[0]) == (
        5, "left as it is: .trash/undo/20990101-000000 has a line that cannot be read",
    )  # fmt: skip
    assert not (bank.root / "b.md").exists()


def test_what_is_no_journal_is_in_nobodys_way(run: Run, bank: Bank, tmp_path: Path) -> None:
    with recording(bank, "change"):
        bank.add("text", title="note")
    (bank.root / ".trash/undo/20990101-000000/journal.jsonl").mkdir(parents=True)
    (bank.root / ".trash/undo/20990101-000001").mkdir()
    (tmp_path / "profile").write_text('{"what":"review"}\n{"path":"a.md","was":null,"now":null}\n')
    (bank.root / ".trash/undo/20990101-000001/journal.jsonl").symlink_to(tmp_path / "profile")
    assert [one.what for one in applied(bank)] == ["change"]
    assert bank.undo().restored == ("note.md",)


def _delete(bank: Bank, *ids: str) -> None:
    with recording(bank, "change"):
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
        [sys.executable, str(program), str(tmp_path), verb, "7"], capture_output=True, text=True, cwd=program.parent
    )
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert report["wrong"] == []
    assert report["killed"] >= 8
