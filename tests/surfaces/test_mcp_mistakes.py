"""The mistakes that models make with the tools, and an automaton that gets out of each by the server's words alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError
from mcp.types import CallToolResult

from memlane import Bank
from memlane.lanes import NAMES
from memlane.surfaces.mcp import hints, toolsets
from memlane.surfaces.mcp.server import build_server
from memlane.surfaces.mcp.tools import READS
from samples import words

SRC = Path(hints.__file__).parents[2]
SECRET = "sk-proj-" + "abcdefghijklmnopqrstuvwxyz0123456789ABCD"
Call = tuple[str, dict[str, Any]]
READING = {tool.name for tool in toolsets.tools(["vault"]) if tool.definition.annotations == READS} | {"list_memory"}

# (tool, arguments, the tools that are called until one succeeds)
MISTAKES: tuple[tuple[str, dict[str, Any], tuple[str, ...]], ...] = (
    ("remember", {"text": "Deploys go out on Tuesdays.", "tags": "release, ops"}, ("remember",)),
    ("remember", {"text": "Staging is on port 8443.", "tags": '["ops"]'}, ("remember",)),
    ("remember", {"content": "Use tabs in Makefiles"}, ("remember",)),
    ("remember", {"text": "Use tabs in Makefiles", "category": "preference"}, ("remember",)),
    ("remember", {"text": "Use tabs", "importance": 5, "metadata": {"a": 1}}, ("remember", "remember")),
    ("remember", {"text": {"fact": "x"}}, ("remember", "remember")),
    ("remember", {"text": ""}, ("remember", "remember")),
    ("remember", {"text": "Prefers terse answers", "lane": "memory"}, ("remember", "remember")),
    ("remember", {"text": "Prefers terse answers", "scope": "user"}, ("remember", "remember")),
    ("remember", {"text": "Prefers terse answers", "tier": "canon", "scope": "global"}, ("remember",)),
    ("remember", {"text": "Prefers terse answers", "tier": "Canon"}, ("remember",)),
    ("remember", {"text": "Prefers terse answers", "tier": "permanent"}, ("remember", "remember")),
    ("remember", {"text": "x " * 700, "tier": "canon"}, ("remember", "remember")),
    ("remember", {"text": "The DB password is hunter2xyz9"}, ("remember", "remember")),
    ("remember", {"text": f"Prod key {SECRET}, rotate monthly"}, ("remember", "remember")),
    ("remember", {"text": "We meet next Tuesday at 10"}, ("remember",)),
    ("remember", {"text": "No changes to the schema without a migration", "tier": "canon"}, ("remember",)),
    ("remember", {"text": "The heartbeat of the worker is 30 s", "tier": "canon"}, ("remember",)),
    ("remember", {"text": "Heartbeat ok, nothing to report", "tier": "canon"}, ("remember", "remember")),
    ("remember", {"text": "Auth service listens on port 8080", "tier": "canon"}, ("remember",)),
    ("remember", {"text": "We always use tabs in Makefiles.", "tier": "canon"}, ("remember", "…")),
    ("remember", {"text": "Working on dashboard", "tier": "register"}, ("remember",)),
    ("remember", {"text": "We always use tabs in Makefiles.", "topic_id": "current projects!"}, ("remember", "…")),
    ("remember", {"text": "x", "lane": "topics"}, ("remember",)),
    ("remember", {"text": "x content here", "lane": "layers"}, ("remember", "remember")),
    ("recall", {"query": "deploy", "budget": "500"}, ("recall",)),
    ("recall", {"query": "deploy", "budget": 0}, ("recall", "recall")),
    ("recall", {"query": "deploy", "limit": 3}, ("recall", "recall")),
    ("recall", {"query": ["deploy"]}, ("recall", "recall")),
    ("recall", {}, ("recall", "recall")),
    ("recall", {"query": "what did we decide last week?"}, ("recall", "list_memories")),
    ("search_memories", {"query": "deploy", "limit": "5"}, ("search_memories",)),
    ("search_memories", {"query": "deploy", "top_k": 5}, ("search_memories",)),
    ("search_memories", {"query": "deploy", "filter_tags": "ops"}, ("search_memories",)),
    ("search_memories", {"query": "deploy", "filter_type": "decision"}, ("search_memories", "search_memories")),
    ("search_memories", {"query": "*"}, ("search_memories", "list_memories")),
    ("search_memories", {"query": "deploy", "since": "last week"}, ("search_memories", "search_memories")),
    ("create_memory", {"title": "x", "content": "y", "tags": []}, ("create_memory",)),
    ("create_memory", {"filename": "Deploy Day!?.md", "content": "y", "tags": None}, ("create_memory",) * 2),
    (
        "create_memory",
        {"filename": "n.md", "content": "---\ntype: plan\n---\n\nBody", "tags": ["b"]},
        ("create_memory",),
    ),
    ("update_memory", {"filename": "deploy-day.md", "content": "Deploys go out on Wednesdays."}, ("update_memory",)),
    ("append_memory", {"filename": "deploy-day", "text": "x"}, ("append_memory",)),
    ("delete_memory", {"id": "memory:deploy-day"}, ("delete_memory",)),
    ("delete_memory", {"filename": "*.md"}, ("delete_memory", "list_memories", "delete_memory")),
    ("read_memory", {"filename": "What is this?"}, ("read_memory", "list_memories", "read_memory")),
    (
        "merge_memories",
        {"source_files": "deploy-day.md, other.md", "target_file": "t.md", "summary_content": "s"},
        ("merge_memories", "list_memories", "merge_memories"),
    ),
    ("suggest_memory_merges", {"threshold": 85}, ("suggest_memory_merges",) * 2),
    ("suggest_memory_merges", {"filter_type": "all"}, ("suggest_memory_merges",) * 2),
    ("suggest_memory_merges", {"filter_type": None}, ("suggest_memory_merges",)),
    ("list_memory", {}, ("list_memory", "list_memories")),
    ("search_linked_memories", {"target_document": "src/a.py"}, ("search_linked_memories", "…")),
    ("vault_add_memory", {"text": "t x t", "scope": "user", "category": "pref"}, ("vault_add_memory",)),
    ("vault_update_memory", {"id": "vault:123"}, ("vault_update_memory", "list_memories", "vault_update_memory")),
    ("vault_search_memories", {"query": ""}, ("vault_search_memories",)),
    # and some more that were found since
    (
        "create_memory",
        {"filename": "p.md", "content": "y", "tags": [], "memory_type": "decision"},
        ("create_memory",) * 2,
    ),
    ("create_memory", {"filename": "deploy-day.md", "content": "y", "tags": []}, ("create_memory", "update_memory")),
    ("search_memories", {"query": "deploy", "lane": "memory"}, ("search_memories",) * 2),
    ("search_memories", {"query": "deploy", "scope": "nobody"}, ("search_memories",) * 2),
    ("read_memory", {"filename": "deploy-day", "section": "Nowhere"}, ("read_memory",) * 2),
    (
        "edit_memory",
        {"id": "deploy-day", "old_string": "Mondays", "new_string": "x"},
        ("edit_memory", "read_memory", "edit_memory"),
    ),
    ("restore_memory", {"id": "never-was"}, ("restore_memory", "list_memories", "restore_memory")),
    ("remember", {"text": "The keyboard shortcut is F5", "lane": "topics"}, ("remember",)),
)


class Automaton:
    """Knows the tools' names, what it wanted to say, and how to read a message; nothing else."""

    TEXT = "The password for deploys is in the team's password manager."

    def __init__(self, client: Client) -> None:
        self.client = client
        self.called: list[str] = []

    async def get_out(self, tool: str, arguments: dict[str, Any]) -> bool:
        """Whether what was wanted, or what the server named instead, was done in a few calls."""
        wanted: Call = (tool, arguments)
        todo: list[Call] = [wanted]
        while todo and len(self.called) < 6:
            name, given = todo.pop(0)
            failed, said, data = await self._call(name, given)
            if not failed and name == "list_memories" and (key := id_argument(wanted[1])):
                listed = data["memories"][0]["memory_id"]
                todo = [(wanted[0], {**wanted[1], key: [listed] if key == "source_files" else listed})]
            elif not failed and (wanted[0], name) == ("edit_memory", "read_memory"):
                todo = [(wanted[0], {"id": given["filename"], "old": data["content"].splitlines()[-1], "new": "x"})]
            elif failed:
                todo += advised(name, given, said)
            elif name in READING and wanted[0] not in READING:
                continue  # it knows more, but has not done what it wanted
            elif (named := list(calls_in(said, given))) and not (data.get("result") or data.get("block")):
                todo = named  # nothing was found, and the message says where to look
            else:
                return True
        return False

    async def _call(self, name: str, arguments: dict[str, Any]) -> tuple[bool, str, dict[str, Any]]:
        self.called.append(name)
        try:
            result: CallToolResult = await self.client.call_tool(name, arguments)
        except MCPError as error:
            return True, error.error.message, {}
        (content,) = result.content
        assert content.type == "text"
        return bool(result.is_error), content.text, result.structured_content or {}


