"""Deleted stays deleted: what a deletion leaves behind, and who honours it."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import Run
from conftest import Clock, tree
from memlane import Bank, Memory, NotFound, StorageError
from memlane.capture.messages import capture
from memlane.core.dates import utc_now
from memlane.disk.tombstones import FILE, Tombstones, plain
from memlane.exchange import editing
from memlane.exchange.export import lines
from memlane.exchange.imports import import_from
from memlane.exchange.sharing import share
from memlane.lanes import NAMES
from repositories import branches, git, save
from samples import transcript, words

TEXT = f"{words('deleted')}\n\n{words('more of it')}"
FIELDS: dict[str, dict[str, Any]] = {
    "notes": {"title": "Plan"},
    "vault": {},
    "topics": {"title": "Plan", "topic": "auth", "subtopic": "login"},
    "records": {"title": "Plan"},
    "layers": {"project": "api", "file_type": "common_patterns"},
}


def today() -> str:
    return utc_now().date().isoformat()


def add(bank: Bank, lane: str, text: str = TEXT) -> Memory:
    return bank.add(text, lane=lane, created_at="2025-01-10T10:00:00Z", **FIELDS[lane])


def stones(bank: Bank) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (bank.root / FILE).read_text().splitlines()]


@pytest.fixture
def stone(tmp_path: Path, clock: Clock) -> Tombstones:
    return Tombstones(tmp_path / FILE, clock=clock)


# -- the file


def test_nothing_is_written_before_the_first_deletion(bank: Bank) -> None:
    memory = add(bank, "notes")
    bank.update(memory.id, text="Other words.\n")
    bank.search("words")
    assert not (bank.root / FILE).exists()


@pytest.mark.parametrize("lane", NAMES)
def test_a_deletion_leaves_hashes_and_a_date_but_no_text(bank: Bank, lane: str) -> None:
    bank.delete(add(bank, lane).id)
    key, stone = stones(bank)
    assert re.fullmatch("[0-9a-f]{64}", key.pop("key"))
    assert not key
    assert re.fullmatch("[0-9a-f]{32}", stone.pop("hash"))
    assert re.fullmatch("[0-9a-f]{16}", stone.pop("id"))
    assert stone.pop("deleted").startswith(today())
    assert stone == {"n": 1}
    written = (bank.root / FILE).read_text()
    assert not [word for word in (*TEXT.split(), "plan", lane) if word in written.lower()]


def test_two_banks_have_different_hashes_for_the_same_text(tmp_path: Path) -> None:
    made = []
    for name in ("a", "b"):
        stone = Tombstones(tmp_path / name)
        stone.bury(("notes:x", TEXT))
        made.append(json.loads((tmp_path / name).read_text().splitlines()[1])["hash"])
    assert made[0] != made[1]


def test_white_space_and_unicode_form_do_not_count_but_case_does() -> None:
    assert plain(" Caf\u0065\u0301 \r\n\tau  lait\n") == "Caf\u00e9 au lait"
    assert plain("A") != plain("a")


def test_a_text_that_says_nothing_is_no_tombstone(stone: Tombstones, tmp_path: Path) -> None:
    stone.bury(("notes:x", " \n"))
    assert tree(tmp_path) == {}


def test_it_is_buried_once_and_lifted_once(stone: Tombstones) -> None:
    for _ in range(2):
        stone.bury(("notes:x", TEXT), ("notes:x", f"  {TEXT}"))
    assert stone.deleted(TEXT) == "2025-01-10"
    assert stone.lift(TEXT) == ("deleted before, on 2025-01-10; kept because you added it on purpose",)
    assert stone.lift(TEXT) == ()
    assert len(Path(stone.path or "").read_text().splitlines()) == 3


def test_what_others_append_is_seen_and_a_torn_line_does_no_harm(stone: Tombstones, tmp_path: Path) -> None:
    other = Tombstones(tmp_path / FILE)
    assert other.deleted("one") is None
    stone.bury(("notes:x", "one"))
    assert other.deleted("one") == "2025-01-10"
    with open(tmp_path / FILE, "a") as file:
        file.write('{"hash":"5c')
    assert other.deleted("one") == "2025-01-10"
    stone.bury(("notes:y", "two"))
    assert (other.deleted("one"), other.deleted("two")) == ("2025-01-10", "2025-01-10")
    assert [problem.line for problem in other.problems()] == [3]


@given(steps=st.lists(st.tuples(st.booleans(), st.sampled_from("xy")), max_size=6), order=st.randoms())
def test_the_lines_mean_the_same_in_any_order(
    steps: list[tuple[bool, str]], order: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("stones")
    stone = Tombstones(folder / FILE, clock=lambda: datetime(2025, 1, 10, tzinfo=UTC))
    deleted = set()
    for bury, id in steps:
        if bury:
            stone.bury((f"notes:{id}", TEXT))
            deleted.add(id)
        else:
            stone.lift(TEXT)
            deleted.clear()
    if not steps or not (folder / FILE).exists():
        return
    shuffled = (folder / FILE).read_text().splitlines(keepends=True) * 2
    order.shuffle(shuffled)
    (folder / "other").write_text("".join(shuffled))
    other = Tombstones(folder / "other")
    assert {id for id in "xy" if other.held(Memory(f"notes:{id}", "notes", TEXT, "", ""))} == deleted
    assert (other.deleted(TEXT) is not None) == bool(deleted)


def test_a_hundred_thousand_are_read_once_and_then_only_what_is_new(tmp_path: Path, clock: Clock) -> None:
    stone = Tombstones(tmp_path / FILE, clock=clock)
    stone.bury(("notes:x", TEXT))
    filler = "".join(
        f'{{"hash":"{number:032x}","id":"{number:016x}","deleted":"2025-01-10T00:00:00Z","n":1}}\n'
        for number in range(100_000)
    )
    with open(tmp_path / FILE, "a") as file:
        file.write(filler)
    assert stone.deleted(TEXT) == "2025-01-10"
    read = 0

    def trace(frame: Any, event: str, result: Any) -> None:
        nonlocal read
        if event == "return" and frame.f_code.co_name == "read_new" and result is not None:
            read += len(result[0])

    before, _ = sys.getprofile(), sys.setprofile(trace)
    try:
        assert not any(stone.deleted(f"text {number}") for number in range(100))
        stone.bury(("notes:y", "another"))
        assert stone.deleted("another") == "2025-01-10"
    finally:
        sys.setprofile(before)
    assert 0 < read < 200


# -- on purpose


@pytest.mark.parametrize("lane", NAMES)
def test_adding_it_again_works_and_says_so(bank: Bank, lane: str) -> None:
    bank.delete(add(bank, lane).id)
    again = add(bank, lane)
    said = f"deleted before, on {today()}; kept because you added it on purpose"
    assert said in again.remarks
    assert bank.tombstones.deleted(TEXT) is None
    assert again.id in [memory.id for memory in bank.list()]
    assert bank.problems() == []
    bank.delete(again.id)
    assert bank.tombstones.deleted(again.text) == today()


@pytest.mark.parametrize("lane", NAMES)
def test_restoring_lifts_it(bank: Bank, lane: str) -> None:
    memory = add(bank, lane)
    bank.delete(memory.id)
    assert bank.restore(memory.id).id == memory.id
    assert bank.tombstones.deleted(memory.text) is None
    assert [found.id for found in bank.list()] == [memory.id]
    assert bank.problems() == []


@pytest.mark.parametrize("lane", ["notes", "vault", "records", "layers"])
def test_making_another_memory_say_it_is_on_purpose_too(bank: Bank, lane: str) -> None:
    bank.delete(bank.add(TEXT).id)
    other = bank.update(add(bank, lane, words("other")).id, text=TEXT)
    assert any(remark.startswith("deleted before") for remark in other.remarks)
    assert bank.tombstones.deleted(TEXT) is None


def test_the_command_line_says_so(run: Run, bank: Bank) -> None:
    id = run("add", "Deploys go out on Tuesdays.").out.strip()
    run("rm", id)
    result = run("add", "Deploys go out on Tuesdays.")
    assert f"note: deleted before, on {today()}; kept because you added it on purpose" in result.err


@pytest.mark.parametrize("lane", NAMES)
def test_an_edit_is_on_purpose_too(bank: Bank, lane: str) -> None:
    memory = come_back(bank, lane)
    opened = editing.opened(bank, memory.id)
    editing.save(bank, opened, opened.text)
    assert [found.id for found in bank.list()] == [memory.id]
    assert bank.problems() == []


def native_notes(bank: Bank) -> list[dict[str, Any]]:
    bank.notes.create_memory("plan.md", TEXT)
    bank.notes.delete_memory("plan.md")
    return [bank.notes.create_memory("plan.md", TEXT)]


def test_the_tools_of_the_notes_say_so(bank: Bank) -> None:
    (answer,) = native_notes(bank)
    assert answer["remark"] == f"deleted before, on {today()}; kept because you added it on purpose"
    kept = bank.notes.read_memory("plan.md")["content"].replace(TEXT, "Something else.")
    assert "remark" not in bank.notes.update_memory("plan.md", kept)


# -- each lane's own way to delete


def _merged(bank: Bank) -> None:
    bank.notes.create_memory("plan.md", TEXT)
    bank.notes.merge_memories(["plan.md"], "all.md", "What both say.")


def _vault(bank: Bank) -> None:
    bank.vault.bulk_delete([bank.vault.add_memory(TEXT, "shared", "fact"), "unknown"])


def _layers(bank: Bank) -> None:
    made = bank.layers.create({"layer": "agent", "agent_name": "zeus", "file_type": "insights", "content": TEXT})
    bank.layers.delete(made["id"])


@pytest.mark.parametrize("delete", [_merged, _vault, _layers])
def test_the_lanes_own_verbs_leave_one_too(bank: Bank, delete: Callable[[Bank], None]) -> None:
    delete(bank)
    assert bank.tombstones.deleted(TEXT) == today()


# -- automatic ways in


@pytest.mark.parametrize("lane", NAMES)
def test_capture_does_not_bring_it_back(bank: Bank, tmp_path: Path, lane: str) -> None:
    memory = add(bank, lane)
    bank.delete(memory.id)
    found = capture(bank, transcript(tmp_path / "session.jsonl", memory.text))
    assert (found.captured, found.known) == (0, 1)
    assert bank.list() == []


def test_capture_honours_it_when_the_trash_is_emptied(bank: Bank, tmp_path: Path) -> None:
    path = transcript(tmp_path / "session.jsonl", TEXT)
    (id,) = capture(bank, path).ids
    bank.delete(id)
    shutil.rmtree(bank.root / "records" / ".trash")
    shutil.rmtree(bank.root / "indices")
    assert capture(bank, path).captured == 0


def test_capture_knows_a_deleted_record_that_was_edited(bank: Bank, tmp_path: Path) -> None:
    path = transcript(tmp_path / "session.jsonl", TEXT)
    (id,) = capture(bank, path).ids
    bank.update(id, text="Other words than those that were said.")
    bank.delete(id)
    shutil.rmtree(bank.root / "records" / ".trash")
    shutil.rmtree(bank.root / "indices")
    assert capture(bank, path).captured == 0


def test_a_message_that_grows_is_not_taken_for_deleted(bank: Bank, tmp_path: Path) -> None:
    capture(bank, transcript(tmp_path / "session.jsonl", "One line.\nTwo lines."))
    capture(bank, transcript(tmp_path / "session.jsonl", "One line.\nTwo lines.\nThree lines."))
    assert not (bank.root / FILE).exists()


@pytest.mark.parametrize("lane", [None, "vault", "records"])
def test_import_does_not_bring_it_back(bank: Bank, tmp_path: Path, lane: str | None) -> None:
    bank.delete(bank.add(TEXT).id)
    source = tmp_path / "elsewhere"
    source.mkdir()
    (source / "plan.md").write_text(f"{TEXT}\n")
    (source / "new.md").write_text("Something that nobody has deleted so far.\n")
    found = {one.item: (one.status, one.why) for one in import_from(bank, source, kind="markdown", lane=lane)}
    assert found["plan.md"] == ("same", f"deleted here on {today()}; `memlane add` stores it all the same")
    assert found["new.md"][0] == "new"
    assert len(bank.list()) == 1


def test_a_banks_own_export_does_not_bring_it_back(bank: Bank, tmp_path: Path) -> None:
    memories = [add(bank, lane) for lane in ("notes", "records")]
    (tmp_path / "export.jsonl").write_text("\n".join(lines(bank.memories())) + "\n")
    for memory in memories:
        bank.delete(memory.id)
    for trash in bank.root.rglob(".trash"):
        shutil.rmtree(trash)
    assert [one.status for one in import_from(bank, tmp_path / "export.jsonl")] == ["same", "same"]
    assert bank.list() == []


def test_import_update_replaces_and_does_not_bury(bank: Bank, tmp_path: Path) -> None:
    source = tmp_path / "elsewhere"
    source.mkdir()
    for text in ("First words.\n", "Second words.\n", "First words.\n"):
        (source / "plan.md").write_text(text)
        list(import_from(bank, source, kind="markdown", update=True))
    assert [memory.text for memory in bank.list()] == ["First words.\n"]
    assert not (bank.root / FILE).exists()


# -- files that come back


def come_back(bank: Bank, lane: str) -> Memory:
    """Delete a memory, then put its file back behind the bank's back."""
    memory = add(bank, lane)
    before = memory.path.read_bytes()
    bank.delete(memory.id)
    memory.path.write_bytes(before)
    return memory


