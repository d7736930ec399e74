"""The bank as git knows it: as it was at a commit or a date, and which commits changed which memories.

Files of the past are read from a copy in a scratch folder that only its owner can open, and that is removed again. The
lanes are looked for where they are today. What was never committed is not there. A commit may be somebody else's: what
has no plain name below the bank's folder is left out and named, and there is a limit to how much is copied.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from memlane.config import Config, user_state
from memlane.core.dates import iso
from memlane.core.errors import MemlaneError
from memlane.core.invisible import visible
from memlane.core.model import Memory, Problem
from memlane.disk import names, scratch
from memlane.history import git
from memlane.lanes import NAMES, Lane

MAX_FILES, MAX_BYTES = 100_000, 1024**3  # that a copy of the past may have
_PAGE_BYTES = 64 * 1024 * 1024  # of contents that the log has in memory, unless one commit has more
_READS = frozenset(
    {
        "name", "root", "path", "checks", "files", "parse", "fetch", "removed",  # of every lane
        "read_memory", "stats", "get_memory_stats",  # notes
        "recall_memories", "search_memories", "find_consolidation_candidates", "propose_deletions", "build_snapshot",
        "vault_stats", "get_memory", "history", "scopes", "default_scope", "max_active",  # vault
        "search", "load", "embed", "relevant", "topics",  # topics
        "get", "list", "find", "index", "validate",  # records
        "read", "get_project_profile", "get_shared_project_memory", "get_skill_memory", "get_command_memory",
        "get_agent_memory", "get_by_project", "get_staleness_report",  # layers
        "written_keys", "keys_of", "files_beside", "broken_rules", "rules_are_lasting",  # of a lane's answers
        "shares_files",
    }
)  # fmt: skip


class ReadOnly:
    """A lane of the past, or its answers: what reads works as ever, everything else is refused."""

    def __init__(self, lane: Any, when: str) -> None:
        self._lane = lane
        self._when = when

    def __getattr__(self, name: str) -> Any:
        if name == "answers":
            return ReadOnly(self._lane.answers, self._when)
        if name not in _READS:
            raise MemlaneError(
                f"This is the bank as it was at {self._when}: it cannot be changed.",
                hint="Leave out --as-of, or open the bank without as_of, to change what is there today.",
                code="read_only",
            )
        return getattr(self._lane, name)


@dataclass(frozen=True, slots=True)
class Copy:
    """The files of a commit in a scratch folder, and the settings that make them a bank. `problems`: the left out."""

    commit: str
    scratch: scratch.Scratch
    settings: Config
    top: Path
    problems: tuple[Problem, ...] = ()

    @property
    def folder(self) -> Path:
        return self.scratch.path

    def original(self, memory: Memory) -> Memory:
        """The memory with the path that it has in the work tree, where it may be another one today or none."""
        return replace(memory, file=os.fspath(self.top / os.path.relpath(memory.file, self.folder)))

    def read_only(self, lane: Lane) -> Lane:
        """A lane of the copy. Raises MemlaneError when the copy was removed already."""
        if not self.folder.is_dir():
            raise MemlaneError("This bank of the past is closed.", hint="Call as_of again.", code="closed")
        return cast("Lane", ReadOnly(lane, self.commit[:12]))

    def remove(self) -> None:
        self.scratch.remove()


def copy(settings: Config, when: str | datetime) -> Copy:
    """The bank's files as they were. Raises MemlaneError outside of git, InvalidInput, NotFound: see git.commit_at."""
    top = git.required_top(settings.root)
    places = _places(settings, top)
    commit = git.commit_at(top, when)
    listed, refused = git.blobs_at(top, commit, sorted(set(places.values())))
    blobs = {path: blob for path, blob in listed if _is_memory(path, places)}
    sizes = dict(zip(blobs, git.sizes(top, list(blobs.values())), strict=True))
    large = [path for path, size in sizes.items() if (size or 0) > git.MAX_BLOB]
    _limit(len(blobs), sum(size or 0 for path, size in sizes.items() if path not in large))
    for path in large:
        del blobs[path]
    place = scratch.Scratch(user_state(), "past")
    try:
        odd = scratch.write(place.path, zip(blobs, git.read_blobs(top, list(blobs.values())), strict=True))
    except BaseException:
        place.remove()
        raise
    return Copy(commit, place, _moved(settings, places, place.path), top, _left_out(top, refused, large, odd))


