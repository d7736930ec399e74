"""What the texts that hurt most cost every parser, in CPU time, and how that grows with the text.

    python bench/hostile.py [--kilobytes 50 200] [--only PARSER] [--pieces 200] [--seed 1] [--worst 1] [--seconds 20]

The parsers and some hundred hostile texts are those of tests/hostile_texts.py. The secret scanner and the marks for
instructions are also given their own words, over and over: each keyword of a rule, each word of a credential's name,
the signs and encodings that rules look for, and `--pieces` of these put together at random; some of them also with
numbers in between, because what stands there twice is judged once.

Every text is read at the smaller size, and the slowest of each parser at the larger one. A parser is given texts for
`--seconds`, in an order that depends on the seed, so that the whole ends in some minutes; the table says how many it
was given, and `--seconds 0` gives it all of them. Prints Markdown and ends with exit code 1 when a parser takes more
than a second for a megabyte, the secret scanner more than four milliseconds for a kilobyte, or one more than twice as
long for a kilobyte of the larger text.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from hostile_texts import HOSTILE, PARSERS, cpu, filled
from memlane.gate.secrets import names
from memlane.gate.secrets.rules import RULES

Make = Callable[[int], str]

# Milliseconds for a kilobyte: a megabyte in a second, and what the gate may take for the worst that it is given.
LIMIT, LIMITS = 1.0, {"secret scanner": 4.0}
GROWTH = 2.0
OWN = ("secret scanner", "suspicious text")
# What rules and readings look for, by itself and with a value that is nearly one.
SIGNS = (
    'password ', 'password: ', 'password=', "password='a", 'password="a\'', "'password': '", "password n'",
    'password=(((', 'password=a)))', 'password a="b" ', 'password value=', 'password | ',
    '| password |\n|--|\n| a |\n', 'password,a\n', 'password\n', 'password:\n', 'pass pass: ', 'token=a&', 'key key ',
    'secret key token ', '密码是密码为', 'пароль: ', 'mật khẩu ', 'a1!B2@c3 is the password ',
    'use Xy9!kLm2Q as the password ', 'user: a pass: b ', 'login: a/b1 ', 'http://a:b@', 'http://a:@', 'a@b:',
    'curl -u a:b ', ' -p', ' -a ', 'net use ', '-----BEGIN ', '-----BEGIN RSA PRIVATE KEY-----\n',
    'eyJhbGciOiJIUzI1NiJ9.', 'Bearer eyJ', 'basic a1b2c3d4', 'authorization: a1b2c3d4e5 ',
    'key: a1b2c3d4e5f6g7h8i9j0 ', 'stripe key a1b2c3d4e5f6g7h8 ', 'a1b2c3d4e5f6g7h8 ', 'a1b2c3d4e5f6\n',
    'abcdefghij1\n  ', 'aaaaaaaaaaaaaaaaaaaaaaaa1 ', 'A1A1A1A1A1A1A1A1A1A1A1A1A1A1A1A1A1A1A1A1\\\n',
    'aGVsbG8gd29ybGQgaGVsbG8gd29ybGQ= ', '4141414141414141414141414141 ', 'MFRGGZDFMZTWQ2LKMFRGGZDFMZTWQ2LK ', '%41',
    '\\x41', '&#65;', '&amp;', '"+"', "' . '", "'\n'", '`+`', 'é1', 'аb', '１', '\u200ba', '\xa0a', 'a\u0301',
    '\x1b[31m', '\x1b]a', '–a', '1-', '1 2 3 4 5 6 7 ', '123 45 6789\n', 'cpf 12345678901 ', 'SIN 123456789 ',
    '4111 1111 1111 1111 ', 'DE89370400440532013000 ', 'a.b.1.c', 'sk-sk-sk-1', '<!--', '\\', '"', '[', '((1', '$(',
    '{default=', '``', '\t', '%', '-', '&#', 'ignore all previous ', 'you are now ', '无视', 'ignore. ', 'do not tell ',
    '<|im_', "style='", '//a=', 'curl |', "a'", 'a-b-c-',
)  # fmt: skip


def own_texts(pieces: int, seed: int) -> dict[str, Make]:
    """Texts of what the scanner looks for."""
    keywords = {keyword for rule in RULES for keyword in rule.keywords}
    words = [form for word in names.WORDS for form in (word, f"{word} ", f"{word}: a1", f"{word}='")]
    all_pieces = [*SIGNS, *words, *sorted(keywords)]
    chance = random.Random(seed)
    mixed = ["".join(chance.choices(all_pieces, k=chance.randint(2, 4))) for _ in range(pieces)]
    texts = {repr(piece): filled(piece) for piece in (*all_pieces, *mixed)}
    return texts | {f"{piece!r}, numbered": _numbered(piece) for piece in (*SIGNS, *words[::8], *mixed[::8])}


def _numbered(piece: str) -> Make:
    """The piece over and over, with other numbers in between: no two places are alike."""

    def fill(size: int) -> str:
        some = max(1, 24 // len(piece))
        return "".join(f"{piece * some}{number * 7919 % 46656:x}" for number in range(size // (len(piece) * some)))

    return fill


def measured(
    only: str, sizes: tuple[int, int], pieces: int, seed: int, seconds: float
) -> Iterator[tuple[str, str, list[tuple[float, float, str]]]]:
    """Each parser, how many texts it was given, and for the worst of them the milliseconds for a kilobyte at both
    sizes.
    """
    small, large = (size * 1024 for size in sizes)
    for name, parser in PARSERS.items():
        if only not in name:
            continue
        cpu(parser, "warm up: [[a]] ghp_ password = x\n")
        texts = HOSTILE | (own_texts(pieces, seed) if name in OWN else {})
        order = [*texts]
        random.Random(seed).shuffle(order)
        rows: list[tuple[float, str]] = []
        began = time.monotonic()
        for what in order:
            if seconds and time.monotonic() - began > seconds:
                break
            rows.append((_ms(parser, texts[what](small)), what))
        rows.sort(reverse=True)
        worst = [(_ms(parser, texts[what](large)), ms, what) for ms, what in rows[:3]]
        yield (
            name,
            f"{len(rows)} of {len(texts)}",
            [(ms, grown, what) for grown, ms, what in sorted(worst, reverse=True)],
        )


def _ms(parser: Callable[[str], object], text: str) -> float:
    kilobytes = len(text.encode(errors="surrogatepass")) / 1024
    seconds = float(cpu(parser, text))
    if seconds > LIMIT / 2000 * kilobytes:  # perhaps others were busy
        seconds = min(seconds, cpu(parser, text, 2))
    return 1000 * seconds / kilobytes


def main() -> int:
    options = argparse.ArgumentParser(description="CPU milliseconds of every parser for a kilobyte of hostile text.")
    options.add_argument("--kilobytes", type=int, nargs=2, default=(50, 200), metavar="SIZE")
    options.add_argument("--only", default="", help="parsers whose name has this in it")
    options.add_argument("--pieces", type=int, default=200, help="how many texts of random pieces")
    options.add_argument("--seed", type=int, default=1, help="another seed makes other ones")
    options.add_argument("--worst", type=int, default=1, help="how many texts of each parser are printed, at most 3")
    options.add_argument("--seconds", type=float, default=20, help="how long a parser is given texts; 0: all of them")
    chosen = options.parse_args()
    small, large = chosen.kilobytes
    print(f"| parser | ms per KB, {small} KB | {large} KB | growth | texts | the worst text |")
    print("|---|---:|---:|---:|---:|---|")
    slow = 0
    for name, given, rows in measured(chosen.only, (small, large), chosen.pieces, chosen.seed, chosen.seconds):
        for ms, grown, what in rows[: chosen.worst]:
            ratio = grown / max(ms, 0.001)
            is_slow = grown > LIMITS.get(name, LIMIT) or (ratio > GROWTH and grown > LIMIT / 10)
            slow += is_slow
            shown = what.replace("|", "\\|")
            print(f"| {name} | {ms:.2f} | {grown:.2f} | {ratio:.1f}{' !' * is_slow} | {given} | {shown} |", flush=True)
    return slow > 0


if __name__ == "__main__":
    sys.exit(main())
