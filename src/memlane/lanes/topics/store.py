"""Topics (seed 000): dated entries in topic files, the newest first; old ones move to a yearly archive.

    memory/auth/oauth2.md             entries of "auth/oauth2", id "auth/oauth2/2025-01-10-title-of-it"
    memory/archive/auth/2024.md       what was pruned: more than 10 entries, or more than 5 KB
    memory/index.md                   topics and sub-topics, derived; descriptions may be edited by hand
    memory/.stats.json                how often each was loaded

One writer at a time holds the lane's folder. A prune writes the archive before the topic file, so that a kill
in between leaves an entry in both and never in neither; the next write takes the second copy out again.
Here are the verbs, the ids of entries and the order of a search. What an entry's text looks like, what may be stored,
and the archive, index.md and .stats.json as files are the business of the topic_*.py beside it.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from memlane import gate
from memlane.core.dates import utc_now
from memlane.core.errors import AlreadyExists, ConfigError, NotFound, StorageError
from memlane.core.invisible import visible
from memlane.core.model import Draft, Memory, Problem, Removed
from memlane.core.text import estimate, newline_of, slug
from memlane.disk import files, names, trash
from memlane.disk.tombstones import Tombstones
from memlane.lanes import known, read_file, readable
from memlane.lanes.topics import archive, drafts, index_page, pages, usage
from memlane.lanes.topics import entries as text_of
from memlane.lanes.topics.checks import CHECKS
from memlane.lanes.topics.checks import SecurityViolation as SecurityViolation
from memlane.lanes.topics.drafts import FIELDS, memory_of
from memlane.lanes.topics.entries import Entry
from memlane.lanes.topics.pages import ARCHIVE, RESERVED, Folder
from memlane.lanes.topics.search import Asked, Hit, asked, judged, name_words, ordinal
from memlane.lanes.topics.usage import STATS

if TYPE_CHECKING:
    from memlane.lanes.topics.answers import TopicAnswers

MAX_ENTRIES, MIN_ENTRIES = 10, 5
MAX_SIZE = 5 * 1024  # bytes of a topic file
MAX_TOKENS = 1000  # of an embedded block
_PLACEHOLDER = re.compile(r"\[MEMORY_SEARCH:\s*([^\]]*)\]")


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
        return {
            "stored": self.stored,
            "path": str(self.path),
            "entry": self.entry.to_dict(),
            "pruned": self.pruned,
            "archived_to": [str(path) for path in self.archived_to],
            "index_updated": self.index_updated,
            "remarks": list(self.remarks),
        }


class Embedding(str):
    """A block of Markdown for a prompt, with the entries in it and its size in tokens."""

    entries: tuple[Entry, ...] = ()
    tokens: int = 0


# -- where the memory is


def base_path(project: str | Path, config: Mapping[str, Any] | None = None) -> Path:
    """The seed's path resolution: `memory_configuration.external_path` (made when missing), else
    `directory_structure.memory_path`, else `memory`, relative to the project. Raises ConfigError.
    """
    external = _setting(config or {}, "memory_configuration", "external_path")
    name = external or _setting(config or {}, "directory_structure", "memory_path") or "memory"
    path = (Path(project).expanduser() / Path(name).expanduser()).absolute()
    if external:
        files.make_folder(os.fspath(path))
    return path


def _setting(config: Mapping[str, Any], table: str, key: str) -> str:
    section = config.get(table)
    value = section.get(key) if isinstance(section, Mapping) else config.get(f"{table}.{key}")
    if value is not None and not isinstance(value, str | os.PathLike):
        raise ConfigError(f"{table}.{key} is not a path.", hint='Write it as text: "~/memory".')
    return os.fspath(value) if value else ""


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
    ) -> None:
        if security not in ("strict", "smart"):
            raise ConfigError("There is no such security mode.", hint="Use strict or smart.")
        self.root = Path(root).absolute()
        self.security = security
        self.estimator = estimator
        self.clock = clock
        self.guard = guard
        self.checks = (*CHECKS, *gate.common(guard))
        self.tombstones = tombstones or Tombstones()
        self.folder = Folder(self.root)

    @classmethod
    def resolve(cls, project: str | Path, config: Mapping[str, Any] | None = None, **options: Any) -> Self:
        """The lane of a project, at the place that the seed's configuration keys name."""
        return cls(base_path(project, config), **options)

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
        draft = self._admit(drafts.given(topic, content, title, given))
        names = drafts.names(draft)
        entry = drafts.entry_of(draft, self.clock)
        path = self.folder.path(*names, new=True)
        with self.folder.locked():
            stored = self._add(path, *names, entry)
        return replace(stored, remarks=(*draft.remarks, *self.tombstones.lift(memory_of(stored.entry).text)))

    def search(self, query: str, limit: int = 10, include_archive: bool = False) -> list[Entry]:
        """The best entries for a query, each with its `score`; an archived one has no `id`. Writes nothing.

        3 for each keyword found, 5 when the context matches, 2 when the query names the topic or sub-topic, up
        to 1 for recency, 1 for every five loads. "A phrase" in quotes, `context:`, `topic:` (or `tag:`) and
        `type:` must match. Entries without a hit are left out.
        """
        wanted = asked(query)
        found = [hit for hit in self._hits(wanted, include_archive) if hit.relevant]
        found.sort(key=lambda hit: (-hit.entry.score, -ordinal(hit.entry), hit.place))
        return self._with_ids(hit.entry for hit in found[: max(limit, 0)])

    def load(self, topic: str) -> list[Entry]:
        """The entries of `topic/subtopic`, in the order of the file; [] when there is none. Counts the access."""
        names = drafts.split(topic)
        if names[0].casefold() in RESERVED:
            return []
        path = self.folder.path(*names)
        entries = self._identified(path)
        if isinstance(entries, Problem):
            raise StorageError(f"{os.path.basename(path)} {entries.why}.", hint="Mend the file, then try again.")
        if entries is None:
            return []
        usage.count(self.folder.at(STATS), "/".join(names), self.clock)
        return list(entries)

    def embed(self, query: str, *, limit: int = 3, max_tokens: int = MAX_TOKENS) -> Embedding:
        """The two or three most relevant entries for a prompt, whole and with their source, within `max_tokens`.

        `query` is a topic, "topic/subtopic", words, or the placeholder `[MEMORY_SEARCH:topic]`. Entries of the
        topic it names come before others, newer before older. "" when nothing is relevant. Writes nothing.
        """
        wanted = asked(_PLACEHOLDER.sub(r"\1", query) if isinstance(query, str) else query)
        found = [hit for hit in self._hits(wanted, include_archive=False) if hit.relevant]
        found.sort(key=lambda hit: (-hit.named, -hit.weight, -ordinal(hit.entry), hit.place))
        best = self._block((), max_tokens)
        for first in range(min(len(found), 10)):  # where the best one alone fills the block, two others say more
            block = self._block([hit.entry for hit in found[first : first + 10]], max_tokens, limit)
            best = max(best, block, key=lambda one: min(len(one.entries), 2))
            if len(best.entries) >= min(2, limit):
                break
        best.entries = tuple(self._with_ids(best.entries))
        return best

    def reindex(self) -> None:
        """Write index.md anew from the files; descriptions that people wrote stay. Raises StorageError."""
        with self.folder.locked():
            index_page.write(self.folder, everything=True)

    def prune(self, *, dry_run: bool = False, paths: Collection[str] | None = None) -> list[Entry]:
        """Move what is too many or too much for a topic file (or for these) to its archive, as the next `store` would.

        Returns the entries that were (or would be) moved, under the ids they had. A file with merge-conflict markers
        is left alone. Raises StorageError.
        """
        moved: list[Entry] = []
        for path in self.files() if paths is None else paths:
            if isinstance(path, str) and (found := self._surplus(path)):
                if not dry_run:
                    with self.folder.locked():
                        if found := self._surplus(path):  # somebody may have changed it meanwhile
                            self._archive(path, len(found))
                moved += found
        return moved

    @property
    def answers(self) -> TopicAnswers:
        from memlane.lanes.topics.answers import TopicAnswers

        return TopicAnswers(self)

    @staticmethod
    def options(settings: Any) -> dict[str, Any]:
        return {"security": settings["topics.security"]}

    # -- the bank's verbs

    def files(self) -> Iterator[str | Problem]:
        return self.folder.topic_files()

    def parse(self, path: str) -> Iterator[Memory | Problem]:
        entries = self._identified(path)
        if isinstance(entries, Problem):
            yield entries
        elif entries is not None:
            text = self.folder.read(path)
            text = text if isinstance(text, str) else ""
            if not entries and any(line.strip("\ufeff \r") and line[0] != "#" for line in text.split("\n")):
                yield Problem(Path(path), "has no dated entries; begin each with `## YYYY-MM-DD: Title`")
            if line := text_of.conflict(text):
                yield Problem(Path(path), "has merge-conflict markers; resolve the conflict in an editor", line)
            yield from map(memory_of, entries)

    def fetch(self, native: str) -> Memory:
        topic, subtopic, _ = self._parts(native)
        path = self.folder.path(topic, subtopic)
        if os.path.isfile(path):
            readable(path)
        for memory in self.parse(path):
            if isinstance(memory, Memory) and memory.native_id == native:
                return memory
        raise self._no_entry(native)

    def put(self, draft: Draft) -> Memory:
        draft = self._admit(draft)
        names = drafts.names(draft)
        entry = drafts.entry_of(draft, self.clock)
        path = self.folder.path(*names, new=True)
        with self.folder.locked():
            memory = memory_of(self._add(path, *names, entry).entry)
        return self._wanted(memory, draft.remarks)

    def revise(self, native: str, changes: Mapping[str, Any]) -> Memory:
        """As for every lane. The id follows the date and the title, so a change of those changes the id."""
        known(changes, FIELDS, self.name)
        draft = self._admit(Draft(changes.get("text", ""), fields={**changes, "text": ""}))
        fields = {name: value for name, value in draft.fields.items() if name != "text"}

        text = draft.text if "text" in changes else None
        new = self._change(native, lambda entry: drafts.revised(entry, text, fields))
        return self._wanted(new, draft.remarks)

    def extend(self, native: str, text: str) -> Memory:
        draft = self._admit(Draft(text))
        more = text_of.plain(draft.text)
        new = self._change(native, lambda entry: drafts.extended(entry, more))
        return self._wanted(new, draft.remarks)

    def drop(self, native: str) -> Removed:
        topic, subtopic, tail = self._parts(native)
        path = self.folder.path(topic, subtopic)
        if not os.path.isfile(path):
            raise self._no_entry(native)
        with self.folder.locked():
            before, number = self._find(path, native)
            document = text_of.split(pages.text(path))
            now = self.clock()
            raw = text_of.line(document.raws[number])
            raws = [*document.raws[:number], *document.raws[number + 1 :]]
            dropped = [read_file(lies) for name, lies in self._dropped(topic, subtopic).items() if name != tail]
            if raw in (text_of.line(other) for other in (*raws, *dropped) if isinstance(other, str)):
                raw += newline_of(raw)  # so that `_same` does not take its twin for it
            moved = trash.put(self.folder.at(topic, subtopic, f"{tail}.md"), self.root, now, copy=files.encoded(raw))
            kept = pages.trimmed(raws, document.tail)
            pages.write(path, "".join((document.head, *kept, document.tail)))
            index_page.update(self.folder, path, before)
        self.tombstones.bury((f"topics:{native}", memory_of(_identified(before[number], native)).text))
        return Removed(f"{self.name}:{native}", "trash", Path(moved), now)

    def recover(self, native: str) -> Memory:
        topic, subtopic, _ = self._parts(native)
        path = self.folder.path(topic, subtopic)
        lies = next((lies for name, lies, _ in trash.contents(self.root) if name == f"{native}.md"), None)
        if lies is None:
            raise NotFound(f"The trash has no entry {gate.shown(native)}.", hint="`memlane trash` lists what it has.")
        with self.folder.locked():
            raw = readable(lies)
            document = text_of.split(pages.sound(path))
            entries = [self.folder.parse(path, old) for old in document.raws]
            if native in self._natives(entries):
                raise AlreadyExists(f"There is an entry {gate.shown(native)}.", hint="Nothing was changed.")
            back = self.folder.parse(path, raw)
            self.tombstones.lift(memory_of(_identified(back, native)).text)
            place = self._place(entries, back, native, lies)
            newline = newline_of(raw)
            raws = [*document.raws[:place], text_of.line(raw) + newline, *document.raws[place:]]
            if place and place == len(document.raws):
                raws[place - 1] = text_of.line(raws[place - 1]) + newline
            head = pages.opened(document.head, newline)
            kept = pages.trimmed(raws, document.tail)
            pages.write(path, "".join((head, *kept, document.tail)))
            files.remove(lies)
            index_page.update(self.folder, path, entries)
            entries.insert(place, back)
            return memory_of(_identified(back, self._natives(entries)[place]))

    def removed(self) -> Iterator[Removed]:
        for name, lies, when in trash.contents(self.root):
            yield Removed(f"{self.name}:{name.removesuffix('.md')}", "trash", Path(lies), when)

    # -- ids

    def _natives(self, entries: Sequence[Entry], *, without: str = "") -> list[str]:
        """The native ids of a file's entries. `without`: as if this file were not in the trash."""
        if not entries:
            return []
        topic, subtopic = entries[0].topic, entries[0].subtopic
        years = {entry.date[:4] for entry in entries}
        _, tails = self._tails(topic, subtopic, entries, years, without)
        return [f"{topic}/{subtopic}/{tail}" for tail in tails]

    def _tails(
        self, topic: str, subtopic: str, entries: Sequence[Entry], years: set[str], without: str = ""
    ) -> tuple[list[str], list[str]]:
        """The last parts of ids, of the entries archived in these years and of a file's: date and slug of the title,
        and a number for a namesake.

        Counted from the oldest, archived and deleted ones included, so that neither a new entry nor a prune nor
        a deletion gives an older entry another id.
        """
        older: list[tuple[str, str]] = []
        archives = archive.by_year(self.folder, topic)
        for year in sorted(years & archives.keys()):
            older += reversed(text_of.archived_headings(archives[year], subtopic))
        if older:
            for number in self._twice(topic, subtopic, [entry.raw for entry in entries]):
                twin = (entries[number].date, entries[number].title)
                if twin in older:
                    older.remove(twin)
        dropped = self._dropped(topic, subtopic, without)
        counts: Counter[str] = Counter()
        taken: set[str] = set()
        tails = []
        for when, title, raw in [
            *((when, title, None) for when, title in older),
            *((entry.date, entry.title, entry.raw) for entry in reversed(entries)),
        ]:
            base = f"{when}-{slug(title) or 'entry'}"
            tail = base if not counts[base] else f"{base}-{counts[base] + 1}"
            while tail in taken or (tail in dropped and not _same(dropped[tail], raw)):
                counts[base] += 1
                tail = f"{base}-{counts[base] + 1}"
            counts[base] += 1
            taken.add(tail)
            tails.append(tail)
        return tails[: len(older)], tails[len(older) :][::-1]

    def raws_of(self, native: str, entries: Sequence[Entry], archived: Sequence[str]) -> list[str]:
        """The texts that make up a memory, among the entries of its topic file and those archived of its year."""
        topic, subtopic, tail = self._parts(native)
        tails, _ = self._tails(topic, subtopic, entries, {tail[:4]})
        in_archive = dict(zip(tails, reversed(archived), strict=True)) if len(tails) == len(archived) else {}
        own = [entry.raw for entry, id in zip(entries, self._natives(entries), strict=True) if id == native]
        return [*own, in_archive[tail]] if tail in in_archive else own

    def _place(self, entries: list[Entry], back: Entry, native: str, lies: str) -> int:
        """Where a deleted entry goes back: where every id stays the same, nearest to where its date belongs.

        Where no place does that (its file has changed meanwhile), where most ids stay.
        """
        natives = self._natives(entries)
        dated = next((number for number, entry in enumerate(entries) if entry.date < back.date), len(entries))
        best, most = dated, -1
        for place in sorted(range(len(entries) + 1), key=lambda place: abs(place - dated)):
            wanted = [*natives[:place], native, *natives[place:]]
            found = self._natives([*entries[:place], back, *entries[place:]], without=lies)
            same = sum(map(str.__eq__, found, wanted))
            if same == len(wanted):
                return place
            if same > most:
                best, most = place, same
        return best

    # -- entries

    def _wanted(self, memory: Memory, remarks: tuple[str, ...]) -> Memory:
        """The entry that was just written. It is wanted, even if the same text was deleted before."""
        return replace(memory, remarks=(*remarks, *self.tombstones.lift(memory.text)))

    def _admit(self, draft: Draft) -> Draft:
        return gate.admit(self.checks, draft, self)

    def _parts(self, native: str) -> tuple[str, str, str]:
        parts = names.safe_parts(native)
        if len(parts) != 3:
            raise _no_entry(native)
        return parts[0], parts[1], parts[2]

    def _identified(self, path: str) -> tuple[Entry, ...] | Problem | None:
        """The entries of a topic file, each with its id."""
        entries = self.folder.entries(path)
        while isinstance(entries, tuple):
            natives = self._natives(entries)
            before, entries = entries, self.folder.entries(path)
            if entries is before:  # else a prune came between the topic file and the archive: ids would be wrong
                if [entry.id for entry in entries] != [f"topics:{native}" for native in natives]:
                    entries = tuple(map(_identified, entries, natives))
                    self.folder.keep(path, entries)
                break
        return entries

    def _with_ids(self, entries: Iterable[Entry]) -> list[Entry]:
        """What a search found, each with its id. Equal ones of a file stand in its order; archived ones have no id."""
        known: dict[str, dict[str, list[str]]] = {}
        found = []
        for entry in entries:
            if entry.path not in known:
                ids = known[entry.path] = {}
                kept = None if entry.path.startswith(self.folder.at(ARCHIVE, "")) else self._identified(entry.path)
                for one in reversed(kept if isinstance(kept, tuple) else ()):
                    ids.setdefault(one.raw, []).append(one.id)
            left = known[entry.path].get(entry.raw)
            found.append(replace(entry, id=left.pop() if left else ""))
        return found

    def _no_entry(self, native: str) -> NotFound:
        topic, subtopic, tail = self._parts(native)
        entries = self.folder.entries(self.folder.path(topic, subtopic))
        archived, _ = self._tails(topic, subtopic, entries if isinstance(entries, tuple) else (), {tail[:4]})
        if tail not in archived:
            return _no_entry(native)
        archive = self.folder.at(ARCHIVE, topic, tail[:4])
        return NotFound(
            f"The entry {gate.shown(native)} was archived: newer ones have taken its place.",
            hint=f"Its text is in {archive}.md; `memlane topics search --archive` finds it.",
        )

    def _find(self, path: str, native: str) -> tuple[list[Entry], int]:
        entries = [self.folder.parse(path, raw) for raw in text_of.split(pages.sound(path)).raws]
        natives = self._natives(entries)
        if native not in natives:
            raise self._no_entry(native)
        return entries, natives.index(native)

    def _add(self, path: str, topic: str, subtopic: str, entry: Entry) -> Stored:
        """Put an entry on top, prune, and update the index. The caller holds the lock."""
        head, raws, tail = text_of.split(pages.sound(path))
        newline = newline_of(head or "".join(raws[:1]) or tail)
        twice = self._twice(topic, subtopic, raws)
        old = [raw for number, raw in enumerate(raws) if number not in twice]
        fresh = text_of.render(entry, newline)
        head = pages.opened(head, newline)
        kept = [fresh + newline if old or tail.strip() else fresh, *old]
        kept = kept[: _fitting(head, kept, tail)]
        pruned = old[len(kept) - 1 :]
        if pruned or twice:
            kept = pages.trimmed(kept, tail)
        archived_to = archive.add(self.folder, topic, subtopic, pruned)
        pages.write(path, "".join((head, *kept, tail)))
        updated = index_page.update(self.folder, path, [text_of.parse(raw) for raw in raws])
        now = self.folder.entries(path)
        if isinstance(now, Problem) or not now:
            raise StorageError(f"{os.path.basename(path)} cannot be read back.", hint="Check the disk.")
        stored = _identified(self.folder.parse(path, fresh), self._natives(now)[0])
        return Stored(True, Path(path), stored, len(pruned), tuple(map(Path, archived_to)), updated)

    def _surplus(self, path: str) -> tuple[Entry, ...]:
        """The entries of a topic file that are too many or too much, with their ids."""
        text = self.folder.read(path)
        if not isinstance(text, str) or text_of.conflict(text):
            return ()
        head, raws, tail = text_of.split(text)
        fitting = _fitting(head, raws, tail)
        entries = self._identified(path) if fitting < len(raws) else ()
        return entries[fitting:] if isinstance(entries, tuple) else ()

    def _archive(self, path: str, count: int) -> None:
        """Move the last entries of a topic file to the archive. The caller holds the lock."""
        head, raws, tail = text_of.split(pages.sound(path))
        topic, subtopic = self.folder.named(path)
        twice = self._twice(topic, subtopic, raws)
        places = range(len(raws) - count, len(raws))
        archive.add(self.folder, topic, subtopic, [raws[place] for place in places if place not in twice])
        kept = pages.trimmed(raws[: len(raws) - count], tail)
        pages.write(path, "".join((head, *kept, tail)))
        index_page.update(self.folder, path, [text_of.parse(raw) for raw in raws])

    def _change(self, native: str, change: Callable[[Entry], Entry]) -> Memory:
        """Rewrite one entry and leave every other byte of its file."""
        topic, subtopic, _ = self._parts(native)
        path = self.folder.path(topic, subtopic)
        if not os.path.isfile(path):
            raise self._no_entry(native)
        with self.folder.locked():
            before, number = self._find(path, native)
            new = change(before[number])
            entries = list(before)
            if new != before[number]:
                document = text_of.split(pages.text(path))
                old = document.raws[number]
                blank = old[len(old.rstrip("\r\n")) :].removeprefix("\r").removeprefix("\n")
                raw = text_of.render(new, newline_of(old)) + blank
                entries[number] = self.folder.parse(path, raw)
                raws = [*document.raws[:number], raw, *document.raws[number + 1 :]]
                pages.write(path, "".join((document.head, *raws, document.tail)))
                index_page.update(self.folder, path, before)
            return memory_of(_identified(entries[number], self._natives(entries)[number]))

    # -- what kills and deletions leave

    def _twice(self, topic: str, subtopic: str, raws: Sequence[str]) -> set[int]:
        """Which entries of a topic file a killed prune has left in the archive as well.

        Two entries may say the same, so an equal text is not enough: the archive must also hold more entries
        than index.md, which is written last, knows of. Where that does not know, nothing is taken out.
        """
        archives = archive.by_year(self.folder, topic)
        found = archive.twins(archives, subtopic, raws)
        if not found:
            return set()
        listed = index_page.listed(self.folder).get(f"{topic}/{subtopic}")
        if listed is None or listed.archived is None:
            return set()
        more = archive.count(archives, subtopic) - listed.archived
        return set(found[: max(more, 0)])

    def _dropped(self, topic: str, subtopic: str, without: str = "") -> dict[str, str]:
        """Where the deleted entries of a sub-topic lie, by the last part of their ids."""
        try:
            names = os.listdir(self.folder.at(trash.TRASH, topic, subtopic))
        except OSError:
            return {}
        paths = (self.folder.at(trash.TRASH, topic, subtopic, name) for name in sorted(names))
        # `files.trash` names them <tail>_<date>_<time>.md
        return {os.path.basename(path).rsplit("_", 2)[0]: path for path in paths if path != without}

    # -- search

    def _hits(self, query: Asked, include_archive: bool) -> Iterator[Hit]:
        stats = usage.read(self.folder.at(STATS))
        today = self.clock().astimezone(UTC).date().toordinal()
        for place, entry in enumerate(self._searched(query, include_archive)):
            hit = judged(query, entry, place)
            if hit.relevant:
                uses = usage.uses(stats, f"{entry.topic}/{entry.subtopic}") // 5
                age = max(0, today - ordinal(entry))
                score = hit.weight + 3 * hit.naming + 2 * bool(hit.named) + math.exp(-0.1 * age) + uses
                yield hit._replace(entry=replace(entry, score=score))

    def _searched(self, query: Asked, include_archive: bool) -> Iterator[Entry]:
        """The entries to look at: the files of topics that the query names first, or only those it demands."""
        paths = [path for path in self.files() if isinstance(path, str)]
        names = {path: name_words(*self.folder.named(path)) for path in paths}
        paths = [path for path in paths if all(word in names[path] or query.tagged for word in query.topics)]
        for path in sorted(paths, key=lambda path: -len(names[path] & query.words)):
            entries = self.folder.entries(path)
            if isinstance(entries, tuple):
                yield from entries
        if include_archive:
            yield from archive.entries(self.folder)

    def _block(self, entries: Sequence[Entry], max_tokens: int, limit: int = 3) -> Embedding:
        """As many of the entries as fit, in their order, each whole and below its source."""
        chosen: list[Entry] = []
        text = ""
        for entry in entries:
            source = f"{self.root.name}/{entry.topic}/{entry.subtopic}.md"
            piece = f"**Source:** {source}\n{visible(entry.raw).replace(chr(13) + chr(10), chr(10)).rstrip()}\n"
            longer = f"{text}\n{piece}" if text else piece
            if len(chosen) < limit and self.estimator(longer) <= max_tokens:
                text = longer
                chosen.append(entry)
        block = Embedding(text)
        block.entries = tuple(chosen)
        block.tokens = self.estimator(text)
        return block


# -- small print


def _fitting(head: str, raws: Sequence[str], tail: str) -> int:
    """How many entries, from the first, a topic file may keep: 10, and fewer when they are too large, but 5."""
    kept = list(raws[:MAX_ENTRIES])
    size = sum(len(files.encoded(piece)) for piece in (head, *kept, tail))
    while size > MAX_SIZE and len(kept) > MIN_ENTRIES:
        size -= len(kept.pop().encode())
    return len(kept)


def _identified(entry: Entry, native: str) -> Entry:
    return replace(entry, id=f"topics:{native}")


def _same(path: str, raw: str | None) -> bool:
    """Whether a deleted entry stands in its file: a kill came between the two writes, or a file was restored."""
    return raw is not None and read_file(path) == text_of.line(raw)


def _no_entry(native: str) -> NotFound:
    return NotFound(f"There is no entry {gate.shown(native)}.", hint="`memlane list` shows the ids.")
