"""Calls that wait, side by side."""

from __future__ import annotations

import threading
from collections import deque

import pytest

from memlane.core.waiting import AT_ONCE, side_by_side


def test_every_item_has_its_result() -> None:
    assert sorted(side_by_side(lambda number: number * 2, range(100))) == list(range(0, 200, 2))


def test_nothing_to_do_is_nothing() -> None:
    assert list(side_by_side(str, [])) == []


def test_as_many_as_may_wait_at_the_same_time() -> None:
    all_there = threading.Barrier(AT_ONCE, timeout=120)
    assert list(side_by_side(lambda _: all_there.wait() >= 0, range(AT_ONCE))) == [True] * AT_ONCE


def test_one_that_fails_ends_it_and_what_was_done_is_told_first() -> None:
    def call(number: int) -> int:
        if number == 20:
            raise ValueError("twenty")
        return number

    told: list[int] = []
    results = side_by_side(call, range(500_000))
    with pytest.raises(ValueError, match="twenty"):
        deque(map(told.append, results))
    assert set(range(20)) <= set(told)
    assert len(told) < 499_999
