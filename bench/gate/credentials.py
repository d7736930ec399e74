"""Generated values in the contexts of bench/credentials.tsv: how many are found, and how many are gone after redaction,
so that no four characters in a row are left. And its names: whether each makes a credential of the values after it.

What the scanner was not written with is unseen.
"""

from __future__ import annotations

import argparse
import random
import string
from collections.abc import Callable, Iterator
from pathlib import Path

from memlane.gate.secrets import redact, scan

CREDENTIALS = Path(__file__).parents[1] / "credentials.tsv"
# The share of a kind of value that must be found is another for each: people choose words, generators signs.
_LETTERS = string.ascii_letters + string.digits
_PHRASE = "orange window planet silver garden forest rocket butter castle dragon engine marble pepper violin".split()
VALUES: dict[str, Callable[[random.Random], str]] = {
    "16 of all signs": lambda r: "".join(r.choices(_LETTERS + string.punctuation, k=16)),
    "16 with !@#$%^&*-_": lambda r: "".join(r.choices(_LETTERS + "!@#$%^&*-_", k=16)),
    "20 letters and digits": lambda r: "".join(r.choices(_LETTERS, k=20)),
    "sk_ and 32 hex": lambda r: "sk_" + "".join(r.choices("0123456789abcdef", k=32)),
    "a word, digits, a sign": lambda r: f"{r.choice(_PHRASE).title()}{r.randint(10, 9999)}{r.choice('!#$?')}",
    "four words": lambda r: "-".join(r.choices(_PHRASE, k=4)),
}


def credentials(kind: str) -> Iterator[tuple[str, bool]]:
    """The texts of one kind in bench/credentials.tsv, and whether each is unseen."""
    unseen = False
    for line in CREDENTIALS.read_text().splitlines():
        if line.startswith("#"):
            unseen = line == "# unseen"
        elif line.startswith(f"{kind}\t"):
            yield line.partition("\t")[2], unseen


def is_gone(value: str, text: str) -> bool:
    """Whether no four characters of a value are left in a text."""
    return not any(value[at : at + 4] in text for at in range(len(value) - 3))


def passwords(parser: argparse.ArgumentParser, argv: list[str]) -> int:
    parser.add_argument("--times", type=int, default=100, help="values of each kind in each context")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    times = args.times
    chance = random.Random(args.seed)
    print("| context | " + " | ".join(VALUES) + " |\n|---|" + "---:|" * len(VALUES))
    sums: dict[bool, list[list[int]]] = {False: [], True: []}
    for context, unseen in credentials("context"):
        row = []
        for make in VALUES.values():
            found = whole = 0
            for _ in range(times):
                value = make(chance)
                text = context.replace("\\n", "\n").replace("{}", value)
                findings = scan(text)
                found += bool(findings)
                whole += bool(findings) and is_gone(value, redact(text, findings))
            row.append((100 * found // times, 100 * whole // times))
        sums[unseen].append([whole for _, whole in row])
        mark = " (unseen)" if unseen else ""
        shown = context.replace("|", "\\|")
        print(f"| `{shown}`{mark} | " + " | ".join(f"{f} / {w}" for f, w in row) + " |")
    for unseen, rows in sums.items():
        means = [sum(column) / len(column) for column in zip(*rows, strict=True)]
        print(
            f"| **{'unseen' if unseen else 'seen'}, whole** | " + " | ".join(f"**{mean:.0f}**" for mean in means) + " |"
        )
    return 0


def names(parser: argparse.ArgumentParser, argv: list[str]) -> int:
    """How many names alarm with a password, a random key and a hash after them, and how many without reason."""
    parser.parse_args(argv)
    values = ("Kx9#mQ2v" + "Lp7z", "q8ZtR4wXn2LkV7" + "bYs5HdGf3J", "3f786850e387550fdab836" + "ed7e6dc881de23001b")
    print("| names | of | all three values found | none found |\n|---|---:|---:|---:|")
    for kind in ("credential", "other"):
        for unseen in (False, True):
            rows = [name for name, new in credentials(kind) if new == unseen]
            hits = [[bool(scan(f"{name}={value}")) for value in values] for name in rows]
            print(f"| {kind}{', unseen' if unseen else ''} | {len(rows)} | {sum(map(all, hits))} "
                  f"| {sum(not any(hit) for hit in hits)} |")  # fmt: skip
            wanted = kind == "credential"
            odd = [name for name, hit in zip(rows, hits, strict=True) if not all(found == wanted for found in hit)]
            if odd:
                print(f"<!-- {', '.join(odd)} -->")
    return 0
