"""What doctor looks for, one small function per check: from an inventory to (where, why, what mends it)."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import shutil
import sqlite3
import stat
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from memlane.care import ages, git_checks, journal_checks, sync_checks
from memlane.care.inventory import Inventory, may, roots
from memlane.care.known import stamp_of
from memlane.care.links import to_no_file, to_no_memory
from memlane.care.validate import broken_rules
from memlane.config import allowing, user_state
from memlane.core.dates import utc_now
from memlane.core.errors import NotEnabled
from memlane.core.model import Problem
from memlane.disk import derived, files, rooted, scratch
from memlane.disk.names import folded
from memlane.disk.trash import TRASH
from memlane.lanes import NAMES, Lane, open_lane
from memlane.lanes.answers import HealthCheck, Sign

T = TypeVar("T")
OLDEST_SQLITE = (3, 38, 0)
LEAST_SPACE = 100 * 1024 * 1024
TRASH_BYTES, TRASH_FILES = 50 * 1024 * 1024, 1000
_SHAPE = "SELECT s.data FROM shapes s JOIN memories m ON m.n = s.n"
_UNREAD = (".markdown", ".mdown", ".mkd", ".txt", ".rst", ".org", ".MD", ".Md")


@dataclass(frozen=True, slots=True)
class Check:
    """`look` finds what is wrong; `mend`, where that can do no harm, mends what one finding's `where` names."""

    name: str
    severity: str
    what: str
    look: Callable[[Inventory], Iterator[Sign]]
    mend: Callable[[Inventory, str], None] | None = None
    needs_bank: bool = True


def edit_command(inventory: Inventory, path: str | Path) -> str:
    """How to mend a file by hand: with `memlane edit` where one memory is all that is in it."""
    id = inventory.known.alone(os.fspath(path))
    return inventory.command("edit", id) if id else f"Mend it in an editor: {path}"


# -- what needs no bank


def sqlite_version(inventory: Inventory) -> Iterator[Sign]:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE[:2]))
        why = f"Python has SQLite {sqlite3.sqlite_version}; the index needs {needed}"
        yield "sqlite", why, "Install a newer Python, which brings its own."


def configuration(inventory: Inventory) -> Iterator[Sign]:
    if inventory.error and not isinstance(inventory.error, NotEnabled):
        yield "", str(inventory.error), inventory.error.hint


def trust(inventory: Inventory) -> Iterator[Sign]:
    settings = inventory.config
    if settings and settings.distrust and settings["memory.enabled"]:
        why = f"{settings.distrust}: its settings do not count, nothing is written, and hooks and the server do nothing"
        yield os.fspath(inventory.project), why, f"`{inventory.command('trust')}` shows its configuration and asks you."


def enabled(inventory: Inventory) -> Iterator[Sign]:
    if isinstance(inventory.error, NotEnabled):
        yield os.fspath(inventory.project), str(inventory.error), inventory.command("init")


# -- the folder


def missing(inventory: Inventory) -> Iterator[Sign]:
    settings = inventory.bank.config
    for key in ("memory_configuration.external_path", *(f"lanes.{name}" for name in NAMES)):
        path = settings.resolve(settings.values.get(key) or "")
        if settings.values.get(key) and not os.path.lexists(path):
            source = settings.sources[key]
            yield os.fspath(path), f"is not there, but {key} names it", f"Put it back, or correct {key} in {source}."


def unreadable(inventory: Inventory) -> Iterator[Sign]:
    for file in inventory.files if inventory.unread else ():
        if file.path in inventory.unread:
            mode = "u+rwx" if file.is_folder else "u+rw"
            yield file.path, "cannot be read", shlex.join(["chmod", mode, file.path])


def read_only(inventory: Inventory) -> Iterator[Sign]:
    root = os.fspath(inventory.bank.root)
    if os.path.isdir(root) and not may(root, os.W_OK):
        yield root, "cannot be written: memories are found, but none can be added", shlex.join(["chmod", "u+w", root])


def space(inventory: Inventory) -> Iterator[Sign]:
    for root in roots(inventory)[:1]:
        free = shutil.disk_usage(root).free
        if free < LEAST_SPACE:
            yield root, f"has {free // 2**20} MiB left on its disk", "Free some space."


