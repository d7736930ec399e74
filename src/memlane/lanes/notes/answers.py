"""What the notes lane answers about its own format: its rules for front matter, and how notes merge."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from memlane.core.dates import moment
from memlane.core.model import Draft, Memory, Problem
from memlane.core.values import replace
from memlane.disk.names import is_private
from memlane.disk.walking import Known
from memlane.lanes import read_file
from memlane.lanes.answers import Answers
from memlane.lanes.notes import front
from memlane.lanes.notes.store import STATUSES, TYPES, to_tags


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


class NoteAnswers(Answers):
    fields = frozenset({"filename", "status", "project", "private", "when", "expires"})
    merges = (("note", "*.md"),)
    ignores = (*Answers.ignores, "indices/")

    def broken_rules(self, memory: Memory) -> Iterator[str]:
        """Front-matter values that are read as if they were missing."""
        text = read_file(memory.file)
        values = front.values_of(text)[0] if isinstance(text, str) else {}  # damage is reported already
        for key, allowed in (("type", TYPES), ("status", STATUSES)):
            if values.get(key) not in (None, *allowed):
                yield f"has an unknown {key}, read as {allowed[0]}: use one of {', '.join(allowed)}"
        for key in ("created_at", "created", "date"):
            if values.get(key) is not None:
                if moment(values[key]) is None:
                    yield f"has a {key} that is not a date: write it like 2025-01-15T10:30:00Z"
                break
        when = values.get("when")
        if when is not None and not (isinstance(when, str) or (isinstance(when, list) and all(map(_is_text, when)))):
            yield "has a when that is not text: write it like [committing, src/api/**]"
        if values.get("expires") is not None and moment(values["expires"]) is None:
            yield "has an expires that is not a date: write it like 2025-01-15T10:30:00Z"
        tags = values.get("tags")
        if isinstance(tags, dict) or (isinstance(tags, list) and any(isinstance(tag, list | dict) for tag in tags)):
            yield "has tags that are not a list of words: write them like [auth, plan]"

    def files_in(self, folder: str, names: Collection[str] | None = None) -> tuple[list[str], list[str]] | None:
        return self.lane.files_in(folder, names)  # type: ignore[no-any-return]

    def files_without(self, known: Known) -> Iterator[str | Problem]:
        return self.lane.files(known)  # type: ignore[no-any-return]

    def unfolded(self, draft: Draft) -> Draft:
        return front.unfolded(draft, to_tags)

    def draft_of(self, memory: Memory) -> Draft:
        fields: dict[str, Any] = {**memory.fields, "status": memory.status, "filename": f"{memory.native_id}.md"}
        if is_private(memory.id):
            fields["private"] = True
        if memory.project is not None:
            fields["project"] = memory.project
        if memory.created_at is None:
            fields["created_at"] = None  # or the lane would take today
        return replace(super().draft_of(memory), fields=fields)
