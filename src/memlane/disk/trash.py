"""The trash of a lane, `.trash/` in its folder: deleted files under their old names, with a stamp.

notes/auth.md  →  .trash/notes/auth_20250110_143022.md
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from memlane.core.errors import AlreadyExists
from memlane.disk import files
from memlane.disk.names import inside

TRASH = ".trash"
_STAMP = re.compile(r"_(\d{8}_\d{6})(?:-(\d+))?$")


def put(path: str, root: str | Path, now: datetime, *, copy: bytes | None = None) -> str:
    """Move a file into root/.trash under its own sub-folder and a stamped name; return where it lies.

    `<stem>_<YYYYMMDD>_<HHMMSS>.md` in UTC; a second one within the second gets `-1`, so nothing is overwritten.
    With `copy`, the file stays and these bytes are put into the trash in its name.
    """
    relative = os.path.relpath(path, root)
    stem, suffix = os.path.splitext(relative)
    stamp = now.astimezone(UTC).strftime("%Y%m%d_%H%M%S")
    number = 0
    while True:
        unique = f"-{number}" if number else ""
        target = inside(root, TRASH, *f"{stem}_{stamp}{unique}{suffix}".split(os.sep))
        try:
            if copy is None:
                files.move(path, target)
            else:
                files.create(target, copy)
        except AlreadyExists:
            number += 1
        else:
            return target


def contents(root: str | Path) -> Iterator[tuple[str, str, datetime]]:
    """(relative name it had, where it lies, when) of everything in the trash, newest first."""
    bin = os.path.join(root, TRASH)
    found = []
    for folder, _, names in os.walk(bin):
        for name in names:
            stem, suffix = os.path.splitext(os.path.relpath(os.path.join(folder, name), bin))
            match = _STAMP.search(stem)
            try:
                when = datetime.strptime(match[1], "%Y%m%d_%H%M%S").replace(tzinfo=UTC) if match else None
            except ValueError:
                continue  # somebody else's file
            if match and when:
                found.append((when, int(match[2] or 0), stem[: match.start()] + suffix, os.path.join(folder, name)))
    for when, _, name, path in sorted(found, reverse=True):
        yield name, path, when
