"""git: where a folder's repository is, what a commit holds, which commits changed what. The one place that calls it.

git runs with an environment of our own: nothing of a surrounding git command's, no prompts, no pager, no hooks, no
signatures, no program that the repository's configuration names. Only `set_config` writes, and only into .git/config.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from memlane.core.dates import moment
from memlane.core.errors import InvalidInput, MemlaneError, NotFound
from memlane.gate import shown

_SAFE = (
    "--no-pager",
    "-c", "core.quotePath=off", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null",
    "-c", "log.showSignature=false", "-c", "protocol.ext.allow=never",
)  # fmt: skip
_LITERAL = "--literal-pathspecs"
_INHERITED = ("PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_HEX = re.compile(r"[0-9a-fA-F]{4,64}")
PLAIN = frozenset({"100644", "100755"})


class Commit(NamedTuple):
    """One commit: full name, when it was made, who wrote it, the first line of its message, its parents."""

    id: str
    date: str
    author: str
    subject: str
    parents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Touched:
    """A file that a commit differs in from all its parents: the blobs before (one a parent) and after; "" is none."""

    path: str
    before: tuple[str, ...]
    after: str


# -- calling it


def run(folder: str | Path, *args: str, input: bytes | None = None, ok: Sequence[int] = (0,)) -> bytes:
    """What git prints. Raises MemlaneError when it is not there or says no; its words may be in the hint."""
    # The user's and the system's configuration are read: they say which repositories are safe to look into.
    environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    environment |= {
        "LC_ALL": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_ASKPASS": "true",
        "SSH_ASKPASS": "true", "GIT_PAGER": "cat", "GIT_EDITOR": "true", "GIT_NO_LAZY_FETCH": "1",
    }  # fmt: skip
    try:
        command = ["git", *_SAFE, *args]  # the one on the PATH
        done = subprocess.run(command, cwd=folder, env=environment, input=input or b"", capture_output=True)  # noqa: S603
    except FileNotFoundError:
        raise MemlaneError("git is not installed.", hint="Install git, or leave this option out.", code="git") from None
    if done.returncode not in ok:
        raise _refused(done.stderr.decode(errors="replace").strip().splitlines())
    return done.stdout


def _refused(lines: Sequence[str]) -> MemlaneError:
    """The error for what git printed."""
    if any("dubious ownership" in line for line in lines):
        trust = next((line.strip() for line in lines if "safe.directory" in line), "See `git help config`.")
        return MemlaneError("git does not trust this repository: it is another user's.", hint=trust, code="git")
    return MemlaneError("git could not do that.", hint=lines[0] if lines else "Run `git status` there.", code="git")


def top(folder: str | Path) -> Path | None:
    """The top folder of the work tree that a folder is in; None when it is in none."""
    folder = Path(folder).absolute()
    folder = next(there for there in (folder, *folder.parents) if there.is_dir())
    try:
        found = run(folder, "rev-parse", "--show-toplevel").decode().rstrip("\n")
    except MemlaneError as error:
        if "not a git repository" in error.hint or "work tree" in error.hint:
            return None
        raise
    return Path(found) if found else None


def required_top(folder: str | Path) -> Path:
    """As `top`. Raises MemlaneError outside of a repository."""
    found = top(folder)
    if found is None:
        raise MemlaneError(
            "The bank is not in a git repository.", hint="Run `git init` and commit the bank first.", code="not_git"
        )
    return found


def relative(top: Path, path: str | Path) -> str | None:
    """A path as git names it, "" for the top itself; None when it lies outside."""
    found = os.path.relpath(os.path.realpath(path), os.path.realpath(top)).replace(os.sep, "/")
    return None if found == ".." or found.startswith("../") else "" if found == "." else found


def config(folder: Path, key: str) -> str | None:
    """A setting of the repository's own configuration."""
    found = run(folder, "config", "--local", "--null", "--get", key, ok=(0, 1)).decode().partition("\0")[0]
    return found or None


def set_config(folder: Path, key: str, value: str) -> None:
    """Write a setting into .git/config, which all work trees of a clone share."""
    run(folder, "config", "--local", "--replace-all", key, value)


def ignored(folder: Path, path: str | Path) -> bool:
    """Whether git's ignore rules keep a path out of the repository."""
    return bool(run(folder, "check-ignore", "--no-index", "--", os.fspath(path), ok=(0, 1)).strip())


# -- which commit


def commit_at(top: Path, when: str | datetime) -> str:
    """The commit of a name (hash, tag, branch, `main~3`), or the last one at or before a date on the current branch.

    The branch is followed by first parents: what was merged counts from its merge on. A bare day means its end, UTC.
    Raises InvalidInput for what is neither or both, NotFound when no commit is that old.
    """
    if isinstance(when, str):
        when = when.strip()
        named, date = _named(top, when), moment(when)
        if named and date and _HEX.fullmatch(when):
            why = f"{shown(when)} is a date and the beginning of a commit's name."
            raise InvalidInput(why, hint="Write the date with dashes, or more of the name.")
        if named and not date:
            return named
        if date and len(when) <= 10:
            date = date.replace(hour=23, minute=59, second=59)
    else:
        date = moment(when)
    if date is None:
        hint = "Write 2025-01-15, 2025-01-15T10:30:00Z, or a commit."
        raise InvalidInput("There is no such date or commit.", hint=hint)
    if _named(top, "HEAD") is None:
        raise NotFound("The repository has no commits yet.", hint="Commit the bank first.")
    seconds = int(date.timestamp())  # git knows none before 1970
    found = ""
    if seconds >= 0:
        limit = f"--before=@{seconds} +0000"
        found = run(top, "rev-list", "--first-parent", "-1", limit, "HEAD", "--").decode().strip()
    if not found:
        hint = "`memlane log` shows how far it goes back."
        if run(top, "rev-parse", "--is-shallow-repository").strip() == b"true":
            hint = "This clone is shallow: `git fetch --unshallow` brings the rest."
        raise NotFound("No commit on this branch is that old.", hint=hint)
    return found


