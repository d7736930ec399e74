"""What nobody sees is stripped from memories and shown as escapes on terminals; what writing needs is kept."""

from __future__ import annotations

import pytest

from memlane.core.invisible import escaped, neutral, separators, visible

HIDDEN = [
    "\x1b", "\x7f", "\x9b", "\u200b", "\u202e", "\u2066", "\ufe00", "\ufe0d", "\ufe0e", "\ufe0f", "\ufff9",
    "\U00013430", "\U0001bca0", "\U0001d173", "\U000e0000", "\U000e0041", "\U000e0100", "\U000e01f0", "\U000e0fff",
]  # fmt: skip


@pytest.mark.parametrize("hidden", HIDDEN)
def test_what_hides_text_is_stripped_or_shown(hidden: str) -> None:
    assert visible(f"a{hidden}{hidden}b") == "ab"
    shown = escaped(f"a{hidden}b")
    assert (hidden in shown, shown.startswith("a\\u"), shown.endswith("b")) == (False, True, True)


@pytest.mark.parametrize(
    "text", ["❤️", "❤︎", "1️⃣ #️⃣", "©️", "👁️‍🗨️", "👩‍👩‍👧", "✍🏽", "می‌خواهم", "क्‍ष", "naïve", "a\n\tb\r\n", "☠️ x"]
)
def test_emoji_and_scripts_survive(text: str) -> None:
    assert visible(text) == escaped(text) == text


def test_a_second_selector_hides_nothing() -> None:
    assert visible("❤️\ufe0f\ufe0e\ufe00") == "❤️"


def test_a_carriage_return_is_layout_at_the_end_of_a_line_alone() -> None:
    assert escaped("a\rb\r\n\x85\u2028\0\ud800") == "a\\u000db\r\n\\u0085\\u2028\\u0000\\ud800"


@pytest.mark.parametrize("separator", ["\x0b", "\x85", "\u2028", "\u2029"])
def test_a_line_separator_becomes_a_newline(separator: str) -> None:
    assert visible(f"first{separator}second") == "first\nsecond"
    assert separators(f"a{separator}b{separator}") == 2


def test_every_text_of_a_value_is_made_visible() -> None:
    assert neutral({"a\u200b": ["b\u2028c", ("d\x1b[31m", 5, None, True)]}) == {"a": ["b\nc", ["d", 5, None, True]]}


def test_an_answer_that_is_visible_stays_as_it_is() -> None:
    answer = {"text": "caf\xe9 \u2014 \U0001f44d\n\tC:\\b\\u0007", "tags": ["a"], "score": 0.5}
    assert neutral(answer) == answer
    assert neutral({"plain": ["a \u2014 b"]}) == {"plain": ["a \u2014 b"]}


@pytest.mark.parametrize("hidden", ["\x00", "\x07", "\x08", "\x1b", "\x7f", "\x9b", "\u200b", "\ufe0f", "\U000e0041"])
def test_one_hidden_character_anywhere_in_an_answer_is_found(hidden: str) -> None:
    shown = visible(f"a{hidden}b")
    assert neutral({"n": [{f"a{hidden}b": f"a{hidden}b"}]}) == {"n": [{shown: shown}]}
