"""A bank with several remotes: what one of them has comes back over another, and is known to be old."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from memlane import Bank
from memlane.care import sync
from memlane.care.sync import lineage, state
from memlane.core.errors import Busy
from memlane.disk import files
from memlane.exchange import remotes
from samples import tries
from synced import contents

ONE, TWO = "aaaaaa", "bbbbbb"


def team(top: Path, uses: dict[str, list[str]]) -> list[Bank]:
    """Members by name, each with the remotes that it uses."""
    banks = []
    for name, used in uses.items():
        (top / name).mkdir()
        banks.append(Bank.init(top / name))
        for remote in used:
            (top / remote).mkdir(exist_ok=True)
            sync.add(banks[-1], remote, str(top / remote), author=name)
    return banks


def settled(*banks: Bank) -> list[dict[str, bytes]]:
    """What everybody has once nothing moves any more."""
    for _ in range(8):
        moved = 0
        for bank in banks:
            done = [one.to_dict() for one in sync.sync(bank)]
            moved += sum(one[name] for one in done for name in ("sent", "received", "removed", "merged"))
        if not moved:
            return [contents(bank) for bank in banks]
    raise AssertionError("files move for ever")


def test_a_deletion_and_its_file_do_not_chase_each_other_over_two_remotes(tmp_path: Path) -> None:
    ann, bob, eve = team(tmp_path, {name: ["home", "work"] for name in ("ann", "bob", "eve")})
    ann.add("Deploys go out on Tuesdays.", title="Deploy")
    settled(ann, bob, eve)
    ann.delete("notes:deploy")
    sync.sync(ann, "home")
    bob.append("notes:deploy", "After lunch.")
    sync.sync(bob, "work")
    sync.sync(eve, "work")
    sync.sync(eve, "home")
    first, *others = settled(ann, bob, eve)
    assert others == [first, first]
    assert b"After lunch." in first["deploy.md"]


def test_two_texts_do_not_chase_each_other_over_two_remotes(tmp_path: Path) -> None:
    ann, bob, eve = team(tmp_path, {name: ["home", "work"] for name in ("ann", "bob", "eve")})
    ann.add("Deploys go out on Tuesdays.", title="Deploy")
    settled(ann, bob, eve)
    ann.update("notes:deploy", text="Deploys go out on Mondays.")
    sync.sync(ann, "home")
    bob.update("notes:deploy", text="Deploys go out on Fridays.")
    sync.sync(bob, "work")
    sync.sync(eve, "home")
    first, *others = settled(ann, bob, eve)
    assert others == [first, first]
    assert b"Mondays" in first["deploy.md"]
    assert b"Fridays" in first["deploy.md"]


def test_what_somebody_puts_back_is_not_old(tmp_path: Path) -> None:
    ann, bob = team(tmp_path, {name: ["home", "work"] for name in ("ann", "bob")})
    ann.add("Deploys go out on Tuesdays.", title="Deploy")
    settled(ann, bob)
    before = contents(ann)["deploy.md"]
    ann.update("notes:deploy", text="Deploys go out on Mondays.")
    settled(ann, bob)
    ann.undo()
    first, second = settled(ann, bob)
    assert first["deploy.md"] == second["deploy.md"] == before


@pytest.mark.parametrize("seed", range(tries(2, 3)))
def test_a_ring_of_remotes_comes_to_rest(tmp_path: Path, seed: int) -> None:
    uses = {"ann": ["one", "two"], "bob": ["two", "three"], "eve": ["three", "one"]}
    banks = team(tmp_path, uses)
    dice = random.Random(seed)
    for number in range(4):
        banks[0].add(f"Fact number {number} of all.", title=f"Fact {number}")
    settled(*banks)
    for step in range(12):
        bank, name = dice.choice(banks), f"notes:fact-{dice.randrange(4)}"
        present = {memory.id for memory in bank.list()}
        if name in present and dice.random() < 0.3:
            bank.delete(name)
        elif name in present:
            bank.update(name, text=f"Fact as it is in step {step}.")
        sync.sync(bank, dice.choice([one.name for one in remotes_of(bank)]))
    first, *others = settled(*banks)
    assert others == [first, first]


def test_members_who_saw_a_deletion_and_a_change_in_another_order_come_to_the_same(tmp_path: Path) -> None:
    """Each of them finds what it has at one remote, and the opposite at the other."""
    ann, bob = team(tmp_path, {name: ["home", "work"] for name in ("ann", "bob")})
    ann.add("Deploys go out on Tuesdays.", title="Deploy")
    settled(ann, bob)
    ann.delete("notes:deploy")
    sync.sync(ann, "home")
    bob.append("notes:deploy", "After lunch.")
    sync.sync(bob, "work")
    sync.sync(bob, "home")
    sync.sync(ann, "work")
    first, second = settled(ann, bob)
    assert first == second
    assert b"After lunch." in first["deploy.md"]


def test_a_member_who_is_late_does_not_bring_back_what_was_deleted_over_another_remote(tmp_path: Path) -> None:
    """It has the file from one remote, and has never seen it at the other, where it is deleted."""
    ann, bob = team(tmp_path, {"ann": ["home", "work"], "bob": ["home"]})
    ann.add("Deploys go out on Tuesdays.", title="Deploy")
    settled(ann, bob)
    sync.add(bob, "work", str(tmp_path / "work"), author="bob")
    ann.delete("notes:deploy")
    sync.sync(ann, "work")
    sync.sync(bob, "work")
    first, second = settled(ann, bob)
    assert "deploy.md" not in first
    assert first == second


def remotes_of(bank: Bank) -> list[state.Settings]:
    with state.opened(bank.root) as kept:
        assert kept is not None
        return kept.remotes()


# -- lineages


def test_what_a_remote_says_is_read_as_far_as_it_can_be() -> None:
    assert lineage.parsed("aaaaaa:3 bbbbbb:12") == {ONE: 3, TWO: 12}
    assert lineage.parsed("aaaaaa:0 x:1 bbbbbb:1e9 cccccc:-1 aaaaaa:9999999999999 \0") == {}
    assert lineage.parsed(lineage.spelt({ONE: 3, TWO: 12})) == {ONE: 3, TWO: 12}


def test_a_lineage_of_very_many_members_stays_within_what_a_remote_keeps() -> None:
    assert len(lineage.spelt({f"{number:06x}": 10**11 for number in range(5000)})) <= 1200


def test_one_lineage_covers_another_when_it_has_all_of_its_changes() -> None:
    assert lineage.covers({ONE: 3, TWO: 1}, {ONE: 3})
    assert lineage.covers({ONE: 3}, {})
    assert not lineage.covers({ONE: 3}, {TWO: 1})
    assert not lineage.covers({ONE: 3}, {ONE: 4})


def test_what_was_changed_here_has_a_change_more(tmp_path: Path) -> None:
    with state.made(tmp_path) as kept:
        assert lineage.of(kept, "a.md", None) == {}
        first = lineage.of(kept, "a.md", b"one")
        assert first.keys() == {kept.me}
        assert lineage.of(kept, "a.md", b"one") == first
        second = lineage.of(kept, "a.md", b"two")
        assert lineage.covers(second, first)
        assert not lineage.covers(first, second)
        kept.set_lineage("a.md", state.digest(b"three"), lineage.told(kept, "a.md", {**second, TWO: 7}, changed=False))
        assert lineage.of(kept, "a.md", b"three") == {**second, TWO: 7}


@pytest.mark.parametrize(
    "steps",
    [
        "ann bob:c bob:b cid:a cid cid:a ann:b bob:c bob:b cid ann bob cid:c",
        "cid cid ann cid ann:a bob bob:c bob cid ann:a cid:c ann ann:b bob",
    ],
)
def test_what_three_members_append_comes_to_rest_in_a_ring_of_remotes(tmp_path: Path, steps: str) -> None:
    """Each of them merged it in another order, and each merge repeated what the one before had moved, without end."""
    uses = {"ann": ["a", "b"], "bob": ["b", "c"], "cid": ["c", "a"]}
    members = dict(zip(uses, team(tmp_path, uses), strict=True))
    members["ann"].add("Deploys go out on Tuesdays.", title="Deploy")
    settled(*members.values())
    added = []
    for number, (name, _, remote) in enumerate(step.partition(":") for step in steps.split()):
        if remote:
            sync.sync(members[name], remote)
        else:
            added.append(f"Paragraph {number} was written by {name}.")
            members[name].append("notes:deploy", added[-1])
    first, *others = settled(*members.values())
    assert others == [first, first]
    assert [first["deploy.md"].decode().count(text) for text in added] == [1] * len(added)


@pytest.mark.parametrize(
    "steps",
    [
        "ann cid ann! ann bob:b ann:b bob:b bob ann:b bob bob cid:a ann:b cid",
        "cid cid! bob:c ann:a cid bob:c bob:c ann:a cid:a cid bob cid:c ann:b ann:b",
    ],
)
def test_the_same_changes_merged_in_different_orders_come_to_rest_in_a_ring_of_remotes(
    tmp_path: Path, steps: str
) -> None:
    """Every merge was taken for one more change, and merged with the others'."""
    uses = {"ann": ["a", "b"], "bob": ["b", "c"], "cid": ["c", "a"]}
    members = dict(zip(uses, team(tmp_path, uses), strict=True))
    members["ann"].add("Deploys go out on Tuesdays.", title="Deploy")
    settled(*members.values())
    for number, step in enumerate(steps.split()):
        name, _, remote = step.partition(":")
        bank, text = members[name.removesuffix("!")], f"Paragraph {number} is of {name} and long enough."
        if remote:
            sync.sync(bank, remote)
        elif name.endswith("!"):
            bank.update("notes:deploy", text)
        else:
            bank.append("notes:deploy", text)
    first, *others = settled(*members.values())
    assert others == [first, first]
    last = [f"Paragraph {number} is" for number, step in list(enumerate(steps.split()))[-4:] if step.isalpha()]
    assert [text in first["deploy.md"].decode() for text in last] == [True] * len(last)


def test_one_sync_hands_on_what_any_remote_brings(tmp_path: Path) -> None:
    ann, bob, cid = team(tmp_path, {"ann": ["a"], "bob": ["b"], "cid": ["a", "b"]})
    bob.add("Deploys go out on Tuesdays.", title="Deploy")
    for bank in (bob, cid, ann):
        sync.sync(bank)
    assert [memory.id for memory in ann.memories()] == ["notes:deploy"]


def test_no_other_sync_begins_before_one_has_handed_on_what_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """Else it could fail, because another one is under way, after all was done."""
    ann, bob = team(tmp_path, {"ann": ["home", "work"], "bob": ["work"]})
    bob.add("Deploys go out on Tuesdays.", title="Deploy")
    sync.sync(bob)
    used = []
    opened = remotes.opened

    def opened_alone(url: str) -> remotes.Remote:
        with pytest.raises(Busy), files.locked(str(state.path_of(ann.root)), 0.0):
            pass
        used.append(Path(url).name)
        return opened(url)

    monkeypatch.setattr(remotes, "opened", opened_alone)
    assert [done.remote for done in sync.sync(ann)] == ["home", "work"]
    assert used == ["home", "work", "home"]
