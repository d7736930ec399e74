"""What the notes lane makes of real notes: how many files, how many memories, which problems.

python bench/real_notes.py --data FOLDER      FOLDER holds notes-*.tar.gz and vault-*.tar.gz
"""

from __future__ import annotations

import argparse
import sys
import tarfile
import tempfile
from collections import Counter
from pathlib import Path

from memlane import Memory, NoteLane, Problem
from memlane.lanes import scan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    archives = sorted(path for path in parser.parse_args().data.glob("*.tar.gz") if path.name[:5] in ("notes", "vault"))
    if not archives:
        sys.exit("that folder has no notes-*.tar.gz or vault-*.tar.gz")
    print("| notes | files | memories | with front matter fields | problems |\n|---|---|---|---|---|")
    for archive in archives:
        with tempfile.TemporaryDirectory() as folder, tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
            items = list(scan(NoteLane(folder)))
            memories = [item for item in items if isinstance(item, Memory)]
            reasons = Counter(item.why.split(";")[0] for item in items if isinstance(item, Problem))
            fields = sum(bool(memory.fields) for memory in memories)
            shown = ", ".join(f"{count} {why}" for why, count in reasons.items()) or "none"
            print(f"| {archive.name.split('.')[0]} | {len(items):,} | {len(memories):,} | {fields:,} | {shown} |")


if __name__ == "__main__":
    main()
