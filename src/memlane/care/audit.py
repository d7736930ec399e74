"""Look for secrets and personal data in what is already there: a bank, any folder, or a bank's git history.

Reads only. A leak names the file, the place and the kind, never the value; its fingerprint can be put on the
allow-list (`[[allow]]` in memlane.toml) together with the reason why it may stay.
"""

from __future__ import annotations

import json
import os
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
from memlane.history import git

SUFFIXES = (".md", ".markdown", ".jsonl", ".json", ".txt", ".toml", ".yaml", ".yml", ".rejected", ".old", ".tmp")
MAX_BYTES = 50 * 1024 * 1024
_COMMITS = 1000  # that git is asked about at once
_SKIPPED = frozenset({".git", "indices", "node_modules", ".venv"})


@dataclass(frozen=True, slots=True)
class Leak:
    """One finding. `commit` is the first one that has it, when it was found in the history."""

    path: str
    line: int
    column: int
    rule: str
    description: str
    fingerprint: str
    commit: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}:{self.column}"
        return f"{self.commit[:12]}:{where}: {self.description}" if self.commit else f"{where}: {self.description}"


def files_of(path: Path) -> list[str]:
    """The text files an audit of this path reads: trash and archives too. Raises InvalidInput when there is none."""
    if path.is_file():
        return [os.fspath(path)]
    if not path.is_dir():
        raise InvalidInput("There is no such file or folder.", hint="Name a folder with Markdown or JSONL files.")
    return [name for name in files.tree(path, skip=_SKIPPED) if name.endswith(SUFFIXES)]


def scan_file(path: str, guard: Guard = DEFAULT) -> list[Leak]:
    """The leaks of one file. Special files are passed over. Raises StorageError for what cannot be read."""
    if not os.path.isfile(path):
        return []
    if files.size_of(path) > MAX_BYTES:
        raise StorageError(f"{path} is larger than {MAX_BYTES:,} bytes.", hint="Split it to have it audited.")
    try:
        return scan_data(files.read_bytes(path, MAX_BYTES), path, guard)
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
        yield scan_data(data, name, guard, commit) if data is not None and len(data) <= MAX_BYTES else []
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


def scan_data(data: bytes, path: str, guard: Guard, commit: str | None = None) -> list[Leak]:
    """The leaks of a file's bytes."""
    text = data.decode(errors="replace")
    leaks: dict[tuple[int, str], Leak] = {}
    for line, piece in ((1, text), *_strings(text, path)):
        for match in secrets.scan(piece, email=guard.email, phone=guard.phone, allow=guard.allow):
            at = (match.line, match.column) if piece is text else (line, 1)
            fingerprint = secrets.fingerprint(piece, match)
            leak = Leak(path, *at, match.rule, match.description, fingerprint, commit)
            leaks.setdefault((leak.line, fingerprint), leak)
    return list(leaks.values())


def _strings(text: str, path: str) -> Iterator[tuple[int, str]]:
    """(line, strings) of JSON lines or a JSON file without their escapes: an escaped line end hides what follows."""
    lines = [text] if path.endswith(".json") else text.splitlines()
    for number, line in enumerate(lines, 1):
        if "\\" in line and line.lstrip()[:1] in ("{", "["):
            with suppress(ValueError, RecursionError):
                yield number, "\n".join(strings_in(json.loads(line)))
