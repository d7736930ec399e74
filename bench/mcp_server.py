"""How soon the MCP server answers: the handshake in a large bank that is not indexed, then searches; or many clients.

    python bench/mcp_server.py [--notes 10000] [--repeats 7]
    python bench/mcp_server.py --load [--data FOLDER] [--notes 10000] [--seconds 6] [--beside SRC] [--only TEXT]
        [--paces 100 200]

"Beyond the SDK" is the CPU time of a process that answers the handshake and ends, less that of a bare interpreter that
only imports the SDK; both are the best of the repeats, taken in turns.

`--load` asks one `memlane mcp --http` by 1, 8 and 32 clients, each of which sends its next search as soon as it has an
answer, alone and beside two clients that only write; then by 32 clients that together ask 100 or 200 times a second, or
at other `--paces`; and 20 times a second while half of all files are changed by somebody and have to be indexed again.
With as many readers as the server starts by itself, and with none, in turns; with `--beside`, the folder `src` of
another version, that version's server takes the place of the one without readers. Each has a bank of its own. `--only`
leaves out the rows whose name has not this text. FOLDER holds the archives of notes that bench/search.py reads; without
it the notes are made up.

The clients are one process, which shares the machine with the server: `lag` is what the slowest twentieth of its own
timers is late by, and a search cannot be seen to take less. `others` is how many cores programs had that are neither
server nor clients: where that is not nearly 0, only the ratio of two lines counts.

How long clients wait that never pause says little of the server: by Little's law that is their number divided by the
answers a second. On two cores 32 of them wait at least sixteen times as long as one, even where nothing is lost. So
what the slowest twentieth waits beside a single client's time is measured at a pace: 200 searches a second.
"""

from __future__ import annotations

import argparse
import asyncio
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
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

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
    """What some clients found: the seconds of each search, write and late timer, the time that it took, and CPU time:
    of the server, of the clients and of everything else."""

    searches: list[float]
    writes: list[float]
    late: list[float]
    took: float
    server: float
    clients: float
    others: float


class Side(NamedTuple):
    """A server that is measured."""

    process: subprocess.Popen[bytes]
    port: int
    folder: Path


