"""What doctor looks for in git: as in `memlane.care.checks`, from an inventory to (where, why, what mends it)."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from memlane.care.inventory import Inventory, roots
from memlane.config import worktrees
from memlane.core.errors import MemlaneError
from memlane.disk.trash import TRASH
from memlane.history import git
from memlane.lanes.answers import Sign


def worktree(inventory: Inventory) -> Iterator[Sign]:
    settings = inventory.config
    if settings and (said := worktrees.described(settings)):
        yield os.fspath(settings.root), said, 'memory.worktrees = "shared" or "own" in memlane.toml chooses.'


def git_ignore(inventory: Inventory) -> Iterator[Sign]:
    folder = inventory.bank.root / "indices"
    if folder.is_dir() and _in_git(folder) and not git.ignored(folder, "index.db"):
        fix = f"echo '*' > {shlex.quote(os.fspath(folder / '.gitignore'))}"
        yield os.fspath(folder), "is not ignored by git, though it is derived", fix


def git_tracked(inventory: Inventory) -> Iterator[Sign]:
    root = inventory.bank.root
    for name, what in (("indices", "derived files"), (TRASH, "deleted memories")):
        if root.is_dir() and _in_git(root) and git.run(root, "ls-files", "--", name):
            fix = shlex.join(["git", "-C", os.fspath(root), "rm", "-r", "-q", "--cached", name])
            yield os.fspath(root / name), f"is in git: {what} travel with every clone", fix


def git_merge(inventory: Inventory) -> Iterator[Sign]:
    for root in roots(inventory):
        if top := _in_git(root):
            listed = git.run(root, "ls-files", "-u", "-z", "--full-name", "--", ".").decode(errors="surrogateescape")
            names = dict.fromkeys(entry.partition("\t")[2] for entry in listed.split("\0") if entry)
            for name in filter(git.usable, names):
                fix = f"Resolve it, then: {shlex.join(['git', '-C', os.fspath(top), 'add', '--', name])}"
                yield os.fspath(top / name), "is in a merge that is not finished", fix


def _in_git(folder: str | Path) -> Path | None:
    """The top of the repository that a folder is in; None where there is none, or no git that would look into it."""
    try:
        return git.top(folder)
    except MemlaneError:
        return None
