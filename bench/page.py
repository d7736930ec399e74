"""How quick the page of `memlane ui` is, with a real browser (Chromium; `make setup-browser` installs it).

    python bench/page.py [--notes N] [--bank FOLDER]     10,000 notes that are made up, unless a bank is named

Prints how long it takes from the start of the command until the page shows something, from a keystroke until its hits
are there, with what that costs the server in CPU, and until the graph is drawn; also for how long the page did not
answer its user at the longest, and the memory of the server's processes. A bank that is named is copied first; nothing
is written to it.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from memlane import Bank

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed memlane is compiled, and so is what is measured here

if TYPE_CHECKING:
    from playwright.sync_api import Page

MEMLANE = str(Path(sys.executable).with_name("memlane"))
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SYLLABLES = "ba ce di fo gu ha ki lo me nu pa ri so ta ve wi xo yu za bren clo dras fli gron".split()
WORDS = sorted({one + two + three for one in SYLLABLES for two in SYLLABLES[::2] for three in SYLLABLES[::3]})
QUERIES = tuple(f"{WORDS[at]} {WORDS[at + 500]}" for at in (100, 700, 1300))
# When a key was pressed, and when the hits of the whole query were there: both in the page's own time.
WATCH = """(query) => {
  const box = document.getElementById("query");
  const state = (window.watched = { pressed: 0, shown: 0 });
  box.addEventListener("input", () => (state.pressed = performance.now()));
  new MutationObserver(() => {
    const whole = new URLSearchParams(location.search).get("q") === query;
    const there = whole && document.querySelector("main .result .title");
    if (there && !state.shown) state.shown = performance.now();
    if (!there) state.shown = 0;
  }).observe(document.getElementById("main"), { childList: true, subtree: true });
}"""

FREEZES = """window.frozen = 0;
const longest = (list) => {
  for (const { duration } of list.getEntries()) window.frozen = Math.max(window.frozen, duration);
};
new PerformanceObserver(longest).observe({ entryTypes: ["longtask"] });"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--bank", type=Path)
    asked = parser.parse_args()
    if CHROMIUM is None:
        sys.exit("No browser is installed: `make setup-browser` installs Chromium.")
    with tempfile.TemporaryDirectory() as scratch:
        own = {name: f"{scratch}/{name}" for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "HOME")}
        os.environ.update(own)
        project = Path(scratch) / "project"
        if asked.bank:
            shutil.copytree(asked.bank, project)
            subprocess.run([MEMLANE, "--bank", os.fspath(project), "trust", "--yes"], check=True, capture_output=True)
        else:
            make(project, asked.notes)
        measure(project)


def make(project: Path, count: int) -> None:
    """Notes with some tags and links, written as files: that is quicker than adding them."""
    project.mkdir()
    Bank.init(project).close()
    drawn = random.Random(7)
    for number in range(count):
        title = f"{' '.join(drawn.sample(WORDS, 3)).capitalize()} {number}"
        text = " ".join(drawn.choices(WORDS, k=60)) + f". See [[note-{drawn.randrange(count)}]]."
        tags = ", ".join(drawn.sample(WORDS[:20], 2))
        day = f"{drawn.randint(2023, 2025)}-{drawn.randint(1, 12):02}-{drawn.randint(1, 28):02}"
        head = f'---\ntitle: "{title}"\ntags: [{tags}]\ncreated_at: {day}\n---\n'
        (project / ".memories" / f"note-{number}.md").write_text(head + text + "\n", encoding="utf-8")


