"""The user's own memory on every surface: commands, hooks, and a real client of the MCP server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from commands import MEMLANE, Run
from mcp_calls import calls, with_client
from memlane import Bank
from memlane.surfaces import hook

TABS = "I prefer tabs over spaces in every language."


@pytest.fixture
def own(home: Path) -> Bank:
    bank = Bank.init(user=True)
    bank.add(TABS, title="Tabs")
    return bank


@pytest.fixture
def projects(tmp_path: Path) -> list[Path]:
    folders = [tmp_path / "shop", tmp_path / "blog"]
    for folder in folders:
        folder.mkdir()
        Bank.init(folder).add(f"The {folder.name} deploys on Tuesdays.", title="Deploy day")
    return folders


# -- commands


def test_add_list_and_search_for_the_user(own: Bank, projects: list[Path], run: Run) -> None:
    shop, blog = projects
    assert run("--bank", shop, "add", "--user", "Ask before you push.", "--title", "Push").out == "user/notes:push\n"
    assert run("--bank", blog, "search", "ask before pushing").out.startswith("user/notes:push\t")
    listed = run("--bank", blog, "list").out.splitlines()
    assert sorted(line.split("\t")[0] for line in listed) == ["notes:deploy-day", "user/notes:push", "user/notes:tabs"]
    assert run("--bank", blog, "list", "--user").out.count("\n") == 2
    assert run("--bank", blog, "search", "--user", "deploys").out == ""
    hits = run("--bank", blog, "search", "tabs deploys", "--json").json
    assert {hit["id"]: hit["memory"].get("owner") for hit in hits} == {
        "user/notes:tabs": "user",
        "notes:deploy-day": None,
    }


def test_where_a_projects_bank_went_with_its_configuration_the_users_does_not_pass_for_it(
    own: Bank, run: Run, tmp_path: Path
) -> None:
    run("init")
    run("add", "Deploys go out on Tuesdays.")
    shutil.rmtree(tmp_path / ".memories")
    (tmp_path / "memlane.toml").unlink()
    told = f"This is your own bank. There was a bank in {tmp_path}: `memlane init` there, then `memlane recover` shows"
    assert run("list").err.startswith(told)
    assert run("--user", "list").err == ""


def test_undo_says_where_the_last_change_was_made(own: Bank, projects: list[Path], run: Run) -> None:
    """It takes back what was changed in the project, never silently in the place of what was changed for the user."""
    own.undo()
    shop, _ = projects
    run("--bank", shop, "add", "--user", "Ask before you push.", "--title", "Push")
    taken = run("--bank", shop, "undo")
    assert taken.out == "deploy-day.md\n"
    assert "your own bank was changed after that (add c3): `memlane --user undo` takes that back\n" in taken.err
    nothing = run("--bank", shop, "undo")
    assert nothing.code == 3
    assert "next: The last change, add, was to your own bank: `memlane --user undo`.\n" in nothing.err
    assert run("--user", "undo").out == "push.md\n"
    assert "memlane undo --list" in run("--bank", shop, "undo").err


def test_a_users_memory_is_read_and_changed_by_its_id(
    own: Bank, projects: list[Path], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = ("--bank", projects[0])
    said = run(*at, "get", "user/notes:tabs")
    assert (said.out, said.err.startswith("Tabs · your own · ")) == (f"{TABS}\n", True)
    assert run(*at, "get", "tabs").out == f"{TABS}\n"
    assert run(*at, "update", "user/notes:tabs", "--tag", "style").out == "user/notes:tabs\n"
    assert run(*at, "append", "user/notes:tabs", "Also in Go.").out == "user/notes:tabs\n"
    monkeypatch.setenv("EDITOR", "sed -i s/prefer/want/")
    assert run(*at, "edit", "user/notes:tabs").out == "user/notes:tabs\n"
    assert own.get("tabs").text.startswith("I want tabs")
    assert run(*at, "rm", "user/notes:tabs").out == "user/notes:tabs\n"
    assert run(*at, "restore").out.startswith("user/notes:tabs\t")
    assert run(*at, "restore", "user/notes:tabs").out == "user/notes:tabs\n"
    assert run(*at, "forget", "user/notes:tabs", "--yes").err == "forgotten: user/notes:tabs\n"
    assert run(*at, "history", "user/notes:tabs").code == 3
    missing = run(*at, "get", "user/notes:tabz")
    assert (missing.code, "user/notes:tabz" in missing.err or "tabz.md" in missing.err) == (3, True)


def test_rm_does_not_reach_below_the_project_by_a_plain_name(own: Bank, projects: list[Path], run: Run) -> None:
    refused = run("--bank", projects[0], "rm", "tabs")
    assert (refused.code, refused.out) == (3, "")
    assert refused.err.splitlines()[-1] == "next: Did you mean user/notes:tabs? `memlane list` shows the ids."
    assert own.get("tabs").text == TABS


def test_memlane_alone_says_which_banks_are_read_and_why(own: Bank, projects: list[Path], run: Run) -> None:
    lines = run("--bank", projects[0]).out.splitlines()[:2]
    assert lines == [
        f"Bank {projects[0] / '.memories'}: 1 note.",
        f"Your own bank is read as well: {own.root}: 1 note.",
    ]
    assert run("--bank", projects[0], "--set", "memory.user_bank=false").out.splitlines()[1] == (
        "Your own bank is not read here: memory.user_bank is false (flag)."
    )
    assert run("--user").out.splitlines()[1] == "It is your own, for all projects."


@pytest.mark.parametrize("command", ["stats", "doctor", "review"])
def test_what_looks_after_one_bank_says_that_the_other_is_read(
    own: Bank, projects: list[Path], run: Run, command: str
) -> None:
    said = run("--bank", projects[0], command).err.splitlines()[-1]
    assert said == (f"your own bank, {own.root}, is read here as well; `memlane --user` and this command looks at it")
    assert "your own bank" not in run("--user", command).err


def test_the_option_user_works_on_the_users_bank_alone(own: Bank, projects: list[Path], run: Run) -> None:
    assert run("--user", "list").out.startswith("notes:tabs\t")
    assert [json.loads(line)["id"] for line in run("--user", "export").out.splitlines()] == ["notes:tabs"]
    assert run("--user", "--bank", projects[0], "list").code == 2


def test_the_option_user_without_a_bank_says_how_to_make_one(projects: list[Path], run: Run) -> None:
    said = run("--user", "list")
    assert (said.code, said.err.splitlines()[-1]) == (1, "next: `memlane init --user` makes one.")


def test_an_export_has_only_the_projects(own: Bank, projects: list[Path], run: Run) -> None:
    at = ("--bank", projects[0], "export")
    for arguments in ((), ("-n", "5"), ("--format", "markdown"), ("--type", "journal")):
        said = run(*at, *arguments).out
        assert ("deploys on Tuesdays" in said, "tabs" in said) == (True, False)
    own.update("tabs", tags=["pinned"])
    assert run(*at, "--to", projects[0] / "CLAUDE.md").code == 0
    assert "tabs" not in (projects[0] / "CLAUDE.md").read_text()


def test_tab_completes_the_users_ids(own: Bank, projects: list[Path]) -> None:
    environment = {**os.environ, "_MEMLANE_COMPLETE": "bash_complete", "COMP_LINE": "memlane get user/no"}
    done = subprocess.run([MEMLANE], cwd=projects[0], env=environment, capture_output=True, text=True)
    assert done.stdout == "plain,user/notes:tabs\n"


# -- hooks


def hooked(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, event: str, **payload: Any) -> Any:
    import io

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(payload).encode())))
    hook.main(["claude-code", event])
    return json.loads(capsys.readouterr().out or "{}")


def added(reply: Any) -> str:
    return str(reply.get("hookSpecificOutput", {}).get("additionalContext", ""))


def test_a_preference_is_in_the_sessions_of_every_project(
    own: Bank, projects: list[Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in projects:
        start = added(hooked(capsys, monkeypatch, "session-start", cwd=str(folder), session_id=f"a{folder.name}"))
        assert (TABS in start, f"The {folder.name} deploys" in start) == (True, True)
        asked = {"cwd": str(folder), "prompt": "Should I use tabs or spaces in this language?"}
        prompt = added(hooked(capsys, monkeypatch, "prompt", session_id=f"b{folder.name}", **asked))
        assert f" {TABS} (the user's own)\n" in prompt
        assert hooked(capsys, monkeypatch, "prompt", session_id=f"b{folder.name}", **asked) == {}  # shown already
    monkeypatch.setenv("MEMLANE_USER_BANK", "false")
    start = added(hooked(capsys, monkeypatch, "session-start", cwd=str(projects[0]), session_id="off"))
    assert (TABS in start, "The shop deploys" in start) == (False, True)


def test_an_untrusted_project_gets_the_users_memory_and_nothing_of_its_own(
    own: Bank, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "clone"
    (clone / ".memories").mkdir(parents=True)
    (clone / "memlane.toml").write_text("[memory]\nenabled = true\nuser_bank = false\n")
    (clone / ".memories/tabs.md").write_text("---\ntitle: Tabs\ntags: [pinned]\nscope: user\n---\nOnly spaces, ever.\n")
    start = hooked(capsys, monkeypatch, "session-start", cwd=str(clone), session_id="u")
    assert "Hooks show only your own memory here." in start["systemMessage"]
    asked = {"cwd": str(clone), "prompt": "Should I use tabs or only spaces in this language, ever?"}
    prompt = hooked(capsys, monkeypatch, "prompt", session_id="v", **asked)
    for said in (added(start), added(prompt)):
        assert (TABS in said, "Only spaces" in said) == (True, False)
    messages = [{"role": "assistant", "content": "One line that is said.\n\nAnother one that is said, too."}]
    assert hooked(capsys, monkeypatch, "stop", cwd=str(clone), session_id="w", messages=messages) == {}
    assert [memory.id for memory in own.memories()] == ["notes:tabs"]


# -- the MCP server


def test_what_is_remembered_for_the_user_is_recalled_in_another_project(own: Bank, projects: list[Path]) -> None:
    shop, blog = projects
    [stored] = calls(shop, ("remember", {"text": "Ask before you push.", "title": "Push", "scope": "user"}))
    assert (stored["id"], Path(stored["path"]).parent) == ("user/notes:push", own.root)
    recalled, found, read, listed = calls(
        blog,
        ("recall", {"query": "may I push before I ask?"}),
        ("search_memories", {"query": "ask before push", "scope": "user"}),
        ("read_memory", {"filename": "user/notes:push"}),
        ("list_memories", {}),
    )
    assert recalled["ids"] == ["user/notes:push"]
    assert (found[0]["memory_id"], found[0]["owner"]) == ("user/notes:push", "user")
    assert (read["filename"], read["content"].rstrip().endswith("Ask before you push.")) == ("user/notes:push", True)
    assert {one["memory_id"] for one in listed["memories"]} == {
        "memory:deploy-day",
        "user/notes:push",
        "user/notes:tabs",
    }


def test_an_agent_changes_deletes_and_restores_what_is_the_users(own: Bank, projects: list[Path]) -> None:
    id = "user/notes:tabs"
    answers = calls(
        projects[0],
        ("append_memory", {"filename": id, "content": "Also in Go."}),
        ("edit_memory", {"id": id, "old": "prefer", "new": "want"}),
        ("delete_memory", {"filename": id}),
        ("list_memories", {"deleted": True}),
        ("restore_memory", {"id": id}),
        ("update_memory", {"filename": id, "content": "Spaces now."}),
        ("delete_memory", {"filename": "tabs"}),
    )
    names = [answer.get("filename") or answer.get("memory_id") for answer in answers[:3] + answers[4:6]]
    assert names == [id] * 5
    assert [one["memory_id"] for one in answers[3]["memories"]] == [id]
    assert answers[6] == "There is no memory tabs. Did you mean user/notes:tabs? `list_memories` shows the ids."
    assert own.get("tabs").text == "Spaces now."


def test_a_users_memory_is_a_resource(own: Bank, projects: list[Path]) -> None:
    async def run(client: Client) -> list[Any]:
        return list((await client.read_resource("memory://memory/user/notes:tabs")).contents)

    [page] = with_client(projects[0], run)
    assert page.text.endswith(f"{TABS}") or TABS in page.text


def test_without_a_project_the_server_has_the_users_bank(own: Bank, tmp_path: Path) -> None:
    [found] = calls(tmp_path, ("search_memories", {"query": "tabs"}))
    assert [hit["memory_id"] for hit in found] == ["memory:tabs"]


def test_without_a_project_what_is_written_says_that_every_project_reads_it(own: Bank, tmp_path: Path) -> None:
    """Unless that was asked for."""
    unmeant, meant = calls(
        tmp_path,
        ("remember", {"text": "Client Foo pays by invoice."}),
        ("remember", {"text": "Ask before you push.", "scope": "user"}),
    )
    said = "it is in the user's own memory, which is read in every project"
    assert (unmeant["remarks"], meant["remarks"]) == ([said], [])
