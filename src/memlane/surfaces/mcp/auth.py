"""Who may use a server over HTTP, and what for: the SDK's resource server around tokens of several kinds.

A verifier is anything with `async verify_token(token) -> AccessToken | None`; the first that knows a token counts.
What a token may do is in its scopes, whoever made it:

    memory:read, memory:write, memory:remove    each includes those before it
    memory:in:NAME                              only memories of this scope; repeated for several, `team/*` for many

Its subject, or else its client, is the author of what it writes. Every request is looked at anew, so a token that was
revoked ends an open session, too.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken, TokenVerifier, principal_components
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memlane import gate
from memlane.config import tokens
from memlane.core.access import EVERYTHING, RIGHTS, Access, highest
from memlane.core.errors import ConfigError
from memlane.core.invisible import visible
from memlane.surfaces.mcp import answers, resources
from memlane.surfaces.mcp.jwts import LIMITING, Unavailable

PREFIX, INSIDE = "memory:", "memory:in:"
SCOPES = [PREFIX + right for right in RIGHTS]
USER = ""  # whose tokens have no name: the user of this machine
FORBIDDEN = -32003  # JSON-RPC: the token may not do that
WITHOUT_SESSIONS = "2026-07-28"  # the revision of the protocol that has none
NOTED = ("tools/call", "resources/read", "prompts/get")  # what the audit log has
BURST = 15.0  # seconds' worth of requests that may come at once
MANY_TOKENS = 1000
unknown: ContextVar[bool] = ContextVar("unknown", default=False)  # whether nothing can be said of a request's token

Principal = tuple[str, str | None, str | None]
Note = Callable[[str, str, str, Sequence[str]], None]  # who, what, outcome and ids, for the audit log
Context = ServerRequestContext[Any, Any]
RightOf = Callable[[str, str], str]  # of a method, and of the tool that it calls


def scopes_of(right: str, scopes: Sequence[str] | None) -> list[str]:
    """The scopes of a token with this right, limited to these scopes of the bank, if any are given."""
    return [*SCOPES[: RIGHTS.index(right) + 1], *(INSIDE + name for name in scopes or ())]


def access_of(token: AccessToken) -> Access:
    """What a token may do."""
    return _access(token.subject or token.client_id, tuple(token.scopes))


@lru_cache(MANY_TOKENS)  # to look whether a name is a secret takes longer than everything else
def _access(name: str, scopes: tuple[str, ...]) -> Access:
    right = highest(scope.removeprefix(PREFIX) for scope in scopes if scope.startswith(PREFIX))
    limits = [scope for scope in scopes if scope.casefold().startswith(LIMITING)]
    inside = tuple(scope.removeprefix(INSIDE) for scope in limits if scope.startswith(INSIDE))
    return Access(gate.redacted(visible(name)), right, inside if limits else None)  # one that is misspelt limits, too


def caller(ctx: Context) -> Access:
    """What the client that sent a request may do: everything, unless the server wants tokens."""
    user = None if ctx.request is None else ctx.request.scope.get("user")
    return access_of(user.access_token) if isinstance(user, AuthenticatedUser) else EVERYTHING


class OfUser:
    """A verifier whose tokens are the user's own: nobody else is nameless."""


class Named:
    """The tokens that `memlane token add` has made for a bank."""

    def __init__(self, bank: Path, url: str) -> None:
        self._bank, self._url = bank, url
        self._said = ""

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            found = tokens.known(self._bank, token) if token.startswith(tokens.PREFIX) else None
        except ConfigError as error:
            if str(error) != self._said:  # once, and not with every request
                self._said = str(error)
                print(f"memlane: {error} {error.hint}", file=sys.stderr, flush=True)
            return None
        if found is None:
            return None
        access = found.access
        return AccessToken(
            token="",
            client_id=access.name,
            subject=access.name,
            scopes=scopes_of(access.right, access.scopes),
            expires_at=int(found.expires.timestamp()),
            resource=self._url,
        )


