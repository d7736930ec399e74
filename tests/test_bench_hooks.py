"""The bench that says where the time of a hook goes runs: it names parts of the code, which change."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[1] / "bench/hooks.py"


def test_the_table_of_stages_is_printed_for_every_event() -> None:
    command = [sys.executable, str(BENCH), "--notes", "5", "--rounds", "1", "--stages"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    _, _, table = done.stdout.partition("where it goes, CPU ms | session-start | prompt | stop\n---|---|---|---\n")
    assert {line.split(" | ")[0] for line in table.splitlines()} == {
        "modules: found",
        "modules: read",
        "modules: run",
        "patterns compiled",
        "configuration and trust",
        "files compared with the index",
        "arrays of the index read",
        "search",
        "secrets looked for",
        "transcript read and captured",
        "session noted",
        "the rest",
    }
