"""How soon the MCP server answers: the handshake in a large bank that is not indexed, then searches.

    python bench/mcp_server.py [--notes 10000] [--repeats 7]

"Beyond the SDK" is the CPU time of a process that answers the handshake and ends, less that of a bare interpreter that
only imports the SDK; both are the best of the repeats, taken in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from memlane import Bank

MEMLANE = str(Path(sys.executable).with_name("memlane"))
WORDS = "deploy server release team budget memory index queue cache backup review branch staging latency report".split()
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
DISCOVER = {"jsonrpc": "2.0", "id": 0, "method": "server/discover", "params": {"_meta": META}}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
}


class Session:
    """A server process and its pipes."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [MEMLANE, "mcp"], cwd=folder, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        print(json.dumps(message), file=self.process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def call(self, name: str, **arguments: Any) -> float:
        """Seconds of one call."""
        params = {"name": name, "arguments": arguments, "_meta": META}
        start = time.perf_counter()
        answer = self.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        if answer["result"].get("isError"):
            sys.exit(answer["result"]["content"][0]["text"])
        return time.perf_counter() - start

    def close(self) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def importing() -> tuple[float, float]:
    """(CPU seconds, seconds) of an interpreter that imports the SDK."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", "import mcp.server, mcp.server.stdio"])
    return cpu(process), time.perf_counter() - start


def handshake(folder: Path, message: dict[str, Any]) -> tuple[float, float]:
    """(CPU seconds, seconds to the first answer) of the command."""
    start = time.perf_counter()
    session = Session(folder)
    session.ask(message)
    took = time.perf_counter() - start
    assert session.process.stdin
    session.process.stdin.close()
    used = cpu(session.process)
    session.close()
    return used, took


def cpu(process: subprocess.Popen[Any]) -> float:
    """Wait for the end of a process; its CPU seconds."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    dice = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        Bank.init(folder)
        for number in range(options.notes):
            text = " ".join(dice.choices(WORDS, k=60))
            (folder / f".memories/n{number}.md").write_text(f"# Note {number}\n\n{text}\n")
        times: dict[str, list[tuple[float, float]]] = {"import": [], "server/discover": [], "initialize": []}
        for _ in range(options.repeats):
            times["import"].append(importing())
            times["server/discover"].append(handshake(folder, DISCOVER))
            times["initialize"].append(handshake(folder, INITIALIZE))
        indexed = (folder / ".memories/indices").exists()
        best = {what: tuple(map(min, zip(*taken, strict=True))) for what, taken in times.items()}
        print(f"{options.notes:,} notes, not indexed{' (but indexed by the handshake!)' if indexed else ''}\n")
        alone, _ = best["import"]
        print(f"{'the SDK alone, imported':<34}{alone * 1000:8.0f} ms CPU")
        for what in ("server/discover", "initialize"):
            used, took = best[what]
            print(f"{what:<34}{used * 1000:8.0f} ms CPU, {(used - alone) * 1000:.0f} ms beyond the SDK; ", end="")
            print(f"answered after {took * 1000:.0f} ms")
        session = Session(folder)
        session.ask(DISCOVER)
        print(
            f"{'first search, indexes everything':<34}{session.call('search_memories', query='cache') * 1000:8.0f} ms"
        )
        for tool in ("search_memories", "recall"):
            taken = [session.call(tool, query=" ".join(dice.choices(WORDS, k=3))) for _ in range(50)]
            print(f"{tool + ', median of 50':<34}{statistics.median(taken) * 1000:8.1f} ms")
        writes = [
            session.call("create_memory", filename=f"new{number}.md", content="A new note.", tags=[])
            for number in range(50)
        ]
        print(f"{'create_memory, median of 50':<34}{statistics.median(writes) * 1000:8.1f} ms")
        after = []
        for number in range(20):
            session.call("append_memory", filename="n1.md", content=f"More {number}.")
            after.append(session.call("search_memories", query="cache latency"))
        print(f"{'search after a write, median of 20':<34}{statistics.median(after) * 1000:8.1f} ms")
        session.close()
        shutil.rmtree(folder / ".memories/indices")


if __name__ == "__main__":
    main()
