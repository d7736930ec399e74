"""Many processes on one layers store, and kill -9."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from layer_samples import clock as clock
from layer_samples import entry
from layer_samples import store as store
from memlane.lanes.layers.store import MemoryStore

WRITER = """
import sys
from memlane.gate import Guard
from memlane.lanes.layers.store import MemoryStore
store = MemoryStore(sys.argv[1], guard=Guard(secrets="off", characters="keep"))
for number in range(int(sys.argv[3])):
    text = f"## Review #{sys.argv[2]}{number:03} - 2026-01-01\\n\\nText.\\n\\n"
    store.append("skill-specific/s/p/review_history", text)
    store.upsert(f"shared-project/p/x{number}", sys.argv[2])
    store.get_shared_project_memory("p")
    print(number, flush=True)
"""


def writer(root: Path, name: int, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(root), str(name), str(count)], stdout=subprocess.PIPE, text=True
    )


def archived_and_kept(store: MemoryStore) -> list[str]:
    folder = store.root / "skills/s/p"
    texts = [path.read_text() for path in sorted(folder.glob("review_history*.md"))]
    return [found for text in texts for found in re.findall(r"^## Review #(\d+)", text, re.MULTILINE)]


def test_writers_at_once_lose_no_review(store: MemoryStore) -> None:
    """S004-42: three processes append, prune and count in one store, each review exactly once in the end."""
    store.create(entry("skill-specific/s/p/review_history", ""))
    running = [writer(store.root, name, 15) for name in (1, 2, 3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    for process in running:
        process.stdout.close()  # type: ignore[union-attr]
    assert sorted(archived_and_kept(store)) == [f"{name}{number:03}" for name in (1, 2, 3) for number in range(15)]
    assert store.validate("skill-specific/s/p/review_history")["details"]["invocations"] == 45


def test_a_killed_writer_loses_no_acknowledged_review(store: MemoryStore) -> None:
    """S004-42: kill -9 at any point leaves every section in the file, the archive, or for a moment both."""
    store.create(entry("skill-specific/s/p/review_history", ""))
    for name in range(1, 9):
        process = writer(store.root, name, 1000)
        assert process.stdout is not None
        acknowledged = [process.stdout.readline() for _ in range(2 + name)]
        process.kill()
        acknowledged += process.stdout.read().splitlines()
        process.wait()
        process.stdout.close()
        found = set(archived_and_kept(store))
        assert {f"{name}{number:03}" for number in range(len(acknowledged))} <= found
    store.append("skill-specific/s/p/review_history", "## Review #99999 - 2026-01-01\n")
    assert len(archived_and_kept(store)) == len(set(archived_and_kept(store)))
