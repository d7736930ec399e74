"""What doctor looks for, one small function per check: from a survey of the bank to (where, why, what mends it)."""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import sqlite3
import stat
import time
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from memlane.care.inventory import Survey, is_left_over, may, places
from memlane.core.dates import utc_now
from memlane.core.errors import MemlaneError, NotEnabled
from memlane.core.model import Problem
from memlane.disk import files
from memlane.disk.names import folded
from memlane.disk.trash import TRASH
from memlane.history import git
from memlane.lanes import NAMES, Lane, open_lane
from memlane.lanes.answers import HealthCheck, Sign

OLDEST_SQLITE = (3, 38, 0)
LEAST_SPACE = 100 * 1024 * 1024
TRASH_BYTES, TRASH_FILES = 50 * 1024 * 1024, 1000
_UNREAD = (".markdown", ".mdown", ".mkd", ".txt", ".rst", ".org", ".MD", ".Md")
_FILE_NAME = re.compile(r"[^\n<>|*?\"]+\.[A-Za-z]\w{0,7}")
_PLACE_IN_FILE = re.compile(r"[#^].*|:\d+(?:[:-]\d+)?$")


@dataclass(frozen=True, slots=True)
class Check:
    """`look` finds, `mend` puts right what one finding's `where` names, where that can do no harm."""

    name: str
    severity: str
    what: str
    look: Callable[[Survey], Iterator[Sign]]
    mend: Callable[[Survey, str], None] | None = None
    needs_bank: bool = True


def _edit(seen: Survey, path: str | Path) -> str:
    """How to mend a file by hand: with `memlane edit` where one memory is all that is in it."""
    id = seen.alone.get(os.fspath(path))
    return seen.command("edit", id) if id else f"Mend it in an editor: {path}"


# -- what needs no bank


def sqlite_version(seen: Survey) -> Iterator[Sign]:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        wanted = ".".join(map(str, OLDEST_SQLITE[:2]))
        why = f"Python has SQLite {sqlite3.sqlite_version}; the index needs {wanted}"
        yield "sqlite", why, "Install a newer Python, which brings its own."


def configuration(seen: Survey) -> Iterator[Sign]:
    if seen.error and not isinstance(seen.error, NotEnabled):
        yield "", str(seen.error), seen.error.hint


def enabled(seen: Survey) -> Iterator[Sign]:
    if isinstance(seen.error, NotEnabled):
        yield os.fspath(seen.project), str(seen.error), seen.command("init")


def clients(seen: Survey) -> Iterator[Sign]:
    from memlane.surfaces.clients import problems

    for problem in problems(project=seen.project):
        fix = re.search(r"`(memlane [^`]+)`", problem.why)
        yield _place(problem), problem.why, fix[1] if fix else _edit(seen, problem.path)


# -- the folder


def missing(seen: Survey) -> Iterator[Sign]:
    settings = seen.bank.config
    external = {"memory_configuration.external_path": settings.root}
    for key, path in (external | {f"lanes.{name}": settings.lane_root(name) for name in NAMES}).items():
        if settings.values.get(key) and not os.path.lexists(path):
            source = settings.sources[key]
            yield os.fspath(path), f"is not there, but {key} names it", f"Put it back, or correct {key} in {source}."


def unreadable(seen: Survey) -> Iterator[Sign]:
    for file in seen.files:
        if not file.readable:
            mode = "u+rwx" if file.is_folder else "u+rw"
            yield file.path, "cannot be read", shlex.join(["chmod", mode, file.path])


def read_only(seen: Survey) -> Iterator[Sign]:
    root = os.fspath(seen.bank.root)
    if os.path.isdir(root) and not may(root, os.W_OK):
        yield root, "cannot be written: memories are found, but none can be added", shlex.join(["chmod", "u+w", root])


def space(seen: Survey) -> Iterator[Sign]:
    for root in _roots(seen)[:1]:
        free = shutil.disk_usage(root).free
        if free < LEAST_SPACE:
            yield root, f"has {free // 2**20} MiB left on its disk", "Free some space."


