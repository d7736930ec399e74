"""What was done with tokens is written down: by whom, with which tool, which memories, and never a word of them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from test_mcp_auth import called, commanded, refused, root

from memlane import Bank
from memlane.config import tokens, user_state
from memlane.core.access import Access
from memlane.disk import audit_log
from memlane.surfaces import connections


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Bank.init(tmp_path)
    return tmp_path


def test_what_is_done_with_tokens_is_written_down_without_a_word_of_it(folder: Path) -> None:
    bank = root(folder)
    token = tokens.add(bank, Access("ann", "write"))
    with connections.opened("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    secret = "The zanzibar account is closed."
    with commanded(folder, "--port", str(port)) as url:
        called(url, token, "remember", "legacy", text=secret, title="Account")
        refused(url, token, "delete_memory", filename="account")
        refused(url, token, "delete_memory", "legacy", filename="account")
    lines = list(audit_log.lines(user_state(), bank))
    assert [(line["who"], line["what"], line["outcome"], line["ids"]) for line in lines] == [
        ("ann", "remember", "ok", ["notes:account"]),
        ("ann", "delete_memory", "refused", []),
        ("ann", "delete_memory", "refused", []),
    ]
    [file] = (user_state() / audit_log.FOLDER).iterdir()
    assert (file.stat().st_mode & 0o777, "zanzibar" in file.read_text()) == (0o600, False)


@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_the_log_has_one_name_for_a_memory_whatever_the_tools_call_it(folder: Path, era: str) -> None:
    bank = root(folder)
    token = tokens.add(bank, Access("ann", "remove"))

    async def read(url: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=120) as web,
            Client(streamable_http_client(url, http_client=web), mode=era) as client,
        ):
            await client.read_resource("memory://memory/team/plan")

    with commanded(folder, "--port", "0", "--toolset", "vault") as url:
        call = partial(called, url, token, era=era)
        call("create_memory", filename="team/plan.md", content="Deploys go out on Tuesdays.", tags=["ops"])
        call("read_memory", filename="plan")
        call("search_memories", query="deploys")
        call("recall", query="deploys")
        anyio.run(read, url)
        call("delete_memory", filename="memory:team/plan")
        id = call("vault_add_memory", text="Ship it.", scope="shared", category="goal")["id"]
        call("vault_bulk_delete", ids=[id])
    lines = list(audit_log.lines(user_state(), bank))
    assert [(line["what"], line["ids"]) for line in lines] == [
        *((tool, ["notes:team/plan"]) for tool in ("create_memory", "read_memory", "search_memories", "recall")),
        *((what, ["notes:team/plan"]) for what in ("resources/read", "delete_memory")),
        *((tool, [f"vault:{id}"]) for tool in ("vault_add_memory", "vault_bulk_delete")),
    ]


def test_the_log_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "LARGE", 1000)
    for number in range(200):
        audit_log.note(user_state(), folder, who="ann", what=f"call {number}", outcome="ok", ids=["x" * 50])
    found = [line["what"] for line in audit_log.lines(user_state(), folder)]
    assert (found[-1], len(found) < 60) == ("call 199", True)
    assert len(list((user_state() / audit_log.FOLDER).iterdir())) <= audit_log.KEPT
