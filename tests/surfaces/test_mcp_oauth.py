"""OAuth in the server itself: a real client goes the whole way, and an attacker gets nowhere."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from memlane import Bank, InvalidInput
from memlane.config import grants
from memlane.surfaces.mcp import consent, http, oauth
from memlane.surfaces.mcp.server import build_server

MEMLANE = str(Path(sys.executable).with_name("memlane"))
ISSUER = "https://mem.example.com"
BACK = "https://app.example.com/back"
VERIFIER = "v" * 50
PRINTED = re.compile(r"The code of request (\w{4}-\w{4}) is (\w{4}-\w{4}-\w{4})")
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")


# -- the whole way, with the SDK's own client and the command


class Stored:
    """What a client keeps of a server between two starts."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@contextmanager
def served(folder: Path, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    words = [MEMLANE, "--bank", str(folder), "mcp", "--http", "--oauth", "--port", str(port)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr
            yield process, process.stderr.readline().split()[2].rstrip(";")
            process.send_signal(signal.SIGTERM)
            process.wait(120)
        finally:
            process.kill()


def said(folder: Path, *words: str) -> str:
    return subprocess.run([MEMLANE, "--bank", str(folder), *words], capture_output=True, text=True, check=True).stdout


async def called(url: str, stored: Stored, person: Callable[[str], Awaitable[str]], tool: str, **given: Any) -> Any:
    """The answer to a call of the SDK's client; `person` is shown an address and says where the browser ended."""
    landed: dict[str, str] = {}

    async def redirect(address: str) -> None:
        landed.update({name: values[0] for name, values in parse_qs(urlsplit(await person(address)).query).items()})

    async def back() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**landed)

    about = OAuthClientMetadata(client_name="Demo", redirect_uris=[AnyUrl("http://127.0.0.1:1/back")])
    auth = OAuthClientProvider(url, about, stored, redirect, back)
    async with (
        httpx2.AsyncClient(auth=auth, timeout=120) as web,
        Client(streamable_http_client(url, http_client=web)) as client,
    ):
        return await client.call_tool(tool, given)


def test_the_sdks_client_finds_its_way_and_a_restart_keeps_it_connected(tmp_path: Path) -> None:
    Bank.init(tmp_path).close()
    stored = Stored()

    async def nobody(address: str) -> str:
        raise AssertionError(f"asked again: {address}")

    with served(tmp_path) as (process, url):

        async def person(address: str) -> str:
            async with httpx2.AsyncClient() as browser:
                page = await browser.get(address, follow_redirects=True)
                assert process.stderr
                [(number, code)] = PRINTED.findall(process.stderr.readline())
                assert number in page.text
                assert said(tmp_path, "token", "code", number.lower()) == f"{code}\n"
                form = {**fields(page.text), "right": "write", "name": "ann", "code": code.lower(), "decision": "allow"}
                done = await browser.post(url.removesuffix("/mcp") + oauth.CONSENT, data=form)
                return str(done.headers["location"])

        note = {"text": "Deploys go out on Tuesdays.", "title": "Deploy day"}
        assert not asyncio.run(called(url, stored, person, "remember", **note)).is_error
        assert stored.tokens is not None
        assert stored.tokens.scope == "memory:read memory:write"
        assert process.stderr
        assert (
            process.stderr.readline() == "memlane: Demo may write now, as ann; it was sent to http://127.0.0.1:1/back\n"
        )
    with served(tmp_path, urlsplit(url).port or 0) as (_, again):
        assert again == url
        recalled = asyncio.run(called(url, stored, nobody, "recall", query="deploys"))
        assert recalled.structured_content["ids"] == ["notes:deploy-day"]
        assert said(tmp_path, "token", "list").split("\t")[:3] == ["ann", "write", "all scopes"]
        assert "ann\tlet in\twrite" in said(tmp_path, "token", "log")
        said(tmp_path, "token", "revoke", "ann")
        asked: list[str] = []

        async def asks_again(address: str) -> str:
            asked.append(address)
            raise ConnectionError

        with suppress(ExceptionGroup, ConnectionError):
            asyncio.run(called(url, stored, asks_again, "recall", query="deploys"))
        assert len(asked) == 1
    assert json.loads(said(tmp_path, "token", "list", "--json")) == []


# -- an attacker's list


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class Site:
    """A server as the web sees it, what it has printed, and its clock."""

    def __init__(self, folder: Path) -> None:
        self.clock, self.printed, self.noted = Clock(), list[str](), list[tuple[Any, ...]]()
        self.grants = grants.Grants(folder / "state", folder, self.clock)
        url = ISSUER + http.PATH
        self.provider = oauth.Provider(
            self.grants, ISSUER, url, self.printed.append, self.clock, lambda *what: self.noted.append(what)
        )
        server = build_server(folder)
        routes = self.provider.routes()
        app = http.application(server, ["mem.example.com"], url=url, auth_server_provider=self.provider, routes=routes)
        self.app = oauth.guarded(app, ISSUER)

    def ask(self, method: str, path: str, **options: Any) -> httpx2.Response:
        async def asked() -> httpx2.Response:
            transport = httpx2.ASGITransport(app=self.app)
            async with httpx2.AsyncClient(transport=transport, base_url=ISSUER) as web:
                return await web.request(method, path, **options)

        return asyncio.run(asked())

    def registered(self, **about: Any) -> httpx2.Response:
        public = {"client_name": "Demo", "redirect_uris": [BACK], "token_endpoint_auth_method": "none"}
        return self.ask("POST", "/register", json={**public, **about})

    def client(self, **about: Any) -> str:
        answer = self.registered(**about)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["client_id"])

    def authorized(self, client: str, **changes: str) -> httpx2.Response:
        asked = {
            "client_id": client,
            "redirect_uri": BACK,
            "response_type": "code",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "state": "s&<1>",
            "scope": "memory:read",
            **changes,
        }
        return self.ask("GET", f"/authorize?{urlencode({name: value for name, value in asked.items() if value})}")

    def page(self, client: str) -> httpx2.Response:
        return self.ask("GET", self.authorized(client).headers["location"])

    @property
    def code(self) -> str:
        """The one that was printed last."""
        return str(PRINTED.findall(self.printed[-1])[0][1])

    def decided(self, page: httpx2.Response, headers: dict[str, str] | None = None, **typed: str) -> httpx2.Response:
        form = {**fields(page.text), "right": "read", "decision": "allow", **typed}
        return self.ask("POST", oauth.CONSENT, data=form, headers=headers)

    def allowed(self, client: str, **typed: str) -> str:
        """The authorization code that a person who has read the printed code gives a program."""
        page = self.page(client)
        return answered(self.decided(page, code=self.code, **typed))["code"]

    def exchanged(self, client: str, code: str, **changes: str) -> httpx2.Response:
        form = {"grant_type": "authorization_code", "client_id": client, "code": code, "redirect_uri": BACK}
        return self.ask("POST", "/token", data={**form, "code_verifier": VERIFIER, **changes})

    def refreshed(self, client: str, token: str, **more: str) -> httpx2.Response:
        form = {"grant_type": "refresh_token", "client_id": client, "refresh_token": token, **more}
        return self.ask("POST", "/token", data=form)

    def is_let_in(self, token: str) -> bool:
        async def verified() -> bool:
            return await self.provider.load_access_token(token) is not None

        return asyncio.run(verified())


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def fields(page: str) -> dict[str, str]:
    """The form of a page as a browser would send it, without what is chosen or typed."""
    inputs = re.findall(r'<input type=(?:hidden|text) name=(\w+) value="([^"]*)"', page)
    return {name: unescape(value) for name, value in inputs}


