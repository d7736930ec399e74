"""Notes that end to count: in no answer from then on, found when they are asked for, removed by a review."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from commands import Run
from memlane import Bank
from memlane.core.dates import utc_now
from memlane.core.errors import Conflict, InvalidInput, NotFound
from memlane.recall.search import search

GONE = timedelta(seconds=-1)


@pytest.fixture
def filled(bank: Bank) -> Bank:
    bank.add("The heron pond is closed for a week.", title="closed", tags=["pinned", "pond"], expires=GONE)
    bank.add("The heron pond has three gates, see [[notes:closed]].", title="gates", tags=["pond"], expires="30d")
    return bank


def test_what_has_expired_is_in_no_answer(filled: Bank) -> None:
    assert [hit.memory.title for hit in filled.search("heron pond", 10)] == ["gates"]
    assert [memory.title for memory in filled.list()] == ["gates"]
    assert [memory.title for memory in filled.list(limit=5, tags=["pond"])] == ["gates"]
    assert [memory.title for memory in filled.context("heron pond").memories] == ["gates"]
    assert "closed for a week" not in filled.for_prompt("when is the heron pond open?")
    assert "closed for a week" not in filled.snapshot()
    assert "notes:closed" not in {node["id"] for node in filled.graph()["nodes"]}
    with pytest.raises(NotFound, match="expired on") as error:
        filled.get("notes:closed")
    assert error.value.hint == "`memlane restore notes:closed` keeps it."


def test_what_has_expired_is_shown_when_asked_for(filled: Bank) -> None:
    assert sorted(hit.memory.title for hit in filled.search("heron pond", 10, expired=True)) == ["closed", "gates"]
    assert sorted(memory.title for memory in filled.list(expired=True)) == ["closed", "gates"]
    assert sorted(memory.title for memory in filled.list(expired=True, limit=9)) == ["closed", "gates"]
    assert filled.get("notes:closed", expired=True).text == "The heron pond is closed for a week."


def test_one_that_expires_while_the_bank_is_open_goes(bank: Bank) -> None:
    made = bank.add("The heron pond is closed.", title="closed", expires="1h")
    assert len(bank.search("heron pond")) == 1
    made.path.write_text(made.path.read_text().replace(str(made.fields["expires"]), "2020-01-01"))  # a bare day
    assert bank.search("heron pond") == []
    bank.update(made.id, expires=utc_now() + timedelta(days=1))
    assert [hit.memory.id for hit in bank.search("heron pond")] == [made.id]


def test_one_that_expires_between_two_questions_with_the_same_filters_is_in_the_first_answer_alone(bank: Bank) -> None:
    bank.add("The heron pond is closed.", title="closed", expires="1h")
    bank.add("The heron pond has three gates.", title="gates")
    bank.search("heron pond")  # indexed

    def found(hours: int) -> list[str]:
        now = utc_now() + timedelta(hours=hours)
        hits = search(bank.index, "heron pond", filters={"lane": "notes"}, now=now)
        return sorted(hit.memory.title for hit in hits)

    assert [found(0), found(0), found(2), found(0)] == [
        ["closed", "gates"],
        ["closed", "gates"],
        ["gates"],
        ["closed", "gates"],
    ]


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (datetime(2030, 1, 2, 3, 4, tzinfo=UTC), "2030-01-02T03:04:00Z"),
        (date(2030, 1, 2), "2030-01-02T00:00:00Z"),
        ("2030-01-02", "2030-01-02T00:00:00Z"),
    ],
)
def test_a_time(bank: Bank, given: datetime | date | str, stored: str) -> None:
    assert bank.add("A heron.", expires=given).fields == {"expires": stored}


@pytest.mark.parametrize(
    ("given", "length"),
    [
        ("30d", timedelta(days=30)),
        ("12 h", timedelta(hours=12)),
        ("1.5w", timedelta(days=10.5)),
        ("90m", timedelta(minutes=90)),
        (timedelta(minutes=2), timedelta(minutes=2)),
    ],
)
def test_a_span_counts_from_now(bank: Bank, given: timedelta | str, length: timedelta) -> None:
    before = utc_now()
    end = bank.put("heron", "A heron.", expires=given).expires
    assert end is not None
    assert before + length <= end <= utc_now() + length


@pytest.mark.parametrize("given", ["soon", "", 30, True, "30y", [1]])
def test_what_is_no_time_is_refused(bank: Bank, given: str) -> None:
    bank.put("heron", "A heron.")
    for change in (lambda: bank.add("B.", expires=given), lambda: bank.update("notes:heron", expires=given)):
        with pytest.raises(InvalidInput, match="expires is not a time"):
            change()


def test_none_keeps_it_for_good(filled: Bank) -> None:
    assert filled.update("notes:closed", expires=None).fields == {}
    assert filled.get("notes:closed").title == "closed"


def test_a_text_that_has_expired_can_be_said_again(filled: Bank) -> None:
    again = filled.add("The heron pond is closed for a week.")
    assert (again.duplicate, again.expires, again.similar) == (False, None, ())
    twice = filled.add("The heron pond is closed for a week.", expires="3d")
    assert (twice.duplicate, twice.id) == (True, again.id)
    assert "the time when it expires" in twice.remarks[1]


def test_a_key_whose_note_has_expired_is_free(bank: Bank) -> None:
    old = bank.put("heron", "A heron.", expires=GONE)
    with pytest.raises(Conflict):
        bank.put("heron", "Two herons.", expected=old.version)
    new = bank.put("heron", "Two herons.", expected="")
    assert (new.text, new.expires, new.created_at != old.created_at) == ("Two herons.", None, True)


def test_a_review_moves_it_to_the_trash_and_undo_brings_it_back(filled: Bank) -> None:
    plan = filled.review()
    assert [(step.action, step.id) for step in plan.steps if step.action == "delete"] == [("delete", "notes:closed")]
    done = filled.apply(plan)
    assert [step.id for step in done.steps] == ["notes:closed"]
    assert [memory.title for memory in filled.list(expired=True)] == ["gates"]
    assert [removed.id for removed in filled.removed()] == ["notes:closed"]
    filled.undo()
    assert len(filled.list(expired=True)) == 2


def test_what_is_restored_counts_again(filled: Bank) -> None:
    filled.apply(filled.review(only=["expired"]))
    back = filled.restore("notes:closed")
    assert (back.expires, back.remarks) == (None, ("it had expired, and does not any more",))
    assert filled.get("notes:closed").text == back.text
    filled.update("notes:closed", expires="2020-01-01")
    assert filled.restore("notes:closed").expires is None


def test_on_the_command_line(bank: Bank, run: Run) -> None:
    run("add", "The pond is closed.", "--title", "pond", "--expires", "2020-01-01")
    assert run("list").out == ""
    assert "notes:pond" in run("list", "--expired").out
    assert "notes:pond" in run("search", "pond", "--expired").out
    assert run("get", "notes:pond").code == 3
    assert run("get", "notes:pond", "--expired").out == "The pond is closed.\n"
    assert run("export").out == ""
    run("update", "notes:pond", "--expires", "30d")
    assert "expires 20" in run("get", "notes:pond").err


def test_a_file_that_has_no_time_there_is_named(bank: Bank) -> None:
    made = bank.add("A heron.", extra={"expires": "soon"})
    assert [hit.memory.id for hit in bank.search("heron")] == [made.id]
    rules = list(bank.notes.answers.broken_rules(made))
    assert rules == ["has an expires that is not a date: write it like 2025-01-15T10:30:00Z"]


def test_what_could_be_merged_leaves_out_what_has_expired_or_was_just_deleted(bank: Bank) -> None:
    for title in ("one", "two", "three"):
        bank.put(title, f"Standup: the build is slow, Ann looks into it, says {title}.")

    def groups() -> list[list[str]]:
        return [sorted(memory.id for memory in group.memories) for group in bank.suggest_merges(threshold=0.5)]

    assert groups() == [["notes:one", "notes:three", "notes:two"]]
    bank.delete("notes:three")  # the last number of the index
    assert groups() == [["notes:one", "notes:two"]]
    bank.update("notes:one", expires=GONE)
    assert groups() == []
