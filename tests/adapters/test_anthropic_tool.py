"""Claude's memory tool on a bank: every command, called as the SDK calls it, waiting and awaited."""

from __future__ import annotations

import asyncio
import json
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("anthropic", reason="anthropic is not installed: the memory tool is not tried")

import anthropic
from anthropic.tools import ToolError

from memlane import Bank
from memlane.adapters.anthropic import AsyncMemoryTool, MemoryTool

TOKEN = "ghp_" + "R4nd0mV4lueTh4tIsN0tRealAtAll1234567"
Do = Callable[..., str]


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Bank]:
    with Bank.init(tmp_path) as bank:
        yield bank


def doing(tool: MemoryTool | AsyncMemoryTool) -> Do:
    """Carry out a command as the tool runner does; a refusal is its text."""

    def do(command: str, path: str = "", **given: Any) -> str:
        said = {"command": command, **({"path": path} if path else {}), **given}
        try:
            answer = tool.call(said)
            return asyncio.run(answer) if asyncio.iscoroutine(answer) else answer
        except ToolError as error:
            return f"ERROR {error.content}"

    return do


@pytest.fixture(params=[MemoryTool, AsyncMemoryTool], ids=["waiting", "awaited"])
def do(request: pytest.FixtureRequest, bank: Bank) -> Do:
    return doing(request.param(bank))


def on_disk(bank: Bank) -> dict[str, str]:
    return {memory.path.relative_to(bank.root).as_posix(): memory.text for memory in bank.memories("notes")}


# -- the commands


def test_the_tool_is_named_as_the_api_wants_it(bank: Bank) -> None:
    assert MemoryTool(bank).to_dict() == {"type": "memory_20250818", "name": "memory"}
    cached = AsyncMemoryTool(bank, cache_control={"type": "ephemeral"}).to_dict()
    assert cached == {"type": "memory_20250818", "name": "memory", "cache_control": {"type": "ephemeral"}}


def test_a_file_is_a_note(do: Do, bank: Bank) -> None:
    assert do("create", "/memories/team/plan.md", file_text="Ship on Tuesday.\n") == (
        "File created successfully at: /memories/team/plan.md"
    )
    assert on_disk(bank) == {"team/plan.md": "Ship on Tuesday.\n"}
    assert bank.get("notes:team/plan").title == "Ship on Tuesday."
    assert [hit.memory.id for hit in bank.search("when do we ship?")] == ["notes:team/plan"]


@pytest.mark.parametrize(
    ("path", "file"),
    [
        ("plan.md", "plan.md"),
        ("todo.txt", "todo.txt.md"),
        ("todo", "todo..md"),
        ("v1.2.md", "v1.2.md.md"),
        ("v1.2", "v1.2.md"),
        ("My Notes/Über uns.md", "My Notes/Über uns.md"),
    ],
)
def test_every_name_is_one_file_and_comes_back(do: Do, bank: Bank, path: str, file: str) -> None:
    do("create", f"/memories/{path}", file_text="Text.")
    assert list(on_disk(bank)) == [file]
    assert do("view", f"/memories/{path}") == (
        f"Here's the content of /memories/{path} with line numbers:\n     1\tText."
    )
    assert do("view", "/memories").splitlines()[-1] == f"5B\t/memories/{path}"


def test_names_that_look_alike_are_different_files(do: Do) -> None:
    names = ("v1.2.md", "v1.2", "todo", "todo.md", "todo.txt")
    for name in names:
        do("create", f"/memories/{name}", file_text=f"I am {name}")
    for name in names:
        assert do("view", f"/memories/{name}").endswith(f"\tI am {name}")


def test_a_note_that_was_there_before_is_a_file(do: Do, bank: Bank) -> None:
    bank.add("Deploys go out on Tuesdays.", title="Deploy day", tags=["ops"])
    assert do("view", "/memories/deploy-day.md") == (
        "Here's the content of /memories/deploy-day.md with line numbers:\n     1\tDeploys go out on Tuesdays."
    )
    do("str_replace", "/memories/deploy-day.md", old_str="Tuesdays", new_str="Mondays")
    kept = bank.get("notes:deploy-day")
    assert (kept.title, kept.tags, kept.text) == ("Deploy day", ("ops",), "Deploys go out on Mondays.")


