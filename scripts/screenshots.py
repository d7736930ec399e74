"""Take the pictures of `memlane ui` that the README and docs/ui.md show. Needs Chromium (`make setup-browser`).

    python scripts/screenshots.py [FOLDER]      into docs/images unless a folder is named

The bank in them is made up here: a small project, two sessions of an agent that asked the hooks, some candidates, and
code that has changed since a memory spoke of it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from memlane import Bank

ROOT = Path(__file__).parent.parent
MEMLANE = str(Path(sys.executable).with_name("memlane"))
VIEWS = ("inbox", "timeline", "truth", "graph")
NOTES = {
    "Deploy day": (
        "Deploys go out on Tuesdays, never before a holiday. See [[src/deploy.py]] and [[rollback]].",
        "release",
    ),
    "Rollback": (
        "`make rollback` brings back the last release within a minute; tell [[deploy-day]]'s channel first.",
        "release",
    ),
    "Gateway retries": (
        "The payment gateway times out under load: retry three times with jitter. [[src/gateway.py]]",
        "payments",
    ),
    "Refunds are idempotent": (
        "A refund carries the order's id as its key, so that a retry pays once. [[gateway-retries]]",
        "payments",
    ),
    "Test database": ("Integration tests need `docker compose up db`; the port is 5433, not 5432.", "tests"),
    "Flaky upload test": (
        "test_upload_large fails on slow disks: its timeout is 2 s. Raise it, do not skip it.",
        "tests",
    ),
    "Sessions": (
        "Sessions live in Redis for 14 days; the cookie is refreshed on every request. [[src/auth.py]]",
        "auth",
    ),
    "Feature flags": (
        "Flags are read once per request. Never branch on a flag inside a loop. [[src/flags.py]]",
        "style",
    ),
}
CANDIDATES = {
    "The importer fails on Windows line ends": ("Normalise to \\n before hashing: the importer fails otherwise.", 0.86),
    "CI caches wheels by lock file": ("A change of the lock file alone makes CI twice as slow that day.", 0.71),
    "Staging has its own payment keys": ("Staging talks to the gateway's sandbox, and ignores webhooks.", 0.64),
}
PROMPTS = (
    "how do I deploy the new endpoint?",
    "the payment gateway timed out again, what did we do about it?",
    "thanks, looks good",
    "why does the upload test fail here but not on CI?",
)


def main() -> None:
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "images")
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch) / "shop"
        os.environ.update(
            HOME=scratch, **{f"XDG_{name}_HOME": f"{scratch}/{name}" for name in ("STATE", "CONFIG", "DATA")}
        )
        make(project)
        served = subprocess.Popen(
            [MEMLANE, "--bank", os.fspath(project), "ui", "--no-open", "--port", "0"], stdout=subprocess.PIPE, text=True
        )
        try:
            assert served.stdout
            photograph(served.stdout.readline().strip(), target)
        finally:
            served.terminate()
            served.wait()


def make(project: Path) -> None:
    """A project with code, memories of the last months, two sessions and a few candidates."""
    (project / "src").mkdir(parents=True)
    for name in ("deploy", "gateway", "auth", "flags"):
        (project / "src" / f"{name}.py").write_text(f"def {name}():\n    return 'as it was'\n")
    git = ["git", "-C", os.fspath(project), "-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    now = datetime.now(UTC)
    with Bank.init(project, git=True) as bank:
        for at, (title, (text, tag)) in enumerate(NOTES.items()):
            bank.add(text, title=title, tags=[tag], created_at=now - timedelta(days=3 + 17 * at))
        bank.add("Always run `make lint` before a commit.", title="Lint first", tags=["rule", "pinned"])
        bank.add("Prices are in cents, as integers, everywhere.", lane="vault")
        for at, (title, (text, sure)) in enumerate(CANDIDATES.items()):
            said = {"session": "3f9a1c0b-demo", "confidence": sure, "branch": "main", "lines": [41 + 9 * at]}
            bank.add(text, title=title, tags=["unconfirmed"], extra=said)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "Start"], check=True)
    (project / "src" / "gateway.py").write_text("def gateway(tries=5):\n    return retry(pay, tries)\n")
    for session, prompts in (("3f9a1c0b-demo", PROMPTS[:3]), ("9c41d2aa-demo", PROMPTS[2:])):
        if prompts[0] != PROMPTS[0]:  # what a session started with is not said again
            hook(project, session, "session-start")
        for prompt in prompts:
            hook(project, session, "prompt", prompt=prompt)


def hook(project: Path, session: str, event: str, **more: str) -> None:
    payload = {"session_id": session, "cwd": os.fspath(project), "hook_event_name": event, **more}
    words = [MEMLANE, "hook", "claude-code", event]
    subprocess.run(words, input=json.dumps(payload), text=True, check=True, cwd=project, stdout=subprocess.DEVNULL)


def photograph(address: str, target: Path) -> None:
    root = address.partition("/?")[0]
    browser_at = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=browser_at, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 720}, locale="en-GB")
        page.goto(address)
        for view in VIEWS:
            take(page, f"{root}/{view}", target / f"ui-{view.partition('?')[0]}.png")
        page.goto(f"{root}/sessions")
        page.locator("main a.title").last.click()
        take(page, "", target / "ui-session.png")
        page.get_by_role("button", name="Dark or light").click()
        take(page, f"{root}/search?q=gateway", target / "ui-dark.png")
        browser.close()


def take(page: Page, address: str, file: Path) -> None:
    if address:
        page.goto(address)
    page.locator("main .view").wait_for()
    page.wait_for_timeout(800)  # pictures settle
    page.screenshot(path=file)


if __name__ == "__main__":
    main()
