"""No user meets a word that only the designs behind the lanes explain."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from commands import Run
from memlane import Bank
from memlane.surfaces.cli import COMMANDS, app
from memlane.surfaces.mcp import toolsets

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/memlane"
PAGES = [ROOT / name for name in ("README.md", "SECURITY.md", "demo.sh", "server.json")] + sorted(
    path for folder in ("docs", "plugin", "packaging") for path in (ROOT / folder).rglob("*.md")
)
WORDS = re.compile(r"(?<!--)\bseeds?\b|\borion\b|\belysia\b|\bS00\d\b|ragdocs", re.IGNORECASE)
# Where a format came from may be said in one place. A vault used without a bank has the scopes it always had.
ALLOWED = {
    "docs/formats.md", "src/memlane/lanes/vault/store.py", "src/memlane/config/places.py",
    "src/memlane/gate/secrets/shapes.py",  # what NATS and Stellar call their keys
    "src/memlane/gate/secrets/names.py", "src/memlane/gate/plain.py",  # what wallets are made from
}  # fmt: skip


def spoken(path: Path) -> Iterator[str]:
    """The strings of a module that are no docstrings: messages, hints, descriptions, names."""
    tree = ast.parse(path.read_text())
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def every_help(command: click.Command) -> Iterator[str]:
    yield command.help or ""
    yield from (param.help or "" for param in command.params if isinstance(param, click.Option))
    for child in getattr(command, "commands", {}).values():
        yield from every_help(child)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_page_has_such_a_word(path: Path) -> None:
    if str(path.relative_to(ROOT)) not in ALLOWED:
        assert WORDS.findall(path.read_text()) == []


def test_no_message_has_such_a_word() -> None:
    found = {
        name: words
        for path in SOURCE.rglob("*.py")
        if (name := str(path.relative_to(ROOT))) not in ALLOWED
        and (words := [text for text in spoken(path) if WORDS.search(text)])
    }
    assert found == {}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_help_text_has_such_a_word(name: str) -> None:
    command = app.get_command(app.make_context("memlane", ["list"], resilient_parsing=True), name)
    assert command is not None
    assert [text for text in every_help(command) if WORDS.search(text)] == []


def test_no_tool_is_described_with_such_a_word() -> None:
    described = {tool.name: repr(tool.definition) for tool in toolsets.tools(toolsets.NAMES)}
    assert {name: text for name, text in described.items() if WORDS.search(text)} == {}


def test_no_check_and_no_setting_is_described_with_such_a_word(run: Run, bank: Bank) -> None:
    for command in (["gate", "show"], ["check-config", "--json"], ["--help"]):
        assert WORDS.findall(run(*command).out) == []
