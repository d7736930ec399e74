"""Which memory a text names, and where it is or would be: also one that is damaged or deleted. Reads only.

Whatever memlane prints names the memory again. A text is read in this order, and the first reading that fits counts:

1. an id with its lane: `notes:deploy-day`, `memory:deploy-day` (a note), `memory://memory/notes:deploy-day`
2. an id without its lane, in the one lane that has it: `deploy-day`, `deploy-day.md`, `3f9a1c0b7d2e`
3. the path of a file: absolute, or relative to the lane, the bank, the project or where we are. Of a file that holds
   several memories, the one under the `#heading` that the path ends with, or the only one
4. a name that is there once: a file's name without its folder, a title, the topic of a vault's register
5. the beginning of an id with its lane and "…", as a prompt shows long ones: `notes:cluster-os-migrated…`

`[[brackets]]`, `#heading` and `:line` behind a name are understood. What was deleted is named like what is there, or by
the file that it is in now; a name of something deleted is not taken for the title of something else. The first reading
is one look at one file; only the last reads more than the files that are named.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memlane.core.errors import InvalidInput, MemlaneError, NotFound, StorageError
from memlane.core.model import Memory, Removed
from memlane.core.text import nearest
from memlane.core.values import NamedTuple
from memlane.disk.names import is_utf8
from memlane.gate import shown
from memlane.index.links import PLACE, placeless
from memlane.lanes import NAMES, Lane

if TYPE_CHECKING:
    from memlane.bank import Bank

URI = "memory://memory/"
MOST = 5  # candidates that a message names
SHORT = 24  # characters of an id that `shortened` leaves
CUT = "…"
Name = tuple[str, str, str | None]  # the id of a memory, its title, and the topic of a vault's register
Names = Callable[[], Iterable[Name]]
_UNREADABLE = (NotFound, InvalidInput, StorageError)
_NONE = 99  # no reading fits
_AMBIGUOUS = "ambiguous"
_LIST = "`memlane list` shows the ids."


class Place(NamedTuple):
    lane: Lane
    native: str
    path: str

    @property
    def id(self) -> str:
        return f"{self.lane.name}:{self.native}"


# -- what is there


def get(bank: Bank, text: str) -> Memory:
    """The memory that a text names. Raises NotFound with the nearest names, InvalidInput when several fit."""
    name, native = split(text)
    try:
        if name:
            return bank.lane(name).fetch(native)
    except NotFound as error:
        return _found(bank, text, error)
    except InvalidInput as error:  # no id, or a file that cannot be read
        if found := _read(bank, text):
            return _only(found, text)
        raise error from None
    return _found(bank, text, NotFound(f"There is no memory {shown(text)}.", hint=_LIST))


def locate(bank: Bank, text: str) -> tuple[Lane, str]:
    """The lane and native id of the memory that a text names. Raises as `get`."""
    memory = get(bank, text)
    return bank.lane(memory.lane), memory.native_id


def native(bank: Bank, lane: str, text: str) -> str:
    """The native id of a memory of this lane, for the lane's own verbs. Raises as `get`."""
    name, _ = split(text)
    memory = get(bank, text if name else f"{lane}:{text}")
    if memory.lane != lane:
        raise InvalidInput(f"{shown(memory.id)} is not in the {lane} lane.", hint=f"Give the id of one of the {lane}.")
    return memory.native_id


def find(bank: Bank, text: str) -> Place:
    """The place of a memory that is there, or of a damaged file that should be one. Raises as `get`."""
    try:
        memory = get(bank, text)
        return Place(bank.lane(memory.lane), memory.native_id, memory.file)
    except _UNREADABLE as error:
        anyhow = error.code != _AMBIGUOUS and bank.access.scopes is None  # a damaged file does not say its scope
        for place in _possible(bank, text) if anyhow else ():
            if not place.lane.answers.shares_files and os.path.isfile(place.path):
                return place
        raise


# -- what is not there any more


def find_any(bank: Bank, text: str) -> Place:
    """The place of a memory that is there, damaged, deleted or half forgotten, or that only git knows. Raises as `get`.

    An id with its lane is taken as it is where nothing else fits.
    """
    try:
        return find(bank, text)
    except _UNREADABLE as error:
        if error.code == _AMBIGUOUS:
            raise
        removed = deleted(bank, text)
        lane, _ = split(text)
        for place in _possible(bank, removed.id if removed else text):
            answers = place.lane.answers
            named = answers.is_folder if lane else place.lane.name == "vault" and answers.versions(place.native)
            if removed or named or bank.tombstones.knows(place.id):
                return place
        raise


