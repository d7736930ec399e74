"""The page of `memlane ui`, as a process, asked with and without a real browser. Its fixtures are for all tests.

Tests with a browser are skipped where there is none: `make setup-browser` installs it. Whatever the browser complains
about, a violation of the page's security policy above all, fails the test.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from memlane import Bank
from repositories import git, save

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

MEMLANE = str(Path(sys.executable).with_name("memlane"))
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PATIENCE = 60_000  # ms: other tests keep the machine busy meanwhile
NO_BROWSER = "no browser is installed: `make setup-browser` installs Chromium"


@dataclass
class Served:
    """A running `memlane ui`: the address that it printed, and the lines that it prints afterwards."""

    address: str
    process: subprocess.Popen[str]

    @property
    def host(self) -> str:
        return urlsplit(self.address).netloc

    @property
    def root(self) -> str:
        return f"http://{self.host}"

    def next_line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def ask(served: Served, path: str, *, method: str = "GET", body: Any = None, **headers: str) -> Answer:
    """Send a request with these headers, whose names are written with underlines or dashes."""
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    with closing(HTTPConnection(served.host, timeout=60)) as connection:
        connection.request(method, path, data, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())


def cookie(served: Served) -> str:
    """The cookie that the address of a server becomes, as a browser sends it."""
    answer = ask(served, served.address.removeprefix(served.root))
    return answer.headers["set-cookie"].partition(";")[0]


def question(served: Served, own: str, name: str, body: Any = None) -> Any:
    """What a question of the page is answered with: a change when there is a body."""
    sent = {"cookie": own, "sec_fetch_site": "same-origin"}
    if body is None:
        return json.loads(ask(served, f"/api/{name}", **sent).body)
    sent |= {"origin": served.root, "content_type": "application/json"}
    return json.loads(ask(served, f"/api/{name}", method="POST", body=body, **sent).body)


CODE = "def login():\n    return sign('{}')\n"


def commit_code(folder: Path) -> Path:
    """Put code into a project, for memories to speak of, and commit it."""
    code = folder / "auth.py"
    code.write_text(CODE.format("HS256"))
    git(folder, "init", "-q")
    save(folder)
    return code


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    Bank.init(project).close()
    return project


@pytest.fixture
def serve() -> Iterator[Callable[[Path], Served]]:
    """Start `memlane ui` for a folder; it ends with the test."""
    with ExitStack() as ending:

        def start(folder: Path) -> Served:
            words = [MEMLANE, "--bank", os.fspath(folder), "ui", "--no-open", "--port", "0"]
            process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            ending.enter_context(process)
            ending.callback(process.terminate)
            assert process.stdout
            return Served(process.stdout.readline().strip(), process)

        yield start


@pytest.fixture
def served(folder: Path, serve: Callable[[Path], Served]) -> Served:
    return serve(folder)


@pytest.fixture(scope="module")  # its event loop runs as long as it is open, and other tests have their own
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip(NO_BROWSER)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser: Browser, serve: Callable[[Path], Served]) -> Iterator[Callable[[Served], Page]]:
    """Open the page of a server, in a browser of its own, which is closed before the server ends. What it complains
    about fails the test."""
    complaints: list[str] = []
    with ExitStack() as ending:

        def start(served: Served) -> Page:
            context = browser.new_context(viewport={"width": 1200, "height": 800}, locale="en-GB", timezone_id="UTC")
            ending.callback(context.close)
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
            page.goto(served.address)
            return page

        yield start
    assert [each for each in complaints if "the server responded with a status of 4" not in each] == []


@pytest.fixture
def page(open_page: Callable[[Served], Page], served: Served) -> Page:
    return open_page(served)
