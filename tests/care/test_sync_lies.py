"""A remote that lies: of versions, sizes, lists and lineages. Nothing that was written here is lost to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from memlane import Bank
from memlane.care.sync import engine, receiving, state
from memlane.core.errors import InvalidInput, MemlaneError
from memlane.exchange import remotes
from memlane.exchange.remotes import SHARED, Conflict, Entry, TooLarge
from memlane.history import undo
from synced import TEAM, OneByOne, contents, member, synced

MINE = "Deploys go out on Tuesdays."


class Liar(OneByOne):
    """A remote that says what a test wants it to say, and takes whatever it is given."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[Entry, bytes]] = {}
        self.pages = 1
        self.puts = 0

    def say(self, path: str, data: bytes, version: str = "1", *, deleted: bool = False, lineage: str = "") -> None:
        self.files[path] = Entry(path, SHARED, version, len(data), deleted, "mallory", lineage), data

    def changes(self, cursor: str) -> Iterator[tuple[list[Entry], str]]:
        for number in range(self.pages):
            yield [entry for entry, _ in list(self.files.values())], f"page {number}"

    def get(self, path: str, scope: str, most: int) -> tuple[Entry, bytes] | None:
        found = self.files.get(path)
        if found and len(found[1]) > most:
            raise TooLarge("too large")
        return found

    def put(self, path: str, data: bytes, expected: str | None, *, lineage: str = "", **_: str) -> str:
        self.puts += 1
        if self.puts > 1000:
            raise AssertionError("it is sent for ever")
        self.say(path, data, f"put {self.puts}", lineage=lineage)
        return f"put {self.puts}"

    def delete(self, path: str, expected: str, *, lineage: str = "", **_: str) -> str:
        self.say(path, b"", "deleted", deleted=True, lineage=lineage)
        return "deleted"

    def watch(self, cursor: str, seconds: float) -> bool:
        return True

    def close(self) -> None: ...


@pytest.fixture
def ann(tmp_path: Path) -> Bank:
    bank = member(tmp_path, "ann")
    bank.add(MINE, title="Deploy")
    return bank


def run(bank: Bank, remote: Liar) -> None:
    with state.opened(bank.root) as kept:
        assert kept is not None
        engine.run(bank, kept, kept.remote(TEAM), remote)


def test_a_file_that_changes_between_list_and_fetch_is_taken_as_it_is_then(ann: Bank) -> None:
    class Moving(Liar):
        def get(self, path: str, scope: str, most: int) -> tuple[Entry, bytes] | None:
            if path == "moving.md" and self.files[path][0].version == "1":
                self.say("moving.md", b"# Moving\n\nThe second text.\n", "2")
            return super().get(path, scope, most)

    remote = Moving()
    remote.say("moving.md", b"# Moving\n\nThe first text.\n")
    run(ann, remote)
    run(ann, remote)
    assert b"The second text." in contents(ann)["moving.md"]


def test_a_file_that_is_gone_between_list_and_fetch_is_passed_over(ann: Bank) -> None:
    class Going(Liar):
        def get(self, path: str, scope: str, most: int) -> tuple[Entry, bytes] | None:
            return None if path == "going.md" else super().get(path, scope, most)

    remote = Going()
    remote.say("going.md", b"# Going\n")
    run(ann, remote)
    assert sorted(contents(ann)) == ["deploy.md"]


def test_a_content_of_another_name_than_was_asked_for_stays_in_its_place(ann: Bank, tmp_path: Path) -> None:
    class Swapping(Liar):
        def get(self, path: str, scope: str, most: int) -> tuple[Entry, bytes] | None:
            if path != "asked.md":
                return super().get(path, scope, most)
            return Entry("../../outside.md", "another", "1", 4, False, "mallory"), b"# Other\n"

    remote = Swapping()
    remote.say("asked.md", b"# Asked\n")
    with suppress(MemlaneError):
        run(ann, remote)
    assert list(tmp_path.rglob("outside*")) == []
    assert MINE.encode() in contents(ann)["deploy.md"]


