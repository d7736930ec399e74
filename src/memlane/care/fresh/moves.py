"""Where code went that is gone from its place: git knows the rename, or another file has the same content.

Runs a handful of git commands however many files are gone, and none when no file is. Outside a repository nothing is
found. Writes nothing. git compares commits and its index only: to compare the work tree, it would run the filters that
the repository names.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from memlane.care.fresh.code import Code, Gone, Unreadable
from memlane.care.fresh.symbols import Unparsable
from memlane.core.errors import MemlaneError
from memlane.history import git

_HOPS = 5  # how many renames of one file are followed
_UNTRACKED = 1_000  # how many untracked files are compared
_HOLDERS = 50  # how many files are searched for a symbol that is gone from its own
_STAGED = 1_000  # how many added files are compared with those that are gone, but not from git's index
_RAW = ("--relative", "--raw", "--no-abbrev", "-z", "--no-ext-diff", "--no-textconv")


def renames(project: Path, gone: Collection[str], past: dict[str, str]) -> dict[str, str]:
    """The new paths of the files that git knows as renamed, uncommitted renames included.

    `past` holds the renames in commits that are known already (path -> its next name, or ""); new ones are added to it.
    """
    uncommitted = _uncommitted(project)
    new_paths: dict[str, str] = {}
    left = {path: path for path in gone}  # where it was last seen -> what it was called at first
    for _ in range(_HOPS):
        for last in [last for last in left if last in uncommitted]:
            new_paths[left.pop(last)] = uncommitted[last]
        unknown = [last for last in left if last not in past]
        if unknown:
            past |= dict.fromkeys(unknown, "") | _committed(project, unknown)
        left = {past[last]: first for last, first in left.items() if past[last]}
        for last in [last for last in left if os.path.isfile(project / last)]:
            new_paths[left.pop(last)] = last
    return new_paths


def _uncommitted(project: Path) -> dict[str, str]:
    """The new names of files that were renamed since the last commit, where git's index has the new name."""
    staged = list(_entries(_git(project, "diff-index", "--cached", "-M", *_RAW, "HEAD")))
    renamed = {entry.old_path: entry.path for entry in staged if entry.status.startswith("R")}
    added = [entry.path for entry in staged if entry.status == "A"][:_STAGED]
    gone = _names(project, "ls-files", "-d")[:_STAGED] if added else []
    if not gone:
        return renamed
    # Moved by hand, and only the new name added: for git's index, that is a copy.
    copies = ("-C", "--find-copies-harder", "--diff-filter=C", *_RAW, "HEAD", "--", *gone, *added)
    listing = _git(project, git.LITERAL, "diff-index", "--cached", *copies)
    return {entry.old_path: entry.path for entry in _entries(listing) if entry.old_path in gone} | renamed


def _committed(project: Path, paths: Iterable[str]) -> dict[str, str]:
    """The new names that these paths got in the commits that removed them."""
    wanted = sorted(set(paths))
    try:
        ids = git.revisions(project, "HEAD", "--", *wanted)
        deleted = list(git.differences(project, ids, "--relative", "--no-renames", "--diff-filter=D", "--", *wanted))
    except MemlaneError:
        return {}
    removed: dict[str, str] = {}  # path -> the latest commit that removed it
    for entry in deleted:
        removed.setdefault(entry.path, entry.commit)
    steps: dict[str, str] = {}
    for commit in dict.fromkeys(removed.values()):
        listing = _git(project, "diff-tree", "-r", "-M", "--no-commit-id", "--diff-filter=R", *_RAW, commit)
        steps |= {entry.old_path: entry.path for entry in _entries(listing) if removed.get(entry.old_path) == commit}
    return steps


def _entries(listing: str) -> Iterator[git.Entry]:
    """The differences that git lists, of plain names."""
    return (entry for entry in git.entries(os.fsencode(listing)) if git.usable(entry.path))


def same_content(project: Path, code: Code, blobs: Collection[str]) -> dict[str, str]:
    """Blob -> the file that has this content now; none where several files have it."""
    untracked = _names(project, "ls-files", "-o", "--exclude-standard")[:_UNTRACKED]
    candidates = {path for path in untracked if git.usable(path)}
    for entry in _names(project, "ls-files", "-s"):
        facts, _, path = entry.partition("\t")
        if facts.split(" ")[1] in blobs and git.usable(path):
            candidates.add(path)
    holders: dict[str, list[str]] = {blob: [] for blob in blobs}
    for path in candidates:
        blob = code.state(path) if code.holds(path) else ""
        if isinstance(blob, str) and blob in holders:
            holders[blob].append(path)
    return {blob: paths[0] for blob, paths in holders.items() if len(paths) == 1}


def same_symbol(project: Path, code: Code, path: str, symbol: str, hash: str) -> str | None:
    """The other file of the same language with a symbol of this name and text; None if there are several."""
    name, suffix = symbol.rpartition(".")[2], os.path.splitext(path)[1]
    command = ("grep", "--no-color", "--no-textconv", "--untracked", "-l", "-F", "-w", "-e", name)
    candidates = [other for other in _names(project, *command, "--", f"*{suffix}") if git.usable(other)]
    holders = []
    for other in [other for other in candidates if other != path][:_HOLDERS]:
        with suppress(Gone, Unreadable, Unparsable):
            if code.holds(other) and code.symbol(other, symbol) == hash:
                holders.append(other)
    return holders[0] if len(holders) == 1 else None


def contents(project: Path, blobs: Collection[str]) -> dict[str, bytes]:
    """The content of those of these blobs that git has."""
    wanted = sorted(blobs)
    try:
        pairs = zip(wanted, git.known_blobs(project, wanted), strict=True)
        return {blob: data for blob, data in pairs if data is not None}
    except MemlaneError:
        return {}


def head(project: Path) -> str:
    """The commit that is checked out; "" where there is none."""
    return _git(project, "rev-parse", "--verify", "--quiet", "HEAD").strip()


def _names(project: Path, subcommand: str, *args: str) -> list[str]:
    """What git lists with `-z`."""
    return [name for name in _git(project, subcommand, "-z", *args).split("\0") if name]


def _git(project: Path, *args: str) -> str:
    """What git prints; "" where there is no git, no repository, or no commit yet."""
    try:
        return os.fsdecode(git.run(project, *args, ok=(0, 1)))
    except MemlaneError:
        return ""
