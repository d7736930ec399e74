"""How a memory came to be what it is: the versions that its lane keeps, or the git history of its file.

Reads only.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from memlane.core.errors import NotFound
from memlane.gate import shown
from memlane.history import git
from memlane.lanes.answers import Version
from memlane.recall.address import Place, find, find_any

if TYPE_CHECKING:
    from memlane.bank import Bank


def history(bank: Bank, id: str) -> list[Version]:
    """Every version, the newest first. Of a deleted memory, too. Raises NotFound when nothing is known of it."""
    place = find_any(bank, id)
    kept = place.lane.answers.versions(place.native)
    return _commits(bank, place) if kept is None else kept


def show(bank: Bank, id: str, version: str) -> Version:
    """One version with its text: `version` is a vault's number, or the beginning of a commit. Raises NotFound.

    What git has is a file, so that the text of a topic's entry is all of its topic file.
    """
    place = find_any(bank, id)
    kept = place.lane.answers.versions(place.native)
    for found in _commits(bank, place) if kept is None else kept:
        name = found.version
        if name == version or (kept is None and len(version) >= 4 and name.startswith(version.lower())):
            return found if found.text is not None else replace(found, text=_content(place.path, found))
    hint = f"`memlane history {shown(id)}` lists them."
    raise NotFound(f"There is no version {shown(version)} of {shown(id)}.", hint=hint)


# -- git


def _commits(bank: Bank, place: Place) -> list[Version]:
    path = place.path
    top = _repository(path)
    versions = []
    if git.run(top, "rev-parse", "--quiet", "--verify", "HEAD", ok=(0, 1)):
        command = ("log", "--follow", "--raw", "--no-abbrev", "-z", "--format=%H", "--no-ext-diff", "--no-textconv")
        out = git.run(top, git.LITERAL, *command, "--", git.relative(top, path) or path)
        paths = {entry.commit: entry.path for entry in git.entries(out) if git.usable(entry.path)}
        for commit in git.facts(top, list(paths)):
            version = Version(commit.id, commit.authored, commit.author, commit.subject, paths[commit.id])
            versions.append(version)
    if not versions:
        find(bank, place.id)  # or else it says which names are near
        hint = "Commit it, and it has a history from then on."
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
