"""Topics (seed 000): dated entries in topic files, the newest first; old ones move to a yearly archive.

    memory/auth/oauth2.md             entries of "auth/oauth2", id "auth/oauth2/2025-01-10-title-of-it"
    memory/archive/auth/2024.md       what was pruned: more than 10 entries, or more than 5 KB
    memory/index.md                   topics and sub-topics, derived; descriptions may be edited by hand
    memory/.stats.json                how often each was loaded

One writer at a time holds the lane's folder. A prune writes the archive before the topic file, so that a kill
in between leaves an entry in both and never in neither; the next write takes the second copy out again.
The text of an entry is topic_entries.py's business.
"""

from __future__ import annotations

import difflib
import json
import math
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Self

from memlane import files, gate
from memlane.errors import AlreadyExists, ConfigError, InvalidInput, NotFound, Refused, StorageError
from memlane.hygiene import visible
from memlane.lanes import known, read_file, readable
from memlane.lanes import topic_entries as text_of
from memlane.lanes.topic_entries import LABELS, Entry, Listed
from memlane.lanes.topic_search import AD_HOC, GENERAL, Asked, Hit, asked, judged, name_words, ordinal, tags_of
from memlane.model import Draft, Memory, Problem, Removed, iso, utc_now
from memlane.text import moment, newline_of, slug

MAX_ENTRIES, MIN_ENTRIES = 10, 5
MAX_SIZE = 5 * 1024  # bytes of a topic file
MAX_TOKENS = 1000  # of an embedded block
ARCHIVE, INDEX, STATS = "archive", "index.md", ".stats.json"
_RESERVED = frozenset({ARCHIVE, "indices"})
_SLUG = re.compile(r"[a-z0-9][a-z0-9._-]*")
_VALUES = tuple(label.lower() for label in LABELS)
_OWN = frozenset({"topic", "subtopic", "date", "labels", *_VALUES})
_FIELDS = frozenset({"text", "title", "tags", "type", "thread", "created_at", "date", *_VALUES})
_NAMED = frozenset({*_OWN, *_FIELDS, "scope"})  # what may be meant by a field's name
_ABOUT = ("Tags", "Type", "Thread")  # labels about an entry, not of its text
_PLACEHOLDER = re.compile(r"\[MEMORY_SEARCH:\s*([^\]]*)\]")
_SETTLED = 2 * 10**9  # ns: a file younger than this may change again without its mtime showing it


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


# -- the gate

PATTERNS = (
    *("password", "token", "key", "secret", "credential"),
    *("ghp_", "sk-", "ak_", "-----BEGIN", "api_key"),
    *("@gmail.com", "amazonaws.com/key", "bearer "),
)


class SecurityViolation(Refused):
    """Seed 000's refusal. `patterns` names what matched, never the text around it."""

    code = "SECURITY_VIOLATION"

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = tuple(patterns)
        super().__init__(
            "Security violation: Cannot store sensitive data",
            check="blocked_words",
            hint=f"It matches {', '.join(map(repr, self.patterns))}. "
            "Store the location or method of access instead of the value.",
        )

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "patterns": list(self.patterns)}


def blocked_words(draft: Draft, lane: Any) -> Draft:
    """the seed's blocked words are refused (smart: values shaped like secrets)"""
    given = [text for field, text in gate.strings(draft) if field != gate.FIELD_NAME]
    given += [name for name in draft.fields if name not in _FIELDS | _OWN and not text_of.is_known_label(name)]
    if getattr(lane, "security", "strict") == "strict":
        # what COMMON strips afterwards must not hide a word from this list
        texts = [visible(text).lower() for text in given]
        found = [pattern for pattern in PATTERNS if any(pattern.lower() in text for text in texts)]
    else:
        found = _shaped(given, getattr(lane, "guard", gate.DEFAULT))
    if found:
        raise SecurityViolation(found)
    return draft


def _shaped(texts: Sequence[str], guard: gate.Guard) -> list[str]:
    if guard.secrets != "refuse":  # redacted or let through by the check that follows, as configured
        return []
    from memlane import sensitive

    scanned = (sensitive.scan(text, email=guard.email, phone=guard.phone, allow=guard.allow) for text in texts)
    return list(dict.fromkeys(finding.rule for found in scanned for finding in found))


CHECKS: tuple[gate.Check, ...] = (blocked_words,)


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


