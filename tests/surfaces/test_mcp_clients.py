"""The MCP server, tested with third-party programs: the official inspector and the conformance suite.

`make node` installs them into .node/. Where they are not, these tests are skipped; never where CI is set.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from conftest import trusted
from memlane import Bank
from memlane.surfaces.mcp.toolsets import DEFAULT
from remote_servers import free_port

ROOT = Path(__file__).parents[2]
MODULES = ROOT / ".node/node_modules"
MEMLANE = str(Path(sys.executable).with_name("memlane"))
ERAS = ("legacy", "modern")
LONGEST = 120  # seconds for one process

# Every tool, in an order in which each finds what it needs.
CALLS: dict[str, dict[str, Any]] = {
    "create_memory": {"filename": "cookies.md", "content": "Use signed cookies in [[src/auth.py]].", "tags": ["auth"]},
    "read_memory": {"filename": "cookies.md"},
    "update_memory": {"filename": "cookies.md", "content": "Use signed cookies in [[src/auth.py]], always."},
    "append_memory": {"filename": "cookies.md", "content": "Decided on 2025-01-10."},
    "search_memories": {"query": "signed cookies"},
    "search_linked_memories": {"query": "cookies", "target_document": "src/auth.py"},
    "get_memory_stats": {},
    "suggest_memory_merges": {"threshold": 0.5},
    "merge_memories": {
        "source_files": ["cookies.md"],
        "target_file": "cookies-2.md",
        "summary_content": "Cookies, signed.",
    },
    "edit_memory": {"id": "cookies-2", "old": "signed", "new": "signed and sealed"},
    "delete_memory": {"filename": "cookies-2.md"},
    "list_memories": {"deleted": True},
    "restore_memory": {"id": "cookies-2"},
    "remember": {"text": "Projects: dashboard.", "topic_id": "projects"},
    "recall": {"query": "projects"},
}
# What needs no fixtures in the server, with the number of checks that must pass.
SCENARIOS = {
    "server-initialize": 3,
    "server-session-lifecycle": 3,
    "ping": 2,
    "tools-list": 3,
    "resources-list": 2,
    "prompts-list": 2,
    "completion-complete": 2,
    "dns-rebinding-protection": 2,
    "caching": 8,
    "http-header-validation": 14,
    "sep-2164-resource-not-found": 4,
    "server-sse-multiple-streams": 2,
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Node that the clients run on. It keeps what it has compiled for the next process: a sixth of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NODE_COMPILE_CACHE", str(tmp_path_factory.mktemp("compiled")))
        yield _found_node()


def _found_node() -> str:
    found = next((str(path) for path in MODULES.glob("node-linux-*/bin/node")), "node")
    try:
        version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
        if (MODULES / ".bin/mcp-inspector").exists() and int(version.lstrip("v").split(".")[0]) >= 22:
            return found
        why = "`make node` has not installed the clients, or Node is older than 22"
    except (OSError, subprocess.CalledProcessError):
        why = "there is no Node here"
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("bank")
    with pytest.MonkeyPatch.context() as patch:  # the server outlives a test, and so does its home
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        Bank.init(folder)
        yield folder


@pytest.fixture(autouse=True)
def _in_this_home(folder: Path) -> None:
    trusted(folder / "memlane.toml")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    """The unmodified command, over HTTP on a free port."""
    with subprocess.Popen(
        [MEMLANE, "mcp", "--http", "--port", "0"], cwd=folder, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr
        try:
            line = process.stderr.readline()
            assert "serving http://127.0.0.1:" in line, line
            yield line.split()[2].rstrip(";")
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(LONGEST)
            except subprocess.TimeoutExpired:
                process.kill()
        assert process.returncode == 0


def inspected(node: str, *args: str) -> dict[str, Any]:
    strict = ["--strict"] if "tools/list" in args else []  # fails for a schema that not every model understands
    command = [node, str(MODULES / ".bin/mcp-inspector"), "--cli", *args, *strict, "--format", "json", "-q"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)
    assert result.returncode == 0, result.stderr + result.stdout
    answer: dict[str, Any] = json.loads(result.stdout)["result"]
    return answer


def called(node: str, server: tuple[str, ...], era: str, name: str) -> None:
    """Call one tool; the inspector checks its structured content against the schema."""
    method = ("--method", "tools/call", "--tool-name", name, "--tool-args-json", json.dumps(CALLS[name]))
    answer = inspected(node, *server, "--protocol-era", era, *method)
    assert not answer.get("isError"), answer
    assert answer["structuredContent"]
    assert answer["content"][0]["text"]


def test_the_calls_cover_every_tool() -> None:
    assert sorted(CALLS) == sorted(tool.name for tool in DEFAULT)


def test_the_inspector_calls_every_tool_over_http(node: str, url: str) -> None:
    """In turns as clients of either era do: an era has its own way to ask, and the same tools behind it."""
    for name, era in zip(CALLS, cycle(ERAS)):
        called(node, (url, "--transport", "http"), era, name)


@pytest.mark.parametrize(
    ("era", "names"), [("legacy", ("remember", "recall")), ("modern", ("create_memory", "read_memory"))]
)
def test_the_inspector_calls_tools_over_pipes(node: str, tmp_path: Path, era: str, names: tuple[str, str]) -> None:
    """Some that write and read: what a tool answers does not depend on how it was reached."""
    Bank.init(tmp_path)
    for name in names:
        called(node, (MEMLANE, "--bank", str(tmp_path), "mcp"), era, name)


@pytest.mark.parametrize("era", ERAS)
def test_the_inspector_finds_every_schema_portable(node: str, url: str, era: str) -> None:
    tools = inspected(node, url, "--transport", "http", "--protocol-era", era, "--method", "tools/list")["tools"]
    assert [tool["name"] for tool in tools] == [tool.name for tool in DEFAULT]


def test_the_inspector_reads_a_resource_and_a_prompt(node: str, url: str, folder: Path) -> None:
    Bank.open(folder).notes.create_memory("res.md", "A resource.", [])
    legacy, modern = ((url, "--transport", "http", "--protocol-era", era) for era in ERAS)
    read = inspected(node, *legacy, "--method", "resources/read", "--uri", "memory://memory/notes:res")
    assert read["contents"][0]["text"].endswith("A resource.")
    prompt = ("--method", "prompts/get", "--prompt-name", "recall", "--prompt-args", "topic=resource")
    assert "A resource." in inspected(node, *modern, *prompt)["messages"][0]["content"]["text"]


def test_the_inspector_finds_the_schemas_of_all_toolsets_portable(node: str, tmp_path: Path) -> None:
    more = [word for name in ("vault", "topics", "layers", "records") for word in ("--toolset", name)]
    tools = inspected(node, MEMLANE, "--bank", str(tmp_path), "mcp", *more, "--method", "tools/list")["tools"]
    assert len(tools) > 40


@pytest.fixture(scope="module")
def checks(node: str, url: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[dict[str, Any]]]:
    """What the suite found in a scenario. One process runs them all, also those that only a server of its own passes:
    Node needs a second to read it.
    """
    folder = tmp_path_factory.mktemp("conformance")
    command = [node, str(MODULES / ".bin/conformance"), "server", "--url", url, "--suite", "all", "-o", str(folder)]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=5 * LONGEST)
    assert "=== SUMMARY ===" in result.stdout, result.stdout + result.stderr

    def found(scenario: str) -> list[dict[str, Any]]:
        [file] = folder.glob(f"server-{scenario}-20*/checks.json")
        return list(json.loads(file.read_text()))

    return found


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_server_conforms(checks: Callable[[str], list[dict[str, Any]]], scenario: str) -> None:
    found = Counter(check["status"] for check in checks(scenario))
    assert (found["SUCCESS"], found["FAILURE"], found["WARNING"]) == (SCENARIOS[scenario], 0, 0), checks(scenario)


def test_what_is_stateless_conforms_but_for_the_suites_own_tools(checks: Callable[[str], list[dict[str, Any]]]) -> None:
    """Four checks call tools that only a test server has; they say that they cannot be tested."""
    found = checks("server-stateless")
    assert Counter(check["status"] for check in found) == {"SUCCESS": 21, "FAILURE": 4, "SKIPPED": 5}
    failed = [check["errorMessage"] for check in found if check["status"] == "FAILURE"]
    assert [why for why in failed if not why.startswith("Not testable: server does not list the diagnostic tool")] == []


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[tuple[str, Callable[[str], str]]]:
    """A server that wants programs to be let in, and a person at a browser who lets one in that opens an address."""
    Bank.init(tmp_path).close()
    command = [MEMLANE, "--bank", str(tmp_path), "mcp", "--http", "--oauth", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr
        said = server.stderr

        def let_in(address: str) -> str:
            """Where the browser is sent in the end."""
            with urllib.request.urlopen(address, timeout=LONGEST) as page:
                request = re.findall(r'name=request value="([^"]+)"', page.read().decode())[0]
            code = re.findall(r"The code of request \S+ is ([\w-]+)", said.readline())[0]
            form = {"request": request, "right": "write", "name": "ann", "code": code, "decision": "allow"}
            parts = urllib.parse.urlsplit(url)
            connection = HTTPConnection(parts.netloc, timeout=LONGEST)
            head = {"content-type": "application/x-www-form-urlencoded"}
            connection.request("POST", "/oauth/consent", urllib.parse.urlencode(form), head)
            answer = connection.getresponse()
            connection.close()
            return str(answer.headers["location"])

        try:
            url = said.readline().split()[2].rstrip(";")
            yield url, let_in
        finally:
            server.kill()


def test_the_inspector_is_let_in_by_oauth_and_stays_connected(
    node: str, asking: tuple[str, Callable[[str], str]], tmp_path: Path
) -> None:
    """It finds everything by itself, registers and shows an address; later it has what it was given."""
    url, let_in = asking
    home = {"HOME": str(tmp_path), "MCP_AUTO_OPEN_ENABLED": "true", "MCP_INSPECTOR_SECRET_STORE": "file"}
    back = f"http://127.0.0.1:{free_port()}/oauth/callback"

    def inspector(tool: str, arguments: dict[str, Any], *more: str) -> list[str]:
        called = ("--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        server = (url, "--transport", "http", "--callback-url", back)
        return [node, str(MODULES / ".bin/mcp-inspector"), "--cli", *server, *called, "--format", "json", *more]

    note = inspector("remember", {"text": "Deploys go out on Tuesdays.", "title": "Deploy day"})
    with subprocess.Popen(
        note, env={**os.environ, **home}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as client:
        assert client.stdout
        landed = let_in(next(line.split()[-1] for line in client.stdout if "/authorize?" in line))
        assert landed.startswith(back)
        urllib.request.urlopen(landed, timeout=LONGEST).close()
        said = client.stdout.read()
        assert client.wait(LONGEST) == 0, said
    again = inspector("recall", {"query": "deploys"}, "--stored-auth-only", "-q")
    found = subprocess.run(again, env={**os.environ, **home}, capture_output=True, text=True, timeout=LONGEST)
    assert found.returncode == 0, found.stderr + found.stdout
    assert json.loads(found.stdout)["result"]["structuredContent"]["ids"] == ["notes:deploy-day"]


def test_the_authorization_server_conforms(node: str, asking: tuple[str, Callable[[str], str]], tmp_path: Path) -> None:
    url, let_in = asking
    issuer, port = url.removesuffix("/mcp"), free_port()
    about = {"redirect_uris": [f"http://127.0.0.1:{port}/callback"], "token_endpoint_auth_method": "none"}
    head = {"content-type": "application/json"}
    request = urllib.request.Request(f"{issuer}/register", json.dumps(about).encode(), head)
    with urllib.request.urlopen(request, timeout=LONGEST) as answer:
        client_id = json.load(answer)["client_id"]
    command = [node, str(MODULES / ".bin/conformance"), "authorization", "--url", issuer, "--resource", url]
    command += ["--client-id", client_id, "--port", str(port)]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as suite:
        assert suite.stdout
        landed = let_in(next(line.split()[-1] for line in suite.stdout if "/authorize?" in line))
        next(line for line in suite.stdout if "Callback server started" in line)
        urllib.request.urlopen(landed, timeout=LONGEST).close()
        said = suite.stdout.read()
        assert suite.wait(LONGEST) == 0, said
    assert "Total: 2 passed, 0 failed" in said
