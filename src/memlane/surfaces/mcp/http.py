"""Serve over streamable HTTP at `/mcp`.

On the loopback interface by default, where only this machine's own programs come; anywhere else only with a token,
that every request must carry. Requests that name another host, or come from a web page of another origin, are refused:
a page in a browser could otherwise talk to the server by a name that it made point here (DNS rebinding).
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import signal
import socket
import sys
from collections.abc import Iterable
from typing import Any

import uvicorn
from mcp.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Receive, Scope, Send

from memlane.core.errors import InvalidInput

PATH = "/mcp"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
LEAST_TOKEN = 16  # characters
_CLOSING = 3  # seconds for open streams when the server ends
_REFUSED = b'{"error":"invalid_token","error_description":"A bearer token is required."}'


def serve(server: Server[Any], host: str, port: int, token: str | None, names: Iterable[str] = ()) -> None:
    """Serve until SIGTERM or Ctrl-C. `names` are further hosts by which clients may call it; port 0 is any free one.

    Raises InvalidInput for another host than loopback without a token, OSError when the port is taken.
    """
    listener = listen(host, port, token)
    url = f"http://{_written(host)}:{listener.getsockname()[1]}{PATH}"
    app = application(server, {host, *names}, token)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn raises it again when everything is closed
    print(f"memlane: serving {url}{' with a token' if token else ''}; Ctrl-C ends it", file=sys.stderr, flush=True)
    logging.getLogger("mcp").setLevel(logging.ERROR)
    settings = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=_CLOSING
    )
    uvicorn.Server(settings).run(sockets=[listener])


def listen(host: str, port: int, token: str | None) -> socket.socket:
    """The socket. Nothing but loopback is opened without a token."""
    if token is None and not is_loopback(host):
        raise InvalidInput(
            "Other hosts than loopback need a token.",
            hint="Set MEMLANE_MCP_TOKEN, or name a file that holds it with --token-file.",
        )
    if token is not None and len(token) < LEAST_TOKEN:
        raise InvalidInput(
            f"The token is shorter than {LEAST_TOKEN} characters.",
            hint="`python3 -c 'import secrets; print(secrets.token_urlsafe())'` makes a good one.",
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


def application(server: Server[Any], hosts: Iterable[str], token: str | None) -> ASGIApp:
    """The web application: the SDK's, behind the guards."""
    known = [*LOOPBACK, *(_written(host) for host in hosts)]
    guard = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[pattern for name in known for pattern in (name, f"{name}:*")],
        allowed_origins=[pattern for name in known for pattern in (f"http://{name}", f"http://{name}:*")],
    )
    app: ASGIApp = server.streamable_http_app(streamable_http_path=PATH, transport_security=guard)
    return app if token is None else _guarded(app, token)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _written(host: str) -> str:
    """A host as it stands in a URL."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _guarded(app: ASGIApp, token: str) -> ASGIApp:
    """The application for those who send the token; 401 for everybody else."""
    wanted = f"bearer {token}".encode()

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
            return
        given = [value for name, value in scope.get("headers", ()) if name == b"authorization"]
        kind, _, rest = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        if hmac.compare_digest(kind.lower() + b" " + rest.strip(), wanted):
            await app(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json"), (b"www-authenticate", b'Bearer realm="memlane"')]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": _REFUSED})

    return guarded
