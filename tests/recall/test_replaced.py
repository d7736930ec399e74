"""A memory that takes the place of another: said once, honoured everywhere, and taken back with it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from memlane import Bank
from memlane.core.errors import NotFound
from memlane.core.model import Memory
from memlane.exchange.export import lines
from memlane.exchange.imports import import_from
from memlane.recall.superseded import marked


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return Bank.init(tmp_path / "one")


@pytest.fixture
def pair(bank: Bank) -> tuple[Memory, Memory]:
    old = bank.add("Deploys go out on Tuesdays.", title="Deploy day", tags=["release"], type="fact")
    return old, bank.add("Releases ship on Thursdays.", title="Ship day", replaces=old.id)


@pytest.fixture(autouse=True)
def folders(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()


def test_the_new_one_keeps_the_labels_and_both_know_each_other(bank: Bank, pair: tuple[Memory, Memory]) -> None:
    old, new = pair
    assert (new.tags, new.type, new.replaces) == (("release",), "fact", (old.id,))
    assert (bank.get(old.id).superseded_by, bank.get(new.id).replaces) == (new.id, (old.id,))
    assert [(memory.id, memory.superseded_by) for memory in bank.list()] == [(new.id, None), (old.id, new.id)]


def test_words_of_the_old_one_find_the_new_one_above_it(bank: Bank, pair: tuple[Memory, Memory]) -> None:
    old, new = pair
    hits = bank.search("when do deploys go out? on tuesdays")
    assert [(hit.memory.id, hit.memory.superseded_by) for hit in hits] == [(new.id, None), (old.id, new.id)]


def test_a_filter_that_leaves_the_new_one_out_shows_the_old_one_marked(bank: Bank) -> None:
    old = bank.add("Deploys go out on Tuesdays.", type="fact")
    new = bank.add("Deploys go out on Thursdays.", type="plan", replaces=old.id)
    [hit] = bank.search("deploys", type="fact")
    assert (hit.memory.id, hit.memory.superseded_by) == (old.id, new.id)


def test_a_block_has_the_new_one_alone(bank: Bank, pair: tuple[Memory, Memory]) -> None:
    old, new = pair
    block = bank.context("deploys go out on tuesdays")
    assert [memory.id for memory in block.memories] == [new.id]
    assert (old.id, f"{new.id} took its place") in [tuple(item) for item in block.left_out]
    assert str(bank.context("deploys go out on tuesdays", without=[new.id])) == ""


def test_the_snapshot_shows_what_took_the_place_of_canon(bank: Bank) -> None:
    old = bank.add("The API port is 8080.", lane="vault", tier="canon")
    note = bank.add("The API port is 9090, see the runbook.", lane="notes", replaces=old.id)
    assert [memory.id for memory in bank.snapshot().memories] == [note.id]


def test_what_replaces_a_record_stays_in_its_place(bank: Bank) -> None:
    old = bank.add("The API port is 8080.", lane="vault", tier="canon", scope="orion", type="infra")
    new = bank.add("The API port is 9090.", replaces=old.id)
    assert (new.lane, new.scope, new.type, new.fields["tier"]) == ("vault", "orion", "infra", "canon")


def test_keywords_that_a_record_got_from_its_text_are_not_those_of_what_replaces_it(bank: Bank) -> None:
    """Else a text that is forgotten would be left in the memory that took its place, word by word."""
    old = bank.add("Nadia's landlord raised the rent in Lindenstrasse.", lane="records")
    new = bank.add("Everybody pays less.", replaces=old.id)
    assert (set(old.tags) & set(new.tags), new.tags != ()) == (set(), True)
    labelled = bank.add("The landlord phoned.", lane="records", tags=["flat"])
    assert bank.add("The landlord wrote.", replaces=labelled.id).tags == ("flat",)


def test_what_replaces_a_keyed_register_is_its_next_version(bank: Bank) -> None:
    old = bank.add("Working on search.", lane="vault", tier="register", topic_id="now")
    new = bank.add("Working on export.", replaces=old.id)
    assert (new.id, new.fields["version"], new.replaces) == (old.id, 2, ())


def test_a_repetition_may_replace_what_it_repeats(bank: Bank) -> None:
    old = bank.add("Deploys go out on Tuesdays", lane="vault", tier="canon")
    assert bank.add("On Tuesdays deploys go out", replaces=old.id).replaces == (old.id,)


def test_deleting_the_new_one_releases_the_old_one(bank: Bank, pair: tuple[Memory, Memory]) -> None:
    old, new = pair
    bank.delete(new.id)
    assert bank.get(old.id).superseded_by is None
    bank.restore(new.id)
    assert bank.get(old.id).superseded_by == new.id


def test_a_chain_leads_to_its_end_also_past_what_was_deleted(bank: Bank, pair: tuple[Memory, Memory]) -> None:
    old, new = pair
    last = bank.add("Releases ship on Fridays.", replaces=new.id)
    bank.delete(new.id)
    assert bank.get(old.id).superseded_by == last.id


def test_a_name_that_is_used_again_replaces_nothing(bank: Bank, pair: tuple[Memory, Memory]) -> None:
    old, new = pair
    bank.delete(new.id)
    assert bank.add("Something else, about lunch.", title="Ship day").id == new.id
    assert bank.get(old.id).superseded_by is None


def test_what_is_not_there_cannot_be_replaced(bank: Bank) -> None:
    with pytest.raises(NotFound):
        bank.add("Deploys go out on Fridays.", replaces="notes:nothing")
    assert bank.list() == []


def test_forgetting_either_leaves_no_line(bank: Bank, pair: tuple[Memory, Memory]) -> None:
    assert (bank.root / "replaced.jsonl").exists()
    bank.forget(pair[0].id)
    assert not (bank.root / "replaced.jsonl").exists()


def test_the_lines_mean_the_same_in_any_order(bank: Bank, pair: tuple[Memory, Memory]) -> None:
    path = bank.root / "replaced.jsonl"
    bank.replaced.end(pair[1].id, bank.get(pair[1].id).created_at)  # type: ignore[arg-type]
    values = [json.loads(line) for line in path.read_text().splitlines()]
    values[1]["at"] = "2099-01-01T00:00:00Z"
    path.write_text("".join(json.dumps(value) + "\n" for value in reversed(values)) + "<<<<<<< ours\n")
    assert bank.get(pair[0].id).superseded_by is None
    assert [problem.line for problem in bank.problems()] == [3]


def test_an_export_carries_it(bank: Bank, pair: tuple[Memory, Memory], tmp_path: Path) -> None:
    exported = tmp_path / "out.jsonl"
    exported.write_text("\n".join(lines(marked(bank, bank.memories()))))
    other = Bank.init(tmp_path / "two")
    list(import_from(other, exported))
    assert other.get(pair[0].id).superseded_by == pair[1].id


def test_another_bank_brings_it_along(bank: Bank, pair: tuple[Memory, Memory], tmp_path: Path) -> None:
    other = Bank.init(tmp_path / "two")
    list(import_from(other, tmp_path / "one"))
    assert other.get(pair[0].id).superseded_by == pair[1].id


def test_the_graph_has_an_edge(bank: Bank, pair: tuple[Memory, Memory]) -> None:
    edges = [edge for edge in bank.graph()["edges"] if edge["edge_type"] == "SUPERSEDES"]
    assert [(edge["source"], edge["target"]) for edge in edges] == [(pair[1].id, pair[0].id)]


def test_a_name_that_is_used_again_is_nobodys_successor_although_a_clock_was_ahead(
    bank: Bank, pair: tuple[Memory, Memory]
) -> None:
    old, new = pair
    path = bank.root / "replaced.jsonl"
    path.write_text(re.sub(r'"at":"20\d\d', '"at":"2098', path.read_text()))
    bank.delete(new.id)
    again = bank.add("The ship is called Ship day.", title="Ship day")
    assert (again.id, bank.get(old.id).superseded_by) == (new.id, None)
