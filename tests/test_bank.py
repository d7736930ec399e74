"""The bank: the same verbs over all lanes."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from conftest import tree
from memlane import Bank, InvalidInput, Memory, NotFound, Refused
from samples import LANES, draft, words


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank.init(tmp_path)


def fill(bank: Bank) -> dict[str, Memory]:
    """One memory in every lane, the later lanes the newer."""
    return {name: bank.lane(name).put(draft(name, number)) for number, name in enumerate(LANES)}


def test_a_memory_has_one_shape_everywhere(bank: Bank) -> None:
    memory = bank.add(
        "Deploys go out on Tuesdays.", title="Deploy day", tags=["release"], type="fact", scope="area:ops", thread="s1",
        created_at="2025-01-15T10:30:00Z",
    )  # fmt: skip
    assert memory.to_dict() == {
        "id": "notes:deploy-day",
        "lane": "notes",
        "title": "Deploy day",
        "text": "Deploys go out on Tuesdays.",
        "tags": ["release"],
        "type": "fact",
        "status": "active",
        "scope": "area:ops",
        "project": None,
        "thread": "s1",
        "created_at": "2025-01-15T10:30:00Z",
        "updated_at": None,
        "path": str(bank.root / "deploy-day.md"),
        "suspicious": [],
        "version": memory.version,
        "fields": {},
    }


def test_all_shapes_are_json(bank: Bank) -> None:
    (bank.root / "odd.md").write_text("---\n1: int key\nx: {a: [1, 2.5, null, true]}\n---\ntext")
    fill(bank)
    for memory in bank.list():
        assert json.loads(json.dumps(memory.to_dict()))["id"] == memory.id


def test_every_lane_is_listed_newest_first(bank: Bank) -> None:
    put = fill(bank)
    listed = [memory.lane for memory in bank.list() if memory.created_at]
    assert listed == sorted(
        listed, key=lambda name: put[name].created_at or datetime.min.replace(tzinfo=UTC), reverse=True
    )
    assert {memory.id for memory in bank.list()} == {memory.id for memory in put.values()}


def test_a_memory_without_a_date_comes_last(bank: Bank) -> None:
    (bank.root / "aaa.md").write_text("no date")
    bank.add("dated", title="b", created_at="1999-01-01")
    assert [memory.id for memory in bank.list()] == ["notes:b", "notes:aaa"]


def test_lists_can_be_filtered(bank: Bank) -> None:
    bank.add("one", title="one", tags=["a", "b"], type="fact", created_at="2025-01-01", thread="t1")
    bank.add("two", title="two", tags=["c"], created_at="2025-02-01", scope="area:x")
    bank.add("three words and more", lane="records", title="three", tags=["a"], created_at="2025-03-01")

    def titles(**filters: object) -> list[str]:
        return [memory.title for memory in bank.list(**filters)]  # type: ignore[arg-type]

    assert titles() == ["three", "two", "one"]
    assert titles(limit=1) == ["three"]
    assert titles(limit=0) == []
    assert titles(lane="notes") == ["two", "one"]
    assert titles(tags=["a", "c"]) == ["three", "two", "one"]
    assert titles(tags="b") == ["one"]
    assert titles(type="fact") == ["one"]
    assert titles(scope="area:x") == ["two"]
    assert titles(thread="t1") == ["one"]
    assert titles(since="2025-01-15") == ["three", "two"]
    assert titles(until=datetime(2025, 1, 15, tzinfo=UTC)) == ["one"]


@pytest.mark.parametrize("lane", LANES)
def test_an_id_is_enough_without_the_lane(bank: Bank, lane: str) -> None:
    memory = fill(bank)[lane]
    assert bank.get(memory.native_id) == bank.get(memory.id)


def test_the_seeds_own_form_of_a_note_id_is_understood(bank: Bank) -> None:
    bank.add("text", title="plan")
    assert bank.get("memory:plan").id == "notes:plan"


def test_an_id_in_two_lanes_must_name_one(bank: Bank) -> None:
    id = bank.add("a captured message here", lane="records").native_id
    bank.add("text", filename=f"{id}.md")
    with pytest.raises(InvalidInput) as caught:
        bank.get(id)
    assert caught.value.hint == f"Name one: notes:{id}, records:{id}."


def test_a_file_whose_name_is_not_utf_8_is_not_found_by_it(bank: Bank) -> None:
    """It is damage, which no list has: what cannot be written down cannot be journaled either."""
    path = bank.root / os.fsdecode(b"caf\xe9.md")
    path.write_text("Old, of another system.")
    for call in (bank.get, bank.delete, bank.history, bank.restore, bank.notes.fetch):
        for id in (path.stem, f"notes:{path.stem}", f"vault:{path.stem}", os.fspath(path)):
            with pytest.raises((InvalidInput, NotFound)):
                call(id)
    assert path.exists()


@pytest.mark.parametrize("id", ["nothing", "notes:nothing", "vault:nothing", "topics:a/b/c", "records:nothing"])
def test_an_unknown_id_is_not_found(bank: Bank, id: str) -> None:
    for verb in (bank.get, bank.delete, bank.restore):
        with pytest.raises(NotFound):
            verb(id)


@pytest.mark.parametrize("lane", LANES)
def test_the_verbs_reach_every_lane(bank: Bank, lane: str) -> None:
    id = fill(bank)[lane].id
    id = bank.update(id, words("new")).id
    id = bank.append(id, words("more")).id
    assert words("more") in bank.get(id).text
    bank.delete(id)
    assert id not in [memory.id for memory in bank.list()]
    assert [removed.id for removed in bank.removed()] == [id]
    assert bank.restore(id).id == id
    assert words("new") in bank.get(id).text


def test_restore_takes_the_latest_deletion(bank: Bank) -> None:
    for text in ("first", "second"):
        bank.add(text, filename="a.md")
        bank.delete("a")
    assert bank.restore("a").text == "second"


@pytest.mark.parametrize("text", ["", "   \n", None, 5])
def test_nothing_is_not_a_memory(bank: Bank, text: object, tmp_path: Path) -> None:
    before = tree(tmp_path)
    with pytest.raises(InvalidInput):
        bank.add(text)  # type: ignore[arg-type]
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    "fields",
    [
        {"lane": "nowhere"},
        {"type": "poem"},
        {"created_at": "yesterday"},
        {"tags": 5},
        {"tags": [1]},
        {"filename": "../x"},
        {"colour": object()},
    ],
)
def test_a_wrong_field_is_refused_and_nothing_is_written(bank: Bank, fields: dict[str, object], tmp_path: Path) -> None:
    before = tree(tmp_path)
    with pytest.raises(InvalidInput) as caught:
        bank.add("some text", **fields)  # type: ignore[arg-type]
    assert caught.value.hint
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    "fields",
    [
        {"title": "a\0b"},
        {"tags": ["a\0b"]},
        {"own": "a\0b"},
        {"title": 3},
        {"own": [object()]},
        {"own": {1: 2}},
        {"scope": 5},
    ],
)
def test_what_no_file_can_hold_is_refused_in_every_field(bank: Bank, fields: dict[str, object], tmp_path: Path) -> None:
    before = tree(tmp_path)
    with pytest.raises(InvalidInput):
        bank.add("some text", **fields)  # type: ignore[arg-type]
    assert tree(tmp_path) == before


def test_a_field_cannot_smuggle_in_another(bank: Bank) -> None:
    memory = bank.add("x", title="a", extra={"a: b\nstatus2": "x"})
    assert memory.fields == {"a: b\nstatus2": "x"}


def test_until_a_day_means_all_of_it(bank: Bank) -> None:
    bank.add("x", title="a", created_at="2025-01-15T10:00:00Z")
    assert [memory.id for memory in bank.list(until="2025-01-15")] == ["notes:a"]
    assert bank.list(until="2025-01-15T09:00:00Z") == []


def test_an_update_must_change_something(bank: Bank) -> None:
    bank.add("text", title="a")
    with pytest.raises(InvalidInput, match="nothing to change"):
        bank.update("a")


def test_stats_count_every_lane(bank: Bank) -> None:
    fill(bank)
    bank.delete(bank.list(lane="notes")[0].id)
    (bank.root / "records" / "bad.md").write_text("damaged")
    stats = bank.stats()
    assert {name: lane["count"] for name, lane in stats["lanes"].items()} == {
        "notes": 0, "vault": 1, "topics": 1, "records": 1, "layers": 1,
    }  # fmt: skip
    assert (stats["count"], stats["problems"], stats["removed"]) == (4, 1, 1)


def test_problems_name_file_line_and_reason(bank: Bank) -> None:
    (bank.root / "bad.md").write_text("---\na: 1\nb: [\n---\ntext")
    (bank.root / "worse.md").write_bytes(b"one\ntwo \xff")
    found = [(problem.path.name, problem.line) for problem in bank.problems()]
    assert found == [("bad.md", 4), ("worse.md", 2)]
    assert bank.get("bad").text == "---\na: 1\nb: [\n---\ntext"


def test_invisible_characters_are_removed_and_reported(bank: Bank) -> None:
    memory = bank.add("in\u200bvisible \x1b[31mred\x1b[0m \u202eright", title="a")
    assert memory.text == "invisible red right"
    assert memory.remarks == ("11 invisible or control characters were removed",)


@pytest.mark.parametrize("text", ["دانشگاه\u200cها", "👩\u200d💻 writes", "עברית\u200f!"])
def test_joiners_that_belong_to_a_script_stay(bank: Bank, text: str) -> None:
    assert bank.add(text, title="a").text == text


def test_invisible_characters_can_be_refused(tmp_path: Path) -> None:
    Bank.init(tmp_path)
    with pytest.raises(Refused) as caught:
        Bank.open(tmp_path, gate__characters="refuse").add("in\u200bvisible")
    assert (caught.value.check, caught.value.code) == ("characters", "invisible_characters")


def test_secrets_can_be_redacted_instead(tmp_path: Path) -> None:
    Bank.init(tmp_path)
    value = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"
    memory = Bank.open(tmp_path, gate__secrets="redact").add(f"Use {value} here", title="a")
    assert value not in memory.path.read_text()
    assert memory.text.startswith("Use [REDACTED:")


def test_a_bank_is_a_context_manager(tmp_path: Path) -> None:
    with Bank.init(tmp_path) as bank:
        assert repr(bank) == f"Bank({str(tmp_path / '.memories')!r})"


def test_a_very_long_word_is_but_a_word(bank: Bank) -> None:
    """Stored at once: a search for file names in it must not begin anew at each of its characters."""
    assert len(bank.add("See src/auth.py. " + "x" * 3_000_000, title="Blob").text) == 3_000_017
