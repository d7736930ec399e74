"""What the agents were told, in the page: by session and prompt, with the words, the reasons and the user's verdict."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from conftest import trusted
from memlane import Bank
from memlane.history import sessions
from memlane.surfaces import hook
from ui_pages import Served

Ask = Callable[..., None]
SESSION = "3f9a1c0b-7d2e"


@pytest.fixture
def ask(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Call a hook of Claude Code in a session, which has all the time it needs while other tests keep the disk busy."""
    monkeypatch.setenv("MEMLANE_HOOK_DEADLINE", "20")

    def call(event: str, session: str = SESSION, **payload: Any) -> None:
        given = json.dumps({"session_id": session, "cwd": str(folder), **payload}).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        hook.main(["claude-code", event], io.StringIO())

    return call


@pytest.fixture
def remembered(folder: Path) -> None:
    with Bank.open(folder) as bank:
        bank.add("Deploys go out on Tuesdays, after the smoke tests.", title="Deploy day")
        bank.add("The pool is limited to 10 connections: more led to too many clients.", title="Pool size")


def verdicts(folder: Path) -> dict[str, str]:
    with Bank.open(folder) as bank:
        events = sessions.session(bank, SESSION).events
        return {item.id: item.verdict for event in events for item in event.given}


@pytest.mark.usefixtures("remembered")
def test_the_keyboard_alone_shows_what_a_prompt_got_and_why_and_judges_it(folder: Path, ask: Ask, page: Page) -> None:
    ask("prompt", prompt="when do deploys go out after the smoke tests?")
    ask("prompt", prompt="thanks!")
    ask("session-end")
    expect(page.locator("main .title")).to_have_text(["when do deploys go out after the smoke tests?"])
    expect(page.locator(".memory")).to_contain_text("2 prompts, 1 got nothing")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator(".moment")).to_have_count(3)
    assert page.url.endswith(f"/sessions/{SESSION}")
    expect(page.locator(".moment").nth(0)).to_contain_text("% relevant")
    expect(page.locator(".moment").nth(1)).to_contain_text("Nothing was handed over: small talk.")
    expect(page.locator(".moment").nth(2)).to_contain_text("The session ended")
    page.keyboard.press("u")
    expect(page.locator("#said")).to_have_text("Choose a memory with j and k first.")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("b")
    expect(page.locator(".moment pre")).to_contain_text("Deploys go out on Tuesdays, after the smoke tests.")
    page.keyboard.press("u")
    expect(page.get_by_role("button", name="Useful")).to_have_attribute("aria-pressed", "true")
    assert verdicts(folder) == {"notes:deploy-day": "useful"}
    expect(page.locator(".given .title")).to_be_focused()
    expect(page.locator(".moment pre")).to_be_visible()
    page.keyboard.press("n")
    expect(page.get_by_role("button", name="Never again")).to_have_attribute("aria-pressed", "true")
    assert verdicts(folder) == {"notes:deploy-day": "never"}
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="Useful")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Useful").click()
    expect(page.locator("#said")).to_have_text("Taken back.")
    assert verdicts(folder) == {"notes:deploy-day": ""}


@pytest.mark.usefixtures("remembered")
def test_sessions_and_prompts_appear_by_themselves_and_hostile_words_are_words(
    ask: Ask, page: Page, served: Served
) -> None:
    expect(page.locator("main .empty")).to_contain_text("memlane connect")
    ask("session-start", source="startup")
    page.locator("main .title").click()
    expect(page.locator(".moment")).to_have_count(1)
    page.locator(".moment summary").click()
    ask("prompt", prompt=f"<script>alert(1)</script> \u202ereversed <img src=x onerror=alert(2)> {'x' * 5000}")
    expect(page.locator(".moment")).to_have_count(2)
    expect(page.locator(".moment blockquote")).to_contain_text("<script>alert(1)</script>")
    expect(page.locator(".moment pre")).to_be_visible()
    assert page.locator("main img, main script").count() == 0
    page.set_viewport_size({"width": 360, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.goto(f"{served.root}/sessions/unknown")
    expect(page.locator(".problem")).to_contain_text("There is no such session in the log.")
    page.get_by_role("link", name="All sessions").click()
    expect(page.locator(".summary")).to_contain_text("memories handed over2")


@pytest.mark.usefixtures("remembered")
def test_without_words_in_the_log_the_page_says_so(folder: Path, ask: Ask, page: Page, served: Served) -> None:
    toml = folder / "memlane.toml"
    toml.write_text(toml.read_text() + "\n[hook]\nlog = false\n")
    trusted(toml)
    ask("session-start", source="startup")
    ask("prompt", prompt="thanks!")
    page.goto(f"{served.root}/sessions/{SESSION}")
    expect(page.locator(".moment").nth(0)).to_contain_text("The text itself is not logged: hook.log is off.")
    expect(page.locator(".moment").nth(1)).to_contain_text("Its words are not in the log.")
    expect(page.locator(".given .title").first).to_contain_text("notes:")
