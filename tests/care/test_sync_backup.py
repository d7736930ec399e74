"""A machine whose disk was brought back from a backup, or copied: what is known there of remotes is old, or twice."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path

import pytest
from test_sync_lineage import settled, team

from memlane import Bank
from memlane.care import sync
from memlane.care.sync import state
from memlane.disk import journal
from synced import contents, member, synced


def _copy(bank: Bank, to: Path) -> None:
    """Copy a bank, and what is known of its remotes."""
    shutil.copytree(bank.root, to / "bank")
    shutil.copy(state.path_of(bank.root), to / "state.db")


def _bring_back(bank: Bank, copy: Path) -> Bank:
    bank.close()
    shutil.rmtree(bank.root)
    shutil.copytree(copy / "bank", bank.root)
    shutil.copy(copy / "state.db", state.path_of(bank.root))
    return Bank.open(bank.root.parent)


@pytest.mark.parametrize("step", [1, 100])
@pytest.mark.parametrize("lane", ["notes", "topics"])
@pytest.mark.parametrize("on_write", [False, True])
def test_what_was_sent_before_a_disk_was_brought_back_is_not_taken_for_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, lane: str, on_write: bool
) -> None:
    """What is changed after that counts on from where the backup was, and could cover what others have from here."""
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    fields = {"topic": "team", "subtopic": "work"} if lane == "topics" else {}
    id = ann.add("Deploys go out on Tuesdays.", title="Deploy", lane=lane, **fields).id
    synced(ann, bob)
    (tmp_path / "copy").mkdir()
    _copy(ann, tmp_path / "copy")
    monkeypatch.setattr(secrets, "randbelow", lambda _: 10)
    ann.update(id, "Deploys go out after lunch.")
    synced(ann, bob)
    ann = _bring_back(ann, tmp_path / "copy")
    monkeypatch.setattr(secrets, "randbelow", lambda _: step)
    with journal.change("update") as change:
        ann.update(id, "Deploys go out before tea.")
    if on_write:  # it counts its change before it hears of the other one
        sync.on_write(ann, change)
    synced(ann, bob, rounds=2)
    assert contents(ann) == contents(bob)
    text = bob.get(id).text
    assert ("after lunch." in text, "before tea." in text) == (True, True)


def test_two_machines_with_the_same_state_lose_nothing_of_each_other(tmp_path: Path) -> None:
    """Somebody copies everything to a second machine, and goes on using the first."""
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    ann.add("Deploys go out on Tuesdays.", title="Deploy")
    synced(ann, bob)
    (tmp_path / "copy").mkdir()
    _copy(ann, tmp_path / "copy")
    for number in range(6):  # on either machine in turn
        ann.append("notes:deploy", f"Line {number}.")
        synced(ann, bob)
        (tmp_path / f"copy{number}").mkdir()
        _copy(ann, tmp_path / f"copy{number}")
        ann = _bring_back(ann, tmp_path / (f"copy{number - 1}" if number else "copy"))
    synced(ann, bob, rounds=2)
    assert contents(ann) == contents(bob)
    text = bob.get("notes:deploy").text
    assert [number for number in range(6) if f"Line {number}." not in text] == []


@pytest.mark.parametrize("lane", ["notes", "topics", "layers"])
def test_what_was_changed_after_a_disk_was_brought_back_does_not_stand_beside_what_it_was(
    tmp_path: Path, lane: str
) -> None:
    """It was sent after the copy was made, so nothing there tells that others have it."""
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    ann.add("What is fetched before the other one.", title="A first one")
    fields = {"topics": {"topic": "team", "subtopic": "work"}, "layers": {"project": "p", "file_type": "decisions"}}
    title = {} if lane == "layers" else {"title": "Deploy"}
    id = ann.add("Deploys go out on Tuesdays.", lane=lane, **title, **fields.get(lane, {})).id
    (tmp_path / "copy").mkdir()
    _copy(ann, tmp_path / "copy")
    synced(ann, bob)
    ann = _bring_back(ann, tmp_path / "copy")
    ann.update(id, "We ship after lunch.")
    synced(ann, bob, rounds=2)
    assert contents(ann) == contents(bob)
    texts = [memory.text.partition("**Problem:** ")[2] or memory.text for memory in bob.memories(lane)]
    assert [text for text in texts if "fetched before" not in text] == ["We ship after lunch."]


def test_an_entry_that_was_changed_after_a_disk_was_brought_back_does_not_stand_beside_what_it_was(
    tmp_path: Path,
) -> None:
    """The file is another one by then, as somebody has added an entry."""
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    id = ann.add("Deploys go out on Tuesdays.", lane="topics", topic="team", subtopic="work", title="Deploy").id
    (tmp_path / "copy").mkdir()
    _copy(ann, tmp_path / "copy")
    synced(ann, bob)
    bob.topics.store("team/work", "Nobody ships on Fridays.", title="Fridays")
    synced(bob)
    ann = _bring_back(ann, tmp_path / "copy")
    ann.update(id, "We ship after lunch.")
    synced(ann, bob, rounds=2)
    assert contents(ann) == contents(bob)
    texts = sorted(memory.text.partition("**Problem:** ")[2] for memory in bob.memories("topics"))
    assert texts == ["Nobody ships on Fridays.", "We ship after lunch."]


def test_what_was_deleted_after_a_disk_was_brought_back_is_deleted_for_all(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    ann.add("Deploys go out on Tuesdays.", title="Deploy")
    (tmp_path / "copy").mkdir()
    _copy(ann, tmp_path / "copy")
    synced(ann, bob)
    ann = _bring_back(ann, tmp_path / "copy")
    ann.delete("notes:deploy")
    synced(ann, bob, rounds=2)
    assert [name for bank in (ann, bob) for name in contents(bank) if name.endswith(".md")] == []


def test_what_another_remote_has_from_before_a_disk_was_brought_back_is_new_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ann counts twice under one name: the larger number said that Bob had seen what the smaller one stands for."""
    ann, bob = team(tmp_path, {"ann": ["home", "work"], "bob": ["home"]})
    ann.add("Deploys go out on Tuesdays.", title="Deploy")
    settled(ann, bob)
    (tmp_path / "copy").mkdir()
    _copy(ann, tmp_path / "copy")
    monkeypatch.setattr(secrets, "randbelow", lambda _: 10)
    ann.append("notes:deploy", "After lunch.")
    sync.sync(ann, "work")
    ann = _bring_back(ann, tmp_path / "copy")
    monkeypatch.setattr(secrets, "randbelow", lambda _: 100)
    ann.append("notes:deploy", "Before tea.")
    for bank in (ann, bob):
        sync.sync(bank, "home")
    bob.append("notes:deploy", "Never on Fridays.")
    first, second = settled(ann, bob)
    assert first == second
    said = [b"After lunch.", b"Before tea.", b"Never on Fridays."]
    assert [line for line in said if line not in first["deploy.md"]] == []