@pytest.mark.parametrize("lane", NAMES)
def test_a_file_that_comes_back_is_held_back_and_named(bank: Bank, lane: str) -> None:
    memory = come_back(bank, lane)
    other = bank.add(words("other"), tags=["pinned"])
    assert [found.id for found in bank.list()] == [other.id]
    assert [hit.memory.id for hit in bank.search(TEXT, limit=2)] in ([], [other.id])
    assert words("deleted") not in bank.context(TEXT)
    assert words("deleted") not in bank.snapshot(recent=5)
    assert memory.path.exists()
    assert bank.get(memory.id).text == memory.text
    (problem,) = bank.problems()
    assert (problem.path, problem.why) == (
        memory.path,
        (
            f"{memory.id} was deleted on {today()} and came back unchanged; it is held back: "
            f"`memlane restore {memory.id}` keeps it, `memlane rm {memory.id}` deletes it again"
        ),
    )


@pytest.mark.parametrize("lane", NAMES)
def test_rm_deletes_it_again(bank: Bank, lane: str) -> None:
    memory = come_back(bank, lane)
    bank.delete(memory.id)
    assert (bank.list(), bank.problems()) == ([], [])


@pytest.mark.parametrize("lane", ["vault", "topics"])
def test_restore_keeps_what_came_back(bank: Bank, lane: str) -> None:
    memory = come_back(bank, lane)
    for trash in bank.root.rglob(".trash"):
        shutil.rmtree(trash)
    kept = bank.restore(memory.id)
    assert kept.remarks == (f"deleted before, on {today()}; kept because you added it on purpose",)
    assert [found.id for found in bank.list()] == [memory.id]
    assert bank.problems() == []


