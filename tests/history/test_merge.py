"""Merging by what files mean: nothing is lost, nothing is marked up, and it does not matter who merges whom."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import Run
from conftest import tree, trusted
from memlane import Bank
from memlane.core.alternatives import MARK
from memlane.core.three_way import merged
from memlane.history.merge import merge
from memlane.lanes import NAMES
from memlane.lanes.merging import Unmergeable, undecided
from memlane.lanes.merging import document as note
from memlane.lanes.records.record import content_hash
from memlane.lanes.topics import entries as text_of
from memlane.lanes.topics import listing
from memlane.lanes.topics.merging import archive, index, topic
from memlane.lanes.vault.merging import vault
from samples import tries, words

START = datetime(2025, 1, 1, tzinfo=UTC)


# -- lines


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "expected"),
    [
        ("a\n", "a\n", "b\n", "b\n"),
        ("a\nb\n", "A\nb\n", "a\nB\n", "A\nB\n"),
        ("a\n", "a\n\nx\n", "a\n\ny\n", "a\n\nx\n\ny\n"),  # two appends
        ("a", "a\n\nx", "a\n\ny", "a\n\nx\n\ny"),  # the same without a line end
        ("a\n", "b\n", "a\n\ny\n", "b\n\ny\n"),  # a new text and an append
        ("a\nb\nc\n", "a\nc\n", "a\nB\nc\n", "a\nB\nc\n"),  # a change beats a deletion
        ("a\nb\n", "a\nb\nx\n", "a\nb\nx\n", "a\nb\nx\n"),  # both the same
        ("a\n", "a\n\nx\n\ny\n", "a\n\nx\n", "a\n\nx\n\ny\n"),  # one goes on where the other stopped
        ("a\r\nb\r\n", "a\nb\n", "a\r\nB\r\n", "a\nB\n"),  # a conversion of line ends is no change of lines
        ("a\r\nb\r\n", "A\r\nb\r\n", "a\r\nB\r\n", "A\r\nB\r\n"),
        ("", "", "x\n", "x\n"),
        ("a\n\nq\n", "a\n\np\n\nq\n\nr\n", "a\n", "a\n\np\n\nr\n"),  # a revert between two additions
        ("a\n", "a\n\nx\n", "b\n\nx\n", "b\n\nx\n"),  # what was picked before stands once
    ],
)
def test_lines_of_both_sides_come_together(base: str, ours: str, theirs: str, expected: str) -> None:
    assert merged(base, ours, theirs) == merged(base, theirs, ours) == expected


def test_lines_that_both_changed_stay_in_both_versions() -> None:
    text = merged("a\nb\nc\n", "a\nB\nc\n", "a\nX\nc\n")
    assert text == (
        f"a\n**Version 1 of 2** {MARK} -->\n\nB\n\n**Version 2 of 2** {MARK} -->\n\nX\n\n{MARK} end -->\nc\n"
    )


def _document(*paragraphs: str) -> str:
    return "\n\n".join(paragraphs) + "\n"


PARAGRAPHS = [f"Machine {number} stands in rack {number} of the hall." for number in range(6)]


@pytest.mark.parametrize("base", ["", _document(PARAGRAPHS[0])])
@pytest.mark.parametrize("order", [[1, 2, 3, 0], [3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1]])
def test_of_two_orders_of_the_same_paragraphs_one_stays(base: str, order: list[int]) -> None:
    ours, theirs = _document(*PARAGRAPHS[:4]), _document(*(PARAGRAPHS[number] for number in order))
    assert merged(base, ours, theirs) == merged(base, theirs, ours) == min(ours, theirs)


def test_a_paragraph_that_both_sides_put_into_different_places_stands_once() -> None:
    top, *rest = PARAGRAPHS
    base = _document(top, rest[0])
    ours, theirs = _document(top, rest[1], rest[0], rest[2]), _document(top, rest[0], rest[1], rest[3])
    text = merged(base, ours, theirs)
    assert text == merged(base, theirs, ours)
    assert sorted(text.removesuffix("\n").split("\n\n")) == [top, *rest[:4]]


def test_a_word_that_both_sides_put_into_different_places_stays_in_both() -> None:
    first, second, third, *_ = PARAGRAPHS
    base = _document(first, second, third)
    ours, theirs = _document(first, "Done.", second, third), _document(first, second, "Done.", third)
    assert merged(base, ours, theirs) == _document(first, "Done.", second, "Done.", third)


def test_code_that_both_sides_put_into_different_places_loses_no_line() -> None:
    first, second, third, *_ = PARAGRAPHS
    code = "    return the_same_value_for_everybody(machine)\n\n"
    one, two = (f"```\ndef {name}():\n\n{code}```" for name in ("one", "two"))
    text = merged(
        _document(first, second, third), _document(first, one, second, third), _document(first, second, two, third)
    )
    assert text == _document(first, one, second, two, third)


def test_a_third_version_joins_the_two_that_are_there() -> None:
    sides = [f"a\n{word}\nc\n" for word in "PQR"]
    orders = [(0, 1, 2), (0, 2, 1), (1, 2, 0), (2, 1, 0)]
    texts = {merged("a\nb\nc\n", merged("a\nb\nc\n", sides[x], sides[y]), sides[z]) for x, y, z in orders}
    assert len(texts) == 1
    assert "**Version 3 of 3**" in texts.pop()


lines_of_text = st.lists(st.sampled_from(["a", "b", "c", "", "## h", "- x", "text"]), max_size=8)


@given(lines_of_text, lines_of_text, lines_of_text)
def test_any_texts_merge_the_same_from_both_sides_and_lose_no_line(
    base: list[str], ours: list[str], theirs: list[str]
) -> None:
    first, left, right = ("".join(f"{line}\n" for line in lines) for lines in (base, ours, theirs))
    text = merged(first, left, right)
    assert text == merged(first, right, left)
    for side in (ours, theirs):
        added = Counter(filter(None, side)) - Counter(filter(None, base))
        assert not set(added) - set(text.split("\n"))
    assert merged(first, left, first) == merged(first, left, left) == left


@pytest.mark.parametrize("lines", [["x"] * 20_000, [f"line {n % 7}" for n in range(20_000)], [""] * 20_000])
def test_long_texts_of_few_different_lines_take_no_time(lines: list[str]) -> None:
    base = "\n".join(lines)
    ours = "\n".join([*lines[:9000], "mine", *lines[9000:]])
    theirs = "\n".join([*lines[:3000], "yours", *lines[3100:]])
    text = merged(base, ours, theirs)
    assert "mine" in text
    assert "yours" in text


# -- the vault


def line(id: str, version: int = 1, text: str = "text", at: int = 0, **more: Any) -> str:
    when = f"2025-01-01T00:00:{at:02}Z"
    stamps = {
        "created_at": when if version == 1 else "2025-01-01T00:00:00Z",
        "updated_at": when if version > 1 else None,
    }
    return json.dumps({"id": id, "version": version, **stamps, "text": text, **more}, separators=(",", ":")) + "\n"


def both(base: str, ours: str, theirs: str) -> list[dict[str, Any]]:
    data = vault(base.encode(), ours.encode(), theirs.encode())
    assert data == vault(base.encode(), theirs.encode(), ours.encode())
    return [json.loads(row) for row in data.splitlines()]


def brief(rows: list[dict[str, Any]]) -> list[tuple[str, int, str, bool]]:
    return [(row["id"], row["version"], row["text"], bool(row.get("deleted_at"))) for row in rows]


def test_new_records_of_both_sides_are_united_in_the_order_of_time() -> None:
    old = line("a")
    assert [row["id"] for row in both(old, old + line("b", at=9), old + line("c", at=5))] == ["a", "c", "b"]


def test_a_record_that_both_changed_keeps_all_versions_and_the_later_one_counts() -> None:
    old = line("a", text="old")
    rows = both(old, old + line("a", 2, "early", at=3), old + line("a", 2, "late", at=5))
    assert brief(rows) == [("a", 1, "old", False), ("a", 2, "early", False), ("a", 3, "late", False)]


def test_the_later_change_counts_even_when_the_other_side_changed_it_more_often() -> None:
    old = line("a", text="old")
    often = old + line("a", 2, "x", at=1) + line("a", 3, "y", at=2) + line("a", 4, "z", at=3)
    rows = both(old, often, old + line("a", 2, "late", at=9))
    assert brief(rows)[-1] == ("a", 5, "late", False)


def test_a_changed_record_beats_its_deletion_and_an_unchanged_one_does_not() -> None:
    old = line("a", text="old") + line("b", text="other")
    gone = old + line("a", 2, "old", at=9, deleted_at="2025-01-01T00:00:09Z")
    gone += line("b", 2, "other", at=9, deleted_at="2025-01-01T00:00:09Z")
    rows = both(old, gone, old + line("a", 2, "new", at=3))
    assert brief(rows)[-1] == ("b", 2, "other", True)
    assert max((row for row in brief(rows) if row[0] == "a"), key=lambda row: row[1]) == ("a", 3, "new", False)


def test_what_compact_took_out_stays_out_and_what_was_appended_meanwhile_stays() -> None:
    old = line("a", text="old") + line("a", 2, "new", at=1) + line("b") + "not json\n"
    rows = both(old, line("a", 2, "new", at=1), old + line("a", 3, "newer", at=2) + line("c", at=3))
    assert brief(rows) == [("a", 2, "new", False), ("a", 3, "newer", False), ("c", 1, "text", False)]


def test_of_two_registers_for_one_topic_the_newer_one_stays_active() -> None:
    one = line("a", text="Projects: one", at=3, tier="register", topic_id="projects", scope="shared")
    two = line("b", text="Projects: two", at=5, tier="register", topic_id="projects", scope="shared")
    rows = both("", one, two)
    assert brief(rows) == [
        ("a", 1, "Projects: one", False), ("b", 1, "Projects: two", False), ("a", 2, "Projects: one", True),
    ]  # fmt: skip
    assert rows[-1]["superseded_by"] == "b"


def test_damaged_and_torn_lines_are_kept_as_they_are() -> None:
    base = line("a").encode()
    ours = base + b'\xff{"id":\n' + line("b", at=1).encode()
    theirs = base + line("c", at=2).encode() + b'{"id":"torn'
    data = vault(base, ours, theirs)
    assert data == vault(base, theirs, ours)
    assert sorted(data.splitlines()) == sorted(
        [*base.splitlines(), b'\xff{"id":', line("b", at=1).strip().encode(), line("c", at=2).strip().encode(),
         b'{"id":"torn']
    )  # fmt: skip


def test_equal_lines_of_several_versions_have_one_order() -> None:
    """The sides have their lines in different orders, so that all are sorted; what is equal was in any order then."""
    one, two, other = line("a", 2, "x"), line("a", 3, "x"), line("b", at=1)
    assert brief(both("", one + two + other, other + one + two)) == [
        ("a", 2, "x", False), ("a", 3, "x", False), ("b", 1, "text", False),
    ]  # fmt: skip


def test_merging_again_what_was_merged_changes_nothing() -> None:
    old = line("a", text="old")
    one, two = old + line("a", 2, "x", at=1), old + line("a", 2, "y", at=2)
    once = vault(old.encode(), one.encode(), two.encode())
    assert vault(one.encode(), once, one.encode()) == once
    further = one + line("a", 3, "z", at=5)
    again = vault(one.encode(), once, further.encode())
    assert brief([json.loads(row) for row in again.splitlines()])[-1] == ("a", 4, "z", False)


# -- topics


def entry(date: str, title: str, text: str = "text") -> str:
    return f"## {date}: {title}\n**Problem:** {text}\n---\n"


def topic_file(*entries: str) -> str:
    return "\n".join(entries)


def headings(text: str) -> list[str]:
    return [row[3:] for row in text.split("\n") if row.startswith("## ")]


def test_entries_of_both_sides_come_together_newest_first() -> None:
    old = entry("2025-01-01", "Old")
    ours, theirs = topic_file(entry("2025-01-05", "Mine"), old), topic_file(entry("2025-01-07", "Yours"), old)
    text = topic(old, ours, theirs)
    assert text == topic(old, theirs, ours) == topic_file(entry("2025-01-07", "Yours"), ours)


def test_an_entry_that_one_side_changed_is_that_and_one_it_pruned_stays_away() -> None:
    base = topic_file(entry("2025-01-03", "C"), entry("2025-01-02", "B"), entry("2025-01-01", "A"))
    ours = topic_file(entry("2025-01-09", "New"), entry("2025-01-03", "C"), entry("2025-01-02", "B"))
    theirs = topic_file(entry("2025-01-03", "C", "better"), entry("2025-01-02", "B"), entry("2025-01-01", "A"))
    expected = topic_file(entry("2025-01-09", "New"), entry("2025-01-03", "C", "better"), entry("2025-01-02", "B"))
    assert topic(base, ours, theirs) == topic(base, theirs, ours) == expected


def test_an_entry_that_both_changed_is_one_with_both_versions() -> None:
    old, one, two = (entry("2025-01-01", "A", text) for text in ("text", "one", "two"))
    body = f"**Version 1 of 2** {MARK} -->\n\n**Problem:** one\n\n**Version 2 of 2** {MARK} -->\n\n**Problem:** two\n"
    assert topic(old, one, two) == topic(old, two, one) == f"## 2025-01-01: A\n{body}\n{MARK} end -->\n---\n"
    again = topic(old, one, topic(old, one, two))
    assert again == topic(old, one, two)


def test_an_entry_whose_labels_were_changed_apart_is_one_entry_with_both() -> None:
    old = "## 2025-01-01: A\n**Context:** c\n**Problem:** p\n**Solution:** s\n---\n"
    text = topic(old, old.replace(" c\n", " C\n"), old.replace(" s\n", " S\n"))
    assert text == old.replace(" c\n", " C\n").replace(" s\n", " S\n")


def test_an_entry_that_one_side_deleted_and_the_other_changed_stays() -> None:
    base = topic_file(entry("2025-01-02", "B"), entry("2025-01-01", "A"))
    text = topic(base, entry("2025-01-02", "B"), topic_file(entry("2025-01-02", "B"), entry("2025-01-01", "A", "new")))
    assert headings(text) == ["2025-01-02: B", "2025-01-01: A"]


def test_text_around_the_entries_and_entries_without_a_closing_line_survive() -> None:
    base = "# Notes\n\n" + entry("2025-01-01", "A") + "\nfooter\n"
    ours = "# Notes\n\n## 2025-01-03: Open\n**Problem:** p\n\n" + entry("2025-01-01", "A") + "\nfooter\n"
    theirs = "# Notes\n\nMore.\n\n" + entry("2025-01-02", "B") + "\n" + entry("2025-01-01", "A") + "\nfooter\n"
    text = topic(base, ours, theirs)
    assert text == topic(base, theirs, ours)
    assert headings(text) == ["2025-01-03: Open", "2025-01-02: B", "2025-01-01: A"]
    assert text.startswith("# Notes\n\nMore.\n")
    assert text.endswith("footer\n")


def test_a_file_with_markers_of_an_unfinished_merge_is_left_to_git() -> None:
    with pytest.raises(Unmergeable):
        topic("", "<<<<<<< HEAD\n" + entry("2025-01-01", "A"), entry("2025-01-01", "B"))


def test_archives_are_united_and_an_entry_that_both_pruned_is_there_once() -> None:
    base = text_of.add_archived("", "x", [entry("2024-01-01", "A")])
    ours = text_of.add_archived(base, "x", [entry("2024-02-01", "B")])
    theirs = text_of.add_archived(base, "y", [entry("2024-03-01", "C"), entry("2024-02-01", "B")])
    theirs = text_of.add_archived(theirs, "x", [entry("2024-02-01", "B")])
    text = archive(base, ours, theirs)
    assert text == archive(base, theirs, ours)
    assert Counter((name, text_of.parse(raw).title) for name, raw in text_of.archived(text)) == Counter(
        [("x", "A"), ("x", "B"), ("y", "B"), ("y", "C")]
    )


def test_an_index_of_many_topics_is_merged_in_time_that_grows_with_it() -> None:
    """Each line was looked for a place among all others: 800 took four seconds."""

    def page(*numbers: int) -> str:
        return listing.edit_index("", {f"t{n:04}/a": listing.Listed("A", 1, 0, "2025-01-01") for n in numbers})

    def cost(size: int) -> float:
        third = size // 3
        sides = page(*range(third)), page(*range(2 * third)), page(*range(third), *range(2 * third, size))
        begin = time.process_time()
        assert index(*sides) == page(*range(third), *range(third, size))
        return time.process_time() - begin

    assert min(cost(1200) for _ in range(3)) < 8 * min(cost(300) for _ in range(3))


def test_the_index_of_both_sides_lists_everything_with_counts_added_up() -> None:
    listed = listing.Listed
    base = listing.edit_index("", {"auth/a": listed("A", 2, 1, "2025-01-01")})
    ours = listing.edit_index(
        base, {"auth/a": listed("New", 3, 2, "2025-01-05"), "db/x": listed("X", 1, 0, "2025-01-05")}
    )
    theirs = listing.edit_index(base, {"auth/a": listed("Mine, by hand", 2, 1, "2025-01-01")})
    theirs = listing.edit_index(theirs, {"ci/y": listed("Y", 1, 0, "2025-01-06")})
    text = index(base, ours, theirs)
    assert text == index(base, theirs, ours)
    assert listing.read_index(text) == {
        "auth/a": listed("Mine, by hand", 3, 2, "2025-01-05"),
        "ci/y": listed("Y", 1, 0, "2025-01-06"),
        "db/x": listed("X", 1, 0, "2025-01-05"),
    }
    assert text == listing.edit_index("", listing.read_index(text))


# -- Markdown with front matter


def page(body: str = "Text.\n", **front: Any) -> str:
    rows = "".join(f"{key}: {json.dumps(value)}\n" for key, value in front.items())
    return f"---\n{rows}---\n\n{body}"


def test_front_matter_is_merged_key_by_key() -> None:
    base = page(title="T", tags=["a", "b"], status="active", updated_at="2025-01-01")
    ours = page("Text.\n\nMine.\n", title="New", tags=["a", "b", "mine"], status="active", updated_at="2025-01-05")
    theirs = page("Text.\n\nYours.\n", title="T", tags=["b", "yours"], status="archived", updated_at="2025-01-03")
    text = note(base, ours, theirs)
    assert text == note(base, theirs, ours) == page(
        "Text.\n\nMine.\n\nYours.\n",
        title="New", tags=["b", "mine", "yours"], status="archived", updated_at="2025-01-05",
    )  # fmt: skip


def test_a_value_that_both_changed_is_kept_beside_the_one_that_won() -> None:
    text = note(page(title="T", type="fact"), page(title="One", type="fact"), page(title="Two", type="plan"))
    assert text == page(title="Two", type="plan").replace("---\n\n", 'conflicts: {"title": ["One"]}\n---\n\n')


def test_comments_and_quoting_of_front_matter_survive() -> None:
    base = "---\n# mine\ntitle: 'T'\ntags: [a]\nother: x # why\n---\n\nText.\n"
    text = note(base, base.replace("[a]", "[a, b]"), base.replace("Text.", "Text!").replace("other: x", "other: y"))
    assert text == "---\n# mine\ntitle: 'T'\ntags: [a, b]\nother: y # why\n---\n\nText!\n"


def test_two_notes_of_one_name_become_one_with_both_texts() -> None:
    text = note("", page("One.\n", tags=["a"]), page("Two.\n", tags=["b"]))
    assert text == note("", page("Two.\n", tags=["b"]), page("One.\n", tags=["a"]))
    assert "One." in text
    assert "Two." in text
    assert 'tags: ["a", "b"]' in text
    assert MARK in text


def test_a_record_has_the_hash_of_its_merged_content() -> None:
    body = "A message of some length.\n"
    base = page(body, id="x", content_hash=content_hash(body))
    ours, theirs = (page(f"{body}\n{word}\n", id="x", content_hash=content_hash(f"{body}\n{word}\n")) for word in "ab")
    text = merge("record", base.encode(), ours.encode(), theirs.encode()).decode()
    assert text == page(f"{body}\na\n\nb\n", id="x", content_hash=content_hash(f"{body}\na\n\nb\n"))


def test_a_layer_has_the_later_of_two_dates() -> None:
    base = "<!-- Last Updated: 2025-01-01 -->\n\n# T\n"
    ours, theirs = base.replace("01 ", "05 ") + "\na\n", base.replace("01 ", "03 ") + "\nb\n"
    merged = merge("layer", base.encode(), ours.encode(), theirs.encode()).decode()
    assert merged == "<!-- Last Updated: 2025-01-05 -->\n\n# T\n\na\n\nb\n"


@pytest.mark.parametrize(
    ("format", "data"), [("note", b"\xff\xfe"), ("topic", b"\x80"), ("note", b"---\na: [\n---\n\nx\n")]
)
def test_what_cannot_be_read_is_left_to_git(format: str, data: bytes) -> None:
    with pytest.raises(Unmergeable):
        merge(format, b"", data, b"text\n")


# -- whole banks with random histories


FORMATS = {
    "topics/index.md": "index",
    "topics/archive/*/*.md": "archive",
    "topics/*/*.md": "topic",
    "records/*.md": "record",
    "layers/*.md": "layer",
    "vault.jsonl": "vault",
    "*.md": "note",
}


EXPECTED = re.compile(
    "has two versions|has three versions|was given several values|.* was deleted on .* and came back"
)  # for a person to decide
UNION = (
    "tombstones.jsonl",
    "anchors.jsonl",
    "replaced.jsonl",
)  # git's union: their order means nothing


def merged_tree(base: dict[str, bytes], ours: dict[str, bytes], theirs: dict[str, bytes]) -> dict[str, bytes]:
    """What git does with two branches, file by file."""
    result = {}
    for path in {*ours, *theirs}:
        old, one, two = (side.get(path, b"") for side in (base, ours, theirs))
        if one == two or two == old:
            result[path] = one
        elif one == old:
            result[path] = two
        elif path in UNION:
            result[path] = b"".join(sorted({*one.splitlines(True), *two.splitlines(True)}))
        else:
            format = next(format for pattern, format in FORMATS.items() if fnmatch(path, pattern))
            result[path] = merge(format, old, one, two)
    return {path: data for path, data in result.items() if data}


class Ticking:
    """A clock that every look at moves on, so that no two changes happen at once."""

    def __init__(self, seconds: int) -> None:
        self.now = START + timedelta(seconds=seconds)

    def __call__(self) -> datetime:
        self.now += timedelta(hours=7)
        return self.now


def work(folder: Path, steps: list[tuple[str, int]], branch: int) -> None:
    """A random history: each step is a verb and a number that chooses what it is about."""
    folder.mkdir(exist_ok=True)
    bank = Bank.init(folder)
    clock = Ticking(branch)
    for name in NAMES:
        bank.lane(name).clock = clock  # type: ignore[attr-defined]
    for count, (verb, number) in enumerate(steps):
        text = words((branch, count))
        here = list(bank.list(lane={"n": "notes", "v": "vault", "t": "topics", "r": "records", "l": "layers"}[verb[0]]))
        here.sort(key=lambda memory: memory.id)
        chosen = here[number % len(here)] if here else None
        if verb == "note":
            bank.add(text, title=f"Note {number % 5}", tags=[f"t{number}"])
        elif verb == "vault":
            bank.add(text, lane="vault", type="other", tags=[f"t{number}"])
        elif verb == "v-register":
            bank.vault.update_by_topic(f"topic{number % 2}", "shared", text)
        elif verb == "v-compact":
            bank.vault.compact()
        elif verb == "topic":
            bank.add(text, lane="topics", title=f"Title {number}", topic="area", subtopic=f"part{number % 2}")
        elif verb == "record":
            bank.add(text, lane="records", title=f"Subject {number}", tags=["k"])
        elif verb == "layer":
            bank.layers.upsert(f"shared-project/p{number % 2}/common_patterns", text + "\n")
        elif chosen is None:
            continue
        elif verb.endswith("append"):
            bank.append(chosen.id, text)
        elif verb.endswith("update"):
            bank.update(chosen.id, text=text)
        elif verb.endswith("tags"):
            bank.update(chosen.id, tags=[*chosen.tags[number % 2 :], f"tag{branch}{count}"])
        elif verb.endswith("delete"):
            bank.delete(chosen.id)
    bank.close()


GROWING = ["note", "vault", "v-register", "topic", "record", "layer"]
CHANGING = ["n-append", "n-update", "n-tags", "v-update", "v-tags", "t-update", "t-append", "r-append", "l-append"]
REMOVING = ["v-delete", "v-compact", "t-delete"]  # git itself speaks up when a file was deleted and changed
history = st.lists(
    st.tuples(st.sampled_from(GROWING + CHANGING + REMOVING), st.integers(0, 5)), min_size=1, max_size=7
)  # fmt: skip


def files_of(folder: Path) -> dict[str, bytes]:
    """What git would hold: no trash, no index, no counters."""
    found = tree(folder / ".memories")
    found = {path: data for path, data in found.items() if not any(part.startswith(".") for part in path.split("/"))}
    return {path: b"".join(sorted(data.splitlines(True))) if path in UNION else data for path, data in found.items()}


def branch_off(base: Path, folder: Path, steps: list[tuple[str, int]], number: int) -> dict[str, bytes]:
    shutil.copytree(base, folder)
    trusted(folder / "memlane.toml")
    work(folder, steps, number)
    return files_of(folder)


def put(folder: Path, content: dict[str, bytes]) -> Bank:
    folder.mkdir(exist_ok=True)
    bank = Bank.init(folder)
    for path, data in content.items():
        (bank.root / path).parent.mkdir(parents=True, exist_ok=True)
        (bank.root / path).write_bytes(data)
    return bank


def said(content: dict[str, bytes]) -> set[str]:
    """Every line of text, and what every line of the vault says whatever its version; tags and titles aside."""
    found = set()
    for path, data in content.items():
        for row in data.decode().splitlines():
            if path == "vault.jsonl":
                found.add(json.dumps({**json.loads(row), "version": 0}))
            elif row.strip() and not path.endswith("index.md"):
                found.add(row)
    return found


def is_bookkeeping(row: str) -> bool:
    return MARK in row or row.startswith(("tags:", "content_hash:", "created_at:", "conflicts:", "<!-- Last Updated"))


def active(bank: Bank) -> Iterator[tuple[str, str]]:
    for memory in bank.memories():
        yield memory.lane, f"{memory.title} {memory.created_at}" if memory.lane == "topics" else memory.id


def check_merge(
    base: dict[str, bytes], ours: dict[str, bytes], theirs: dict[str, bytes], result: dict[str, bytes]
) -> None:
    rows = said(result)
    for side in (ours, theirs):
        lost = {row for row in said(side) - said(base) - rows if not is_bookkeeping(row)}
        assert not lost
    assert not any(row.startswith((b"<<<<<<<", b">>>>>>>")) for data in result.values() for row in data.splitlines())


def check_bank(banks: list[Bank], result: Bank) -> None:
    """Every memory is there that a branch had and the base did not, and nothing is damaged."""
    first, left, right = (set(active(bank)) for bank in banks)
    superseded = {
        ("vault", f"vault:{row['id']}")
        for row in map(
            json.loads,
            (result.root / "vault.jsonl").read_text().splitlines() if (result.root / "vault.jsonl").exists() else (),
        )
        if "superseded_by" in row
    }
    assert ((left | right) - first - superseded) <= set(active(result))
    assert all(EXPECTED.match(why.why) for why in result.problems())
    for name in ("t", "n"):
        tags = {tag for bank in banks[1:] for memory in bank.memories("notes") for tag in memory.tags}
        old = {tag for memory in banks[0].memories("notes") for tag in memory.tags}
        assert tags - old <= {tag for memory in result.memories("notes") for tag in memory.tags}, name


@given(history, history, history)
@settings(max_examples=tries(15, 150))
def test_two_branches_with_any_histories_come_together(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[tuple[str, int]],
    ours: list[tuple[str, int]],
    theirs: list[tuple[str, int]],
) -> None:
    place = tmp_path_factory.mktemp("banks")
    work(place / "base", before, 0)
    base = files_of(place / "base")
    left = branch_off(place / "base", place / "left", ours, 1000)
    right = branch_off(place / "base", place / "right", theirs, 2000)
    result = merged_tree(base, left, right)
    assert result == merged_tree(base, right, left)
    again = merged_tree(base, result, left)  # as after a squash: git does not know that it was merged before
    check_merge(base, left, right, again)
    if not any(MARK.encode() in data for data in result.values()):
        assert {**again, "topics/index.md": b""} == {**result, "topics/index.md": b""}
    check_merge(base, left, right, result)
    check_bank([Bank.open(place / name) for name in ("base", "left", "right")], put(place / "result", result))


@given(st.tuples(history, history, history, history))
@settings(max_examples=tries(8, 80))
def test_three_branches_say_the_same_in_whatever_order_they_are_merged(
    tmp_path_factory: pytest.TempPathFactory, steps: tuple[list[tuple[str, int]], ...]
) -> None:
    place = tmp_path_factory.mktemp("banks")
    work(place / "base", steps[0], 0)
    base = files_of(place / "base")
    sides = [branch_off(place / "base", place / str(n), steps[n], 1000 * n) for n in (1, 2, 3)]
    results = [
        merged_tree(base, merged_tree(base, sides[x], sides[y]), sides[z])
        for x, y, z in [(0, 1, 2), (0, 2, 1), (1, 2, 0)]
    ]
    for number, result in enumerate(results):
        for side in sides:
            check_merge(base, side, side, result)
        bank = put(place / f"result{number}", result)
        assert all(EXPECTED.match(why.why) for why in bank.problems())
    banks = [Bank.open(place / f"result{number}") for number in range(3)]
    states = [{memory.id: memory.text for memory in bank.memories("vault")} for bank in banks]
    assert states[0] == states[1] == states[2]
    assert len({frozenset(memory.id for memory in bank.memories("notes")) for bank in banks}) == 1
    assert len({frozenset(memory.title for memory in bank.memories("topics")) for bank in banks}) == 1


def test_a_memory_in_two_versions_is_a_problem_until_somebody_decides(tmp_path: Path) -> None:
    bank = put(tmp_path, {"a.md": note("", page("One.\n"), page("Two.\n")).encode()})
    assert [(problem.path.name, undecided(bank.get("notes:a"))) for problem in bank.problems()] == [
        ("a.md", bank.problems()[0].why)
    ]
    bank.update("notes:a", text="One and two.\n")
    assert bank.problems() == []


@pytest.mark.parametrize("own", ["with the calendar", "[a, b]", "{calendar: monday}"])
def test_a_key_conflicts_of_somebodys_own_is_a_key_like_any_other(own: str) -> None:
    base = f"---\nconflicts: {own}\nstatus: open\n---\n\nText.\n"
    ours, theirs = base.replace("Text.", "Text.\n\nMore."), base.replace("open", "archived")
    assert note(base, ours, theirs) == ours.replace("open", "archived")
    with pytest.raises(Unmergeable, match="of its own"):
        note(base, base.replace("open", "closed"), theirs)


@pytest.mark.parametrize("format", ["vault", "note", "record", "layer", "topic", "archive", "index"])
def test_what_only_one_side_changed_is_taken_as_it_is(format: str) -> None:
    base, changed = b"---\nbroken: [\n---\n## x\n<<<<<<< a\n", b"\xff\xfe {\r\n---\n"
    assert merge(format, base, changed, base) == merge(format, base, base, changed) == changed
    assert merge(format, base, changed, changed) == changed


@pytest.mark.parametrize("lane", ["notes", "records", "layers", "topics"])
def test_what_a_merge_left_undecided_is_named(lane: str, run: Run, tmp_path: Path) -> None:
    run("init")
    fields = {"layers": {"project": "api", "file_type": "patterns"}, "topics": {"topic": "a", "subtopic": "b"}}
    with Bank.open(tmp_path) as bank:
        text = merged("", "Deploys go out on Mondays.", "Deploys go out on Tuesdays.")
        memory = bank.add(text, lane=lane, title="Day", **fields.get(lane, {}))
        why = undecided(memory)
    for command in (
        ["doctor", "--only", "format"],
        ["doctor", "--only", "format", memory.id],
        ["doctor"],
        ["doctor", "--only", "damage"],
    ):
        found = run(*command)
        assert (why is not None and why in found.out + found.err, command) == (True, command)
