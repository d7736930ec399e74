"""The project's files as they were when something was said: from the commit that was checked out at the time.

Which commit that was, git's log of HEAD tells, as far as it goes back (90 days, unless git is told else); before that
it is the last commit up to the time. A file that was not in it was made later, perhaps by what was talked about: then
its first version counts. Reads only; a handful of git commands, however many files are asked for.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Collection
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from memlane.core.errors import MemlaneError
from memlane.history import git

_COMMITS = 50_000  # that are looked at
_LATER = 20  # files whose first version is looked for
_POINTER = b"version https://git-lfs"  # of a file whose content is somewhere else


class Said(NamedTuple):
    """A file that was spoken of at a time."""

    path: str
    at: datetime


class Heads:
    """Which commit was checked out at a time, read when it is first asked for."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._moved: list[tuple[int, str]] = []  # when HEAD came to a commit, the oldest first
        self._made: list[tuple[int, str]] = []  # when commits were made
        self._read_at = 0.0

    def at(self, when: datetime) -> str:
        """The commit of a time; "" where there was none."""
        seconds = int(when.timestamp())
        if not self._read_at or seconds > self._read_at:
            self._read_at = datetime.now().timestamp()
            self._moved = _pairs(self._project, "-g", "--date=unix", "--format=%gd %H")
            self._made = []
        if self._moved and self._moved[0][0] <= seconds:
            return _last(self._moved, seconds)
        self._made = self._made or _pairs(self._project, "--date-order", "--format=%ct %H")
        return _last(self._made, seconds)


def _last(commits: list[tuple[int, str]], seconds: int) -> str:
    place = bisect_right(commits, seconds, key=lambda pair: pair[0])
    return commits[place - 1][1] if place else ""


def _pairs(project: Path, *args: str) -> list[tuple[int, str]]:
    """(seconds, commit) of what `git log` lists, the oldest first."""
    try:
        out = git.run(project, "log", f"--max-count={_COMMITS}", *args, "HEAD", "--").decode(errors="replace")
    except MemlaneError:
        return []
    found = []
    for line in out.splitlines():
        when, _, commit = line.rpartition(" ")
        digits = when.rpartition("{")[2].rstrip("}")
        if digits.isdecimal():
            found.append((int(digits), commit))
    found.reverse()  # of two at the same second, the later one counts
    return sorted(found, key=lambda pair: pair[0])


def contents(project: Path, heads: Heads, asked: Collection[Said]) -> dict[Said, bytes]:
    """What these files were, as far as git knows."""
    commits = {said: heads.at(said.at) for said in asked if git.usable(said.path)}
    names = {said: f"{commit}:./{said.path}" for said, commit in commits.items() if commit}
    try:
        blobs = _blobs(project, names)
        missing = (said for said in commits if said not in blobs and os.path.lexists(project / said.path))
        first = {said: _first(project, said) for said in islice(missing, _LATER)}
        blobs |= _blobs(project, {said: f"{commit}:./{said.path}" for said, commit in first.items() if commit})
        wanted = sorted(set(blobs.values()))
        known = dict(zip(wanted, git.known_blobs(project, wanted), strict=True))
    except MemlaneError:
        return {}
    found = {said: known[blob] for said, blob in blobs.items()}
    return {said: data for said, data in found.items() if data is not None and not data.startswith(_POINTER)}


def _blobs(project: Path, names: dict[Said, str]) -> dict[Said, str]:
    """The blobs that have these names, `commit:./path`."""
    if not names:
        return {}
    out = git.run(project, "cat-file", "--batch-check", input="".join(f"{name}\n" for name in names.values()).encode())
    rows = (line.split(b" ") for line in out.split(b"\n"))
    pairs = zip(names, rows, strict=False)
    return {said: row[0].decode() for said, row in pairs if len(row) == 3 and row[1] == b"blob"}


def _first(project: Path, said: Said) -> str:
    """The first commit after a time that has a file."""
    since = f"--since=@{int(said.at.timestamp())} +0000"
    found = git.revisions(project, "--reverse", since, "HEAD", "--", said.path)
    return found[0] if found else ""
