"""Measure the gate. Prints Markdown; nothing that is measured is kept here but the *.tsv files of bench/.

python bench/gate corpora --positives kingfisher=PATH noseyparker=PATH --notes tldr=PATH --json figures.json
python bench/gate passwords
python bench/gate names
python bench/gate disguises
python bench/gate fuzz --lines 1000000
python bench/gate duplicates --sts sts-train.csv sts-dev.csv
python bench/gate instructions --attacks NAME=PATH --notes tldr=PATH
python bench/gate fingerprints
python bench/gate outgoing
"""

from __future__ import annotations

import argparse
import sys

import corpora
import costs
import credentials
import disguises
import duplicates
import fuzz
import instructions

COMMANDS = {
    "corpora": corpora.run,
    "passwords": credentials.passwords,
    "names": credentials.names,
    "disguises": disguises.run,
    "fuzz": fuzz.run,
    "duplicates": duplicates.run,
    "instructions": instructions.run,
    "fingerprints": costs.fingerprints,
    "outgoing": costs.outgoing,
}


def main(argv: list[str]) -> int:
    """Run one measurement; 0 for all but fuzzing, because a figure is no verdict."""
    if not argv or argv[0] not in COMMANDS:
        print(__doc__, file=sys.stderr)
        return 2
    parser = argparse.ArgumentParser(prog=f"gate {argv[0]}")
    return COMMANDS[argv[0]](parser, argv[1:])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
