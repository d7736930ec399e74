"""A `MemoryStore` of the Pydantic AI harness whose files are notes of a bank.

    Agent(model, capabilities=[Memory(store=MemlaneStore(bank))])

A file is a note that has its path in the front matter; its version is `Memory.version`, so that an edit by hand counts
as a change, too. What a repeated call of a tool has done already is kept in a file of lines under `private/operations`,
which git leaves out.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from anyio import to_thread

from memlane.adapters import missing
from memlane.bank import Bank
from memlane.core.errors import Conflict, InvalidInput, NotFound, Refused
from memlane.core.model import Memory
from memlane.core.text import slug
from memlane.disk import derived, files, journal, log
from memlane.disk.names import PRIVATE, of_key

try:
    from pydantic_ai import ModelRetry
    from pydantic_ai_harness.memory import (
        MemoryConflictError,
        MemoryFile,
        MemoryMutation,
        MemoryOperation,
        MemoryOperationConflictError,
        MemorySearchMatch,
        MemorySearchResult,
    )
except ImportError as error:
    raise missing("pydantic_ai", "pydantic-ai", "pydantic-ai-harness") from error

T = TypeVar("T")
_PATH, _OPERATION, _METADATA, _BLANK = "path", "operation", "metadata", "blank"  # front-matter keys
_SEGMENT = re.compile(r"[A-Za-z0-9_.-]{1,200}")
_RECEIPTS = 1024  # operations that are remembered, at least
_MOST_METADATA = 4096  # characters, as JSON: what the harness's own stores take


class MemlaneStore:
    """The files of agents, as notes in a folder of the bank. The bank stays the caller's to close."""

    def __init__(self, bank: Bank, *, folder: str = "agents") -> None:
        self.bank = bank
        self.folder = folder
        self._receipts = os.path.join(bank.root, PRIVATE, "operations", f"{of_key(folder)}.jsonl")

    async def read(self, path: str, *, max_chars: int) -> MemoryFile | None:
        """The file; None when there is none."""
        _positive(max_chars=max_chars)
        note = await _in_thread(self._note, _valid(path))
        if note is None:
            return None
        content, own = _content(note), note.fields
        cut = len(content) > max_chars
        return MemoryFile(content[:max_chars], note.version, own.get(_OPERATION), cut, own.get(_METADATA))

    async def get_operation(self, operation: MemoryOperation) -> MemoryMutation | None:
        """What the operation has done already; None when nothing is known of it."""
        return await _in_thread(self._receipt, operation)

    async def write(
        self, path: str, content: str, *, expected_version: str | None, operation: MemoryOperation | None = None
    ) -> MemoryMutation:
        """Create or replace a file that has this version; None for one that is not there."""
        return await self.write_with_metadata(
            path, content, expected_version=expected_version, metadata=None, operation=operation
        )

    async def write_with_metadata(
        self,
        path: str,
        content: str,
        *,
        expected_version: str | None,
        metadata: Mapping[str, str] | None,
        operation: MemoryOperation | None = None,
    ) -> MemoryMutation:
        """As `write`, and keep what the writer says of itself."""
        given = {_PATH: _valid(path), _METADATA: _checked(metadata), _OPERATION: operation.id if operation else None}
        own = {key: value for key, value in given.items() if value}

        def put() -> str:
            blank = {} if content.strip() else {_BLANK: content}
            text = content if content.strip() else "(empty)"
            expected = expected_version or ""
            return self.bank.put(self._key(path), text, title=path, extra={**own, **blank}, expected=expected).version

        return await _in_thread(self._mutated, path, put, expected_version, operation)

    async def delete(
        self, path: str, *, expected_version: str | None, operation: MemoryOperation | None = None
    ) -> MemoryMutation:
        """Delete a file that has this version; None for one that is not there, which stays so."""
        _valid(path)

        def drop() -> None:
            if expected_version is not None:
                self.bank.delete(f"notes:{self._key(path)}", expected=expected_version)
            elif self._note(path):
                raise Conflict("It is there.")

        return await _in_thread(self._mutated, path, drop, expected_version, operation)

    async def list_paths(self, prefix: str = "", *, limit: int) -> list[str]:
        """The paths that begin like this, in order."""
        _positive(limit=limit)
        if prefix:
            _valid(prefix.removesuffix("/"))
        paths = await _in_thread(self._paths)
        return sorted(path for path in paths if path.startswith(prefix))[:limit]

    async def search(
        self, prefix: str, query: str, *, limit: int, max_files: int, max_chars: int, max_file_chars: int
    ) -> MemorySearchResult:
        """The best files right below a prefix for a query, by the bank's own ranking, with their best passages."""
        if prefix:
            _valid(prefix.removesuffix("/"))
        if not query.split() or min(limit, max_files, max_chars, max_file_chars) <= 0:
            return MemorySearchResult(matches=[], scanned=0, truncated=False)
        return await _in_thread(self._search, prefix, query, limit, max_files, max_chars)

    # -- in a thread

    def _key(self, path: str) -> str:
        """The note of a path: as much of it as a name in lower case can hold, and a tail that tells it from others."""
        plain = "/".join(slug(part.removesuffix(".md"))[:60] or "file" for part in path.split("/"))
        return f"{self.folder}/{plain}-{hashlib.sha256(path.encode()).hexdigest()[:8]}"

    def _note(self, path: str) -> Memory | None:
        try:
            return self.bank.get(f"notes:{self._key(path)}")
        except NotFound:
            return None

    def _mutated(
        self, path: str, change: Callable[[], str | None], expected: str | None, operation: MemoryOperation | None
    ) -> MemoryMutation:
        if operation is not None and (done := self._receipt(operation)):
            return done
        try:
            with journal.acting("python", "pydantic-ai"):
                version = change()
        except (Conflict, NotFound):
            note = self._note(path)
            if operation is None or note is None or note.fields.get(_OPERATION) != operation.id:
                raise MemoryConflictError(f"The memory {path} has changed since it was read.") from None
            version = note.version  # it was us, who did not come to write that down
        except Refused as refusal:
            raise ModelRetry(f"{refusal} {refusal.hint}") from refusal
        existed = expected is not None
        if operation is not None:
            self._note_receipt(operation, {"version": version, "existed": existed})
        return MemoryMutation(version=version, replayed=False, existed=existed)

    def _receipt(self, operation: MemoryOperation) -> MemoryMutation | None:
        for line in reversed(log.read_lines(self._receipts)):
            known = log.json_of(line)
            if isinstance(known, dict) and known.get("id") == operation.id:
                if known.get("fingerprint") != operation.fingerprint:
                    raise MemoryOperationConflictError(f"The operation {operation.id} was another one before.")
                return MemoryMutation(version=known.get("version"), replayed=True, existed=bool(known.get("existed")))
        return None

    def _note_receipt(self, operation: MemoryOperation, done: Mapping[str, Any]) -> None:
        line = json.dumps({"id": operation.id, "fingerprint": operation.fingerprint, **done}).encode() + b"\n"
        with journal.paused():
            derived.prepare(self.bank.root / PRIVATE)
            files.make_folder(os.path.dirname(self._receipts), private=True)
            files.append_lines(self._receipts, line)
            if len(log.read_lines(self._receipts)) > 2 * _RECEIPTS:
                log.rewrite(self._receipts, _newest, lambda kept: log.json_of(kept) is not None)

    def _paths(self) -> list[str]:
        notes = self.bank.list(lane="notes", where={_PATH: {"$exists": True}})
        return [str(note.fields[_PATH]) for note in notes if self._is_ours(note)]

    def _is_ours(self, note: Memory) -> bool:
        return note.native_id == self._key(str(note.fields.get(_PATH)))

    def _search(self, prefix: str, query: str, limit: int, max_files: int, max_chars: int) -> MemorySearchResult:
        below = sorted(path for path in self._paths() if path.startswith(prefix) and "/" not in path[len(prefix) :])
        looked = below[:max_files]
        hits = self.bank.search(query, len(looked), lane="notes", where={_PATH: {"$in": looked}}) if looked else []
        hits = [hit for hit in hits if self._is_ours(hit.memory)]
        matches: list[MemorySearchMatch] = []
        left = max_chars
        for hit in hits[:limit]:
            path = str(hit.memory.fields[_PATH])
            room = left - len(path) + len(prefix)
            if room <= 0:
                break
            matches.append(MemorySearchMatch(path=path, snippet=hit.content[:room], score=hit.score))
            left = room - len(matches[-1].snippet)
        truncated = len(matches) < len(hits) or len(looked) < len(below)
        return MemorySearchResult(matches=matches, scanned=len(looked), truncated=truncated)


