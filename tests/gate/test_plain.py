"""What is plain at a glance never wakes the scanner, and nothing that it would find is plain."""

from __future__ import annotations

import random
import subprocess
import sys
import uuid

import pytest

from memlane.gate.plain import WAKING, is_plain
from memlane.gate.secrets import keywords, scan

PLAIN = [
    "why did the cache retry time out?",
    "Don't touch the parser; it's slow, isn't it?\n\nRun the tests in tests/recall first.",
    "memlane 0.1.0",
    "Answer 12.\n\nIt says what was done about number 12, on 3 of 10 machines.",
    'The flag is called "fast" now.',
    "2025-01-10T00:16:40Z",
    "5f0c7a52-6c1e-4f0e-9a39-0e8a8d1d7f1c",
]
JOINED = ["'pass' + 'word'", '"pa" . "ss"', "`tok`\n`en`", "'se' 'cret'"]
NOT_PLAIN = [
    "the token of the day",
    "ask me@host",
    "call 555 0100 now",
    "a|b",
    "p%61ss",
    "&#112;",
    "\\x70",
    "Überfall",
    "zero\u200bwidth",
    "x" * 3000,
    "AKIA" + "ABCDEFGHIJKLMNOP",
    "n2345678901",
    "12345678-1234-4123-8123-123456789012",
    "id 5f0c7a52-6c1e-4f0e-9a39-0e8a8d1d7f1c",
    *JOINED,
]


@pytest.mark.parametrize("text", PLAIN)
def test_prose_is_plain(text: str) -> None:
    assert is_plain(text)
    assert scan(text) == []


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_what_may_wake_a_rule_is_not(text: str) -> None:
    assert not is_plain(text)


def test_every_keyword_wakes_the_scanner() -> None:
    """A new rule for whole texts needs its keyword in `WAKING`, unless that has a part of it."""
    asleep = [keyword for keyword in keywords.anywhere() if keyword.isascii() and is_plain(f"a {keyword} a")]
    assert asleep == []
    assert {*WAKING} <= {*keywords.anywhere()}


def test_nothing_plain_holds_what_the_scanner_finds() -> None:
    dice = random.Random(1)
    between = ["kT7" + "pQ9zLm4x", "is", " ", " = ", ": ", "\n", '"', "'", "+", "4111", "-"]
    pieces = [*keywords.anywhere(), *keywords.rules_of(False), *between]
    texts = ["".join(dice.choices(pieces, k=dice.randint(1, 8))) for _ in range(5_000)]
    found = [text for text in texts if scan(text)]
    assert len(found) > 50
    assert [text for text in found if is_plain(text)] == []


def test_a_name_that_a_program_made_is_plain_only_where_the_scanner_finds_nothing_in_it() -> None:
    dice = random.Random(1)
    names = [str(uuid.UUID(int=dice.getrandbits(128), version=4)) for _ in range(2_000)]
    plain = list(filter(is_plain, names))
    assert len(plain) > 1_000
    assert [name for name in plain if scan(name)] == []


def test_a_plain_text_loads_no_rule() -> None:
    code = (
        "import sys; from memlane.gate import DEFAULT, admit, common, findings, redacted\n"
        "from memlane.core.model import Draft; from memlane.gate.outgoing import cleaned\n"
        f"text = {PLAIN[0]!r}\nassert redacted(text) == text == cleaned(text, DEFAULT)\n"
        "assert findings(text, DEFAULT) == []\n"
        f"draft = Draft(text, thread={PLAIN[-1]!r}, fields={{'occurred_at': {PLAIN[-2]!r}}})\n"
        "assert admit(common(), draft, None) == draft\n"
        "print('memlane.gate.secrets' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
