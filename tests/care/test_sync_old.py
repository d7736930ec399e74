"""What a memory said before somebody changed it does not come back, and stands nowhere beside the change: whichever
remotes both came over, and whoever was killed meanwhile.
"""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from test_sync_lineage import settled, team

from conftest import trusted
from memlane import Bank, NotFound
from memlane.care import sync
from memlane.care.sync import state, travel
from memlane.care.sync.sieve import Sieve
from memlane.exchange import sharing
from synced import contents, sync_killed

TOKEN = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"
FILE = "topics/auth/oauth2.md"


def _texts(*banks: Bank) -> list[list[str]]:
    return [sorted(memory.text.rpartition("Problem:** ")[2] for memory in bank.memories()) for bank in banks]


def _store(bank: Bank, lane: str) -> str:
    if lane == "topics":
        bank.topics.store("auth/oauth2", "Deploys go out on Tuesdays.", title="Deploy")
        return next(memory.id for memory in bank.memories("topics"))
    return bank.add("Deploys go out on Tuesdays.", title="Deploy").id


@pytest.mark.parametrize("lane", ["notes", "topics"])
def test_a_change_of_a_change_replaces_it_when_they_come_over_different_remotes(tmp_path: Path, lane: str) -> None:
    ann, bob = team(tmp_path, {name: ["home", "work"] for name in ("ann", "bob")})
    id = _store(ann, lane)
    settled(ann, bob)
    for remote, text in (("home", "Deploys go out on Mondays."), ("work", "Deploys go out on Fridays.")):
        ann.update(id, text)
        sync.sync(ann, remote)
        sync.sync(bob, remote)
    settled(ann, bob)
    assert _texts(ann, bob) == [["Deploys go out on Fridays."]] * 2


def test_a_deletion_is_of_what_came_over_another_remote_too(tmp_path: Path) -> None:
    ann, bob = team(tmp_path, {name: ["home", "work"] for name in ("ann", "bob")})
    id = _store(ann, "notes")
    settled(ann, bob)
    ann.update(id, "Deploys go out on Mondays.")
    sync.sync(ann, "home")
    sync.sync(bob, "home")
    ann.delete(id)
    sync.sync(ann, "work")
    sync.sync(bob, "work")
    assert ["deploy.md" in files for files in settled(ann, bob)] == [False, False]


@pytest.mark.parametrize("who", ["ann", "bob"])
def test_an_entry_that_was_changed_twice_is_no_clash_where_others_added_some_between(tmp_path: Path, who: str) -> None:
    """Ann hears of the first change at work, with what Bob added, and of the second at home, without that."""
    everywhere = ["home", "work"]
    ann, bob, cid = team(tmp_path, {"ann": everywhere, "bob": ["work"], "cid": everywhere})
    id = _store(cid, "topics")
    settled(ann, bob, cid)
    cid.update(id, "Deploys go out on Mondays.")
    sync.sync(cid, "work")
    {"ann": ann, "bob": bob}[who].topics.store("auth/oauth2", "Lunch is at noon.", title="Lunch")
    sync.sync(bob)
    cid.update(id, "Deploys go out on Fridays.")
    sync.sync(cid, "home")
    sync.sync(ann, "work")
    sync.sync(ann, "home")
    settled(ann, bob, cid)
    assert _texts(ann, bob, cid) == [["Deploys go out on Fridays.", "Lunch is at noon."]] * 3


def test_a_note_that_was_kept_once_can_be_deleted_later(tmp_path: Path) -> None:
    """A change beat its deletion, which is part of the past of the note for those alone who heard of it."""
    ann, bob, eve = team(tmp_path, {"ann": ["home", "work"], "bob": ["home"], "eve": ["work"]})
    id = _store(bob, "notes")
    for bank in (bob, ann, eve):
        sync.sync(bank)
    eve.delete(id)
    bob.append(id, "Not before noon.")
    assert ["deploy.md" in files for files in settled(eve, ann, bob)] == [True] * 3
    bob.delete(id)
    assert ["deploy.md" in files for files in settled(bob, ann, eve)] == [False] * 3


def test_whoever_is_sent_an_old_text_has_changed_nothing(tmp_path: Path) -> None:
    """Else the next change of the new text would be one of a text that its author has not seen."""
    ann, bob, eve = team(tmp_path, {"ann": ["home"], "bob": ["home", "work"], "eve": ["home", "work"]})
    id = _store(ann, "notes")
    sync.sync(ann)
    sync.sync(eve, "home")
    ann.update(id, "Deploys go out on Mondays.")
    sync.sync(ann)
    sync.sync(bob, "home")
    sync.sync(eve, "work")
    sync.sync(bob, "work")
    ann.update(id, "Deploys go out on Fridays.")
    sync.sync(ann)
    sync.sync(bob, "home")
    assert _texts(bob) == [["Deploys go out on Fridays."]]


