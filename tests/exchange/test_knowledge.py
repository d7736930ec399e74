"""A knowledge graph as notes: what is written is read again as it was, by people, by search, and by the importer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlane import Bank
from memlane.core.errors import NotFound, Refused
from memlane.core.model import Memory
from memlane.exchange import entities, knowledge
from memlane.exchange.entities import Entity, Relation
from memlane.exchange.imports import import_from

ADA: dict[str, Any] = {"name": "Ada", "entityType": "person", "observations": ["Speaks Spanish", "Likes tea"]}
ACME: dict[str, Any] = {"name": "Acme Corp", "entityType": "company", "observations": []}
WORKS: dict[str, str] = {"from": "Ada", "to": "Acme Corp", "relationType": "works_at"}


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    (tmp_path / "project").mkdir()
    return Bank.init(tmp_path / "project")


def test_an_entity_is_a_note_that_people_can_read(bank: Bank) -> None:
    knowledge.create_entities(bank, [ADA, ACME])
    knowledge.create_relations(bank, [WORKS])
    note = bank.get("notes:entities/Ada")
    assert (note.title, note.tags, note.type) == ("Ada", ("person",), "fact")
    assert note.text == ("# Ada\n\n- Speaks Spanish\n- Likes tea\n\n- works_at [[entities/Acme Corp|type:works_at]]\n")
    assert [hit.memory.id for hit in bank.search("who speaks Spanish", 1)] == ["notes:entities/Ada"]
    assert [link.memory.id for link in bank.linked("entities/Acme Corp")] == ["notes:entities/Ada"]


def test_what_people_write_into_the_note_is_part_of_the_graph(bank: Bank) -> None:
    knowledge.create_entities(bank, [ADA, ACME])
    bank.update(
        "notes:entities/Ada", "# Ada\n\nMet her in Oslo.\n\n- knows [[entities/Acme Corp|type:knows]]\n- Has a dog\n"
    )
    knowledge.add_observations(bank, [{"entityName": "Ada", "contents": ["Plays chess"]}])
    assert knowledge.opened(bank, ["Ada"]) == {
        "entities": [
            {"name": "Ada", "entityType": "person", "observations": ["Met her in Oslo.", "Has a dog", "Plays chess"]}
        ],
        "relations": [{"from": "Ada", "to": "Acme Corp", "relationType": "knows"}],
    }


def test_names_that_a_file_system_cannot_tell_apart_are_two_entities(bank: Bank) -> None:
    names = ["Ada", "ada", "a/b", "a-b", "a|b", "", " x ", "日本"]
    for name in names:
        knowledge.create_relations(bank, [{"from": "Ada", "to": name, "relationType": "knows"}])
    knowledge.create_entities(bank, [{"name": name, "entityType": "", "observations": []} for name in names])
    graph = knowledge.read(bank)
    assert [entity["name"] for entity in graph["entities"]] == names
    assert [relation["to"] for relation in graph["relations"]] == names


def test_a_relation_of_what_is_no_entity_waits_until_it_is_one(bank: Bank) -> None:
    knowledge.create_relations(bank, [WORKS])
    assert knowledge.read(bank) == {"entities": [], "relations": [WORKS]}
    with pytest.raises(NotFound, match="Entity with name Ada not found"):
        knowledge.add_observations(bank, [{"entityName": "Ada", "contents": ["x"]}])
    assert knowledge.create_entities(bank, [ADA]) == [ADA]
    assert knowledge.read(bank) == {"entities": [ADA], "relations": [WORKS]}
    knowledge.delete_entities(bank, ["Acme Corp"])
    assert knowledge.read(bank) == {"entities": [ADA], "relations": []}
    assert knowledge.create_relations(bank, [{**WORKS, "from": "Bob"}, {**WORKS, "from": "Bob"}]) == [
        {**WORKS, "from": "Bob"}
    ]
    knowledge.delete_relations(bank, [{**WORKS, "from": "Bob"}])
    assert [memory.id for memory in bank.list()] == ["notes:entities/Ada"]


def test_a_refused_call_stores_nothing(bank: Bank) -> None:
    token = "ghp_" + "A9s8d7f6g5h4j3k2l1q0w9e8r7t6y5u4i3o2"
    with pytest.raises(Refused):
        knowledge.create_entities(bank, [ADA, {**ACME, "observations": [f"token {token}"]}])
    assert bank.list() == []


def test_a_deleted_entity_can_be_made_again_and_a_deletion_undone(bank: Bank) -> None:
    knowledge.create_entities(bank, [ADA])
    knowledge.delete_entities(bank, ["Ada", "Nobody"])
    assert knowledge.read(bank) == {"entities": [], "relations": []}
    assert knowledge.create_entities(bank, [ADA]) == [ADA]
    knowledge.delete_entities(bank, ["Ada"])
    bank.undo()
    assert knowledge.read(bank) == {"entities": [ADA], "relations": []}


def test_an_imported_graph_is_gone_on_with(bank: Bank, tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    parts = [{"type": "entity", **ADA}, {"type": "entity", **ACME}, {"type": "relation", **WORKS}]
    file.write_text("\n".join(map(json.dumps, parts)))
    assert [outcome.status for outcome in import_from(bank, file)] == ["new", "new"]
    assert knowledge.create_entities(bank, [ADA]) == []
    graph = knowledge.read(bank)
    assert sorted(graph["entities"], key=lambda entity: entity["name"]) == [ACME, ADA]
    assert graph["relations"] == [WORKS]


def test_two_processes_lose_nothing_of_each_others(bank: Bank) -> None:
    """Each adds observations to the one entity that both have, and entities of its own."""
    knowledge.create_entities(bank, [{**ADA, "observations": []}])
    program = (
        "import sys\n"
        "from memlane import Bank\n"
        "from memlane.exchange import knowledge\n"
        "bank, who = Bank.open(sys.argv[1]), sys.argv[2]\n"
        "for number in range(12):\n"
        "    knowledge.add_observations(bank, [{'entityName': 'Ada', 'contents': [f'{who} {number}']}])\n"
        "    knowledge.create_entities(bank, [{'name': f'{who} {number}', 'entityType': 't', 'observations': []}])\n"
        "    knowledge.create_relations(bank, [{'from': 'Ada', 'to': f'{who} {number}', 'relationType': 'has'}])\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, bank.root, who]) for who in ("one", "two")]
    assert [process.wait(120) for process in running] == [0, 0]
    graph = knowledge.read(bank)
    every = sorted(f"{who} {number}" for who in ("one", "two") for number in range(12))
    assert sorted(graph["entities"][0]["observations"]) == every
    assert sorted(entity["name"] for entity in graph["entities"][1:]) == every
    assert sorted(relation["to"] for relation in graph["relations"]) == every


TEXTS = st.text(max_size=30) | st.sampled_from(
    [
        "",
        "- a",
        "# a",
        "a\n- b",
        "a\n\n\nb",
        "\n",
        " a",
        "a\r\nb",
        '`"a"`',
        "`{}`",
        "a [[entities/b|type:a]]",
        "a\n  b",
        "  ",
    ]
)


@given(TEXTS, TEXTS, st.lists(TEXTS, max_size=4), st.lists(st.builds(Relation, TEXTS, TEXTS), max_size=3))
def test_any_text_comes_back_as_it_was(name: str, kind: str, seen: list[str], relations: list[Relation]) -> None:
    entity = Entity(name, kind, tuple(seen), tuple(relations))
    others = {other: f"entities/file-{number}" for number, (_, other) in enumerate(relations) if number % 2}
    draft = entities.draft(entity, others)
    note = Memory("notes:x", "notes", draft.text, draft.title or "", "", draft.tags, fields=draft.fields)
    assert entities.read(note, {file: other for other, file in others.items()}) == entity
