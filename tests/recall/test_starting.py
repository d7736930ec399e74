"""What a session starts with: chosen by worth, not by date."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conftest import trusted
from memlane import Bank
from memlane.capture.distil.candidates import Candidate
from memlane.care.distilled import store
from memlane.core.dates import utc_now


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank.init(tmp_path)


def candidate(
    text: str, kind: str, confidence: float = 0.8, *, date: str = "2026-01-01", branch: str = ""
) -> Candidate:
    return Candidate(text, kind, confidence, "s1", date, (1,), (), (), "user", {}, branch)


def titles(bank: Bank, **asked: Any) -> list[str]:
    return [memory.text.strip() for memory in bank.snapshot(**asked).memories]


def test_rules_come_first_then_open_work_then_the_files_in_work_then_the_rest(bank: Bank) -> None:
    bank.add("Lunch was soup.", created_at="2026-01-05")
    bank.add("Tokens in src/auth.py last a day.", created_at="2025-01-01")
    bank.add("The export is half done.", tags=["open"], created_at="2025-01-02")
    bank.add("Always lint.", tags=["rule"], created_at="2025-01-03")
    bank.add("House style: short sentences.", tags=["pinned"], created_at="2025-01-04")
    bank.add("Keep it stable.", lane="vault", type="mission", tier="canon")
    expected = [
        "Keep it stable.",
        "House style: short sentences.",
        "Always lint.",
        "The export is half done.",
        "Tokens in src/auth.py last a day.",
        "Lunch was soup.",
    ]
    assert titles(bank, recent=5, files=["src/auth.py"]) == expected
    bank.search("lunch")  # now there is an index
    assert titles(bank, recent=5, files=["src/auth.py"]) == expected
    assert titles(bank) == expected[:3]
    assert titles(bank, recent=0) == expected[:4]


def test_what_nobody_confirmed_comes_after_what_was_written_on_purpose(bank: Bank) -> None:
    store(bank, [candidate("Use uv, never pip.", "rule"), candidate("The driver is not thread-safe.", "lesson", 0.9)])
    store(bank, [candidate("SQLite has no DROP CONSTRAINT.", "lesson", 0.95)])
    bank.add("Always lint.", tags=["rule"], created_at="2020-01-01")
    bank.add("Deploys go out on Tuesdays.", created_at="2020-01-01")
    text = bank.snapshot(recent=2)
    assert [memory.text.strip() for memory in text.memories] == [
        "Always lint.",
        "Use uv, never pip.",
        "Deploys go out on Tuesdays.",
        "SQLite has no DROP CONSTRAINT.",
    ]
    assert text.count("· unconfirmed") == 2


def test_rules_that_nobody_confirmed_do_not_fill_the_block(bank: Bank) -> None:
    texts = (
        "Use uv, never pip.",
        "Ask before you push to main.",
        "Tests never sleep.",
        "Dates are written in UTC.",
        "No mocks of our own code.",
        "Migrations are reviewed by Imke.",
        "Errors are sentences with a hint.",
    )
    store(bank, [candidate(text, "rule") for text in texts])
    assert len(titles(bank, recent=0)) == 5


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("See src/auth.py:12 for it.", True),
        ("See [[src/auth.py#login]].", True),
        ("In `auth.py` tokens expire.", True),
        ("It is in ./src/auth.py.", True),
        ("It is in lib/auth.py.", False),
        ("It is in oauth.py.", False),
        ("It is in src/auth.pyc.", False),
        ("Look into src/web/__init__.py.", True),
        ("Look into __init__.py.", False),
    ],
)
def test_which_memories_are_about_a_file(bank: Bank, text: str, named: bool) -> None:
    bank.add(text, title="Something")
    found = titles(bank, recent=0, files=["src/auth.py", "src/web/__init__.py"])
    assert found == ([text] if named else [])


def test_what_the_assistant_said_is_left_out_unless_asked_for(bank: Bank, tmp_path: Path) -> None:
    bank.add("All green:\nsrc/auth.py is next.", lane="records", thread="t")
    assert titles(bank, recent=5, files=["src/auth.py"]) == []
    (tmp_path / "memlane.toml").write_text("[memory]\nenabled = true\n[hook]\nrecords = true\n")
    trusted(tmp_path / "memlane.toml")
    with Bank.open(tmp_path) as asked:
        assert titles(asked, recent=5, files=["src/auth.py"]) == ["All green:\nsrc/auth.py is next."]
        assert titles(asked, recent=0, files=["src/auth.py"]) == []


def test_open_work_of_another_branch_is_left_out(bank: Bank) -> None:
    texts = ("The export is half done.", "Invoices have no numbers yet.", "The login still needs a captcha.")
    branches = ("pdf", "main", "")
    store(bank, [candidate(text, "open", branch=branch) for text, branch in zip(texts, branches, strict=True)])
    assert sorted(titles(bank, recent=5)) == sorted(texts)
    assert sorted(titles(bank, recent=5, branch="pdf")) == [texts[0], texts[2]]
    assert titles(bank, recent=5, branch="") == [texts[2]]


def test_what_was_not_said_for_long_comes_later(bank: Bank) -> None:
    store(bank, [candidate("The driver is not thread-safe.", "lesson", 0.9, date="2020-01-01")])
    store(bank, [candidate("SQLite has no DROP CONSTRAINT.", "lesson", 0.7, date=f"{utc_now():%Y-%m-%d}")])
    assert titles(bank, recent=2) == ["SQLite has no DROP CONSTRAINT.", "The driver is not thread-safe."]
