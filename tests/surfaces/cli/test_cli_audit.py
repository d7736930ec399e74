"""`memlane doctor --only secrets`: secrets in files and in the git history."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from commands import CANARY, Run
from memlane import Bank


def test_audit_finds_what_should_not_be_there(run: Run, bank: Bank) -> None:
    assert run("doctor", "--only", "secrets").code == 0
    (bank.root / "old.md").write_text(f"line\nkey {CANARY}\n")
    result = run("doctor", "--only", "secrets", "--json")
    assert (result.code, [(Path(leak["path"]).name, leak["line"]) for leak in result.json]) == (4, [("old.md", 2)])
    assert CANARY not in result.out + run("doctor", "--only", "secrets").out


@pytest.mark.parametrize("name", ["vault.jsonl", "export.json", "vault.jsonl.rejected", ".memlane-1-ab.tmp"])
def test_audit_reads_what_json_hides(run: Run, bank: Bank, name: str) -> None:
    """An escaped line end glues a letter to the secret."""
    (bank.root / name).write_text(json.dumps({"id": "a", "text": f"one\n{CANARY}\ttwo"}) + "\n")
    result = run("doctor", "--only", "secrets", "--json")
    assert (result.code, [leak["line"] for leak in result.json]) == (4, [1])


def test_an_audited_finding_can_be_allowed_with_a_reason(run: Run, bank: Bank, tmp_path: Path) -> None:
    (bank.root / "old.md").write_text(f"key {CANARY}\n")
    fingerprint = run("doctor", "--only", "secrets", "--json").json[0]["fingerprint"]
    with open(tmp_path / "memlane.toml", "a") as file:
        file.write(f'[[allow]]\nfingerprint = "{fingerprint}"\nreason = "revoked long ago"\n')
    assert (
        run("doctor", "--only", "secrets").code == 4
    )  # a configuration that changed does not count before it is trusted again
    assert run("trust", "--yes").code == 0
    assert run("doctor", "--only", "secrets").code == 0


def test_audit_of_any_folder_needs_no_bank(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/log.jsonl").write_text(json.dumps({"text": f"token {CANARY}"}))
    assert run("doctor", "--only", "secrets", "notes").code == 4
    assert run("doctor", "--only", "secrets", "gone").code == 2


def test_audit_of_the_git_history_finds_what_was_deleted(run: Run, bank: Bank, tmp_path: Path) -> None:
    def git(*args: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *identity, *args], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    leak = bank.root / "old note.md"
    leak.write_text(f"key {CANARY}\n")
    git("add", "-A")
    git("commit", "-qm", "one")
    leak.unlink()
    git("add", "-A")
    git("commit", "-qm", "two")
    assert run("doctor", "--only", "secrets").code == 0
    result = run("doctor", "--only", "secrets", "--history", "--json")
    assert (result.code, len(result.json), result.json[0]["path"]) == (4, 1, ".memories/old note.md")
    assert len(result.json[0]["commit"]) == 40


def test_audit_of_the_history_reads_merges(run: Run, bank: Bank, tmp_path: Path) -> None:
    def git(*args: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *identity, *args], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    for name in ("base", "side"):
        (bank.root / f"{name}.md").write_text("x")
        git("add", "-A")
        git("commit", "-qm", name)
        if name == "base":
            git("checkout", "-qb", "side")
    git("checkout", "-q", "main")
    git("merge", "-q", "--no-ff", "--no-commit", "side")
    (bank.root / "evil.md").write_text(f"key {CANARY}\n")
    git("add", "-A")
    git("commit", "-qm", "merge")
    git("rm", "-q", ".memories/evil.md")
    git("commit", "-qm", "gone")
    assert run("doctor", "--only", "secrets", "--history").code == 4
