"""What capture costs: a turn in a large bank, a 200 MB transcript, a line of 50 MB.

    python bench/capture.py [--records 10000] [--megabytes 200]

CPU is that of a fresh process less that of a bare interpreter, the median of repeats: what a client's hook pays.
Peak memory is that of a process that captures the whole transcript. The transcript is made up: mostly results of
tools, as real ones are.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from memlane import Bank
from memlane.core.model import Draft
from memlane.lanes.records.record import render
from memlane.lanes.records.store import RecordLane

WORDS = "auth cache deploy index queue release search server session token vault worker config schema test".split()
CAPTURE = """
import sys
from memlane.bank import Bank
from memlane.capture.messages import capture
with Bank.open(sys.argv[1]) as bank:
    result = capture(bank, sys.argv[2])
"""
PEAK = """
import json, re
peak = int(re.search(r"VmHWM:\\s+([0-9]+)", open("/proc/self/status").read())[1])
heavy = [name for name in ("numpy", "mcp", "pydantic", "sqlite3", "yaml") if name in sys.modules]
print(json.dumps([result.captured, dict(result.skipped), peak, heavy]))
"""


def prose(dice: random.Random, lines: int) -> str:
    return "\n".join(" ".join(dice.choices(WORDS, k=12)).capitalize() + "." for _ in range(lines))


def turn(dice: random.Random, number: int) -> Iterator[str]:
    """A prompt, a few tools with long results, and an answer of ten lines."""
    common = {"sessionId": "bench", "cwd": "/app", "isSidechain": False}
    when = f"2025-{number // 86400 % 12 + 1:02}-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"

    def line(type: str, content: object, **message: str) -> str:
        body = {"role": type, "content": content, **message}
        return json.dumps({"type": type, "timestamp": when, "message": body, **common}) + "\n"

    yield line("user", prose(dice, 1))
    for step in range(5):
        id = f"msg_{number}_{step}"
        given = {"file_path": f"/app/src/{dice.choice(WORDS)}.py"}
        yield line("assistant", [{"type": "tool_use", "id": id, "name": "Edit", "input": given}], id=id)
        yield line("user", [{"type": "tool_result", "tool_use_id": id, "content": prose(dice, 100)}])
    yield line("assistant", [{"type": "text", "text": f"Turn {number}.\n{prose(dice, 10)}"}], id=f"msg_{number}")


def transcript(path: Path, size: int) -> None:
    dice = random.Random(size)
    number = 0
    with path.open("w") as file:
        while file.tell() < size:
            file.writelines(turn(dice, number))
            number += 1


def bank_of(folder: Path, records: int) -> Bank:
    """A bank that holds so many records, written without syncing each of them."""
    dice = random.Random(2)
    bank = Bank.init(folder)
    made = RecordLane(folder / "made")
    bank.records.root.mkdir(parents=True)
    for number in range(records):
        when = f"2024-01-{number % 28 + 1:02}T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
        text = f"Record {number}.\n{prose(dice, 5)}"

        record, _ = made.capture_message(Draft(text, scope="global", fields={"occurred_at": when}), dry_run=True)
        (bank.records.root / f"{record.id}.md").write_text(render(record))
    return bank


def cpu(code: str, *args: object) -> tuple[float, str]:
    """CPU seconds of a fresh process, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code, *map(str, args)], check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def bench_turn(folder: Path, records: int, repeats: int = 15) -> None:
    bank_of(folder, records)
    path = folder / "session.jsonl"
    dice = random.Random(3)
    path.write_text("".join("".join(turn(dice, number)) for number in range(20)))
    _, said = cpu(CAPTURE + PEAK, folder, path)
    spent: dict[str, list[float]] = {"bare": [], "turn": [], "idle": []}
    for number in range(repeats):
        with path.open("a") as file:
            file.writelines(turn(dice, 100 + number))
        spent["turn"].append(cpu(CAPTURE, folder, path)[0])
        spent["idle"].append(cpu(CAPTURE, folder, path)[0])
        spent["bare"].append(cpu("pass")[0])
    bare = statistics.median(spent["bare"])
    for name, what in (("turn", "one new turn"), ("idle", "nothing new")):
        print(f"{what} in a bank of {records:,} records: {(statistics.median(spent[name]) - bare) * 1000:.0f} ms CPU")
    print(f"heavy modules imported: {json.loads(said)[3] or 'none'}")


def bench_large(folder: Path, megabytes: int) -> None:
    Bank.init(folder)
    for size in (megabytes // 10, megabytes):
        path = folder / f"{size}.jsonl"
        transcript(path, size * 1_000_000)
        start = time.perf_counter()
        captured, _, peak, _ = json.loads(cpu(CAPTURE + PEAK, folder, path)[1])
        spent = time.perf_counter() - start
        print(f"{size} MB: {captured:,} messages in {spent:.1f} s, {peak / 1024:.0f} MB at the peak")
    path = folder / "line.jsonl"
    path.write_text('{"type":"user","message":{"role":"user","content":"' + "x" * 50_000_000 + '"}}\n')
    with path.open("a") as file:
        file.writelines(turn(random.Random(4), 10**6))
    captured, skipped, peak, _ = json.loads(cpu(CAPTURE + PEAK, folder, path)[1])
    print(f"a line of 50 MB: {captured} message after it, skipped {skipped}, {peak / 1024:.0f} MB at the peak")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--records", type=int, default=10_000)
    options.add_argument("--megabytes", type=int, default=200)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in ("turn", "large"):
            (Path(folder) / name).mkdir()
        bench_turn(Path(folder) / "turn", given.records)
        bench_large(Path(folder) / "large", given.megabytes)


if __name__ == "__main__":
    main()