def answered(response: httpx2.Response) -> dict[str, str]:
    """What a program is sent back with."""
    place = urlsplit(response.headers["location"])
    assert f"{place.scheme}://{place.netloc}{place.path}" == BACK
    return {name: values[0] for name, values in parse_qs(place.query).items()}


def test_a_person_with_the_printed_code_lets_a_program_in(site: Site) -> None:
    client = site.client()
    page = site.page(client)
    done = site.decided(page, code=site.code, right="write", scopes="team docs/*", name="Ann's laptop")
    back = answered(done)
    assert (done.status_code, back["state"], back["iss"]) == (303, "s&<1>", ISSUER)
    tokens = site.exchanged(client, back["code"]).json()
    (grant,) = site.grants.list()
    assert grant == ("Ann-s-laptop", client, "write", ("team", "docs/*"), ISSUER + "/mcp", 1_800_000_000, grant.ends)
    assert tokens["scope"] == "memory:read memory:write memory:in:team memory:in:docs/*"
    assert site.is_let_in(tokens["access_token"])
    site.clock.now += grants.HOUR
    assert not site.is_let_in(tokens["access_token"])


def test_the_metadata_say_what_is_taken(site: Site) -> None:
    told = site.ask("GET", oauth.METADATA, headers={"origin": "https://app.example.com"})
    assert told.headers["access-control-allow-origin"] == "*"
    found = told.json()
    assert (found["issuer"], found["code_challenge_methods_supported"]) == (ISSUER, ["S256"])
    assert found["token_endpoint_auth_methods_supported"] == ["none", "client_secret_post", "client_secret_basic"]
    assert found["authorization_response_iss_parameter_supported"] is True
    assert site.ask("HEAD", oauth.METADATA).status_code == 200
    assert site.ask("DELETE", oauth.METADATA).status_code == 405


