"""What one member forgets is gone at the remote and at every member, and nobody who was away brings it back."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest
from test_sync_lineage import settled, team

from memlane import Bank, InvalidInput
from memlane.care import sync
from memlane.care.sync.forgetting import PATH
from memlane.core import alternatives
from memlane.disk.forgotten_shared import MOST_KEYS
from memlane.exchange import remotes
from memlane.exchange.remotes import Unreachable
from synced import at_remote, contents, member, sync_cut, synced
from torturing import secret_of

SAID = "Nadia's landlord raised the rent of the flat in Lindenstrasse to twelve hundred."


def _everything(top: Path) -> bytes:
    """Every byte of the members, the remote and the state folder, packed bases and journals included."""
    import zlib

    found = []
    for root in (top, Path(os.environ["HOME"])):
        for path in root.rglob("*"):
            if path.is_file():
                data = path.read_bytes()
                found.append(data)
                for at in (at for at in range(len(data)) if data[at : at + 1] == b"x"):
                    try:
                        found.append(zlib.decompressobj().decompress(data[at:], 100_000))
                    except zlib.error:
                        continue
    return b"\n".join(found)


def _three(top: Path) -> tuple[Bank, Bank, Bank]:
    ann, bob, cid = (member(top, name) for name in ("ann", "bob", "cid"))
    ann.add("Deploys go out on Tuesdays.", title="Deploy day")
    ann.add(SAID, title="Rent")
    ann.topics.store("home/flat", "The heating is old and loud.", title="Heating")
    ann.topics.store("home/flat", SAID.replace("Nadia", "Vera").replace("flat", "house"), title="Rent of Vera")
    synced(ann, bob, cid)
    return ann, bob, cid


def test_what_is_merely_like_it_stays_on_the_disk_of_whoever_wrote_it(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    ann.add(SAID, title="Rent")
    ann.forget("notes:rent")
    bob.add(SAID.replace("twelve", "eleven"), title="Another rent")
    synced(bob, ann, bob, ann, bob)
    assert (bob.root / "another-rent.md").exists()
    assert ([memory.id for memory in bob.list()], list(at_remote(tmp_path))) == ([], [PATH])
    assert [held.why for held in sync.status(bob)[0].unsent] == ["says what was forgotten"]


@pytest.mark.parametrize("way", ["deleted", "updated"])
def test_something_else_that_has_the_name_of_a_forgotten_note_by_now_stays(tmp_path: Path, way: str) -> None:
    ann, bob, cid = _three(tmp_path)
    ann.forget("notes:rent")
    synced(ann)
    text = "Ships leave the harbour of Tallinn on every second Monday of the winter."
    if way == "deleted":
        bob.delete("notes:rent")
        bob.add(text, title="Rent")
    else:
        bob.update("notes:rent", text)
    synced(bob, ann, cid, bob, ann)
    assert [bank.get("notes:rent").text.strip() for bank in (ann, bob, cid)] == [text] * 3
    assert b"Nadia" not in _everything(tmp_path)


def test_a_forgotten_note_is_gone_everywhere(tmp_path: Path) -> None:
    ann, bob, cid = _three(tmp_path)
    cid.append("notes:rent", "Cid was away and added a line.")
    bob.delete("notes:rent")
    bob.undo()
    ann.forget("notes:rent")
    synced(ann, bob, cid, ann, bob)
    assert [bank.search("Nadia landlord Lindenstrasse", lane="notes") for bank in (ann, bob, cid)] == [[], [], []]
    assert "rent.md" not in at_remote(tmp_path)
    assert contents(ann) == contents(bob) == contents(cid)
    for bank in (ann, bob, cid):
        bank.close()
    rest = _everything(tmp_path)
    assert b"Nadia" not in rest
    assert b"Vera" in rest


def test_an_entry_of_a_shared_file_is_taken_out_alone(tmp_path: Path) -> None:
    ann, bob, cid = _three(tmp_path)
    vera = next(memory.id for memory in ann.memories("topics") if memory.title == "Rent of Vera")
    cid.topics.store("home/flat", "Cid has the keys of the cellar.", title="Keys")
    ann.forget(vera)
    synced(ann, bob, cid, ann, bob)
    assert [sorted(memory.title for memory in bank.memories("topics")) for bank in (ann, bob, cid)] == [
        ["Heating", "Keys"]
    ] * 3
    assert b"Vera" not in b"".join(at_remote(tmp_path).values())
    assert contents(ann) == contents(bob) == contents(cid)


def test_what_gets_the_name_of_a_forgotten_entry_is_the_same_with_everybody(tmp_path: Path) -> None:
    """Of two entries with one title and day the second is called as the first was, once that is gone."""
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    fields = {"lane": "topics", "title": "Rent", "topic": "home", "subtopic": "flat", "created_at": "2025-01-10"}
    id = ann.add(SAID, **fields).id
    synced(ann, bob)
    ann.forget(id)
    bob.add("Nadia's landlord asks no rent for the use of a garage.", **fields)
    synced(bob, ann, bob, ann)
    path = "topics/home/flat.md"
    assert [contents(ann)[path], contents(bob)[path], at_remote(tmp_path)[path]] == [b"", b"", b""]


def test_a_record_of_the_vault_is_forgotten_in_all_versions(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    fact = ann.add("The safe of the office opens with the long key.", lane="vault", type="project")
    ann.add("The build machine is in rack 4 of hall 2.", lane="vault", type="project")
    synced(ann, bob)
    bob.update(fact.id, "The safe of the office opens with the short key.")
    ann.forget(fact.id)
    synced(ann, bob, ann)
    assert [len(list(bank.memories("vault"))) for bank in (ann, bob)] == [1, 1]
    assert b"safe of the office" not in b"".join(at_remote(tmp_path).values())


def test_a_record_that_somebody_deleted_meanwhile_is_forgotten_all_the_same(tmp_path: Path) -> None:
    """The log still has what a deleted record said: it must not pass as something that is no memory."""
    ann, bob, eve = team(tmp_path, {"ann": ["home"], "bob": ["home", "work"], "eve": ["work"]})
    id = ann.add(SAID, lane="vault").id
    settled(ann, bob, eve)
    ann.forget(id)
    bob.delete(id)
    assert [b"Nadia" in b"".join(files.values()) for files in settled(bob, ann, eve)] == [False] * 3


def test_the_line_about_a_deletion_goes_also_where_nobody_ever_had_what_it_is_about(tmp_path: Path) -> None:
    """Ann has it from Bob, over a remote that Cid does not use; it went to and fro between them for ever."""
    ann, bob, cid = team(tmp_path, {"ann": ["a", "b"], "bob": ["b", "c"], "cid": ["c", "a"]})
    id, note = cid.add(SAID, lane="vault").id, cid.add("Tea is at four.", title="Tea").id
    for bank in (cid, bob):
        sync.sync(bank, "c")
    cid.delete(note)
    cid.forget(id)
    bob.delete(id)
    line = (bob.root / "tombstones.jsonl").read_bytes().splitlines()[-1]
    stones, *others = (files["tombstones.jsonl"] for files in settled(ann, bob, cid))
    assert others == [stones, stones]
    assert line not in stones


def test_whoever_was_away_does_not_bring_it_back(tmp_path: Path) -> None:
    ann, bob, cid = _three(tmp_path)
    ann.forget("notes:rent")
    synced(ann, bob)
    (cid.root / "rent.md").rename(cid.root / "other.md")  # under another name, too
    synced(cid, ann, bob)
    for bank in (ann, bob, cid):
        assert b"Nadia" not in b"".join(contents(bank).values())
    assert b"Nadia" not in b"".join(at_remote(tmp_path).values())


def test_what_is_wanted_again_is_wanted_by_all(tmp_path: Path) -> None:
    ann, bob, cid = _three(tmp_path)
    ann.forget("notes:rent")
    synced(ann, bob, cid)
    bob.add(SAID, title="Rent")  # on purpose
    synced(bob, ann, cid)
    assert ann.get("notes:rent").text == cid.get("notes:rent").text == SAID
    assert [hit.memory.id for hit in cid.search("Nadia landlord", 1, lane="notes")] == ["notes:rent"]


def test_members_who_had_forgotten_things_before_they_met_know_of_both(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    for bank, text in ((ann, SAID), (bob, "The badge of the east gate has the colour green and a fish.")):
        bank.forget(bank.add(text, title="Gone").id)
    synced(ann, bob, ann)
    (ann.root / "back.md").write_text("The badge of the east gate has the colour green and a fish.\n")
    (bob.root / "back.md").write_text(f"{SAID}\n")
    assert [bank.search("badge fish landlord") for bank in (ann, bob)] == [[], []]
    synced(ann, bob)
    assert [path for path in at_remote(tmp_path) if path != PATH] == []


@pytest.mark.parametrize("at", range(1, 12))
def test_a_sync_that_breaks_while_it_forgets_goes_on(tmp_path: Path, at: int) -> None:
    ann, bob, _ = _three(tmp_path)
    ann.forget("notes:rent")
    for bank in (ann, bob):
        sync_cut(bank, at, after=bool(at % 2))
    synced(ann, bob, ann)
    assert b"Nadia" not in b"".join((*contents(ann).values(), *contents(bob).values(), *at_remote(tmp_path).values()))


def test_nobody_makes_others_forget_most_of_what_they_have(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    ids = [ann.add(f"Fact {number} says that box {number * 7} is on shelf {number}.").id for number in range(30)]
    synced(ann, bob)
    ann.forget(*ids)
    with pytest.raises(InvalidInput, match="Others have forgotten 30 of the 30 memories here"):
        synced(ann, bob)
    assert len(contents(bob)) == 30
    sync.sync(bob, deletions=True)
    assert contents(bob) == {}


def test_whoever_writes_to_what_is_about_to_go_does_not_bring_it_back(tmp_path: Path) -> None:
    """A sync may end between knowing of what was forgotten and removing it: a line added blindly kept it for all."""
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    ids = [ann.add(f"Fact {number} says that box {number * 7} is on shelf {number}.").id for number in range(30)]
    synced(ann, bob)
    ann.forget(*ids)
    with pytest.raises(InvalidInput, match="Others have forgotten"):
        synced(ann, bob)
    writes = (
        lambda: bob.append(ids[0], "Bob has seen it."),
        lambda: bob.update(ids[1], tags=["seen"]),
        lambda: bob.edit(ids[2], "on shelf 2", "on shelf 3"),
    )
    for write in writes:
        with pytest.raises(InvalidInput, match="and is held back: nothing was written"):
            write()
    sync.sync(bob, deletions=True)
    synced(ann)
    assert (contents(ann), contents(bob), [*at_remote(tmp_path)]) == ({}, {}, [PATH])


def test_what_others_say_was_forgotten_may_be_nonsense(tmp_path: Path) -> None:
    bob = member(tmp_path, "bob")
    bob.add("Deploys go out on Tuesdays.", title="Deploy day")
    lines = [
        b"not json",
        b"[]",
        b'{"key":"zz"}',
        b'{"key":1}',
        b'{"key":"%s"}' % (b"ab" * 32),
        b'{"name":1}',
        b"{",
        b"null",
    ]
    with closing(remotes.opened(str(tmp_path / "remote"))) as remote:
        remote.put(PATH, b"\n".join(lines), None, scope="shared", author="mallory")
    synced(bob)
    assert bob.get("notes:deploy-day").text == "Deploys go out on Tuesdays."


def test_nobody_makes_others_look_at_every_text_under_very_many_keys(tmp_path: Path) -> None:
    bob = member(tmp_path, "bob")
    with closing(remotes.opened(str(tmp_path / "remote"))) as remote:
        keys = b"".join(b'{"key":"%064x"}\n' % number for number in range(MOST_KEYS + 1))
        version = remote.put(PATH, keys, None, scope="shared", author="mallory")
        with pytest.raises(InvalidInput, match="more than 64 members") as caught:
            sync.sync(bob)
        assert f"`{PATH}`" in caught.value.hint
        assert bob.tombstones.private.path is not None
        assert not os.path.lexists(bob.tombstones.private.path)
        remote.delete(PATH, version, scope="shared", author="ann")
    bob.add("Deploys go out on Tuesdays.", title="Deploy day")
    synced(bob)
    assert at_remote(tmp_path).keys() == {"deploy-day.md"}


def test_forget_names_the_remotes_that_may_have_it(tmp_path: Path) -> None:
    ann, *_ = _three(tmp_path)
    left = ann.forget("notes:rent", dry_run=True).left
    assert [each.command for each in left if "remote" in each.where] == ["memlane sync team"]


def test_what_is_written_on_purpose_after_it_was_forgotten_stays_when_others_write_beside_it(tmp_path: Path) -> None:
    ann, bob = (member(tmp_path, name) for name in ("ann", "bob"))
    ann.add(SAID, title="Rent")
    ann.add("What the household has to know.", title="Board")
    synced(ann, bob, rounds=2)
    ann.forget("notes:rent")
    synced(ann, bob, rounds=2)
    ann.append("notes:board", SAID)
    bob.append("notes:board", "The boiler is serviced in October.")
    done = synced(ann, bob, rounds=3)
    assert [each.unsent for each in done] == [[], []]
    assert contents(ann) == contents(bob)
    for text in (SAID, "The boiler is serviced in October."):
        assert text in bob.get("notes:board").text


def test_a_copy_under_another_name_keeps_what_somebody_added_to_it(tmp_path: Path) -> None:
    """Nobody is asked, and all members have the same in the end: also who had the copy from others."""
    ann, bob, cid = _three(tmp_path)
    ann.forget("notes:rent")
    bob.move("notes:rent", "money/rent")
    bob.append("notes:money/rent", "The heating is paid apart.")
    synced(bob, cid)
    synced(ann, bob, cid, rounds=2)
    assert [bank.get("notes:money/rent").text for bank in (ann, bob, cid)] == ["The heating is paid apart."] * 3
    assert contents(ann) == contents(bob) == contents(cid)
    assert [each.unsent + each.held for each in synced(ann, bob, cid)] == [[], [], []]
    for bank in (ann, bob, cid):
        bank.close()
    assert b"Nadia" not in _everything(tmp_path)


def test_a_version_of_which_nothing_is_left_goes_and_the_others_stay() -> None:
    ways = ((SAID,), ("She may move.",), ("The flat was sold.",))
    text = "\n".join(("Above.", *alternatives.written([alternatives.Versions(ways)]), "Below."))
    two = alternatives.written([alternatives.Versions(ways[1:])])
    assert alternatives.without(text, SAID.__eq__) == "\n".join(("Above.", *two, "Below."))
    assert alternatives.without(text, {SAID, "She may move."}.__contains__) == "Above.\nThe flat was sold.\nBelow."


def test_a_copy_that_says_only_a_part_of_it_goes_as_a_whole(tmp_path: Path) -> None:
    ann, bob, cid = _three(tmp_path)
    bob.move("notes:rent", "money")
    ann.append("notes:rent", "Her neighbour Ottilie has paid the same since the year before.")
    ann.forget("notes:rent")
    synced(ann, bob, cid, rounds=2)
    assert contents(ann) == contents(bob) == contents(cid)
    assert "money.md" not in contents(bob)


def test_what_two_people_changed_is_not_like_what_others_changed_before(tmp_path: Path) -> None:
    """The marks around versions are nobody's words."""
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    for title in ("Rent", "Deploys"):
        ann.add(f"About {title}.", title=title)
    synced(ann, bob)
    for title in ("Rent", "Deploys"):
        ann.update(f"notes:{title.lower()}", text=f"Ann says that {title} is due on the first of March.")
        bob.update(f"notes:{title.lower()}", text=f"Bob heard of {title} from a man with a green hat.")
    synced(ann)
    bob.sync()
    ann.sync()
    ann.forget("notes:rent")
    synced(ann, bob, ann)
    assert [each.unsent for each in synced(ann, bob)] == [[], []]
    assert "Version 2 of 2" in bob.get("notes:deploys").text