@pytest.mark.parametrize("lane", NAMES)
def test_restore_keeps_it_beside_its_copy_in_the_trash(bank: Bank, lane: str) -> None:
    memory = come_back(bank, lane)
    bank.restore(memory.id)
    assert [found.id for found in bank.list()] == [memory.id]
    assert bank.problems() == []


def test_a_changed_text_is_another_memory(bank: Bank) -> None:
    memory = come_back(bank, "notes")
    memory.path.write_text(memory.path.read_text() + "\nAnd one more thing.\n")
    assert [found.id for found in bank.list()] == [memory.id]
    assert bank.problems() == []


def test_a_twin_under_another_name_stays(bank: Bank) -> None:
    one, two = bank.add(TEXT, title="One"), bank.add(TEXT, title="Two")
    bank.delete(one.id)
    assert [found.id for found in bank.list()] == [two.id]
    assert bank.problems() == []


def test_search_looks_further_than_what_is_held_back(bank: Bank) -> None:
    for number in range(4):
        memory = bank.add(f"Deploys go out on Tuesdays, {words(number, 2)}", title=f"Day {number}")
        before = memory.path.read_bytes()
        if number:
            bank.delete(memory.id)
            memory.path.write_bytes(before)
    assert [hit.memory.id for hit in bank.search("deploys on Tuesdays", limit=1)] == ["notes:day-0"]