def measure(project: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 800}, bypass_csp=True)  # we look into it
        page.set_default_timeout(300_000)
        page.add_init_script(FREEZES)
        with Bank.open(project) as bank:
            print(f"{bank.stats()['count']:,} notes, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        start = time.perf_counter()
        words = [MEMLANE, "--bank", os.fspath(project), "ui", "--no-open", "--port", "0"]
        served = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert served.stdout
            address = served.stdout.readline().strip()
            tell("address printed", time.perf_counter() - start)
            page.goto(address, wait_until="commit")
            page.locator("nav a").first.wait_for()
            tell("frame of the page shown", time.perf_counter() - start)
            page.locator("main .view").wait_for()
            tell("first view shown", time.perf_counter() - start)
            browse(page, address.partition("/?")[0], served.pid)
        finally:
            served.terminate()
            served.wait()
            browser.close()


def browse(page: Page, root: str, server: int) -> None:
    page.goto(f"{root}/search?q={WORDS[7]}")
    begun = time.perf_counter()
    page.locator("main .title").first.wait_for()
    tell("first search, not indexed: first hits", time.perf_counter() - begun)
    page.wait_for_function("!document.querySelector('main .result')?.innerText.includes('being indexed')")
    tell("all of it indexed", time.perf_counter() - begun)
    taken, spent = [], 0.0
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/api/search?q" in request.url else None)
    for query in QUERIES:
        page.goto(f"{root}/search")
        page.locator("main .title").first.wait_for()
        page.evaluate(WATCH, query)
        before = cpu(server)
        page.locator("#query").press_sequentially(query, delay=120)
        page.wait_for_function("window.watched.shown > window.watched.pressed")
        taken.append(page.evaluate("window.watched.shown - window.watched.pressed"))
        spent += cpu(server) - before
    print(f"{'last keystroke to its hits (median)':45}{statistics.median(taken):8.0f} ms")
    print(
        f"{'CPU of the server for each search':45}{1000 * spent / max(len(asked), 1):8.0f} ms   ({len(asked)} searches)"
    )
    begun = time.perf_counter()
    page.goto(f"{root}/search")
    page.locator("main .filters button", has_text="#").first.click()
    page.wait_for_function("location.search.includes('tag=') && !document.querySelector('main[aria-busy]')")
    tell("filters there, and one chosen", time.perf_counter() - begun)
    for name in ("sessions", "inbox", "timeline", "truth", "health"):
        begun = time.perf_counter()
        page.goto(f"{root}/{name}", wait_until="commit")
        page.locator("main .view").wait_for()
        tell(f"{name} shown", time.perf_counter() - begun, frozen(page))
        while name == "timeline" and (more := page.get_by_role("button", name="Show more")).count():
            begun, last = time.perf_counter(), page.locator("main .title").count()
            more.click()
            page.locator("main .title").nth(last).wait_for()
            tell(f"  and more than {last:,}", time.perf_counter() - begun, frozen(page))
    for time_ in ("first", "second"):
        begun, before = time.perf_counter(), cpu(server)
        page.goto(f"{root}/graph", wait_until="commit")
        page.locator("canvas[data-drawn]").wait_for()
        tell(f"graph drawn, the {time_} time", time.perf_counter() - begun, frozen(page))
        tell("  CPU of the server meanwhile", cpu(server) - before)
    begun = time.perf_counter()
    page.goto(f"{root}/truth", wait_until="commit")
    page.locator("main .doubt, main .empty").first.wait_for()
    page.locator("main [role=status]", has_text="ooking").wait_for(state="hidden")
    tell("truth, with all that is there twice", time.perf_counter() - begun, frozen(page))
    print(f"{'memory of the server and of its process aside':45}{memory(server):8.0f} MB")


def frozen(page: Page) -> float:
    """For how many seconds the page did not answer its user at the longest."""
    return float(page.evaluate("window.frozen")) / 1000


def memory(process: int) -> float:
    """Megabytes that a process and its children use (Linux; 0 elsewhere)."""
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        statuses = [Path(f"/proc/{each}/status").read_text() for each in (process, *children)]
    except OSError:
        return 0.0
    return sum(int(status.partition("VmRSS:")[2].split()[0]) for status in statuses) / 1024


def cpu(process: int) -> float:
    """Seconds of CPU that a process has used (Linux; 0 elsewhere)."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def tell(what: str, seconds: float, frozen: float = 0.0) -> None:
    print(f"{what:45}{1000 * seconds:8.0f} ms{f', frozen for {1000 * frozen:.0f}' * (frozen > 0)}", flush=True)


if __name__ == "__main__":
    main()
