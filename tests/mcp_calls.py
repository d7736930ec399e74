"""Calls of the MCP server's tools by the SDK's own client, in memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio
from mcp import Client
from mcp.types import CallToolResult

from memlane.surfaces.mcp.server import build_server

T = TypeVar("T")
DEFAULT = [  # the tools that every server has, in their order
    "remember",
    "recall",
    "create_memory",
    "read_memory",
    "update_memory",
    "append_memory",
    "delete_memory",
    "search_memories",
    "search_linked_memories",
    "get_memory_stats",
    "merge_memories",
    "suggest_memory_merges",
    "list_memories",
    "edit_memory",
    "restore_memory",
]
ERAS = ("legacy", "2026-07-28")  # of the protocol


def with_client(folder: Path, steps: Callable[[Client], Awaitable[T]], era: str = "auto", **options: Any) -> T:
    """The result of what a client does with a server in memory."""

    async def run() -> T:
        async with Client(build_server(folder, **options), mode=era) as client:
            return await steps(client)

    return anyio.run(run)


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert content.type == "text"
    return content.text


def calls(folder: Path, *steps: tuple[str, dict[str, Any]], era: str = "auto", **options: Any) -> list[Any]:
    """The data of the answers to several calls in a row; for a failed call, its text."""

    async def run(client: Client) -> list[Any]:
        found = []
        for name, arguments in steps:
            result = await client.call_tool(name, arguments)
            if result.is_error:
                assert result.structured_content is None
                found.append(text_of(result))
            else:
                assert result.structured_content is not None
                assert not text_of(result).startswith(("{", "["))
                found.append(result.structured_content.get("result", result.structured_content))
        return found

    return with_client(folder, run, era, **options)


def call(folder: Path, name: str, /, *, more: tuple[str, ...] = (), **arguments: Any) -> Any:
    return calls(folder, (name, arguments), more=more)[0]


def definitions(folder: Path, **options: Any) -> list[dict[str, Any]]:
    async def run(client: Client) -> list[dict[str, Any]]:
        listed = await client.list_tools()
        return [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in listed.tools]

    return with_client(folder, run, **options)
