"""Which files are being worked on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memlane import Bank
from memlane.history import working
from repositories import git


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with eight files and a commit for each."""
    git(tmp_path, "init", "-q")
    for number in range(8):
        commit(tmp_path, f"src/f{number}.py")
    return tmp_path


def commit(project: Path, name: str, text: str = "a = 1\n") -> None:
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).write_text(text)
    git(project, "add", name)
    git(project, "commit", "-qm", name)


def found(project: Path) -> list[str]:
    with Bank.init(project) as bank:
        return working.files_in_work(bank, 10)


def test_the_last_commits_count(project: Path) -> None:
    assert found(project) == [f"src/f{number}.py" for number in range(3, 8)]


def test_changed_files_come_first_the_latest_change_before_others(project: Path) -> None:
    for seconds, number in ((1_900_000_000, 1), (1_900_000_100, 0)):
        (project / f"src/f{number}.py").write_text("a = 22\n")
        os.utime(project / f"src/f{number}.py", (seconds, seconds))
    assert found(project) == ["src/f0.py", "src/f1.py", *(f"src/f{number}.py" for number in range(3, 8))]


def test_staged_files_count(project: Path) -> None:
    (project / "src/f0.py").write_text("a = 22\n")
    (project / "new.py").write_text("b = 1\n")
    git(project, "add", "src/f0.py", "new.py")
    assert set(found(project)) >= {"src/f0.py", "new.py"}


def test_of_a_short_history_the_last_commit_counts(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    assert found(tmp_path) == []
    commit(tmp_path, "a.py")
    assert found(tmp_path) == []
    commit(tmp_path, "b.py")
    assert found(tmp_path) == ["b.py"]


def test_paths_start_at_the_project_and_the_bank_is_left_out(project: Path) -> None:
    inner = project / "src"
    with Bank.init(inner) as bank:
        bank.add("A note.", title="Note")
        git(project, "add", "-A")
        assert working.files_in_work(bank, 10) == [*(f"f{number}.py" for number in range(3, 8)), "memlane.toml"]


def test_no_repository_no_files(tmp_path: Path) -> None:
    assert found(tmp_path) == []


def test_no_filter_of_the_repository_runs(project: Path) -> None:
    """git would run it to see whether a file that looks changed is so."""
    git(project, "config", "filter.evil.clean", f"touch {project}/ran; cat")
    commit(project, ".gitattributes", "*.py filter=evil\n")
    (project / "ran").unlink(missing_ok=True)
    (project / "src/f0.py").write_text("a = 2\n")
    assert found(project)[0] == "src/f0.py"
    assert not (project / "ran").exists()


def test_the_branches_there_are(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    git(project, "branch", "feature/pdf")
    with Bank.init(project) as bank:
        assert working.all_branches(bank) == {"main", "feature/pdf"}
    with Bank.init(tmp_path_factory.mktemp("elsewhere")) as bank:
        assert working.all_branches(bank) is None
