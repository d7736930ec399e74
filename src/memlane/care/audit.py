"""Look for secrets and personal data in what is already there: a bank, any folder, or a bank's git history.

Reads only. A leak names the file, the place and the kind, never the value; `memlane gate allow` takes its fingerprint
and the reason why it may stay. A line that a person has marked, `memlane:allow <reason>`, is passed over.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memlane.core.errors import InvalidInput, StorageError
from memlane.core.invisible import visible
from memlane.core.text import strings_in
from memlane.disk import files
from memlane.gate import DEFAULT, Guard, secrets
from memlane.gate.fingerprints import fingerprint
from memlane.history import git

SUFFIXES = (".md", ".markdown", ".jsonl", ".json", ".txt", ".toml", ".yaml", ".yml", ".rejected", ".old", ".tmp")
MAX_BYTES = 50 * 1024 * 1024
_COMMITS = 1000  # that git is asked about at once
_SKIPPED = frozenset({".git", "indices", "node_modules", ".venv"})


@dataclass(frozen=True, slots=True)
class Leak:
    """One finding. `commit` is the first one that has it, when it was found in the history.

    Fingerprints take time, so that there is one only where it was asked for.
    """

    path: str
    line: int
    column: int
    rule: str
    description: str
    fingerprint: str = ""
    commit: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}:{self.column}"
        said = f"{where}: {self.description}" + (f" ({self.fingerprint})" if self.fingerprint else "")
        return f"{self.commit[:12]}:{said}" if self.commit else said


def files_of(path: Path) -> list[str]:
    """The text files an audit of this path reads: trash and archives too. Raises InvalidInput when there is none."""
    if path.is_file():
        return [os.fspath(path)]
    if not path.is_dir():
        raise InvalidInput("There is no such file or folder.", hint="Name a folder with Markdown or JSONL files.")
    return [name for name in files.tree(path, skip=_SKIPPED) if name.endswith(SUFFIXES)]


def is_text(path: str, info: os.stat_result) -> bool:
    """Whether a file of a bank is one whose text may hold secrets: no folder or pipe, not derived, not too large."""
    named = path.endswith(SUFFIXES) and f"{os.sep}indices{os.sep}" not in path
    return named and stat.S_ISREG(info.st_mode) and info.st_size <= MAX_BYTES


def scan_file(path: str, guard: Guard = DEFAULT) -> list[Leak]:
    """The leaks of one file, with fingerprints. Special files are passed over. Raises StorageError where it cannot."""
    if not os.path.isfile(path):
        return []
    if files.size_of(path) > MAX_BYTES:
        raise StorageError(f"{path} is larger than {MAX_BYTES:,} bytes.", hint="Split it to have it audited.")
    try:
        return scan_data(files.read_bytes(path, MAX_BYTES), path, guard, named=True)
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}.", hint="Check its permissions.") from error


def scan_history(path: Path, guard: Guard = DEFAULT) -> Iterator[list[Leak]]:
    """The leaks of every version of every file that git ever knew below this path, version by version."""
    versions = _versions(path)
    contents = git.known_blobs(path, list(versions))
    missing = 0
    for blob, (name, commit), data in zip(versions, versions.values(), contents, strict=True):
        if data is None and git.sizes(path, [blob]) == [None]:
            missing += 1
        yield scan_data(data, name, guard, commit, named=True) if data and len(data) <= MAX_BYTES else []
    if missing:
        hint = "In a partial clone, `git fetch --refetch --no-filter` brings them; else run `git fsck`."
        raise StorageError(f"git does not have {missing:,} versions, which were not audited.", hint=hint)


def _versions(path: Path) -> dict[str, tuple[str, str]]:
    """Every blob below the path with its name, whatever it is, as it can be shown, and the first commit that has it."""
    git.required_top(path)
    ids = git.revisions(path, "--all", "--reverse", "--full-history", "--", ".")
    versions: dict[str, tuple[str, str]] = {}
    for at in range(0, len(ids), _COMMITS):
        batch = ids[at : at + _COMMITS]
        for entry in git.differences(path, batch, "-m", "--root", "--no-renames", "--diff-filter=d", "--", "."):
            if entry.path.endswith(SUFFIXES) and entry.modes[-1] in git.PLAIN:
                versions.setdefault(entry.blobs[-1], (visible(entry.path), entry.commit))
    return versions


def scan_data(data: bytes, path: str, guard: Guard, commit: str | None = None, *, named: bool = False) -> list[Leak]:
    """The leaks of a file's bytes; if they are to be `named`, with their fingerprints."""
    # line by line, so that a separator which is made visible does not shift the lines below it
    text = "\n".join(visible(line).replace("\n", " ") for line in data.decode(errors="replace").split("\n"))
    leaks: dict[tuple[int, str, str], Leak] = {}
    for line, piece in ((1, text), *_strings(text, path)):
        for match in secrets.scan(piece, email=guard.email, phone=guard.phone, allow=guard.allow, marks=True):
            at = (match.line, match.column) if piece is text else (line, 1)
            value = piece[match.start : match.end]
            name = fingerprint(match.rule, value, guard.salt) if named else ""
            leaks.setdefault((at[0], match.rule, value), Leak(path, *at, match.rule, match.description, name, commit))
    return list(leaks.values())


def _strings(text: str, path: str) -> Iterator[tuple[int, str]]:
    """(line, strings) of JSON lines or a JSON file without their escapes: an escaped line end hides what follows."""
    lines = [text] if path.endswith(".json") else text.splitlines()
    for number, line in enumerate(lines, 1):
        if "\\" in line and line.lstrip()[:1] in ("{", "["):
            with suppress(ValueError, RecursionError):
                yield number, "\n".join(strings_in(json.loads(line)))
