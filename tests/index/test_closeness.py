"""What the index keeps of a text for a closer look."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlane import Bank
from memlane.index import closeness, seal
from memlane.index.encoders import STATIC, StaticEncoder, built_in

LONGER = ("Boats", "", "The harbour is large. The ferry leaves at nine! Bring a coat")


@pytest.fixture(scope="module")
def encoder() -> StaticEncoder:
    return StaticEncoder()


def looked_at(encoder: StaticEncoder, query: str, *chunks: tuple[str, str, str]) -> tuple[list[float], list[float]]:
    _, passages = closeness.passages(encoder, chunks)
    vector = encoder.encode_query(query)
    found = closeness.look(encoder, query, vector, np.zeros(encoder.dim, np.float32), 100, passages)
    sentences, words = (np.round(values.astype(float), 3).tolist() for values in found)
    return sentences, words


def test_the_nearest_sentence_counts_wherever_it_stands(encoder: StaticEncoder) -> None:
    sentences, words = looked_at(encoder, "the ferry leaves at nine", LONGER, ("", "", "A coat"))
    assert (sentences[0], words[0]) == (1.0, 1.0)
    assert sentences[1] < 0.5
    assert words[1] < 0.5


def test_title_headings_and_lines_are_sentences(encoder: StaticEncoder) -> None:
    chunk = ("Ferry", "Times > Winter", "Nine o'clock\nTen; or later")
    for query in ("ferry", "times winter", "nine o clock", "ten", "or later"):
        assert looked_at(encoder, query, chunk)[0] == [1.0]


def test_a_text_without_words_is_like_no_other(encoder: StaticEncoder) -> None:
    vectors, passages = closeness.passages(encoder, [("", "", "…")])
    assert not vectors.any()
    assert not closeness.counted(passages, encoder).any()
    sentences, words = looked_at(encoder, "ferry", ("", "", "…"))
    assert max(abs(sentences[0]), abs(words[0])) < 0.3


def test_the_tokens_of_the_text_are_counted_and_not_those_above_it(encoder: StaticEncoder) -> None:
    _, passages = closeness.passages(encoder, [LONGER, ("Coat", "Large", "")])
    assert closeness.counted(passages, encoder).tolist() == encoder.count_tokens([LONGER[2]]).tolist()


@given(st.lists(st.tuples(st.text(), st.text(), st.text()), min_size=1, max_size=4))
def test_passages_have_the_vectors_of_their_texts(chunks: list[tuple[str, str, str]]) -> None:
    encoder = built_in()
    vectors, passages = closeness.passages(encoder, chunks)
    whole = encoder.encode_texts(["\n".join(chunk) for chunk in chunks])
    assert np.allclose(vectors, whole, atol=1e-5)
    by_sentences, by_words = closeness.look(encoder, "boat", vectors[0], vectors[0] * 0, 9, passages)
    assert (len(by_sentences), len(by_words)) == (len(chunks), len(chunks))


def test_very_long_titles_and_lines_fit(encoder: StaticEncoder) -> None:
    chunks = [("ferry " * 50_000, "", "boat"), ("", "", "a\n" * 50_000), ("", "", "字" * 50_000)]
    assert looked_at(encoder, "boat", *chunks)[0][0] == 1.0


def test_a_text_of_very_many_sentences_is_as_one_of_few(encoder: StaticEncoder) -> None:
    many = "Bring a coat.\n" * 200
    assert looked_at(encoder, "bring a coat", ("", "", many))[0] == [1.0]


def passages(bank: Bank) -> list[bytes]:
    bank.search("ferry")  # with its encoder
    return [passage for (passage,) in bank.index.rows("SELECT passage FROM chunks")]


@pytest.mark.parametrize("name", ["none", "hash"])
def test_encoders_without_meaning_keep_none_until_another_is_chosen(bank: Bank, tmp_path: Path, name: str) -> None:
    bank.add("The ferry leaves at nine.", title="Ferry")
    usual = passages(bank)
    with Bank.open(tmp_path, search__encoder=name) as other:
        assert passages(other) == [b""]
    assert passages(bank) == usual
    assert closeness.passages(built_in(), [("Ferry", "", "The ferry leaves at nine.")])[1] == usual


def test_the_index_is_made_anew_for_another_table() -> None:
    """Passages are tokens of the built-in table, also where a model makes the vectors: whoever changes the table gives
    the index another number, and both of them a new line here."""
    about = json.loads((STATIC / "about.json").read_text("utf-8"))
    assert (seal.SCHEMA, about["digest"]) == (12, "527a35db2162")
