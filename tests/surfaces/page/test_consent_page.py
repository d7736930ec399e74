"""The page on which people let programs in, in a real browser: its policy lets its form work, and nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from memlane import Bank
from ui_pages import MEMLANE, PATIENCE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

AXE = Path(__file__).parents[3] / ".node/node_modules/axe-core/axe.min.js"
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(b"v" * 50).digest()).decode().rstrip("=")


class Program(BaseHTTPRequestHandler):
    """The program that asks, where the browser is sent back to; and a site that shows the page in a frame."""

    def do_GET(self) -> None:
        shown = parse_qs(urlsplit(self.path).query).get("frame", [""])[0]
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(f'<title>program</title><iframe src="{shown}"></iframe>'.encode() if shown else b"back")

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def program() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Program) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def asked(tmp_path: Path, program: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address that the program opens, and the server."""
    Bank.init(tmp_path).close()
    words = [MEMLANE, "--bank", str(tmp_path), "mcp", "--http", "--oauth", "--port", "0"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr
            issuer = server.stderr.readline().split()[2].rstrip(";").removesuffix("/mcp")
            back = f"{program}/back"
            about = {"client_name": "<b>Demo</b>", "redirect_uris": [back], "token_endpoint_auth_method": "none"}
            head = {"content-type": "application/json"}
            sent = urllib.request.Request(f"{issuer}/register", json.dumps(about).encode(), head)
            with urllib.request.urlopen(sent, timeout=120) as answer:
                client = json.load(answer)["client_id"]
            request = {"client_id": client, "redirect_uri": back, "response_type": "code", "code_challenge": CHALLENGE}
            yield f"{issuer}/authorize?{urlencode({**request, 'state': 'x'})}", server
        finally:
            server.kill()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(color_scheme="dark")
    context.set_default_timeout(PATIENCE)
    yield context.new_page()
    context.close()


def test_a_person_lets_a_program_in(asked: tuple[str, subprocess.Popen[str]], program: str, page: Page) -> None:
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    address, server = asked
    page.goto(address)
    assert page.locator("strong").first.inner_text() == "<b>Demo</b>"
    assert server.stderr
    code = re.findall(r"The code of request \S+ is ([\w-]+)", server.stderr.readline())[0]
    page.check("input[value=read]")
    page.fill("input[name=scopes]", "team")
    page.fill("input[name=code]", "WRNG-CODE")
    page.click("button[value=allow]")
    assert (
        page.locator(".why").inner_text()
        == "That is not the code of this request, which was printed where the server runs."
    )
    kept = (page.is_checked("input[value=read]"), page.input_value("input[name=scopes]"))
    assert kept == (True, "team")
    page.fill("input[name=code]", code)
    page.click("button[value=allow]")
    page.wait_for_url(f"{program}/back?code=*")
    assert [text for text in complaints if "Content Security Policy" in text] == []


def test_another_site_cannot_show_the_page_in_a_frame(
    asked: tuple[str, subprocess.Popen[str]], program: str, page: Page
) -> None:
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(f"{program}/?{urlencode({'frame': asked[0]})}")
    assert page.title() == "program"
    assert any("frame-ancestors" in text for text in complaints)
    assert [frame.locator("form").count() for frame in page.frames[1:]] == [0]


@pytest.mark.skipif(not AXE.is_file(), reason="`make node` has not installed axe-core")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_and_use_the_page(asked: tuple[str, subprocess.Popen[str]], page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(asked[0])
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert [violation["id"] for violation in found["violations"]] == []
