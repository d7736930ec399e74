"""A remote that was brought back from a backup, or was replaced: what it has lost comes from its members."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from memlane import Bank
from memlane.care import sync
from memlane.exchange.remotes import Unreachable
from synced import at_remote, contents, member, synced, told


def _saved(top: Path) -> Path:
    return Path(shutil.copytree(top / "remote", top / "backup"))


def _brought_back(top: Path) -> None:
    shutil.rmtree(top / "remote")
    shutil.copytree(top / "backup", top / "remote")


def _grown(bank: Bank) -> None:
    for number in range(4):
        bank.add(f"Shelf {number} holds box {number * 7}.", title=f"Shelf {number}")


def test_what_was_sent_since_the_backup_is_sent_again(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    _grown(ann)
    synced(ann, bob)
    _saved(tmp_path)
    ann.add("Deploys go out on Tuesdays.", title="Deploy day")
    ann.append("notes:shelf-1", "And a lamp.")
    bob.topics.store("auth/oauth2", "Tokens last an hour.", title="Tokens")
    synced(ann, bob, rounds=2)
    before = contents(bob)
    _brought_back(tmp_path)
    synced(ann, bob, rounds=2)
    assert contents(ann) == contents(bob) == before
    assert at_remote(tmp_path) == told(ann)
    assert [one.to_dict() for one in synced(ann, bob) if one.changed] == []


def test_a_new_member_gets_what_the_backup_did_not_have(tmp_path: Path) -> None:
    ann = member(tmp_path, "ann")
    _grown(ann)
    synced(ann)
    _saved(tmp_path)
    ann.add("Deploys go out on Tuesdays.", title="Deploy day")
    synced(ann)
    _brought_back(tmp_path)
    synced(ann)
    eve = member(tmp_path, "eve")
    synced(eve)
    assert contents(eve) == contents(ann)


def test_what_others_wrote_after_it_was_brought_back_is_kept(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    _grown(ann)
    synced(ann, bob)
    _saved(tmp_path)
    ann.append("notes:shelf-1", "And a lamp.")
    ann.add("Deploys go out on Tuesdays.", title="Deploy day")
    synced(ann)
    _brought_back(tmp_path)
    bob.append("notes:shelf-1", "And a rope.")
    synced(bob, ann, bob)
    assert contents(ann) == contents(bob)
    text = bob.get("notes:shelf-1").text
    assert "And a lamp." in text
    assert "And a rope." in text
    assert bob.get("notes:deploy-day").text == "Deploys go out on Tuesdays."


def test_what_was_deleted_since_the_backup_stays_deleted(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    _grown(ann)
    synced(ann, bob)
    _saved(tmp_path)
    ann.delete("notes:shelf-2")
    synced(ann, bob)
    _brought_back(tmp_path)
    synced(bob, ann, rounds=2)
    assert "shelf-2.md" not in contents(ann) | contents(bob) | at_remote(tmp_path)


def test_what_others_delete_after_it_was_brought_back_stays_where_somebody_had_changed_it(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    _grown(ann)
    synced(ann, bob)
    _saved(tmp_path)
    ann.append("notes:shelf-1", "And a lamp.")
    synced(ann)
    _brought_back(tmp_path)
    bob.delete("notes:shelf-1")
    bob.delete("notes:shelf-2")
    synced(bob, ann, bob)
    assert contents(ann) == contents(bob)
    assert bob.get("notes:shelf-1").text == "Shelf 1 holds box 7.\n\nAnd a lamp."
    assert "shelf-2.md" not in contents(ann)


def test_what_was_forgotten_since_the_backup_leaves_it_again(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    _grown(ann)
    ann.add("The alarm at the cabin is switched off by the green key.", title="Alarm")
    synced(ann, bob)
    _saved(tmp_path)
    ann.forget("notes:alarm")
    synced(ann, bob)
    _brought_back(tmp_path)
    eve = member(tmp_path, "eve")
    synced(bob, eve, ann, rounds=2)
    assert all(b"green key" not in text for text in (contents(eve) | contents(bob) | at_remote(tmp_path)).values())


def test_a_remote_without_most_of_what_it_had_is_not_given_all_of_it(tmp_path: Path) -> None:
    """It may be another bank's: a drive that was mounted in its place."""
    ann = member(tmp_path, "ann")
    _grown(ann)
    synced(ann)
    shutil.rmtree(tmp_path / "remote")
    bob = member(tmp_path, "bob")
    bob.add("Bob's own bank is another one.", title="Other")
    synced(bob)
    there = at_remote(tmp_path)
    for _ in range(2):
        with pytest.raises(Unreachable, match="no trace of 4 of its 4 files"):
            synced(ann)
    assert at_remote(tmp_path) == there
    sync.remove(ann, "team")
    sync.add(ann, "team", str(tmp_path / "remote"))
    synced(ann)
    assert at_remote(tmp_path) == told(ann)
