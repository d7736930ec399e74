"""`memlane sync`: every change of every lane reaches every member, whatever happens on the way."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from pathlib import Path

import pytest

from commands import Run
from memlane import Bank, InvalidInput, NotFound
from memlane.care import sync
from memlane.care.sync import engine, state
from memlane.core.errors import Busy
from memlane.disk import files
from memlane.exchange import remotes, sharing
from memlane.exchange.remotes import Unreachable
from synced import TEAM, Cut, at_remote, contents, member, sync_cut, synced, told


def _fill(bank: Bank) -> None:
    """Something in every lane, and something deleted and replaced."""
    bank.add("Deploys go out on Tuesdays.", title="Deploy day")
    bank.add("We ship with wheels.", title="old way")
    bank.add("We ship with rockets.", title="new way", replaces="notes:old-way")
    bank.add("The build machine is in rack 4 of hall 2.", lane="vault", type="project", scope="shared")
    bank.topics.store("auth/oauth2", "Refresh fails after an hour.", title="Refresh")
    bank.add("The parser is slow on long lines.", lane="layers", project="api", file_type="known_issues")
    bank.delete(bank.add("A passing thought about lunch.", title="Lunch").id)


def test_a_second_member_gets_every_lane_and_what_lies_beside_them(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    _fill(ann)
    synced(ann, bob)
    assert contents(bob) == contents(ann)
    assert told(ann) == at_remote(tmp_path)
    assert sorted(contents(bob)) == [
        "deploy-day.md",
        "layers/projects/api/known_issues.md",
        "new-way.md",
        "old-way.md",
        "replaced.jsonl",
        "tombstones.jsonl",
        "topics/auth/oauth2.md",
        "topics/index.md",
        "vault.jsonl",
    ]
    assert [hit.memory.id for hit in bob.search("when do deploys go out", 1)] == ["notes:deploy-day"]


def test_a_sync_without_changes_does_nothing(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    _fill(ann)
    synced(ann, bob)
    before = contents(ann)
    assert [(done.sent, done.received, done.removed) for done in synced(ann, bob)] == [(0, 0, 0), (0, 0, 0)]
    assert contents(ann) == before


def test_what_two_members_change_in_one_file_is_merged(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    _fill(ann)
    synced(ann, bob)
    for bank, who in ((ann, "Ann"), (bob, "Bob")):
        bank.append("notes:deploy-day", f"{who} was here.")
        bank.add(f"{who} has the key number {len(who)}{ord(who[0])} to hall {who}.", lane="vault", type="project")
        bank.topics.store("auth/oauth2", f"{who} found out more.", title=f"Found by {who}")
    synced(ann, bob, rounds=2)
    assert contents(ann) == contents(bob)
    assert told(ann) == at_remote(tmp_path)
    text = ann.get("notes:deploy-day").text
    assert "Ann was here." in text
    assert "Bob was here." in text
    assert len(list(ann.memories("vault"))) == 3
    assert len(list(ann.memories("topics"))) == 3


def test_a_deletion_and_a_rename_travel(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    _fill(ann)
    synced(ann, bob)
    bob.delete("notes:deploy-day")
    bob.move("notes:old-way", "older-way")
    synced(bob, ann)
    assert contents(ann) == contents(bob)
    assert told(ann) == at_remote(tmp_path)
    assert not (ann.root / "deploy-day.md").exists()
    assert not (ann.root / "old-way.md").exists()
    assert ann.get("notes:older-way").text == "We ship with wheels."


def test_a_change_beats_a_deletion(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    _fill(ann)
    synced(ann, bob)
    ann.delete("notes:deploy-day")
    bob.append("notes:deploy-day", "But not in August.")
    synced(ann, bob, ann)
    assert "But not in August." in (ann.root / "deploy-day.md").read_text()
    assert contents(ann) == contents(bob)


def test_private_notes_configuration_and_records_stay_at_home(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    ann.add("My own opinion.", title="Opinion", private=True)
    ann.add("What the assistant said.", lane="records")
    synced(ann, bob)
    assert at_remote(tmp_path) == {}


def test_a_record_travels_once_it_is_shared(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    one = ann.add("What the assistant said of the cache.", lane="records")
    ann.add("What it said of the weather.", lane="records")
    sharing.share(ann, [one.id])
    synced(ann, bob)
    assert [memory.id for memory in bob.memories("records")] == [one.id]
    bob.append(one.id, "And Bob says so, too.")
    synced(bob, ann)
    assert "And Bob says so, too." in ann.get(one.id).text


@pytest.mark.parametrize("after", [False, True])
def test_a_sync_that_stops_between_any_two_steps_goes_on(tmp_path: Path, after: bool) -> None:
    """Whatever the connection does, nothing is lost, nothing comes twice, and all are in step in the end."""
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    _fill(ann)
    for step in range(1, 200):
        for bank, who in ((ann, "Ann"), (bob, "Bob")):
            if (bank.root / "deploy-day.md").exists():
                bank.append("notes:deploy-day", f"{who} says {step}.")
                bank.topics.store("auth/oauth2", f"{who} learned {step}.", title=f"{who} {step}")
                bank.add(f"Machine {who}{step} stands in rack {step} of {who}.", lane="vault", type="project")
        held = [sync_cut(bank, step, after=after) for bank in (bob, ann)]
        if step > 3 and all(held):
            break
    else:
        raise AssertionError("a sync never ends")
    synced(ann, bob, rounds=2)
    assert contents(ann) == contents(bob)
    assert told(ann) == at_remote(tmp_path)
    text = ann.get("notes:deploy-day").text
    said = [line for line in text.splitlines() if " says " in line]
    assert len(said) == len(set(said))
    assert {f"Ann says {number}." for number in range(1, step + 1)} <= set(said)
    titles = sorted(memory.title for memory in ann.memories("topics"))
    assert len(titles) == len(set(titles)) > step


def test_a_killed_sync_goes_on(tmp_path: Path) -> None:
    """kill -9 at many moments of a sync, each time while both sides have changed something."""
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    _fill(ann)
    synced(ann, bob)
    rounds = 12
    for number in range(rounds):
        for bank, who in ((ann, "Ann"), (bob, "Bob")):
            bank.append("notes:deploy-day", f"{who} says {number}.")
            bank.add(f"Machine {who}{number} stands in rack {number} of {who}.", lane="vault", type="project")
        synced(ann)
        bob.close()
        child = os.fork()
        if child == 0:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.002 + 0.004 * number)
                signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
                synced(Bank.open(tmp_path / "bob"))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
    synced(ann, bob, rounds=2)
    assert contents(ann) == contents(bob)
    assert told(ann) == at_remote(tmp_path)
    said = [line for line in ann.get("notes:deploy-day").text.splitlines() if " says " in line]
    assert sorted(said) == sorted(f"{who} says {number}." for who in ("Ann", "Bob") for number in range(rounds))
    assert len(list(ann.memories("vault"))) == 1 + 2 * rounds


def test_what_is_written_while_a_sync_runs_is_not_lost(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    _fill(ann)
    synced(ann, bob)
    over = threading.Event()

    def write() -> None:
        mine = Bank.open(tmp_path / "ann")
        for number in range(25):
            mine.append("notes:deploy-day", f"Ann wrote {number}.")
            mine.add(f"Shelf {number} holds the boxes of {number * 7} people.", lane="vault", type="project")
            mine.topics.store("auth/oauth2", f"Ann learned {number}.", title=f"Lesson {number}")
        over.set()

    writer = threading.Thread(target=write)
    writer.start()
    number = 0
    while not over.is_set():
        bob.append("notes:deploy-day", f"Bob wrote {(number := number + 1)}.")
        bob.add(f"Cellar {number} has {number * 3} bottles of Bob.", lane="vault", type="project")
        synced(bob, ann)
    writer.join()
    synced(ann, bob, rounds=2)
    assert contents(ann) == contents(bob)
    assert told(ann) == at_remote(tmp_path)
    text = ann.get("notes:deploy-day").text
    assert [each for each in range(25) if f"Ann wrote {each}." not in text] == []
    assert [each for each in range(1, number + 1) if f"Bob wrote {each}." not in text] == []
    vault = "\n".join(memory.text for memory in ann.memories("vault"))
    assert [each for each in range(25) if f"Shelf {each} holds" not in vault] == []
    titles = {memory.title for memory in ann.memories("topics")}
    assert {f"Lesson {each}" for each in range(25)} <= titles


def test_an_open_index_sees_what_came(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    assert bob.search("zeppelin") == []
    ann.add("The zeppelin lands at noon.", title="Zeppelin")
    synced(ann, bob)
    assert [hit.memory.id for hit in bob.search("zeppelin")] == ["notes:zeppelin"]


def test_two_members_who_made_the_same_name_have_both_texts(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    ann.add("Tuesdays.", title="Deploy day", created_at="2025-01-01T00:00:00Z")
    bob.add("Fridays.", title="Deploy day", created_at="2025-01-01T00:00:00Z")
    synced(ann, bob, ann)
    text = ann.get("notes:deploy-day").text
    assert "Tuesdays." in text
    assert "Fridays." in text
    assert contents(ann) == contents(bob)


def test_many_files_that_vanish_are_not_deleted_at_the_remote_without_a_word(tmp_path: Path) -> None:
    ann = member(tmp_path, "ann")
    for number in range(30):
        ann.add(f"Fact number {number} of the great list.", title=f"Fact {number}")
    synced(ann)
    for path in ann.root.glob("*.md"):
        path.unlink()
    with pytest.raises(InvalidInput, match="30 of 30 files that team has are gone here: nothing was sent"):
        synced(ann)
    assert len(at_remote(tmp_path)) == 30
    sync.sync(ann, TEAM, deletions=True)
    assert at_remote(tmp_path) == {}


def test_a_small_bank_that_was_made_anew_deletes_nothing_at_the_remote(tmp_path: Path) -> None:
    ann = member(tmp_path, "ann")
    for title in ("Deploy day", "Lunch"):
        ann.add(f"{title} is on Tuesdays.", title=title)
    synced(ann)
    before = at_remote(tmp_path)
    shutil.rmtree(ann.root)
    anew = Bank.init(tmp_path / "ann")
    with pytest.raises(InvalidInput, match="2 of 2 files that team has are gone here: nothing was sent"):
        synced(anew)
    assert at_remote(tmp_path) == before


def test_all_of_a_small_bank_that_was_deleted_with_memlane_is_deleted_at_the_remote(tmp_path: Path) -> None:
    ann = member(tmp_path, "ann")
    for title in ("Deploy day", "Lunch"):
        ann.add(f"{title} is on Tuesdays.", title=title)
    synced(ann)
    ann.delete("notes:deploy-day")
    ann.delete("notes:lunch")
    synced(ann)
    assert list(at_remote(tmp_path)) == ["tombstones.jsonl"]


def test_a_remote_that_is_empty_again_gets_everything_anew(tmp_path: Path) -> None:
    ann = member(tmp_path, "ann")
    _fill(ann)
    synced(ann)
    before = contents(ann)
    for path in (tmp_path / "remote").iterdir():
        path.rename(tmp_path / f"lost-{path.name}")
    ann.append("notes:deploy-day", "One more line.")
    sync.remove(ann, TEAM)
    sync.add(ann, TEAM, str(tmp_path / "remote"))
    synced(ann)
    assert at_remote(tmp_path).keys() == before.keys()


def test_a_bare_undo_takes_back_the_users_last_change_and_not_a_sync(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    bob.add("Mine.", title="Mine")
    ann.add("Hers.", title="Hers")
    synced(ann, bob)
    assert bob.undo().restored == ("mine.md",)
    assert (bob.root / "hers.md").exists()


def test_a_bank_without_a_remote_says_how_to_add_one(tmp_path: Path) -> None:
    bank = Bank.init(tmp_path)
    with pytest.raises(NotFound, match="no remote") as error:
        sync.sync(bank)
    assert "memlane sync add" in error.value.hint


def test_a_remote_that_cannot_be_reached_changes_nothing(tmp_path: Path) -> None:
    ann = member(tmp_path, "ann")
    ann.add("Tuesdays.", title="Deploy day")
    (tmp_path / "remote").rename(tmp_path / "elsewhere")
    with pytest.raises(Unreachable):
        synced(ann)
    (tmp_path / "elsewhere").rename(tmp_path / "remote")
    assert synced(ann)[0].sent == 1


def test_what_cannot_be_merged_stays_on_both_sides_until_somebody_decides(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    (ann.root / "odd.md").write_text("---\ntitle: [\n---\n\nOne.\n")
    synced(ann, bob)
    (ann.root / "odd.md").write_text("---\ntitle: [\n---\n\nAnn's.\n")
    (bob.root / "odd.md").write_text("---\ntitle: [\n---\n\nBob's.\n")
    for _ in range(2):
        _, done = synced(ann, bob)
        assert "Bob's." in (bob.root / "odd.md").read_text()
        assert "Ann's." in at_remote(tmp_path)["odd.md"].decode()
        assert [each.path for each in done.unsent] == ["odd.md"]
        assert "cannot be merged" in done.unsent[0].why
    (bob.root / "odd.md").unlink()
    _, done = synced(ann, bob)
    assert "Ann's." in (bob.root / "odd.md").read_text()
    assert (contents(ann), done.unsent) == (contents(bob), [])


def test_a_bank_that_is_moved_keeps_its_remotes(tmp_path: Path, run: Run) -> None:
    ann = member(tmp_path, "ann")
    ann.add("Deploys go out on Tuesdays.", title="Deploy day")
    synced(ann)
    ann.close()
    (tmp_path / "elsewhere").mkdir()
    assert run("--bank", str(tmp_path / "ann"), "move", str(tmp_path / "elsewhere")).code == 0
    moved = Bank.open(tmp_path / "ann")
    assert moved.root == tmp_path / "elsewhere/.memories"
    assert [(done.sent, done.received) for done in synced(moved)] == [(0, 0)]


def test_a_file_that_cannot_be_read_now_is_not_deleted_at_the_remote(tmp_path: Path) -> None:
    ann = member(tmp_path, "ann")
    ann.add("Deploys go out on Tuesdays.", title="Deploy day")
    synced(ann)
    (ann.root / "deploy-day.md").rename(tmp_path / "kept")
    (ann.root / "deploy-day.md").mkdir()
    synced(ann)
    assert sorted(at_remote(tmp_path)) == ["deploy-day.md"]


def test_two_syncs_of_one_bank_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = member(tmp_path, "ann")
    with state.opened(ann.root) as kept:
        assert kept is not None
        with files.locked(str(kept.path)):
            monkeypatch.setattr(sync, "PATIENCE", 0.05)
            with pytest.raises(Busy, match="Another sync of this bank is under way"):
                synced(ann)
    assert [done.sent for done in synced(ann)] == [0]


@pytest.mark.parametrize("at", range(1, 9))
def test_what_was_received_or_sent_by_an_interrupted_sync_does_not_come_back(tmp_path: Path, at: int) -> None:
    """A file whose sync was cut is not taken for a new one of our own when somebody else deletes it."""
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    ann.add("Deploys go out on Tuesdays.", title="Deploy day")
    bob.add("Tea at four.", title="Tea")
    synced(ann)
    sync_cut(bob, at, after=True)
    sync_cut(bob, 2, after=False)  # it comes back, and breaks again
    synced(ann)
    ann.delete("notes:deploy-day")
    if (ann.root / "tea.md").exists():
        ann.delete("notes:tea")
        gone = {"deploy-day.md", "tea.md"}
    else:
        gone = {"deploy-day.md"}
    synced(ann, bob, ann)
    assert gone & (contents(ann).keys() | contents(bob).keys() | at_remote(tmp_path).keys()) == set()


@pytest.mark.parametrize("known", [False, True])
def test_what_others_deleted_does_not_come_back_because_we_were_not_told_that_it_arrived(
    tmp_path: Path, known: bool
) -> None:
    """A note, new or changed, arrives and the connection breaks; somebody else deletes it; then we sync again."""
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    if known:
        ann.add("Deploys go out on Mondays.", title="Deploy day")
        synced(ann, bob)
        ann.update("notes:deploy-day", text="Deploys go out on Tuesdays.")
    else:
        ann.add("Deploys go out on Tuesdays.", title="Deploy day")
    _put_unheard(ann)
    synced(bob)
    bob.delete("notes:deploy-day")
    synced(bob, ann, bob)
    assert "deploy-day.md" not in contents(ann)
    assert contents(ann) == contents(bob)


def test_what_others_deleted_in_a_file_does_not_come_back_because_we_were_not_told(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    ann.topics.store("auth/oauth2", "Refresh fails after an hour.", title="Refresh")
    synced(ann, bob)
    ann.topics.store("auth/oauth2", "Scopes are sorted.", title="Scopes")
    _put_unheard(ann)
    synced(bob)
    (bob.root / "topics/auth/oauth2.md").write_bytes(_without_first_entry(bob))
    synced(bob)
    ann.topics.store("auth/oauth2", "Tokens are long.", title="Tokens")
    synced(ann, bob, ann)
    assert sorted(memory.title for memory in ann.memories("topics")) == ["Refresh", "Tokens"]
    assert contents(ann) == contents(bob)


def test_what_we_changed_since_outlives_the_deletion_of_what_we_were_not_told_of(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    ann.add("Deploys go out on Tuesdays.", title="Deploy day")
    _put_unheard(ann)
    synced(bob)
    bob.delete("notes:deploy-day")
    synced(bob)
    ann.append("notes:deploy-day", "But not in August.")
    synced(ann, bob)
    assert "But not in August." in bob.get("notes:deploy-day").text


def _put_unheard(bank: Bank) -> None:
    """Sync until something has been put, and break off before we hear of it."""
    with state.opened(bank.root) as kept:
        assert kept is not None
        settings = kept.remote(TEAM)
        remote = _Deaf(remotes.opened(settings.url), 10**6, after=True)
        with pytest.raises(Unreachable):
            engine.run(bank, kept, settings, remote)
        remote.close()


class _Deaf(Cut):
    def put(self, path: str, data: bytes, expected: str | None, **said: str) -> str:
        super().put(path, data, expected, **said)
        raise Unreachable("cut")


def _without_first_entry(bank: Bank) -> bytes:
    """A topic file as somebody leaves it who takes the first entry out in an editor."""
    head, _, *entries = (bank.root / "topics/auth/oauth2.md").read_text().split("## 2")
    return "## 2".join((head, *entries)).encode()