def test_whoever_is_killed_while_a_text_comes_has_not_changed_it(tmp_path: Path) -> None:
    ann, bob, eve = team(tmp_path, {"ann": ["home"], "bob": ["home", "work"], "eve": ["home", "work"]})
    id = _store(ann, "notes")
    sync.sync(ann)
    sync_killed(bob, "home")
    sync.sync(bob, "work")
    ann.update(id, "Deploys go out on Fridays.")
    sync.sync(ann)
    sync.sync(eve, "home")
    sync.sync(eve, "work")
    assert _texts(eve) == [["Deploys go out on Fridays."]]


def test_whoever_is_killed_while_a_text_comes_may_change_it_then(tmp_path: Path) -> None:
    ann, bob = team(tmp_path, {"ann": ["home"], "bob": ["home"]})
    changed, deleted = _store(ann, "notes"), ann.add("Lunch is at noon.", title="Lunch").id
    sync.sync(ann)
    sync_killed(bob, "home")
    bob.update(changed, "Deploys go out on Fridays.")
    bob.delete(deleted)
    settled(ann, bob)
    assert _texts(ann, bob) == [["Deploys go out on Fridays."]] * 2


def test_what_is_written_as_it_came_is_not_kept_twice_meanwhile(tmp_path: Path) -> None:
    ann, bob = team(tmp_path, {"ann": ["home"], "bob": ["home"]})
    _store(ann, "notes")
    sync.sync(ann)
    sync_killed(bob, "home")
    with closing(sqlite3.connect(state.path_of(bob.root))) as db:
        assert db.execute("SELECT base FROM intents").fetchall() == [(b"",)]
    sync.sync(bob, "home")
    with closing(sqlite3.connect(state.path_of(bob.root))) as db:
        ((base,),) = db.execute("SELECT base FROM files").fetchall()
    assert [zlib.decompress(base)] == list(contents(bob).values())


def test_what_one_member_holds_back_is_not_taken_from_the_others(tmp_path: Path) -> None:
    """Zoe sends on what she may have of a file; who has that alone has not seen, and does not delete, the rest."""
    ann, zoe, will = team(tmp_path, {"ann": ["home"], "zoe": ["home", "work"], "will": ["work"]})
    for bank in (ann, will):
        assert bank.config.file
        bank.config.file.write_text(bank.config.file.read_text() + '\n[gate]\nsecrets = "off"\n')
        trusted(bank.config.file)
    ann, will = (Bank.open(tmp_path / name) for name in ("ann", "will"))
    ann.topics.store("auth/oauth2", "Refresh fails after an hour.", title="Refresh")
    ann.topics.store("auth/oauth2", f"The token is {TOKEN}.", title="Token")
    for bank in (ann, zoe, will):
        sync.sync(bank)
    sync.add(will, "home", str(tmp_path / "home"), author="will")
    for bank in (will, ann, zoe, will, ann, zoe):
        sync.sync(bank)
    assert [TOKEN in (bank.root / FILE).read_text() for bank in (ann, zoe, will)] == [True, False, True]


def test_the_line_about_a_deletion_that_was_forgotten_does_not_come_back(tmp_path: Path) -> None:
    """Who has it could test guesses. Eve has it, and sends it on together with one of her own."""
    ann, bob, eve = team(tmp_path, {"ann": ["home"], "bob": ["home", "work"], "eve": ["home", "work"]})
    id, other = _store(ann, "notes"), ann.add("Lunch is at noon.", title="Lunch").id
    ann.delete(ann.add("Tea is at four.", title="Tea").id)
    settled(ann, bob, eve)
    before = (ann.root / "tombstones.jsonl").read_bytes()
    ann.delete(id)
    line = (ann.root / "tombstones.jsonl").read_bytes().removeprefix(before)
    for bank in (ann, bob, eve):
        sync.sync(bank, "home")
    ann.forget(id)
    sync.sync(ann)
    sync.sync(bob, "home")
    eve.delete(other)
    sync.sync(eve, "work")
    sync.sync(bob, "work")
    assert line not in (bob.root / "tombstones.jsonl").read_bytes()
    first, *others = settled(ann, bob, eve)
    assert others == [first, first]
    assert line not in first["tombstones.jsonl"]


def test_an_entry_that_gets_the_id_of_a_forgotten_one_in_a_merge_goes_with_it(tmp_path: Path) -> None:
    """Entries of one title are told apart by a number, which another member counted otherwise."""
    (ann,) = team(tmp_path, {"ann": ["home"]})
    for text in ("Scopes are sorted by name.", "Refresh of the old token fails after an hour of waiting."):
        ann.topics.store("auth/oauth2", text, title="Same")
    both = (ann.root / FILE).read_bytes().replace(b"fails after an hour", b"works for a while")
    ann.forget(next(memory.id for memory in ann.memories("topics") if "Refresh" in memory.text))
    place = travel.place_of(ann, FILE)
    assert isinstance(place, travel.Place)
    with closing(Sieve(ann)) as sieve:
        assert sieve.without_gone(place, both) == (ann.root / FILE).read_bytes()


