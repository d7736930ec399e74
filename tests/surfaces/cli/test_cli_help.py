"""What the command line says about itself: help texts whose examples parse, and a reference made from them."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from commands import Run
from memlane import Bank
from memlane.surfaces.cli import COMMANDS, MORE, NOW, app

ROOT = Path(__file__).parents[3]


def helps(name: str) -> Iterator[str]:
    """The help texts of a command and of what is below it."""
    command = app.get_command(app.make_context("memlane", ["list"], resilient_parsing=True), name)
    assert command is not None
    for one in (command, *getattr(command, "commands", {}).values()):
        yield one.help or ""


def examples(text: str) -> list[list[str]]:
    """The arguments of each `memlane …` in the examples of a help text; pipes and redirections are the shell's."""
    found = []
    for line in re.findall(r"^ *\$ (.*)$", text, re.MULTILINE):
        for part in re.split(r" (?:\||>>?|<|&&|--(?= memlane)) ", f" {line} "):
            words = [word for word in shlex.split(part, comments=True) if not re.match(r"[A-Z_]+=", word)]
            if words[:1] == ["memlane"]:
                found.append(words[1:])
    return found


def parse(words: list[str]) -> None:
    """Parse a command line down to its last command, without running it. Raises click's errors."""
    command: click.Command = app
    parent, name = None, "memlane"
    while True:
        try:
            context = command.make_context(name, list(words), parent=parent)
        except click.BadParameter as error:
            if "does not exist" in error.message:  # it parses; the file is only an example
                return
            raise
        if not isinstance(command, click.Group):
            return
        rest = [*context._protected_args, *context.args]
        if not rest:
            return
        found, inner, words = command.resolve_command(context, rest)
        assert inner is not None
        command, parent, name = inner, context, found or ""


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_of_a_help_text_parse(name: str) -> None:
    for text in helps(name):
        assert examples(text) != []
        for words in examples(text):
            parse(words)


def test_the_first_examples_parse() -> None:
    for words in examples(app.help or ""):
        parse(words)


def test_an_example_that_does_not_parse_is_noticed() -> None:
    with pytest.raises(click.UsageError):
        parse(["list", "--nonsense"])
    with pytest.raises(click.UsageError):
        parse(["vault", "nonsense"])


def test_the_help_has_five_groups_of_at_most_23_commands(run: Run) -> None:
    text = run("--help").out.partition("Options:")[2]
    groups = {
        head: re.findall(r"^  ([a-z][a-z-]*) {2,}\S", body, re.MULTILINE)
        for head, body in re.findall(r"^(\S[^:\n]*):\n((?:  .*\n)+)", text, re.MULTILINE)
    }
    assert groups == {
        "Remember and find": ["add", "search", "list", "get", "context", "edit", "rm", "restore"],
        "Review": ["ui", "review", "history", "undo", "forget"],
        "Look after": ["doctor", "sync", "import", "export"],
        "Connect": ["init", "connect"],
        "Lanes": ["vault", "topics", "records", "layers"],
    }
    shown = [name for names in groups.values() for name in names]
    assert len(shown) <= 23
    more = " ".join(text.partition("More, rarer or for programs: ")[2].split())
    assert more.rstrip(".").split(", ") == list(MORE)
    assert sorted([*shown, *MORE]) == sorted(COMMANDS)


@pytest.mark.parametrize("name", NOW)
def test_an_old_name_answers_with_the_new_one(run: Run, name: str) -> None:
    assert name not in COMMANDS
    answer = run(name)
    assert (answer.code, answer.err.splitlines()[0]) == (
        2,
        f"error: There is no command '{name}'; it is `memlane {NOW[name]}` now.",
    )
    assert run(*NOW[name].replace("CLIENT", "zed").split(), "--help").code == 0


def test_the_reference_is_up_to_date() -> None:
    result = subprocess.run(
        [sys.executable, ROOT / "scripts/cli_reference.py", "--check"], capture_output=True, text=True
    )
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(run: Run, name: str) -> None:
    command = app.get_command(app.make_context("memlane", ["list"], resilient_parsing=True), name)
    assert command is not None
    assert f"$ memlane {name}" in (command.help or "")
    for sub, child in getattr(command, "commands", {}).items():
        assert f"$ memlane {name} {sub}" in (child.help or ""), sub
    assert run(name, "--help").code == 0


def every_command() -> Iterator[tuple[str, click.Command]]:
    context = app.make_context("memlane", ["list"], resilient_parsing=True)
    for name in COMMANDS:
        command = app.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from ((f"{name} {sub}", child) for sub, child in command.commands.items())
        else:
            yield name, command


def test_every_command_can_print_json() -> None:
    assert [
        name for name, command in every_command() if not any("--json" in option.opts for option in command.params)
    ] == ["ui", "mcp"]  # which speak to a browser, and a protocol of its own


def test_mv_is_what_renames_a_note_and_not_what_moves_the_bank(run: Run) -> None:
    assert "Did you mean 'rename'?" in run("mv", "a", "b").err


def test_a_log_of_tokens_that_nobody_has_used_says_so(run: Run, bank: Bank) -> None:
    assert run("token", "log").err == "nothing was done with tokens yet\n"
