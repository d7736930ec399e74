"""Serve over streamable HTTP at `/mcp`.

By default on the loopback interface, which only programs on this machine can reach. Anywhere else it needs a token that
every request must carry. Requests that name another host, or come from a web page of another origin, are refused:
otherwise a page in a browser could reach the server through a name of its own that points here (DNS rebinding).

A request has to arrive as a whole in time, and is bounded in size: see `memlane.surfaces.connections`.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import logging
import socket
import sys
from collections.abc import Iterable
from typing import Any

from mcp.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memlane.core.errors import InvalidInput
from memlane.surfaces import connections

PATH = "/mcp"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
MIN_TOKEN = 16  # characters
_SHUTDOWN = 3  # seconds for open streams to finish when the server ends
MAX_BODY = 32 * 1024 * 1024  # bytes: a text of 10 MB, with every character escaped as JSON allows
SESSION_IDLE = 900.0  # seconds after which a session that nobody uses ends
MAX_SESSIONS = 256
_INVALID = "The message is not valid JSON-RPC."
_REFUSED = b'{"error":"invalid_token","error_description":"A bearer token is required."}'


def serve(server: Server[Any], host: str, port: int, token: str | None, names: Iterable[str] = ()) -> None:
    """Serve until SIGTERM or Ctrl-C. `names` are further host names that clients may use; port 0 is any free one.

    Raises InvalidInput for a host other than loopback without a token, OSError when the port is taken.
    """
    listener = listen(host, port, token)
    url = f"http://{_in_url(host)}:{listener.getsockname()[1]}{PATH}"
    app = application(server, {host, *names}, token)
    print(f"memlane: serving {url}{' with a token' if token else ''}; Ctrl-C ends it", file=sys.stderr, flush=True)
    logging.getLogger("mcp").setLevel(logging.ERROR)
    connections.serve(app, listener, _SHUTDOWN)


def listen(host: str, port: int, token: str | None) -> socket.socket:
    """Open the socket. Raises InvalidInput for a host other than loopback without a token, and for a short token."""
    if token is None and not is_loopback(host):
        raise InvalidInput(
            "Other hosts than loopback need a token.",
            hint="Set MEMLANE_MCP_TOKEN, or name a file that holds it with --token-file.",
        )
    if token is not None and len(token) < MIN_TOKEN:
        raise InvalidInput(
            f"The token is shorter than {MIN_TOKEN} characters.",
            hint="`python3 -c 'import secrets; print(secrets.token_urlsafe())'` makes a good one.",
        )
    return connections.opened(host, port)


def application(server: Server[Any], hosts: Iterable[str], token: str | None) -> ASGIApp:
    """The SDK's web application, behind the checks of host, origin and token."""
    names = [*LOOPBACK, *map(_in_url, hosts)]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[pattern for name in names for pattern in (name, f"{name}:*")],
        allowed_origins=[pattern for name in names for pattern in (f"http://{name}", f"http://{name}:*")],
    )
    app: ASGIApp = server.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=security,
        max_request_body_size=MAX_BODY,
        session_idle_timeout=SESSION_IDLE,
        max_sessions=MAX_SESSIONS,
    )
    app = _without_echo(app)
    return app if token is None else _with_token(app, token)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _in_url(host: str) -> str:
    """A host as a URL writes it: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _without_echo(app: ASGIApp) -> ASGIApp:
    """The application with a sentence of ours in place of the SDK's validation errors, which repeat what was sent."""

    async def quiet(scope: Scope, receive: Receive, send: Send) -> None:
        start: Message | None = None
        body = b""

        async def checked(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start" and message["status"] == 400:
                start = message
            elif start is not None and message["type"] == "http.response.body":
                body += message.get("body", b"")
                if not message.get("more_body"):
                    data = _quiet(body)
                    headers = [item for item in start["headers"] if item[0].lower() != b"content-length"]
                    await send({**start, "headers": [*headers, (b"content-length", str(len(data)).encode())]})
                    await send({**message, "body": data})
            else:
                await send(message)

        await app(scope, receive, checked)

    return quiet


def _quiet(body: bytes) -> bytes:
    try:
        answer = json.loads(body)
    except ValueError:
        return body
    error = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict) or "validation error" not in str(error.get("message")).lower():
        return body
    return json.dumps({**answer, "error": {"code": error.get("code"), "message": _INVALID}}).encode()


def _with_token(app: ASGIApp, token: str) -> ASGIApp:
    """The application for requests that carry the token; every other request is answered with 401."""
    expected = f"bearer {token}".encode()

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        credentials = [value for name, value in scope.get("headers", ()) if name == b"authorization"]
        scheme, _, rest = credentials[0].partition(b" ") if len(credentials) == 1 else (b"", b"", b"")
        allowed = hmac.compare_digest(scheme.lower() + b" " + rest.strip(), expected)
        if allowed or scope["type"] == "lifespan":
            await app(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json"), (b"www-authenticate", b'Bearer realm="memlane"')]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": _REFUSED})

    return guarded
