"""The project's own files as memories speak of them: what is in a file now, and in a symbol of it.

A file is named from the project's folder on. Nothing outside of it, in .git or in the bank is looked at, however it is
named or linked. A file is read again only when its size, time or inode has changed. Writes nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha1
from pathlib import Path

from memlane.care.fresh.symbols import Unparsable, find
from memlane.core.errors import StorageError
from memlane.disk import files

_UNSURE = 2_000_000_000  # a file this young, in nanoseconds, may change again without its time changing


class Gone(Exception):
    """There is no such file in the project."""


class Unreadable(Exception):
    """There is a file, and this is why its content is unknown."""


@dataclass(slots=True)
class Seen:
    """A file as it was read. `symbols` are the hashes of those that were asked for; "" is none, "?" not known."""

    size: int
    mtime: int
    inode: int
    blob: str
    symbols: dict[str, str] = field(default_factory=dict)


class Code:
    """The files of one project. `known` may be kept and given again; `read` counts what had to be read."""

    def __init__(self, project: str | Path, excluded: Iterable[str | Path] = (), known: dict[str, Seen] | None = None):
        self.root = os.fspath(project)
        self._home = os.path.realpath(project)
        self._excluded = [os.path.realpath(path) for path in (*excluded, os.path.join(self._home, ".git"))]
        self.known = {} if known is None else known
        self.read = 0

    def holds(self, path: str) -> bool:
        """Whether this is a file of the project that memories can speak of."""
        real = os.path.realpath(os.path.join(self.root, path))
        return (
            _within(real, self._home) and not any(_within(real, own) for own in self._excluded) and os.path.isfile(real)
        )

    def blob(self, path: str) -> str:
        """git's name of the file's content, line ends made alike. Raises Gone, Unreadable."""
        return self._seen(path).blob

    def symbol(self, path: str, name: str) -> str:
        """The hash of a symbol's own text; "" where there is none. Raises Gone, Unreadable, Unparsable."""
        seen = self._seen(path)
        if name not in seen.symbols:
            try:
                text = self.symbol_text(path, name)
                seen.symbols[name] = "" if text is None else digest(text)
            except Unparsable:
                seen.symbols[name] = "?"
        if seen.symbols[name] == "?":
            raise Unparsable
        return seen.symbols[name]

    def symbol_text(self, path: str, name: str) -> str | None:
        return find(os.path.splitext(path)[1], self.text(path), name)

    def text(self, path: str) -> str:
        """What stands in the file. Raises Gone, Unreadable."""
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
        if time.time_ns() - info.st_mtime_ns < _UNSURE:
            facts = (-1, 0, 0)
        found = Seen(*facts, blob_of(data))
        if known is not None and known.blob == found.blob:
            found.symbols = known.symbols
        self.known[path] = found
        return found

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
    """git's name of a content, of text with the line ends that git stores."""
    if b"\r\n" in data and b"\0" not in data[:8000]:
        data = data.replace(b"\r\n", b"\n")
    return sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def digest(text: str) -> str:
    return sha1(text.encode(errors="surrogatepass"), usedforsecurity=False).hexdigest()


def decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")
