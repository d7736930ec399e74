"""The command line as a program: colours, tables, pipes, Ctrl-C and TAB."""

from __future__ import annotations

import json
import os
import pty
import signal
import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from commands import MEMLANE, Run
from memlane import Bank
from memlane.surfaces.cli.output import width


def on_terminal(*args: str, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    """What a command shows on a terminal."""
    ours, theirs = pty.openpty()
    keep = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    environment = {**keep, "TERM": "xterm", **(env or {})}
    process = subprocess.Popen([MEMLANE, *args], stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, env=environment)
    os.close(theirs)
    said = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # Linux says so when the other end is closed
            break
        if not piece:
            break
        said += piece
    process.wait()
    os.close(ours)
    return said.decode().replace("\r\n", "\n")


# -- colours and tables


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colour_on_a_terminal(bank: Bank, tmp_path: Path, environment: dict[str, str], coloured: bool) -> None:
    bank.add("text", title="a")
    for command in (["list"], ["get", "gone"]):
        assert ("\x1b[" in on_terminal(*command, cwd=tmp_path, env=environment)) == coloured


@pytest.mark.parametrize(("environment", "coloured"), [({}, False), ({"FORCE_COLOR": "1"}, True)])
def test_colour_in_a_pipe(bank: Bank, tmp_path: Path, environment: dict[str, str], coloured: bool) -> None:
    keep = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    result = subprocess.run([MEMLANE, "get", "x"], cwd=tmp_path, env={**keep, **environment}, capture_output=True)
    assert (b"\x1b[" in result.stderr) == coloured


@pytest.mark.parametrize(
    "command",
    [
        "list", "search zebra", "get evil", "context zebra --budget 1 --explain", "snapshot", "export",
        "export --format markdown", "doctor", "validate", "problems", "upkeep", "graph",
    ],
)  # fmt: skip
def test_what_others_wrote_cannot_steer_the_terminal(bank: Bank, tmp_path: Path, command: str) -> None:
    """A clone may bring files with any name and any title."""
    front = '---\ntitle: "evil\\e]0;title\\a"\ntags: ["a\\e[5m", pinned]\nscope: "b\\e[5m"\n---\n'
    (bank.root / "evil.md").write_text(f"{front}zebra \x1b[5m [[memory:none\x1b[5m]]\n")
    (bank.root / "a\x1b[5m\nforged.md").write_bytes(b"zebra \xff")
    shown = on_terminal(*command.split(), cwd=tmp_path, env={"NO_COLOR": "1"})
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert not any(line.startswith("forged") for line in shown.splitlines())


def test_wide_characters_stand_in_their_columns(bank: Bank, tmp_path: Path) -> None:
    for name in ("记忆", "plain", "e\u0301"):
        (bank.root / f"{name}.md").write_text(f"---\ncreated_at: 2025-01-01\n---\n# {name}\n")
    lines = on_terminal("list", cwd=tmp_path, env={"NO_COLOR": "1"}).splitlines()
    assert len(lines) == 3
    assert {width(line.partition("2025-01-01")[0]) for line in lines} == {len("notes:plain") + 2}


@pytest.mark.parametrize(
    ("text", "columns"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("ｆ", 2), ("a\u200db", 2), ("", 0)]
)
def test_width_counts_columns(text: str, columns: int) -> None:
    assert width(text) == columns


def test_long_work_shows_its_progress_on_a_terminal_only(bank: Bank, tmp_path: Path) -> None:
    for number in range(250):
        (bank.root / f"n{number}.md").write_text("text")
    for command, label in (("audit", "auditing"), ("validate", "validating")):
        assert label in on_terminal(command, cwd=tmp_path)
        assert label not in subprocess.run([MEMLANE, command], cwd=tmp_path, capture_output=True, text=True).stderr


# -- pipes and signals


@pytest.mark.parametrize("count", [1, 300])
def test_a_closed_pipe_ends_it_quietly(bank: Bank, tmp_path: Path, count: int) -> None:
    for number in range(count):
        (bank.root / f"n{number}.md").write_text(f"# {'x' * 60}\n")
    reading, writing = os.pipe()
    os.close(reading)
    result = subprocess.run([MEMLANE, "list"], stdout=writing, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (result.returncode, result.stderr) == (1, "")


def test_ctrl_c_while_text_is_awaited_stores_nothing(bank: Bank, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [MEMLANE, "add", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdin is not None
    process.stdin.write(b"x" * 1_000_000)  # more than a pipe holds: when this returns, it is being read
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert (process.returncode, b"Traceback" in said) == (130, False)
    assert list(bank.memories()) == []


def test_ctrl_c_while_indexing_leaves_a_sound_index(bank: Bank, tmp_path: Path) -> None:
    bank.search("nothing yet")  # makes the index
    for number in range(600):
        (bank.root / f"n{number}.md").write_text(f"# Note {number}\n\nAbout quokkas and wombats, number {number}.\n")
    with closing(sqlite3.connect(bank.root / "indices/index.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # so that it cannot be done before the signal comes
        process = subprocess.Popen(
            [MEMLANE, "search", "quokkas"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
        )
        assert process.stderr is not None
        assert "indexing" in process.stderr.readline()  # it has begun
        process.send_signal(signal.SIGINT)
        other.execute("ROLLBACK")
    _, said = process.communicate()
    assert (process.returncode, "Traceback" in said) == (130, False)
    after = subprocess.run([MEMLANE, "search", "quokkas", "-n", "2000", "--json"], cwd=tmp_path, capture_output=True)
    assert len(json.loads(after.stdout)) == 600
    assert "made anew" not in after.stderr.decode()


def test_ctrl_c_in_the_editor_is_the_editors(bank: Bank, tmp_path: Path) -> None:
    bank.add("text\n", title="a")
    script = tmp_path / "editor.sh"
    script.write_text('#!/bin/sh\ntrap "echo interrupted >> \\"$1\\"" INT\nkill -INT 0\nexit 0\n')
    script.chmod(0o755)
    result = subprocess.run(
        [MEMLANE, "edit", "a"],
        cwd=tmp_path,
        env={**os.environ, "EDITOR": str(script), "VISUAL": ""},
        capture_output=True,
        start_new_session=True,
    )
    assert result.returncode == 0
    assert bank.get("a").text == "text\ninterrupted\n"


# -- TAB


def completed(line: str, cwd: Path) -> list[str]:
    """What bash would offer: its own script is run, with the line as bash has it."""
    code = (
        f'eval "$({MEMLANE} completion bash)"; COMP_LINE={json.dumps(line)}; COMP_POINT=${{#COMP_LINE}}; '
        f'COMPREPLY=(); _memlane_completion {MEMLANE}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    result = subprocess.run(["bash", "-c", code], cwd=cwd, capture_output=True, text=True)
    assert result.stderr == ""
    return result.stdout.splitlines()


@pytest.mark.parametrize("indexed", [True, False])
def test_ids_are_completed(run: Run, bank: Bank, tmp_path: Path, indexed: bool) -> None:
    for title in ("Deploy day", "Deploy night", "Other"):
        run("add", "Some text.", "--title", title, "-t", "release")
    id = run("vault", "add", "We ship on Tuesdays.", "--tier", "register").out.strip()
    run("add", "Some text.", "--title", "Gone")
    run("rm", "gone")
    if indexed:
        run("reindex")
    assert completed("memlane get deploy", tmp_path) == ["notes:deploy-day", "notes:deploy-night"]
    assert completed("memlane get notes:deploy-n", tmp_path) == ["deploy-night"]  # bash keeps what is before the colon
    assert completed("memlane rm notes:other notes:deploy-d", tmp_path) == ["deploy-day"]
    assert completed("memlane vault history ", tmp_path) == [id]
    assert completed("memlane promote ", tmp_path) == [id]
    assert completed("memlane restore ", tmp_path) == ["notes:gone"]
    assert completed("memlane list --tag r", tmp_path) == (["release"] if indexed else [""])


def test_commands_and_options_are_completed(bank: Bank, tmp_path: Path) -> None:
    assert completed("memlane vault hi", tmp_path) == ["history"]
    assert completed("memlane help vault hi", tmp_path) == ["history"]
    assert completed("memlane completion ", tmp_path) == ["bash", "zsh", "fish"]
    assert completed("memlane add --tit", tmp_path) == ["--title"]


def test_completing_without_a_bank_offers_nothing(tmp_path: Path) -> None:
    assert completed("memlane get x", tmp_path) == [""]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_scripts_name_the_command(run: Run, shell: str) -> None:
    script = run("completion", shell).out
    assert "_MEMLANE_COMPLETE" in script
    assert run("completion", shell, "--json").json == {"shell": shell, "script": script}
