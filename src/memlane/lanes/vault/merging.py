"""Merge two branches of a vault: all lines are kept, and the later change of a record wins. Pure functions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from memlane.core.three_way import interleaved, survivors
from memlane.disk.log import split_lines
from memlane.lanes.vault.record import Record, parse_line, read_line, time_of

_NO_TIME = time_of(None)


class _Line:
    """A line of the vault by what it says, whatever its version; a damaged one has no id, and says its bytes.

    The same line of several files is one object, and the second of two equal ones in a file is another, with another
    `number`: so they are told apart and found as objects, which is quicker than by what they say.
    """

    __slots__ = ("id", "number", "says")

    def __init__(self, id: str, says: str | bytes, number: int = 0) -> None:
        self.id, self.says, self.number = id, says, number


class _Log(NamedTuple):
    order: list[_Line]
    records: dict[_Line, Record]
    raw: dict[_Line, bytes]  # of the records


def vault(base: bytes, ours: bytes, theirs: bytes) -> bytes:
    """Every line that either side added, and none that either took out (`compact`).

    A record that both changed keeps all versions, numbered anew: the later one is the last, and one that is not deleted
    comes after a tombstone. Of two registers that both made for one topic the older gets a tombstone that names the
    other. Damaged lines stay as they are.
    """
    known: dict[tuple[str, str | bytes], list[_Line]] = {}
    first, left, right = (_log(data, known) for data in (base, ours, theirs))
    mine, yours = survivors(first.order, left.order, right.order)
    raw = {line: _latest(line, left, right) for line in (*mine, *yours) if line.id}
    records = {line: parse_line(raw[line].decode()) for line in raw}
    order = interleaved(mine, yours, key=lambda line: _place(line, records))
    my_records, your_records = records.keys() & left.raw.keys(), records.keys() & right.raw.keys()
    only_mine, only_yours, both = my_records - your_records, your_records - my_records, my_records & your_records
    changed_apart = {line.id for line in only_mine} & {line.id for line in only_yours}
    renumbered = {line.id for line in both if left.raw[line] != right.raw[line]}
    chains: dict[str, tuple[list[_Line], list[_Line]]] = {id: ([], []) for id in changed_apart | renumbered}
    for number, side in enumerate((mine, yours)):
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
    return b"".join((line.says if isinstance(line.says, bytes) else raw[line]) + b"\n" for line in order)


def _latest(line: _Line, *logs: _Log) -> bytes:
    """A record's line as it stands in the file where its version is the highest."""
    return max((log.records[line].version, log.raw[line]) for log in logs if line in log.raw)[1]


def _log(data: bytes, known: dict[tuple[str, str | bytes], list[_Line]]) -> _Log:
    """The lines of a file. `known` has those of other files, by what they say, and gets the new ones."""
    log = _Log([], {}, {})
    seen: Counter[tuple[str, str | bytes]] = Counter()
    for raw in split_lines(data):
        if not raw.strip():
            continue
        record = read_line(raw) if raw.lstrip().startswith(b"{") else ""  # quick, for what is no record at all
        said: tuple[str, str | bytes] = ("", raw) if isinstance(record, str) else (record.id, _said(raw))
        equal = known.setdefault(said, [])
        number = seen.get(said, 0)
        seen[said] = number + 1
        if number == len(equal):
            equal.append(_Line(*said, number))
        line = equal[number]
        log.order.append(line)
        if isinstance(record, Record):
            log.raw[line], log.records[line] = raw, record
    return log


def _said(raw: bytes) -> str:
    values = json.loads(raw)
    values.pop("version", None)
    return json.dumps(values, sort_keys=True)


def _place(line: _Line, records: Mapping[_Line, Record]) -> tuple[Any, ...]:
    """Where a line that only one side has goes: by time. A damaged one follows the line above it, as far as it can."""
    record = records.get(line)
    if record is None:
        return (_NO_TIME, "", repr(line.says), line.number)
    return (_changed(record), record.id, repr(line.says), line.number)  # not by its version, which a merge may change


def _changed(record: Record) -> Any:
    return max(map(time_of, (record.created_at, record.updated_at, record.deleted_at)))


def _chain(ours: list[_Line], theirs: list[_Line], *, records: Mapping[_Line, Record]) -> list[_Line]:
    """All versions of a record that both sides changed, the one that counts last."""

    def weight(line: _Line) -> tuple[Any, ...]:
        return (records[line].deleted_at is None, _changed(records[line]), repr(line.says), line.number)

    for side in (ours, theirs):
        side.sort(key=lambda line: records[line].version)
    chain = interleaved(ours, theirs, key=weight)
    if not ours or not theirs or ours[-1] in theirs or theirs[-1] in ours:
        return chain
    winner = max(ours[-1], theirs[-1], key=weight)
    return [*(line for line in chain if line != winner), winner]


def _set(line: _Line, changes: Mapping[str, Any], records: dict[_Line, Record], raw: dict[_Line, bytes]) -> None:
    values = {**json.loads(raw[line]), **changes}
    raw[line] = json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()
    records[line] = parse_line(raw[line].decode())


def _registers(lines: Iterable[_Line], records: Mapping[_Line, Record]) -> dict[tuple[str, str], set[_Line]]:
    """The active registers of each topic of each scope."""
    latest: dict[str, _Line] = {}
    for line in sorted((line for line in lines if line in records), key=lambda line: records[line].version):
        latest[line.id] = line
    found: dict[tuple[str, str], set[_Line]] = {}
    for line in latest.values():
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
        for loser in sorted(lines - {winner}, key=attrgetter("id", "says", "number")):
            when = max((records[winner], records[loser]), key=_changed)
            stone = _Line(loser.id, f"superseded by {winner.id}")
            raw[stone] = raw[loser]
            changes = {"deleted_at": when.updated_at or when.created_at, "superseded_by": winner.id}
            _set(stone, {"version": records[loser].version + 1, **changes}, records, raw)
            tombstones.append(stone)
    return tombstones
