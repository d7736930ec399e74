"""The lanes: one on-disk format each, and the few verbs that the bank needs of all of them.

`LANES` is the registry: a new lane is one package here and one line there. Each lane class also has its seed's own
verbs and can be used alone. A lane does not search, does not index, and does not know the surfaces.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from memlane import gate
from memlane.core.choosing import Fits, fitting, list_order
from memlane.core.errors import InvalidInput, NotFound, StorageError
from memlane.core.front_matter import FrontMatterError, edit_front
from memlane.core.model import Draft, Memory, Problem, Removed
from memlane.core.values import NamedTuple
from memlane.disk import files
from memlane.disk.forgotten import as_known
from memlane.disk.tombstones import Tombstones
from memlane.gate import Check

if TYPE_CHECKING:
    from memlane.lanes.answers import Answers


class Registered(NamedTuple):
    """Where a lane's class is, and where its files lie below the bank's folder unless the configuration says else."""

    module: str
    cls: str
    place: str


LANES: dict[str, Registered] = {
    "notes": Registered("memlane.lanes.notes.store", "NoteLane", ""),
    "vault": Registered("memlane.lanes.vault.store", "MemoryVault", "vault.jsonl"),
    "topics": Registered("memlane.lanes.topics.store", "TopicLane", "topics"),
    "records": Registered("memlane.lanes.records.store", "RecordLane", "records"),
    "layers": Registered("memlane.lanes.layers.store", "MemoryStore", "layers"),
}
NAMES = LANES.keys()  # a view: it follows the registry


class Lane(Protocol):
    """What the bank asks of a lane. Native ids are the part of a memory's id after the colon."""

    name: str
    root: Path
    checks: tuple[Check, ...]

    def files(self) -> Iterator[str | Problem]:
        """Every file of the lane, and what should be one but cannot be read."""

    def parse(self, path: str) -> Iterator[Memory | Problem]:
        """The memories of one file, and the damage in it. A file that vanished has none."""

    def fetch(self, native: str) -> Memory:
        """One memory. Raises NotFound."""

    def put(self, draft: Draft) -> Memory:
        """Store a draft. Durable when it returns. Raises Refused, InvalidInput, AlreadyExists, StorageError."""

    def revise(self, native: str, changes: Mapping[str, Any]) -> Memory:
        """Change some fields ("text", "title", "tags", … as in Draft) and leave the others as they are."""

    def extend(self, native: str, text: str) -> Memory:
        """Add text to the end of a memory."""

    def drop(self, native: str) -> Removed:
        """Delete a memory in a way that `recover` can undo."""

    def recover(self, native: str) -> Memory:
        """Bring back what is archived under this id, else its latest deletion. Raises NotFound, AlreadyExists."""

    def removed(self) -> Iterator[Removed]:
        """What can be recovered, newest first."""

    @property
    def answers(self) -> Answers:
        """What forget, doctor, prune, undo, git and the others ask about the lane's own format."""

    @staticmethod
    def options(settings: Any, /) -> dict[str, Any]:
        """The arguments for opening the lane as part of a bank, from the bank's configuration."""


def scan(lane: Lane) -> Iterator[Memory | Problem]:
    """Every memory on disk; damage comes as Problems between them."""
    for path in lane.files():
        if isinstance(path, Problem):
            yield path
        else:
            yield from lane.parse(path)


# What the tags of a memory are worth. Tags that are worth nothing by themselves add nothing to others.
Worth = Callable[[Collection[str]], float]


def by_worth(memories: Iterable[Memory], worth: Worth) -> list[Memory]:
    """The memories whose tags are worth something, most first, then the newest."""
    found = [(-value, *list_order(memory), memory) for memory in memories if (value := worth(memory.tags))]
    return [memory for *_, memory in sorted(found, key=lambda row: row[:3])]


class Memories(Protocol):
    """Where a lane's own search gets the memories to rank: from its files, or from the index of its bank."""

    def __call__(
        self, fits: Fits, words: Collection[str] = (), limit: int | None = None, worth: Worth | None = None
    ) -> list[Memory]:
        """Those that fit; with a limit, so many of the newest. What has none of the `words` in it may be left out.

        With `worth`, those whose tags are worth something, of which those that are worth most come first.
        """


