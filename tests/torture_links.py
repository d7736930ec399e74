"""The link matrix: a link at every name of a bank, of every kind, under every command.

    python tests/torture_links.py --seconds 120 [--seed 1] [--only NAME] [--all]

The home folder is full of canaries. Whatever a bank's links point to, no command may change, delete or create anything
there, print what stands there, hang, or end in a traceback. Prints a table of findings and ends with exit code 1 when
there is one. The cases are shuffled, and those that the seconds did not suffice for are counted; --all takes its time.
Everything lies in a temporary folder. Commands run in forked processes, which saves most of their start.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

KINDS = ("file", "folder", "dangling", "fifo", "zero")
PATIENCE = 60.0  # seconds for one command on a bank of twenty files, on a machine that may be busy
FIXED = (
    "memlane.toml", "CLAUDE.md", ".mcp.json", ".gitattributes", ".memories", ".memories/.gitignore",
    ".memories/.gitattributes", ".memories/indices", ".memories/indices/index.db", ".memories/indices/index.db-wal",
    ".memories/indices/index.db-shm", ".memories/indices/.gitignore", ".memories/indices/code.json", ".memories/.trash",
    ".memories/.trash/undo", ".memories/tombstones.jsonl", ".memories/anchors.jsonl", ".memories/topics",
    ".memories/topics/index.md", ".memories/records", ".memories/layers", ".memories/vault.jsonl",
)  # fmt: skip
SAID = "Deploys of `src/app.py` go out on Tuesdays, after the tests."
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("init",), ("init", "--git"), ("check-config",), ("add", "A new fact of the day.", "--title", "new"),
    ("get", "notes:first"), ("list",), ("search", "deploy"), ("links", "src/app.py"), ("links",), ("context", "deploy"),
    ("context",), ("update", "notes:first", "Changed text."), ("append", "notes:first", "One more line."),
    ("put", "a key of mine", "Text of a program."), ("put", "first", "Other text."), ("changes",),
    ("history", "notes:first"), ("history",), ("list", "--as-of", "2024-06-01"), ("rm", "notes:first"),
    ("restore", "notes:gone"), ("forget", "notes:first", "--yes"), ("restore",),
    ("merge", "notes:first", "notes:second", "--into", "both", "--text", "Both."), ("review", "--only", "similar"),
    ("review",), ("share", "notes:first"), ("share", "--private", "notes:first"), ("backup", "../kept.tar.gz"),
    ("restore-backup", "../kept.tar.gz", "../back"), ("move", "elsewhere"),
    ("rename", "notes:first", "ops/renamed"),
    ("review", "--apply"), ("undo",), ("redo",),
    ("recover",), ("recover", "--apply"), ("review", "--only", "prune"), ("review", "--only", "prune", "--apply"),
    ("review", "--only", "stale"), ("doctor", "--only", "format"), ("stats",),
    ("doctor", "--only", "damage"), ("doctor", "--reindex"), ("doctor",), ("doctor", "--deep"), ("doctor", "--fix"),
    ("capture", "../said.jsonl"),
    ("vault", "add", "The mission is to stay small.", "--category", "mission"), ("vault", "list"), ("vault", "compact"),
    ("vault", "snapshot"), ("vault", "stats"), ("topics", "store", "area/part", "A dated entry.", "--title", "entry"),
    ("topics", "load", "area/part"), ("topics", "reindex"), ("topics", "search", "entry"),
    ("records", "create", "A message that was captured.", "--subject", "kept", "-k", "word"), ("records", "list"),
    ("records", "index"), ("records", "validate"), ("records", "retain"), ("layers", "search", "pattern"),
    ("layers", "stale"), ("layers", "prune"), ("import", "../import"), ("export",), ("export", "--to", "CLAUDE.md"),
    ("log", "--sessions"), ("judge", "notes:first", "useful"), ("gate", "show"), ("encoder", "show"),
    ("encoder", "use", "none"), ("encoder", "use", "static"),
    ("gate", "test", "Some text."), ("doctor", "--only", "secrets"),
    ("review", "--only", "drifted", "--show"), ("connect", "claude-code", "--project"),
    ("connect", "claude-code", "--remove", "--project"), ("trust", "--yes"), ("hook", "claude-code", "session-start"),
    ("hook", "claude-code", "prompt"), ("hook", "claude-code", "stop"),
    ("sync", "add", "team", "../remote"), ("sync", "status"), ("token", "add", "ann"), ("token", "list"),
)  # fmt: skip
UNTRIED = frozenset(
    {"edit", "merge-driver", "mcp", "ui", "completion", "help", "distil"}
)  # each needs a partner, or no bank


class Case(NamedTuple):
    name: str
    kind: str
    command: tuple[str, ...]


class Pick(NamedTuple):
    """What is to be tried: names with a word in them, or pairs of name and kind; commands by their first two words."""

    only: str = ""
    pairs: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    def takes(self, pair: str) -> bool:
        return pair in self.pairs if self.pairs else self.only in pair


class Finding(NamedTuple):
    what: str  # changed, deleted, created, shown, hangs, traceback
    case: Case
    detail: str


# -- the place


def make_home(home: Path) -> None:
    """A home folder in which everything has a text of its own."""
    for number, name in enumerate(
        (".bashrc", "canary.md", "canary.jsonl", "canary.toml", "documents/one.md", "documents/sub/two.md",
         "documents/photo.jpg", "documents/first.md", "documents/vault.jsonl", ".ssh/authorized_keys")
    ):  # fmt: skip
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# canary{number}of7421\n{SAID if number % 2 else ''}\n")
    with sqlite3.connect(home / "canary.db") as database:
        database.execute("create table canaries (text)")
        database.execute("insert into canaries values ('canary99of7421')")
    database.close()


def prints(home: Path) -> dict[str, str]:
    """Every name in the home folder, with the hash of what it holds."""
    found = {}
    for path in home.rglob("*"):
        data = path.read_bytes() if path.is_file() else b"folder"
        found[str(path.relative_to(home))] = hashlib.sha256(data).hexdigest()
    return found


def make_project(project: Path) -> None:
    """A trusted bank with something in every lane, in the trash, among the tombstones and in the index."""
    (project / "src").mkdir(parents=True)
    (project / "src/app.py").write_text("def deploy():\n    return 1\n")
    (project.parent / "import").mkdir()
    (project.parent / "import/taken.md").write_text("# Taken\n\nA text of another program.\n")
    message = {"id": "m1", "role": "assistant", "content": [{"type": "text", "text": "We decided to keep it small."}]}
    line = {"type": "assistant", "uuid": "u1", "sessionId": "s1", "timestamp": "2025-01-10T10:00:00Z"}
    (project.parent / "said.jsonl").write_text(json.dumps({**line, "message": message}) + "\n")
    for name in ("first", "second", "gone", "forgotten"):
        run(project, ("add", f"{SAID} This is the {name} one.", "--title", name))
    run(project, ("rm", "notes:gone"))
    run(project, ("forget", "notes:forgotten", "--yes"))
    run(project, ("vault", "add", "The runtime stays stable.", "--category", "goal"))
    run(project, ("topics", "store", "area/part", "The first entry.", "--title", "one"))
    run(project, ("records", "create", "A message.", "--subject", "one", "-k", "word"))
    layer = ("--lane", "layers", "--field", "project=app", "--field", "file_type=common_patterns")
    run(project, ("add", "A pattern of the code.", *layer))
    (project / ".memories/empty.md").write_text("")  # a review takes it away, and undo brings it back
    for command in (("review", "--apply"), ("review", "--only", "drifted", "--show"), ("search", "deploy")):
        run(project, command)


def commit(project: Path) -> None:
    """A history for the commands that ask git."""
    when = {"GIT_AUTHOR_DATE": "2024-01-01T12:00:00Z", "GIT_COMMITTER_DATE": "2024-01-01T12:00:00Z"}
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    for words in (("init", "-q", "--template="), ("add", "-A"), (*who, "commit", "-qm", "All of it")):
        subprocess.run(["git", *words], cwd=project, env={**os.environ, **when}, check=True, capture_output=True)


def every_name(project: Path) -> list[str]:
    """What a bank has, and what it could have: the project's own files are not its business."""
    there = [str(path.relative_to(project)) for path in (project / ".memories").rglob("*")]
    return sorted({*FIXED, *there})


