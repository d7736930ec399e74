"""A text on which a rule breaks is not stored, and costs no other text anything, whichever way it comes in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands import Run
from memlane import Bank, Refused
from memlane.gate.secrets import assignments, redact, scan
from samples import transcript

TRIP = "This token trips a rule over its own feet."  # a text without any such word gets to no rule
# Two lines each: one line alone is not worth keeping of a session.
GOOD = (
    "The API listens on port 8080 in every environment.\nThe proxy in front of it terminates TLS.",
    "Deploys go out on Tuesdays, after the review meeting.\nNobody deploys on a Friday.",
)

Find = Iterator[tuple[str, str, int, int]]


@pytest.fixture(autouse=True)
def broken_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """One rule breaks on one sentence, as a rule once broke on a key that was cut off."""
    find = assignments.find

    def breaks(text: str, lowered: str, held: set[str]) -> Find:
        if TRIP in text:
            raise ZeroDivisionError(text)
        return find(text, lowered, held)

    monkeypatch.setattr(assignments, "find", breaks)


def test_the_scanner_says_that_it_cannot_judge() -> None:
    text = f"before {TRIP}"
    (finding,) = scan(text)
    assert (finding.rule, finding.start, finding.end) == ("unjudged", 0, len(text))
    assert redact(text, [finding]) == "[REDACTED:unjudged]"


def test_it_is_refused_and_the_next_is_stored(run: Run, bank: Bank) -> None:
    with pytest.raises(Refused, match="could not be judged"):
        bank.add(TRIP)
    assert run("add", GOOD[0]).code == 0
    refused = run("add", TRIP)
    assert (refused.code, "Traceback" in refused.err, TRIP in refused.err) == (4, False, False)


def test_a_session_keeps_its_other_messages(run: Run, bank: Bank, tmp_path: Path) -> None:
    path = transcript(tmp_path / "t.jsonl", GOOD[0], f"One line.\n{TRIP}", GOOD[1])
    assert run("capture", path).code == 0
    assert sorted(memory.text for memory in bank.list(lane="records")) == sorted(GOOD)


def test_a_hook_keeps_the_other_messages(run: Run, bank: Bank, tmp_path: Path) -> None:
    path = transcript(tmp_path / "t.jsonl", GOOD[0], f"One line.\n{TRIP}", GOOD[1])
    payload = {"session_id": "s1", "cwd": str(tmp_path), "transcript_path": str(path)}
    assert run("hook", "claude-code", "stop", stdin=json.dumps(payload)).code == 0
    assert sorted(memory.text for memory in bank.list(lane="records")) == sorted(GOOD)


def test_an_import_takes_the_other_files(run: Run, bank: Bank, tmp_path: Path) -> None:
    folder = tmp_path / "notes-of-old"
    folder.mkdir()
    for name, text in zip(("a", "b", "c"), (GOOD[0], TRIP, GOOD[1]), strict=True):
        (folder / f"{name}.md").write_text(text + "\n")
    result = run("import", folder, "--lane", "notes")
    assert "Traceback" not in result.err
    assert sorted(memory.text.strip() for memory in bank.list(lane="notes")) == sorted(GOOD)


def test_an_audit_and_a_doctor_read_on(run: Run, bank: Bank) -> None:
    """What came by a pull is named; so is what comes after it."""
    bank.add(GOOD[0], lane="notes")
    (bank.root / "b.md").write_text(f"{TRIP}\n")
    (bank.root / "c.md").write_text("db_password = '" + "tr0ub4dor&3" + "'\n")
    audit = run("doctor", "--only", "secrets", "--json")
    assert (audit.code, sorted((Path(leak["path"]).name, leak["rule"]) for leak in audit.json)) == (
        4, [("b.md", "unjudged"), ("c.md", "password")],
    )  # fmt: skip
    doctor = run("doctor")
    assert ("b.md" in doctor.out + doctor.err, "c.md" in doctor.out + doctor.err) == (True, True)
    assert "Traceback" not in doctor.err


def test_reading_goes_on(run: Run, bank: Bank) -> None:
    bank.add(GOOD[0], lane="notes")
    (bank.root / "b.md").write_text(f"{TRIP}\n")
    for command in (("search", "port environment"), ("context", "port environment"), ("list",), ("export",)):
        result = run(*command)
        assert (command, result.code, "Traceback" in result.err) == (command, 0, False)
        assert "8080" in result.out or command[0] in ("list", "export")
