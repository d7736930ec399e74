"""The filters of a search are columns that an open bank keeps in memory; they follow what is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memlane import Bank
from memlane.index import kept_columns
from memlane.recall.layout import layout_of, least_of_best

FILTERS: list[dict[str, Any]] = [
    {"type": "plan"}, {"lane": "notes"}, {"lane": "topics"}, {"tags": ["ops"]}, {"tags": ["ops", "pets"]},
    {"scope": "user:ann"}, {"since": "2024-02-01"}, {"until": "2024-02-01"}, {"status": "archived"}, {"archived": True},
    {"type": "plan", "tags": ["ops"], "since": "2024-01-01"},
]  # fmt: skip


def found(bank: Bank) -> list[set[str]]:
    return [{hit.memory.id for hit in bank.search("deploy", 20, **filters)} for filters in FILTERS]


@pytest.mark.parametrize("small", [0, kept_columns.SMALL])
def test_filters_follow_what_is_added_changed_and_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    """An open bank answers as one that is opened anew does, whether it extends its columns or reads them again."""
    monkeypatch.setattr(kept_columns, "SMALL", small)
    bank = Bank.init(tmp_path)
    bank.add("We deploy on Tuesdays.", title="a", type="plan", tags=["ops"], created_at="2024-01-10")
    bank.add("Ann may deploy.", title="b", scope="user:ann", tags=["pets"], created_at="2024-03-10")
    before = found(bank)
    bank.add("Deploy by hand.", title="c", type="plan", tags=["ops"], scope="user:ann", created_at="2024-02-10")
    bank.add("Who may deploy", lane="topics", topic="deploying", problem="who may deploy", solution="ann")
    bank.update("notes:b", tags=["ops"])
    bank.delete("notes:a")
    now = found(bank)
    with Bank.open(tmp_path) as anew:
        assert (now, now != before) == (found(anew), True)


def test_a_memory_without_a_date_is_neither_before_nor_after_one(tmp_path: Path) -> None:
    (tmp_path / ".memories").mkdir()
    (tmp_path / ".memories" / "n.md").write_text("We deploy on Tuesdays.")
    bank = Bank.init(tmp_path)
    dated = [hit.memory.id for hit in bank.search("deploy") if hit.memory.created_at or hit.memory.updated_at]
    assert [hit.memory.id for hit in bank.search("deploy", until="2100-01-01")] == dated


@pytest.mark.parametrize("count", [1, 10, 200])
def test_the_last_of_the_best_scores_is_that_of_sorting_them_all(count: int) -> None:
    of = np.random.default_rng(3)
    for scores in (of.random(5000), of.random(100), np.repeat(of.random(50), 100), np.zeros(5000), of.random(5000) - 1):
        scores = scores.astype(np.float32)
        expected = max(float(np.sort(scores)[-count]), 0.0) if len(scores) > count else 0.0
        assert least_of_best(scores, count) == expected


def test_what_is_kept_of_terms_changes_no_answer(tmp_path: Path) -> None:
    """An open bank that keeps no term answers as one that keeps them all."""
    bank = Bank.init(tmp_path)
    bank.add("We deploy on Tuesdays, and never deploy before a holiday.", title="a", created_at="2024-01-10")
    bank.add("Ann may deploy by hand.", title="b", created_at="2024-02-10")
    queries = ["deploy Tuesdays", "Ann deploy hand", "deploy Tuesdays", "holiday", '"by hand" deploy', "deploy -Ann"]
    kept = [bank.search(query) for query in queries]
    with Bank.open(tmp_path) as other:
        other.search("deploy")
        layout = layout_of(other.index, other.index.columns())
        layout.room = 0
        assert [other.search(query) for query in queries] == kept
        assert len(layout.kept) <= 3  # those of the last query


def test_a_misspelt_word_has_a_meaning_as_soon_as_the_bank_has_the_word(tmp_path: Path) -> None:
    bank = Bank.init(tmp_path)
    bank.add("The lighthouse stands in Oslo.", title="a")
    before = [hit.memory.id for hit in bank.search("quokkka") if hit.why["covered"] == 1]
    bank.add("A quokka lives on the island.", title="b")
    after = [hit.memory.id for hit in bank.search("quokkka") if hit.why["covered"] == 1]
    assert (before, after) == ([], ["notes:b"])
