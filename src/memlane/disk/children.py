"""Processes of our own that help with long work: how they are started and ended, and how many are worth it."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess

# Isolated: neither the current folder, which may be anybody's project, nor the environment says what is imported.
_PROGRAM = """import json, sys
sys.path[:] = json.loads(sys.argv[1])
from importlib import import_module
getattr(import_module(sys.argv[2]), sys.argv[3])(*sys.argv[4:])
"""


NOWHERE = -3  # what subprocess calls DEVNULL: a search starts no process, and does without that module


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def command(module: str, function: str, *arguments: str) -> list[str]:
    """The command of a Python that calls a function of ours."""
    return [sys.executable, "-I", "-c", _PROGRAM, json.dumps(sys.path), module, function, *arguments]


def start(module: str, function: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start a Python that calls a function of ours, with pipes for its input and output. Raises OSError."""
    import subprocess

    return subprocess.Popen(  # noqa: S603 - our own program, with what we ourselves import from
        command(module, function, *arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and close its pipes."""
    process.kill()
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):
            pipe and pipe.close()
    process.wait()
