"""Many processes on one topics folder, kill -9, and a folder that cannot be written."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from memlane import TopicLane
from memlane.lanes.topics.entries import parse
from topic_samples import everything, fill
from topic_samples import lane as lane

STORES = """
    import sys
    from memlane import TopicLane
    lane = TopicLane(sys.argv[1])
    for number in range(int(sys.argv[3])):
        lane.store(f"area/part{number % 2}", title=f"Entry {sys.argv[2]} {number}", problem="some text")
        print(f"{sys.argv[2]} {number}", flush=True)
"""


def spawn(root: Path, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(STORES), str(root), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def entry_titles(root: Path) -> Counter[str]:
    found = everything(root)
    return Counter({parse(raw).title.removeprefix("Entry "): count for raw, count in found.items()})


def test_four_processes_lose_nothing(tmp_path: Path) -> None:
    running = [spawn(tmp_path / "memory", str(number), 60) for number in range(4)]
    outcomes = [(process.communicate()[1], process.returncode) for process in running]
    assert outcomes == [("", 0)] * 4
    assert entry_titles(tmp_path / "memory") == Counter(f"{n} {m}" for n in range(4) for m in range(60))
    index = (tmp_path / "memory/index.md").read_text()
    assert re.findall(r"entries: (\d+), archived: (\d+)", index) == [("10", "110"), ("10", "110")]


@pytest.mark.parametrize("lines", [1, 14, 33])
def test_what_was_acknowledged_survives_a_kill(tmp_path: Path, lines: int) -> None:
    process = spawn(tmp_path / "memory", "x", 10_000)
    assert process.stdout
    said = [process.stdout.readline().strip() for _ in range(lines)]
    process.send_signal(signal.SIGKILL)
    said += [line.strip() for line in process.communicate()[0].splitlines(keepends=True) if line.endswith("\n")]
    lane = TopicLane(tmp_path / "memory")
    for part in ("area/part0", "area/part1"):
        lane.store(part, title=f"Entry after {part}", problem="some text")
    found = entry_titles(tmp_path / "memory")
    assert set(said) <= set(found)
    assert set(found.values()) == {1}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_bank_can_be_read(lane: TopicLane) -> None:
    fill(lane, 2)
    lane.root.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert len(lane.load("auth/oauth2")) == 2
    finally:
        lane.root.chmod(stat.S_IRWXU)