def test_nothing_on_the_disk_is_a_token(site: Site, tmp_path: Path) -> None:
    client = site.client()
    tokens = site.exchanged(client, site.allowed(client)).json()
    path = tmp_path / "state" / grants.FILE
    data = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert [tokens[name].encode() in data for name in ("access_token", "refresh_token")] == [False, False]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_connection_is_to_one_bank(site: Site, tmp_path: Path) -> None:
    """Another bank may be served at the same address later."""
    client = site.client()
    tokens = site.exchanged(client, site.allowed(client)).json()
    other = grants.Grants(tmp_path / "state", tmp_path / "other", site.clock)
    assert (other.by_access(tokens["access_token"]), other.by_refresh(tokens["refresh_token"])) == (None, None)
    assert (other.renewed(tokens["refresh_token"], "read"), other.list(), other.remove("Demo")) == (None, [], False)
    assert site.is_let_in(tokens["access_token"])


def test_a_code_is_good_once_and_its_replay_ends_the_connection(site: Site) -> None:
    client = site.client()
    code = site.allowed(client)
    tokens = site.exchanged(client, code).json()
    replayed = site.exchanged(client, code)
    assert (replayed.status_code, replayed.json()["error"]) == (400, "invalid_grant")
    assert not site.is_let_in(tokens["access_token"])
    assert site.refreshed(client, tokens["refresh_token"]).status_code == 400


def test_what_cannot_be_kept_is_said_and_can_be_tried_again(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    """As on a full disk."""
    client = site.client()
    code = site.allowed(client)
    site.grants._db.execute("PRAGMA query_only = ON")
    failed = site.exchanged(client, code)
    assert (failed.status_code, failed.json()["error"]) == (503, "temporarily_unavailable")
    assert capsys.readouterr().err.startswith("memlane: /token failed, because oauth.db in the configuration folder")
    site.grants._db.execute("PRAGMA query_only = OFF")
    assert site.exchanged(client, code).status_code == 200


def test_a_code_is_good_for_a_minute(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    client = site.client()
    code = site.allowed(client)
    monkeypatch.setattr("time.time", lambda: site.clock.now + oauth.CODE_TIME + 1)
    assert site.exchanged(client, code).json()["error_description"] == "authorization code has expired"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_verifier": "w" * 50}, "invalid_grant"),
        ({"code_verifier": CHALLENGE}, "invalid_grant"),
        ({"redirect_uri": "https://evil.example.com/back"}, "invalid_request"),
        ({"client_id": "other"}, "invalid_grant"),
    ],
)
def test_a_stolen_code_is_of_no_use(site: Site, changes: dict[str, str], error: str) -> None:
    client = site.client()
    code = site.allowed(client)
    if "client_id" in changes:
        changes = {"client_id": site.client(client_name="Other")}
    refused = site.exchanged(client, code, **changes)
    assert (refused.status_code, refused.json()["error"]) == (400, error)
    assert site.exchanged(client, code).status_code == 200


@pytest.mark.parametrize(
    "changes",
    [
        {"redirect_uri": "https://evil.example.com/back"},
        {"redirect_uri": BACK + "/../evil"},
        {"code_challenge_method": "plain"},
        {"code_challenge": ""},
        {"code_challenge": "short"},
        {"response_type": "token"},
        {"scope": "memory:read admin"},
        {"resource": "https://other.example.com/mcp"},
        {"client_id": "nobody"},
    ],
)
def test_a_mistake_leads_to_no_other_site(site: Site, changes: dict[str, str]) -> None:
    """Anybody can register an address; a link to this server must not lead there by itself."""
    refused = site.authorized(site.client(), **changes)
    assert (refused.status_code, "location" in refused.headers) == (400, False)
    assert site.printed == []


