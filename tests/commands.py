"""Run commands in this process, as `memlane` would run them: for the tests of the command line."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest

from memlane import Bank
from memlane.surfaces import hook
from memlane.surfaces.cli import main

MEMLANE = str(Path(sys.executable).parent / "memlane")
CANARY = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Result]


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command that does something, as the words that one types."""
    if not isinstance(command, click.Group):
        yield path
        return
    for name in command.list_commands(click.Context(command)):
        inner = command.get_command(click.Context(command), name)
        assert inner is not None
        yield from leaves(inner, (*path, name))


Ask = Callable[..., str]


@pytest.fixture
def ask(bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Call a hook of Claude Code in this process; gives what it answers."""

    def call(event: str, session: str = "s1-the-whole-id", /, **payload: Any) -> str:
        given = json.dumps({"session_id": session, "cwd": str(tmp_path), **payload}).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        out = io.StringIO()
        hook.main(["claude-code", event], out)
        return out.getvalue()

    return call


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)

    def call(*args: object, stdin: str | bytes = "") -> Result:
        data = stdin if isinstance(stdin, bytes) else stdin.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        monkeypatch.setattr(sys, "argv", ["memlane", *map(str, args)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return Result(int(str(stop.value.code or 0)), captured.out, captured.err)

    return call


@pytest.fixture
def bank(run: Run, tmp_path: Path) -> Bank:
    assert run("init").code == 0
    return Bank.open(tmp_path)
