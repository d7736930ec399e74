"""Pages of a list and of a search, and what one conversation says."""

from __future__ import annotations

import pytest

from memlane import Bank
from memlane.core.errors import InvalidInput


@pytest.fixture
def filled(bank: Bank) -> Bank:
    for number in range(12):
        day = f"2025-01-{number % 3 + 1:02}"  # several of one day: the order is still a certain one
        bank.add(f"Heron {number} stands in pond {number}.", title=f"Heron {number}", created_at=day)
    return bank


@pytest.mark.parametrize("size", [1, 5, 12, 20])
def test_the_pages_of_a_list_add_up(filled: Bank, size: int) -> None:
    whole = filled.list()
    pages = [filled.list(limit=size, offset=start) for start in range(0, 12, size)]
    assert [memory for page in pages for memory in page] == whole
    assert filled.list(offset=10) == whole[10:]
    assert filled.list(limit=5, offset=12) == []


@pytest.mark.parametrize("size", [1, 5, 12, 20])
def test_the_pages_of_a_search_add_up(filled: Bank, size: int) -> None:
    whole = [hit.memory.id for hit in filled.search("heron in a pond", 12)]
    pages = [filled.search("heron in a pond", size, offset=start) for start in range(0, 12, size)]
    assert [hit.memory.id for page in pages for hit in page] == whole
    assert len(whole) == 12
    assert filled.search("heron in a pond", offset=12) == []


@pytest.mark.parametrize("offset", [-1, 1.5, "2", True, None])
def test_an_offset_is_a_number(filled: Bank, offset: int) -> None:
    with pytest.raises(InvalidInput, match="offset is not a whole number"):
        filled.list(offset=offset)
    with pytest.raises(InvalidInput, match="offset is not a whole number"):
        filled.search("heron", offset=offset)


def test_by_time_there_are_no_pages(filled: Bank) -> None:
    with pytest.raises(InvalidInput, match="there are no pages"):
        filled.search("heron", order="time", offset=5)


@pytest.mark.parametrize("lane", ["notes", "records"])
def test_a_search_in_one_conversation(bank: Bank, lane: str) -> None:
    for thread in ("one", "two", "thread one", None):
        bank.add(f"Herons, said in {thread}.", title=f"{thread}", thread=thread, lane=lane)
    assert [hit.memory.thread for hit in bank.search("herons", 10, thread="one")] == ["one"]
    assert [memory.thread for memory in bank.list(thread="one")] == ["one"]
    assert bank.search("herons", 10, thread="three") == []