def test_what_is_held_back_is_in_no_graph_and_no_cluster(bank: Bank) -> None:
    kept = bank.add(f"{TEXT} [[memory:plan]]", title="Other", type="journal", tags=["a"])
    memory = bank.add(TEXT, title="Plan", type="journal", tags=["b"])
    data = memory.path.read_bytes()
    bank.delete(memory.id)
    memory.path.write_bytes(data)
    graph = bank.graph()
    assert [node["id"] for node in graph["nodes"] if not node["is_ghost"]] == [kept.id, "tag:a"]
    assert {edge["source"] for edge in graph["edges"]} == {kept.id}
    assert bank.suggest_merges(0.1) == []


def test_get_says_that_it_is_held_back(run: Run, bank: Bank) -> None:
    memory = come_back(bank, "notes")
    assert "it is held back" in run("get", memory.id).err
    assert run("doctor", "--only", "damage").code == 6


# -- git


def test_git_unites_the_tombstones_of_two_branches(repo: Path) -> None:
    """Both branches made the file, each with a key of its own."""
    ids = {name: f"notes:{name}" for name in ("one", "two")}
    with Bank.open(repo) as bank:
        for name in ids:
            bank.add(words(name), title=name)
    save(repo)
    other = branches(repo, lambda bank: bank.delete(ids["one"]), lambda bank: bank.delete(ids["two"]))
    git(repo, "merge", "-q", "other")
    git(other, "merge", "-q", "main")
    for folder in (repo, other):
        with Bank.open(folder) as bank:
            assert bank.tombstones.deleted(words("one"))
            assert bank.tombstones.deleted(words("two"))
            assert (bank.list(), bank.problems()) == ([], [])
            assert sum("key" in stone for stone in stones(bank)) == 2


