"""What the user said of memories that an agent was given unasked: useful, wrong, or never again.

    judged/<hash of the bank's real path>.jsonl    in the user's state folder, a line for each answer, the last counts

    {"at":"2025-01-10T15:02:11Z","id":"notes:deploy-day","verdict":"wrong","session":"3f9a…",
     "told":"2025-01-10T14:30:22Z","said":"5e6f708192a3b4c5"}

An answer is about one time that a memory was given, or without a session about the memory itself; a line without a
verdict takes it back. What is judged "never" is given to no prompt unasked any more, and what is judged "wrong" not
until it says something else; both are still found by a search. "useful" is counted, and takes back a "wrong"; to rank
such memories higher was tried, and gave prompts that they are not about more of them.

It is one person's opinion, so that it is not in the bank: no file changes that git or a colleague reads. Of the user's
own bank, it holds in every project.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memlane import config
from memlane.core.dates import iso, moment
from memlane.core.errors import MemlaneError
from memlane.core.model import USERS
from memlane.core.values import dataclass, replace
from memlane.disk import files, state

if TYPE_CHECKING:
    from memlane.bank import Bank
    from memlane.core.model import Memory

FOLDER = "judged"
USEFUL, WRONG, NEVER = VERDICTS = ("useful", "wrong", "never")
MAX_BYTES = 256 * 1024  # of one bank's; then what was taken back goes
KEPT = 1000  # answers that are kept then, besides those that hold a memory back


@dataclass(frozen=True, slots=True)
class Judged:
    """An answer: what was said `at` this time of the memory with this id, which a `session` had been `told` then.

    `verdict` is None for one that was taken back. `said` tells what the memory said: see `said_by`.
    """

    id: str
    verdict: str | None
    at: datetime
    session: str = ""
    told: datetime | None = None
    said: str = ""

    @property
    def about(self) -> tuple[str, str, datetime | None]:
        """What it is an answer to: of two such, the later counts."""
        return self.id, self.session, self.told

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "verdict": self.verdict,
            "at": iso(self.at),
            "session": self.session,
            "told": iso(self.told),
        }


def said_by(memory: Memory) -> str:
    """A name for what a memory says: its title and text."""
    from memlane.core.digests import sha256

    return sha256(f"{memory.title}\0{memory.text}".encode(errors="replace")).hexdigest()[:16]


# -- reading


def answers(bank: Bank) -> list[Judged]:
    """Every answer that counts, in the order of giving, about the bank's memories and the user's that it reads."""
    found = _read(bank)
    below = bank.under if _any() else None
    return found + ([replace(one, id=USERS + one.id) for one in _read(below)] if below else [])


def standing(given: Iterable[Judged]) -> dict[str, Judged]:
    """What holds of each memory by its id: "never" where that was said once, else the last answer."""
    found: dict[str, Judged] = {}
    for one in given:
        if one.id not in found or found[one.id].verdict != NEVER:
            found[one.id] = one
    return found


def holds_back(one: Judged | None, memory: Memory) -> bool:
    """Whether a memory must not be given unasked, by what holds of it."""
    if one is None or one.verdict == USEFUL:
        return False
    return one.verdict == NEVER or one.said == said_by(memory)


def held_back(bank: Bank) -> Callable[[Memory], bool]:
    """Whether a memory of this bank must not be given unasked."""
    found = standing(_read(bank))
    return lambda memory: memory.id in found and holds_back(found[memory.id], memory)


def _read(bank: Bank) -> list[Judged]:
    try:
        data = files.read_bytes(_path(bank)) if _any() else b""
    except (OSError, MemlaneError):
        return []
    given: dict[object, Judged] = {}
    for one in filter(None, map(_parsed, data.splitlines())):
        given.pop(one.about, None)
        given[one.about] = one
    return [one for one in given.values() if one.verdict]


def _any() -> bool:
    """Whether anything was ever judged here: nearly everybody pays a stat for this."""
    with suppress(MemlaneError):
        return os.path.isdir(config.user_state() / FOLDER)
    return False


def _path(bank: Bank) -> str:
    return os.path.join(config.user_state(), _name(bank))


def _name(bank: Bank) -> str:
    from memlane.core.digests import sha256

    return os.path.join(FOLDER, f"{sha256(os.fsencode(os.path.realpath(bank.root))).hexdigest()[:32]}.jsonl")


def _parsed(line: bytes) -> Judged | None:
    try:
        value = json.loads(line)
        id, verdict, at = value["id"], value.get("verdict"), moment(value["at"])
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    if not isinstance(id, str) or verdict not in (None, *VERDICTS) or at is None:
        return None
    return Judged(id, verdict, at, str(value.get("session") or ""), moment(value.get("told")), str(value.get("said")))


# -- writing


def note(bank: Bank, one: Judged) -> None:
    """Write an answer about a memory of this bank down. Raises OSError, StorageError, ConfigError without a home."""
    if state.append(config.user_state(), _name(bank), _line(one)) > MAX_BYTES:
        given = _read(bank)
        kept = {one.about for one in given if one.verdict == USEFUL}
        late = {one.about for one in given[-KEPT:]}
        _write(bank, (one for one in given if one.about not in kept or one.about in late))


def readdress(bank: Bank, old: str, new: str) -> None:
    """Let the answers about one id be about another, which the same memory has now."""
    _write(bank, (replace(one, id=new) if one.id == old else one for one in _read(bank)), if_any=old)


def forget(bank: Bank, id: str) -> None:
    """Remove the answers about a memory. Raises OSError, StorageError."""
    _write(bank, (one for one in _read(bank) if one.id != id), if_any=id)


def _write(bank: Bank, given: Iterable[Judged], if_any: str = "") -> None:
    """Let these be the answers that there are; with `if_any`, only where the file says something of that id."""
    path = _path(bank)
    lines = files.read_bytes(path).splitlines() if _any() and os.path.isfile(path) else []
    if lines and (not if_any or any((one := _parsed(line)) and one.id == if_any for line in lines)):
        state.replace(path, b"".join(_line(one) + b"\n" for one in given))


def _line(one: Judged) -> bytes:
    value = {**one.to_dict(), "said": one.said}
    return json.dumps({name: each for name, each in value.items() if each}, ensure_ascii=False).encode(errors="replace")