def estimate(text: str) -> int:
    """Tokens of a text, roughly: a quarter of its characters."""
    return -(-len(text) // 4)


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
    ) -> None:
        if security not in ("strict", "smart"):
            raise ConfigError("There is no such security mode.", hint="Use strict or smart.")
        self.root = Path(root).absolute()
        self.security = security
        self.estimator = estimator
        self.clock = clock
        self.guard = guard
        self.checks = (*CHECKS, *gate.common(guard))
        self._texts: dict[str, tuple[tuple[int, int, int], str]] = {}
        self._parsed: dict[str, tuple[str, tuple[Entry, ...]]] = {}

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
        fields = {"topic": topic, **{name: value for name, value in given.items() if value is not None}}
        draft = self._admit(Draft(_value("content", content or ""), title=_title(title), fields=fields))
        names = self._names(draft)
        entry = self._entry(draft)
        path = self._path(*names, new=True)
        with self._locked():
            return replace(self._add(path, *names, entry), remarks=draft.remarks)

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
        names = _split(topic)
        if names[0].casefold() in _RESERVED:
            return []
        path = self._path(*names)
        entries = self._identified(path)
        if isinstance(entries, Problem):
            raise StorageError(f"{os.path.basename(path)} {entries.why}.", hint="Mend the file, then try again.")
        if entries is None:
            return []
        self._count_access("/".join(names))
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
        with self._locked():
            self._write_index(everything=True)

    # -- the bank's verbs

    def files(self) -> Iterator[str | Problem]:
        for path in files.walk(self.root, skip=(self._at(ARCHIVE),)):
            place = os.fspath(path.path if isinstance(path, Problem) else path)
            depth = os.path.relpath(place, self.root).count(os.sep)
            if isinstance(path, Problem) or depth == 1:
                yield path
            elif depth > 1:
                yield Problem(Path(path), "lies too deep and is not read; topic files are <topic>/<sub-topic>.md")
            elif os.path.basename(path).lower() not in (INDEX, "readme.md"):
                yield Problem(Path(path), "lies in no topic and is not read; topic files are <topic>/<sub-topic>.md")

    def parse(self, path: str) -> Iterator[Memory | Problem]:
        entries = self._identified(path)
        if isinstance(entries, Problem):
            yield entries
        elif entries is not None:
            text = self._cached(path)
            text = text if isinstance(text, str) else ""
            if not entries and any(line.strip("\ufeff \r") and line[0] != "#" for line in text.split("\n")):
                yield Problem(Path(path), "has no dated entries; begin each with `## YYYY-MM-DD: Title`")
            if line := text_of.conflict(text):
                yield Problem(Path(path), "has merge-conflict markers; resolve the conflict in an editor", line)
            yield from map(_memory, entries)

    def fetch(self, native: str) -> Memory:
        topic, subtopic, _ = self._parts(native)
        path = self._path(topic, subtopic)
        if os.path.isfile(path):
            readable(path)
        for memory in self.parse(path):
            if isinstance(memory, Memory) and memory.native_id == native:
                return memory
        raise self._no_entry(native)

    def put(self, draft: Draft) -> Memory:
        draft = self._admit(draft)
        names = self._names(draft)
        entry = self._entry(draft)
        path = self._path(*names, new=True)
        with self._locked():
            return replace(_memory(self._add(path, *names, entry).entry), remarks=draft.remarks)

    def revise(self, native: str, changes: Mapping[str, Any]) -> Memory:
        """As for every lane. The id follows the date and the title, so a change of those changes the id."""
        known(changes, _FIELDS, self.name)
        draft = self._admit(Draft(changes.get("text", ""), fields={**changes, "text": ""}))
        fields = {name: value for name, value in draft.fields.items() if name != "text"}

        def change(entry: Entry) -> Entry:
            labels = entry.labels
            if "text" in changes:
                new = self._labels(Draft(draft.text))
                content = new.pop("", "")
                if new["Context"] == AD_HOC and entry.context:
                    new["Context"] = entry.context
                kept = [(name, value) for name, value in labels if name in _ABOUT and name not in new]
                entry, labels = replace(entry, content=content), (*new.items(), *kept)
            for name in (*_VALUES, "type", "thread"):
                if name in fields:
                    labels = text_of.with_label(labels, name.capitalize(), _value(name, fields[name] or ""))
            if "tags" in fields:
                own = (tag for tag in fields["tags"] or () if tag not in (entry.topic, entry.subtopic))
                labels = text_of.with_label(labels, "Tags", ", ".join(own))
            if "title" in fields:
                entry = replace(entry, title=_title(fields["title"]) or entry.title)
            if when := fields.get("date") or fields.get("created_at"):
                entry = replace(entry, date=_date(when))
            return replace(entry, labels=labels)

        return replace(self._change(native, change), remarks=draft.remarks)

    def extend(self, native: str, text: str) -> Memory:
        draft = self._admit(Draft(text))
        more = text_of.plain(draft.text)

        def change(entry: Entry) -> Entry:
            last = max((n for n, (name, _) in enumerate(entry.labels) if name not in _ABOUT), default=None)
            if last is None:
                return replace(entry, content=f"{entry.content}\n\n{more}".strip())
            name, value = entry.labels[last]
            longer = [(name, value), ("Note", more)] if name == "Code" else [(name, f"{value}\n\n{more}".strip())]
            return replace(entry, labels=(*entry.labels[:last], *longer, *entry.labels[last + 1 :]))

        return replace(self._change(native, change), remarks=draft.remarks)

    def drop(self, native: str) -> Removed:
        topic, subtopic, tail = self._parts(native)
        path = self._path(topic, subtopic)
        if not os.path.isfile(path):
            raise self._no_entry(native)
        with self._locked():
            before, number = self._find(path, native)
            document = text_of.split(self._text(path))
            now = self.clock()
            raw = text_of.line(document.raws[number])
            raws = [*document.raws[:number], *document.raws[number + 1 :]]
            dropped = [read_file(lies) for name, lies in self._dropped(topic, subtopic).items() if name != tail]
            if raw in (text_of.line(other) for other in (*raws, *dropped) if isinstance(other, str)):
                raw += newline_of(raw)  # so that `_same` does not take its twin for it
            moved = files.trash(self._at(topic, subtopic, f"{tail}.md"), self.root, now, copy=files.encoded(raw))
            self._write(path, document.head, _trimmed(raws, document.tail), document.tail)
            self._update_index(path, before)
        return Removed(f"{self.name}:{native}", "trash", Path(moved), now)

    def recover(self, native: str) -> Memory:
        topic, subtopic, _ = self._parts(native)
        path = self._path(topic, subtopic)
        lies = next((lies for name, lies, _ in files.trashed(self.root) if name == f"{native}.md"), None)
        if lies is None:
            raise NotFound(f"The trash has no entry {gate.shown(native)}.", hint="`memlane trash` lists what it has.")
        with self._locked():
            raw = readable(lies)
            document = text_of.split(self._sound(path))
            entries = [self._parse(path, old) for old in document.raws]
            if native in self._natives(entries):
                raise AlreadyExists(f"There is an entry {gate.shown(native)}.", hint="Nothing was changed.")
            back = self._parse(path, raw)
            place = self._place(entries, back, native, lies)
            newline = newline_of(raw)
            raws = [*document.raws[:place], text_of.line(raw) + newline, *document.raws[place:]]
            if place and place == len(document.raws):
                raws[place - 1] = text_of.line(raws[place - 1]) + newline
            self._write(path, _opened(document.head, newline), _trimmed(raws, document.tail), document.tail)
            files.remove(lies)
            self._update_index(path, entries)
            entries.insert(place, back)
            return _memory(_identified(back, self._natives(entries)[place]))

    def removed(self) -> Iterator[Removed]:
        for name, lies, when in files.trashed(self.root):
            yield Removed(f"{self.name}:{name.removesuffix('.md')}", "trash", Path(lies), when)

    # -- the format

    def _entry(self, draft: Draft) -> Entry:
        """The entry that a draft asks for. Raises InvalidInput."""
        labels = self._labels(draft)
        content = labels.pop("", "")
        says = next((labels[name] for name in ("Problem", "Solution", "Code") if labels.get(name)), "") or content
        title = _title(draft.title) or text_of.title_of(says)
        if not title:
            raise InvalidInput("There is nothing to store.", hint="Give some content, or at least a title.")
        when = draft.fields.get("date") or draft.created_at or self.clock()
        entry = Entry(_date(when), title, tuple(labels.items()), content)
        files.encoded(text_of.render(entry))
        return entry

    def _labels(self, draft: Draft) -> dict[str, str]:
        """Label and value of what a draft says, in the seed's order; free text that is left under ""."""
        content, written = text_of.fields(draft.text)
        labels = dict.fromkeys(LABELS, "")
        for name in _VALUES:
            if (value := draft.fields.get(name)) is not None:
                labels[name.capitalize()] = _value(name, value)
        for name, value in written:
            both = (labels.get(name, ""), value)
            labels[name] = "\n\n".join(dict.fromkeys(part for part in both if part))
        if not labels["Problem"]:
            labels["Problem"], content = content, ""
        labels["Context"] = labels["Context"] or AD_HOC
        extra: dict[str, Any] = {name: value for name, value in draft.fields.items() if name not in _OWN}
        _well_spelt(extra)
        more = draft.fields.get("labels") or {}  # as `Memory.fields` has them
        if not isinstance(more, Mapping):
            raise InvalidInput("The labels are not names and values.", hint='Give them like {"Results": "…"}.')
        extra |= more
        extra |= {name: value for name in ("type", "thread") if (value := getattr(draft, name)) is not None}
        if draft.tags:
            extra["tags"] = [tag for tag in draft.tags if tag not in self._names(draft)]
        for name, value in extra.items():
            label = text_of.label_name(name)
            if label is None:
                raise InvalidInput("A label has a name that cannot be written.", hint="Use a word such as results.")
            if value not in (None, ""):
                labels[label] = _value(
                    label.lower(), ", ".join(value) if label == "Tags" and _is_words(value) else value
                )
        labels = {name: value for name, value in labels.items() if value}
        return {**labels, "": content} if content else labels

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
        archives = self._archives(topic)
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

    # -- files

    def _admit(self, draft: Draft) -> Draft:
        return gate.admit(self.checks, draft, self)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One writer at a time. The folder is the lock: it is never replaced, and a killed holder frees it."""
        root = os.fspath(self.root)
        files.make_folder(root)
        with files.locked(root):
            yield

    def _at(self, *parts: str) -> str:
        return os.path.join(self.root, *parts)

    def _names(self, draft: Draft) -> tuple[str, str]:
        topic = draft.fields.get("topic")
        topic = draft.scope or GENERAL if topic is None else topic
        subtopic = draft.fields.get("subtopic")
        return _split(f"{topic}/{subtopic}" if subtopic and isinstance(topic, str) else topic)

    def _path(self, topic: str, subtopic: str, *, new: bool = False) -> str:
        """The file of a sub-topic. Raises InvalidInput for names that cannot be one; an existing file may have any."""
        topic, name = files.safe_parts(f"{topic}/{subtopic}.md")
        if topic.casefold() in _RESERVED:
            raise InvalidInput(f"{topic!r} is reserved and cannot be a topic.", hint="Choose another name.")
        path = files.inside(self.root, topic, name)
        if new and not os.path.isfile(path):
            if not all(_SLUG.fullmatch(part) and ".." not in part + "." for part in (topic, subtopic)):
                raise InvalidInput(
                    "A topic is named with small letters, digits, single dots and dashes.",
                    hint="Write it like auth/oauth2.",
                )
            _refuse_namesake(os.path.dirname(path))
            _refuse_namesake(path)
        return path

    def _parts(self, native: str) -> tuple[str, str, str]:
        parts = files.safe_parts(native)
        if len(parts) != 3:
            raise _no_entry(native)
        return parts[0], parts[1], parts[2]

    def _text(self, path: str) -> str:
        """The file's text, "" when there is none. Raises StorageError when it cannot be read."""
        return readable(path) if os.path.lexists(path) else ""

    def _sound(self, path: str) -> str:
        """The text of a topic file that is to be changed. Raises StorageError, also for an unresolved merge."""
        text = self._text(path)
        if line := text_of.conflict(text):
            raise StorageError(
                f"{os.path.basename(path)} has merge-conflict markers (line {line}).",
                hint=f"Resolve the conflict in {path}, then try again. Nothing was changed.",
            )
        return text

    def _cached(self, path: str) -> str | Problem | None:
        """The file's text, from memory while the file has not changed."""
        try:
            info = os.stat(path)
        except OSError:
            return read_file(path)
        mark = (info.st_mtime_ns, info.st_size, info.st_ino)
        if (seen := self._texts.get(path)) and seen[0] == mark:
            return seen[1]
        text = read_file(path)
        if isinstance(text, str) and time.time_ns() - info.st_mtime_ns > _SETTLED:
            self._texts[path] = (mark, text)
        return text

    def _entries(self, path: str) -> tuple[Entry, ...] | Problem | None:
        """The entries of a topic file; the same objects while its text is the same."""
        text = self._cached(path)
        if not isinstance(text, str):
            return text
        if (seen := self._parsed.get(path)) and seen[0] == text:
            return seen[1]
        entries = tuple(self._parse(path, raw) for raw in text_of.split(text).raws)
        self._parsed[path] = (text, entries)
        return entries

    def _identified(self, path: str) -> tuple[Entry, ...] | Problem | None:
        """As `_entries`, each with its id."""
        entries = self._entries(path)
        while isinstance(entries, tuple):
            natives = self._natives(entries)
            before, entries = entries, self._entries(path)
            if entries is before:  # else a prune came between the topic file and the archive: ids would be wrong
                if [entry.id for entry in entries] != [f"topics:{native}" for native in natives]:
                    entries = tuple(map(_identified, entries, natives))
                    self._parsed[path] = (self._parsed[path][0], entries)
                break
        return entries

    def _with_ids(self, entries: Iterable[Entry]) -> list[Entry]:
        """What a search found, each with its id. Equal ones of a file stand in its order; archived ones have no id."""
        known: dict[str, dict[str, list[str]]] = {}
        found = []
        for entry in entries:
            if entry.path not in known:
                ids = known[entry.path] = {}
                kept = None if entry.path.startswith(self._at(ARCHIVE, "")) else self._identified(entry.path)
                for one in reversed(kept if isinstance(kept, tuple) else ()):
                    ids.setdefault(one.raw, []).append(one.id)
            left = known[entry.path].get(entry.raw)
            found.append(replace(entry, id=left.pop() if left else ""))
        return found

    def _parse(self, path: str, raw: str) -> Entry:
        topic, subtopic = self._named(path)
        return replace(text_of.parse(raw), topic=topic, subtopic=subtopic, path=path)

    def _named(self, path: str) -> tuple[str, str]:
        topic, _, name = path[len(os.fspath(self.root)) + 1 :].partition(os.sep)
        return topic, name.removesuffix(".md")

    def _no_entry(self, native: str) -> NotFound:
        topic, subtopic, tail = self._parts(native)
        entries = self._entries(self._path(topic, subtopic))
        archived, _ = self._tails(topic, subtopic, entries if isinstance(entries, tuple) else (), {tail[:4]})
        if tail not in archived:
            return _no_entry(native)
        return NotFound(
            f"The entry {gate.shown(native)} was archived: newer ones have taken its place.",
            hint=f"Its text is in {self._at(ARCHIVE, topic, tail[:4])}.md; `memlane topics search --archive` finds it.",
        )

    def _find(self, path: str, native: str) -> tuple[list[Entry], int]:
        entries = [self._parse(path, raw) for raw in text_of.split(self._sound(path)).raws]
        natives = self._natives(entries)
        if native not in natives:
            raise self._no_entry(native)
        return entries, natives.index(native)

    def _add(self, path: str, topic: str, subtopic: str, entry: Entry) -> Stored:
        """Put an entry on top, prune, and update the index. The caller holds the lock."""
        head, raws, tail = text_of.split(self._sound(path))
        newline = newline_of(head or "".join(raws[:1]) or tail)
        twice = self._twice(topic, subtopic, raws)
        old = [raw for number, raw in enumerate(raws) if number not in twice]
        fresh = text_of.render(entry, newline)
        head = _opened(head, newline)
        kept = [fresh + newline if old or tail.strip() else fresh, *old][:MAX_ENTRIES]
        size = sum(len(files.encoded(piece)) for piece in (head, *kept, tail))
        while size > MAX_SIZE and len(kept) > MIN_ENTRIES:
            size -= len(kept.pop().encode())
        pruned = old[len(kept) - 1 :]
        if pruned or twice:
            kept = _trimmed(kept, tail)
        archived_to = self._archive(topic, subtopic, pruned)
        self._write(path, head, kept, tail)
        updated = self._update_index(path, [text_of.parse(raw) for raw in raws])
        now = self._entries(path)
        if isinstance(now, Problem) or not now:
            raise StorageError(f"{os.path.basename(path)} cannot be read back.", hint="Check the disk.")
        stored = _identified(self._parse(path, fresh), self._natives(now)[0])
        return Stored(True, Path(path), stored, len(pruned), tuple(map(Path, archived_to)), updated)

    def _change(self, native: str, change: Callable[[Entry], Entry]) -> Memory:
        """Rewrite one entry and leave every other byte of its file."""
        topic, subtopic, _ = self._parts(native)
        path = self._path(topic, subtopic)
        if not os.path.isfile(path):
            raise self._no_entry(native)
        with self._locked():
            before, number = self._find(path, native)
            new = change(before[number])
            entries = list(before)
            if new != before[number]:
                document = text_of.split(self._text(path))
                old = document.raws[number]
                blank = old[len(old.rstrip("\r\n")) :].removeprefix("\r").removeprefix("\n")
                raw = text_of.render(new, newline_of(old)) + blank
                entries[number] = self._parse(path, raw)
                self._write(
                    path,
                    document.head,
                    [*document.raws[:number], raw, *document.raws[number + 1 :]],
                    document.tail,
                )
                self._update_index(path, before)
            return _memory(_identified(entries[number], self._natives(entries)[number]))

    def _write(self, path: str, head: str, raws: Sequence[str], tail: str) -> None:
        data = files.encoded(head + "".join(raws) + tail)
        if os.path.lexists(path):
            files.replace(path, data)
        else:
            files.create(path, data)

    # -- the archive

    def _archive(self, topic: str, subtopic: str, raws: Sequence[str]) -> list[str]:
        """Put pruned entries on top of the archive of their year; return the files."""
        years: dict[str, list[str]] = {}
        for raw in raws:
            years.setdefault(text_of.parse(raw).date[:4], []).append(raw)
        written = []
        for year, pruned in sorted(years.items()):
            path = files.inside(self.root, ARCHIVE, topic, f"{year}.md")
            data = files.encoded(text_of.add_archived(self._text(path), subtopic, pruned))
            files.replace(path, data)
            written.append(path)
        return written

    def _archives(self, topic: str) -> dict[str, str]:
        """The text of a topic's archive files by year; what cannot be read is left out."""
        found = {}
        with suppress(FileNotFoundError, NotADirectoryError):
            for name in sorted(os.listdir(self._at(ARCHIVE, topic))):
                if name.endswith(".md") and isinstance(text := self._cached(self._at(ARCHIVE, topic, name)), str):
                    found[name.removesuffix(".md")] = text
        return found

    def _twice(self, topic: str, subtopic: str, raws: Sequence[str]) -> set[int]:
        """Which entries of a topic file a killed prune has left in the archive as well.

        Two entries may say the same, so an equal text is not enough: the archive must also hold more entries
        than index.md, which is written last, knows of. Where that does not know, nothing is taken out.
        """
        archives = self._archives(topic)
        if not archives:
            return set()
        mark = text_of.archive_mark(subtopic)
        if not any(mark + raw.rstrip("\r\n") in text for raw in raws for text in archives.values()):
            return set()
        left = Counter(
            raw.rstrip("\r\n") for text in archives.values() for name, raw in text_of.archived(text) if name == subtopic
        )
        found = []
        for number in reversed(range(len(raws))):
            if left[raw := raws[number].rstrip("\r\n")]:
                left[raw] -= 1
                found.append(number)
        if not found:
            return set()
        listed = self._listed().get(f"{topic}/{subtopic}")
        if listed is None or listed.archived is None:
            return set()
        more = sum(text.count(mark) for text in archives.values()) - listed.archived
        return set(found[: max(more, 0)])

    def _dropped(self, topic: str, subtopic: str, without: str = "") -> dict[str, str]:
        """Where the deleted entries of a sub-topic lie, by the last part of their ids."""
        try:
            names = os.listdir(self._at(files.TRASH, topic, subtopic))
        except OSError:
            return {}
        paths = (self._at(files.TRASH, topic, subtopic, name) for name in sorted(names))
        # `files.trash` names them <tail>_<date>_<time>.md
        return {os.path.basename(path).rsplit("_", 2)[0]: path for path in paths if path != without}

    # -- index.md and .stats.json

    def _listed(self) -> dict[str, Listed]:
        text = self._cached(self._at(INDEX))
        return text_of.read_index(text) if isinstance(text, str) else {}

    def _update_index(self, path: str, before: Sequence[Entry]) -> bool:
        """As `_write_index`. The entries are stored already, so a failure here is answered, not raised."""
        try:
            self._write_index(path, before)
        except (StorageError, AlreadyExists, InvalidInput):
            return False
        return True

    def _write_index(self, path: str = "", before: Sequence[Entry] = (), *, everything: bool = False) -> None:
        """Bring index.md up to date: the line of this file, of files it does not know, and of files that are gone.

        A description that is one of the entries' titles is ours and follows the newest; any other is a person's.
        """
        index = self._at(INDEX)
        text = self._text(index)
        listed = text_of.read_index(text)
        paths = (file for file in self.files() if isinstance(file, str))
        present = {name: file for file in paths if _fits_a_line(name := "/".join(self._named(file)))}
        changes: dict[str, Listed | None] = {
            name: None for name, line in listed.items() if name not in present and line.entries is not None
        }
        for name, file in present.items():
            if file == path or everything or name not in listed or listed[name].entries is None:
                changes[name] = self._facts(file, listed.get(name), before if file == path else ())
        new = text_of.edit_index(text, changes)
        if new != text:
            if os.path.lexists(index):
                files.replace(index, files.encoded(new))
            else:
                files.create(index, files.encoded(new))

    def _facts(self, path: str, old: Listed | None, before: Sequence[Entry]) -> Listed:
        topic, subtopic = self._named(path)
        entries = self._entries(path)
        entries = entries if isinstance(entries, tuple) else ()
        ours = {"", *(entry.title for entry in (*before, *entries))}
        description = old.description if old and old.description not in ours else ""
        mark = text_of.archive_mark(subtopic)
        return Listed(
            description or (entries[0].title if entries else ""),
            len(entries),
            sum(text.count(mark) for text in self._archives(topic).values()),
            entries[0].date if entries else "-",
        )

    def _stats(self) -> dict[str, dict[str, Any]]:
        text = read_file(self._at(STATS))
        try:
            found = json.loads(text) if isinstance(text, str) else {}
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def _count_access(self, name: str) -> None:
        path = self._at(STATS)
        with suppress(StorageError):  # what lies on a read-only disk can still be read
            if not os.path.lexists(path):
                with suppress(AlreadyExists):
                    files.create(path, b"{}\n")
            with files.locked(path):
                stats = self._stats()
                stats[name] = {"count": _uses(stats, name) + 1, "last_access": iso(self.clock())}
                files.replace(path, json.dumps(stats, indent=2, sort_keys=True).encode() + b"\n")

    # -- search

    def _hits(self, query: Asked, include_archive: bool) -> Iterator[Hit]:
        stats = self._stats()
        today = self.clock().astimezone(UTC).date().toordinal()
        for place, entry in enumerate(self._searched(query, include_archive)):
            hit = judged(query, entry, place)
            if hit.relevant:
                uses = _uses(stats, f"{entry.topic}/{entry.subtopic}") // 5
                age = max(0, today - ordinal(entry))
                score = hit.weight + 3 * hit.naming + 2 * bool(hit.named) + math.exp(-0.1 * age) + uses
                yield hit._replace(entry=replace(entry, score=score))

    def _searched(self, query: Asked, include_archive: bool) -> Iterator[Entry]:
        """The entries to look at: the files of topics that the query names first, or only those it demands."""
        paths = [path for path in self.files() if isinstance(path, str)]
        names = {path: name_words(*self._named(path)) for path in paths}
        paths = [path for path in paths if all(word in names[path] or query.tagged for word in query.topics)]
        for path in sorted(paths, key=lambda path: -len(names[path] & query.words)):
            entries = self._entries(path)
            if isinstance(entries, tuple):
                yield from entries
        if include_archive and os.path.isdir(self._at(ARCHIVE)):
            for topic in sorted(os.listdir(self._at(ARCHIVE))):
                for year, text in sorted(self._archives(topic).items(), reverse=True):
                    path = self._at(ARCHIVE, topic, f"{year}.md")
                    for subtopic, raw in text_of.archived(text):
                        yield replace(text_of.parse(raw), topic=topic, subtopic=subtopic or GENERAL, path=path)

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


