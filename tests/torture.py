"""Proof under fire: eight processes work on one bank while this one does to it what happens to banks.

    python tests/torture.py --seconds 300 --seed 1

The eight use Python, the command line and MCP (see torturing.py). This one kills them with SIGKILL, edits files by
hand, deletes the index, commits, checks out and merges branches, and makes the disk full. Then every acknowledged write
must be there, no refused one anywhere, `memlane doctor` clean, and the index equal to a rebuilt one. Prints figures and
ends with exit code 1 when anything is lost, corrupted or broken. Everything lies in a temporary folder, on a small disk
of its own where this user may mount one. The same seed makes the same decisions; when they fall differs.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from memlane import Bank
from samples import words
from torturing import ALIVE, GONE, MEMLANE, Item, Journal, mark, read_journal, secret_of, text_of

HERE = Path(__file__).parent
SURFACES = ("python", "cli", "mcp", "cli", "mcp", "python", "cli", "mcp")
HAND = 9  # the number of the one that edits by hand and merges
DISK = 256 * 1024 * 1024
ENOUGH = 100  # operations
LONGER = 300.0  # seconds, at most, until there are so many
CONFIG = """
[vault]
max_active = 1000000

[mcp]
toolsets = ["vault", "topics", "layers", "records"]
"""
ACTIONS = {"kill": 60, "hand": 25, "index": 8, "commit": 6, "merge": 6, "checkout": 5, "full": 5}
PLANTED = frozenset({"space", "trash", "format"})  # a small disk, many deletions, texts that say nothing: no harm
MARK = re.compile(r"mark(\d+)z(\d+)([ab])\b")


@dataclass
class Figures:
    seconds: float = 0.0
    disk: str = ""
    operations: Counter[str] = field(default_factory=Counter)
    chaos: Counter[str] = field(default_factory=Counter)
    memories: int = 0
    checked: int = 0
    lost: list[str] = field(default_factory=list)
    corrupted: list[str] = field(default_factory=list)
    leaked: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def bad(self) -> bool:
        return bool(self.lost or self.corrupted or self.leaked or self.broken)


# -- the place


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """A disk that can be made full in a moment, where this user may mount one. Yields whether it is one."""
    folder.mkdir()
    made = os.geteuid() == 0 and _quietly("mount", "-t", "tmpfs", "-o", f"size={DISK}", "memlane-torture", str(folder))
    try:
        yield bool(made)
    finally:
        if made and not _quietly("umount", str(folder)):
            _quietly("umount", "-l", str(folder))


def _quietly(*command: str) -> bool:
    with suppress(FileNotFoundError):
        return subprocess.run(command, capture_output=True).returncode == 0
    return False


def environment(home: Path) -> dict[str, str]:
    """Nothing of the settings of whoever runs this."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMLANE_", "XDG_", "GIT_"))}
    who = {"GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@example.org"}
    who |= {"GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@example.org", "GIT_CONFIG_NOSYSTEM": "1"}
    return {**kept, **who, "HOME": str(home)}


# -- the ninth process


