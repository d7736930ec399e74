"""The words that a memory was distilled from are found where the client has kept them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memlane import Bank
from memlane.capture.distil.candidates import Candidate
from memlane.care.distilled import store
from memlane.care.spoken import Spoken, spoken

SESSION = "3f9a1c0b-7d2e-4c61-9b1a-0123456789ab"
TEXT = "Backups are kept for 30 days from now on."


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    (tmp_path / "app").mkdir()
    return Bank.init(tmp_path / "app")


def candidate(bank: Bank, *lines: int, text: str = TEXT) -> str:
    one = Candidate(text, "fact", 0.9, SESSION, "2026-03-04", lines, (), (), "user", {})
    return store(bank, [one]).memories[0].id


def transcript(bank: Bank, *said: str) -> None:
    """What the user and the agent said in turns, as Claude Code keeps it."""
    folder = Path.home() / ".claude/projects" / str(bank.config.project).replace("/", "-").replace("_", "-")
    folder.mkdir(parents=True)
    lines = []
    for number, text in enumerate(said):
        role = ("user", "assistant")[number % 2]
        line = {"type": role, "sessionId": SESSION, "cwd": str(bank.config.project)}
        lines.append(json.dumps({**line, "message": {"role": role, "content": text}}))
    (folder / f"{SESSION}.jsonl").write_text("\n".join(lines) + "\n")


def test_the_words_come_with_what_was_said_before_and_after_and_are_marked(bank: Bank) -> None:
    transcript(bank, "hi", "The runbook says 7 days.", f"No. Backups are\nkept {TEXT[17:]}", "Done.", "And now?")
    assert spoken(bank, bank.get(candidate(bank, 3))) == [
        Spoken("assistant", "The runbook says 7 days.", 2, own=False),
        Spoken("user", f"No. Backups are\nkept {TEXT[17:]}", 3, own=True, marks=((4, 4 + len(TEXT)),)),
        Spoken("assistant", "Done.", 4, own=False),
    ]


def test_of_something_long_that_was_said_the_words_around_are_shown(bank: Bank) -> None:
    transcript(bank, f"{'a ' * 3000}{TEXT}{' b' * 3000}")
    [said] = spoken(bank, bank.get(candidate(bank, 1)))
    [(start, end)] = said.marks
    assert (said.text[start:end], said.text[0], said.text[-1], len(said.text) < 2000) == (TEXT, "…", "…", True)


def test_without_the_transcript_the_records_of_the_session_tell(bank: Bank) -> None:
    said = f"I have looked at it.\n{TEXT}\nThat is what the setting says."
    bank.add(said, lane="records", thread=SESSION)
    bank.add(f"Another session.\n{TEXT}", lane="records", thread="other")
    memory = bank.get(candidate(bank, 3))
    assert spoken(bank, memory) == [Spoken("assistant", said, 0, own=True, marks=((21, 21 + len(TEXT)),))]


def test_what_nobody_has_kept_or_is_of_another_project_is_not_shown(bank: Bank, tmp_path: Path) -> None:
    memory = bank.get(candidate(bank, 3))
    assert spoken(bank, memory) == []
    assert spoken(bank, bank.add("Written on purpose.")) == []
    (tmp_path / "other").mkdir()
    transcript(Bank.init(tmp_path / "other"), "hi", "hello", TEXT)
    assert spoken(bank, memory) == []