def _uses(stats: Mapping[str, Any], name: str) -> int:
    found = stats.get(name)
    count = found.get("count") if isinstance(found, dict) else 0
    return count if isinstance(count, int) and 0 < count < 10**9 else 0


def _split(topic: str) -> tuple[str, str]:
    """ "auth/oauth2" in its two parts, "auth" with the general sub-topic. Raises InvalidInput."""
    if not isinstance(topic, str):
        raise InvalidInput("The topic is not text.", hint="Write it like auth/oauth2.")
    parts = topic.strip().removesuffix(".md").split("/")
    if len(parts) > 2 or not all(parts):
        raise InvalidInput("A topic has one or two parts.", hint="Write it like auth/oauth2.")
    return parts[0], parts[1] if len(parts) == 2 else GENERAL


def _identified(entry: Entry, native: str) -> Entry:
    return replace(entry, id=f"topics:{native}")


def _memory(entry: Entry) -> Memory:
    said = tuple((name, value) for name, value in entry.labels if name not in _ABOUT)
    extra = {name: value for name, value in said if name not in LABELS}
    fields: dict[str, Any] = {"topic": entry.topic, "subtopic": entry.subtopic, "date": entry.date}
    fields |= {name: value for name in _VALUES if (value := entry.get(name)) is not None}
    return Memory(
        id=entry.id,
        lane="topics",
        text=replace(entry, labels=said).text,
        title=entry.title or entry.date,
        file=entry.path,
        tags=tags_of(entry),
        type=entry.get("Type"),
        scope=f"{entry.topic}/{entry.subtopic}",
        thread=entry.get("Thread"),
        created_at=moment(entry.date),
        fields={**fields, "labels": extra} if extra else fields,
    )