def locks(inventory: Inventory) -> Iterator[Sign]:
    import fcntl

    for root in roots(inventory):
        with files.storage(root):
            fd, _ = rooted.open_file(root, os.O_RDONLY, or_folder=True)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                why = "lies on a file system without working locks, so that two writers may lose each other's work"
                yield root, why, "Keep the bank on a local disk."
        finally:
            os.close(fd)


def exposed(inventory: Inventory) -> Iterator[Sign]:
    root, project = inventory.bank.root, inventory.bank.config.project
    if project and project in (root, *root.parents):
        return  # the project's folder says who may look
    for file in inventory.files:
        if file.path == os.fspath(root) and file.is_folder and file.info.st_mode & 0o077:
            yield file.path, "is your own bank, but others may look into it", shlex.join(["chmod", "700", file.path])


def open_to_all(inventory: Inventory) -> Iterator[Sign]:
    for file in inventory.files:
        if file.info.st_mode & stat.S_IWOTH and not stat.S_ISLNK(file.info.st_mode):
            yield file.path, "may be changed by every user of this machine", shlex.join(["chmod", "o-w", file.path])


def left_over(inventory: Inventory) -> Iterator[Sign]:
    for file in inventory.left_over:
        why = "was left by an interrupted write that was never acknowledged"
        yield file.path, why, shlex.join(["rm", file.path])


def scratch_left(inventory: Inventory) -> Iterator[Sign]:
    for path in scratch.left(user_state()):
        why = "was left by a killed command: a copy of memories, as they were or as they are"
        yield path, why, shlex.join(["rm", "-r", path])


def names(inventory: Inventory) -> Iterator[Sign]:
    if len({file.path.lower() for file in inventory.files if file.path.isascii()}) == len(inventory.files):
        return  # as nearly always
    first: dict[str, str] = {}
    same: defaultdict[str, list[str]] = defaultdict(list)
    for file in inventory.files:
        name = file.name
        key = file.path[: -len(name)] + (name.lower() if name.isascii() else folded(name))
        if (other := first.setdefault(key, file.path)) is not file.path:
            same[other].append(file.path)
    for other, paths in same.items():
        for number, path in enumerate(paths, 2):
            stem, suffix = os.path.splitext(unicodedata.normalize("NFC", path))
            why = f"differs from {os.path.basename(other)} only in case or Unicode form: macOS and Windows see one file"
            yield path, why, shlex.join(["mv", "-n", path, f"{stem}-{number}{suffix}"])


def unread(inventory: Inventory) -> Iterator[Sign]:
    for file in inventory.files:
        if file.name.endswith(_UNREAD) and not file.is_folder and not file.is_aside:
            stem, suffix = os.path.splitext(file.path)
            target = f"{stem}-2.md" if os.path.lexists(f"{stem}.md") else f"{stem}.md"
            yield file.path, f"is not read: no lane reads *{suffix}", shlex.join(["mv", "-n", file.path, target])


def trash(inventory: Inventory) -> Iterator[Sign]:
    sizes: defaultdict[str, list[int]] = defaultdict(list)
    for file in inventory.files:
        folder, in_trash, _ = file.path.partition(f"{os.sep}{TRASH}{os.sep}")
        if in_trash and not file.is_folder:
            sizes[folder + os.sep + TRASH].append(file.info.st_size)
    for folder, deleted in sizes.items():
        if sum(deleted) > TRASH_BYTES or len(deleted) > TRASH_FILES:
            why = f"holds {len(deleted):,} deleted files of {sum(deleted) // 2**20} MiB together"
            yield folder, why, f"When you want none of them back: rm -r {shlex.quote(folder)}"


# -- what the files say


def damage(inventory: Inventory) -> Iterator[Sign]:
    logs = {os.fspath(lane.root) for lane in _lanes(inventory) if not lane.answers.is_folder}
    elsewhere = {file.path for file in inventory.left_over}  # other checks speak of them
    elsewhere |= inventory.unread | (inventory.conflicts.keys() - logs)
    for problem in dict.fromkeys(inventory.problems):
        if os.fspath(problem.path) not in elsewhere:
            yield place_of(problem), problem.why, _damage_fix(inventory, problem)


