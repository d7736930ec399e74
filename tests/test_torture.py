"""The short version of `make torture`: eight processes on one bank, and everything that can happen to it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from samples import words
from torture import Figures, Left, check_halves
from torturing import ALIVE, GONE, Item, mark, read_journal, secret_of, text_of

HERE = Path(__file__).parent


def test_a_quarter_of_a_minute_of_torture_loses_corrupts_and_leaks_nothing() -> None:
    command = [sys.executable, str(HERE / "torture.py"), "--seconds", "15", "--seed", "7", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "Traceback" not in done.stderr  # that it indexes, and makes a damaged index anew, it may say
    figures = json.loads(done.stdout)
    wrong = {name: figures[name] for name in ("lost", "corrupted", "leaked", "broken")}
    assert wrong == {"lost": [], "corrupted": [], "leaked": [], "broken": []}
    assert figures["chaos"]["processes killed"] > 0
    assert {key.split()[0] for key in figures["operations"]} == {"cli", "mcp", "python"}
    assert sum(figures["operations"].values()) >= 100


# -- the harness itself: a loss would be seen


def journal_of(tmp_path: Path, *lines: dict[str, object]) -> Path:
    path = tmp_path / "1.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_journal_says_what_must_be_there(tmp_path: Path) -> None:
    asked = {"surface": "python", "lane": "notes"}
    journal = read_journal(
        journal_of(
            tmp_path,
            {"n": 1, "verb": "add", **asked},
            {"n": 1, "said": "done", "id": "notes:a"},
            {"n": 2, "verb": "update", "id": "notes:a", **asked},
            {"n": 2, "said": "done", "id": "notes:a"},
            {"n": 3, "verb": "add", **asked},
            {"n": 3, "said": "done", "id": "notes:b"},
            {"n": 4, "verb": "delete", "id": "notes:b", **asked},
            {"n": 4, "said": "done", "id": "notes:b"},
            {"n": 5, "verb": "secret", **asked},
            {"n": 5, "said": "refused"},
            {"n": 6, "verb": "add", **asked},
        ),
        1,
    )
    assert journal.items == {"notes:a": Item("notes", ALIVE, [2], [1]), "notes:b": Item("notes", GONE, [3])}
    assert (journal.secrets, [asked["n"] for asked in journal.adding], journal.last) == ([5], [6], 6)


@pytest.fixture
def left(tmp_path: Path) -> Left:
    from memlane import Bank

    with Bank.init(tmp_path) as bank:
        bank.add(text_of(1, 1), title="whole")
        bank.add(text_of(1, 2).rpartition(" ")[0], title="half")
        return Left(tmp_path, bank.root)


def test_half_a_text_is_seen(left: Left) -> None:
    figures = Figures()
    check_halves(left, figures)
    assert figures.corrupted == ["notes:half has half of mark1z2"]


@pytest.mark.parametrize(
    ("item", "why"),
    [
        (Item("notes", ALIVE, [1]), ""),
        (Item("notes", ALIVE, [1, 3]), "misses [3]"),
        (Item("notes", ALIVE, [1], [1]), "has what was replaced: [1]"),
        (Item("notes", GONE, [1]), "came back"),
        (Item("notes", "open", [3], pending={"verb": "update", "n": 4}), "has neither the old text nor the new one"),
        (Item("notes", "open", [3], pending={"verb": "delete", "n": 4}), "vanished in an unfinished delete"),
    ],
)
def test_what_is_not_as_it_was_acknowledged_is_seen(left: Left, item: Item, why: str) -> None:
    from torture import wrong

    assert wrong(1, "notes:whole", item, left) == why


def test_the_canaries_are_secrets_to_the_scanner() -> None:
    from memlane.gate.secrets import check_pii

    found = [check_pii(f"{words(n)} {secret_of(1, n)} {mark(1, n)[0]}") for n in range(200)]
    assert all(found)