def from_files(lane: Lane) -> Memories:
    """The memories of a lane that is used alone."""

    def memories(
        fits: Fits, words: Collection[str] = (), limit: int | None = None, worth: Worth | None = None
    ) -> list[Memory]:
        found = [item for item in scan(lane) if isinstance(item, Memory) and fits(item)]
        return by_worth(found, worth)[:limit] if worth else sorted(found, key=list_order)[:limit]

    return memories


def may_show(tombstones: Tombstones, filters: Mapping[str, Any]) -> Fits:
    """Whether a memory passes the filters (see `fitting`) and is not held back. Raises InvalidInput."""
    fits = fitting(**filters)
    if not tombstones.any():  # asked once: most banks have none
        return fits
    return lambda memory: fits(memory) and not tombstones.held(memory)


@contextmanager
def unless_forgotten(tombstones: Tombstones, fetch: Callable[[], Memory]) -> Iterator[None]:
    """For adding to a memory, or changing what is not its text. Nobody says by that that the text is wanted again, be
    it forgotten already or, by somebody else, in this very moment.

    Raises InvalidInput where it is held back because something like it was forgotten, and whatever `fetch` raises.
    """
    with as_known(tombstones.private):
        if tombstones.any():
            memory = fetch()
            tombstones.refuse_forgotten(memory, gate.shown(memory.id))
        yield


def lane_class(name: str) -> Any:
    """The class of a lane. Imports only the one that is asked for. Raises InvalidInput."""
    if name not in LANES:
        raise InvalidInput(f"There is no lane {name!r}.", hint=f"Use one of: {', '.join(NAMES)}.")
    return getattr(import_module(LANES[name].module), LANES[name].cls)


def open_lane(name: str, root: Path, **options: Any) -> Lane:
    """The lane of this name at this place. Raises InvalidInput; writes nothing."""
    lane: Lane = lane_class(name)(root, **options)
    return lane


def read_file(path: str) -> str | Problem | None:
    """The text of a lane's file, the Problem that it is, or None when it vanished meanwhile."""
    try:
        return files.read_text(path)
    except FileNotFoundError:
        return None
    except (OSError, StorageError, UnicodeDecodeError) as error:
        return files.unreadable(path, error)


def readable(path: str) -> str:
    """The text of a file that is to be read or changed by name. Raises NotFound when it is gone, StorageError."""
    found = read_file(path)
    if isinstance(found, Problem):
        why = found.why.rstrip(".")
        colon = ":" if why[:1].isupper() else ""  # a sentence of the system's, or of a limit
        hint = "Check its permissions and size, then try again." if colon else "Mend the file, then try again."
        raise StorageError(f"{os.path.basename(path)}{colon} {why}.", hint=hint)
    if found is None:
        raise NotFound(f"{os.path.basename(path)} is gone.", hint="Somebody has just deleted or moved it.")
    return found


def edited(text: str, keys: Mapping[str, Any]) -> str:
    """The text with these front-matter keys set. Raises InvalidInput when its front matter cannot be edited."""
    try:
        return edit_front(text, keys)
    except FrontMatterError as error:
        raise InvalidInput(f"The front matter {error}.", hint="Mend it in an editor, then try again.") from None


_COMMON = ("title", "tags", "type", "scope", "thread", "created_at", "replaces", "extra")  # of `Bank.add`


def known(changes: Mapping[str, Any], allowed: frozenset[str], lane: str, otherwise: str = "") -> None:
    """Raise InvalidInput for a field that the lane does not have; its hint names the nearest that it has."""
    for name in changes:
        if name not in allowed:
            from difflib import get_close_matches

            near = "".join(f"Did you mean {word}? " for word in get_close_matches(str(name), (*allowed, *_COMMON), 1))
            raise InvalidInput(
                f"The {lane} lane has no field {gate.shown(str(name))!r}.",
                hint=f"{near}It has: {', '.join(sorted(allowed))}. {otherwise}".strip(),
            )
