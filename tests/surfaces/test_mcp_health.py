"""`/healthz`, `/readyz` and `/metrics`: what watches over servers reads them, and strangers learn nothing."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.server.auth.provider import AccessToken
from mcp.types import CallToolResult

from memlane import Bank
from memlane.care import sync
from memlane.care.sync import state as states
from memlane.surfaces import connections
from memlane.surfaces.mcp import auth, health, http, toolsets
from memlane.surfaces.mcp.metrics import BUCKETS, CONTENT, Metrics
from memlane.surfaces.mcp.server import build_server
from memlane.surfaces.mcp.shared_bank import SharedBank

TOOLS = {tool.name: tool for tool in toolsets.DEFAULT}
URL = "https://mem.example.com/mcp"
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABELS = r'(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABELS})\}})? (-?(?:\d+(?:\.\d+)?(?:e-?\d+)?|\+Inf|NaN))")


def parsed(text: str) -> dict[str, dict[str, float]]:
    """The samples by family, after the rules of the text format: Prometheus refuses a page that breaks one of them."""
    assert text.endswith("\n")
    families: dict[str, dict[str, float]] = {}
    types: dict[str, str] = {}
    helped = family = ""
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("# HELP "):
            helped = line.split(" ", 3)[2]
            assert line.split(" ", 3)[3]
        elif line.startswith("# TYPE "):
            family, kind = line.split(" ")[2:]
            assert family == helped
            assert family not in families  # the lines of a family come together
            assert kind in ("counter", "gauge", "histogram")
            assert (kind == "counter") == family.endswith("_total")
            families[family], types[family] = {}, kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match, line
            name, labels, value = match.groups()
            base = re.sub(r"_(bucket|sum|count)$", "", name) if types[family] == "histogram" else name
            assert base == family
            key = f"{name}{{{labels}}}" if labels else name
            assert key not in families[family]
            families[family][key] = float(value)
    for name in (name for name, kind in types.items() if kind == "histogram"):
        buckets: dict[str, list[float]] = {}
        for key, value in families[name].items():
            if key.startswith(f"{name}_bucket"):
                buckets.setdefault(re.sub(r',?le="[^"]*"', "", key), []).append(value)
        for key, counts in buckets.items():
            assert counts == sorted(counts)
            assert len(counts) == len(BUCKETS) + 1
            assert families[name][key.replace("_bucket", "_count")] == counts[-1]
    return families


class Tokens:
    """Three tokens: one for the whole bank, one for a scope of it, one that may do nothing here."""

    async def verify_token(self, token: str) -> AccessToken | None:
        known = {"whole": auth.scopes_of("read", None), "part": auth.scopes_of("read", ["team"]), "none": ["openid"]}
        scopes = known.get(token)
        return scopes and AccessToken(token=token, client_id=token, scopes=scopes, resource=URL)


class Site:
    def __init__(self, folder: Path, *, guarded: bool = False, **options: Any) -> None:
        self.bank, self.now = SharedBank(folder), 0.0
        self.server = build_server(folder, bank=self.bank)
        self.metrics = Metrics(TOOLS, (http.PATH, health.ALIVE))
        settings = {"direct": True, **options}
        self.health = health.Health(self.server, self.bank, self.metrics, clock=lambda: self.now, **settings)
        verifiers = [Tokens()] if guarded else []
        made: dict[str, Any] = {"verifiers": verifiers, "routes": self.health.routes(), "metrics": self.metrics}
        app = http.application(self.server, ["mem"], url=URL, **made)
        self.app = self.metrics.counted(app)

    def get(self, path: str, client: str = "127.0.0.1", **headers: str) -> httpx2.Response:
        async def asked() -> httpx2.Response:
            transport = httpx2.ASGITransport(app=self.app, client=(client, 1))
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as web:
                return await web.get(path, headers=headers)

        return asyncio.run(asked())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Bank.init(tmp_path).close()
    return tmp_path


def test_what_was_done_is_counted_without_a_word_of_it(folder: Path) -> None:
    site = Site(folder)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("remember", {"text": "The zebra deploys on Tuesdays.", "title": "Zebra"}),
        ("recall", {"query": "zebra"}),
        ("search_memories", {"query": "zebra"}),
        ("read_memory", {"filename": "nothing.md"}),
        ("remember", {"text": "The key is ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"}),
    ]

    async def run() -> list[CallToolResult]:
        async with Client(site.server) as client:
            return [await client.call_tool(tool, arguments) for tool, arguments in calls]

    results = asyncio.run(run())
    assert [bool(result.is_error) for result in results] == [False, False, False, True, True]
    assert [(result.meta or {}).get("memlane/code") for result in results[3:]] == ["not_found", "refused"]
    site.get(health.ALIVE)
    site.get("/zebra")
    page = site.get(health.METRICS)
    assert (page.status_code, page.headers["content-type"]) == (200, CONTENT)
    read = parsed(page.text)
    assert read["memlane_calls_total"] == {
        'memlane_calls_total{tool="read_memory",outcome="failed"}': 1,
        'memlane_calls_total{tool="recall",outcome="ok"}': 1,
        'memlane_calls_total{tool="remember",outcome="ok"}': 1,
        'memlane_calls_total{tool="remember",outcome="refused"}': 1,
        'memlane_calls_total{tool="search_memories",outcome="ok"}': 1,
    }
    assert read["memlane_http_requests_total"] == {
        'memlane_http_requests_total{path="/healthz",code="200"}': 1,
        'memlane_http_requests_total{path="other",code="404"}': 1,
    }
    totals = {name: read[name][name] for name in read if list(read[name]) == [name]}
    assert totals == {
        "memlane_searches_total": 2,
        "memlane_writes_total": 1,
        "memlane_refusals_total": 1,
        "memlane_calls_under_way": 0,
        "memlane_sessions": 0,
        "memlane_bank_ready": 1,
        "memlane_index_memories": 1,
        "memlane_index_bytes": totals["memlane_index_bytes"],
    }
    assert read["memlane_call_seconds"]['memlane_call_seconds_count{kind="search"}'] == 2
    assert ("ebra" in page.text, "ghp_" in page.text, str(folder) in page.text) == (False, False, False)


@pytest.mark.parametrize(
    ("options", "client", "headers", "status"),
    [
        ({}, "127.0.0.1", {}, 200),
        ({}, "::1", {"host": "localhost:8765"}, 200),
        ({}, "192.0.2.1", {}, 403),
        ({}, "127.0.0.1", {"host": "evil.example.com"}, 403),  # a name of somebody else's that points here
        ({}, "127.0.0.1", {"x-forwarded-for": "192.0.2.1"}, 403),
        ({}, "127.0.0.1", {"forwarded": "for=192.0.2.1"}, 403),
        ({}, "127.0.0.1", {"x-real-ip": "192.0.2.1"}, 403),
        ({"direct": False}, "127.0.0.1", {}, 403),  # there is a proxy: everybody comes from here
        ({"direct": False, "everybody": True}, "192.0.2.1", {}, 200),
        ({"guarded": True}, "192.0.2.1", {}, 403),
        ({"guarded": True}, "192.0.2.1", {"authorization": "Bearer wrong"}, 403),
        ({"guarded": True}, "192.0.2.1", {"authorization": "Bearer whole"}, 200),
        ({"guarded": True}, "192.0.2.1", {"authorization": "Bearer part"}, 403),  # counts are of the whole bank
        ({"guarded": True}, "192.0.2.1", {"authorization": "Bearer none"}, 403),  # somebody's of the same company
    ],
)
def test_the_numbers_are_not_for_strangers(
    folder: Path, options: dict[str, Any], client: str, headers: dict[str, str], status: int
) -> None:
    site = Site(folder, **options)
    assert site.get(health.METRICS, client, **headers).status_code == status
    assert site.get(health.ALIVE, client, **headers).json() == {"alive": True}
    assert site.get(health.READY, client, **headers).json() == {"ready": True}


def test_a_server_is_ready_as_long_as_its_bank_can_be_used(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = Site(folder)
    assert site.get(health.READY).status_code == 200
    shutil.move(folder / ".memories", folder / "away")
    assert site.get(health.READY).status_code == 200  # for a moment: an answer is kept
    site.now += health.KEPT
    gone = site.get(health.READY)
    assert (gone.status_code, gone.json()) == (503, {"ready": False, "why": "The bank cannot be used."})
    assert site.get(health.ALIVE).status_code == 200
    read = parsed(site.get(health.METRICS).text)
    assert read["memlane_bank_ready"] == {"memlane_bank_ready": 0}
    assert "memlane_index_memories" not in read
    shutil.move(folder / "away", folder / ".memories")
    site.now += health.KEPT
    assert site.get(health.READY).status_code == 200
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("memlane: not ready. The bank cannot be used. The bank's folder is gone, or empty")
    assert said[1:] == ["memlane: ready again."]


def test_a_folder_without_a_bank_is_not_ready_and_its_path_is_nobodys_business(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = Site(tmp_path).get(health.READY, "192.0.2.1")
    assert (gone.status_code, gone.json()) == (503, {"ready": False, "why": "The bank cannot be used."})
    assert "no memlane.toml was found. Run `memlane init`" in capsys.readouterr().err


def test_a_remote_that_is_not_reached_is_told_and_takes_a_server_out_only_when_asked_to(
    folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every server would be taken out at once, though each can answer from its own copy."""
    monkeypatch.setattr(health, "REMOTE_WAIT", 600.0)
    place = tmp_path_factory.mktemp("hub")
    (place / "hub").mkdir()
    with Bank.open(folder) as bank:
        bank.add("Deploys go out on Tuesdays.")
        sync.add(bank, "team", str(place / "hub"))
        bank.sync()
    site = Site(folder)
    assert site.get(health.READY).json() == {"ready": True, "sync": "reached"}
    shutil.move(place / "hub", place / "away")
    site.now += health.REMOTE_KEPT
    assert site.get(health.READY).json() == {"ready": True, "sync": "not reached"}
    strict = site.get(f"{health.READY}?sync")
    assert (strict.status_code, strict.json()["why"]) == (503, "The remote cannot be reached.")
    assert parsed(site.get(health.METRICS).text)["memlane_sync_reachable"] == {"memlane_sync_reachable": 0}
    shutil.move(place / "away", place / "hub")
    assert site.get(health.READY).json() == {"ready": True, "sync": "not reached"}  # for a moment
    site.now += health.REMOTE_AGAIN
    assert site.get(f"{health.READY}?sync").json() == {"ready": True, "sync": "reached"}
    said = capsys.readouterr().err.splitlines()
    assert (len(said), said[1]) == (2, "memlane: the remote is reached again.")


