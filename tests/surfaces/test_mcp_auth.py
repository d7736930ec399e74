"""Who may use the server over HTTP, with the SDK's client and with an attacker's requests."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import httpx2
import jwt
import pytest
import uvicorn
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.provider import AccessToken
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from conftest import trusted
from memlane import AlreadyExists, Bank, ConfigError
from memlane.config import tokens
from memlane.core.access import Access
from memlane.core.dates import utc_now
from memlane.surfaces import connections
from memlane.surfaces.mcp import http
from memlane.surfaces.mcp.auth import Limits, Named
from memlane.surfaces.mcp.jwts import Jwts
from memlane.surfaces.mcp.server import build_server

JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Bank.init(tmp_path)
    return tmp_path


class Known:
    """A verifier of a few tokens: what each may do."""

    def __init__(self, url: str, **tokens: str) -> None:
        self.url, self.tokens = url, tokens

    async def verify_token(self, token: str) -> AccessToken | None:
        scopes = self.tokens.get(token)
        if scopes is None:
            return None
        return AccessToken(token=token, client_id=token, scopes=scopes.split(), resource=self.url)


@contextmanager
def served(
    folder: Path,
    *,
    names: tuple[str, ...] = (),
    verifiers: Callable[[str], list[Any]] = lambda _: [],
    limits: Limits | None = None,
    **tokens: str,
) -> Iterator[str]:
    """The URL of a server in this process, for these tokens and their scopes."""
    with connections.opened("127.0.0.1", 0) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        routes = [Route("/hello", lambda _: PlainTextResponse("hello"))]
        known = [*([Known(url, **tokens)] if tokens else []), *verifiers(url)]
        options: dict[str, Any] = {"verifiers": known, "routes": routes, "limits": limits}
        app = http.application(build_server(folder, readers=1), names, url=url, **options)
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield url
        finally:
            server.should_exit = True
            thread.join()


def sent(url: str, body: Any = INITIALIZE, **headers: str) -> tuple[int, dict[str, str]]:
    """The status and the headers of the answer to a request."""
    head = {**JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), head)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, dict(answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(error.headers)


def called(url: str, token: str, tool: str, era: str = "auto", **arguments: Any) -> Any:
    """The text of a tool's answer to the SDK's client."""

    async def run() -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=120) as web,
            Client(streamable_http_client(url, http_client=web), mode=era) as client,
        ):
            result = await client.call_tool(tool, arguments)
            return result.content[0].text if result.is_error else result.structured_content

    return anyio.run(run)


def refused(url: str, token: str, tool: str, era: str = "auto", **arguments: Any) -> str:
    """What the SDK's client is told of a call that fails."""
    try:
        called(url, token, tool, era, **arguments)
    except Exception as error:
        return _told(error)
    raise AssertionError("it was not refused")


def _told(error: BaseException) -> str:
    inside = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return f"{error} {' '.join(map(_told, inside))}"


def test_a_request_without_a_token_is_told_where_to_get_one(folder: Path) -> None:
    with served(folder, ann="memory:read") as url:
        status, headers = sent(url)
        base = url.removesuffix("/mcp")
        metadata = f"{base}/.well-known/oauth-protected-resource/mcp"
        assert status == 401
        assert headers["www-authenticate"] == (
            'Bearer error="invalid_token", error_description="A bearer token is required.", '
            f'scope="memory:read", resource_metadata="{metadata}"'
        )
        with urllib.request.urlopen(metadata, timeout=120) as answer:
            said = json.loads(answer.read())
    assert said == {
        "resource": url,
        "authorization_servers": [base],
        "scopes_supported": ["memory:read"],
        "bearer_methods_supported": ["header"],
    }


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("Bearer bob", "This token does not count: it is unknown here, has expired, or was revoked."),
        ("bearer bob", "This token does not count: it is unknown here, has expired, or was revoked."),
        ("Bearer ", "A bearer token is required."),
        ("Basic YW5uOmFubg==", "A bearer token is required."),
    ],
)
def test_who_sends_a_token_that_does_not_count_is_told_so(folder: Path, given: str, why: str) -> None:
    with served(folder, ann="memory:read") as url:
        status, headers = sent(url, authorization=given)
    assert (status, headers["www-authenticate"].split(", ")[0]) == (401, 'Bearer error="invalid_token"')
    assert f'error_description="{why}"' in headers["www-authenticate"]


