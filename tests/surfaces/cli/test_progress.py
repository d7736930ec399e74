"""How far a command is: on a terminal, after a second, and gone at the end."""

from __future__ import annotations

import json
import os
import pty
import tty
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from memlane import Bank
from memlane.capture.distil import reading
from memlane.capture.distil.candidates import distil
from memlane.core.progress import tell
from memlane.exchange.imports import import_from
from memlane.surfaces.cli import progress as module
from memlane.surfaces.cli.progress import added, each, listening, megabytes, progress


class Terminal:
    """A terminal as stderr."""

    def __init__(self) -> None:
        self._ours, theirs = pty.openpty()
        tty.setraw(theirs)
        self.stream = os.fdopen(theirs, "w")

    def shown(self) -> str:
        """What was written to it."""
        self.stream.close()
        said = b""
        try:
            while piece := os.read(self._ours, 65536):
                said += piece
        except OSError:  # Linux says so when the other end is closed
            pass
        os.close(self._ours)
        return said.decode()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal whose first second has passed already."""
    screen = Terminal()
    monkeypatch.setattr(module, "FIRST", 0.0)
    monkeypatch.setattr(module, "NEXT", 0.0)
    return screen


def drawn(*lines: str) -> str:
    return "".join(f"\r{line}\x1b[K" for line in lines)


def test_the_line_is_drawn_over_and_cleared(terminal: Terminal) -> None:
    with redirect_stderr(terminal.stream), progress("reading", 4_000) as report:
        report(1_000)
        report(4_000)
    assert terminal.shown() == drawn("reading: 1,000 of 4,000 (25%)", "reading: 4,000 of 4,000 (100%)", "")


def test_work_that_ends_within_a_second_says_nothing(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST", 60.0)
    with redirect_stderr(terminal.stream), progress("reading", 2) as report:
        report(1)
    assert terminal.shown() == ""


def test_how_many_there_are_may_be_known_later_or_never(terminal: Terminal) -> None:
    with redirect_stderr(terminal.stream), progress("reading") as report:
        report(5)
        report(5, 10)
    assert terminal.shown() == drawn("reading: 5", "reading: 5 of 10 (50%)", "")


def test_items_one_by_one(terminal: Terminal) -> None:
    with redirect_stderr(terminal.stream):
        assert list(each("ab", "looking")) == ["a", "b"]
    assert terminal.shown() == drawn("looking: 0 of 2 (0%)", "looking: 1 of 2 (50%)", "")


def test_what_was_added_is_summed_up(terminal: Terminal) -> None:
    with redirect_stderr(terminal.stream), added("a\x1b[2Jb", 2_000_000, megabytes) as add:
        add(500_000)
        add(500_000)
    lines = ("a\\u001b[2Jb: 0.5 MB of 2.0 MB (25%)", "a\\u001b[2Jb: 1.0 MB of 2.0 MB (50%)", "")
    assert terminal.shown() == drawn(*lines)


def test_the_line_goes_away_when_the_work_breaks_off(terminal: Terminal) -> None:
    with redirect_stderr(terminal.stream), listening():
        tell("indexing files", 1, 2)
    assert terminal.shown() == drawn("indexing files: 1 of 2 (50%)", "")


def test_indexing_before_a_search_is_shown(terminal: Terminal, tmp_path: Path) -> None:
    with Bank.init(tmp_path) as bank:
        (bank.root / "a.md").write_text("zebra")
        with redirect_stderr(terminal.stream), listening():
            assert [hit.memory.id for hit in bank.search("zebra")] == ["notes:a"]
    assert terminal.shown() == drawn("indexing files: 0 of 1 (0%)", "indexing files: 1 of 1 (100%)", "")


def test_nothing_is_shown_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with progress("reading", 2) as report, listening():
        report(1)
        tell("indexing files", 1, 2)
    assert capfd.readouterr() == ("", "")


def test_reading_a_long_session_says_how_far_it_is(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = json.dumps({"role": "user", "content": "From now on, always run the linter before you commit."}) + "\n"
    (tmp_path / "session.jsonl").write_text(line * 2)
    monkeypatch.setattr(reading, "MB", len(line))
    with redirect_stderr(terminal.stream), listening():
        distil(tmp_path / "session.jsonl")
    label = "reading the session, in MB"
    assert terminal.shown() == drawn(f"{label}: 1 of 2 (50%)", f"{label}: 2 of 2 (100%)", "")


def test_an_import_of_a_folder_says_how_far_it_is(terminal: Terminal, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for number in range(4):
        (source / f"note-{number}.md").write_text(f"The {number}th thing to know.")
    with Bank.init(tmp_path) as bank, redirect_stderr(terminal.stream), listening():
        assert [outcome.status for outcome in import_from(bank, source, kind="markdown")] == ["new"] * 4
    assert "importing: 2 of 4 (50%)" in terminal.shown()
