"""Merge what two branches made of one file of a bank: one function for each format, (base, ours, theirs) -> merged.

    vault     lines are united; who changed the same record later wins, and the other version stays in the log
    topic     entries are united; one that both changed in different ways stays twice, the second one marked
    archive   entries are united
    index     lines are united, counts added up
    note      front matter key by key, the body line by line; what both changed stays in both versions
    record    as a note, with the hash of the new content
    layer     as a note, with the later Last Updated line

Always: a change beats a deletion, what one side took out stays out, no conflict markers, and swapping the sides gives
the same bytes. Unmergeable where that cannot be promised; git then merges in its own way. Pure functions, no I/O.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from memlane.core.errors import MemlaneError
from memlane.core.model import Memory
from memlane.core.text import FrontMatterError, edit_front, find_front, heading, load_front, moment, with_body
from memlane.core.three_way import MARK, merged, settled, survivors, three_way, unified, woven
from memlane.disk.log import split_lines
from memlane.lanes.layers import aging
from memlane.lanes.topics import entries as text_of
from memlane.lanes.topics.entries import Listed
from memlane.lanes.topics.pages import opened
from memlane.lanes.vault.record import Record, parse_line, read_line, time_of

CONFLICTS = "conflicts"  # the front-matter key that holds the values that did not win
_TWICE = f"{MARK}: two branches changed this entry; keep one of the two and delete this line -->"
_WORDS = frozenset({"tags", "keywords"})
_UPDATED = ("updated_at", "updated", "last_updated", "modified")
_ORIGIN = re.compile(r"<!-- subtopic: \S+ -->[ \t]*\n\Z")
_LARGE = 10 * 1024 * 1024


class Unmergeable(MemlaneError):
    """The file cannot be merged by what it means. Nothing was changed."""

    code = "unmergeable"
    exit_code = 5


def merge(format: str, base: bytes, ours: bytes, theirs: bytes) -> bytes:
    """The file that says what both sides say. Raises Unmergeable. `base` is empty where both sides made the file."""
    whole, agreed = three_way(base, ours, theirs)
    if agreed:
        return bytes(whole)  # only one side changed it: byte for byte, whatever is in it
    if format == "vault":
        return vault(base, ours, theirs)
    if max(map(len, (base, ours, theirs))) > _LARGE:
        raise Unmergeable("The file is too large to be merged by what it means.", hint=_BY_HAND)
    try:
        texts = (base.decode(), ours.decode(), theirs.decode())
    except UnicodeDecodeError:
        raise Unmergeable("The file is not UTF-8 text.", hint=_BY_HAND) from None
    return _TEXTS[format](*texts).encode()


def versions(data: bytes) -> int:
    """How many marks of two versions a file has."""
    return data.count(MARK.encode()) + data.count(f"\n{CONFLICTS}:".encode())


def undecided(memory: Memory) -> str | None:
    """Why a person should look at a memory that a merge has left in two versions; None nearly always."""
    if MARK in memory.text:
        return "has two versions of a text from two branches; keep what is right and delete the memlane:versions lines"
    if memory.fields.get(CONFLICTS) and _is_ours(memory.fields[CONFLICTS]):
        keys = ", ".join(map(str, memory.fields[CONFLICTS]))
        return f"was given two values on two branches ({keys}); choose, then delete the key {CONFLICTS}"
    return None


_BY_HAND = "Resolve it in an editor, then `git add` the file."


# -- the vault


class _Line(NamedTuple):
    """A line of the vault by what it says, whatever its version; `number` tells equal ones apart."""

    id: str
    says: str | bytes
    number: int


class _Log(NamedTuple):
    order: list[_Line]
    records: dict[_Line, Record]
    raw: dict[_Line, bytes]


def vault(base: bytes, ours: bytes, theirs: bytes) -> bytes:
    """Every line that either side added, and none that either took out (`compact`).

    A record that both changed keeps all versions, numbered anew: the later one is the last, and one that is not deleted
    comes after a tombstone. Of two registers that both made for one topic the older gets a tombstone that names the
    other. Damaged lines stay as they are.
    """
    first, left, right = (_log(data) for data in (base, ours, theirs))
    one, two = survivors(first.order, left.order, right.order)
    raw = {line: max(_numbered(log, line) for log in (left, right) if line in log.raw)[1] for line in (*one, *two)}
    records = {line: parse_line(raw[line].decode()) for line in raw if line.id}
    order = woven(one, two, key=lambda line: _place(line, records))
    apart = {line.id for line in set(one) - set(two)} & {line.id for line in set(two) - set(one)}
    moved = {line.id for line in set(one) & set(two) if left.raw[line] != right.raw[line]}
    chains: dict[str, tuple[list[_Line], list[_Line]]] = {id: ([], []) for id in (apart | moved) - {""}}
    for number, side in enumerate((one, two)):
        for line in side:
            if line.id in chains:
                chains[line.id][number].append(line)
    for sides in chains.values():
        chain = _chain(*sides, records=records)
        version = 0
        for line in chain:  # rising numbers, none lower than it was
            version = max(version + 1, records[line].version)
            if version != records[line].version:
                _set(line, {"version": version}, records, raw)
    order += _superseded(left, right, order, records, raw)
    return b"".join(raw[line] + b"\n" for line in order)


def _numbered(log: _Log, line: _Line) -> tuple[int, bytes]:
    record = log.records.get(line)
    return (record.version if record else 0), log.raw[line]


def _log(data: bytes) -> _Log:
    log = _Log([], {}, {})
    seen: Counter[tuple[str, str | bytes]] = Counter()
    for raw in split_lines(data):
        if not raw.strip():
            continue
        record = read_line(raw)
        said: tuple[str, str | bytes] = ("", raw) if isinstance(record, str) else (record.id, _said(raw))
        line = _Line(*said, seen[said])
        seen[said] += 1
        log.order.append(line)
        log.raw[line] = raw
        if isinstance(record, Record):
            log.records[line] = record
    return log


def _said(raw: bytes) -> str:
    values = json.loads(raw)
    values.pop("version", None)
    return json.dumps(values, sort_keys=True)


def _place(line: _Line, records: Mapping[_Line, Record]) -> tuple[Any, ...]:
    """Where a line that only one side has goes: by time. A damaged one follows the line above it, as far as it can."""
    record = records.get(line)
    if record is None:
        return (time_of(None), 0, "", repr(line.says))
    return (_changed(record), record.version, record.id, repr(line.says))


def _changed(record: Record) -> Any:
    return max(map(time_of, (record.created_at, record.updated_at, record.deleted_at)))


def _chain(ours: list[_Line], theirs: list[_Line], *, records: Mapping[_Line, Record]) -> list[_Line]:
    """All versions of a record that both sides changed, the one that counts last."""
    for side in (ours, theirs):
        side.sort(key=lambda line: records[line].version)
    chain = woven(ours, theirs, key=lambda line: (_changed(records[line]), repr(line.says)))
    if not ours or not theirs or ours[-1] in theirs or theirs[-1] in ours:
        return chain

    def weight(line: _Line) -> tuple[Any, ...]:
        return (records[line].deleted_at is None, _changed(records[line]), repr(line.says))

    winner = max(ours[-1], theirs[-1], key=weight)
    return [*(line for line in chain if line != winner), winner]


def _set(line: _Line, changes: Mapping[str, Any], records: dict[_Line, Record], raw: dict[_Line, bytes]) -> None:
    values = {**json.loads(raw[line]), **changes}
    raw[line] = json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()
    records[line] = parse_line(raw[line].decode())


def _latest(lines: Iterable[_Line], records: Mapping[_Line, Record]) -> dict[str, _Line]:
    found: dict[str, _Line] = {}
    for line in lines:
        old = found.get(line.id)
        if line not in records:
            continue
        if old is None or records[line].version >= records[old].version:
            found[line.id] = line
    return found


def _registers(lines: Iterable[_Line], records: Mapping[_Line, Record]) -> dict[tuple[str, str], set[_Line]]:
    """The active registers of each topic of each scope."""
    found: dict[tuple[str, str], set[_Line]] = {}
    for line in _latest(lines, records).values():
        record = records[line]
        if record.tier == "register" and record.topic_id and not record.deleted_at:
            found.setdefault((record.scope, record.topic_id), set()).add(line)
    return found


def _superseded(
    left: _Log, right: _Log, order: list[_Line], records: dict[_Line, Record], raw: dict[_Line, bytes]
) -> list[_Line]:
    """Tombstones for all but the newest register of a topic, where it is the merge that brought several together."""
    before = [_registers(log.records, log.records) for log in (left, right)]
    tombstones = []
    for topic, lines in sorted(_registers(order, records).items()):
        ids = {line.id for line in lines}
        if len(ids) < 2 or any(ids <= {line.id for line in side.get(topic, ())} for side in before):
            continue
        winner = max(lines, key=lambda line: (_changed(records[line]), line.id))
        for loser in sorted(lines - {winner}):
            when = max((records[winner], records[loser]), key=_changed)
            stone = _Line(loser.id, f"superseded by {winner.id}", 0)
            raw[stone] = raw[loser]
            changes = {"deleted_at": when.updated_at or when.created_at, "superseded_by": winner.id}
            _set(stone, {"version": records[loser].version + 1, **changes}, records, raw)
            tombstones.append(stone)
    return tombstones


# -- topics


class _Entry(NamedTuple):
    """An entry of a topic file or archive. `base` is its number in the base, or -1; then it is known by its text."""

    base: int
    raw: str
    number: int


def topic(base: str, ours: str, theirs: str) -> str:
    """A topic file with the entries of both, the newest first. An entry that one side pruned or deleted stays away,
    unless the other changed it.
    """
    newline, texts = unified(base, ours, theirs)
    if any(map(text_of.conflict, texts)):
        raise Unmergeable("The file has unresolved merge-conflict markers.", hint=_BY_HAND)
    first, left, right = map(text_of.split, texts)
    old = [raw.rstrip("\n") for raw in first.raws]
    one, two = ([raw.rstrip("\n") for raw in side.raws] for side in (left, right))
    shared = set(one) & set(two)
    sides = (_known(old, one, shared), _known(old, two, shared))
    now = [dict(zip(known, raws, strict=True)) for known, raws in zip(sides, (one, two), strict=True)]
    final: dict[_Entry, list[str]] = {}
    for entry in {*sides[0], *sides[1]}:
        raws = [side.get(entry, "") for side in now]
        if entry.base < 0:
            final[entry] = [entry.raw]
        elif all(raws):
            final[entry] = _entry(old[entry.base], raws[0], raws[1])
        else:
            changed = next(filter(None, raws))
            final[entry] = [] if changed == old[entry.base] else [changed]

    def place(entry: _Entry) -> tuple[Any, ...]:
        raw = final[entry][0]
        return -_day(raw), raw

    kept = [[entry for entry in side if final[entry]] for side in sides]
    raws = [raw for entry in woven(kept[0], kept[1], key=place) for raw in final[entry]]
    head, tail = (
        merged(*parts) for parts in ((first.head, left.head, right.head), (first.tail, left.tail, right.tail))
    )
    if raws and tail.strip() and not raws[-1].endswith("\n---"):
        raws[-1] += "\n---"
    text = (opened(head, "\n") if raws else head) + "\n".join(raw + "\n" for raw in raws) + tail
    found = text_of.split(text)
    if [raw.rstrip("\n") for raw in found.raws] != raws or found.tail.strip() != tail.strip():
        raise Unmergeable("The entries cannot be told apart after a merge.", hint=_BY_HAND)
    return text if newline == "\n" else text.replace("\n", newline)


def _known(old: Sequence[str], raws: Sequence[str], shared: Collection[str]) -> list[_Entry]:
    """The entries of a side by what they were in the base: those of the same text, then those of the same heading.

    The oldest comes first, as new entries are put on top. What both sides have and the base has not is new.
    """
    found: list[int] = [-1] * len(raws)
    left = dict(reversed(list(enumerate(old))))
    for key in (str, _heading):
        places: dict[Any, list[int]] = {}
        for number, raw in left.items():
            places.setdefault(key(raw), []).append(number)
        for number, raw in reversed(list(enumerate(raws))):
            if found[number] < 0 and places.get(key(raw)) and (key is str or raw not in shared):
                found[number] = places[key(raw)].pop(0)
                del left[found[number]]
    seen: Counter[str] = Counter()
    entries = []
    for number, raw in zip(found, raws, strict=True):
        entries.append(_Entry(number, "", 0) if number >= 0 else _Entry(-1, raw, seen[raw]))
        seen[raw] += number < 0
    return entries


def _heading(raw: str) -> tuple[str, str]:
    entry = text_of.parse(raw)
    return entry.date, entry.title


def _day(raw: str) -> int:
    return int(text_of.parse(raw).date.replace("-", ""))


def _entry(base: str, ours: str, theirs: str) -> list[str]:
    """An entry that both sides have: as one of them changed it, both changes in one, or both entries."""
    value, agreed = three_way(base, ours, theirs)
    if agreed:
        return [value]
    both = settled(base, ours, theirs)
    if both is not None and len(text_of.split(both).raws) == 1 and _heading(both) == _heading(base):
        return [both]
    first, second = sorted((ours, theirs))
    top, _, rest = second.partition("\n")
    return [first, second if _TWICE in second else f"{top}\n{_TWICE}\n{rest}".rstrip("\n")]


def archive(base: str, ours: str, theirs: str) -> str:
    """An archive file with the entries of both, the newest first."""
    newline, texts = unified(base, ours, theirs)
    found = [text_of.archived(text) for text in texts]
    first, left, right = ([_Archived(*item) for item in _counted(items)] for items in found)
    order = woven(*survivors(first, left, right), key=lambda item: (-_day(item.raw), item.subtopic, item.raw))
    heads = [_above(text, items) for text, items in zip(texts, found, strict=True)]
    head = merged(*heads)
    head += "\n" * bool(head and not head.endswith("\n"))
    text = head + "\n".join(
        (text_of.archive_mark(item.subtopic) if item.subtopic else "") + item.raw + "\n" for item in order
    )
    if [(name, raw.rstrip("\n")) for name, raw in text_of.archived(text)] != [(one.subtopic, one.raw) for one in order]:
        raise Unmergeable("The archived entries cannot be told apart after a merge.", hint=_BY_HAND)
    return text if newline == "\n" else text.replace("\n", newline)


class _Archived(NamedTuple):
    subtopic: str
    raw: str
    number: int


def _counted(items: Sequence[tuple[str, str]]) -> Iterable[tuple[str, str, int]]:
    seen: Counter[tuple[str, str]] = Counter()
    for subtopic, raw in items:
        item = (subtopic, raw.rstrip("\n"))
        yield *item, seen[item]
        seen[item] += 1


def _above(text: str, items: Sequence[tuple[str, str]]) -> str:
    """What stands above the first archived entry and its mark."""
    head = text[: text.index(items[0][1])] if items else text
    return _ORIGIN.sub("", head) if items and items[0][0] else head


# -- index.md


def index(base: str, ours: str, theirs: str) -> str:
    """index.md with the lines of both. Counts are added up; `memlane topics reindex` counts again."""
    newline, texts = unified(base, ours, theirs)
    bare = [_without_lines(text) for text in texts]
    if any(text is None for text in bare):  # written by hand, in a way of its own
        return merged(base, ours, theirs)
    first, left, right = map(text_of.read_index, texts)
    lines = {
        name: line
        for name in {*left, *right}
        if (line := _listed(first.get(name), left.get(name), right.get(name))) is not None
    }
    text = text_of.edit_index(merged(*(text or "" for text in bare)), lines)
    if text_of.read_index(text) != lines:
        return merged(base, ours, theirs)
    return text if newline == "\n" else text.replace("\n", newline)


def _without_lines(text: str) -> str | None:
    """The text without the lines of sub-topics and the headings above them; None when some are not of our making."""
    known = text_of.read_index(text)
    if any(line.entries is None for line in known.values()):
        return None
    rows: list[str] = []
    seen = 0
    for row in text.removesuffix("\n").split("\n") if text else []:
        name = next(iter(text_of.read_index(f"### x\n{row}\n")), None) if row[:3] in ("- `", "* `") else None
        if name is not None:
            seen += 1
            if rows and (found := heading(rows[-1])) and found[0] == 3:
                if found[1].strip().lower().replace(" ", "-") != name.partition("/")[0]:
                    return None
                rows.pop()
                if rows and not rows[-1].strip():
                    rows.pop()
        else:
            rows.append(row)
    return "".join(f"{row}\n" for row in rows) if seen == len(known) else None


def _listed(base: Listed | None, ours: Listed | None, theirs: Listed | None) -> Listed | None:
    value, agreed = three_way(base, ours, theirs)
    if agreed or ours is None or theirs is None:
        return value if agreed else ours or theirs  # a change beats a deletion
    was = base or Listed("", 0, 0, "")
    entries, archived = (
        max(0, (mine or 0) + (other or 0) - (old or 0))
        for mine, other, old in ((ours[1], theirs[1], was[1]), (ours[2], theirs[2], was[2]))
    )
    description, agreed = three_way(was.description, ours.description, theirs.description)
    if not agreed:  # a person's description stands beside old facts; ours follows the newest entry
        sides = sorted((ours, theirs), key=lambda side: (side[1:] == was[1:], side.newest or "", side.description))
        description = sides[-1].description
    return Listed(description, entries, archived, max(ours.newest or "-", theirs.newest or "-"))


# -- Markdown with front matter


def note(base: str, ours: str, theirs: str) -> str:
    return _document(base, ours, theirs)


def record(base: str, ours: str, theirs: str) -> str:
    return _document(base, ours, theirs, hashed=True)


def layer(base: str, ours: str, theirs: str) -> str:
    texts = (base, ours, theirs)
    body = note(*map(aging.body, texts))
    heads = [text[: len(text) - len(aging.body(text))] for text in texts[1:]]
    days = [aging.updated_on(text) for text in texts[1:]]
    latest = max(filter(None, days), default=None)
    return aging.stamped(max(heads), latest) + body if latest else max(heads) + body


class _Parts(NamedTuple):
    head: str  # front matter with its fences and the empty line, "" when there is none
    source: str
    values: dict[str, Any]
    body: str


def _document(base: str, ours: str, theirs: str, *, hashed: bool = False) -> str:
    newline, texts = unified(base, ours, theirs)
    mark = "\ufeff" if three_way(*(text.startswith("\ufeff") for text in texts))[0] else ""
    parts = [_parts(text.removeprefix("\ufeff")) for text in texts]
    body = merged(*(part.body for part in parts))
    values = _values(*(part.values for part in parts))
    if hashed:
        _rehash(values, parts[1], parts[2], body)
    text = mark + with_body(_head(parts, values), body)
    found = _parts(text.removeprefix("\ufeff"))
    if (found.body, _present(found.values)) != (body, _present(values)):
        raise Unmergeable("The merged front matter cannot be written.", hint=_BY_HAND)
    return text if newline == "\n" else text.replace("\n", newline)


def _parts(text: str) -> _Parts:
    front = find_front(text)
    if front is None:
        return _Parts("", "", {}, text)
    source = text[front.start : front.end]
    try:
        return _Parts(text[: front.body], source, load_front(source), text[front.body :])
    except FrontMatterError as error:
        raise Unmergeable(f"The front matter {error}.", hint=_BY_HAND) from None


def _head(parts: list[_Parts], values: Mapping[str, Any]) -> str:
    """Front matter that says this: both sides' lines where they fit together, else one side's, changed key by key."""
    heads = [(part.head, part) for part in parts[1:] if part.head]
    if not heads or not _present(values):
        return ""
    head, part = min(heads, key=lambda pair: pair[0])
    together = settled(*(side.source for side in parts))
    if together is not None:
        try:
            if load_front(together) == values:
                return head.replace(part.source, together, 1)
        except FrontMatterError:
            pass  # the same key on two lines, for one
    keys = [key for key in sorted({*part.values, *values}, key=str) if part.values.get(key) != values.get(key)]
    try:
        return edit_front(head, {key: values.get(key) for key in keys})
    except FrontMatterError as error:
        raise Unmergeable(f"The front matter {error}.", hint=_BY_HAND) from None


def _present(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _values(base: Mapping[str, Any], ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Front matter key by key. A value that did not win is kept under `conflicts`."""
    later = _later(ours, theirs)
    values: dict[str, Any] = {}
    own = any(not _is_ours(side.get(CONFLICTS)) for side in (base, ours, theirs))
    lost: dict[str, list[Any]] = {} if own else _losers(base, ours, theirs)
    for key in dict.fromkeys((*base, *sorted((*ours, *theirs), key=str))):
        if key == CONFLICTS and not own:
            continue
        old, one, two = (side.get(key) for side in (base, ours, theirs))
        value, agreed = three_way(old, one, two)
        if not agreed:
            value = _value(key, old, one, two, later)
            if None not in (one, two) and not isinstance(value, list) and not _date(value) and key != "content_hash":
                other = two if value == one else one
                lost[key] = sorted({*map(_json, lost.get(key, ())), _json(other)} - {_json(value)})
                lost[key] = [json.loads(item) for item in lost[key]]
        if value is not None:
            values[key] = value
    if lost and own:
        raise Unmergeable(f"The front matter has a key `{CONFLICTS}` of its own.", hint=_BY_HAND)
    return {**values, CONFLICTS: lost} if lost else values


