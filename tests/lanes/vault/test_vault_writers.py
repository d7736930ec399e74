"""Processes and threads that write to one vault at once."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from memlane import gate
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
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths})


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
