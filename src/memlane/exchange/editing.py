"""Take a memory out for editing, and put the edited text back if it may be stored and nobody else changed it meanwhile.

A note, a record and a layer's file are edited whole, front matter included; of a vault record and of a topic's entry,
which share a file with others, the text. Nothing is written before the text has passed the lane's gate and the rules of
its format. Does not know what an editor is.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from memlane import gate
from memlane.core.errors import Conflict, InvalidInput, NotFound, StorageError
from memlane.core.front_matter import find_front
from memlane.core.model import Draft, Memory, Problem
from memlane.core.text import newline_of
from memlane.disk import files
from memlane.disk.forgotten import as_known
from memlane.history.origin import review
from memlane.lanes import open_lane, readable
from memlane.recall.address import Place, find, get

if TYPE_CHECKING:
    from memlane.bank import Bank

_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Opened:
    """A memory and its text, as it was when it was opened."""

    place: Place
    text: str

    @property
    def id(self) -> str:
        return self.place.id


def opened(bank: Bank, id: str) -> Opened:
    """The text that is to be edited. Raises NotFound; a damaged file opens, for it wants mending. Writes nothing."""
    place = find(bank, id)
    return Opened(place, _current(bank, place))


def save(bank: Bank, opened: Opened, text: str, *, by_person: bool = False) -> Memory:
    """Store the edited text. Raises Refused, InvalidInput and Conflict; then nothing is written.

    In what a person wrote (`by_person`), lines that are marked as allowed are, where the file is edited whole.
    """
    lane, path = opened.place.lane, opened.place.path
    answers = lane.answers
    if not text.strip():
        raise InvalidInput("The text is empty.", hint=f"`memlane rm {gate.shown(opened.id)}` deletes a memory.")
    if answers.shares_files:
        text = text.rstrip("\r\n")
        gate.admit(gate.common(bank.guard), Draft(text, over=opened.text), lane)
        _unchanged(bank, opened)
        return bank.update(opened.id, text)
    draft = gate.admit(lane.checks, Draft(text, over=opened.text, by_person=by_person), lane)
    text = answers.edited(draft.text)
    if answers.rules_bind:
        _unchanged(bank, opened)
        _refuse_worse(opened.place, text)
    try:
        with files.locked(path):
            _unchanged(bank, opened)
            files.replace(path, files.encoded(text))
    except NotFound:
        raise _changed(opened) from None
    bank.wrote(lane.name, path)
    bank.anchor(opened.id)
    memory = get(bank, opened.id)
    review(bank.lane, [memory])
    return replace(memory, remarks=(*draft.remarks, *bank.tombstones.lift(memory.text, memory.id, memory.title)))


def change(bank: Bank, id: str, old: str, new: str) -> Memory:
    """Put `new` in the place of a passage that is there once in the text, and leave the rest as it is.

    What stands before the text in the file is not looked at: tags and dates have many short words. Raises
    NotFound, InvalidInput for a passage that is not there or not once, and what `save` raises.
    """
    for _ in range(_ATTEMPTS):
        with suppress(Conflict):  # somebody changed it at the same moment, perhaps another passage
            return _change(bank, opened(bank, id), old, new)
    return _change(bank, opened(bank, id), old, new)


def _change(bank: Bank, page: Opened, old: str, new: str) -> Memory:
    head, body = _parts(bank, page)
    if old not in body:  # a model writes newlines; the file may have others
        old, new = (text.replace("\n", newline_of(page.text)) for text in (old, new))
    times = body.count(old) if old else 0
    if old and not times and old in head:
        hint = f"It stands before it, among the fields: `memlane update {gate.shown(page.id)}` changes those."
        raise InvalidInput("The passage is not in the text.", hint=hint)
    if times != 1:
        why = f"The passage is there {times} times." if times else "The passage is not there."
        how = "Give more of it" if times else "Give it exactly as it is written"
        if "[REDACTED:" in old:
            how = "[REDACTED:…] stands for a value that is not shown; give a passage beside it"
        raise InvalidInput(why, hint=f"{how}: `memlane get {gate.shown(page.id)}` shows the text.")
    with as_known(bank.tombstones.private):
        if bank.tombstones.any():
            with suppress(NotFound):  # what is damaged is no memory yet
                bank.tombstones.refuse_forgotten(get(bank, page.id), gate.shown(page.id))
        return save(bank, page, head + body.replace(old, new))


def _parts(bank: Bank, page: Opened) -> tuple[str, str]:
    """What a file has before the text of its memory, and from there on. Of a damaged one, all may want mending."""
    try:
        text = get(bank, page.id).text
    except (NotFound, InvalidInput, StorageError):
        return "", page.text
    at = page.text.rfind(text)
    if at < 0:  # its lines end otherwise
        front = find_front(page.text)
        at = front.body if front else 0
    return page.text[:at], page.text[at:]


def _current(bank: Bank, place: Place) -> str:
    return get(bank, place.id).text if place.lane.answers.shares_files else readable(place.path)


def _unchanged(bank: Bank, opened: Opened) -> None:
    """Raise Conflict unless the memory still is as it was opened."""
    try:
        same = _current(bank, opened.place) == opened.text
    except (NotFound, StorageError):
        same = False
    if not same:
        raise _changed(opened)


def _changed(opened: Opened) -> Conflict:
    return Conflict(
        f"{gate.shown(opened.id)} was changed by somebody else while it was edited. Nothing was written.",
        hint="Edit it again, beginning with what is there now.",
    )


def _refuse_worse(place: Place, text: str) -> None:
    """Raise InvalidInput when the text breaks a rule of its format that the file has not broken before."""
    before = {problem.why for problem in _problems(place, readable(place.path))}
    for problem in _problems(place, text):
        if problem.why not in before:
            line = f" (line {problem.line})" if problem.line else ""
            name = gate.shown(os.path.basename(place.path))
            raise InvalidInput(f"Not stored: {name}: {problem.why}{line}.", hint="docs/formats.md lists the rules.")


def _problems(place: Place, text: str) -> list[Problem]:
    """What the lane would find in this text at its place: it is tried out in a private folder of its own."""
    with tempfile.TemporaryDirectory(prefix="memlane-") as folder:
        files.create(os.path.join(folder, os.path.relpath(place.path, place.lane.root)), files.encoded(text))
        return list(open_lane(place.lane.name, Path(folder)).answers.format_problems())
