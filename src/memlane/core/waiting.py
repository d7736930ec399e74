"""Several calls that wait for a network or a disk, side by side: together they take hardly longer than one."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

AT_ONCE = 16  # calls that are under way
T = TypeVar("T")
R = TypeVar("R")


def side_by_side(call: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """What a call makes of each item, in any order. When one fails, no other is begun, and the failure is raised after
    all results.
    """
    left, results, failed = deque(items), list[R](), list[BaseException]()

    def work() -> None:
        while not failed:
            try:
                item = left.popleft()
            except IndexError:
                return
            try:
                results.append(call(item))
            except BaseException as error:
                failed.append(error)

    others = [threading.Thread(target=work, daemon=True) for _ in range(min(AT_ONCE, len(left)) - 1)]
    try:
        for one in others:
            one.start()
        work()
    finally:
        left.clear()  # nothing more is begun, whatever came up
        for one in others:
            one.join()
    yield from results
    if failed:
        raise failed[0]
