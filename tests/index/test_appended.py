"""A long vault in the index: what was appended since it was indexed is read, and the index says what the file says."""

from __future__ import annotations

import json
import os
import random
from itertools import islice
from pathlib import Path

import pytest

from memlane import Bank, Memory
from memlane.index import building, store
from memlane.index.health import Rebuilt, contents
from memlane.index.peek import Peek, look, mark_of
from memlane.index.preparing import prepare
from memlane.lanes.vault.log import LONG
from memlane.lanes.vault.record import Record, render_line
from samples import tries

WORDS = "deploys go out on tuesday friday after the review of staging and nobody merges before noon".split()


def record(dice: random.Random) -> Record:
    text = " ".join(dice.choices(WORDS, k=150)) + f" {dice.getrandbits(40)}"
    scope = dice.choice(["shared", "orion"])
    return Record(f"{dice.getrandbits(48):012x}", text, scope, created_at="2025-01-15T10:00:00Z")


def opened(folder: Path) -> Bank:
    return Bank.open(folder, vault__max_active=100_000, search__encoder="none")


@pytest.fixture
def long(tmp_path: Path) -> Bank:
    """A bank whose vault is just long enough to have a mark."""
    Bank.init(tmp_path).close()
    bank, dice = opened(tmp_path), random.Random(3)
    lines = [render_line(record(dice)) for _ in range(LONG // 700)]
    bank.vault.path.write_text("\n".join(lines) + "\n")
    assert bank.vault.path.stat().st_size > LONG
    bank.index.refresh(force=True)
    assert mark_of(bank.index._db, os.fspath(bank.vault.path))
    return bank


def indexed(bank: Bank) -> dict[str, bytes]:
    with bank.index.snapshot():
        return contents(bank.index._db, bank.index.encoder.dim)


def anew(bank: Bank) -> dict[str, bytes]:
    """What an index says that reads all of the file."""
    rebuilt = Rebuilt(bank.index_file, lambda: [bank.lane("vault")], "none")
    rebuilt.refresh(force=True)
    return rebuilt.contents()


class Hands:
    """What may happen to a vault's file: by memlane, by hand, by git."""

    def __init__(self, dice: random.Random, vault: Bank) -> None:
        self.dice, self.bank, self.path = dice, vault, vault.vault.path

    def lines(self) -> list[str]:
        return self.path.read_text().splitlines()

    def write(self, lines: list[str]) -> None:
        self.path.write_text("\n".join(lines) + "\n")

    def any_id(self) -> str:
        return str(json.loads(self.dice.choice([line for line in self.lines() if line.startswith('{"id"')]))["id"])

    def appended(self, text: str) -> None:
        with self.path.open("a") as file:
            file.write(text)

    def add(self) -> None:
        self.bank.vault.log.append(record(self.dice))

    def delete(self) -> None:
        self.bank.vault.delete_memory(self.any_id())

    def update(self) -> None:
        id = self.any_id()
        if id in self.bank.vault.log.latest({id}):
            [old] = self.bank.vault.log.latest({id}).values()
            self.bank.vault.log.append(old.next(text=record(self.dice).text, deleted_at=None))

    def append_what_does_not_count(self) -> None:
        self.appended(self.dice.choice([self.lines()[0], "{not a record", "", '{"id":"x","text":7}']) + "\n")

    def tear(self) -> None:
        line = render_line(record(self.dice))
        self.appended(line[:40])
        self.bank.index.refresh(force=True)
        self.appended(line[40:] + "\n")

    def edit_in_the_middle(self) -> None:
        lines = self.lines()
        at = self.dice.randrange(len(lines))
        lines[at] = lines[at].replace("tuesday", "sundays").replace("noon", "dawn")  # as long as before
        self.write(lines)

    def merge(self) -> None:
        lines = self.lines()
        lines.insert(self.dice.randrange(len(lines)), render_line(record(self.dice)))
        self.write([*lines, render_line(record(self.dice))])

    def lose(self) -> None:
        lines = self.lines()
        del lines[self.dice.randrange(len(lines))]
        self.write(lines[: -self.dice.randint(1, 3)])

    def compact(self) -> None:
        self.bank.vault.compact()

    def index_half_and_put_back(self) -> None:
        """Somebody is killed while he indexes a file that is then as it was before."""
        before = self.path.read_bytes()
        self.write([line.replace("friday", "sunday") for line in self.lines()])
        index, path = self.bank.index, os.fspath(self.path)
        with index._alone():
            half = index._index_files([(self.bank.lane("vault"), path, look(path))], 40)
            assert len(list(islice(half, 2))) == 2
            half.close()
        index._seen = None
        self.path.write_bytes(before)


TOOLS = ("lines", "write", "any_id", "appended")
ALL = [name for name in vars(Hands) if not name.startswith("_") and name not in TOOLS]


@pytest.mark.parametrize("seed", range(tries(1, 3)))
def test_the_index_says_what_the_file_says_whatever_happens_to_it(long: Bank, tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    with opened(tmp_path) as other:
        for _ in range(12):
            for _ in range(dice.randint(1, 3)):
                hands = Hands(dice, dice.choice([long, other]))
                getattr(hands, dice.choice(ALL))()
            lane = long.lane("vault")
            with Peek(long.index_file, [lane]) as peek:
                seen = {memory.id: memory for memory in peek.first(lambda _: True)}
            assert seen == {item.id: item for item in lane.parse(os.fspath(lane.root)) if isinstance(item, Memory)}
            dice.choice([long, other]).index.refresh(force=True)
            assert indexed(long) == anew(long)


def test_only_what_was_appended_is_read(long: Bank) -> None:
    path, mark = os.fspath(long.vault.path), mark_of(long.index._db, os.fspath(long.vault.path))
    gone = next(iter(long.memories("vault")))
    long.vault.delete_memory(gone.native_id)
    new = long.add("Deploys moved to Wednesday.", lane="vault")
    read = long.vault.answers.read(path, mark)
    assert ([memory.id for memory in read.memories], read.gone) == ([new.id], {gone.id})


def test_what_another_process_has_indexed_meanwhile_is_not_overwritten(long: Bank, tmp_path: Path) -> None:
    index, path = long.index, os.fspath(long.vault.path)
    with opened(tmp_path) as other:
        first = other.add("Deploys moved to Wednesday.", lane="vault")
        changed = [(long.lane("vault"), path, look(path))]
        [unit] = building.units(changed, index._db, 500)
        assert [entry.memory.id for entry in unit.entries] == [first.id]
        other.update(first.id, text="Deploys moved to Thursday.")
        other.index.refresh(force=True)
        prepared = prepare([entry.memory for entry in unit.entries], index.encoder)
        assert store._written(index, unit, prepared, index.encoder) == {path}
        assert indexed(long) == anew(long)
