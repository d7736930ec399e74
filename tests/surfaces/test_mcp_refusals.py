"""What a tool of the MCP server says where it cannot do what is asked, and what it does not repeat."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError

from conftest import tree, trusted
from mcp_calls import DEFAULT, ERAS, call, calls, with_client
from memlane import Bank
from samples import words

SECRET = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Bank.init(tmp_path)
    return tmp_path


# -- no bank


ARGUMENTS: dict[str, dict[str, Any]] = {
    "remember": {"text": "x"},
    "recall": {"query": "x"},
    "create_memory": {"filename": "a.md", "content": "x", "tags": []},
    "read_memory": {"filename": "a.md"},
    "update_memory": {"filename": "a.md", "content": "x"},
    "append_memory": {"filename": "a.md", "content": "x"},
    "delete_memory": {"filename": "a.md"},
    "search_memories": {"query": "x"},
    "search_linked_memories": {"query": "x", "target_document": "a.py"},
    "get_memory_stats": {},
    "merge_memories": {"source_files": ["a.md"], "target_file": "b.md", "summary_content": "x"},
    "suggest_memory_merges": {},
    "list_memories": {},
    "edit_memory": {"id": "a", "old": "x", "new": "y"},
    "restore_memory": {"id": "a"},
}


@pytest.mark.parametrize("name", DEFAULT)
def test_without_a_bank_every_tool_says_so_and_writes_nothing(tmp_path: Path, name: str) -> None:
    """S003-02."""
    answer = call(tmp_path, name, **ARGUMENTS[name])
    assert answer.startswith("Memory system is not enabled")
    assert answer.endswith("Run `memlane init` in a terminal in your project's folder.")
    assert tree(tmp_path) == {}


def test_without_a_bank_there_are_no_resources(tmp_path: Path) -> None:
    async def run(client: Client) -> Any:
        return (await client.list_resources()).resources

    assert with_client(tmp_path, run) == []


def test_a_server_begins_to_work_when_a_bank_is_made_and_follows_its_configuration(tmp_path: Path) -> None:
    async def run(client: Client) -> list[bool]:
        async def works() -> bool:
            return not (await client.call_tool("get_memory_stats", {})).is_error

        found = [await works()]
        Bank.init(tmp_path)
        found.append(await works())
        (tmp_path / "memlane.toml").write_text("[memory]\nenabled = false\n")
        trusted(tmp_path / "memlane.toml")
        found.append(await works())
        (tmp_path / "memlane.toml").write_text("[memory]\nenabled = true\n")
        trusted(tmp_path / "memlane.toml")
        return [*found, await works()]

    assert with_client(tmp_path, run) == [False, True, False, True]


def test_so_is_one_that_was_broken_since_it_was_trusted(folder: Path) -> None:
    (folder / "memlane.toml").write_text("[memory]\nenabled = true\n[vault\n")
    for tool, given in {"recall": {"query": "x"}, "remember": {"text": "x"}}.items():
        assert f"{folder}/memlane.toml is not valid TOML (at line 3, column 7)." in call(folder, tool, **given)


def test_a_broken_configuration_is_what_every_call_says(folder: Path) -> None:
    (folder / "memlane.toml").write_text("[memory\n")
    trusted(folder / "memlane.toml")
    assert "is not valid TOML" in call(folder, "recall", query="x")
    (folder / "memlane.toml").write_text('[memory]\nenabled = true\n[mcp]\ntoolsets = ["valut"]\n')
    trusted(folder / "memlane.toml")
    assert "a list of vault, topics, layers, records, knowledge-graph, keys." in call(folder, "recall", query="x")


# -- nothing secret is repeated


def test_a_refused_text_is_not_repeated_and_not_stored(folder: Path) -> None:
    before = tree(folder)
    answers = calls(
        folder,
        ("remember", {"text": f"The token is {SECRET}"}),
        ("create_memory", {"filename": "a.md", "content": SECRET, "tags": []}),
        ("create_memory", {"filename": "a.md", "content": "x", "tags": [SECRET]}),
        ("create_memory", {"filename": f"{SECRET}.md", "content": "x", "tags": []}),
        ("read_memory", {"filename": SECRET}),
    )
    assert all(isinstance(answer, str) for answer in answers)
    assert "Store where the secret lives and how to get it, not the secret itself." in answers[0]
    assert re.search(
        r"a person can allow it: `memlane gate allow github-token@\S+ --reason .*` in a terminal", answers[0]
    )
    assert SECRET not in " ".join(answers)
    assert tree(folder) == before


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"query": [SECRET]}, "query: input should be a valid string"),
        (
            {"query": "x", "limit": SECRET},
            "limit: input should be a valid integer, unable to parse string as an integer",
        ),
        ({"query": "x", "limit": 10_000}, "limit: input should be less than or equal to 100"),
        ({"query": "x", "filter_tags": {SECRET: 1}}, "filter_tags: input should be a valid list"),
        ({"query": "x", SECRET: "y"}, "there is no argument [REDACTED:github-token]: leave it out"),
        ({"query": "x", "a b": "y"}, "there is no argument of that name: leave it out"),
        ({"query": "x", "importance": "y"}, "there is no argument importance: leave it out"),
        ({"query": "x", "filter_tag": "y"}, "there is no argument filter_tag: use filter_tags"),
        ({}, "query: field required"),
    ],
)
def test_wrong_arguments_are_named_but_not_repeated(folder: Path, arguments: dict[str, Any], expected: str) -> None:
    more = ("limit", "filter_tags", "filter_type", "lane", "scope", "since", "until", "where", "archived", "order")
    takes = f"It takes: query, {', '.join(f'{name} (optional)' for name in more)}."
    answer = calls(folder, ("search_memories", arguments))[0]
    assert answer == f"search_memories cannot be called like that; {expected}. {takes}"


def test_an_id_that_is_not_there_is_repeated_without_its_secrets(folder: Path) -> None:
    gone = call(folder, "vault_bulk_delete", ids=["0123456789ab", SECRET], more=("vault",))
    assert gone == {"deleted": [], "not_found": ["0123456789ab", "[REDACTED:github-token]"]}


@pytest.mark.parametrize("era", ERAS)
def test_unknown_names_are_not_repeated(folder: Path, era: str) -> None:
    async def run(client: Client) -> list[tuple[int, str]]:
        found = []
        for request in (
            lambda: client.call_tool(SECRET, {}),
            lambda: client.get_prompt(SECRET),
            lambda: client.get_prompt("recall", {SECRET: SECRET}),
            lambda: client.read_resource(f"memory://memory/{SECRET}"),
            lambda: client.read_resource(f"other://{SECRET}"),
            lambda: client.list_resources(cursor=SECRET),
        ):
            with pytest.raises(MCPError) as error:
                await request()
            found.append((error.value.error.code, error.value.error.model_dump_json()))
        return found

    missing = -32602 if era == "2026-07-28" else -32002
    found = with_client(folder, run, era)
    assert [code for code, _ in found] == [-32602, -32602, -32602, missing, missing, -32602]
    assert SECRET not in str(found)


def test_a_crash_is_a_sentence_without_a_traceback(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Where the bank's folder should be, there is something else: an OSError that nobody foresaw."""
    shutil.rmtree(folder / ".memories")
    (folder / ".memories").write_text("a file")
    answers = calls(folder, ("remember", {"text": f"Some {words(1)}"}), ("recall", {"query": "x"}))
    assert all(isinstance(answer, str) or answer["block"] == "" for answer in answers)
    assert "Traceback" not in str(answers) + capfd.readouterr().err
