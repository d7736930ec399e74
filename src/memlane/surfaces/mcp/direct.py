"""The short way for calls of tools: the SDK's takes longer than a search itself.

A request is checked by the SDK's own rules, those of its headers, its envelope and its parameters. What does not pass
them, and what is no plain call of a tool in the newest revision of the protocol, goes the SDK's way, which says what is
wrong. Who is answered gets the same bytes on either way.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import NamedTuple

from anyio import CancelScope
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.streamable_http import check_accept_headers
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp.shared.inbound import InboundModernRoute, classify_inbound_request, find_duplicated_routing_header
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.types import CallToolRequestParams
from mcp_types import CLIENT_INFO_META_KEY, SERVER_INFO_META_KEY, JSONRPCRequest
from mcp_types.methods import validate_client_request
from opentelemetry import trace
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memlane import gate
from memlane.core.access import EVERYTHING, Access
from memlane.core.invisible import visible
from memlane.surfaces.mcp import answers
from memlane.surfaces.mcp.answers import Packed
from memlane.surfaces.mcp.auth import WITHOUT_SESSIONS, Note, access_of
from memlane.surfaces.mcp.calls import Call
from memlane.surfaces.mcp.metrics import Metrics, outcome
from memlane.surfaces.mcp.server import BankServer, progress
from memlane.surfaces.mcp.tools import Tool

METHOD = "tools/call"
PING = 15.0  # seconds without an answer after which the client is told that there will be one, as the SDK does
SHORT = 200  # characters of a name that are worth to be remembered
_PLAIN = {b"mcp-method": METHOD.encode(), b"mcp-protocol-version": WITHOUT_SESSIONS.encode()}
_STREAM = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
]


class Asked(NamedTuple):
    """A call, the number that its answer must have, and what progress is to be told by, if it is."""

    id: int | str
    call: Call
    token: int | str | None


class Stream:
    """An answer in pieces, for who waits long. Nothing is sent before the first of them."""

    def __init__(self, send: Send) -> None:
        self._send, self._one_at_a_time = send, asyncio.Lock()
        self.begun = False

    async def put(self, piece: bytes, *, more: bool = True) -> None:
        async with self._one_at_a_time:
            if not self.begun:
                await self._send({"type": "http.response.start", "status": 200, "headers": _STREAM})
                self.begun = True
            await self._send({"type": "http.response.body", "body": piece, "more_body": more})

    async def say(self, message: bytes, *, more: bool = True) -> None:
        await self.put(b"event: message\r\ndata: %b\r\n\r\n" % message, more=more)


def answering(
    app: ASGIApp,
    server: BankServer,
    security: TransportSecuritySettings,
    metrics: Metrics | None = None,
    note: Note | None = None,
) -> ASGIApp:
    """The SDK's application behind the short way. With `note`, only who has a token goes it, and that is noted."""
    checks = TransportSecurityMiddleware(security)
    stamp = json.dumps({SERVER_INFO_META_KEY: server.server_info_stamp}, separators=(",", ":"))[1:-1].encode()
    tools = {name.encode(): tool for name, tool in server.tools.items()}

    async def short(scope: Scope, receive: Receive, send: Send) -> None:
        tool = _called(scope, tools)
        access = _access(scope, tool, with_token=note is not None) if tool else None
        if access is None or _is_traced():
            await app(scope, receive, send)
            return
        message = await receive()
        asked = None
        if message["type"] == "http.request" and not message.get("more_body"):
            asked = await _asked(Request(scope), message["body"], checks, access)
        if asked is None:
            await app(scope, _again(message, receive), send)
            return
        stream = Stream(send)
        given = await _awaited(server, asked, metrics, receive, stream)
        if given is None:
            return
        if note is not None:
            note(access.name, asked.call.tool, "failed" if given.failed else "ok", given.ids)
        body = _body(asked.id, given, stamp)
        await (stream.say(body, more=False) if stream.begun else _send(body, send))

    return short


def _access(scope: Scope, tool: Tool, *, with_token: bool) -> Access | None:
    """What whoever asks may do; None where he may not call this tool."""
    if not with_token:
        return EVERYTHING
    user = scope.get("user")
    access = access_of(user.access_token) if isinstance(user, AuthenticatedUser) else None
    return access if access and access.may(tool.right) else None


