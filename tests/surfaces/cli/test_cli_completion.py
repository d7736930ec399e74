"""`memlane completion` and `memlane help`: what TAB offers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from commands import MEMLANE, Run
from memlane import Bank


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
        run("doctor", "--reindex")
    assert completed("memlane get deploy", tmp_path) == ["notes:deploy-day", "notes:deploy-night"]
    assert completed("memlane get notes:deploy-n", tmp_path) == ["deploy-night"]  # bash keeps what is before the colon
    assert completed("memlane rm notes:other notes:deploy-d", tmp_path) == ["deploy-day"]
    assert completed("memlane vault history ", tmp_path) == [id]
    assert completed("memlane vault promote ", tmp_path) == [id]
    assert completed("memlane restore ", tmp_path) == ["notes:gone"]
    assert completed("memlane list --tag r", tmp_path) == (["release"] if indexed else [""])


@pytest.mark.parametrize("indexed", [True, False])
def test_nothing_is_completed_that_a_shell_would_run(run: Run, bank: Bank, tmp_path: Path, indexed: bool) -> None:
    """The name of a file may come from a stranger, and what is completed becomes part of the command line."""
    for name in (
        "safe-ähm",
        "$(touch pwned)",
        "a`touch pwned`",
        "a;touch pwned",
        "a&b",
        "a>b",
        "a\\b",
        "a'b",
        "~b",
        "a*",
    ):
        (bank.root / f"{name}.md").write_text("Some text.\n")
    if indexed:
        run("doctor", "--reindex")
    assert completed("memlane get notes:", tmp_path) == ["safe-ähm"]


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


def test_help_prints_what_dash_dash_help_prints(run: Run) -> None:
    assert run("help", "vault", "history").out == run("vault", "history", "--help").out
    assert run("help").out == run("--help").out
    assert run("help", "add", "--json").json == {"command": "memlane add", "help": run("help", "add").out.rstrip("\n")}
    assert run("help", "nonsense").code == 2
    assert run("help", "add", "more").code == 2