def _is_ours(value: Any) -> bool:
    """Whether a merge may have written this under `conflicts`: a list for each key. What is not there may be."""
    return value is None or (isinstance(value, Mapping) and all(isinstance(items, list) for items in value.values()))


def _value(key: str, base: Any, ours: Any, theirs: Any, later: int) -> Any:
    """What becomes of a value that both sides changed: lists are united, of two dates the later one stays."""
    if ours is None or theirs is None:
        return theirs if ours is None else ours
    if key in _WORDS or isinstance(ours, list):
        old, one, two = (_words(side) for side in (base, ours, theirs))
        if one is not None and two is not None:
            return woven(*survivors(old or [], one, two), key=str)
    if _date(ours) and _date(theirs):
        return max(ours, theirs, key=lambda side: (_date(side), _json(side)))
    return (ours, theirs)[later] if later >= 0 else max(ours, theirs, key=_json)


def _date(value: Any) -> datetime | None:
    """The moment that a value means; a small number means none."""
    return moment(value) if isinstance(value, str) or (isinstance(value, int) and value > 10**8) else None


def _words(value: Any) -> list[str] | None:
    """A list of text, or a text with commas, each word once; None for anything else."""
    items = [item.strip() for item in value.split(",")] if isinstance(value, str) else value
    if items is None:
        return []
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        return None
    return list(dict.fromkeys(item for item in items if item))