def test_a_colleagues_deletion_holds_what_a_pull_brings_back(repo: Path) -> None:
    """In a team that shares what is captured, one deletes a record; the other captures the same message on another
    branch, and the branches meet."""
    with Bank.open(repo) as shared:
        share(shared, ["records"])
    save(repo)

    def captured(bank: Bank) -> None:
        capture(bank, transcript(bank.root.parent.parent / "session.jsonl", TEXT))

    def deleted(bank: Bank) -> None:
        captured(bank)
        bank.delete(bank.list()[0].id)

    branches(repo, deleted, captured)
    git(repo, "merge", "-q", "other")
    with Bank.open(repo) as bank:
        assert bank.list() == []
        assert len(bank.problems()) == 1
        (record,) = (bank.root / "records").glob("*.md")
        assert bank.restore(f"records:{record.stem}").text == TEXT
        assert len(bank.list()) == 1
        assert bank.problems() == []


def test_a_checkout_is_held_and_a_revert_is_not(repo: Path) -> None:
    with Bank.open(repo) as bank:
        id = bank.add(TEXT, title="Plan").id
        start = save(repo, "Add")
        bank.delete(id)
    save(repo, "Delete")
    git(repo, "checkout", "-q", start, "--", ".memories/plan.md")
    with Bank.open(repo) as bank:
        assert bank.list() == []
        assert len(bank.problems()) == 1
    git(repo, "reset", "-q", "--hard")
    git(repo, "revert", "--no-edit", "HEAD")
    with Bank.open(repo) as bank:
        assert [memory.id for memory in bank.list()] == [id]
        assert bank.problems() == []


def test_conflict_markers_lose_no_tombstone(tmp_path: Path) -> None:
    both = []
    for name in ("a", "b"):
        stone = Tombstones(tmp_path / name)
        stone.bury((f"notes:{name}", f"text {name}"))
        both.append((tmp_path / name).read_text())
    for number, sides in enumerate(permutations(both)):
        path = tmp_path / f"merged{number}"
        path.write_text(f"<<<<<<< ours\n{sides[0]}=======\n{sides[1]}>>>>>>> theirs\n")
        stone = Tombstones(path)
        assert all(stone.deleted(f"text {name}") for name in "ab")
        assert [problem.line for problem in stone.problems()] == [1]


