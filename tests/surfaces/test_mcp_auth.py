"""Who may use the server over HTTP, with the SDK's client and with an attacker's requests."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.provider import AccessToken
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from memlane import Bank
from memlane.surfaces import connections
from memlane.surfaces.mcp import http
from memlane.surfaces.mcp.server import build_server

JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Bank.init(tmp_path)
    return tmp_path


class Known:
    """A verifier of a few tokens: what each may do."""

    def __init__(self, url: str, **tokens: str) -> None:
        self.url, self.tokens = url, tokens

    async def verify_token(self, token: str) -> AccessToken | None:
        scopes = self.tokens.get(token)
        if scopes is None:
            return None
        return AccessToken(token=token, client_id=token, scopes=scopes.split(), resource=self.url)


@contextmanager
def served(folder: Path, *, names: tuple[str, ...] = (), **tokens: str) -> Iterator[str]:
    """The URL of a server in this process, for these tokens and their scopes."""
    with connections.opened("127.0.0.1", 0) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        routes = [Route("/hello", lambda _: PlainTextResponse("hello"))]
        verifiers = [Known(url, **tokens)] if tokens else []
        app = http.application(build_server(folder), names, url=url, verifiers=verifiers, routes=routes)
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield url
        finally:
            server.should_exit = True
            thread.join()


def sent(url: str, body: Any = INITIALIZE, **headers: str) -> tuple[int, dict[str, str]]:
    """The status and the headers of the answer to a request."""
    head = {**JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), head)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, dict(answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers)


def called(url: str, token: str, tool: str, era: str = "auto", **arguments: Any) -> Any:
    """The text of a tool's answer to the SDK's client."""

    async def run() -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as web,
            Client(streamable_http_client(url, http_client=web), mode=era) as client,
        ):
            result = await client.call_tool(tool, arguments)
            return result.content[0].text if result.is_error else result.structured_content

    return anyio.run(run)


def refused(url: str, token: str, tool: str, era: str = "auto", **arguments: Any) -> str:
    """What the SDK's client is told of a call that fails."""
    try:
        called(url, token, tool, era, **arguments)
    except Exception as error:
        return _told(error)
    raise AssertionError("it was not refused")


def _told(error: BaseException) -> str:
    inside = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return f"{error} {' '.join(map(_told, inside))}"


def test_a_request_without_a_token_is_told_where_to_get_one(folder: Path) -> None:
    with served(folder, ann="memory:read") as url:
        status, headers = sent(url)
        base = url.removesuffix("/mcp")
        metadata = f"{base}/.well-known/oauth-protected-resource/mcp"
        assert status == 401
        assert headers["www-authenticate"] == (
            'Bearer error="invalid_token", error_description="A bearer token is required.", '
            f'scope="memory:read", resource_metadata="{metadata}"'
        )
        with urllib.request.urlopen(metadata, timeout=30) as answer:
            said = json.loads(answer.read())
    assert said == {
        "resource": url,
        "authorization_servers": [base],
        "scopes_supported": ["memory:read"],
        "bearer_methods_supported": ["header"],
    }


@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_a_token_for_more_may_do_less_as_well(folder: Path, era: str) -> None:
    with served(folder, ann="memory:remove") as url:
        made = called(url, "ann", "remember", era, text="Deploys go out on Tuesdays.", title="Deploy day")
        found = called(url, "ann", "recall", era, query="deploys")
    assert (made["id"], found["ids"]) == ("notes:deploy-day", ["notes:deploy-day"])


def test_a_token_that_may_only_read_writes_nothing(folder: Path) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "remember", "arguments": {}}}
    with served(folder, ann="memory:read") as url:
        for era in ("legacy", "auto"):
            assert "may read, but not write" in refused(url, "ann", "remember", era, text="Deploys go out on Tuesdays.")
        version = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": "remember"}
        status, headers = sent(url, call, authorization="Bearer ann", **version)
    assert status == 403
    assert 'error="insufficient_scope"' in headers["www-authenticate"]
    assert 'scope="memory:write"' in headers["www-authenticate"]
    assert Bank.open(folder).list() == []


def test_only_one_authorization_header_counts_and_no_query(folder: Path) -> None:
    with served(folder, ann="memory:read") as url:
        assert sent(url, authorization="Bearer ann")[0] == 200
        assert sent(f"{url}?access_token=ann&token=ann")[0] == 401
        head = [*JSON.items(), ("Authorization", "Bearer ann"), ("Authorization", "Bearer ann")]
        assert httpx2.post(url, json=INITIALIZE, headers=head).status_code == 401


def test_a_page_behind_a_proxy_with_a_certificate_is_no_stranger(folder: Path) -> None:
    with served(folder, names=("mem.example.com",), ann="memory:read") as url:
        head = {"host": "mem.example.com", "authorization": "Bearer ann"}
        assert sent(url, origin="https://mem.example.com", **head)[0] == 200
        assert sent(url, origin="https://evil.example", **head)[0] == 403
        forwarded = {"x_forwarded_host": "mem.example.com", "x_forwarded_proto": "https", "forwarded": "host=mem"}
        assert sent(url, **{**head, "host": "evil.example"}, **forwarded)[0] == 421


def test_further_routes_need_no_token(folder: Path) -> None:
    with served(folder, ann="memory:read") as url:
        assert sent(url.replace("/mcp", "/hello"), None)[0] == 200