def test_a_note_that_may_stay_may_stay_under_another_name(tmp_path: Path) -> None:
    ann = member(tmp_path, "ann")
    ann.add(SAID, title="Rent")
    ann.add(f"{SAID} She wrote that in May.", title="Letter")
    ann.forget("notes:rent")
    ann.move("notes:letter", "post")
    assert [hit.memory.id for hit in ann.search("Nadia landlord", lane="notes")] == ["notes:post"]


LIST = f"""{SAID}

## Contacts

- call Bob
- PIN 4711
- Ottilie

## Money

- in the tin
"""


def _copied(top: Path, added: str, *, before: str = "") -> tuple[Bank, Bank]:
    """Ann forgets a list, of which Bob has a copy with something added."""
    ann, bob = member(top, "ann"), member(top, "bob")
    ann.add(LIST, title="Rent")
    synced(ann, bob)
    bob.move("notes:rent", "people")
    bob.update("notes:people", bob.get("notes:people").text.replace("- Ottilie", f"- Ottilie\n{added}"))
    if before:
        bob.add(before, title="Before")
    ann.forget("notes:rent")
    synced(ann, bob, rounds=2)
    assert contents(ann) == contents(bob)
    return ann, bob


def test_a_copy_loses_the_lines_of_few_words_too(tmp_path: Path) -> None:
    """What was added keeps the heading that it stands under."""
    ann, bob = _copied(tmp_path, "- Eve from the bakery next door")
    assert [bank.get("notes:people").text.strip() for bank in (ann, bob)] == [
        "## Contacts\n\n- Eve from the bakery next door"
    ] * 2
    for bank in (ann, bob):
        bank.close()
    rest = _everything(tmp_path)
    assert [word in rest for word in (b"4711", b"call Bob", b"in the tin")] == [False] * 3


