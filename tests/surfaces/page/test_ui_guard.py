"""Who may talk to the page's server, and what every answer says to the browser."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from memlane import Bank
from memlane.surfaces.ui.guard import HEADERS, Keys, guarded
from ui_pages import Served, ask, cookie

OWN = {"sec-fetch-site": "same-origin"}


def test_the_address_becomes_a_cookie_of_this_port_that_no_script_reads_and_no_other_site_sends(served: Served) -> None:
    answer = ask(served, served.address.removeprefix(served.root))
    name, *rest = str(answer.headers.get("set-cookie")).split("; ")
    assert (answer.status, answer.headers.get("location")) == (303, "/")
    assert name.startswith(f"memlane-{served.host.rpartition(':')[2]}=")
    assert rest == ["Path=/", "HttpOnly", "SameSite=Strict"]


def test_an_address_is_good_for_one_browser_and_another_one_is_printed(served: Served) -> None:
    assert ask(served, served.address.removeprefix(served.root)).status == 303
    assert ask(served, served.address.removeprefix(served.root)).status == 403
    other = served.next_line()
    assert other != served.address
    assert ask(served, other.removeprefix(served.root)).status == 303


def test_without_the_cookie_nothing_is_served(served: Served) -> None:
    for path in ("/", "/search", "/static/app.js", "/api/frame", "/?token=guessed"):
        answer = ask(served, path, **OWN)
        assert (path, answer.status, b"memlane ui" in answer.body) == (path, 403, True)


def test_with_the_cookie_the_page_and_its_questions_are_answered(served: Served, folder: Path) -> None:
    own = cookie(served)
    assert b"app.js" in ask(served, "/search?q=x", cookie=own).body
    frame = json.loads(ask(served, "/api/frame", cookie=own, **OWN).body)
    assert frame["project"] == str(folder)


def test_another_name_that_points_here_is_refused(served: Served) -> None:
    own, names = cookie(served), ("evil.example:80", "127.0.0.1", "localhost:1", "127.0.0.1.evil.example")
    assert {ask(served, "/api/frame", cookie=own, Host=name, **OWN).status for name in names} == {421}


def test_a_browser_leaves_out_the_port_80() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def nothing(*_: Any) -> Any:
        return None

    for port in (80, 8080):
        scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"127.0.0.1")]}
        asyncio.run(guarded(nothing, Keys(port, print))(scope, nothing, send))  # type: ignore[arg-type]
    assert [message["status"] for message in sent if "status" in message] == [403, 421]  # no cookie; another name


def test_a_question_of_another_page_is_refused_another_port_of_this_machine_included(served: Served) -> None:
    own = cookie(served)
    sites: tuple[dict[str, str], ...] = (
        {},
        *({"sec_fetch_site": site} for site in ("cross-site", "same-site", "none")),
    )
    assert {ask(served, "/api/frame", cookie=own, **site).status for site in sites} == {403}


def test_a_change_has_to_come_from_this_page_and_in_json(served: Served) -> None:
    own = cookie(served)
    for headers, status in (
        ({"origin": "http://localhost:3000"}, 403),
        ({"origin": "null"}, 403),
        ({}, 403),
        ({"origin": served.root, "content_type": "text/plain"}, 403),
        ({"origin": served.root, "sec_fetch_site": "same-site"}, 403),
        ({"origin": served.root}, 404),  # it may ask, but there is no such question
    ):
        sent = {"content_type": "application/json", "sec_fetch_site": "same-origin", **headers}
        answer = ask(served, "/api/nothing", method="POST", body={}, cookie=own, **sent)
        assert (headers, answer.status) == (headers, status)


def test_every_answer_has_the_headers_that_keep_the_page_to_itself(served: Served) -> None:
    own = cookie(served)
    for path, status in (("/", 200), ("/static/app.js", 200), ("/static/none.js", 404), ("/api/frame", 200)):
        answer = ask(served, path, cookie=own, **OWN)
        found = {name: answer.headers.get(name) for name in HEADERS}
        assert (answer.status, found) == (status, dict(HEADERS))
        assert answer.headers.get("server") is None


def test_no_path_leads_out_of_the_files_of_the_page(served: Served) -> None:
    own, paths = cookie(served), ("/static/../serving.py", "/static/%2e%2e/serving.py", "/static//etc/passwd")
    assert {ask(served, path, cookie=own).status for path in paths} == {404}


def test_what_is_no_json_object_is_refused_in_a_sentence(served: Served) -> None:
    own = cookie(served)
    sent = {"content_type": "application/json", "origin": served.root, "sec_fetch_site": "same-origin"}
    for body in (b"", b"[]", b"{", b"[" * 100_000, b'"text"'):
        answer = ask(served, "/api/update", method="POST", body=body, cookie=own, **sent)
        assert (answer.status, json.loads(answer.body)["code"]) in ((400, "invalid_input"), (404, "not_found"))


def test_a_secret_in_a_memory_does_not_reach_the_page(served: Served, folder: Path) -> None:
    token = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"
    with Bank.open(folder) as bank:
        note = bank.add("The token is in the vault.", title="Token").path
    note.write_text(note.read_text().replace("in the vault", token))
    own = cookie(served)
    for path in ("/api/memory?id=notes:token", "/api/search?q=token", "/api/search"):
        body = ask(served, path, cookie=own, **OWN).body
        assert (token.encode() in body, b"REDACTED:" in body) == (False, True)


def test_a_project_that_is_not_trusted_is_not_served(served: Served, folder: Path) -> None:
    (folder / "memlane.toml").write_text("[hook]\nrecent = 3\n")
    answer = ask(served, "/api/search", cookie=cookie(served), **OWN)
    assert (answer.status, json.loads(answer.body)["code"]) == (403, "not_trusted")


def test_what_is_too_long_is_refused_before_it_is_read_with_a_way_out(served: Served) -> None:
    own = {"cookie": cookie(served), "origin": served.root, "sec_fetch_site": "same-origin"}
    sent = own | {"content_type": "application/json", "content_length": str(17 << 20)}
    answer = ask(served, "/api/save", method="POST", body=b"{}", **sent)
    hint = "Edit it with `memlane edit`, or split it."
    told = {"code": "refused", "message": "That is more than 16 MB.", "hint": hint}
    assert (answer.status, json.loads(answer.body)) == (413, told)
