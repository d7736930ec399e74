"""Where code went that is not where it was: by git's renames, or because the same content stands elsewhere.

Asks git a handful of questions however many files are gone, and only when some are. Outside of a repository nothing is
known. Writes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from memlane.care.fresh.code import Code, Gone, Unreadable
from memlane.care.fresh.symbols import Unparsable
from memlane.core.errors import MemlaneError
from memlane.history import git

_HOPS = 5  # renames of one file that are followed
_UNTRACKED = 1_000  # new files that are compared
_HOLDERS = 50  # files that may hold a symbol that is gone from its own


def renames(project: Path, gone: Collection[str], past: dict[str, str]) -> dict[str, str]:
    """Where git says that these files went, those that went somewhere; uncommitted renames included.

    `past` is what is known of the commits already (path -> its next name, or ""), and takes in what is found.
    """
    now = dict(_renamed(_asked(project, "diff", "-M", "--no-ext-diff", *_STATUS, "HEAD")))
    found: dict[str, str] = {}
    left = {path: path for path in gone}  # where it was last seen -> what it was called at first
    for _ in range(_HOPS):
        for last in [last for last in left if last in now]:
            found[left.pop(last)] = now[last]
        unknown = [last for last in left if last not in past]
        if unknown:
            past |= dict.fromkeys(unknown, "") | _committed(project, unknown)
        left = {past[last]: first for last, first in left.items() if past[last]}
        for last in [last for last in left if os.path.isfile(project / last)]:
            found[left.pop(last)] = last
    return found


_STATUS = ("--relative", "--name-status", "--diff-filter=R", "-z")


def _committed(project: Path, paths: Iterable[str]) -> dict[str, str]:
    """What the commits that removed these paths called them from then on."""
    wanted = set(paths)
    listing = _asked(
        project, "--literal-pathspecs", "log", "--no-renames", "--diff-filter=D", "--name-only", "--relative", "-z",
        "--format=%x01%H", "--no-ext-diff", "HEAD", "--", *sorted(wanted),
    )  # fmt: skip
    removed: dict[str, str] = {}  # path -> the latest commit that removed it
    for part in listing.split("\x01")[1:]:
        commit, *names = (name.strip("\n") for name in part.split("\0"))
        for name in names:
            if name in wanted:
                removed.setdefault(name, commit)
    steps: dict[str, str] = {}
    for commit in dict.fromkeys(removed.values()):
        for old, new in _renamed(_asked(project, "diff-tree", "-r", "-M", "--no-commit-id", *_STATUS, commit)):
            if removed.get(old) == commit:
                steps[old] = new
    return steps


def _renamed(listing: str) -> Iterator[tuple[str, str]]:
    words = iter(listing.split("\0"))
    for word in words:
        if word.startswith("R"):
            yield next(words), next(words)


def same_content(project: Path, code: Code, blobs: Collection[str]) -> dict[str, str]:
    """Blob -> the one file that has this content now; one that several have is nobody's."""
    found: dict[str, set[str]] = {blob: set() for blob in blobs}
    for entry in filter(None, _asked(project, "ls-files", "-s", "-z").split("\0")):
        facts, _, path = entry.partition("\t")
        blob = facts.split(" ")[1]
        if blob in found:
            found[blob].add(path)
    new = _asked(project, "ls-files", "-o", "--exclude-standard", "-z").split("\0")
    for path in [path for path in new if path][:_UNTRACKED]:
        blob = _blob(code, path)
        if blob in found:
            found[blob].add(path)
    still = {blob: [path for path in paths if _blob(code, path) == blob] for blob, paths in found.items()}
    return {blob: paths[0] for blob, paths in still.items() if len(paths) == 1}


def _blob(code: Code, path: str) -> str:
    try:
        return code.blob(path) if code.holds(path) else ""
    except (Gone, Unreadable):
        return ""


def same_symbol(project: Path, code: Code, path: str, symbol: str, hash: str) -> str | None:
    """The one other file of the same kind that holds a symbol of this name and text."""
    name, suffix = symbol.rpartition(".")[2], os.path.splitext(path)[1]
    listing = _asked(project, "grep", "--untracked", "-l", "-z", "-F", "-w", "-e", name, "--", f"*{suffix}")
    found = []
    for other in [other for other in listing.split("\0") if other and other != path][:_HOLDERS]:
        try:
            if code.holds(other) and code.symbol(other, symbol) == hash:
                found.append(other)
        except (Gone, Unreadable, Unparsable):
            continue
    return found[0] if len(found) == 1 else None


def contents(project: Path, blobs: Collection[str]) -> dict[str, bytes]:
    """What git has of these blobs."""
    wanted = sorted(blobs)
    try:
        found = zip(wanted, git.known_blobs(project, wanted), strict=True)
        return {blob: data for blob, data in found if data is not None}
    except MemlaneError:
        return {}


def head(project: Path) -> str:
    """The commit that is checked out; "" where there is none."""
    return _asked(project, "rev-parse", "--verify", "--quiet", "HEAD").strip()


def _asked(project: Path, *args: str) -> str:
    """What git prints; nothing where it is not installed, is no repository, or has no commit yet."""
    try:
        return os.fsdecode(git.run(project, *args, ok=(0, 1)))
    except MemlaneError:
        return ""
