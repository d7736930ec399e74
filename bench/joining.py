"""What it costs to found a shared bank, to join it, and to sync when nothing has changed: through each kind of remote.

    python bench/joining.py [--data FOLDER] [--notes 20000] [--latency 20] [--kinds folder postgres s3] [--place FOLDER]
                            [--beside SRC]

A bank of notes is sent to a remote, a new member fetches it and builds its index; then both sync again, and a search is
asked of the new member. Each step is a process of its own, so that its CPU (with that of the processes which helped),
its time and its peak memory can be told apart from those of the servers: PostgreSQL as the system has it, and an object
store that does no more than it must. Every request to one of them takes --latency milliseconds longer than it would.
FOLDER holds the archives of notes that bench/search.py reads; without it the notes are made up. With `--beside`, the
folder `src` of another version, that one does each step in the same turn, with a remote of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qsl, quote, unquote
from xml.sax.saxutils import escape

from search import QUERIES, made_up, paragraphs, peak_memory, write_notes

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
STEPS = ("found", "join", "index", "again", "status", "search")


# -- the steps


def step(name: str, folder: Path, url: str) -> dict[str, float]:
    """Do one step; the CPU and time that it took, and the memory that the process needed."""
    from memlane import Bank
    from memlane.care import sync

    bank = Bank.init(folder) if name in ("make", "join") else Bank.open(folder)
    with closing(bank):
        if name in ("found", "join"):
            sync.add(bank, "team", url)
        calls: dict[str, Callable[[], Any]] = {
            "index": lambda: bank.index.refresh(force=True),
            "status": lambda: sync.status(bank),
            "search": lambda: bank.search(QUERIES[0]),
            "make": lambda: None,
        }
        before, began = used(), time.monotonic()
        found = calls.get(name, lambda: sync.sync(bank, "team"))()
        took = time.monotonic() - began
        if name == "join" and found[0].received < len(list(Path(bank.root).rglob("*.md"))):
            raise SystemExit(f"not all of it came: {found}")
        return {"cpu": used() - before, "wall": took, "memory": peak_memory()}


def used() -> float:
    """CPU seconds of this process and of those that it has waited for."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both)


def in_process(name: str, folder: Path, url: str, home: Path, source: str = "") -> dict[str, float]:
    home.mkdir(exist_ok=True)
    command = [sys.executable, __file__, "--step", name, "--place", str(folder), "--url", url]
    env = {**os.environ, "HOME": str(home), **({"PYTHONPATH": source} if source else {})}
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=env)
    cost: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return cost


# -- the servers, each in a process of its own


