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
from collections.abc import Callable, Sequence
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.shared.exceptions import MCPError
from starlette.types import ASGIApp, Receive, Scope, Send

from memlane import gate
from memlane.core.access import EVERYTHING, RIGHTS, Access, highest
from memlane.core.invisible import visible

PREFIX, INSIDE = "memory:", "memory:in:"
SCOPES = [PREFIX + right for right in RIGHTS]
USER = ""  # whose tokens have no name: the user of this machine
FORBIDDEN = -32003  # JSON-RPC: the token may not do that

Context = ServerRequestContext[Any, Any]
RightOf = Callable[[str, str], str]  # of a method, and of the tool that it calls


def scopes_of(right: str, scopes: Sequence[str] | None) -> list[str]:
    """The scopes of a token with this right, limited to these scopes of the bank."""
    return [*SCOPES[: RIGHTS.index(right) + 1], *(INSIDE + name for name in scopes or ())]


def access_of(token: AccessToken) -> Access:
    """What a token may do."""
    right = highest(scope.removeprefix(PREFIX) for scope in token.scopes if scope.startswith(PREFIX))
    inside = tuple(scope.removeprefix(INSIDE) for scope in token.scopes if scope.startswith(INSIDE))
    return Access(gate.redacted(visible(token.subject or token.client_id)), right, inside or None)


def caller(ctx: Context) -> Access:
    """What the client that sent a request may do: everything, unless the server wants tokens."""
    user = None if ctx.request is None else ctx.request.scope.get("user")
    return access_of(user.access_token) if isinstance(user, AuthenticatedUser) else EVERYTHING


class OfUser:
    """A verifier whose tokens are the user's own: nobody else is nameless."""


class AnyOf:
    """The verifiers as one. A token for more may do less as well, which the SDK does not know."""

    def __init__(self, verifiers: Sequence[TokenVerifier]) -> None:
        self._verifiers = tuple(verifiers)

    async def verify_token(self, token: str) -> AccessToken | None:
        for verifier in self._verifiers:
            if found := await verifier.verify_token(token):
                if not access_of(found).name and not isinstance(verifier, OfUser):
                    return None
                right = access_of(found).right
                implied = [] if not right else SCOPES[: RIGHTS.index(right) + 1]
                return found.model_copy(update={"scopes": list(dict.fromkeys((*implied, *found.scopes)))})
        return None


def only_with_rights(right_of: RightOf) -> ServerMiddleware[Any]:
    """For `Server.middleware`: refuse what the token of a request may not do, and a request that has none."""

    async def checked(ctx: Context, call_next: CallNext) -> HandlerResult:
        if ctx.request is None or not isinstance(ctx.request.scope.get("user"), AuthenticatedUser):
            raise MCPError(FORBIDDEN, "The request carries no token.")
        access, right = caller(ctx), right_of(ctx.method, str((ctx.params or {}).get("name", "")))
        if not access.may(right):
            raise MCPError(FORBIDDEN, f"{refusal(access, right)} Ask who runs the server for one that may.")
        return await call_next(ctx)

    return checked


def refusal(access: Access, right: str) -> str:
    return f"The token of {access.name} may {access.right or 'do nothing'}, but not {right}."


class Guard:
    """In front of the protocol, after the SDK has looked at the token: what is refused before a message is read."""

    def __init__(self, app: ASGIApp, path: str, metadata: str, right_of: RightOf) -> None:
        self._app, self._path, self._metadata, self._right_of = app, path, metadata, right_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != self._path:
            await self._app(scope, receive, send)
            return
        headers = [(name, value) for name, value in scope["headers"] if name == b"authorization"]
        user = scope.get("user")
        if len(headers) != 1 or not isinstance(user, AuthenticatedUser):
            await self._refuse(send, 401, "invalid_token", "A bearer token is required.", SCOPES[0])
            return
        access = access_of(user.access_token)
        named = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        right = self._right_of(named.get("mcp-method", ""), named.get("mcp-name", ""))
        if not access.may(right):
            await self._refuse(send, 403, "insufficient_scope", refusal(access, right), PREFIX + right)
            return
        await self._app(scope, receive, send)

    async def _refuse(self, send: Send, status: int, error: str, why: str, wanted: str) -> None:
        # what comes from a token's name must not end the quotes
        plain = "".join(char if char.isascii() and char.isprintable() and char not in '"\\' else "?" for char in why)
        said = f'Bearer error="{error}", error_description="{plain}", scope="{wanted}"'
        said += f', resource_metadata="{self._metadata}"'
        await _answer(send, status, why, {"www-authenticate": said})


async def _answer(send: Send, status: int, why: str, headers: dict[str, str]) -> None:
    """Refuse a request as the protocol does, so that its client shows the sentence."""
    data = json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": FORBIDDEN, "message": why}}).encode()
    fields = {"content-type": "application/json", "content-length": str(len(data)), **headers}
    await send({"type": "http.response.start", "status": status, "headers": _encoded(fields)})
    await send({"type": "http.response.body", "body": data})


def _encoded(fields: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1", "replace")) for name, value in fields.items()]