@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_a_token_for_more_may_do_less_as_well(folder: Path, era: str) -> None:
    with served(folder, ann="memory:remove") as url:
        made = called(url, "ann", "remember", era, text="Deploys go out on Tuesdays.", title="Deploy day")
        found = called(url, "ann", "recall", era, query="deploys")
    assert (made["id"], found["ids"]) == ("notes:deploy-day", ["notes:deploy-day"])


def test_a_token_without_any_right_is_told_which_it_lacks_and_whom_to_ask(folder: Path) -> None:
    with served(folder, ann="openid") as url:
        status, headers = sent(url, authorization="Bearer ann")
    said = "The token of ann has no right here, not even memory:read. Ask who runs the server for one that may."
    assert (status, f'error_description="{said}"' in headers["www-authenticate"]) == (403, True)


def test_a_token_that_may_only_read_writes_nothing(folder: Path) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "remember", "arguments": {}}}
    with served(folder, ann="memory:read") as url:
        for era in ("legacy", "auto"):
            assert "may read, but not write" in refused(url, "ann", "remember", era, text="Deploys go out on Tuesdays.")
        version = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": "remember"}
        status, headers = sent(url, call, authorization="Bearer ann", **version)
    assert status == 403
    assert 'error="insufficient_scope"' in headers["www-authenticate"]
    assert 'scope="memory:write"' in headers["www-authenticate"]
    assert Bank.open(folder).list() == []


def test_who_may_only_read_is_told_of_the_tools_that_read(folder: Path) -> None:
    with served(folder, ann="memory:read") as url:
        said = refused(url, "ann", "zzz", "legacy")
    assert ("There is no such tool. There are: recall, " in said, "remember" in said) == (True, False)


def test_only_one_authorization_header_counts_and_no_query(folder: Path) -> None:
    with served(folder, ann="memory:read") as url:
        assert sent(url, authorization="Bearer ann")[0] == 200
        assert sent(f"{url}?access_token=ann&token=ann")[0] == 401
        head = [*JSON.items(), ("Authorization", "Bearer ann"), ("Authorization", "Bearer ann")]
        assert httpx2.post(url, json=INITIALIZE, headers=head).status_code == 401


def test_a_page_behind_a_proxy_with_a_certificate_is_no_stranger(folder: Path) -> None:
    with served(folder, names=("mem.example.com",), ann="memory:read") as url:
        head = {"host": "mem.example.com", "authorization": "Bearer ann"}
        assert sent(url, origin="https://mem.example.com", **head)[0] == 200
        assert sent(url, origin="https://evil.example", **head)[0] == 403
        forwarded = {"x_forwarded_host": "mem.example.com", "x_forwarded_proto": "https", "forwarded": "host=mem"}
        assert sent(url, **{**head, "host": "evil.example"}, **forwarded)[0] == 421


def test_further_routes_need_no_token(folder: Path) -> None:
    with served(folder, ann="memory:read") as url:
        assert sent(url.replace("/mcp", "/hello"), None)[0] == 200


# -- tokens with a name


def root(folder: Path) -> Path:
    return Bank.open(folder).root


def named(folder: Path) -> Callable[[str], list[Any]]:
    return lambda url: [Named(root(folder), url)]