def test_a_line_that_other_memories_have_stays_in_a_copy(tmp_path: Path) -> None:
    _, bob = _copied(tmp_path, "- Eve from the bakery next door", before="To do:\n\n- Call Bob!\n- buy milk")
    text = bob.get("notes:people").text
    assert ("call Bob" in text, "4711" in text) == (True, False)


def test_a_copy_that_says_nothing_else_goes_as_a_whole(tmp_path: Path) -> None:
    _, bob = _copied(tmp_path, "- PIN 4711")
    assert sorted(contents(bob)) == []


def test_a_text_that_has_no_telling_line_of_it_keeps_its_lines(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    ann.add(LIST, title="Rent")
    bob.add("- call Bob\n- Ottilie\n- feed the cat of the neighbours", title="To do")
    before = contents(bob)["to-do.md"]
    ann.forget("notes:rent")
    synced(ann, bob, rounds=2)
    assert contents(bob)["to-do.md"] == contents(ann)["to-do.md"] == before


def test_what_is_left_of_a_copy_is_whose_the_copy_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bob's own stays Bob's, and what Cid has from Bob does not become Cid's."""
    homes = {name: tmp_path / f"home of {name}" for name in ("ann", "bob", "cid")}
    banks = {}

    def at(name: str) -> Bank:
        monkeypatch.setenv("HOME", str(homes[name]))
        return banks[name]

    for name, home in homes.items():
        home.mkdir()
        monkeypatch.setenv("HOME", str(home))
        banks[name] = member(tmp_path, name)
    at("ann").add(SAID, title="Rent")
    synced(at("ann"))
    synced(at("bob"))
    at("bob").add(f"{SAID}\n\nThe heating is paid apart.", title="Money")
    for name in ("bob", "cid"):
        synced(at(name))
    at("ann").forget("notes:rent")
    found = {}
    for name in ("ann", "cid", "bob"):
        synced(at(name))
    for name in ("ann", "bob", "cid"):
        memory = at(name).get("notes:money")
        found[name] = (memory.text, at(name).origins([memory]))
    theirs = {"notes:money": 'came by sync, by "bob", not reviewed'}
    left = "The heating is paid apart."
    assert found == {"ann": (left, theirs), "bob": (left, {}), "cid": (left, theirs)}


@pytest.mark.parametrize("what", ["default", "default/*"])
def test_a_remote_that_was_emptied_is_not_given_what_was_forgotten(tmp_path: Path, what: str) -> None:
    """It would look like a bank again, with which everything is in step: as a drive does that is not mounted."""
    ann = member(tmp_path, "ann")
    for title in ("Rent", "Tea"):
        ann.add(f"The {title} is due on the first day of every month.", title=title)
    synced(ann)
    for folder in (tmp_path / "remote").glob(what):
        shutil.rmtree(folder)
    ann.forget("notes:rent")
    before = sorted((tmp_path / "remote").rglob("*"))
    with pytest.raises(Unreachable, match="nothing of this bank any more"):
        synced(ann)
    assert sorted((tmp_path / "remote").rglob("*")) == before


def test_the_only_record_of_the_vault_that_somebody_forgets_is_gone_at_the_remote(tmp_path: Path) -> None:
    """The empty file that was left was nothing to send, and the remote kept the text."""
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    id = ann.add("The port of the API is 8080.", lane="vault").id
    synced(ann, bob)
    ann.forget(id)
    synced(ann, bob)
    assert [*bob.memories("vault")] == []
    assert sorted(at_remote(tmp_path)) == [".memlane/forgotten"]


def test_what_is_forgotten_is_gone_at_the_remote_although_the_rest_of_the_file_must_not_be_sent(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    id = ann.add("The port of the API is 8080.", lane="vault").id
    synced(ann, bob)
    secret = secret_of(1, 1)
    with open(ann.root / "vault.jsonl", "a") as file:
        line = (ann.root / "vault.jsonl").read_text()
        file.write(line.replace(id.partition(":")[2], "0" * 12).replace("The port of the API is 8080.", secret))
    synced(ann, bob)
    ann.forget(id)
    (done, _) = synced(ann, bob)
    assert sorted(at_remote(tmp_path)) == [".memlane/forgotten"]
    assert [held.path for held in done.unsent] == ["vault.jsonl"]
