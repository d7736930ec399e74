"""A large build is shared with other processes, can be broken off at any time, and goes on from there."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memlane import Bank
from memlane.core.model import Memory
from memlane.index import building, database, writing
from memlane.index.columns import POSTING
from memlane.index.database import BLOCK
from memlane.index.encoders import open_encoder
from memlane.index.preparing import Prepared, prepare
from memlane.index.writing import Entry, Unit

FILES = 900
SCRIPT = """import signal, sqlite3, sys
from memlane import Bank
from memlane.index import building, store

building.MANY, store.LARGE_BATCH = 300, 100  # as if there were many times as many files


def begun():
    try:
        db = sqlite3.connect("file:.memories/indices/index.db?mode=ro", uri=True)
        return db.execute("SELECT 1 FROM files").fetchone()
    except sqlite3.Error:  # not made yet
        return None


def look(event, args):
    if event == "open" and str(args[0]).endswith("0.md") and begun():
        signal.raise_signal(signal.SIGINT)


if sys.argv[1:]:
    sys.addaudithook(look)
print(sum("zebra" in hit.memory.text for hit in Bank.open(".").search("zebra", 99)))
"""  # without a main guard


def unit(number: int) -> Unit:
    texts = [f"# Zebra {number}\n\nNumber {at} of [[src/a{at}.py]], in Überlingen.\n" for at in range(30)]
    memories = [
        Memory(id=f"notes:n{at}", lane="notes", text=text, title="Zebra", file="/x") for at, text in enumerate(texts)
    ]
    return Unit([Entry.of(memory, 1) for memory in memories], [])


def plain(prepared: Prepared) -> dict[str, Any]:
    arrays = {name: value.tolist() for name, value in prepared._asdict().items() if isinstance(value, np.ndarray)}
    return {**prepared._asdict(), **arrays}


@pytest.mark.parametrize("helpers", [1, 2])
def test_other_processes_prepare_what_this_one_would(helpers: int) -> None:
    encoder, units = open_encoder("static"), [unit(number) for number in range(5)]
    found = [(done, plain(prepared)) for done, prepared in building.prepared(iter(units), encoder, helpers)]
    assert found == [(each, plain(prepare([entry.memory for entry in each.entries], encoder))) for each in units]


def test_the_work_of_a_process_that_dies_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    encoder, units = open_encoder("static"), [unit(number) for number in range(3)]
    found = [(done, plain(prepared)) for done, prepared in building.prepared(iter(units), encoder, 1)]
    assert found == [(each, plain(prepare([entry.memory for entry in each.entries], encoder))) for each in units]


def indexed(bank: Bank) -> int:
    try:
        with closing(sqlite3.connect(f"file:{bank.root}/indices/index.db?mode=ro", uri=True)) as db:
            return int(db.execute("SELECT count(*) FROM files").fetchone()[0])
    except sqlite3.Error:  # not made yet, or just being written
        return 0


def test_a_large_build_that_is_broken_off_goes_on(tmp_path: Path) -> None:
    """Ctrl-C comes when the next file is read after a first part was written."""
    with Bank.init(tmp_path) as bank:
        for number in range(FILES):
            (bank.root / f"n{number}.md").write_text(f"zebra {number}\n" if number < 7 else f"horse {number}\n")
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "script.py"]
    broken = subprocess.run([*command, "break it off"], cwd=tmp_path, capture_output=True)
    assert broken.stderr.splitlines()[-1:] == [b"KeyboardInterrupt"]
    assert 0 < indexed(bank) < FILES
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (again.stdout, again.stderr) == ("7\n", "")
    with Bank.open(tmp_path) as bank:
        assert bank.list(limit=99_999) == bank.list()
    assert indexed(bank) == FILES


def test_a_file_of_many_memories_is_written_in_parts(tmp_path: Path) -> None:
    with Bank.init(tmp_path) as bank:
        lines = [
            f'{{"id": "{number:012x}", "version": 1, "created_at": "2024-01-01T00:00:00Z", "tier": "register", '
            f'"topic_id": "t{number}", "source": "manual", "scope": "shared", "category": "fact", "tags": [], '
            f'"text": "zebra {number}"}}\n'
            for number in range(1_200)
        ]
        bank.vault.path.write_text("".join(lines))
        assert len(bank.search("zebra", 2_000)) == 1_200
        bank.vault.path.write_text("".join(lines[:600]))
        assert len(bank.search("zebra", 2_000)) == 600


def test_what_another_process_wrote_meanwhile_leaves_no_words_to_the_next_memory() -> None:
    """Two processes index one file: the second finds it written, and what it prepared belongs to nothing."""
    encoder = open_encoder("static")
    with closing(database.open_in_memory()) as db:
        one = unit(1)
        for _ in range(2):
            writing.write(db, one, prepare([entry.memory for entry in one.entries], encoder))
        kangaroo = Memory(id="notes:k", lane="notes", text="A kangaroo.", title="Kangaroo", file="/y")
        writing.write(db, Unit([Entry.of(kangaroo, 1)], []), prepare([kangaroo], encoder))
        [(number,)] = db.execute("SELECT c.n FROM chunks c JOIN memories m ON m.n = c.memory WHERE m.id = 'notes:k'")
        having = {
            term
            for term, block, data in db.execute("SELECT term, block, data FROM postings")
            if number in np.frombuffer(data, POSTING)["at"].astype(int) + block * BLOCK
        }
        assert having == set(prepare([kangaroo], encoder).postings)
