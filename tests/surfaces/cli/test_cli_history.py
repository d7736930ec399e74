"""`memlane history`: the versions of a memory, in the vault's log and in git."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from commands import Run
from memlane import Bank
from memlane.config import user_state


@pytest.fixture
def note(run: Run, bank: Bank) -> str:
    return run("add", "Deploys go out on Tuesdays.", "--title", "Deploy day", "-t", "release").out.strip()


def git(folder: Path, *args: str) -> str:
    identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    return subprocess.run(["git", *identity, *args], cwd=folder, check=True, capture_output=True, text=True).stdout


def committed(folder: Path, subject: str) -> str:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", subject)
    return git(folder, "rev-parse", "HEAD").strip()


def test_the_history_of_a_vault_record(run: Run, bank: Bank) -> None:
    id = run("vault", "add", "Projects: dashboard", "--tier", "register", "--topic", "now").out.strip()
    run("vault", "update", id, "Projects: search")
    run("update", id, "--tag", "x")
    run("rm", id)
    run("restore", id)
    run("vault", "promote", id, "We build a search.")
    run("rm", id)
    rows = run("history", id, "--json").json
    assert [(row["version"], row["what"]) for row in rows] == [
        ("7", "deleted"),
        ("6", "promoted to canon"),
        ("5", "restored"),
        ("4", "deleted"),
        ("3", "changed tags"),
        ("2", "changed text"),
        ("1", "added"),
    ]
    assert run("history", id, "--show", "1").out == "Projects: dashboard\n"
    assert run("history", id.removeprefix("vault:")).code == 0
    assert run("history", id, "--show", "9").code == 3


def test_the_history_of_a_vault_record_that_only_the_journal_has(run: Run, bank: Bank, tmp_path: Path) -> None:
    id = run("vault", "add", "Projects: dashboard").out.strip()
    (tmp_path / ".memories/vault.jsonl").unlink()
    assert [row["what"] for row in run("history", id, "--json").json] == ["added"]
    assert run("restore", id, "--version", "1").out.strip() == id
    assert run("get", id).out == "Projects: dashboard\n"


def test_the_history_of_a_note_is_that_of_its_file(run: Run, bank: Bank, note: str, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    first = committed(tmp_path, "First: ünïcode\n\nand more")
    git(tmp_path, "mv", ".memories/deploy-day.md", ".memories/release-day.md")
    second = committed(tmp_path, "Rename")
    bank.update("notes:release-day", "Deploys go out on Fridays.\n")
    third = committed(tmp_path, "Change")
    rows = [row for row in run("history", "notes:release-day", "--json").json if row["author"] == "Ann"]
    assert [(row["version"], row["author"], row["what"], row["path"]) for row in rows] == [
        (third, "Ann", "Change", ".memories/release-day.md"),
        (second, "Ann", "Rename", ".memories/release-day.md"),
        (first, "Ann", "First: ünïcode", ".memories/deploy-day.md"),
    ]
    assert run("history", "release-day", "--show", first[:8]).out.endswith("\nDeploys go out on Tuesdays.\n")
    assert run("history", "notes:deploy-day").out.count("Ann") == 2  # where it is gone from, too
    assert run("history", "release-day", "--show", "HEAD").code == 3
    assert run("history", "release-day", "--show", "--output=x").code == 3


def test_git_settings_start_no_other_program(run: Run, note: str, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    committed(tmp_path, "one")
    for key in ("core.fsmonitor", "core.pager", "gpg.program", "diff.external"):
        git(tmp_path, "config", key, f"touch {tmp_path}/started; false")
    git(tmp_path, "config", "log.showSignature", "true")
    assert run("history", note).code == 0
    assert not (tmp_path / "started").exists()


def test_another_repository_in_the_environment_is_not_meant(
    run: Run,
    note: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    git(tmp_path, "init", "-q")
    committed(tmp_path, "one")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert run("history", note).code == 0


def test_without_git_and_journal_there_is_no_history_of_a_file(run: Run, note: str, tmp_path: Path) -> None:
    shutil.rmtree(user_state() / "journal")
    result = run("history", note)
    assert (result.code, "in no git repository" in result.err) == (3, True)
    git(tmp_path, "init", "-q")
    result = run("history", note)
    assert (result.code, "git knows no version" in result.err) == (3, True)
    assert run("history", "nope").code == 3
    assert run("history", "notes:../x").code == 2


def test_the_history_of_a_file_is_not_that_of_others_that_its_name_would_match(
    run: Run, bank: Bank, tmp_path: Path
) -> None:
    (bank.root / "[ab].md").write_text("Brackets.\n")
    (bank.root / "a.md").write_text("A letter.\n")
    git(tmp_path, "init", "-q")
    committed(tmp_path, "both")
    (bank.root / "a.md").write_text("Another letter.\n")
    committed(tmp_path, "only the letter")
    assert [version["what"] for version in run("history", "notes:[ab]", "--json").json] == ["both"]
