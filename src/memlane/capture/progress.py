"""How far a transcript was read, remembered between two captures in a small JSON file under the bank's
`indices/capture/`.

The file is derived: without it the transcript is read again from its beginning, and every message that is already
stored is recognised.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from memlane.core.digests import sha256
from memlane.core.errors import AlreadyExists, StorageError
from memlane.core.values import dataclass, field
from memlane.disk import files

_ENDS = 1024  # bytes at either end of the part that was read, by which a transcript is recognised


@dataclass(slots=True)
class Progress:
    """How far a transcript was read, and what still matters of the part before."""

    offset: int = 0
    thread: str = ""
    cwd: str = ""
    branch: str = ""
    aside: bool = False  # it is a subagent's transcript
    turns: int = 0  # in which the assistant said something, so far
    edits: int = 0  # calls of tools that change files, so far
    asked: bool = False  # the user has spoken, and the assistant has not answered yet
    files: list[str] = field(default_factory=list)  # changed in this turn; two are as good as many
    shown: dict[int, None] = field(default_factory=dict)  # marks of injected memory, the oldest first
    said: dict[str, str] = field(default_factory=dict)  # hash of a message and its id → when it was first said
    tail: str = ""  # record of the last message, which is read again: it may have been incomplete
    last: str = ""  # record of what the assistant said last in this turn: the user may object to it

    @classmethod
    def load(cls, place: str, transcript: BinaryIO) -> Progress | None:
        """Where the last capture stopped; None when there was none, or when this is not the transcript it read."""
        progress = cls()
        try:
            saved = json.loads(files.read_text(place))
            for name in cls.__slots__:
                if name == "last" and name not in saved:  # written by an earlier version
                    continue
                value = dict.fromkeys(saved[name]) if name == "shown" else saved[name]
                if type(value) is not type(getattr(progress, name)):
                    return None
                setattr(progress, name, value)
            same = progress.offset > 0 and saved["print"] == _fingerprint(transcript, progress.offset)
        except (OSError, ValueError, TypeError, KeyError, StorageError):
            return None
        return progress if same else None

    def save(self, place: str, transcript: BinaryIO) -> None:
        """Write the progress, unless it is already there. Raises StorageError."""
        values = {name: getattr(self, name) for name in self.__slots__}
        values |= {"print": _fingerprint(transcript, self.offset), "shown": list(self.shown)}
        data = json.dumps(values).encode()
        try:
            if files.read_bytes(place) == data:
                return
        except (OSError, StorageError):
            with suppress(AlreadyExists):
                files.create(os.path.join(os.path.dirname(os.path.dirname(place)), ".gitignore"), b"*\n")
        files.replace(place, data)


def place_of(folder: Path, transcript: str) -> str:
    """The file in `folder` that holds the progress of the transcript at this path."""
    return os.path.join(folder, f"{sha256(os.fsencode(transcript)).hexdigest()[:32]}.json")


def _fingerprint(transcript: BinaryIO, offset: int) -> str:
    """A hash of both ends of what was read: a transcript that was replaced, cut or rewritten has another one."""
    transcript.seek(0)
    head = transcript.read(min(_ENDS, offset))
    transcript.seek(max(offset - _ENDS, 0))
    return sha256(head + transcript.read(min(_ENDS, offset))).hexdigest()[:32]
