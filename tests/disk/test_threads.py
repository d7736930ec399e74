"""One bank in many hands of one process: threads, and an asyncio application."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from memlane import Bank

HANDS = 8
TURNS = 3


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank.init(tmp_path)


def test_threads_that_begin_together_open_everything_once(bank: Bank) -> None:
    together = Barrier(HANDS)

    def begin(_: int) -> tuple[int, int, int]:
        together.wait()
        return id(bank.index), id(bank.notes), id(bank.vault)

    with ThreadPoolExecutor(HANDS) as pool:
        assert len(set(pool.map(begin, range(HANDS)))) == 1


def test_threads_share_a_bank_and_lose_nothing(bank: Bank) -> None:
    together = Barrier(HANDS)

    def work(hand: int) -> list[str]:
        together.wait()
        kept = []
        for turn in range(TURNS):
            note = bank.add(f"Zebra {turn} of hand {hand}, see [[src/a.py]].", title=f"Hand {hand} turn {turn}")
            bank.append("notes:shared", f"hand {hand} turn {turn}")
            bank.add(f"Hand {hand} did it in turn {turn}.", lane="topics", topic="work/log", title=f"T{hand}{turn}")
            assert bank.search(f'"Zebra {turn} of hand {hand}"')[0].memory.id == note.id
            bank.update(note.id, f"Giraffe {turn} of hand {hand}.")
            if turn % 2:
                bank.delete(note.id)
            else:
                kept.append(note.id)
            bank.list(limit=3)
            bank.context("zebra")
            bank.linked("src/a.py")
        return kept

    bank.add("All hands write here.", title="Shared")
    with ThreadPoolExecutor(HANDS) as pool:
        kept = {id for ids in pool.map(work, range(HANDS)) for id in ids}
    assert {memory.id for memory in bank.list(lane="notes")} == kept | {"notes:shared"}
    assert {hit.memory.id for hit in bank.search("giraffe", len(kept))} == kept
    lines = set(bank.get("notes:shared").text.splitlines())
    assert {f"hand {hand} turn {turn}" for hand in range(HANDS) for turn in range(TURNS)} <= lines
    assert bank.problems() == []


def test_an_asyncio_application_uses_a_bank_from_worker_threads(bank: Bank) -> None:
    async def remember(number: int) -> str:
        memory = await asyncio.to_thread(bank.add, f"Fact number {number} about herons.", title=f"Fact {number}")
        found = await asyncio.to_thread(bank.search, f'"number {number} about"')
        assert [hit.memory.id for hit in found] == [memory.id]
        return memory.id

    async def application() -> list[str]:
        return await asyncio.gather(*(remember(number) for number in range(20)))

    stored = asyncio.run(application())
    assert sorted(stored) == sorted(memory.id for memory in bank.list())
