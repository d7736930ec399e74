"""Before a tool is called: is there a memory that applies at this moment? Asked before every edit and every command.

    ~/.local/state/memlane/moments/9f….json     {"root": "/home/ann/api", "when": {"notes:lint": ["committing"]}}

The start of a session writes down when its memories apply, so that nothing but this file has to be read here, and
hardly anything imported. Only when one applies, the hook goes on to open the bank and to look at the memory itself.
"""

from __future__ import annotations

import json
import os
import re
import sys

from memlane.core.digests import sha256
from memlane.core.patterns import lazily
from memlane.core.triggers import fits
from memlane.surfaces.resident import state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

FOLDER = "moments"
MAX_BYTES = 1 << 20
_PATHS = ("file_path", "notebook_path", "path", "filePath", "absolute_path")  # what clients call an edited file
_COMMANDS = ("command", "cmd", "script", "patchText", "input")
_PATCHED = lazily(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_MOST = 50  # files of a patch
_LONGEST = 10_000  # characters of a command line


def name_of(session: str) -> str:
    return f"{sha256(session.encode(errors='replace')).hexdigest()[:32]}.json"


def nothing_applies(arguments: Sequence[str]) -> bool:
    """Whether a hook before a tool has nothing to say. Puts what was read from stdin back when it may have."""
    data = sys.stdin.buffer.read()
    if not _ids(data):
        if arguments[:1] == ["gemini"]:
            print("{}")
        return True
    import io

    sys.stdin = io.TextIOWrapper(io.BytesIO(data))
    return False


def _ids(data: bytes) -> list[str]:
    try:
        payload = json.loads(data)
        session = payload.get("session_id") or payload.get("conversation_id") or ""
        return applying(read(state_folder(), session), payload)
    except (OSError, ValueError, AttributeError, RecursionError, LookupError, TypeError):
        return []


def read(state: str, session: str) -> dict[str, Any]:
    """What a session's start has written down, in memlane's state folder. Raises OSError, ValueError."""
    with open(os.path.join(state, FOLDER, name_of(session)), "rb") as file:
        known = json.loads(file.read(MAX_BYTES))
    return known if isinstance(known, dict) else {}


def applying(known: Mapping[str, Any], payload: Mapping[str, Any]) -> list[str]:
    """The ids of the memories that apply to a tool call."""
    calls = calls_of(known["root"], payload)
    return [id for id, when in known["when"].items() if meets(when, calls)]


def meets(when: Sequence[str], calls: Sequence[tuple[str, str]]) -> bool:
    """Whether one of these moments is one of these calls."""
    return any(fits(moment, path, command) for moment in when for path, command in calls)


def calls_of(root: str, payload: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a tool is to do: change files, by their paths in the project, or run a command line."""
    given = payload.get("tool_input")
    given = given if isinstance(given, dict) else {}
    path, command = (
        next((value for name in names if isinstance(value := given.get(name), str)), "")
        for names in (_PATHS, _COMMANDS)
    )
    paths = _PATCHED.findall(command[:MAX_BYTES])[:_MOST] if "*** Begin Patch" in command else [path] if path else []
    inside = (os.path.relpath(os.path.join(root, path[:1000]), root) for path in paths)
    changed = [(path, "") for path in inside if not path.startswith(os.pardir)]
    return changed if paths else [("", command[:_LONGEST])]