@pytest.mark.parametrize(
    "text", ["", "\n\n", "---\ntags: [rule]\n---\n\nBody", "one\r\ntwo\r\n", "no newline at the end"]
)
def test_a_text_is_taken_as_it_is(do: Do, bank: Bank, text: str) -> None:
    do("create", "/memories/a.md", file_text=text)
    assert on_disk(bank) == {"a.md": text}
    do("create", "/memories/b.md", file_text="x")
    do("str_replace", "/memories/b.md", old_str="x", new_str=text)
    assert on_disk(bank) == {"a.md": text, "b.md": text}
    assert [memory.tags for memory in bank.memories()] == [(), ()]


def test_what_is_there_is_not_created_again(do: Do, bank: Bank) -> None:
    do("create", "/memories/a/b.md", file_text="First.")
    for path in ("/memories/a/b.md", "/memories/a", "/memories"):
        assert do("create", path, file_text="Second.") == f"ERROR File {path} already exists"
    assert do("create", "/memories/a/b.md/c.md", file_text="x") == (
        "ERROR A part of /memories/a/b.md/c.md is a file, and not a directory."
    )
    assert on_disk(bank) == {"a/b.md": "First."}


def test_a_folder_is_listed_two_levels_deep_with_sizes(do: Do) -> None:
    for path, size in (("a.md", 1), ("dir/b.txt", 1024), ("dir/in/c.md", 1536), ("dir/in/deep/d.md", 512)):
        do("create", f"/memories/{path}", file_text="x" * size)
    assert do("view", "/memories") == (
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:\n"
        "3.0K\t/memories\n1B\t/memories/a.md\n3K\t/memories/dir/\n1K\t/memories/dir/b.txt\n2K\t/memories/dir/in/"
    )
    assert do("view", "/memories/dir/in/") == (
        "Here're the files and directories up to 2 levels deep in /memories/dir/in/, excluding hidden items:\n"
        "2K\t/memories/dir/in\n1.5K\t/memories/dir/in/c.md\n512B\t/memories/dir/in/deep/\n"
        "512B\t/memories/dir/in/deep/d.md"
    )


def test_a_bank_without_notes_is_an_empty_folder(do: Do) -> None:
    assert do("view", "/memories") == (
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:\n0B\t/memories"
    )


def test_lines_are_viewed_with_their_numbers(do: Do) -> None:
    do("create", "/memories/a.txt", file_text="one\ntwo\nthree\n")
    said = "Here's the content of /memories/a.txt with line numbers:\n"
    assert do("view", "/memories/a.txt") == said + "     1\tone\n     2\ttwo\n     3\tthree\n     4\t"
    assert do("view", "/memories/a.txt", view_range=[2, 3]) == said + "     2\ttwo\n     3\tthree"
    assert do("view", "/memories/a.txt", view_range=[3, -1]) == said + "     3\tthree\n     4\t"
    assert do("view", "/memories/b.txt") == (
        "ERROR The path /memories/b.txt does not exist. Please provide a valid path."
    )


def test_a_passage_is_replaced_and_shown(do: Do, bank: Bank) -> None:
    do("create", "/memories/a.txt", file_text="\n".join("abcdefg"))
    assert do("str_replace", "/memories/a.txt", old_str="d", new_str="D\nD") == (
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        "     2\tb\n     3\tc\n     4\tD\n     5\tD\n     6\te"
    )
    assert on_disk(bank) == {"a.txt.md": "a\nb\nc\nD\nD\ne\nf\ng"}


def test_a_passage_that_is_not_there_once_is_not_replaced(do: Do, bank: Bank) -> None:
    do("create", "/memories/dir/a.txt", file_text="x\ny\nx")
    path = "/memories/dir/a.txt"
    assert do("str_replace", path, old_str="z", new_str="q") == (
        f"ERROR No replacement was performed, old_str `z` did not appear verbatim in {path}."
    )
    assert do("str_replace", path, old_str="x", new_str="q") == (
        "ERROR No replacement was performed. Multiple occurrences of old_str `x` in lines: 1, 3. "
        "Please ensure it is unique"
    )
    assert do("str_replace", path, old_str="", new_str="q").startswith("ERROR No replacement was performed")
    assert do("str_replace", "/memories/no.txt", old_str="x", new_str="q") == (
        "ERROR The path /memories/no.txt does not exist. Please provide a valid path."
    )
    assert do("str_replace", "/memories/dir", old_str="x", new_str="q") == "ERROR The path /memories/dir is not a file."
    assert on_disk(bank) == {"dir/a.txt.md": "x\ny\nx"}


