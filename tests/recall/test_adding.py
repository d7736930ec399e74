"""Writing looks first: what is there already, what is much like it, and what else should be said."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlane import Bank
from memlane.core.errors import InvalidInput
from memlane.core.model import Similar
from memlane.recall import similar
from samples import words


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank.init(tmp_path)


@pytest.fixture(params=["no index", "an index", "another process"])
def looked(request: pytest.FixtureRequest, bank: Bank, tmp_path: Path) -> Bank:
    """A bank with a note and a canon, in the three states that an index may be in."""
    bank.add("Deploys go out on Tuesdays.", title="Deploy day", tags=["release"], created_at="2025-01-15")
    bank.add("The API port is 8080.", lane="vault", tier="canon")
    if request.param == "no index":
        return bank
    bank.search("deploys")
    return bank if request.param == "an index" else Bank.open(tmp_path)


def test_the_same_text_is_not_written_again(looked: Bank) -> None:
    before = len(looked.list())
    again = looked.add("deploys go  out on TUESDAYS")
    assert (again.id, again.duplicate, len(looked.list())) == ("notes:deploy-day", True, before)
    assert again.remarks == ("it is there already, as notes:deploy-day; nothing was written",)
    assert again.to_dict()["duplicate"] is True


def test_what_is_in_another_lane_counts_unless_one_is_asked_for(looked: Bank) -> None:
    canon = next(iter(looked.memories("vault")))
    assert looked.add("The API port is 8080").id == canon.id
    note = looked.add("The API port is 8080", lane="notes")
    assert (note.lane, note.duplicate, [like.id for like in note.similar]) == ("notes", False, [canon.id])


def test_a_changed_fact_is_stored_and_names_the_old_one(looked: Bank) -> None:
    new = looked.add("Deploys go out on Wednesdays.")
    assert new.similar == (Similar("notes:deploy-day", "2025-01-15", "Deploys go out on Tuesdays."),)
    [remark] = new.remarks
    assert remark.startswith("notes:deploy-day is much like it (Deploys go out on Tuesdays.): if this replaces it, ")
    assert remark.endswith("add it with replaces=notes:deploy-day")
    assert looked.get(new.id).similar == ()


def test_what_has_nothing_to_do_with_it_is_not_named(looked: Bank) -> None:
    assert looked.add("The cat sleeps on the warm roof.").similar == ()


def test_labels_that_are_not_taken_over_are_named(looked: Bank) -> None:
    again = looked.add("Deploys go out on Tuesdays.", tags=["release", "ops"], type="fact")
    assert again.remarks[1] == (
        "the tags ops and the type fact were not taken over: update notes:deploy-day to change that"
    )


@pytest.mark.parametrize("place", [{"title": "Release day"}, {"scope": "team"}, {"filename": "other.md"}])
def test_the_same_text_in_another_place_is_another_memory(bank: Bank, place: dict[str, str]) -> None:
    bank.add("See the wiki for how.", title="Deploy day")
    assert bank.add("See the wiki for how.", **place).duplicate is False  # type: ignore[arg-type]


def test_what_was_replaced_may_be_said_again(bank: Bank) -> None:
    old = bank.add("Deploys go out on Tuesdays.")
    new = bank.add("Deploys go out on Wednesdays.", replaces=old.id)
    again = bank.add("Deploys go out on Tuesdays.", replaces=new.id)
    assert (again.duplicate, bank.get(new.id).superseded_by) == (False, again.id)


def test_a_deleted_text_can_be_added(bank: Bank) -> None:
    bank.delete(bank.add("Deploys go out on Tuesdays.").id)
    assert bank.add("Deploys go out on Tuesdays.").duplicate is False


def test_a_note_changed_by_hand_counts_as_it_is_now(bank: Bank) -> None:
    note = bank.add("Deploys go out on Tuesdays.")
    bank.search("deploys")
    note.path.write_text("Lunch is at noon.")
    assert bank.add("Deploys go out on Tuesdays.").duplicate is False


@pytest.mark.parametrize(("wait", "all_are_read"), [(0.0, False), (60.0, True)])
def test_a_write_does_not_wait_for_files_that_are_not_indexed(bank: Bank, wait: float, all_are_read: bool) -> None:
    for number in range(300):
        (bank.root / f"n{number}.md").write_text(words(number))
    seen = similar._Seen()
    with seen.opened(bank, wait) as (_, unread):
        assert len(unread) >= 300
        assert (len(seen._files) >= 300) == all_are_read


def test_a_damaged_index_is_no_reason_to_lose_a_write(bank: Bank, tmp_path: Path) -> None:
    bank.add("Deploys go out on Tuesdays.")
    bank.search("deploys")
    bank.close()
    for path in (tmp_path / ".memories/indices").rglob("*.db"):
        path.write_bytes(b"no database")
    assert Bank.open(tmp_path).add("Lunch is at noon.").id == "notes:lunch-is-at-noon"


def test_a_field_that_the_lane_does_not_know_is_refused_with_the_nearest(bank: Bank) -> None:
    with pytest.raises(InvalidInput) as error:
        bank.add("text", projekt="memlane")
    assert error.value.hint == (
        "Did you mean project? It has: expires, filename, private, project, status, when. "
        "Put a field of your own under extra."
    )


def test_a_field_of_ones_own_goes_under_extra(bank: Bank) -> None:
    assert bank.add("text", extra={"owner": "ann"}).fields == {"owner": "ann"}
    with pytest.raises(InvalidInput, match="The vault lane has no room for other fields"):
        bank.add("text", lane="vault", extra={"owner": "ann"})


def test_a_scope_that_is_not_kept_is_said(bank: Bank) -> None:
    entry = bank.add("Rotate it every hour.", lane="topics", topic="auth/oauth", scope="team")
    assert entry.remarks[-1] == "the topics lane keeps no scope of its own: it is under auth/oauth"


@pytest.mark.parametrize("words", ["next Tuesday", "tomorrow", "in two weeks", "last month"])
def test_a_relative_date_is_remarked_with_today(bank: Bank, words: str) -> None:
    [remark] = bank.add(f"We meet the auditors {words} at ten.").remarks
    assert remark.startswith(f'"{words}" will mean another day when it is read: today is ')


def test_front_matter_in_a_text_is_the_notes_own(bank: Bank) -> None:
    note = bank.add("---\ntype: plan\ntags: [a]\nowner: ann\n---\n\nBody", tags=["b"], title="T")
    assert (note.text, note.type, note.tags, note.fields) == ("Body", "plan", ("b", "a"), {"owner": "ann"})
    assert note.path.read_text().count("---") == 2


def test_front_matter_in_an_update_is_merged(bank: Bank) -> None:
    note = bank.add("Body", tags=["b"], type="plan", created_at="2025-01-15")
    new = bank.update(note.id, "---\ntags: [c]\nowner: ann\n---\n\nNew body")
    assert (new.text, new.type, new.tags, new.fields) == ("New body", "plan", ("c",), {"owner": "ann"})
    assert new.created_at == note.created_at


def test_created_content_with_front_matter_has_one(bank: Bank) -> None:
    bank.notes.create_memory("note.md", "---\ntype: plan\ntags: [a]\n---\n\nBody", ["b"])
    note = bank.get("notes:note")
    assert (note.text, note.type, note.tags) == ("Body", "plan", ("b", "a"))


def test_a_merge_says_which_tags_are_gone(bank: Bank) -> None:
    bank.notes.create_memory("a.md", "A", ["x", "y"])
    answer = bank.notes.merge_memories(["a.md"], "b.md", "---\ntags: [x]\n---\n\nAll")
    assert answer["remark"] == (
        "the sources' tags are not in the new note: y; begin the content with front matter to keep them"
    )


# What the index knows is remembered from one write to the next, and must not hide a file from the look.


def test_an_open_bank_finds_a_file_that_somebody_put_beside_those_it_knows(bank: Bank) -> None:
    bank.add("The cache lives in Redis and is emptied at night.")
    bank.search("cache")
    bank.add("Releases are tagged by hand after the smoke test.")
    (bank.root / "aside.md").write_text("Deploys go through the blue cluster on Fridays.")
    found = bank.add("Deploys go through the blue cluster on Fridays, always.").similar
    assert [like.id for like in found] == ["notes:aside"]


def test_an_open_bank_finds_a_file_in_a_new_folder(bank: Bank) -> None:
    bank.add("The cache lives in Redis and is emptied at night.")
    bank.search("cache")
    bank.add("Releases are tagged by hand after the smoke test.")
    folder = bank.root / "deep" / "down"
    folder.mkdir(parents=True)
    (folder / "note.md").write_text("Retries stop after the third attempt within a minute.")
    found = bank.add("Retries stop after the third attempt within a minute, silently.").similar
    assert [like.id for like in found] == ["notes:deep/down/note"]


def test_an_open_bank_finds_a_file_that_was_deleted_and_written_again_by_others(bank: Bank, tmp_path: Path) -> None:
    cache = bank.add("The cache lives in Redis and is emptied at night.")
    bank.search("cache")
    bank.add("Releases are tagged by hand after the smoke test.")
    cache.path.unlink()
    with Bank.open(tmp_path) as other:
        other.search("cache")  # the index lets go of it
    cache.path.write_text("Queues are drained before a restart of the worker.")  # and has not seen this
    found = bank.add("Queues are drained before a restart of the worker, slowly.").similar
    assert [like.id for like in found] == [cache.id]


def test_what_is_much_like_it_is_shown_by_its_first_words_however_far_down_they_stand(bank: Bank) -> None:
    text = "----\n" * 5000 + "\nThe old machine builds for ten minutes, because of the slow disk in it.\n"
    bank.add(text, title="Old", created_at="2025-01-15")
    new = bank.add(f"{text}And more.", title="New")
    shown = "The old machine builds for ten minutes, because of the slow disk in it."
    assert new.similar == (Similar("notes:old", "2025-01-15", shown),)
