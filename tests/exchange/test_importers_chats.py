"""What chat programs, Letta and basic-memory export, in the shapes that they document: read, and imported once."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memlane import Bank
from memlane.core.model import Draft, Problem
from memlane.exchange import importers
from memlane.exchange.importers import Item, Skipped
from memlane.exchange.imports import import_from

TOKEN = "ghp_" + "R4nd0mV4lueTh4tIsN0tRealAtAll1234567"
NEW_YEAR = datetime(2025, 1, 1, tzinfo=UTC)


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    (tmp_path / "project").mkdir()
    return Bank.init(tmp_path / "project")


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return path


def read(kind: str, path: Path) -> list[Any]:
    return list(importers.read(kind, path))


def statuses(bank: Bank, path: Path, **options: Any) -> list[str]:
    return [outcome.status for outcome in import_from(bank, path, **options)]


# -- ChatGPT


def node(parent: str | None, role: str = "", *parts: Any, **more: Any) -> dict[str, Any]:
    content = {"content_type": more.pop("content_type", "text"), "parts": list(parts)}
    message = {"author": {"role": role}, "content": content, "recipient": "all", "metadata": {}, **more}
    return {"parent": parent, "children": [], "message": message if role else None}


def chat(**given: Any) -> dict[str, Any]:
    mapping = {
        "root": node(None),
        "rules": node("root", "system", "Be nice."),
        "profile": node("rules", "user", "I am Ada.", metadata={"is_visually_hidden_from_conversation": True}),
        "q": node("profile", "user", "How long does sourdough rise?"),
        "old": node("q", "assistant", "An hour."),
        "look": node("q", "assistant", '{"query": "sourdough"}', recipient="browser"),
        "tool": node("look", "tool", "Wikipedia says …"),
        "think": node("tool", "assistant", "Let me see.", content_type="thoughts"),
        "a": node("think", "assistant", "Overnight.", {"content_type": "audio", "text": "In the fridge."}),
    }
    whole = {"conversation_id": "c1", "title": "Bread", "create_time": 1735689600.5, "current_node": "a"}
    return {**whole, "mapping": mapping, **given}


BREAD = "**You:**\n\nHow long does sourdough rise?\n\n**ChatGPT:**\n\nOvernight.\n\nIn the fridge.\n"


def test_a_conversation_with_chatgpt_is_what_was_said_on_the_way_to_its_end(tmp_path: Path) -> None:
    """Without the answer that was asked for again, what was thought, looked up, or hidden."""
    path = write(tmp_path / "conversations.json", [chat()])
    created = NEW_YEAR.replace(microsecond=500_000)
    draft = Draft(BREAD, "Bread", ("chatgpt",), thread="c1", created_at=created, fields={"private": True})
    assert read("chatgpt", path) == [Item("c1", draft, "chatgpt/bread")]
    assert (importers.detect(path), importers.detect(tmp_path)) == ("chatgpt", "chatgpt")


def test_an_export_of_chatgpt_in_several_files_with_damage_in_between(tmp_path: Path) -> None:
    circle = {"x": node("y", "user", "Round"), "y": node("x", "assistant", "and round")}
    write(tmp_path / "conversations-000.json", [chat(), 3, chat(conversation_id=None), chat(mapping=[])])
    write(
        tmp_path / "conversations-001.json",
        [
            chat(conversation_id="c2", mapping=circle, current_node="y", title=None),
            chat(conversation_id="c3", mapping={}, title="Nothing"),
            chat(conversation_id="c4", current_node="gone"),
        ],
    )
    write(tmp_path / "user.json", {"id": "me"})
    found = read("chatgpt", tmp_path)
    assert [type(each) for each in found] == [Item, Problem, Problem, Problem, Item, Skipped, Item]
    assert [(each.key, each.draft.title) for each in found if isinstance(each, Item)] == [
        ("c1", "Bread"), ("c2", "Round"), ("c4", "Bread"),
    ]  # fmt: skip


def test_conversations_are_private_and_known_again(bank: Bank, tmp_path: Path) -> None:
    secret = chat(conversation_id="c2", title="Deploys", mapping={"a": node(None, "user", f"Use {TOKEN} for it.")})
    path = write(tmp_path / "export/conversations.json", [chat(), {**secret, "current_node": "a"}])
    ids = ["notes:private/chatgpt/bread", "notes:private/chatgpt/deploys"]
    for dry_run in (True, False):
        outcomes = list(import_from(bank, path.parent, dry_run=dry_run))
        assert [(outcome.status, outcome.id) for outcome in outcomes] == [("new", id) for id in ids]
    assert statuses(bank, path.parent) == ["same", "same"]
    assert [memory.id for memory in bank.list()] == ids
    assert TOKEN not in bank.notes.fetch("private/chatgpt/deploys").text
    longer = chat()
    longer["mapping"]["z"] = node("a", "user", "Thanks!")
    write(path, [{**longer, "current_node": "z"}, {**secret, "current_node": "a"}])
    assert statuses(bank, path.parent) == ["changed", "same"]
    assert statuses(bank, path.parent, update=True) == ["updated", "same"]
    assert bank.get("notes:private/chatgpt/bread").text.endswith("**You:**\n\nThanks!\n")
    assert [hit.memory.title for hit in bank.search("how does bread rise", 1)] == ["Bread"]
    bank.delete("notes:private/chatgpt/bread")
    assert statuses(bank, path.parent) == ["same", "same"]


# -- Claude.ai

CLAUDE: dict[str, Any] = {
    "uuid": "u1",
    "name": "Bread",
    "created_at": "2025-01-01T00:00:00.000000Z",
    "chat_messages": [
        {"sender": "human", "text": "How long?", "content": [{"type": "text", "text": "How long?"}]},
        {
            "sender": "assistant",
            "text": "",
            "content": [
                {"type": "thinking", "thinking": "Hmm."},
                {"type": "tool_use", "input": {}},
                {"type": "text", "text": "Overnight."},
            ],
        },
        {"sender": "human", "text": "Thanks"},
        "damaged",
    ],
}


def test_an_export_of_claude_ai_has_conversations_memories_and_projects(tmp_path: Path) -> None:
    write(tmp_path / "conversations.json", [CLAUDE, {"uuid": "u2", "name": "", "chat_messages": []}, {"name": "x"}])
    write(tmp_path / "users.json", [{"uuid": "me"}])
    write(
        tmp_path / "projects.json",
        [
            {
                "uuid": "p1",
                "name": "Shop",
                "prompt_template": "Prices are in cents.",
                "created_at": "2025-01-01T00:00:00Z",
                "docs": [{"uuid": "d1", "filename": "faq.md", "content": "# FAQ", "created_at": "2025-01-01"}],
            }
        ],
    )
    write(
        tmp_path / "memories.json",
        [{"conversations_memory": "Ada bakes.", "project_memories": {"p1": "The shop sells bread."}}],
    )
    found = read("claude-ai", tmp_path)
    items = {each.key: each for each in found if isinstance(each, Item)}
    assert {key: (item.draft.title, item.draft.text, item.name) for key, item in items.items()} == {
        "p1/instructions": ("Shop: instructions", "Prices are in cents.\n", "claude-ai/Shop/instructions"),
        "p1/d1": ("Shop: faq.md", "# FAQ\n", "claude-ai/Shop/faq"),
        "memory/user": ("What Claude remembers of you", "Ada bakes.\n", "claude-ai/memory"),
        "memory/p1": ("What Claude remembers of Shop", "The shop sells bread.\n", "claude-ai/Shop/memory"),
        "u1": (
            "Bread",
            "**You:**\n\nHow long?\n\n**Claude:**\n\nOvernight.\n\n**You:**\n\nThanks\n",
            "claude-ai/bread",
        ),
    }
    assert all(item.draft.fields == {"private": True} for item in items.values())
    assert items["u1"].draft.created_at == NEW_YEAR
    assert [type(each) for each in found if not isinstance(each, Item)] == [Skipped, Problem]
    assert importers.detect(tmp_path) == importers.detect(tmp_path / "conversations.json") == "claude-ai"


def test_an_export_of_claude_ai_is_imported_once(bank: Bank, tmp_path: Path) -> None:
    path = write(tmp_path / "export/conversations.json", [CLAUDE])
    assert (statuses(bank, path.parent), statuses(bank, path)) == (["new"], ["same"])


# -- Letta

AGENT: dict[str, Any] = {
    "agents": [{"name": "helper", "block_ids": ["block-0"]}, {"name": "scout", "block_ids": ["block-1", "block-2"]}],
    "blocks": [
        {"id": "block-0", "label": "human", "value": "Name: Ada", "description": "About the user", "tags": ["people"]},
        {"id": "block-1", "label": "human", "value": "Name: Bob", "read_only": True},
        {"id": "block-2", "label": "human", "value": "Name: Cyd"},
        {"id": "block-3", "label": "notes/todo", "value": " "},
        {"id": "block-4", "label": "damaged"},
    ],
    "files": [{"file_name": "faq.md", "content": "# FAQ"}, {"file_name": "far.pdf"}],
    "created_at": "2025-01-01T00:00:00Z",
}


@pytest.mark.parametrize("wrap", [lambda value: value, json.dumps], ids=["as it is", "within a string"])
def test_the_blocks_of_a_letta_agent(wrap: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "agents.af", json.dumps(wrap(AGENT)))
    ada = Draft("Name: Ada\n", "helper: human", ("people",), "fact", created_at=NEW_YEAR)
    ada = replace(ada, fields={"description": "About the user"})
    bob = Draft("Name: Bob\n", "scout: human", (), "fact", created_at=NEW_YEAR, fields={"read_only": True})
    assert read("letta", path) == [
        Item("helper/human", ada, "letta/helper/human"),
        Item("scout/human", bob, "letta/scout/human"),
        Item("scout/human-2", replace(bob, text="Name: Cyd\n", fields={}), "letta/scout/human-2"),
        Skipped("helper/notes/todo", "empty"),
        Problem(path, "block 5 is not a whole one"),
        Item(
            "helper/files/faq.md",
            Draft("# FAQ\n", "faq.md", (), "fact", created_at=NEW_YEAR),
            "letta/helper/files/faq.md",
        ),
        Skipped("far.pdf", "its text is not in the file"),
    ]
    assert importers.detect(path) == "letta"


def test_an_old_agent_file_of_letta_is_the_agent_itself(bank: Bank, tmp_path: Path) -> None:
    old = {"agent_type": "memgpt_agent", "name": "old", "core_memory": [{"label": "human", "value": "Name: Ada"}]}
    path = write(tmp_path / "old.af", old)
    assert (importers.detect(path), statuses(bank, path), statuses(bank, path)) == ("letta", ["new"], ["same"])
    assert bank.get("notes:letta/old/human").text == "Name: Ada\n"


# -- basic-memory


def test_a_project_of_basic_memory_keeps_its_relations(bank: Bank, tmp_path: Path) -> None:
    """Links by title and by permalink name the notes' files, and a relation carries its wording."""
    front = "---\ntitle: {}\ntype: note\npermalink: {}\ntags: [x]\n---\n\n"
    write(
        tmp_path / "kb/design/Search.md",
        front.format("Search Design", "design/search")
        + "- [decision] Words and vectors are fused #ranking\n- implements [[Search Spec]]\n"
        + "- part of [[memory://specs/far]] and more\n\nSee [[design/search]] and [[Nobody]].\n",
    )
    write(tmp_path / "kb/specs/spec-1.md", front.format("Search Spec", "specs/search-spec") + "The spec.\n")
    write(tmp_path / "kb/specs/far.md", front.format("Far", "specs/far") + "Far away.\n")
    path = tmp_path / "kb"
    assert importers.detect(path) == "basic-memory"
    assert (statuses(bank, path), statuses(bank, path)) == (["new"] * 3, ["same"] * 3)
    note = bank.get("notes:design/Search")
    assert note.text == (
        "- [decision] Words and vectors are fused #ranking\n- implements [[specs/spec-1|type:implements]]\n"
        "- part of [[memory:specs/far|type:part of]] and more\n\nSee [[design/Search]] and [[Nobody]].\n"
    )
    assert (note.tags, note.fields["permalink"]) == (("x", "ranking"), "design/search")
    assert [(link.memory.id, link.edge_type) for link in bank.linked("specs/spec-1")] == [
        ("notes:design/Search", "implements")
    ]


def test_a_folder_without_permalinks_is_none_of_basic_memorys(tmp_path: Path) -> None:
    write(tmp_path / "kb/a.md", "---\ntitle: A\n---\n\nText.\n")
    write(tmp_path / "kb/b.md", "Text.\n")
    assert importers.detect(tmp_path / "kb") == "markdown"
