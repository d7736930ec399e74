"""The vault (seed 002): format, gate, verbs, concurrency. Ids S002-nn are those of the acceptance matrix."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from difflib import SequenceMatcher
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import Clock
from memlane import gate
from memlane.core.errors import AlreadyExists, InvalidInput, NotFound, Refused, StorageError
from memlane.core.model import Draft, Memory, Problem
from memlane.disk import log
from memlane.gate import Guard, likeness
from memlane.gate.likeness import Lookalikes, overlap, ratio, tokens
from memlane.lanes.vault.checks import CHECKS, NOISE
from memlane.lanes.vault.record import SOURCES, Record, parse_line, render_line
from memlane.lanes.vault.store import MemoryVault, search_score
from memlane.surfaces.cli import main
from samples import words

MISSION = "Mission: stabilize the runtime and explore boundaries in layers"
BURST = "Burst mode enforces 1 tool call per tick in the runtime"
BURST_AGAIN = "In burst mode only 1 tool call is allowed per tick"
SSN = "-".join(("123", "45", "6789"))
CARD = "4111 1111 1111 1111"


@pytest.fixture
def vault(tmp_path: Path) -> MemoryVault:
    return MemoryVault(tmp_path / "data" / "memory" / "vault.jsonl")


def lines(vault: MemoryVault) -> list[dict[str, Any]]:
    return [json.loads(line) for line in vault.path.read_text("utf-8").splitlines()] if vault.path.exists() else []


def write(vault: MemoryVault, *entries: object) -> None:
    """Lines as a person or an older version left them."""
    vault.path.parent.mkdir(parents=True, exist_ok=True)
    rows = [entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False) for entry in entries]
    vault.path.write_text("".join(row + "\n" for row in rows), encoding="utf-8")


def add(vault: MemoryVault, text: str = MISSION, **fields: Any) -> str:
    return vault.add_memory(text, fields.pop("scope", "shared"), fields.pop("category", "mission"), **fields)


def parsed(vault: MemoryVault) -> list[Memory | Problem]:
    return [item for path in vault.files() if isinstance(path, str) for item in vault.parse(path)]


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


# -- bulk


def test_bulk_delete_reports_what_it_did(vault: MemoryVault) -> None:
    """S002-13"""
    a, b, c = (add(vault, words(number)) for number in range(3))
    vault.delete_memory(c)
    assert vault.bulk_delete([a, "ffffffffffff", c, b, a]) == {"deleted": [a, b], "not_found": ["ffffffffffff", c, a]}
    assert vault.bulk_delete([]) == {"deleted": [], "not_found": []}
    assert len(lines(vault)) == 6


def test_bulk_add_stores_the_good_and_reports_the_bad(vault: MemoryVault) -> None:
    """S002-14"""
    result = vault.bulk_add(
        [
            {"text": words(1), "scope": "shared", "category": "bio"},
            {"text": "routine scan done", "scope": "shared", "category": "bio"},
            {"scope": "shared", "category": "bio"},
            {
                "text": words(2),
                "scope": "orion",
                "category": "goal",
                "tier": "register",
                "topic_id": "t",
                "tags": ["x"],
            },
            {"text": words(3), "scope": "nowhere", "category": "bio"},
        ]
    )
    stored, active = result["stored"], {record.id: record for record in vault.recall_memories()}
    assert [(item["index"], active[item["id"]].text) for item in stored] == [(0, words(1)), (3, words(2))]
    assert result["errors"] == [
        {"index": 1, "message": "Not stored: the text contains the journal-only signal 'routine scan'."},
        {"index": 2, "message": "The text is not text."},
        {"index": 4, "message": "Not stored: there is no such scope."},
    ]
    assert vault.bulk_add([]) == {"stored": [], "errors": []}
    assert len(lines(vault)) == 2


def test_bulk_add_finds_duplicates_and_topics_inside_the_batch(vault: MemoryVault) -> None:
    """S002-15"""
    topic = {"scope": "orion", "category": "goal", "tier": "register", "topic_id": "t"}
    result = vault.bulk_add(
        [
            {"text": BURST, "scope": "shared", "category": "meta"},
            {"text": BURST_AGAIN, "scope": "shared", "category": "meta"},
            {"text": words(1), **topic},
            {"text": words(2), **topic},
        ]
    )
    assert [item["index"] for item in result["stored"]] == [0, 2, 3]
    assert [item["index"] for item in result["errors"]] == [1]
    assert "Duplicate" in result["errors"][0]["message"]
    assert [record.version for record in vault.recall_memories("orion")] == [2]
    assert MemoryVault(vault.path).recall_memories() == vault.recall_memories()


def test_bulk_add_respects_the_capacity(tmp_path: Path) -> None:
    """S002-44"""
    vault = MemoryVault(tmp_path / "vault.jsonl", max_active=2)
    result = vault.bulk_add({"text": words(number), "scope": "shared", "category": "x"} for number in range(3))
    assert ([item["index"] for item in result["stored"]], [item["index"] for item in result["errors"]]) == ([0, 1], [2])


def test_bulk_add_forgets_everything_when_the_items_fail(vault: MemoryVault) -> None:
    def items() -> Iterator[dict[str, str]]:
        yield {"text": MISSION, "scope": "shared", "category": "mission"}
        raise OSError("the source of the items broke")

    with pytest.raises(OSError, match="the source"):
        vault.bulk_add(items())
    assert vault.recall_memories() == []
    add(vault)


# -- the gate


@pytest.mark.parametrize("signal", NOISE)
@pytest.mark.parametrize("form", [str.lower, str.upper, str.title])
def test_noise_is_refused(vault: MemoryVault, signal: str, form: Any) -> None:
    """S002-16"""
    with pytest.raises(ValueError, match="journal-only signal"):
        add(vault, f"Log: {form(signal)} at noon")
    assert lines(vault) == []


def test_the_seeds_ten_signals() -> None:
    """S002-16"""
    assert NOISE == (
        "tick marker", "runtime snapshot", "check-in", "heartbeat", "burst tick", "no changes", "nothing to report",
        "status unchanged", "routine scan", "ephemeral",
    )  # fmt: skip


def test_the_seeds_noise_example(vault: MemoryVault) -> None:
    """S002-17"""
    with pytest.raises(Refused) as refusal:
        add(vault, "tick marker for burst 5")
    assert refusal.value.to_dict() == {
        "code": "noise",
        "check": "noise",
        "message": "Not stored: the text contains the journal-only signal 'tick marker'.",
        "hint": "Keep it in the journal; store what was learned from it, in other words.",
    }


@pytest.mark.parametrize("tier", ["log", "LOG"])
def test_the_log_tier_is_refused(vault: MemoryVault, tier: str) -> None:
    """S002-18"""
    with pytest.raises(ValueError, match="journal-only"):
        add(vault, tier=tier)


def test_twelve_hundred_characters_are_allowed(vault: MemoryVault) -> None:
    """S002-19: counted as code points, after stripping."""
    add(vault, "é" * 1200 + "  \n")
    with pytest.raises(ValueError, match="too long"):
        add(vault, "ü" * 1201)
    assert len(lines(vault)) == 1


@pytest.mark.parametrize(
    ("field", "value"), [("scope", "mars"), ("scope", ""), ("tier", "gold"), ("source", "rumour"), ("source", "CHAT")]
)
def test_unknown_words_are_refused(vault: MemoryVault, field: str, value: str) -> None:
    """S002-20 S002-21 S002-22"""
    with pytest.raises(Refused) as refusal:
        add(vault, **{field: value})
    assert value == "" or value not in str(refusal.value)
    assert lines(vault) == []


@pytest.mark.parametrize("source", [*SOURCES, None])
def test_the_five_sources_are_accepted(vault: MemoryVault, source: str | None) -> None:
    """S002-22"""
    add(vault, source=source)
    assert lines(vault)[0]["source"] == (source or "manual")


@pytest.mark.parametrize("scope", ["shared", "orion", "elysia", "ORION"])
def test_the_three_scopes_are_accepted(vault: MemoryVault, scope: str) -> None:
    """S002-20"""
    add(vault, scope=scope)
    assert lines(vault)[0]["scope"] == scope.lower()


def test_scopes_can_be_configured(tmp_path: Path) -> None:
    """S002-20 (R-23)"""
    vault = MemoryVault(tmp_path / "vault.jsonl", scopes=("team", "Ada"))
    add(vault, scope="ada")
    with pytest.raises((Refused, InvalidInput)):
        add(vault, words(1), scope="shared")


def test_a_free_category_is_accepted_and_counted(vault: MemoryVault) -> None:
    """S002-23"""
    add(vault, category="Cooking")
    stats = vault.vault_stats()
    assert (stats["by_category"], stats["unknown_categories"]) == ({"cooking": 1}, 1)


@pytest.mark.parametrize("text", ["", " \n\t", "\u200b\u200b"])
def test_empty_text_is_refused(vault: MemoryVault, text: str) -> None:
    """S002-24"""
    with pytest.raises(ValueError, match="empty"):
        add(vault, text)


@pytest.mark.parametrize("text", [None, 5, b"bytes", ["a"]])
def test_text_that_is_no_text_is_refused(vault: MemoryVault, text: Any) -> None:
    """S002-24"""
    with pytest.raises(InvalidInput):
        add(vault, text)


@pytest.mark.parametrize(
    ("item", "secret"),
    [
        (f"The SSN is {SSN}", SSN),
        (f"Card {CARD}", CARD),
        (f"Card {CARD.replace(' ', '')}", CARD.replace(" ", "")),
        (f"Card {CARD.replace(' ', '-')}", CARD.replace(" ", "-")),
        ("password: hunter2", "hunter2"),
        ("api_key: sk-abc123", "sk-abc123"),
    ],
)
def test_pii_is_refused_without_repeating_it(vault: MemoryVault, item: str, secret: str, tmp_path: Path) -> None:
    """S002-25 S002-26 S002-27 S002-28 S002-30"""
    with pytest.raises(ValueError, match="PII") as refusal:
        add(vault, item)
    assert secret not in json.dumps(refusal.value.to_dict())  # type: ignore[attr-defined]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text", [MISSION, "The API key lives in the operators' safe", "Order 123456789 shipped", "Tick at 1736519422000"]
)
def test_harmless_text_passes(vault: MemoryVault, text: str) -> None:
    """S002-29"""
    from memlane.gate.secrets import check_pii

    assert check_pii(text) == []
    add(vault, text)


def test_secrets_are_refused_in_every_field(vault: MemoryVault, tmp_path: Path) -> None:
    """S002-30: the common scanner guards tags and topics too."""
    token = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"
    for fields in ({"tags": [token]}, {"category": token}, {"tier": "register", "topic_id": token}):
        with pytest.raises(Refused) as refusal:
            add(vault, **fields)
        assert token.lower() not in json.dumps(refusal.value.to_dict()).lower()
    assert list(tmp_path.iterdir()) == []


def test_the_order_of_the_checks() -> None:
    """S002-31: emptiness, then the seed's eight steps."""
    assert [check.__name__ for check in CHECKS] == [
        "not_empty", "noise", "log_tier", "length", "known_words", "pii", "upsert", "duplicate", "capacity",
    ]  # fmt: skip
    assert [check.__name__ for check in MemoryVault("unused").checks] == [
        "characters", "not_empty", "noise", "log_tier", "length", "known_words", "pii", "secrets", "upsert",
        "duplicate", "capacity",
    ]  # fmt: skip
    assert all(check.__doc__ and check.__doc__.splitlines()[0].strip() for check in CHECKS)


