"""Resources, prompts and completions of the MCP server."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp import Client
from mcp.types import PromptReference, ResourceTemplateReference

from mcp_calls import ERAS, with_client
from memlane import Bank
from memlane.surfaces.mcp import resources
from samples import words


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Bank.init(tmp_path)
    return tmp_path


@pytest.mark.parametrize("era", ERAS)
def test_resources_are_listed_page_by_page_each_once(folder: Path, era: str) -> None:
    bank = Bank.open(folder)
    for number in range(150):
        bank.add(words(number), title=f"n {number:03}")
    for number in range(120):
        bank.add(words(f"v {number}"), lane="vault") if number < 90 else bank.add(
            words(f"t {number}", 12), lane="topics", title=f"t {number}", topic=f"a/b{number % 5}"
        )

    async def run(client: Client) -> list[list[str]]:
        pages = []
        cursor = None
        while True:
            page = await client.list_resources(cursor=cursor)
            pages.append([resource.uri for resource in page.resources])
            cursor = page.next_cursor
            if cursor is None:
                return pages

    pages = with_client(folder, run, era)
    assert [len(page) for page in pages] == [100, 100, 71]
    assert pages[0][0] == "memory://index"
    listed = [uri for page in pages for uri in page][1:]
    assert sorted(listed) == sorted(resources.uri_of(memory.id) for memory in bank.memories())


def test_every_listed_resource_can_be_read(folder: Path) -> None:
    bank = Bank.open(folder)
    bank.add("In a folder, with a name in another script.", filename="2025/über uns.md")
    fact = bank.add("Mission: keep the runtime stable.", lane="vault")

    async def run(client: Client) -> list[str]:
        listed = await client.list_resources()
        read = [await client.read_resource(resource.uri) for resource in listed.resources]
        read.append(await client.read_resource("memory://memory/notes%3A2025%2F%C3%BCber%20uns"))
        return [content.text for result in read for content in result.contents]

    index, note, vault, again = with_client(folder, run)
    assert index.startswith(f"# 2 memories in {folder / '.memories'}\n\n- ")
    assert note.startswith('---\nid: "notes:2025/über uns"\n')
    assert note.endswith("In a folder, with a name in another script.")
    assert note == again
    assert f'id: "{fact.id}"' in vault


def test_prompts_bring_the_memory_into_the_conversation(folder: Path) -> None:
    Bank.open(folder).add("Deploys go out on Tuesdays.", title="Deploy day")

    async def run(client: Client) -> list[str]:
        listed = await client.list_prompts()
        assert [prompt.name for prompt in listed.prompts] == ["recall", "remember", "wrap-up"]
        assert all(prompt.description for prompt in listed.prompts)
        texts = []
        for name, arguments in (
            ("recall", {"topic": "deploys"}),
            ("recall", {"topic": "zzzz"}),
            ("remember", {"what": "We moved to trunk-based work.", "tags": "git"}),
            ("wrap-up", {}),
        ):
            (message,) = (await client.get_prompt(name, arguments)).messages
            assert (message.role, message.content.type) == ("user", "text")
            texts.append(message.content.text)
        return texts

    recall, nothing, remember, wrap_up = with_client(folder, run)
    assert "Deploys go out on Tuesdays." in recall
    assert "It holds nothing on that." in nothing
    assert remember.endswith("Use these tags: git.\n\nWe moved to trunk-based work.")
    assert "open_work" in wrap_up


def test_ids_and_tags_are_completed(folder: Path) -> None:
    bank = Bank.open(folder)
    for number in range(120):
        bank.add(words(number), title=f"n {number}", tags=["common", *(["rare"] if number == 3 else [])])
    template = ResourceTemplateReference(type="ref/resource", uri="memory://memory/{id}")
    prompt = PromptReference(type="ref/prompt", name="remember")

    async def run(client: Client) -> list[tuple[list[str], int | None, bool | None]]:
        found = []
        for ref, name, value in (
            (template, "id", "notes:n-11"),
            (template, "id", ""),
            (prompt, "tags", ""),
            (prompt, "tags", "common, ra"),
            (prompt, "what", "x"),
        ):
            completion = (await client.complete(ref, {"name": name, "value": value})).completion
            found.append((completion.values, completion.total, completion.has_more))
        return found

    ids, every, tags, second, nothing = with_client(folder, run)
    assert sorted(ids[0]) == sorted(f"notes:n-{n}" for n in (11, *range(110, 120)))
    assert (len(every[0]), every[1], every[2]) == (100, 120, True)
    assert tags == (["common", "rare"], 2, False)
    assert second == (["common, rare"], 1, False)
    assert nothing == ([], 0, False)
