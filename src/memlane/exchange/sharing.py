"""What others get of a bank through git, and what stays with its user: rules for git, and moving memories between them.

records         private: `/records/*.md` in the bank's .gitignore; one that is shared has a line `!/records/ID.md`,
                and where all are, that is said by `!/records/*.md`
notes           shared, but for those in the folder `private`, which tells git to leave it out by a .gitignore in it
vault, topics   shared as a whole: their files hold many memories
layers          shared as a whole: a file is for a project, a skill or an agent, not for a person

Nothing here commits, and nothing writes into git but the merge drivers.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlane import config, gate
from memlane.core.errors import InvalidInput, MemlaneError, StorageError
from memlane.core.model import Memory
from memlane.core.patterns import lazily
from memlane.core.values import asdict, dataclass
from memlane.disk import anchors, files, journal, replaced, tombstones
from memlane.disk.names import PRIVATE, is_private
from memlane.exchange import moving
from memlane.exchange.adopt import decoded
from memlane.history import git
from memlane.lanes import NAMES, open_lane

if TYPE_CHECKING:
    from memlane.bank import Bank

_BEGIN, _END = "# memlane: begin", "# memlane: end"
_MERGE = "merge.memlane-"  # the settings of git that say how our files are merged begin so
_LANE = "records"  # the lane that is private as a whole
_DRIVEN = lazily(r" merge=memlane-(\w+)")


# -- what git is told


def join_git(settings: config.Config, *, merging: bool = True) -> dict[str, Any]:
    """Tell the git repository around a bank what to leave out and how to merge memory; return what was done.

    Writes a block of rules into .gitignore and .gitattributes of the bank's folder (and of each lane that lies
    elsewhere), to be committed, and the merge drivers that they name into .git/config, which every clone needs of its
    own; without `merging`, only what keeps captured records out of git. Records that git tracks already stay as they
    are, and are named. Safe to repeat; commits nothing. Raises MemlaneError without git, StorageError.
    """
    top = git.top(settings.root)
    if top is None:
        return {"repository": None, "rules": [], "drivers": [], "ignored": False, "private": [], "tracked": []}
    rules: dict[Path, tuple[list[str], list[str]]] = {}
    drivers: list[str] = []
    private: list[str] = []
    tracked: list[str] = []
    last: dict[Path, list[str]] = {}  # rules at the end, as `share` leaves them
    for name in NAMES:
        root = settings.lane_root(name)
        answers = open_lane(name, root).answers
        drivers += [driver for driver, _ in answers.merges]
        folder = root if answers.is_folder else root.parent
        home = settings.root if settings.root in (folder, *folder.parents) else folder
        if git.relative(top, home) is None:
            continue
        below = "" if home == folder else f"{folder.relative_to(home).as_posix()}/"
        attributes, ignores = rules.setdefault(home, ([], [".memlane-*.tmp"]))
        spelt = _spelt(root.name)
        attributes += [
            f"{below}{pattern.format(name=spelt)} merge=memlane-{driver}" for driver, pattern in answers.merges
        ]
        ignores += [f"/{below}{pattern.format(name=spelt)}" for pattern in answers.ignores]
        own = [f"/{below}{pattern}" for pattern in answers.private]
        before = _block(home / ".gitignore")
        open_to_all = [f"!{line}" for line in own]
        if own and set(open_to_all) <= set(before):
            last[home] = open_to_all  # somebody has shared them all, maybe before there were any
        elif own and not set(own) <= set(before) and any(path.endswith(".md") for path in git.tracked(top, root)):
            tracked.append(os.fspath(root))  # a rule would change sides for what somebody has committed
        elif own:
            private.append(os.fspath(root))
            last[home] = [*own, *(line for line in before if line.startswith("!"))]
    if git.relative(top, settings.root) is not None:
        attributes, _ = rules.setdefault(settings.root, ([], [".memlane-*.tmp"]))
        for name in (tombstones.FILE, anchors.NAME, replaced.FILE):
            attributes.append(f"{name} -text merge=union")  # its lines mean the same in any order
        attributes.append(".gitignore merge=union")
    ignored = git.ignored(top, settings.root / "x.md")
    written = []
    for home, (attributes, ignores) in rules.items():
        if merging:
            _set_block(home / ".gitattributes", attributes)
            written.append(os.fspath(home / ".gitattributes"))
        if merging or (not ignored and any(home in (Path(root), *Path(root).parents) for root in private)):
            _set_block(home / ".gitignore", [*ignores, *last.get(home, [])])
            written.append(os.fspath(home / ".gitignore"))
    if merging:
        wanted = {f"{_MERGE}{driver}.driver": _driver(driver) for driver in drivers}
        wanted |= {f"{_MERGE}{driver}.name": "memlane: merge memory by what it means" for driver in drivers}
        there = git.configs(top, _MERGE)
        git.set_configs(top, {key: value for key, value in wanted.items() if there.get(key) != value})
    return {
        "repository": os.fspath(top),
        "rules": written,
        "drivers": [f"memlane-{driver}" for driver in drivers if merging],
        "ignored": ignored,
        "private": private,
        "tracked": tracked,
    }


def joined(settings: config.Config, *, git: bool) -> dict[str, Any] | None:
    """What `init` tells git: how to merge memory if that is asked for, or if the bank says that others do, and what to
    leave out in any case. None where nothing was asked for and there is no repository: then only captured records are
    kept out of one that may be made later. Raises MemlaneError.
    """
    if not git and not any(os.path.lexists(folder / ".git") for folder in (settings.root, *settings.root.parents)):
        _keep_records_out(settings)
        return None
    try:
        done = join_git(settings, merging=git or merges(settings))
    except StorageError:
        raise
    except MemlaneError:  # there is no git, or it does not trust the repository: then nothing is committed either
        if git:
            raise
        return None
    return done if git or done["repository"] else None


def _keep_records_out(settings: config.Config) -> None:
    """Write the rule that keeps records out of git where there is no git yet, and no rule of ours."""
    home, rules = _record_rules(settings)
    if not _block(home / ".gitignore"):
        with journal.paused():  # making a bank is no change to it that could be undone
            _set_block(home / ".gitignore", [".memlane-*.tmp", *rules])


def merges(settings: config.Config) -> bool:
    """Whether somebody has taught a repository to merge this bank: its .gitattributes names our drivers."""
    return bool(_drivers_named(settings))


def missing_drivers(settings: config.Config) -> list[str]:
    """The merge drivers that the bank's .gitattributes names and that this clone does not know, or whose program is
    gone. Raises MemlaneError.
    """
    named = _drivers_named(settings)
    top = git.top(settings.root) if named else None
    if top is None:
        return []
    there = git.configs(top, _MERGE)
    commands = {name: there.get(f"{_MERGE}{name}.driver") for name in named}
    return [f"memlane-{name}" for name, command in commands.items() if not command or not _runs(command)]


def _runs(command: str) -> bool:
    try:
        return shutil.which(shlex.split(command)[0]) is not None
    except (ValueError, IndexError):
        return False


def _drivers_named(settings: config.Config) -> list[str]:
    lines = _block(settings.root / ".gitattributes")
    return list(dict.fromkeys(match[1] for line in lines if (match := _DRIVEN.search(line))))


def _driver(format: str) -> str:
    """The command that git runs. Where memlane is gone or cannot merge the file, git's own merge is what happens."""
    beside = Path(sys.executable).parent / "memlane"  # also found when its environment is not active
    command = os.fspath(beside) if os.access(beside, os.X_OK) else shutil.which("memlane") or "memlane"
    return (
        f"{shlex.quote(command)} merge-driver {format} %O %A %B %P"
        " || git merge-file --marker-size=%L -L ours -L base -L theirs %A %O %B || exit 1"
    )


