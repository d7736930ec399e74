"""Errors of the disk, one at a time: strace lets the Nth call of a kind fail under each verb that writes.

    python tests/torture_errors.py --seconds 90 --seed 1

For fsync, write, rename, link, ftruncate and the rest the first, second, third … call of a command fails with EIO or
ENOSPC. Then what was acknowledged earlier must be there; what this command acknowledged, too; or else it must have
said so in a sentence. Prints a table and ends with exit code 1 on a finding. It needs strace, and the right to
trace; where they are missing it says so and ends with 0.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from torture import environment
from torturing import MEMLANE

CALLS = (
    "fsync",
    "fdatasync",
    "write",
    "pwrite64",
    "rename,renameat,renameat2",
    "link,linkat",
    "ftruncate",
    "unlink,unlinkat",
)
ERRORS = ("EIO", "ENOSPC")
DEPTH = 4  # so many calls of a kind, one after the other
NEW = "zebrafinch nests beside the quarry"
OLD = {  # what is acknowledged before: the words that must be there afterwards
    "notes": "ochre lantern hums", "vault": "granite ferry waits", "topics": "velvet compass drifts",
    "records": "copper meadow listens", "second": "amber glacier sings",
}  # fmt: skip


class Verb(NamedTuple):
    words: tuple[str, ...]
    replaces: str = ""  # what may be gone from the living files after it


VERBS = (
    Verb(("add", NEW, "--title", "new")),
    Verb(("append", "notes:first", NEW)),
    Verb(("update", "notes:first", NEW), "notes"),
    Verb(("rm", "notes:first")),  # it must be in the trash
    Verb(("restore", "notes:gone")),
    Verb(("merge", "notes:first", "notes:second", "--into", "both", "--text", NEW)),
    Verb(("vault", "add", NEW, "--category", "goal")),
    Verb(("vault", "compact")),
    Verb(("topics", "store", "area/part", NEW, "--title", "two")),
    Verb(("records", "create", NEW, "--subject", "two", "-k", "word")),
    Verb(("add", NEW, "--lane", "layers", "--field", "project=app", "--field", "file_type=common_patterns")),
)


def memlane(project: Path, *words: str) -> None:
    subprocess.run([MEMLANE, *words], cwd=project, check=True, capture_output=True)


def make(project: Path) -> None:
    project.mkdir()
    memlane(project, "init")
    memlane(project, "add", OLD["notes"], "--title", "first")
    memlane(project, "add", OLD["second"], "--title", "second")
    memlane(project, "add", "marble otter counts", "--title", "gone")
    memlane(project, "rm", "notes:gone")
    memlane(project, "vault", "add", OLD["vault"], "--category", "goal")
    memlane(project, "topics", "store", "area/part", OLD["topics"], "--title", "one")
    memlane(project, "records", "create", OLD["records"], "--subject", "one", "-k", "word")
    memlane(project, "search", "lantern")


def held(project: Path) -> str:
    """All that the bank's files say, the index aside."""
    files = [path for path in (project / ".memories").rglob("*") if path.is_file() and "indices" not in path.parts]
    return "\n".join(path.read_text(errors="replace") for path in files)


def findings(project: Path, verb: Verb, done: subprocess.CompletedProcess[str]) -> list[str]:
    text = held(project)
    found = [f"lost {lane}" for lane, words in OLD.items() if words not in text and lane != verb.replaces]
    if verb.replaces and OLD[verb.replaces] not in text and NEW not in text:
        found.append(f"lost {verb.replaces} and the new text")
    if done.returncode == 0 and NEW in verb.words and NEW not in text:
        found.append("acknowledged and lost")
    if "Traceback" in done.stderr:
        found.append("traceback: " + done.stderr.strip().splitlines()[-1][:100])
    elif done.returncode < 0:
        found.append(f"ended by signal {-done.returncode}")
    elif done.returncode and not any(line.startswith("error: ") for line in done.stderr.splitlines()):
        found.append(f"exit {done.returncode} without a sentence: {done.stderr.strip()[-100:]!r}")
    return found


def injected(project: Path, log: Path, verb: Verb, calls: str, error: str, nth: int) -> tuple[bool, list[str]]:
    """Whether a call was made to fail at all, and what came of it."""
    trace = ["strace", "-f", "-qq", "-o", str(log), "-e", f"trace={calls}"]
    trace += ["-e", f"inject={calls}:error={error}:when={nth}"]
    done = subprocess.run(
        [*trace, MEMLANE, *verb.words],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    return "(INJECTED)" in log.read_text(errors="replace"), findings(project, verb, done)


def why_not() -> str:
    if shutil.which("strace") is None:
        return "strace is not installed"
    if subprocess.run(["strace", "-qq", "-e", "trace=none", "true"], capture_output=True).returncode:
        return "this user may not trace processes"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description="Every call that writes fails once, under every verb that writes.")
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--seed", default="1")
    chosen = parser.parse_args()
    if why := why_not():
        print(f"skipped: {why}")
        return
    place = Path(tempfile.mkdtemp(prefix="memlane-errors-"))
    surroundings = environment(place / "home")
    os.environ.clear()
    os.environ.update(surroundings)
    cases = [
        (verb, calls, error, nth)
        for verb in VERBS
        for calls in CALLS
        for error in ERRORS
        for nth in range(1, DEPTH + 1)
    ]
    random.Random(chosen.seed).shuffle(cases)
    counts, bad, few = Counter[str](), list[str](), dict[tuple[object, ...], int]()
    project, template = place / "project", place / "template"
    try:
        (place / "home").mkdir()
        make(project)
        shutil.copytree(project, template)
        last = time.monotonic() + chosen.seconds
        for verb, calls, error, nth in cases:
            if time.monotonic() > last:
                break
            if nth > few.get((verb, calls), DEPTH):  # the command makes fewer calls of the kind
                counts["without such a call"] += 1
                continue
            shutil.rmtree(project)
            shutil.copytree(template, project)
            hit, found = injected(project, place / "log", verb, calls, error, nth)
            counts["failed calls" if hit else "without such a call"] += 1
            if not hit:
                few[verb, calls] = nth - 1
            bad += [
                f"{' '.join(verb.words[:2]):<16} {calls.partition(',')[0]:<10} {nth} {error:<7} {why}" for why in found
            ]
    finally:
        shutil.rmtree(place, ignore_errors=True)
    print("\n".join(sorted(bad)))
    print(f"{sum(counts.values())} of {len(cases)} cases: {dict(counts)}; {len(bad)} findings")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
