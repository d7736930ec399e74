"""The project's own files: hashes and texts of a file, or of one symbol in it, as they are now.

Paths are relative to the project's folder. Nothing outside it, in .git or in the bank is read, even through a link. A
file is read again only when its size, time or inode has changed. Writes nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from datetime import datetime
from hashlib import sha1
from pathlib import Path

from memlane.care.fresh.symbols import Unparsable, find
from memlane.core.errors import StorageError
from memlane.core.values import dataclass, field
from memlane.disk import files

_YOUNG = 2_000_000_000  # a file that changed this few nanoseconds ago may change again within the same tick


class Gone(Exception):
    """There is no such file in the project."""


class Unreadable(Exception):
    """There is a file that cannot be read; the message says why."""


@dataclass(slots=True)
class Seen:
    """A file as it was read."""

    size: int
    mtime: int
    inode: int
    blob: str
    symbols: dict[str, str] = field(default_factory=dict)  # name -> hash; "" where there is none, "?" does not parse


class Code:
    """The files of one project. `known` may be kept and passed in again; `read` counts how often a file was read."""

    def __init__(self, project: str | Path, excluded: Iterable[str | Path] = (), known: dict[str, Seen] | None = None):
        self.root = os.fspath(project)
        self._home = os.path.realpath(project)
        self._excluded = [os.path.realpath(path) for path in (*excluded, os.path.join(self._home, ".git"))]
        self.known = {} if known is None else known
        self.read = 0

    def holds(self, path: str) -> bool:
        """Whether a path is a file of the project, outside .git and the bank."""
        real = os.path.realpath(os.path.join(self.root, path))
        excluded = any(_within(real, folder) for folder in self._excluded)
        return _within(real, self._home) and not excluded and os.path.isfile(real)

    def blob(self, path: str) -> str:
        """The git blob id of a file, see blob_of. Raises Gone, Unreadable."""
        return self._seen(path).blob

    def is_unwritten_since(self, path: str, when: datetime) -> bool:
        """Whether a file has not been written since a time, so that it is now what it was then."""
        try:
            return os.stat(f"{self.root}/{path}").st_mtime <= when.timestamp()
        except (OSError, ValueError):
            return False

    def state(self, path: str) -> str | Gone | Unreadable:
        """The git blob id of a file, or the reason why there is none."""
        try:
            return self.blob(path)
        except (Gone, Unreadable) as reason:
            return reason

    def symbol(self, path: str, name: str) -> str:
        """The hash of a symbol's text; "" where there is none. Raises Gone, Unreadable, Unparsable."""
        seen = self._seen(path)
        if name not in seen.symbols:
            try:
                seen.symbols[name] = symbol_hash(self.symbol_text(path, name))
            except Unparsable:
                seen.symbols[name] = "?"
        if seen.symbols[name] == "?":
            raise Unparsable
        return seen.symbols[name]

    def symbol_text(self, path: str, name: str) -> str | None:
        """The text of a symbol; None where there is none. Raises Gone, Unreadable, Unparsable."""
        return find(os.path.splitext(path)[1], self.text(path), name)

    def text(self, path: str) -> str:
        """The text of a file. Raises Gone, Unreadable."""
        return decoded(self._read(path))

    def _seen(self, path: str) -> Seen:
        try:
            info = os.stat(f"{self.root}/{path}")
        except (FileNotFoundError, NotADirectoryError):
            raise Gone from None
        except (OSError, ValueError) as error:
            raise Unreadable(getattr(error, "strerror", None) or "its name is no file's") from None
        known = self.known.get(path)
        facts = (info.st_size, info.st_mtime_ns, info.st_ino)
        if known is not None and (known.size, known.mtime, known.inode) == facts:
            return known
        data = self._read(path)
        if time.time_ns() - info.st_mtime_ns < _YOUNG:
            facts = (-1, 0, 0)  # matches nothing: read it again the next time
        seen = Seen(*facts, blob_of(data))
        if known is not None and known.blob == seen.blob:
            seen.symbols = known.symbols
        self.known[path] = seen
        return seen

    def _read(self, path: str) -> bytes:
        if not self.holds(path):
            raise Gone
        self.read += 1
        try:
            return files.read_bytes(os.path.join(self.root, path))
        except FileNotFoundError:
            raise Gone from None
        except OSError as error:
            raise Unreadable(error.strerror or "it cannot be read") from None
        except StorageError as error:
            raise Unreadable(str(error)) from None


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def blob_of(data: bytes) -> str:
    """The git blob id of a content; text counts with the line ends that git stores."""
    if b"\r\n" in data and b"\0" not in data[:8000]:
        data = data.replace(b"\r\n", b"\n")
    return sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def symbol_hash(text: str | None) -> str:
    """The hash of a symbol's text; "" where there is none."""
    return "" if text is None else sha1(text.encode(errors="surrogatepass"), usedforsecurity=False).hexdigest()


def decoded(data: bytes) -> str:
    """A file's bytes as text, whatever its encoding."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")