def put_link(project: Path, name: str, target: Path | str) -> None:
    path = project / name
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def target_of(place: Path, name: str, kind: str) -> Path | str:
    home = place / "home"
    alike = home / f"canary{Path(name.removesuffix('-wal').removesuffix('-shm')).suffix}"
    return {
        "file": alike if alike.exists() else home / ".bashrc",
        "folder": home / "documents",
        "dangling": home / "missing.txt",
        "fifo": place / "fifo",
        "zero": place / "zero" if (place / "zero").exists() else "/dev/zero",
    }[kind]


# -- one command


def run(project: Path, command: tuple[str, ...], patience: float = PATIENCE) -> tuple[int | None, str]:
    """Its exit code (None when it was killed for taking too long) and what it printed."""
    output = project.parent / "output"
    child = os.fork()
    if child == 0:
        _become(project, command, output)
    last = time.monotonic() + patience
    while time.monotonic() < last:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), output.read_text(errors="replace")
        time.sleep(0.001)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None, output.read_text(errors="replace")


def _become(project: Path, command: tuple[str, ...], output: Path) -> None:
    """The forked process: this command, in this project, with nothing on its input but a hook's payload."""
    code = 1
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir(project)
        payload = {"session_id": "s1", "cwd": str(project), "prompt": "when do we deploy?"}
        payload |= {"transcript_path": str(project.parent / "said.jsonl"), "hook_event_name": "Stop"}
        (project.parent / "input").write_text(json.dumps(payload) if command[0] == "hook" else "")
        for number, (path, flags) in enumerate(
            ((project.parent / "input", os.O_RDONLY), (output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
        ):
            os.dup2(os.open(path, flags, 0o600), number)
        os.dup2(1, 2)
        sys.argv = ["memlane", *command]
        from memlane.__main__ import main

        main()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


# -- one worker


def environment(place: Path) -> None:
    """Settings of whoever runs this do not count; what memlane keeps for a user lies outside the canaries."""
    for name in list(os.environ):
        if name.startswith(("MEMLANE_", "XDG_", "GIT_")):
            del os.environ[name]
    os.environ.update({"HOME": str(place / "home"), "GIT_CONFIG_NOSYSTEM": "1", "OPENBLAS_NUM_THREADS": "1"})
    for kind in ("STATE", "CACHE", "CONFIG", "DATA"):
        os.environ[f"XDG_{kind}_HOME"] = str(place / kind.lower())


def preload() -> None:
    """Import what commands import, once."""
    import importlib

    from memlane.surfaces.cli import COMMANDS as ALL
    from memlane.surfaces.cli import app

    for name in set(ALL) - {"mcp"}:
        app.get_command(app.make_context("memlane", ["list"], resilient_parsing=True), name)
    for module in ("bank", "recall.search", "index.store", "surfaces.hook", "care.doctor", "care.forget"):
        importlib.import_module(f"memlane.{module}")


class Matrix:
    """A worker's own home, its template of a bank, and the project that is laid anew whenever it was changed."""

    def __init__(self, place: Path) -> None:
        self.place, self.project, self.template = place, place / "work/project", place / "template"
        environment(place)
        preload()
        make_home(place / "home")
        os.mkfifo(place / "fifo")
        with suppress(PermissionError):  # whoever may make a device could also replace the machine's own by a file
            os.mknod(place / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
        self.project.mkdir(parents=True)
        run(self.project, ("init",), 60)
        make_project(self.project)
        commit(self.project)
        self.names = every_name(self.project)
        shutil.copytree(self.project, self.template)
        shutil.copytree(place / "home", place / "home.template")
        for kept in ("state", "config", "cache", "data"):
            if (place / kept).exists():
                shutil.copytree(place / kept, place / f"{kept}.template")
        self.before = prints(place / "home")
        self.laid: tuple[object, ...] = ()

    def lay(self, case: Case) -> None:
        """The bank with its link, unless it still is exactly that."""
        if self.laid == (case.name, case.kind, self._stand()):
            return
        shutil.rmtree(self.project, ignore_errors=True)
        shutil.copytree(self.template, self.project)
        for kept in ("state", "config", "cache", "data"):
            shutil.rmtree(self.place / kept, ignore_errors=True)
            if (self.place / f"{kept}.template").exists():
                shutil.copytree(self.place / f"{kept}.template", self.place / kept)
        put_link(self.project, case.name, target_of(self.place, case.name, case.kind))
        self.laid = (case.name, case.kind, self._stand())

    def _stand(self) -> tuple[object, ...]:
        found = []
        for folder, folders, files in os.walk(self.project):
            for name in sorted([*folders, *files]):
                status = os.lstat(os.path.join(folder, name))
                found.append((folder, name, status.st_ino, status.st_mtime_ns, status.st_size))
        return tuple(sorted(found))

    def judge(self, case: Case) -> Iterator[Finding]:
        self.lay(case)
        code, output = run(self.project, case.command)
        after = prints(self.place / "home")
        for what, names in (
            ("deleted", self.before.keys() - after.keys()),
            ("created", after.keys() - self.before.keys()),
            ("changed", {name for name in self.before.keys() & after.keys() if self.before[name] != after[name]}),
        ):
            if names:
                yield Finding(what, case, ", ".join(sorted(names)[:4]))
        if after != self.before:
            shutil.rmtree(self.place / "home")
            shutil.copytree(self.place / "home.template", self.place / "home")
        for name in ("fifo", "zero"):
            if (self.place / name).is_file():  # a name that was replaced: it is no special file any more
                yield Finding("replaced", case, name)
                (self.place / name).unlink()
        if "of7421" in output:
            yield Finding("shown", case, next(line for line in output.splitlines() if "of7421" in line)[:80])
        if code is None:
            yield Finding("hangs", case, f"no answer within {PATIENCE:.0f} s")
        elif code < 0 or "Traceback (most recent call last)" in output:
            yield Finding("traceback", case, (output.strip().splitlines() or [f"signal {-code}"])[-1][:100])


def work(
    place: Path, number: int, workers: int, seconds: float, seed: str, pick: Pick
) -> tuple[list[Finding], int, int]:
    matrix = Matrix(place)
    pairs = [(name, kind) for name in matrix.names for kind in KINDS if pick.takes(f"{name}:{kind}")]
    commands = [command for command in COMMANDS if not pick.commands or " ".join(command[:2]) in pick.commands]
    random.Random(seed).shuffle(pairs)
    mine = pairs[number::workers]
    total = len(mine) * len(commands)
    findings: list[Finding] = []
    done = 0
    last = time.monotonic() + seconds
    for name, kind in mine:
        hangs = 0
        for command in commands:
            if time.monotonic() > last:
                return findings, done, total
            if hangs == 3:  # it hangs wherever it is read: what the other commands do there is no news
                break
            found = list(matrix.judge(Case(name, kind, command)))
            hangs += any(finding.what == "hangs" for finding in found)
            findings += found
            done += 1
    return findings, done, total


def _job(arguments: tuple[str, int, int, float, str, Pick]) -> tuple[list[Finding], int, int]:
    place, number, *rest = arguments
    own = Path(place) / str(number)
    own.mkdir()
    return work(own, number, *rest)


# -- figures


def table(findings: list[Finding], done: int, total: int) -> Iterator[str]:
    grouped: dict[tuple[str, str, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        grouped[finding.what, finding.case.name, finding.case.kind].append(finding)
    if grouped:
        yield f"{'what':<10} {'link at':<44} {'to':<9} by"
    for (what, name, kind), group in sorted(grouped.items()):
        commands = [" ".join(finding.case.command[:2]) for finding in group]
        said = ", ".join(commands[:4]) + (f" and {len(commands) - 4} more" if len(commands) > 4 else "")
        yield f"{what:<10} {name:<44} {kind:<9} {said} ({group[0].detail})"
    counts = Counter(finding.what for finding in findings)
    yield f"{done:,} of {total:,} cases; " + (", ".join(f"{n} {what}" for what, n in counts.items()) or "no finding")


def main() -> None:
    parser = argparse.ArgumentParser(description="A link at every name of a bank, under every command.")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", default=str(random.randrange(1000)), help="which cases come first; random by default")
    parser.add_argument("--only", default="", help="names that have this in them")
    parser.add_argument("--pair", action="append", default=[], help="NAME:KIND, one or more")
    parser.add_argument("--command", action="append", default=[], help="the first two words of a command, one or more")
    parser.add_argument("--all", action="store_true", help="every case, however long it takes")
    chosen = parser.parse_args()
    place = tempfile.mkdtemp(prefix="memlane-links-")
    pick = Pick(chosen.only, tuple(chosen.pair), tuple(chosen.command))
    workers = min(2, os.cpu_count() or 1)
    seconds = float("inf") if chosen.all else chosen.seconds
    try:
        jobs = [(place, number, workers, seconds, chosen.seed, pick) for number in range(workers)]
        with get_context("spawn").Pool(workers) as pool:
            results = pool.map(_job, jobs)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    findings = [finding for found, _, _ in results for finding in found]
    print(f"seed {chosen.seed}")
    print("\n".join(table(findings, sum(done for _, done, _ in results), sum(total for _, _, total in results))))
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
