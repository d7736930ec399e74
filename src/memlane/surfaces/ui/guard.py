"""Who may talk to the page's server. Everything that runs on this machine, and every web page, can reach its port.

- The address that is printed holds a token, which is good for one browser: it becomes a cookie that no script can read
  and no other site can send. Cookies do not know ports, so its name does. When it was used, another one is made.
- A request has to name this server as its host: a name of somebody else's may point here, too (DNS rebinding).
- What is read by scripts, and whatever changes something, has to come from this page, as the browser says itself
  (Sec-Fetch-Site, Origin). Another port of this machine is another site's for us, though not for cookies.
- The page loads and connects to nothing but this server, and no text becomes markup (Content-Security-Policy).
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping
from secrets import token_urlsafe
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Message, Receive, Scope, Send

NAMES = ("127.0.0.1", "localhost")
MAX_BODY = 16 * 1024 * 1024  # bytes: a text of a few MB, with what JSON escapes
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_OUTSIDE = (
    "<!doctype html><html lang=en><title>memlane</title><h1>This page needs its address</h1>"
    "<p>Open the address that <code>memlane ui</code> has printed last; it is good for one browser.</p></html>"
)


class Keys:
    """The token of the printed address, and the cookie that it becomes. `on_used` is told when there is a new token."""

    def __init__(self, port: int, on_used: Callable[[str], None]) -> None:
        self.port, self._on_used = port, on_used
        self.token = token_urlsafe(24)
        self._cookie = token_urlsafe(32)

    @property
    def address(self) -> str:
        return f"http://{NAMES[0]}:{self.port}/?token={self.token}"

    def taken(self, token: str) -> bool:
        """Whether this is the token; it is no longer, then."""
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return False
        self.token = token_urlsafe(24)
        self._on_used(self.address)
        return True

    def cookie(self) -> str:
        return f"memlane-{self.port}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"

    def known(self, cookies: str) -> bool:
        """Whether a request's cookies hold ours."""
        ours = f"memlane-{self.port}={self._cookie}".encode()
        return any(hmac.compare_digest(each.strip().encode(), ours) for each in cookies.split(";"))


def guarded(app: ASGIApp, keys: Keys) -> ASGIApp:
    """The application for requests of the page alone; others are refused in a sentence."""
    hosts = {f"{name}:{keys.port}" for name in NAMES} | ({*NAMES} if keys.port == 80 else set())  # it is left out then

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await app(scope, receive, send)
            return  # no websockets

        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            headers[name.decode("latin-1")] = value.decode("latin-1")
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", ()), *own]}
            await send(message)

        if headers.get("host", "") not in hosts:
            await _refuse(with_headers, scope, 421, "This server does not have that name.")
        elif scope["method"] == "GET" and scope["path"] == "/" and "token" in query:
            known = keys.known(headers.get("cookie", ""))
            if keys.taken(query["token"][0]) or known:
                own = [(b"location", b"/"), *([] if known else [(b"set-cookie", keys.cookie().encode())])]
                await with_headers({"type": "http.response.start", "status": 303, "headers": own})
                await with_headers({"type": "http.response.body", "body": b""})
            else:
                await _refuse(with_headers, scope, 403, "That address was used already, or is not one of this server.")
        elif not keys.known(headers.get("cookie", "")):
            await _refuse(with_headers, scope, 403, "This browser has not opened the address of `memlane ui` yet.")
        elif why := _foreign(scope, headers):
            await _refuse(with_headers, scope, 403, why)
        elif int(headers.get("content-length", "0") or 0) > MAX_BODY:
            hint = "Edit it with `memlane edit`, or split it."
            await _refuse(with_headers, scope, 413, f"That is more than {MAX_BODY >> 20} MB.", hint)
        else:
            await app(scope, _bounded(receive), with_headers)

    return answer


def _foreign(scope: Scope, headers: Mapping[str, str]) -> str:
    """Why a request is not one of our page's; "" for one that is."""
    site, reads = headers.get("sec-fetch-site", ""), scope["method"] in ("GET", "HEAD")
    if reads and not scope["path"].startswith("/api/"):
        return "" if site in ("", "none", "same-origin") else "Another page asks for this."
    if site != "same-origin":
        return "Another page asks for this, or a browser that does not say which one."
    if not reads:
        if headers.get("origin") != f"http://{headers['host']}":
            return "Another page asks for this."
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return "Changes are asked for in JSON."
    return ""


def _bounded(receive: Receive) -> Receive:
    """What a client sends, up to MAX_BODY; the rest is as if it had gone away."""
    size = 0

    async def limited() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        return message if size <= MAX_BODY else {"type": "http.disconnect"}

    return limited


_AGAIN = "Open the address that `memlane ui` has printed last."


async def _refuse(send: Send, scope: Scope, status: int, why: str, hint: str = _AGAIN) -> None:
    if scope["path"].startswith("/api/"):
        kind, body = "application/json", json.dumps({"code": "refused", "message": why, "hint": hint})
    else:
        kind, body = "text/html; charset=utf-8", _OUTSIDE
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind.encode())]})
    await send({"type": "http.response.body", "body": body.encode()})
