"""Archived is a status in every lane: such memories keep their ids, and only those find them who ask for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import Run
from conftest import tree
from memlane import AlreadyExists, Bank, InvalidInput, NotFound
from memlane.core.model import Memory
from memlane.exchange.export import lines
from memlane.exchange.sharing import share
from repositories import save

GNU = "A gnu walked over the keyboard of the build server."


def archive_a_note(bank: Bank) -> Memory:
    return bank.update(bank.add(GNU, title="Gnu").id, status="archived")


def archive_an_entry(bank: Bank) -> Memory:
    first = bank.add(GNU.replace("keyboard", "desk"), lane="topics", scope="ops/night", title="Gnu")
    for number in range(10):
        bank.add(f"Case {number} was closed.", lane="topics", scope="ops/night", title=f"Case {number}")
    return bank.get(first.id)


def archive_a_record(bank: Bank) -> Memory:
    memory = bank.add(GNU, lane="records", tags=["gnu"])
    bank.records.archive(memory.native_id)
    return bank.get(memory.id)


@pytest.fixture(params=[archive_a_note, archive_an_entry, archive_a_record], ids=["note", "entry", "record"])
def archived(request: pytest.FixtureRequest, bank: Bank) -> Memory:
    memory: Memory = request.param(bank)
    return memory


def test_it_is_found_by_those_who_ask(bank: Bank, archived: Memory) -> None:
    """S000-50 for the bank: archived memories are left out unless asked for."""
    assert archived.status == "archived"
    assert archived.id not in [memory.id for memory in bank.list()]
    assert archived.id not in [memory.id for memory in bank.list(limit=50)]
    assert [memory.id for memory in bank.list(status="archived")] == [archived.id]
    assert archived.id in [memory.id for memory in bank.list(archived=True, limit=50)]
    assert archived.id not in [hit.memory.id for hit in bank.search("gnu build server", 20)]
    assert bank.search("gnu build server", archived=True)[0].memory.id == archived.id
    assert archived.id not in [memory.id for memory in bank.context("gnu build server").memories]
    assert archived.id not in [memory.id for memory in bank.snapshot(recent=50).memories]
    stats = bank.stats()
    assert (stats["archived"], stats["lanes"][archived.lane]["archived"]) == (1, 1)
    assert stats["count"] == len(bank.list())


def test_restore_brings_it_back_under_its_id(bank: Bank, archived: Memory) -> None:
    back = bank.restore(archived.id)
    assert (back.id, back.text, back.status) == (archived.id, archived.text, "active" if back.lane == "notes" else None)
    assert bank.list(status="archived") == []
    assert archived.id in [memory.id for memory in bank.list()]
    assert archived.id in [hit.memory.id for hit in bank.search("gnu build server")]
    with pytest.raises((NotFound, AlreadyExists)):
        bank.restore(archived.id)


def test_it_can_be_deleted_and_restored(bank: Bank, archived: Memory) -> None:
    bank.delete(archived.id)
    with pytest.raises(NotFound):
        bank.get(archived.id)
    assert [removed.id for removed in bank.removed()] == [archived.id]
    assert bank.search("gnu build server", archived=True)[:1] != [archived.id]
    back = bank.restore(archived.id)
    assert (back.id, back.text) == (archived.id, archived.text)
    assert list(bank.problems()) == []


def test_forget_reaches_it(bank: Bank, archived: Memory) -> None:
    bank.search("gnu", archived=True)  # the index knows it, too
    done = bank.forget(archived.id)
    assert done.ids == (archived.id,)
    assert [name for name, data in tree(bank.root).items() if b"gnu" in data.lower()] == []
    assert bank.list(status="archived") == []


def test_it_is_exported_and_comes_back_archived(bank: Bank, archived: Memory, tmp_path: Path, run: Run) -> None:
    exported = list(lines(bank.memories()))
    (tmp_path / "all.jsonl").write_text("".join(f"{line}\n" for line in exported))
    (tmp_path / "other").mkdir()
    other = Bank.init(tmp_path / "other")
    assert run("--bank", tmp_path / "other", "import", tmp_path / "all.jsonl").code == 0
    assert [json.loads(line) | {"created_at": 0} for line in lines(other.memories())] == [
        json.loads(line) | {"created_at": 0} for line in exported
    ]
    again = run("--bank", tmp_path / "other", "import", tmp_path / "all.jsonl", "--json").json
    assert again["counts"] == {"same": len(exported)}


def test_links_to_it_are_no_ghosts(bank: Bank, archived: Memory) -> None:
    bank.add(f"See [[{archived.id}]] before you call the zoo.", title="Zoo")
    nodes = {node["id"]: node["is_ghost"] for node in bank.graph()["nodes"]}
    assert nodes[archived.id] is False
    assert [link.memory.id for link in bank.linked(archived.id)] == ["notes:zoo"]


def test_nothing_is_wrong_with_it(bank: Bank, archived: Memory, run: Run) -> None:
    bank.search("gnu")
    assert run("doctor").code == 0
    assert run("doctor", "--only", "format").code == 0


def test_the_terminal_asks_for_it(run: Run, bank: Bank, archived: Memory) -> None:
    assert archived.id not in run("list").out
    assert archived.id in run("list", "--archived").out
    assert archived.id in run("search", "gnu build server", "--archived").out
    assert "archived" in run("get", archived.id).err
    assert run("restore", archived.id).code == 0
    assert archived.id in run("list").out


def test_a_write_says_what_it_displaced(run: Run, bank: Bank) -> None:
    memory = archive_an_entry(bank)
    stored = bank.add("One more case.", lane="topics", scope="ops/night", title="One more")
    assert stored.remarks == ("moved to the archive, to make room: topics:ops/night/" + _day(memory) + "-case-0",)
    said = run("topics", "store", "ops/night", "Still one more.").err
    assert "note: moved to the archive, to make room: topics:ops/night/" in said


def _day(memory: Memory) -> str:
    return str(memory.fields["date"])


def test_an_archived_entry_is_changed_once_it_is_back(bank: Bank) -> None:
    memory = archive_an_entry(bank)
    with pytest.raises(InvalidInput, match="archived"):
        bank.update(memory.id, "Two gnus.")
    back = bank.restore(memory.id)
    assert back.remarks == (
        "its topic file has more entries than it keeps: the next one moves the oldest to the archive again",
    )
    assert "Two gnus." in bank.update(memory.id, "Two gnus.").text


def test_a_record_that_is_stored_again_leaves_the_archive(bank: Bank) -> None:
    first = bank.add(GNU, lane="records", tags=["gnu"], created_at="2025-01-10T10:00:00Z")
    bank.records.archive(first.native_id)
    again = bank.add(GNU, lane="records", tags=["gnu"], created_at="2025-01-10T10:00:00Z")
    assert (again.id, again.status, bank.list(status="archived")) == (first.id, None, [])


def test_an_archived_record_whose_id_is_taken_has_a_suffix(bank: Bank) -> None:
    memory = archive_a_record(bank)
    copy = bank.records.root / memory.path.name
    copy.write_bytes(memory.path.read_bytes())  # as git or a person may do it
    ids = [(found.id, found.status) for found in bank.memories("records")]
    assert ids == [(memory.id, None), (f"{memory.id}~archived", "archived")]
    assert bank.get(f"{memory.id}~archived").path == memory.path
    with pytest.raises(AlreadyExists):
        bank.restore(f"{memory.id}~archived")
    bank.delete(f"{memory.id}~archived")
    assert [found.id for found in bank.memories("records")] == [memory.id]


def test_an_entry_of_another_programs_archive_has_an_id(bank: Bank) -> None:
    archive = bank.topics.root / "archive/ops/2024.md"
    archive.parent.mkdir(parents=True)
    archive.write_text("# Old\n\n## 2024-05-05: Gnu\nIt came at night.\n---\n")
    assert bank.get("topics:ops/general/2024-05-05-gnu").status == "archived"
    bank.add("It came back.", lane="topics", scope="ops", title="Gnu", date="2024-05-05")
    assert [(memory.id, memory.status) for memory in bank.memories("topics")] == [
        ("topics:ops/general/2024-05-05-gnu", None),
        ("topics:ops/general/2024-05-05-gnu-archived", "archived"),
    ]
    assert bank.restore("topics:ops/general/2024-05-05-gnu-archived").text == "It came at night."
    assert not archive.read_text().count("Gnu")


def test_what_is_pruned_is_archived_and_undo_brings_it_back(bank: Bank) -> None:
    path = bank.topics.root / "ops/night.md"
    path.parent.mkdir(parents=True)
    entries = (f"## 2025-01-{20 - n:02}: Entry {20 - n}\n**Problem:** p\n---\n" for n in range(12))
    path.write_text("\n".join(entries))
    before = tree(bank.topics.root)
    pruned = [step.id for step in bank.prune("topics", apply=True).steps]
    assert sorted(memory.id for memory in bank.list(status="archived")) == sorted(pruned)
    assert bank.undo().conflicts == ()
    assert (bank.list(status="archived"), len(bank.list())) == ([], 12)
    assert tree(bank.topics.root)["ops/night.md"] == before["ops/night.md"]


def test_a_killed_restore_leaves_the_entry_once(bank: Bank) -> None:
    memory = archive_an_entry(bank)
    archive = memory.path.read_bytes()
    bank.restore(memory.id)
    memory.path.write_bytes(archive)  # as if killed before the archive was written
    found = [found for found in bank.memories("topics") if found.title == "Gnu"]
    assert [(one.id, one.status) for one in found] == [(memory.id, None)]


@pytest.mark.parametrize("archive", [archive_an_entry, archive_a_record])
def test_git_sees_it_move_and_not_go(repo: Path, archive: Callable[[Bank], Memory]) -> None:
    with Bank.open(repo) as bank:
        share(bank, ["records"])
        memory = archive(bank)
        bank.restore(memory.id)
        save(repo, "There", "2025-06-01")
        bank.prune("topics", apply=True) if memory.lane == "topics" else bank.records.archive(memory.native_id)
        save(repo, "Archived", "2025-06-02")
        log = [(change.subject, [id for id, _ in change.changed], change.removed) for change in bank.log(memory.id)]
        assert log == [("Archived", [memory.id], ()), ("There", [], ())]
        with bank.as_of("2025-06-01T23:00:00Z") as before, bank.as_of("2025-06-03") as after:
            assert (before.get(memory.id).status, after.get(memory.id).status) == (None, "archived")
        assert bank.forget(memory.id, dry_run=True).left[0].where == "git history"
