"""Long memories do not fill the memory of the process: of those that were read, only a little is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlane import Bank
from memlane.index import kept_rows, writing
from samples import words


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    bank = Bank.init(tmp_path)
    for number in range(5):
        (bank.root / f"n{number}.md").write_text(words(number))
    bank.index.refresh(force=True)
    return bank


def test_memories_that_were_read_are_kept_while_they_are_short(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    first = bank.index.memories([1])[1]
    bank.index.memories([2])
    assert bank.index.memories([1])[1] is first
    monkeypatch.setattr(kept_rows, "LENGTH", 1)
    bank.index.memories([3])
    assert bank.index.memories([1]) == {1: first}
    assert bank.index.memories([1])[1] is not first


def test_chunks_are_numbered_anew_a_few_memories_at_a_time(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[int] = []

    def counting(memories: list[object], encoder: object) -> object:
        prepared.append(len(memories))
        return writing_prepare(memories, encoder)

    writing_prepare = writing.prepare
    monkeypatch.setattr(writing, "prepare", counting)
    monkeypatch.setattr(writing, "AT_ONCE", 1)
    before = [(hit.memory.id, hit.score) for hit in bank.search(words(3), 5)]
    with bank.index._writing() as db:
        writing.renumber(db, bank.index.encoder)
    assert [(hit.memory.id, hit.score) for hit in bank.search(words(3), 5)] == before
    assert prepared == [1] * 5
