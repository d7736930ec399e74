"""The smallest lane there can be: one Markdown file per memory in one folder, a title on its first line.

It shows what a new lane has to bring: the verbs of `memlane.lanes.Lane`, and `Answers` where they differ.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memlane import gate
from memlane.core.dates import utc_now
from memlane.core.errors import NotFound
from memlane.core.model import Draft, Memory, Problem, Removed
from memlane.core.text import slug
from memlane.disk import files, names, trash, walking
from memlane.disk.tombstones import Tombstones
from memlane.lanes import known, read_file
from memlane.lanes.answers import Answers


class ToyAnswers(Answers):
    merges = (("toy", "*.md"),)

    def broken_rules(self, memory: Memory) -> Iterator[str]:
        if len(memory.text) > 1000:
            yield "is too long for a toy"

    def texts_in(self, path: str) -> list[str]:
        text = read_file(path)
        return [_split(text)[1]] if isinstance(text, str) else []


class ToyLane:
    name = "toys"

    def __init__(
        self, root: str | Path, *, guard: gate.Guard = gate.DEFAULT, tombstones: Tombstones | None = None
    ) -> None:
        self.root = Path(root).absolute()
        self.checks = gate.common(guard)
        self.tombstones = tombstones or Tombstones()

    @staticmethod
    def options(_: Any) -> dict[str, Any]:
        return {}

    @property
    def answers(self) -> ToyAnswers:
        return ToyAnswers(self)

    def files(self) -> Iterator[str | Problem]:
        return walking.walk(self.root)

    def parse(self, path: str) -> Iterator[Memory | Problem]:
        text = read_file(path)
        if isinstance(text, str):
            title, body = _split(text)
            when = datetime.fromtimestamp(os.stat(path).st_mtime, UTC)
            yield Memory(f"toys:{Path(path).stem}", "toys", body, title, path, created_at=when)
        elif text is not None:
            yield text

    def fetch(self, native: str) -> Memory:
        for item in self.parse(self._path(native)):
            if isinstance(item, Memory):
                return item
        raise NotFound(f"There is no toy {gate.shown(native)}.", hint="`memlane list --lane toys` shows the ids.")

    def put(self, draft: Draft) -> Memory:
        draft = gate.admit(self.checks, draft, self)
        native = draft.fields.get("id") or slug(draft.title or draft.text)
        files.create(self._path(native), _page(draft.title or native, draft.text))
        return self._stored(native, draft)

    def revise(self, native: str, changes: Mapping[str, Any]) -> Memory:
        known(changes, frozenset({"text", "title"}), self.name)
        old = self.fetch(native)
        draft = gate.admit(self.checks, Draft(changes.get("text", old.text), changes.get("title", old.title)), self)
        with files.locked(old.file):
            files.replace(old.file, _page(draft.title or native, draft.text))
        return self._stored(native, draft)

    def extend(self, native: str, text: str) -> Memory:
        return self.revise(native, {"text": f"{self.fetch(native).text}\n\n{text}"})

    def drop(self, native: str) -> Removed:
        memory, now = self.fetch(native), utc_now()
        moved = trash.put(memory.file, self.root, now)
        self.tombstones.bury((memory.id, memory.text))
        return Removed(memory.id, "trash", Path(moved), now)

    def recover(self, native: str) -> Memory:
        for name, lies, _ in trash.contents(self.root):
            if name == f"{native}.md":
                self.tombstones.lift(self.answers.texts_in(lies)[0])
                files.move(lies, self._path(native))
                return self.fetch(native)
        raise NotFound(f"The trash has no toy {gate.shown(native)}.", hint="`memlane restore` lists what it has.")

    def removed(self) -> Iterator[Removed]:
        for name, lies, when in trash.contents(self.root):
            yield Removed(f"toys:{name.removesuffix('.md')}", "trash", Path(lies), when)

    def _path(self, native: str) -> str:
        return names.inside(self.root, *names.safe_parts(f"{native}.md"))

    def _stored(self, native: str, draft: Draft) -> Memory:
        memory = self.fetch(native)
        return replace(memory, remarks=(*draft.remarks, *self.tombstones.lift(memory.text, memory.id)))


def _split(text: str) -> tuple[str, str]:
    title, _, body = text.partition("\n\n")
    return title, body.rstrip("\n")


def _page(title: str, text: str) -> bytes:
    return files.encoded(f"{title}\n\n{text}\n")
