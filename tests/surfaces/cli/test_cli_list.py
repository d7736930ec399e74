"""`memlane list` of a whole bank: lines straight from the index, and always those that the files have."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from commands import CANARY, Run
from memlane import Bank
from memlane.core.dates import iso
from memlane.recall import harmless
from memlane.surfaces.cli import output

MANY = 300  # several pages


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harmless, "_kept", {})


def add_many(bank: Bank) -> None:
    for number in range(MANY):
        path = bank.root / f"n{number}.md"
        path.write_text(f'---\ncreated_at: "2024-01-{number % 28 + 1:02}T12:00:00Z"\n---\n\nNumber {number} of them.\n')
    bank.index.refresh(force=True)


def expected(bank: Bank) -> str:
    """The lines, the slow way."""
    rows = ((memory.id, (iso(memory.created_at) or "")[:10], memory.title) for memory in bank.list())
    return "".join("\t".join(row) + "\n" for row in rows)


def noted(home: Path) -> set[str]:
    (file,) = (home / ".local/state/memlane/indices").glob("*.pages.harmless")
    return {*file.read_text().split()}


def listed(run: Run) -> str:
    harmless._kept.clear()  # as in a new process
    return run("list").out


def test_all_pages_are_noted_and_the_next_list_has_the_same_lines(run: Run, bank: Bank, home: Path) -> None:
    add_many(bank)
    assert listed(run) == expected(bank)
    before = noted(home)
    assert len(before) > 1
    assert listed(run) == expected(bank)
    assert noted(home) == before


def test_a_new_memory_changes_one_page_alone(run: Run, bank: Bank, home: Path) -> None:
    add_many(bank)
    listed(run)
    before = noted(home)
    bank.add("Something in the middle.", title="Middle", created_at="2024-01-14T00:00:00Z")
    bank.index.refresh(force=True)
    assert listed(run) == expected(bank)
    assert len(noted(home) - before) <= 2


def test_a_title_is_listed_whatever_is_in_it(run: Run, bank: Bank) -> None:
    add_many(bank)
    for title in (
        'He said "no"',
        "back\\slash",
        "two  spaces\u00a0and more",
        "caf\u00e9 \u2603",
        "a\u200bb",
        "C:\\new \\u0041",
    ):
        bank.add(f"The text of {title}", title=title)
    bank.index.refresh(force=True)
    first = listed(run)
    assert first == listed(run) == run("list", "-n", "1000").out
    assert [name for name in ('He said "no"', "C:\\new \\u0041") if name not in first] == []


def test_memories_without_a_date_are_listed_by_id_whether_or_not_a_file_was_edited(run: Run, bank: Bank) -> None:
    for name in "abc":
        (bank.root / f"{name}.md").write_text(f"Text of {name}.\n")
    bank.index.refresh(force=True)
    (bank.root / "a.md").write_text("Another text of a.\n")  # read from the file, the others from the index
    assert listed(run) == "notes:a\t\ta\nnotes:b\t\tb\nnotes:c\t\tc\n"


def test_an_empty_tag_is_refused_rather_than_no_filter(run: Run, bank: Bank) -> None:
    bank.add("Something without a tag.")
    refused = run("list", "--tag", " ")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.splitlines()[0] == "error: Invalid value for '--tag' / '-t': a tag is not empty"


def test_what_comes_back_after_it_was_deleted_is_held_back(run: Run, bank: Bank) -> None:
    add_many(bank)
    listed(run)
    path = bank.root / "n7.md"
    data = path.read_bytes()
    bank.delete("notes:n7")
    path.write_bytes(data)
    bank.index.refresh(force=True)
    assert "notes:n7\t" not in listed(run)
    assert listed(run) == expected(bank)


def test_what_expires_or_was_replaced_is_so_in_a_list_that_was_made_before(run: Run, bank: Bank) -> None:
    add_many(bank)
    bank.add("Until tomorrow.", title="Soon over", expires="1d")
    listed(run)
    bank.update("notes:soon-over", expires="2020-01-01")
    bank.add("What is now.", title="New", replaces="notes:n3")
    bank.index.refresh(force=True)
    titles = {line.split("\t")[0]: line.split("\t")[2] for line in listed(run).splitlines()}
    assert (titles.get("notes:soon-over"), titles["notes:n3"]) == (None, "Number 3 of them. (replaced by notes:new)")


def test_a_secret_is_blanked_in_every_list(run: Run, bank: Bank) -> None:
    add_many(bank)
    (bank.root / "n5.md").write_text(f"---\ntitle: The key is {CANARY}\n---\n\nIt is.\n")
    bank.index.refresh(force=True)
    first = listed(run)
    assert (CANARY in first, first == listed(run)) == (False, True)
    assert first.count("\n") == MANY


def test_dates_are_compared_exactly(run: Run, bank: Bank) -> None:
    add_many(bank)
    for _ in range(2):
        out = run("list", "--since", "2024-01-05T12:00:00Z", "--until", "2024-01-06T11:59:59Z").out
        assert {line.split("\t")[1] for line in out.splitlines()} == {"2024-01-05"}
        assert run("list", "--since", "2024-01-05T12:00:00.5Z", "--until", "2024-01-05").out == ""


def test_a_row_that_is_not_what_was_written_is_not_listed(run: Run, bank: Bank) -> None:
    add_many(bank)
    listed(run)
    bank.close()
    with sqlite3.connect(bank.index_file.path) as db:
        db.execute("UPDATE shapes SET data = replace(data, 'Number 9 of', 'Another one of') WHERE data LIKE '%/n9.md%'")
    db.close()
    assert listed(run) == expected(bank)


def test_an_edit_by_hand_is_listed_at_once(run: Run, bank: Bank) -> None:
    add_many(bank)
    listed(run)
    (bank.root / "n9.md").write_text("---\ntitle: By hand\n---\n\nOf today.\n")
    assert [line.split("\t")[2] for line in listed(run).splitlines() if line.startswith("notes:n9\t")] == ["By hand"]


def test_a_list_as_json_is_one_array_of_whatever_length(run: Run, bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    """Printed page by page; the second time by what is noted of it."""
    add_many(bank)
    (bank.root / "n5.md").write_text(f"---\ntitle: The key is {CANARY}\n---\n\nIt is.\n")
    bank.index.refresh(force=True)
    monkeypatch.setattr(output, "PAGE", 90)
    memories = [memory.to_dict() for memory in bank.list()]
    assert CANARY not in str(memories)
    for _ in range(2):
        assert run("list", "--json").out == json.dumps(memories, ensure_ascii=False, indent=2) + "\n"
    assert run("list", "--json", "--tag", "none").out == "[]\n"


def test_a_limit_may_be_any_number(bank: Bank) -> None:
    bank.add("Of today.", title="a")
    assert [memory.id for memory in bank.list(limit=10**30)] == ["notes:a"]
    assert bank.list(limit=1, offset=10**30) == []