def _fits_a_line(name: str) -> bool:
    """Whether index.md can name a file that somebody made by hand."""
    return not re.search("[\n\r\ud800-\udfff]|<!-- ", name)


def _title(title: str | None) -> str:
    if title is not None and not isinstance(title, str):
        raise InvalidInput("The title is not text.", hint="Give a short line of text.")
    return " ".join((title or "").split())


def _value(name: str, value: Any) -> str:
    """A label's value as it is stored; code to the byte. Raises InvalidInput."""
    if not isinstance(value, str):
        raise InvalidInput(f"A {type(value).__name__} cannot be stored in an entry.", hint="Give text.")
    if name == "code":
        return value if value.strip() else ""
    return text_of.plain(value)


def _date(value: Any) -> str:
    found = moment(value)
    if found is None:
        raise InvalidInput("The date is not a date.", hint="Write it like 2025-01-15.")
    return found.date().isoformat()


def _refuse_namesake(path: str) -> None:
    """Raise AlreadyExists when a new name differs from another only in case, which not every file system can tell."""
    other = None
    if not os.path.lexists(path):
        with suppress(OSError):  # the write that follows says what is wrong there
            other = files.namesake(path)
    if other:
        name = os.path.basename(path)
        raise AlreadyExists(
            f"There is a {other}, which differs from {name} only in case or Unicode form; some file systems "
            "cannot tell them apart.",
            hint=f"Choose another name, or rename {other} to {name} first.",
        )


