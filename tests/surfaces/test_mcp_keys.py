"""What programs need over MCP: names of their own, versions, filters on fields, times that end, and what changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from memlane import Bank
from memlane.surfaces.mcp.server import build_server

Call = Callable[..., Any]


@pytest.fixture
def call(bank: Bank, tmp_path: Path) -> Call:
    """Call a tool of a server with the toolset `keys`: its data, or the text of a failure."""

    def called(name: str, /, **arguments: Any) -> Any:
        async def run() -> Any:
            async with Client(build_server(tmp_path, more=("keys",))) as client:
                result = await client.call_tool(name, arguments)
                data = result.structured_content
                return result.content[0].text if data is None else data.get("result", data)  # type: ignore[union-attr]

        return anyio.run(run)

    return called


def test_a_note_of_a_key_is_made_replaced_and_renamed(bank: Bank, call: Call) -> None:
    made = call("put_memory", key="on-call", text="Maria.", extra={"month": 3}, expected="")
    assert made == {
        "memory_id": "memory:on-call",
        "version": bank.get("on-call").version,
        "path": str(bank.root / "on-call.md"),
        "remarks": [],
    }
    assert "is there already" in call("put_memory", key="on-call", text="Ben.", expected="")
    again = call("put_memory", key="on-call", text="Ben.", expected=made["version"])
    assert call("put_memory", key="on-call", text="Ann.", expected=made["version"]).startswith(
        "notes:on-call is not as"
    )
    moved = call("rename_memory", id="memory:on-call", new="team/on-call")
    assert (moved["memory_id"], moved["version"]) == ("memory:team/on-call", bank.get("team/on-call").version)
    assert again["version"] != made["version"]


def test_a_note_is_read_renamed_and_removed_by_its_key(bank: Bank, call: Call) -> None:
    made = call("put_memory", key="Alice@x", text="Prefers tea.", scope="private")
    assert made["memory_id"].startswith("memory:private/alice-x-")
    assert call("get_memory", key="Alice@x")["memory_id"] == made["memory_id"]
    assert call("rename_memory", key="Alice@x", new="alice")["memory_id"] == "memory:private/alice"
    version = call("get_memory", key="alice")["version"]
    assert call("remove_memory", key="alice", expected=version)["status"] == "deleted"
    assert call("get_memory", key="alice").startswith("There is no note under the key alice.")
    assert call("get_memory").startswith("An id or a key is needed")


@pytest.mark.parametrize("lane", ["notes", "vault"])
def test_what_somebody_else_has_changed_is_not_removed(bank: Bank, call: Call, lane: str) -> None:
    made = bank.add("Deploys go out on Tuesdays.", lane=lane, type="rule" if lane == "vault" else None)
    got = call("get_memory", id=made.id)
    assert (got["version"], got["text"], got["fields"]) == (bank.get(made.id).version, made.text, dict(made.fields))
    bank.append(made.id, "Or not.")
    assert "is not as it was expected" in call("remove_memory", id=made.id, expected=got["version"])
    version = call("get_memory", id=made.id)["version"]
    assert call("remove_memory", id=made.id, expected=version)["status"] == "deleted"


def test_searches_and_lists_filter_by_fields_and_by_the_beginning_of_a_scope(bank: Bank, call: Call) -> None:
    bank.add("Ann likes tea.", title="ann", extra={"level": 3}, scope="team/a")
    bank.add("Bob drinks tea, too, at noon.", title="bob", extra={"level": 7}, scope="team/b")
    bank.add("Cem has tea at night and coffee at dawn.", title="cem", scope="other")
    high: dict[str, Any] = {"level": {"$gte": 5}}
    assert [hit["memory_id"] for hit in call("search_memories", query="tea", where=high)] == ["memory:bob"]
    assert [one["memory_id"] for one in call("list_memories", where=high)["memories"]] == ["memory:bob"]
    assert call("recall", query="who likes tea?", where=high)["ids"] == ["notes:bob"]
    assert {one["title"] for one in call("list_memories", scope="team/*")["memories"]} == {"ann", "bob"}
    assert len(call("search_memories", query="tea", scope="team/*")) == 2
    assert "has an operator that there is not" in call("search_memories", query="tea", where={"level": {"$x": 1}})


def test_what_is_remembered_for_a_while_is_gone_after_it(bank: Bank, call: Call) -> None:
    made = call("remember", text="The staging server is down.", expires="2020-01-01")
    assert call("search_memories", query="staging server") == []
    assert "expired on 2020-01-01" in call("read_memory", filename=made["id"])
    assert call("restore_memory", id=made["id"])["remarks"] == ["it had expired, and does not any more"]
    assert "is down" in call("read_memory", filename=made["id"])["content"]


def test_what_changed_since_the_last_call(bank: Bank, call: Call) -> None:
    start = call("memory_changes", since="now")["cursor"]
    call("put_memory", key="on-call", text="Maria.")
    bank.add("Herons stand.", title="heron")
    bank.delete("notes:heron")
    news = call("memory_changes", since=start)
    assert [(one["memory_id"], one["verb"], one["version"] is None) for one in news["changes"]] == [
        ("memory:on-call", "put_memory", False),
        ("memory:heron", "add", True),
        ("memory:heron", "delete", True),
    ]
    assert news["remark"] == f'Go on with since="{news["cursor"]}".'
    assert call("memory_changes", since=news["cursor"])["changes"] == []
    assert call("memory_changes", since="99-0")["complete"] is False
