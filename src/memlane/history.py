"""How a memory came to be what it is: the versions of a vault record, or the git history of a memory's file.

Reads only. git runs as it is installed, but with nothing of the caller's repository settings that could start another
program, and without prompts.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memlane.errors import MemlaneError, NotFound
from memlane.gate import shown
from memlane.model import iso
from memlane.place import Place, find, named
from memlane.text import moment

if TYPE_CHECKING:
    from memlane.bank import Bank
    from memlane.lanes.vault_records import Record

_QUIET = ("--no-pager", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false", "-c", "log.mailmap=false")
_FIELDS = "%x01%H%x02%aI%x02%an%x02%s%x02"


@dataclass(frozen=True, slots=True)
class Version:
    """One version: a vault's number or a git commit. `text` is read only where it costs nothing, or is asked for."""

    version: str
    at: datetime | None
    author: str | None
    what: str
    path: str
    text: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "at": iso(self.at),
            "author": self.author,
            "what": self.what,
            "path": self.path,
            "text": self.text,
        }


def history(bank: Bank, id: str) -> list[Version]:
    """Every version, the newest first. Of a deleted memory, too. Raises NotFound when nothing is known of it."""
    found = _located(bank, id)
    return _records(bank, found.native) if found.lane.name == "vault" else _commits(found.path)


def show(bank: Bank, id: str, version: str) -> Version:
    """One version with its text: `version` is a vault's number, or the beginning of a commit. Raises NotFound.

    What git has is a file, so that the text of a topic's entry is all of its topic file.
    """
    found = _located(bank, id)
    in_git = found.lane.name != "vault"
    for one in _commits(found.path) if in_git else _records(bank, found.native):
        if one.version == version or (in_git and len(version) >= 4 and one.version.startswith(version.lower())):
            return (
                replace(one, text=_git(found.path, "cat-file", "blob", f"{one.version}:{one.path}")) if in_git else one
            )
    hint = f"`memlane history {shown(id)}` lists them."
    raise NotFound(f"There is no version {shown(version)} of {shown(id)}.", hint=hint)


def _located(bank: Bank, id: str) -> Place:
    """Where a memory is, or was before it was deleted. Raises NotFound."""
    try:
        return find(bank, id)
    except NotFound:
        native = id.removeprefix("vault:")
        if bank.vault.history(native):
            return Place(bank.vault, native, os.fspath(bank.vault.path))
        gone = next((removed.id for removed in bank.removed() if removed.id.partition(":")[2] == id), id)
        place = named(bank, gone)
        if place is None or place.lane.name == "vault":
            raise
        return place  # git may know


# -- the vault


def _records(bank: Bank, native: str) -> list[Version]:
    records = bank.vault.history(native)
    return [
        Version(
            str(record.version),
            moment(record.deleted_at or record.updated_at or record.created_at),
            record.source,
            _change(before, record),
            os.fspath(bank.vault.path),
            record.text,
        )
        for before, record in zip([None, *records], records, strict=False)
    ][::-1]


def _change(before: Record | None, record: Record) -> str:
    """What a version changed, in a few words."""
    if record.deleted_at:
        return "deleted"
    if before is None:
        return "added"
    if before.deleted_at:
        return "restored"
    if (before.tier, record.tier) == ("register", "canon"):
        return "promoted to canon"
    names = ("text", "scope", "category", "tier", "topic_id", "tags", "source", "extra")
    changed = [name for name in names if getattr(before, name) != getattr(record, name)]
    return f"changed {', '.join(changed)}" if changed else "written again"


# -- git


def _commits(path: str) -> list[Version]:
    out = _git(path, "log", "--follow", "--name-only", "-z", f"--format={_FIELDS}", "--no-ext-diff", "--", path)
    versions = []
    for part in out.split("\x01")[1:]:
        commit, at, author, subject, names = part.split("\x02", 4)
        versions.append(Version(commit, moment(at), author, subject, names.strip("\0\n").partition("\0")[0]))
    if not versions:
        hint = (
            "Commit it, and it has a history from then on." if os.path.exists(path) else "`memlane list` shows the ids."
        )
        raise NotFound(f"git knows no version of {shown(os.path.basename(path))}.", hint=hint)
    return versions


def _git(path: str, *command: str) -> str:
    """What a git command prints about a file that may be gone. Raises NotFound without a repository."""
    folder = os.path.dirname(path)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    # What a caller's git hook has set, such as GIT_DIR, is about another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
    try:
        done = subprocess.run(  # noqa: S603 - the user's own git; the path stands behind `--`
            ["git", *_QUIET, "-C", folder, *command],  # noqa: S607
            capture_output=True,
            env=environment,
            check=False,
        )
    except FileNotFoundError:
        raise MemlaneError("git is not installed.", hint="Install git to see the history of a file.") from None
    said = done.stderr.decode(errors="replace")
    if "not a git repository" in said:
        raise NotFound(
            f"There is no history of {shown(os.path.basename(path))}: it is in no git repository.",
            hint="Keep the bank in git (`git init`, then commit it), and every commit is a version.",
        )
    if done.returncode and "does not have any commits" not in said:
        why = shown(said.strip().rpartition("\n")[2])
        raise MemlaneError(f"git cannot read the history: {why}", hint="Run `git log` in the bank's folder.")
    return done.stdout.decode(errors="replace")