def _limit(count: int, total: int) -> None:
    """Raise MemlaneError when a commit has more than is copied."""
    if count > MAX_FILES or total > MAX_BYTES:
        raise MemlaneError(
            f"That commit has {count:,} files of {total:,} bytes; {MAX_FILES:,} and {MAX_BYTES:,} are read.",
            hint="Look at it with git itself, or name another commit.",
            code="too_large",
        )


def _left_out(top: Path, refused: Iterable[str], large: Iterable[str], odd: Iterable[str]) -> tuple[Problem, ...]:
    """Problems for files of a commit that are not in the copy."""
    reasons = [(path, names.path_problem(path) or "is not in the bank's folder") for path in refused]
    reasons += [(path, f"is larger than {git.MAX_BLOB:,} bytes") for path in large]
    reasons += [(path, "cannot lie beside another file of that commit here") for path in odd]
    return tuple(Problem(top / visible(path), f"{why}, and was left out of the past") for path, why in reasons)


def _places(settings: Config, top: Path) -> dict[str, str]:
    """Where the bank's folder ("") and its lanes are in the repository. Raises MemlaneError for one that is not."""
    settings = replace(settings, records=None)  # a worktree's own past has them in it
    found: dict[str, str] = {}
    for name, root in {"": settings.root, **{name: settings.lane_root(name) for name in NAMES}}.items():
        place = git.relative(top, root)
        if place is not None:
            found[name] = place
        elif os.path.exists(root) or not name:
            what = f"The {name} lane" if name else "The bank's folder"
            raise MemlaneError(
                f"{what} is not in the bank's git repository.",
                hint=f"git knows nothing of {root} here; use git there.",
                code="not_git",
            )
    return found


def _moved(settings: Config, places: Mapping[str, str], folder: Path) -> Config:
    """The settings of the same bank in another folder."""
    moved = {f"lanes.{name}": os.fspath(folder / place) for name, place in places.items() if name}
    return replace(settings, values={**settings.values, **moved}, folder=folder / places[""], records=None)


def _is_memory(path: str, places: Mapping[str, str]) -> bool:
    """Whether a lane could read this: nothing hidden or derived, as lanes pass that over."""
    derived = f"{places.get('', '')}/indices/".lstrip("/")
    return not os.path.basename(path).startswith(".") and "/.trash/" not in f"/{path}" and not path.startswith(derived)


# -- history


@dataclass(frozen=True, slots=True)
class Change:
    """What one commit did to memories: (id, title) of each. `left_out`: paths that were not looked at, and why."""

    commit: str
    date: datetime | None
    author: str
    subject: str
    added: tuple[tuple[str, str], ...] = ()
    changed: tuple[tuple[str, str], ...] = ()
    removed: tuple[tuple[str, str], ...] = ()
    left_out: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        kinds = {name: getattr(self, name) for name in ("added", "changed", "removed")}
        memories = {name: [{"id": id, "title": title} for id, title in pairs] for name, pairs in kinds.items()}
        return {**asdict(self), "date": iso(self.date), **memories, "left_out": list(self.left_out)}


def log(
    settings: Config, read: Callable[[Config], Iterable[Memory]], id: str | None = None, limit: int | None = None
) -> list[Change]:
    """The commits that changed memories (or this one), the newest first. Of a merge, what is as in none of its parents.

    `read` gives the memories of a bank with these settings. Raises MemlaneError outside of git.
    """
    top = git.required_top(settings.root)
    places = _places(settings, top)
    paths = _paths(places, id)
    found: list[Change] = []
    contents: dict[str, bytes] = {}
    place = scratch.Scratch(user_state(), "log")

    @lru_cache(maxsize=64)  # what a commit found is what the next newer one changed
    def memories(path: str, blob: str) -> dict[str, Memory]:
        home = place.path / blob
        os.mkdir(home, 0o700)
        try:
            scratch.write(home, [(path, contents[blob])])
            items = {memory.id: memory for memory in read(_moved(settings, places, home))}
        finally:
            shutil.rmtree(home, ignore_errors=True)
        return {name: memory for name, memory in items.items() if id in (None, name, memory.native_id)}

    try:
        for commits, files in _pages(top, places, paths):
            blobs = sorted({blob for commit in commits for file in files[commit.id][0] for blob in _blobs(file)})
            contents.clear()
            contents |= zip(blobs, git.read_blobs(top, blobs), strict=True)
            for commit in commits:
                touched, left_out = files[commit.id]
                now: dict[str, Memory] = {}
                parents: list[dict[str, Memory]] = [{} for _ in commit.parents or ("",)]
                for file in touched:
                    if _may_concern(file, id, contents):
                        for state, blob in zip((now, *parents), (file.after, *file.before), strict=True):
                            state |= memories(file.path, blob) if blob else {}
                found.append(replace(_change(commit, now, parents), left_out=left_out if id is None else ()))
            found = [change for change in found if change.added or change.changed or change.removed or change.left_out]
            if limit is not None and len(found) >= limit:
                break
    finally:
        place.remove()
    return found if limit is None else found[:limit]