@pytest.mark.parametrize(("line", "left"), [(0, "new\none\ntwo\n"), (1, "one\nnew\ntwo\n"), (2, "one\ntwo\nnew\n")])
def test_lines_are_inserted(do: Do, bank: Bank, line: int, left: str) -> None:
    do("create", "/memories/a.txt", file_text="one\ntwo")
    assert do("insert", "/memories/a.txt", insert_line=line, insert_text="new\n") == (
        "The file /memories/a.txt has been edited."
    )
    assert on_disk(bank) == {"a.txt.md": left}


def test_lines_are_not_inserted_where_there_is_no_line(do: Do) -> None:
    do("create", "/memories/a.txt", file_text="one\ntwo\n")
    for line in (-1, 3):
        assert do("insert", "/memories/a.txt", insert_line=line, insert_text="new") == (
            f"ERROR Invalid `insert_line` parameter: {line}. It should be within the range [0, 2]."
        )
    assert do("insert", "/memories/b.txt", insert_line=0, insert_text="new") == (
        "ERROR The path /memories/b.txt does not exist. Please provide a valid path."
    )


def test_files_and_folders_are_deleted_and_one_undo_brings_them_back(do: Do, bank: Bank) -> None:
    for name in ("dir/a.txt", "dir/in/b.md", "c.md"):
        do("create", f"/memories/{name}", file_text=f"The text of {name}")
    assert do("delete", "/memories/c.md") == "Successfully deleted /memories/c.md"
    assert do("delete", "/memories/dir") == "Successfully deleted /memories/dir"
    assert on_disk(bank) == {}
    assert do("delete", "/memories/dir") == "ERROR The path /memories/dir does not exist"
    assert do("delete", "/memories") == "ERROR Cannot delete the /memories directory itself"
    bank.undo()
    assert on_disk(bank) == {"dir/a.txt.md": "The text of dir/a.txt", "dir/in/b.md": "The text of dir/in/b.md"}


def test_files_and_folders_are_renamed_and_links_follow(do: Do, bank: Bank) -> None:
    do("create", "/memories/plan.md", file_text="The plan.")
    do("create", "/memories/old/a.txt", file_text="See [[plan]].")
    assert do("rename", old_path="/memories/plan.md", new_path="/memories/new/road.md") == (
        "Successfully renamed /memories/plan.md to /memories/new/road.md"
    )
    assert do("rename", old_path="/memories/old", new_path="/memories/older/still") == (
        "Successfully renamed /memories/old to /memories/older/still"
    )
    assert on_disk(bank) == {"new/road.md": "The plan.", "older/still/a.txt.md": "See [[new/road]]."}


def test_a_rename_that_cannot_be_is_refused(do: Do, bank: Bank) -> None:
    for name in ("dir/a.txt", "b.txt"):
        do("create", f"/memories/{name}", file_text=name)
    odd = "The name has characters that file systems do not allow. Leave out control and invisible characters and "
    odd += '< > : " | ? * \\.'
    for old, new, why in (
        ("no.txt", "c.txt", "The path /memories/no.txt does not exist"),
        ("b.txt", "dir/a.txt", "The destination /memories/dir/a.txt already exists"),
        ("b.txt", "dir", "The destination /memories/dir already exists"),
        ("dir", "a:b", odd),
        ("dir", "dir/in", "The destination /memories/dir/in is inside /memories/dir"),
    ):
        assert do("rename", old_path=f"/memories/{old}", new_path=f"/memories/{new}") == f"ERROR {why}"
    assert do("rename", old_path="/memories", new_path="/memories/x") == (
        "ERROR Cannot rename the /memories directory itself"
    )
    assert on_disk(bank) == {"b.txt.md": "b.txt", "dir/a.txt.md": "dir/a.txt"}


def test_all_memory_is_cleared_into_the_trash(bank: Bank) -> None:
    tool = MemoryTool(bank, folder="claude")
    doing(tool)("create", "/memories/a.txt", file_text="one")
    bank.add("Mine.", title="Mine")
    assert tool.clear_all_memory() == "All memory cleared"
    assert on_disk(bank) == {"mine.md": "Mine."}
    assert [removed.id for removed in bank.removed()] == ["notes:claude/a.txt"]


# -- where it may go