def test_a_token_counts_as_soon_as_it_is_made_and_no_longer_than_it_should(folder: Path) -> None:
    bank = root(folder)
    with served(folder, verifiers=named(folder)) as url:
        token = tokens.add(bank, Access("ann", "write"))
        head = {"authorization": f"Bearer {token}"}
        status, headers = sent(url, **head)
        session = {"mcp_session_id": headers["mcp-session-id"], "mcp_protocol_version": "2025-11-25", **head}
        listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert (status, sent(url, listing, **session)[0]) == (200, 200)
        tokens.revoke(bank, "ann")
        assert sent(url, listing, **session)[0] == 401
        again = tokens.add(bank, Access("ann", "write"))
        assert (sent(url, **head)[0], sent(url, authorization=f"Bearer {again}")[0]) == (401, 200)
    assert [(one.access.name, one.state) for one in tokens.listed(bank)] == [("ann", "active")]


def test_an_open_session_may_do_what_its_token_may_now(folder: Path) -> None:
    bank = root(folder)
    token = tokens.add(bank, Access("ann", "write"))
    call = {"name": "remember", "arguments": {"text": "Deploys go out on Tuesdays."}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    with served(folder, verifiers=named(folder)) as url:
        session = sent(url, authorization=f"Bearer {token}")[1]["mcp-session-id"]
        tokens.revoke(bank, "ann")
        less = tokens.add(bank, Access("ann", "read"))
        head = {**JSON, "Authorization": f"Bearer {less}", "mcp-session-id": session}
        answer = httpx2.post(url, json=message, headers=head, timeout=120)
    assert "may read, but not write" in answer.text
    assert Bank.open(folder).list() == []


def test_a_token_is_for_one_bank_and_is_kept_as_a_hash(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Bank.init(tmp_path / "other").root
    token = tokens.add(root(folder), Access("ann"))
    assert (tokens.known(root(folder), token) is None, tokens.known(other, token)) == (False, None)
    path = Path(tokens._path())
    assert (path.stat().st_mode & 0o777, token in path.read_text()) == (0o600, False)
    with pytest.raises(AlreadyExists, match="a token of ann already"):
        tokens.add(root(folder), Access("ann"))


def test_a_token_that_has_expired_is_nobodys(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tokens.add(root(folder), Access("ann"), days=1)
    later = utc_now() + timedelta(days=1, seconds=1)
    monkeypatch.setattr(tokens, "utc_now", lambda: later)
    assert tokens.known(root(folder), token) is None
    assert [one.state for one in tokens.listed(root(folder))] == ["expired"]


def test_two_who_make_tokens_at_once_lose_nothing(folder: Path) -> None:
    bank = root(folder)
    threads = [threading.Thread(target=tokens.add, args=(bank, Access(f"t{number}"))) for number in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(one.access.name for one in tokens.listed(bank)) == sorted(f"t{number}" for number in range(12))


def test_a_file_of_tokens_that_others_can_read_lets_nobody_in(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    token = tokens.add(root(folder), Access("ann"))
    Path(tokens._path()).chmod(0o644)
    with served(folder, verifiers=named(folder)) as url:
        assert sent(url, authorization=f"Bearer {token}")[0] == 401
    assert "open to other users" in capfd.readouterr().err
    with pytest.raises(ConfigError):
        tokens.listed(root(folder))


def test_a_token_of_one_scope_learns_nothing_of_another_also_from_the_readers(folder: Path) -> None:
    bank = Bank.open(folder)
    bank.add("The hippogriff ships in May.", title="Plan", scope="skunk")
    bank.add("Invoices are in Postgres.", title="Invoices", scope="billing")
    token = tokens.add(bank.root, Access("ann", "remove", ("billing",)))
    whole = tokens.add(bank.root, Access("bob", "read"))

    async def run(url: str) -> list[Any]:
        head = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=head, timeout=120) as web,
            Client(streamable_http_client(url, http_client=web)) as client,
        ):
            calls = [client.call_tool("search_memories", {"query": "hippogriff postgres"}) for _ in range(12)]
            found: list[Any] = [None] * len(calls)

            async def one(number: int) -> None:
                found[number] = (await calls[number]).structured_content

            async with anyio.create_task_group() as tasks:
                for number in range(len(calls)):
                    tasks.start_soon(one, number)
            listed = await client.list_resources()
            read = await client.call_tool("read_memory", {"filename": "plan"})
            return [found, [resource.name for resource in listed.resources], read.content[0].text]

    with served(folder, verifiers=named(folder)) as url:
        found, listed, read = anyio.run(run, url)
        assert {hit["memory_id"] for one in found for hit in one["result"]} == {"memory:invoices"}
        assert listed == ["index", "notes:invoices"]
        assert "There is no memory plan" in read
        made = called(url, token, "remember", text="Refunds take two days.", title="Refunds")
        assert made["id"] == "notes:scopes/billing/refunds"
        assert len(called(url, whole, "list_memories")["memories"]) == 3
    note = bank.get("notes:scopes/billing/refunds")
    assert (note.scope, note.fields["author"]) == ("billing", "ann")
    assert bank.history(note.id)[0].author == "mcp ann"


@contextmanager
def commanded(folder: Path, *words: str) -> Iterator[str]:
    """The URL of `memlane mcp --http`."""
    command = [str(Path(sys.executable).with_name("memlane")), "mcp", "--http", *words]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr
            line = process.stderr.readline()
            yield line.split()[2].rstrip(";")
        finally:
            process.terminate()


def test_a_server_asks_for_tokens_once_there_was_one_and_serves_a_network_with_them(folder: Path) -> None:
    bank = root(folder)
    tokens.add(bank, Access("ann"))
    tokens.revoke(bank, "ann")
    with commanded(folder, "--port", "0", "--host", "0.0.0.0") as url:
        url = url.replace("0.0.0.0", "127.0.0.1")
        token = tokens.add(bank, Access("bob"))
        assert (sent(url)[0], sent(url, authorization=f"Bearer {token}")[0]) == (401, 200)


def test_a_server_without_tokens_serves_nobody_once_there_is_one(folder: Path) -> None:
    with commanded(folder, "--port", "0") as url:
        assert sent(url)[0] == 200
        tokens.add(root(folder), Access("ann"))
        assert sent(url)[0] == 401
    with commanded(folder, "--port", "0") as url:
        assert sent(url)[0] == 401


# -- tokens of an issuer

ISSUER = "https://login.example.com"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)
WEAK = rsa.generate_private_key(public_exponent=65537, key_size=1024)
CURVE = ec.generate_private_key(ec.SECP256R1())


def published(**keys: Any) -> dict[str, Any]:
    found = []
    for kid, key in keys.items():
        kind = (
            jwt.algorithms.ECAlgorithm if isinstance(key, ec.EllipticCurvePrivateKey) else jwt.algorithms.RSAAlgorithm
        )
        algorithm = "ES256" if kind is jwt.algorithms.ECAlgorithm else "RS256"
        found.append({**json.loads(kind.to_jwk(key.public_key())), "kid": kid, "alg": algorithm, "use": "sig"})
    symmetric = {"kty": "oct", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA", "kid": "oct", "alg": "HS256"}
    return {"keys": [symmetric, *found]}


@contextmanager
def issuing(keys: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """The address of somebody who publishes these keys, and what it was asked for."""
    asked: list[str] = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            if self.path == "/moved":
                self.send_response(302)
                self.send_header("location", "/keys")
                self.end_headers()
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(keys).encode() if self.path == "/keys" else b" " * 2_000_000)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/keys", asked
        server.shutdown()


def signed(key: Any = KEY, algorithm: str = "RS256", kid: str | None = "one", **claims: Any) -> str:
    whole = {
        "iss": ISSUER, "sub": "ann", "aud": "memory", "exp": int(time.time()) + 300, "scope": "openid memory:write",
        **claims,
    }  # fmt: skip
    given = {name: value for name, value in whole.items() if value is not None}
    with warnings.catch_warnings(action="ignore"):  # of a key that can be broken
        return jwt.encode(given, key, algorithm, headers={"kid": kid} if kid else None)


def unsigned(algorithm: str, signature: str = "", **claims: Any) -> str:
    """A token that no library would make."""
    body = {"iss": ISSUER, "sub": "ann", "aud": "memory", "exp": 2**31, "scope": "memory:remove", **claims}
    parts = ({"alg": algorithm, "kid": "one", "typ": "JWT"}, body)
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return ".".join([*encoded, signature])


def with_public_key(algorithm: str = "HS256") -> str:
    """A token that is signed with what everybody knows."""
    pem = KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    text = unsigned(algorithm).rstrip(".")
    mac = hmac.new(pem, text.encode(), hashlib.sha256).digest()
    return f"{text}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def test_a_token_of_the_issuer_writes_in_the_name_of_its_subject(folder: Path) -> None:
    with (
        issuing(published(one=KEY, two=CURVE)) as (keys, asked),
        served(folder, verifiers=lambda url: [Jwts(ISSUER, "memory", keys, url)]) as url,
    ):
        called(url, signed(), "remember", text="Bob likes tea.", title="Tea")
        called(url, signed(CURVE, "ES256", "two", scp=["memory:write"], scope=None), "recall", query="tea")
        inside = signed(scope="memory:read memory:in:billing")
        assert called(url, inside, "list_memories")["memories"] == []
        assert asked == ["/keys"]
    assert Bank.open(folder).get("notes:tea").fields["author"] == "ann"


def test_what_limits_a_token_of_the_issuer_is_never_overlooked(folder: Path) -> None:
    Bank.open(folder).add("The plan is secret.", title="Plan", scope="skunk")
    claims: tuple[dict[str, Any], ...] = (
        {"scope": "memory:read", "scp": ["memory:in:billing"]},
        {"scope": ["memory:read", "memory:in:billing"]},
        {"scope": ["memory:read memory:in:billing"]},
        {"scope": "memory:read memory:In:billing"},
        {"scope": "memory:read memory:in"},
        {"scope": "memory:read memory:in:"},
        {"scope": "memory:read memory:inside:billing"},
    )
    odd: tuple[dict[str, Any], ...] = (
        {"scope": ["memory:read", ["memory:in:billing"]]},
        {"scope": ["memory:read", {"memory:in": "billing"}]},
        {"scope": "memory:read", "scp": {"memory:in": "billing"}},
        {"scope": {"memory:read": True}},
        {"scope": 5},
        {"scope": True},
    )
    with (
        issuing(published(one=KEY)) as (keys, _),
        served(folder, verifiers=lambda url: [Jwts(ISSUER, "memory", keys, url)]) as url,
    ):
        assert len(called(url, signed(scope="memory:read"), "list_memories")["memories"]) == 1
        for claim in claims:
            assert called(url, signed(**claim), "list_memories")["memories"] == [], claim
        for claim in odd:
            assert sent(url, authorization=f"Bearer {signed(**claim)}")[0] == 403, claim


def test_no_other_token_gets_in(folder: Path) -> None:
    secret = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA"
    attacks = {
        "for somebody else": signed(aud="https://other.example.com/mcp"),
        "for nobody": signed(aud=None),
        "of another issuer": signed(iss="https://evil.example"),
        "of no issuer": signed(iss=None),
        "expired": signed(exp=int(time.time()) - 60),
        "for ever": signed(exp=None),
        "of nobody": signed(sub=None),
        "of an empty name": signed(sub=" "),
        "not valid yet": signed(nbf=int(time.time()) + 600),
        "signed by another key": signed(OTHER),
        "by a key that is not published": signed(kid="unknown"),
        "without a key, of which there are several": signed(kid=None),
        "by a key that can be broken": signed(WEAK, kid="weak"),
        "by a secret that is published": signed(secret, "HS256", "oct"),
        "unsigned": unsigned("none"),
        "unsigned in other letters": unsigned("None"),
        "with an empty signature": unsigned("RS256"),
        "with a short signature": unsigned("RS256", "AAAA"),
        "signed with the public key": with_public_key(),
        "by another algorithm than the key's": signed(algorithm="PS256"),
        "changed": signed()[:-4] + "AAAA",
        "nonsense": "a.b.c",
        "dots": "..",
        "long": f"a.b.{'c' * 20_000}",
    }
    with (
        issuing(published(one=KEY, two=CURVE, weak=WEAK)) as (keys, _),
        served(folder, verifiers=lambda url: [Jwts(ISSUER, "memory", keys, url)]) as url,
    ):
        statuses = {name: sent(url, authorization=f"Bearer {token}")[0] for name, token in attacks.items()}
        assert sent(url, authorization=f"Bearer {signed()}")[0] == 200
    assert statuses == dict.fromkeys(attacks, 401)


def test_a_token_without_a_right_reads_nothing(folder: Path) -> None:
    with (
        issuing(published(one=KEY)) as (keys, _),
        served(folder, verifiers=lambda url: [Jwts(ISSUER, "memory", keys, url)]) as url,
    ):
        for scope in ("openid", "memory:in:billing", "memory:everything", ""):
            status, headers = sent(url, authorization=f"Bearer {signed(scope=scope)}")
            assert (status, 'scope="memory:read"' in headers["www-authenticate"]) == (403, True)


def test_keys_that_cannot_be_fetched_are_a_sentence_and_are_asked_for_once(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with issuing(published(one=KEY)) as (keys, asked):
        for place in ("/moved", "/long"):
            at = keys.replace("/keys", place)
            with served(folder, verifiers=lambda url: [Jwts(ISSUER, "memory", at, url)]) as url:  # noqa: B023
                statuses = [sent(url, authorization=f"Bearer {signed()}")[0] for _ in range(3)]
                assert statuses == [503, 503, 503]
        assert asked == ["/moved", "/long"]
    with served(folder, verifiers=lambda url: [Jwts(ISSUER, "memory", keys, url)]) as url:
        assert sent(url, authorization=f"Bearer {signed()}")[0] == 503
        assert sent(url, authorization="Bearer something-else")[0] == 401
    said = capfd.readouterr().err
    assert said.count(f"the keys of {ISSUER} cannot be fetched") == 3


def test_an_issuer_that_anybody_on_the_way_could_play_is_refused(folder: Path) -> None:
    for issuer, keys in (("http://login.example.com", f"{ISSUER}/k"), (ISSUER, "http://login.example.com/k"),
                         (ISSUER, "file:///etc/passwd"), (ISSUER, "")):  # fmt: skip
        with pytest.raises(ConfigError, match="not an https address"):
            Jwts(issuer, "memory", keys, "https://mem.example.com/mcp")


def test_the_configuration_names_the_issuer(folder: Path) -> None:
    file = folder / "memlane.toml"
    auth = 'issuer = "https://a.example"\naudience = "memory"\njwks_uri = "https://a.example/keys"\n'
    file.write_text(f"[memory]\nenabled = true\n[mcp.auth]\n{auth}[mcp]\nrate = 10\n")
    trusted(file)
    settings = Bank.open(folder).config
    assert [settings[f"mcp.auth.{name}"] for name in ("issuer", "audience", "jwks_uri")] == [
        "https://a.example", "memory", "https://a.example/keys",
    ]  # fmt: skip
    kinds = [type(one).__name__ for one in http.verifiers(settings, "https://mem.example.com/mcp", "x" * 16)]
    assert kinds == ["OneToken", "Named", "Jwts"]


def test_an_address_with_a_slash_leads_to_the_same_origin(folder: Path) -> None:
    """Behind a proxy with a certificate, a redirect to http:// would have the client send its token in the clear."""
    with served(folder, ann="memory:read") as url, httpx2.Client() as web:
        answer = web.post(f"{url}/", headers={"host": "mem.example.com"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "/mcp")
