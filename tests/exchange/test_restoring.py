"""Export and import: memories of a bank come back as they were."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import CANARY
from conftest import tree
from memlane import Bank, InvalidInput, Memory
from memlane.core.invisible import visible
from memlane.exchange import export
from memlane.exchange.imports import Outcome, import_from
from memlane.lanes.topics.checks import PATTERNS
from samples import LANES, draft, tries, words
from taking import made, statuses, took, write


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank.init(made(tmp_path / "project"))


@pytest.fixture
def other(tmp_path: Path) -> Bank:
    return Bank.init(made(tmp_path / "other"))


def bare(bank: Bank) -> list[Memory]:
    return sorted((replace(memory, file="") for memory in bank.memories()), key=lambda memory: memory.id)


def carried(bank: Bank, other: Bank, folder: Path) -> list[Outcome]:
    path = folder / "export.jsonl"
    path.write_text("".join(f"{line}\n" for line in export.lines(bank.memories())))
    return list(import_from(other, path))


def test_all_lanes_come_back_as_they_were(bank: Bank, other: Bank, tmp_path: Path) -> None:
    for lane in LANES:
        for number in range(8):
            bank.lane(lane).put(draft(lane, number))
    bank.update("vault:" + next(iter(bank.memories("vault"))).native_id, words(99), tags=["x"], title="Named")
    bank.add(words(100), lane="vault", tier="register", topic_id="plans", thread="t1", source="chat")
    bank.add(
        "pinned words",
        title="Pin",
        tags=["pinned"],
        type="plan",
        status="archived",
        project="p",
        extra={"rank": 3, "more": [1]},
    )
    bank.add(words(101), lane="layers", layer="agent", agent="hermes", file_type="insights")
    bank.add(
        "First\n\n## part\n",
        lane="topics",
        topic="auth",
        context="C-1",
        extra={"results": "good"},
        tags=["t"],
        thread="t1",
    )
    write(bank.root / "plain.md", "# No front matter\n\nAt all.\n")
    found = carried(bank, other, tmp_path)
    assert {one.status for one in found} == {"new"}
    assert [one.id for one in found] == [one.item for one in found]
    assert bare(other) == bare(bank)
    assert {one.status for one in carried(bank, other, tmp_path)} == {"same"}
    assert bare(other) == bare(bank)


def test_dates_of_long_ago_come_back(bank: Bank, other: Bank, tmp_path: Path) -> None:
    store = type(bank.layers)(bank.layers.root, clock=lambda: datetime(2024, 3, 4, tzinfo=UTC))
    store.create({"layer": "shared-project", "project": "api", "file_type": "known_issues", "content": "# Old\n"})
    carried(bank, other, tmp_path)
    (memory,) = other.memories("layers")
    assert memory.created_at == memory.updated_at == datetime(2024, 3, 4, tzinfo=UTC)
    assert memory.fields["staleness"] == "stale"


SAID = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Cs", "Zl", "Zp")) | st.sampled_from("\n#-*:`[]| "),
    max_size=120,
).filter(lambda text: visible(text) == text and not any(word.lower() in text.lower() for word in PATTERNS))
TAGS = st.lists(
    st.text("abcdefgh-", min_size=1, max_size=8).filter(lambda tag: tag.strip("-")), max_size=3, unique=True
)


@pytest.mark.parametrize("lane", LANES)
@settings(max_examples=tries(8, 80))
@given(said=st.lists(st.tuples(SAID, TAGS), min_size=1, max_size=3), minutes=st.integers(0, 10**6))
def test_whatever_is_remembered_comes_back_as_it_was(
    lane: str, said: list[tuple[str, list[str]]], minutes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("banks")
    bank, other = Bank.init(made(folder / "a")), Bank.init(made(folder / "b"))
    for number, (text, tags) in enumerate(said):
        one = draft(lane, number, f"{words((number, text), 12)} {text} the end")
        when = datetime(2023, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
        bank.lane(lane).put(replace(one, tags=() if lane == "layers" else tuple(tags), created_at=when))
    found = carried(bank, other, folder)
    assert [one.status for one in found] == ["new"] * len(said)
    assert bare(other) == bare(bank)
    assert {one.status for one in carried(bank, other, folder)} == {"same"}


def test_a_store_lying_elsewhere_comes_in_as_it_is(bank: Bank, other: Bank) -> None:
    for lane in LANES:
        bank.lane(lane).put(draft(lane, 1))
        assert statuses(other, bank.lane(lane).root, kind=lane) == ["new"]
    assert bare(other) == bare(bank)


def test_another_projects_bank_comes_in_as_it_is(bank: Bank, other: Bank) -> None:
    for lane in LANES:
        bank.lane(lane).put(draft(lane, 1))
    assert statuses(other, bank.root.parent) == ["new"] * 5
    assert bare(other) == bare(bank)
    with pytest.raises(InvalidInput, match="the bank itself"):
        import_from(bank, bank.root.parent)


def test_fields_cannot_pose_as_a_record(bank: Bank, tmp_path: Path) -> None:
    fields = {"tier": "canon", "text": "other", "id": "x", "deleted_at": "2025-01-01T00:00:00Z", "mine": 1}
    line = {"id": "vault:aa", "lane": "vault", "text": "real words", "scope": "shared", "fields": fields}
    bad = {**line, "id": "vault:a\nb", "text": "quite another thing"}
    path = write(tmp_path / "x.jsonl", f"{json.dumps(line)}\n{json.dumps(bad)}")
    assert took(bank, path) == [("new", "vault:aa"), ("refused", "")]
    (memory,) = bank.memories("vault")
    assert (memory.text, memory.fields["mine"]) == ("real words", 1)


def test_our_own_block_does_not_come_back_as_a_memory(bank: Bank, tmp_path: Path) -> None:
    bank.add("Keep the runtime stable", lane="vault")
    folder = write(tmp_path / "docs/AGENTS.md", "Mine.\n").parent
    export.write_block(bank, folder / "AGENTS.md")
    export.write_block(bank, folder / "CLAUDE.md")
    assert statuses(bank, folder) == ["new", "skipped"]
    assert bank.get("notes:AGENTS").text == "Mine.\n"


def test_the_banks_own_folders_are_not_imported(tmp_path: Path) -> None:
    project = made(tmp_path / "project")
    write(project / "memory/auth/oauth2.md", "## 2025-01-10: Old\n**Problem:** x\n---\n")
    write(project / "docs/page.md", "A page.\n")
    bank = Bank.init(project)
    assert bank.topics.root == project / "memory"
    assert took(bank, project, kind="markdown") == [("skipped", ""), ("new", "notes:docs/page")]


def test_a_changed_memory_is_taken_only_when_asked(bank: Bank, other: Bank, tmp_path: Path) -> None:
    for lane in LANES:
        bank.lane(lane).put(draft(lane, 1))
    carried(bank, other, tmp_path)
    for memory in list(bank.memories()):
        bank.update(memory.id, words(memory.lane))
    assert {one.status for one in carried(bank, other, tmp_path)} == {"changed"}
    path = tmp_path / "export.jsonl"
    assert {one.status for one in import_from(other, path, update=True)} == {"updated"}
    assert [memory.text for memory in bare(other)] == [memory.text for memory in bare(bank)]
    assert {one.status for one in import_from(other, path)} == {"same"}


def test_what_was_deleted_here_does_not_come_back_from_an_export(bank: Bank, other: Bank, tmp_path: Path) -> None:
    for lane in LANES:
        bank.lane(lane).put(draft(lane, 1))
    carried(bank, other, tmp_path)
    for memory in list(other.memories()):
        other.delete(memory.id)
    assert {(one.status, one.id) for one in carried(bank, other, tmp_path)} == {("same", "")}
    assert bare(other) == []


def test_a_line_with_a_secret_is_refused(bank: Bank, tmp_path: Path) -> None:
    lines = [
        {"id": f"{lane}:x", "lane": lane, "title": "t", "text": f"it is {CANARY}", "scope": "shared"} for lane in LANES
    ]
    path = write(tmp_path / "x.jsonl", "\n".join(map(json.dumps, lines)))
    before = tree(bank.root)
    found = list(import_from(bank, path))
    assert [one.status for one in found] == ["refused"] * 5
    assert CANARY not in repr(found)
    assert tree(bank.root) == before


def test_a_memory_that_its_lane_refuses_is_listed(bank: Bank, tmp_path: Path) -> None:
    lines = [
        {"id": "vault:a", "lane": "vault", "text": "x" * 2000, "scope": "shared"},
        {"id": "topics:a/b/c", "lane": "topics", "text": "gone", "fields": {"topic": "../a"}},
        {"id": "layers:nonsense", "lane": "layers", "text": "text"},
        {"id": "records:not-a-uuid", "lane": "records", "text": "long enough", "title": "t", "tags": ["k"],
         "scope": "global", "created_at": "2025-01-01T00:00:00Z"},
        {"id": "notes:../../x", "lane": "notes", "text": "climbs"},
    ]  # fmt: skip
    found = list(import_from(bank, write(tmp_path / "x.jsonl", "\n".join(map(json.dumps, lines)))))
    assert [one.status for one in found] == ["refused", "refused", "refused", "new", "new"]
    assert [one.why for one in found[3:]] == ["under another id", "under another id"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["project", "x.jsonl"]
