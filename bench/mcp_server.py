"""How soon the MCP server answers: the handshake in a large bank that is not indexed, then searches; or many clients.

    python bench/mcp_server.py [--notes 10000] [--repeats 7]
    python bench/mcp_server.py --load [--data FOLDER] [--notes 10000] [--seconds 6]

"Beyond the SDK" is the CPU time of a process that answers the handshake and ends, less that of a bare interpreter that
only imports the SDK; both are the best of the repeats, taken in turns.

`--load` asks one `memlane mcp --http` by 1, 8 and 32 clients, each of which sends its next search as soon as it has an
answer, alone and beside two clients that only write; then by 32 clients that together ask 100 or 200 times a second.
With as many readers as the server starts by itself, and with none, in turns. The clients share the machine with the
server. FOLDER holds the archives of notes that bench/search.py reads; without it the notes are made up.

How long clients wait that never pause says little of the server: by Little's law that is their number divided by the
answers a second. On two cores 32 of them wait at least sixteen times as long as one, even where nothing is lost. So
what the slowest twentieth waits beside a single client's time is measured at a pace: 200 searches a second.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from memlane import Bank
from search import QUERIES, made_up, paragraphs, write_notes

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


# -- many clients


class Asked(NamedTuple):
    """What some clients found: the seconds of each search, writes, and the time and CPU time that it took."""

    searches: list[float]
    writes: list[float]
    took: float
    server: float
    clients: float


def request(tool: str, arguments: dict[str, Any]) -> bytes:
    params = {"name": tool, "arguments": arguments, "_meta": META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    head = (
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        "accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n"
        f"mcp-method: tools/call\r\nmcp-name: {tool}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, message: bytes) -> None:
    writer.write(message)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    body = await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))
    if b" 200 " not in head.split(b"\r\n")[0] or b'"isError":true' in body:
        sys.exit(body.decode()[:500])


async def client(port: int, messages: Iterator[bytes], end: float, times: list[float], every: float = 0.0) -> None:
    """Ask until the end, as soon as there is an answer, or at a steady pace whether there is one or not."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    begin = time.perf_counter() + random.random() * every
    while (now := time.perf_counter()) < end:
        if every:
            await asyncio.sleep(max(0.0, begin - now))
        else:
            begin = now
        await answered(reader, writer, next(messages))
        times.append(time.perf_counter() - begin)
        begin += every
    writer.close()


def searches() -> Iterator[bytes]:
    dice = random.Random()
    while True:
        yield request("search_memories", {"query": dice.choice(QUERIES), "limit": 10})


def remembered() -> Iterator[bytes]:
    for number in itertools.count():
        text = f"Note {number} of {time.time()} about quokkas and wombats."
        yield request("remember", {"text": text, "title": f"{time.time()}"})


def asked(server: subprocess.Popen[bytes], port: int, clients: int, writers: int, seconds: float, pace: float) -> Asked:
    searched: list[float] = []
    wrote: list[float] = []

    async def all_clients() -> None:
        end = time.perf_counter() + seconds
        every = clients / pace if pace else 0.0
        reading = [client(port, searches(), end, searched, every) for _ in range(clients)]
        await asyncio.gather(*reading, *(client(port, remembered(), end, wrote) for _ in range(writers)))

    began, used, own = time.perf_counter(), cpu_of_tree(server.pid), time.process_time()
    asyncio.run(all_clients())
    took = time.perf_counter() - began
    return Asked(searched, wrote, took, cpu_of_tree(server.pid) - used, time.process_time() - own)


def cpu_of_tree(pid: int) -> float:
    """The CPU seconds of a process and of those that it has started."""
    used = 0.0
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        used += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        for task in Path(f"/proc/{pid}/task").iterdir():
            used += sum(map(cpu_of_tree, map(int, (task / "children").read_text().split())))
    except OSError:
        pass
    return used


def serving(folder: Path, readers: int | None) -> tuple[subprocess.Popen[bytes], int]:
    """A server and its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    chosen = [] if readers is None else ["--readers", str(readers)]
    command = [MEMLANE, "--bank", str(folder), "mcp", "--http", "--port", str(port), *chosen]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            time.sleep(0.1)
    return server, port


def load(folder: Path, seconds: float) -> None:
    print("| clients | readers | searches/s | p50 | p95 | writes/s | write p95 | CPU of the server | of the clients |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
    servers: dict[str, tuple[subprocess.Popen[bytes], int]] = {}
    try:
        for readers, count in (("its own", None), ("none", 0)):
            servers[readers] = serving(folder, count)
            asked(*servers[readers], 8, 0, 15.0, 0.0)  # until the readers are up, with the index in their memory
        for clients, writers, pace in (
            *((n, w, 0.0) for w in (0, 2) for n in (1, 8, 32)),
            *((32, w, pace) for pace in (100.0, 200.0) for w in (0, 2)),
        ):
            for readers, (server, port) in servers.items():
                found = asked(server, port, clients, writers, seconds, pace)
                calls = len(found.searches) + len(found.writes)
                who = f"{clients}{f' at {pace:.0f}/s' if pace else ''}{' and 2 writers' if writers else ''}"
                wrote = (
                    [f"{len(found.writes) / found.took:.0f}", milliseconds(found.writes, 0.95)] if writers else ["", ""]
                )
                cells = [
                    who, readers, f"{len(found.searches) / found.took:.0f}", milliseconds(found.searches, 0.5),
                    milliseconds(found.searches, 0.95), *wrote, f"{found.server * 1000 / calls:.1f} ms/call",
                    f"{found.clients * 1000 / calls:.1f} ms/call",
                ]  # fmt: skip
                print(f"| {' | '.join(cells)} |", flush=True)
    finally:
        for server, _ in servers.values():
            server.terminate()
            server.wait()


def milliseconds(times: list[float], part: float) -> str:
    return f"{sorted(times)[int(part * len(times))] * 1000:.0f} ms" if times else "none"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--load", action="store_true")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seconds", type=float, default=6.0)
    options = parser.parse_args()
    if options.load:
        with tempfile.TemporaryDirectory() as name:
            Bank.init(name).close()
            texts = paragraphs(options.data) if options.data else made_up()
            write_notes(Path(name, ".memories/n"), texts, options.notes)
            with Bank.open(name) as bank:
                bank.index.refresh(force=True)
            load(Path(name), options.seconds)
        return
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
