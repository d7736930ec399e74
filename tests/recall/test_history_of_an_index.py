"""What an index and an open bank have been through does not decide how memories rank: only the files do."""

from __future__ import annotations

import shutil
from pathlib import Path

from memlane import Bank

QUERY = "when do we deploy invoices?"


def ranked(bank: Bank) -> list[tuple[str, float]]:
    return [(hit.memory.id, hit.score) for hit in bank.search(QUERY, 5)]


def write_notes(root: Path, count: int) -> None:
    things = ("invoices", "ledgers", "queues", "caches", "sessions")
    for number in range(count):
        text = f"We deploy {things[number % 5]} by worker {number}, never {things[number % 3]}.\n"
        (root / f"n{number}.md").write_text(text)


def test_texts_that_were_there_once_do_not_count(tmp_path: Path) -> None:
    with Bank.init(tmp_path) as bank:
        write_notes(bank.root, 3)
        for number in range(20):
            (bank.root / "n0.md").write_text(f"Invoices of the month {number} are sent by hand.\n")
            ranked(bank)
        after_changes = ranked(bank)
    shutil.rmtree(bank.root / "indices")
    with Bank.open(tmp_path) as again:
        assert after_changes == ranked(again)


def test_an_open_bank_ranks_by_words_that_another_one_has_counted(tmp_path: Path) -> None:
    with Bank.init(tmp_path) as bank:
        write_notes(bank.root, 2)
        ranked(bank)
        with Bank.open(tmp_path) as other:
            write_notes(other.root, 40)
            expected = ranked(other)
        assert ranked(bank) == expected


def test_words_of_an_index_that_is_gone_do_not_count(tmp_path: Path) -> None:
    with Bank.init(tmp_path) as bank:
        write_notes(bank.root, 40)
        ranked(bank)
        for number in range(2, 40):
            (bank.root / f"n{number}.md").unlink()
        shutil.rmtree(bank.root / "indices")
        found = ranked(bank)
        with Bank.open(tmp_path) as other:
            assert found == ranked(other)