_Files = dict[str, tuple[list[git.Touched], tuple[str, ...]]]  # of each commit: what to look at, what is left out


def _pages(top: Path, places: Mapping[str, str], paths: Sequence[str]) -> Iterator[tuple[list[git.Commit], _Files]]:
    """Commits with the files that they touched, so many at once as fit into memory. Raises MemlaneError: see _limit."""
    for commits in _commits(top, paths):
        touched, refused = git.touched(top, [commit.id for commit in commits], paths)
        memories = {id: [file for file in files if _is_memory(file.path, places)] for id, files in touched.items()}
        blobs = sorted({blob for files in memories.values() for file in files for blob in _blobs(file)})
        sizes = {blob: size or 0 for blob, size in zip(blobs, git.sizes(top, blobs), strict=True)}
        found: _Files = {}
        page: list[git.Commit] = []
        total = 0
        for commit in commits:
            large = [file for file in memories[commit.id] if any(sizes[blob] > git.MAX_BLOB for blob in _blobs(file))]
            files = [file for file in memories[commit.id] if file not in large]
            left_out = _left_out(Path(), refused[commit.id], [file.path for file in large], ())
            found[commit.id] = files, tuple(map(str, left_out))
            bytes = sum(sizes[blob] for file in files for blob in _blobs(file))
            _limit(len(files), bytes)
            if page and total + bytes > _PAGE_BYTES:
                yield page, found
                page, total = [], 0
            page.append(commit)
            total += bytes
        if page:
            yield page, found


def _blobs(file: git.Touched) -> list[str]:
    return [blob for blob in (*file.before, file.after) if blob]


def _commits(top: Path, paths: Sequence[str]) -> Iterator[list[git.Commit]]:
    """The commits that touched these paths, the newest first, in batches.

    git walks the branch from its tip for every page, so pages grow.
    """
    skip, page = 0, 50
    while True:
        found = git.commits(top, paths, skip=skip, limit=page)
        for at in range(0, len(found), 50):
            yield found[at : at + 50]
        if len(found) < page:
            return
        skip, page = skip + page, page * 4


def _may_concern(file: git.Touched, id: str | None, contents: Mapping[str, bytes]) -> bool:
    """Whether a file's change may be one of this memory: in a log, whether lines that name it have changed."""
    native = (id or "").rpartition(":")[2]
    if not file.path.endswith(".jsonl") or not re.fullmatch("[0-9A-Za-z_-]+", native):  # others may be escaped
        return True
    name = native.encode()
    before, after = (
        [line for blob in blobs if blob for line in contents[blob].split(b"\n") if name in line]
        for blobs in (file.before[:1], (file.after,))
    )
    return before != after


def _paths(places: Mapping[str, str], id: str | None) -> list[str]:
    """Where to look for a memory of this id, or for any."""
    name, colon, native = (id or "").partition(":")
    if colon and name in ("notes", "records") and name in places:
        folders = ("",) if name == "notes" else ("", ".archive/")
        return [f"{places[name]}/{folder}{native}.md".lstrip("/") for folder in folders]
    if colon and name in places:
        return [places[name]]
    return sorted({place for name, place in places.items() if name})


def _change(commit: git.Commit, now: Mapping[str, Memory], parents: Sequence[Mapping[str, Memory]]) -> Change:
    kinds: dict[str, list[tuple[str, str]]] = {"added": [], "changed": [], "removed": []}
    for id, memory in sorted(now.items()):
        before = [parent[id] for parent in parents if id in parent]
        if not before:
            kinds["added"].append((id, memory.title))
        elif len(before) == len(parents) and all(_content(memory) != _content(old) for old in before):
            kinds["changed"].append((id, memory.title))
    for id in sorted(set.intersection(*(set(parent) for parent in parents)) - set(now)):
        kinds["removed"].append((id, parents[0][id].title))
    added, changed, removed = map(tuple, kinds.values())
    return Change(commit.id, commit.date, commit.author, commit.subject, added, changed, removed)


def _content(memory: Memory) -> Memory:
    """All that a commit can change of a memory: not where its file lies, nor the dates that the disk knows."""
    return replace(memory, file="", created_at=None, updated_at=None)