class AnyOf:
    """The verifiers as one. A token for more may do less as well, which the SDK does not know."""

    def __init__(self, verifiers: Sequence[TokenVerifier]) -> None:
        self._verifiers = tuple(verifiers)

    async def verify_token(self, token: str) -> AccessToken | None:
        unknown.set(False)
        for verifier in self._verifiers:
            try:
                found = await verifier.verify_token(token)
            except Unavailable:
                unknown.set(True)
                continue
            if found is None:
                continue
            access = access_of(found)
            if not access.name and not isinstance(verifier, OfUser):
                return None
            implied = SCOPES[: RIGHTS.index(access.right) + 1] if access.right else []
            return found.model_copy(update={"scopes": list(dict.fromkeys((*implied, *found.scopes)))})
        return None


# -- what a request may do


def only_with_rights(right_of: RightOf, note: Note) -> ServerMiddleware[Any]:
    """For `Server.middleware`: refuse what the token of a request may not do, and a request that has none."""

    async def checked(ctx: Context, call_next: CallNext) -> HandlerResult:
        if ctx.request is None or not isinstance(ctx.request.scope.get("user"), AuthenticatedUser):
            raise MCPError(FORBIDDEN, "The request carries no token.")
        access, name = caller(ctx), str((ctx.params or {}).get("name", ""))
        what = name if ctx.method == "tools/call" else ctx.method
        if not access.may(right := right_of(ctx.method, name)):
            note(access.name, what, "refused", ())
            raise MCPError(FORBIDDEN, refusal(access, right))
        try:
            result = await call_next(ctx)
        except MCPError:
            if ctx.method in NOTED:
                note(access.name, what, "failed", ())
            raise
        if ctx.method in NOTED:
            said = result.model_dump(by_alias=True) if isinstance(result, BaseModel) else result or {}
            pages = (resources.id_in(part.get("text") or "") for part in said.get("contents", ()))
            ids = [*answers.ids_in(said.get("structuredContent")), *filter(None, pages)]
            note(access.name, what, "failed" if said.get("isError") else "ok", ids)
        return result

    return checked


def refusal(access: Access, right: str) -> str:
    whose = f"The token of {access.name}" if access.name else "The token"
    may = f"may {access.right}, but not {right}" if access.right else f"has no right here, not even {PREFIX}{right}"
    return f"{whose} {may}. Ask who runs the server for one that may."


