"""The vault's lines (seed 002): fields, versions, tombstones, damage, and lines that others wrote."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from conftest import Clock
from memlane.core.errors import InvalidInput, Refused, StorageError
from memlane.core.model import Memory, Problem
from memlane.disk import log
from memlane.lanes.vault.record import Record, parse_line
from memlane.lanes.vault.store import MemoryVault
from samples import words
from vault_samples import BURST, MISSION, SSN, add, lines, parsed, write
from vault_samples import vault as vault

# -- the format


def test_records_are_json_lines_at_the_seeds_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S002-01"""
    monkeypatch.chdir(tmp_path)
    vault = MemoryVault()
    assert not (tmp_path / "data").exists()
    ids = [vault.add_memory(words(1), "shared", "bio"), vault.add_memory(words(2), "shared", "bio")]
    rows = (tmp_path / "data" / "memory" / "vault.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(row)["id"] for row in rows] == ids


def test_a_line_has_all_fields_in_their_order(tmp_path: Path, clock: Clock) -> None:
    """S002-02 S002-04"""
    vault = MemoryVault(str(tmp_path / "vault.jsonl"), clock=clock)
    id = vault.add_memory(
        "  Projects: memory – 更新 ",
        "Shared",
        "Project",
        ["a", "b"],
        "chat",
        tier="REGISTER",
        topic_id="projects",
    )
    assert vault.path.read_text("utf-8") == (
        f'{{"id":"{id}","version":1,"created_at":"2025-01-10T14:30:22Z","updated_at":null,"tier":"register",'
        '"topic_id":"projects","source":"chat","scope":"shared","category":"project","tags":["a","b"],'
        '"deleted_at":null,"text":"Projects: memory – 更新"}\n'
    )


def test_a_record_has_the_seeds_attributes(tmp_path: Path, clock: Clock) -> None:
    """S002-02 S002-04: topic_id is left out of the line when there is none."""
    vault = MemoryVault(tmp_path / "vault.jsonl", clock=clock)
    id = add(vault, tags=["core"])
    assert vault.recall_memories() == [
        Record(
            id=id,
            text=MISSION,
            scope="shared",
            category="mission",
            tier="canon",
            topic_id=None,
            tags=["core"],
            created_at="2025-01-10T14:30:22Z",
            updated_at=None,
            source="manual",
            deleted_at=None,
            version=1,
        )
    ]
    assert "topic_id" not in lines(vault)[0]


def test_ids_are_twelve_hex_digits_and_unique(vault: MemoryVault) -> None:
    """S002-03"""
    ids = [add(vault, words(number)) for number in range(20)]
    assert all(re.fullmatch("[0-9a-f]{12}", id) for id in ids)
    assert len(set(ids)) == 20


def test_the_tier_is_canon_unless_given(vault: MemoryVault) -> None:
    """S002-05"""
    add(vault)
    assert lines(vault)[0]["tier"] == "canon"


def test_an_old_line_without_tier_and_topic_is_canon_and_can_be_updated(vault: MemoryVault) -> None:
    """S002-06"""
    write(vault, {"id": "0123456789ab", "text": "Born in a lab", "scope": "orion", "category": "bio", "version": 3})
    (record,) = vault.recall_memories()
    assert (record.tier, record.topic_id, record.version) == ("canon", None, 3)
    updated = vault.update_memory("0123456789ab", text="Born in a laboratory")
    assert (updated.tier, updated.version, updated.text) == ("canon", 4, "Born in a laboratory")


def test_every_change_appends_one_line_and_no_byte_changes(vault: MemoryVault) -> None:
    """S002-07"""
    id = add(vault)
    for verb in (
        lambda: add(vault, words(1)),
        lambda: vault.update_memory(id, text=words(2)),
        lambda: vault.update_by_topic("now", "shared", words(3)),
        lambda: vault.update_by_topic("now", "shared", words(4)),
        lambda: vault.delete_memory(id),
    ):
        before = vault.path.read_bytes()
        verb()
        after = vault.path.read_bytes()
        assert after.startswith(before)
        assert after[len(before) :].count(b"\n") == 1


def test_an_update_keeps_what_it_does_not_name(tmp_path: Path, clock: Clock) -> None:
    """S002-08"""
    vault = MemoryVault(tmp_path / "vault.jsonl", clock=clock)
    id = add(vault, tags=["core"], source="chat")
    clock.advance(hours=1)
    updated = vault.update_memory(id, category="Goal")
    assert updated == Record(
        id=id,
        text=MISSION,
        category="goal",
        tags=["core"],
        source="chat",
        created_at="2025-01-10T14:30:22Z",
        updated_at="2025-01-10T15:30:22Z",
        version=2,
    )
    assert parse_line(json.dumps(lines(vault)[-1])) == updated
    assert vault.recall_memories() == [updated]


def test_an_update_of_nothing_known_is_a_key_error(vault: MemoryVault) -> None:
    """S002-08: unknown or deleted."""
    id = add(vault)
    vault.delete_memory(id)
    for unknown in (id, "ffffffffffff"):
        with pytest.raises(KeyError):
            vault.update_memory(unknown, text="x")
    assert len(lines(vault)) == 2


@pytest.mark.parametrize("text", ["", "   ", "a heartbeat", "x" * 1201, f"SSN {SSN}"])
def test_a_refused_update_changes_nothing(vault: MemoryVault, text: str) -> None:
    """S002-08: an update passes the checks of length, noise, words and PII."""
    id = add(vault)
    before = vault.path.read_bytes()
    with pytest.raises((Refused, InvalidInput)):
        vault.update_memory(id, text=text)
    assert vault.path.read_bytes() == before


def test_an_update_is_not_compared_with_others(vault: MemoryVault) -> None:
    """S002-08: no duplicate and no capacity check on update."""
    add(vault, BURST)
    id = add(vault, words(1))
    vault.max_active = 1
    assert vault.update_memory(id, text=BURST).text == BURST


def test_a_deletion_is_a_tombstone(tmp_path: Path, clock: Clock) -> None:
    """S002-09 S002-12"""
    vault = MemoryVault(tmp_path / "vault.jsonl", clock=clock)
    id = add(vault)
    clock.advance(days=1)
    assert vault.delete_memory(id) is True
    first, second = lines(vault)
    assert second == {**first, "version": 2, "deleted_at": "2025-01-11T14:30:22Z"}
    assert (vault.recall_memories(), vault.search_memories("mission"), vault.build_snapshot()) == ([], [], "")


def test_deleting_what_is_not_there_fails_and_appends_nothing(vault: MemoryVault) -> None:
    """S002-10"""
    id = add(vault)
    vault.delete_memory(id)
    before = vault.path.read_bytes()
    assert (vault.delete_memory(id), vault.delete_memory("ffffffffffff")) == (False, False)
    assert vault.path.read_bytes() == before


def test_the_highest_version_wins_whatever_the_order(vault: MemoryVault) -> None:
    """S002-11"""
    write(vault, *({"id": "a", "text": f"text {version}", "version": version} for version in (2, 3, 1)))
    assert [(record.version, record.text) for record in vault.recall_memories()] == [(3, "text 3")]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_equal_versions_the_later_in_time_wins(vault: MemoryVault, order: tuple[int, int]) -> None:
    """S002-11: two agents bumped the version at once."""
    rivals = [
        {"id": "a", "text": "early", "version": 2, "updated_at": "2025-01-01T00:00:00.5Z"},
        {"id": "a", "text": "late", "version": 2, "updated_at": "2025-01-01T00:00:01Z"},
    ]
    write(vault, *(rivals[place] for place in order))
    assert vault.recall_memories()[0].text == "late"
    (problem,) = (item for item in parsed(vault) if isinstance(item, Problem))
    assert (problem.line, problem.why) == (2, "has the same id and version as another line; the later one counts")


def test_of_equal_versions_and_times_the_later_line_wins(vault: MemoryVault) -> None:
    """S002-11"""
    write(vault, {"id": "a", "text": "one"}, {"id": "a", "text": "two"})
    assert vault.recall_memories()[0].text == "two"


def test_unknown_keys_survive_an_update(vault: MemoryVault) -> None:
    write(vault, {"id": "a", "text": "one", "mood": {"calm": True}, "thread": "t1"})
    vault.update_memory("a", text="two")
    assert (lines(vault)[1]["mood"], lines(vault)[1]["thread"]) == ({"calm": True}, "t1")


def test_damage_is_reported_and_hides_nothing(vault: MemoryVault) -> None:
    good = {"id": "a", "text": "one"}
    bad = [
        "{not json",
        "[1]",
        '{"text":"no id"}',
        '{"id":"b"}',
        '{"id":"b","text":5}',
        '{"id":"b","text":"x","version":"2"}',
        '{"id":"b","text":"x","version":true}',
        '{"id":"b","text":"x","tags":"a"}',
        '{"id":"b","text":"x","scope":[]}',
        '{"id":"b","text":"\\ud800"}',
        "[" * 100_000,
    ]
    write(vault, *bad, "", good)
    found = parsed(vault)
    assert [(item.line, item.why) for item in found if isinstance(item, Problem)] == [
        (1, "is not JSON"),
        (2, "is not a JSON object"),
        (3, "has no id"),
        (4, "has no text"),
        (5, "has a wrong text: text is expected"),
        (6, "has a wrong version: a whole number from 1 is expected"),
        (7, "has a wrong version: a whole number from 1 is expected"),
        (8, "has wrong tags: a list of text is expected"),
        (9, "has a wrong scope: text is expected"),
        (10, "is not valid Unicode"),
        (11, "is not a JSON object"),
    ]
    assert [item.id for item in found if isinstance(item, Memory)] == ["vault:a"]
    assert vault.vault_stats()["malformed_lines"] == 11


def test_bytes_that_are_no_text_are_a_problem(vault: MemoryVault) -> None:
    write(vault, {"id": "a", "text": "one"})
    vault.path.write_bytes(b"\xff\xfe{}\n" + vault.path.read_bytes())
    assert [item.why if isinstance(item, Problem) else item.id for item in parsed(vault)] == [
        "is not UTF-8 text",
        "vault:a",
    ]


def test_a_torn_last_line_is_reported_and_healed(vault: MemoryVault) -> None:
    write(vault, {"id": "a", "text": "one"})
    with vault.path.open("ab") as file:
        file.write(b'{"id":"b","te')
    found = parsed(vault)
    assert [(item.line, item.why) for item in found if isinstance(item, Problem)] == [
        (2, "is torn: the last line is incomplete")
    ]
    id = add(vault)
    assert [item.line if isinstance(item, Problem) else item.native_id for item in parsed(vault)] == [2, "a", id]
    assert [record.id for record in MemoryVault(vault.path).recall_memories()] == [id, "a"]


def test_a_last_line_without_line_end_counts(vault: MemoryVault) -> None:
    """Editors leave it so."""
    write(vault, {"id": "a", "text": "one"}, {"id": "b", "text": "two"})
    vault.path.write_bytes(b"\xef\xbb\xbf" + vault.path.read_bytes().replace(b"\n", b"\r\n").rstrip())
    assert sorted(record.id for record in vault.recall_memories()) == ["a", "b"]
    id = add(vault)
    assert sorted(record.id for record in vault.recall_memories()) == sorted(["a", "b", id])
    assert [item for item in parsed(vault) if isinstance(item, Problem)] == []
    assert vault.vault_stats()["raw_lines"] == 3


def test_a_folder_in_the_place_of_the_file_is_a_problem(tmp_path: Path) -> None:
    vault = MemoryVault(tmp_path)
    assert list(vault.files()) == [Problem(tmp_path, "is not a file")]
    with pytest.raises(StorageError):
        vault.recall_memories()


def test_a_byte_order_mark_hides_no_memory(vault: MemoryVault) -> None:
    """Compaction, history and an interrupted compaction's leftovers, too; and where files were put together."""
    write(vault, {"id": "a", "text": "one"})
    marked = b"\xef\xbb\xbf" + vault.path.read_bytes()
    vault.path.write_bytes(marked + marked.replace(b'"a"', b'"b"'))
    vault.path.with_name("vault.jsonl.old").write_bytes(marked.replace(b'"a"', b'"c"'))
    assert sorted(record.id for record in vault.recall_memories()) == ["a", "b", "c"]
    assert [len(vault.history(id)) for id in "abc"] == [1, 1, 1]
    assert [item for item in parsed(vault) if isinstance(item, Problem)] == []
    vault.compact()
    assert sorted(row["id"] for row in lines(vault)) == ["a", "b", "c"]
    assert not vault.path.with_name("vault.jsonl.rejected").exists()
    vault.path.write_bytes(marked.rstrip())
    vault.compact()
    assert [row["id"] for row in lines(vault)] == ["a"]


def test_an_empty_string_means_nothing(vault: MemoryVault) -> None:
    row = {"id": "a", "text": "one", "deleted_at": "", "updated_at": "", "topic_id": "", "tier": "register"}
    write(vault, row)
    (record,) = vault.recall_memories()
    assert (record.deleted_at, record.updated_at, record.topic_id) == (None, None, None)
    assert list(vault.removed()) == []
    vault.compact()
    assert [record.id for record in vault.recall_memories()] == ["a"]


def test_tier_and_scope_are_read_in_any_case(vault: MemoryVault) -> None:
    write(
        vault,
        {"id": "a", "text": "one", "tier": "CANON", "scope": "Shared"},
        {"id": "b", "text": "two", "tier": "Register", "topic_id": "t"},
    )
    assert vault.build_snapshot("shared") == (
        "## Memory Snapshot\n\n### Canon\n\n- one\n\n### Active Registers\n\n- **t**: two\n"
    )
    assert vault.update_by_topic("t", "shared", "three").id == "b"


def test_an_unknown_tier_or_scope_is_a_problem_and_readable(vault: MemoryVault) -> None:
    write(
        vault,
        {"id": "a", "text": "one", "tier": "log"},
        {"id": "b", "text": "two", "scope": "mars"},
        {"id": "c", "text": "three", "scope": "mars", "deleted_at": "2025-01-01T00:00:00Z"},
    )
    found = parsed(vault)
    assert [(item.line, item.why) for item in found if isinstance(item, Problem)] == [
        (1, "has an unknown tier, so that no snapshot shows it: use one of canon, register"),
        (2, "has a scope that is not configured: use one of shared, orion, elysia"),
    ]
    assert [item.id for item in found if isinstance(item, Memory)] == ["vault:a", "vault:b"]
    vault.update_memory("a", tier="canon")
    vault.revise("b", {"scope": "orion"})
    assert [item for item in parsed(vault) if isinstance(item, Problem)] == []


# -- reading what others wrote


def test_lines_of_others_are_seen_at_once(vault: MemoryVault) -> None:
    other = MemoryVault(vault.path)
    first = add(vault, words(1))
    second = add(other, words(2))
    vault.delete_memory(first)
    assert [record.id for record in other.recall_memories()] == [second]


def test_only_new_bytes_are_read(vault: MemoryVault) -> None:
    add(vault)
    position = log.Position()
    whole, anew = log.read_new(str(vault.path), position)
    assert (anew, whole) == (True, vault.path.read_bytes())
    assert log.read_new(str(vault.path), position) == (b"", False)
    add(vault, words(1))
    assert log.read_new(str(vault.path), position) == (vault.path.read_bytes()[len(whole) :], False)


@pytest.mark.parametrize("how", ["replaced", "shrunk", "edited", "removed"])
def test_a_file_that_is_another_one_is_read_anew(vault: MemoryVault, how: str) -> None:
    write(vault, {"id": "a", "text": "one"}, {"id": "b", "text": "two"})
    assert len(vault.recall_memories()) == 2
    if how == "replaced":
        new = vault.path.with_name("new")
        new.write_text('{"id":"c","text":"three"}\n' * 9)
        os.replace(new, vault.path)
    elif how == "shrunk":
        vault.path.write_text('{"id":"c","text":"three"}\n')
    elif how == "edited":
        vault.path.write_text('{"id":"c","text":"a text that is longer than both of the others together"}\n' * 2)
    else:
        vault.path.unlink()
    assert [record.id for record in vault.recall_memories()] == ([] if how == "removed" else ["c"])


def test_an_update_does_not_take_back_an_edit_by_hand(vault: MemoryVault) -> None:
    """An edit that leaves the size as it is, between two appends, looks like an append."""
    id = add(vault, "The deploy day is Monday")
    add(vault, words(1))
    vault.recall_memories()
    add(vault, words(2))
    with vault.path.open("r+b") as file:
        at = file.read().index(b"Monday")
        file.seek(at)
        file.write(b"Sunday")
    assert len(vault.recall_memories()) == 3
    assert vault.update_memory(id, tags=["x"]).text == "The deploy day is Sunday"
    assert vault.get_memory(id).text == "The deploy day is Sunday"


@pytest.mark.parametrize("how", ["its time is put back", "others append"])
def test_an_edit_by_hand_that_leaves_the_size_as_it_is_is_seen(vault: MemoryVault, how: str) -> None:
    id = add(vault, "The deploy day is Monday")
    add(vault, words(1))
    assert vault.get_memory(id).text == "The deploy day is Monday"
    before = vault.path.stat()
    with vault.path.open("r+b") as file:
        file.seek(vault.path.read_bytes().index(b"Monday"))
        file.write(b"Sunday")
    if how == "others append":
        add(MemoryVault(vault.path), words(2))
    else:
        os.utime(vault.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert vault.get_memory(id).text == "The deploy day is Sunday"


def test_what_many_records_are_known_by_is_what_each_is_known_by(vault: MemoryVault) -> None:
    made = [{"id": f"{number:012x}", "text": words(number), "version": 1 + number % 3} for number in range(110)]
    write(vault, *made, {"id": "other", "text": "Ärger\u2028by hand", "scope": "Shared", "more": {"a": [1]}})
    memories = [item for item in parsed(vault) if isinstance(item, Memory)]
    gone = Memory("vault:ffffffffffff", "vault", "gone", "gone", vault.log.file)
    answers = vault.answers
    assert len(memories) == 111
    assert answers.keys_of([*memories, gone]) == [answers.written_keys(one)[0] for one in (*memories, gone)]