class Storm:
    """Everything that happens to the bank meanwhile."""

    def __init__(self, place: Path, seed: str, figures: Figures, full: bool) -> None:
        self.place, self.seed, self.figures, self.can_fill = place, seed, figures, full
        self.project = place / "disk" / "project"
        self.root = self.project / ".memories"
        self.dice = random.Random(f"{seed} storm")
        self.workers: dict[int, subprocess.Popen[bytes]] = {}
        self.generations: Counter[int] = Counter()
        self.number = 0
        self.notes: dict[str, list[int]] = {}  # the notes made by hand, and the numbers of their lines
        self.added: list[int] = []  # numbers of what was stored on side branches
        self.locks = [os.open(place / name, os.O_RDWR | os.O_CREAT, 0o600) for name in ("turn.lock", "quiet.lock")]

    def prepare(self) -> None:
        self.project.mkdir()
        self._git("init", "-q", "-b", "main")
        self._git("config", "gc.auto", "0")
        self._memlane("init", "--git")
        (self.project / "memlane.toml").write_text((self.project / "memlane.toml").read_text() + CONFIG)
        self._memlane("trust", "--yes")
        self._memlane("add", "What all share.", "--title", "shared")
        self._commit()

    # -- its processes

    def start(self, number: int) -> None:
        generation = self.generations[number]
        self.generations[number] += 1
        arguments = [self.place, number, SURFACES[number], generation, self.seed]
        with open(self.place / "journals" / f"{number}.stderr", "ab") as errors:
            self.workers[number] = subprocess.Popen(
                [sys.executable, str(HERE / "torturing.py"), *map(str, arguments)],
                stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, start_new_session=True, cwd=HERE,
            )  # fmt: skip

    def kill(self) -> None:
        """SIGKILL at a random moment: the whole group, or the worker alone, whose command or server lives on a bit."""
        number = self.dice.choice(list(self.workers))
        worker = self.workers[number]
        if self.dice.random() < 0.7:
            self.end(worker)
        else:
            worker.kill()
            worker.wait()
            self.end(worker, wait=0.5)
        self.figures.chaos["processes killed"] += 1
        self.start(number)

    def end(self, worker: subprocess.Popen[bytes], wait: float = 0.0) -> None:
        """End a worker and what it has started: its group is its own, and named by its id."""
        last = time.monotonic() + wait
        while _there(worker.pid):
            if time.monotonic() >= last:
                with suppress(ProcessLookupError):
                    os.killpg(worker.pid, signal.SIGKILL)
            worker.poll()
            time.sleep(0.005)
        worker.wait()

    def revive(self) -> None:
        """Start again who ended by himself: a server that could not start on a full disk, for example."""
        for number, worker in self.workers.items():
            if worker.poll() is not None:
                self.end(worker)
                self.figures.chaos["processes that ended"] += 1
                self.start(number)

    # -- by hand

    def hand(self) -> None:
        self.figures.chaos["hand edits"] += 1
        self.number += 1
        text = text_of(HAND, self.number)
        kind = self.dice.choice(("new", "append", "rewrite", "rename", "foreign")) if self.notes else "new"
        name = self.dice.choice(list(self.notes)) if self.notes else ""
        path = self.root / name
        if kind == "new":
            name = f"hand-{self.number}.md"
            (self.root / name).write_text(f"# By hand {self.number}\n\n{text}\n")
            self.notes[name] = [self.number]
        elif kind == "append":
            with open(path, "a") as file:
                file.write(f"\n{text}\n")
            self.notes[name].append(self.number)
        elif kind == "rewrite":
            path.write_text(f"---\ntags: [hand]\n---\n# Again {self.number}\n\n{text}\n")
            self.notes[name] = [self.number]
        elif kind == "rename":  # as most editors save
            beside = path.with_suffix(".md.new")
            beside.write_text(f"# Saved {self.number}\n\n{text}\n")
            os.replace(beside, path)
            self.notes[name] = [self.number]
        else:  # a line at the end of somebody else's note; whether it outlives his next update is not promised
            others = [entry for entry in os.scandir(self.root) if entry.name.startswith("title-")]
            if others:
                with suppress(FileNotFoundError), open(self.dice.choice(others).path, "r+") as file:
                    file.seek(0, os.SEEK_END)
                    file.write("\nA line by hand.\n")

    def index(self) -> None:
        self.figures.chaos["index deletions"] += 1
        kind = self.dice.random()
        if kind < 0.6:
            shutil.rmtree(self.root / "indices", ignore_errors=True)
        elif kind < 0.8:
            with suppress(FileNotFoundError):
                os.unlink(self.root / "indices" / "index.db")
        else:
            with suppress(FileNotFoundError), open(self.root / "indices" / "index.db", "r+b") as file:
                file.seek(self.dice.choice((0, 4096, 20000)))
                file.write(b"not what was here" * 100)

    # -- git

    def commit(self) -> None:
        """Without asking anybody: git only reads the files."""
        self.figures.chaos["commits"] += 1
        self._commit()

    def merge(self) -> None:
        """A branch in a work tree of its own, where memory is added; then both sides are one."""
        self._commit()
        self.number += 1
        branch, side = f"side-{self.number}", self.place / "disk" / f"side-{self.number}"
        self._git("worktree", "add", "-q", "-b", branch, str(side))
        with Bank.open(side) as bank:
            for lane in ("notes", "vault", "topics", "records"):
                self.number += 1
                fields = {"topic": "shared", "subtopic": "log"} if lane == "topics" else {}
                bank.add(text_of(HAND, self.number), lane=lane, **fields)
                self.added.append(self.number)
        self._git("add", "-A", folder=side)
        self._git("commit", "-q", "-m", branch, folder=side)
        with self.quiet():
            self._commit()
            self._git("merge", "-q", "--no-edit", branch)
        self._git("worktree", "remove", "--force", str(side))
        self._git("branch", "-q", "-D", branch)
        self.figures.chaos["merges"] += 1

    def checkout(self) -> None:
        """An old commit, and back. Whoever searches meanwhile finds what is there."""
        with self.quiet():
            self._commit()
            old = self._git("rev-list", "--max-count=50", "HEAD").split()
            self._git("checkout", "-q", self.dice.choice(old))
            with Bank.open(self.project) as bank:
                bank.search(words(self.number, 2))
            self._git("checkout", "-q", "main")
        self.figures.chaos["checkouts"] += 1

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """No write is under way. Readers go on."""
        for lock in self.locks:
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            for lock in reversed(self.locks):
                fcntl.flock(lock, fcntl.LOCK_UN)

    def _commit(self) -> None:
        for _ in range(20):  # a file that vanishes while git reads it is an error to git
            if _quietly_in(self.project, "git", "add", "-A"):
                _quietly_in(self.project, "git", "commit", "-q", "-m", "as it is")
                return
        self.figures.remarks.append("git add failed twenty times in a row")

    # -- the disk

    def full(self) -> None:
        """No room for a while. Without a disk of our own, only the workers' limits on file sizes do this."""
        if not self.can_fill:
            return
        disk = self.place / "disk"
        used = shutil.disk_usage(disk).used
        if _quietly("mount", "-o", f"remount,size={used + self.dice.choice((0, 4096, 40960))}", str(disk)):
            self.figures.chaos["full disks"] += 1
            time.sleep(self.dice.uniform(0.1, 0.8))
        _quietly("mount", "-o", f"remount,size={DISK}", str(disk))

    # -- commands

    def _git(self, *args: str, folder: Path | None = None) -> str:
        done = subprocess.run(["git", *args], cwd=folder or self.project, capture_output=True, text=True)
        if done.returncode:
            said = (done.stdout + done.stderr).strip()
            raise RuntimeError(f"git {' '.join(args[:2])}: {said[:600]}")
        return done.stdout

    def _memlane(self, *args: str, folder: Path | None = None) -> str:
        done = subprocess.run([MEMLANE, *args], cwd=folder or self.project, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"memlane {args[0]}: {done.returncode} {done.stderr.strip()[:600]}")
        return done.stdout


