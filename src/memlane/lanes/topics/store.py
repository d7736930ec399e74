"""Topics (seed 000): dated entries in topic files, the newest first; old ones move to a yearly archive.

    memory/auth/oauth2.md             entries of "auth/oauth2", id "auth/oauth2/2025-01-10-title-of-it"
    memory/archive/auth/2024.md       what was pruned: more than 10 entries, or more than 5 KB
    memory/index.md                   topics and sub-topics, derived; descriptions may be edited by hand
    memory/.stats.json                how often each was loaded

One writer at a time holds the lane's folder. A prune writes the archive before the topic file, so that a kill
in between leaves an entry in both and never in neither; the next write takes the second copy out again.
Here are the verbs. The modules beside this one know what an entry's text looks like, its id, what may be stored, and
the archive, index.md and .stats.json as files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from memlane import gate
from memlane.core.dates import utc_now
from memlane.core.errors import AlreadyExists, ConfigError, InvalidInput, NotFound, StorageError
from memlane.core.model import Draft, Memory, Problem, Removed
from memlane.core.patterns import lazily
from memlane.core.text import estimate, newline_of
from memlane.core.values import asdict, dataclass, replace
from memlane.disk import files, trash
from memlane.disk.tombstones import Tombstones
from memlane.lanes import Memories, from_files, known, read_file, readable
from memlane.lanes.topics import archive, base, drafts, ids, index_page, pages, usage
from memlane.lanes.topics import entries as text_of
from memlane.lanes.topics.checks import CHECKS, security_of
from memlane.lanes.topics.checks import SecurityViolation as SecurityViolation
from memlane.lanes.topics.drafts import FIELDS, memory_of
from memlane.lanes.topics.entries import Document, Entry
from memlane.lanes.topics.finding import best, overview
from memlane.lanes.topics.pages import RESERVED, Folder
from memlane.lanes.topics.search import TRIED, Embedding, embedded

if TYPE_CHECKING:
    from memlane.lanes.topics.answers import TopicAnswers

MAX_ENTRIES, MIN_ENTRIES = 10, 5
MAX_SIZE = 5 * 1024  # bytes of a topic file
MAX_TOKENS = 1000  # of an embedded block
_PLACEHOLDER = lazily(r"\[MEMORY_SEARCH:\s*([^\]]*)\]")


@dataclass(frozen=True, slots=True)
class Stored:
    """What `store` did. `pruned` counts the entries that moved to the files in `archived_to`."""

    stored: bool
    path: Path
    entry: Entry
    pruned: int
    archived_to: tuple[Path, ...]
    index_updated: bool
    remarks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        paths = {"path": str(self.path), "archived_to": [str(path) for path in self.archived_to]}
        return {**asdict(self), **paths, "entry": self.entry.to_dict(), "remarks": list(self.remarks)}


class TopicLane:
    """A folder of topic files. `security` is "strict" (the seed's list as it is) or "smart" (values, not words)."""

    name = "topics"

    def __init__(
        self,
        root: str | Path = "memory",
        *,
        security: str = "strict",
        estimator: Callable[[str], int] = estimate,
        clock: Callable[[], datetime] = utc_now,
        guard: gate.Guard = gate.DEFAULT,
        tombstones: Tombstones | None = None,
        memories: Memories | None = None,
    ) -> None:
        if security not in ("strict", "smart"):
            raise ConfigError("There is no such security mode.", hint="Use strict or smart.")
        self.root = Path(root).absolute()
        files.take_root(self.root, chosen=False)
        self.security = security
        self.estimator = estimator
        self.clock = clock
        self.guard = guard
        self.checks = (*CHECKS, *gate.common(guard))
        self.tombstones = tombstones or Tombstones()
        self.folder = Folder(self.root)
        self.memories = memories or from_files(self)

    @classmethod
    def resolve(cls, project: str | Path, config: Mapping[str, Any] | None = None, **options: Any) -> Self:
        """The lane of a project, where the configuration says, else in its `memory`; an external folder is made.

        Raises ConfigError.
        """
        name = base.configured(config or {}) or "memory"
        root = (Path(project).expanduser() / Path(name).expanduser()).absolute()
        if base.setting(config or {}, *base.EXTERNAL):
            files.make_folder(os.fspath(root))
        return cls(root, **options)

    # -- the seed's verbs

    def store(
        self,
        topic: str,
        content: str | None = None,
        *,
        title: str | None = None,
        context: str | None = None,
        problem: str | None = None,
        solution: str | None = None,
        code: str | None = None,
        date: str | date | None = None,
        **labels: str,
    ) -> Stored:
        """Add an entry at the top of `topic/subtopic` ("topic" alone: its general.md), prune, update index.md.

        `content` is split at the seed's labels; free text is the problem. Further `labels` are kept as they are
        named (`key_insights=…`). Raises SecurityViolation or Refused before anything is touched, InvalidInput,
        StorageError. The entry is durable when it returns; `index_updated` is False when only that failed.
        """
        given = {"context": context, "problem": problem, "solution": solution, "code": code, "date": date, **labels}
        return self._store(drafts.given(topic, content, title, given))

    def search(self, query: str, limit: int = 10, include_archive: bool = False, **filters: Any) -> list[Entry]:
        """The best entries for a query, each with its `score`. Writes nothing.

        3 for each keyword found, 5 when the context matches, 2 when the query names the topic or sub-topic, up
        to 1 for recency, 1 for every five loads. "A phrase" in quotes, `context:`, `topic:` (or `tag:`) and
        `type:` must match. Entries without a hit are left out. `filters` are those of every search: `tags`, `type`,
        `scope` (a topic/subtopic), `since`, `until`, and `archived`, which is another name for `include_archive`.
        """
        filters["archived"] = filters.get("archived") or include_archive
        return best(self, query, lambda hit: (-hit.score, -hit.day, *hit.place), limit, filters)

    def load(self, topic: str) -> list[Entry]:
        """The entries of `topic/subtopic`, in the order of the file; [] when there is none. Counts the access.

        A topic alone stands for all its sub-topics, by name, and the id of an entry for the topic that it is in.
        """
        given = drafts.topic_in(topic)
        names = drafts.split(given)
        if names[0].casefold() in RESERVED:
            return []
        paths = [self.folder.path(*names)]
        if "/" not in given.strip():
            files_of_topic = (path for path in self.folder.topic_files() if isinstance(path, str))
            paths = [path for path in files_of_topic if self.folder.named(path)[0] == names[0]]
        loaded = []
        for path in paths:
            if (entries := ids.readable(self.folder, path)) is not None:
                usage.count(self.folder.at(usage.STATS), "/".join(self.folder.named(path)), self.clock)
                loaded += [entry for entry in entries if not self.tombstones.held(memory_of(entry))]
        return loaded

    def topics(self) -> list[dict[str, Any]]:
        """Every `topic/subtopic` with the number of its entries and the date of the newest. Writes nothing."""
        return list(overview(self))

    def embed(self, query: str, *, limit: int = 3, max_tokens: int = MAX_TOKENS) -> Embedding:
        """The two or three most relevant entries for a prompt, whole and with their source, within `max_tokens`.

        `query` is a topic, "topic/subtopic", words, or the placeholder `[MEMORY_SEARCH:topic]`. Entries of the
        topic it names come before others, newer before older. "" when nothing is relevant. Writes nothing.
        """
        return embedded(self.relevant(query, 2 * TRIED), self.root.name, limit, max_tokens, self.estimator)

    def relevant(self, query: str, limit: int) -> list[Entry]:
        """The entries that a prompt should have, in the order in which `embed` takes them."""
        query = _PLACEHOLDER.sub(r"\1", query) if isinstance(query, str) else query
        return best(self, query, lambda hit: (-hit.named, -hit.weight, -hit.day, *hit.place), limit, {})

    def reindex(self) -> None:
        """Write index.md anew from the files; descriptions that people wrote stay. Raises StorageError."""
        with self.folder.locked():
            index_page.write(self.folder)

    def prune(self, *, dry_run: bool = False, paths: Collection[str] | None = None) -> list[Entry]:
        """Move what is too many or too much for a topic file (or for these) to its archive, as the next `store` would.

        Returns the entries that were (or would be) moved, under the ids they had. A file with merge-conflict markers
        is left alone. Raises StorageError.
        """
        moved: list[Entry] = []
        for path in self.folder.topic_files() if paths is None else paths:
            if isinstance(path, str) and (surplus := self._surplus(path)):
                if not dry_run:
                    with self.folder.locked():
                        if surplus := self._surplus(path):  # somebody may have changed it meanwhile
                            self._archive(path, len(surplus))
                moved += surplus
        return moved

    @property
    def answers(self) -> TopicAnswers:
        from memlane.lanes.topics.answers import TopicAnswers

        return TopicAnswers(self)

    @staticmethod
    def options(settings: Any) -> dict[str, Any]:
        return {"security": security_of(settings)}

    # -- the bank's verbs

    def files(self) -> Iterator[str | Problem]:
        yield from self.folder.topic_files()
        yield from archive.paths(self.folder)

    def parse(self, path: str) -> Iterator[Memory | Problem]:
        if archive.is_archive(self.folder, path):
            yield from self._parse_archive(path)
            return
        entries = ids.identified(self.folder, path)
        if isinstance(entries, Problem):
            yield entries
        elif entries is not None:
            text = self.folder.text(path)
            if not entries and any(line.strip("\ufeff \r") and line[0] != "#" for line in text.split("\n")):
                yield Problem(Path(path), "has no dated entries; begin each with `## YYYY-MM-DD: Title`")
            if line := text_of.conflict(text):
                yield Problem(Path(path), "has merge-conflict markers; resolve the conflict in an editor", line)
            yield from map(memory_of, entries)

    def _parse_archive(self, path: str) -> Iterator[Memory | Problem]:
        text = self.folder.read(path)
        if isinstance(text, Problem):
            yield text
        elif text is not None:
            if line := text_of.conflict(text):
                yield Problem(Path(path), "has merge-conflict markers; resolve the conflict in an editor", line)
            yield from (memory_of(entry, "archived") for entry in ids.archived(self.folder, path))

    def fetch(self, native: str) -> Memory:
        topic, subtopic, _ = ids.parts(native)
        path = self.folder.path(topic, subtopic)
        if os.path.isfile(path):
            readable(path)
        for memory in self.parse(path):
            if isinstance(memory, Memory) and memory.native_id == native:
                return memory
        if entry := ids.in_archive(self.folder, native):
            return memory_of(entry, "archived")
        raise ids.unknown(native)

    def put_archived(self, draft: Draft) -> Memory:
        """Store an entry that was archived elsewhere: straight into the archive, where it displaces nothing."""
        draft = gate.admit(self.checks, draft, self)
        topic, subtopic = drafts.names(draft)
        raw = text_of.render(drafts.entry_of(draft, self.clock))
        path = self.folder.path(topic, subtopic, new=True)
        with self.folder.locked():
            [archived] = archive.add(self.folder, topic, subtopic, [raw])
            index_page.write(self.folder, path)
            return replace(memory_of(ids.archived(self.folder, archived)[0], "archived"), remarks=draft.remarks)

    def put(self, draft: Draft) -> Memory:
        stored = self._store(draft)
        memory = memory_of(stored.entry)
        named = draft.scope or draft.fields.get("topic")
        remark = f"no topic was named, so it is under {memory.scope}; a scope such as auth/oauth2 names one"
        return replace(memory, remarks=stored.remarks if named else (*stored.remarks, remark))

    def revise(self, native: str, changes: Mapping[str, Any]) -> Memory:
        """As for every lane. The id follows the date and the title, so a change of those changes the id."""
        known(changes, FIELDS, self.name)
        given = Draft(changes.get("text", ""), fields={**changes, "text": ""}, over=self.fetch(native).text)
        draft = gate.admit(self.checks, given, self)
        fields = {name: value for name, value in draft.fields.items() if name != "text"}
        text = draft.text if "text" in changes else None
        return self._change(native, lambda entry: drafts.revised(entry, text, fields), draft.remarks)

    def extend(self, native: str, text: str) -> Memory:
        draft = gate.admit(self.checks, Draft(text), self)
        more = text_of.plain(draft.text)
        return self._change(native, lambda entry: drafts.extended(entry, more), draft.remarks)

    def drop(self, native: str) -> Removed:
        topic, subtopic, tail = ids.parts(native)
        if ids.in_archive(self.folder, native):
            return self._drop_archived(native)
        with self._holding(native) as (path, document, entries, number):
            now = self.clock()
            raw = text_of.line(document.raws[number])
            shorter = document.without(number)
            deleted = ids.in_trash(self.folder, topic, subtopic)
            others = (*shorter.raws, *(read_file(trashed) for name, trashed in deleted.items() if name != tail))
            if raw in (text_of.line(other) for other in others if isinstance(other, str)):
                raw += newline_of(raw)  # so that its twin is not taken for it
            moved = trash.put(self.folder.at(topic, subtopic, f"{tail}.md"), self.root, now, copy=files.encoded(raw))
            index_page.save(self.folder, path, shorter)
        self.tombstones.bury((f"topics:{native}", memory_of(entries[number]).text))
        return Removed(f"{self.name}:{native}", "trash", Path(moved), now)

    def _drop_archived(self, native: str) -> Removed:
        topic, subtopic, tail = ids.parts(native)
        with self.folder.locked():
            entry = ids.in_archive(self.folder, native)
            if entry is None:
                raise ids.unknown(native)
            now = self.clock()
            copy = files.encoded(text_of.line(entry.raw))
            moved = trash.put(self.folder.at(topic, subtopic, f"{tail}.md"), self.root, now, copy=copy)
            archive.take_out(self.folder, entry.path, subtopic, entry.raw)
            index_page.write(self.folder, self.folder.path(topic, subtopic))
        self.tombstones.bury((entry.id, memory_of(entry).text))
        return Removed(entry.id, "trash", Path(moved), now)

    def recover(self, native: str) -> Memory:
        """Put an entry back into its topic file: out of the archive or, where none of this id is there, the trash."""
        topic, subtopic, _ = ids.parts(native)
        path = self.folder.path(topic, subtopic)
        if ids.in_archive(self.folder, native):
            return self._take_from_archive(native, path)
        trashed = next((trashed for name, trashed, _ in trash.contents(self.root) if name == f"{native}.md"), None)
        if trashed is None:
            raise NotFound(f"The trash has no entry {gate.shown(native)}.", hint="`memlane restore` lists what it has.")
        with self.folder.locked():
            raw = readable(trashed)
            document = pages.sound(path)
            entries = [self.folder.parse(path, old) for old in document.raws]
            if native in ids.natives(self.folder, entries):
                raise AlreadyExists(f"There is an entry {gate.shown(native)}.", hint="Nothing was changed.")
            back = self.folder.parse(path, raw)
            self.tombstones.lift(memory_of(back).text, forgotten=False)
            place = ids.place_for(self.folder, entries, back, native, trashed)
            index_page.save(self.folder, path, _inserted(document, place, raw))
            files.remove(trashed)
            entries.insert(place, back)
            return memory_of(ids.with_id(back, ids.natives(self.folder, entries)[place]))

    def _take_from_archive(self, native: str, path: str) -> Memory:
        """The topic file is written before the archive: after a kill in between, the entry is in both, and found once.

        A topic file that has more than it keeps by then is left so until its next entry: the entry is wanted there.
        """
        topic, subtopic, _ = ids.parts(native)
        with self.folder.locked():
            archived = ids.in_archive(self.folder, native)
            if archived is None:
                raise ids.unknown(native)
            document = pages.sound(path)
            entries = [self.folder.parse(path, old) for old in document.raws]
            back = self.folder.parse(path, archived.raw)
            index_page.expect_fewer(self.folder, topic, subtopic)
            place = ids.place_for(self.folder, entries, back, native, "")
            document = _inserted(document, place, archived.raw)
            pages.write(path, document.text)
            archive.take_out(self.folder, archived.path, subtopic, archived.raw)
            index_page.write(self.folder, path)
            entries.insert(place, back)
            memory = memory_of(ids.with_id(back, ids.natives(self.folder, entries)[place]))
        again = "its topic file has more entries than it keeps: the next one moves the oldest to the archive again"
        return replace(memory, remarks=(again,)) if _fitting(document) < len(document.raws) else memory

    def removed(self) -> Iterator[Removed]:
        for name, trashed, when in trash.contents(self.root):
            yield Removed(f"{self.name}:{name.removesuffix('.md')}", "trash", Path(trashed), when)

    # -- entries

    def _store(self, draft: Draft) -> Stored:
        """Store a draft. The entry is wanted, even if the same text was deleted before."""
        draft = gate.admit(self.checks, draft, self)
        names = drafts.names(draft)
        entry = drafts.entry_of(draft, self.clock)
        path = self.folder.path(*names, new=True)
        with self.folder.locked():
            stored = self._add(path, *names, entry)
        memory = memory_of(stored.entry)
        lifted = self.tombstones.lift(memory.text, memory.id, memory.title)
        return replace(stored, remarks=(*draft.remarks, *lifted, *stored.remarks))

    def _add(self, path: str, topic: str, subtopic: str, entry: Entry) -> Stored:
        """Put an entry on top, prune, and update the index. The caller holds the lock."""
        document = pages.sound(path)
        newline = newline_of(document.text)
        doubled = index_page.left_in_both(self.folder, topic, subtopic, document.raws)
        old = [raw for number, raw in enumerate(document.raws) if number not in doubled]
        fresh = text_of.render(entry, newline)
        raws = (fresh + newline if old or document.tail.strip() else fresh, *old)
        document = document._replace(head=pages.opened(document.head, newline), raws=raws)
        fitting = _fitting(document)
        pruned = raws[fitting:]
        displaced: list[str] = []
        if pruned or doubled:
            displaced = ids.natives(self.folder, [self.folder.parse(path, raw) for raw in raws])[fitting:]
            document = document.keeping(raws[:fitting])
        archived_to = archive.add(self.folder, topic, subtopic, pruned)
        updated = index_page.save(self.folder, path, document)
        now = self.folder.entries(path)
        if not now:
            raise StorageError(f"{os.path.basename(path)} cannot be read back.", hint="Check the disk.")
        stored = ids.with_id(self.folder.parse(path, fresh), ids.natives(self.folder, now)[0])
        moved = ", ".join(f"topics:{native}" for native in displaced)
        remarks = (f"moved to the archive, to make room: {moved}",) if moved else ()
        return Stored(True, Path(path), stored, len(pruned), tuple(map(Path, archived_to)), updated, remarks)

    def _surplus(self, path: str) -> tuple[Entry, ...]:
        """The entries of a topic file that are too many or too much, with their ids."""
        text = self.folder.text(path)
        document = text_of.split(text)
        fitting = _fitting(document)
        if fitting == len(document.raws) or text_of.conflict(text):
            return ()
        entries = ids.identified(self.folder, path)
        return entries[fitting:] if isinstance(entries, tuple) else ()

    def _archive(self, path: str, count: int) -> None:
        """Move the last entries of a topic file to the archive. The caller holds the lock."""
        document = pages.sound(path)
        topic, subtopic = self.folder.named(path)
        doubled = index_page.left_in_both(self.folder, topic, subtopic, document.raws)
        kept = len(document.raws) - count
        pruned = [raw for number, raw in enumerate(document.raws) if number >= kept and number not in doubled]
        archive.add(self.folder, topic, subtopic, pruned)
        index_page.save(self.folder, path, document.keeping(document.raws[:kept]))

    def _change(self, native: str, change: Callable[[Entry], Entry], remarks: tuple[str, ...]) -> Memory:
        """Rewrite one entry and leave every other byte of its file. It is wanted, even if it was deleted before."""
        with self._holding(native) as (path, document, entries, number):
            new = change(entries[number])
            if new != entries[number]:
                old = document.raws[number]
                blank = old[len(old.rstrip("\r\n")) :].removeprefix("\r").removeprefix("\n")
                raw = text_of.render(new, newline_of(old)) + blank
                entries[number] = self.folder.parse(path, raw)
                raws = (*document.raws[:number], raw, *document.raws[number + 1 :])
                index_page.save(self.folder, path, document._replace(raws=raws))
            memory = memory_of(ids.with_id(entries[number], ids.natives(self.folder, entries)[number]))
        return replace(memory, remarks=(*remarks, *self.tombstones.lift(memory.text, memory.id, memory.title)))

    @contextmanager
    def _holding(self, native: str) -> Iterator[tuple[str, Document, list[Entry], int]]:
        """Hold the lock over an entry's file: its path, the file in pieces and as entries, and the entry's number.

        Raises NotFound, and StorageError for a file that cannot be changed.
        """
        topic, subtopic, _ = ids.parts(native)
        path = self.folder.path(topic, subtopic)
        if not os.path.isfile(path):
            raise self._missing(native)
        with self.folder.locked():
            document = pages.sound(path)
            entries = [self.folder.parse(path, raw) for raw in document.raws]
            natives = ids.natives(self.folder, entries)
            if native not in natives:
                raise self._missing(native)
            yield path, document, entries, natives.index(native)

    def _missing(self, native: str) -> NotFound | InvalidInput:
        if ids.in_archive(self.folder, native) is None:
            return ids.unknown(native)
        shown = gate.shown(native)
        return InvalidInput(
            f"The entry {shown} is archived, and archived entries are not changed.",
            hint=f"`memlane restore topics:{shown}` brings it back to its topic file.",
        )


def _inserted(document: Document, place: int, raw: str) -> Document:
    """A topic file with one more entry at this place."""
    newline = newline_of(raw)
    raws = [*document.raws[:place], text_of.line(raw) + newline, *document.raws[place:]]
    if place and place == len(document.raws):
        raws[place - 1] = text_of.line(raws[place - 1]) + newline
    return document._replace(head=pages.opened(document.head, newline)).keeping(raws)


def _fitting(document: Document) -> int:
    """How many entries, from the first, a topic file may keep: 10, and fewer when they are too large, but 5."""
    kept = list(document.raws[:MAX_ENTRIES])
    size = len(files.encoded("".join((document.head, *kept, document.tail))))
    while size > MAX_SIZE and len(kept) > MIN_ENTRIES:
        size -= len(kept.pop().encode())
    return len(kept)
