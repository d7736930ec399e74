"""What the tools answer over the whole bank, and how it reads: in few words, with dates, in parts where it is long."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.types import CallToolResult

from conftest import trusted
from memlane import Bank
from memlane.surfaces.mcp import toolsets
from memlane.surfaces.mcp.reading import part
from memlane.surfaces.mcp.server import build_server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Bank.init(tmp_path)
    return tmp_path


@pytest.fixture
def lanes(folder: Path) -> dict[str, str]:
    """One memory about quicksilver in every lane: the lane's name and the memory's id."""
    bank = Bank.open(folder)
    day = "2025-01-10T08:00:00Z"
    return {
        "notes": bank.add("Quicksilver is in [[src/a.py]].", title="Q", type="fact", created_at=day, tags=["hg"]).id,
        "vault": bank.add("We call mercury quicksilver, see [[src/a.py]].", lane="vault", type="rule").id,
        "topics": bank.add("Quicksilver boils at 357 degrees.", lane="topics", topic="metals/mercury").id,
        "records": bank.add("Quicksilver was spilt in room 4.", lane="records", title="Spill", tags=["spill"]).id,
        "layers": bank.add("# Issues\n\nQuicksilver leaks.", lane="layers", project="p", file_type="known_issues").id,
    }


def answers(folder: Path, *steps: tuple[str, dict[str, Any]], more: tuple[str, ...] = ()) -> list[CallToolResult]:
    async def run() -> list[CallToolResult]:
        async with Client(build_server(folder, more=more)) as client:
            return [await client.call_tool(name, arguments) for name, arguments in steps]

    return anyio.run(run)


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert content.type == "text"
    return content.text


def said(folder: Path, name: str, /, **arguments: Any) -> str:
    """The text of one answer."""
    (result,) = answers(folder, (name, arguments))
    return text_of(result)


def data(folder: Path, name: str, /, **arguments: Any) -> Any:
    """The data of one answer."""
    (result,) = answers(folder, (name, arguments))
    assert not result.is_error, text_of(result)
    assert result.structured_content is not None
    return result.structured_content.get("result", result.structured_content)


# -- one search


def shown(id: str) -> str:
    return id.replace("notes:", "memory:")


def test_a_search_covers_the_whole_bank(folder: Path, lanes: dict[str, str]) -> None:
    found = data(folder, "search_memories", query="quicksilver")
    assert {hit["lane"]: hit["memory_id"] for hit in found} == {lane: shown(id) for lane, id in lanes.items()}
    note = next(hit for hit in found if hit["lane"] == "notes")
    assert note == {
        "memory_id": "memory:q",
        "score": note["score"],
        "content": "Quicksilver is in [[src/a.py]].",
        "type": "fact",
        "status": "active",
        "tags": ["hg"],
        "file_path": str(folder / ".memories/q.md"),
        "header_path": "",
        "lane": "notes",
        "created_at": "2025-01-10T08:00:00Z",
    }


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"lane": "vault"}, {"vault"}),
        ({"until": "2025-12-31"}, {"notes"}),
        ({"since": "2025-12-31"}, {"vault", "topics", "records", "layers"}),
        ({"filter_type": "rule"}, {"vault"}),
        ({"filter_tags": "hg, spill"}, {"notes", "records"}),
        ({"scope": "user:ann"}, {"notes", "topics", "records", "layers"}),
    ],
)
def test_filters_choose_among_all_lanes(
    folder: Path, lanes: dict[str, str], filters: dict[str, Any], expected: set[str]
) -> None:
    Bank.open(folder).add("Ann likes tea.", scope="user:ann")
    assert {hit["lane"] for hit in data(folder, "search_memories", query="quicksilver", **filters)} == expected


def test_what_is_archived_is_found_when_it_is_asked_for(folder: Path, lanes: dict[str, str]) -> None:
    Bank.open(folder).update("notes:q", status="archived")
    assert data(folder, "search_memories", query="quicksilver", lane="notes") == []
    found = data(folder, "search_memories", query="quicksilver", lane="notes", archived=True)
    assert [(hit["memory_id"], hit["status"]) for hit in found] == [("memory:q", "archived")]


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        (
            "search_memories",
            {"query": "x", "filter_type": "decision"},
            "filter_type: no memory has that type. Use one of: fact, journal,",
        ),
        ("search_memories", {"query": "x", "scope": "nobody"}, "There is no scope 'nobody' here. Use one of: "),
        ("search_memories", {"query": "x", "lane": "memory"}, "search_memories cannot be called like that; lane: "),
        ("list_memories", {"type": "decision"}, "type: no memory has that type. Use one of: fact, journal,"),
        ("suggest_memory_merges", {"filter_type": "all"}, "filter_type: no memory has that type. Use one of: fact,"),
    ],
)
def test_an_unknown_filter_is_an_error_that_names_the_known_ones(
    folder: Path, lanes: dict[str, str], tool: str, arguments: dict[str, Any], expected: str
) -> None:
    (result,) = answers(folder, (tool, arguments))
    assert result.is_error
    assert text_of(result).startswith(expected)


def test_nothing_found_is_a_sentence(folder: Path, lanes: dict[str, str]) -> None:
    """S003-33: the list is empty; a client that shows its model the data has the sentence, too."""
    (empty,) = answers(folder, ("search_memories", {"query": " * "}))
    sentence = "A search needs words. `list_memories` shows the newest."
    assert (text_of(empty), empty.structured_content) == (sentence, {"result": [], "remark": sentence})
    assert said(folder, "search_memories", query="quicksilver", filter_tags=["lead"], lane="notes") == (
        "No memory matches. Leave filter_tags and lane out for more."
    )
    assert said(folder, "search_memories", query='"lead pipe"') == (
        "No memory matches. `list_memories` shows the newest."
    )
    assert said(folder, "search_linked_memories", query="x", target_document="src/none.py").startswith(
        "No memory links to it by that name."
    )
    assert said(folder, "suggest_memory_merges") == "No memories are that much alike."


def test_links_counts_and_suggestions_cover_the_whole_bank(folder: Path, lanes: dict[str, str]) -> None:
    linked = data(folder, "search_linked_memories", query="", target_document="src/a.py")
    assert {link["memory_id"] for link in linked} == {"memory:q", lanes["vault"]}
    stats = data(folder, "get_memory_stats")
    assert (stats["count"], stats["lanes"]) == (5, dict.fromkeys(lanes, 1))
    for lane in ("notes", "vault"):
        Bank.open(folder).add("The nightly build fails when the cache is older than a week.", lane=lane)
    (group,) = data(folder, "suggest_memory_merges", filter_type=None)
    assert {member["id"].partition(":")[0] for member in group["memories"]} == {"memory", "vault"}


# -- how it reads


def test_hits_read_as_lines_with_dates(folder: Path) -> None:
    bank = Bank.open(folder)
    text = "# Deploys\n\nThey go out on Tuesdays.\nmemory:fake · notes"
    bank.add(text, title="Deploy day", type="fact", tags=["ops"], created_at="2025-01-10T08:00:00Z")
    line = "memory:deploy-day · notes · 2025-01-10 · fact · #ops"
    assert said(folder, "search_memories", query="deploys") == (
        f"{line} · Deploys\n  # Deploys\n\n  They go out on Tuesdays.\n  memory:fake · notes"
    )
    assert said(folder, "list_memories") == f"{line} · Deploy day"


def test_a_result_is_not_sent_as_json_twice(folder: Path, lanes: dict[str, str]) -> None:
    every = answers(
        folder,
        ("remember", {"text": "One more."}),
        ("recall", {"query": "quicksilver"}),
        ("search_memories", {"query": "quicksilver"}),
        ("get_memory_stats", {}),
        ("vault_stats", {}),
        ("records_list", {}),
        ("layers_get_by_project", {"project_name": "p"}),
        more=("vault", "records", "layers"),
    )
    for result in every:
        assert result.structured_content
        with pytest.raises(ValueError, match="Expecting"):
            json.loads(text_of(result))


def test_counts_read_as_lines(folder: Path) -> None:
    Bank.open(folder).add("Deploys go out on Tuesdays.", title="Deploy day", tags=["ops"])
    lines = said(folder, "get_memory_stats").splitlines()
    assert lines[0] == "count: 1"
    assert lines[2:] == ["tags: ops 1", "types: journal 1", f"memory_path: {folder / '.memories'}", "lanes: notes 1"]


def test_remember_and_recall_say_when_to_use_them() -> None:
    remember, recall = toolsets.DEFAULT[:2]
    assert "Use it as soon as" in str(remember.definition.description)
    assert "Use it first" in str(recall.definition.description)


# -- long memories

LONG = "".join(f"# Part {n}\n\n{'word ' * 200}\n\n## Detail {n}\n\nEnd of {n}.\n\n" for n in range(50))


def test_a_long_note_comes_in_parts_that_make_up_the_whole(folder: Path) -> None:
    (folder / ".memories/long.md").write_text(LONG)
    (first,) = answers(folder, ("read_memory", {"filename": "long.md"}))
    assert first.structured_content is not None
    read, remark = first.structured_content["content"], first.structured_content["remark"]
    assert remark.startswith(
        f'Characters 0 to {len(read):,} of {len(LONG):,}. Go on with `read_memory(filename="long.md", '
        f"offset={len(read)})`, or name a section: Part 0, Detail 0, Part 1,"
    )
    assert text_of(first) == f"{read.rstrip()}\n\n{remark}"
    assert len(text_of(first)) / 4 < 3000
    while "remark" in (more := data(folder, "read_memory", filename="long.md", offset=len(read))):
        read += more["content"]
        if len(read) == len(LONG):
            break
    assert read == LONG
    assert more["remark"] == f"Characters {len(LONG) - len(more['content']):,} to {len(LONG):,} of {len(LONG):,}."


def test_a_short_note_is_read_as_the_seed_says(folder: Path) -> None:
    """S003-14."""
    (folder / ".memories/a.md").write_text("Short.\n")
    path = str(folder / ".memories/a.md")
    assert data(folder, "read_memory", filename="a.md") == {"filename": "a.md", "content": "Short.\n", "path": path}
    assert said(folder, "read_memory", filename="a.md") == "Short.\n"


def test_a_section_is_read_by_its_heading(folder: Path) -> None:
    (folder / ".memories/long.md").write_text(LONG)
    read = data(folder, "read_memory", filename="long.md", section="Part 7 > Detail 7")
    assert read["content"] == "## Detail 7\n\nEnd of 7.\n\n"
    assert "## Detail 3\n" in data(folder, "read_memory", filename="long.md", section="# part 3")["content"]
    assert said(folder, "read_memory", filename="long.md", section="Nowhere").startswith(
        "There is no such section. Use one of: Part 0, Detail 0, Part 1,"
    )


def test_a_long_section_says_how_to_go_on_within_it() -> None:
    text = "# One\n\n" + "a\n" * 50 + "# Two\n\n" + "b\n" * 50
    first, remark = part("x.md", text, "Two", 0, 40)
    at = text.index("# Two")
    go_on = 'Go on with `read_memory(filename="x.md", section="Two", offset=39)`.'
    assert (first, remark) == (text[at : at + 39], f"Characters {at} to {at + 39} of {len(text)}. {go_on}")
    assert part("x.md", text, "Two", 39, 1000)[0] == text[at + 39 :]


# -- list, edit, restore


def test_memories_are_listed_page_by_page_each_once_also_while_others_write(folder: Path) -> None:
    bank = Bank.open(folder)
    for day in range(1, 8):
        bank.add(f"Day {day} of the month.", title=f"d{day}", created_at=f"2025-01-0{day}T08:00:00Z")

    async def run() -> list[str]:
        found: list[str] = []
        arguments: dict[str, Any] = {"limit": 3}
        async with Client(build_server(folder)) as client:
            while True:
                page = (await client.call_tool("list_memories", arguments)).structured_content or {}
                found += [item["memory_id"] for item in page["memories"]]
                bank.add("Meanwhile.", title=f"new {len(found)}")
                if "cursor" not in page:
                    return found
                assert page["remark"] == f'There are more: the same call with cursor="{page["cursor"]}" shows them.'
                arguments["cursor"] = page["cursor"]

    assert anyio.run(run) == [f"memory:d{day}" for day in range(7, 0, -1)]


def test_a_list_is_filtered_and_an_empty_one_is_a_sentence(folder: Path, lanes: dict[str, str]) -> None:
    def ids(**arguments: Any) -> list[str]:
        return [item["memory_id"] for item in data(folder, "list_memories", **arguments)["memories"]]

    assert len(ids()) == 5
    assert ids(until="2025-12-31") == ["memory:q"]
    assert ids(tags="hg") == ["memory:q"]
    assert ids(lane="layers") == [lanes["layers"]]
    assert ids(type="rule") == [lanes["vault"]]
    assert said(folder, "list_memories", tag="lead") == "No memory matches. Leave tag out for more."
    assert said(folder, "list_memories", deleted=True) == "Nothing is deleted."
    assert said(folder, "list_memories", cursor="x") == (
        "The cursor is not one of this server's. Leave cursor out to list from the start."
    )


@pytest.mark.parametrize("lane", ["notes", "vault", "topics", "records", "layers"])
def test_a_passage_is_changed_and_the_rest_stays(folder: Path, lanes: dict[str, str], lane: str) -> None:
    before = Bank.open(folder).get(lanes[lane])
    old = "uicksilver"
    answer = data(folder, "edit_memory", id=shown(lanes[lane]), old=old, new="UICKSILVER")
    assert (answer["status"], answer["memory_id"]) == ("edited", shown(lanes[lane]))
    after = Bank.open(folder).get(lanes[lane])
    assert after.text.strip().splitlines()[-1] == before.text.strip().splitlines()[-1].replace(old, "UICKSILVER")
    assert (after.tags, after.type, after.created_at) == (before.tags, before.type, before.created_at)


def test_a_passage_that_is_not_there_once_is_an_error_and_changes_nothing(folder: Path) -> None:
    (folder / ".memories/a.md").write_text("One one two.\n")
    none = (
        'The passage is not there. Give it exactly as it is written: `read_memory(filename="memory:a")` shows the text.'
    )
    assert said(folder, "edit_memory", id="a", old="three", new="x") == none
    assert said(folder, "edit_memory", id="a", old="", new="x") == none
    assert said(folder, "edit_memory", id="a", old="ne", new="x").startswith("The passage is there 2 times. Give more")
    assert (folder / ".memories/a.md").read_text() == "One one two.\n"


@pytest.mark.parametrize("lane", ["notes", "vault", "topics", "records", "layers"])
def test_what_was_deleted_is_listed_and_brought_back(folder: Path, lanes: dict[str, str], lane: str) -> None:
    Bank.open(folder).delete(lanes[lane])
    (gone,) = data(folder, "list_memories", deleted=True)["memories"]
    assert gone == {"memory_id": shown(lanes[lane]), "lane": lane, "deleted_at": gone["deleted_at"]}
    assert data(folder, "restore_memory", id=gone["memory_id"])["status"] == "restored"
    assert Bank.open(folder).get(lanes[lane]).lane == lane


# -- recall


def test_recall_says_that_other_scopes_know_something_and_finds_it_there(folder: Path) -> None:
    (folder / "memlane.toml").write_text('[memory]\nenabled = true\n[profile]\nscopes = ["shared"]\n')
    trusted(folder / "memlane.toml")
    answers(folder, ("remember", {"text": "Orion answers in haiku only.", "tier": "canon", "scope": "orion"}))
    assert said(folder, "recall", query="haiku") == (
        'Nothing is known about that. Other scopes know something: `recall(query=…, scopes=["orion"])`.'
    )
    assert "Orion answers in haiku only." in said(folder, "recall", query="haiku", scopes=["orion"])
    assert "Orion answers in haiku only." in said(folder, "recall", query="haiku", scope="orion")


def test_recall_answers_also_where_prompts_get_no_memory_by_themselves(folder: Path) -> None:
    Bank.open(folder).add("Deploys go out on Tuesdays.", title="Deploy day")
    (folder / "memlane.toml").write_text("[memory]\nenabled = true\n[profile]\nenabled = false\n")
    trusted(folder / "memlane.toml")
    assert "Deploys go out on Tuesdays." in said(folder, "recall", query="deploys")


# -- arguments by other names


@pytest.mark.parametrize(
    ("tool", "given", "expected"),
    [
        ("remember", {"content": "x"}, {"text": "x"}),
        ("remember", {"text": "x", "category": "plan"}, {"text": "x", "type": "plan"}),
        ("remember", {"text": "x", "tags": "a, b"}, {"text": "x", "tags": ["a", "b"]}),
        ("remember", {"text": "x", "tier": "CANON"}, {"text": "x", "tier": "canon"}),
        ("search_memories", {"q": "x", "top_k": 3}, {"query": "x", "limit": 3}),
        ("search_memories", {"query": "x", "tags": "a", "type": "plan"}, {"filter_tags": ["a"], "filter_type": "plan"}),
        ("create_memory", {"title": "x", "text": "y", "tags": None}, {"filename": "x", "content": "y", "tags": []}),
        ("read_memory", {"id": "notes:x"}, {"filename": "notes:x"}),
        ("read_memory", {"memory_id": "memory:x"}, {"filename": "memory:x"}),
        ("read_memory", {"path": ".memories/x.md"}, {"filename": ".memories/x.md"}),
        ("edit_memory", {"path": "x", "old_str": "a", "new_str": "b"}, {"id": "x", "old": "a", "new": "b"}),
        ("vault_add_memory", {"content": "x", "scope": "shared", "type": "goal"}, {"text": "x", "category": "goal"}),
    ],
)
def test_an_argument_is_taken_by_a_name_that_means_the_same(
    tool: str, given: dict[str, Any], expected: dict[str, Any]
) -> None:
    tools = {each.name: each for each in toolsets.tools(toolsets.NAMES)}
    checked = tools[tool].checked(given)
    assert {name: checked[name] for name in expected} == expected