def _there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _quietly_in(folder: Path, *command: str) -> bool:
    return subprocess.run(command, cwd=folder, capture_output=True).returncode == 0


def has_raged(storm: Storm) -> bool:
    """Whether somebody was killed and much was done, some of it by each surface: on a busy machine, later."""
    done = Counter(dict.fromkeys(SURFACES, 0))
    for number, surface in enumerate(SURFACES):
        with suppress(FileNotFoundError):
            done[surface] += (storm.place / "journals" / f"{number}.jsonl").read_bytes().count(b'"said"')
    return storm.figures.chaos["processes killed"] > 0 and all(done.values()) and done.total() >= ENOUGH


def rage(storm: Storm, seconds: float) -> None:
    """Do one thing after another until the time is over, then end all processes."""
    last = time.monotonic() + seconds
    for number in range(len(SURFACES)):
        storm.start(number)
    try:
        while time.monotonic() < last or (time.monotonic() < last + LONGER and not has_raged(storm)):
            time.sleep(min(storm.dice.expovariate(5.0), 1.0))
            storm.revive()
            action = storm.dice.choices(list(ACTIONS), list(ACTIONS.values()))[0]
            try:
                getattr(storm, action)()
            except RuntimeError as error:
                storm.figures.broken.append(f"{action}: {error}")
                storm._git("merge", "--abort") if action == "merge" else None
                return
    finally:
        for worker in storm.workers.values():
            storm.end(worker)


# -- what is left


class Left:
    """What the files say in the end, read anew."""

    def __init__(self, project: Path, root: Path) -> None:
        with Bank.open(project) as bank:
            self.memories = {memory.id: memory for memory in bank.memories()}
            self.problems = [str(problem) for problem in bank.problems()]
        self.alive: dict[str, list[str]] = {}  # which memories have a mark
        for id, memory in self.memories.items():
            for found in MARK.finditer(memory.text):
                self.alive.setdefault(found[0], []).append(id)
        self.kept: set[str] = set()  # marks in files and archives
        self.anywhere: set[str] = set()  # and in the trash
        for path in root.rglob("*"):
            if path.is_file() and "indices" not in path.parts:
                marks = {found[0] for found in MARK.finditer(path.read_text(errors="replace"))}
                self.anywhere |= marks
                if ".trash" not in path.parts and path.name != "vault.jsonl":
                    self.kept |= marks

    def has(self, worker: int, number: int) -> bool:
        """Whether a text is there, whole: in a memory, or in the archive of its lane."""
        return all(word in self.alive or word in self.kept for word in mark(worker, number))