def _damage_fix(inventory: Inventory, problem: Problem) -> str:
    path = os.fspath(problem.path)
    folder, name = os.path.split(path)
    for lane in _lanes(inventory):
        if fix := lane.answers.fix_for(problem, inventory.command):
            return fix
    if "is hidden" in problem.why:
        bare = name.lstrip(".")
        return shlex.join(["mv", "-n", path, os.path.join(folder, bare if bare.endswith(".md") else "renamed.md")])
    if "is a link" in problem.why:
        return shlex.join(["rm", path])
    return edit_command(inventory, problem.path)


def form(inventory: Inventory) -> Iterator[Sign]:
    known = {(problem.path, problem.why) for problem in inventory.problems}
    for problem in (problem for name in NAMES for problem in broken_rules(inventory.known, name)):
        if (problem.path, problem.why) not in known:
            yield place_of(problem), problem.why, _form_fix(inventory, problem)


def _form_fix(inventory: Inventory, problem: Problem) -> str:
    if command := re.search(r"`memlane ([^`]+)`", problem.why):
        return inventory.command(*shlex.split(command[1]))
    for key, value in (("type", "journal"), ("status", "active")):
        if problem.why.startswith(f"has an unknown {key}"):
            return inventory.command("update", inventory.known.alone(os.fspath(problem.path)) or "", f"--{key}", value)
    return edit_command(inventory, problem.path)


def conflict(inventory: Inventory) -> Iterator[Sign]:
    for path, line in inventory.conflicts.items():
        yield (
            f"{path}:{line}",
            "has markers of a merge that was not finished",
            f"Choose what stays in an editor: {path}",
        )


def secrets(inventory: Inventory) -> Iterator[Sign]:
    for name in allowing.earlier(inventory.bank.config):
        yield f"[[allow]] {name}", allowing.OF_EARLIER, allowing.INSTEAD
    for fact in inventory.known.of("leak"):
        leak = json.loads(fact.value)
        where = f"{fact.path}:{leak['line']}:{leak['column']}"
        audit = inventory.command("doctor", "--only", "secrets")
        fix = "Take it out and revoke it; until then it is blanked wherever memory is shown. If it is none, "
        fix += f"`{audit}` says how to allow it."
        yield where, f"looks like a secret or personal data: {leak['description']}", fix


def suspicious(inventory: Inventory) -> Iterator[Sign]:
    for fact in inventory.known.of("suspicious"):
        for why in json.loads(fact.value):
            fix = f"Read it, and if it is not yours: {inventory.command('rm', fact.id)}"
            yield fact.id, f"reads like words to the model: it {why}", fix


def duplicates(inventory: Inventory) -> Iterator[Sign]:
    def pairs() -> list[tuple[str, str]]:
        first: dict[bytes, str] = {}
        twice = "words IN (SELECT words FROM entries WHERE words IS NOT NULL GROUP BY words HAVING count(*) > 1)"
        rows = inventory.known.entries("words", twice)
        return [(id, other) for _, id, words in rows if (other := first.setdefault(words, id)) != id]

    for id, other in inventory.known.remembered("same texts", (), pairs):
        yield id, f"has the same text as {other}", inventory.command("rm", id)


def came_back(inventory: Inventory) -> Iterator[Sign]:
    known = inventory.known
    for path, id in known.held:
        if (memory := known.memory(path, id)) and (day := inventory.bank.tombstones.held(memory)):
            why = f"was deleted on {day}, came back unchanged, and is held back"
            yield id, why, f"{inventory.command('rm', id)}  # or, to keep it: {inventory.command('restore', id)}"


def empty(inventory: Inventory) -> Iterator[Sign]:
    for _, id in inventory.known.entries("", "words IS NULL"):
        yield id, "has no text", inventory.command("rm", id)


def future(inventory: Inventory) -> Iterator[Sign]:
    latest = (utc_now() + timedelta(days=1)).timestamp()
    later = "created > ? OR updated > ?"
    for path, id, *dates in inventory.known.entries("created, updated", later, latest, latest):
        for key, when in zip(("created_at", "updated_at"), dates, strict=True):
            if when and when > latest:
                yield id, f"has a {key} in the future", edit_command(inventory, path)