def deleted(bank: Bank, text: str, *, titles: bool = True) -> Removed | None:
    """What `restore` would bring back under this name: the latest deletion. Raises InvalidInput when several fit."""
    lane, plain = split(text)
    gone = [removed for removed in bank.removed() if lane in ("", removed.id.partition(":")[0])]
    names = {name.removesuffix(".md") for name in (plain, placeless(plain))}
    paths = set(_paths(bank, plain)) if gone else set()

    def reading(removed: Removed) -> int:
        lane, _, native = removed.id.partition(":")
        fits = (
            native in names,
            removed.how != "tombstone" and os.fspath(removed.path) in paths,
            any(place.path in paths for place in _places([bank.lane(lane)], native)),
            os.path.basename(native) in names or (removed.how != "tombstone" and removed.path.stem in names),
        )
        return fits.index(True) if True in fits else _NONE

    best = min(map(reading, gone), default=_NONE)
    found = [removed for removed in gone if best != _NONE and reading(removed) == best]
    if titles and not found:
        found = [removed for removed in gone if _folded(plain) in map(_folded, _titles(bank, removed))]
    if len({removed.id for removed in found}) > 1:
        raise _several([removed.id for removed in found], text)
    return found[0] if found else None


def _titles(bank: Bank, removed: Removed) -> list[str]:
    return bank.lane(removed.id.partition(":")[0]).answers.titles_of(removed)


def in_trash(bank: Bank, text: str) -> Place:
    """What `restore` brings a deleted memory back to. Raises NotFound, InvalidInput."""
    removed = deleted(bank, text)
    if removed is None:
        gone = ((each.id, _other_names(each.id)) for each in bank.removed())
        near = nearest(placeless(split(text)[1]), gone)
        hint = "`memlane restore` lists what there is."
        raise NotFound(f"Nothing deleted has the id {shown(text)}.", hint=hint, near=near)
    latest = next((each for each in bank.removed() if each.id == removed.id), removed)  # it may be back meanwhile
    if latest.path != removed.path:
        hint = f"`memlane restore {shown(removed.id)}` brings back the latest. The older one is {removed.path}."
        raise InvalidInput(f"{shown(removed.id)} was deleted again later.", hint=hint)
    lane, _, native = removed.id.partition(":")
    return Place(bank.lane(lane), native, os.fspath(removed.path))


# -- reading a text


def split(text: str) -> tuple[str, str]:
    """The lane's name ("" where the text names none) and the native id or other name. Raises InvalidInput."""
    plain = unwrapped(text)
    first, colon, native = plain.partition(":")
    if colon and first == "memory":
        return split(native) if native.partition(":")[0] in NAMES else ("notes", native)
    return (first, native) if colon and first in NAMES else ("", plain)


