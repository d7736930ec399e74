"""The page against what nobody means well with: odd questions, hostile memories, odd addresses, and a busy agent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from playwright.sync_api import Browser, Page, expect

from memlane import Bank
from memlane.surfaces.mcp.shared_bank import SharedBank
from memlane.surfaces.ui import api, markdown
from ui_pages import Served

NAMES = (
    "add all as-of at archived before changes day do expected id into key kind lane limit number "
    "opened order q remove seen session since soon tag target text type until verdict version what"
).split()
FITS = {"id": "notes:kept", "version": "1", "text": "x", "opened": "x", "what": "keep", "do": "version", "target": "a"}
ODD: list[Any] = [
    None, True, -1, 10**30, float("nan"), [None, 1], {"a": {}}, "", "\0", "\ud800", "../../etc/passwd", ":", "user/",
    "notes:kept", "notes:", "user/notes:x", "c999", "x" * 100_000, "notes:" + "y/" * 5_000, "0000-00-00", "9" * 40,
]  # fmt: skip
ASK_NOTHING = {"health", "mend", "graph", "truth-count", "inbox-count", "told", "frame", "choices", "inbox"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedBank]:
    folder = tmp_path_factory.mktemp("hostile")
    with Bank.init(folder) as bank:
        bank.add("It stays.", title="Kept")
    shared = SharedBank(folder)
    yield shared
    shared.close()


def no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


@pytest.mark.parametrize("name", sorted({*api.READS, *api.WRITES}))
def test_odd_values_are_answered_in_a_sentence(shared: SharedBank, name: str) -> None:
    question = api.READS.get(name) or partial(api._written, api.WRITES[name], name)
    wrong = {}

    async def ask(asked: Mapping[str, Any], value: Any) -> None:
        answer = await api._answer(shared, question, asked)
        body = json.loads(bytes(answer.body), parse_constant=no_constant)
        if answer.status_code >= 500 or (answer.status_code != 200 and not (body["code"] and body["message"])):
            wrong[repr(value)[:40]] = body

    async def ask_all() -> None:
        for value in ODD[-1:] if name in ASK_NOTHING else ODD:
            for asked in (dict.fromkeys(NAMES, value), FITS | {"id": value}, FITS | {"text": value, "version": value}):
                await ask(asked, value)

    anyio.run(ask_all)
    assert wrong == {}


@pytest.mark.parametrize(
    "text",
    [
        "[//]: # (unseen words)\n\nx",
        "|a|b|\n|-|-|\n|x|y|unseen words|\n",
        '[a](https://example.org "unseen words")',
        ">" * 30 + " unseen words",
    ],
)
def test_a_text_of_which_markdown_would_hide_words_is_shown_as_it_is_written(text: str) -> None:
    assert markdown.tree(text) == [["pre", {}, [text]]]


def test_hostile_memories_are_text_wherever_they_are_shown(folder: Path, page: Page, served: Served) -> None:
    script = "<img src=x onerror=document.title='taken'><script>document.title='taken'</script>"
    links = '[a](javascript:alert(1)) [b](data:text/html,x) ![c](https://example.org/c.png) [[x" onclick="alert(1)]]'
    with Bank.open(folder) as bank:
        bank.add(f"{script} {links}", title=script, tags=["<b>tag</b>"])
        bank.add("y" * 1_000_000, title="t" * 10_000, tags=["unconfirmed"], extra={"confidence": ".nan"})
        bank.add(f"{script} in the vault", lane="vault")
    odd = folder / ".memories" / 'a#b?c%2F "d\u202e.md'
    odd.write_text('---\ntitle: "odd \u202e\u200btitle"\ntags: ["\u202etag"]\n---\nOdd words.\n', "utf-8")
    for view in ("inbox", "search", "search?q=odd", "timeline", "truth", "health", "graph"):
        page.goto(f"{served.root}/{view}")
        expect(page.locator("main .view")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert "NaN" not in page.locator("main").inner_text()
    page.goto(f"{served.root}/search?q=odd")
    page.get_by_role("link", name="odd U+202EU+200Btitle").click()
    expect(page.locator("main .text")).to_have_text("Odd words.")
    page.reload()
    expect(page.locator("main .text")).to_have_text("Odd words.")
    assert page.locator("main script, main [onclick], main img, main a[href^='javascript:']").count() == 0
    assert "taken" not in page.title()


def test_an_address_that_nobody_made_says_so(page: Page, served: Served) -> None:
    for path, said in (
        ("constructor", "There is no such page."),
        ("memory/100%", "no memory 100%"),
        ("timeline?day=x", "date"),
    ):
        page.goto(f"{served.root}/{path}")
        expect(page.locator("main .problem")).to_contain_text(said)


def test_an_agent_that_writes_much_makes_no_storm_of_questions(folder: Path, page: Page, served: Served) -> None:
    page.goto(f"{served.root}/search")
    expect(page.locator("main .empty")).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/api/search" in request.url else None)
    start = page.evaluate("performance.now()")
    with Bank.open(folder) as bank:
        for number in range(60):
            bank.add(f"Remembered as number {number}.", title=f"Number {number}")
    expect(page.locator("main .title").first).to_have_text("Number 59")
    seconds = (page.evaluate("performance.now()") - start) / 1000
    assert len(asked) <= 2 + seconds


def test_a_page_that_was_opened_too_early_shows_the_bank_as_soon_as_there_is_one(
    tmp_path: Path, serve: Callable[[Path], Served], open_page: Callable[[Served], Page]
) -> None:
    project = tmp_path / "later"
    project.mkdir()
    served = serve(project)
    page = open_page(served)
    expect(page.locator("main .problem")).to_contain_text("memlane init")
    Bank.init(project).close()
    expect(page.locator("main .empty")).to_contain_text("memlane connect")


def test_without_its_server_a_narrow_page_says_so_above_the_views(served: Served, browser: Browser) -> None:
    with closing(browser.new_context(viewport={"width": 360, "height": 640})) as context:
        page = context.new_page()
        page.goto(served.address)
        expect(page.locator("main .empty")).to_be_visible()
        served.process.terminate()
        expect(page.locator("body")).to_have_class("alone")
        bottom = page.evaluate("parseFloat(getComputedStyle(document.body, '::after').bottom)")
        assert bottom >= page.evaluate("document.querySelector('nav').offsetHeight") - 2
        page.locator("nav a", has_text="Search").click()
        expect(page.locator("main .problem")).to_contain_text("does not answer")
