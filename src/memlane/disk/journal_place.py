"""Which journal a bank has: where it is and was on this machine, and which git repository it belongs to.

~/.local/state/memlane/journal/banks.jsonl    {"bank":"/home/…/.memories","name":"3f9a…","folder":"2049:131","…":"…"}
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress

from memlane.core.values import NamedTuple

_BANKS = "banks.jsonl"
_MAX_BYTES = 16 * 1024 * 1024


class Bank(NamedTuple):
    """A line of the registry: where a bank is or was, its journal, and what it is known by."""

    bank: str
    name: str
    folder: str = ""  # its number on the disk
    common: str = ""  # the folder that all work trees of its git repository share
    commit: str = ""  # the repository's first commit
    below: str = ""  # where it is in its work tree


def path_of(folder: str, home: str) -> str:
    """The journal of the bank at `home`, there or not: its own, or that of the bank it was moved or cloned from."""
    own = os.path.join(folder, f"{name_of(home)}.db")
    known = {} if os.path.lexists(own) else registry(folder)
    return os.path.join(folder, f"{known[home].name}.db") if home in known else own


def name_of(home: str) -> str:
    from memlane.core.digests import sha256

    return sha256(os.fsencode(home)).hexdigest()[:32]


def unasked(folder: str) -> str:
    return ""


def commit_now(other: Bank, commit_of: Callable[[str], str]) -> str:
    """The first commit of a repository that had none when its bank was met."""
    top, _ = repository(other.bank)
    return commit_of(top) if top else ""


def repository(home: str) -> tuple[str, str]:
    """The top of the work tree around a folder and the git folder that all its work trees share; "" where none is."""
    place = home
    while True:
        if git := git_folder(place):
            with suppress(OSError, ValueError), open(os.path.join(git, "commondir"), encoding="utf-8") as file:
                git = os.path.join(git, file.read(4096).strip())
            return place, os.path.realpath(git)
        parent = os.path.dirname(place)
        if parent == place:
            return "", ""
        place = parent


def git_folder(place: str) -> str:
    """The git folder of a work tree whose top this is; "" when it is none."""
    git = os.path.join(place, ".git")
    if os.path.isdir(git):
        return git
    with suppress(OSError, ValueError):
        with open(git, encoding="utf-8") as file:
            word, _, named = file.read(4096).partition(":")
        return os.path.join(place, named.strip()) if word == "gitdir" else ""
    return ""


def branch_of(home: str) -> str:
    """The branch that is checked out around a folder; the commit where none is; "" outside of git."""
    top, _ = repository(home)
    return branch_in(os.path.join(git_folder(top), "HEAD")) if top else ""


def branch_in(head: str) -> str:
    with suppress(OSError, ValueError), open(head, encoding="utf-8") as file:
        return file.read(1024).strip().removeprefix("ref: refs/heads/")
    return ""


def number_of(path: str) -> str:
    with suppress(OSError):
        info = os.stat(path)
        return f"{info.st_dev}:{info.st_ino}"
    return ""


def registry(folder: str) -> dict[str, Bank]:
    """The banks by their paths; the last line about a path counts."""
    found: dict[str, Bank] = {}
    with suppress(OSError):
        with open(os.path.join(folder, _BANKS), "rb") as file:
            lines = file.read(_MAX_BYTES).splitlines()
        for line in lines:
            with suppress(ValueError, TypeError, KeyError):
                values = json.loads(line)
                bank = Bank(**{key: str(values[key]) for key in Bank._fields})
                if len(bank.name) == 32 and bank.name.isalnum():
                    found[bank.bank] = bank
    return found


def append(folder: str, bank: Bank) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(os.path.join(folder, _BANKS), flags, 0o600)
    try:
        os.write(fd, json.dumps(bank._asdict()).encode() + b"\n")
    finally:
        os.close(fd)
