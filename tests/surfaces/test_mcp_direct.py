"""The short way for calls of tools over HTTP: the bytes of the SDK's way, and nothing that it refuses."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Message

from memlane import Bank
from memlane.surfaces import mcp
from memlane.surfaces.mcp import answers, auth, direct, http
from memlane.surfaces.mcp.calls import Call
from memlane.surfaces.mcp.metrics import Metrics
from memlane.surfaces.mcp.server import BankServer, build_server

VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
Answered = tuple[int, dict[bytes, bytes], bytes]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Bank.init(tmp_path) as bank:
        bank.add("Deploys go out on Tuesdays, says Zoë.", title="Deploy day")
    return tmp_path


def message(name: str = "search_memories", *, meta: Any = META, **given: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": {"query": "deploys"}, "_meta": meta, **given.pop("params", {})}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params, **given}


def headers(name: str = "search_memories", **other: str) -> list[tuple[bytes, bytes]]:
    given = {
        "host": "127.0.0.1",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": VERSION,
        "mcp-method": "tools/call",
        "mcp-name": name,
        **{key.replace("_", "-"): value for key, value in other.items()},
    }
    return [(key.encode(), value.encode()) for key, value in given.items() if value]


async def sent(app: ASGIApp, body: bytes, head: list[tuple[bytes, bytes]], gone: anyio.Event | None = None) -> Answered:
    """The status, the headers and the body of the answer; the client goes away when it is told to."""
    scope = {
        "type": "http", "method": "POST", "path": "/mcp", "raw_path": b"/mcp", "query_string": b"", "headers": head,
        "http_version": "1.1", "scheme": "http", "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1),
        "root_path": "",
    }  # fmt: skip
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    out: list[Message] = []
    over = gone or anyio.Event()

    async def receive() -> Message:
        if waiting:
            return waiting.pop()
        await over.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        out.append(message)

    await app(scope, receive, send)
    if not out:
        return 0, {}, b""
    return out[0]["status"], dict(out[0]["headers"]), b"".join(part.get("body", b"") for part in out[1:])


def served(folder: Path, **options: Any) -> tuple[ASGIApp, BankServer, list[Call]]:
    """An application, its server, and the calls that went the short way."""
    server, short = build_server(folder), []
    app = http.application(server, ["127.0.0.1"], **options)
    answered = server.answered

    def noting(call: Call, progress: Any) -> Awaitable[Any]:
        short.append(call)
        return answered(call, progress)

    server.answered = noting
    return app, server, short


def both(folder: Path, requests: Iterable[tuple[bytes, list[tuple[bytes, bytes]]]]) -> list[tuple[bool, bool, int]]:
    """Of each request, whether it went the short way, whether the SDK answers it with the same, and the status."""

    async def run() -> list[tuple[bool, bool, int]]:
        app, server, short = served(folder)
        plain = build_server(folder)
        theirs = build_plain(plain)
        found = []
        async with server.session_manager.run(), plain.session_manager.run():
            for body, head in requests:
                before = len(short)
                ours = await sent(app, body, head)
                found.append((len(short) > before, ours == await sent(theirs, body, head), ours[0]))
        return found

    return anyio.run(run)


def build_plain(server: BankServer) -> ASGIApp:
    """The SDK's application of a server, without the short way."""
    security = TransportSecuritySettings(allowed_hosts=["127.0.0.1"], allowed_origins=[])
    return server.streamable_http_app(streamable_http_path="/mcp", transport_security=security)


def test_an_answer_has_the_same_bytes_on_either_way(folder: Path) -> None:
    without_info = {key: value for key, value in META.items() if "clientInfo" not in key}
    calls = [
        message(),
        message(id="a \u00e9"),
        message(meta=without_info),
        message(params={"arguments": {"query": "nothing like it at all", "limit": 1}}),
        message(params={"arguments": {"limit": 1}}),  # a sentence on what is missing
        message(params={"arguments": None}),
        message("read_memory", params={"arguments": {"id": "deploy-day"}}),
        message("read_memory", params={"arguments": {"id": "none-of-this-name"}}),
        message("recall"),
        message("remember", params={"arguments": {"text": "Deploys go out on Tuesdays, says Zoë."}}),  # it is there
        message("create_memory", params={"arguments": {"filename": "deploy-day.md", "content": "No.", "tags": []}}),
        message("delete_memory", params={"arguments": {"filename": "none-of-this-name"}}),
        message(meta={**META, "progressToken": "a"}),
    ]
    requests = [(json.dumps(call).encode(), headers(call["params"]["name"])) for call in calls]
    assert both(folder, requests) == [(True, True, 200)] * len(calls)