def check_journal(journal: Journal, left: Left, figures: Figures) -> None:
    worker = journal.worker
    for number in journal.shared:
        figures.checked += 1
        if not left.has(worker, number):
            figures.lost.append(f"worker {worker}: shared addition {number}")
    for id, item in journal.items.items():
        figures.checked += 1
        why = wrong(worker, id, item, left)
        if why:
            figures.lost.append(f"worker {worker}: {id}: {why}")
    figures.leaked += [f"worker {worker}: secret {number} was accepted" for number in journal.leaked]
    figures.broken += [f"worker {worker}: {why}" for why in journal.broken]


def wrong(worker: int, id: str, item: Item, left: Left) -> str:
    """What is not as the last acknowledged operation left it; "" when all is well."""
    there = [number for number in item.marks if left.has(worker, number)]
    if item.state == ALIVE:
        if id not in left.memories and item.lane not in ("topics", "layers"):
            return "is gone"
        missing = [number for number in item.marks if number not in there]
        if missing:
            return f"misses {missing}"
        text = left.memories[id].text if id in left.memories else ""
        back = [number for number in item.old if any(word in text for word in mark(worker, number))]
        return f"has what was replaced: {back}" if back else ""
    if item.state == GONE:
        return "came back" if id in left.memories and any(left.alive.get(mark(worker, item.marks[0])[0], ())) else ""
    verb = item.pending["verb"] if item.pending else ""
    if verb == "update":
        new = left.has(worker, item.pending["n"])
        return "" if new or there == item.marks else "has neither the old text nor the new one"
    if verb == "append":
        return "" if there == item.marks else "lost its text when something was appended"
    # a deletion, a restoration or a merge: either side of it, but nothing in between
    words_of = [word for number in item.marks for word in mark(worker, number)]
    if item.lane == "vault" or all(word in left.anywhere or word in left.alive for word in words_of):
        return ""
    return f"vanished in an unfinished {verb}"


def check_halves(left: Left, figures: Figures) -> None:
    """A text is there whole or not at all."""
    for id, memory in left.memories.items():
        marks = {(found[1], found[2], found[3]) for found in MARK.finditer(memory.text)}
        for worker, number, end in marks:
            if (worker, number, "b" if end == "a" else "a") not in marks:
                figures.corrupted.append(f"{id} has half of mark{worker}z{number}")


def check_hand(storm: Storm, left: Left, figures: Figures) -> None:
    for name, numbers in storm.notes.items():
        for number in numbers:
            figures.checked += 1
            if not left.has(HAND, number):
                figures.lost.append(f"by hand: {name} misses {number}")
    for number in storm.added:
        figures.checked += 1
        if not left.has(HAND, number):
            figures.lost.append(f"merged: {number}")


