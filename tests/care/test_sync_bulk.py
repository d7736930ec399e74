"""Joining a large bank: many files at once, which come and go as they would one by one."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from memlane import Bank
from memlane.care import sync
from memlane.care.sync import engine, receiving, state
from memlane.care.sync.results import Synced
from memlane.care.sync.watching import watch
from memlane.core.errors import StorageError
from memlane.disk import files
from memlane.exchange import remotes
from memlane.exchange.remotes import SHARED, Entry, New, Unreachable
from memlane.exchange.remotes.folder import FolderRemote
from synced import TEAM, at_remote, contents, member, synced, told


def filled(bank: Bank, count: int, size: int = 0) -> None:
    for number in range(count):
        path = bank.root / f"made/{number // 50}/n{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Note {number}\n\nShelf {number} holds box {number * 7}.\n{'word ' * (size // 5)}")


def test_a_new_member_gets_every_file_and_sends_none_back(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    filled(ann, 1200)
    ann.add("Machine one stands in rack one.", lane="vault", type="project")
    ann.topics.store("auth/oauth2", "Tokens last an hour.", title="Tokens")
    sent, received = synced(ann, bob)
    assert (sent.sent, received.sent, received.received) == (1203, 0, 1203)
    assert contents(ann) == contents(bob)
    assert told(ann) == at_remote(tmp_path)
    assert [each.waiting for each in sync.status(bob)] == [()]
    assert [(done.sent, done.received) for done in synced(ann, bob)] == [(0, 0), (0, 0)]


def test_what_is_too_large_is_held_back_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    filled(ann, 30)
    (ann.root / "large.md").write_text("# Large\n\n" + "word " * 1000)
    synced(ann)
    monkeypatch.setattr(files, "MAX_BYTES", 4000)
    (done,) = synced(bob)
    assert [each.path for each in done.held] == ["large.md"]
    assert contents(bob) == {name: data for name, data in contents(ann).items() if name != "large.md"}


def test_what_the_gate_refuses_is_held_back_alone(tmp_path: Path) -> None:
    bob = member(tmp_path, "bob")
    texts = {f"note-{number}.md": f"# Note {number}\n".encode() for number in range(30)}
    bad = {"secret.md": b"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzz9q8w7e6r\n"}
    remote = remotes.opened(str(tmp_path / "remote"))
    list(remote.put_many([New(name, SHARED, data) for name, data in {**texts, **bad}.items()], author="eve"))
    (done,) = synced(bob)
    assert [each.path for each in done.held] == ["secret.md"]
    assert contents(bob) == texts


class Asked(FolderRemote):
    """It notes how many bytes it is asked for at once."""

    asked: list[int]

    def get_many(self, listed: Sequence[Entry]) -> list[tuple[Entry, bytes]]:
        self.asked.append(sum(entry.size for entry in listed))
        return super().get_many(listed)


def test_no_more_is_asked_for_at_once_than_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    filled(ann, 40, size=10_000)
    synced(ann)
    monkeypatch.setattr(receiving, "BATCH_BYTES", 100_000)
    remote = Asked(str(tmp_path / "remote"), "default")
    remote.asked = []
    with state.opened(bob.root) as kept:
        assert kept
        engine.run(bob, kept, kept.remote(TEAM), remote)
    assert max(remote.asked) <= 100_000
    assert sum(remote.asked) > 400_000
    assert contents(ann) == contents(bob)


JOIN = """
import sys
from memlane import Bank
from memlane.care import sync
bank = Bank.open(sys.argv[1])
sync.sync(bank)
print(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_memory_does_not_grow_with_what_comes(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    filled(ann, 40, size=1_000_000)
    synced(ann)
    bob.close()
    done = subprocess.run([sys.executable, "-c", JOIN, str(tmp_path / "bob")], stdout=subprocess.PIPE, check=True)
    assert int(done.stdout) / 1024 < 80  # with the program's own, and 40 MB that came
    assert contents(ann) == contents(bob)


def killed_after(path: Path, seconds: float) -> None:
    """Sync in a process that is killed after a while."""
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            signal.setitimer(signal.ITIMER_REAL, seconds)
            synced(Bank.open(path))
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def test_a_founder_and_a_new_member_that_are_killed_go_on(tmp_path: Path) -> None:
    """Whenever it happens: all is there once, nothing looks like the new member's own, and what is deleted meanwhile
    does not come back.
    """
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    filled(ann, 700)
    wanted = contents(ann)
    ann.close()
    for number in range(6):
        killed_after(tmp_path / "ann", 0.05 + 0.06 * number)
    synced(ann)
    assert at_remote(tmp_path) == wanted
    bob.close()
    for number in range(6):
        killed_after(tmp_path / "bob", 0.05 + 0.06 * number)
    there = set(contents(bob))
    assert {name: data for name, data in wanted.items() if name in there} == contents(bob)
    gone = sorted(there)[:5]
    for name in gone:
        (ann.root / name).unlink()
    synced(ann)
    (done,) = synced(bob)
    assert done.sent == 0
    assert contents(bob) == contents(ann) == {name: data for name, data in wanted.items() if name not in gone}


class Breaking(FolderRemote):
    """It breaks off when half of many files have been put; somebody else was quicker with one of them."""

    def put_many(self, new: Sequence[New], *, author: str) -> Iterator[tuple[New, str]]:
        taken = new[0]
        self.put(taken.path, b"# Note 0\n\nFrom somebody else.\n", None, scope=SHARED, author="eve")
        yield from super().put_many(new[: len(new) // 2], author=author)
        raise Unreachable("cut")


def test_what_arrived_before_a_connection_broke_is_not_sent_again(tmp_path: Path) -> None:
    ann = member(tmp_path, "ann")
    filled(ann, 100)
    with state.opened(ann.root) as kept:
        assert kept
        with pytest.raises(Unreachable):
            engine.run(ann, kept, kept.remote(TEAM), Breaking(str(tmp_path / "remote"), "default"))
        assert sum(bool(each.version) for each in kept.files(TEAM)) == 49
    (done,) = synced(ann)
    assert done.sent == 51  # the one that two have put is merged
    assert contents(ann) == at_remote(tmp_path)
    assert b"From somebody else." in contents(ann)["made/0/n0.md"]
    assert b"Shelf 0 holds" in contents(ann)["made/0/n0.md"]


def test_names_that_differ_in_case_alone_are_not_written_side_by_side(tmp_path: Path) -> None:
    bob = member(tmp_path, "bob")
    remote = remotes.opened(str(tmp_path / "remote"))
    list(remote.put_many([New(name, SHARED, b"# Plan\n") for name in ("PLAN.md", "plan.md", "Plan.md")], author="eve"))
    synced(bob, rounds=2)
    assert list(contents(bob)) == ["plan.md"]


def test_a_full_disk_ends_it_and_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    filled(ann, 100)
    synced(ann)
    write, left = os.write, iter(range(40))

    def full(fd: int, data: bytes) -> int:
        if b"Shelf" in bytes(data[:100]) and next(left, None) is None:
            raise OSError(28, "No space left on device")
        return write(fd, data)

    with monkeypatch.context() as now:
        now.setattr(os, "write", full)
        with pytest.raises(StorageError) as error:
            synced(bob)
    assert error.value.code == "disk_full"
    assert len(contents(bob)) == 40
    (done,) = synced(bob)
    assert (done.received, done.sent) == (60, 0)
    assert contents(ann) == contents(bob)


def test_a_sync_indexes_what_it_brings_in_numbers(tmp_path: Path) -> None:
    """A hook may not wait until thousands of files are indexed: a new member's found nothing at first."""
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    filled(ann, sync.MANY)
    synced(ann)
    assert [done.received for done in bob.sync()] == [sync.MANY]
    with closing(sqlite3.connect(bob.index_file.path)) as index:
        assert index.execute("SELECT count(*) FROM files").fetchall() == [(sync.MANY,)]


def test_a_sync_that_stays_indexes_what_it_brings_in_numbers(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    filled(ann, sync.MANY)
    synced(ann)
    rounds = watch(bob, TEAM)
    assert next(rounds) == Synced(TEAM, received=sync.MANY)
    (ann.root / "late.md").write_text("# Late\n\nOne more.\n")
    synced(ann)
    assert next(rounds) == Synced(TEAM, received=1)
    with closing(sqlite3.connect(bob.index_file.path)) as index:
        assert index.execute("SELECT count(*) FROM files").fetchall() == [(sync.MANY + 1,)]


def test_a_sync_leaves_a_few_files_to_the_next_search(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    filled(ann, 3)
    synced(ann)
    assert [done.received for done in bob.sync()] == [3]
    assert not os.path.exists(bob.index_file.path)
