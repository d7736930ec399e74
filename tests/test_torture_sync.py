"""The short versions of `make torture-sync` and `make simulate-sync`: members who share their memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from torture_sync import kin, touched_by

HERE = Path(__file__).parent


def test_a_few_seconds_of_torture_leave_all_members_with_the_same_memory() -> None:
    options = ["--seconds", "4", "--members", "3", "--only", "folder,postgres", "--seed", "3", "--json"]
    done = subprocess.run([sys.executable, str(HERE / "torture_sync.py"), *options], capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    figures = json.loads(done.stdout)
    wrong = {name: figures[name] for name in ("differing", "lost", "back", "leaked", "broken")}
    assert wrong == {"differing": [], "lost": [], "back": [], "leaked": [], "broken": []}
    assert figures["checked"] > 0
    assert sum(figures["chaos"].values()) > 0


def test_simulated_members_come_to_the_same_memory() -> None:
    command = [sys.executable, str(HERE / "simulate_sync.py"), "--seeds", "4-6", "--steps", "40"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("3 runs, 0 failed\n", 0)


def test_simulated_members_have_what_is_in_their_scopes_and_nothing_else() -> None:
    command = [sys.executable, str(HERE / "simulate_sync.py"), "--seeds", "4-6", "--steps", "40", "--scopes"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("3 runs, 0 failed\n", 0)


# -- the harness itself


def test_what_was_ever_in_one_memory_belongs_together() -> None:
    tried = [
        {"new": "a", "touched": [], "by": 0},
        {"new": "b", "touched": ["a"], "by": 1},
        {"new": "", "touched": ["b"], "by": 2},
        {"new": "c", "touched": [], "by": 3},
    ]
    assert kin({"a"}, tried) == {"a", "b"}
    assert touched_by(kin({"a"}, tried), tried) == {1, 2}
    assert kin({"c"}, tried) == {"c"}
