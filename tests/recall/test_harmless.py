"""What was found harmless is not looked at again, and nothing else passes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from memlane import Bank
from memlane.recall import harmless, leaving
from memlane.recall.harmless import MANY, passing

KEY = "AKIA" + "Q7RSTUVWXYZ23456"


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank.init(tmp_path)


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harmless, "_kept", {})


def notes_of(home: Path) -> list[Path]:
    return list((home / ".local/state/memlane/indices").glob("*.harmless"))


def asked(bank: Bank, check: str, *texts: str, bad: str = "") -> list[str]:
    """The texts that a look was asked about, with an empty memory as in a new process."""
    harmless._kept.clear()
    seen: list[str] = []

    def look(text: str) -> bool:
        seen.append(text)
        return text != bad

    assert passing(bank, check, texts, look) == [text != bad for text in texts]
    return seen


def test_a_text_that_passed_is_not_looked_at_again_and_one_that_did_not_always_is(bank: Bank) -> None:
    assert asked(bank, "secrets", "one", "two", "three", bad="two") == ["one", "two", "three"]
    assert asked(bank, "secrets", "one", "two", "three", bad="two") == ["two"]


def test_another_check_or_another_bank_has_notes_of_its_own(bank: Bank, tmp_path: Path) -> None:
    asked(bank, "secrets", "one")
    (tmp_path / "other").mkdir()
    assert asked(bank, "instructions", "one") == ["one"]
    assert asked(Bank.init(tmp_path / "other"), "secrets", "one") == ["one"]


def test_other_rules_look_at_everything_again(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    asked(bank, "secrets", "one")
    monkeypatch.setattr(harmless, "_edition", lambda: "of tomorrow")
    assert asked(bank, "secrets", "one") == ["one"]


def test_a_damaged_file_passes_nothing_and_is_written_on(bank: Bank, home: Path) -> None:
    asked(bank, "secrets", "one")
    (file,) = notes_of(home)
    for damage in (b"", b"\xff\0\n", b"not hex\n"):
        file.write_bytes(damage)
        assert asked(bank, "secrets", "one") == ["one"]


def test_the_file_is_the_users_alone_has_no_words_and_begins_anew_when_it_is_long(bank: Bank, home: Path) -> None:
    asked(bank, "secrets", "one")
    (file,) = notes_of(home)
    assert (file.stat().st_mode & 0o777, [len(line) for line in file.read_bytes().split(b"\n")]) == (0o600, [32, 32, 0])
    for start in range(0, 3_000, 50):
        asked(bank, "secrets", *map(str, range(start, start + 50)))
        if not notes_of(home):
            break
    assert (start, notes_of(home)) == (2_000, [])


def test_many_at_once_are_noted_apart_from_what_a_hook_reads(bank: Bank, home: Path) -> None:
    texts = [*map(str, range(MANY))]
    asked(bank, "secrets", "one")
    (file,) = notes_of(home)
    before = file.read_bytes()
    assert asked(bank, "secrets", *texts, bad="7") == texts
    assert asked(bank, "secrets", *texts, bad="7") == ["7"]
    assert (file.read_bytes(), len(notes_of(home))) == (before, 2)


def test_forget_removes_the_notes(bank: Bank, home: Path) -> None:
    kept = bank.add("Deploys go out on Tuesdays.", title="Deploys")
    bank.get(kept.id)
    asked(bank, "secrets", *map(str, range(MANY)))
    assert len(notes_of(home)) == 2
    bank.forget(kept.id)
    assert notes_of(home) == []


def test_a_secret_that_came_past_the_gate_is_blanked_every_time(bank: Bank) -> None:
    (bank.root / "leak.md").write_text(f"# Leak\n\nkey {KEY}\n")
    for _ in range(2):
        harmless._kept.clear()
        assert KEY not in bank.get("notes:leak").text
        assert KEY not in bank.snapshot(recent=5)


def test_a_session_that_starts_as_the_last_one_loads_no_rules(bank: Bank, tmp_path: Path) -> None:
    bank.add("Deploys need a token, and go out on Tuesdays.", title="Deploy day", tags=["pinned"])
    bank.search("deploys")
    code = (
        "import sys; from memlane.surfaces.hook import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    )
    loaded = []
    for _ in range(2):
        command = [sys.executable, "-c", code, "claude-code", "session-start"]
        given = '{"session_id": "5f0c7a52-6c1e-4f0e-9a39-0e8a8d1d7f10"}'
        done = subprocess.run(command, input=given, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert "Tuesdays" in done.stdout
        loaded.append({"memlane.gate.secrets", "memlane.core.instructions"} & {*done.stderr.split()})
    assert loaded == [{"memlane.gate.secrets"}, set()]


def test_of_long_hits_only_some_are_remembered(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving, "_passed", type(leaving._passed)())
    monkeypatch.setattr(leaving, "LENGTH", 25_000, raising=False)
    for number in range(6):
        (bank.root / f"n{number}.md").write_text(f"Topic{number} is long.\n\n" + "More is said here.\n\n" * 500)
    (bank.root / "book.md").write_text("A book is longer.\n\n" + "More is said here.\n\n" * 2_000)
    for query in (*(f"topic{number}" for number in range(6)), "book"):
        assert len(bank.search(query, limit=1)) == 1
    assert sum(len(said[1].text) for said in leaving._passed) < leaving.LENGTH  # type: ignore[index]