def advised(name: str, given: dict[str, Any], said: str) -> Iterator[Call]:
    """The calls that a message about a failed call asks for, in its order."""
    arguments = dict(given)
    for argument, instead in re.findall(r"no argument (\w+): (?:use (\w+)|leave it out)", said):
        value = arguments.pop(argument)
        if instead:
            arguments[instead] = value
    for argument, complaint in re.findall(r"(?:; |that; )(\w+): ((?:input|field|value)[^;.]*)", said):
        if choice := re.search(r"'(\w+)'", complaint):
            arguments[argument] = choice[1]
        elif f"{argument} (optional)" in said:
            arguments.pop(argument)
        else:
            arguments[argument] = Automaton.TEXT
    if match := re.search(r"Use one of: ([^.;]+)", said):
        about = re.search(r"(?:^(\w+): |no (?:such )?(?:note )?(\w+))", said)
        assert about, said
        wrong = next(key for key in arguments if key in about.groups() or {key, about[2]} == {"type", "category"})
        arguments[wrong] = match[1].split(", ")[0]
    if match := re.search(r"[Ll]eave (\w+) out", said.partition("Use one of")[0]):
        arguments.pop(match[1], None)
    if match := re.search(r"^(\w+) is not a date\. Write it like (\S+)", said):
        arguments[match[1]] = match[2]
    if match := re.search(r"Leave out .* characters and (.*)\.$", said):
        arguments["filename"] = arguments["filename"].translate(dict.fromkeys(map(ord, match[1].replace(" ", ""))))
    if re.search("Give some text|Store where the secret lives", said):
        arguments["text"] = Automaton.TEXT
    if arguments != given:
        yield name, arguments
    yield from calls_in(said, given)