def test_each_step_wins_over_the_later_ones(tmp_path: Path) -> None:
    """S002-31"""
    vault = MemoryVault(tmp_path / "vault.jsonl", max_active=1)
    add(vault, BURST)
    worst = f"heartbeat password: hunter2 {'x' * 1300}"
    steps = [
        (worst, {"tier": "log", "scope": "mars"}, "noise"),
        (worst[10:], {"tier": "log", "scope": "mars"}, "log_tier"),
        (worst[10:], {"scope": "mars"}, "too_long"),
        ("password: hunter2", {"scope": "mars"}, "unknown_scope"),
        ("password: hunter2", {"tier": "register", "topic_id": "t"}, "sensitive"),
        (BURST_AGAIN, {}, "duplicate"),
        (words(1), {}, "full"),
    ]
    for text, fields, code in steps:
        with pytest.raises(Refused) as refusal:
            add(vault, text, **fields)
        assert refusal.value.code == code
    assert len(lines(vault)) == 1


def test_redaction_stores_the_rest(tmp_path: Path) -> None:
    vault = MemoryVault(tmp_path / "vault.jsonl", guard=Guard(secrets="redact"))
    memory = vault.put(Draft(f"The SSN of the test person is {SSN}, as agreed"))
    assert SSN not in memory.text
    assert "[REDACTED:" in memory.text
    assert len(memory.remarks) == 1


def test_a_text_that_redaction_makes_too_long_is_refused(tmp_path: Path) -> None:
    vault = MemoryVault(tmp_path / "vault.jsonl", guard=Guard(secrets="redact"))
    with pytest.raises(ValueError, match="too long"):
        add(vault, "x" * 1184 + f" SSN {SSN}")
    id = add(vault)
    with pytest.raises(ValueError, match="too long"):
        vault.update_memory(id, text="x" * 1184 + f" SSN {SSN}")
    assert len(lines(vault)) == 1


def test_a_text_that_stays_is_not_judged_again(vault: MemoryVault) -> None:
    write(vault, {"id": "a", "text": "heartbeat of the city"}, {"id": "b", "text": "x" * 1300})
    assert vault.update_memory("a", tags=["city"]).text == "heartbeat of the city"
    assert vault.update_memory("b", category="bio").version == 2
    with pytest.raises(Refused):
        vault.update_memory("a", text="heartbeat of the town")
    with pytest.raises(Refused):
        vault.update_memory("a", tags=[f"ssn {SSN}"])
    with pytest.raises(Refused):
        vault.update_memory("a", tier="log")


