"""How far a command is: one line on a terminal's stderr, drawn from the first second on, and gone at the end.

    with progress("reading", len(files)) as report:
        for done, file in enumerate(files, 1):
            ...
            report(done)

A function below that takes an `on_progress: OnProgress | None` can be handed `report` as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Protocol, TypeVar

from memlane.core.progress import listener
from memlane.surfaces.cli.output import one_line, overwrite

FIRST, NEXT = 1.0, 0.1  # seconds until the line is drawn, and until it is drawn again
T = TypeVar("T")


class Report(Protocol):
    """Takes what is done so far, not what was added; and how many there are, where that was not known before."""

    def __call__(self, done: int, total: int | None = None, /) -> None: ...


class _Line:
    """The line of one piece of work; of several at once, each draws over the others."""

    def __init__(self, label: str, total: int | None, said: Callable[[int], str] = "{:,}".format) -> None:
        self._label, self._total, self._said = one_line(label), total, said
        self._began = monotonic()
        self._next = self._began + FIRST
        self._drawn = False

    def report(self, done: int, total: int | None = None, /) -> None:
        now = monotonic()
        if now < self._next:
            return
        self._next, self._drawn = now + NEXT, True
        total = self._total if total is None else total
        if not total:
            overwrite(f"{self._label}: {self._said(done)}")
            return
        left = (now - self._began) * (total - done) / done if done else 0.0
        wait = f", {_duration(left)} left" if left >= 1 else ""
        share = f"{min(done / total, 1):.0%}"
        overwrite(f"{self._label}: {self._said(done)} of {self._said(total)} ({share}{wait})")

    def clear(self) -> None:
        if self._drawn:
            overwrite("")


@contextmanager
def progress(label: str, total: int | None = None, said: Callable[[int], str] = "{:,}".format) -> Iterator[Report]:
    """What to call with the number that is done. Without a terminal, it does nothing."""
    if not sys.stderr.isatty():
        yield _unseen
        return
    line = _Line(label, total, said)
    try:
        yield line.report
    finally:
        line.clear()


def each(items: Sequence[T], label: str) -> Iterator[T]:
    """The items one by one, and how far it is."""
    with progress(label, len(items)) as report:
        for done, item in enumerate(items):
            report(done)
            yield item


@contextmanager
def added(label: str, total: int | None, said: Callable[[int], str] = "{:,}".format) -> Iterator[Callable[[int], None]]:
    """As `progress`, for work that tells what was added each time."""
    done = 0
    with progress(label, total, said) as report:

        def add(more: int) -> None:
            nonlocal done
            done += more
            report(done)

        yield add


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


@contextmanager
def listening() -> Iterator[None]:
    """Show how far work is that begins by itself: indexing before a search."""
    if not sys.stderr.isatty():
        yield
        return
    lines: dict[str, _Line] = {}

    def told(what: str, done: int, total: int | None) -> None:
        line = lines.setdefault(what, _Line(what, total))
        line.report(done, total)
        if done == total:
            lines.pop(what).clear()

    token = listener.set(told)
    try:
        yield
    finally:
        listener.reset(token)
        for line in lines.values():
            line.clear()


def _unseen(_: int, __: int | None = None, /) -> None:
    pass


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
