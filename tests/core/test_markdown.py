"""Fenced code and headings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlane.core.markdown import first_heading, heads, lines_with_code


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


def test_what_stays_needs_its_headings_and_the_heads_of_its_tables() -> None:
    text = (
        "# A\n## B\ngone\n## C\n### D\nkept\n### E\n# F\n| x |\n|---|\n| gone |\n\n| y |\n|:-:|\n| kept |\n```sh\n```"
    )
    assert [*heads(text, lambda line: "kept" in line)] == ["```", "```sh", "| y |", "# F", "### D", "## C", "# A"]
