"""Laws of topics that hold for any input: parsing, splitting, storing."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import Clock
from memlane import TopicLane
from memlane.core.model import Draft
from memlane.lanes.topics.entries import (
    Entry,
    conflict,
    label_name,
    parse,
    render,
    split,
)
from memlane.lanes.topics.listing import Listed, edit_index, read_index
from samples import tries
from topic_samples import everything, main_file, write
from topic_samples import lane as lane


def unguarded(root: Path, clock: Clock) -> TopicLane:
    """A lane that takes any text."""
    lane = TopicLane(root, clock=clock)
    lane.checks = ()
    return lane


NASTY = st.sampled_from(
    [
        "---",
        "--- ",
        "\\---",
        "## 2025-01-01: x",
        "\\## 2025-01-01",
        "  ## 2025-01-01: x",
        "# Title",
        "## Plain",
        "**Problem:** x",
        "**Note**: y",
        "\\**Note:** z",
        "**Code:** ```py",
        "### Solution",
        "\\### Solution:",
        "### Steps",
        "```",
        "```py",
        "````",
        "~~~",
        "\\```",
        "\\\\~~~",
        "   ```",
        "    ```",
        "`x`",
        "- item",
        "1. one",
        "> quote",
        "<!-- subtopic: x -->",
        "",
        " ",
        "\t",
        "text",
        "  text",
        "\\",
        "\u2028",
        "\u00a0",
        "é 認証",
    ]
)
MARKERS = st.sampled_from(["<<<<<<< HEAD", "\\<<<<<<< HEAD", "=======", ">>>>>>> x", "<<<<<<<", "<<<<<<<<"])
LINES = st.lists(
    NASTY | MARKERS | st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), max_size=12), max_size=8
)
VALUES = LINES.map("\n".join)
PLAIN = VALUES.map(lambda value: value.replace("\r\n", "\n").replace("\r", "\n").strip())
TITLES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30).map(
    lambda text: " ".join(text.split())
)
NAMES = st.sampled_from(["Results", "Key Insights", "Note", "Größe"]) | st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), max_size=10
).map(lambda text: label_name(text) or "Other").filter(lambda name: name != "Code")
ENTRIES = st.builds(
    lambda day, title, content, values, extra, code: Entry(
        str(day),
        title,
        (
            *((name, value) for name, value in zip(("Context", "Problem", "Solution"), values, strict=True) if value),
            *((("Code", code),) if code.strip() else ()),
            *extra,
        ),
        content,
    ),
    st.dates(min_value=date(1000, 1, 1)),
    TITLES,
    PLAIN,
    st.tuples(PLAIN, PLAIN, PLAIN),
    st.lists(st.tuples(NAMES, PLAIN), max_size=2),
    VALUES | VALUES.map(lambda code: code.replace("\n", "\r\n")),
)


@given(entry=ENTRIES, newline=st.sampled_from(["\n", "\r\n"]))
def test_parse_undoes_render(entry: Entry, newline: str) -> None:
    """parse(render(entry)) == entry"""
    assert parse(render(entry, newline)) == entry


@given(entries=st.lists(ENTRIES, min_size=1, max_size=4))
def test_entries_do_not_run_into_each_other(entries: list[Entry]) -> None:
    """An entry says the same whatever stands above and below it."""
    document = split("# Title\n\n" + "\n".join(map(render, entries)))
    assert [parse(raw) for raw in document.raws] == entries
    assert conflict("\n".join(map(render, entries))) is None
    assert (document.head, document.tail) == ("# Title\n\n", "")


@given(lines=st.lists(NASTY | st.sampled_from(["## 2024-01-01: A", "## 2023-01-01: B", "---"]), max_size=25))
def test_the_pieces_of_any_file_add_up_to_it(lines: list[str]) -> None:
    text = "\n".join(lines)
    head, raws, tail = split(text)
    assert head + "".join(raws) + tail == text
    for raw in raws:
        assert parse(render(parse(raw))) == parse(raw)


@given(
    lines=st.lists(NASTY | st.sampled_from(["## 2024-01-01: A", "## 2023-01-01: B", "---"]), max_size=20), entry=ENTRIES
)
def test_a_store_into_any_file_keeps_every_byte(
    lines: list[str], entry: Entry, tmp_path_factory: pytest.TempPathFactory, clock: Clock
) -> None:
    lane = unguarded(tmp_path_factory.mktemp("bank"), clock)
    old = "\n".join(lines)
    write(lane, "a/b", old)
    before = split(old)
    fields = {**dict(entry.labels), "topic": "a/b"}
    lane.put(Draft(entry.content, title=entry.title or "T", fields=fields))
    assert everything(lane.root).keys() >= {raw.strip() for raw in before.raws}
    assert main_file(lane, "a/b").startswith(before.head)
    assert main_file(lane, "a/b").endswith(before.tail)


@settings(max_examples=tries(15, 150))
@given(entries=st.lists(ENTRIES, min_size=1, max_size=25))
def test_any_sequence_of_stores_keeps_every_entry_once(
    entries: list[Entry], tmp_path_factory: pytest.TempPathFactory, clock: Clock
) -> None:
    """S000-34, S000-38"""
    lane = unguarded(tmp_path_factory.mktemp("bank"), clock)
    stored = []
    for number, entry in enumerate(entries):
        fields = {name.lower(): value for name, value in entry.labels if name in ("Context", "Solution", "Code")}
        result = lane.store(f"a/s{number % 2}", title=entry.title or "T", problem="p", date=entry.date, **fields)
        stored.append(result.entry)
    assert everything(lane.root) == Counter(entry.raw.strip() for entry in stored)
    for name in ("a/s0", "a/s1"):
        assert len(lane.load(name)) <= 10


@given(names=st.lists(st.sampled_from(["a/b", "a/c", "a-b/x", "a.b/y", "z/a"]), max_size=8), title=TITLES)
def test_index_lines_are_read_as_written(names: list[str], title: str) -> None:
    text = ""
    expected = {}
    for number, name in enumerate(names):
        expected[name] = Listed(title, number, 0, "2025-01-10")
        text = edit_index(text, {name: expected[name]})
    assert read_index(text) == expected


def test_age_is_counted_from_the_clock(lane: TopicLane, clock: Clock) -> None:
    """S000-46"""
    lane.store("a/b", title="T", problem="slow")
    clock.advance(days=10)
    assert [round(entry.score, 4) for entry in lane.search("slow")] == [3.3679]
    assert lane.load("a/b")[0].date == str(clock.now.date() - timedelta(days=10))
