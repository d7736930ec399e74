"""A memory's page: what it says and is, its versions, links and code, and changing it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from memlane import Bank
from ui_pages import CODE, Served, ask, commit_code, cookie, question


def open_memory(page: Page, served: Served, id: str) -> None:
    page.goto(f"{served.root}/memory/{id}")


def button(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).first.click()


def test_a_note_is_edited_in_its_place_by_keyboard_alone_and_undone(folder: Path, page: Page, served: Served) -> None:
    with Bank.open(folder) as bank:
        note = bank.add("Deploys go out on Tuesdays.", title="Deploy day").path
    before = note.read_bytes()
    open_memory(page, served, "notes:deploy-day")
    expect(page.locator("article")).to_have_text("Deploys go out on Tuesdays.")
    page.keyboard.press("e")
    area = page.get_by_role("textbox", name="The whole file")
    expect(area).to_be_focused()
    assert page.url.endswith("?edit=yes")
    area.fill(area.input_value().replace("Tuesdays", "Wednesdays"))
    page.keyboard.press("Control+Enter")
    expect(page.locator("article")).to_have_text("Deploys go out on Wednesdays.")
    assert b"Wednesdays" in note.read_bytes()
    button(page, "Undo")
    expect(page.locator("article")).to_have_text("Deploys go out on Tuesdays.")
    assert note.read_bytes() == before


def test_two_tabs_that_edit_one_note_lose_nothing(
    folder: Path, served: Served, open_page: Callable[[Served], Page]
) -> None:
    with Bank.open(folder) as bank:
        note = bank.add("Deploys go out on Tuesdays.", title="Deploy day").path
    first = open_page(served)
    second = first.context.new_page()
    for tab in (first, second):
        open_memory(tab, served, "notes:deploy-day")
        button(tab, "Edit")
    areas = [tab.get_by_role("textbox", name="The whole file") for tab in (first, second)]
    for area, day in zip(areas, ("Mondays", "Fridays"), strict=True):
        area.fill(area.input_value().replace("Tuesdays", day))
    button(first, "Save")
    expect(first.locator("article")).to_have_text("Deploys go out on Mondays.")
    button(second, "Save")
    expect(second.locator(".problem")).to_contain_text("was changed while you edited it")
    expect(second.locator(".other pre")).to_contain_text("Mondays")
    assert "Fridays" in areas[1].input_value()
    assert "Mondays" in note.read_text()
    button(second, "Go on with what is there now")
    assert "Mondays" in areas[1].input_value()
    expect(second.locator(".other pre")).to_contain_text("Fridays")
    button(second, "Go on with what I had written")
    button(second, "Save this over it")
    expect(second.locator("article")).to_have_text("Deploys go out on Fridays.")
    expect(first.locator("article")).to_have_text("Deploys go out on Fridays.")


def test_a_note_that_another_tab_deletes_while_it_is_edited_is_brought_back_and_saved(
    folder: Path, served: Served, open_page: Callable[[Served], Page]
) -> None:
    with Bank.open(folder) as bank:
        note = bank.add("Deploys go out on Tuesdays.", title="Deploy day").path
    first = open_page(served)
    second = first.context.new_page()
    for tab in (first, second):
        open_memory(tab, served, "notes:deploy-day")
    button(first, "Edit")
    area = first.get_by_role("textbox", name="The whole file")
    area.fill(area.input_value().replace("Tuesdays", "Fridays"))
    button(second, "Delete")
    expect(second.locator("#said")).to_contain_text("Deleted")
    button(first, "Save")
    expect(first.locator(".problem")).to_contain_text("was deleted")
    assert "Fridays" in area.input_value()
    button(first, "Bring it back, and save")
    expect(first.locator("article")).to_have_text("Deploys go out on Fridays.")
    assert "Fridays" in note.read_text()


def test_what_is_typed_stays_while_other_pages_are_looked_at_and_when_it_is_refused(
    folder: Path, page: Page, served: Served
) -> None:
    with Bank.open(folder) as bank:
        note = bank.add("The token is in the vault.", title="Token").path
    open_memory(page, served, "notes:token")
    button(page, "Edit")
    area = page.get_by_role("textbox", name="The whole file")
    typed = area.input_value().replace("in the vault", "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456")
    area.fill(typed)
    button(page, "Save")
    expect(page.locator(".problem")).to_contain_text("looks like it contains a secret")
    page.get_by_role("link", name="Search", exact=True).click()
    expect(page.locator("main .title")).to_have_text(["Token"])
    page.locator("main .title").click()
    expect(area).to_have_value(typed)
    assert "ghp_" not in note.read_text()
    button(page, "Give up the changes")
    expect(page.locator("article")).to_have_text("The token is in the vault.")


def test_a_note_with_a_secret_in_it_is_not_edited_here(folder: Path, page: Page, served: Served) -> None:
    with Bank.open(folder) as bank:
        note = bank.add("The token is in the vault.", title="Token").path
    note.write_text(note.read_text().replace("in the vault", "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"))
    open_memory(page, served, "notes:token")
    expect(page.locator("article")).to_contain_text("[REDACTED:")
    button(page, "Edit")
    expect(page.locator(".problem")).to_contain_text("memlane edit notes:token")
    button(page, "Back to reading")
    expect(page.locator("article")).to_contain_text("[REDACTED:")


def test_tags_and_deleting_are_a_step_and_can_be_taken_back(folder: Path, page: Page, served: Served) -> None:
    with Bank.open(folder) as bank:
        note = bank.add("Deploys go out on Tuesdays.", title="Deploy day", tags=["ops"]).path
    open_memory(page, served, "notes:deploy-day")
    page.get_by_label("Add a tag").fill("release")
    page.keyboard.press("Enter")
    expect(page.locator(".tags li a")).to_have_text(["#ops", "#release"])
    expect(page.get_by_label("Add a tag")).to_be_focused()
    page.get_by_role("button", name="Take away the tag ops").click()
    expect(page.locator(".tags li a")).to_have_text(["#release"])
    button(page, "Delete")
    expect(page.locator("h1")).to_have_text("This memory was deleted.")
    assert not note.exists()
    button(page, "Undo")
    expect(page.locator("h1")).to_have_text("Deploy day")
    button(page, "Delete")
    button(page, "Bring it back")
    expect(page.locator("h1")).to_have_text("Deploy day")
    assert note.exists()


def test_versions_show_what_they_changed_and_come_back(folder: Path, page: Page, served: Served) -> None:
    with Bank.open(folder) as bank:
        bank.add("Deploys go out on Tuesdays.", title="Deploy day")
        bank.update("notes:deploy-day", "Deploys go out on Mondays.")
    open_memory(page, served, "notes:deploy-day")
    newest = page.locator(".versions > li").first
    newest.get_by_role("button", name="What it changed").click()
    expect(newest.locator(".diff .removed")).to_have_text("-Deploys go out on Tuesdays.")
    expect(newest.locator(".diff .added")).to_have_text("+Deploys go out on Mondays.")
    button(page, "Bring this one back")
    expect(page.locator("article")).to_have_text("Deploys go out on Tuesdays.")
    expect(page.locator(".versions > li")).to_have_count(3)


def test_links_lead_to_memories_and_files_and_back(folder: Path, page: Page, served: Served) -> None:
    (folder / "src").mkdir()
    (folder / "src/auth.py").write_text("def login():\n    pass\n")
    with Bank.open(folder) as bank:
        bank.add("See [[memory:tests|the tests]], [[src/auth.py]] and [[nowhere/at all]].", title="Deploy day")
        bank.add("Tests run on every push.", title="Tests")
    open_memory(page, served, "notes:deploy-day")
    page.get_by_role("link", name="the tests").click()
    expect(page.locator("h1")).to_have_text("Tests")
    assert page.url.endswith("/memory/notes:tests")
    page.locator(".beside .title").click()
    expect(page.locator("h1")).to_have_text("Deploy day")
    page.locator("article").get_by_role("link", name="src/auth.py").click()
    expect(page.locator("main")).to_contain_text("A file of the project.")
    expect(page.locator("main .title")).to_have_text(["Deploy day"])
    page.go_back()
    page.locator("article").get_by_role("link", name="nowhere/at all").click()
    expect(page.locator("main")).to_contain_text("No memory has this name.")


def test_code_that_has_changed_is_shown_beside_the_memory_and_accepted(
    folder: Path, page: Page, served: Served
) -> None:
    code = commit_code(folder)
    with Bank.open(folder) as bank:
        bank.add("Logins are signed in [[auth.py]].", title="Logins")
    code.write_text(CODE.format("RS256"))
    open_memory(page, served, "notes:logins")
    expect(page.locator(".finding .added")).to_have_text("+    return sign('RS256')")
    button(page, "It is right")
    expect(page.locator(".finding .chip")).to_have_text("as it was")
    button(page, "Undo")
    expect(page.locator(".finding .chip")).to_have_text("changed")


def test_what_is_hostile_or_long_stays_text(folder: Path, page: Page, served: Served) -> None:
    with Bank.open(folder) as bank:
        bank.add(
            "<script>alert(1)</script> [x](javascript:alert(1)) \u202egnp.exe <img src=x onerror=alert(1)>", title="Odd"
        )
        long = bank.add("begin", title="Long").path
    long.write_text(long.read_text().replace("begin", "begin " + "x" * 1_000_000 + " the end"))
    open_memory(page, served, "notes:odd")
    expect(page.locator("article")).to_contain_text("<script>alert(1)</script>")
    assert page.locator("article :is(script, img, a)").count() == 0
    open_memory(page, served, "notes:long")
    expect(page.locator("article")).to_contain_text("begin x")
    assert "the end" not in page.locator("article").inner_text()
    page.get_by_role("button", name="Show all").click()
    expect(page.locator("article pre")).to_contain_text("the end")


def test_notices_say_what_to_know_before_it_is_believed(folder: Path, page: Page, served: Served) -> None:
    with Bank.open(folder) as bank:
        said = {"session": "5e55", "confidence": 0.8}
        bank.add("The importer fails on empty lines.", title="Importer", tags=["unconfirmed"], extra=said)
        bank.add("Only until May.", title="Freeze", expires="2026-01-01")
        bank.add("Deploys on Mondays.", title="Old days")
        bank.add("Deploys on Fridays.", title="New days", replaces="notes:old-days")
    open_memory(page, served, "notes:importer")
    expect(page.locator(".notice")).to_contain_text("session 5e55, confidence 0.8")
    button(page, "It is right")
    expect(page.locator(".notice")).to_have_count(0)
    open_memory(page, served, "notes:freeze")
    button(page, "Keep it")
    expect(page.locator(".notice")).to_have_count(0)
    open_memory(page, served, "notes:old-days")
    page.locator(".notice").get_by_role("link", name="notes:new-days").click()
    expect(page.locator(".pairs")).to_contain_text("notes:old-days")


def test_an_agents_change_is_shown_at_once_but_not_over_what_is_typed(folder: Path, page: Page, served: Served) -> None:
    with Bank.open(folder) as bank:
        bank.add("Deploys go out on Tuesdays.", title="Deploy day")
        open_memory(page, served, "notes:deploy-day")
        expect(page.locator("article")).to_contain_text("Tuesdays")
        bank.update("notes:deploy-day", "Deploys go out on Mondays.")
        expect(page.locator("article")).to_contain_text("Mondays")
        button(page, "Edit")
        area = page.get_by_role("textbox", name="The whole file")
        area.fill("mine")
        bank.update("notes:deploy-day", "Deploys go out on Sundays.")
        expect(page.locator("#said")).to_contain_text("changed meanwhile")
        expect(area).to_have_value("mine")


def test_line_ends_of_a_file_stay_as_they_are(folder: Path, served: Served) -> None:
    with Bank.open(folder) as bank:
        note = bank.add("One.\n\nTwo.", title="Lines").path
    note.write_bytes(note.read_bytes().replace(b"\n", b"\r\n"))
    own = cookie(served)
    opened = question(served, own, "opened?id=notes:lines")
    text = opened["text"].replace("\r\n", "\n").replace("Two", "Three")
    saved = question(served, own, "save", {"id": "notes:lines", "text": text, "opened": opened["opened"]})
    assert saved["id"] == "notes:lines"
    assert note.read_bytes().count(b"\r\n") == note.read_bytes().count(b"\n") > 3
    assert b"Three" in note.read_bytes()
    sent = {"cookie": own, "sec_fetch_site": "same-origin", "origin": served.root, "content_type": "application/json"}
    again = {"id": "notes:lines", "text": "x", "opened": opened["opened"]}
    answer = ask(served, "/api/save", method="POST", body=again, **sent)
    assert (answer.status, json.loads(answer.body)["code"]) == (409, "conflict")


def test_a_file_that_is_damaged_opens_for_mending(folder: Path, page: Page, served: Served) -> None:
    with Bank.open(folder) as bank:
        record = bank.add("Said in a session, at length.", lane="records", title="Somewhat")
    sound = record.path.read_text()
    record.path.write_text("---\ntitle: [unclosed\n---\n\nDamaged.\n")
    open_memory(page, served, record.id)
    expect(page.locator(".problem")).to_contain_text("cannot be read")
    page.get_by_role("textbox", name="The whole file").fill(sound)
    button(page, "Save")
    expect(page.locator("article")).to_have_text("Said in a session, at length.")
    expect(page.locator(".problem")).to_have_count(0)
