"""Processes and threads that write to one vault at once."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memlane import gate
from memlane.core.errors import Refused
from memlane.core.model import Draft, Problem
from memlane.lanes.vault.store import MemoryVault
from samples import words
from vault_samples import add, lines, parsed
from vault_samples import vault as vault

ADDER = """
import sys
from memlane.lanes.vault.store import MemoryVault
from samples import words
vault = MemoryVault(sys.argv[1], max_active=10**6)
for number in range(int(sys.argv[3])):
    id = vault.add_memory(words(sys.argv[2] + str(number)), "shared", "x")
    vault.update_memory(id, tags=["seen"])
    print(id, flush=True)
"""
COMPACTOR = """
import os, sys
from memlane.lanes.vault.store import MemoryVault
vault = MemoryVault(sys.argv[1], max_active=10**6)
while not os.path.exists(sys.argv[2]):
    vault.compact()
"""


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    paths = os.pathsep.join([str(Path(__file__).parent.parent), *sys.path])
    command = [sys.executable, "-c", code, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env={**os.environ, "PYTHONPATH": paths})


def test_two_processes_add_at_once(vault: MemoryVault) -> None:
    """S002-60"""
    adders = [start(ADDER, vault.path, name, 40) for name in ("one", "two")]
    ids = [id for adder in adders for id in adder.communicate()[0].split()]
    assert len(ids) == 80
    assert sorted(row["id"] for row in lines(vault)) == sorted(ids * 2)
    assert sorted(path.name for path in vault.path.parent.iterdir()) == ["vault.jsonl"]


def test_adding_while_others_compact_loses_nothing(vault: MemoryVault, tmp_path: Path) -> None:
    """S002-62"""
    done = tmp_path / "done"
    compactors = [start(COMPACTOR, vault.path, done) for _ in range(2)]
    adders = [start(ADDER, vault.path, name, 60) for name in ("one", "two")]
    ids = [id for adder in adders for id in adder.communicate()[0].split()]
    done.touch()
    for compactor in compactors:
        compactor.communicate()
    assert [process.returncode for process in (*adders, *compactors)] == [0, 0, 0, 0]
    assert len(ids) == 120
    assert {(record.id, record.version) for record in vault.recall_memories()} == {(id, 2) for id in ids}
    assert [item for item in parsed(vault) if isinstance(item, Problem)] == []
    assert sorted(path.name for path in vault.path.parent.iterdir()) == ["vault.jsonl"]


EXTENDER = """
import sys
from memlane.lanes.vault.store import MemoryVault
vault = MemoryVault(sys.argv[1])
for number in range(15):
    vault.extend(sys.argv[2], f"{sys.argv[3]}-{number}.")
    vault.update_by_topic("now", "shared", "the state of " + sys.argv[3])
"""


def test_processes_that_extend_one_memory_lose_nothing(vault: MemoryVault, tmp_path: Path) -> None:
    id = add(vault)
    vault.update_by_topic("now", "shared", "nothing yet")
    done = tmp_path / "done"
    compactor = start(COMPACTOR, vault.path, done)
    extenders = [start(EXTENDER, vault.path, id, name) for name in "abcd"]
    assert [(extender.communicate(), extender.returncode)[1] for extender in extenders] == [0] * 4
    done.touch()
    assert (compactor.communicate(), compactor.returncode)[1] == 0
    record = vault.get_memory(id)
    assert sorted(record.text.split("\n\n")[1:]) == sorted(
        f"{name}-{number}." for name in "abcd" for number in range(15)
    )
    assert sorted(record.version for record in vault.recall_memories()) == [61, 61]


def test_threads_that_share_a_vault_lose_nothing(vault: MemoryVault) -> None:
    id = add(vault)
    gone = [add(vault, words(f"gone {number}")) for number in range(8)]

    def work(name: int) -> None:
        for number in range(8):
            add(vault, words(f"{name} {number}"))
            vault.extend(id, f"{name}-{number}.")
            gate.admit(vault.checks, Draft(words(f"check {name} {number}")), vault)
            vault.build_snapshot()
        vault.delete_memory(gone[name])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    record = vault.get_memory(id)
    assert sorted(record.text.split("\n\n")[1:]) == sorted(f"{a}-{b}." for a in range(8) for b in range(8))
    assert (record.version, len(vault.recall_memories()), len(list(vault.removed()))) == (65, 65, 8)


FIRST = """
import sys
from memlane.core.errors import Refused
from memlane.lanes.vault.store import MemoryVault
from samples import words
folder, name, verb, limit = sys.argv[1:]
for number in range(8):
    vault = MemoryVault(f"{folder}/{number}/vault.jsonl", max_active=int(limit))
    print("ready", flush=True)
    sys.stdin.readline()
    for turn in range(3):
        try:
            if verb == "register":
                vault.update_by_topic("now", "shared", f"the state of {name} {turn}")
            else:
                vault.bulk_add([{"text": words(f"{name} {number} {turn}"), "scope": "shared", "category": "x"}])
        except Refused as error:
            sys.exit(str(error))
"""


def write_first(folder: Path, verb: str, limit: int) -> list[MemoryVault]:
    """Eight vaults that three processes have begun at the same moment, with no file there."""
    names = "abc"
    writers = [start(FIRST, folder, name, verb, limit) for name in names]
    for _ in range(8):
        assert [writer.stdout and writer.stdout.readline() for writer in writers] == ["ready\n"] * 3
        for writer in writers:
            assert writer.stdin
            writer.stdin.write("go\n")
            writer.stdin.flush()
    assert [(writer.communicate(), writer.returncode)[1] for writer in writers] == [0, 0, 0]
    return [MemoryVault(folder / str(number) / "vault.jsonl", max_active=limit) for number in range(8)]


def test_the_first_writers_of_a_vault_make_one_register_of_a_topic(tmp_path: Path) -> None:
    """S002-32, S002-37: nobody is refused, and no topic gets two registers, though there is no file to begin with."""
    vaults = write_first(tmp_path, "register", 100)
    assert [[record.version for record in vault.recall_memories()] for vault in vaults] == [[9]] * 8


def test_the_first_writers_of_a_vault_do_not_overfill_it(tmp_path: Path) -> None:
    """S002-44: a vault that takes four memories has four, however many write at once."""
    vaults = write_first(tmp_path, "add", 4)
    assert [len(vault.recall_memories()) for vault in vaults] == [4] * 8


def test_a_refused_first_write_leaves_nothing(tmp_path: Path) -> None:
    vault = MemoryVault(tmp_path / "data" / "vault.jsonl")
    refused = vault.bulk_add([{"text": "password: hunter2", "scope": "shared", "category": "x"}])
    with pytest.raises(Refused):
        add(vault, "")
    assert (len(refused["errors"]), list(tmp_path.iterdir())) == (1, [])
