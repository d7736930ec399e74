"""How far long work is, for work that begins by itself, such as indexing before a search: a surface may listen."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

OnProgress = Callable[[int, int | None], None]  # what is done so far, and of how many

listener: ContextVar[Callable[[str, int, int | None], None] | None] = ContextVar("listener", default=None)


def tell(what: str, done: int, total: int | None) -> None:
    """Say how far it is to whoever listens; `what` is the work in a word or two. At the end, `done` is `total`."""
    if told := listener.get():
        told(what, done, total)
