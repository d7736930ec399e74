"""One of the eight processes of torture.py: random verbs on one bank, through Python, the command line or MCP.

    python torturing.py PLACE NUMBER SURFACE GENERATION SEED

It writes into its journal, outside of the bank, what it is about to do, and then what became of it; each line is
synced before the next step. Whoever reads the journal of a killed process knows of every operation whether it was
acknowledged, refused, or left open. Every text begins and ends with a mark of its own.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import resource
import select
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from samples import words

MEMLANE = str(Path(sys.executable).parent / "memlane")
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
OPEN, ALIVE, GONE = "open", "alive", "gone"
MOST = 60  # memories that one process keeps: the run is bounded in size
ANSWER_WITHIN = 120.0  # seconds; a server that takes longer hangs


# -- texts


def mark(worker: int, number: int) -> tuple[str, str]:
    """What the text of an operation begins and ends with."""
    return f"mark{worker}z{number}a", f"mark{worker}z{number}b"


def text_of(worker: int, number: int) -> str:
    first, last = mark(worker, number)
    return f"{first} {words((worker, number), 8)} {last}"


def secret_of(worker: int, number: int) -> str:
    """A token that the scanner knows by its checksum, the same for the same numbers. Nobody ever issued it."""
    import zlib

    dice = random.Random(f"secret {worker} {number}")
    body = "".join(dice.choice(_BASE62) for _ in range(30))
    rest, digits = zlib.crc32(body.encode()), ""
    while rest:
        rest, digit = divmod(rest, 62)
        digits = _BASE62[digit] + digits
    return "ghp_" + body + digits.rjust(6, "0")


# -- what a surface can answer


class No(Exception):
    """The bank said no. `code` is that of the error."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


class Broken(Exception):
    """Something that must never happen: a traceback, a hang, an answer that is none."""


FULL = ("disk_full", "storage")  # codes of a disk that takes no more


# -- the journal


@dataclass(slots=True)
class Item:
    """What a process knows of one memory of its own: the marks that its text must have, and those it may not."""

    lane: str
    state: str
    marks: list[int]
    old: list[int] = field(default_factory=list)
    pending: dict[str, Any] | None = None  # the operation that was not acknowledged


@dataclass(slots=True)
class Journal:
    """A worker's operations so far, read from its file."""

    worker: int
    items: dict[str, Item] = field(default_factory=dict)
    shared: list[int] = field(default_factory=list)  # numbers of acknowledged additions to what all share
    secrets: list[int] = field(default_factory=list)
    leaked: list[int] = field(default_factory=list)  # secrets that were taken
    adding: list[dict[str, Any]] = field(default_factory=list)  # additions without an answer
    broken: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    last: int = 0

    def take(self, line: dict[str, Any], open: dict[int, dict[str, Any]]) -> None:
        if "said" not in line:
            open[line["n"]] = line
            self.last = max(self.last, line["n"])
            return
        asked = open.pop(line["n"])
        key = f"{asked['surface']} {asked['verb']} {line['said']}"
        self.counts[key] = self.counts.get(key, 0) + 1
        if line["said"] == "broken":
            self.broken.append(f"{asked['surface']} {asked['verb']} {asked.get('lane', '')}: {line['why']}")
        if line["said"] == "done":
            self._done(asked, line.get("id"))
        else:
            self._failed(asked, line)

    def _done(self, asked: dict[str, Any], id: str | None) -> None:
        verb, number = asked["verb"], asked["n"]
        if verb == "secret":
            self.leaked.append(number)
        elif verb in ("share", "store", "capture"):
            self.shared.append(number)
        elif verb == "add" and id:
            self.items[id] = Item(asked["lane"], ALIVE, [number])
        elif verb == "merge" and id:
            for source in asked["ids"]:
                self.items[source].state = GONE
            self.items[id] = Item("notes", ALIVE, [number])
        elif verb in ("update", "append", "delete", "restore"):
            item = self.items.pop(asked["id"])
            if verb == "update":
                item.old, item.marks = [*item.old, *item.marks], [number]
            if verb == "append":
                item.marks.append(number)
            item.state = GONE if verb == "delete" else ALIVE
            self.items[id or asked["id"]] = item

    def _failed(self, asked: dict[str, Any], line: dict[str, Any]) -> None:
        """An operation without a yes: it may have happened, or not; nobody touches that memory again."""
        verb = asked["verb"]
        if verb == "secret":
            self.secrets.append(asked["n"])
        elif verb == "add":
            self.adding.append(asked)
        elif verb == "merge":
            for source in asked["ids"]:
                self.items[source].state, self.items[source].pending = OPEN, asked
            self.adding.append(asked)
        elif "id" in asked and asked["id"] in self.items and verb != "get":
            self.items[asked["id"]].state, self.items[asked["id"]].pending = OPEN, asked