@pytest.mark.parametrize(
    "redirects",
    [
        [],
        ["http://evil.example.com/back"],
        ["javascript:alert(1)"],
        ["javascript://app.example.com/%0aalert(1)"],
        ["data:text/html,x"],
        ["data://text/html,x"],
        ["file:///etc/passwd"],
        ["ms-msdt://id/x"],
        ["smb://evil.example.com/share"],
        ["view-source://app.example.com"],
        ["com.example.app:alert(1)"],
        ["cursor:back"],
        ["cursor://user@back/x"],
        ["cursor://back/x#part"],
        ["microsoft-edge://app.example.com"],
        ["https://app.example.com;sandbox/back"],
        ["https://app.example.com,evil.example.com/back"],
        ["https://*/back"],
        ["https://user:pass@app.example.com/back"],
        ["https://app.example.com/back#part"],
        ["http://127.0.0.1.evil.example.com/"],
        ["http://localhost@evil.example.com/"],
        ["https://app.example.com/" + "x" * 500],
        [f"https://app.example.com/{number}" for number in range(9)],
    ],
)
def test_a_program_is_sent_back_to_https_or_its_own_computer_alone(site: Site, redirects: list[str]) -> None:
    assert site.registered(redirect_uris=redirects).status_code == 400
    for good in ("http://127.0.0.1:33418/x", "http://localhost/x", "http://[::1]:8/x"):
        assert site.registered(redirect_uris=[good]).status_code == 201


@pytest.mark.parametrize(
    "own",
    [
        "cursor://anysphere.cursor-retrieval/oauth/user-mcp/callback",
        "vscode://vscode.github-authentication/did-authenticate",
        "com.example.app:/oauth2redirect",
    ],
)
def test_a_program_may_have_a_kind_of_address_of_its_own_which_the_page_shows(site: Site, own: str) -> None:
    """RFC 8252, section 7.1."""
    scheme = own.partition(":")[0]
    client = site.client(redirect_uris=[own])
    page = site.ask("GET", site.authorized(client, redirect_uri=own).headers["location"])
    assert f"whichever program on this computer opens {scheme}: addresses ({own})" in page.text
    assert f"form-action 'self' {scheme}:; " in page.headers["content-security-policy"]
    assert own in site.printed[-1]
    back = site.decided(page, code=site.code).headers["location"]
    assert back.startswith(f"{own}?code=")
    code = parse_qs(urlsplit(back).query)["code"][0]
    assert site.exchanged(client, code, redirect_uri=own, code_verifier="w" * 50).status_code == 400  # PKCE is a must
    assert site.exchanged(client, code, redirect_uri=own).status_code == 200


def test_a_program_with_a_secret_has_no_kind_of_address_of_its_own(site: Site) -> None:
    """Such a one does not run on people's computers, where it could be read."""
    about = {"redirect_uris": ["cursor://back/x"], "token_endpoint_auth_method": "client_secret_post"}
    assert site.registered(**about).status_code == 400


def test_a_flood_of_registrations_and_requests_leaves_nothing_behind(site: Site, tmp_path: Path) -> None:
    def sizes() -> list[int]:
        return [file.stat().st_size for file in sorted((tmp_path / "state").iterdir())]

    before = sizes()
    clients = [site.client(client_name=f"Flood {number}") for number in range(100)]
    for client in clients:
        site.authorized(client)
    page = site.page(clients[0])  # the first is as good as the last
    assert (sizes(), len(site.printed), page.status_code) == (before, 1, 200)
    assert site.registered(client_name="x" * 20_000).status_code == 413
    assert site.registered(jwks={"keys": ["x" * 20_000]}).status_code == 413
    assert len(site.client(client_name="x" * 10_000)) < 400


def test_what_a_program_registered_cannot_be_changed(site: Site) -> None:
    client = site.client()
    body, _, mark = client.partition(".")
    forged = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)).replace(b"app.example", b"evil.exampl")
    for other in (f"{base64.urlsafe_b64encode(forged).decode().rstrip('=')}.{mark}", body, f"{body}.", "é", ""):
        assert site.authorized(other).status_code == 400
    request = fields(site.page(client).text)["request"]
    assert site.authorized(request).status_code == 400  # sealed, but as something else


