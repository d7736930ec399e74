"""Serve over streamable HTTP at `/mcp`.

By default on the loopback interface, which only programs on this machine can reach. Anywhere else it needs a token that
every request must carry. Requests that name another host, or come from a web page of another origin, are refused:
otherwise a page in a browser could reach the server through a name of its own that points here (DNS rebinding).

A request has to arrive as a whole in time, and is bounded in size: see `memlane.surfaces.connections`.
"""

from __future__ import annotations

import gc
import hmac
import ipaddress
import json
import logging
import socket
import sqlite3
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from errno import EACCES, EADDRINUSE, EPERM
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mcp.server.auth.provider import (
    AccessToken,
    OAuthAuthorizationServerProvider,
    ProviderTokenVerifier,
    TokenVerifier,
)
from mcp.server.auth.routes import build_resource_metadata_url
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memlane.config import Config, grants, tokens, user_state
from memlane.config.settings import TOOLSETS
from memlane.core.errors import ConfigError, InvalidInput, MemlaneError
from memlane.disk import audit_log
from memlane.surfaces import connections
from memlane.surfaces.mcp import answers, auth, jwts, toolsets
from memlane.surfaces.mcp.metrics import Metrics
from memlane.surfaces.mcp.server import BankServer
from memlane.surfaces.mcp.shared_bank import SharedBank
from memlane.surfaces.mcp.tools import Tool

PATH = "/mcp"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
MIN_TOKEN = 16  # characters
_SHUTDOWN = 8  # seconds for what is under way when the server ends: container engines kill after 10
MAX_BODY = 32 * 1024 * 1024  # bytes: a text of 10 MB, with every character escaped as JSON allows
SESSION_IDLE = 900.0  # seconds after which a session that nobody uses ends
MAX_SESSIONS = 256
_INVALID = "The message is not valid JSON-RPC."


def serve(
    server: BankServer,
    bank: SharedBank,
    settings: Config,
    host: str,
    port: int,
    token: str | None,
    names: Iterable[str] = (),
    *,
    public_url: str = "",
    with_oauth: bool = False,
    open_metrics: bool = False,
) -> None:
    """Serve until SIGTERM or Ctrl-C. `names` are further host names that clients may use; port 0 is any free one.

    Whoever has a token of the bank may use it, in its limits. Without any, and on loopback, everybody may.
    `public_url` is how clients reach it, where that is through a proxy. Raises InvalidInput for a host other than
    loopback without a token, MemlaneError when the port is taken.
    """
    from memlane.surfaces.mcp import oauth
    from memlane.surfaces.mcp.health import ALIVE, METRICS, READY, Health

    public_url = oauth.public(public_url) if public_url else ""
    if with_oauth and not public_url and not is_loopback(host):
        raise InvalidInput(
            "People cannot be let in without an address that they reach.",
            hint="Say it with --public-url https://mem.example.com; a proxy with a certificate serves it there.",
        )
    issuer = settings["mcp.auth.issuer"]
    guarded = bool(token or issuer or with_oauth or tokens.listed(settings.root))
    listener = listen(host, port, token, guarded=guarded)
    local = f"http://{_in_url(host)}:{listener.getsockname()[1]}"
    url = resource(public_url or local)
    note = partial(_note, settings.root)
    provider = None
    if with_oauth:
        provider = oauth.Provider(grants.opened(settings.root), url.removesuffix(PATH), url, note=note)
    metrics = Metrics(_tools(), (PATH, ALIVE, READY, METRICS, *oauth.PATHS))
    health = Health(server, bank, metrics, direct=not (public_url or [*names]), everybody=open_metrics)
    app = application(
        server,
        {host, *names, *_host_of(public_url)},
        url=url,
        verifiers=verifiers(settings, url, token) if guarded else (),
        auth_server_provider=provider,
        issuer=provider.issuer if provider else issuer,
        routes=[*health.routes(), *(provider.routes() if provider else ())],
        limits=auth.Limits(settings["mcp.rate"], settings["mcp.sessions"], SESSION_IDLE),
        note=note,
        metrics=metrics,
    )
    if provider:
        app = oauth.guarded(app, provider.issuer)
    if not guarded:
        app = _until_there_are_tokens(app, settings.root)
    with_token = " with a token" if guarded else ""
    known_as = f" as {url}" if public_url else ""
    print(f"memlane: serving {local}{PATH}{known_as}{with_token}; Ctrl-C ends it", file=sys.stderr, flush=True)
    logging.getLogger("mcp").setLevel(logging.ERROR)
    # While a write is under way on its thread, whoever asks something waits that long, several times for each answer.
    sys.setswitchinterval(0.0005)
    gc.collect()
    gc.freeze()  # what is there now stays: to look through it for what could be thrown away takes a tenth of a second
    connections.serve(metrics.counted(app), listener, _SHUTDOWN)


