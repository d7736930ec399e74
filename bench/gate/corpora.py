"""Recall on public test cases, false alarms on notes, speed; file names and classes are printed, values never."""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cases import TEXT, Case, named, read_cases
from memlane.gate.secrets import scan


def recall(cases: Iterable[Case]) -> dict[str, Any]:
    """Found and all, by class; and which negatives raised an alarm."""
    found: Counter[str] = Counter()
    total: Counter[str] = Counter()
    false_alarms = [0, 0]
    in_order = 0
    for case in cases:
        hit = bool(scan(case.text))
        if case.positive:
            total[case.group] += 1
            found[case.group] += hit
            in_order += not hit and bool(re.search("abcdefgh|0123456789|1234567890", case.text.lower()))
        else:
            false_alarms[0] += hit
            false_alarms[1] += 1
    return {
        "found": found.total(),
        "positives": total.total(),
        "missed_in_order": in_order,
        "false_alarms": false_alarms[0],
        "negatives": false_alarms[1],
        "classes": {group: [found[group], total[group]] for group in sorted(total)},
    }


def alarms(path: Path) -> dict[str, Any]:
    """What the scanner says of a folder of notes, and how long it takes."""
    files = [f for f in sorted(path.rglob("*")) if f.suffix in TEXT and f.is_file()]
    texts = [(str(f.relative_to(path)), f.read_text(errors="replace")) for f in files]
    began = time.process_time()
    results = [(name, scan(text)) for name, text in texts]
    spent = time.process_time() - began
    kilobytes = sum(len(text.encode()) for _, text in texts) / 1024
    hits = [f"{name}:{f.line}:{f.column} {f.rule}" for name, findings in results for f in findings]
    flagged = sum(bool(findings) for _, findings in results)
    return {
        "notes": len(files),
        "flagged": flagged,
        "per_1000": round(1000 * flagged / max(len(files), 1), 2),
        "kilobytes": round(kilobytes, 1),
        "ms_per_kb": round(1000 * spent / max(kilobytes, 1e-9), 4),
        "findings": hits,
    }


def report(sets: dict[str, dict[str, Any]], notes: dict[str, dict[str, Any]], by_class: bool) -> None:
    """Print the figures as Markdown."""
    if sets:
        print(
            "| positives | found | of | recall | missed, in order | false alarms on its negatives |\n"
            "|---|---:|---:|---:|---:|---:|"
        )
        for name, figures in sets.items():
            share = 100 * figures["found"] / max(figures["positives"], 1)
            print(
                f"| {name} | {figures['found']} | {figures['positives']} | {share:.1f} % "
                f"| {figures['missed_in_order']} | {figures['false_alarms']} of {figures['negatives']} |"
            )
    if by_class:
        for name, figures in sets.items():
            print(f"\n| {name}: class | found | of |\n|---|---:|---:|")
            for group, (found, total) in figures["classes"].items():
                print(f"| {group} | {found} | {total} |")
    if notes:
        print("\n| notes | files | with an alarm | per 1,000 | ms CPU per KB |\n|---|---:|---:|---:|---:|")
        files = sum(figures["notes"] for figures in notes.values())
        flagged = sum(figures["flagged"] for figures in notes.values())
        kilobytes = sum(figures["kilobytes"] for figures in notes.values())
        spent = sum(figures["kilobytes"] * figures["ms_per_kb"] for figures in notes.values())
        rows = [(name, f["notes"], f["flagged"], f["per_1000"], f["ms_per_kb"]) for name, f in notes.items()]
        rows.append(("all", files, flagged, 1000 * flagged / max(files, 1), spent / max(kilobytes, 1)))
        for name, count, alarmed, share, speed in rows:
            print(f"| {name} | {count} | {alarmed} | {share:.2f} | {speed:.3f} |")
        for name, figures in notes.items():
            for line in figures["findings"]:
                print(f"- {name}/{line}")


def run(parser: argparse.ArgumentParser, argv: list[str]) -> int:
    parser.add_argument("--positives", nargs="*", default=[], metavar="NAME=PATH", help="test cases of other scanners")
    parser.add_argument("--notes", nargs="*", default=[], metavar="NAME=PATH", help="folders of harmless notes")
    parser.add_argument("--classes", action="store_true", help="also print recall by class")
    parser.add_argument("--json", metavar="FILE", help="write all figures to a file")
    args = parser.parse_args(argv)
    sets = {name: recall(read_cases(path)) for name, path in named(args.positives)}
    notes = {name: alarms(path) for name, path in named(args.notes)}
    report(sets, notes, args.classes)
    if args.json:
        Path(args.json).write_text(json.dumps({"positives": sets, "notes": notes}, indent=2) + "\n")
    return 0
