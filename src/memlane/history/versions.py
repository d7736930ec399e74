"""How a memory came to be what it is: the versions of a vault record, or the git history of a memory's file.

Reads only.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlane.core.errors import NotFound
from memlane.core.model import iso
from memlane.core.text import moment
from memlane.gate import shown
from memlane.history import git
from memlane.recall.address import Place, find, named

if TYPE_CHECKING:
    from memlane.bank import Bank
    from memlane.lanes.vault.record import Record

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
            return replace(one, text=_content(found.path, one)) if in_git else one
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
    top = _repository(path)
    versions = []
    if git.run(top, "rev-parse", "--quiet", "--verify", "HEAD", ok=(0, 1)):
        command = ("log", "--follow", "--name-only", "-z", f"--format={_FIELDS}", "--no-ext-diff", "--no-mailmap")
        out = git.run(top, "--literal-pathspecs", *command, "--", git.relative(top, path) or path)
        for part in out.decode(errors="replace").split("\x01")[1:]:
            commit, at, author, subject, names = part.split("\x02", 4)
            versions.append(Version(commit, moment(at), author, subject, names.strip("\0\n").partition("\0")[0]))
    if not versions:
        hint = (
            "Commit it, and it has a history from then on." if os.path.exists(path) else "`memlane list` shows the ids."
        )
        raise NotFound(f"git knows no version of {shown(os.path.basename(path))}.", hint=hint)
    return versions


def _repository(path: str) -> Path:
    """The top of the repository of a file that may be gone. Raises NotFound when it is in none."""
    top = git.top(os.path.dirname(path))
    if top is None:
        raise NotFound(
            f"There is no history of {shown(os.path.basename(path))}: it is in no git repository.",
            hint="Keep the bank in git (`git init`, then commit it), and every commit is a version.",
        )
    return top


def _content(path: str, version: Version) -> str:
    found = git.run(_repository(path), "cat-file", "blob", f"{version.version}:{version.path}")
    return found.decode(errors="replace")