class Store(BaseHTTPRequestHandler):
    """As much of an object store as is asked for: moto takes longer over a request than the way to most stores."""

    protocol_version = "HTTP/1.1"
    objects: ClassVar[dict[str, tuple[bytes, str, dict[str, str]]]] = {}
    alone = threading.Lock()
    latency = 0.0

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def answer(self, status: int, content: bytes = b"", **headers: str) -> None:
        self.send_response_only(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def refuse(self, status: int, code: str) -> None:
        self.answer(status, f"<Error><Code>{code}</Code></Error>".encode())

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(self.latency)
        tag = f'"{hashlib.md5(content).hexdigest()}"'
        said = {name: value for name, value in self.headers.items() if name.lower().startswith("x-amz-meta-")}
        with self.alone:
            known = self.objects.get(self.path)
            expected = self.headers.get("If-Match")
            if (self.headers.get("If-None-Match") and known) or (expected and (known is None or known[1] != expected)):
                return self.refuse(412, "PreconditionFailed")
            self.objects[self.path] = content, tag, said
        return self.answer(200, ETag=tag)

    def do_GET(self) -> None:
        time.sleep(self.latency)
        path, _, query = self.path.partition("?")
        asked = dict(parse_qsl(query))
        if "list-type" in asked:
            return self.list(asked)
        if "versioning" in self.path:
            return self.answer(200, b"<VersioningConfiguration/>")
        if path not in self.objects:
            return self.refuse(404, "NoSuchKey")
        content, tag, said = self.objects[path]
        return self.answer(200, content, ETag=tag, **said)

    def list(self, asked: dict[str, str]) -> None:
        with self.alone:
            keys = sorted(unquote(path).split("/", 2)[2] for path in self.objects)
        after = asked.get("continuation-token", "")
        keys = [key for key in keys if key.startswith(asked.get("prefix", "")) and key > after]
        page, more = keys[:1000], len(keys) > 1000
        listed = "".join(
            f"<Contents><Key>{key}</Key><ETag>{escape(tag)}</ETag><Size>{len(content)}</Size></Contents>"
            for key in page
            for content, tag, _ in [self.objects[f"/memory/{quote(key)}"]]
        )
        token = f"<NextContinuationToken>{page[-1]}</NextContinuationToken>" if more else ""
        top = f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{listed}"
        self.answer(200, f"<ListBucketResult>{top}</ListBucketResult>".encode())

    def do_DELETE(self) -> None:
        self.objects.pop(self.path, None)
        self.answer(204)


def serve_store(latency: float) -> None:
    """An object store, until it is told to end."""
    Store.latency = latency
    server = ThreadingHTTPServer(("127.0.0.1", 0), Store)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    sys.stdin.read()


def serve_line(port: int, latency: float) -> None:
    """A way to a server on which each request takes longer, until it is told to end."""
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)

    def carry(source: socket.socket, target: socket.socket, asked: threading.Event, *, asks: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 18):
                if asks and not asked.is_set():
                    asked.set()  # the rest of a request comes right after its beginning
                    time.sleep(latency)
                elif not asks:
                    asked.clear()
                target.sendall(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        while True:
            client, _ = listening.accept()
            server = socket.create_connection(("127.0.0.1", port))
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            asked = threading.Event()
            for source, target, asks in ((client, server, True), (server, client, False)):
                threading.Thread(target=carry, args=(source, target, asked), kwargs={"asks": asks}, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()


@contextmanager
def serving(*words: str) -> Iterator[str]:
    """What one of the servers above says first."""
    command = [sys.executable, __file__, "--serve", *words]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdin
    assert server.stdout
    try:
        yield server.stdout.readline().strip()
    finally:
        server.stdin.close()
        server.wait()


@contextmanager
def remote(kind: str, place: Path, latency: float) -> Iterator[str]:
    """The address of a remote of a kind, with nothing in it."""
    from remote_servers import KEYS, Cluster, s3_url  # type: ignore[import-not-found]

    with ExitStack() as open:
        if kind == "folder":
            (place / "drive").mkdir()
            yield str(place / "drive")
        elif kind == "postgres":
            data = Path(tempfile.mkdtemp(prefix="memlane-pg-"))
            open.callback(shutil.rmtree, data, ignore_errors=True)
            cluster = Cluster(data)
            open.callback(cluster.stop)
            port = open.enter_context(serving("line", str(cluster.port), str(latency)))
            yield cluster.url(port=int(port))
        else:
            os.environ.update(KEYS)
            yield s3_url(open.enter_context(serving("store", str(latency))), "memory")


# -- all of it


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path)
    parser.add_argument("--notes", type=int, default=20_000)
    parser.add_argument("--latency", type=float, default=20.0, help="milliseconds")
    parser.add_argument("--kinds", nargs="+", default=["folder", "postgres", "s3"])
    parser.add_argument("--place", type=Path)
    parser.add_argument("--beside", default="", help="the folder `src` of another version")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--serve", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        kind, *rest = options.serve
        serve_store(float(rest[0])) if kind == "store" else serve_line(int(rest[0]), float(rest[1]))
        return
    if options.step:
        print(json.dumps(step(options.step, options.place, options.url)))
        return
    print(f"{options.notes:,} notes; PostgreSQL and the object store are {options.latency:.0f} ms away")
    sides = (options.beside, "") if options.beside else ("",)
    heads = ["before: CPU", "time", "peak memory", "now: CPU"] if options.beside else ["CPU"]
    print(f"\n| remote | step | {' | '.join([*heads, 'time', 'peak memory'])} |")
    print(f"|---|---{'|--:' * 3 * len(sides)}|")
    texts = paragraphs(options.data) if options.data else made_up()
    for kind in options.kinds:
        with ExitStack() as open:
            banks = [open.enter_context(founded(kind, options, texts, source)) for source in sides]
            for name in STEPS:
                said = ""
                for place, url, source in banks:
                    who = place / ("founder" if name == "found" else "member")
                    cost = in_process(name, who, url, place / f"home-{who.name}", source)
                    said += f" | {cost['cpu']:.1f} s | {cost['wall']:.1f} s | {cost['memory']:.0f} MB"
                print(f"| {kind} | {name}{said} |", flush=True)


@contextmanager
def founded(
    kind: str, options: argparse.Namespace, texts: list[str], source: str
) -> Iterator[tuple[Path, str, str]]:  # fmt: skip
    """A place with a founder's bank of notes and an empty one of a member, the address of a remote, and the version."""
    with tempfile.TemporaryDirectory(dir=options.place) as top:
        place = Path(top)
        for name in ("founder", "member"):
            (place / name).mkdir()
        in_process("make", place / "founder", "", place / "home-founder", source)
        write_notes(place / "founder/.memories/made", texts, options.notes)
        with remote(kind, place, options.latency / 1000) as url:
            yield place, url, source


if __name__ == "__main__":
    main()
