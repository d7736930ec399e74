"""What the records lane answers about its own format: the seed's rules, the archive, and the content's hash."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from memlane.core.dates import iso
from memlane.core.front_matter import FrontMatterError, edit_front, find_front
from memlane.core.invisible import visible
from memlane.core.model import Draft, Memory, Problem
from memlane.core.text import keywords
from memlane.core.values import replace
from memlane.disk import walking
from memlane.lanes.answers import Answers, Command, Trace
from memlane.lanes.records.record import (
    ARCHIVE,
    TAKEN,
    Record,
    broken_rules,
    content_hash,
    is_archived,
    is_record_id,
    native_of,
    parse_file,
)
from memlane.lanes.records.store import KEYWORDS

if TYPE_CHECKING:
    from memlane.lanes.merging import Parts


class RecordAnswers(Answers):
    merges = (("record", "*.md"),)
    private = ("*.md", f"{ARCHIVE}/*")
    ids_are_random = True

    def native_of(self, path: str) -> str | None:
        return native_of(path) if is_archived(path) else super().native_of(path)

    def owns(self, path: str) -> bool:
        folder = os.path.dirname(path.replace(f"/{ARCHIVE}/", "/", 1))
        return folder == os.fspath(self.lane.root) and super().native_of(path) is not None

    def files_in(self, folder: str, names: Collection[str] | None = None) -> tuple[list[str], list[str]] | None:
        root = os.fspath(self.lane.root)
        if folder not in (root, os.path.join(root, ARCHIVE)):
            return None
        found, folders = walking.walk_one(folder, folder, names=names)
        return [path for path in found if isinstance(path, str)], folders

    def traces(self, native: str) -> Iterator[Trace]:
        name = f"{native.removesuffix(TAKEN)}.md"
        yield from self.trashed(name, f"{ARCHIVE}/{name}")
        yield from self.file_traces("archive", self._inside(f"{ARCHIVE}/{name}"))
        yield from self.file_traces("file", self._inside(name))

    def broken_rules(self, memory: Memory) -> Iterator[str]:
        record = parse_file(memory.file)
        return broken_rules(record) if isinstance(record, Record) else iter(())

    def fix_for(self, problem: Problem, command: Command) -> str | None:
        if "lies in a sub-folder" in problem.why:
            from shlex import join

            return join(["mv", "-n", os.fspath(problem.path), os.fspath(self.lane.root)])
        return None

    def edited(self, text: str) -> str:
        """The file with the hash of the content that it has now."""
        front = find_front(text)
        if front is None:
            return text
        try:
            return edit_front(text, {"content_hash": content_hash(text[front.body :])})
        except FrontMatterError:
            return text  # the rules of the format say what is wrong with it

    def merge_files(self, driver: str, base: bytes, ours: bytes, theirs: bytes) -> bytes:
        from memlane.lanes import merging  # a hook asks which files there are, and merges none

        return merging.document(*merging.decoded(base, ours, theirs), settle=_rehash).encode()

    def put_back(self, memory: Memory) -> Memory:
        stored = super().put_back(memory)
        if memory.status != "archived" or stored.status == "archived":
            return stored
        self.lane.archive(stored.native_id)
        archived: Memory = self.lane.fetch(stored.native_id)
        return replace(archived, remarks=stored.remarks)

    def draft_of(self, memory: Memory) -> Draft:
        when = memory.fields.get("occurred_at") or iso(memory.created_at)
        fields = {"occurred_at": when}
        if is_record_id(memory.native_id):
            fields["id"] = memory.native_id
        return Draft(memory.text, memory.title, memory.tags, scope=memory.scope, thread=memory.thread, fields=fields)

    def given_tags(self, memory: Memory) -> tuple[str, ...]:
        made = keywords(visible(memory.text), KEYWORDS)
        return () if [*memory.tags] == made else memory.tags

    def changes_to(self, memory: Memory) -> dict[str, Any]:
        return {**super().changes_to(memory), "scope": memory.scope}


def _rehash(values: dict[str, Any], body: str, sides: Sequence[Parts]) -> None:
    """A record's content_hash is that of its content: of a side whose content it is, else computed."""
    if "content_hash" in values:
        known = {side.values.get("content_hash") for side in sides if side.body == body}
        values["content_hash"] = known.pop() if len(known) == 1 else content_hash(body)
