"""Lines that match a regular expression, without letting a slow pattern run for ever. Reads no files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from memlane.core.errors import InvalidInput, StorageError
from memlane.core.patterns import lazily
from memlane.gate import Guard
from memlane.gate.outgoing import cleaned

CONTEXT = 2  # lines shown around a line that was found
MAX_PATTERN = 1000
MAX_SECONDS = 5.0
_REPEATS = lazily(r"[*+?{(]")
_WORKER = (
    "import json, re, sys; pattern, texts = json.load(sys.stdin); found = re.compile(pattern).search; "
    "json.dump([[place for place, line in enumerate(lines) if found(line)] for lines in texts], sys.stdout)"
)


def matches(pattern: str, texts: Mapping[tuple[str, str], Sequence[str]], guard: Guard) -> list[dict[str, Any]]:
    """The lines that match in texts by (id, path), each with the lines around it. Raises InvalidInput as `matching`.

    A line of a private key is blanked, too: by itself it would not look like a secret.
    """
    found: list[dict[str, Any]] = []
    places = matching(pattern, list(texts.values()))
    for ((id, path), lines), matched in zip(texts.items(), places, strict=True):
        rows = [
            {
                "id": id,
                "path": path,
                "lineNumber": place + 1,
                "lineContent": lines[place],
                "context": "\n".join(lines[max(place - CONTEXT, 0) : place + CONTEXT + 1]),
            }
            for place in matched
        ]
        found += cleaned(rows, guard, ["\n".join(lines)]) if rows else rows
    return found


def matching(pattern: str, texts: Sequence[Sequence[str]]) -> list[list[int]]:
    """The places of the lines that match, for each text.

    Raises InvalidInput for what is not a regular expression, or is too long, or takes more than MAX_SECONDS.

    A pattern with repeats or groups runs in a process of its own, because nothing else can stop it once it has begun:
    looking at a pattern does not reveal every slow one, and signals interrupt `re` in the main thread only.
    """
    if not isinstance(pattern, str) or len(pattern) > MAX_PATTERN:
        raise InvalidInput(f"The pattern must be text of at most {MAX_PATTERN} characters.")
    try:
        matches = re.compile(pattern).search
    except (re.error, OverflowError, RecursionError):
        raise InvalidInput(
            "The pattern is not a regular expression.", hint="Put a backslash before ( [ { * + ? . and the like."
        ) from None
    if not _REPEATS.search(pattern):
        return [[place for place, line in enumerate(lines) if matches(line)] for lines in texts]
    try:
        done = subprocess.run(  # noqa: S603 - the pattern and the texts are data on its stdin
            [sys.executable, "-I", "-S", "-c", _WORKER],
            input=json.dumps([pattern, texts]).encode(),
            capture_output=True,
            timeout=MAX_SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise InvalidInput(
            f"The pattern needs more than {MAX_SECONDS:g} seconds.",
            hint="Avoid repeats inside repeats, such as (a+)+, or name a layer or project.",
        ) from None
    except (OSError, subprocess.CalledProcessError) as error:
        raise StorageError("The search could not be run.", hint="Try a simpler pattern.") from error
    places: list[list[int]] = json.loads(done.stdout)
    return places