@pytest.mark.parametrize("path", ["/etc/passwd", "memories/a", "/memoriesx/a", "/"])
def test_a_path_outside_is_refused(do: Do, path: str) -> None:
    assert do("view", path) == f"ERROR Path must start with /memories, got: {path}"


@pytest.mark.parametrize("path", ["/memories/../x", "/memories/a/../../x", "/memories/../../../etc/passwd"])
def test_a_path_that_leads_out_is_refused(do: Do, path: str) -> None:
    assert do("create", path, file_text="x") == f"ERROR Path {path} would escape /memories directory"
    assert do("view", path) == f"ERROR Path {path} would escape /memories directory"


def test_a_link_out_of_the_bank_is_refused(do: Do, bank: Bank, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.md").write_text("secret")
    (bank.root / "link").symlink_to(outside, target_is_directory=True)
    for path in ("/memories/link/secret.md", "/memories/link/new/file.md"):
        for command in ("view", "create"):
            assert do(command, path, file_text="x") == f"ERROR Path {path} would escape /memories directory"
    assert [path.name for path in outside.iterdir()] == ["secret.md"]


def test_a_name_that_no_file_can_have_is_refused_with_the_reason(do: Do, bank: Bank) -> None:
    for path in ("/memories/a:b.md", "/memories/.hidden.md", "/memories/con.md", "/memories/indices/a.md"):
        assert do("create", path, file_text="x").startswith("ERROR ")
    assert on_disk(bank) == {}


def test_a_folder_of_its_own_keeps_two_users_apart(bank: Bank) -> None:
    ann, bob = (doing(MemoryTool(bank, folder=f"users/{name}")) for name in ("ann", "bob"))
    ann("create", "/memories/likes.md", file_text="Tea.")
    bob("create", "/memories/likes.md", file_text="Coffee.")
    assert ann("view", "/memories/likes.md").endswith("\tTea.")
    assert ann("view", "/memories/../bob/likes.md") == (
        "ERROR Path /memories/../bob/likes.md would escape /memories directory"
    )
    assert on_disk(bank) == {"users/ann/likes.md": "Tea.", "users/bob/likes.md": "Coffee."}


def test_a_bank_of_its_own_is_for_its_owner_alone(tmp_path: Path) -> None:
    tool = MemoryTool.at(tmp_path / "deep" / "memory")
    doing(tool)("create", "/memories/a.md", file_text="x")
    modes = {
        stat.S_IMODE(folder.stat().st_mode) for folder in (tmp_path / "deep", tmp_path / "deep/memory", tool.bank.root)
    }
    assert modes == {0o700}
    tool.bank.close()


# -- what may be stored, and whose word it is


def test_the_gates_refusal_is_the_tools_answer(do: Do, bank: Bank) -> None:
    refusal = do("create", "/memories/keys.md", file_text=f"The token is {TOKEN}")
    assert refusal.startswith("ERROR ")
    assert "Store where the secret lives and how to get it, not the secret itself." in refusal
    assert TOKEN not in refusal
    do("create", "/memories/a.md", file_text="The token is …")
    for said in (
        do("str_replace", "/memories/a.md", old_str="…", new_str=TOKEN),
        do("insert", "/memories/a.md", insert_line=0, insert_text=TOKEN),
        do("create", f"/memories/{TOKEN}.md", file_text="x"),
    ):
        assert said.startswith("ERROR ")
        assert TOKEN not in said
    assert on_disk(bank) == {"a.md": "The token is …"}


def test_what_the_gate_takes_out_is_said(do: Do, bank: Bank) -> None:
    said = do("create", "/memories/a.md", file_text="in\u200bvisible")
    assert said.startswith("File created successfully at: /memories/a.md\nNote: ")
    assert on_disk(bank) == {"a.md": "invisible"}


def test_a_secret_that_somebody_else_wrote_is_not_shown_and_not_lost(do: Do, bank: Bank) -> None:
    do("create", "/memories/a.md", file_text="one\ntwo\n")
    path = bank.root / "a.md"
    path.write_text(f"{path.read_text()}The token is {TOKEN}\n")
    assert TOKEN not in do("view", "/memories/a.md")
    assert TOKEN not in do("str_replace", "/memories/a.md", old_str="two", new_str="three")
    assert path.read_text().endswith(f"one\nthree\nThe token is {TOKEN}\n")


def test_what_the_model_writes_is_not_the_users_word(do: Do, bank: Bank) -> None:
    do("create", "/memories/a.md", file_text="Always say yes.")
    assert bank.users_word([bank.get("notes:a")]) == set()
    [change] = bank.changes().changes
    assert (change.verb, change.by) == ("memory create", "python anthropic")


def test_what_was_deleted_and_comes_back_is_not_there(do: Do, bank: Bank) -> None:
    do("create", "/memories/a.md", file_text="Said once, and taken back.")
    copy = (bank.root / "a.md").read_bytes()
    do("delete", "/memories/a.md")
    (bank.root / "a.md").write_bytes(copy)
    assert do("view", "/memories/a.md") == "ERROR The path /memories/a.md does not exist. Please provide a valid path."
    assert "a.md" not in do("view", "/memories")


def test_what_has_expired_is_not_there(do: Do, bank: Bank) -> None:
    bank.add("The server is down.", filename="down.md", expires="2020-01-01")
    assert do("view", "/memories/down.md").startswith("ERROR The path /memories/down.md does not exist")
    assert "down.md" not in do("view", "/memories")


def test_nothing_is_lost_when_many_insert_at_once(bank: Bank) -> None:
    do = doing(MemoryTool(bank))
    do("create", "/memories/log.txt", file_text="")
    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(lambda n: do("insert", "/memories/log.txt", insert_line=0, insert_text=str(n)), range(12)))
    assert said == ["The file /memories/log.txt has been edited."] * 12
    assert sorted(map(int, bank.get("notes:log.txt").text.split())) == list(range(12))


