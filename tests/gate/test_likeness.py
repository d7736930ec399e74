"""Near-duplicates: the plain double loop and the index give the same verdict. Ids S002-nn: the acceptance matrix."""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlane.core.progress import listener
from memlane.gate import likeness
from memlane.gate.likeness import overlap, ratio, tokens
from memlane.gate.lookalikes import Lookalikes
from samples import words


def plain_find(texts: list[tuple[str, str]], new: str, ratio_from: float, overlap_from: float) -> Any:
    for key, old in texts:
        score = overlap(tokens(new), tokens(old))
        if score >= overlap_from:
            return key, score
        score = SequenceMatcher(None, new.lower(), old.lower()).ratio()
        if score >= ratio_from:
            return key, score
    return None


ALPHABETS = ("ab", "abc ", "the cat sat on a mat ", "abcdefghijklmnopqrstuvwxyz 0123456789.,'", "aAéÉİß漢字仮名 ")
few_letters = st.one_of(*(st.text(alphabet, max_size=60) for alphabet in ALPHABETS))
sentences = st.lists(st.sampled_from("the a cat dog runs under over tree house café 12 12b".split()), max_size=12).map(
    " ".join
)
long_texts = st.builds(
    lambda part, more, times: (part * times + more)[:450], few_letters, sentences, st.integers(4, 30)
)
any_text = st.one_of(few_letters, sentences, st.text(max_size=40), long_texts)


@st.composite
def kin(draw: st.DrawFn) -> list[str]:
    """Texts, and others that differ from them by some cuts and insertions: pairs around the thresholds."""
    texts = draw(st.lists(any_text, min_size=1, max_size=6))
    for _ in range(draw(st.integers(1, 5))):
        text = draw(st.sampled_from(texts))
        for _ in range(draw(st.integers(1, 6))):
            at, size = draw(st.integers(0, len(text))), draw(st.integers(0, max(len(text) // 6, 1)))
            text = text[:at] + draw(st.text("abx é", max_size=size)) + text[at + draw(st.integers(0, size)) :]
        texts.append(text)
    some = draw(st.lists(st.sampled_from(texts[0].split() or ["cat"]), max_size=4, unique=True))
    return [*texts, " ".join([*some, *draw(sentences).split()])] if draw(st.booleans()) else texts


LEAST = [(0.7, 0.6), (0.7, 2.0), (0.5, 2.0), (0.9, 0.34), (1.0, 1.0), (0.2, 0.9)]


@given(kin(), st.sampled_from(LEAST), st.data())
def test_the_index_finds_what_the_plain_loop_finds(
    texts: list[str], least: tuple[float, float], data: st.DataObject
) -> None:
    """S002-38 S002-39 S002-40: same key, same score, however the index came about."""
    *old, new = texts
    entries = [(str(number), text) for number, text in enumerate(old)]
    at_once = data.draw(st.integers(0, len(entries)))
    alike = Lookalikes(*least, patience=data.draw(st.sampled_from([0, 8])))
    alike.fill(entries[:at_once])
    alike.find("")  # without patience this builds the columns, which the changes below must keep up to date
    for key, text in entries[at_once:]:
        alike.add(key, text)
    for key in data.draw(st.lists(st.sampled_from([key for key, _ in entries]), unique=True)) if entries else ():
        alike.remove(key)
        entries = [entry for entry in entries if entry[0] != key]
    assert alike.find(new) == plain_find(entries, new, *least)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ab" * 150, ("ab" * 150)[:210] + "c" * 90),  # one block at the start, without a rare character
        ("x" + "ab" * 150, "x" + ("ab" * 150)[:209] + "c" * 90),
        ("".join(f"{chr(0x4E00 + i)}abc" for i in range(60)), "".join(f"{chr(0x4E00 + i)}abd" for i in range(60))),
        ("z" * 70 + "a" * 30, "z" * 70 + "b" * 30),  # a group of characters that is longer than its columns
        ("aeiou " * 33, "bcdfgh" * 10 + "aeiou " * 23),
        ("red green blue", "a red and green house by some lake with seven boats on a long stormy winter night"),
        ("Ärger über İstanbul", "ärger ÜBER istanbul"),
        ("a", "a"),
        ("ab", "ba"),
    ],
)
def test_the_index_finds_pairs_at_its_edges(old: str, new: str) -> None:
    """S002-38 S002-39"""
    for least in LEAST:
        for patience in (0, 8):
            alike = Lookalikes(*least, patience=patience)
            alike.fill([("far", words(1)), ("old", old)])
            assert alike.find(new) == plain_find([("far", words(1)), ("old", old)], new, *least)


def test_the_index_finds_what_the_plain_loop_finds_in_a_large_collection() -> None:
    """S002-39: among many, where bounds decide and not the loop."""
    base = [words(number, 3 + number % 9) for number in range(300)]
    texts = [(str(number), text) for number, text in enumerate(base)]
    alike = Lookalikes(0.7, 0.6, patience=0)
    alike.fill(texts)
    for number in range(0, 300, 12):
        new = base[number][: -number // 20 or None].replace("a", "o")[::1] + words(number + 1000, 1)[: number % 17]
        assert alike.find(new) == plain_find(texts, new, 0.7, 0.6)


@given(kin(), st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0, 1.5]), st.sampled_from([1, 16, 1 << 13]), st.data())
def test_the_alike_pairs_are_those_of_the_plain_loop(
    texts: list[str], least: float, row: int, data: st.DataObject
) -> None:
    """S002-46: same pairs, same scores, however the texts are cut into rows, and whichever are new."""
    new = data.draw(st.none() | st.sets(st.integers(0, len(texts) - 1)))
    expected = {}
    for (a, text), (b, other) in combinations(enumerate(texts), 2):
        score = max(overlap(tokens(text), tokens(other)), ratio(text, other))
        if score >= least and (new is None or a in new or b in new):
            expected[a, b] = score
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(likeness, "_ROW", row)
        found = list(likeness.alike(texts, least, new))
    assert {(a, b): score for a, b, score in found} == expected
    assert len(found) == len(expected)


def test_comparing_many_texts_tells_how_far_it_is() -> None:
    told: list[tuple[str, int, int | None]] = []
    token = listener.set(lambda *said: told.append(said))
    try:
        list(likeness.alike([words(number) for number in range(300)], 0.5, range(100)))
    finally:
        listener.reset(token)
    assert told[-1] == ("comparing", 24_950, 24_950)  # pairs of a hundred, and of each with two hundred others
    assert sorted(told) == told


def test_the_index_survives_many_changes_of_one_text() -> None:
    alike = Lookalikes(0.7, 0.6, patience=0)
    alike.find("")
    for number in range(300):
        alike.add("register", words(number))
    assert alike.find(words(298)) is None
    assert alike.find(words(299)) == ("register", 1.0)
