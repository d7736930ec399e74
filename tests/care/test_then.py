"""What was said in a session is held against the code of that time, even if it is captured or distilled much later."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memlane import Bank
from memlane.capture.distil.candidates import Candidate
from memlane.capture.messages import capture
from memlane.care.distilled import store
from repositories import git, repo, save

__all__ = ["repo"]
LOGIN = "def login(user):\n    return user\n"
TEXT = "The form adds a blank, which src/auth.py:login does not strip."


@pytest.fixture
def project(repo: Path) -> Path:
    (repo / "src").mkdir()
    write(repo, LOGIN)
    save(repo, date="2025-02-01")
    return repo


def write(project: Path, text: str, name: str = "src/auth.py") -> None:
    (project / name).write_text(text)


def said(text: str = TEXT, date: str = "2025-03-01T10:00:00Z", files: tuple[str, ...] = ()) -> Candidate:
    return Candidate(text, "lesson", 0.8, "s1", date, (3,), ("u3",), files, "assistant", {})


def verdicts(project: Path, *candidates: Candidate) -> list[tuple[str, str]]:
    with Bank.open(project) as bank:
        store(bank, candidates)
        return [(verdict.verdict, verdict.why) for verdict in bank.fresh()]


def test_code_that_changed_before_the_session_was_distilled_has_drifted(project: Path) -> None:
    write(project, LOGIN.replace("return user", "return user.strip()"))
    save(project, date="2025-04-01")
    assert verdicts(project, said()) == [("drifted", "src/auth.py:login changed since 2025-03-01")]


def test_code_that_did_not_change_since_is_fresh_although_its_file_did(project: Path) -> None:
    write(project, LOGIN + "\n\ndef logout():\n    pass\n")
    save(project, date="2025-04-01")
    assert verdicts(project, said()) == [("fresh", "")]


def test_what_was_said_after_the_change_is_fresh(project: Path) -> None:
    write(project, LOGIN.replace("return user", "return user.strip()"))
    save(project, date="2025-02-20")
    assert verdicts(project, said()) == [("fresh", "")]


def test_code_that_is_gone_since_is_orphaned(project: Path) -> None:
    git(project, "rm", "-q", "src/auth.py")
    save(project, date="2025-04-01")
    assert verdicts(project, said()) == [("orphaned", "src/auth.py is gone")]


def test_a_file_that_was_not_written_since_is_as_it_was_committed_or_not(project: Path) -> None:
    write(project, LOGIN.replace("return user", "return user.strip()"))
    then = datetime(2025, 2, 28, tzinfo=UTC).timestamp()
    os.utime(project / "src/auth.py", (then, then))
    assert verdicts(project, said()) == [("fresh", "")]


def test_of_a_file_that_was_not_committed_yet_the_first_version_counts(project: Path) -> None:
    write(project, "A = 1\n", "src/new.py")
    save(project, date="2025-03-02")
    assert verdicts(project, said("The limit in src/new.py is 1, as the API allows no more.")) == [("fresh", "")]
    write(project, "A = 2\n", "src/new.py")
    assert verdicts(project) == [("drifted", "src/new.py changed since 2025-03-01")]


def test_the_log_of_head_tells_which_commit_was_checked_out(project: Path) -> None:
    git(project, "checkout", "-q", "-b", "other", date="2025-02-10")
    write(project, LOGIN.replace("return user", "return user.strip()"))
    save(project, date="2025-02-20")
    git(project, "checkout", "-q", "main", date="2025-02-25")
    assert verdicts(project, said()) == [("fresh", "")]
    git(project, "checkout", "-q", "other", date="2025-03-10")
    assert verdicts(project) == [("drifted", "src/auth.py:login changed since 2025-03-01")]


def test_without_that_log_the_last_commit_before_counts(project: Path) -> None:
    write(project, LOGIN.replace("return user", "return user.strip()"))
    save(project, date="2025-04-01")
    git(project, "reflog", "expire", "--expire=all", "--all")
    assert verdicts(project, said()) == [("drifted", "src/auth.py:login changed since 2025-03-01")]


def test_a_file_that_only_the_evidence_names_counts(project: Path) -> None:
    write(project, LOGIN + "# more\n")
    save(project, date="2025-04-01")
    text = "The form adds a blank that login must strip, because it is part of the name else."
    assert verdicts(project, said(text, files=("src/auth.py",))) == [
        ("drifted", "src/auth.py changed since 2025-03-01")
    ]


def test_a_name_without_its_folder_means_the_one_file_of_that_name(project: Path) -> None:
    write(project, LOGIN + "# more\n")
    save(project, date="2025-04-01")
    text = "The form adds a blank that auth.py must strip, because it is part of the name else."
    found = verdicts(project, said(text, files=("auth.py",)))
    assert found == [("drifted", "src/auth.py changed since 2025-03-01")]


def test_outside_of_git_code_is_compared_from_now_on(tmp_path: Path) -> None:
    Bank.init(tmp_path).close()
    (tmp_path / "src").mkdir()
    write(tmp_path, LOGIN)
    assert verdicts(tmp_path, said()) == [("fresh", "")]
    write(tmp_path, "")
    assert verdicts(tmp_path) == [("orphaned", "login is gone from src/auth.py")]


def captured(project: Path, date: str = "2025-03-01") -> Bank:
    message = {"role": "assistant", "timestamp": f"{date}T10:00:00Z", "content": f"I looked.\n{TEXT}"}
    (project.parent / "talk.jsonl").write_text(json.dumps(message) + "\n")
    bank = Bank.open(project)
    assert capture(bank, project.parent / "talk.jsonl").captured == 1
    return bank


def test_a_captured_record_is_compared_with_the_code_of_its_time(project: Path) -> None:
    write(project, LOGIN.replace("return user", "return user.strip()"))
    save(project, date="2025-04-01")
    with captured(project) as bank:
        [record] = bank.list(lane="records")
        assert bank.outdated(record) == "drifted: src/auth.py:login changed since 2025-03-01"
        assert [verdict.verdict for verdict in bank.fresh()] == ["drifted"]


def test_a_captured_record_without_anchors_is_compared_with_the_code_of_its_time_as_well(project: Path) -> None:
    write(project, LOGIN.replace("return user", "return user.strip()"))
    save(project, date="2025-04-01")
    with captured(project) as bank:
        assert not (bank.root / "anchors.jsonl").exists()
        (bank.root / "private" / "anchors.jsonl").unlink()
        assert [verdict.verdict for verdict in bank.fresh()] == ["drifted"]
