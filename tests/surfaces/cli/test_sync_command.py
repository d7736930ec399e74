"""`memlane sync` as a person types it."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from commands import Run
from memlane import Bank
from memlane.care import sync
from memlane.core.errors import StorageError


@pytest.fixture
def remote(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("remote")


def test_add_sync_status_remove(bank: Bank, run: Run, remote: Path) -> None:
    bank.add("Deploys go out on Tuesdays.", title="Deploy day")
    assert run("sync", "add", "team", str(remote), "--author", "ann").out == "team\n"
    assert run("sync", "status").out.splitlines() == [
        f"team\t{remote}\tall lanes, shared\tyou are ann",
        "  never in step yet",
        "  1 file to be sent: deploy-day.md",
    ]
    assert run("sync").out == "team: 1 sent\n"
    assert run("sync", "team").out == "team: in step already\n"
    [status] = run("sync", "status", "--json").json
    assert (status["files"], status["waiting"], status["failed"]) == (1, [], "")
    assert run("sync", "remove", "team").out == "team\n"
    assert run("sync", "status", "--json").json == []


def test_without_a_remote_it_says_how_to_add_one(bank: Bank, run: Run) -> None:
    found = run("sync")
    assert (found.code, found.out) == (3, "")
    assert "memlane sync add NAME" in found.err


def test_a_name_that_nobody_has(bank: Bank, run: Run, remote: Path) -> None:
    run("sync", "add", "team", str(remote))
    assert run("sync", "teem").code == 3
    assert run("sync", "remove", "teem").code == 3


def test_a_name_is_given_once(bank: Bank, run: Run, remote: Path) -> None:
    run("sync", "add", "team", str(remote))
    assert run("sync", "add", "team", str(remote)).code == 5
    assert run("sync", "add", "status", str(remote)).code == 2


def test_the_bank_is_not_its_own_remote(bank: Bank, run: Run) -> None:
    assert run("sync", "add", "team", str(bank.root / "team")).code == 2


def test_the_project_is_no_remote(bank: Bank, run: Run) -> None:
    """What is shared would be committed with the code."""
    assert run("sync", "add", "team", str(bank.root.parent)).code == 2
    assert run("sync", "status", "--json").json == []


def test_a_password_in_an_address_is_refused_and_not_repeated(bank: Bank, run: Run) -> None:
    found = run("sync", "add", "team", "postgresql://ann:hunter2secret@db/memory")
    assert found.code == 2
    assert "hunter2secret" not in found.out + found.err


def test_what_failed_is_in_the_status(bank: Bank, run: Run, remote: Path) -> None:
    bank.add("Deploys go out on Tuesdays.", title="Deploy day")
    run("sync", "add", "team", str(remote))
    run("sync")
    for path in remote.iterdir():
        path.rename(path.with_name("elsewhere"))
    assert run("sync").code == 1
    assert "the last sync failed: " in run("sync", "status").out


def test_what_is_known_of_remotes_lies_outside_of_the_project(
    bank: Bank, run: Run, remote: Path, tmp_path: Path
) -> None:
    run("sync", "add", "team", str(remote))
    named = [path for path in tmp_path.rglob("*") if path.is_file() and str(remote).encode() in path.read_bytes()]
    assert named == []
    [settings] = [each.settings for each in sync.status(bank)]
    assert (settings.name, settings.url, settings.scopes) == ("team", str(remote), ("shared",))


def test_a_remote_that_has_a_bank_already_is_pointed_out(bank: Bank, run: Run, remote: Path) -> None:
    bank.add("Deploys go out on Tuesdays.", title="Deploy day")
    assert "there is a bank already" not in run("sync", "add", "team", str(remote)).err
    run("sync")
    run("sync", "remove", "team")
    assert "remove the remote now, or the two become one" in run("sync", "add", "again", str(remote)).err


def test_staying_in_step_ends_by_the_signal_that_service_managers_send(bank: Bank, run: Run, remote: Path) -> None:
    bank.add("Deploys go out on Tuesdays.", title="Deploy day")
    run("sync", "add", "team", str(remote))
    words = [sys.executable, "-u", "-m", "memlane", "--bank", str(bank.root), "sync", "now", "--watch"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        first = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert (first, *process.communicate(timeout=120), process.returncode) == ("team: 1 sent\n", "", "", 0)


def test_what_is_meant_for_one_sync_is_not_promised_for_many(bank: Bank, run: Run, remote: Path) -> None:
    run("sync", "add", "team", str(remote))
    done = run("sync", "--watch", "--deletions")
    assert done.code == 2
    assert done.err == (
        "error: --deletions is for one sync, and --watch makes many.\n"
        "next: Run `memlane sync --deletions` once, and then `memlane sync --watch`.\n"
    )


@pytest.mark.parametrize("beginning", ["", "//", "postgresql:/", "postgresql:", "S3:/"])
def test_an_address_without_its_beginning_is_not_repeated(bank: Bank, run: Run, beginning: str) -> None:
    done = run("sync", "add", "team", beginning + "ann:" + "open sesame" + "@db.example.org/memory")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "error: This looks like an address without its beginning.\n"
        "next: Put postgresql:// or s3:// before it; a folder of such a name is ./NAME.\n"
    )


def test_a_scope_with_a_slash_is_told_why_it_cannot_be_shared(bank: Bank, run: Run, remote: Path) -> None:
    done = run("sync", "add", "team", str(remote), "--scope", "team/a")
    assert (done.code, done.err.partition("next: ")[2]) == (
        2,
        "Give it a shorter name, of letters, digits, spaces and punctuation, without slashes.\n",
    )


@pytest.mark.parametrize("name", ["add", "now", "remove", "status", "te am", ""])
def test_a_word_of_the_command_is_no_name_of_a_remote(bank: Bank, run: Run, remote: Path, name: str) -> None:
    assert run("sync", "add", name, str(remote)).code == 2
    assert sync.status(bank) == []


def test_undo_takes_back_what_was_changed_last_and_not_what_the_command_has_brought(
    bank: Bank, run: Run, remote: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = Bank.init(tmp_path_factory.mktemp("other"))
    other.add("Hers.", title="Hers")
    sync.add(other, "team", str(remote))
    sync.sync(other)
    run("add", "Mine.", "--title", "Mine")
    run("sync", "add", "team", str(remote))
    run("sync")
    assert [line.split("\t")[3] for line in run("undo", "--list").out.splitlines()] == ["sync", "add"]
    run("undo")
    assert ((bank.root / "mine.md").exists(), (bank.root / "hers.md").exists()) == (False, True)


def test_a_full_disk_is_not_called_damage(bank: Bank, run: Run, remote: Path) -> None:
    """Who deletes what is known of a remote then, as an error said, merges without a common base."""
    run("sync", "add", "team", str(remote))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))  # as full as a test can make it
    try:
        with pytest.raises(StorageError, match="is full") as failed:
            sync.status(bank, waiting=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert failed.value.code == "disk_full"
