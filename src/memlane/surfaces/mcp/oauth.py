"""OAuth in the server itself, for programs that people connect by its address alone: `memlane mcp --http --oauth`.

    the program registers itself → /authorize → the consent page, which wants a printed code → a code → tokens

Anybody may register a program and open the page, so neither leaves anything behind: what a program registered is its
own id, sealed with a key of ours, and so is the request that the page is about. Only what somebody has allowed is kept
(`memlane.config.grants`). PKCE with S256 is a must, tokens are for this server alone, and a program is sent back
to nowhere but an https address, a port of the computer it runs on, or an address of its own kind (`cursor://…`), which
it registered; on a mistake, it is not.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import secrets
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    RegistrationError,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.routes import AUTHORIZATION_PATH, REGISTRATION_PATH, REVOCATION_PATH, TOKEN_PATH
from mcp.server.transport_security import RequestBodyLimitMiddleware
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyUrl, ValidationError
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memlane.config.grants import FILE, HOUR, Grant, Grants, Tokens, letters, new_number
from memlane.core.access import RIGHTS, highest
from memlane.core.errors import InvalidInput
from memlane.core.invisible import escaped
from memlane.surfaces.mcp import consent
from memlane.surfaces.mcp.auth import PREFIX, SCOPES, Note, scopes_of

CONSENT = "/oauth/consent"
METADATA = "/.well-known/oauth-authorization-server"
PATHS = (AUTHORIZATION_PATH, REGISTRATION_PATH, TOKEN_PATH, REVOCATION_PATH, CONSENT)
MAX_BODY = 16 * 1024  # bytes of any request here
MAX_REDIRECTS = 8
MAX_REDIRECT = 500  # characters
MAX_NAME = 80  # characters of what a program calls itself
REQUEST_TIME = 900  # seconds that somebody has for the consent page
CODE_TIME = 60  # seconds from consent to the tokens
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
# kinds of addresses that are no program's own: what a browser opens itself, or hands to what a system always has
_NOT_PRIVATE = frozenset(
    "about afp android-app blob cifs data dav davs feed file filesystem ftp ftps help intent itms jar javascript ldap "
    "ldaps mailto market nfs rdp res resource rlogin rtsp search search-ms sftp shell sip sips smb sms ssh tel telnet "
    "vbscript view-source vnc webcal ws wss x-apple.systempreferences".split()
)
_NOT_PRIVATE_FAMILIES = ("chrome", "edge", "microsoft-", "ms-", "moz-", "safari")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{1,49}")
_NETLOC = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?")  # it is a word of the page's policy, too
_S256 = re.compile(r"[A-Za-z0-9_-]{43}")
_SCOPE = re.compile(r"[\w./:@*-]{1,100}")


class _Allowed(NamedTuple):
    """What somebody has allowed, and the code that the program was sent back with, which stands for it for a minute."""

    code: AuthorizationCode
    program: str  # what it calls itself
    right: str
    scopes: list[str]


class _Spent(NamedTuple):
    """A code that was used, and the connection that came of it."""

    client: str
    name: str
    ends: float


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """What the SDK's routes ask. `issuer` is the server's address, `resource` where it speaks the protocol.

    `say` prints codes where the server runs; `note` is told who is let in, and whose connection is ended.
    """

    def __init__(
        self,
        grants: Grants,
        issuer: str,
        resource: str,
        say: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.time,
        note: Note = lambda *_: None,
    ) -> None:
        self.grants, self.issuer, self.resource = grants, issuer, resource
        self._printer = consent.Printer(say or _say, clock)
        self._clock, self._note = clock, note
        self._used: dict[str, float] = {}  # by the number of a request that was allowed: when it was asked
        self._allowed: dict[str, _Allowed] = {}  # by code: only the consent of somebody adds one
        self._spent: dict[str, _Spent] = {}

    # -- programs

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        """Give a program its id, which is what it has registered; nothing is kept."""
        redirects = [str(each) for each in client_info.redirect_uris or []]
        public = client_info.token_endpoint_auth_method == "none"  # noqa: S105
        if not 0 < len(redirects) <= MAX_REDIRECTS or not all(_may_lead_back(each, public) for each in redirects):
            raise RegistrationError(
                "invalid_redirect_uri",
                f"Between one and {MAX_REDIRECTS} addresses to go back to, each https or http on loopback, or of the "
                f"program's own kind if it has no secret (token_endpoint_auth_method none); without user, fragment or "
                f"more than {MAX_REDIRECT} characters.",
            )
        shown = "".join(char if char.isprintable() else " " for char in client_info.client_name or "")
        name = " ".join(shown.split())[:MAX_NAME]
        registered = {
            "n": name,
            "r": redirects,
            "m": client_info.token_endpoint_auth_method,
            "t": int(self._clock()),
        }
        sealed = self._sealed("client", registered)
        client_info.client_id = sealed
        client_info.client_name = name
        if client_info.client_secret is not None:
            client_info.client_secret = self._secret(sealed)

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        registered = self._opened("client", client_id)
        if registered is None:
            return None
        return OAuthClientInformationFull(
            client_id=client_id,
            client_name=registered["n"],
            redirect_uris=[AnyUrl(each) for each in registered["r"]],
            token_endpoint_auth_method=registered["m"],
            client_secret=None if registered["m"] == "none" else self._secret(client_id),
            scope=" ".join(SCOPES),  # what it may do is said on the consent page
        )

    # -- consent

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        """The address of the consent page for this request."""
        if not _S256.fullmatch(params.code_challenge):
            raise AuthorizeError("invalid_request", "The code challenge is not one of S256.")
        if params.resource is not None and not _same(params.resource, self.resource):
            raise AuthorizeError("invalid_target", "That is another server's address.")
        request = {
            "c": client.client_id,
            "r": str(params.redirect_uri),
            "x": params.redirect_uri_provided_explicitly,
            "k": params.code_challenge,
            "s": params.state,
            "a": params.scopes or [],
            "n": new_number(),
            "t": int(self._clock()),
        }
        return construct_redirect_uri(self.issuer + CONSENT, request=self._sealed("numbered request", request))

    def routes(self) -> list[Route]:
        return [Route(CONSENT, self.page, methods=["GET", "POST"])]

    async def page(self, request: Request) -> Response:
        """The consent page, and what somebody decides on it."""
        decides = request.method == "POST"
        if decides and not _from_this_page(request, self.issuer):
            return _refused("Another page sent this.", 403)
        form = await request.form() if decides else {"request": request.query_params.get("request", "")}
        typed = {name: value for name, value in form.items() if isinstance(value, str)}
        asked = self._opened("numbered request", typed.get("request", ""))
        client = await self.get_client(asked["c"]) if asked else None
        if asked is None or client is None or asked["t"] + REQUEST_TIME < self._clock() or asked["n"] in self._used:
            return _refused(
                "This request to connect is too old, was allowed already, or is not one of this server. Begin again in "
                "the program."
            )
        if decides and typed.get("decision") == "deny":
            return self._back(asked, error="access_denied")
        why, scopes = "", typed.get("scopes", "").split()
        code = self.grants.code(asked["n"])
        if decides:
            if typed.get("right") not in RIGHTS:
                why = "Say what the program may do."
            elif not all(map(_SCOPE.fullmatch, scopes)) or len(scopes) > 20:
                why = "Scopes are names of letters, digits and . / : @ - _ with spaces between them, at most 20."
            elif not hmac.compare_digest(letters(typed.get("code", "")).encode(), code.encode()):
                why = "That is not the code of this request, which was printed where the server runs."
            else:
                return self._sent_back(asked, client, typed, scopes)
        else:
            self._printer.tell(asked["n"], code, client.client_name or "", asked["r"])
        rights = [scope.removeprefix(PREFIX) for scope in asked["a"]]
        server = urlsplit(self.issuer).netloc
        shown = consent.page(client.client_name or "", asked["r"], server, rights, asked["n"], typed, why)
        return HTMLResponse(shown, 400 if decides else 200, consent.headers(asked["r"]))

    def _sent_back(
        self, asked: dict[str, Any], client: OAuthClientInformationFull, typed: dict[str, str], scopes: list[str]
    ) -> Response:
        """Send the browser back with a code for what somebody has allowed."""
        now, right = self._clock(), typed["right"]
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32),
            scopes=scopes_of(right, scopes),
            expires_at=now + CODE_TIME,
            client_id=client.client_id,
            code_challenge=asked["k"],
            redirect_uri=AnyUrl(asked["r"]),
            redirect_uri_provided_explicitly=asked["x"],
            resource=self.resource,
            subject=consent.name_for(typed.get("name", "")),
        )
        self._allowed = {key: each for key, each in self._allowed.items() if each.code.expires_at > now}
        self._spent = {key: each for key, each in self._spent.items() if each.ends > now}
        self._used = {key: at for key, at in self._used.items() if at + REQUEST_TIME >= now}
        self._used[asked["n"]] = asked["t"]
        self._allowed[code.code] = _Allowed(code, client.client_name or "a program", right, scopes)
        return self._back(asked, code=code.code)

    def _back(self, asked: dict[str, Any], **answer: str) -> Response:
        """Send the browser back to the program."""
        place = construct_redirect_uri(asked["r"], **answer, state=asked["s"], iss=self.issuer)
        return RedirectResponse(place, 303, consent.headers(asked["r"]))

    # -- codes and tokens

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        """The code, once. Whoever brings it again ends the connection: one of the two has stolen it."""
        spent = self._spent.get(authorization_code)
        if spent is not None and spent.client == client.client_id:
            self._end(spent.name)
        allowed = self._allowed.get(authorization_code)
        return allowed.code if allowed and allowed.code.client_id == client.client_id else None

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        allowed = self._allowed.get(authorization_code.code)
        if allowed is None:
            raise TokenError("invalid_grant", "authorization code does not exist")
        code, wanted = allowed.code, allowed.code.subject or "program"
        name, tokens = self.grants.add(wanted, code.client_id, allowed.right, allowed.scopes, self.resource)
        del self._allowed[code.code]  # now that it is kept what it stands for
        self._spent[code.code] = _Spent(code.client_id, name, self._clock() + HOUR)
        self._note(name, "let in", allowed.right, ())
        _say(f"{escaped(allowed.program)} may {allowed.right} now, as {name}; it was sent to {code.redirect_uri}")
        return _answer(tokens, code.scopes)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        """The token. Whoever brings one that is spent ends the connection: one of the two has stolen it."""
        spent = self.grants.by_spent(refresh_token)
        if spent is not None and spent.client == client.client_id:
            self._end(spent.name)
        found = self.grants.by_refresh(refresh_token)
        if found is None or found.client != client.client_id:
            return None
        return RefreshToken(
            token=refresh_token,
            client_id=found.client,
            scopes=scopes_of(found.right, found.scopes),
            expires_at=found.ends,
            resource=found.resource,
            subject=found.name,
        )

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        """New tokens. A program may ask for less to do; the scopes of the bank that it is limited to stay."""
        found = self.grants.by_refresh(refresh_token.token)
        right = highest(scope.removeprefix(PREFIX) for scope in scopes)
        if found is None or not right:
            raise TokenError("invalid_grant", "refresh token does not exist")
        tokens = self.grants.renewed(refresh_token.token, right)
        if tokens is None:
            raise TokenError("invalid_grant", "refresh token does not exist")
        return _answer(tokens, scopes_of(right, found.scopes))

    async def load_access_token(self, token: str) -> AccessToken | None:
        found = self.grants.by_access(token)
        return found and _access(token, found)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        """End the connection that the token is of."""
        found = self.grants.by_access(token.token) or self.grants.by_refresh(token.token)
        if found is not None:
            self.grants.remove(found.name)

    def _end(self, name: str) -> None:
        if self.grants.remove(name):
            self._note(name, "let in", "ended", ())
            _say(f"{name} is not let in any more: a code or a token of it came twice, so somebody else has it, too")

    # -- what is sealed instead of kept

    def _sealed(self, kind: str, value: dict[str, Any]) -> str:
        body = _text(json.dumps(value, separators=(",", ":")).encode())
        return f"{body}.{self._mark(kind, body)}"

    def _opened(self, kind: str, sealed: str) -> dict[str, Any] | None:
        """What was sealed; None for anything that was not, or not as this."""
        body, _, mark = sealed.partition(".")
        if not sealed.isascii() or not hmac.compare_digest(mark, self._mark(kind, body)):
            return None
        try:
            opened: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        except (ValueError, binascii.Error):
            return None
        return opened

    def _secret(self, client_id: str) -> str:
        return self._mark("secret", client_id)

    def _mark(self, kind: str, body: str) -> str:
        return _text(hmac.digest(self.grants.key, f"{kind}:{body}".encode(), hashlib.sha256)[:24])


def guarded(app: ASGIApp, issuer: str) -> ASGIApp:
    """The application with small bodies at the routes of OAuth, and without the SDK's redirects on a mistake.

    Anybody can register an address to go back to; a link to this server must not lead there before somebody has seen
    the consent page. The metadata also say what the SDK does not: that programs need no secret, and that the answer
    names its issuer.
    """
    limited = RequestBodyLimitMiddleware(app, MAX_BODY)

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == METADATA:
            await app(scope, receive, _completed(send))
        elif scope["type"] == "http" and scope["path"] == AUTHORIZATION_PATH:
            await limited(scope, receive, _at_home(scope, receive, send, issuer))
        elif scope["type"] == "http" and scope["path"] in PATHS:
            await limited(scope, receive, send)
        else:
            await app(scope, receive, send)

    return checked


def _at_home(scope: Scope, receive: Receive, send: Send, issuer: str) -> Send:
    """Replace an answer that leads anywhere but to the consent page."""
    replaced = False

    async def sent(message: Message) -> None:
        nonlocal replaced
        place = dict(message.get("headers", ())).get(b"location", b"").decode("latin-1")
        if place and not place.startswith(issuer + CONSENT):
            replaced = True
            said = parse_qs(urlsplit(place).query)
            why = (said.get("error_description") or said.get("error") or ["It asked for nothing known."])[-1]
            page = _refused(f"The program asked in a way that this server does not take: {why}")
            await page(scope, receive, send)
        elif not replaced:
            await send(message)

    return sent


def _completed(send: Send) -> Send:
    """Add to the metadata of the authorization server, which come in one piece."""
    start: Message = {}

    async def sent(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start":
            start = message
            return
        body = message.get("body", b"")
        if start["status"] == 200 and body:
            found = json.loads(body)
            for name in ("token_endpoint_auth_methods_supported", "revocation_endpoint_auth_methods_supported"):
                found[name] = ["none", *found[name]]
            body = json.dumps({**found, "authorization_response_iss_parameter_supported": True}).encode()
        headers = [(name, value) for name, value in start["headers"] if name != b"content-length"]
        await send({**start, "headers": [*headers, (b"content-length", str(len(body)).encode())]})
        await send({**message, "body": body})

    return sent


async def unavailable(request: Request, error: Exception) -> Response:
    """The answer when what is allowed cannot be read or kept: a full disk, a damaged file."""
    _say(f"{request.url.path} failed, because {FILE} in the configuration folder cannot be used: {error}")
    about = {"error": "temporarily_unavailable", "error_description": "The server cannot keep that now; try again."}
    return JSONResponse(about, 503, {"cache-control": "no-store", "retry-after": "30"})


def public(url: str) -> str:
    """The address by which people and programs know the server. Raises InvalidInput for what cannot be one."""
    parts = urlsplit(url.rstrip("/"))
    try:
        local = _host(url) in _LOOPBACK and parts.port is not None
        plain = (
            parts.port != 0
            and not (parts.path or parts.query or parts.fragment or "@" in parts.netloc)
            and bool(parts.hostname)
        )
    except ValueError:
        plain = local = False
    if not plain or not (parts.scheme == "https" or (parts.scheme == "http" and local)):
        raise InvalidInput(
            "That cannot be the public address of the server.",
            hint="Give it as https://mem.example.com, without a path; a proxy with a certificate serves it there.",
        )
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _may_lead_back(redirect: str, public: bool) -> bool:
    """Whether a program may be sent back there. A `public` one has no secret, as those on people's computers."""
    parts = urlsplit(redirect)
    plain = "#" not in redirect and "@" not in parts.netloc and redirect.isascii() and redirect.isprintable()
    if not plain or len(redirect) > MAX_REDIRECT:
        return False
    if parts.scheme in ("http", "https"):
        return bool(_NETLOC.fullmatch(parts.netloc)) and (parts.scheme == "https" or _host(redirect) in _LOOPBACK)
    return public and _is_private(redirect)


