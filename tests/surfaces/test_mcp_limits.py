"""How many requests and sessions one token may have, whatever its owner and others send."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx2
import pytest
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.types import Message, Receive, Scope, Send
from test_mcp_auth import sent, served

from memlane import Bank
from memlane.surfaces.mcp import http
from memlane.surfaces.mcp.auth import Guard, Limits


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Bank.init(tmp_path)
    return tmp_path


def test_too_many_requests_or_sessions_of_one_token_are_told_to_wait(folder: Path) -> None:
    limits = Limits(rate=8, sessions=2, idle=900)  # two at once
    with served(folder, limits=limits, ann="memory:read", bob="memory:read") as url:
        statuses = [sent(url, authorization="Bearer ann") for _ in range(3)]
        assert [status for status, _ in statuses] == [200, 200, 429]
        assert int(statuses[-1][1]["retry-after"]) in (7, 8)
        assert sent(url, authorization="Bearer bob")[0] == 200
    with served(folder, limits=Limits(rate=0, sessions=2, idle=900), ann="memory:read", bob="memory:read") as url:
        opened = [sent(url, authorization="Bearer ann") for _ in range(3)]
        assert [status for status, _ in opened] == [200, 200, 429]
        assert sent(url, authorization="Bearer bob")[0] == 200
        head = {"Authorization": "Bearer ann", "mcp-session-id": opened[0][1]["mcp-session-id"]}
        assert httpx2.request("DELETE", url, headers=head).status_code == 200
        assert sent(url, authorization="Bearer ann")[0] == 200


def test_a_session_counts_until_it_is_ended(folder: Path) -> None:
    """Neither a request that is refused in it, nor somebody else who names it, makes room for another one."""
    wrong = {"jsonrpc": "2.0", "nonsense": 1}
    with served(folder, limits=Limits(rate=0, sessions=1, idle=900), ann="memory:read", bob="memory:read") as url:
        session = sent(url, authorization="Bearer ann")[1]["mcp-session-id"]
        assert sent(url, wrong, authorization="Bearer ann", mcp_session_id=session)[0] == 400
        assert sent(url, authorization="Bearer ann")[0] == 429
        assert sent(url, wrong, authorization="Bearer bob", mcp_session_id=session)[0] == 404
        assert sent(url, authorization="Bearer ann")[0] == 429


def test_sessions_that_are_asked_for_at_once_count_at_once() -> None:
    async def story() -> list[int]:
        asked, statuses = asyncio.Event(), []

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            asked.set()
            await later.wait()
            await send({"type": "http.response.start", "status": 200, "headers": [(b"mcp-session-id", b"one")]})

        async def note(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        later = asyncio.Event()
        limits = Limits(rate=0, sessions=1, idle=900)
        guard = Guard(slow, http.PATH, "", http.right_of, limits, lambda *_: None)
        user = AuthenticatedUser(AccessToken(token="t", client_id="ann", scopes=["memory:read"]))
        scope = {"type": "http", "path": http.PATH, "method": "POST", "user": user}
        scope["headers"] = [(b"authorization", b"Bearer t")]
        first = asyncio.ensure_future(guard(scope, _nothing, note))
        await asked.wait()
        await guard(scope, _nothing, note)
        later.set()
        await first
        return statuses

    assert asyncio.run(story()) == [429, 200]


async def _nothing() -> Message:
    return {"type": "http.disconnect"}
