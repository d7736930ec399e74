"""How well and how fast sessions are distilled.

    python bench/distil.py FOLDER [--megabytes 200] [--missed]

FOLDER holds transcripts, NAME.jsonl, and what is known of each, NAME.keep.json: `keep` (facts: `id`, `fact`, key terms
`must` with alternatives by |, evidence `lines`) and `junk` (lines that must not be kept). A candidate says a fact when
it has three quarters of its key terms and stands on a line of the evidence, or has all of them. `in brief` counts the
facts that a candidate of at most 500 characters says. Speed is the CPU time of this process over a file that repeats
the transcripts of the folder until it has so many megabytes, with the peak of memory.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from memlane.capture.distil.candidates import Candidate, distil

BRIEF = 500


def says(text: str, lines: tuple[int, ...], fact: dict[str, Any]) -> bool:
    low = text.lower()
    got = sum(any(word.lower() in low for word in term.split("|")) for term in fact["must"])
    if set(lines) & set(fact["lines"]):
        return got >= math.ceil(0.75 * len(fact["must"]))
    return got == len(fact["must"])


def scored(candidates: list[Candidate], truth: dict[str, Any]) -> tuple[Counter[str], list[dict[str, Any]]]:
    """The counts of a transcript, and the facts that were missed."""
    junk = {line["line"] for line in truth["junk"]}
    said = [[fact["id"] for fact in truth["keep"] if says(one.text, one.lines, fact)] for one in candidates]
    found = {id for ids in said for id in ids}
    brief = {id for one, ids in zip(candidates, said, strict=True) if len(one.text) <= BRIEF for id in ids}
    bad = sum(not ids and bool(junk & set(one.lines)) for one, ids in zip(candidates, said, strict=True))
    counts = {"facts": len(truth["keep"]), "found": len(found), "brief": len(brief), "items": len(candidates)}
    counts |= {"good": sum(map(bool, said)), "junk": bad}
    return Counter(counts), [fact for fact in truth["keep"] if fact["id"] not in found]


def speed(paths: list[Path], megabytes: int) -> str:
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as large:
        data = b"".join(path.read_bytes().rstrip(b"\n") + b"\n" for path in paths)
        for _ in range(math.ceil(megabytes * 1_000_000 / len(data))):
            large.write(data)
        large.flush()
        size, begun = large.tell() / 1_000_000, time.process_time()
        distil(large.name)
        seconds = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return f"{size:.0f} MB in {seconds:.1f} s CPU ({size / seconds:.1f} MB/s), {peak} MB of memory at most"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--megabytes", type=int, default=200, help="0 leaves the speed out")
    parser.add_argument("--missed", action="store_true", help="print the facts that were missed")
    arguments = parser.parse_args()
    total: Counter[str] = Counter()
    transcripts = []
    for path in sorted(arguments.folder.glob("*.keep.json")):
        truth = json.loads(path.read_text("utf-8"))
        transcripts.append(path.with_name(truth["transcript"]))
        counts, missed = scored(distil(transcripts[-1]), truth)
        total += counts
        print(
            f"{truth['transcript']:32} facts {counts['found']} of {counts['facts']}, items {counts['items']}, ", end=""
        )
        print(f"saying a fact {counts['good']}, junk {counts['junk']}")
        if arguments.missed:
            for fact in missed:
                print(f"    missed: {fact['fact']}")
    if not transcripts:
        raise SystemExit(f"no NAME.keep.json in {arguments.folder}")
    items = max(1, total["items"])
    print(
        f"all: facts found in brief {total['brief']} of {total['facts']} ({total['brief'] / total['facts']:.0%}), "
        f"items {total['items']}, saying a fact {total['good'] / items:.0%}, junk {total['junk'] / items:.0%}"
    )
    if arguments.megabytes:
        print(speed(transcripts, arguments.megabytes))


if __name__ == "__main__":
    main()
