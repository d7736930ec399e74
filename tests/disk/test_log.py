"""A rewrite loses no line that was acknowledged, wherever a signal interrupts it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from memlane.disk import files, log

CALLS = (
    (os, ("open", "read", "pread", "write", "fsync", "link", "rename", "replace", "unlink", "stat", "fstat")),
    (fcntl, ("flock",)),
)


class Interrupter:
    """Raises KeyboardInterrupt before or after the n-th system call; another writer appends just before a rename."""

    def __init__(self, path: str, number: int, *, after: bool) -> None:
        self.path, self.number, self.after = path, number, after
        self.seen = 0
        self.late = False

    def wrapped(self, call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def interrupted(*args: Any, **kwargs: Any) -> Any:
            if name == "rename" and not self.late:
                self.late = True
                with open(self.path, "ab") as file:
                    file.write(b"late\n")
            self.seen += 1
            now = self.seen == self.number
            if now and not self.after:
                raise KeyboardInterrupt
            result = call(*args, **kwargs)
            if now and name != "open":  # a descriptor that nobody gets could not be closed
                raise KeyboardInterrupt
            return result

        return interrupted


def _rewritten(path: str) -> None:
    log.rewrite(path, lambda data: (data.replace(b"dropped\n", b""), b""), bool)


def _interrupted(path: Path, number: int, *, after: bool) -> Interrupter:
    interrupter = Interrupter(os.fspath(path), number, after=after)
    with pytest.MonkeyPatch.context() as patch:
        for module, names in CALLS:
            _wrap(patch, module, names, interrupter)
        with suppress(KeyboardInterrupt):
            _rewritten(os.fspath(path))
    return interrupter


def _wrap(patch: pytest.MonkeyPatch, module: ModuleType, names: tuple[str, ...], interrupter: Interrupter) -> None:
    for name in names:
        patch.setattr(module, name, interrupter.wrapped(getattr(module, name), name))


@pytest.mark.parametrize("after", [False, True])
def test_an_interrupted_rewrite_loses_no_line(tmp_path: Path, after: bool) -> None:
    number, interrupted, lost = 0, 0, []
    while interrupted == number:
        number += 1
        path = tmp_path / f"{number}.jsonl"
        path.write_bytes(b"one\ndropped\ntwo\n")
        interrupter = _interrupted(path, number, after=after)
        interrupted += interrupter.seen >= number
        expected = {b"one", b"two"} | ({b"late"} if interrupter.late else set())
        lost += [(number, "read", line) for line in expected - set(log.read_lines(os.fspath(path)))]
        files.append_lines(os.fspath(path), b"next\n")
        _rewritten(os.fspath(path))
        left = path.read_bytes().splitlines()
        lost += [(number, "rewritten", line) for line in {*expected, b"next"} - set(left)]
        assert not os.path.lexists(f"{path}{log.OLD}")
    assert number > 20
    assert lost == []
