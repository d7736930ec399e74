"""Lines of every rule's own pattern, cut, damaged and encoded: none may raise, and none may take long."""

from __future__ import annotations

import argparse
import random
import re
import string
import time
from base64 import b32encode, b64encode
from collections import Counter
from typing import Any

from disguises import BASE62, SEEN, UNSEEN
from memlane.gate.secrets import RULES, redact, scan

LIMIT = 5  # milliseconds of CPU time for a KB, and for a line that is shorter


def made(pattern: Any, rng: random.Random) -> str:
    """A text that a parsed pattern may match; what stands around it is left out."""
    text = ""
    for kind, value in pattern:
        name = str(kind)
        if name == "LITERAL":
            text += chr(value)
        elif name == "IN":
            text += rng.choice(_members(value))
        elif name in ("ANY", "NOT_LITERAL"):
            text += rng.choice(BASE62 + " =:/")
        elif name == "CATEGORY":
            text += rng.choice(_members([(kind, value)]))
        elif name.endswith("_REPEAT"):
            least, most, inner = value
            for _ in range(rng.randint(least, max(least, min(most, least + 8)))):
                text += made(inner, rng)
        elif name in ("SUBPATTERN", "ATOMIC_GROUP"):
            text += made(value[-1] if name == "SUBPATTERN" else value, rng)
        elif name == "BRANCH":
            text += made(rng.choice(value[1]), rng)
    return text


def _members(items: Any) -> str:
    chars = ""
    for kind, value in items:
        name = str(kind)
        if name == "LITERAL":
            chars += chr(value)
        elif name == "RANGE":
            chars += "".join(map(chr, range(value[0], min(value[1], 0x2FFF) + 1)))
        elif name == "CATEGORY":
            chars += {"CATEGORY_DIGIT": string.digits, "CATEGORY_SPACE": " \n"}.get(str(value), BASE62 + "_")
    if items and str(items[0][0]) == "NEGATE":
        chars = "".join(char for char in string.printable[:95] if char not in chars)
    return chars or "x"


PIECES = (
    "password=", "token: ", "Bearer ", "-----BEGIN RSA PRIVATE KEY-----\n", "-----END", "eyJhbGciOiJIUzI1NiJ9.",
    "LS0tLS1CRUdJTi", "://u:p@h/", "%", "%4", "\\u00", "&#", "&#x", '" + "', "\\\n", "\n", "\n    ", "\u200b", "\ufe0f",
    "а", "１", "\xa0", "\x1b[", "\ud800", "\0", "=", "==", '"', "'", "`", "|", "| password |\n|--|\n|", "cpf 1",
    "SIN 1", "IBAN DE", "4111 1111 ", "é", "İ", "ß",
)  # fmt: skip


def fuzzed(rng: random.Random, pattern: Any) -> str:
    """A line of one rule's making, cut, damaged, encoded, with others' pieces around it."""
    text = made(pattern, rng)
    for _ in range(rng.randrange(4)):
        at, to = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
        match rng.randrange(7):
            case 0:
                text = text[:at]
            case 1:
                text = text[at:]
            case 2:
                text = text[:at] + text[to:]
            case 3:
                text = text[:at] + rng.choice(PIECES) + text[at:]
            case 4:
                text = text[:at] + "".join(rng.choices(string.printable + "éа１\u200b", k=rng.randrange(9))) + text[at:]
            case 5:
                code = rng.choice((b64encode, b32encode))(text.encode(errors="replace")).decode()
                text = code[: rng.randrange(len(code) + 1)]
            case 6:
                text = rng.choice((*SEEN.values(), *UNSEEN.values()))(text[:200].encode(errors="replace").decode())
    return rng.choice((*PIECES, "", "")) + text + rng.choice((*PIECES, "", ""))


def run(parser: argparse.ArgumentParser, argv: list[str]) -> int:
    """Print what raised and how slow the slowest was; 1 when a line raised or was too slow."""
    from re import _parser  # type: ignore[attr-defined]

    parser.add_argument("--lines", type=int, default=100_000, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="another seed makes other lines")
    args = parser.parse_args(argv)
    lines = args.lines
    rng = random.Random(args.seed)
    rules = [
        (rule, _parser.parse(rule.regex), re.compile(rule.regex, re.IGNORECASE if rule.ignore_case else 0))
        for rule in RULES
    ]
    raised: Counter[str] = Counter()
    slow: list[tuple[float, str]] = []
    found = 0
    for number in range(lines):
        rule, parsed, compiled = rules[number % len(rules)]
        line = fuzzed(rng, parsed)
        try:
            began = time.process_time()
            findings = scan(line, email=True, phone=True)
            spent = 1000 * (time.process_time() - began)
            found += bool(findings)
            raised.update(f.rule for f in findings if f.rule == "unjudged")
            redact(line, findings)
            for match in compiled.finditer(line):
                for proof in filter(None, (rule.check, rule.proof)):
                    proof(match[rule.group])  # scan would count it as a finding
        except Exception as error:
            raised[f"{rule.id}: {type(error).__name__}"] += 1
        else:
            if spent > LIMIT * max(1, len(line) / 1024):
                slow.append((spent, rule.id))
    worst = max(slow, default=(0.0, ""))
    print(
        f"{lines:,} lines of {len(rules)} rules: {found:,} with findings, {raised.total():,} raised, {len(slow):,} slow"
    )
    for what, count in raised.most_common():
        print(f"- raised {count:,} times in {what}")
    if slow:
        print(f"- the slowest took {worst[0]:.1f} ms ({worst[1]})")
    return 1 if raised or len(slow) > lines // 1000 else 0  # a busy machine makes a few lines slow