def test_what_the_sdk_refuses_is_refused(folder: Path) -> None:
    plain = json.dumps(message()).encode()
    asked = [
        (plain, headers(host="evil.example"), 421),
        (plain, headers(origin="http://evil.example"), 403),
        (plain, headers(content_type="text/plain"), 400),
        (plain, headers(accept="application/json"), 406),
        (plain, headers("recall"), 400),
        (plain, headers(mcp_method="tools/list"), 400),
        (plain, [*headers(), (b"mcp-name", b"search_memories")], 400),
        (plain, [*headers(), (b"mcp-name", b"recall")], 400),
        (b"{", headers(), 400),
        (b"[%b]" % plain, headers(), 400),
        (json.dumps(message(id=True)).encode(), headers(), 400),
        (json.dumps(message(id=None)).encode(), headers(), 400),
        (json.dumps(message(jsonrpc="1.0")).encode(), headers(), 400),
        (json.dumps(message(meta=None)).encode(), headers(), 400),
        (json.dumps(message(meta={**META, "io.modelcontextprotocol/protocolVersion": "2"})).encode(), headers(), 400),
        (json.dumps(message(meta={**META, "io.modelcontextprotocol/clientInfo": 7})).encode(), headers(), 400),
        (json.dumps(message(params={"arguments": ["query"]})).encode(), headers(), 400),
        (json.dumps(message(params={"name": 7})).encode(), headers(), 400),
    ]
    found = both(folder, [(body, head) for body, head, _ in asked])
    assert found == [(False, True, status) for _, _, status in asked]


def test_what_is_no_plain_call_goes_the_way_of_the_sdk(folder: Path) -> None:
    asked = [
        (json.dumps({**message(), "method": "tools/list"}).encode(), headers(mcp_method="tools/list", mcp_name="")),
        (json.dumps(message("no_such_tool")).encode(), headers("no_such_tool")),
    ]
    assert [(short, same) for short, same, _ in both(folder, asked)] == [(False, True)] * 2


def test_a_write_is_told_to_the_audit_log_also_when_its_client_goes_away(folder: Path) -> None:
    noted: list[tuple[str, str, str, list[str]]] = []
    text = {"text": "Rollbacks are on Fridays.", "title": "Rollback day"}

    async def run() -> None:
        server = build_server(folder)
        security = TransportSecuritySettings(allowed_hosts=["127.0.0.1"], allowed_origins=[])
        inside = server.answered
        gone = anyio.Event()

        async def slowly(call: Call, progress: Any) -> Any:
            gone.set()
            for _ in range(50):
                await anyio.sleep(0)
            return await inside(call, progress)

        server.answered = slowly
        note = lambda who, what, outcome, ids: noted.append((who, what, outcome, [*ids]))  # noqa: E731
        app = with_token(direct.answering(build_plain(server), server, security, None, note), "ann", "write")
        async with server.session_manager.run():
            await sent(
                app, json.dumps(message("remember", params={"arguments": text})).encode(), headers("remember"), gone
            )

    anyio.run(run)
    assert noted == [("ann", "remember", "ok", ["notes:rollback-day"])]


def test_who_may_only_read_does_not_get_a_write_onto_the_short_way(folder: Path) -> None:
    went: list[str] = []

    async def sdk(scope: Any, receive: Any, send: Any) -> None:
        went.append(dict(scope["headers"])[b"mcp-name"].decode())

    async def run() -> None:
        server = build_server(folder)
        security = TransportSecuritySettings(allowed_hosts=["127.0.0.1"], allowed_origins=[])
        app = with_token(direct.answering(sdk, server, security, None, lambda *_: None), "ann", "read")
        for tool in ("remember", "search_memories", "delete_memory"):
            await sent(app, json.dumps(message(tool)).encode(), headers(tool))

    anyio.run(run)
    assert went == ["remember", "delete_memory"]


