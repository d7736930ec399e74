"""What a captured message applies to: a file, an area of the code, or everything. Pure text → data."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Sequence
from pathlib import Path

from memlane.core.patterns import lazily

_FILE = lazily(r"\b(?:in|file|at)\s+[`\"']?((?:[\w@.-]+/)*[\w@-][\w@.-]+\.([A-Za-z]{1,4}))\b(?!/)")
_DOMAINS = frozenset({"com", "org", "net", "io", "dev", "ai", "app"})
_AREA = lazily(r"\b(?:in|for|of) the ([^\W\d_][\w-]*) (?:component|module|service|subsystem|layer)\b", re.IGNORECASE)
_VAGUE = frozenset(
    "following same above below new old first second last next other main whole entire each this".split()
)
_DRIVE = lazily(r"[A-Za-z]:[\\/]")


def scope_of(text: str, changed: Sequence[str] = ()) -> str:
    """`file:PATH` when the turn changed one file, or changed none and the text names one; `area:NAME` when it names
    one component, module, service, subsystem or layer; else `global`."""
    if len(changed) == 1:
        return f"file:{changed[0]}"
    named = {name for name, _ in _FILE.findall(text) if not is_brand(name)}
    if not changed and len(named) == 1:
        return f"file:{named.pop()}"
    areas = {area.lower() for area in _AREA.findall(text)} - _VAGUE
    return f"area:{areas.pop()}" if len(areas) == 1 else "global"


def is_brand(name: str) -> bool:
    """Whether a name only looks like a file: `example.com`, `Node.js`."""
    suffix = name.rsplit(".", 1)[-1]
    return "/" not in name and (suffix.lower() in _DOMAINS or (suffix == "js" and name[0].isupper()))


def relative(name: str, project: Path | None, cwd: str) -> str:
    """A file's path from the project's folder, else from the session's; "" for a file outside both."""
    if _DRIVE.match(name) or _DRIVE.match(cwd):
        name, cwd = name.replace("\\", "/"), cwd.replace("\\", "/")
    full = posixpath.normpath(name if _is_absolute(name) else posixpath.join(cwd, name))
    homes = [os.fspath(project), os.path.realpath(project)] if project else []
    for home in filter(None, (*homes, cwd)):
        prefix = home.rstrip("/") + "/"
        if full.startswith(prefix):
            return full.removeprefix(prefix)
    return "" if _is_absolute(full) or full.split("/")[0] in ("..", ".", "~") else full


def _is_absolute(name: str) -> bool:
    return name.startswith("/") or bool(_DRIVE.match(name))
