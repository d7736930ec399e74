"""The bank for programs that await: the same verbs, and the event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from memlane import AsyncBank, Bank, NotFound

# What is no verb: lanes, settings and the inner works, which `AsyncBank.bank` has.
_INNER = {
    "alone", "anchor", "changed_code", "guard", "held", "index", "index_file", "lane", "layers", "memories", "notes",
    "original", "origins", "outdated", "present", "profile", "records", "topics", "under", "unseen", "users_word",
    "vault", "watch", "watch_of", "watching", "whose", "wrote",
}  # fmt: skip


def test_it_has_every_verb_of_the_bank() -> None:
    verbs = {name for name in dir(Bank) if not name.startswith("_")} - _INNER
    assert {name for name in dir(AsyncBank) if not name.startswith("_")} == verbs
    assert all(inspect.iscoroutinefunction(getattr(AsyncBank, name)) for name in verbs)
    for name in verbs - {"init", "open", "as_of"}:
        assert inspect.signature(getattr(AsyncBank, name)) == inspect.signature(getattr(Bank, name)), name


def test_many_at_once_lose_nothing(bank: Bank) -> None:
    async def work() -> list[str]:
        async with AsyncBank(bank) as awaited:
            await asyncio.gather(*(awaited.put(f"key-{n}", f"The text of number {n}.") for n in range(20)))
            return sorted(memory.id for memory in await awaited.list())

    assert asyncio.run(work()) == sorted(f"notes:key-{n}" for n in range(20))


def test_errors_are_raised_where_it_is_awaited(bank: Bank) -> None:
    with pytest.raises(NotFound):
        asyncio.run(AsyncBank(bank).get("notes:nothing"))
