"""Removing a memory from the journal of its bank, at every place that the bank has on this machine.

What the memory says or said in a file of its lane is taken out of every content of that file by the lane itself, in a
scratch folder, so that earlier versions of its neighbours stay. Lines about it leave the logs beside the lanes. An
earlier version of some other memory that repeats it word for word goes as a whole.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from memlane.core.errors import Busy
from memlane.disk import files, journal, log
from memlane.disk.tombstones import plain
from memlane.history.journaled import Reader, own_name, reading, under_earlier_names
from memlane.history.undo import name_of
from memlane.lanes import Lane
from memlane.lanes.answers import Trace, needles

if TYPE_CHECKING:
    from memlane.bank import Bank

_LEAST = 4  # characters of a line that is worth a closer look


def traces(bank: Bank, lane: Lane, native: str, known: Sequence[Trace]) -> Iterator[Trace]:
    """What the journal has of a memory; at most one trace. Changes nothing."""
    kept = bank.journal
    if kept is None or not kept.path:
        return
    signs = _signs(lane, native, known)
    quoted = [json.dumps(f"{lane.name}:{native}", ensure_ascii=way).encode() for way in (False, True)]
    found: list[Trace] = []
    touched = bool(known)
    with reading(bank) as reader:
        earlier = _earlier_ids(bank, reader, lane, native)
        signs = signs.union(*(_signs(lane, each, ()) for each in earlier))
        for name, data in kept.texts():
            if not any(sign in data or sign in os.fsencode(name) for sign in signs):
                continue
            touched = touched or any(id in data for id in quoted)
            with reader.holding(name, data) as held:
                if held and held[0].name == lane.name:
                    found += [trace for each in (native, *earlier) for trace in _own(held[0], each)]
    if not touched and not found:
        return
    texts = tuple(dict.fromkeys(text for trace in found for text in trace.texts))
    marks = tuple(dict.fromkeys(mark for trace in found for mark in trace.marks))
    yield Trace("journal", kept.path, texts, partial(_purge, bank, lane, native, earlier, [*known, *found]), marks)


def _own(lane: Lane, native: str) -> list[Trace]:
    """The traces in a scratch lane."""
    return [trace for trace in lane.answers.traces(native) if os.path.lexists(trace.path)]


def _signs(lane: Lane, native: str, known: Sequence[Trace]) -> set[bytes]:
    """What bytes have in them that may be about this memory; more than are."""
    id = f"{lane.name}:{native}"
    names = {id, native, native.rpartition("/")[2], *lane.answers.aliases(native)}
    signs = {json.dumps(name, ensure_ascii=way)[1:-1].encode() for name in names for way in (False, True)}
    for trace in known:
        for text in (*trace.texts, *trace.marks):
            signs |= needles(text, every=True, least=_LEAST) | {text.strip().encode(errors="replace")}
    return signs - {b""}


def _earlier_ids(bank: Bank, reader: Reader, lane: Lane, native: str) -> list[str]:
    """The ids that an entry of a shared file had before its title was changed, as far as nobody has them now."""
    kept = bank.journal
    if kept is None or not lane.answers.shares_files:
        return []
    now, found = f"{lane.name}:{native}", list[str]()
    name = own_name(bank, lane.answers.path_of(native))
    for row in reversed(kept.rows_of([name])):
        before, after = (list(reader.memories(name, kept.text(hash))) for hash in (row.before, row.after))
        at = after.index(now) if now in after else len(before)
        if at < len(before) and before[at] not in after and [*before[:at], now, *before[at + 1 :]] == after:
            now = before[at]
            found.append(now.partition(":")[2])
    live = {memory.id for memory in bank.memories(lane.name)} if found else set()
    return [each for each in found if f"{lane.name}:{each}" not in live]


def _purge(bank: Bank, lane: Lane, native: str, earlier: Sequence[str], known: Sequence[Trace]) -> None:
    kept = bank.journal
    if kept is None:
        return
    id = f"{lane.name}:{native}"
    natives = (native, *earlier)
    ids = {form for each in natives for form in (f"{lane.name}:{each}", each, *lane.answers.aliases(each))}
    lines = {json.dumps(each, ensure_ascii=way).encode() for each in ids for way in (False, True)}
    lines |= {hash for trace in known for hash in bank.tombstones.lines_about(id, trace.texts)}
    said = [text for trace in known for text in (*trace.texts, *trace.marks)]
    lines |= {needle for text in said for needle in needles(text, every=True)}
    telling = {needle for text in said for needle in needles(text)}
    twins = {plain(text) for trace in known for text in trace.texts} - {""}
    with reading(bank) as reader, journal.paused():
        signs = {sign for each in natives for sign in _signs(lane, each, known)}
        without = partial(_without, reader, lane, natives, signs, lines, telling, twins)
        rows = () if lane.answers.shares_files else under_earlier_names(kept, _name(bank, lane, native))
        texts = ((row.name, kept.text(hash)) for row in rows for hash in (row.before, row.after))
        past = {(name, text) for name, text in texts if text is not None}
        ids |= {each for name, _ in past for each in (name, name_of(bank, name))}

        def spared(name: str, data: bytes) -> bytes | None:
            return None if (name, data) in past else _spared(bank, without, name, data)

        clean = kept.purge(spared, ids | {_name(bank, lane, native)})
    if not clean:
        raise Busy("The journal is being read by another program, and may still hold it.", hint="Call forget again.")


def _name(bank: Bank, lane: Lane, native: str) -> str:
    return os.path.relpath(lane.answers.path_of(native), bank.root)


def _spared(bank: Bank, without: Callable[[str, bytes, bool], bytes | None], name: str, data: bytes) -> bytes | None:
    """What another memory says at this moment is not touched: `forget` names it."""
    path = os.path.normpath(os.path.join(files.real(os.fspath(bank.root)), name))
    return without(name, data, os.path.isfile(path) and files.size_of(path) == len(data) and log.read_all(path) == data)


def _without(
    reader: Reader,
    lane: Lane,
    natives: Sequence[str],
    signs: Collection[bytes],
    lines: Collection[bytes],
    telling: Collection[bytes],
    twins: Collection[str],
    name: str,
    data: bytes,
    live: bool,
) -> bytes | None:
    """A content of a file without the memory; None when nothing of it may stay."""
    if not any(sign in data or sign in os.fsencode(name) for sign in (*signs, *lines)):
        return data
    found = reader.lane_of(name)
    derived = found and found[0].answers.derived() == found[1]
    result: bytes | None = data
    if found and found[0].name == lane.name and not derived:
        result = taken_out(reader, natives, name, data)
    if derived:
        return None
    if found and found[1] == os.fspath(found[0].root):
        return result  # a lane that is a log: its lines are of one memory each
    if result is not None and ".jsonl" in os.path.basename(name):
        return b"".join(line for line in result.splitlines(True) if not any(sign in line for sign in lines))
    if result is not None and result == data and found and ".trash" in name.split("/"):
        with reader.holding(name, data) as held:
            if held and any(plain(text) in twins for text in held[0].answers.texts_in(held[1])):
                return None
    if result is not None and not live and any(needle in result for needle in telling):
        return None
    return result


def taken_out(reader: Reader, natives: Sequence[str], name: str, data: bytes) -> bytes | None:
    """A content without these memories of its lane, which takes them out itself; None when nothing is left."""
    with reader.holding(name, data) as held:
        if held is None:
            return data
        lane, path = held
        for trace in (trace for native in natives for trace in _own(lane, native)):
            if trace.path == path:
                trace.remove()
        return log.read_all(path) if os.path.isfile(path) else None
