"""What a vault takes for a repetition: pairs of bench/changed_facts.tsv, and of the STS benchmark where they are given.

A pair counts as refused when the newer text would be refused because of the older one: by likeness alone, and in a
bank, where a text that says something new is stored.
"""

from __future__ import annotations

import argparse
from pathlib import Path

PAIRS = Path(__file__).parents[1] / "changed_facts.tsv"
Pair = tuple[str, str]  # old and new


def fact_pairs() -> dict[str, list[Pair]]:
    """The pairs of bench/changed_facts.tsv by kind; those that the rule was not written with are unseen."""
    groups: dict[str, list[Pair]] = {}
    unseen = ""
    for line in PAIRS.read_text().splitlines():
        if line.startswith("#"):
            unseen = ", unseen" if line == "# unseen" else unseen
            continue
        kind, old, new = line.split("\t")
        groups.setdefault(f"{kind}{unseen}", []).append((old, new))
    return dict(sorted(groups.items()))


def sts_pairs(paths: list[str]) -> dict[str, list[Pair]]:
    """Pairs of the STS benchmark by how alike people found them, 0 to 5; MSRpar are sentences of news."""
    groups: dict[str, list[Pair]] = {}
    for path in paths:
        for line in Path(path).read_text().splitlines():
            _, source, _, _, score, old, new, *_ = line.split("\t")
            if (value := float(score)) >= 4 and source == "MSRpar":
                groups.setdefault("STS-B, news said again (4 to 5)", []).append((old, new))
            for least, most, what in ((0, 1, "unrelated"), (2, 3, "something else"), (5, 5, "the same")):
                if least <= value <= most:
                    groups.setdefault(f"STS-B, {what} ({least} to {most})", []).append((old, new))
    return dict(sorted(groups.items()))


def run(parser: argparse.ArgumentParser, argv: list[str]) -> int:
    from memlane.gate.changes import what_is_new
    from memlane.gate.likeness import overlap, ratio, tokens

    parser.add_argument("--sts", nargs="*", default=[], metavar="FILE", help="files of the STS benchmark")
    paths = parser.parse_args(argv).sts
    print("| pairs | of | refused by likeness alone | refused in a bank |\n|---|---:|---:|---:|")
    for name, pairs in (fact_pairs() | sts_pairs(paths)).items():
        alike = [(o, n) for o, n in pairs if overlap(tokens(n), tokens(o)) >= 0.60 or ratio(n, o) >= 0.70]
        refused = sum(not what_is_new(new, old) for old, new in alike)
        shares = (f"{number} = {100 * number / len(pairs):.0f} %" for number in (len(alike), refused))
        print(f"| {name} | {len(pairs)} | {' | '.join(shares)} |")
    return 0
