"""The command line as a whole: stdout is data, stderr is talk, exit codes tell what happened."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from commands import CANARY, MEMLANE, Run
from conftest import tree
from memlane import Bank

# -- the bank and its settings


@pytest.mark.parametrize(
    "command", [["list"], ["add", "x"], ["get", "x"], ["stats"], ["vault", "list"], ["gate", "show"]]
)
def test_without_a_bank_every_command_says_so(run: Run, command: list[str], tmp_path: Path) -> None:
    """S003-02"""
    result = run(*command)
    assert result.code == 1
    assert "Memory system is not enabled" in result.err
    assert tree(tmp_path) == {}


def test_flags_override_settings(run: Run, bank: Bank) -> None:
    result = run("--set", "memory.recency_boost_days=30", "check-config", "--json").json
    assert result["settings"]["memory.recency_boost_days"]["source"] == "flag"
    assert run("--set", "memory.storage_strategy=cloud", "list").code == 1
    assert run("--set", "nonsense", "list").code == 2


def test_another_folder_can_be_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    run("init", tmp_path / "other")
    assert run("--bank", tmp_path / "other", "add", "text", "--title", "a").out == "notes:a\n"


# -- exit codes and errors


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["get", "notes:gone"], 3),
        (["get", "notes:../../etc/passwd"], 2),
        (["add", "x", "--type", "poem"], 2),
        (["add", "x", "--lane", "nowhere"], 2),
        (["add", "   "], 2),
        (["add", "x", "--created-at", "yesterday"], 2),
        (["list", "--since", "yesterday"], 2),
        (["add", "x", "--field", "nonsense"], 2),
        (["list", "-n", "99999999999999999999"], 2),
        (["list", "--offset", "99999999999999999999"], 2),
        (["vault", "list", "-n", "99999999999999999999"], 2),
        (["history", "-n", "99999999999999999999"], 2),
        (["undo", "--list", "-n", "99999999999999999999"], 2),
        (["records", "retain", "--days", "99999999999"], 2),
        (["search", "x", "--wait", "-3"], 2),
        (["search", "x", "--wait", "nan"], 2),
        (["search", "x", "--wait", "0"], 0),
        (["vault", "candidates", "--floor", "nan"], 2),
        (["nonsense"], 2),
        (["add", f"x {CANARY}"], 4),
        (["vault", "add", "tick marker for burst 5"], 4),
        (["--set", "topics.security=strict", "topics", "store", "a/b", "the password"], 4),
        (["merge", "a", "--into", "a", "--text", "x"], 5),
        (["restore", "a"], 3),
        (["update", "a"], 2),
        (["--help"], 0),
        (["--version"], 0),
    ],
)
def test_exit_codes(run: Run, bank: Bank, command: list[str], code: int) -> None:
    run("add", "text", "--title", "a")
    result = run(*command)
    assert result.code == code
    assert "Traceback" not in result.err


def test_an_error_is_json_when_json_is_asked_for(run: Run, bank: Bank) -> None:
    result = run("get", "notes:gone", "--json")
    assert json.loads(result.err)["error"] == {
        "code": "not_found",
        "message": "Memory file not found: gone.md",
        "hint": "`memlane list` shows the ids.",
    }
    assert result.out == ""


def test_a_usage_error_is_json_when_json_is_asked_for(run: Run, bank: Bank) -> None:
    assert json.loads(run("add", "--json", "--nonsense").err)["error"]["code"] == "usage"


@pytest.mark.parametrize(
    ("command", "keys"),
    [
        (["get", "gone"], {"code", "message", "hint"}),
        (["get", "a", "b"], {"code", "message", "hint"}),
        (["nonsense"], {"code", "message", "hint"}),
        (["list", "--since", "soon"], {"code", "message", "hint"}),
        (["update", "a"], {"code", "message", "hint"}),
        (["add", CANARY], {"code", "message", "hint", "check", "fingerprints"}),
        (["--bank", "/nowhere", "list"], {"code", "message", "hint"}),
        (["--set", "x=1", "list"], {"code", "message", "hint"}),
        (["help", "nonsense"], {"code", "message", "hint"}),
        (["completion", "tcsh"], {"code", "message", "hint"}),
    ],
)
def test_every_error_has_the_same_shape_in_json(run: Run, bank: Bank, command: list[str], keys: set[str]) -> None:
    result = run(*command, "--json")
    error = json.loads(result.err)["error"]
    assert (result.code != 0, result.out, set(error)) == (True, "", keys)
    assert all(error.values())


def test_a_group_without_a_command_shows_its_help(run: Run) -> None:
    for group in ("vault", "topics", "records", "layers", "gate", "token", "encoder"):
        assert run(group) == (2, "", run(group, "--help").out)


def test_a_usage_error_is_one_line_without_escapes(run: Run) -> None:
    said = "error: Missing argument '{bash|zsh|fish}'. Choose from: bash, zsh, fish"
    assert run("completion").err.splitlines()[0] == said


def test_a_misspelt_command_is_answered_with_the_right_one(run: Run) -> None:
    assert "Did you mean 'update'?" in run("updat").err


def test_an_unexpected_system_error_is_a_sentence(bank: Bank, tmp_path: Path) -> None:
    command = f"{MEMLANE} check-config > /dev/full"
    result = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert "error:" in result.stderr


def test_a_refused_secret_is_nowhere(run: Run, bank: Bank, tmp_path: Path, home: Path) -> None:
    """Whichever way it came in: not in the bank, the home folder, stdout or stderr."""
    run("add", "text", "--title", "a")
    id = run("vault", "add", "Mission: stay", "--tier", "register", "--json").json["id"]
    run("layers", "create", "# P", "--project", "api", "--type", "project_profile")
    said = ""
    for command in (
        ["add", CANARY],
        ["add", "x", "--title", CANARY],
        ["add", "x", "--tag", CANARY],
        ["add", "x", "--scope", CANARY],
        ["add", "x", "--thread", CANARY],
        ["add", "x", "--type", CANARY],
        ["add", "x", "--created-at", CANARY],
        ["add", "x", "--field", f"filename={CANARY}.md"],
        ["add", "x", "--field", f"own={CANARY}"],
        ["add", "x", "--field", CANARY],
        ["add", CANARY, "--lane", "vault"],
        ["add", CANARY, "--lane", "topics"],
        ["add", f"{CANARY} and more", "--lane", "records"],
        ["add", CANARY, "--lane", "layers", "--field", "project=p", "--field", "file_type=t"],
        ["append", "a", CANARY],
        ["update", "a", CANARY],
        ["update", "a", "--title", CANARY],
        ["merge", "a", "--into", "b", "--text", CANARY],
        ["merge", "a", "--into", CANARY, "--text", "x"],
        ["get", CANARY],
        ["get", f"notes:{CANARY}"],
        ["rm", f"vault:{CANARY}"],
        ["restore", CANARY],
        ["vault", "add", "x", "--category", CANARY],
        ["vault", "add", "x", "--topic", CANARY, "--tier", "register"],
        ["vault", "update", id, CANARY],
        ["vault", "promote", id, CANARY],
        ["topics", "store", "a/b", "--problem", CANARY],
        ["topics", "store", f"a/{CANARY}", "--problem", "x"],
        ["records", "create", "one line\ntwo", "--subject", CANARY, "-k", "x"],
        ["records", "create", "one line\ntwo", "--subject", "x", "-k", CANARY],
        ["records", "create", "one line\ntwo", "--subject", "x", "-k", "x", "--applies-to", f"area:{CANARY}"],
        ["layers", "update", "shared-project/api/project_profile", CANARY],
        ["layers", "append", "shared-project/api/project_profile", CANARY],
        ["layers", "create", "x", "--project", CANARY, "--type", "t"],
        ["layers", "validate", CANARY],
        ["gate", "test", CANARY],
        ["list", "--since", CANARY],
        ["add", "x", "--field", f"{CANARY}=1"],
        ["add", "some text", "--lane", "layers", "--type", CANARY, "--field", "project=p"],
        ["update", "a", "--field", f"{CANARY}=1"],
        ["--set", f"{CANARY}=1", "list"],
        ["vault", "add", "my", "key", "is", CANARY],
        ["vault", "add", "x", "--tier", CANARY],
        ["vault", "add", "x", "--source", CANARY, "--json"],
        ["list", "-n", CANARY],
        ["list", "--lane", CANARY],
        [CANARY],
        ["vault", CANARY],
        ["list", f"--{CANARY}"],
        ["edit", CANARY],
        ["edit", f"notes:{CANARY}"],
        ["history", CANARY],
        ["history", f"notes:{CANARY}"],
        ["history", id, "--show", CANARY],
        ["vault", "promote", CANARY],
        ["vault", "promote", id, CANARY],
        ["review", "--only", "prune", "--lane", CANARY],
        ["doctor", "--only", "format", CANARY],
        ["doctor", "--only", "format", f"records:{CANARY}"],
        ["help", CANARY],
        ["completion", CANARY],
    ):  # fmt: skip
        result = run(*command)
        assert result.code != 0, command
        assert "Traceback" not in result.err, command
        said = result.out + result.err
        assert CANARY not in said, command
    for folder in (tmp_path, home):
        assert [name for name, data in tree(folder).items() if CANARY.encode() in data or CANARY in name] == []


# -- pipes and signals


def test_a_closed_pipe_is_no_drama(bank: Bank, tmp_path: Path) -> None:
    for number in range(50):
        bank.add("text", title=f"note {number} " + "x" * 60)
    command = f"{MEMLANE} list | head -1"
    result = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True)
    assert (result.returncode, result.stdout.count("\n"), result.stderr) == (0, 1, "")


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


@pytest.mark.parametrize(
    "words", [("--port", "9000"), ("--oauth",), ("--readers", "2"), ("--public-url", "https://mem.example.com")]
)
def test_what_only_a_server_over_http_has_is_not_ignored_without_one(run: Run, words: tuple[str, ...]) -> None:
    result = run("mcp", *words)
    assert (result.code, result.err.splitlines()[0]) == (2, f"error: {words[0]} goes with --http.")


def test_a_scope_with_a_comma_is_refused_by_the_vault_too(run: Run, bank: Bank) -> None:
    assert [
        run(*words, "Mission: keep it stable", "--scope", "a,b").code for words in (("add",), ("vault", "add"))
    ] == [
        2,
        2,
    ]
    assert bank.list() == []
