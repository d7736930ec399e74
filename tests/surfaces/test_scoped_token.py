"""A token that is limited to scopes, as an agent meets it: what it is offered works, and the rest says what does."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from test_mcp_auth import served

from memlane import Bank, MemlaneError
from memlane.bank.limited import Limited
from memlane.care import sync
from memlane.config import trust, user_state
from memlane.config.settings import TOOLSETS
from memlane.core.access import Access
from memlane.exchange import remotes
from memlane.lanes.limited import NotAllowed
from memlane.surfaces.mcp import answers, toolsets
from memlane.surfaces.mcp.scoped import IN_SCOPES

TOOLS = {tool.name: tool for tool in toolsets.tools(TOOLSETS)}
WORKING: dict[str, dict[str, Any]] = {
    "remember": {"text": "Refunds take two days."},
    "recall": {"query": "invoices"},
    "create_memory": {"filename": "carts.md", "content": "Carts roll.", "tags": []},
    "read_memory": {"filename": "invoices"},
    "update_memory": {"filename": "invoices", "content": "Invoices are in Postgres."},
    "append_memory": {"filename": "invoices", "content": "Paid ones, too."},
    "search_memories": {"query": "postgres"},
    "search_linked_memories": {"query": "", "target_document": "notes:invoices"},
    "get_memory_stats": {},
    "suggest_memory_merges": {},
    "list_memories": {},
    "edit_memory": {"id": "invoices", "old": "Paid ones", "new": "Unpaid ones"},
    "get_memory": {"id": "invoices"},
    "read_graph": {},
    "search_nodes": {"query": "invoices"},
    "open_nodes": {"names": ["Invoices"]},
    "delete_memory": {"filename": "scopes/billing/carts"},
    "restore_memory": {"id": "scopes/billing/carts"},
    "remove_memory": {"id": "scopes/billing/carts", "expected": ""},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Bank.init(tmp_path) as bank:
        bank.add("Invoices are kept in Postgres.", title="Invoices", scope="billing")
        bank.add("The plan is secret.", title="Plan", scope="skunk")
    sets = ", ".join(f'"{name}"' for name in TOOLSETS)
    (tmp_path / "memlane.toml").write_text(f"[memory]\nenabled = true\n\n[mcp]\ntoolsets = [{sets}]\n")
    trust.record(user_state(), tmp_path / "memlane.toml")
    return tmp_path


def connected(folder: Path, scopes: str, run: Callable[[Any], Any], era: str = "auto") -> Any:
    """What a client of the SDK finds out with a token of these scopes."""

    async def whole(url: str) -> Any:
        async with (
            httpx2.AsyncClient(headers={"Authorization": "Bearer ann"}, timeout=120) as web,
            Client(streamable_http_client(url, http_client=web), mode=era) as client,
        ):
            return await run(client)

    with served(folder, ann=scopes) as url:
        return anyio.run(whole, url)


def test_every_tool_that_is_offered_works(folder: Path) -> None:
    async def run(client: Any) -> Any:
        offered = [tool.name for tool in (await client.list_tools()).tools]
        answers = {}
        for tool, arguments in WORKING.items():
            if "expected" in arguments:
                read = await client.call_tool("get_memory", {"id": arguments["id"]})
                arguments = arguments | {"expected": read.structured_content["version"]}
            answers[tool] = await client.call_tool(tool, arguments)
        return offered, {tool: given.content[0].text for tool, given in answers.items() if given.is_error}

    offered, failed = connected(folder, "memory:remove memory:in:billing", run)
    assert failed == {}
    assert sorted(offered) == sorted(IN_SCOPES) == sorted(WORKING)


def test_every_other_tool_says_which_one_does_it(folder: Path) -> None:
    calls: dict[str, dict[str, Any]] = {
        "topics_store": {"topic": "auth/login", "content": "x"},
        "vault_add_memory": {"text": "x", "type": "fact"},
        "vault_search_memories": {"query": "x"},
        "merge_memories": {"source_files": ["a.md"], "target_file": "b.md", "summary_content": "x"},
    }

    async def run(client: Any) -> Any:
        return [(await client.call_tool(tool, arguments)).content[0].text for tool, arguments in calls.items()]

    stores = (
        "is not for a token that is limited to scopes. `remember` stores it as a note, without lane, tier and topic_id."
    )
    assert connected(folder, "memory:remove memory:in:billing", run) == [
        f"topics_store {stores}",
        f"vault_add_memory {stores}",
        (
            "vault_search_memories is not for a token that is limited to scopes. `recall`, `search_memories` and "
            "`list_memories` show all that it may see, of every lane."
        ),
        (
            "merge_memories is not for a token that is limited to scopes. `edit_memory`, `update_memory` and "
            "`delete_memory` change the notes that it may see."
        ),
    ]


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_the_instructions_say_what_holds_for_the_token(folder: Path, era: str) -> None:
    async def run(client: Any) -> Any:
        return client.instructions

    some = connected(folder, "memory:write memory:in:billing memory:in:team/*", run, era)
    whole = connected(folder, "memory:write", run, era)
    assert ["scopes alone: billing, team/*." in said for said in (some, whole)] == [True, False]
    assert ["tier canon" in said for said in (some, whole)] == [False, True]


@pytest.mark.parametrize("right", ["read", "write", "remove"])
@pytest.mark.parametrize("scopes", ["", " memory:in:billing"])
def test_the_instructions_name_no_tool_that_is_not_offered(folder: Path, right: str, scopes: str) -> None:
    async def run(client: Any) -> Any:
        return client.instructions, {tool.name for tool in (await client.list_tools()).tools}

    said, offered = connected(folder, f"memory:{right}{scopes}", run)
    assert set(re.findall("`([a-z]+(?:_[a-z]+)*)`", said)) - offered - {"scope"} == set()
    assert ("Store as you go" in said, "delete what is wrong" in said) == (right != "read", right == "remove")


def test_the_bank_itself_refuses_what_is_not_offered(folder: Path) -> None:
    """What is offered is for agents; it is no wall."""
    part = Limited(Bank.open(folder).config, Access("ann", "remove", ("billing",)))
    samples: dict[str, Any] = {
        "vault_bulk_add": {"items": [{"text": "x"}]}, "put_memory": {"key": "x", "text": "y"},
        "rename_memory": {"id": "invoices", "new": "x"},
        "create_entities": {"entities": [{"name": "x", "entityType": "y", "observations": []}]},
        "create_relations": {"relations": [{"from": "x", "to": "y", "relationType": "z"}]},
        "add_observations": {"observations": [{"entityName": "x", "contents": ["y"]}]},
        "delete_observations": {"deletions": [{"entityName": "x", "observations": ["y"]}]},
        "delete_relations": {"relations": [{"from": "x", "to": "y", "relationType": "z"}]},
    }  # fmt: skip
    passed = []
    for name, tool in TOOLS.items():
        if name in IN_SCOPES:
            continue
        required = tool.definition.input_schema.get("required", ())
        kinds = tool.definition.input_schema["properties"]
        given = samples.get(name) or {each: _some(kinds[each]) for each in required}
        try:
            tool.run(part, **tool.checked(given))
            passed.append(name)
        except NotAllowed:
            continue
        except MemlaneError as error:
            passed.append(f"{name}: {error}")
    assert passed == []


def _some(kind: dict[str, Any]) -> Any:
    if "enum" in kind:
        return kind["enum"][0]
    return {"array": ["x"], "integer": 1, "number": 1, "boolean": True, "object": {}}.get(kind.get("type", ""), "x")


def test_a_token_for_all_names_that_begin_alike_is_asked_for_one(folder: Path) -> None:
    part = Limited(Bank.open(folder).config, Access("ann", "write", ("team/*",)))
    for scope in (None, "team/*"):
        with pytest.raises(NotAllowed) as refused:
            part.add("Where does it go?", scope=scope)
        assert refused.value.hint == "Give one of its scopes: team/NAME."
    assert part.add("There it goes.", scope="team/one").scope == "team/one"


def test_what_such_a_token_writes_goes_to_the_remotes_and_no_error_names_anything_else(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    remote = tmp_path_factory.mktemp("remote")
    (folder / "memlane.toml").write_text('[memory]\nenabled = true\nsync = "on-write"\n')
    trust.record(user_state(), folder / "memlane.toml")
    with Bank.open(folder) as bank:
        sync.add(bank, "team", str(remote))
        sync.sync(bank)

    async def run(client: Any) -> Any:
        first = await client.call_tool("remember", {"text": "Refunds take two days."})
        remote.rename(remote.with_name("away"))
        second = await client.call_tool("remember", {"text": "Carts expire after a day."})
        return first.is_error, second.content[0].text

    assert connected(folder, "memory:write memory:in:billing", run) == (
        False,
        "Stored here, not yet at the remote. Do not store it again: the next sync sends it.",
    )
    with closing(remotes.opened(str(remote.with_name("away")))) as there:
        paths = [entry.path for page, _ in there.changes("") for entry in page]
    assert sorted(paths) == ["invoices.md", "plan.md", "scopes/billing/refunds-take-two-days.md"]


def test_no_answer_tells_where_the_bank_lies_on_the_server(folder: Path) -> None:
    ann = Access("ann", "remove", ("billing",))
    with Bank.open(folder) as whole, closing(Limited(whole.config, ann)) as part:
        told = {
            name: answers.answer(part, TOOLS[name], given, "client", TOOLS, ann)
            for name, given in WORKING.items()
            if name != "remove_memory"
        }
    assert {name for name, given in told.items() if str(folder) in f"{given.text} {given.data}"} == set()
    assert told["read_memory"].data is not None
    assert told["read_memory"].data["path"] == ".memories/invoices.md"