class Limits:
    """How many requests a minute, and how many sessions, one token may have; 0 requests is any number."""

    def __init__(self, rate: int, sessions: int, idle: float) -> None:
        self._rate, self._most, self._idle = rate / 60, sessions, idle
        self._burst = max(self._rate * BURST, 1.0)
        self._left: dict[Principal, tuple[float, float]] = {}  # requests that are left, and when that was so
        self._sessions: dict[str, tuple[Principal, float]] = {}  # whose it is, and when it was last used

    def wait(self, who: Principal) -> float:
        """Count a request; the seconds to wait before another one where there were too many."""
        if not self._rate:
            return 0.0
        now = time.monotonic()
        left, then = self._left.get(who, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        if left < 1:
            return (1 - left) / self._rate
        if len(self._left) > MANY_TOKENS:  # those that were quiet have all that they may again
            self._left = {one: state for one, state in self._left.items() if now - state[1] < BURST}
        self._left[who] = (left - 1, now)
        return 0.0

    def full(self, who: Principal) -> bool:
        """Whether somebody has all the sessions that he may."""
        now = time.monotonic()
        self._sessions = {id: one for id, one in self._sessions.items() if now - one[1] < self._idle}
        return sum(owner == who for owner, _ in self._sessions.values()) >= self._most

    def used(self, id: str, who: Principal) -> None:
        self._sessions[id] = (who, time.monotonic())

    def ended(self, id: str, who: Principal) -> None:
        if self._sessions.get(id, (None,))[0] == who:
            del self._sessions[id]


class Guard:
    """In front of the protocol, after the SDK has looked at the token: what is refused before a message is read."""

    def __init__(self, app: ASGIApp, path: str, metadata: str, right_of: RightOf, limits: Limits, note: Note) -> None:
        self._app, self._path, self._metadata = app, path, metadata
        self._right_of, self._limits, self._note = right_of, limits, note
        self._numbers = count()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != self._path:
            await self._app(scope, receive, send)
            return
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        user = scope.get("user")
        if len(given) != 1 or not isinstance(user, AuthenticatedUser):
            if unknown.get():
                why = "Who made the token cannot be asked at the moment: try again later."
                await answer(send, 503, why, {"retry-after": "30"})
            else:
                await self._refuse(send, 401, "invalid_token", _unauthorized(given), SCOPES[0])
            return
        access, who = access_of(user.access_token), principal_components(user.access_token)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        method, name = headers.get("mcp-method", ""), headers.get("mcp-name", "")
        right = self._right_of(method, name)
        if not access.may(right):
            self._note(access.name, name if method == "tools/call" else method or "request", "refused", ())
            await self._refuse(send, 403, "insufficient_scope", refusal(access, right), PREFIX + right)
        elif access.name and (seconds := self._limits.wait(who)):
            self._note(access.name, "request", "too many", ())
            why = "Too many requests with this token: wait a moment."
            await answer(send, 429, why, {"retry-after": str(math.ceil(seconds))})
        else:
            await self._counted(scope, receive, send, headers, who if access.name else None)

    async def _counted(
        self, scope: Scope, receive: Receive, send: Send, headers: dict[str, str], who: Principal | None
    ) -> None:
        """Pass a request on, and count the sessions of whom it is."""
        id = headers.get("mcp-session-id", "")
        opens = not id and headers.get("mcp-protocol-version", "") < WITHOUT_SESSIONS
        if who is None:
            await self._app(scope, receive, send)
            return
        if opens and self._limits.full(who):
            why = "Too many sessions with this token: end one, or wait until it is forgotten."
            await answer(send, 429, why, {"retry-after": "60"})
            return
        wanted = f"wanted {next(self._numbers)}" if opens else ""  # it counts before it is there: many come at once
        if opens:
            self._limits.used(wanted, who)

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._limits.ended(wanted, who)
                made = next((value for name, value in message["headers"] if name.lower() == b"mcp-session-id"), b"")
                if message["status"] == 404 or (scope["method"] == "DELETE" and message["status"] < 400):
                    self._limits.ended(id, who)  # any other answer leaves the session as it is
                elif made and message["status"] < 400:
                    self._limits.used(made.decode("latin-1"), who)
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            self._limits.ended(wanted, who)

    async def _refuse(self, send: Send, status: int, error: str, why: str, wanted: str) -> None:
        # what comes from a token's name must not end the quotes
        plain = "".join(char if char.isascii() and char.isprintable() and char not in '"\\' else "?" for char in why)
        said = f'Bearer error="{error}", error_description="{plain}", scope="{wanted}"'
        said += f', resource_metadata="{self._metadata}"'
        await answer(send, status, why, {"www-authenticate": said})


def _unauthorized(given: Sequence[bytes]) -> str:
    """Why a request was not let in. What is wrong with a token is not said: whoever guesses learns nothing."""
    scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
    if scheme.lower() == b"bearer" and token.strip():
        return "This token does not count: it is unknown here, has expired, or was revoked."
    return "A bearer token is required."


async def answer(send: Send, status: int, why: str, headers: dict[str, str]) -> None:
    """Refuse a request as the protocol does, so that its client shows the sentence."""
    data = json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": FORBIDDEN, "message": why}}).encode()
    fields = {"content-type": "application/json", "content-length": str(len(data)), **headers}
    start = [(name.encode(), value.encode("latin-1", "replace")) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": data})
