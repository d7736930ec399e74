"""Files that are known already, so that only others are looked for, and most folders need not be listed."""

from __future__ import annotations

import os
from collections.abc import Collection
from time import time_ns

_TICK, _COARSE = 50_000_000, 2_000_000_000  # ns; file systems tell times apart that are this far from each other


class Known:
    """Names of files by folder. A folder that has not changed since it had no others is not listed again."""

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = {}
        self._changed: dict[str, int] = {}  # when each folder was last changed, before it was listed; -1: just now
        self._below: dict[str, list[str]] = {}  # the folders in each that had no other files

    def put(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        self._names.setdefault(folder, set()).add(name)

    def names(self, folder: str) -> Collection[str]:
        return self._names.get(folder, ())

    def below(self, folder: str) -> list[str] | None:
        """The folders in one that still has no other files; None where it has to be listed."""
        looked = time_ns()
        try:
            changed = os.stat(folder).st_mtime_ns
        except OSError:
            return None
        if changed == self._changed.get(folder) and folder in self._below:
            return self._below[folder]
        self._below.pop(folder, None)
        settled = changed + (_TICK if changed % 10**9 else _COARSE) < looked
        self._changed[folder] = changed if settled else -1
        return None

    def settle(self, folder: str, folders: list[str]) -> None:
        """A folder was listed, and has no other files."""
        self._below[folder] = folders
