"""The keywords that wake rules are found together, as each of them would be found alone."""

from __future__ import annotations

import random

from memlane.gate.secrets import keywords, names
from memlane.gate.secrets.rules import RULES

WIDE = {*keywords.rules_of(True), *names.WORDS}


def test_every_keyword_is_found_wherever_it_stands() -> None:
    assert {word for word in WIDE if word not in keywords.held(f"x{word}x")} == set()
    assert {word for word in WIDE if word not in keywords.held(word)} == set()


def test_keywords_in_one_another_and_over_one_another_are_all_found() -> None:
    rng = random.Random(1)
    pieces = [*sorted(WIDE), "a", " ", "pass", "word", "\n", "é"]
    for _ in range(2000):
        text = "".join(piece[rng.randrange(3) :] for piece in rng.choices(pieces, k=6))
        assert keywords.held(text) == {word for word in WIDE if word in text}


def test_long_words_wake_the_rules_whose_keywords_they_hold() -> None:
    rng = random.Random(2)
    narrow = keywords.rules_of(False)
    for _ in range(500):
        text = "".join(rng.choices(sorted(narrow), k=3))
        assert keywords.woken_by(text) == {n for word, numbers in narrow.items() if word in text for n in numbers}
    assert {RULES[number].wide for numbers in narrow.values() for number in numbers} == {False}