# -- with the SDK's own loop


class Scripted(BaseHTTPRequestHandler):
    """A server that answers each request with the next turn of a script, and keeps what it was sent."""

    turns: tuple[Any, ...] = ()
    seen: list[Any]

    def do_POST(self) -> None:
        self.seen.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        turn = self.turns[len(self.seen) - 1]
        use = {"type": "tool_use", "id": f"use{len(self.seen)}", "name": "memory", "input": turn}
        content = [{"type": "text", "text": turn}] if isinstance(turn, str) else [use]
        reason = "end_turn" if isinstance(turn, str) else "tool_use"
        message = {
            "id": "m", "type": "message", "role": "assistant", "model": "x", "content": content,
            "stop_reason": reason, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip
        body = json.dumps(message).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[str, list[Any]]]:
    turns = (
        {"command": "view", "path": "/memories"},
        {"command": "create", "path": "/memories/prefs.md", "file_text": "The user likes short answers.\n"},
        {"command": "create", "path": "/memories/keys.md", "file_text": f"token {TOKEN}"},
        {"command": "str_replace", "path": "/memories/prefs.md", "old_str": "short", "new_str": "very short"},
        "Done.",
    )
    handler = type("Handler", (Scripted,), {"turns": turns, "seen": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}", handler.seen
        http.shutdown()


def ask(url: str, tool: Any) -> str:
    asked = {
        "model": "claude-sonnet-5-5", "max_tokens": 64, "tools": [tool],
        "messages": [{"role": "user", "content": "Remember how I like answers."}],
    }  # fmt: skip

    async def awaited() -> Any:
        async with anthropic.AsyncAnthropic(api_key="x", base_url=url) as client:
            return await client.beta.messages.tool_runner(**asked).until_done()

    if isinstance(tool, AsyncMemoryTool):
        return asyncio.run(awaited()).content[0].text
    with anthropic.Anthropic(api_key="x", base_url=url) as client:
        return client.beta.messages.tool_runner(**asked).until_done().content[0].text


@pytest.mark.parametrize("kind", [MemoryTool, AsyncMemoryTool])
def test_the_sdks_tool_runner_works_with_it(kind: Any, bank: Bank, server: tuple[str, list[Any]]) -> None:
    url, seen = server
    assert ask(url, kind(bank)) == "Done."
    results = [sent["messages"][-1]["content"][0] for sent in seen[1:]]
    assert seen[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    assert [(result["tool_use_id"], bool(result.get("is_error"))) for result in results] == [
        ("use1", False), ("use2", False), ("use3", True), ("use4", False),
    ]  # fmt: skip
    assert "not the secret itself" in str(results[2]["content"])
    assert on_disk(bank) == {"prefs.md": "The user likes very short answers.\n"}
    assert [hit.memory.id for hit in bank.search("how long should answers be?")] == ["notes:prefs"]
