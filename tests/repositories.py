"""Real git repositories with a bank in them, for the tests of history, deletion and forgetting."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from memlane import Bank


def git(folder: Path, *args: str, date: str = "2025-06-01", ok: bool = True) -> str:
    environment = {**os.environ, "GIT_COMMITTER_DATE": f"{date}T12:00:00Z", "GIT_AUTHOR_DATE": f"{date}T12:00:00Z"}
    who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *who, *args], cwd=folder, env=environment, capture_output=True, text=True)
    assert (done.returncode == 0) == ok, done.stdout + done.stderr
    return done.stdout.strip()


def save(folder: Path, message: str = "Work", date: str = "2025-06-01") -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message, date=date)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with an empty bank, committed."""
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q")
    Bank.init(folder, git=True).close()
    save(folder, "Start", "2025-01-01")
    return folder


def branches(repo: Path, ours: Callable[[Bank], object], theirs: Callable[[Bank], object]) -> Path:
    """Do one thing on the branch main and another on the branch other, in a work tree of its own, which is returned."""
    other = repo.parent / "other"
    git(repo, "worktree", "add", "-q", "-b", "other", str(other))
    for folder, do in ((repo, ours), (other, theirs)):
        with Bank.open(folder) as bank:
            do(bank)
        save(folder)
    return other
