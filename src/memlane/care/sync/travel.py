"""Which files of a bank travel, what they are called at a remote, and which file a remote's name means here.

    deploy-day.md, vault.jsonl, topics/auth/oauth2.md …    by the lanes' usual places, wherever they lie here
    tombstones.jsonl, anchors.jsonl, replaced.jsonl        what is said of memories beside them

Nothing private travels: not the folder `private`, not captured records, unless somebody has shared them as for git, not
the configuration, the trash or the index. A name that comes from a remote counts only when it is exactly what a file
of a lane of this bank would be called, in plain characters.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from memlane.core.errors import InvalidInput
from memlane.core.front_matter import FrontMatterError, find_front, load_front
from memlane.core.patterns import lazily
from memlane.disk import anchors, derived, files, names, replaced, tombstones
from memlane.disk.walking import is_settled
from memlane.exchange import sharing
from memlane.lanes import LANES, NAMES
from memlane.lanes.answers import Answers

if TYPE_CHECKING:
    from memlane.bank import Bank

Part = Callable[[Sequence[bytes]], tuple[Sequence[bytes], Sequence[bytes]]]  # the lines of it, and those that stay
MANY, SHARE = 20, 2  # files that may vanish without a question: so many and not all, or less than one in two
SIDE = (tombstones.FILE, anchors.NAME, replaced.FILE)
LINES = "lines"  # the merge of files whose lines mean the same in any order
# Programs take these for instructions, whoever wrote them.
INSTRUCTIONS = frozenset(
    {
        "agents.md", "agents.override.md", "claude.md", "claude.local.md", "gemini.md", "skill.md",
        "copilot-instructions.md",
    }
)  # fmt: skip
_NOT_OURS = "is no file of a lane here"
_TAKEN = frozenset({*(LANES[name].place for name in NAMES), names.PRIVATE, derived.FOLDER, *SIDE} - {""})
# Nearly all names: of letters that every system spells the same, and none of Windows' devices.
_PLAIN = lazily(
    r"(?:(?!(?:con|prn|aux|nul|com[0-9]|lpt[0-9])[./])[a-z0-9_-]{1,150}/){0,20}"
    r"(?!(?:con|prn|aux|nul|com[0-9]|lpt[0-9])\.)[a-z0-9_-]{1,150}\.(?:md|jsonl)",
    re.IGNORECASE | re.ASCII,
)


class Place(NamedTuple):
    """A file that travels: its name at remotes, its path here, its lane ("" beside the lanes), and how it merges.

    Of one that has lines of several scopes, the `part` of one `scope`: see `memlane.care.sync.scopes`.
    """

    path: str
    file: str
    lane: str
    driver: str
    comes_later: bool = False  # it is no main file of its lane
    is_derived: bool = False  # but for what a person wrote into it, which is what travels
    shares_files: bool = False  # it has many memories of its lane
    scope: str = ""
    part: Part | None = None

    @property
    def key(self) -> str:
        """What its lineage is known by: each part has its own."""
        return f"{self.scope}\n{self.path}" if self.scope else self.path

    @property
    def is_log(self) -> bool:
        return self.path.endswith(".jsonl")

    @property
    def most(self) -> int:
        """The largest that it may be, in bytes."""
        return files.MAX_LOG_BYTES if self.is_log else files.MAX_BYTES


class _Lane(NamedTuple):
    """What the names of a lane's files depend on."""

    name: str
    place: str  # the lane's usual one
    root: str
    answers: Answers
    derived: str | None  # the path of its derived file
    others: tuple[str, ...]  # the beginnings of paths in lanes that lie in it


_lanes: WeakKeyDictionary[Bank, dict[str, _Lane]] = WeakKeyDictionary()


def _lanes_of(bank: Bank) -> dict[str, _Lane]:
    """The lanes of a bank by their usual places: looked at once, because every file's name is asked about."""
    found = _lanes.get(bank)
    if found is None:
        roots = {name: os.fspath(bank.lane(name).root) for name in NAMES}
        found = _lanes[bank] = {
            LANES[name].place: _Lane(
                name, LANES[name].place, root, bank.lane(name).answers, bank.lane(name).answers.derived(),
                tuple(f"{each}/" for each in roots.values() if len(each) > len(root)),
            )
            for name, root in roots.items()
        }  # fmt: skip
    return found


def is_derived_from(bank: Bank, lane: str) -> bool:
    """Whether a lane has a file that is made from its others."""
    return _lanes_of(bank)[LANES[lane].place].derived is not None


def place_of(bank: Bank, path: str) -> Place | str:
    """The file that a name at a remote means here, or why there is none."""
    if path in SIDE:
        return Place(path, os.path.join(bank.root, path), "", LINES)
    if not _PLAIN.fullmatch(path) and (why := _odd(path)):
        return why
    lanes = _lanes_of(bank)
    lane = lanes.get(path.partition("/")[0]) or lanes[""]  # what no other lane has is notes'
    below = path[len(lane.place) :].lstrip("/")
    if lane.name == "notes" and (_is_taken(path) or names.folded(path.rpartition("/")[2]) in INSTRUCTIONS):
        return "has a name that is not for notes"
    file = f"{lane.root}/{below}" if below else lane.root
    elsewhere = bool(lane.others) and f"{file}/".startswith(lane.others)
    if lane.answers.is_folder != bool(below) or elsewhere or not lane.answers.owns(file):
        return _NOT_OURS
    driver = _driver(lane.answers.merges, below)
    later, shares = driver != lane.answers.merges[0][0], lane.answers.shares_files
    return Place(path, file, lane.name, driver, later, file == lane.derived, shares)