def _opened(head: str, newline: str) -> str:
    """A preamble that an entry can follow: nothing, or text, no fence left open, and a blank line."""
    if not head.removeprefix("\ufeff"):
        return head
    if not head.endswith("\n"):
        head += newline
    if fence := text_of.open_fence(head):  # it would swallow the entry as soon as that has a fence, too
        head += fence + newline
    return head if head.endswith(("\n\n", "\r\n\r\n")) else head + newline


def _trimmed(raws: Sequence[str], tail: str) -> list[str]:
    """The entries without blank lines behind the last one, which another entry may have followed before."""
    return list(raws) if tail or not raws else [*raws[:-1], text_of.line(raws[-1])]


def _well_spelt(names: Iterable[str]) -> None:
    """Raise InvalidInput for a name that is almost a field's: as a label, it would be a surprise."""
    for name in names:
        if name in _NAMED or text_of.is_known_label(name) or text_of.label_name(name) in _ABOUT:
            continue
        near = difflib.get_close_matches(name.lower(), _NAMED, cutoff=0.8)
        meant = [own for own in near if own[0] == name[:1].lower()]
        if meant:
            raise InvalidInput(
                f"The topics lane has no field {gate.shown(name)!r}.",
                hint=f"Did you mean {meant[0]}? A label of that name is given in `labels`, a mapping.",
            )


def _is_words(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


def _same(path: str, raw: str | None) -> bool:
    """Whether a deleted entry stands in its file: a kill came between the two writes, or a file was restored."""
    return raw is not None and read_file(path) == text_of.line(raw)


def _no_entry(native: str) -> NotFound:
    return NotFound(f"There is no entry {gate.shown(native)}.", hint="`memlane list` shows the ids.")