def stale(inventory: Inventory) -> Iterator[Sign]:
    for id, why in ages.stale(inventory.bank):
        yield id, why, f"Read it, and update it where it is no longer so: {inventory.command('get', id)}"


# -- links


def links(inventory: Inventory) -> Iterator[Sign]:
    yield from to_no_memory(inventory.bank, inventory.known.linking, inventory.known.targets, inventory.command)


def ghosts(inventory: Inventory) -> Iterator[Sign]:
    def known(names: Collection[str]) -> set[str]:
        return {file.name for file in inventory.files if file.name in names} | inventory.known.ids_among(names)

    yield from to_no_file(inventory.bank, inventory.known.linking, known)


# -- the index


def index_damage(inventory: Inventory) -> Iterator[Sign]:
    if not os.path.lexists(inventory.bank.index_file.path):
        return
    why = _of_index(inventory, "index damage", lambda: _damaged(inventory), of_files=False)
    if why:
        yield _remade(inventory, why)


def _damaged(inventory: Inventory) -> str:
    from memlane.index.health import is_sound, reading
    from memlane.index.seal import Foreign, OtherVersion

    try:
        with reading(inventory.bank.index_file) as db:
            sound = is_sound(db)
    except OtherVersion:
        return ""
    except Foreign:
        return "was not made here by you and is not read; a search makes its own"
    except sqlite3.Error:
        sound = False
    return "" if sound else "is damaged; the next search makes it anew"


def index_version(inventory: Inventory) -> Iterator[Sign]:
    from memlane.index import seal

    try:
        seal.reading(inventory.bank.index_file).close()
    except seal.OtherVersion:
        yield _remade(inventory, "is of another version of memlane; the next search makes it anew")
    except sqlite3.Error:
        return  # none yet, or damaged


def index_encoder(inventory: Inventory) -> Iterator[Sign]:
    name = inventory.bank.config["search.encoder"]

    def is_anothers() -> bool:
        from memlane.index.encoders import open_encoder
        from memlane.index.health import encoder_of

        return _in_index(inventory, encoder_of) not in (None, "", open_encoder(name).fingerprint)

    if _of_index(inventory, f"index encoder {name}", is_anothers, of_files=False):
        yield _remade(inventory, "has the vectors of another encoder; the next search makes them anew")


def index_behind(inventory: Inventory) -> Iterator[Sign]:
    changed, gone = _behind(inventory)
    if changed or gone:
        parts = [(len(changed), "new or changed"), (len(gone), "gone")]
        what = " and ".join(f"{count:,} file{'s' * (count != 1)} {how}" for count, how in parts if count)
        yield _remade(inventory, f"has not seen {what}; the next search looks by itself")


def index_differs(inventory: Inventory) -> Iterator[Sign]:
    known = inventory.known

    def differing(db: sqlite3.Connection) -> list[str]:
        from memlane.index.health import ageless
        from memlane.index.rows import loaded

        changed = set(_behind(inventory)[0])
        here = {(id, shape): path for path, id, shape in known.entries("shape") if path not in changed}
        for row in db.execute("SELECT id, digest FROM memories"):
            here.pop(row, None)
        ids = []
        for (id, _), path in here.items():
            there = db.execute(f"{_SHAPE} WHERE m.id = ?", (id,)).fetchone()
            memory = known.memory(path, id) if there else None
            only_older = there and memory and ageless(loaded(there[0])) == ageless(memory)
            if not only_older:
                ids.append(id)
        return ids

    ids = _of_index(inventory, "index differs", lambda: _in_index(inventory, differing))
    yield from _differing(inventory, set(ids or ()))


