"""The timeline and the graph: pictures of the whole bank, each with its words."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from memlane import Bank
from memlane.surfaces.ui.layout import placed
from repositories import git, save
from ui_pages import Served, cookie, question


def filled(folder: Path) -> None:
    with Bank.open(folder) as bank:
        bank.add("Deploys: [[tests]], [[src/deploy.py]].", title="Deploy day", tags=["release"])
        bank.add("Tests run on every push.", title="Tests", created_at=datetime(2025, 3, 4, tzinfo=UTC))


def test_the_timeline_has_each_day_with_its_memories_and_ends_where_one_says(
    folder: Path, page: Page, served: Served
) -> None:
    filled(folder)
    page.goto(f"{served.root}/timeline")
    expect(page.locator("main .title")).to_have_text(["Deploy day", "Tests"])
    expect(page.locator("main h2").last).to_have_text("Tuesday, 4 March 2025")
    assert page.locator("i.day:not(.level-0)").count() == 1  # today; the other day is more than a year ago
    page.goto(f"{served.root}/timeline?day=2025-03-04")
    expect(page.locator("main .title")).to_have_text(["Tests"])


def test_what_somebody_has_scrolled_to_stays_while_an_agent_writes(folder: Path, page: Page, served: Served) -> None:
    for number in range(450):
        day = f"2025-{1 + number % 12:02}-{1 + number % 28:02}"
        text = f"---\ntitle: Note {number}\ncreated_at: {day}\n---\nSaid on {day}.\n"
        (folder / ".memories" / f"note-{number}.md").write_text(text)
    page.goto(f"{served.root}/timeline")
    titles = page.locator("main .title")
    for shown, more in ((100, 200), (200, 400), (400, 450)):
        expect(titles).to_have_count(shown)
        page.get_by_role("button", name="Show more").click()
        expect(titles.nth(shown)).to_be_focused()
        expect(titles).to_have_count(more)
    titles.nth(300).focus()
    kept = titles.nth(300).inner_text()
    with Bank.open(folder) as bank:
        bank.add("The newest of all.", title="Newest")
    expect(titles.first).to_have_text("Newest")
    expect(titles).to_have_count(451)
    expect(page.locator("main .title:focus")).to_have_text(kept)


def test_a_bank_in_git_is_shown_as_it_was(folder: Path, page: Page, served: Served) -> None:
    git(folder, "init", "-q")
    with Bank.open(folder) as bank:
        bank.add("Deploys go out on Mondays.", title="Deploy day")
    save(folder, date="2025-01-02")
    with Bank.open(folder) as bank:
        bank.add("Tests run on every push.", title="Tests")
    page.goto(f"{served.root}/timeline?as-of=2025-02-01")
    expect(page.locator("main .past .title")).to_have_text(["Deploy day"])
    page.goto(f"{served.root}/timeline?as-of=2024-01-01")
    expect(page.locator("main .empty")).to_be_visible()


@pytest.mark.parametrize("plain", ["no", "yes"])  # with WebGL, and without
def test_the_graph_is_drawn_and_says_what_is_linked_most(folder: Path, page: Page, served: Served, plain: str) -> None:
    filled(folder)
    page.goto(f"{served.root}/graph?plain={plain}")
    expect(page.locator("canvas")).to_have_attribute("data-drawn", "4")
    expect(page.locator(".linked li").first).to_have_text("Deploy day 3 links")
    page.get_by_role("button", name="tags").click()
    expect(page.locator("canvas")).to_have_attribute("data-drawn", "3")
    page.locator(".linked a").first.click()
    expect(page.locator("h1")).to_have_text("Deploy day")


def test_what_is_linked_is_placed_together_and_always_the_same() -> None:
    edges = np.array([(at, at + 1) for at in range(0, 400, 2)])
    places = placed(500, edges)
    assert np.array_equal(places, placed(500, edges))
    linked = np.linalg.norm(places[edges[:, 0]] - places[edges[:, 1]], axis=1)
    others = np.linalg.norm(places[:400] - np.roll(places[:400], 7, axis=0), axis=1)
    assert np.median(linked) < np.median(others) / 5
    assert np.isfinite(places).all()


def test_a_graph_of_nothing_and_of_one_is_placed() -> None:
    assert placed(0, np.zeros((0, 2), np.int64)).tolist() == []
    assert np.isfinite(placed(1, np.zeros((0, 2), np.int64))).all()


def test_a_day_that_is_none_is_refused_in_a_sentence(served: Served) -> None:
    own = cookie(served)
    assert question(served, own, "timeline?day=yesterday-ish")["code"] == "invalid_input"
    assert question(served, own, "timeline?limit=-1")["code"] == "invalid_input"
