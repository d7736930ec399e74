"""Which branches there are, and which files are being worked on: changed in the work tree, staged, or changed by the
last commits of the branch.

A quick look for the start of a session: two calls of git, no file is read. Whether a file of the work tree has changed
is told by its size and time, as git noted them when it last looked: git itself would run the filters that a repository
may name. Where git is missing, says no or takes too long, nothing is known.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from memlane.core.errors import MemlaneError
from memlane.core.patterns import lazily

if TYPE_CHECKING:
    from pathlib import Path

    from memlane.bank import Bank

MOST = 40  # files
COMMITS = 5  # that count as the last ones
_MAX_LISTING = 8 * 1024 * 1024  # bytes: some 30,000 files; in a larger repository only commits are looked at
_ENTRY = lazily(rb"([^\0]+)\0  ctime: [^\n]*\n  mtime: (\d+):(\d+)\n[^\n]*\n[^\n]*\n  size: (\d+)\t[^\n]*\n")


def files_in_work(bank: Bank, seconds: float) -> list[str]:
    """The files of a bank's project, from its folder, in the order they should be thought of: those changed in the work
    tree, the latest first, then the others by name. Not the bank's own. Each call of git may take so many seconds.
    """
    code = bank.config.code
    if code is None or bank.config.distrust or not _in_git(code):
        return []
    own = os.path.relpath(bank.root, code) + os.sep
    found = dict.fromkeys((*_changed(code, seconds), *_committed(code, seconds)))
    return [path for path in found if not path.startswith(own)][:MOST]


def all_branches(bank: Bank) -> set[str] | None:
    """The branches that there are here; None outside of git, and where git says no."""
    code = bank.config.code
    if code is None or not _in_git(code) or bank.config.distrust:
        return None
    from memlane.history import git

    with suppress(MemlaneError):
        out = git.run(code, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads", most=_MAX_LISTING)
        return set(out.decode(errors="replace").splitlines())
    return None


def _in_git(folder: Path) -> bool:
    return any(os.path.lexists(at / ".git") for at in (folder, *folder.parents))


def _changed(folder: Path, seconds: float) -> list[str]:
    """The tracked files whose size or time is not what git noted, the latest change first."""
    from memlane.history import git

    listing = b""
    with suppress(MemlaneError):
        listing = git.run(folder, "ls-files", "--debug", "-z", most=_MAX_LISTING, seconds=seconds)
    changed = []
    for name, second, nanosecond, size in _ENTRY.findall(listing):
        try:
            info = os.lstat(os.path.join(os.fsencode(folder), name))
        except OSError:
            continue
        noted = int(second) * 10**9 + int(nanosecond)
        if noted != info.st_mtime_ns or int(size) != info.st_size & 0xFFFFFFFF:
            changed.append((-info.st_mtime_ns, os.fsdecode(name)))
    return [path for _, path in sorted(changed) if git.usable(path)]


def _committed(folder: Path, seconds: float) -> list[str]:
    """The files that are staged or that the last commits changed, by name; of a short history, the last commit's."""
    from memlane.history import git

    command = ("diff-index", "--cached", "--relative", "--name-only", "--no-renames", "--no-ext-diff", "-z")
    for back in (COMMITS, 1, 0):
        with suppress(MemlaneError):  # there are not so many
            out = git.run(folder, *command, f"HEAD~{back}", "--", most=_MAX_LISTING, seconds=seconds)
            return sorted(path for name in out.split(b"\0") if name and git.usable(path := os.fsdecode(name)))
    return []
