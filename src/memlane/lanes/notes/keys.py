"""Notes under keys, which are names of a program's choice: which file a key means, and which note has it.

A key is any string. Where it is a plain file name, it is the note's; else the file has another one, and the note says
its key in the field `key`. A private note has the same name in the folder `private`, so that a key means one note,
wherever it lies. Nothing but the very same key finds it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from memlane import gate
from memlane.core.errors import NotFound
from memlane.core.model import Memory
from memlane.disk.names import PRIVATE, of_key
from memlane.lanes import NAMES

if TYPE_CHECKING:
    from memlane.lanes.notes.store import NoteLane

FIELD = "key"
_FOLDERS = (*NAMES, PRIVATE, "indices")  # these are not for notes of a program's


def native_of(key: str) -> str:
    """The id in its lane of the note that has a key, if it is not private. Raises InvalidInput for an empty one."""
    return of_key(key, _FOLDERS)


def of_name(native: str) -> str:
    """The name of a note without the folder that makes it private."""
    return native.removeprefix(f"{PRIVATE}/")


def has(memory: Memory, key: str) -> bool:
    """Whether the note that a key means is under that key, and not under one that is the same as its file name.

    What it says of its key is not compared: the gate may have taken invisible characters out of that.
    """
    return (FIELD in memory.fields) is (native_of(key) != key)


def fetch(notes: NoteLane, key: str) -> Memory:
    """The note that a key means. It may have another key, where its name is one. Raises NotFound."""
    native, other = native_of(key), None
    for place in (f"{PRIVATE}/{native}", native):
        with suppress(NotFound):
            memory = notes.fetch(place)
            if has(memory, key):
                return memory
            other = memory
    return other or _missing(key)


def get(notes: NoteLane, key: str) -> Memory:
    """The note under exactly this key. Raises NotFound."""
    memory = fetch(notes, key)
    return memory if has(memory, key) else _missing(key)


def _missing(key: str) -> NoReturn:
    hint = "Upper and lower case differ. `memlane list` shows what there is."
    raise NotFound(f"There is no note under the key {gate.shown(key)}.", hint=hint)


def is_lost(memory: Memory, native: str) -> bool:
    """Whether a note is found by the key that it says no more, once it has another name."""
    key = memory.fields.get(FIELD)
    return isinstance(key, str) and key != "" and native_of(key) == of_name(memory.native_id) != of_name(native)
