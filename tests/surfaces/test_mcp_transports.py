"""The MCP server as a process: over pipes and over HTTP, in every revision of the protocol, to its end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from commands import CANARY
from memlane import Bank, InvalidInput, MemlaneError
from memlane.disk import files
from memlane.surfaces.mcp import http
from memlane.surfaces.mcp.server import INSTRUCTIONS
from memlane.surfaces.mcp.toolsets import DEFAULT
from warm import loaded

MEMLANE = str(Path(sys.executable).with_name("memlane"))
SECRET = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"
PLAN = {"filename": "auth-plan.md", "content": "Use signed cookies in [[src/auth.py]].", "tags": ["auth"]}
LONGEST = 120  # seconds that a server or a client has, however busy the machine is


_programs: list[Path] = []


@pytest.fixture(scope="module", autouse=True)
def _loaded_already() -> Iterator[None]:
    with loaded(servers=True) as folder:
        _programs.append(folder / "memlane")
        yield
        _programs.clear()


def program() -> Path:
    """A `memlane` that has loaded what a server needs, which takes longer than most of what is asked of it here."""
    return _programs[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Bank.init(tmp_path)
    return tmp_path


# -- over pipes


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("MEMLANE_")}


@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_a_real_client_starts_the_command_and_uses_it(folder: Path, era: str) -> None:
    server = StdioServerParameters(command=MEMLANE, args=["--bank", str(folder), "mcp"], env=environment())

    async def run() -> tuple[str, Any, Any]:
        async with Client(stdio_client(server), mode=era) as client:
            await client.call_tool("remember", {"text": "Deploys go out on Tuesdays.", "title": "Deploy day"})
            recalled = await client.call_tool("recall", {"query": "deploys"})
            return client.protocol_version, client.instructions, recalled.structured_content

    version, instructions, recalled = anyio.run(run)
    assert version == ("2025-11-25" if era == "legacy" else "2026-07-28")
    assert instructions == INSTRUCTIONS
    assert recalled["ids"] == ["notes:deploy-day"]


def requests(revision: str, *calls: tuple[str, dict[str, Any]]) -> str:
    """A session as a client writes it, numbered from 1 on."""
    modern = revision == "2026-07-28"
    client = {"name": "test", "version": "1"}
    meta = {
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": client,
    }
    lines: list[dict[str, Any]] = []
    if modern:
        lines.append({"id": 0, "method": "server/discover", "params": {"_meta": meta}})
    else:
        hello = {"protocolVersion": revision, "capabilities": {}, "clientInfo": client}
        lines += [{"id": 0, "method": "initialize", "params": hello}, {"method": "notifications/initialized"}]
    for number, (method, params) in enumerate(calls, 1):
        lines.append({"id": number, "method": method, "params": {**params, "_meta": meta} if modern else params})
    return "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines)


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_a_session_of_every_revision_is_answered_to_its_end_and_repeats_nothing_secret(
    folder: Path, revision: str
) -> None:
    session = requests(
        revision,
        ("tools/list", {}),
        ("tools/call", {"name": "create_memory", "arguments": PLAN}),
        ("tools/call", {"name": "search_memories", "arguments": {"query": "cookies"}}),
        ("resources/read", {"uri": "memory://memory/notes:none"}),
        ("tools/call", {"name": "search_memories", "arguments": {"query": {SECRET: SECRET}}}),
        ("tools/call", {"name": "remember", "arguments": f"text {SECRET}"}),
        (SECRET, {}),
    )
    result = subprocess.run(
        [MEMLANE, "mcp"], input=session + f"{{{SECRET}\n", cwd=folder, env=environment(), capture_output=True, text=True
    )
    answers = {answer["id"]: answer for answer in map(json.loads, result.stdout.splitlines())}
    assert sorted(answers) == list(range(8))
    hello = answers[0]["result"]
    assert revision in (hello["supportedVersions"] if revision == "2026-07-28" else [hello["protocolVersion"]])
    assert [tool["name"] for tool in answers[1]["result"]["tools"]] == [tool.name for tool in DEFAULT]
    assert answers[2]["result"]["structuredContent"]["status"] == "created"
    assert answers[3]["result"]["structuredContent"]["result"][0]["memory_id"] == "memory:auth-plan"
    assert answers[4]["error"]["code"] == (-32602 if revision == "2026-07-28" else -32002)
    assert answers[4]["error"]["data"] == {"uri": "memory://memory/notes:none"}
    assert answers[5]["result"]["isError"] is True
    assert [answers[number]["error"]["code"] for number in (6, 7)] == [-32602, -32601]
    assert SECRET not in result.stdout + result.stderr
    assert (result.returncode, result.stderr) == (0, "")


@contextmanager
def running(*args: str, folder: Path, **extra: str) -> Iterator[subprocess.Popen[str]]:
    """A server process, stopped at the end whatever happens."""
    process = subprocess.Popen(
        [program(), "mcp", *args], cwd=folder, env={**environment(), **extra}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_a_server_that_waits_for_input(folder: Path, sent: signal.Signals, code: int) -> None:
    with running(folder=folder) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(requests("2025-11-25"))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 0
        process.send_signal(sent)
        assert process.wait(LONGEST) == code
        assert process.stderr
        assert process.stderr.read() == ""


def test_a_request_that_cannot_be_read_is_answered(folder: Path) -> None:
    """Half an emoji, as a client that cuts texts may send it."""
    cut = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"remember","arguments":{"text":"a \\ud83d"}}}'
    odd = '{"jsonrpc":"2.0","id":2,"method":"ping","params":[1]}'
    session = requests("2025-11-25").rstrip("\n") + f"\n{cut}\n{odd}\nnonsense\n"
    result = subprocess.run([program(), "mcp"], cwd=folder, input=session, capture_output=True, text=True)
    answers = {answer["id"]: answer for answer in map(json.loads, result.stdout.splitlines())}
    assert (result.returncode, sorted(answers)) == (0, [0, 1, 2])
    assert [answers[number]["error"]["code"] for number in (1, 2)] == [-32600, -32600]
    assert Bank.open(folder).list() == []


def test_a_client_that_goes_away_ends_the_server_quietly(folder: Path) -> None:
    with running(folder=folder) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(requests("2025-11-25"))
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write('{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n')
        process.stdin.close()
        assert process.wait(LONGEST) == 0
        assert process.stderr
        assert process.stderr.read() == ""
        process.stdin = process.stdout = None


def test_no_other_command_imports_the_sdk(folder: Path) -> None:
    imports = "import sys; from memlane.surfaces.cli import app; "
    code = imports + "app(['stats', '--json'], standalone_mode=False); print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert set(result.stdout.split()).isdisjoint(
        {"mcp", "pydantic", "anyio", "starlette", "memlane.surfaces.mcp.server"}
    )


# -- over HTTP


def url_of(process: subprocess.Popen[str]) -> str:
    assert process.stderr
    line = process.stderr.readline()
    assert line.startswith("memlane: serving http://"), line
    return line.split()[2].rstrip(";")


def status(url: str, **headers: str) -> int:
    """The status of an `initialize` with these headers."""
    body = requests("2025-11-25").splitlines()[0].encode()
    head = {"content-type": "application/json", "accept": "application/json, text/event-stream", **headers}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, head), timeout=LONGEST) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_http_serves_both_eras_and_ends_by_a_signal(folder: Path) -> None:
    with running("--http", "--port", "0", folder=folder) as process:
        url = url_of(process)

        async def run(era: str) -> Any:
            async with Client(url, mode=era) as client:
                await client.call_tool("create_memory", {**PLAN, "filename": f"{era}.md"})
                found = await client.call_tool("search_memories", {"query": "cookies"})
                return [hit["memory_id"] for hit in (found.structured_content or {})["result"]]

        assert anyio.run(run, "legacy") == ["memory:legacy"]
        assert sorted(anyio.run(run, "auto")) == ["memory:auto", "memory:legacy"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(LONGEST) == 0
        assert process.stderr
        assert process.stderr.read() == ""


def test_http_refuses_foreign_hosts_and_origins(folder: Path) -> None:
    with running("--http", "--port", "0", folder=folder) as process:
        url = url_of(process)
        assert status(url) == 200
        assert status(url, host="evil.example") == 421
        assert status(url, origin="http://evil.example") == 403
        assert status(url, origin="http://localhost:3000") == 200


def _sent(url: str, body: bytes) -> tuple[int, str]:
    head = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, head), timeout=LONGEST) as answer:
            return int(answer.status), answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_http_repeats_nothing_of_an_invalid_message(folder: Path) -> None:
    messages = (
        {"jsonrpc": "2.0", "id": 1, "method": {"a": CANARY}},
        {"jsonrpc": "2.0", "id": CANARY, "params": CANARY},
        {CANARY: CANARY},
        [{"jsonrpc": "1.0", "id": 1, "method": CANARY}],
        CANARY,
    )
    with running("--http", "--port", "0", folder=folder) as process:
        url = url_of(process)
        answers = [_sent(url, json.dumps(message).encode()) for message in messages]
        answers.append(_sent(url, b"{" + CANARY.encode()))
        process.send_signal(signal.SIGTERM)
        process.wait(LONGEST)
        assert process.stderr
        said = process.stderr.read()
    assert [status for status, _ in answers] == [400] * 6
    assert CANARY not in "".join(body for _, body in answers) + said


def test_http_takes_a_text_as_long_as_is_promised(folder: Path) -> None:
    text = "é" * (files.MAX_BYTES // 2 - 1000)  # two bytes each in a file, six in this JSON
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": {"text": text}}}
    with running("--http", "--port", "0", folder=folder) as process:
        url = url_of(process)
        assert _sent(url, json.dumps(body).encode())[0] != 413
        with closing(HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=LONGEST)) as connection:
            head = {"content-type": "application/json", "content-length": str(http.MAX_BODY + 1)}
            connection.request("POST", http.PATH, headers={**head, "accept": "application/json, text/event-stream"})
            assert connection.getresponse().status == 413


def test_http_has_only_so_many_sessions(folder: Path) -> None:
    with running("--http", "--port", "0", folder=folder) as process:
        url = url_of(process)
        statuses = [status(url) for _ in range(http.MAX_SESSIONS + 1)]
    assert (set(statuses[:-1]), statuses[-1]) == ({200}, 503)


def test_http_with_a_token_answers_only_who_has_it(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    token = "not-a-real-token-" + "0" * 8
    file = tmp_path_factory.mktemp("token") / "token"
    file.write_text(f"{token}\n")
    file.chmod(0o600)
    with running("--http", "--port", "0", "--token-file", str(file), folder=folder) as process:
        url = url_of(process)
        assert status(url) == 401
        assert status(url, authorization=f"Bearer {token}x") == 401
        assert status(url, authorization=token) == 401
        assert status(url, authorization=f"Bearer {token}") == 200
        assert status(url, authorization=f"Bearer {token}", host="evil.example") == 421


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda file: file.write_text("x" * 5000), "too long for a token"),
        (lambda file: os.mkfifo(file), "is not a file"),
        (lambda file: file.write_text(" \n"), "is empty"),
        (lambda file: file.write_bytes(b"\xff" * 20), "cannot be read"),
        (lambda file: (file.write_text("0" * 20), file.chmod(0o644)), "open to other users"),
    ],
)
def test_only_a_short_private_file_is_a_token_file(
    folder: Path, tmp_path: Path, make: Callable[[Path], None], why: str
) -> None:
    file = tmp_path / "token"
    before = os.umask(0o077)
    try:
        make(file)
    finally:
        os.umask(before)
    done = subprocess.run(
        [program(), "mcp", "--http", "--port", "0", "--token-file", str(file)],
        cwd=folder, env=environment(), capture_output=True, text=True, timeout=LONGEST,
    )  # fmt: skip
    assert done.returncode == 1
    assert (why in done.stderr, "Traceback" in done.stderr, "0000" in done.stderr) == (True, False, False)


HEAD = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
SLOW = (
    "from memlane.surfaces import connections as c; c.REQUEST_TIME, c.MAX_CONNECTIONS = {}; "
    "c.ANSWER_TIME = c.REQUEST_TIME; "
)


@contextmanager
def serving(folder: Path, seconds: float, most: int) -> Iterator[tuple[str, int]]:
    """A server with other limits; gives its host and port."""
    code = SLOW.format((seconds, most)) + "from memlane.__main__ import main; main()"
    words = [sys.executable, "-c", code, "--bank", str(folder), "mcp", "--http", "--port", "0"]
    with subprocess.Popen(words, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        try:
            parts = urllib.parse.urlsplit(url_of(process))
            yield str(parts.hostname), int(parts.port or 0)
        finally:
            process.terminate()


def test_http_drops_a_client_that_does_not_finish_its_request(folder: Path) -> None:
    with serving(folder, 0.5, 100) as address:
        for sent in (
            b"", b"POST /mcp HT", HEAD, HEAD + b"Content-Length: 100\r\n\r\n{",
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n",
        ):  # fmt: skip
            with socket.create_connection(address, timeout=LONGEST) as client:
                client.sendall(sent)
                answer = b""
                with suppress(ConnectionResetError):
                    while part := client.recv(65536):
                        answer += part
            assert answer == b"", sent


def test_http_trickled_bytes_do_not_buy_time(folder: Path) -> None:
    with serving(folder, 1.0, 100) as address, socket.create_connection(address, timeout=0.2) as client:
        end, dropped = time.monotonic() + LONGEST, False
        try:
            client.sendall(HEAD)
            while not dropped and time.monotonic() < end:
                client.sendall(b"X: y\r\n")
                with suppress(TimeoutError):
                    dropped = client.recv(1) == b""
        except ConnectionError:
            dropped = True
    assert dropped


def test_http_drops_a_client_that_was_refused_and_sends_on_and_on(folder: Path) -> None:
    piece = bytes(1024 * 1024)
    with serving(folder, LONGEST, 100) as address, socket.create_connection(address, timeout=LONGEST) as client:
        client.sendall(HEAD + b"Content-Length: 10000000000\r\n\r\n")
        assert client.recv(12) == b"HTTP/1.1 413"
        client.sendall(piece * 16)  # who sends what it has said is told why, and not cut off
        with pytest.raises(ConnectionError):
            client.sendall(piece * 256)


def test_http_answers_beside_more_half_open_connections_than_it_keeps(folder: Path) -> None:
    with serving(folder, 60.0, 8) as address, ExitStack() as open_ones:
        half = [open_ones.enter_context(socket.create_connection(address, timeout=LONGEST)) for _ in range(40)]
        for each in half:
            with suppress(ConnectionError):
                each.sendall(HEAD)
        assert status(f"http://{address[0]}:{address[1]}/mcp") == 200
        assert sum(map(_is_open, half)) <= 8


@pytest.mark.parametrize(("seconds", "most"), [(0.5, 1), (60.0, 2)])  # its time ends; another one needs the place
def test_http_drops_a_client_that_does_not_take_its_answer(folder: Path, seconds: float, most: int) -> None:
    (Bank.open(folder).root / "long.md").write_text("word " * 900_000)  # more than a kernel takes for a client
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    asked = {"uri": "memory://memory/notes:long", "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": asked}).encode()
    head = HEAD + b"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
    head += b"Mcp-Method: resources/read\r\nMcp-Name: memory://memory/notes:long\r\nContent-Length: %d\r\n\r\n" % len(
        body
    )
    with serving(folder, seconds, most) as address, ExitStack() as open_ones:
        for _ in range(most):
            client = open_ones.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.settimeout(LONGEST)
            client.connect(address)
            client.sendall(head + body)
            assert client.recv(12) == b"HTTP/1.1 200"  # the rest of it waits
        url, end = f"http://{address[0]}:{address[1]}/mcp", time.monotonic() + LONGEST
        found = 0
        while not found and time.monotonic() < end:
            with suppress(OSError):
                found = status(url)
    assert found == 200


def _is_open(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


def test_who_cannot_listen_is_told_what_to_change() -> None:
    with http.listen("127.0.0.1", 0, None) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(MemlaneError, match=f"Port {port} is taken") as taken:
            http.listen("127.0.0.1", port, None)
    with pytest.raises(MemlaneError, match="Nobody can listen at this host") as elsewhere:
        http.listen("192.0.2.1", 0, "x" * 16)
    assert ("--port" in taken.value.hint, "--host" in elsewhere.value.hint) == (True, True)


def test_another_host_than_loopback_needs_a_token(folder: Path) -> None:
    for host in ("0.0.0.0", "192.0.2.1", "example.org", "::"):
        with pytest.raises(InvalidInput, match="need a token"):
            http.listen(host, 0, None)
    with pytest.raises(InvalidInput, match="shorter than 16"):
        http.listen("0.0.0.0", 0, "short")
    result = subprocess.run(
        [program(), "mcp", "--http", "--host", "0.0.0.0", "--port", "0"],
        cwd=folder, env=environment(), capture_output=True, text=True,
    )  # fmt: skip
    assert (result.returncode, result.stdout) == (2, "")
    assert "MEMLANE_MCP_TOKEN" in result.stderr
    with running(
        "--http", "--host", "0.0.0.0", "--port", "0", folder=folder, MEMLANE_MCP_TOKEN="not-a-real-token"
    ) as process:
        url = url_of(process).replace("0.0.0.0", "127.0.0.1")
        assert status(url) == 401
        assert status(url, authorization="Bearer not-a-real-token") == 200


def test_an_answer_is_not_held_back_until_its_beginning_is_acknowledged() -> None:
    with http.listen("127.0.0.1", 0, None) as listener, closing(socket.create_connection(listener.getsockname())):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_that_is_taken_is_a_sentence(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = subprocess.run(
            [program(), "mcp", "--http", "--port", port], cwd=folder, env=environment(), capture_output=True, text=True
        )
    assert result.returncode == 1
    assert result.stderr.startswith(f"error: Port {port} is taken.\nnext: Name another one with --port")