def request(tool: str, arguments: dict[str, Any]) -> bytes:
    params = {"name": tool, "arguments": arguments, "_meta": META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    head = (
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        "accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n"
        f"mcp-method: tools/call\r\nmcp-name: {tool}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Client(asyncio.Protocol):
    """Asks until the end, as soon as there is an answer, or at a steady pace whether there is one or not.

    It takes part in the same two cores, so it does as little as can be done: the bytes of each request are there
    before, and of an answer it reads how long it is, and whether it is one.
    """

    def __init__(self, messages: Iterator[bytes], end: float, times: list[float], every: float) -> None:
        self._messages, self._end, self._times, self._every = messages, end, times, every
        self._loop = asyncio.get_running_loop()
        self.over: asyncio.Future[None] = self._loop.create_future()
        self._got, self._wanted = b"", 0
        self._begin = time.perf_counter() + random.random() * every

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._go_on()

    def _go_on(self) -> None:
        now = time.perf_counter()
        if now >= self._end:
            self._transport.close()
        elif now < self._begin:
            self._loop.call_later(self._begin - now, self._ask)
        else:
            self._begin = self._begin if self._every else now
            self._ask()

    def _ask(self) -> None:
        self._transport.write(next(self._messages))

    def data_received(self, data: bytes) -> None:
        self._got += data
        if not self._wanted:
            head, found, _ = self._got.partition(b"\r\n\r\n")
            if not found:
                return
            self._wanted = len(head) + 4 + int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        if len(self._got) < self._wanted:
            return
        if not self._got.startswith(b"HTTP/1.1 200 ") or b'"isError":false' not in self._got:
            sys.exit(self._got.decode()[:500])
        self._times.append(time.perf_counter() - self._begin)
        self._got, self._wanted = b"", 0
        self._begin += self._every
        self._go_on()

    def connection_lost(self, error: Exception | None) -> None:
        self.over.set_result(None)


async def client(port: int, messages: Iterator[bytes], end: float, times: list[float], every: float = 0.0) -> None:
    made = partial(Client, messages, end, times, every)
    _, one = await asyncio.get_running_loop().create_connection(made, "127.0.0.1", port)
    await one.over


def searches() -> Iterator[bytes]:
    prepared = [request("search_memories", {"query": query, "limit": 10}) for query in QUERIES]
    while True:
        yield random.choice(prepared)


def remembered() -> Iterator[bytes]:
    """Notes that have little in common."""
    words = sorted({word for text in made_up(200) for word in text.split()})
    while True:
        text = " ".join(random.choices(words, k=30))
        yield request("remember", {"text": text, "title": f"{time.time()}"})


async def timers(end: float, late: list[float]) -> None:
    while (now := time.perf_counter()) < end:
        await asyncio.sleep(0.005)
        late.append(time.perf_counter() - now - 0.005)


def change_half(folder: Path) -> None:
    """Somebody adds a line to every other note."""
    for path in sorted(folder.glob(".memories/n/*/*.md"))[::2]:
        path.write_text(f"{path.read_text()}\nAdded at {time.time()}.\n")


def asked(
    side: Side, clients: int, writers: int, seconds: float, pace: float, changing: Callable[[Path], None] | None = None
) -> Asked:
    searched: list[float] = []
    wrote: list[float] = []
    late: list[float] = []

    async def all_clients() -> None:
        end = time.perf_counter() + seconds
        every = clients / pace if pace else 0.0
        reading = [client(side.port, searches(), end, searched, every) for _ in range(clients)]
        writing = [client(side.port, remembered(), end, wrote) for _ in range(writers)]
        changes = [asyncio.to_thread(changing, side.folder)] if changing else []
        await asyncio.gather(timers(end, late), *reading, *writing, *changes)

    began = time.perf_counter(), cpu_of_tree(side.process.pid), time.process_time(), cpu_of_all()
    asyncio.run(all_clients())
    ended = time.perf_counter(), cpu_of_tree(side.process.pid), time.process_time(), cpu_of_all()
    took, server, own, everything = (after - before for before, after in zip(began, ended, strict=True))
    return Asked(searched, wrote, late, took, server, own, max(everything - server - own, 0.0))


def cpu_of_all() -> float:
    """The CPU seconds that the cores have worked."""
    user, nice, system = map(int, Path("/proc/stat").read_text().split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


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


def serving(folder: Path, options: Sequence[str] = (), source: str = "") -> Side:
    """A server that answers, perhaps one of another version's source."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [MEMLANE, "--bank", str(folder), "mcp", "--http", "--port", str(port), *options]
    env = {**os.environ, "PYTHONPATH": source} if source else None
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=env)
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            time.sleep(0.1)
    return Side(server, port, folder)


def load(
    folder: Path, texts: list[str], notes: int, seconds: float, beside: str, only: str, paces: Sequence[float]
) -> None:
    heads = ["clients", "server", "searches/s", "p50", "p95", "writes/s", "write p95", "CPU of the server"]
    print(f"| {' | '.join([*heads, 'of the clients', 'lag', 'others'])} |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    kinds: dict[str, tuple[list[str], str]] = {"now": ([], ""), "without readers": (["--readers", "0"], "")}
    if beside:
        kinds = {"before": ([], beside), "now": ([], "")}
    sides: dict[str, Side] = {}
    try:
        for number, (name, (options, source)) in enumerate(kinds.items()):
            place = folder / str(number)
            place.mkdir()
            Bank.init(place).close()
            write_notes(place / ".memories/n", texts, notes)
            with Bank.open(place) as bank:
                bank.index.refresh(force=True)
            sides[name] = serving(place, options, source)
            asked(sides[name], 8, 0, 15.0, 50.0)  # until the readers are up, with the index in their memory
        for clients, writers, pace in (
            *((n, w, 0.0) for w in (0, 2) for n in (1, 8, 32)),
            *((32, w, pace) for pace in paces for w in (0, 2)),
        ):
            who = f"{clients}{f' at {pace:.0f}/s' if pace else ''}{' and 2 writers' if writers else ''}"
            for name, side in sides.items() if only in who else ():
                print(
                    f"| {' | '.join([who, name, *cells(asked(side, clients, writers, seconds, pace))])} |", flush=True
                )
        who = "32 at 20/s, half of the files change"
        for name, side in sides.items() if only in who else ():
            found = asked(side, 32, 0, max(seconds, 15.0), 20.0, change_half)
            print(f"| {' | '.join([who, name, *cells(found)])} |", flush=True)
        for name, side in sides.items():
            print(f"\n{name}: {memory_of_tree(side.process.pid) / 1024:.0f} MB of memory, readers included")
    finally:
        for side in sides.values():
            side.process.terminate()
            side.process.wait()


def cells(found: Asked) -> list[str]:
    calls = max(len(found.searches) + len(found.writes), 1)
    wrote = [f"{len(found.writes) / found.took:.0f}", milliseconds(found.writes, 0.95)] if found.writes else ["", ""]
    return [
        f"{len(found.searches) / found.took:.0f}", milliseconds(found.searches, 0.5),
        milliseconds(found.searches, 0.95), *wrote, f"{found.server * 1000 / calls:.1f} ms/call",
        f"{found.clients * 1000 / calls:.1f} ms/call", milliseconds(found.late, 0.95),
        f"{found.others / found.took:.1f}",
    ]  # fmt: skip


def memory_of_tree(pid: int) -> int:
    """The KB of memory of a process and of those that it has started; what they share counts once."""
    total = 0
    try:
        fields = dict(line.split()[:2] for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
        total += int(fields["Pss:"])
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += sum(map(memory_of_tree, map(int, (task / "children").read_text().split())))
    except OSError:
        pass
    return total


def milliseconds(times: list[float], part: float) -> str:
    return f"{sorted(times)[int(part * len(times))] * 1000:.0f} ms" if times else "none"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--load", action="store_true")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--beside", default="", help="the folder `src` of another version")
    parser.add_argument("--paces", type=float, nargs="*", default=(100.0, 200.0))
    parser.add_argument("--only", default="", help="the rows whose name has this text")
    options = parser.parse_args()
    if options.load:
        with tempfile.TemporaryDirectory() as name:
            texts = paragraphs(options.data) if options.data else made_up()
            load(Path(name), texts, options.notes, options.seconds, options.beside, options.only, options.paces)
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
