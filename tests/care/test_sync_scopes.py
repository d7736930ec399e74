"""Scopes at a remote are a wall: whoever may read one of them learns nothing of what is, or was, in the others."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memlane import Bank
from memlane.care import sync
from memlane.care.sync import state as states
from memlane.disk import tombstones
from memlane.disk.forgotten import ForgottenTexts, hashed_id
from memlane.exchange import remotes
from memlane.exchange.remotes import postgres
from remote_servers import Cluster

WORD = re.compile(rb"hippogriff|skunkish", re.IGNORECASE)
PEOPLE = {"ann": ["shared", "skunk"], "bob": ["shared"], "carl": ["skunk"], "dora": ["skunk", "shared"]}
PLAN = "The hippogriff ships in May, as `plan.py` says, and costs nine million in the first year."
Join = Callable[..., Bank]


@pytest.fixture(params=["folder", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """The address of one remote, as each of these people has it."""
    if request.param == "folder":
        (tmp_path / "remote").mkdir()
        yield lambda _: str(tmp_path / "remote")
        return
    cluster: Cluster = request.getfixturevalue("cluster")
    database: str = request.getfixturevalue("database")
    with closing(remotes.opened(cluster.url(database))) as remote:
        list(remote.changes(""))
    cluster.sql(
        "create role skunk", *(f"create role {name} login" for name in PEOPLE), "grant skunk to ann, carl, dora"
    )
    cluster.sql(postgres.setup(*PEOPLE), database=database)
    yield lambda name: cluster.url(database, name)
    cluster.sql(f"drop owned by {', '.join(PEOPLE)}", database=database)
    cluster.sql(*(f"drop role {name}" for name in (*PEOPLE, "skunk")))


@pytest.fixture
def join(tmp_path: Path, url: Callable[[str], str]) -> Join:
    def joined(name: str) -> Bank:
        (tmp_path / name).mkdir()
        bank = Bank.init(tmp_path / name)
        sync.add(bank, "team", url(name), scopes=PEOPLE[name], author=name)
        return bank

    return joined


def synced(*banks: Bank, rounds: int = 1) -> None:
    for _ in range(rounds):
        for bank in banks:
            sync.sync(bank)


def rows(url: str, scope: str) -> dict[str, bytes]:
    """Every row of a scope that is there for whoever may read it, with all that is said of it."""
    found = {}
    with closing(remotes.opened(url)) as remote:
        for entry in [entry for page, _ in remote.changes("") for entry in page if entry.scope == scope]:
            got = remote.get(entry.path, scope, 1 << 30)
            assert got is not None
            found[entry.path] = repr(got[0]).encode() + b"\n" + got[1]
    return found


def on_disk(bank: Bank) -> dict[str, bytes]:
    """Every file of a bank, and all that is known of its remotes, unpacked."""
    found = {str(path): path.read_bytes() for path in Path(bank.root).rglob("*") if path.is_file()}
    with states.opened(bank.root) as state:
        assert state is not None
        for table in ("files", "remotes", "lineages", "parts", "counted", "intents", "sending"):
            for row in state.db.execute(f"SELECT * FROM {table}"):
                found[f"{table} {row[:3]}"] = b" ".join(map(_bytes, row))
    texts = bank.tombstones.private
    for path in filter(os.path.exists, (texts.path or "", texts.others_path)):
        found[path] = Path(path).read_bytes()
    return found


def _bytes(value: object) -> bytes:
    if isinstance(value, bytes):
        try:
            return zlib.decompress(value)
        except zlib.error:
            return value
    return str(value).encode()


def guessed(seen: bytes, ids: set[str], texts: set[str]) -> list[str]:
    """Which of these guesses somebody proves who has these bytes: by every key in them, against every hash in them."""
    hashes = {*re.findall(rb"[0-9a-f]{12,64}", seen)}
    keys = [bytes.fromhex(key.decode()) for key in hashes if len(key) == 64]
    proved = []
    for key in keys:
        made = ForgottenTexts()
        made._key = key
        for id in ids:
            if {tombstones._hashed(key, f"id {id}", 8), hashed_id(key, id).encode()} & hashes:
                proved.append(id)
        for text in texts:
            wholes = {tombstones._hashed(key, tombstones.plain(text), 16), made._whole(text).encode()}
            lines = {line.encode() for line in made._lines(text)}
            if (wholes | lines | {each.encode() for each in made._shingles(text.split())}) & hashes:
                proved.append(text)
    return proved


def test_who_may_read_one_scope_learns_nothing_of_another(
    tmp_path: Path, join: Join, url: Callable[[str], str]
) -> None:
    ann, bob, carl = join("ann"), join("bob"), join("carl")
    for bank in (ann, carl):
        (Path(bank.root).parent / "plan.py").write_text("def plan():\n    return 9\n")
    ids, texts = set(), set()

    def add(bank: Bank, text: str, title: str, **more: str) -> str:
        texts.add(text)
        made = bank.add(text, title=title, **more).id
        ids.add(made)
        return made

    ann.add("The office is in Bonn, on the third floor.", title="Office")
    plan = add(ann, PLAN, "Hippogriff plan", scope="skunk")
    gone = add(ann, "Gone is the hippogriff of the year before.", "Hippogriff gone", scope="skunk")
    back = add(ann, "Back is the hippogriff of last spring.", "Hippogriff back", scope="skunk")
    add(carl, "Carl keeps a hippogriff in the stable, see `plan.py`.", "Hippogriff stable")
    lost = add(carl, "Lost is the hippogriff that Carl once had.", "Hippogriff lost")
    synced(ann, carl, bob, ann)
    ann.add(f"{PLAN} Or in June.", title="Hippogriff plan 2", scope="skunk", replaces=plan)
    ids.add("notes:hippogriff-plan-2")
    ann.delete(gone)
    ann.delete(back)
    ann.restore(back)
    for way in (ann.delete, ann.forget):  # before anybody was told of it
        way(
            add(
                ann,
                f"Never sent, by {way.__name__}, was the hippogriff in the cellar.",
                "Hippogriff cellar",
                scope="skunk",
            )
        )
    carl.delete(lost)
    carl.forget(add(carl, "What Carl forgets of the hippogriff is its price of ninety.", "Hippogriff price"))
    synced(carl, ann, carl, bob)
    texts.discard("The office is in Bonn, on the third floor.")
    moved = ann.add("Everybody may know this at first.", title="Known to all").id
    synced(ann, bob)
    ann.update(moved, text="Nobody may know that the skunkish meeting is on Friday at nine.", scope="skunk")
    synced(ann, bob)
    texts.add(ann.get(moved).text)
    ann.delete(moved)
    ann.add("A hippogriff of the vault is for few.", lane="vault", tier="canon", scope="skunk")
    copy = ann.add("What is forgotten for all was said for few, too, on the 14th of March.", title="For all").id
    add(ann, "What is forgotten for all was said for few, too, on the 14th of March.", "Hippogriff copy", scope="skunk")
    texts.discard(ann.get(copy).text)
    synced(ann, bob, carl)
    ann.forget(copy)
    ann.forget(
        add(ann, f"{PLAN} All of it is to be forgotten by everybody who knows.", "Hippogriff all", scope="skunk")
    )
    ann.forget(plan)
    synced(ann, carl, bob, ann, bob, rounds=2)

    seen = on_disk(bob) | rows(url("bob"), "shared")
    assert {name: WORD.findall(data) for name, data in seen.items() if WORD.search(name.encode() + data)} == {}
    assert guessed(b"\n".join(seen.values()), ids, texts) == []
    assert guessed(b"\n".join(rows(url("ann"), "skunk").values()), ids, texts) != []  # the guesses are good ones
    assert [memory.title for memory in bob.list()] == ["Office"]
    assert sorted(memory.id for memory in carl.list() if memory.lane == "notes") == [
        "notes:hippogriff-back", "notes:hippogriff-copy", "notes:hippogriff-plan-2", "notes:hippogriff-stable",
    ]  # fmt: skip
    assert [carl.tombstones.deleted("Gone is the hippogriff of the year before.") is not None,
            carl.tombstones.deleted("Back is the hippogriff of last spring."),
            carl.tombstones.forgotten(PLAN, plan) is not None] == [True, None, True]  # fmt: skip


def test_a_record_of_the_vault_that_names_another_scope_stays_here_and_status_says_so(join: Join) -> None:
    ann, bob = join("ann"), join("bob")
    ann.add("The build machine is in rack 4 of hall 2.", lane="vault", tier="canon", scope="shared")
    ann.add("The hippogriff is in rack 5.", lane="vault", tier="canon", scope="skunk")
    synced(ann, bob)
    bob.add("The spare one is in rack 6 of hall 3.", lane="vault", tier="canon", scope="shared")
    synced(bob, ann, bob)
    racks = [sorted(memory.text[-7:] for memory in bank.list(lane="vault")) for bank in (ann, bob)]
    assert racks == [["hall 2.", "hall 3.", "rack 5."], ["hall 2.", "hall 3."]]
    assert [(held.path, "another scope" in held.why) for held in sync.status(ann)[0].unsent] == [("vault.jsonl", True)]


def test_a_note_that_is_given_another_scope_goes_to_its_members_and_leaves_the_others(join: Join) -> None:
    ann, bob, carl, dora = (join(name) for name in PEOPLE)
    for number in range(4):  # in whichever order they are listed
        ann.add(f"Plan {number} is for all at first.", title=f"Plan {number}")
    synced(ann, bob, carl, dora)
    for number in range(4):
        (ann if number % 2 else dora).update(f"notes:plan-{number}", scope="skunk")
    synced(ann, dora, bob, carl, rounds=2)
    have = [sorted(memory.title for memory in bank.list()) for bank in (ann, dora, carl, bob)]
    assert have == [["Plan 0", "Plan 1", "Plan 2", "Plan 3"]] * 3 + [[]]
    assert [each.held for bank in (ann, dora) for each in sync.status(bank)] == [(), ()]
    dora.update("notes:plan-2", scope="shared")
    synced(dora, ann, bob, carl)
    assert [sorted(memory.title for memory in bank.list()) for bank in (carl, bob)] == [
        ["Plan 0", "Plan 1", "Plan 3"],
        ["Plan 2"],
    ]


def test_what_is_forgotten_is_told_where_the_remote_has_it_whatever_scope_it_names_by_now(join: Join) -> None:
    ann, bob = join("ann"), join("bob")
    ann.add(PLAN, title="Plan")
    synced(ann, bob)
    ann.update("notes:plan", scope="skunk")
    ann.forget("notes:plan")
    bob.append("notes:plan", "Bob was away.")
    synced(ann, bob, ann, bob)
    assert (ann.list(), bob.list(), bob.tombstones.knows("notes:plan")) == ([], [], True)
    assert not [path for path, data in on_disk(bob).items() if WORD.search(data)]


def test_who_takes_out_of_one_scope_what_was_forgotten_in_another_is_the_later_one(join: Join) -> None:
    """Else whoever does not know of it would take that for something old, and bring it back for ever."""
    ann, bob = join("ann"), join("bob")
    ann.add(PLAN, title="Plan", scope="skunk")
    ann.forget("notes:plan")
    synced(ann, bob)
    bob.add(PLAN, title="Copy")
    synced(bob, ann, bob, ann)
    assert ([memory.id for memory in bob.list()], sync.sync(bob)[0].changed, sync.sync(ann)[0].changed) == (
        [],
        False,
        False,
    )


def test_what_is_merely_like_something_forgotten_in_another_scope_is_held_back_and_stays_there(join: Join) -> None:
    ann, bob = join("ann"), join("bob")
    ann.add(PLAN, title="Plan", scope="skunk")
    ann.forget("notes:plan")
    synced(ann, bob)
    bob.add(PLAN.replace("May", "June").replace("nine", "ten"), title="Other plan")
    synced(bob, ann, rounds=2)
    assert ([memory.id for memory in bob.list()], list(ann.memories())) == (["notes:other-plan"], [])
    assert [(held.path, held.why) for held in sync.status(ann)[0].held] == [
        ("other-plan.md", "is like something that was forgotten")
    ]
    assert [sync.sync(bank)[0].changed for bank in (bob, ann)] == [False, False]


def test_what_names_no_scope_is_in_the_same_one_at_every_remote(tmp_path: Path, join: Join) -> None:
    ann, carl = join("ann"), join("carl")
    (tmp_path / "second").mkdir()
    carl.add("Carl keeps a hippogriff.", title="Hippogriff")
    lost = carl.add("Lost is the hippogriff of Carl, and all of its feathers.", title="Lost hippogriff").id
    gone = carl.add("Gone is the hippogriff of Carl, and never to be seen.", title="Gone hippogriff").id
    synced(carl, ann)
    sync.add(ann, "second", str(tmp_path / "second"), scopes=PEOPLE["ann"], author="ann")
    synced(ann)
    carl.delete(lost)
    carl.forget(gone)
    synced(carl, ann)
    assert rows(str(tmp_path / "second"), "shared") == {}
    assert sorted(rows(str(tmp_path / "second"), "skunk")) == [
        ".memlane/forgotten", "gone-hippogriff.md", "hippogriff.md", "lost-hippogriff.md", "tombstones.jsonl",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("front", "why"),
    [
        ("scope: skunk\nscope: skunk", "has front matter that cannot be read: it may name another scope"),
        ("scope: skunk\ntags: [", "has front matter that cannot be read: it may name another scope"),
        ("scope: Skunk", "names a scope that is not quite skunk"),
        ("scope: 'skunk '", "names a scope that is not quite skunk"),
    ],
)
def test_what_may_be_meant_for_another_scope_goes_to_none(join: Join, front: str, why: str) -> None:
    ann, bob = join("ann"), join("bob")
    (Path(ann.root) / "plan.md").write_text(f"---\n{front}\n---\nThe hippogriff ships in May.\n")
    synced(ann, bob)
    assert [(held.path, held.why) for held in sync.status(ann)[0].unsent] == [("plan.md", why)]
    assert list(Path(bob.root).rglob("*.md")) == []
    (Path(ann.root) / "plan.md").write_text("---\nscope: shared\n---\nIt is for all.\n")
    synced(ann, bob)
    assert [path.name for path in Path(bob.root).rglob("*.md")] == ["plan.md"]