def _later(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> int:
    """Which side says that it was updated later; -1 when neither does."""
    for key in _UPDATED:
        one, two = moment(ours.get(key)), moment(theirs.get(key))
        if one and two and one != two:
            return int(two > one)
    return -1


def _losers(*sides: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The values that earlier merges have kept under `conflicts`."""
    value, agreed = three_way(*(side.get(CONFLICTS) for side in sides))
    found: dict[str, list[Any]] = {}
    for side in (value,) if agreed else (side.get(CONFLICTS) for side in sides[1:]):
        for key, items in (side or {}).items():
            known = found.setdefault(str(key), [])
            known += [item for item in items if item not in known]
    return {key: sorted(items, key=_json) for key, items in found.items()}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _rehash(values: dict[str, Any], ours: _Parts, theirs: _Parts, body: str) -> None:
    """A record's content_hash is that of its content: of a side whose content it is, else computed."""
    from memlane.lanes.records import content_hash

    if "content_hash" in values:
        known = {side.values.get("content_hash") for side in (ours, theirs) if side.body == body}
        values["content_hash"] = known.pop() if len(known) == 1 else content_hash(body)


_TEXTS: Mapping[str, Callable[[str, str, str], str]] = {
    "note": note, "record": record, "layer": layer, "topic": topic, "archive": archive, "index": index,
}  # fmt: skip
FORMATS = ("vault", *_TEXTS)
