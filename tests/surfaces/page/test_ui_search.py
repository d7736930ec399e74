"""Searching in the page, and its frame: keys, addresses, what changes while it is open."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from memlane import Bank
from ui_pages import Served


def titles(page: Page) -> list[str]:
    return page.locator("main .title").all_inner_texts()


def test_the_keyboard_alone_finds_and_opens_a_memory(folder: Path, page: Page) -> None:
    with Bank.open(folder) as bank:
        bank.add("Deploys go out on Tuesdays.", title="Deploy day", tags=["release"])
        bank.add("Tests run on every push.", title="Tests")
    page.keyboard.press("/")
    page.keyboard.type("deploys")
    expect(page.locator("main .title")).to_have_text(["Deploy day"])
    expect(page.locator("main mark")).to_have_text(["Deploys"])
    assert page.url.endswith("/search?q=deploys")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Deploy day")
    assert page.url.endswith("/memory/notes:deploy-day")
    page.go_back()
    expect(page.locator("main .title")).to_have_text(["Deploy day"])


def test_filters_are_chips_and_part_of_the_address(folder: Path, page: Page) -> None:
    with Bank.open(folder) as bank:
        bank.add("Deploys go out on Tuesdays.", title="Deploy day", tags=["release"])
        bank.add("Tests run on every push.", title="Tests", tags=["ci"])
    page.reload()
    page.goto(page.url.rpartition("/")[0] + "/search")
    page.get_by_role("button", name="#release").click()
    expect(page.locator("main .title")).to_have_text(["Deploy day"])
    assert page.url.endswith("/search?tag=release")


def test_an_empty_bank_says_what_to_do_next(page: Page, served: Served) -> None:
    page.goto(f"{served.root}/search")
    expect(page.locator("main .empty")).to_contain_text("memlane add")


def test_what_an_agent_writes_appears_by_itself(folder: Path, page: Page, served: Served) -> None:
    page.goto(f"{served.root}/search")
    expect(page.locator("main .empty")).to_be_visible()
    with Bank.open(folder) as bank:
        bank.add("Deploys go out on Tuesdays.", title="Deploy day")
    expect(page.locator("main .title")).to_have_text(["Deploy day"])