def _is_private(address: str) -> bool:
    """Whether an address is of a kind that a program has for itself: `cursor://…`, `com.example.app:/…` (RFC 8252)."""
    scheme, _, rest = address.partition(":")
    known = scheme in _NOT_PRIVATE or scheme.startswith(_NOT_PRIVATE_FAMILIES)
    own = re.match(r"//\w", rest) or ("." in scheme and re.match(r"/[\w/]*", rest))
    return bool(_SCHEME.fullmatch(scheme) and not known and own)


def _host(url: str) -> str:
    return re.sub(r":\d*$", "", urlsplit(url).netloc.lower())


def _from_this_page(request: Request, issuer: str) -> bool:
    """Whether a form came from our own page, where the browser says from where it came."""
    site, origin = request.headers.get("sec-fetch-site", "same-origin"), request.headers.get("origin", issuer)
    return site == "same-origin" and origin == issuer


def _same(one: str, other: str) -> bool:
    """Whether two addresses are of one server: case and standard ports do not matter."""
    try:
        return str(AnyUrl(one)).rstrip("/") == str(AnyUrl(other)).rstrip("/")
    except ValidationError:
        return False


def _access(token: str, found: Grant) -> AccessToken:
    return AccessToken(
        token=token,
        client_id=found.client,
        scopes=scopes_of(found.right, found.scopes),
        expires_at=found.ends,
        resource=found.resource,
        subject=found.name,
    )


def _answer(tokens: Tokens, scopes: list[str]) -> OAuthToken:
    return OAuthToken(
        access_token=tokens.access,
        token_type="Bearer",  # noqa: S106
        expires_in=HOUR,
        scope=" ".join(scopes),
        refresh_token=tokens.refresh,
    )


def _refused(why: str, status: int = 400) -> Response:
    return HTMLResponse(consent.refusal(why), status, consent.headers())


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _say(line: str) -> None:
    print(f"memlane: {line}", file=sys.stderr, flush=True)
