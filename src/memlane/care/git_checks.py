"""What doctor looks for in git: as in `memlane.care.checks`, from an inventory to (where, why, what mends it)."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from memlane.care.inventory import Inventory, roots
from memlane.config import worktrees
from memlane.core.errors import MemlaneError
from memlane.disk.names import PRIVATE
from memlane.disk.trash import TRASH
from memlane.exchange import sharing
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


def git_private(inventory: Inventory) -> Iterator[Sign]:
    bank = inventory.bank
    records, notes = bank.records, bank.notes.root / PRIVATE
    top = _in_git(records.root) if records.root.is_dir() else None
    present = [path for path in records.files() if isinstance(path, str)] if top else []
    if top and present:
        count = sum(path.endswith(".md") for path in git.tracked(top, records.root))
        if git.ignored(top, records.root / "x.md") or sharing.shares_records(bank):
            pass
        elif count:
            why = f"is in git with {count:,} captured messages: they travel with every clone"
            yield os.fspath(records.root), why, inventory.command("share", "--private", "records")
        else:
            why = "is not ignored by git, though it holds what was said in conversations"
            yield os.fspath(records.root), why, inventory.command("init")
    if notes.is_dir() and (top := _in_git(notes)) and (count := len(git.tracked(top, notes))):
        fix = shlex.join(["git", "-C", os.fspath(top), "rm", "-r", "-q", "--cached", git.relative(top, notes) or "."])
        yield os.fspath(notes), f"is in git with {count:,} files, though it is for private notes", fix


def git_drivers(inventory: Inventory) -> Iterator[Sign]:
    root = inventory.bank.root
    if root.is_dir() and _in_git(root) and (missing := sharing.missing_drivers(inventory.bank.config)):
        why = f"names merge drivers that this clone does not know, {', '.join(missing[:2])} …: merges leave conflicts"
        yield os.fspath(root / ".gitattributes"), why, inventory.command("init")


def _in_git(folder: str | Path) -> Path | None:
    """The top of the repository that a folder is in; None where there is none, or no git that would look into it."""
    try:
        return git.top(folder)
    except MemlaneError:
        return None
