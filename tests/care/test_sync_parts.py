"""Files with many memories and several remotes: what was deleted or changed in them stays so."""

from __future__ import annotations

from pathlib import Path

from test_sync_lineage import settled, team

from memlane import Bank
from memlane.care import sync
from memlane.care.sync import state

FILE = "topics/auth/oauth2.md"


def _texts(bank: Bank) -> list[str]:
    return sorted(memory.text.removeprefix("**Context:** ad-hoc\n**Problem:** ") for memory in bank.memories("topics"))


def _id(bank: Bank, title: str) -> str:
    return next(memory.id for memory in bank.memories("topics") if memory.title == title)


def _ring(top: Path) -> tuple[Bank, Bank, Bank]:
    """Ann's entry comes to Eve over `work` alone, though both use `home`, which has an older content of the file."""
    ann, bob, eve = team(top, {"ann": ["home"], "bob": ["home", "work"], "eve": ["work", "home"]})
    ann.topics.store("auth/oauth2", "Refresh fails after an hour.", title="Refresh")
    settled(ann, bob, eve)
    ann.topics.store("auth/oauth2", "Scopes are sorted.", title="Scopes")
    sync.sync(ann, "home")
    sync.sync(bob, "home")
    sync.sync(bob, "work")
    sync.sync(eve, "work")
    return ann, bob, eve


def test_a_deleted_entry_does_not_come_back_over_another_remote(tmp_path: Path) -> None:
    ann, bob, eve = _ring(tmp_path)
    ann.delete(_id(ann, "Scopes"))
    sync.sync(ann, "home")
    eve.topics.store("auth/oauth2", "Eve knows more.", title="More")
    sync.sync(eve, "home")
    first, *others = settled(ann, bob, eve)
    assert others == [first, first]
    assert _texts(ann) == ["Eve knows more.", "Refresh fails after an hour."]


def test_an_entry_that_was_changed_does_not_stand_beside_what_it_was(tmp_path: Path) -> None:
    ann, bob, eve = _ring(tmp_path)
    ann.update(_id(ann, "Scopes"), "Scopes are in any order.")
    sync.sync(ann, "home")
    eve.topics.store("auth/oauth2", "Eve knows more.", title="More")
    sync.sync(eve, "home")
    first, *others = settled(ann, bob, eve)
    assert others == [first, first]
    assert _texts(ann) == ["Eve knows more.", "Refresh fails after an hour.", "Scopes are in any order."]


def test_an_entry_that_was_changed_and_then_deleted_does_not_come_back_as_it_was_first(tmp_path: Path) -> None:
    ann, bob, eve = _ring(tmp_path)
    ann.update(_id(ann, "Scopes"), "Scopes are in any order.")
    sync.sync(ann, "home")
    ann.delete(_id(ann, "Scopes"))
    sync.sync(ann, "home")
    eve.topics.store("auth/oauth2", "Eve knows more.", title="More")
    sync.sync(eve, "home")
    settled(ann, bob, eve)
    assert _texts(eve) == _texts(bob) == _texts(ann) == ["Eve knows more.", "Refresh fails after an hour."]


def test_an_entry_that_somebody_changed_meanwhile_outlives_its_deletion(tmp_path: Path) -> None:
    ann, bob, eve = _ring(tmp_path)
    ann.delete(_id(ann, "Scopes"))
    sync.sync(ann, "home")
    eve.update(_id(eve, "Scopes"), "Scopes are sorted by name.")
    sync.sync(eve, "home")
    first, *others = settled(ann, bob, eve)
    assert others == [first, first]
    assert _texts(ann) == ["Refresh fails after an hour.", "Scopes are sorted by name."]


def test_an_entry_that_is_restored_comes_back_for_all(tmp_path: Path) -> None:
    ann, bob, eve = _ring(tmp_path)
    id = _id(ann, "Scopes")
    ann.delete(id)
    settled(ann, bob, eve)
    ann.restore(id)
    settled(ann, bob, eve)
    assert _texts(eve) == _texts(bob) == _texts(ann) == ["Refresh fails after an hour.", "Scopes are sorted."]


def test_a_change_that_is_taken_back_is_taken_back_for_all(tmp_path: Path) -> None:
    ann, bob, eve = _ring(tmp_path)
    ann.update(_id(ann, "Scopes"), "Scopes are in any order.")
    settled(ann, bob, eve)
    ann.undo()
    eve.topics.store("auth/oauth2", "Eve knows more.", title="More")
    sync.sync(eve, "work")
    first, *others = settled(ann, bob, eve)
    assert others == [first, first]
    assert _texts(ann) == ["Eve knows more.", "Refresh fails after an hour.", "Scopes are sorted."]


def test_an_entry_that_one_deletes_while_another_archives_it_is_deleted(tmp_path: Path) -> None:
    ann, bob, eve = _ring(tmp_path)
    settled(ann, bob, eve)
    ann.delete(_id(ann, "Refresh"))
    sync.sync(ann, "home")
    for number in range(10):
        eve.topics.store("auth/oauth2", f"Scope {number} is for machine {number}.", title=f"Scope {number}")
    assert [path.name for path in (eve.root / "topics/archive").rglob("*.md")]
    sync.sync(eve, "work")
    settled(ann, bob, eve)
    assert [b"Refresh fails" in (bank.root / FILE).read_bytes() for bank in (ann, bob, eve)] == [False] * 3
    archives = [path for bank in (ann, bob, eve) for path in (bank.root / "topics/archive").rglob("*.md")]
    assert [path for path in archives if b"Refresh fails" in path.read_bytes()] == []


def test_whoever_joins_late_does_not_bring_back_a_note_that_one_remote_still_has(tmp_path: Path) -> None:
    ann, bob = team(tmp_path, {"ann": ["home", "work"], "bob": ["home", "work"]})
    ann.add("Deploys go out on Tuesdays.", title="Deploy")
    settled(ann, bob)
    ann.delete("notes:deploy")
    sync.sync(ann, "home")
    (cid,) = team(tmp_path, {"cid": ["home", "work"]})
    sync.sync(cid, "home")
    sync.sync(cid, "work")
    first, *others = settled(ann, bob, cid)
    assert others == [first, first]
    assert "deploy.md" not in first


def test_what_is_known_of_remotes_by_an_older_memlane_is_taken_over(tmp_path: Path) -> None:
    (ann,) = team(tmp_path, {"ann": ["home"]})
    ann.topics.store("auth/oauth2", "Refresh fails after an hour.", title="Refresh")
    sync.sync(ann)
    with state.made(ann.root) as kept:
        kept.db.executescript(
            "DROP TABLE parts; DROP TABLE counted; ALTER TABLE sending DROP COLUMN lineage; "
            "ALTER TABLE files DROP COLUMN lineage; PRAGMA user_version = 1;"
        )
    ann.topics.store("auth/oauth2", "Scopes are sorted.", title="Scopes")
    assert [done.sent for done in sync.sync(ann)] == [1]
