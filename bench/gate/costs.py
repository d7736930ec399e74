"""What it costs to reverse a fingerprint of `[[allow]]`, and to blank secrets in what a bank shows."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from pathlib import Path

SPACES = {
    "US social security number": 10**9,
    "payment card, its bank known": 10**9,
    "telephone number of a country": 10**10,
    "a million common passwords": 10**6,
}


def fingerprints(parser: argparse.ArgumentParser, argv: list[str]) -> int:
    from memlane.gate.fingerprints import BITS, fingerprint

    parser.parse_args(argv)
    began = time.process_time()
    for number in range(20):
        fingerprint("ssn", f"{number:09}", "7f3a")
    each = (time.process_time() - began) / 20
    print(f"One fingerprint takes {each * 1000:.0f} ms of one core and 16 MiB, and has {BITS} bits.\n")
    print("| values | to try all | of these have the fingerprint |\n|---|---:|---:|")
    for name, size in SPACES.items():
        days = size * each / 86400
        shown = f"{days / 365:,.1f} core-years" if days > 365 else f"{days * 24:,.0f} core-hours"
        print(f"| {name} | {shown} | about {max(1, round(size / 2**BITS)):,} |")
    return 0


def outgoing(parser: argparse.ArgumentParser, argv: list[str]) -> int:
    """Each verb on invented notes with the gate as it is and with gate.secrets = "off".

    Ratios alone mean something: the two settings take turns in one process.
    """
    import statistics
    import tempfile

    from memlane import Bank

    parser.add_argument("--count", type=int, default=1000, help="how many notes")
    count = parser.parse_args(argv).count
    dice = random.Random(1)
    words = [
        f"{a}{b}{c}" for a in ("ba", "ce", "di", "fo") for b in ("gu", "ha", "ji", "lo") for c in ("mu", "na", "pe")
    ]
    with tempfile.TemporaryDirectory() as folder:
        Bank.init(folder)
        for number in range(count):
            text = "\n".join(" ".join(dice.choices(words, k=20)) for _ in range(10))
            Path(folder, ".memories", f"n{number}.md").write_text(f"---\ntags: [{words[number % 48]}]\n---\n{text}\n")
        banks = {mode: Bank.open(folder, gate__secrets=mode) for mode in ("off", "refuse")}
        verbs: dict[str, Callable[[Bank], object]] = {
            "search, 5 hits": lambda bank: bank.search(" ".join(dice.choices(words, k=4))),
            "context of a prompt": lambda bank: bank.context(" ".join(dice.choices(words, k=4)), 800),
            "get": lambda bank: bank.get(f"n{dice.randrange(count)}"),
            "list of 20": lambda bank: bank.list(limit=20),
            f"list of all {count:,}": lambda bank: bank.list(),
            "all, brief": lambda bank: bank.list(brief=True),
        }
        print(
            f"{count:,} notes of 200 words.\n\n| verb | gate.secrets = off | as it is | ratio |\n|---|---:|---:|---:|"
        )
        for name, verb in verbs.items():
            times: dict[str, list[float]] = {mode: [] for mode in banks}
            for turn in range(24 if "all" not in name else 6):
                for mode, bank in banks.items():
                    began = time.process_time()
                    verb(bank)
                    if turn > 1:
                        times[mode].append(time.process_time() - began)
            off, now = (statistics.median(spent) for spent in times.values())
            print(f"| {name} | {off * 1000:.1f} ms | {now * 1000:.1f} ms | {now / off:.2f} |")
    return 0