def test_versions_that_go_back_lose_nothing(ann: Bank) -> None:
    remote = Liar()
    run(ann, remote)
    old = remote.files["deploy.md"]
    ann.append("notes:deploy", "After lunch.")
    run(ann, remote)
    remote.files["deploy.md"] = old
    run(ann, remote)
    run(ann, remote)
    assert b"After lunch." in contents(ann)["deploy.md"]
    assert b"After lunch." in remote.files["deploy.md"][1]


@pytest.mark.parametrize("claim", ["{me}:999999999", "{me}:1", "ffffff:999999999", "x" * 10**6, ""])
def test_a_false_lineage_does_not_take_what_was_not_sent_yet(ann: Bank, claim: str) -> None:
    remote = Liar()
    run(ann, remote)
    with state.opened(ann.root) as kept:
        assert kept is not None
        me = kept.me
    ann.append("notes:deploy", "After lunch.")
    text = contents(ann)["deploy.md"].replace(b"After lunch.", b"Never again.")
    remote.say("deploy.md", text, "forged", lineage=claim.format(me=me))
    run(ann, remote)
    assert b"After lunch." in contents(ann)["deploy.md"]


def test_a_list_without_an_end_is_cut(ann: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "MOST_ENTRIES", 1000)
    remote = Liar()
    for number in range(100):
        remote.say(f"n{number}.md", b"# Note\n")
    remote.pages = 10**9
    with pytest.raises(InvalidInput, match="without end"):
        run(ann, remote)
    assert MINE.encode() in contents(ann)["deploy.md"]


def test_a_remote_that_always_says_conflict_is_given_up(ann: Bank) -> None:
    class Refusing(Liar):
        def put(self, path: str, data: bytes, expected: str | None, **_: str) -> str:
            raise Conflict("no")

    with pytest.raises(Conflict):
        run(ann, Refusing())
    assert MINE.encode() in contents(ann)["deploy.md"]


def test_what_a_false_deletion_took_is_brought_back(ann: Bank) -> None:
    """Deletions travel, and a remote can make them up."""
    remote = Liar()
    run(ann, remote)
    before = contents(ann)
    remote.say("deploy.md", b"", "gone", deleted=True, lineage=f"{remote.files['deploy.md'][0].lineage} ffffff:1")
    run(ann, remote)
    assert contents(ann) == {}
    ann.undo(undo.applied(ann)[0].id)
    assert contents(ann) == before
    run(ann, remote)
    assert contents(ann) == before


def test_a_deletion_of_something_older_than_what_the_remote_had_deletes_nothing(ann: Bank) -> None:
    remote = Liar()
    run(ann, remote)
    remote.say("deploy.md", b"", "gone", deleted=True, lineage="ffffff:1")
    run(ann, remote)
    assert MINE.encode() in contents(ann)["deploy.md"]


@pytest.mark.parametrize(
    "claim",
    ["{ann}:999999999999 {bob}:999999999999", " ".join(f"{number:06x}:{10**11 + number}" for number in range(60))],
)
def test_what_is_written_after_a_false_lineage_is_not_taken_for_old(tmp_path: Path, claim: str) -> None:
    """Numbers that cannot grow, or more members than fit: what members change later would not show in it."""
    banks = [member(tmp_path, name) for name in ("ann", "bob")]
    ann, bob = banks
    ann.add("Deploys go out on Tuesdays.", title="Deploy")
    synced(ann, bob)
    names = {}
    for name, bank in zip(("ann", "bob"), banks, strict=True):
        with state.opened(bank.root) as kept:
            assert kept is not None
            names[name] = kept.me
    with closing(remotes.opened(str(tmp_path / "remote"))) as remote:
        found = remote.get("deploy.md", remotes.SHARED, 10**6)
        assert found is not None
        said = {"scope": remotes.SHARED, "author": "mallory", "lineage": claim.format(**names)}
        remote.put("deploy.md", found[1] + b"\nMallory was here.\n", found[0].version, **said)
    synced(ann, bob, rounds=2)
    ann.append("notes:deploy", "After lunch.")
    synced(ann, bob, rounds=2)
    bob.append("notes:deploy", "Before tea.")
    synced(bob, ann, rounds=2)
    texts = [contents(bank)["deploy.md"].decode() for bank in banks]
    assert [("After lunch." in text, "Before tea." in text) for text in texts] == [(True, True)] * 2
