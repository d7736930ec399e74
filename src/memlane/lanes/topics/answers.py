"""What the topics lane answers about its own format: dated entries in shared files, with an archive and index.md."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from memlane.core.model import Draft, Memory, Plan, Problem, Removed, Step
from memlane.core.text import newline_of
from memlane.disk import files, names
from memlane.disk.tombstones import plain
from memlane.gate import shown
from memlane.lanes import merging, read_file
from memlane.lanes.answers import Answers, Command, Group, HealthCheck, Kept, Part, Sign, Trace
from memlane.lanes.topics import archive, ids, index_page, pages
from memlane.lanes.topics import entries as text_of
from memlane.lanes.topics.drafts import OWN, memory_of
from memlane.lanes.topics.store import TopicLane
from memlane.lanes.topics.usage import STATS


def _index_out_of_step(lane: TopicLane, command: Command) -> Iterator[Sign]:
    if lane.root.is_dir() and not index_page.is_current(lane.folder):
        yield os.fspath(lane.root / pages.INDEX), "does not say what the topic files say", command("topics", "reindex")


class TopicAnswers(Answers):
    shares_files = True
    prunes = True
    fields = OWN
    merges = (("topic", "*/*.md"), ("archive", "archive/*/*.md"), ("index", "index.md"))
    ignores = (*Answers.ignores, STATS)
    health = (
        HealthCheck(
            "topics-index", "warning", "the topics' index.md is out of step", _index_out_of_step, TopicLane.reindex
        ),
    )
    lane: TopicLane

    def path_of(self, native: str) -> str:
        topic, subtopic, _ = native.split("/")
        return self._inside(f"{topic}/{subtopic}.md")

    def native_of(self, path: str) -> str | None:
        return None

    def owns(self, path: str) -> bool:
        """Topic files, archives, and index.md, in which a person may have described a topic."""
        below = os.path.relpath(path, self.lane.root).split("/")
        if below == [pages.INDEX]:
            return True
        at = below[1:] if below[0] == pages.ARCHIVE else below
        hidden = any(part.startswith(".") for part in below)
        return len(at) == 2 and at[1].endswith(".md") and not hidden and at[0].casefold() not in pages.RESERVED

    # -- removing for good

    def texts_in(self, path: str) -> list[str]:
        """What a deleted entry says, which lies in the trash as a file of its own."""
        text = read_file(path)
        return [_text(raw) for raw in text_of.split(text).raws] if isinstance(text, str) else []

    def titles_of(self, removed: Removed) -> list[str]:
        text = read_file(os.fspath(removed.path))
        return [text_of.parse(raw).title for raw in text_of.split(text).raws] if isinstance(text, str) else []

    def traces(self, native: str) -> Iterator[Trace]:
        yield from self.trashed(f"{native}.md")
        lane, folder = self.lane, self.lane.folder
        try:
            topic, subtopic, _ = names.safe_parts(native)
            path = folder.path(topic, subtopic)
        except ValueError:  # also what these two raise
            return
        entries = folder.entries(path)
        years = archive.by_year(folder, topic)
        put_away = [
            entry for year in years for entry in ids.archived(folder, folder.at(pages.ARCHIVE, topic, f"{year}.md"))
        ]
        known = [*map(ids.with_id, entries, ids.natives(folder, entries)), *put_away]
        own = {plain(entry.raw) for entry in known if entry.id == f"topics:{native}"}

        def is_of_memory(raw: str) -> bool:
            """By its words: ids are counted anew as soon as a namesake is gone, and a kill may have come after that."""
            return plain(raw) in own or lane.tombstones.was(f"topics:{native}", _text(raw))

        for year in years:  # also what a killed prune has left in both
            file = folder.at(pages.ARCHIVE, topic, f"{year}.md")
            for _, entry in archive.read(folder, file):
                if entry.subtopic == subtopic and is_of_memory(entry.raw):
                    yield _trace(
                        "archive", file, entry.raw, partial(self._take_from_archive, file, subtopic, entry.raw)
                    )
        for raw in filter(is_of_memory, (entry.raw for entry in entries)):
            yield _trace("entry", path, raw, partial(self._take_from_topic, path, native, raw))

    def _take_from_topic(self, path: str, native: str, raw: str) -> None:
        """Remove an entry from its topic file, or what somebody has made of it meanwhile; before that, its title from
        index.md.
        """
        folder, is_gone = self.lane.folder, self.lane.tombstones.private.is_gone
        with folder.locked():
            document = pages.sound(path)
            if raw not in document.raws:
                entries = folder.entries(path)
                same = [entry for entry, id in zip(entries, ids.natives(folder, entries), strict=True) if id == native]
                now = [entry for entry in same if is_gone(_text(entry.raw), f"topics:{native}", entry.title)]
                if not now or now[0].raw not in document.raws:
                    return
                raw = now[0].raw
            left = document.without(document.raws.index(raw))
            index_page.let_go(folder, path, left.raws)
            index_page.save(folder, path, left)

    def _take_from_archive(self, path: str, subtopic: str, raw: str) -> None:
        folder = self.lane.folder
        with folder.locked():
            archive.take_out(folder, path, subtopic, raw)
            index_page.write(folder)

    def purge_recipe(self, native: str, path: str) -> str:
        return (
            "git filter-repo --replace-text FILE   # a file outside of the repository with the lines to be removed, "
            "one a line; delete it afterwards"
        )

    # -- merging

    def parts(self, path: str, data: bytes) -> list[Part]:
        """The entries of a topic file or an archive, namesakes under one id."""
        topic, subtopic = self._named(path)
        text = _decoded(data)
        if not topic:
            return []
        if subtopic:
            found = [(subtopic, raw.rstrip("\n"), "") for raw in text_of.split(text).raws]
        else:
            pairs = text_of.archived(text)
            found = [(name, raw.rstrip("\n"), text_of.archive_mark(name) if name else "") for name, raw in pairs]
        made = []
        for name, raw, mark in found:
            entry = text_of.parse(raw)
            id = f"topics:{topic}/{name}/{ids.named(entry)}"
            made.append(Part(id, memory_of(entry).text, mark + raw, mark + raw.removesuffix("\n---")))
        return made

    def archived(self, path: str, raw: str) -> bool:
        topic, subtopic = self._named(path)
        return bool(subtopic and archive.twins(archive.by_year(self.lane.folder, topic), subtopic, [raw]))

    def with_parts(self, path: str, data: bytes, raws: Sequence[str]) -> bytes:
        text, new = _decoded(data), [f"{raw}\n" for raw in raws]
        if self._named(path)[1]:
            return text_of.split(text)._replace(raws=tuple(new)).text.encode()
        return (text_of.archive_head(text) + "\n".join(new)).encode()

    def _named(self, path: str) -> tuple[str, str]:
        """Topic and sub-topic of a file: without a sub-topic an archive, without a topic neither."""
        below = os.path.relpath(path, self.lane.root).split("/")
        if below[0] == pages.ARCHIVE:
            return (below[1], "") if len(below) == 3 else ("", "")
        return (below[0], below[1].removesuffix(".md")) if len(below) == 2 else ("", "")

    # -- is it sound

    def broken_rules(self, memory: Memory) -> Iterator[str]:
        if memory.created_at is None:
            yield f"{shown(memory.native_id)}: the date is no day of any calendar"

    def crowding(self, paths: Sequence[str] | None = None) -> Iterator[Problem]:
        for path, count in Counter(entry.path for entry in self.lane.prune(dry_run=True)).items():
            if paths is None or path in paths:
                command = "`memlane review --only prune --lane topics --apply`"
                yield Problem(Path(path), f"has {count} more entries than a topic file keeps: {command} archives them")

    # -- what has aged

    def prunable(self, known: Kept | None = None) -> Plan:
        """What is too many or too much for a topic file goes to its archive (seed 000)."""
        entries = self.lane.prune(dry_run=True)
        reason = "newer entries have taken its place"
        return Plan(tuple(Step(entry.id, "archive", reason, entry.title) for entry in entries))

    def prune(self, steps: Mapping[str, Step], begin: Callable[[str, str], None]) -> Plan:
        """All entries of a topic file that are too many go together."""
        done: list[Step] = []
        entries = [entry for entry in self.lane.prune(dry_run=True) if entry.id in steps]
        for path, first in {entry.path: entry for entry in reversed(entries)}.items():
            begin(f"topics:{first.topic}/{first.subtopic}", "archive")
            done += [steps[entry.id] for entry in self.lane.prune(paths=[path]) if entry.id in steps]
        return Plan(tuple(done))

    def grouped(self, steps: Sequence[Step]) -> Iterator[Group]:
        files: dict[str, list[Step]] = {}
        for step in steps:
            files.setdefault(step.id.rpartition("/")[0], []).append(step)
        for name, together in files.items():
            count = f"{len(together)} more than {name.removeprefix('topics:')} keeps"
            reason = f"{count}: newer entries have taken their place"
            yield Group(together, "archive", reason, "; ".join(step.title for step in together))

    # -- undo and git

    def writing(self) -> AbstractContextManager[None]:
        return files.locked(os.fspath(self.lane.root)) if self.lane.root.is_dir() else nullcontext()

    def derived(self) -> str:
        return os.path.join(self.lane.root, pages.INDEX)

    def rebuild(self) -> None:
        if self.lane.root.is_dir():
            self.lane.reindex()

    def told(self, data: bytes) -> bytes:
        return index_page.told(self.lane.folder, _decoded(data)).encode()

    def completed(self, told: bytes, before: bytes) -> bytes:
        return index_page.completed(self.lane.folder, _decoded(told), _decoded(before)).encode()

    def retold(self, told: bytes, page: bytes) -> bytes:
        text = index_page.edited(self.lane.folder, _decoded(told))
        return text.replace("\n", newline_of(page.decode(errors="replace"))).encode()

    def let_go(self, path: str, after: bytes) -> None:
        if self._named(path)[1]:
            index_page.let_go(self.lane.folder, path, text_of.split(_decoded(after)).raws)

    def merge_files(self, driver: str, base: bytes, ours: bytes, theirs: bytes) -> bytes:
        from memlane.lanes.topics import merging as drivers

        merge = {"topic": drivers.topic, "archive": drivers.archive, "index": drivers.index}[driver]
        return merge(*merging.decoded(base, ours, theirs)).encode()

    def put_back(self, memory: Memory) -> Memory:
        return (
            self.lane.put_archived(self.draft_of(memory)) if memory.status == "archived" else super().put_back(memory)
        )

    def draft_of(self, memory: Memory) -> Draft:
        names = {name: memory.fields[name] for name in ("topic", "subtopic", "date") if memory.fields.get(name)}
        return Draft(memory.text, memory.title, memory.tags, memory.type, thread=memory.thread, fields=names)

    def changes_to(self, memory: Memory) -> dict[str, Any]:
        return {**super().changes_to(memory), **({"type": memory.type} if memory.type else {})}


def _decoded(data: bytes) -> str:
    return data.decode(errors="replace").replace("\r\n", "\n")


def _text(raw: str) -> str:
    return memory_of(text_of.parse(raw)).text


def _trace(what: str, path: str, raw: str, remove: Callable[[], None]) -> Trace:
    return Trace(what, path, (_text(raw),), remove, (raw.partition("\n")[0], text_of.parse(raw).title))
