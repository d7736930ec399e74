"""What the journal costs: durable writes with it and without it, side by side in one run.

    python bench/journal.py [ROUNDS]

Prints for each kind of write the milliseconds that a quarter of the calls stayed below (machines are noisy), journal
off and on, and what it adds in percent.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from memlane import Bank
from memlane.disk import files

WORDS = "alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo lima mike november oscar papa".split()


def text(number: int) -> str:
    """A text of forty words unlike the others."""
    return " ".join(f"{WORDS[(number * 7 + at * (number % 5 + 1)) % len(WORDS)]}{number + at}" for at in range(40))


def kinds(bank: Bank) -> dict[str, Callable[[int], object]]:
    """Each kind of write, by its number."""
    root = os.fspath(bank.root)
    page = b"x" * 2000
    return {
        "files.create": lambda n: files.create(f"{root}/made/{n}.md", page + str(n).encode()),
        "files.replace": lambda n: files.replace(f"{root}/made/same.md", page + str(n).encode()),
        "files.append_lines": lambda n: files.append_lines(f"{root}/made/log.jsonl", b'{"n":%d}\n' % n),
        "add": lambda n: bank.add(text(n), title=f"note {n}"),
        "update": lambda n: bank.update("notes:note-0", text=text(n + 10_000)),
        "append": lambda n: bank.append("notes:note-1", f"and {n}"),
        "vault add": lambda n: bank.add(text(n + 20_000), lane="vault"),
    }


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = f"{folder}/home"
        for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
            os.environ.pop(name, None)
        banks = {}
        for name in ("off", "on"):
            place = Path(folder) / name
            place.mkdir()
            Bank.init(place).close()
            banks[name] = Bank.open(place, journal__enabled=name == "on", vault__max_active=100_000)
        times: dict[tuple[str, str], list[float]] = {}
        writes = {name: kinds(bank) for name, bank in banks.items()}
        for kind in writes["on"]:
            for number in range(rounds):
                for name in ("off", "on") if number % 2 else ("on", "off"):
                    began = time.perf_counter()
                    writes[name][kind](number)
                    times.setdefault((kind, name), []).append(time.perf_counter() - began)
        print(f"{'':20}{'off, ms':>10}{'on, ms':>10}{'adds':>8}")
        for kind in writes["on"]:
            off, on = (statistics.quantiles(times[kind, name])[0] * 1000 for name in ("off", "on"))
            print(f"{kind:20}{off:10.2f}{on:10.2f}{(on / off - 1) * 100:7.0f}%")


if __name__ == "__main__":
    main()
