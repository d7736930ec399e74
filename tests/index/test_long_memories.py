"""Long memories do not fill the memory of the process: of those that were read, only a little is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlane import Bank
from memlane.index import kept_rows, writing
from memlane.index.chunks import HEADING, PATH, chunks
from memlane.index.preparing import PLACED, prepare
from samples import words


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    bank = Bank.init(tmp_path)
    for number in range(5):
        (bank.root / f"n{number}.md").write_text(words(number))
    bank.index.refresh(force=True)
    return bank


def test_memories_that_were_read_are_kept_while_they_are_short(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    first = bank.index.memories([1])[1]
    bank.index.memories([2])
    assert bank.index.memories([1])[1] is first
    monkeypatch.setattr(kept_rows, "LENGTH", 1)
    bank.index.memories([3])
    assert bank.index.memories([1]) == {1: first}
    assert bank.index.memories([1])[1] is not first


def test_chunks_are_numbered_anew_a_few_memories_at_a_time(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[int] = []

    def counting(memories: list[object], encoder: object) -> object:
        prepared.append(len(memories))
        return writing_prepare(memories, encoder)

    writing_prepare = writing.prepare
    monkeypatch.setattr(writing, "prepare", counting)
    monkeypatch.setattr(writing, "AT_ONCE", 1)
    before = [(hit.memory.id, hit.score) for hit in bank.search(words(3), 5)]
    with bank.index._writing() as db:
        writing.renumber(db, bank.index.encoder)
    assert [(hit.memory.id, hit.score) for hit in bank.search(words(3), 5)] == before
    assert prepared == [1] * 5


def test_a_very_long_heading_is_cut_in_the_paths_and_stays_whole_in_the_text() -> None:
    name = "word " * 1_000 + "end"
    text = f"# {name}\n\n{words(1, 300)}\n\n## Short\n\n{words(2, 300)}\n"
    found = chunks(text)
    above = f"{name[: HEADING - 1]}…"
    assert list(dict.fromkeys(piece.header_path for piece in found)) == [above, f"{above} > Short"]
    assert "".join(piece.text for piece in found) == text


def test_a_path_of_many_long_headings_is_cut() -> None:
    names = [f"{level} " + "word " * 50 for level in range(1, 7)]
    text = "".join(f"{'#' * level} {name}\n\n" for level, name in enumerate(names, 1)) + words(1, 300)
    assert chunks(text)[-1].header_path == f"{' > '.join(name.strip() for name in names)[: PATH - 1]}…"


def test_the_end_of_a_very_long_heading_is_found_in_one_chunk_and_that_of_a_title_too(bank: Bank) -> None:
    (bank.root / "heading.md").write_text(f"# {'word ' * 1_000}zebra\n\n{words(6, 300)}")
    many = "word " * 400
    (bank.root / "title.md").write_text(f"---\ntitle: {many}okapi\naka: {many}quagga\n---\n{words(7, 300)}")
    wanted = {"zebra": "heading", '"word zebra"': "heading", "okapi": "title", "quagga": "title"}
    assert {query: bank.search(query, 1)[0].memory.native_id for query in wanted} == wanted
    memories = [bank.get("notes:heading"), bank.get("notes:title")]
    prepared = prepare(memories, bank.index.encoder)
    assert min(prepared.counts) > 1
    postings = {term: len(data) // PLACED.itemsize for term, data in prepared.postings.items()}
    assert (postings["zebra"], postings["okapi"], postings["quagga"]) == (1, 1, 1)