@pytest.mark.parametrize(
    "changes",
    [{"topic_id": 5}, {"source": 5}, {"category": 5}, {"tags": 5}, {"title": 5}, {"thread": 5}, {"text": None}],
)
def test_a_change_of_the_wrong_type_is_refused(vault: MemoryVault, changes: dict[str, Any]) -> None:
    id = add(vault)
    with pytest.raises(InvalidInput):
        vault.revise(id, changes)
    assert len(lines(vault)) == 1


def test_questions_of_the_wrong_type_are_refused(vault: MemoryVault) -> None:
    add(vault)
    for wrong in (5, [5]):
        with pytest.raises(InvalidInput):
            vault.recall_memories(scope=wrong)  # type: ignore[arg-type]
    wrong_filters: list[dict[str, Any]] = [{"category": 5}, {"limit": "all"}, {"tags": 5}]
    for filters in wrong_filters:
        with pytest.raises(InvalidInput):
            vault.recall_memories(**filters)
    with pytest.raises(InvalidInput):
        vault.search_memories(5)  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        vault.update_memory(["a"], text="x")  # type: ignore[arg-type]
    assert vault.bulk_delete([["a"]])["deleted"] == []  # type: ignore[list-item]


def test_a_changed_topic_is_stripped(vault: MemoryVault) -> None:
    id = add(vault, tier="register")
    assert vault.update_memory(id, topic_id="  a b ").topic_id == "a b"
    assert vault.revise(id, {"topic_id": "  "}).fields["topic_id"] is None


def test_custom_scopes_hold_everywhere(tmp_path: Path) -> None:
    vault = MemoryVault(tmp_path / "vault.jsonl", scopes=("team", "ada"))
    assert vault.put(Draft(MISSION)).scope == "team"
    with pytest.raises(Refused, match="Duplicate"):
        gate.admit(vault.checks, Draft(MISSION), vault)


def test_invisible_characters_are_removed_and_remarked(vault: MemoryVault) -> None:
    memory = vault.put(Draft("Stabilize\u200b the \u202eruntime"))
    assert (memory.text, memory.remarks) == (
        "Stabilize the runtime",
        ("2 invisible or control characters were removed",),
    )


@pytest.mark.parametrize("text", ["a\0b", "lone \ud800 surrogate"])
def test_what_no_line_can_hold_is_refused(vault: MemoryVault, text: str) -> None:
    with pytest.raises(InvalidInput):
        add(vault, text)
    assert lines(vault) == []


def test_labels_are_bounded(vault: MemoryVault) -> None:
    for fields in ({"category": "c" * 201}, {"tags": ["t" * 201]}, {"tags": [str(number) for number in range(101)]}):
        with pytest.raises(InvalidInput):
            add(vault, **fields)
    assert lines(vault) == []


# -- registers


def test_a_register_is_upserted_by_topic(vault: MemoryVault) -> None:
    """S002-32"""
    id = add(vault, words(1), tier="register", topic_id="t", tags=["a"])
    assert add(vault, words(2), tier="register", topic_id="t") == id
    (record,) = vault.recall_memories()
    assert (record.id, record.version, record.text, record.tags) == (id, 2, words(2), ["a"])
    assert record.updated_at is not None


def test_an_upsert_keeps_tags_and_source_unless_given(vault: MemoryVault) -> None:
    """S002-32"""
    fields: dict[str, Any] = {"tier": "register", "topic_id": "t"}
    id = add(vault, words(1), tags=["a"], source="chat", **fields)
    vault.put(Draft(words(2), type="goal", fields=fields))
    vault.update_by_topic("t", "shared", words(3))
    vault.bulk_add([{"text": words(4), "scope": "shared", **fields}])
    record = vault.get_memory(id)
    assert (record.version, record.tags, record.source, record.category) == (4, ["a"], "chat", "goal")
    vault.put(Draft(words(5), tags=("b",), fields={**fields, "source": "tool"}))
    assert (vault.get_memory(id).tags, vault.get_memory(id).source) == (["b"], "tool")
    assert vault.update_memory(id, tags=[]).tags == []


def test_another_scope_is_another_register(vault: MemoryVault) -> None:
    """S002-33"""
    first = add(vault, words(1), tier="register", topic_id="t")
    assert add(vault, words(2), scope="orion", tier="register", topic_id="t") != first
    assert vault.vault_stats()["register_topics"] == 2


def test_a_deleted_register_is_not_revived(vault: MemoryVault) -> None:
    """S002-34"""
    first = add(vault, words(1), tier="register", topic_id="t")
    vault.delete_memory(first)
    second = add(vault, words(2), tier="register", topic_id="t")
    assert second != first
    assert [record.version for record in vault.recall_memories()] == [1]


def test_the_seeds_two_calls(vault: MemoryVault) -> None:
    """S002-35"""
    for text in ("Projects: dashboard, memory upgrade", "Projects: dashboard, memory upgrade, email integration"):
        vault.add_memory(text, "shared", "project", tier="register", topic_id="current_projects")
    (record,) = vault.recall_memories()
    assert "email integration" in record.text
    assert record.version == 2


def test_an_upsert_passes_duplicates_and_a_full_vault(tmp_path: Path) -> None:
    """S002-36"""
    vault = MemoryVault(tmp_path / "vault.jsonl", max_active=2)
    add(vault, BURST)
    id = add(vault, words(1), tier="register", topic_id="t")
    assert add(vault, BURST_AGAIN, tier="register", topic_id="t") == id


def test_canon_is_never_overwritten_by_a_topic(vault: MemoryVault) -> None:
    """S002-32: a canon with the same topic is stored beside, and never upserted."""
    add(vault, words(1), tier="canon", topic_id="t")
    add(vault, words(2), tier="canon", topic_id="t")
    add(vault, words(3), tier="register", topic_id="t")
    assert sorted((record.tier, record.version) for record in vault.recall_memories()) == [
        ("canon", 1),
        ("canon", 1),
        ("register", 1),
    ]


def test_update_by_topic_creates_then_updates(vault: MemoryVault) -> None:
    """S002-37"""
    first = vault.update_by_topic("t", "shared", words(1), category="project")
    assert (first.tier, first.version, first.topic_id, first.category) == ("register", 1, "t", "project")
    second = vault.update_by_topic("t", "shared", words(2))
    assert (second.id, second.version, second.text, second.category) == (first.id, 2, words(2), "project")
    assert vault.update_by_topic("t", "orion", words(3)).id != first.id
    assert vault.recall_memories("shared") == [second]


@pytest.mark.parametrize("topic", ["", "  ", None])
def test_update_by_topic_needs_a_topic(vault: MemoryVault, topic: Any) -> None:
    """S002-37"""
    with pytest.raises(InvalidInput):
        vault.update_by_topic(topic, "shared", words(1))


# -- duplicates and capacity