def test_a_stranger_who_guesses_gets_nowhere_and_is_in_nobodys_way(site: Site) -> None:
    """The code is too long to be guessed, so that wrong ones need no limit, which would be a limit for all."""
    assert len(grants.LETTERS) ** grants.CODE > 2**57
    page = site.page(site.client())
    code = site.code
    strangers = site.page(site.client(client_name="Stranger"))
    for number in range(50):
        guess = "".join(grants.LETTERS[(number + at) % len(grants.LETTERS)] for at in range(grants.CODE))
        assert site.decided(strangers, code=guess).status_code == 400
        assert site.decided(page, code=guess).status_code == 400  # even at a page that is not his
    assert (len(site.printed), site.decided(page, code=code).status_code) == (2, 303)


def test_a_printed_code_is_for_one_request(site: Site) -> None:
    """Whoever reads the code of one program cannot let in another one with it."""
    page = site.page(site.client())
    code = site.code
    other = site.page(site.client(client_name="Other"))
    assert (site.decided(other, code=code).status_code, site.decided(page, code=site.code).status_code) == (400, 400)
    assert site.decided(page, code=code).status_code == 303


def test_a_flood_of_pages_prints_few_lines_and_hides_no_code(site: Site, tmp_path: Path) -> None:
    """A stranger may open pages without end; who runs the server finds the code by the number on his own."""
    client = site.client(client_name="Flood")
    for _ in range(consent.LINES + 50):
        site.page(client)
    assert len(site.printed) == consent.LINES + 1
    assert "`memlane token code NUMBER` prints the code" in site.printed[-1]
    page = site.page(site.client(client_name="Mine"))
    [number] = re.findall(r"<code>memlane token code (\S+)</code>", page.text)
    assert site.decided(page, code=site.grants.code(number)).status_code == 303
    site.clock.now += consent.PERIOD
    site.page(client)
    assert len(site.printed) == consent.LINES + 2


def test_a_page_that_is_loaded_again_prints_nothing_new(site: Site) -> None:
    address = site.authorized(site.client()).headers["location"]
    pages = [site.ask("GET", address) for _ in range(3)]
    assert (len(site.printed), len({page.text for page in pages})) == (1, 1)


def test_a_hostile_name_comes_after_the_code_and_moves_no_cursor(site: Site) -> None:
    site.page(site.client(client_name="x\x1b[2J. The code of request BBBB-BBBB is CCCC-CCCC-CCCC"))
    (line,) = site.printed
    number, code = PRINTED.findall(line)[0]
    assert (grants.spaced(site.grants.code(number)), line.isprintable()) == (code, True)


def test_a_printed_code_is_good_once(site: Site) -> None:
    page = site.page(site.client())
    code = site.code
    assert site.decided(page, code="").status_code == 400
    assert site.decided(page, code=code).status_code == 303
    again = site.decided(page, code=code)
    assert (again.status_code, "was allowed already" in again.text) == (400, True)


@pytest.mark.parametrize("number", ["", "BBBB", "AEIO-UAEI", "BBBB-BBBB-B"])
def test_what_is_no_number_has_no_code(site: Site, number: str) -> None:
    with pytest.raises(InvalidInput, match="not the number"):
        site.grants.code(number)


def test_a_wrong_code_does_not_undo_what_was_chosen(site: Site) -> None:
    """Else whoever limits a program and mistypes the code would allow it everything with the next attempt."""
    again = site.decided(site.page(site.client()), code="wrong", right="write", scopes='team "x"', name="ann")
    assert fields(again.text) == {**fields(again.text), "scopes": 'team "x"', "name": "ann"}
    assert "value=write checked" in again.text


def test_a_request_to_connect_grows_old(site: Site) -> None:
    page = site.page(site.client())
    site.clock.now += oauth.REQUEST_TIME + 1
    assert "too old" in site.decided(page, code=site.code).text


def test_who_denies_needs_no_code(site: Site) -> None:
    denied = site.decided(site.page(site.client()), decision="deny")
    assert answered(denied) == {"error": "access_denied", "state": "s&<1>", "iss": ISSUER}


def test_the_page_has_no_script_cannot_be_framed_and_shows_a_hostile_name_as_text(site: Site) -> None:
    name = '"><script>alert(1)</script>\x1b[2J\u202eevil\n<img src=x onerror=alert(1)>'
    page = site.page(site.client(client_name=name))
    assert ("<script" in page.text, "<img" in page.text, "\x1b" in page.text) == (False, False, False)
    assert "&lt;script&gt;" in page.text
    assert "app.example.com" in page.text
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert policy.endswith("base-uri 'none'; form-action 'self' https://app.example.com; frame-ancestors 'none'")
    assert (page.headers["x-frame-options"], page.headers["cache-control"]) == ("DENY", "no-store")


