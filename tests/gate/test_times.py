"""When something was written is no key: what says so is left out before the rules for keys are asked, and none of them
takes it for one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from memlane.gate.secrets import disguises, scanner, vendors

NAMES = ("", "token: ", "API key = ", "github token ", "aws secret key: ", "password is ", "created_at: ")


def times() -> Iterator[str]:
    dice = random.Random(7)
    for _ in range(3000):
        day = f"{dice.randrange(10_000):04}-{dice.randrange(100):02}-{dice.randrange(100):02}"
        clock = ":".join(f"{dice.randrange(100):02}" for _ in range(dice.randint(2, 3)))
        part = f".{dice.randrange(10 ** (digits := dice.randint(1, 6))):0{digits}}" if clock.count(":") == 2 else ""
        zone = dice.choice(["", "Z", "+02:00", "-0930"])
        first, last = dice.choice([("", ""), ('"', '"'), ("'", "',"), ("(", ")."), ("", ";")])
        yield f"{first}{day}T{clock}{part * dice.randint(0, 1)}{zone}{last}"


def test_no_rule_for_keys_finds_one_in_a_time() -> None:
    for word in times():
        assert scanner._TIME.fullmatch(word), word
        assert list(scanner._in_words([(0, word)])) == [], word
        for name in NAMES:
            text = f"{name}{word}\n"
            assert list(vendors.find(text, [(len(name), word)])) == [], text
            assert list(disguises._decoded_words(text, [(len(name), word)])) == [], text


def test_what_stands_beside_a_time_is_found() -> None:
    key = "gh" + "p_" + "R4nd0mCanaryV4lueTh4tIsN0tReal123456"
    for between in (" ", "-", "\n", '"\n---\n\n'):
        text = f"created_at: 2024-01-02T03:04:05Z{between}{key}"
        assert [text[found.start : found.end] for found in scanner.scan(text)] == [key], text