def test_token_overlap_makes_a_duplicate(vault: MemoryVault) -> None:
    """S002-38: the pair has a ratio below 0.70."""
    id = add(vault, BURST)
    with pytest.raises(ValueError, match="Duplicate") as refusal:
        add(vault, BURST_AGAIN)
    assert str(refusal.value) == f"Not stored: Duplicate of {id} (similarity 0.78)."
    assert ratio(BURST_AGAIN, BURST) < 0.70


def test_sequence_similarity_makes_a_duplicate(vault: MemoryVault) -> None:
    """S002-39: the pair shares no word."""
    old, new = "alphabets bettered gammas", "alphabet betters gamma"
    assert tokens(old).isdisjoint(tokens(new))
    add(vault, old)
    with pytest.raises(ValueError, match="Duplicate"):
        add(vault, new)


def test_different_texts_are_accepted(vault: MemoryVault) -> None:
    """S002-40: without stop words, those two share nothing."""
    add(vault, "The deployment is in the cloud")
    add(vault, "The cat is in the house")
    assert len(vault.recall_memories()) == 2


def test_the_same_text_in_another_scope_is_accepted(vault: MemoryVault) -> None:
    """S002-41"""
    for scope in ("shared", "orion", "elysia"):
        add(vault, scope=scope)
    assert vault.vault_stats()["by_scope"] == {"shared": 1, "orion": 1, "elysia": 1}


def test_deleted_and_updated_texts_are_no_duplicates(vault: MemoryVault) -> None:
    """S002-42"""
    id = add(vault, BURST)
    vault.delete_memory(id)
    again = add(vault, BURST_AGAIN)
    vault.update_memory(again, text=words(1))
    add(vault, BURST)


def test_thresholds_are_configurable(tmp_path: Path) -> None:
    """S002-43"""
    strict = MemoryVault(tmp_path / "a.jsonl", similarity_threshold=0.3)
    lax = MemoryVault(tmp_path / "b.jsonl", similarity_threshold=0.99, token_overlap_threshold=0.99)
    for vault in (strict, lax):
        add(vault, "The deployment is in the cloud")
    with pytest.raises(ValueError, match="Duplicate"):
        add(strict, "The cat is in the house")
    add(lax, "The deployment is in a cloud now")
    assert (MemoryVault("x").similarity_threshold, MemoryVault("x").token_overlap_threshold) == (0.70, 0.60)


def test_a_full_vault_refuses(tmp_path: Path) -> None:
    """S002-44"""
    vault = MemoryVault(tmp_path / "vault.jsonl")
    stored = vault.bulk_add({"text": words(number), "scope": "shared", "category": "x"} for number in range(100))
    assert stored["errors"] == []
    with pytest.raises(ValueError, match="full"):
        add(vault)
    vault.delete_memory(stored["stored"][0]["id"])
    add(vault)


def test_capacity_counts_active_records(tmp_path: Path) -> None:
    """S002-45"""
    vault = MemoryVault(tmp_path / "vault.jsonl", max_active=1)
    for number in range(3):
        id = add(vault, words(number))
        vault.update_memory(id, text=words(number + 10))
        vault.delete_memory(id)
    add(vault, words(9))
    with pytest.raises(ValueError, match="full"):
        add(vault, words(8))


# -- the plain double loop and the index give the same verdict


def plain_find(texts: list[tuple[str, str]], new: str, ratio_from: float, overlap_from: float) -> Any:
    for key, old in texts:
        score = overlap(tokens(new), tokens(old))
        if score >= overlap_from:
            return key, score
        score = SequenceMatcher(None, new.lower(), old.lower()).ratio()
        if score >= ratio_from:
            return key, score
    return None


ALPHABETS = ("ab", "abc ", "the cat sat on a mat ", "abcdefghijklmnopqrstuvwxyz 0123456789.,'", "aAéÉİß漢字仮名 ")
few_letters = st.one_of(*(st.text(alphabet, max_size=60) for alphabet in ALPHABETS))
sentences = st.lists(st.sampled_from("the a cat dog runs under over tree house café 12 12b".split()), max_size=12).map(
    " ".join
)
long_texts = st.builds(
    lambda part, more, times: (part * times + more)[:450], few_letters, sentences, st.integers(4, 30)
)
any_text = st.one_of(few_letters, sentences, st.text(max_size=40), long_texts)


