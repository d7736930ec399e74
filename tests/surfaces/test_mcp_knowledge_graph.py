"""The toolset `knowledge-graph` beside the MCP reference memory server, over pipes: the same calls, the same answers.

`make node` installs that server into .node/. Where it is not, these tests are skipped; never where CI is set.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from memlane import Bank

MODULES = Path(__file__).parents[2] / ".node/node_modules"
SERVER = MODULES / "@modelcontextprotocol/server-memory/dist/index.js"
MEMLANE = str(Path(sys.executable).with_name("memlane"))
Call = tuple[str, dict[str, Any]]


def entity(name: str, kind: str = "person", *observations: str) -> dict[str, Any]:
    return {"name": name, "entityType": kind, "observations": list(observations)}


def relation(start: str, kind: str, end: str) -> dict[str, str]:
    return {"from": start, "to": end, "relationType": kind}


CALLS: list[Call] = [
    ("read_graph", {}),
    ("create_entities", {"entities": []}),
    ("create_entities", {"entities": [entity("Ada", "person", "Speaks Spanish", " odd ", "two\n\nlines", "")]}),
    ("create_entities", {"entities": [entity("Ada", "robot"), entity("ada", "Person"), entity("Acme Corp", "firm")]}),
    ("create_relations", {"relations": [relation("Ada", "works_at", "Acme Corp"), relation("Ghost", "haunts", "Ada")]}),
    ("create_relations", {"relations": [relation("Ada", "works_at", "Acme Corp"), relation("Ada", "[[x]]", "日本")]}),
    ("create_relations", {"relations": []}),
    ("create_entities", {"entities": [entity("Ghost", "spirit"), entity("日本", "", "国")]}),
    ("add_observations", {"observations": [{"entityName": "Ada", "contents": ["Likes tea", "Speaks Spanish"]}]}),
    ("add_observations", {"observations": [{"entityName": n, "contents": ["x"]} for n in ("Ada", "N")]}),
    ("search_nodes", {"query": "SPANISH"}),
    ("search_nodes", {"query": "firm"}),
    ("search_nodes", {"query": ""}),
    ("search_nodes", {"query": "nothing has this"}),
    ("open_nodes", {"names": ["Ghost", "Acme Corp", "Nobody"]}),
    ("open_nodes", {"names": []}),
    ("delete_observations", {"deletions": [{"entityName": "Ada", "observations": [" odd ", "gone"]}]}),
    ("delete_observations", {"deletions": [{"entityName": "Nobody", "observations": ["x"]}]}),
    ("delete_relations", {"relations": [relation("Ada", "works_at", "Acme Corp"), relation("a", "b", "c")]}),
    ("read_graph", {}),
    ("delete_entities", {"entityNames": ["Ada", "Nobody"]}),
    ("read_graph", {}),
    ("create_entities", {"entities": [entity("Ada", "person", "Speaks Spanish")]}),
    ("read_graph", {}),
]  # fmt: skip


@pytest.fixture
def reference(tmp_path: Path) -> StdioServerParameters:
    """The reference server, with a graph of its own."""
    node = next((str(path) for path in MODULES.glob("node-linux-*/bin/node")), shutil.which("node") or "")
    why = "" if SERVER.exists() and node else "`make node` has not installed the MCP reference memory server"
    if why and os.environ.get("CI"):
        pytest.fail(why)
    if why:
        pytest.skip(why)
    file = str(tmp_path / "memory.jsonl")
    return StdioServerParameters(command=node, args=[str(SERVER)], env={"MEMORY_FILE_PATH": file})


@pytest.fixture
def ours(tmp_path: Path) -> StdioServerParameters:
    folder = tmp_path / "project"
    folder.mkdir()
    Bank.init(folder)
    args = ["--bank", str(folder), "mcp", "--toolset", "knowledge-graph"]
    return StdioServerParameters(command=MEMLANE, args=args, env=dict(os.environ))


def answers(server: StdioServerParameters) -> tuple[dict[str, Any], list[Any]]:
    """What a server's tools look like, and what it answers to the calls: its text and its data."""

    async def run() -> tuple[dict[str, Any], list[Any]]:
        with open(os.devnull, "w") as nowhere:
            async with stdio_client(server, errlog=nowhere) as streams, ClientSession(*streams) as session:
                await session.initialize()
                listed = {tool.name: tool.model_dump(mode="json") for tool in (await session.list_tools()).tools}
                found = []
                for name, arguments in CALLS:
                    result = await session.call_tool(name, arguments)
                    found.append((result.content[0].text, result.structured_content, result.is_error))  # type: ignore[union-attr]
                return listed, found

    return anyio.run(run)


def in_order(data: Any) -> Any:
    """Relations of several entities have no order that counts."""
    if data and data.keys() == {"entities", "relations"}:
        return {**data, "relations": sorted(data["relations"], key=lambda relation: [*relation.values()])}
    return data


def without(schema: Any) -> Any:
    """A schema without what says the same in other words: its dialect, and whether it names all properties."""
    if isinstance(schema, list):
        return [without(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: without(value) for key, value in schema.items() if key not in ("$schema", "additionalProperties")}


def test_the_same_calls_have_the_same_answers(reference: StdioServerParameters, ours: StdioServerParameters) -> None:
    their_tools, theirs = answers(reference)
    our_tools, here = answers(ours)
    said = ("description", "input_schema", "output_schema", "annotations")
    for name, tool in their_tools.items():
        same = [{key: without(each[key]) for key in said} for each in (our_tools[name], tool)]
        same = [{**each, "annotations": {**each["annotations"], "title": None}} for each in same]
        assert same[0] == same[1], name
    assert len(their_tools) == 9
    for call, (our_text, our_data, our_error), (text, data, error) in zip(CALLS, here, theirs, strict=True):
        assert in_order(our_data) == in_order(data), call
        assert our_error == error, call
        assert our_text.startswith(text) if error else len(our_text) == len(text), call


def test_the_reference_servers_file_and_ours_hold_the_same_graph(
    reference: StdioServerParameters, ours: StdioServerParameters, tmp_path: Path
) -> None:
    """What its file says after these calls is what an import of it into another bank says."""
    _, theirs = answers(reference)
    other = tmp_path / "other"
    other.mkdir()
    Bank.init(other)
    subprocess.run([MEMLANE, "--bank", str(other), "import", str(tmp_path / "memory.jsonl")], check=True)
    from memlane.exchange import knowledge

    graph = knowledge.read(Bank.open(other))
    expected = theirs[-1][1]
    assert sorted(map(str, graph["entities"])) == sorted(map(str, expected["entities"]))
    assert sorted(map(str, graph["relations"])) == sorted(map(str, expected["relations"]))
