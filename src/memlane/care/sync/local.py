"""Reading a file of the bank and writing what is made of it, so that nobody's write in between is lost."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING

from memlane.care.sync.travel import LINES, Place
from memlane.core.errors import AlreadyExists, NotFound, StorageError
from memlane.core.three_way import interleaved, survivors
from memlane.disk import files, log, together, written
from memlane.history.merge import merge as merge_files

if TYPE_CHECKING:
    from memlane.bank import Bank

Decide = Callable[[bytes | None], bytes | None]  # from what a file holds to what it should; None for no file


def read(bank: Bank, place: Place) -> bytes | None:
    """What the file holds, or of one that is derived, what a person wrote into it; None where there is none, or a log
    without a line. Raises StorageError.
    """
    if place.is_derived:
        with bank.lane(place.lane).answers.writing():  # else it may not be up to date with what it is derived from
            return _told(bank, place, _held(place))
    return _held(place)


def _held(place: Place) -> bytes | None:
    with files.storage(place.file), suppress(FileNotFoundError, NotADirectoryError):
        if place.is_log:
            return _part(place, log.read_old(place.file) + log.read_all(place.file))
        return files.read_bytes(place.file, place.most)
    return None


def _part(place: Place, data: bytes) -> bytes | None:
    """What of a log's content a place is; None without a line."""
    if place.part is not None:
        data = b"".join(line + b"\n" for line in place.part(lines_of(data))[0])
    return data or None


def _whole(place: Place, data: bytes, after: bytes) -> bytes:
    """A log's content, once the part of it that a place is has become this."""
    if place.part is None:
        return after
    lines, new = lines_of(data), lines_of(after)
    kept = {*place.part(lines)[1], *new}
    return b"".join(line + b"\n" for line in dict.fromkeys([*(line for line in lines if line in kept), *new]))


def _told(bank: Bank, place: Place, data: bytes | None) -> bytes | None:
    return data if data is None or not place.is_derived else bank.lane(place.lane).answers.told(data)


def settle(bank: Bank, place: Place, decide: Decide) -> tuple[bytes | None, bytes | None]:
    """Let a file hold what `decide` makes of what it holds, and hold its writers off meanwhile; (before, after).

    `decide` may be asked again, when somebody else was quicker. Raises StorageError, and whatever `decide` raises.
    """
    with written.copying():  # whoever writes it here need not have written it first
        return _settle_log(place, decide) if place.is_log else _settle_file(bank, place, decide)


def _settle_log(place: Place, decide: Decide) -> tuple[bytes | None, bytes | None]:
    """Lines are appended without a lock, so a log is rewritten as compaction does it, and never removed."""
    while True:
        if not os.path.lexists(place.file):
            after = decide(None)
            if after:
                files.append_lines(place.file, after)
            return None, after
        found: list[bytes | None] = []

        def change(data: bytes, found: list[bytes | None] = found) -> tuple[bytes, bytes]:
            before = _part(place, data)
            after = decide(before)
            found += [before, after]
            if (after or b"") == (before or b""):
                raise _Same
            return _whole(place, data, after or b""), b""

        with suppress(NotFound, _Same):
            log.rewrite(place.file, change, lambda _: True)
        if found:
            return found[0], found[1]


class _Same(Exception):
    """The file holds already what it should."""


def _settle_file(bank: Bank, place: Place, decide: Decide) -> tuple[bytes | None, bytes | None]:
    while True:
        try:
            with _writing(bank, place):
                if not os.path.lexists(place.file):
                    after = decide(None)
                    if after is not None:
                        files.create(place.file, _retold(bank, place, after, b""))
                    return None, after
                with files.locked(place.file):
                    held = _held(place)
                    before = _told(bank, place, held)
                    after = decide(before)
                    if after != before and place.lane:
                        bank.lane(place.lane).answers.let_go(place.file, after or b"")
                    if after is None:
                        files.remove(place.file)
                    elif after != before:
                        files.replace(place.file, _retold(bank, place, after, held or b""))
            if after is None:
                _remove_empty(bank, place)
            return before, after
        except (NotFound, AlreadyExists):
            continue  # it went or came just now


def _retold(bank: Bank, place: Place, after: bytes, held: bytes) -> bytes:
    return bank.lane(place.lane).answers.retold(after, held) if place.is_derived else after


def create_all(contents: Mapping[Place, bytes]) -> set[Place]:
    """Write files that are not here yet, of lanes whose files have one memory each; those that were written.

    The others came just now, or `settle` says what is wrong with them.
    """
    with written.copying():
        made = together.create_all({place.file: data for place, data in contents.items()})
    return {place for place in contents if place.file in made}


def _writing(bank: Bank, place: Place) -> AbstractContextManager[None]:
    """What a lane's writers hold; with a lane that has no folder yet, it is made, so that it can be held."""
    lane = bank.lane(place.lane) if place.lane else None
    if lane is None or not place.shares_files:
        return lane.answers.writing() if lane else nullcontext()
    files.make_folder(os.fspath(lane.root))
    return lane.answers.writing()


def _remove_empty(bank: Bank, place: Place) -> None:
    folder, root = os.path.dirname(place.file), os.fspath(bank.lane(place.lane).root)
    while folder.startswith(root + os.sep) and files.remove_folder(folder):
        folder = os.path.dirname(folder)


# -- merging


def merged(place: Place, base: bytes | None, ours: bytes | None, theirs: bytes | None) -> bytes | None:
    """The file that says what both sides say. A change beats a deletion. Raises Unmergeable."""
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    if ours is None or theirs is None:
        return _left(place, base, ours, theirs) if place.is_log else theirs if ours is None else ours
    if place.driver == LINES:
        return _left(place, base, ours, theirs)
    return merge_files(place.driver, base or b"", ours, theirs)


def _left(place: Place, base: bytes | None, ours: bytes | None, theirs: bytes | None) -> bytes | None:
    """Lines of either side, without those that one of them took out."""
    if place.driver != LINES:
        return merge_files(place.driver, base or b"", ours or b"", theirs or b"") or None
    mine, yours = survivors(*(list(dict.fromkeys(lines_of(data or b""))) for data in (base, ours, theirs)))
    return b"".join(line + b"\n" for line in interleaved(mine, yours, key=bytes)) or None  # in one order for everybody


def lines_of(data: bytes) -> list[bytes]:
    return [line for line in log.split_lines(data) if line.strip()]


def refuse_unwritable(bank: Bank) -> None:
    """Raise StorageError where nothing could be written: before anything is fetched."""
    if os.path.isdir(bank.root) and not os.access(bank.root, os.W_OK):
        raise StorageError("The bank's folder cannot be written.", hint="`memlane doctor` says why.")