def _spelt(name: str) -> str:
    """A file's name as a pattern of git's; what cannot be one without quotes is met by `?`."""
    return re.sub(r"[^A-Za-z0-9._-]", "?", name)


def _block(path: Path) -> list[str]:
    """Our lines in a file of git's; none where there is no file."""
    found = _OURS.search(_text(path))
    return found[1].splitlines() if found else []


_OURS = lazily(rf"^{_BEGIN}.*\n((?:.*\n)*?){_END}\n?", re.MULTILINE)


def _set_block(path: Path, lines: Sequence[str]) -> None:
    """Write our lines into a file of git's, between two comments; every other line stays."""
    old = _text(path)
    block = "".join(f"{line}\n" for line in (f"{_BEGIN} (`memlane init --git`)", *lines, _END))
    found = _OURS.search(old)
    gap = "\n" if old and not old.endswith("\n") else ""
    new = old[: found.start()] + block + old[found.end() :] if found else old + gap + block
    if new != old:
        files.replace(os.fspath(path), new.encode())


def _text(path: Path) -> str:
    return decoded(files.read_bytes(os.fspath(path)), path) if os.path.isfile(path) else ""


# -- moving memories between the two


@dataclass(frozen=True, slots=True)
class Shared:
    """A memory that was shared or made private. A note has another id then: `before` is the one it had."""

    id: str
    before: str
    private: bool
    remarks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "remarks": list(self.remarks)}


def share(bank: Bank, names: Sequence[str], *, private: bool = False) -> list[Shared]:
    """Move memories to where git takes them along, or with `private`, to where it leaves them out.

    The name `records` means all of them. What was committed stays in git's history, which a remark says. Raises
    NotFound and InvalidInput before anything is changed, AlreadyExists, StorageError.
    """
    whole = [name for name in names if name == _LANE]
    memories = [bank.get(name) for name in dict.fromkeys(names) if name != _LANE]
    for memory in memories:
        if memory.lane not in ("notes", _LANE):
            raise InvalidInput(
                f"{gate.shown(memory.id)} cannot be moved: the {memory.lane} lane is shared as a whole.",
                hint="`memlane add` with --private keeps it as a private note; then delete it here.",
            )
    done = [_share_lane(bank, private=private)] if whole else []
    return done + [
        _share_record(bank, memory, private=private) if memory.lane == _LANE else move(bank, memory, private=private)
        for memory in memories
    ]