def test_a_read_only_bank_of_the_past_has_the_tombstones_of_then(repo: Path) -> None:
    with Bank.open(repo) as bank:
        id = bank.add(TEXT, title="Plan").id
        then = save(repo)
        bank.delete(id)
        save(repo)
        with bank.as_of(then) as past:
            assert [memory.id for memory in past.list()] == [id]


def test_a_lane_by_itself_has_none(tmp_path: Path) -> None:
    from memlane import NoteLane

    lane = NoteLane(tmp_path)
    lane.create_memory("plan.md", TEXT)
    lane.delete_memory("plan.md")
    assert not list(tmp_path.glob(FILE))
    with pytest.raises(NotFound):
        lane.fetch("plan")
    assert os.listdir(tmp_path) == [".trash"]


@pytest.mark.parametrize("name", ["tombstones.jsonl", "vault.jsonl", "anchors.jsonl"])
def test_a_link_out_of_the_bank_is_not_followed(name: str, run: Run, tmp_path: Path) -> None:
    """A repository can bring such a link along; what it points to is neither read nor written."""
    assert run("init").code == 0
    (tmp_path / "code.py").write_text("x = 1\n")
    outside = tmp_path / "profile"
    outside.write_text("mine\n")
    (tmp_path / ".memories" / name).symlink_to(outside)
    run("add", "Deploys go out on Tuesdays, says `code.py`.", "--title", "day")
    run("add", "Our mission is to keep the runtime stable.", "--lane", "vault")
    run("rm", "notes:day")
    run("review", "--only", "drifted", "--show")
    run("vault", "compact")
    assert outside.read_text() == "mine\n"
    assert (
        run("doctor", "--only", "damage").out
        == f"{tmp_path}/.memories/{name}: is a link out of the bank and not followed\n"
    )


def test_a_file_that_cannot_be_read_hides_no_memory(run: Run, tmp_path: Path) -> None:
    run("init")
    run("add", "Deploys go out on Tuesdays.", "--title", "day")
    (tmp_path / ".memories/tombstones.jsonl").mkdir()
    added = run("add", "Ann holds the pager.", "--title", "pager")
    assert (added.code, added.out) == (0, "notes:pager\n")
    assert "whether it was deleted before is not known: tombstones.jsonl cannot be read: is not a file." in added.err
    assert [line.split("\t")[0] for line in run("list").out.splitlines()] == ["notes:pager", "notes:day"]
    assert (
        run("doctor", "--only", "damage").out
        == f"{tmp_path}/.memories/tombstones.jsonl: cannot be read: is not a file\n"
    )


@pytest.mark.parametrize("lane", ["notes", "records"])
def test_what_cannot_be_kept_is_not_restored(tmp_path: Path, lane: str) -> None:
    """On a full disk a restored memory would be held back at once: then it stays where it is, and can be restored."""
    bank = Bank.init(tmp_path)
    id = bank.add("The deploy failed.\nThe token had expired.", lane=lane).id
    bank.delete(id)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / ".memories/tombstones.jsonl").stat().st_size, before[1]))
    try:
        with pytest.raises(StorageError, match="still counts as deleted"):
            bank.restore(id)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [removed.id for removed in bank.removed()] == [id]
    assert (bank.restore(id).id, [memory.id for memory in bank.list()], bank.problems()) == (id, [id], [])


def test_what_is_held_back_takes_no_place_among_links(tmp_path: Path) -> None:
    bank = Bank.init(tmp_path)
    for number in range(3):
        bank.add(f"Plan {number} for [[src/auth.py]].", title=f"Plan {number}")
    path = tmp_path / ".memories/plan-2.md"
    data = path.read_bytes()
    bank.delete("notes:plan-2")
    path.write_bytes(data)  # as git or cp would
    found = bank.linked("src/auth.py", "plan 2", limit=2)
    assert sorted(link.memory.id for link in found) == ["notes:plan-0", "notes:plan-1"]
