"""A sixth lane is one module and one line in the registry: everything that works on a bank works on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import tree
from memlane import Bank, NotFound
from memlane.care.doctor import examine
from memlane.care.validate import validate
from memlane.core.model import Plan, Step
from memlane.disk import journal as journals
from memlane.exchange import export
from memlane.exchange.editing import opened, save
from memlane.exchange.imports import import_from
from memlane.history.merge import merge
from memlane.lanes import LANES, Registered
from toy_lane import ToyLane

KITE = "The kite needs a tail of two metres."


@pytest.fixture
def bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bank]:
    monkeypatch.setitem(LANES, "toys", Registered("toy_lane", "ToyLane", "toys"))
    with Bank.init(tmp_path) as bank:
        yield bank


def test_it_is_one_of_the_lanes(bank: Bank) -> None:
    assert isinstance(bank.lane("toys"), ToyLane)
    memory = bank.add(KITE, lane="toys", title="Kite")
    assert memory.id == "toys:kite"
    assert (bank.root / "toys/kite.md").read_text() == f"Kite\n\n{KITE}\n"
    assert bank.get("kite").text == KITE
    assert [one.id for one in bank.list()] == ["toys:kite"]
    assert bank.stats()["lanes"]["toys"] == {"count": 1, "archived": 0, "bytes": len(f"Kite\n\n{KITE}\n")}


def test_it_is_found_and_handed_to_a_prompt(bank: Bank) -> None:
    bank.add(KITE, lane="toys", title="Kite")
    assert [hit.memory.id for hit in bank.search("how long is the tail?")] == ["toys:kite"]
    assert KITE in bank.context("how long is the tail of a kite?")


def test_it_changes_and_comes_back(bank: Bank) -> None:
    bank.add(KITE, lane="toys", title="Kite")
    bank.append("toys:kite", "And a string.")
    bank.update("toys:kite", title="Red kite")
    assert bank.get("toys:kite").title == "Red kite"
    bank.delete("toys:kite")
    assert bank.list() == []
    assert bank.restore("toys:kite").text == f"{KITE}\n\nAnd a string."


def test_forget_leaves_nothing(bank: Bank, tmp_path: Path) -> None:
    bank.add(KITE, lane="toys", title="Kite")
    bank.search("kite")
    bank.delete("toys:kite")
    bank.add(KITE, lane="toys", title="Kite")
    done = bank.forget("toys:kite")
    assert {(piece.id, piece.what) for piece in done.removed} >= {("toys:kite", "file"), ("toys:kite", "trash")}
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and KITE.encode() in path.read_bytes()]
    with pytest.raises(NotFound):
        bank.get("toys:kite")


def test_undo_takes_back_what_a_plan_did(bank: Bank) -> None:
    bank.add(KITE, lane="toys", title="Kite")
    before = (bank.root / "toys/kite.md").read_bytes()
    with journals.change("review") as journal:
        journal.begin("toys:kite", "delete")
        bank.delete("toys:kite")
    assert bank.undo().restored == ("toys/kite.md",)
    assert (bank.root / "toys/kite.md").read_bytes() == before
    assert [memory.id for memory in bank.list()] == ["toys:kite"]


def test_doctor_and_validate_ask_it_for_its_rules(bank: Bank, tmp_path: Path) -> None:
    bank.add("long " * 300, lane="toys", title="Long")
    bank.index.refresh()
    [problem] = validate(bank, lane="toys")
    assert (problem.path.name, problem.why) == ("long.md", "is too long for a toy")
    findings = [one for one in examine(str(tmp_path)).findings if one.check == "format"]
    assert [(one.where, one.why) for one in findings] == [
        (str(bank.root / "toys/long.md"), "is too long for a toy"),
    ]


def test_review_and_prune_pass_it_by(bank: Bank) -> None:
    bank.add(KITE, lane="toys", title="Kite")
    assert bank.review() == Plan()
    assert bank.apply(Plan((Step("toys:kite", "archive", ""),))) == Plan()


def test_it_is_edited_whole(bank: Bank) -> None:
    bank.add(KITE, lane="toys", title="Kite")
    assert save(bank, opened(bank, "toys:kite"), "Kite\n\nBlue.\n").text == "Blue."


def test_it_goes_out_and_comes_in_again(bank: Bank, tmp_path: Path) -> None:
    bank.add(KITE, lane="toys", title="Kite")
    bank.add("A top spins.", lane="toys", title="Top")
    (tmp_path / "out.jsonl").write_text("".join(f"{line}\n" for line in export.lines(bank.memories())))
    before = tree(bank.root / "toys")
    bank.forget("toys:kite", "toys:top")
    bank.tombstones.lift(KITE)
    bank.tombstones.lift("A top spins.")
    assert [outcome.id for outcome in import_from(bank, tmp_path / "out.jsonl")] == ["toys:kite", "toys:top"]
    assert tree(bank.root / "toys") == before


def test_branches_merge(bank: Bank) -> None:
    base, ours, theirs = b"Kite\n\nRed.\n", b"Kite\n\nRed.\n\nOurs.\n", b"A kite\n\nRed.\n"
    assert merge("toy", base, ours, theirs) == b"A kite\n\nRed.\n\nOurs.\n"
