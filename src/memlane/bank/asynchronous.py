"""The bank for programs that await: the same verbs, each in a thread of its own, so that the event loop goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from memlane.bank import Bank

P = ParamSpec("P")
T = TypeVar("T")
Awaited = Callable[Concatenate["AsyncBank", P], Coroutine[Any, Any, T]]


def _awaited(verb: Callable[Concatenate[Bank, P], T]) -> Awaited[P, T]:
    """A verb of the bank's that is awaited. Cancelling the wait does not stop what was begun: a write is whole."""

    @wraps(verb)
    async def run(self: AsyncBank, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(verb, self.bank, *args, **kwargs)

    return run


class AsyncBank:
    """A bank whose verbs are awaited; `bank` is the one behind it. What each does and raises is said there."""

    def __init__(self, bank: Bank) -> None:
        self.bank = bank

    @classmethod
    async def init(cls, folder: str | Path = ".", *, user: bool = False, git: bool = False) -> Self:
        return cls(await asyncio.to_thread(Bank.init, folder, user=user, git=git))

    @classmethod
    async def open(cls, folder: str | Path | None = None, **settings: Any) -> Self:
        return cls(await asyncio.to_thread(Bank.open, folder, **settings))

    async def as_of(self, when: str) -> Self:
        return type(self)(await asyncio.to_thread(self.bank.as_of, when))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    close = _awaited(Bank.close)

    add = _awaited(Bank.add)
    add_many = _awaited(Bank.add_many)
    put = _awaited(Bank.put)
    move = _awaited(Bank.move)
    check = _awaited(Bank.check)
    get = _awaited(Bank.get)
    list = _awaited(Bank.list)
    search = _awaited(Bank.search)
    context = _awaited(Bank.context)
    for_prompt = _awaited(Bank.for_prompt)
    snapshot = _awaited(Bank.snapshot)
    embed = _awaited(Bank.embed)
    linked = _awaited(Bank.linked)
    graph = _awaited(Bank.graph)

    update = _awaited(Bank.update)
    append = _awaited(Bank.append)
    edit = _awaited(Bank.edit)
    delete = _awaited(Bank.delete)
    removed = _awaited(Bank.removed)
    restore = _awaited(Bank.restore)
    forget = _awaited(Bank.forget)

    undo = _awaited(Bank.undo)
    redo = _awaited(Bank.redo)
    changes = _awaited(Bank.changes)
    history = _awaited(Bank.history)
    log = _awaited(Bank.log)
    judge = _awaited(Bank.judge)
    lost = _awaited(Bank.lost)
    recover = _awaited(Bank.recover)
    sync = _awaited(Bank.sync)

    review = _awaited(Bank.review)
    apply = _awaited(Bank.apply)
    prune = _awaited(Bank.prune)
    suggest_merges = _awaited(Bank.suggest_merges)
    fresh = _awaited(Bank.fresh)
    accept = _awaited(Bank.accept)
    stats = _awaited(Bank.stats)
    problems = _awaited(Bank.problems)