def unwrapped(text: str) -> str:
    """A name without brackets or the scheme of a resource around it. Raises InvalidInput where there is none."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidInput("There is no id.", hint=_LIST)
    if not is_utf8(text):
        raise InvalidInput("The id is not valid Unicode.", hint=_LIST)
    plain = text.strip()
    if plain.startswith("[[") and plain.endswith("]]"):
        plain = plain[2:-2].partition("|")[0].strip()
    if not plain.startswith(URI):
        return plain
    from urllib.parse import unquote

    return unquote(plain.removeprefix(URI))


def _found(bank: Bank, text: str, missing: NotFound) -> Memory:
    """What the slower readings find. Raises `missing` with the nearest names."""
    if found := _read(bank, text):
        return _only(found, text)
    if removed := deleted(bank, text):
        hint = f"`memlane restore {shown(removed.id)}` brings it back."
        raise NotFound(f"{shown(removed.id)} was deleted.", hint=hint)
    near = nearest(placeless(split(text)[1]), _known(bank))
    raise NotFound(missing.message, hint=missing.hint, near=_showable(bank, near))


def _read(bank: Bank, text: str, names: Names | None = None) -> list[Memory]:
    """The memories that fit by the first reading that has any; the last looks through the names that `names` gives."""
    name, plain = split(text)
    lanes = [bank.lane(name)] if name else list(map(bank.lane, NAMES))
    found = [
        memory
        for spelling in dict.fromkeys((plain, placeless(plain), os.path.normpath(plain)))
        for lane in lanes
        if (memory := _fetched(lane, spelling))
    ] or _in_file(bank, lanes, plain)
    if found or (name and bank.tombstones.knows(f"{name}:{plain}")) or deleted(bank, text, titles=False):
        return found
    named = _known(bank) if names is None else _with_others(names())
    wanted = {_folded(spelling) for spelling in (text, plain, plain.removesuffix(".md"), placeless(plain))}
    for id, spellings in named:
        if name in ("", id.partition(":")[0]) and not wanted.isdisjoint(map(_folded, spellings)):
            found += filter(None, [_fetched_id(bank, id)])
    begun = next((plain.removesuffix(dots) for dots in (CUT, "...") if plain.endswith(dots)), "")
    if begun and not found:
        ids = [id for id, _ in named if id.partition(":")[2].startswith(begun) and id.startswith(f"{name}:")]
        found = [memory for id in ids if (memory := _fetched_id(bank, id))]
    return found


def shortened(id: str) -> str:
    """An id that costs few tokens: a long one is cut, and is still understood where no other one begins like it."""
    lane, _, native = id.partition(":")
    if len(native) <= SHORT:
        return id
    begun = native[: SHORT + 1].rpartition("-")[0] or native[:SHORT]
    return f"{lane}:{begun}{CUT}"


def _only(found: Collection[Memory], text: str) -> Memory:
    """The one memory. Raises InvalidInput."""
    by_id = {memory.id: memory for memory in found}
    if len(by_id) > 1:
        raise _several(by_id, text)
    return next(iter(by_id.values()))


def _several(ids: Iterable[str], text: str) -> InvalidInput:
    several = sorted(set(ids))
    more = f" and {len(several) - MOST} more" if len(several) > MOST else ""
    hint = f"Name one: {', '.join(map(shown, several[:MOST]))}{more}."
    return InvalidInput(f"{shown(text)} may be one of {len(several)} memories.", hint=hint, code=_AMBIGUOUS)


def _fetched(lane: Lane, native: str) -> Memory | None:
    try:
        return lane.fetch(native)
    except (NotFound, InvalidInput):
        return None


def _fetched_id(bank: Bank, id: str) -> Memory | None:
    lane, _, native = id.partition(":")
    return _fetched(bank.lane(lane), native)


# -- files


def _in_file(bank: Bank, lanes: Sequence[Lane], plain: str) -> list[Memory]:
    """The memories in the file that a path names; where it ends with a heading, those under it."""
    place = PLACE.search(plain)
    heading = _folded((place and place["heading"]) or "")
    for path in filter(os.path.isfile, _paths(bank, plain)):
        if lane := _lane_at(lanes, path):
            items = [item for item in lane.parse(path) if isinstance(item, Memory) and _fetched(lane, item.native_id)]
            under = [item for item in items if heading and _folded(item.title) in (heading, heading.partition(": ")[2])]
            if items:
                return under or items
    return []


def _paths(bank: Bank, plain: str) -> list[str]:
    """Every path in the bank that a text may mean, the likeliest first."""
    roots = [bank.root, *(bank.config.lane_root(name) for name in NAMES)]
    folders = dict.fromkeys((*(os.fspath(up) for root in roots for up in (root, *root.parents)), os.getcwd()))
    found: dict[str, None] = {}
    for name in dict.fromkeys((plain, placeless(plain))) if "\0" not in plain else ():
        for relative in (name, *_within_project(bank, name)):
            for folder in folders if ".." not in name.split("/") else [os.getcwd()]:
                path = os.path.normpath(os.path.join(folder, relative))
                found |= dict.fromkeys((path, f"{path}.md"))
    return [path for path in found if any(_is_below(path, root) for root in roots)]


def _within_project(bank: Bank, path: str) -> Iterator[str]:
    """An absolute path as the project, or the bank, has it: also where a link leads to either."""
    homes = dict.fromkeys(filter(None, (bank.config.code, bank.config.project, bank.root)))
    for home in homes if os.path.isabs(path) else ():
        for one, base in ((path, os.fspath(home)), (os.path.realpath(path), os.path.realpath(home))):
            if _is_below(one, base):
                yield os.path.relpath(one, base)


def _is_below(path: str, root: str | Path) -> bool:
    return path == os.fspath(root) or path.startswith(os.path.join(root, ""))


def _lane_at(lanes: Iterable[Lane], path: str) -> Lane | None:
    """The lane of a path. The folders of some lanes are inside those of others."""
    around = [lane for lane in lanes if _is_below(path, lane.root)]
    return max(around, key=lambda lane: len(os.fspath(lane.root)), default=None)


def _possible(bank: Bank, text: str) -> list[Place]:
    """The places that a text may name, whether or not anything is there: by id, then by path."""
    name, plain = split(text)
    lanes = list(map(bank.lane, NAMES))
    chosen = [bank.lane(name)] if name else lanes
    places = [*_places(chosen, plain), *_places(chosen, placeless(plain))]
    for path in _paths(bank, plain):
        lane = _lane_at(lanes, path)
        if lane in chosen and lane and (native := lane.answers.native_of(path)):
            places.append(Place(lane, native, path))
    return [place for place in dict.fromkeys(places) if _lane_at(lanes, place.path) is place.lane]


def _places(lanes: Iterable[Lane], native: str) -> Iterator[Place]:
    for lane in lanes:
        try:
            yield Place(lane, native, lane.answers.path_of(native))
        except (MemlaneError, ValueError):  # no such name can be, or the lane is of the past
            continue


# -- names


def link_targets(bank: Bank, text: str, known: Names) -> list[str]:
    """The nodes of `links_in` by which a memory may link to what a text names: a memory, or any file.

    A note can be linked without its lane, and what has a file of its own by its path. `known` gives the names that
    the last way of reading a text looks through.
    """
    target = text.strip().removeprefix("ghost:")
    lane, plain = split(target)
    found = {memory.id: memory for memory in _read(bank, target, known)}
    if len(found) != 1:  # a file, or a memory that is not there
        names = [f"{lane}:{plain}"] if lane else _file_names(bank, placeless(plain))
        nodes = [f"ghost:{name}" for name in names] + [f"memory:{name}" for name in names if lane]
        return [*nodes, f"memory:{plain}"] if lane == "notes" else nodes
    [memory] = found.values()
    names = [memory.id, *([memory.native_id] if memory.lane == "notes" else [])]
    if not bank.lane(memory.lane).answers.shares_files:
        names += _file_names(bank, memory.file)
    return [f"{kind}:{name}" for kind in ("memory", "ghost") for name in dict.fromkeys(names)]


def _file_names(bank: Bank, path: str) -> list[str]:
    """What links call a file: its path in the project, in the bank or in all, with and without `./` and `.md`."""
    here = os.path.abspath(path)  # where somebody types a name, it may be relative to where they are
    names = [os.path.normpath(path), *_within_project(bank, path)]
    names += _within_project(bank, here) if path.startswith("..") or os.path.exists(here) else ()
    names += [name.removesuffix(".md") for name in names]
    homes = (".", bank.config.code or ".")
    names += [f"{home}/{name}" for home in homes for name in names if not os.path.isabs(name)]
    return list(dict.fromkeys(names))


def _known(bank: Bank) -> list[tuple[str, tuple[str, ...]]]:
    """Every memory's id, and what else it is called: natively, by its last part, its title, a register's topic."""
    from memlane.index.peek import Peek

    with Peek(bank.index_file, bank.present()) as peek:
        return _with_others(peek.names())


def _with_others(names: Iterable[Name]) -> list[tuple[str, tuple[str, ...]]]:
    return [(id, (*_other_names(id), *filter(None, others))) for id, *others in names]


def _other_names(id: str) -> tuple[str, str]:
    native = id.partition(":")[2]
    return native, os.path.basename(native)


def _folded(name: str) -> str:
    return " ".join(unicodedata.normalize("NFC", name).casefold().split())


def _showable(bank: Bank, ids: Iterable[str]) -> tuple[str, ...]:
    """Those ids whose memories are to be seen: a name can give away what was forgotten."""
    found = ((id, _fetched_id(bank, id)) for id in ids)
    unseen = bank.unseen()
    return tuple(id for id, memory in found if memory and not unseen(memory))