def calls_in(said: str, given: dict[str, Any]) -> Iterator[Call]:
    """The calls that stand in a message, `tool(name="value", other=…)`; … is what was given before."""
    for name, inside in re.findall(r"`(\w+)(?:\((.*?)\))?`", said):
        values = re.findall(r'(\w+)=(…|"[^"]*"|\[[^\]]*\]|\w+)', inside)
        former = {**given, "content": given.get("content", given.get("text")), "text": given.get("text")}
        yield name, {key: former[key] if value == "…" else json.loads(value) for key, value in values}


def id_argument(arguments: dict[str, Any]) -> str:
    """The argument in which an id was given."""
    return next((key for key in ("filename", "id", "source_files") if key in arguments), "")


@pytest.mark.parametrize(("tool", "arguments", "expected"), MISTAKES, ids=range(1, len(MISTAKES) + 1))
def test_the_server_says_how_to_get_out_of_a_mistake(
    tmp_path: Path, tool: str, arguments: dict[str, Any], expected: tuple[str, ...]
) -> None:
    bank = Bank.init(tmp_path)
    old = bank.add("Long gone.", title="Old")
    bank.delete(old.id)
    bank.add("We always use tabs in Makefiles.", lane="vault", tier="canon")
    bank.add("# Deploys\n\nDeploys go out on Tuesdays.", title="Deploy day", tags=["ops"])
    if tool.startswith("vault_"):
        bank.delete("notes:deploy-day")  # what is listed is the vault's

    async def run() -> tuple[bool, list[str]]:
        async with Client(build_server(tmp_path, more=["vault"])) as client:
            automaton = Automaton(client)
            return await automaton.get_out(tool, arguments), automaton.called

    out, called = anyio.run(run)
    assert out, called
    if expected[-1] != "…":
        assert tuple(called) == expected


