"""Notes under names of a program's choice, and changes that hold only while nobody else has changed the memory."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlane import Bank
from memlane.core.errors import AlreadyExists, Conflict, InvalidInput, MemlaneError, NotFound, Refused
from memlane.core.model import Memory
from memlane.disk.names import of_key
from samples import LANES, draft

# -- compare and swap


def made_in(bank: Bank, lane: str) -> Memory:
    given = draft(lane, 1)
    return bank.add(given.text, lane=lane, title=given.title, **given.fields)


@pytest.mark.parametrize("lane", LANES)
def test_a_change_that_expects_another_version_is_refused(bank: Bank, lane: str) -> None:
    made = made_in(bank, lane)
    before = bank.get(made.id)
    changed = bank.append(made.id, "A second paragraph.", expected=before.version)
    assert changed.version != before.version
    for change in (
        lambda: bank.update(made.id, "Something else.", expected=before.version),
        lambda: bank.append(made.id, "A third.", expected=before.version),
        lambda: bank.delete(made.id, expected=before.version),
    ):
        with pytest.raises(Conflict, match="Nothing was written"):
            change()
    assert bank.get(made.id) == bank.get(changed.id)
    now = bank.get(made.id)
    bank.update(made.id, "Something else.", expected=now.version)
    bank.delete(made.id, expected=bank.get(made.id).version)
    with pytest.raises(NotFound):
        bank.get(made.id)


@pytest.mark.parametrize("lane", ["notes", "vault", "topics"])
def test_of_many_that_change_one_version_one_succeeds(bank: Bank, lane: str) -> None:
    made = made_in(bank, lane)
    for turn in range(5):
        version = bank.get(made.id).version

        def change(name: str, version: str = version, turn: int = turn) -> bool:
            try:
                bank.update(made.id, f"The text of {name} in turn {turn}.", expected=version)
            except Conflict:
                return False
            return True

        with ThreadPoolExecutor(4) as pool:
            assert sorted(pool.map(change, "abcd")) == [False, False, False, True]


def test_a_version_is_what_the_memory_says(bank: Bank) -> None:
    made = bank.add("Deploys go out on Tuesdays.", title="Deploy day")
    assert bank.get(made.id).version == bank.get(made.id).version
    assert bank.update(made.id, tags=["ops"]).version != made.version
    assert bank.update(made.id, tags=[]).version == made.version


def test_a_memory_with_a_secret_has_the_version_that_the_caller_saw(bank: Bank) -> None:
    made = bank.add("Deploys go out on Tuesdays.", title="Deploy day")
    with made.path.open("a") as file:
        file.write("\npassword: Sommer2024!xyz\n")
    seen = bank.get(made.id)
    assert "Sommer2024" not in seen.text
    bank.update(made.id, tags=["ops"], expected=seen.version)


def test_a_conflict_says_which_version_there_is(bank: Bank) -> None:
    made = bank.put("plan", "First.")
    now = bank.put("plan", "Second.").version
    for expected in (made.version, ""):
        with pytest.raises(Conflict) as caught:
            bank.put("plan", "Third.", expected=expected)
        assert (caught.value.version, caught.value.to_dict()["version"]) == (now, now)
    with pytest.raises(Conflict) as caught:
        bank.put("other", "Third.", expected=made.version)
    assert caught.value.version is None


def test_changing_what_has_expired_says_that_no_answer_shows_it(bank: Bank) -> None:
    made = bank.add("The staging server is down.", title="Staging", expires="2020-01-01")
    said = "it has expired, so that no answer shows it: `memlane restore notes:staging` keeps it"
    assert bank.update(made.id, "The staging server is up.").remarks == (said,)
    assert bank.append(made.id, "Since noon.").remarks == (said,)
    assert bank.update(made.id, expires=None).remarks == ()
    assert bank.get(made.id).text == "The staging server is up.\n\nSince noon."


# -- keys


def test_put_makes_and_replaces_and_keeps_when_it_was_made(bank: Bank) -> None:
    made = bank.put("deploy-day", "Tuesdays.", title="Day", tags=["ops"], extra={"user": {"level": 3}})
    again = bank.put("deploy-day", "Fridays.", extra={"colour": "red"})
    assert (made.id, again.id, again.text) == ("notes:deploy-day", "notes:deploy-day", "Fridays.")
    assert (again.tags, dict(again.fields), again.created_at) == ((), {"colour": "red"}, made.created_at)
    assert len(bank.list()) == 1


def test_a_text_is_taken_as_it_is(bank: Bank) -> None:
    text = "---\ntitle: Not ours\n---\nBody."
    for _ in range(2):
        assert bank.put("page", text, extra={"n": 1}).text == text
        assert bank.put("plain", text).text == text


def test_two_notes_may_say_the_same(bank: Bank) -> None:
    bank.put("one", "The same text in both.")
    bank.put("two", "The same text in both.")
    assert sorted(memory.id for memory in bank.list()) == ["notes:one", "notes:two"]


def test_names_may_be_anything_and_differ_by_case(bank: Bank) -> None:
    keys = [
        "Alice",
        "alice",
        "alice ",
        "../../etc/passwd",
        "con",
        "records/x",
        "private/x",
        "日本",
        "a\nb",
        "😀",
        "x" * 500,
    ]
    for key in keys:
        bank.put(key, f"The text of {key!r}.")
    for key in keys:
        assert bank.put(key, f"The text of {key!r}, again.", expected=None).text.endswith("again.")
    assert len(bank.list()) == len(keys)
    assert all(Path(memory.file).is_relative_to(bank.root) for memory in bank.list())


@given(st.text(min_size=1), st.text(min_size=1))
def test_no_two_names_have_one_file(first: str, second: str) -> None:
    assert (of_key(first) == of_key(second)) == (first == second)


@pytest.mark.parametrize("expired", [False, True])
def test_a_note_is_found_by_exactly_the_key_that_it_was_put_under(bank: Bank, expired: bool) -> None:
    keys = ["Banner", "banner", "notes:banner", "alice@example.org", "a\u200bb", "a\u2028b", "private/x", "null", "Ä"]
    made = {key: bank.put(key, f"The text of {key!r}.", expires="2020-01-01" if expired else None).id for key in keys}
    assert {key: bank.get(key=key, expired=True).id for key in keys} == made
    assert len(set(made.values())) == len(keys)
    for other in ("BANNER", "ab", "alice-example-org", made["Banner"].removeprefix("notes:")):
        with pytest.raises(NotFound, match="under the key"):
            bank.get(key=other)
    if expired:
        with pytest.raises(NotFound, match="expired"):
            bank.get(key="Banner")


@pytest.mark.parametrize("given", [{}, {"id": "notes:plan", "key": "plan"}, {"key": ""}])
def test_get_takes_an_id_or_a_key(bank: Bank, given: dict[str, str]) -> None:
    bank.put("plan", "First.")
    with pytest.raises(InvalidInput):
        bank.get(**given)


def test_a_private_note_stays_private_and_has_one_key(bank: Bank) -> None:
    made = bank.put("Plan", "First.", scope="private")
    again = bank.put("Plan", "Second.")
    assert (again.id, again.scope, bank.get(key="Plan").text) == (made.id, None, "Second.")
    assert made.path.parent == bank.root / "private"
    assert len(bank.list()) == 1


def test_a_shared_note_that_is_put_as_private_moves(bank: Bank) -> None:
    version = bank.put("plan", "First.").version
    for wrong in ({"type": "nonsense"}, {"expected": "other"}):
        with pytest.raises((InvalidInput, Conflict)):
            bank.put("plan", "Second.", scope="private", **wrong)
    assert (bank.get(key="plan").id, bank.get(key="plan").version) == ("notes:plan", version)
    assert bank.put("plan", "Second.", scope="private", expected=version).id == "notes:private/plan"
    assert [memory.text for memory in bank.list()] == ["Second."]
    bank.undo()
    assert bank.get(key="plan").id == "notes:plan"


def test_a_key_in_the_users_bank_is_found_from_the_project(bank: Bank) -> None:
    own = Bank.init(user=True)
    made = bank.put("Plan", "Mine.", scope="user")
    assert (made.id, made.owner, own.get(key="Plan").text) == (bank.get(key="Plan").id, "user", "Mine.")
    bank.put("Plan", "The project's.")
    assert (bank.get(key="Plan").text, own.get(key="Plan").text) == ("The project's.", "Mine.")


def test_a_renamed_note_has_its_new_name_as_its_key(bank: Bank) -> None:
    bank.put("Alice@example.org", "Prefers tea.")
    moved = bank.move(bank.get(key="Alice@example.org").id, "team/alice")
    assert (bank.get(key="team/alice").id, dict(moved.fields)) == ("notes:team/alice", {})
    with pytest.raises(NotFound):
        bank.get(key="Alice@example.org")
    assert bank.put("team/alice", "Prefers coffee.").id == moved.id


def test_put_expects_a_version_or_nothing(bank: Bank) -> None:
    made = bank.put("plan", "First.", expected="")
    with pytest.raises(Conflict, match="there already"):
        bank.put("plan", "Second.", expected="")
    second = bank.put("plan", "Second.", expected=made.version)
    with pytest.raises(Conflict):
        bank.put("plan", "Third.", expected=made.version)
    assert bank.get("plan").text == second.text == "Second."
    with pytest.raises(Conflict, match="gone"):
        bank.put("other", "Text.", expected=made.version)


def test_put_passes_the_gate(bank: Bank) -> None:
    with pytest.raises(Refused):
        bank.put("plan", "password: Sommer2024!xyz")
    with pytest.raises(InvalidInput):
        bank.put("", "Text.")
    with pytest.raises(InvalidInput):
        bank.put("plan", "Text.", extra={"title": "x"})
    assert bank.list() == []


def test_put_is_taken_back_by_undo(bank: Bank) -> None:
    bank.put("plan", "First.")
    bank.put("plan", "Second.")
    bank.undo()
    assert bank.get("plan").text == "First."


# -- moving


def test_a_note_moves_with_its_links_its_anchors_and_its_history(bank: Bank) -> None:
    bank.add("Deploys go out on Tuesdays.", title="Deploy day")
    bank.update("deploy-day", "Deploys go out on Fridays.")
    link = bank.add("See [[deploy-day]], [[Deploy-Day.md#when|the day]] and `[[deploy-day]]`, [[memory:deploy-day]].")
    bank.add("Deploys are frozen in December.", title="Freeze", replaces="notes:deploy-day")
    moved = bank.move("notes:deploy-day", "ops/release-day")
    assert (moved.id, moved.text, moved.remarks) == ("notes:ops/release-day", "Deploys go out on Fridays.", ())
    assert bank.get(link.id).text == (
        "See [[ops/release-day]], [[ops/release-day#when|the day]] and `[[deploy-day]]`, [[memory:ops/release-day]]."
    )
    assert [found.memory.id for found in bank.linked(moved.id)] == [link.id]
    assert bank.get(moved.id).superseded_by == "notes:freeze"
    versions = bank.history(moved.id)
    assert [version.what for version in versions] == ["move", "update", "add"]
    bank.undo()
    assert (bank.get("notes:deploy-day").text, "[[deploy-day]]," in bank.get(link.id).text) == (moved.text, True)


def test_links_that_still_mean_it_stay_as_they_are(bank: Bank) -> None:
    bank.add("Deploys go out on Tuesdays.", title="Deploy day")
    link = bank.add("See [[deploy-day]].")
    bank.move("notes:deploy-day", "ops/deploy-day")
    assert bank.get(link.id).text == "See [[deploy-day]]."


def test_what_cannot_be_moved_says_why(bank: Bank) -> None:
    bank.add("Deploys go out on Tuesdays.", title="Deploy day")
    bank.add("The API listens on port 8080.", title="Port")
    fact = bank.add("The mission is to keep the runtime stable.", lane="vault")
    for id, new, error in (
        ("notes:deploy-day", "port", AlreadyExists),
        ("notes:deploy-day", "../out", InvalidInput),
        ("notes:nothing", "else", NotFound),
        (fact.id, "else", InvalidInput),
    ):
        with pytest.raises(error):
            bank.move(id, new)
    assert bank.get("notes:deploy-day").text == "Deploys go out on Tuesdays."


# -- fields of one's own, and many at once


def test_update_sets_and_removes_fields_of_ones_own(bank: Bank) -> None:
    made = bank.add("Deploys go out on Tuesdays.", extra={"source": "wiki", "level": 1})
    changed = bank.update(made.id, extra={"level": 2, "source": None})
    assert (dict(changed.fields), changed.text) == ({"level": 2}, made.text)


def test_many_are_one_change(bank: Bank) -> None:
    made = bank.add_many(
        [{"text": "The API listens on port 8080."}, {"text": "Deploys go out on Tuesdays.", "tags": ["ops"]}]
    )
    assert [memory.tags for memory in made] == [(), ("ops",)]
    bank.undo()
    assert bank.list() == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": "password: Sommer2024!xyz"},
        {"text": "password: Sommer2024!xyz", "lane": "vault"},
        {"text": " "},
        {"text": "A text.", "type": "nonsense"},
        {"text": "A text.", "nonsense": 1},
        {"text": "A text.", "lane": "nonsense"},
        {"text": "A text.", "expires": "nonsense"},
        {"text": "A text.", "replaces": "notes:nothing"},
        {"text": "A text.", "scope": "user"},
        {"title": "x"},
        {1: "x"},
        7,
    ],
    ids=str,
)
def test_of_many_none_is_stored_where_one_cannot_be(bank: Bank, wrong: Any) -> None:
    with pytest.raises(MemlaneError) as caught:
        bank.add_many([{"text": "The API listens on port 8080."}, wrong])
    assert caught.value.hint
    assert bank.list() == []


def test_one_of_many_may_be_a_text_alone(bank: Bank) -> None:
    assert [memory.text for memory in bank.add_many(iter(["One.", {"text": "Two."}]))] == ["One.", "Two."]
    for wrong in ("One.", {"text": "Two."}, 7):
        with pytest.raises(InvalidInput, match="not several"):
            bank.add_many(wrong)  # type: ignore[arg-type]


# -- what programs get


def test_a_memory_is_json_whatever_its_fields_hold(bank: Bank) -> None:
    made = bank.add("Deploys go out on Tuesdays.", title="Day")
    odd = "when: 2025-01-09\nat: 2025-01-09T10:00:00Z\nratio: .nan\n2: [1, {x: null}]\n"
    made.path.write_text(made.path.read_text().replace("---\n", f"---\n{odd}", 1))
    fields = {"when": "2025-01-09", "at": "2025-01-09T10:00:00Z", "ratio": ".nan", "2": [1, {"x": None}]}
    memory = bank.get(made.id)
    assert json.loads(json.dumps(memory.to_dict(), allow_nan=False)) == memory.to_dict()
    assert (memory.to_dict()["fields"], memory.to_dict()["version"]) == (fields, memory.version)


def test_a_note_that_says_when_it_applies_is_overwritten_too(bank: Bank) -> None:
    bank.add("Run the linter.", when="committing", filename="lint.md")
    assert bank.put("lint", "Run the linter twice.").fields == {}


def test_a_note_that_is_deleted_while_it_is_read_is_not_there(bank: Bank) -> None:
    """Whoever reads and whoever deletes meet at any moment: the note is there, or it is not."""

    def put_and_delete(turn: int) -> None:
        bank.delete(bank.put("here-and-gone", f"The text of turn {turn}.").id)

    def read(_: int) -> str:
        try:
            return bank.notes.fetch("here-and-gone").text[:17]
        except NotFound:
            return "The text of turn "

    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(lambda: [put_and_delete(turn) for turn in range(30)])
        while not writing.done():
            assert read(0) == "The text of turn "
    assert writing.exception() is None
