"""Every verb of every surface over stores as people have them: no traceback, no internal error."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import click
import pytest
from mcp import Client

from commands import Run
from conftest import tree, trusted
from memlane import Bank, MemlaneError
from memlane.lanes import NAMES
from memlane.surfaces.cli import app
from memlane.surfaces.mcp import toolsets
from memlane.surfaces.mcp.server import build_server
from real_stores import STORES

EXPECTED = {  # how many memories of which lane each store has
    "topics": {"topics": 16}, "layers": {"layers": 7}, "records": {"records": 4}, "vault": {"vault": 4},
    "obsidian": {"notes": 5},
}  # fmt: skip
SAMPLES: dict[str, Any] = {
    "query": "Python",
    "pattern": "Python|Goals",
    "target": "Alpha",
    "target_document": "src/auth.ts",
    "text": "A wholly new text.",
    "content": "A wholly new text.",
    "topic": "system/task-tool-enforcement",
    "topic_id": "now",
    "project": "my-api",
    "project_name": "my-api",
    "skill_name": "python-code-review",
    "agent_name": "hephaestus",
    "layer": "shared-project",
    "file_type": "project_profile",
    "subject": "A subject",
    "keywords": ["one", "two"],
    "scope": "shared",
    "category": "goal",
    "tags": ["one"],
    "filename": "new",
    "old": "Python",
    "new": "Rust",
    "items": [{"text": "A wholly new text."}],
    "summary_content": "Both.",
    "target_file": "merged",
    "canonical_text": "A canonical text.",
    "into": "merged",
    "shell": "bash",
    "path": ".",
    "names": ["add"],
    "lane": "notes",
    "name": "notes",
    "source": "merged",
    "target_name": "merged",
}
IDS = {"id", "ids", "memory_id", "source_files", "sources", "native"}
ELSEWHERE = {  # asks, waits, serves or changes other programs' files: tested on their own
    "mcp", "ui", "hook", "capture", "connect", "disconnect", "merge-driver", "import", "trust", "edit",
}  # fmt: skip


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path, run: Run) -> str:
    STORES[request.param](tmp_path)
    if (tmp_path / "memlane.toml").exists():
        trusted(tmp_path / "memlane.toml")
    assert run("init").code == 0
    return str(request.param)


def ids_in(folder: Path) -> list[str]:
    """The first and the last memory."""
    with Bank.open(folder) as bank:
        ids = sorted(memory.id for memory in bank.list())
    return [ids[0], ids[-1]]


# -- reading


def test_the_store_is_read_as_what_it_is_and_not_changed(store: str, tmp_path: Path) -> None:
    before = tree(tmp_path)
    with Bank.open(tmp_path) as bank:
        assert Counter(memory.lane for memory in bank.list()) == EXPECTED[store]
        assert bank.search("Python stopped first mission goals")
        assert all(problem.why for problem in bank.problems())
    after = tree(tmp_path)
    assert {name: after.get(name) for name in before} == before


# -- the command line


def commands(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))
        elif command is not None and name not in ELSEWHERE:
            yield (*words, name), command


def given(command: click.Command, id: str) -> list[str]:
    """Values for what a command needs."""
    words: list[str] = []
    for parameter in command.params:
        if parameter.name in IDS and (parameter.required or isinstance(parameter, click.Argument)):
            value: Any = id
        elif parameter.required or (isinstance(parameter, click.Argument) and parameter.name != "folder"):
            value = SAMPLES.get(parameter.name or "", "x")
            value = value[0] if isinstance(value, list) else value
        elif "--yes" in parameter.opts:
            words.append("--yes")
            continue
        elif parameter.name == "project_name":
            value = SAMPLES["project_name"]
        else:
            continue
        if not isinstance(value, str):
            continue
        words += [value] if isinstance(parameter, click.Argument) else [parameter.opts[-1], value]
    return words


def test_every_command_answers(store: str, run: Run, tmp_path: Path) -> None:
    """Also the second time, as JSON, when the first may have changed something."""
    failed = []
    for id, form in zip(ids_in(tmp_path), ("plain", "--json"), strict=True):
        for words, command in commands(app):
            more = [form] if any(form in parameter.opts for parameter in command.params) else []
            result = run(*words, *given(command, id), *more, stdin="A text from outside.\n")
            if "Traceback" in result.err or result.code not in range(7):
                failed.append((words, more, result.code, result.err[-300:]))
    assert failed == []


# -- the tools


def arguments(schema: dict[str, Any], id: str) -> dict[str, Any]:
    found = {}
    for name in schema.get("required", ()):
        value = id if name in IDS | {"filename"} else SAMPLES[name]
        is_list = schema["properties"][name].get("type") == "array"
        found[name] = [value] if is_list and not isinstance(value, list) else value
    return found


def test_every_tool_answers(store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids = ids_in(tmp_path)

    async def call_all() -> list[tuple[str, str]]:
        inside = []
        async with Client(build_server(tmp_path, more=NAMES)) as client:
            for id in (ids[0], ids[-1].partition(":")[2]):
                for tool in toolsets.tools(NAMES):
                    result = await client.call_tool(tool.name, arguments(tool.definition.input_schema, id))
                    text = getattr(result.content[0], "text", "") if result.content else ""
                    if result.is_error and "inside memlane" in text:
                        inside.append((tool.name, text))
        return inside

    assert anyio.run(call_all) == []
    assert "failed" not in capsys.readouterr().err


# -- Python


def verbs(value: object) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, _ in inspect.getmembers(type(value), inspect.isfunction):
        if not name.startswith("_") and name not in ("close", "capture", "capture_message", "take_root"):
            yield name, getattr(value, name)


def test_every_method_answers(store: str, tmp_path: Path) -> None:
    """An answer, or an error that says what to do."""
    failed = []
    for id in ids_in(tmp_path):
        with Bank.open(tmp_path) as bank:
            for owner in (bank, *(bank.lane(name) for name in NAMES)):
                mine = id if owner is bank else id.partition(":")[2]
                for name, verb in verbs(owner):
                    parameters = inspect.signature(verb).parameters.values()
                    needed = [
                        item for item in parameters if item.default is item.empty and item.kind < item.VAR_POSITIONAL
                    ]
                    keywords = [
                        item for item in parameters if item.default is item.empty and item.kind == item.KEYWORD_ONLY
                    ]
                    if any(item.name not in SAMPLES and item.name not in IDS for item in (*needed, *keywords)):
                        continue  # of another room
                    try:
                        result = verb(*(_value(item.name, mine) for item in needed),
                                      **{item.name: _value(item.name, mine) for item in keywords})  # fmt: skip
                        if inspect.isgenerator(result):
                            list(result)
                    except MemlaneError:
                        continue
                    except Exception as error:
                        failed.append((type(owner).__name__, name, repr(error)))
    assert failed == []


def _value(name: str, id: str) -> Any:
    return ([id] if name.endswith("s") else id) if name in IDS else SAMPLES[name]