def _odd(path: str) -> str:
    """Why no file of ours would have this name; "" when one may."""
    if why := names.path_problem(path):
        return why
    try:
        plain = "/".join(names.safe_parts(path)) == path
    except InvalidInput as error:
        return str(error).removeprefix("The name ").rstrip(".")
    return "" if plain else "has a name that other systems spell differently"


def _is_taken(path: str) -> bool:
    """Whether a note's first folder or name is something else's, on some file system."""
    return names.folded(path.split("/", 1)[0]) in _TAKEN


def _driver(merges: Sequence[tuple[str, str]], below: str) -> str:
    """How a file of a lane merges; of several rules, the last that fits, as git has it."""
    for driver, pattern in reversed(merges[1:]):
        if not below or _fits(below, pattern):
            return driver
    return merges[0][0]


def _fits(below: str, pattern: str) -> bool:
    if pattern.startswith("**/") or ("/" not in pattern and "*" in pattern):
        return fnmatchcase(below.rpartition("/")[2], pattern.rpartition("/")[2])
    parts, wanted = below.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


# -- what is here


def here(bank: Bank, lanes: Collection[str], knows: Callable[[str], bool]) -> Iterator[tuple[Place, str]]:
    """Every file here that travels, what is derived from others last, and why one of them cannot ("" nearly always).

    `knows` says whether a remote has a file of this name already: then a record travels, shared from here or not.
    """
    last: list[tuple[Place, str]] = []
    for name in SIDE:
        if os.path.isfile(file := os.path.join(bank.root, name)):
            yield Place(name, file, "", LINES), ""
    travels = _travelling(bank, knows)
    for name in lanes:
        lane = bank.lane(name)
        made = lane.answers.derived()
        for file in (*lane.files(), *((made,) if made and os.path.isfile(made) else ())):
            if isinstance(file, str) and (found := travels(name, file)):
                if file == made:
                    last.append(found)
                else:
                    yield found
    yield from last


def among(
    bank: Bank, paths: Collection[str], lanes: Collection[str], knows: Callable[[str], bool]
) -> Iterator[tuple[Place, str]]:
    """Those of these paths, there or not, that are files which travel; as `here`."""
    travels = _travelling(bank, knows)
    roots = sorted(((os.fspath(bank.lane(name).root), name) for name in NAMES), reverse=True)
    for path in sorted(paths):
        if os.path.dirname(path) == os.fspath(bank.root) and os.path.basename(path) in SIDE:
            yield Place(os.path.basename(path), path, "", LINES), ""
            continue
        lane = next((name for root, name in roots if path == root or path.startswith(root + os.sep)), "")
        if lane in lanes and (found := travels(lane, path)):
            yield found


def _travelling(bank: Bank, knows: Callable[[str], bool]) -> Callable[[str, str], tuple[Place, str] | None]:
    """What `here` says of one file of a lane; None for one that stays."""
    shared = sharing.shared_records(bank)

    def travels(name: str, file: str) -> tuple[Place, str] | None:
        lane = bank.lane(name)
        below = file[len(os.fspath(lane.root)) + 1 :]
        path = f"{LANES[name].place}/{below}".strip("/")
        private = name == "notes" and below.startswith(f"{names.PRIVATE}/")
        unshared = name == "records" and not shared(file) and not knows(path)
        if private or unshared:
            return None
        found = place_of(bank, path)
        if isinstance(found, Place):
            return found, ""
        return (Place(path, file, name, ""), found) if lane.answers.owns(file) else None

    return travels


def has_plainer_twin(bank: Bank, place: Place) -> bool:
    """Whether a file here has this name in small letters, and is not this very file, as some systems see it."""
    plain = names.folded(place.path)
    twin = place_of(bank, plain) if plain != place.path else ""
    if isinstance(twin, str) or is_gone(twin.file):
        return False
    return is_gone(place.file) or not os.path.samefile(place.file, twin.file)


def is_much(gone: int, there: int) -> bool:
    """Whether so many files are gone that nobody may have meant it: most of them, or of a small bank all."""
    return (gone > MANY and gone * SHARE > there) or 1 < gone == there


def is_gone(file: str) -> bool:
    """Whether there is no such file, for sure: one that cannot be looked at may be there."""
    try:
        os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def scope_in(data: bytes) -> str:
    """The scope that the memory in a file of its own names; "" where it names none."""
    text = data.decode(errors="replace")
    front = find_front(text)
    with suppress(FrontMatterError):
        values = load_front(text[front.start : front.end]) if front else {}
        return str(values.get("scope") or "")
    return ""


def stamp_of(file: str) -> str:
    """What is another one when a file was changed; "" where that cannot be told yet, or there is no file."""
    looked = time.time_ns()
    with suppress(OSError):
        info = os.stat(file)
        if is_settled(info.st_ctime_ns, looked):
            return f"{info.st_ino}:{info.st_size}:{info.st_mtime_ns}:{info.st_ctime_ns}"
    return ""
