"""SECURITY.md's table of what each surface may do in a trusted, an untrusted and a foreign-owned project is true."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from commands import Run
from conftest import trusted
from memlane import Bank, NotEnabled, NotTrusted
from memlane.config import load
from memlane.surfaces import hook
from memlane.surfaces.mcp.shared_bank import SharedBank
from samples import transcript

PAGE = Path(__file__).parent.parent / "SECURITY.md"
COLUMNS = ("trusted", "not trusted", "another user's")
Probe = Callable[[Path], str]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    (project / ".memories").mkdir(parents=True)
    (project / "memlane.toml").write_text("[memory]\nenabled = true\n[hook]\nrecent = 1\n")
    (project / ".memories/deploys.md").write_text("Deploys go out on Tuesdays.\n")
    return project


@pytest.fixture
def probes(run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> dict[str, Probe]:
    def settings(project: Path) -> str:
        found = load(project)
        if found.file is None:
            return "not read"
        return "counts" if found["hook.recent"] == 1 else "only that there is a memory"

    def command(words: tuple[str, ...], good: str) -> Probe:
        def probe(project: Path) -> str:
            result = run("--bank", project, *words)
            if result.code == 0:
                return good
            return "no bank" if "not enabled" in result.err else "refused"

        return probe

    def python(project: Path) -> str:
        try:
            bank = Bank.open(project)
        except NotEnabled:
            return "no bank"
        assert bank.get("deploys").text
        try:
            bank.add("A new note.")
        except NotTrusted:
            return "reads"
        return "works"

    def server(project: Path) -> str:
        try:
            anyio.run(SharedBank(project).run, lambda bank: bank.get("deploys"))
        except NotTrusted:
            return "refused"
        except NotEnabled:
            return "no bank"
        return "works"

    def hooks(event: str) -> Probe:
        def probe(project: Path) -> str:
            path = transcript(project.parent / "t.jsonl", "A message of two lines.\nIt is worth keeping.")
            payload = {"cwd": str(project), "session_id": "s", "transcript_path": str(path)}
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(payload).encode())))
            capsys.readouterr()
            hook.main(["claude-code", event])
            out = capsys.readouterr().out
            if list((project / ".memories").rglob("records/*.md")) or "additionalContext" in out:
                return "works"
            return "one line for the user" if "systemMessage" in out else "silent"

        return probe

    return {
        "its configuration": settings,
        "commands that read": command(("search", "when do deploys go out?"), "works"),
        "commands that write": command(("add", "A new note."), "works"),
        "Python": python,
        "MCP tools": server,
        "hook at the start of a session": hooks("session-start"),
        "hook at the end of a turn": hooks("stop"),
    }


def table() -> dict[str, list[str]]:
    rows = re.findall(r"^\| ([^|]+?) \| ([^|]+?) \| ([^|]+?) \| ([^|]+?) \|$", PAGE.read_text(), re.MULTILINE)
    return {row[0]: list(row[1:]) for row in rows if row[1] not in COLUMNS and not row[1].startswith("-")}


def test_the_table_has_a_row_for_every_surface(probes: dict[str, Probe]) -> None:
    assert list(table()) == list(probes)


@pytest.mark.parametrize("column", COLUMNS)
def test_the_table_is_true(probes: dict[str, Probe], project: Path, column: str) -> None:
    if column == "trusted":
        trusted(project / "memlane.toml")
    if column == "another user's":
        if os.geteuid() != 0:
            pytest.skip("only root can give files away")
        trusted(project / "memlane.toml")
        os.chown(project / "memlane.toml", 12345, 12345)
    number = COLUMNS.index(column)
    assert {name: probe(project) for name, probe in probes.items()} == {
        name: row[number] for name, row in table().items()
    }
