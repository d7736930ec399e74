"""The index of topics: each member makes it of the files that it has, and what a person wrote into it travels."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from memlane import Bank
from memlane.care.sync import engine, state, travel
from memlane.exchange import remotes
from synced import TEAM, Cut, at_remote, contents, member, sync_cut, synced, told

TOKEN = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"
INDEX = "topics/index.md"


def _described(bank: Bank, title: str, description: str) -> None:
    """Let a person say in the index what a topic is about."""
    page = bank.root / INDEX
    page.write_text(page.read_text().replace(f"- {title} <!--", f"- {description} <!--"))


def _put(top: Path, path: str, data: bytes) -> None:
    with closing(remotes.opened(str(top / "remote"))) as remote:
        remote.put(path, data, None, scope=remotes.SHARED, author="eve")


def _held_back(top: Path) -> tuple[Bank, Bank]:
    """Two members of whom each holds back something of the topics."""
    ann, bob = member(top, "ann"), member(top, "bob")
    _put(top, "topics/auth/keys.md", TOKEN.encode())
    return ann, bob


def test_what_a_person_says_of_a_topic_travels_and_titles_and_counts_do_not(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    ann.topics.store("auth/oauth2", "Refresh fails after an hour.", title="Refresh")
    ann.topics.store("auth/keys", "Keys rotate on Mondays.", title="Rotation")
    _described(ann, "Refresh", "How tokens are renewed")
    synced(ann, bob)
    assert at_remote(tmp_path)[INDEX] == told(ann)[INDEX]
    assert b"Rotation" not in at_remote(tmp_path)[INDEX]
    assert contents(bob)[INDEX] == contents(ann)[INDEX]
    assert b"How tokens are renewed <!-- auth/oauth2, entries: 1," in contents(bob)[INDEX]


def test_a_new_entry_does_not_send_the_index_again(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    ann.topics.store("auth/oauth2", "Refresh fails after an hour.", title="Refresh")
    synced(ann, bob)
    ann.topics.store("auth/oauth2", "Scopes are sorted.", title="Scopes")
    assert [(done.sent, done.received) for done in synced(ann, bob)] == [(1, 0), (0, 1)]
    assert contents(bob)[INDEX] == contents(ann)[INDEX]


def test_members_who_hold_something_back_have_the_same_index(tmp_path: Path) -> None:
    """The title of an entry that somebody else deleted was taken for a person's words."""
    ann, bob = _held_back(tmp_path)
    deleted = ann.topics.store("auth/oauth2", "Refresh fails after an hour.", title="Refresh").entry.id
    synced(ann, bob)
    ann.delete(deleted)
    ann.topics.store("auth/oauth2", "Scopes are sorted.", title="Scopes")
    synced(ann, bob, ann, rounds=2)
    assert contents(bob) == contents(ann)
    assert b"`oauth2.md` - Scopes <!--" in contents(bob)[INDEX]


def test_what_a_person_says_of_a_topic_travels_while_something_is_held_back(tmp_path: Path) -> None:
    ann, bob = _held_back(tmp_path)
    ann.topics.store("auth/oauth2", "Refresh fails after an hour.", title="Refresh")
    synced(ann, bob)
    _described(bob, "Refresh", "How tokens are renewed")
    synced(bob, ann)
    assert contents(bob)[INDEX] == contents(ann)[INDEX]
    assert b"How tokens are renewed" in contents(ann)[INDEX]


def test_what_is_said_of_a_topic_that_is_held_back_here_stays_with_the_others(tmp_path: Path) -> None:
    ann, bob = _held_back(tmp_path)
    line = b"- `keys.md` - Where keys are <!-- auth/keys, entries: 0, archived: 0, newest: - -->\n"
    _put(tmp_path, INDEX, b"# Memory Index\n\n## Topics\n\n### Auth\n" + line)
    synced(bob)
    bob.topics.store("auth/oauth2", "Refresh fails after an hour.", title="Refresh")
    _described(bob, "Refresh", "How tokens are renewed")
    synced(bob, ann)
    assert line in at_remote(tmp_path)[INDEX]
    assert b"How tokens are renewed" in at_remote(tmp_path)[INDEX]
    assert b"Where keys are" not in contents(ann)[INDEX]


def test_the_index_is_up_to_date_when_a_sync_breaks_off_after_the_entries_came(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    ann.topics.store("auth/oauth2", "Refresh fails after an hour.", title="Refresh")
    synced(ann, bob)
    ann.topics.store("auth/oauth2", "Scopes are sorted.", title="Scopes")
    synced(ann)
    at = 1
    while b"Scopes are sorted." not in contents(bob)["topics/auth/oauth2.md"]:
        sync_cut(bob, at, after=True)
        at += 1
    synced(bob)
    assert contents(bob) == contents(ann)


def test_what_comes_while_something_is_sent_is_in_the_index(tmp_path: Path) -> None:
    """Bob's entry is there before Ann's, and has the same words: nothing is left to be sent."""
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    ann.topics.store("auth/oauth2", "Refresh fails after an hour.", title="Refresh")
    synced(ann, bob)
    ann.topics.store("auth/oauth2", "Scopes are sorted.", title="Scopes")

    class Late(Cut):
        """Somebody else is quicker, just before we send."""

        def put(self, path: str, data: bytes, expected: str | None, **said: str) -> str:
            if path == "topics/auth/oauth2.md" and self.after:
                self.after = False
                bob.topics.store("auth/oauth2", "Scopes are sorted.", title="Scopes")
                bob.topics.store("auth/oauth2", "Bob knows more.", title="More")
                synced(bob)
            return super().put(path, data, expected, **said)

    with state.opened(ann.root) as kept:
        assert kept is not None
        settings = kept.remote(TEAM)
        with closing(Late(remotes.opened(settings.url), 10**9, after=True)) as remote:
            engine.run(ann, kept, settings, remote)
    assert contents(ann) == contents(bob)


def test_members_have_the_same_index_after_somebody_took_an_entry_out_in_an_editor(tmp_path: Path) -> None:
    """The page stays as it is then, and the title in it is nobody's any more."""
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    ann.topics.store("auth/oauth2", "Refresh fails after an hour.", title="Refresh")
    ann.topics.store("auth/oauth2", "Scopes are sorted.", title="Scopes")
    synced(ann, bob)
    while not travel.stamp_of(str(bob.root / INDEX)):
        pass  # until a look at the page tells whether it was changed since
    synced(bob)
    head, _, second = (bob.root / "topics/auth/oauth2.md").read_text().split("## 2")
    (bob.root / "topics/auth/oauth2.md").write_text(f"{head}## 2{second}")
    synced(bob)
    ann.topics.store("auth/oauth2", "Tokens are long.", title="Tokens")
    synced(ann, bob, ann)
    assert contents(ann) == contents(bob)


def test_whoever_was_killed_before_the_index_was_written_has_it_after_a_sync(tmp_path: Path) -> None:
    ann, bob = member(tmp_path, "ann"), member(tmp_path, "bob")
    ann.topics.store("auth/oauth2", "Refresh fails after an hour.", title="Refresh")
    synced(ann, bob)
    before = contents(ann)[INDEX]
    ann.topics.store("auth/keys", "Keys rotate on Mondays.", title="Rotation")
    after = contents(ann)[INDEX]
    (ann.root / INDEX).write_bytes(before)
    synced(ann, bob)
    assert contents(ann)[INDEX] == contents(bob)[INDEX] == after
    (ann.root / "topics/auth/keys.md").unlink()
    synced(ann, bob)
    assert contents(ann)[INDEX] == contents(bob)[INDEX] == before