async def _in_thread(work: Callable[..., T], *args: Any) -> T:
    """Work beside the event loop. Cancelling the wait does not stop what was begun: a write is whole."""
    return await to_thread.run_sync(partial(work, *args), abandon_on_cancel=False)


def _content(note: Memory) -> str:
    blank = note.fields.get(_BLANK)
    return note.text if blank is None else str(blank)


def _newest(content: bytes) -> tuple[bytes, bytes]:
    return b"".join(line + b"\n" for line in content.split(b"\n")[-_RECEIPTS - 1 :] if line), b""


def _valid(path: str) -> str:
    parts = path.split("/")
    if not all(_SEGMENT.fullmatch(part) and ".." not in part and part != "." for part in parts):
        raise InvalidInput("That is no path of a memory.", hint="Use letters, digits and _ . - between slashes.")
    return path


def _positive(**numbers: int) -> None:
    for name, number in numbers.items():
        if number <= 0:
            raise InvalidInput(f"{name} is not above 0.", hint="Give a number from 1 on.")


def _checked(metadata: Mapping[str, str] | None) -> dict[str, str] | None:
    if not metadata:
        return None
    if not all(isinstance(text, str) for pair in metadata.items() for text in pair):
        raise TypeError("metadata is not a mapping from text to text.")
    if len(json.dumps(dict(metadata), ensure_ascii=False)) > _MOST_METADATA:
        raise InvalidInput(f"metadata is longer than {_MOST_METADATA} characters.", hint="Keep what says who wrote it.")
    return dict(metadata)