def check_secrets(storm: Storm, journals: list[Journal], figures: Figures) -> None:
    """No byte of a refused secret in the bank, in its history, or in what anything printed."""
    bodies = {secret_of(journal.worker, number)[4:30].encode() for journal in journals for number in journal.secrets}
    figures.chaos["secrets tried"] = len(bodies)
    pattern = re.compile(b"|".join(map(re.escape, sorted(bodies)))) if bodies else None
    git = subprocess.run(
        ["git", "cat-file", "--batch-all-objects", "--batch", "--unordered"], cwd=storm.project, capture_output=True
    ).stdout
    places = {"git's history": git}
    for folder in (storm.project, storm.place / "journals", storm.place / "home"):
        places |= {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for place, data in places.items():
        if pattern and pattern.search(data):
            figures.leaked.append(f"a secret is in {place}")


def check_health(storm: Storm, left: Left, figures: Figures) -> None:
    torn = [problem for problem in left.problems if "vault.jsonl" in problem and "is not JSON" in problem]
    if torn:  # a line that a kill or a full disk cut off: never acknowledged, reported, and moved aside like this
        figures.chaos["torn lines of the vault"] = len(torn)
        storm._memlane("vault", "compact")
    storm._memlane("search", "anything")  # brings the index up to date
    for command in (("doctor", "--only", "damage", "--json"), ("doctor", "--deep", "--json")):
        done = subprocess.run([MEMLANE, *command], cwd=storm.project, capture_output=True, text=True)
        try:
            found = json.loads(done.stdout)
        except ValueError:
            figures.broken.append(f"memlane {command[0]}: {done.stderr[-600:]}")
            continue
        if "--only" in command:
            figures.corrupted += [f"{problem['path']}: {problem['why']}" for problem in found]
            continue
        for finding in found["findings"]:
            said = f"doctor: {finding['check']}: {finding['where']}: {finding['why']}"
            if finding["severity"] == "error" or finding["check"] == "index":
                figures.corrupted.append(said)
            elif finding["severity"] == "warning" and finding["check"] not in PLANTED:
                figures.remarks.append(said)


def check(storm: Storm, figures: Figures) -> None:
    for path in storm.root.rglob(".memlane-*.tmp"):
        figures.chaos["temporary files left"] += 1
        path.unlink()
    journals = [read_journal(storm.place / "journals" / f"{number}.jsonl", number) for number in range(len(SURFACES))]
    for journal in journals:
        figures.operations.update(journal.counts)
    left = Left(storm.project, storm.root)
    figures.memories = len(left.memories)
    for journal in journals:
        check_journal(journal, left, figures)
    check_hand(storm, left, figures)
    check_halves(left, figures)
    check_health(storm, left, figures)
    check_secrets(storm, journals, figures)


# -- figures


def table(figures: Figures) -> Iterator[str]:
    said = Counter[tuple[str, str, str]]()
    for key, count in figures.operations.items():
        surface, _, rest = key.partition(" ")
        verb, _, outcome = rest.partition(" ")
        said[surface, verb, outcome] += count
    surfaces = sorted({surface for surface, _, _ in said})
    yield f"{'verb':<10}" + "".join(f"{surface:>9}" for surface in surfaces)
    for verb in sorted({verb for _, verb, _ in said}):
        counts = [sum(n for (s, v, _), n in said.items() if (s, v) == (surface, verb)) for surface in surfaces]
        yield f"{verb:<10}" + "".join(f"{count:>9,}" for count in counts)
    outcomes = Counter[str]()
    for (_, _, outcome), count in said.items():
        outcomes[outcome] += count
    yield ""
    yield f"operations {sum(outcomes.values()):,}: " + ", ".join(f"{n:,} {word}" for word, n in outcomes.most_common())
    yield "meanwhile: " + ", ".join(f"{count:,} {what}" for what, count in sorted(figures.chaos.items()))
    yield f"disk: {figures.disk}; {figures.memories:,} memories at the end; {figures.checked:,} expectations checked"
    yield (
        f"lost {len(figures.lost)}, corrupted {len(figures.corrupted)}, leaked {len(figures.leaked)}, "
        f"broken {len(figures.broken)}; {figures.seconds:.0f} s"
    )
    for title in ("lost", "corrupted", "leaked", "broken", "remarks"):
        found = getattr(figures, title)
        yield from (f"{title}: {line}" for line in found[:20])


def torture(seconds: float, seed: str, keep: str | None = None) -> Figures:
    """A whole run of about so many seconds, the checks included."""
    begin = time.monotonic()
    figures = Figures()
    place = Path(tempfile.mkdtemp(prefix="memlane-torture-"))
    try:
        for name in ("journals", "home"):
            (place / name).mkdir()
        surroundings = environment(place / "home")
        os.environ.clear()
        os.environ.update(surroundings)
        with small_disk(place / "disk") as full:
            figures.disk = "a small one of its own" if full else "shared; full only by limits on file sizes"
            storm = Storm(place, seed, figures, full)
            storm.prepare()
            rage(storm, seconds - min(50.0, seconds * 0.4))
            check(storm, figures)
            if keep:
                shutil.copytree(place, keep, symlinks=True, dirs_exist_ok=True)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    figures.seconds = time.monotonic() - begin
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description="Eight processes on one bank, and everything that can happen to it.")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--keep", help="copy what is left into this folder")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends what it has started
    figures = torture(chosen.seconds, chosen.seed, chosen.keep)
    if chosen.json:
        print(json.dumps({name: getattr(figures, name) for name in figures.__dataclass_fields__}))
    else:
        print("\n".join(table(figures)))
    sys.exit(1 if figures.bad else 0)


if __name__ == "__main__":
    main()