def test_a_remote_that_does_not_answer_keeps_nobody_waiting(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "REMOTE_WAIT", 0.0)
    with connections.opened("127.0.0.1", 0) as silent:
        address = f"postgresql://ann@127.0.0.1:{silent.getsockname()[1]}/memory"
        with Bank.open(folder) as bank, states.made(bank.root) as state:
            state.add(states.Settings("team", address))
        site = Site(folder)
        assert site.get(health.READY).json() == {"ready": True, "sync": "not reached"}
        assert site.get(f"{health.READY}?sync").status_code == 503
        asking, _ = silent.accept()
        with asking:
            assert len(asking.recv(8, socket.MSG_WAITALL)) == 8
            asking.setblocking(False)
            with pytest.raises(BlockingIOError):  # it is still asked, and by one thread alone
                asking.recv(1)
            silent.setblocking(False)
            with pytest.raises(BlockingIOError):
                silent.accept()


def test_who_may_not_see_the_numbers_is_told_what_helps_there(folder: Path) -> None:
    here, behind = (Site(folder, direct=direct).get(health.METRICS, "192.0.2.1").json() for direct in (True, False))
    assert here["error_description"] == (
        "Send a token for the whole bank, ask from this machine, or start the server with --metrics open."
    )
    assert behind["error_description"] == "Send a token for the whole bank, or start the server with --metrics open."
