"""What a merge has left in two versions, and choosing one of them."""

from __future__ import annotations

import pytest

from memlane import Bank, InvalidInput
from memlane.care import undecided
from memlane.core.alternatives import Versions, decided, found
from memlane.core.three_way import merged
from memlane.lanes.merging import document

BASE, OURS, THEIRS = "One.\n\nTuesdays.\n\nTwo.\n", "One.\n\nMondays.\n\nTwo.\n", "One.\n\nFridays.\n\nTwo.\n"


@pytest.mark.parametrize(("number", "left"), [(1, THEIRS), (2, OURS), (0, "One.\n\nFridays.\n\nMondays.\n\nTwo.\n")])
def test_a_choice_leaves_the_text_as_that_branch_had_it(number: int, left: str) -> None:
    both = merged(BASE, OURS, THEIRS)
    assert found(both) == [Versions((("Fridays.",), ("Mondays.",)))]
    assert decided(both, number) == left
    assert decided(both.replace("\n", "\r\n"), number) == left.replace("\n", "\r\n")


def test_a_text_without_versions_stays_as_it_is() -> None:
    assert (found(BASE), decided(BASE, 1)) == ([], BASE)


def test_the_choice_is_written_and_the_review_is_done_with_it(bank: Bank) -> None:
    note = bank.add("Tuesdays.", title="Days").path
    text = note.read_text()
    note.write_text(merged(text, text.replace("Tues", "Mon"), text.replace("Tues", "Fri")))
    assert [step.id for step in bank.review(only=["versions"]).steps] == ["notes:days"]
    undecided.keep_text(bank, "notes:days", 2)
    assert note.read_text() == text.replace("Tues", "Mon")
    assert bank.review(only=["versions"]).steps == ()
    with pytest.raises(InvalidInput):
        undecided.keep_text(bank, "notes:days", 3)


def test_of_a_field_with_two_values_either_stays(bank: Bank) -> None:
    note = bank.add("Tuesdays.", title="Days").path
    text = note.read_text()
    sides = [text.replace('"Days"', f'"{value}"') for value in ("Weekdays", "Mondays")]
    note.write_text(document(text, *sides))
    now, *others = undecided.values(bank.get("notes:days", expired=True))["title"]
    assert {now, *others} == {"Weekdays", "Mondays"}
    memory = undecided.keep_value(bank, "notes:days", "title", 1)
    assert (memory.title, "conflicts" in memory.fields) == (others[0], False)


def test_a_value_that_clashed_again_is_offered_once(bank: Bank) -> None:
    note = bank.add("Tuesdays.", title="Days").path
    text = note.read_text()
    sides = [text.replace('"Days"', f'"{value}"') for value in ("Weekdays", "Mondays")]
    note.write_text(document(document(text, *sides), *sides))  # settled in two ways
    assert undecided.values(bank.get("notes:days", expired=True)) == {"title": ["Weekdays", "Mondays"]}
    memory = undecided.keep_value(bank, "notes:days", "title", 1)
    assert (memory.title, "conflicts" in memory.fields) == ("Mondays", False)
