"""Going through what was distilled from sessions, one by one: a part of `memlane review`."""

from __future__ import annotations

import os
import sys
import termios
import tty
from collections import Counter
from collections.abc import Sequence

from memlane.bank import Bank
from memlane.care import deciding
from memlane.core.errors import InvalidInput, MemlaneError
from memlane.core.model import UNCONFIRMED, Memory
from memlane.disk import journal
from memlane.history import origin
from memlane.surfaces.cli.edit import in_editor
from memlane.surfaces.cli.output import complain, print_json, print_result, print_rows, print_text, say

_KEYS = {
    "k": "keep", "e": "edit", "r": "make it a rule", "t": "take its place", "m": "merge", "x": "reject",
    "s": "skip", "q": "quit",
}  # fmt: skip
_DONE = {
    "k": "kept", "e": "edited", "r": "made a rule", "t": "replaced", "m": "merged", "x": "rejected", "s": "skipped",
}  # fmt: skip


def decide(bank: Bank, ids: Sequence[str], key: str, as_json: bool) -> None:
    """Do with each of these memories what a key would do."""
    rules = {memory.id for memory in origin.unproven(bank)}
    for id in ids:
        memory = bank.get(id)
        if not memory.unconfirmed and memory.id not in rules:
            raise InvalidInput(
                f"{memory.id} is confirmed.", hint="`memlane review --only unconfirmed --json` lists what is not."
            )
        if not _does(bank, memory, key, asked=False):
            raise InvalidInput(f"Nothing is much like {memory.id}.", hint="Keep it, or reject it.")
        if not as_json:
            say(f"{_DONE[key]}: {memory.id}")
    if as_json:
        print_json({_DONE[key].replace(" ", "_"): list(ids)})


def go_through(bank: Bank, ids: Sequence[str], as_json: bool) -> None:
    """Show each unconfirmed memory, or those of these ids, and do what a key says. Without a terminal, list them."""
    waiting = [bank.get(id) for id in ids] or deciding.unconfirmed(bank)
    if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        rows = ((memory.id, _kind(memory), memory.text.strip()) for memory in waiting)
        said = f"to be confirmed: {len(waiting)}; in a terminal, a key decides on each, and so does --key"
        print_result(waiting, as_json, rows, said)
        return
    done: Counter[str] = Counter()
    for number, memory in enumerate(waiting, 1):
        print_rows([(f"{number}/{len(waiting)}", _kind(memory), memory.id, deciding.evidence(memory))])
        if outdated := bank.outdated(memory):
            say(f"⚠ {outdated}")
        print_text(memory.text)
        key = _decide(bank, memory)
        if key == "q":
            break
        done[_DONE[key]] += 1
    say(", ".join(f"{count} {what}" for what, count in done.items()) or "nothing was decided")


def _decide(bank: Bank, memory: Memory) -> str:
    """Ask for a key until one can be done, and do it. Returns the key."""
    old = deciding.older(bank, memory)
    if old is not None:
        say(f"[t] it takes the place of {old.id}, which says:")
        print_text(old.text)
    keys = {key: what for key, what in _KEYS.items() if key != "t" or old is not None}
    say("  ".join(f"[{key}] {what}" for key, what in keys.items()))
    while True:
        if (key := _key()) not in keys:
            say(f"that key does nothing here: one of {', '.join(keys)}")
            continue
        try:
            with journal.change("review", memory.id, joins=False):  # each decision can be undone by itself
                if _does(bank, memory, key):
                    return key
        except MemlaneError as error:
            complain(error)


def _does(bank: Bank, memory: Memory, key: str, asked: bool = True) -> bool:
    """Do what a key says; False when there is nothing that it could do. A merge is `asked` about."""
    if key == "m":
        other = deciding.alike(bank, memory)
        if other is None:
            if asked:
                say("nothing is much like it: another key")
            return False
        if asked:
            say(f"[y] add it to the end of {other.id}: {other.title}   [any other key] no")
            if _key() != "y":
                say("not merged: another key")
                return False
        deciding.merge(bank, memory.id, other.id)
    elif key == "x":
        deciding.reject(bank, memory.id)
    elif key == "t":
        deciding.take_place(bank, memory.id)
    elif key == "e":
        in_editor(bank, memory.id, as_json=False)
        deciding.confirm(bank, memory.id)
    elif key in "kr":
        deciding.confirm(bank, memory.id, rule=key == "r")
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
