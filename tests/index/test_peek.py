"""A look at the index without opening it: always what the files say."""

from __future__ import annotations

import os
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import Run
from memlane import Bank
from samples import LANES, draft, tries

FRONTS = (
    "",
    "---\ntags: [pinned, one]\ncreated_at: 2025-01-10T10:00:00+02:00\n---\n",
    "---\ntype: plan\ncreated_at: 2025-01-10T08:00:00.000001Z\nnested: {1: [a, 2.5, null], at: 2025-01-01}\n---\n",
    "---\nstatus: archived\ndate: 2024-02-29\nscope: area:ops\nthread: s1\nproject: api\n---\n",
    "---\ncreated_at: never\nempty:\n---\n",
    "---\n: broken [\n---\n",
)
FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"lane": "notes"},
    {"lane": "records"},
    {"lane": "layers"},
    {"tags": ["one"]},
    {"type": "plan"},
    {"status": "archived"},
    {"thread": "s1"},
    {"since": "2025-01-10"},
    {"until": "2025-01-10"},
)


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank.init(tmp_path)


def check(folder: Path) -> None:
    """Every list with a limit is the beginning of the list that is read from the files."""
    with Bank.open(folder) as bank:
        for filters in FILTERS:
            everything = bank.list(**filters)
            for limit in (0, 1, 3, 100):
                found = bank.list(limit=limit, **filters)
                assert found == everything[:limit], (filters, limit)
                assert [memory.to_dict() for memory in found] == [memory.to_dict() for memory in everything[:limit]]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("write", "remove", "index", "delete", "restore")),
        st.integers(0, 6),
        st.sampled_from(FRONTS),
        st.sampled_from(("Words.\n", "# Title\r\n\r\nMore ünïcode 漢字\n", "", "\ufeffmark\n", "a\u2028b\n")),
    ),
    max_size=14,
)


@settings(max_examples=tries(12, 120))
@given(steps=STEPS)
def test_a_list_with_a_limit_is_what_the_files_say(tmp_path_factory: pytest.TempPathFactory, steps: Any) -> None:
    folder = tmp_path_factory.mktemp("bank")
    bank = Bank.init(folder)
    for number, name in enumerate(LANES):
        bank.lane(name).put(draft(name, number))
    for what, number, front, text in steps:
        path = bank.root / f"sub/n{number}.md"
        if what == "write":
            path.parent.mkdir(exist_ok=True)
            path.write_text(front + text, encoding="utf-8", newline="")
        elif what == "remove":
            path.unlink(missing_ok=True)
        elif what == "delete" and path.exists():
            bank.delete(f"notes:sub/n{number}")
        elif what == "restore" and bank.removed():
            bank.restore(bank.removed()[0].id)
        elif what == "index":
            bank.index.refresh(force=True)
    bank.close()
    check(folder)


def test_a_damaged_index_is_done_without(bank: Bank, run: Run, tmp_path: Path) -> None:
    """SQLite does not notice all damage, and may miss a memory; but nothing wrong is shown, and nothing fails."""
    for number in range(8):
        bank.add(f"Pinned words, number {number}.", tags=["pinned"], created_at=f"2025-01-0{number + 1}")
    bank.search("words")
    bank.close()
    path = bank.root / "indices/index.db"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    sound = path.read_bytes()
    true = set(run("context").out.splitlines()) | set(run("list").out.splitlines())
    chance = random.Random(3)
    for _ in range(tries(15, 40)):
        bad = bytearray(sound)
        for _ in range(chance.choice((1, 5, 100))):
            at = chance.randrange(100, len(bad) - 32)
            bad[at : at + 32] = chance.randbytes(32)
        for name in os.listdir(path.parent):
            if name.startswith("index.db"):
                os.unlink(path.parent / name)
        path.write_bytes(bad)
        for command in (["context"], ["list", "-n", "3"]):
            code, out, err = run(*command)
            assert (code, err) == (0, "")
            assert set(out.splitlines()) <= true
        assert run("doctor").code in (0, 6)
        assert run("search", "words").code == 0
