"""Tokens that a company's login makes: signed JWTs, checked with the keys that it publishes.

Only signatures by asymmetric keys count, so nobody can sign with what is public. Issuer and audience must be the
configured ones, and `exp` and `sub` be there. The keys are fetched in a thread, seldom, and never by more than one
request at a time; without them, tokens are refused, and standard error says why.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

import jwt
from mcp.server.auth.provider import AccessToken

from memlane.core.errors import ConfigError

ALGORITHMS = [
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
]  # fmt: skip
KINDS = ("RSA", "EC", "OKP")
LIMITING = "memory:in"  # what words of a token begin with that limit it, also where they are misspelt
LONGEST = 16 * 1024  # characters of a token
MAX_KEYS = 512 * 1024  # bytes of what is published
TIMEOUT = 5.0  # seconds to fetch it
FRESH, AGAIN = 600.0, 15.0  # seconds after which keys are fetched anew; at the earliest, when one is not among them
STALE = 24 * 3600.0  # seconds for which keys count while the issuer cannot be reached
LEEWAY = 30  # seconds that clocks may differ by


class Unavailable(Exception):
    """The keys cannot be fetched, so that nothing can be said of a token."""


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Keys come from the configured address alone."""

    def redirect_request(self, *_: Any) -> None:
        return None


def is_safe(url: str) -> bool:
    """Whether nobody on the way can change what an address answers: https, or this machine."""
    parts = urlsplit(url)
    return bool(parts.hostname) and (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost"))
    )


class Jwts:
    """A verifier of the tokens of one issuer for one audience. Raises ConfigError for addresses that are not safe."""

    def __init__(self, issuer: str, audience: str, jwks_uri: str, url: str) -> None:
        for name, value in (("issuer", issuer), ("jwks_uri", jwks_uri)):
            if not is_safe(value):
                raise ConfigError(
                    f"mcp.auth.{name} is not an https address.",
                    hint="[mcp.auth] needs issuer, audience and jwks_uri; http is for this machine alone.",
                )
        self._issuer, self._audience, self._uri, self._url = issuer, audience or url, jwks_uri, url
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched = self._tried = float("-inf")  # when keys came last, and when they were last asked for
        self._fetching = asyncio.Lock()
        self._said = ""

    async def verify_token(self, token: str) -> AccessToken | None:
        """What a token may do; None for one that does not count. Raises Unavailable."""
        if token.count(".") != 2 or len(token) > LONGEST:
            return None
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in ALGORITHMS or "crit" in header:
                return None
            key = await self._key(header.get("kid"))
            if key is None:
                return None
            claims = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                audience=self._audience,
                issuer=self._issuer,
                leeway=LEEWAY,
                options={"require": ["exp", "aud", "iss", "sub"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            return None
        subject = claims["sub"]
        if not isinstance(subject, str) or not subject.strip():
            return None
        client = claims.get("client_id") or claims.get("azp") or subject
        return AccessToken(
            token=token,
            client_id=str(client),
            scopes=_scopes(claims),
            expires_at=int(claims["exp"]),
            resource=self._url,  # the audience was checked
            subject=subject,
            claims={"iss": self._issuer},
        )

    async def _key(self, kid: Any) -> jwt.PyJWK | None:
        """The key of this id; without an id, the only one."""
        now = time.monotonic()
        known = self._found(kid) is not None
        if not known or (now - self._fetched > FRESH and not self._fetching.locked()):
            async with self._fetching:
                waited = FRESH if known and self._tried == self._fetched else AGAIN
                if time.monotonic() - self._tried > waited:
                    await self._fetch()
        if time.monotonic() - self._fetched > STALE:
            raise Unavailable
        return self._found(kid)

    def _found(self, kid: Any) -> jwt.PyJWK | None:
        if isinstance(kid, str):
            return self._keys.get(kid)
        return next(iter(self._keys.values())) if kid is None and len(self._keys) == 1 else None

    async def _fetch(self) -> None:
        self._tried = time.monotonic()
        try:
            self._keys = _usable(await asyncio.to_thread(_published, self._uri))
            self._fetched = self._tried
            self._said = ""
        except (OSError, ValueError) as error:
            why = getattr(error, "reason", None) or error
            said = f"memlane: the keys of {self._issuer} cannot be fetched from {self._uri}: {why}"
            if said != self._said:  # once, and not with every request
                print(f"{said}. Its tokens are refused until they can.", file=sys.stderr, flush=True)
                self._said = said


def _published(uri: str) -> Any:
    """What an issuer publishes. Raises OSError, ValueError."""
    opener = urllib.request.build_opener(NoRedirects, urllib.request.ProxyHandler())
    with opener.open(uri, timeout=TIMEOUT) as answer:
        data = answer.read(MAX_KEYS + 1)
    if len(data) > MAX_KEYS:
        raise ValueError("they are too long")
    return json.loads(data)


def _usable(published: Any) -> dict[str, jwt.PyJWK]:
    """The keys that signatures are checked with, by id. Raises ValueError where there are none."""
    found: dict[str, jwt.PyJWK] = {}
    for entry in published.get("keys", []) if isinstance(published, dict) else []:
        if not isinstance(entry, dict) or entry.get("kty") not in KINDS or entry.get("use", "sig") != "sig":
            continue
        try:
            key = jwt.PyJWK(entry)
        except jwt.PyJWTError:
            continue
        if key.algorithm_name in ALGORITHMS and getattr(key.key, "key_size", 4096) >= (
            2048 if entry["kty"] == "RSA" else 0
        ):
            found[str(entry.get("kid", ""))] = key
    if not found:
        raise ValueError("there are none that can be used")
    return found


def _scopes(claims: dict[str, Any]) -> list[str]:
    """The scopes of a token: of `scope`, else of `scp`, words or a list of them; and what the other one limits it to.

    None at all where one of them is something else: it may have been what limits the token.
    """
    given = [claims[name] for name in ("scope", "scp") if claims.get(name) is not None]
    lists = [each if isinstance(each, list) else [each] for each in given]
    if not all(isinstance(part, str) for parts in lists for part in parts):
        return []
    words = [[word for part in parts for word in part.split()] for parts in lists]
    limits = [word for each in words[1:] for word in each if word.casefold().startswith(LIMITING)]
    return [*words[0], *limits] if words else []