def index_differs_at_all(inventory: Inventory) -> Iterator[Sign]:
    from memlane.index.encoders import open_encoder
    from memlane.index.health import Rebuilt, contents

    if any(_behind(inventory)) or any(index_encoder(inventory)):
        return
    name = inventory.bank.config["search.encoder"]
    there = _in_index(inventory, lambda db: contents(db, open_encoder(name).dim))
    if there is None:
        return
    anew = Rebuilt(inventory.bank.index_file, lambda: _lanes(inventory), name)
    try:
        anew.refresh(force=True)
        here = anew.contents()
    finally:
        anew.close()
    yield from _differing(inventory, {id for id in here.keys() | there.keys() if here.get(id) != there.get(id)})


def _differing(inventory: Inventory, ids: set[str] | None) -> Iterator[Sign]:
    if ids:
        several = f"{len(ids):,} memories otherwise than their files say"
        what = several if len(ids) > 1 else "1 memory otherwise than its file says"
        yield _remade(inventory, f"holds {what}, such as {min(ids)}")


def _remade(inventory: Inventory, why: str) -> Sign:
    """Something is wrong with the index, and making it anew mends it."""
    return os.fspath(inventory.bank.index_file.path), why, inventory.command("doctor", "--reindex")


def _in_index(inventory: Inventory, question: Callable[[sqlite3.Connection], T]) -> T | None:
    """What the index answers; None when there is none yet, or it is damaged."""
    from memlane.index.health import reading

    try:
        with reading(inventory.bank.index_file) as db:
            return question(db)
    except sqlite3.Error:
        return None


def _behind(inventory: Inventory) -> tuple[Sequence[str], Sequence[str]]:
    """The files that are not in the index as they are, and those in it that are gone; nothing without an index.

    A file that was only moved, or came back, has the size and time that the index knows: it is no news.
    """
    known = inventory.known
    known.require_all()

    def question(db: sqlite3.Connection) -> list[list[str]]:
        there = {path: (size, mtime) for path, size, mtime in db.execute("SELECT path, size, mtime FROM files")}
        here = {path: (info.st_size, info.st_mtime_ns) for path, (_, info) in known.files.items() if info.st_ino}
        changed = [path for path, state in here.items() if there.get(path) != state]
        return [changed, sorted(there.keys() - here.keys())]

    changed, gone = _of_index(inventory, "index behind", lambda: _in_index(inventory, question) or ((), ()))
    return changed, gone


def _of_index(inventory: Inventory, name: str, work_out: Callable[[], Any], *, of_files: bool = True) -> Any:
    """What comparing the files with the index says: the same until one of the files or the index changes.

    What is not `of_files` is of the index alone.
    """
    about = (stamp_of(inventory.bank.index_file.path), [str(lane.root) for lane in _lanes(inventory)])
    return inventory.known.remembered(name, about, work_out, of_files=of_files)


# -- mends


def _clear_scratch(inventory: Inventory, path: str) -> None:
    scratch.clear(user_state())


def _remove(inventory: Inventory, path: str) -> None:
    files.remove(path)


def _chmod(add: int, take: int) -> Callable[[Inventory, str], None]:
    def mend(inventory: Inventory, path: str) -> None:
        files.change_mode(path, add, take)

    return mend


def _rebuild(inventory: Inventory, where: str) -> None:
    inventory.bank.close()
    derived.remove(inventory.bank.root)
    inventory.bank.index.refresh(force=True)


def _refresh(inventory: Inventory, where: str) -> None:
    inventory.bank.index.ask(lambda: None)


def _ignore(inventory: Inventory, where: str) -> None:
    files.replace(os.path.join(inventory.bank.root, "indices", ".gitignore"), b"*\n")


# -- all of them


def _of_lane(name: str, check: HealthCheck) -> Check:
    """A lane's own check, asked of the lane as it is in the bank."""

    def look(inventory: Inventory) -> Iterator[Sign]:
        yield from check.find(inventory.bank.lane(name), inventory.command)

    def mend(inventory: Inventory, where: str) -> None:
        if check.mend:
            check.mend(inventory.bank.lane(name))

    return Check(check.name, check.severity, check.what, look, mend if check.mend else None)


