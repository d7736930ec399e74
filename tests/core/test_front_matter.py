"""Front matter is found, read safely, and edited key by key."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlane.core import front_matter
from memlane.core.front_matter import (
    FrontMatterError,
    edit_front,
    find_front,
    load_front,
    plain,
    quoted,
    render_front,
    with_body,
)
from memlane.lanes.records.record import Record, render

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True).filter(lambda key: key not in ("true", "false", "null"))


@given(st.dictionaries(KEYS, JSON, max_size=6))
def test_rendered_front_matter_is_read_back(values: dict[str, Any]) -> None:
    """parse(render(x)) == x"""
    text = render_front(values) + "body"
    front = find_front(text)
    assert front is not None
    assert (load_front(text[front.start : front.end]), text[front.body :]) == (values, "body")


@given(st.text())
def test_scalars_are_read_back(value: str) -> None:
    source = f"a: {plain(value)}\nb: {quoted(value)}\nc:\n  - {plain(value)}\n"
    assert load_front(source) == {"a": value, "b": value, "c": [value]}


@pytest.mark.parametrize(
    ("text", "yaml", "body"),
    [
        ("---\na: 1\n---\n\nbody", "a: 1\n", "body"),
        ("---\na: 1\n---\nbody", "a: 1\n", "body"),
        ("---\n---\n\nbody", "", "body"),
        ("\ufeff---\r\na: 1\r\n---\r\n\r\nbody\r\n", "a: 1\r\n", "body\r\n"),
        ("--- \na: 1\n--- \nbody", "a: 1\n", "body"),
        ("---\na: 1\n...\nbody", "a: 1\n", "body"),
        ("---\na: 1\n---", "a: 1\n", ""),
        ("---\na: 1\n---\n\n\nbody", "a: 1\n", "\nbody"),
    ],
)
def test_front_matter_is_found(text: str, yaml: str, body: str) -> None:
    front = find_front(text)
    assert front is not None
    assert (text[front.start : front.end], text[front.body :]) == (yaml, body)


@pytest.mark.parametrize(
    "text", ["", "text", "---", "---\nnever closed", " ---\na: 1\n---\n", "----\na: 1\n----\n", "\n---\n---\n"]
)
def test_other_texts_have_no_front_matter(text: str) -> None:
    assert find_front(text) is None


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("2025-01-10", "2025-01-10"),
        ("2025-01-10T10:00:00Z", "2025-01-10T10:00:00Z"),
        ("no", "no"),
        ("on", "on"),
        ("12:30:00", "12:30:00"),
        ("0o17", "0o17"),
        ("1_000", "1_000"),
        ("<<", "<<"),
        (".inf", ".inf"),
        ("1e999", "1e999"),
        ("true", True),
        ("~", None),
        ("", None),
        ("42", 42),
        ("007", 7),
        ("1.5", 1.5),
        ("1642564062835", 1642564062835),
    ],
)
def test_only_the_core_types_are_guessed(source: str, value: Any) -> None:
    """Dates stay what the user wrote, and `no` is a word."""
    assert load_front(f"key: {source}\n") == {"key": value}


@pytest.mark.parametrize(
    "source",
    [
        "a: [",
        "a: 1\na: 2",
        "- a list",
        "just text",
        "a: !!python/object/apply:os.system [id]",
        "a: !!binary aGk=",
        "a: !custom x",
        "? [a]\n: b",
        "a: *nowhere",
        "a: &x [*x]",
        "a: " + "[" * 2000 + "]" * 2000,
        "a: " + "[" * 30000,
        "- " * 30000,
        "a: !!bool maybe",
        "a: !!int [1]",
        "a: !!float {}",
        "a: " + "x" * 70_000,
        "a: \x07",
        "l1: &a [x,x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"l{n}: &{chr(96 + n)} [{','.join([f'*{chr(95 + n)}'] * 10)}]\n" for n in range(2, 9)),
    ],
)
def test_dangerous_and_broken_yaml_is_an_error(source: str) -> None:
    """Bombs, tags, duplicate keys, cycles, deep nesting: reported, never run, never a crash."""
    with pytest.raises(FrontMatterError):
        load_front(source)


def test_an_error_names_its_line_in_the_file() -> None:
    with pytest.raises(FrontMatterError) as caught:
        load_front("a: 1\nb: [\n")
    assert caught.value.line == 4


@given(st.dictionaries(KEYS, JSON, min_size=1, max_size=5), KEYS, JSON.filter(lambda value: value is not None))
def test_editing_one_key_changes_no_other(values: dict[str, Any], key: str, value: Any) -> None:
    text = render_front(values) + "body"
    edited = edit_front(text, {key: value})
    front = find_front(edited)
    assert front is not None
    assert load_front(edited[front.start : front.end]) == {**values, key: value}
    assert edited.endswith("---\n\nbody")


def test_editing_keeps_comments_order_and_quoting() -> None:
    before = "---\n# top\nz: 'one'   # why\n\n# about a\na:\n- x\n- y\n# about b\nb: |\n  text\n  more\n---\nbody"
    after = "---\n# top\nz: 'one'   # why\n\n# about a\na: \"new\"\n# about b\nb: |\n  text\n  more\n---\nbody"
    assert edit_front(before, {"a": "new"}) == after


def test_a_removed_key_leaves_the_rest() -> None:
    assert edit_front("---\na: 1\nb: 2\n---\nbody", {"a": None}) == "---\nb: 2\n---\nbody"


def test_a_text_without_front_matter_gets_one_in_its_own_line_ends() -> None:
    assert edit_front("one\r\ntwo\r\n", {"a": 1}) == "---\r\na: 1\r\n---\r\n\r\none\r\ntwo\r\n"


def test_no_change_is_no_change() -> None:
    assert edit_front("text", {}) == "text"


def test_flow_style_front_matter_is_left_alone() -> None:
    """Editing it line by line would damage it."""
    with pytest.raises(FrontMatterError, match="by hand"):
        edit_front("---\n{a: 1, b: 2}\n---\nbody", {"a": 3})


@given(st.text(alphabet="ab-:. \n\r"), st.text(alphabet="ab-:. \n\r"), st.sampled_from(["", "\ufeff"]))
def test_a_new_body_is_the_body(text: str, body: str, bom: str) -> None:
    """Even one that looks like front matter; and what was front matter stays it."""
    before = find_front(bom + text)
    after_text = with_body(bom + text, body)
    after = find_front(after_text)
    assert (after_text[after.body :] if after else after_text.removeprefix("\ufeff")) == body
    if before and after:
        assert (bom + text)[before.start : before.end] == after_text[after.start : after.end]


@given(st.dictionaries(st.text(min_size=1), st.text(), max_size=4))
def test_any_key_is_read_back(values: dict[str, str]) -> None:
    text = render_front(values)
    front = find_front(text)
    assert front is not None
    assert load_front(text[front.start : front.end]) == values


LINES = st.lists(
    st.tuples(
        st.sampled_from(["a", "b_c", "d-e", "true", "Null", "no", "_x", "E1"]),
        st.sampled_from(
            ["word", "TRUE", "true", "null", "~", "0", "007", "12", "1e5", "2024-01-02", "a b", "[]", "[x]"]
        )
        | st.text("ab:#-,[]{}&*!\"'é漢😀\t\\ ", max_size=6).map('"{}"'.format)
        | st.lists(st.text('ab:#-, ]"é', max_size=4).map('"{}"'.format), max_size=3).map(
            lambda texts: f"[{', '.join(texts)}]"
        ),
    ),
    max_size=4,
)


@given(LINES)
def test_what_is_read_without_yaml_is_what_yaml_reads(lines: list[tuple[str, str]]) -> None:
    source = "".join(f"{key}: {value}\n" for key, value in lines)
    try:
        found: Any = load_front(source)
    except FrontMatterError as error:
        found = str(error)
    try:
        by_yaml: Any = load_front(f"# a comment, which only YAML reads\n{source}")
    except FrontMatterError as error:
        by_yaml = str(error)
    assert repr(found) == repr(by_yaml)


LINES = (
    "id: 7d0c1eca-3160", "subject: Answer 6.", "keywords:", "  - answer", "  - two words", "  - 12", "  - true",
    "  - 1e5",
    '  - "in quotes"', "  - ", "# thread: s", "#x", "when: a:b", "what: a: b", "at: 2025-01-10T17:09:16Z", "x: 0x1f",
    "x: 1_000", "y: x #y", "y:", "y: no", "y: 3.", "null: 3", "i: null x", "n: ~", "  - a:b", "  - a: b", "z: x ",
    "k : x",
    'q: "a" b', "- a", "  x", "true:", "  - -a", "m: 00", "m: 1.2.3", "m: +1", "  - 2025-01-10", "  - 1:2", "x: 1 2",
)  # fmt: skip


def test_what_is_read_without_yaml_means_what_yaml_says(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(1)
    quick: dict[str, dict[str, Any]] = {}
    for _ in range(10_000):
        source = "\n".join(dice.choices(LINES, k=dice.randint(1, 4)))
        if (found := front_matter._simple(source)) is not None:
            quick[source] = found
    monkeypatch.setattr(front_matter, "_simple", lambda _: None)
    assert len(quick) > 50
    assert {source: repr(load_front(source)) for source in quick} == {
        source: repr(found) for source, found in quick.items()
    }


def test_a_record_as_memlane_writes_it_is_read_without_yaml() -> None:
    record = Record("7d0c", "It's 5: done", ("deploy", "12"), "global", "2025-01-10T17:09:16Z", "16578b", "x", "", "s")
    text = render(record)
    front = find_front(text)
    assert front is not None
    assert front_matter._simple(text[front.start : front.end]) == {
        "id": "7d0c",
        "subject": "It's 5: done",
        "keywords": ["deploy", "12"],
        "applies_to": "global",
        "occurred_at": "2025-01-10T17:09:16Z",
        "content_hash": "16578b",
    }


def test_a_list_below_its_key_is_replaced_whole_and_another_key_beside_it_alone() -> None:
    """As captured records have them: this is read without YAML, and so are its lines."""
    text = "---\nid: a\nkeywords:\n  - one\n  - two\n# by hand\nstatus: open\n---\nbody\n"
    assert edit_front(text, {"status": "done"}) == text.replace("status: open", 'status: "done"')
    assert edit_front(text, {"keywords": None}) == "---\nid: a\n# by hand\nstatus: open\n---\nbody\n"