def locks(seen: Survey) -> Iterator[Sign]:
    import fcntl

    for root in _roots(seen):
        fd = os.open(root, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                why = "lies on a file system without working locks, so that two writers may lose each other's work"
                yield root, why, "Keep the bank on a local disk."
        finally:
            os.close(fd)


def exposed(seen: Survey) -> Iterator[Sign]:
    root, project = seen.bank.root, seen.bank.config.project
    if project and project in (root, *root.parents):
        return  # the project's folder says who may look
    for file in seen.files:
        if file.path == os.fspath(root) and file.is_folder and file.info.st_mode & 0o077:
            yield file.path, "is your own bank, but others may look into it", shlex.join(["chmod", "700", file.path])


def open_to_all(seen: Survey) -> Iterator[Sign]:
    for file in seen.files:
        if file.info.st_mode & stat.S_IWOTH and not stat.S_ISLNK(file.info.st_mode):
            yield file.path, "may be changed by every user of this machine", shlex.join(["chmod", "o-w", file.path])


def left_over(seen: Survey) -> Iterator[Sign]:
    for file in seen.files:
        if is_left_over(file, time.time()):
            why = "was left by an interrupted write that was never acknowledged"
            yield file.path, why, shlex.join(["rm", file.path])


def names(seen: Survey) -> Iterator[Sign]:
    folders: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for file in seen.files:
        folder, name = os.path.split(file.path)
        folders[folder, folded(name)].append(file.path)
    for same in folders.values():
        for number, path in enumerate(same[1:], 2):
            stem, suffix = os.path.splitext(unicodedata.normalize("NFC", path))
            why = (
                f"differs from {os.path.basename(same[0])} only in case or Unicode form: macOS and Windows see one file"
            )
            yield path, why, shlex.join(["mv", "-n", path, f"{stem}-{number}{suffix}"])


def unread(seen: Survey) -> Iterator[Sign]:
    known = {os.path.splitext(file.path)[0] for file in seen.files if file.path.endswith(".md")}
    for file in seen.files:
        stem, suffix = os.path.splitext(file.path)
        if suffix in _UNREAD and not file.is_folder and not file.is_aside:
            target = f"{stem}-2.md" if stem in known else f"{stem}.md"
            yield file.path, f"is not read: no lane reads *{suffix}", shlex.join(["mv", "-n", file.path, target])


def trash(seen: Survey) -> Iterator[Sign]:
    sizes: defaultdict[str, list[int]] = defaultdict(list)
    for file in seen.files:
        folder, found, _ = file.path.partition(f"{os.sep}{TRASH}{os.sep}")
        if found and not file.is_folder:
            sizes[folder + os.sep + TRASH].append(file.info.st_size)
    for folder, found_sizes in sizes.items():
        if sum(found_sizes) > TRASH_BYTES or len(found_sizes) > TRASH_FILES:
            why = f"holds {len(found_sizes):,} deleted files of {sum(found_sizes) // 2**20} MiB together"
            yield folder, why, f"When you want none of them back: rm -r {shlex.quote(folder)}"


# -- what the files say


def damage(seen: Survey) -> Iterator[Sign]:
    logs = {os.fspath(lane.root) for lane in _lanes(seen) if not lane.answers.is_folder}
    elsewhere = {  # files that other checks speak of
        file.path
        for file in seen.files
        if not file.readable or is_left_over(file, time.time()) or (file.conflict and file.path not in logs)
    }
    for problem in dict.fromkeys(seen.problems):
        if os.fspath(problem.path) not in elsewhere:
            yield _place(problem), problem.why, _damage_fix(seen, problem)


def _damage_fix(seen: Survey, problem: Problem) -> str:
    path = os.fspath(problem.path)
    folder, name = os.path.split(path)
    for lane in _lanes(seen):
        if fix := lane.answers.fix_for(problem, seen.command):
            return fix
    if "is hidden" in problem.why:
        bare = name.lstrip(".")
        return shlex.join(["mv", "-n", path, os.path.join(folder, bare if bare.endswith(".md") else "renamed.md")])
    if "is a link" in problem.why:
        return shlex.join(["rm", path])
    return _edit(seen, problem.path)


def form(seen: Survey) -> Iterator[Sign]:
    from memlane.care.validate import validate

    known = {(problem.path, problem.why) for problem in seen.problems}
    for problem in validate(seen.bank):
        if (problem.path, problem.why) not in known:
            yield _place(problem), problem.why, _form_fix(seen, problem)


def _form_fix(seen: Survey, problem: Problem) -> str:
    if command := re.search(r"`memlane ([^`]+)`", problem.why):
        return seen.command(*shlex.split(command[1]))
    for key, value in (("type", "journal"), ("status", "active")):
        if problem.why.startswith(f"has an unknown {key}"):
            return seen.command("update", seen.alone[os.fspath(problem.path)], f"--{key}", value)
    return _edit(seen, problem.path)


def conflict(seen: Survey) -> Iterator[Sign]:
    for file in seen.files:
        if file.conflict:
            where = f"{file.path}:{file.conflict}"
            yield where, "has markers of a merge that was not finished", f"Choose what stays in an editor: {file.path}"


def secrets(seen: Survey) -> Iterator[Sign]:
    for file in seen.files:
        for leak in file.leaks:
            where = f"{leak.path}:{leak.line}:{leak.column}"
            fix = f"Take it out and revoke it. If it is none, `{seen.command('audit', '--json')}` says how to allow it."
            yield where, f"looks like a secret or personal data: {leak.description}", fix


def suspicious(seen: Survey) -> Iterator[Sign]:
    for item in seen.memories:
        for why in item.suspicious:
            yield (
                item.memory.id,
                f"reads like words to the model: it {why}",
                f"Read it, and if it is not yours: {seen.command('rm', item.memory.id)}",
            )


def duplicates(seen: Survey) -> Iterator[Sign]:
    first: dict[bytes, str] = {}
    for item in seen.memories:
        if item.words and (other := first.setdefault(item.words, item.memory.id)) != item.memory.id:
            yield item.memory.id, f"has the same text as {other}", seen.command("rm", item.memory.id)


def came_back(seen: Survey) -> Iterator[Sign]:
    for item in seen.memories:
        if item.deleted:
            id = item.memory.id
            why = f"was deleted on {item.deleted}, came back unchanged, and is held back"
            yield id, why, f"{seen.command('rm', id)}  # or, to keep it: {seen.command('restore', id)}"


def empty(seen: Survey) -> Iterator[Sign]:
    for item in seen.memories:
        if item.words is None:
            yield item.memory.id, "has no text", seen.command("rm", item.memory.id)


def future(seen: Survey) -> Iterator[Sign]:
    latest = utc_now() + timedelta(days=1)
    for item in seen.memories:
        for key in ("created_at", "updated_at"):
            when = getattr(item.memory, key)
            if when and when > latest:
                yield item.memory.id, f"has a {key} in the future", _edit(seen, item.memory.file)


def stale(seen: Survey) -> Iterator[Sign]:
    from memlane.care.ages import ages

    for age in ages(seen.bank):
        if age.band == "stale":
            why = f"was not updated for {age.days} days" if age.days is not None else "does not say when it was updated"
            yield age.id, why, f"Read it, and update it where it is no longer so: {seen.command('get', age.id)}"


# -- links


def links(seen: Survey) -> Iterator[Sign]:
    ids = {item.memory.id for item in seen.memories}
    removed: set[str] | None = None
    for item in seen.memories:
        for node in item.links:
            kind, _, name = node.partition(":")
            if kind == "memory" and name not in ids and f"notes:{name}" not in ids:
                if removed is None:  # rarely needed
                    removed = {found.id for found in seen.bank.removed()}
                back = next((id for id in (name, f"notes:{name}") if id in removed), None)
                fix = seen.command("restore", back) if back else f"Correct the link in {item.memory.file}"
                yield item.memory.id, f"links to {node}, which is {'deleted' if back else 'no memory'}", fix


def ghosts(seen: Survey) -> Iterator[Sign]:
    project = seen.bank.config.project
    if not project:
        return  # a bank for all projects speaks of files of any
    known = {file.name for file in seen.files} | {item.memory.id for item in seen.memories}
    for item in seen.memories:
        for node in item.links:
            kind, _, target = node.partition(":")
            name = _PLACE_IN_FILE.sub("", target).strip()
            if kind != "ghost" or "://" in name or not _FILE_NAME.fullmatch(name):
                continue
            base = os.path.basename(name)
            folders = (project, seen.bank.root, item.memory.path.parent)
            if known.isdisjoint((name, base, f"{base}.md")) and not any(os.path.lexists(at / name) for at in folders):
                fix = f"Correct the link in {item.memory.file}"
                yield item.memory.id, f"links to {name}, a file that is not there", fix


# -- the index


def index_damage(seen: Survey) -> Iterator[Sign]:
    from memlane.index.health import is_sound, reading

    path = _index(seen)
    if path.exists():
        try:
            with reading(path) as db:
                sound = is_sound(db)
        except sqlite3.Error:
            sound = False
        if not sound:
            yield os.fspath(path), "is damaged; the next search makes it anew", seen.command("reindex")


def index_version(seen: Survey) -> Iterator[Sign]:
    from memlane.index.health import is_current, reading

    path = _index(seen)
    try:
        with reading(path) as db:
            current = is_current(db)
    except sqlite3.Error:
        return  # none yet, or damaged
    if not current:
        why = "is of another version of memlane; the next search makes it anew"
        yield os.fspath(path), why, seen.command("reindex")


def index_encoder(seen: Survey) -> Iterator[Sign]:
    from memlane.index.encoders import open_encoder
    from memlane.index.health import encoder_of, reading

    wanted = open_encoder(seen.bank.config["search.encoder"]).fingerprint
    try:
        with reading(_index(seen)) as db:
            found = encoder_of(db)
    except sqlite3.Error:
        return  # none yet, or damaged
    if found not in ("", wanted):
        why = "has the vectors of another encoder; the next search makes them anew"
        yield os.fspath(_index(seen)), why, seen.command("reindex")


def index_behind(seen: Survey) -> Iterator[Sign]:
    changed, gone = _behind(seen)
    if changed or gone:
        parts = [(len(changed), "new or changed"), (len(gone), "gone")]
        what = " and ".join(f"{count:,} file{'s' * (count != 1)} {how}" for count, how in parts if count)
        why = f"has not seen {what}; the next search looks by itself"
        yield os.fspath(_index(seen)), why, seen.command("reindex")


def index_differs(seen: Survey) -> Iterator[Sign]:
    from memlane.index.health import ageless, known, reading
    from memlane.index.rows import loaded

    changed, _ = _behind(seen)
    here = {item.memory.id: item for item in seen.memories if item.memory.file not in changed}
    try:
        with reading(_index(seen)) as db:
            there = known(db)
            differing = {id for id, item in here.items() if there.get(id) != item.shape}
            for id, data in db.execute("SELECT m.id, s.data FROM shapes s JOIN memories m ON m.n = s.n"):
                if id in differing and ageless(replace(loaded(data), text="")) == ageless(here[id].memory):
                    differing.discard(id)  # it has only grown older
    except sqlite3.Error:
        return
    yield from _differing(seen, differing)


def index_differs_at_all(seen: Survey) -> Iterator[Sign]:
    from memlane.index.encoders import open_encoder
    from memlane.index.health import Rebuilt, contents, reading

    if any(_behind(seen)) or any(index_encoder(seen)):
        return
    name = seen.bank.config["search.encoder"]
    try:
        with reading(_index(seen)) as db:
            there = contents(db, open_encoder(name).dim)
    except sqlite3.Error:
        return
    anew = Rebuilt(seen.bank.root, lambda: map(seen.bank.lane, NAMES), name)
    try:
        anew.refresh(force=True)
        here = anew.contents()
    finally:
        anew.close()
    yield from _differing(seen, {id for id in here.keys() | there.keys() if here.get(id) != there.get(id)})


def _differing(seen: Survey, ids: set[str]) -> Iterator[Sign]:
    if ids:
        why = f"holds {len(ids)} memories otherwise than their files say, such as {min(ids)}"
        yield os.fspath(_index(seen)), why, seen.command("reindex")


# -- git


def git_ignore(seen: Survey) -> Iterator[Sign]:
    folder = seen.bank.root / "indices"
    if folder.is_dir() and _in_git(folder):
        ignored = git.run(folder, "check-ignore", "--no-index", "index.db", ok=(0, 1))
        if not ignored:
            fix = f"echo '*' > {shlex.quote(os.fspath(folder / '.gitignore'))}"
            yield os.fspath(folder), "is not ignored by git, though it is derived", fix


def git_tracked(seen: Survey) -> Iterator[Sign]:
    root = seen.bank.root
    for name, what in (("indices", "derived files"), (TRASH, "deleted memories")):
        if root.is_dir() and _in_git(root) and git.run(root, "ls-files", "--", name):
            fix = shlex.join(["git", "-C", os.fspath(root), "rm", "-r", "-q", "--cached", name])
            yield os.fspath(root / name), f"is in git: {what} travel with every clone", fix


def git_merge(seen: Survey) -> Iterator[Sign]:
    for root in _roots(seen):
        if top := _in_git(root):
            listed = git.run(root, "ls-files", "-u", "-z", "--full-name", "--", ".").decode(errors="surrogateescape")
            for name in dict.fromkeys(entry.partition("\t")[2] for entry in listed.split("\0") if entry):
                fix = f"Resolve it, then: {shlex.join(['git', '-C', os.fspath(top), 'add', name])}"
                yield os.fspath(top / name), "is in a merge that is not finished", fix


def _in_git(folder: str | Path) -> Path | None:
    """The top of the repository that a folder is in; None where there is none, or no git that would look into it."""
    try:
        return git.top(folder)
    except MemlaneError:
        return None


# -- mends


def _remove_left_over(seen: Survey, path: str) -> None:
    files.remove(path)


def _chmod(add: int, take: int) -> Callable[[Survey, str], None]:
    def mend(seen: Survey, path: str) -> None:
        with files.storage(path):
            mode = stat.S_IMODE(os.stat(path).st_mode)
            enter = stat.S_IXUSR if os.path.isdir(path) and add else 0
            os.chmod(path, (mode | add | enter) & ~take)

    return mend


def _rebuild(seen: Survey, where: str) -> None:
    seen.bank.close()
    shutil.rmtree(seen.bank.root / "indices", ignore_errors=True)
    seen.bank.index.refresh(force=True)


def _refresh(seen: Survey, where: str) -> None:
    seen.bank.index.ask(lambda: None)


def _ignore(seen: Survey, where: str) -> None:
    files.replace(os.path.join(seen.bank.root, "indices", ".gitignore"), b"*\n")


# -- all of them


def _of_lane(name: str, check: HealthCheck) -> Check:
    """A lane's own check, asked of the lane as it is in the bank."""

    def look(seen: Survey) -> Iterator[Sign]:
        memories = [item.memory for item in seen.memories if item.memory.lane == name]
        yield from check.find(seen.bank.lane(name), memories, seen.command)

    def mend(seen: Survey, where: str) -> None:
        if check.mend:
            check.mend(seen.bank.lane(name))

    return Check(check.name, check.severity, check.what, look, mend if check.mend else None)


_BANK = (
    Check("sqlite", "error", "SQLite is too old for the index", sqlite_version, needs_bank=False),
    Check("configuration", "error", "a configuration file, key or value is wrong", configuration, needs_bank=False),
    Check("enabled", "error", "there is no bank here, or memory is switched off", enabled, needs_bank=False),
    Check("clients", "warning", "a client's entry or hook for memlane does not work", clients, needs_bank=False),
    Check("missing", "error", "a folder that the configuration names is not there", missing),
    Check("unreadable", "error", "a file or folder cannot be read", unreadable, _chmod(0o600, 0)),
    Check("read-only", "warning", "the bank's folder cannot be written", read_only),
    Check("space", "warning", "the disk is nearly full", space),
    Check("locks", "error", "the file system has no working locks", locks),
    Check("exposed", "warning", "your own bank is open to other users", exposed, _chmod(0, 0o077)),
    Check("open-to-all", "warning", "every user may change a file", open_to_all, _chmod(0, 0o002)),
    Check("left-over", "warning", "a killed writer left a temporary file", left_over, _remove_left_over),
    Check("names", "warning", "two names differ only in case or Unicode form", names),
    Check("unread", "info", "a text file lies in the bank under a name that no lane reads", unread),
    Check("trash", "info", "the trash is large", trash),
    Check("damage", "error", "a file or line is damaged and not read, or read only in part", damage),
    Check("form", "warning", "a memory breaks its lane's rules (`memlane validate`)", form),
    Check("conflict", "error", "a merge left its markers in a file", conflict),
    Check("secrets", "error", "a file holds a secret or personal data (`memlane audit`)", secrets),
    Check("suspicious", "warning", "a memory reads like instructions to the model", suspicious),
    Check("duplicates", "info", "two memories have the same text", duplicates),
    Check("came-back", "warning", "a deleted memory is there again and held back", came_back),
    Check("empty", "info", "a memory has no text", empty),
    Check("future", "warning", "a memory is dated in the future", future),
    Check("stale", "info", "a memory was not updated for long (`memlane stale`)", stale),
    Check("links", "warning", "a `[[memory:…]]` link leads to no memory", links),
    Check("ghosts", "info", "a link names a file that is not in the project", ghosts),
)
_DERIVED = (
    Check("index-damage", "error", "the index is damaged", index_damage, _rebuild),
    Check("index-version", "info", "the index is of another version of memlane", index_version, _rebuild),
    Check("index-encoder", "warning", "the index has another encoder's vectors", index_encoder, _refresh),
    Check("index-behind", "info", "the index has not seen the latest changes", index_behind, _refresh),
    Check("index-differs", "error", "the index holds something else than the files", index_differs, _rebuild),
    Check("git-ignore", "warning", "git does not ignore the index", git_ignore, _ignore),
    Check("git-tracked", "warning", "the index or the trash is in git", git_tracked),
    Check("git-merge", "error", "a file of the bank is in an unfinished merge", git_merge),
)
DEEP = Check("index-differs", "error", "the index is not as a new one would be", index_differs_at_all, _rebuild)


def checks(*, deep: bool = False) -> tuple[Check, ...]:
    """Every check, those of the lanes among them. With `deep`, the index is compared with one made anew."""
    own = [_of_lane(name, check) for name in NAMES for check in open_lane(name, Path()).answers.health]
    found = (*_BANK, *own, *_DERIVED)
    return tuple(DEEP if deep and check.name == DEEP.name else check for check in found)


# -- the small print


def _roots(seen: Survey) -> list[str]:
    """The folders that the bank's files lie in."""
    return list(dict.fromkeys(os.fspath(root if root.is_dir() else root.parent) for root in places(seen.bank)))


def _lanes(seen: Survey) -> list[Lane]:
    return [seen.bank.lane(name) for name in NAMES]


def _index(seen: Survey) -> Path:
    return seen.bank.root / "indices" / "index.db"


def _place(problem: Problem) -> str:
    return f"{problem.path}:{problem.line}" if problem.line else os.fspath(problem.path)


def _behind(seen: Survey) -> tuple[set[str], set[str]]:
    """The files that are not in the index as they are, and those in it that are gone; nothing without an index."""
    from memlane.index.health import reading
    from memlane.index.peek import difference

    try:
        with reading(_index(seen)) as db:
            changed, gone = difference(db, map(seen.bank.lane, NAMES), NAMES)
    except sqlite3.Error:
        return set(), set()
    return {path for _, path, _ in changed}, gone