_BANK = (
    Check("sqlite", "error", "SQLite is too old for the index", sqlite_version, needs_bank=False),
    Check("configuration", "error", "a configuration file, key or value is wrong", configuration, needs_bank=False),
    Check("trust", "warning", "the project is not trusted, or its configuration has changed", trust, needs_bank=False),
    Check("worktree", "info", "which bank a linked git worktree uses, and why", git_checks.worktree, needs_bank=False),
    Check("enabled", "error", "there is no bank here, or memory is switched off", enabled, needs_bank=False),
    Check("missing", "error", "a folder that the configuration names is not there", missing),
    Check("unreadable", "error", "a file or folder cannot be read", unreadable, _chmod(0o600, 0)),
    Check("read-only", "warning", "the bank's folder cannot be written", read_only),
    Check("space", "warning", "the disk is nearly full", space),
    Check("locks", "error", "the file system has no working locks", locks),
    Check("exposed", "warning", "your own bank is open to other users", exposed, _chmod(0, 0o077)),
    Check("open-to-all", "warning", "every user may change a file", open_to_all, _chmod(0, 0o002)),
    Check("left-over", "warning", "a killed writer left a temporary file", left_over, _remove),
    Check(
        "scratch", "warning", "a killed command left a copy of memories", scratch_left, _clear_scratch, needs_bank=False
    ),
    Check("journal", "warning", "changes are not recorded, or a journal was damaged", journal_checks.unrecorded),
    Check("lost", "warning", "memories are gone or changed back, not by memlane", journal_checks.vanished),
    Check("sync", "warning", "a sync failed, or something was held back or not sent", sync_checks.signs),
    Check("names", "warning", "two names differ only in case or Unicode form", names),
    Check("unread", "info", "a text file lies in the bank under a name that no lane reads", unread),
    Check("trash", "info", "the trash is large", trash),
    Check("damage", "error", "a file or line is damaged and not read, or read only in part", damage),
    Check("format", "warning", "a memory breaks its lane's rules", form),
    Check("conflict", "error", "a merge left its markers in a file", conflict),
    Check("secrets", "error", "a file holds a secret or personal data", secrets),
    Check("suspicious", "warning", "a memory reads like instructions to the model", suspicious),
    Check("duplicates", "info", "two memories have the same text", duplicates),
    Check("came-back", "warning", "a deleted memory is there again and held back", came_back),
    Check("empty", "info", "a memory has no text", empty),
    Check("future", "warning", "a memory is dated in the future", future),
    Check("stale", "info", "a memory was not updated for long", stale),
    Check("links", "warning", "a `[[memory:…]]` link leads to no memory", links),
    Check("ghosts", "info", "a link names a file that is not in the project", ghosts),
)
_DERIVED = (
    Check("index-damage", "error", "the index is damaged", index_damage, _rebuild),
    Check("index-version", "info", "the index is of another version of memlane", index_version, _rebuild),
    Check("index-encoder", "warning", "the index has another encoder's vectors", index_encoder, _refresh),
    Check("index-behind", "info", "the index has not seen the latest changes", index_behind, _refresh),
    Check("index-differs", "error", "the index holds something else than the files", index_differs, _rebuild),
    Check("git-ignore", "warning", "git does not ignore the index", git_checks.git_ignore, _ignore),
    Check("git-tracked", "warning", "the index or the trash is in git", git_checks.git_tracked),
    Check("git-private", "warning", "git has, or would take, what is private", git_checks.git_private),
    Check("git-drivers", "warning", "this clone does not know how to merge memory", git_checks.git_drivers),
    Check("git-merge", "error", "a file of the bank is in an unfinished merge", git_checks.git_merge),
)
DEEP = Check("index-differs", "error", "the index is not as a new one would be", index_differs_at_all, _rebuild)


def checks(*, deep: bool = False) -> tuple[Check, ...]:
    """Every check, those of the lanes among them. With `deep`, the index is compared with one made anew."""
    own = [_of_lane(name, check) for name in NAMES for check in open_lane(name, Path()).answers.health]
    found = (*_BANK, *own, *_DERIVED)
    return tuple(DEEP if deep and check.name == DEEP.name else check for check in found)


# -- shared


def _lanes(inventory: Inventory) -> list[Lane]:
    return [inventory.bank.lane(name) for name in NAMES]


def place_of(problem: Problem) -> str:
    return f"{problem.path}:{problem.line}" if problem.line else os.fspath(problem.path)
