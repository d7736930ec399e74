"""Slugs, first lines, keywords, and the texts in a value."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sized

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlane.core.text import first_line, keywords, remembered, remembered_whole, slug, strings_in


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
    from memlane.disk.names import is_reserved, safe_parts

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


def test_the_strings_of_a_value_are_found_at_any_depth_with_the_keys() -> None:
    value = {"a": ["b", {"c": ("d", 1, None)}], "e": True}
    assert list(strings_in(value)) == ["a", "b", "c", "d", "e"]


def test_what_is_remembered_of_long_texts_is_not_the_texts() -> None:
    """Thousands of long notes, each looked at once, do not stay in memory; the answers do."""
    asked: list[int] = []

    @remembered(10)
    def size(text: Sized, factor: int) -> int:
        asked.append(len(text))
        return len(text) * factor

    class Text(str):
        """One that can be told to be gone."""

        __slots__ = ("__weakref__",)

    long, short = Text("words " * 2_000), "few words"
    gone = weakref.ref(long)
    assert [size(long, 2), size(Text("words " * 2_000), 2), size(long, 3)] == [24_000, 24_000, 36_000]
    assert [size(short, 2), size(short, 2)] == [18, 18]
    assert asked == [12_000, 12_000, 9]
    del long
    gc.collect()
    assert gone() is None


def test_of_what_is_made_of_long_texts_only_a_little_is_kept() -> None:
    asked: list[str] = []

    @remembered_whole(2)
    def loud(text: str) -> str:
        asked.append(text[0])
        return text.upper()

    for char in "aab":
        assert loud(char * 1_500_000) == char.upper() * 1_500_000
    loud("a" * 1_500_000)
    assert asked == ["a", "b", "a"]


def test_a_first_line_keeps_bold_words_whole() -> None:
    lines = ["**Context:** ad-hoc", "- **Context:** ad-hoc", "* one", "## Two", "> three"]
    assert [first_line(line) for line in lines] == [
        "**Context:** ad-hoc", "**Context:** ad-hoc", "one", "Two", "three",
    ]  # fmt: skip
