"""Lines made of every rule's own pattern, cut, damaged and encoded: none breaks the scanner, none holds it up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memlane.gate.secrets import scan, values

BENCH = Path(__file__).parents[2] / "bench" / "gate"


def test_no_line_of_any_rule_breaks_the_scanner() -> None:
    """A moment of what `bench/gate fuzz --lines 1000000` does for longer."""
    done = subprocess.run(
        [sys.executable, BENCH, "fuzz", "--lines", "2000"], capture_output=True, text=True, check=False
    )
    assert (", 0 raised, " in done.stdout, done.stderr) == (True, ""), done.stdout  # how long one took, it only says
    assert " 0 raised, " in done.stdout


def test_most_disguises_are_read_through() -> None:
    done = subprocess.run(
        [sys.executable, BENCH, "disguises", "--tokens", "2"], capture_output=True, text=True, check=True
    )
    totals = [line for line in done.stdout.splitlines() if line.startswith("| **all")]
    shares = [float(line.split("=")[1].split("%")[0]) for line in totals]
    assert shares[0] > 99
    assert shares[1] > 70


@pytest.mark.parametrize("piece", ["key='", "psk='", "password=", '"secret":'])
def test_a_word_without_end_is_judged_a_number_of_times_that_grows_with_it(
    piece: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at each of the names in it: every look reads hundreds of characters."""
    looks: list[int] = []
    read = values.read

    def counted(text: str, at: int) -> values.Value | None:
        looks.append(at)
        return read(text, at)

    monkeypatch.setattr(values, "read", counted)
    text = piece * 20_000
    scan(text)
    assert len(looks) < len(text) / 1024 * 60 + 120


def test_a_secret_after_many_names_in_one_line_is_found() -> None:
    """JSON without blanks: each value is short, and none is passed over."""
    fields = ",".join(f'"key{number}":"name of it"' for number in range(3000))
    (finding,) = scan(f'{{{fields},"password":"{"Xy9!kL" + "m2Qw"}"}}')
    assert finding.rule == "password"
