"""A running MCP server, a stopped lock holder, and an index that is damaged under it.

    python tests/torture_server.py [--patience 20]

First a process takes the lock of a note and of the vault and is stopped with SIGSTOP: the server has to answer a write
to them within the patience, with yes or with a sentence, and every read meanwhile. Then the index is deleted, cut short
and overwritten, whole and in parts, under a server: it must go on answering, and find what it is asked to remember.
Prints a table and ends with exit code 1 on a finding. The server speaks over pipes; nothing touches the network.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torturing
from samples import words
from torture import environment
from torturing import MEMLANE, Broken, Mcp, No

HOLD = """
import fcntl, sys, time
file = open(sys.argv[1], "rb")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)
"""
CONFIG = '\n[mcp]\ntoolsets = ["vault", "topics", "layers", "records"]\n'


def delete_all(index: Path) -> None:
    shutil.rmtree(index.parent)


def delete_one(index: Path) -> None:
    index.unlink(missing_ok=True)


def cut(index: Path) -> None:
    if index.exists():
        os.truncate(index, index.stat().st_size // 2)


def empty(index: Path) -> None:
    if index.exists():
        os.truncate(index, 0)


def overwrite(index: Path) -> None:
    if index.exists():
        with open(index, "r+b") as file:
            file.write(b"garbage " * 4096)


def replace(index: Path) -> None:
    index.parent.mkdir(exist_ok=True)
    spare = index.with_name("spare")
    spare.write_bytes(b"not a database")
    os.replace(spare, index)


DAMAGE: tuple[tuple[str, Callable[[Path], None]], ...] = (
    ("index.db", delete_all), ("index.db", delete_one), ("index.db-wal", delete_one), ("index.db-shm", delete_one),
    ("index.db", cut), ("index.db", empty), ("index.db", overwrite), ("index.db", replace), ("index.db-wal", cut),
    ("index.db-wal", empty), ("index.db-wal", overwrite),
)  # fmt: skip


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Somebody has the lock of a file, and does not move."""
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        holder.send_signal(signal.SIGSTOP)
        yield
    finally:
        holder.kill()
        holder.wait()


def index_of(project: Path) -> Path:
    """Where the index of this bank lies: beside the memories, or in the user's cache."""
    places = (project / ".memories", *(Path(os.environ["HOME"]).rglob("index.db")))
    found = [path for place in places for path in ([place] if place.is_file() else place.rglob("index.db"))]
    return found[0] if found else project / ".memories/indices/index.db"


class Trial:
    def __init__(self, project: Path, log: Path) -> None:
        self.project, self.log, self.findings, self.tried = project, log, list[str](), 0
        self.start()

    def start(self) -> None:
        keep = os.open(os.devnull, os.O_RDONLY)
        self.mcp = Mcp(self.project, keep, self.log)
        os.close(keep)

    def stop(self) -> None:
        self.mcp.server.kill()
        self.mcp.server.wait()

    def ask(self, what: str, call: Callable[[], object]) -> object:
        """A call that must be answered: with yes, or with a sentence. A server that is not well is started anew."""
        begin = time.monotonic()
        self.tried += 1
        answer: object = None
        verdict = ""
        try:
            answer, verdict = call(), "done"
        except No as no:
            verdict = f"said no: {str(no).splitlines()[0][:90]}"
        except (Broken, BrokenPipeError) as error:
            verdict = f"BROKEN: {str(error)[:120]}"
            self.findings.append(f"{what}: {error}")
            self.stop()
            self.start()
        print(f"{what:<58} {time.monotonic() - begin:5.1f} s  {verdict}", flush=True)
        return answer

    def locks(self) -> None:
        first = self.project / ".memories/first.md"
        with held(first):
            self.ask("append to a note whose lock is held", lambda: self.mcp.append("notes:first", "More."))
            self.ask("search, after that", lambda: self.mcp.search("lantern"))
            self.ask("read that note", lambda: self.mcp.get("notes:first"))
        self.ask("append, the holder gone", lambda: self.mcp.append("notes:first", "More at last."))
        with held(self.project / ".memories/vault.jsonl"):
            self.ask("compact the vault whose lock is held", self.mcp.compact)
            self.ask("search, after that", lambda: self.mcp.search("lantern"))

    def index(self) -> None:
        for number, (name, damage) in enumerate(DAMAGE):
            self.stop()  # a server that lives on with a deleted index would not see the next damage
            self.start()
            self.ask("search, so that there is an index", lambda: self.mcp.search("lantern"))
            damage(index_of(self.project).with_name(name))
            what = f"{name}: {damage.__name__.replace('_', ' ')}"
            text = words(("server", number), 6)
            added = self.ask(f"{what}: remember", lambda t=text, n=number: self.mcp.add("notes", t, f"after {n}", {}))
            found = self.ask(f"{what}: search", lambda t=text: self.mcp._tool("search_memories", query=t))
            if found is None:
                found = self.ask(f"{what}: search again", lambda t=text: self.mcp._tool("search_memories", query=t))
            if found is None:
                self.findings.append(f"{what}: two searches in a row found nothing out")
            elif added and text.split()[0] not in repr(found) and f"after-{number}" not in repr(found):
                self.findings.append(f"{what}: what was remembered is not found")


def main() -> None:
    parser = argparse.ArgumentParser(description="Stopped lock holders and a damaged index under a running server.")
    parser.add_argument("--patience", type=float, default=20.0, help="seconds within which the server has to answer")
    chosen = parser.parse_args()
    torturing.ANSWER_WITHIN = chosen.patience
    place = Path(tempfile.mkdtemp(prefix="memlane-server-"))
    surroundings = environment(place / "home")
    os.environ.clear()
    os.environ.update(surroundings)
    project = place / "project"
    try:
        for folder in (project, place / "home"):
            folder.mkdir()
        subprocess.run([MEMLANE, "init"], cwd=project, check=True, capture_output=True)
        (project / "memlane.toml").write_text((project / "memlane.toml").read_text() + CONFIG)
        for command in (
            ("trust", "--yes"),
            ("add", "The lantern hums.", "--title", "first"),
            ("vault", "add", "It stays."),
        ):
            subprocess.run([MEMLANE, *command], cwd=project, check=True, capture_output=True)
        trial = Trial(project, place / "server.log")
        try:
            trial.locks()
            trial.index()
        finally:
            trial.stop()
        missing = [number for number in range(len(DAMAGE)) if not (project / f".memories/after-{number}.md").exists()]
        trial.findings += [f"note {number} is not there" for number in missing]
    finally:
        shutil.rmtree(place, ignore_errors=True)
    print(
        *(f"finding: {why}" for why in trial.findings), f"{trial.tried} calls, {len(trial.findings)} findings", sep="\n"
    )
    sys.exit(1 if trial.findings else 0)


if __name__ == "__main__":
    main()
