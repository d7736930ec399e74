"""The trash of a lane, `.trash/` in its folder: deleted files under their old names and a stamp.

`sub/auth.md` becomes `.trash/sub/auth_20250110_143022.md`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from memlane.core.errors import AlreadyExists
from memlane.core.patterns import lazily
from memlane.disk import files
from memlane.disk.names import TRASH as TRASH
from memlane.disk.names import inside

_FORMAT = "_%Y%m%d_%H%M%S"
_STAMP = lazily(r"(_\d{8}_\d{6})(?:-(\d+))?$")


def put(path: str, root: str | Path, now: datetime, *, copy: bytes | None = None) -> str:
    """Move a file from below root into root/.trash and return its new path. Raises NotFound, StorageError.

    The stamp is `now` in UTC. A second file of that name within the second gets `-1`, so nothing is overwritten.
    With `copy`, the file stays and these bytes go into the trash under its name.
    """
    stem, suffix = os.path.splitext(os.path.relpath(path, root))
    stem += now.astimezone(UTC).strftime(_FORMAT)
    number = 0
    while True:
        stamped = f"{stem}-{number}{suffix}" if number else stem + suffix
        target = inside(root, TRASH, *stamped.split(os.sep))
        with suppress(AlreadyExists):
            if copy is None:
                files.move(path, target)
            else:
                files.create(target, copy)
            return target
        number += 1


def contents(root: str | Path) -> Iterator[tuple[str, str, datetime]]:
    """(former name relative to root, path now, when) of every file that `put` brought here, the newest first."""
    bin = os.path.join(root, TRASH)
    deleted = []
    for path in files.tree(bin, links=True):
        stem, suffix = os.path.splitext(os.path.relpath(path, bin))
        if match := _STAMP.search(stem):
            with suppress(ValueError):  # digits that are no date: not ours
                when = datetime.strptime(match[1], _FORMAT).replace(tzinfo=UTC)
                deleted.append((when, int(match[2] or 0), stem[: match.start()] + suffix, path))
    for when, _, name, path in sorted(deleted, reverse=True):
        yield name, path, when