@pytest.mark.parametrize("header", [{"origin": "https://evil.example.com"}, {"sec-fetch-site": "cross-site"}])
def test_another_page_cannot_send_the_form(site: Site, header: dict[str, str]) -> None:
    page = site.page(site.client())
    assert site.decided(page, header, code=site.code).status_code == 403
    own = {"origin": ISSUER, "sec-fetch-site": "same-origin"}
    assert site.decided(page, own, code=site.code).status_code == 303


@pytest.mark.parametrize("typed", [{"right": "admin"}, {"right": ""}, {"scopes": "a\tb <c>"}, {"scopes": "x " * 21}])
def test_only_what_there_is_can_be_allowed(site: Site, typed: dict[str, str]) -> None:
    page = site.page(site.client())
    assert site.decided(page, code=site.code, **typed).status_code == 400
    assert site.decided(page, code=site.code).status_code == 303  # the code was not spent on it


def test_a_refresh_token_is_spent_when_it_is_used_and_a_spent_one_ends_the_connection(site: Site) -> None:
    client = site.client()
    first = site.exchanged(client, site.allowed(client)).json()
    second = site.refreshed(client, first["refresh_token"]).json()
    assert site.is_let_in(second["access_token"])
    assert site.refreshed(site.client(client_name="Other"), second["refresh_token"]).status_code == 400
    assert site.refreshed(client, first["refresh_token"]).status_code == 400
    assert not site.is_let_in(second["access_token"])
    assert site.refreshed(client, second["refresh_token"]).status_code == 400
    assert site.grants.list() == []
    assert site.noted == [("Demo", "let in", "read", ()), ("Demo", "let in", "ended", ())]


def test_a_renewal_may_ask_for_less_but_not_for_other_scopes(site: Site) -> None:
    client = site.client()
    tokens = site.exchanged(client, site.allowed(client, right="write", scopes="team")).json()
    more = site.refreshed(client, tokens["refresh_token"], scope="memory:remove")
    assert more.json()["error"] == "invalid_scope"
    less = site.refreshed(client, tokens["refresh_token"], scope="memory:read").json()
    assert less["scope"] == "memory:read memory:in:team"  # without the second it would see everything
    again = site.refreshed(client, less["refresh_token"]).json()
    assert again["scope"] == "memory:read memory:write memory:in:team"


def test_a_program_can_end_its_own_connection_alone(site: Site) -> None:
    client, other = site.client(), site.client(client_name="Other")
    tokens = site.exchanged(client, site.allowed(client)).json()
    for token in ("access_token", "refresh_token"):
        site.ask("POST", "/revoke", data={"client_id": other, "client_secret": "", "token": tokens[token]})
    assert site.is_let_in(tokens["access_token"])
    site.ask("POST", "/revoke", data={"client_id": client, "client_secret": "", "token": tokens["refresh_token"]})
    assert not site.is_let_in(tokens["access_token"])


def test_a_program_with_a_secret_must_know_it(site: Site) -> None:
    about = site.registered(token_endpoint_auth_method="client_secret_post").json()
    code = site.allowed(about["client_id"])
    for secret in ("", "x", about["client_id"]):
        assert site.exchanged(about["client_id"], code, client_secret=secret).status_code == 401
    assert site.exchanged(about["client_id"], code, client_secret=about["client_secret"]).status_code == 200


def test_connections_end_after_ninety_days_and_names_are_told_apart(site: Site) -> None:
    client = site.client()
    tokens = [site.exchanged(client, site.allowed(client, name="ann")).json() for _ in range(2)]
    assert [grant.name for grant in site.grants.list()] == ["ann", "ann-2"]
    site.clock.now += grants.DAYS * 86400
    assert site.refreshed(client, tokens[0]["refresh_token"]).status_code == 400
    assert site.grants.list() == []


@pytest.mark.parametrize(
    ("url", "good"),
    [
        ("https://mem.example.com", True),
        ("https://mem.example.com:8443/", True),
        ("http://127.0.0.1:8765", True),
        ("http://mem.example.com", False),
        ("https://mem.example.com/memory", False),
        ("https://user@mem.example.com", False),
        ("https://mem.example.com?x", False),
        ("mem.example.com", False),
        ("https://mem.example.com:port", False),
    ],
)
def test_the_public_address_is_https_without_a_path(url: str, good: bool) -> None:
    if good:
        assert oauth.public(url) == url.rstrip("/")
    else:
        with pytest.raises(InvalidInput, match="public address"):
            oauth.public(url)
