"""Going through what was distilled from sessions, one by one: a part of `memlane review`."""

from __future__ import annotations

import os
import sys
import termios
import tty
from collections import Counter
from collections.abc import Sequence

from memlane.bank import Bank
from memlane.care import distilled
from memlane.core.errors import MemlaneError
from memlane.core.model import UNCONFIRMED, Memory
from memlane.surfaces.cli.edit import in_editor
from memlane.surfaces.cli.output import complain, print_result, print_rows, print_text, say

_KEYS = {"k": "keep", "e": "edit", "r": "make it a rule", "m": "merge", "x": "reject", "s": "skip", "q": "quit"}
_DONE = {"k": "kept", "e": "edited", "r": "made a rule", "m": "merged", "x": "rejected", "s": "skipped"}


def go_through(bank: Bank, ids: Sequence[str], as_json: bool) -> None:
    """Show each unconfirmed memory, or those of these ids, and do what a key says. Without a terminal, list them."""
    waiting = [bank.get(id) for id in ids] or distilled.unconfirmed(bank)
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        rows = ((memory.id, _kind(memory), memory.text.strip()) for memory in waiting)
        print_result(waiting, as_json, rows, f"to be confirmed: {len(waiting)}; in a terminal, a key decides on each")
        return
    done: Counter[str] = Counter()
    for number, memory in enumerate(waiting, 1):
        print_rows([(f"{number}/{len(waiting)}", _kind(memory), memory.id, _evidence(memory))])
        print_text(memory.text)
        key = _decide(bank, memory)
        if key == "q":
            break
        done[_DONE[key]] += 1
    say(", ".join(f"{count} {what}" for what, count in done.items()) or "nothing was decided")


def _decide(bank: Bank, memory: Memory) -> str:
    """Ask for a key until one can be done, and do it. Returns the key."""
    say("  ".join(f"[{key}] {what}" for key, what in _KEYS.items()))
    while True:
        key = _key()
        try:
            if key in _KEYS and _does(bank, memory, key):
                return key
        except MemlaneError as error:
            complain(error)


def _does(bank: Bank, memory: Memory, key: str) -> bool:
    """Do what a key says; False when there is nothing that it could do."""
    if key == "m":
        other = distilled.alike(bank, memory)
        if other is None:
            say("nothing is much like it: another key")
            return False
        say(f"[y] add it to the end of {other.id}: {other.title}   [any other key] no")
        if _key() != "y":
            return False
        distilled.merge(bank, memory.id, other.id)
    elif key == "x":
        bank.delete(memory.id)
    elif key == "e":
        in_editor(bank, memory.id, as_json=False)
        distilled.confirm(bank, memory.id)
    elif key in "kr":
        distilled.confirm(bank, memory.id, rule=key == "r")
    return True


def _key() -> str:
    """The next key that is typed, without waiting for a line; the end of the input is `q`."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal, termios.TCSADRAIN)
    try:
        return os.read(terminal, 1).decode(errors="replace").lower().replace("\x04", "") or "q"
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _kind(memory: Memory) -> str:
    return next((tag for tag in memory.tags if not memory.unconfirmed or tag != UNCONFIRMED), "")


def _evidence(memory: Memory) -> str:
    fields = memory.fields
    said = [f"confidence {fields['confidence']}"] if "confidence" in fields else []
    said += [f"session {fields['session']}"] if fields.get("session") else []
    return ", ".join(said)
