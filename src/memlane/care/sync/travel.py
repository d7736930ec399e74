"""Which files of a bank travel, what they are called at a remote, and which file a remote's name means here.

    deploy-day.md, vault.jsonl, topics/auth/oauth2.md …    by the lanes' usual places, wherever they lie here
    tombstones.jsonl, anchors.jsonl, replaced.jsonl        what is said of memories beside them

Nothing private travels: not the folder `private`, not captured records, unless somebody has shared them as for git, not
the configuration, the trash or the index. A name that comes from a remote counts only when it is exactly what a file
of a lane of this bank would be called, in plain characters.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from memlane.core.errors import InvalidInput
from memlane.core.front_matter import FrontMatterError, find_front, load_front
from memlane.disk import anchors, derived, files, names, replaced, tombstones
from memlane.disk.walking import is_settled
from memlane.exchange import sharing
from memlane.lanes import LANES, NAMES

if TYPE_CHECKING:
    from memlane.bank import Bank

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


class Place(NamedTuple):
    """A file that travels: its name at remotes, its path here, its lane ("" beside the lanes), and how it merges."""

    path: str
    file: str
    lane: str
    driver: str
    comes_later: bool = False  # it is no main file of its lane

    @property
    def is_log(self) -> bool:
        return self.path.endswith(".jsonl")

    @property
    def most(self) -> int:
        """The largest that it may be, in bytes."""
        return files.MAX_LOG_BYTES if self.is_log else files.MAX_BYTES


def place_of(bank: Bank, path: str) -> Place | str:
    """The file that a name at a remote means here, or why there is none."""
    if path in SIDE:
        return Place(path, os.path.join(bank.root, path), "", LINES)
    if why := _odd(path):
        return why
    lane = next((name for name in NAMES if LANES[name].place and _is_in(path, LANES[name].place)), "notes")
    usual = LANES[lane].place
    below = path[len(usual) :].lstrip("/")
    first = path.split("/")[0]
    if lane == "notes" and (_is_taken(first) or names.folded(path.rpartition("/")[2]) in INSTRUCTIONS):
        return "has a name that is not for notes"
    opened = bank.lane(lane)
    file = os.path.join(opened.root, below) if below else os.fspath(opened.root)
    if opened.answers.is_folder != bool(below) or not opened.answers.owns(file) or _is_elsewhere(bank, lane, file):
        return _NOT_OURS
    driver = _driver(bank, lane, below)
    return Place(path, file, lane, driver, driver != opened.answers.merges[0][0])


def _odd(path: str) -> str:
    """Why no file of ours would have this name; "" when one may."""
    if why := names.path_problem(path):
        return why
    try:
        plain = "/".join(names.safe_parts(path)) == path
    except InvalidInput as error:
        return str(error).removeprefix("The name ").rstrip(".")
    return "" if plain else "has a name that other systems spell differently"


def _is_in(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place}/")


def _is_taken(first: str) -> bool:
    """Whether a note's first folder or name is something else's, on some file system."""
    others = (*(LANES[name].place for name in NAMES), names.PRIVATE, derived.FOLDER, *SIDE)
    return names.folded(first) in filter(None, others)


def _is_elsewhere(bank: Bank, lane: str, file: str) -> bool:
    """Whether another lane lies where this file would be."""
    roots = (os.fspath(bank.lane(name).root) for name in NAMES if name != lane)
    own = os.fspath(bank.lane(lane).root)
    return any(len(root) > len(own) and (file == root or file.startswith(root + os.sep)) for root in roots)


def _driver(bank: Bank, lane: str, below: str) -> str:
    """How a file of a lane merges; of several rules, the last that fits, as git has it."""
    merges = bank.lane(lane).answers.merges
    for driver, pattern in reversed(merges):
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
        if private or unshared or not lane.answers.owns(file):
            return None
        found = place_of(bank, path)
        return (found, "") if isinstance(found, Place) else (Place(path, file, name, ""), found)

    return travels


def has_plainer_twin(bank: Bank, place: Place) -> bool:
    """Whether a file here has this name in small letters, and is not this very file, as some systems see it."""
    plain = names.folded(place.path)
    twin = place_of(bank, plain) if plain != place.path else ""
    if isinstance(twin, str) or is_gone(twin.file):
        return False
    return is_gone(place.file) or not os.path.samefile(place.file, twin.file)


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