def with_token(app: ASGIApp, name: str, right: str) -> ASGIApp:
    """The application for who has a token of this name."""
    token = AccessToken(token="", client_id=name, subject=name, scopes=auth.scopes_of(right, None))

    async def known(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "user": AuthenticatedUser(token)}, receive, send)

    return known


def test_a_call_is_counted_on_either_way(folder: Path) -> None:
    async def run() -> list[str]:
        metrics = Metrics(http._tools(), ["/mcp"], clock=lambda: 0.0)
        app, server, short = served(folder, metrics=metrics)
        async with server.session_manager.run(), Client(server) as client:
            for tool, arguments in (("search_memories", {"query": "deploys"}), ("read_memory", {"id": "none"})):
                await sent(app, json.dumps(message(tool, params={"arguments": arguments})).encode(), headers(tool))
                await client.call_tool(tool, arguments)
        assert [call.tool for call in short] == ["search_memories", "read_memory"]
        return [line for line in metrics.text({}).splitlines() if line.startswith("memlane_calls_total")]

    assert anyio.run(run) == [
        'memlane_calls_total{tool="read_memory",outcome="failed"} 2',
        'memlane_calls_total{tool="search_memories",outcome="ok"} 2',
    ]


def asked_slowly(folder: Path, answer: Callable[[anyio.Event], Awaitable[answers.Answer]]) -> Answered:
    """What comes of a call whose client goes away as soon as the event is set."""

    async def run() -> Answered:
        app, server, _ = served(folder)
        gone = anyio.Event()
        server.answered = lambda *_: answer(gone)
        async with server.session_manager.run():
            with anyio.fail_after(30):
                return await sent(app, json.dumps(message()).encode(), headers(), gone)

    return anyio.run(run)


def test_who_waits_long_is_told_that_there_will_be_an_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "PING", 0.0)

    async def slow(gone: anyio.Event) -> answers.Answer:
        for _ in range(50):
            await anyio.sleep(0)
        return answers.Answer("At last.")

    status, head, body = asked_slowly(folder, slow)
    pings, _, event = body.partition(b"event: message\r\ndata: ")
    assert (status, head[b"content-type"], set(pings.split(b"\r\n\r\n"))) == (
        200,
        b"text/event-stream",
        {b": ping", b""},
    )
    assert json.loads(event)["result"]["content"] == [{"text": "At last.", "type": "text"}]


def test_progress_is_told_as_the_sdk_tells_it(folder: Path) -> None:
    async def run() -> list[tuple[bytes, ...]]:
        found = []
        for make in (lambda server: http.application(server, ["127.0.0.1"]), build_plain):
            server = build_server(folder)
            app = make(server)
            handler = server.get_request_handler("tools/call")
            assert handler

            async def slow(call: Call, report: Any) -> answers.Answer:
                await report(500, 1000)
                await report(1000, 1000)
                return answers.Answer("At last.", {"result": []})

            handler.handler.__self__.answered = slow  # type: ignore[attr-defined]
            server.answered = slow
            async with server.session_manager.run():
                call = message(meta={**META, "progressToken": 7})
                status, head, body = await sent(app, json.dumps(call).encode(), headers())
                found.append((b"%d" % status, head[b"content-type"], body))
        return found

    ours, theirs = anyio.run(run)
    assert ours == theirs
    assert ours[2].count(b"notifications/progress") == 2


def test_nobody_goes_on_for_a_client_that_has_gone_away(folder: Path) -> None:
    ended = []

    async def endless(gone: anyio.Event) -> answers.Answer:
        gone.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(True)

    assert (asked_slowly(folder, endless), ended) == ((0, {}, b""), [True])


def test_a_number_that_json_has_no_word_for_is_null() -> None:
    answer = answers.Answer("text", {"result": [float("nan"), 1.5], "x": None})
    assert answers.unpacked(answers.packed(answer)).data == {"result": [None, 1.5], "x": None}


def test_with_an_sdk_that_is_built_otherwise_calls_are_answered_all_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def status() -> tuple[int, int]:
        app, server, short = served(folder)
        async with server.session_manager.run():
            return (await sent(app, json.dumps(message()).encode(), headers()))[0], len(short)

    assert anyio.run(status) == (200, 1)
    monkeypatch.setitem(sys.modules, "memlane.surfaces.mcp.direct", None)
    monkeypatch.delattr(mcp, "direct")
    assert anyio.run(status) == (200, 0)