@st.composite
def kin(draw: st.DrawFn) -> list[str]:
    """Texts, and others that differ from them by some cuts and insertions: pairs around the thresholds."""
    texts = draw(st.lists(any_text, min_size=1, max_size=6))
    for _ in range(draw(st.integers(1, 5))):
        text = draw(st.sampled_from(texts))
        for _ in range(draw(st.integers(1, 6))):
            at, size = draw(st.integers(0, len(text))), draw(st.integers(0, max(len(text) // 6, 1)))
            text = text[:at] + draw(st.text("abx é", max_size=size)) + text[at + draw(st.integers(0, size)) :]
        texts.append(text)
    some = draw(st.lists(st.sampled_from(texts[0].split() or ["cat"]), max_size=4, unique=True))
    return [*texts, " ".join([*some, *draw(sentences).split()])] if draw(st.booleans()) else texts


LEAST = [(0.7, 0.6), (0.7, 2.0), (0.5, 2.0), (0.9, 0.34), (1.0, 1.0), (0.2, 0.9)]


@pytest.fixture(params=["tuned", "bounds to the end"])
def similar_at_work(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few texts are compared one by one as soon as that is cheaper; here also as if it never were."""
    if request.param != "tuned":
        monkeypatch.setattr(likeness, "_PAIR", 1 << 60)
        monkeypatch.setattr(likeness, "_MANY", 0)


@pytest.mark.usefixtures("similar_at_work")
@given(kin(), st.sampled_from(LEAST), st.data())
@settings(max_examples=250)
def test_the_index_finds_what_the_plain_loop_finds(
    texts: list[str], least: tuple[float, float], data: st.DataObject
) -> None:
    """S002-38 S002-39 S002-40: same key, same score, however the index came about."""
    *old, new = texts
    entries = [(str(number), text) for number, text in enumerate(old)]
    at_once = data.draw(st.integers(0, len(entries)))
    alike = Lookalikes(*least, patience=data.draw(st.sampled_from([0, 8])))
    alike.fill(entries[:at_once])
    alike.find("")  # without patience this builds the columns, which the changes below must keep up to date
    for key, text in entries[at_once:]:
        alike.add(key, text)
    for key in data.draw(st.lists(st.sampled_from([key for key, _ in entries]), unique=True)) if entries else ():
        alike.remove(key)
        entries = [entry for entry in entries if entry[0] != key]
    assert alike.find(new) == plain_find(entries, new, *least)


@pytest.mark.usefixtures("similar_at_work")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ab" * 150, ("ab" * 150)[:210] + "c" * 90),  # one block at the start, without a rare character
        ("x" + "ab" * 150, "x" + ("ab" * 150)[:209] + "c" * 90),
        ("".join(f"{chr(0x4E00 + i)}abc" for i in range(60)), "".join(f"{chr(0x4E00 + i)}abd" for i in range(60))),
        ("z" * 70 + "a" * 30, "z" * 70 + "b" * 30),  # a group of characters that is longer than its columns
        ("aeiou " * 33, "bcdfgh" * 10 + "aeiou " * 23),
        ("red green blue", "a red and green house by some lake with seven boats on a long stormy winter night"),
        ("Ärger über İstanbul", "ärger ÜBER istanbul"),
        ("a", "a"),
        ("ab", "ba"),
    ],
)
def test_the_index_finds_pairs_at_its_edges(old: str, new: str) -> None:
    """S002-38 S002-39"""
    for least in LEAST:
        for patience in (0, 8):
            alike = Lookalikes(*least, patience=patience)
            alike.fill([("far", words(1)), ("old", old)])
            assert alike.find(new) == plain_find([("far", words(1)), ("old", old)], new, *least)


def test_the_index_finds_what_the_plain_loop_finds_in_a_large_collection() -> None:
    """S002-39: among many, where bounds decide and not the loop."""
    base = [words(number, 3 + number % 9) for number in range(300)]
    texts = [(str(number), text) for number, text in enumerate(base)]
    alike = Lookalikes(0.7, 0.6, patience=0)
    alike.fill(texts)
    for number in range(0, 300, 12):
        new = base[number][: -number // 20 or None].replace("a", "o")[::1] + words(number + 1000, 1)[: number % 17]
        assert alike.find(new) == plain_find(texts, new, 0.7, 0.6)


@given(kin(), st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0, 1.5]), st.sampled_from([1, 16, 1 << 13]))
@settings(max_examples=250)
def test_the_alike_pairs_are_those_of_the_plain_loop(texts: list[str], least: float, row: int) -> None:
    """S002-46: same pairs, same scores, however the texts are cut into rows."""
    expected = {}
    for (a, new), (b, old) in combinations(enumerate(texts), 2):
        score = max(overlap(tokens(new), tokens(old)), ratio(new, old))
        if score >= least:
            expected[a, b] = score
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(likeness, "_ROW", row)
        found = list(likeness.alike(texts, least))
    assert {(a, b): score for a, b, score in found} == expected
    assert len(found) == len(expected)


def test_the_index_survives_many_changes_of_one_text() -> None:
    alike = Lookalikes(0.7, 0.6, patience=0)
    alike.find("")
    for number in range(300):
        alike.add("register", words(number))
    assert alike.find(words(298)) is None
    assert alike.find(words(299)) == ("register", 1.0)


# -- reading and searching


def test_recall_is_newest_first(tmp_path: Path, clock: Clock) -> None:
    vault = MemoryVault(tmp_path / "vault.jsonl", clock=clock)
    ids = []
    for number in range(3):
        ids.append(add(vault, words(number), scope=["shared", "orion", "elysia"][number], tags=[f"t{number}", "all"]))
        clock.advance(seconds=0.5)

    def recalled(**filters: Any) -> list[int]:
        return [ids.index(record.id) for record in vault.recall_memories(**filters)]

    assert recalled() == [2, 1, 0]
    assert recalled(scope="orion") == [1]
    assert recalled(scope=["shared", "elysia"]) == [2, 0]
    assert recalled(scope=[]) == []
    assert recalled(tags=["t0", "t2"]) == [2, 0]
    assert recalled(category="MISSION", limit=2) == [2, 1]
    assert recalled(category="bio") == []
    assert recalled(limit=0) == []


def test_times_with_offsets_are_compared_as_times(vault: MemoryVault) -> None:
    write(
        vault,
        {"id": "utc", "text": "one", "created_at": "2025-01-01T12:00:00Z"},
        {"id": "central", "text": "two", "created_at": "2025-01-01T07:00:00-06:00"},
        {"id": "none", "text": "three"},
    )
    assert [record.id for record in vault.recall_memories()] == ["central", "utc", "none"]


def test_the_search_score() -> None:
    """S002-56"""
    text = "Deploy the API on Friday"
    matched = SequenceMatcher(None, "api friday", text.lower()).ratio()
    assert search_score("api Friday", text) == pytest.approx(1.0 + 0.4 * matched)
    whole = SequenceMatcher(None, "the api", text.lower()).ratio()
    assert search_score("the API", text) == pytest.approx(1.0 + 0.3 + 0.4 * whole)
    half = SequenceMatcher(None, "api monday", text.lower()).ratio()
    assert search_score("api monday", text) == pytest.approx(0.5 + 0.4 * half)


def test_search_is_best_first_and_scoped(vault: MemoryVault) -> None:
    """S002-56"""
    exact = add(vault, "Deploy the API on Friday")
    near = add(vault, "Friday is for lunch with the whole crew")
    other = add(vault, "Deploy the API on Friday", scope="orion")
    assert [record.id for record in vault.search_memories("API on Friday", scope="shared")] == [exact, near]
    assert {record.id for record in vault.search_memories("friday", scope=["shared", "orion"])} == {exact, near, other}
    assert vault.search_memories("friday", limit=0) == []


def test_search_needs_a_common_word(vault: MemoryVault) -> None:
    """S002-57"""
    add(vault, "Deployment notes")
    assert (vault.search_memories("deploy"), vault.search_memories("the"), vault.search_memories("")) == ([], [], [])


# -- consolidation and promotion


def test_consolidation_candidates(vault: MemoryVault) -> None:
    """S002-46"""
    vault.similarity_threshold = vault.token_overlap_threshold = 2.0
    texts = [BURST, BURST_AGAIN, "Burst mode has one tool", words(1)]
    ids = [add(vault, text) for text in texts]
    add(vault, BURST, scope="orion")
    before = vault.path.read_bytes()
    pairs = vault.find_consolidation_candidates("shared", similarity_floor=0.40)
    assert {(newer.id, older.id) for newer, older, _ in pairs} <= {(b, a) for a, b in combinations(ids, 2)}
    assert [score for *_, score in pairs] == sorted((score for *_, score in pairs), reverse=True)
    newer, older, score = next(pair for pair in pairs if pair[0].id == ids[1])
    assert (newer.id, older.id, score) == (ids[1], ids[0], 7 / 9)
    assert all(0.40 <= score <= 1 for *_, score in pairs)
    assert vault.find_consolidation_candidates("shared", 0.40) == pairs
    assert vault.find_consolidation_candidates("shared", 1.0) == []
    assert vault.path.read_bytes() == before


def test_proposed_deletions_have_reasons(tmp_path: Path, clock: Clock) -> None:
    """S002-47"""
    vault = MemoryVault(tmp_path / "vault.jsonl", clock=clock)
    vault.checks = ()  # as before there was a gate
    old = add(vault, words(1), tier="register")
    clock.advance(days=91)
    ids = {
        "short_text": add(vault, "ok noted", tier="register"),
        "noise": add(vault, "heartbeat of the machine room", tier="register"),
        "near_duplicate": add(vault, BURST),
        "stale_register": old,
    }
    clock.advance(minutes=1)
    add(vault, BURST_AGAIN)
    add(vault, "ok")  # canon: proposed for near-duplicates only
    fresh = add(vault, words(2), tier="register", topic_id="t")
    write(vault, *lines(vault), {**lines(vault)[-1], "id": "a" * 12, "created_at": "2025-01-02T00:00:00Z"})
    before = vault.path.read_bytes()
    proposed = vault.propose_deletions("shared")
    assert {item["reason"]: item["id"] for item in proposed} == {**ids, "duplicate_topic": "a" * 12}
    assert len(proposed) == 5
    short = next(item for item in proposed if item["reason"] == "short_text")
    assert short == {
        "id": ids["short_text"], "scope": "shared", "tier": "register", "text": "ok noted", "reason": "short_text",
        "detail": "8 characters say little",
    }  # fmt: skip
    assert fresh not in {item["id"] for item in proposed}
    assert vault.path.read_bytes() == before


def test_promotion_makes_canon(vault: MemoryVault) -> None:
    """S002-48"""
    id = add(vault, words(1), tier="register", topic_id="t", tags=["a"])
    record = vault.promote_to_canon(id, "The canonical wording", tags=["b"])
    assert (record.id, record.tier, record.source, record.text, record.version, record.tags, record.topic_id) == (
        id, "canon", "promotion", "The canonical wording", 2, ["b"], None,
    )  # fmt: skip
    assert vault.recall_memories() == [record]
    assert add(vault, words(2), tier="register", topic_id="t") != id


def test_promotion_refuses_what_cannot_be_canon(vault: MemoryVault) -> None:
    """S002-48"""
    canon, register = add(vault), add(vault, words(1), tier="register")
    with pytest.raises(KeyError):
        vault.promote_to_canon("ffffffffffff", "x")
    with pytest.raises((Refused, InvalidInput)):
        vault.promote_to_canon(canon, "x")
    with pytest.raises(ValueError, match="too long"):
        vault.promote_to_canon(register, "x" * 1201)
    with pytest.raises(ValueError, match="PII"):
        vault.promote_to_canon(register, "password: hunter2")
    assert len(lines(vault)) == 2


def test_history_has_all_versions(vault: MemoryVault) -> None:
    id = add(vault)
    add(vault, words(1))
    second = vault.update_memory(id, text=words(2))
    vault.delete_memory(id)
    versions = vault.history(id)
    assert [(record.version, record.text) for record in versions] == [(1, MISSION), (2, words(2)), (3, words(2))]
    assert versions[1] == second
    assert versions[2].deleted_at is not None
    assert vault.history("ffffffffffff") == []


# -- snapshot and statistics


def test_the_snapshot(vault: MemoryVault) -> None:
    """S002-49 S002-50 S002-51"""
    add(vault, "Stabilize the runtime", category="mission")
    add(vault, "Made by two people\nin a garage", category="bio")
    add(vault, "Dashboard and e-mail", category="project", tier="register", topic_id="current_projects")
    add(vault, "A passing thought about lunch", tier="register")
    add(vault, "Elysia paints at night", scope="elysia")
    assert vault.build_snapshot("shared") == (
        "## Memory Snapshot\n\n"
        "### Canon\n\n- Made by two people\n  in a garage\n- Stabilize the runtime\n\n"
        "### Active Registers\n\n- **current_projects**: Dashboard and e-mail\n"
    )
    assert vault.build_snapshot("elysia") == "## Memory Snapshot\n\n### Canon\n\n- Elysia paints at night\n"
    assert vault.build_snapshot("orion") == ""


def test_a_topic_stays_on_its_line(vault: MemoryVault) -> None:
    write(vault, {"id": "a", "text": "one\r### two", "tier": "register", "topic_id": "t\n### Canon\n- x"})
    assert vault.build_snapshot().splitlines()[2:] == [
        "### Active Registers", "", "- **t ### Canon - x**: one", "  ### two",
    ]  # fmt: skip


def test_an_empty_vault_has_no_snapshot(vault: MemoryVault) -> None:
    """S002-51"""
    assert vault.build_snapshot() == ""
    assert not vault.path.parent.exists()


def test_the_placement_table(vault: MemoryVault) -> None:
    """S002-63"""
    for category in ("bio", "mission", "constraint"):
        add(vault, words(category), category=category)
    for topic in ("current_projects", "priorities", "self_state"):
        vault.update_by_topic(topic, "shared", words(topic))
    snapshot = vault.build_snapshot("shared")
    assert all(words(name) in snapshot for name in ("bio", "mission", "constraint", "current_projects", "priorities"))
    for event in ("tick marker 7", "runtime snapshot at noon", "daily check-in"):
        with pytest.raises((Refused, InvalidInput)):
            add(vault, event)


def test_statistics(tmp_path: Path) -> None:
    """S002-58"""
    vault = MemoryVault(tmp_path / "vault.jsonl", max_active=50)
    empty = vault.vault_stats()
    assert (empty["active_count"], empty["raw_lines"], empty["bloat_ratio"]) == (0, 0, 1.0)
    add(vault, words(1), category="bio")
    id = add(vault, words(2), scope="orion", tier="register", topic_id="t", category="project")
    vault.update_memory(id, text=words(3))
    add(vault, words(4), category="bio")
    vault.delete_memory(add(vault, words(5)))
    assert vault.vault_stats() == {
        "active_count": 3,
        "max_active": 50,
        "utilization_pct": 6.0,
        "deleted_count": 1,
        "raw_lines": 6,
        "compactable_lines": 3,
        "bloat_ratio": 2.0,
        "by_scope": {"shared": 2, "orion": 1},
        "by_tier": {"canon": 2, "register": 1},
        "by_category": {"bio": 2, "project": 1},
        "register_topics": 1,
        "unknown_categories": 0,
        "malformed_lines": 0,
    }


# -- compaction


def test_compaction_keeps_the_latest_active_versions(vault: MemoryVault) -> None:
    """S002-59"""
    ids = [add(vault, words(number), category=["z", "b", "a"][number]) for number in range(3)]
    vault.update_memory(ids[1], text=words(7))
    vault.delete_memory(ids[0])
    before, snapshot = vault.recall_memories(), vault.build_snapshot()
    assert vault.compact() == {"lines_before": 5, "lines_after": 2, "lines_removed": 3}
    assert (vault.recall_memories(), vault.build_snapshot()) == (before, snapshot)
    assert [row["id"] for row in lines(vault)] == [ids[2], ids[1]]
    stats = vault.vault_stats()
    assert (stats["deleted_count"], stats["bloat_ratio"], stats["compactable_lines"]) == (0, 1.0, 0)
    assert sorted(path.name for path in vault.path.parent.iterdir()) == ["vault.jsonl"]
    assert vault.compact() == {"lines_before": 2, "lines_after": 2, "lines_removed": 0}


def test_compaction_of_nothing(vault: MemoryVault) -> None:
    """S002-59"""
    assert vault.compact() == {"lines_before": 0, "lines_after": 0, "lines_removed": 0}
    assert not vault.path.parent.exists()


def test_compaction_keeps_malformed_lines_aside(vault: MemoryVault) -> None:
    """S002-59"""
    write(vault, {"id": "a", "text": "one", "mood": "calm"}, "{damaged", '{"id":"b"}')
    with vault.path.open("ab") as file:
        file.write(b'{"torn":')
    vault.compact()
    assert [row["mood"] for row in lines(vault)] == ["calm"]
    rejected = vault.path.with_name("vault.jsonl.rejected")
    assert rejected.read_text() == '{damaged\n{"id":"b"}\n{"torn":\n'
    assert [item for item in parsed(vault) if isinstance(item, Problem)] == []


def test_compaction_minds_a_last_line_without_line_end(vault: MemoryVault) -> None:
    """S002-59: a tombstone at the very end still deletes."""
    write(vault, {"id": "a", "text": "one"}, {"id": "b", "text": "two"})
    with vault.path.open("ab") as file:
        file.write(b'{"id":"a","text":"one","version":2,"deleted_at":"2025-01-01T00:00:00Z"}')
    vault.compact()
    assert [row["id"] for row in lines(vault)] == ["b"]


def test_lines_that_arrive_during_compaction_are_carried_over(vault: MemoryVault) -> None:
    """S002-62: written to the old file by somebody who had looked before the rename."""
    add(vault, words(1))
    late = render_line(Record("late00000000", "a late line")) + "\n"

    def change(data: bytes) -> tuple[bytes, bytes]:
        with vault.path.open("ab") as file:
            file.write(late.encode())
        return data, b""

    log.rewrite(str(vault.path), change, lambda _: False)
    assert {record.text for record in vault.recall_memories()} == {words(1), "a late line"}
    assert sorted(path.name for path in vault.path.parent.iterdir()) == ["vault.jsonl"]


def test_a_killed_compaction_loses_nothing(vault: MemoryVault) -> None:
    """S002-62: killed after the rename, with a line that only the old file has."""
    kept = add(vault, words(1))
    gone = add(vault, words(2))
    vault.delete_memory(gone)
    only_old = add(vault, words(3))
    os.link(vault.path, vault.path.with_name("vault.jsonl.old"))
    successor = vault.path.with_name("successor")
    successor.write_text(vault.path.read_text().splitlines()[0] + "\n")
    os.replace(successor, vault.path)
    assert {record.id for record in MemoryVault(vault.path).recall_memories()} == {kept, only_old}
    vault.compact()
    assert sorted(row["id"] for row in lines(vault)) == sorted([kept, only_old])
    assert sorted(path.name for path in vault.path.parent.iterdir()) == ["vault.jsonl"]


def test_a_killed_compaction_of_a_linked_vault_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    real = tmp_path / "real" / "store.jsonl"
    link = tmp_path / "vault.jsonl"
    link.symlink_to(real)
    write(MemoryVault(real), {"id": "a", "text": "one"})
    real.with_name("store.jsonl.old").write_text('{"id":"b","text":"two"}\n')
    vault = MemoryVault(link)
    assert sorted(record.id for record in vault.recall_memories()) == ["a", "b"]
    assert len(vault.history("b")) == 1
    vault.compact()
    assert link.is_symlink()
    assert sorted(row["id"] for row in lines(vault)) == ["a", "b"]


ADDER = """
import sys
from memlane.lanes.vault.store import MemoryVault
from samples import words
vault = MemoryVault(sys.argv[1], max_active=10**6)
for number in range(int(sys.argv[3])):
    id = vault.add_memory(words(sys.argv[2] + str(number)), "shared", "x")
    vault.update_memory(id, tags=["seen"])
    print(id, flush=True)
"""
COMPACTOR = """
import os, sys
from memlane.lanes.vault.store import MemoryVault
vault = MemoryVault(sys.argv[1], max_active=10**6)
while not os.path.exists(sys.argv[2]):
    vault.compact()
"""


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    paths = os.pathsep.join([str(Path(__file__).parent.parent), *sys.path])
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths})


def test_two_processes_add_at_once(vault: MemoryVault) -> None:
    """S002-60"""
    adders = [start(ADDER, vault.path, name, 40) for name in ("one", "two")]
    ids = [id for adder in adders for id in adder.communicate()[0].split()]
    assert len(ids) == 80
    assert sorted(row["id"] for row in lines(vault)) == sorted(ids * 2)
    assert sorted(path.name for path in vault.path.parent.iterdir()) == ["vault.jsonl"]


def test_adding_while_others_compact_loses_nothing(vault: MemoryVault, tmp_path: Path) -> None:
    """S002-62"""
    done = tmp_path / "done"
    compactors = [start(COMPACTOR, vault.path, done) for _ in range(2)]
    adders = [start(ADDER, vault.path, name, 60) for name in ("one", "two")]
    ids = [id for adder in adders for id in adder.communicate()[0].split()]
    done.touch()
    for compactor in compactors:
        compactor.communicate()
    assert [process.returncode for process in (*adders, *compactors)] == [0, 0, 0, 0]
    assert len(ids) == 120
    assert {(record.id, record.version) for record in vault.recall_memories()} == {(id, 2) for id in ids}
    assert [item for item in parsed(vault) if isinstance(item, Problem)] == []
    assert sorted(path.name for path in vault.path.parent.iterdir()) == ["vault.jsonl"]


EXTENDER = """
import sys
from memlane.lanes.vault.store import MemoryVault
vault = MemoryVault(sys.argv[1])
for number in range(15):
    vault.extend(sys.argv[2], f"{sys.argv[3]}-{number}.")
    vault.update_by_topic("now", "shared", "the state of " + sys.argv[3])
"""


def test_processes_that_extend_one_memory_lose_nothing(vault: MemoryVault, tmp_path: Path) -> None:
    id = add(vault)
    vault.update_by_topic("now", "shared", "nothing yet")
    done = tmp_path / "done"
    compactor = start(COMPACTOR, vault.path, done)
    extenders = [start(EXTENDER, vault.path, id, name) for name in "abcd"]
    assert [(extender.communicate(), extender.returncode)[1] for extender in extenders] == [0] * 4
    done.touch()
    assert (compactor.communicate(), compactor.returncode)[1] == 0
    record = vault.get_memory(id)
    assert sorted(record.text.split("\n\n")[1:]) == sorted(
        f"{name}-{number}." for name in "abcd" for number in range(15)
    )
    assert sorted(record.version for record in vault.recall_memories()) == [61, 61]


def test_threads_that_share_a_vault_lose_nothing(vault: MemoryVault) -> None:
    id = add(vault)
    gone = [add(vault, words(f"gone {number}")) for number in range(8)]

    def work(name: int) -> None:
        for number in range(8):
            add(vault, words(f"{name} {number}"))
            vault.extend(id, f"{name}-{number}.")
            gate.admit(vault.checks, Draft(words(f"check {name} {number}")), vault)
            vault.build_snapshot()
        vault.delete_memory(gone[name])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    record = vault.get_memory(id)
    assert sorted(record.text.split("\n\n")[1:]) == sorted(f"{a}-{b}." for a in range(8) for b in range(8))
    assert (record.version, len(vault.recall_memories()), len(list(vault.removed()))) == (65, 65, 8)


# -- the bank's verbs


def test_a_memory_of_the_vault(tmp_path: Path, clock: Clock) -> None:
    vault = MemoryVault(tmp_path / "vault.jsonl", clock=clock)
    when = datetime(2024, 5, 6, tzinfo=UTC)
    memory = vault.put(
        Draft(
            "Stabilize the runtime\nin layers",
            tags=("a",),
            type="Mission",
            scope="orion",
            thread="t1",
            created_at=when,
            fields={"tier": "register", "topic_id": "now", "source": "chat"},
        )
    )
    assert memory == Memory(
        id=memory.id,
        lane="vault",
        text="Stabilize the runtime\nin layers",
        title="Stabilize the runtime",
        file=str(vault.path),
        tags=("a",),
        type="mission",
        status="active",
        scope="orion",
        thread="t1",
        created_at=when,
        fields={"tier": "register", "topic_id": "now", "source": "chat", "version": 1, "category": "mission"},
    )
    assert vault.fetch(memory.native_id) == memory


def test_put_has_defaults(vault: MemoryVault) -> None:
    memory = vault.put(Draft(MISSION, title="The mission"))
    found = (memory.scope, memory.type, memory.title, memory.fields["tier"])
    assert found == ("shared", "other", "The mission", "canon")


def test_put_refuses_unknown_fields(vault: MemoryVault) -> None:
    with pytest.raises(InvalidInput):
        vault.put(Draft(MISSION, fields={"colour": "red"}))


def test_revise_and_extend(vault: MemoryVault) -> None:
    native = vault.put(Draft(MISSION, title="old")).native_id
    changes = {"type": "goal", "tags": ("x",), "scope": "orion", "title": None, "topic_id": "t", "tier": "register"}
    memory = vault.revise(native, changes)
    assert (memory.type, memory.tags, memory.scope, memory.title, memory.text) == (
        "goal", ("x",), "orion", MISSION, MISSION,
    )  # fmt: skip
    assert (memory.fields["topic_id"], memory.fields["tier"], memory.fields["version"]) == ("t", "register", 2)
    assert vault.extend(native, "  And beyond\n").text == f"{MISSION}\n\n  And beyond"
    with pytest.raises(InvalidInput):
        vault.extend(native, 5)  # type: ignore[arg-type]
    with pytest.raises((Refused, InvalidInput)):
        vault.revise(native, {"scope": "mars"})


def test_drop_and_recover(tmp_path: Path, clock: Clock) -> None:
    vault = MemoryVault(tmp_path / "vault.jsonl", clock=clock)
    native = vault.put(Draft(MISSION)).native_id
    removed = vault.drop(native)
    assert (removed.id, removed.how, removed.path, removed.removed_at) == (
        f"vault:{native}", "tombstone", vault.path, clock.now,
    )  # fmt: skip
    assert list(vault.removed()) == [removed]
    recovered = vault.recover(native)
    assert (recovered.text, recovered.fields["version"], list(vault.removed())) == (MISSION, 3, [])
    with pytest.raises(AlreadyExists):
        vault.recover(native)
    with pytest.raises(NotFound):
        vault.recover("ffffffffffff")


# -- the command line

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """`memlane vault …` in a bank whose scopes are team and ada, as (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "memlane.toml").write_text('[memory]\nenabled = true\n[vault]\nscopes = ["team", "ada"]\n')

    def call(*args: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        monkeypatch.setattr(sys, "argv", ["memlane", "vault", *args])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        return int(str(stop.value.code or 0)), *capsys.readouterr()

    return call


def test_the_command_stores_in_the_first_scope_and_reports_remarks(run: Run) -> None:
    code, out, err = run("add", MISSION.replace(" ", "\u200b ", 1))
    assert (code, "note: 1 invisible or control characters were removed" in err) == (0, True)
    assert run("list")[1] == f"{out.strip()}\tteam\tcanon\t{MISSION}\n"
    assert "note: 1 invisible" in run("update", out.strip(), "The\u200b mission")[2]
    assert run("update", out.strip(), "-", stdin="The new mission\n")[0] == 0
    assert run("list")[1].endswith("The new mission\n")


def test_an_upsert_by_command_keeps_the_rest(run: Run) -> None:
    register = ("--tier", "register", "--topic", "now", "--json")
    run("add", words(1), "--tag", "a", "--source", "chat", "--category", "goal", *register)
    record = json.loads(run("add", words(2), *register)[1])
    assert (record["version"], record["tags"], record["source"], record["category"]) == (2, ["a"], "chat", "goal")


def test_a_command_that_asks_for_nothing_is_an_error(run: Run) -> None:
    id = run("add", MISSION)[1].strip()
    assert run("update", id)[0] == 2
    assert run("update", id, "--tag", "x")[0] == 0
    assert run("history", "nosuch")[0] == 3
    for command in (["list"], ["search", "mission"], ["snapshot"], ["candidates"], ["proposals"]):
        code, _, err = run(*command, "--scope", "shared")
        assert (code, "team, ada" in err) == (2, True)
        assert run(*command, "--scope", "Ada")[0] == 0


def test_commands_print_whole_ids(run: Run) -> None:
    old = run("add", words(1), "--tier", "register")[1].strip()
    new = run("add", f"{words(1, 4)} {words(2, 4)}", "--tier", "register")[1].strip()
    assert run("candidates")[1].split("\t")[1:3] == [new, old]
    assert run("proposals")[1].split("\t")[:2] == [old, "near_duplicate"]


# -- the laws

plain = st.text(st.characters(codec="utf-8"), max_size=30)
some = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)
json_values = st.recursive(st.none() | st.booleans() | st.integers() | plain, lambda inner: st.lists(inner, max_size=3))
records = st.builds(
    Record,
    id=some,
    text=some,
    scope=some.map(str.lower),
    category=some,
    tier=some.map(str.lower),
    topic_id=st.none() | some,
    tags=st.lists(plain, max_size=3),
    created_at=plain,
    updated_at=st.none() | some,
    source=st.none() | plain,
    deleted_at=st.none() | some,
    version=st.integers(1, 10**6),
    extra=st.dictionaries(plain.filter(lambda key: key not in Record.__slots__), json_values, max_size=3),
)


@given(records)
def test_a_rendered_record_is_parsed_back(record: Record) -> None:
    line = render_line(record)
    assert "\n" not in line
    assert parse_line(line) == record


@given(st.lists(st.binary(max_size=40).filter(lambda line: b"\n" not in line), max_size=5))
@settings(max_examples=60)
def test_no_damage_hides_a_record(tmp_path: Path, damage: list[bytes]) -> None:
    path = tmp_path / "vault.jsonl"
    good = render_line(Record("good", "a good line")).encode()
    path.write_bytes(b"\n".join([*damage, good, *damage, b""]))
    vault = MemoryVault(path)
    assert [record.id for record in vault.recall_memories()] == ["good"]
    vault.compact()
    assert [record.id for record in vault.recall_memories()] == ["good"]
    for leftover in tmp_path.iterdir():
        leftover.unlink()
