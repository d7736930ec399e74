"""An index that is asked something while others write to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memlane import Bank


@pytest.fixture
def banks(tmp_path: Path) -> Iterator[tuple[Bank, Bank]]:
    """A bank as two processes have it open."""
    with Bank.init(tmp_path) as one, Bank.open(tmp_path) as other:
        for name in ("heron", "otter"):
            one.add(f"The {name} lives by the river.", title=name)
        assert len(one.search("river")) == len(other.search("river")) == 2
        yield one, other


def alive(bank: Bank) -> list[str]:
    """The texts of all chunks that exist, as a search reads them."""
    columns = bank.index.columns()
    numbers = [n for n in range(columns.used) if columns.alive[n]]
    return sorted(chunk.text for chunk in bank.index.chunks(numbers))


def token(path: Path) -> str:
    """What tells an index from one that is made anew."""
    with closing(sqlite3.connect(path)) as db:
        return str(db.execute("SELECT value FROM meta WHERE key = 'token'").fetchone()[0])


def test_what_others_add_while_a_question_is_answered_does_not_wait_for_it(banks: tuple[Bank, Bank]) -> None:
    one, other = banks
    asked = []

    def question() -> list[str]:
        asked.append(other.add("The lynx lives in the wood.", title="lynx"))
        return alive(one)

    assert one.index.ask(question, in_passing=True) == [
        "The heron lives by the river.",
        "The otter lives by the river.",
    ]
    assert (len(asked), other.index.missed) == (1, 0)
    assert sorted(hit.memory.id for hit in one.search("lives")) == ["notes:heron", "notes:lynx", "notes:otter"]


@pytest.mark.parametrize("reads_before", [True, False])
def test_where_others_delete_something_meanwhile_the_question_is_asked_again(
    banks: tuple[Bank, Bank], reads_before: bool
) -> None:
    """Also where it fails then, for what it wants to read is gone."""
    one, other = banks
    answers: list[list[str]] = []
    one.index._kept.forget_chunks()

    def question() -> list[str]:
        before = alive(one) if reads_before or answers else []
        if not answers:
            answers.append(before)
            other.delete("notes:heron")
            before = before or alive(one)
        return before

    known = token(one.index_file.path)
    assert one.index.ask(question, in_passing=True) == ["The otter lives by the river."]
    assert len(answers) == 1
    assert token(one.index_file.path) == known  # it was not taken for a damaged one


def test_a_search_beside_a_writer_still_refuses_a_journal_that_somebody_puts_there(banks: tuple[Bank, Bank]) -> None:
    one, _ = banks
    path = one.index_file.path
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("DELETE FROM graves")
        db.execute("INSERT INTO graves (chunk) VALUES (99)")
        assert Path(f"{path}-journal").exists()
        assert len(one.search("river")) == 2  # beside the journal of whoever writes
        db.execute("ROLLBACK")
    known = token(path)
    Path(f"{path}-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" * 99)
    assert len(one.search("river")) == 2
    assert not Path(f"{path}-journal").exists()
    assert token(path) != known  # it was made anew