def _until_there_are_tokens(app: ASGIApp, bank: Path) -> ASGIApp:
    """An application that everybody may use, until somebody makes a token: then nobody, before it is started again."""

    async def closing(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == PATH and tokens.listed(bank):
            why = "The bank has tokens now, and this server was started without: start it again."
            await auth.answer(send, 401, why, {"www-authenticate": "Bearer"})
            return
        await app(scope, receive, send)

    return closing


def verifiers(settings: Config, url: str, token: str | None) -> list[TokenVerifier]:
    """Who knows the tokens of a server: the one that it was started with, those of the bank, those of an issuer."""
    known: list[TokenVerifier] = [OneToken(token, url)] if token else []
    known.append(auth.Named(settings.root, url))
    if settings["mcp.auth.issuer"]:
        issuer, audience, keys = (settings[f"mcp.auth.{name}"] for name in ("issuer", "audience", "jwks_uri"))
        known.append(jwts.Jwts(issuer, audience, keys, url))
    return known


def _note(bank: Path, who: str, what: str, outcome: str, ids: Sequence[str]) -> None:
    with suppress(ConfigError):  # there is no home folder
        named = answers.of_bank(what, ids)
        audit_log.note(user_state(), bank, who=who or "the user's token", what=what, outcome=outcome, ids=named)


def listen(host: str, port: int, token: str | None, *, guarded: bool = False) -> socket.socket:
    """Open the socket. Raises InvalidInput for a host other than loopback without a token, and for a short token;
    MemlaneError where nobody can listen.

    `guarded`: there are tokens of another kind.
    """
    if token is None and not guarded and not is_loopback(host):
        raise InvalidInput(
            "Other hosts than loopback need a token.",
            hint="`memlane token add NAME` makes one for somebody; one for everything is in MEMLANE_MCP_TOKEN, or in "
            "a file that --token-file names; --oauth lets people in with a code.",
        )
    if token is not None and len(token) < MIN_TOKEN:
        raise InvalidInput(
            f"The token is shorter than {MIN_TOKEN} characters.",
            hint="`python3 -c 'import secrets; print(secrets.token_urlsafe())'` makes a good one.",
        )
    try:
        return connections.opened(host, port)
    except OSError as error:
        if error.errno == EADDRINUSE:
            raise MemlaneError(f"Port {port} is taken.", hint="Name another one with --port, or 0 for any.") from None
        if error.errno in (EACCES, EPERM):
            raise MemlaneError(f"Port {port} is not for everybody.", hint="Name one above 1023 with --port.") from None
        raise MemlaneError(
            f"Nobody can listen at this host: {error.strerror}.",
            hint="--host is an address of this machine: 127.0.0.1 for programs on it, 0.0.0.0 for a network.",
        ) from None


def application(
    server: BankServer,
    hosts: Iterable[str],
    *,
    url: str = "",
    verifiers: Sequence[TokenVerifier] = (),
    issuer: str = "",
    auth_server_provider: OAuthAuthorizationServerProvider[Any, Any, Any] | None = None,
    routes: Sequence[Route] = (),
    limits: auth.Limits | None = None,
    note: auth.Note = lambda *_: None,
    metrics: Metrics | None = None,
) -> ASGIApp:
    """The SDK's web application, behind the checks of host, origin and token.

    With verifiers or a provider, every request to PATH needs a token that one of them knows; `routes` need none, and
    check nothing. `url` is how clients name the server, PATH included, and what their tokens must be for; `issuer`
    makes these tokens, where it is not the provider in the server itself. `note` is told what is done by whom,
    and `metrics` how long it took.
    """
    if metrics:
        server.middleware.append(metrics.timed)
    names = [*LOOPBACK, *map(_in_url, hosts)]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[pattern for name in names for pattern in (name, f"{name}:*")],
        # https is what a browser says of a page behind a proxy that has the certificate
        allowed_origins=[
            f"{scheme}://{name}{port}" for name in names for scheme in ("http", "https") for port in ("", ":*")
        ],
    )
    options: dict[str, Any] = {}
    known = [*verifiers, *([ProviderTokenVerifier(auth_server_provider)] if auth_server_provider else [])]
    if known:
        ours = auth_server_provider is not None
        registration = {"enabled": ours, "valid_scopes": auth.SCOPES, "default_scopes": auth.SCOPES[:1]}
        settings = AuthSettings.model_validate(  # of texts: a URL would get a slash at its end, and be another
            {
                "issuer_url": issuer if issuer and not ours else url.removesuffix(PATH),
                "resource_server_url": url,
                "required_scopes": auth.SCOPES[:1],
                "validate_token_resource": True,
                "client_registration_options": registration,
                "revocation_options": {"enabled": ours},
            }
        )
        options = {
            "auth": settings,
            "token_verifier": auth.AnyOf(known),
            "auth_server_provider": auth_server_provider,
        }
        server.middleware.append(auth.only_with_rights(right_of, note))
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=security,
        max_request_body_size=MAX_BODY,
        session_idle_timeout=SESSION_IDLE,
        max_sessions=MAX_SESSIONS,
        custom_starlette_routes=list(routes),
        **options,
    )
    # Starlette would send clients to http://, with the host that they named: away from a proxy, and with their token.
    app.router.redirect_slashes = False
    app.router.routes.append(Route(f"{PATH}/", _without_slash, methods=["GET", "POST", "DELETE"]))
    if auth_server_provider:
        from memlane.surfaces.mcp.oauth import unavailable

        app.add_exception_handler(sqlite3.Error, unavailable)
    if known:  # the last of them is the next to the routes: after the SDK has looked at the token
        metadata = str(build_resource_metadata_url(AnyHttpUrl(url)))
        limits = limits or auth.Limits(0, MAX_SESSIONS, SESSION_IDLE)
        app.user_middleware.append(Middleware(auth.Guard, PATH, metadata, right_of, limits, note))
    try:
        from memlane.surfaces.mcp import direct

        limited = server.session_manager.asgi_app  # what is inside gets a request whole, and never too long a one
        limited.app = direct.answering(limited.app, server, security, metrics, note if known else None)
    except (ImportError, AttributeError):
        pass  # a version of the SDK that is built otherwise: every request goes its way, which takes longer
    return _without_echo(app)


async def _without_slash(_: Request) -> Response:
    return Response(status_code=307, headers={"location": PATH})


def right_of(method: str, name: str) -> str:
    """What a token needs for a method of the protocol, and for the tool of this name where it calls one."""
    tool = _tools().get(name) if method == "tools/call" else None
    return tool.right if tool else "read"


@cache
def _tools() -> dict[str, Tool]:
    return {tool.name: tool for tool in toolsets.tools(TOOLSETS)}


class OneToken(auth.OfUser):
    """The token of the command line or the environment: the user's own, which may do everything."""

    def __init__(self, token: str, url: str) -> None:
        self._token = token.encode()
        self._access = AccessToken(token="", client_id=auth.USER, scopes=auth.SCOPES, resource=url)

    async def verify_token(self, token: str) -> AccessToken | None:
        return self._access if hmac.compare_digest(token.strip().encode(), self._token) else None


def resource(base: str) -> str:
    """How clients name the server that they reach at a URL."""
    return base.rstrip("/").removesuffix(PATH) + PATH


def _host_of(url: str) -> list[str]:
    host = urlsplit(url).hostname
    return [host] if host else []


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
