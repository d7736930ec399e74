"""`memlane vault` on the command line."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import trusted
from memlane.surfaces.cli import main
from samples import words
from vault_samples import MISSION

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """`memlane vault …` in a bank whose scopes are team and ada, as (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "memlane.toml").write_text('[memory]\nenabled = true\n[vault]\nscopes = ["team", "ada"]\n')
    trusted(tmp_path / "memlane.toml")

    def call(*args: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        monkeypatch.setattr(sys, "argv", ["memlane", "vault", *args])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        return int(str(stop.value.code or 0)), *capsys.readouterr()

    return call


def test_the_command_stores_in_the_first_scope_and_reports_remarks(run: Run) -> None:
    code, out, err = run("add", MISSION.replace(" ", "\u200b ", 1))
    assert (code, "note: 1 invisible or control characters were removed" in err) == (0, True)
    assert run("list")[1] == f"{out.strip()}\tteam\tcanon\t{MISSION}\n"
    assert "note: 1 invisible" in run("update", out.strip(), "The\u200b mission")[2]
    assert run("update", out.strip(), "-", stdin="The new mission\n")[0] == 0
    assert run("list")[1].endswith("The new mission\n")


def test_an_upsert_by_command_keeps_the_rest(run: Run) -> None:
    register = ("--tier", "register", "--topic", "now", "--json")
    run("add", words(1), "--tag", "a", "--source", "chat", "--category", "goal", *register)
    record = json.loads(run("add", words(2), *register)[1])
    assert (record["version"], record["tags"], record["source"], record["category"]) == (2, ["a"], "chat", "goal")


def test_a_command_that_asks_for_nothing_is_an_error(run: Run) -> None:
    id = run("add", MISSION)[1].strip()
    assert run("update", id)[0] == 2
    assert run("update", id, "--tag", "x")[0] == 0
    assert run("history", "nosuch")[0] == 3
    for command in (["list"], ["search", "mission"], ["snapshot"], ["candidates"], ["proposals"]):
        code, _, err = run(*command, "--scope", "shared")
        assert (code, "team, ada" in err) == (2, True)
        assert run(*command, "--scope", "Ada")[0] == 0


def test_commands_print_whole_ids(run: Run) -> None:
    old = run("add", words(1), "--tier", "register")[1].strip()
    new = run("add", f"{words(1, 4)} {words(2, 4)}", "--tier", "register")[1].strip()
    assert run("candidates")[1].split("\t")[1:3] == [new, old]
    assert run("proposals")[1].split("\t")[:2] == [old, "near_duplicate"]