def move(bank: Bank, memory: Memory, *, private: bool) -> Shared:
    """Move a note, and with it what is said of it elsewhere."""
    if is_private(memory.id) == private:
        return Shared(memory.id, memory.id, private, (f"it is {'private' if private else 'shared'} already",))
    native = f"{PRIVATE}/{memory.native_id}" if private else memory.native_id.removeprefix(f"{PRIVATE}/")
    committed = _committed(memory.file) if private else ""
    moved = moving.to(bank, memory, native)
    said = committed if private else _outlook(bank, moved.file)
    return Shared(moved.id, memory.id, private, (*moved.remarks, *filter(None, [said])))


def _share_record(bank: Bank, memory: Memory, *, private: bool) -> Shared:
    """Let git take a record along, or leave it out; its file stays, for captured messages find each other by name."""
    home, rules = _record_rules(bank.config)
    path = Path(memory.file)
    line = f"!/{path.relative_to(home).as_posix()}"
    lines = _block(home / ".gitignore")
    if not set(rules) <= set(lines):
        if private:
            hint = "`memlane share --private records` makes all of them private."
            raise InvalidInput("The records here are shared as a whole.", hint=hint)
        if line not in lines and not {f"!{rule}" for rule in rules} <= set(lines):
            _set_block(home / ".gitignore", [*lines, line])  # git takes it anyway; `memlane sync` takes what is named
        return Shared(memory.id, memory.id, private, ("it is shared already: all records here are",))
    if private != (line in lines):
        return Shared(memory.id, memory.id, private, (f"it is {'private' if private else 'shared'} already",))
    _set_block(home / ".gitignore", [known for known in lines if known != line] + ([] if private else [line]))
    said = _committed(memory.file) if private else _outlook(bank, memory.file)
    return Shared(memory.id, memory.id, private, tuple(filter(None, [said])))


def _share_lane(bank: Bank, *, private: bool) -> Shared:
    """Let git take all captured records along, or leave them out."""
    home, rules = _record_rules(bank.config)
    lines = [line for line in _block(home / ".gitignore") if line not in rules and not line.startswith("!")]
    _set_block(home / ".gitignore", [*lines, *(rules if private else [f"!{rule}" for rule in rules])])
    said = _committed(bank.records.root) if private else _outlook(bank, bank.records.root / "x.md")
    return Shared(_LANE, _LANE, private, tuple(filter(None, [said])))


def shares_records(bank: Bank) -> bool:
    """Whether somebody has said that git is to take all captured records along."""
    home, rules = _record_rules(bank.config)
    return {f"!{rule}" for rule in rules} <= set(_block(home / ".gitignore"))


def shared_records(bank: Bank) -> Callable[[str], bool]:
    """Whether somebody has said that others get the captured record in this file; nobody has until it is said."""
    home, rules = _record_rules(bank.config)
    lines = set(_block(home / ".gitignore"))
    every = {f"!{rule}" for rule in rules} <= lines
    return lambda file: every or f"!/{os.path.relpath(file, home)}" in lines


def _record_rules(settings: config.Config) -> tuple[Path, list[str]]:
    """The folder whose .gitignore speaks of the records, and the lines that keep them private there."""
    root = settings.lane_root(_LANE)
    home = root.parent if settings.records else settings.root if settings.root in root.parents else root
    below = "" if home == root else f"{root.relative_to(home).as_posix()}/"
    return home, [f"/{below}{pattern}" for pattern in open_lane(_LANE, root).answers.private]


def _committed(path: str | Path) -> str:
    """What to say of a file or folder that git has, and that is private from now on; "" where git never had it."""
    try:
        top = git.top(os.path.dirname(path))
        if top is None:
            return ""
        name = git.relative(top, path) or "."
        tracked = git.tracked(top, path)
        if not tracked and not git.revisions(top, "--max-count=1", "--all", "--", name):
            return ""
    except MemlaneError:
        return ""
    step = f"`git rm -r --cached {shlex.quote(name)}` and commit, else it stays shared; " if tracked else ""
    return f"git has it: {step}its history keeps it, as do other clones (`memlane forget` names what takes it out)"


def _outlook(bank: Bank, path: str | Path) -> str:
    """What is left to do until others get a file or folder."""
    try:
        top = git.top(bank.root)
        if top is None:
            return "there is no git repository here, so nobody else gets it"
        if git.ignored(top, path):
            return "git ignores it by a rule of your own, so nobody else gets it"
    except MemlaneError as error:
        return f"whether git takes it along is not known: {error}"
    return "commit it, and others get it"
