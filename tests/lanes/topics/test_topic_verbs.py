"""Topics by the bank's verbs: get, put, revise, extend, drop, recover, and the ids they use."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import Clock, tree
from memlane import AlreadyExists, InvalidInput, NotFound, Problem, TopicLane
from memlane.core.errors import StorageError
from memlane.core.model import Draft, Memory
from memlane.lanes import scan
from samples import tries
from topic_samples import CONFLICT, HAND_WRITTEN, fill, main_file, write
from topic_samples import lane as lane


def texts(lane: TopicLane) -> dict[str, str]:
    """What each id means."""
    return {memory.native_id: memory.text for memory in scan(lane) if isinstance(memory, Memory)}


def test_an_entry_as_a_memory(lane: TopicLane) -> None:
    draft = Draft(
        "Clock drift",
        title="Refresh fails",
        tags=("auth", "clock"),
        thread="s1",
        type="fix",
        fields={"topic": "auth", "subtopic": "oauth2", "solution": "Refresh early", "results": "None since"},
    )
    memory = lane.put(draft)
    assert memory.to_dict() | {"path": "", "suspicious": []} == {
        "id": "topics:auth/oauth2/2025-01-10-refresh-fails",
        "lane": "topics",
        "title": "Refresh fails",
        "text": "**Context:** ad-hoc\n**Problem:** Clock drift\n**Solution:** Refresh early\n**Results:** None since",
        "tags": ["auth", "oauth2", "clock"],
        "type": "fix",
        "status": None,
        "scope": "auth/oauth2",
        "project": None,
        "thread": "s1",
        "created_at": "2025-01-10T00:00:00Z",
        "updated_at": None,
        "path": "",
        "suspicious": [],
        "version": memory.version,
        "fields": {
            "topic": "auth",
            "subtopic": "oauth2",
            "date": "2025-01-10",
            "context": "ad-hoc",
            "problem": "Clock drift",
            "solution": "Refresh early",
            "labels": {"Results": "None since"},
        },
    }
    assert lane.fetch(memory.native_id) == memory


def test_a_memorys_text_can_be_put_again(lane: TopicLane) -> None:
    fields = {"topic": "a/b", "code": "x\n---\n", "solution": "**Note:** one\n---\n## 2020-01-01: two", "results": "r"}
    first = lane.put(Draft("problem", title="T", fields=fields))
    again = lane.put(Draft(first.text, title="T", fields={**first.fields, "subtopic": "c"}))
    assert again.text == lane.put(Draft(first.text, title="T", fields={"topic": "a/d"})).text == first.text
    assert {**again.fields, "subtopic": "b"} == first.fields


def test_ids_of_namesakes_never_change(lane: TopicLane) -> None:
    """A new entry, a prune and a deletion leave the ids of all others alone."""
    seen: dict[str, str] = {}
    for number in range(14):
        memory = lane.put(Draft(f"text {number}", title="Same title", fields={"topic": "a/b"}))
        seen[memory.id] = memory.text
        if number in (3, 6):
            lane.drop(list(seen)[number - 2].partition(":")[2])
        now = {memory.id: memory.text for memory in scan(lane) if isinstance(memory, Memory)}
        assert now.items() <= seen.items()
    assert list(seen) == [f"topics:a/b/2025-01-10-same-title{f'-{n}' if n > 1 else ''}" for n in range(1, 15)]


def test_a_title_that_ends_in_a_number_keeps_its_own_id(lane: TopicLane) -> None:
    for title in ("Same", "Same", "Same 2", "Same"):
        lane.store("a/b", title=title, problem="x")
    ids = [memory.native_id for memory in scan(lane) if isinstance(memory, Memory)]
    assert ids[::-1] == [f"a/b/2025-01-10-same{tail}" for tail in ("", "-2", "-2-2", "-3")]


def test_files_too_deep_are_a_problem(lane: TopicLane) -> None:
    write(lane, "a/b/c", "## 2024-01-01: A\n---\n")
    write(lane, "README", "not a topic")
    assert [item.why for item in scan(lane) if isinstance(item, Problem)] == [
        "lies too deep and is not read; topic files are <topic>/<sub-topic>.md"
    ]


def test_a_file_in_no_topic_is_a_problem(lane: TopicLane) -> None:
    fill(lane, 1)
    loose = write(lane, "loose", "## 2024-01-01: A\n---\n")
    assert [item for item in scan(lane) if isinstance(item, Problem)] == [
        Problem(loose, "lies in no topic and is not read; topic files are <topic>/<sub-topic>.md")
    ]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_unresolved_merge_is_a_problem_and_can_be_read(lane: TopicLane, newline: str) -> None:
    path = write(lane, "a/b", CONFLICT.replace("\n", newline))
    problem, *memories = scan(lane)
    assert problem == Problem(path, "has merge-conflict markers; resolve the conflict in an editor", 3)
    assert [memory.title for memory in memories if isinstance(memory, Memory)] == ["Ours", "Theirs", "Old"]


def test_nothing_is_written_into_an_unresolved_merge(lane: TopicLane) -> None:
    lane.store("a/b", title="Deleted", problem="x")
    lane.drop("a/b/2025-01-10-deleted")
    write(lane, "a/b", CONFLICT)
    before = tree(lane.root)
    for attempt in (
        lambda: lane.store("a/b", "text"),
        lambda: lane.extend("a/b/2025-01-02-ours", "more"),
        lambda: lane.drop("a/b/2025-01-02-ours"),
        lambda: lane.recover("a/b/2025-01-10-deleted"),
    ):
        with pytest.raises(StorageError) as caught:
            attempt()
        assert (str(caught.value), "Resolve" in caught.value.hint) == (
            "b.md has merge-conflict markers (line 3).",
            True,
        )
    assert tree(lane.root) == before


def test_an_entry_may_speak_of_conflicts(lane: TopicLane) -> None:
    text = "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> branch"
    for _ in range(2):
        entry = lane.store("a/b", title="T", problem=text, solution=f"Look for:\n{text}", code=text).entry
    assert (entry.problem, entry.solution, entry.code) == (text, f"Look for:\n{text}", text)
    write(lane, "a/c", "## 2025-01-01: A\nHeading\n=======\n---\n")
    assert not [item for item in scan(lane) if isinstance(item, Problem)]


def test_revise_changes_one_entry_and_no_other_byte(lane: TopicLane) -> None:
    path = write(lane, "auth/oauth2", HAND_WRITTEN)
    native = "auth/oauth2/2024-12-01-colon-outside"
    lane.revise(native, {"solution": "Forward all of it"})
    start = HAND_WRITTEN.index("## 2024-12-01")
    end = HAND_WRITTEN.index("\n## 2024-11-30")
    assert path.read_text() == (
        HAND_WRITTEN[:start]
        + "## 2024-12-01: Colon outside\n**Context:** PRB-007\n**Problem:** Redirects loop\n"
        + "**Key Insights:** The proxy drops a header.\n**Solution:** Forward all of it\n---\n"
        + HAND_WRITTEN[end:]
    )


def test_revise_of_text_keeps_context_tags_and_thread(lane: TopicLane) -> None:
    draft = Draft(
        "old", tags=("clock",), thread="s1", fields={"topic": "a/b", "context": "PRB-1", "solution": "old too"}
    )
    memory = lane.revise(lane.put(draft).native_id, {"text": "new"})
    assert (memory.text, memory.tags, memory.thread) == (
        "**Context:** PRB-1\n**Problem:** new",
        ("a", "b", "clock"),
        "s1",
    )


def test_revise_sets_and_removes_fields(lane: TopicLane) -> None:
    native = lane.put(Draft("p", title="T", fields={"topic": "a/b", "code": "c"})).native_id
    memory = lane.revise(native, {"solution": "s", "code": None, "tags": ("x",), "title": "New", "date": "2024-01-01"})
    assert (memory.id, memory.text) == (
        "topics:a/b/2024-01-01-new",
        "**Context:** ad-hoc\n**Problem:** p\n**Solution:** s",
    )
    assert memory.tags == ("a", "b", "x")


def test_revise_without_a_change_writes_nothing(lane: TopicLane) -> None:
    path = write(lane, "auth/oauth2", HAND_WRITTEN)
    before = path.stat().st_ino
    lane.revise("auth/oauth2/2024-12-01-colon-outside", {"solution": "Forward it"})
    assert path.stat().st_ino == before


def test_a_topic_is_not_a_field_to_revise(lane: TopicLane) -> None:
    native = lane.put(Draft("p", fields={"topic": "a/b"})).native_id
    with pytest.raises(InvalidInput):
        lane.revise(native, {"topic": "c/d"})


def test_text_after_code_becomes_a_note(lane: TopicLane) -> None:
    native = lane.put(Draft("p", thread="s1", fields={"topic": "a/b", "code": "c"})).native_id
    assert lane.extend(native, "more").text.endswith("**Code:**\n```\nc\n```\n**Note:** more")


@pytest.mark.parametrize("number", range(4))
def test_a_deleted_entry_comes_back_with_its_id(lane: TopicLane, number: int) -> None:
    """At the place of its date; the ids of all others stay what they were."""
    fill(lane, 2, date="2024-01-01")
    lane.store("auth/oauth2", title="Entry 0", problem="twin", date="2024-01-01")
    fill(lane, 1)
    before = list(scan(lane))
    index = (lane.root / "index.md").read_text()
    removed = lane.drop(before[number].native_id)
    assert removed.path.parent == lane.root / ".trash/auth/oauth2"
    assert [memory for memory in before if memory.id != removed.id] == list(scan(lane))
    assert lane.recover(before[number].native_id) == before[number]
    assert sorted(scan(lane), key=lambda memory: memory.id) == sorted(before, key=lambda memory: memory.id)
    assert [memory.fields["date"] for memory in scan(lane)] == ["2025-01-10", *["2024-01-01"] * 3]
    assert (lane.root / "index.md").read_text() == index
    assert list(lane.removed()) == []


def test_a_deleted_entry_comes_back_below_its_namesake(lane: TopicLane) -> None:
    """The file is not in the order of the dates: the place by date would swap the two ids."""
    lane.store("a/b", title="A", problem="ONE", date="2025-01-01")
    lane.store("a/b", title="A", problem="TWO", date="2025-01-01")
    lane.store("a/b", title="B", problem="x", date="2024-01-01")
    before = texts(lane)
    lane.drop("a/b/2025-01-01-a")
    assert lane.recover("a/b/2025-01-01-a").native_id == "a/b/2025-01-01-a"
    assert texts(lane) == before


def test_one_of_two_equal_entries_is_deleted_and_comes_back(lane: TopicLane) -> None:
    for _ in range(3):
        lane.store("a/b", title="A", problem="Same")
    before = texts(lane)
    for native in before:
        lane.drop(native)
        assert texts(lane) == {name: text for name, text in before.items() if name != native}
        lane.recover(native)
        assert texts(lane) == before


def test_a_kill_within_a_deletion_leaves_the_entry_and_its_id(lane: TopicLane) -> None:
    """The trash is written first."""
    fill(lane, 2)
    old = main_file(lane)
    before = texts(lane)
    lane.drop("auth/oauth2/2025-01-10-entry-0")
    write(lane, "auth/oauth2", old)
    assert texts(lane) == before


STORED = st.tuples(
    st.sampled_from(["2025-01-01", "2024-01-01"]), st.sampled_from(["A", "A 2", "B"]), st.sampled_from("xyz")
)


@settings(max_examples=tries(25, 250))
@given(stored=st.lists(STORED, min_size=1, max_size=9), number=st.integers(0, 8), again=st.integers(0, 8))
def test_a_deletion_and_its_recovery_leave_every_id(
    stored: list[tuple[str, str, str]],
    number: int,
    again: int,
    tmp_path_factory: pytest.TempPathFactory,
    clock: Clock,
) -> None:
    """Ids mean the same text before, between and after, also with a second entry deleted meanwhile."""
    lane = TopicLane(tmp_path_factory.mktemp("bank"), clock=clock)
    for when, title, problem in stored:
        lane.store("a/b", title=title, problem=problem, date=when)
    before = texts(lane)
    natives = list(before)
    gone = list(dict.fromkeys((natives[number % len(natives)], natives[again % len(natives)])))
    for native in gone:
        lane.drop(native)
    assert texts(lane) == {name: text for name, text in before.items() if name not in gone}
    for native in gone:
        assert lane.recover(native).native_id == native
    assert texts(lane) == before


def test_a_deleted_entry_is_put_back_to_the_byte(lane: TopicLane) -> None:
    for year in (2022, 2023, 2024):
        lane.store("a/b", title="T", problem="x", date=f"{year}-01-01")
    before = main_file(lane, "a/b")
    for year in (2022, 2023, 2024):
        lane.drop(f"a/b/{year}-01-01-t")
        lane.recover(f"a/b/{year}-01-01-t")
        assert main_file(lane, "a/b") == before


def test_the_last_entry_can_be_deleted_and_recovered(lane: TopicLane) -> None:
    memory = lane.put(Draft("only", title="T", fields={"topic": "a/b"}))
    lane.drop(memory.native_id)
    assert main_file(lane, "a/b") == ""
    assert "`b.md` -  <!-- a/b, entries: 0, archived: 0, newest: - -->" in (lane.root / "index.md").read_text()
    assert lane.recover(memory.native_id) == memory


def test_recovering_what_is_there_changes_nothing(lane: TopicLane) -> None:
    memory = lane.put(Draft("only", title="T", fields={"topic": "a/b"}))
    text = main_file(lane, "a/b")
    lane.drop(memory.native_id)
    (lane.root / "a/b.md").write_text(text)
    before = tree(lane.root)
    with pytest.raises(AlreadyExists):
        lane.recover(memory.native_id)
    assert tree(lane.root) == before


@pytest.mark.parametrize("native", ["a/b", "a/b/c/d", "a/b/2025-01-10-nothing", "x/y/2025-01-10-t"])
def test_unknown_ids_are_not_found(lane: TopicLane, native: str) -> None:
    lane.store("a/b", title="T", problem="x")
    for verb in (lane.fetch, lane.drop, lane.recover, lambda name: lane.extend(name, "more")):
        with pytest.raises(NotFound):
            verb(native)


def test_an_archived_entry_keeps_its_id_and_is_not_changed(lane: TopicLane) -> None:
    fill(lane, 11)
    for _ in range(12):
        lane.store("auth/oauth2", title="Same", problem="x")
    for tail in ("entry-0", "same", "same-2"):
        native = f"auth/oauth2/2025-01-10-{tail}"
        memory = lane.fetch(native)
        assert (memory.native_id, memory.status, memory.path) == (
            native,
            "archived",
            lane.root / "archive/auth/2025.md",
        )
        for change in (lambda name: lane.extend(name, "more"), lambda name: lane.revise(name, {"text": "other"})):
            with pytest.raises(InvalidInput, match="archived entries are not changed") as caught:
                change(native)
            assert f"`memlane restore topics:{native}`" in caught.value.hint
    for native in ("auth/oauth2/2025-01-10-same-13", "auth/saml/2025-01-10-entry-0"):
        with pytest.raises(NotFound):
            lane.fetch(native)
