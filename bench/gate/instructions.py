"""What is marked as instructions to a model: attacks of bench/instructions.tsv by language and kind, attacks of
other sets where they are given, and paragraphs of harmless notes that are marked wrongly.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from cases import TEXT, named, read_cases

ATTACKS = Path(__file__).parents[1] / "instructions.tsv"


def attacks() -> Iterator[tuple[bool, str, str, str]]:
    """The attacks of bench/instructions.tsv: whether the rules were written without it, kind, language and text."""
    unseen = False
    for line in ATTACKS.read_text().splitlines():
        if line.startswith("#"):
            unseen = unseen or line == "# unseen"
            continue
        kind, language, text = line.split("\t")
        yield unseen, kind, language, text.replace("\\n", "\n")


def paragraphs(path: Path) -> Iterator[tuple[str, str]]:
    """The paragraphs of the notes below a path, each with the name of its file."""
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.suffix in TEXT and file.is_file():
            for paragraph in re.split(r"\n\s*\n", file.read_text(errors="replace")):
                if len(paragraph.strip()) >= 20:
                    yield file.name, paragraph.strip()


def run(parser: argparse.ArgumentParser, argv: list[str]) -> int:
    from memlane.core.instructions import suspicious

    parser.add_argument("--attacks", nargs="*", default=[], metavar="NAME=PATH", help="attacks of other sets")
    parser.add_argument("--notes", nargs="*", default=[], metavar="NAME=PATH", help="folders of harmless notes")
    args = parser.parse_args(argv)
    found: dict[str, Counter[str]] = {"language": Counter(), "kind": Counter(), "all": Counter()}
    total: dict[str, Counter[str]] = {"language": Counter(), "kind": Counter(), "all": Counter()}
    for unseen, kind, language, text in attacks():
        marked = bool(suspicious(text))
        for by, name in (("language", language), ("kind", kind), ("all", "all")):
            found[by][f"{name}, {unseen}"] += marked
            total[by][f"{name}, {unseen}"] += 1
    print("| attacks | unseen, marked | of | seen, marked | of |\n|---|---:|---:|---:|---:|")
    for by, counts in total.items():
        for name in sorted({name.partition(",")[0] for name in counts}):
            cells = [number[by][f"{name}, {unseen}"] for unseen in (True, False) for number in (found, total)]
            print(f"| {name} | {' | '.join(map(str, cells))} |")
    for name, path in named(args.attacks):
        cases = [case for case in read_cases(path) if case.positive]
        print(f"| {name} | {sum(bool(suspicious(case.text)) for case in cases)} | {len(cases)} | | |")
    if args.notes:
        print("\n| notes | paragraphs | marked | per 1,000 | ms CPU per KB |\n|---|---:|---:|---:|---:|")
    lines = []
    for name, path in named(args.notes):
        texts = list(paragraphs(path))
        began = time.process_time()
        marks = [(file, signs) for file, text in texts if (signs := suspicious(text))]
        spent = 1000 * (time.process_time() - began)
        kilobytes = sum(len(text.encode()) for _, text in texts) / 1024
        share = 1000 * len(marks) / max(len(texts), 1)
        print(f"| {name} | {len(texts)} | {len(marks)} | {share:.2f} | {spent / max(kilobytes, 1e-9):.3f} |")
        lines += [f"- {name}/{file}: {', '.join(signs)}" for file, signs in marks]
    print("\n".join(lines))
    return 0