@pytest.mark.parametrize("lane", ["notes", "vault", "topics"])
def test_what_is_restored_is_there_although_somebody_else_deleted_it_too(tmp_path: Path, lane: str) -> None:
    """Bob has not heard of Ann's deletion, so that his own is under another key."""
    ann, bob = team(tmp_path, {"ann": ["home"], "bob": ["home"]})
    id = ann.add("Deploys go out on Tuesdays.", lane=lane).id if lane == "vault" else _store(ann, lane)
    settled(ann, bob)
    ann.delete(id)
    sync.sync(ann)
    bob.delete(id)
    ann.restore(id)
    first, second = settled(ann, bob)
    assert first == second
    assert _texts(ann, bob) == [["Deploys go out on Tuesdays."]] * 2
    bob.delete(id)
    settled(ann, bob)
    assert _texts(ann, bob) == [[], []]


def test_an_entry_that_is_restored_is_there_although_somebody_else_deleted_it_from_a_longer_file(
    tmp_path: Path,
) -> None:
    ann, bob = team(tmp_path, {"ann": ["home"], "bob": ["home"]})
    id = _store(ann, "topics")
    ann.topics.store("auth/oauth2", "Scopes are sorted.", title="Scopes")
    settled(ann, bob)
    ann.delete(id)
    sync.sync(ann)
    bob.delete(id)
    bob.topics.store("auth/oauth2", "Bob knows more.", title="More")
    ann.restore(id)
    first, second = settled(ann, bob)
    assert first == second
    assert _texts(ann) == [["Bob knows more.", "Deploys go out on Tuesdays.", "Scopes are sorted."]]


def test_an_entry_that_was_restored_once_is_archived_and_stays_so(tmp_path: Path) -> None:
    ann, bob = team(tmp_path, {"ann": ["home"], "bob": ["home"]})
    id = _store(ann, "topics")
    ann.topics.store("auth/oauth2", "Scopes are sorted.", title="Scopes")
    ann.delete(id)
    ann.restore(id)
    settled(ann, bob)
    for number in range(10):
        bob.topics.store("auth/oauth2", f"Scope {number} is for machine {number}.", title=f"Scope {number}")
    assert b"Tuesdays" not in (bob.root / FILE).read_bytes()
    ann.topics.store("auth/oauth2", "Ann knows more.", title="More")
    first, second = settled(ann, bob)
    assert first == second
    assert b"Tuesdays" not in first[FILE]


@pytest.mark.parametrize("topic", ["auth/oauth2", "auth/keys"])
def test_members_of_whom_one_holds_something_back_come_to_rest(tmp_path: Path, topic: str) -> None:
    """The index of topics says what each of them has: it went to and fro for ever."""
    ann, zoe = team(tmp_path, {"ann": ["home"], "zoe": ["home"]})
    assert ann.config.file
    ann.config.file.write_text(ann.config.file.read_text() + '\n[gate]\nsecrets = "off"\n')
    trusted(ann.config.file)
    ann = Bank.open(tmp_path / "ann")
    ann.topics.store("auth/oauth2", "Refresh fails after an hour.", title="Refresh")
    ann.topics.store(topic, f"The token is {TOKEN}.", title="Token")
    for bank in (ann, zoe, ann, zoe):
        sync.sync(bank)
    rounds = [one for bank in (ann, zoe, ann, zoe) for one in sync.sync(bank)]
    assert [(one.sent, one.received) for one in rounds] == [(0, 0)] * 4
    assert TOKEN in (ann.root / "topics" / f"{topic}.md").read_text()


@pytest.mark.parametrize("lane", ["notes", "topics", "layers", "vault", "records"])
def test_what_somebody_else_deleted_can_be_restored(tmp_path: Path, lane: str) -> None:
    ann, bob = team(tmp_path, {"ann": ["home"], "bob": ["home"]})
    for bank in (ann, bob):
        sharing.share(bank, ["records"])
    fields = {
        "topics": {"topic": "team", "subtopic": "work"},
        "layers": {"project": "api", "file_type": "common_patterns"},
    }
    id = ann.add("Deploys go out on Tuesdays.", lane=lane, **fields.get(lane, {})).id
    settled(ann, bob)
    ann.delete(id)
    settled(ann, bob)
    assert "Deploys go out on Tuesdays." in bob.restore(id).text
    first, second = settled(ann, bob)
    assert first == second
    assert "Deploys go out on Tuesdays." in ann.get(id).text
    with pytest.raises(NotFound, match="Nothing deleted has the id"):
        bob.restore("notes:nobody-ever-had-this")