def _named(top: Path, name: str) -> str | None:
    """The commit that a name stands for; None for no name. Raises InvalidInput for the beginning of several."""
    if not name or name.startswith("-") or re.search(r"[\x00-\x1f]", name):
        return None
    try:
        found = run(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", ok=(0, 1, 128))
    except MemlaneError:
        return None
    text = found.decode().strip()
    if _SHA.fullmatch(text):
        return text
    if _HEX.fullmatch(name):
        several = run(top, "rev-parse", f"--disambiguate={name}", ok=(0, 1, 128)).split()
        if len(several) > 1:
            raise InvalidInput("Several commits begin like that.", hint="Give more of the commit's name.")
    return None


# -- what is in it


def _below(paths: Sequence[str]) -> Sequence[str]:
    """The paths as arguments; none at all mean everything."""
    return () if "" in paths else paths


def blobs_at(top: Path, commit: str, paths: Sequence[str]) -> list[tuple[str, str]]:
    """(path, blob) of every plain file below these paths in a commit; "" means all. Links and submodules are not."""
    listing = run(top, "ls-tree", "-r", "-z", "--full-tree", commit, "--", *_below(paths))
    found = []
    for entry in filter(None, listing.split(b"\0")):
        facts, _, path = entry.partition(b"\t")
        mode, kind, blob = facts.decode().split(" ")
        if kind == "blob" and mode in PLAIN:
            found.append((os.fsdecode(path), blob))
    return found


def read_blobs(top: Path, blobs: Sequence[str], *, at_once: int = 500) -> Iterator[bytes]:
    """The contents of blobs, in their order; so many are in memory at once. Raises MemlaneError for a missing one."""
    for data in known_blobs(top, blobs, at_once=at_once):
        if data is None:
            hint = "In a partial clone, `git fetch --refetch --no-filter` brings it; else run `git fsck`."
            raise MemlaneError("git does not have all files of that commit.", hint=hint, code="git")
        yield data


def known_blobs(top: Path, blobs: Sequence[str], *, at_once: int = 500) -> Iterator[bytes | None]:
    """As `read_blobs`, None for what git does not have."""
    for at in range(0, len(blobs), at_once):
        batch = blobs[at : at + at_once]
        data = run(top, "cat-file", "--batch", input="".join(f"{blob}\n" for blob in batch).encode())
        place = 0
        for _ in batch:
            end = data.index(b"\n", place)
            header = data[place:end].split(b" ")
            place = end + 1
            if len(header) != 3:
                yield None
                continue
            yield data[place : place + int(header[2])]
            place += int(header[2]) + 1


# -- who changed it


def commits(top: Path, paths: Sequence[str], *, skip: int = 0, limit: int = 100) -> list[Commit]:
    """The commits of the current branch and what was merged into it that touched these paths, the newest first."""
    if _named(top, "HEAD") is None:
        return []
    form = "%H%x00%cI%x00%an%x00%s%x00%P%x00"
    out = run(
        top, _LITERAL, "log", f"--format=tformat:{form}", f"--skip={skip}", f"--max-count={limit}", "HEAD", "--",
        *_below(paths),
    )  # fmt: skip
    cells = out.decode(errors="replace").split("\0")[:-1]
    rows = [cells[at : at + 5] for at in range(0, len(cells), 5)]
    return [Commit(id.strip(), date, author, subject, tuple(up.split())) for id, date, author, subject, up in rows]


def touched(top: Path, ids: Sequence[str], paths: Sequence[str]) -> dict[str, list[Touched]]:
    """What each commit changed below these paths. A merge: only files that are as in none of its parents."""
    found: dict[str, list[Touched]] = {id: [] for id in ids}
    out = run(
        top, _LITERAL, "diff-tree", "--stdin", "-r", "-c", "--root", "-z", "--raw", "--no-abbrev", "--no-renames",
        "--no-ext-diff", "--no-textconv", "--", *_below(paths),
        input="".join(f"{id}\n" for id in ids).encode(),
    )  # fmt: skip
    pieces = iter(out.split(b"\0"))
    commit = ""
    for piece in pieces:
        if not piece.startswith(b":"):
            commit = piece.decode().strip() or commit
            continue
        colons = len(piece) - len(piece.lstrip(b":"))
        facts = piece[colons:].decode().split(" ")
        path = os.fsdecode(next(pieces))
        modes, blobs = facts[: colons + 1], facts[colons + 1 : 2 * colons + 2]
        names = [blob if mode in PLAIN and blob.strip("0") else "" for mode, blob in zip(modes, blobs, strict=True)]
        found[commit].append(Touched(path, tuple(names[:-1]), names[-1]))
    return found