def test_a_full_vault_names_a_way_out(tmp_path: Path) -> None:
    bank = Bank.init(tmp_path)
    for number in range(100):
        bank.vault.add_memory(words(f"v {number}"), "shared", "fact")

    async def run() -> tuple[bool, list[str]]:
        async with Client(build_server(tmp_path)) as client:
            automaton = Automaton(client)
            out = await automaton.get_out("remember", {"text": "Open work: finish the tests", "topic_id": "open_work"})
            return out, automaton.called

    out, called = anyio.run(run)
    assert out, called
    assert [memory.text for memory in bank.memories("notes")] == ["Open work: finish the tests"]


# -- hints


def commands_in_messages() -> Iterator[str]:
    """Every command that a string below the surfaces names."""
    for path in SRC.rglob("*.py"):
        if "surfaces" not in path.relative_to(SRC).parts or path.parent.name == "mcp":
            yield from re.findall(r"`memlane ([a-z][^`]*)`", path.read_text())


def test_every_command_that_a_message_names_is_a_tool_or_is_left_to_a_terminal() -> None:
    named = {command for command in commands_in_messages() if " mcp" not in f" {command}"}
    default = {tool.name for tool in toolsets.DEFAULT}
    translated = {command: hints.in_tools(f"`memlane {command}`", default) for command in named}
    left = {command.split()[0] for command, text in translated.items() if "in a terminal" in text}
    assert left <= hints.TERMINAL, left - hints.TERMINAL


def test_a_hint_names_only_tools_that_there_are_and_arguments_that_they_have() -> None:
    every = {tool.name: tool for tool in toolsets.tools(toolsets.NAMES)}
    default = {tool.name for tool in toolsets.DEFAULT}
    for command, calls in hints.CALLS.items():
        assert calls[-1].partition("(")[0] in default, command
        for call in calls:
            name, _, inside = call.partition("(")
            assert set(re.findall(r"(\w+)=", inside)) <= set(every[name].arguments.model_fields), call
    text = "`memlane vault proposals` lists them."
    assert hints.in_tools(text, default) == '`list_memories(lane="vault")` lists them.'
    assert hints.in_tools(text, every) == "`vault_propose_deletions` lists them."


def test_what_no_tool_does_is_left_to_a_terminal() -> None:
    assert hints.in_tools("Run `memlane init` here.", ["recall"]) == "Run `memlane init` in a terminal here."
    assert hints.in_tools("`memlane list --lane records` shows the ids.", ["list_memories"]) == (
        '`list_memories(lane="records")` shows the ids.'
    )


def test_every_lane_can_be_named_to_every_tool_that_takes_one(tmp_path: Path) -> None:
    taking = [tool for tool in toolsets.DEFAULT if "lane" in tool.arguments.model_fields and tool.name != "remember"]
    assert {tool.name for tool in taking} == {"search_memories", "list_memories"}
    assert all(tool.definition.input_schema["properties"]["lane"]["enum"] == [*NAMES] for tool in taking)