def read_journal(path: Path, worker: int) -> Journal:
    """What a worker has done. What has no answer was cut off by a kill."""
    journal = Journal(worker)
    open: dict[int, dict[str, Any]] = {}
    if path.exists():
        for raw in path.read_bytes().splitlines():
            with suppress(ValueError):  # a line that the kill cut off
                journal.take(json.loads(raw), open)
    for asked in open.values():
        key = f"{asked['surface']} {asked['verb']} killed"
        journal.counts[key] = journal.counts.get(key, 0) + 1
        journal._failed(asked, {})
        if asked["verb"] in ("share", "store", "capture"):
            journal.adding.append(asked)
    return journal


# -- surfaces: each has the same verbs


class Python:
    def __init__(self, folder: Path) -> None:
        from memlane import Bank

        self.bank = Bank.open(folder)

    def ask(self, verb: str, limit: int | None, **a: Any) -> Any:
        from memlane import MemlaneError

        with _limited(limit):
            try:
                return getattr(self, verb)(**a)
            except MemlaneError as error:
                raise No(error.code, str(error)) from None

    def add(self, lane: str, text: str, title: str, fields: dict[str, str]) -> str:
        return self.bank.add(text, lane=lane, title=title, **fields).id

    def secret(self, **a: Any) -> str:
        return self.add(**a)

    def update(self, id: str, text: str) -> str:
        return self.bank.update(id, text=text).id

    def append(self, id: str, text: str) -> str:
        return self.bank.append(id, text).id

    def share(self, text: str) -> str:
        return self.append("notes:shared", text)

    def store(self, text: str, title: str) -> str:
        return self.bank.topics.store("shared/log", text, title=title).path and "topics:shared"

    def capture(self, text: str, title: str) -> str:
        when = datetime.now(UTC)
        return self.bank.records.create(text, subject=title, keywords=["shared"], occurred_at=when).id

    def delete(self, id: str) -> str:
        return self.bank.delete(id).id

    def restore(self, id: str) -> str:
        return self.bank.restore(id).id

    def merge(self, ids: list[str], name: str, text: str) -> str:
        return self.bank.notes.merge([id.removeprefix("notes:") for id in ids], name, text).id

    def get(self, id: str) -> str:
        return self.bank.get(id).text

    def search(self, query: str) -> None:
        self.bank.search(query)

    def list(self) -> None:
        self.bank.list(limit=20)

    def context(self, query: str) -> None:
        self.bank.context(query)

    def snapshot(self) -> None:
        self.bank.snapshot(recent=5)

    def stats(self) -> None:
        self.bank.stats()

    def suggest(self) -> None:
        self.bank.suggest_merges(type=None)

    def compact(self) -> None:
        self.bank.vault.compact()

    def fresh(self) -> None:
        self.bank.fresh()

    def end(self) -> None:
        self.bank.close()


class Cli:
    def __init__(self, folder: Path, keep: int) -> None:
        self.folder = folder
        self.keep = keep  # the file whose lock a command goes on holding when its parent is killed

    def ask(self, verb: str, limit: int | None, **a: Any) -> Any:
        self.limit = limit
        return getattr(self, verb)(**a)

    def _run(self, *args: str) -> Any:
        command = [MEMLANE, "--bank", str(self.folder), *args, "--json"]
        before = (lambda: _limit(self.limit)) if self.limit else None
        done = subprocess.run(command, capture_output=True, text=True, preexec_fn=before, pass_fds=[self.keep])
        if done.returncode == 0:
            try:
                return json.loads(done.stdout)
            except ValueError:
                raise Broken(f"{args[0]} printed no JSON") from None
        try:
            error = json.loads(done.stderr.splitlines()[-1])["error"]
        except (ValueError, KeyError, IndexError):
            raise Broken(f"exit {done.returncode}: {done.stderr[-1500:]}") from None
        raise No(error["code"], error["message"])

    def add(self, lane: str, text: str, title: str, fields: dict[str, str]) -> str:
        pairs = [word for name, value in fields.items() for word in ("--field", f"{name}={value}")]
        title_option = ["--title", title] if lane in ("notes", "topics", "records") else []
        return self._run("add", text, "--lane", lane, *title_option, *pairs)["id"]

    def secret(self, **a: Any) -> str:
        return self.add(**a)

    def update(self, id: str, text: str) -> str:
        return self._run("update", id, text)["id"]

    def append(self, id: str, text: str) -> str:
        return self._run("append", id, text)["id"]

    def share(self, text: str) -> str:
        return self.append("notes:shared", text)

    def store(self, text: str, title: str) -> str:
        return self._run("topics", "store", "shared/log", text, "--title", title) and "topics:shared"

    def capture(self, text: str, title: str) -> str:
        return self._run("records", "create", text, "--subject", title, "-k", "shared")["id"]

    def delete(self, id: str) -> str:
        return self._run("rm", id)[0]["id"]

    def restore(self, id: str) -> str:
        return self._run("restore", id)["id"]

    def merge(self, ids: list[str], name: str, text: str) -> str:
        return self._run("merge", *ids, "--into", name, "--text", text)["id"]

    def get(self, id: str) -> str:
        return self._run("get", id)["text"]

    def search(self, query: str) -> None:
        self._run("search", query)

    def list(self) -> None:
        self._run("list", "-n", "20")

    def context(self, query: str) -> None:
        self._run("context", query)

    def snapshot(self) -> None:
        self._run("context")

    def stats(self) -> None:
        self._run("stats")

    def suggest(self) -> None:
        self._run("review", "--only", "similar")

    def compact(self) -> None:
        self._run("vault", "compact")

    def fresh(self) -> None:
        self._run("review", "--only", "drifted", "--show")

    def end(self) -> None:
        pass


