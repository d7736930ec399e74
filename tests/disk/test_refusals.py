"""How often the gate refused what: a rule and a number, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memlane import Bank, Refused, config
from memlane.core.dates import utc_now
from memlane.disk import refusals

TOKEN = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"


@pytest.mark.parametrize(
    ("lane", "rule"),
    [
        ("notes", "secrets: github-token"),
        ("records", "secrets: github-token"),
        ("vault", "pii"),
        ("topics", "blocked_words"),
    ],
)
def test_a_refusal_in_any_lane_is_counted_without_what_was_refused(bank: Bank, lane: str, rule: str) -> None:
    fields = {"topic": "ops", "subtopic": "keys"} if lane == "topics" else {}
    with pytest.raises(Refused):
        bank.add(f"The token is {TOKEN}.", lane=lane, title="Token", **fields)
    state = config.user_state()
    assert refusals.counts(state, bank.root) == {(utc_now().date().isoformat(), rule): 1}
    [file] = (state / refusals.FOLDER).iterdir()
    assert (TOKEN in file.read_text(), oct(file.stat().st_mode & 0o777)) == (False, "0o600")


def test_the_lines_of_a_day_are_added_up_before_they_grow(tmp_path: Path) -> None:
    for _ in range(2_000):
        refusals.note(tmp_path, "/bank", "secrets: github-token")
    assert sum(refusals.counts(tmp_path, "/bank").values()) == 2_000
    [file] = (tmp_path / refusals.FOLDER).iterdir()
    assert os.path.getsize(file) < 64 * 1024


def test_torn_lines_and_other_banks_do_not_count(tmp_path: Path) -> None:
    refusals.note(tmp_path, "/bank", "characters")
    [file] = (tmp_path / refusals.FOLDER).iterdir()
    file.write_text(file.read_text() + '["2026-01\n[1]\nnull\n')
    assert list(refusals.counts(tmp_path, "/bank").values()) == [1]
    assert refusals.counts(tmp_path, "/other") == {}