def _called(scope: Scope, tools: Mapping[bytes, Tool]) -> Tool | None:
    """The tool that a request in the newest revision says that it calls; None where it is another one."""
    said = dict(scope["headers"])
    plain = scope["method"] == "POST" and all(said.get(name) == value for name, value in _PLAIN.items())
    return tools.get(said.get(b"mcp-name", b"")) if plain else None


def _is_traced() -> bool:
    """Whether somebody follows calls by OpenTelemetry, of which the SDK tells."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


async def _asked(request: Request, body: bytes, checks: TransportSecurityMiddleware, access: Access) -> Asked | None:
    """The call in a request; None where the SDK would not answer it."""
    if await checks.validate_request(request, is_post=True) is not None:
        return None
    headers = request.headers
    if check_accept_headers(request) != (True, True) or find_duplicated_routing_header(headers.items()) is not None:
        return None
    try:
        decoded = json.loads(body)
        message = JSONRPCRequest.model_validate(decoded)
        route = classify_inbound_request(decoded, headers=dict(headers))
        params = message.params
        if params is None or not isinstance(route, InboundModernRoute) or message.method != METHOD:
            return None
        validate_client_request(METHOD, route.protocol_version, params)
        CallToolRequestParams.model_validate(params, by_name=False)
    except (ValueError, RecursionError, KeyError):
        return None
    info = params["_meta"].get(CLIENT_INFO_META_KEY)
    call = Call(params["name"], params.get("arguments") or {}, _shown(info["name"]) if info else "", access)
    return Asked(message.id, call, progress_token_from_params(params))


def _shown(name: str) -> str:
    """What a client calls itself, as far as it can be shown."""
    return _shown_short(name) if len(name) <= SHORT else gate.redacted(visible(name))


@lru_cache(256)
def _shown_short(name: str) -> str:
    return gate.redacted(visible(name))


def _again(message: Message, receive: Receive) -> Receive:
    """What a client sends, the first message of it once more."""
    first = [message]

    async def receiving() -> Message:
        return first.pop() if first else await receive()

    return receiving


async def _awaited(
    server: BankServer, asked: Asked, metrics: Metrics | None, receive: Receive, stream: Stream
) -> Packed | None:
    """The answer; None when the client has gone away, and nothing was to be written for it."""
    tool = server.tools[asked.call.tool]

    async def report(done: float, total: float) -> None:
        if asked.token is not None:
            params = {"progressToken": asked.token, "progress": done, "total": total, "message": progress(done, total)}
            told = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
            await stream.say(json.dumps(told, separators=(",", ":")).encode())

    unmeasured: AbstractContextManager[list[str]] = nullcontext([])
    with CancelScope() as here:
        watching = asyncio.ensure_future(_watch(receive, stream, here if tool.reads else None))
        try:
            with metrics.timing(tool) if metrics else unmeasured as outcomes:
                given = await server.answered(asked.call, report)
                outcomes.append(outcome(given.failed, given.code))
            return given if isinstance(given, Packed) else answers.packed(given)
        finally:
            watching.cancel()
    return None


async def _watch(receive: Receive, stream: Stream, here: CancelScope | None) -> None:
    """Tell a client again and again that there will be an answer; when it goes away, give up what is done here."""
    while True:
        try:
            async with asyncio.timeout(PING):
                await receive()  # nothing comes any more but the end
        except TimeoutError:
            await stream.put(b": ping\r\n\r\n")
        else:
            if here:
                here.cancel()
            return


def _body(id: int | str, given: Packed, stamp: bytes) -> bytes:
    """The message with an answer: the SDK puts what it says of the server behind everything else, or behind ours."""
    number = json.dumps(id).encode()
    if given.code:
        code = json.dumps(given.code).encode()
        return b'{"jsonrpc":"2.0","id":%b,"result":{"_meta":{"%b":%b,%b},%b}}' % (
            number, answers.CODE.encode(), code, stamp, given.inside,
        )  # fmt: skip
    return b'{"jsonrpc":"2.0","id":%b,"result":{%b,"_meta":{%b}}}' % (number, given.inside, stamp)


async def _send(body: bytes, send: Send) -> None:
    headers = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