class Mcp:
    """A server of its own, spoken to over pipes. What it has no tool for is not asked."""

    LACKS = frozenset({"restore", "snapshot", "list", "fresh"})

    def __init__(self, folder: Path, keep: int, errors: Path) -> None:
        with open(errors, "ab") as log:
            self.server = subprocess.Popen(
                [MEMLANE, "--bank", str(folder), "mcp"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, pass_fds=[keep],
            )  # fmt: skip
        self.number = 0
        self.buffer = b""
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "torture", "version": "1"}}
        self._request("initialize", hello)
        self._send({"method": "notifications/initialized"})

    def _send(self, message: dict[str, Any]) -> None:
        try:
            os.write(self.server.stdin.fileno(), json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        except BrokenPipeError:
            raise Broken("the server is gone") from None

    def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        self._send({"id": self.number, "method": method, "params": params})
        while True:
            line, end, rest = self.buffer.partition(b"\n")
            if end:
                self.buffer = rest
                answer = json.loads(line)
                if answer.get("id") == self.number:
                    return answer
                continue
            if not select.select([self.server.stdout], [], [], ANSWER_WITHIN)[0]:
                raise Broken(f"no answer to {method}")
            chunk = os.read(self.server.stdout.fileno(), 1 << 20)
            if not chunk:
                raise Broken("the server is gone")
            self.buffer += chunk

    def ask(self, verb: str, limit: int | None, **a: Any) -> Any:
        if limit:
            resource.prlimit(self.server.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        try:
            return getattr(self, verb)(**a)
        finally:
            if limit:
                with suppress(ProcessLookupError):
                    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
                    resource.prlimit(self.server.pid, resource.RLIMIT_FSIZE, unlimited)

    def _tool(self, name: str, **arguments: Any) -> Any:
        answer = self._request("tools/call", {"name": name, "arguments": arguments})
        if "error" in answer:
            raise Broken(f"{name}: {answer['error']}")
        result = answer["result"]
        if result.get("isError"):
            why = result["content"][0]["text"]
            if "failed inside memlane" in why:
                raise Broken(f"{name}: {why}")
            raise No(_code(why), why)
        return result["structuredContent"]

    def add(self, lane: str, text: str, title: str, fields: dict[str, str]) -> str:
        if lane == "layers":
            entry = {"project_name": fields["project"], "file_type": fields["file_type"], "content": text}
            return "layers:" + self._tool("layers_create", layer="shared-project", **entry)["id"]
        extra = {"topic_id": f"{fields['topic']}/{fields['subtopic']}"} if lane == "topics" else {}
        return self._tool("remember", text=text, lane=lane, title=title, **extra)["id"]

    def secret(self, **a: Any) -> str:
        return self.add(**a)

    def update(self, id: str, text: str) -> str:
        lane, _, native = id.partition(":")
        if lane == "notes":
            self._tool("update_memory", filename=f"{native}.md", content=text)
        else:
            self._tool(f"{lane}_update{'_memory' * (lane == 'vault')}", id=native, **_named(lane, text))
        return id

    def append(self, id: str, text: str) -> str:
        lane, _, native = id.partition(":")
        if lane == "notes":
            self._tool("append_memory", filename=f"{native}.md", content=text)
        else:
            self._tool("layers_append", id=native, content=text)
        return id

    def share(self, text: str) -> str:
        return self.append("notes:shared", text)

    def store(self, text: str, title: str) -> str:
        return self._tool("topics_store", topic="shared/log", content=text, title=title) and "topics:shared"

    def capture(self, text: str, title: str) -> str:
        return self._tool("records_create", content=text, subject=title, keywords=["shared"])["id"]

    def delete(self, id: str) -> str:
        lane, _, native = id.partition(":")
        if lane == "notes":
            self._tool("delete_memory", filename=f"{native}.md")
        else:
            self._tool(f"{lane}_delete{'_memory' * (lane == 'vault')}", id=native)
        return id

    def merge(self, ids: list[str], name: str, text: str) -> str:
        sources = [f"{id.removeprefix('notes:')}.md" for id in ids]
        self._tool("merge_memories", source_files=sources, target_file=f"{name}.md", summary_content=text)
        return f"notes:{name}"

    def get(self, id: str) -> str:
        lane, _, native = id.partition(":")
        if lane == "records":
            return self._tool("records_get", id=native)["content"]
        return self._tool("read_memory", filename=f"{native}.md", limit=1_000_000_000)["content"]

    def search(self, query: str) -> None:
        self._tool("search_memories", query=query)

    def context(self, query: str) -> None:
        self._tool("recall", query=query)

    def stats(self) -> None:
        self._tool("get_memory_stats")

    def suggest(self) -> None:
        self._tool("suggest_memory_merges", filter_type=None)

    def compact(self) -> None:
        self._tool("vault_compact")

    def end(self) -> None:
        self.server.stdin.close()


def _named(lane: str, text: str) -> dict[str, str]:
    return {"text": text} if lane == "vault" else {"content": text}


def _code(why: str) -> str:
    """A tool's error is a sentence; what it means."""
    if "disk is full" in why:
        return "disk_full"
    if "File too large" in why or "The index cannot be used" in why:
        return "storage"
    return "other"


def _limit(size: int | None) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size or resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@contextmanager
def _limited(size: int | None) -> Iterator[None]:
    """No file may grow beyond `size` meanwhile: what a quota or a full disk does to a write."""
    if size:
        _limit(size)
    try:
        yield
    finally:
        if size:
            _limit(None)


# -- the work


class Worker:
    def __init__(self, place: Path, number: int, surface: str, dice: random.Random) -> None:
        self.number, self.surface, self.dice = number, surface, dice
        self.path = place / "journals" / f"{number}.jsonl"
        self.journal = read_journal(self.path, number)
        self.log = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(self.log, b"\n")  # closes a line that a kill cut off
        self.turn = os.open(place / "turn.lock", os.O_RDWR | os.O_CREAT, 0o600)
        self.quiet = os.open(place / "quiet.lock", os.O_RDWR | os.O_CREAT, 0o600)
        folder = place / "disk" / "project"
        self.bank: Any = {
            "python": lambda: Python(folder),
            "cli": lambda: Cli(folder, self.quiet),
            "mcp": lambda: Mcp(folder, self.quiet, place / "journals" / f"{number}.stderr"),
        }[surface]()

    def write(self, line: dict[str, Any]) -> None:
        os.write(self.log, json.dumps(line).encode() + b"\n")
        os.fsync(self.log)

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """git does not know the bank's locks: whoever rewrites the work tree waits for the end of what is written."""
        fcntl.flock(self.turn, fcntl.LOCK_SH)
        fcntl.flock(self.quiet, fcntl.LOCK_SH)
        fcntl.flock(self.turn, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self.quiet, fcntl.LOCK_UN)

    def step(self) -> None:
        plan = self.plan()
        number = self.journal.last + 1
        verb = plan["verb"]
        arguments = self.arguments(plan, number)
        asked = {"n": number, "surface": self.surface, **plan}
        limit = self.dice.choice((64, 600, 5_000)) if self.dice.random() < 0.03 else None
        self.write(asked)
        open_ = {number: asked}
        self.journal.last = number
        answer: dict[str, Any] = {"n": number}
        try:
            with nullcontext() if verb in FREE else self.undisturbed():
                found = self.bank.ask(verb, limit, **arguments)
            answer |= {"said": "done", "id": found} if verb != "get" else {"said": self.seen(plan["id"], found)}
        except No as no:
            answer |= self.refused(plan, no, limit)
        except Broken as error:
            answer |= {"said": "broken", "why": str(error)}
        except Exception:
            answer |= {"said": "broken", "why": traceback.format_exc()[-3000:]}
        self.write(answer)
        self.journal.take(answer, open_)
        if answer["said"] == "broken" and self.surface == "mcp" and self.bank.server.poll() is not None:
            sys.exit(1)

    def seen(self, id: str, text: str) -> str:
        """Whoever has written reads what he wrote."""
        item = self.journal.items[id]
        for number in item.marks:
            for word in mark(self.number, number):
                if word not in text:
                    raise Broken(f"{id} was read without {word}")
        return "done"

    def refused(self, plan: dict[str, Any], no: No, limit: int | None) -> dict[str, Any]:
        if plan["verb"] == "secret":
            return {"said": "refused"}
        if no.code in FULL:
            return {"said": "no space"}
        item = self.journal.items.get(plan.get("id", ""))
        if no.code == "not_found" and plan["verb"] == "restore" and item and item.lane == "vault":
            return {"said": "compacted"}  # compacting the vault takes what was deleted
        if item and item.lane == "topics" and "is archived" in str(no):
            return {"said": "archived"}  # newer entries have taken its place; it is not changed in the archive
        return {"said": "broken", "why": f"{no.code}: {no}"}

    # -- what to do next

    def plan(self) -> dict[str, Any]:
        items, dice = self.journal.items, self.dice
        alive = [id for id, item in items.items() if item.state == ALIVE]
        mine = [id for id in alive if self.surface != "mcp" or items[id].lane in ("notes", "vault", "layers")]
        appendable = [
            id for id in mine
            if len(items[id].marks) < 5 and (items[id].lane in ("notes", "layers") or self.surface != "mcp")
        ]  # fmt: skip
        readable = [id for id in alive if self.surface != "mcp" or items[id].lane in ("notes", "records")]
        gone = [id for id, item in items.items() if item.state == GONE]
        merging = [id for id in alive if items[id].lane == "notes"]
        lacking = getattr(self.bank, "LACKS", frozenset())
        while True:
            verb = dice.choices(list(VERBS), list(VERBS.values()))[0]
            if verb in lacking or (verb == "add" and len(alive) >= MOST):
                continue
            if verb in ("add", "secret"):
                return {"verb": verb, "lane": dice.choice(("notes", "vault", "topics", "records", "layers"))}
            fitting = {"update": mine, "append": appendable, "delete": mine, "get": readable, "restore": gone}
            if verb in fitting:
                if not fitting[verb] or (verb == "delete" and len(alive) < 10):
                    continue
                id = dice.choice(fitting[verb])
                return {"verb": verb, "id": id, "lane": items[id].lane}
            if verb == "merge":
                if len(merging) < 6:
                    continue
                return {"verb": verb, "ids": dice.sample(merging, 2)}
            return {"verb": verb}

    def arguments(self, plan: dict[str, Any], number: int) -> dict[str, Any]:
        verb, text = plan["verb"], text_of(self.number, number)
        title = f"Title {words(('title', self.number, number), 2)}"
        if verb in ("add", "secret"):
            fields = (
                {"topic": f"worker{self.number}", "subtopic": f"part{number % 3}"} if plan["lane"] == "topics" else {}
            )
            if plan["lane"] == "layers":
                fields = {"project": f"worker{self.number}n{number}", "file_type": "common_patterns"}
            if verb == "secret":
                text = f"{text} {secret_of(self.number, number)}"
            return {"lane": plan["lane"], "text": text, "title": title, "fields": fields}
        if verb in ("update", "append"):
            return {"id": plan["id"], "text": text}
        if verb in ("get", "delete", "restore"):
            return {"id": plan["id"]}
        if verb == "merge":
            return {"ids": plan["ids"], "name": f"merged-{self.number}-{number}", "text": text}
        if verb in ("search", "context"):
            return {"query": words((self.number, self.dice.randint(1, number)), 2)}
        if verb in ("store", "capture"):
            return {"text": text, "title": title}
        return {"text": text} if verb == "share" else {}


VERBS = {
    "add": 24, "update": 12, "append": 10, "delete": 8, "restore": 4, "merge": 2, "share": 5, "store": 4, "capture": 3,
    "secret": 5, "get": 8, "search": 8, "list": 2, "context": 4, "snapshot": 2, "stats": 1, "suggest": 1, "compact": 1,
    "fresh": 1,
}  # fmt: skip
FREE = frozenset({"search", "list", "context", "snapshot", "stats", "suggest", "fresh"})


def main() -> None:
    place, number, surface, generation, seed = sys.argv[1:6]
    os.nice(5)  # who tortures comes first
    worker = Worker(Path(place), int(number), surface, random.Random(f"{seed} {number} {generation}"))
    while True:
        worker.step()


if __name__ == "__main__":
    main()
