"""Front matter, code, headings, dates, slugs and keywords."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlane.core.text import (
    FrontMatterError,
    edit_front,
    find_front,
    first_heading,
    first_line,
    keywords,
    lines_with_code,
    load_front,
    moment,
    plain,
    quoted,
    render_front,
    slug,
    with_body,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True).filter(lambda key: key not in ("true", "false", "null"))


# -- front matter


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


# -- code and headings


def test_fenced_code_is_told_apart() -> None:
    text = "a\n```py\n## b\n~~~\n```\nc\n~~~~\n```\n~~~\n~~~~\nd\n"
    assert "".join(line for line, code in lines_with_code(text) if not code) == "a\nc\nd\n"


@given(st.text(alphabet="ab`~ \n#-\r\f\u2028"))
def test_lines_add_up_to_the_text(text: str) -> None:
    assert "".join(line for line, _ in lines_with_code(text)) == text


def test_an_unclosed_fence_runs_to_the_end() -> None:
    assert [code for _, code in lines_with_code("```\na\nb")] == [True, True, True]


def test_inline_backticks_open_no_fence() -> None:
    assert [code for _, code in lines_with_code("```not a fence``` here\nb")] == [False, False]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# One\n# Two", "One"),
        ("text\n\n# Late #\n", "Late"),
        ("```\n# code\n```\n# Real", "Real"),
        ("~~~\n# code\n~~~", None),
        ("## Second level", None),
        ("#hashtag", None),
        ("", None),
    ],
)
def test_the_first_heading_outside_code_is_the_title(text: str, title: str | None) -> None:
    assert first_heading(text) == title


# -- dates


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2025-01-10T10:00:00Z", datetime(2025, 1, 10, 10, tzinfo=UTC)),
        ("2025-01-10T12:00:00+02:00", datetime(2025, 1, 10, 10, tzinfo=UTC)),
        ("2025-01-10T10:00:00", datetime(2025, 1, 10, 10, tzinfo=UTC)),
        ("2025-01-10 10:00", datetime(2025, 1, 10, 10, tzinfo=UTC)),
        ("2025-01-10", datetime(2025, 1, 10, tzinfo=UTC)),
        (date(2025, 1, 10), datetime(2025, 1, 10, tzinfo=UTC)),
        (20200131, datetime(2020, 1, 31, tzinfo=UTC)),
        (1642564062, datetime(2022, 1, 19, 3, 47, 42, tzinfo=UTC)),
        (1642564062835, datetime(2022, 1, 19, 3, 47, 42, 835000, tzinfo=UTC)),
    ],
)
def test_dates_of_all_kinds_are_understood(value: Any, expected: datetime) -> None:
    assert moment(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        "yesterday",
        "2025-13-01",
        "",
        None,
        True,
        [],
        10**30,
        -5,
        float("nan"),
        "0000-00-00",
        "9999-12-31T23:59:59-23:00",
    ],
)
def test_what_is_no_date_is_none(value: Any) -> None:
    assert moment(value) is None


@given(st.datetimes(min_value=datetime(1970, 1, 2)))
def test_iso_is_read_back(when: datetime) -> None:
    from memlane.core.model import iso

    aware = when.replace(tzinfo=UTC)
    assert moment(iso(aware)) == aware


# -- words


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Deploy day!", "deploy-day"),
        ("It's a plan", "its-a-plan"),
        ("日本語のメモ", "日本語のメモ"),
        ("snake_case name", "snake-case-name"),
        ("v2.3.1 release", "v2-3-1-release"),
        ("🎉🎉", ""),
        ("x" * 100, "x" * 60),
        ("word " * 30, "-".join(["word"] * 12)),
    ],
)
def test_titles_become_file_names(title: str, name: str) -> None:
    assert slug(title) == name


@given(st.text())
def test_every_slug_is_a_safe_name(title: str) -> None:
    from memlane.disk.files import is_reserved, safe_parts

    name = slug(title)
    if name and not is_reserved(name):  # the notes lane puts a word before those
        assert safe_parts(f"{name}.md") == (f"{name}.md",)


def test_the_first_line_skips_marks_and_blanks() -> None:
    assert first_line("\n\n## Goals\n- x") == "Goals"
    assert first_line("x" * 300) == "x" * 197 + "..."


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The cache warms the cache before the tests", ["cache", "warms", "tests"]),
        ("数据库 连接 数据库", ["数据库", "连接"]),
        ("a an the", ["a"]),
        ("42 43", ["42"]),
    ],
)
def test_keywords_are_the_words_said_most(text: str, words: list[str]) -> None:
    assert keywords(text) == words
