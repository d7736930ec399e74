"""Lines made of every rule's own pattern, cut, damaged and encoded: none breaks the scanner, none holds it up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench" / "gate"


def test_no_line_of_any_rule_breaks_the_scanner() -> None:
    """A few seconds of what `bench/gate fuzz --lines 1000000` does for longer."""
    done = subprocess.run(
        [sys.executable, BENCH, "fuzz", "--lines", "4000"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert " 0 raised, " in done.stdout


def test_most_disguises_are_read_through() -> None:
    done = subprocess.run([sys.executable, BENCH, "disguises"], capture_output=True, text=True, check=True)
    totals = [line for line in done.stdout.splitlines() if line.startswith("| **all")]
    shares = [float(line.split("=")[1].split("%")[0]) for line in totals]
    assert shares[0] > 99
    assert shares[1] > 70
