"""The columns of very many texts, built at once, are those that each text has by itself."""

from __future__ import annotations

from random import Random

import pytest

from memlane.gate.bits import rows
from memlane.gate.likeness import ratio
from memlane.gate.lookalikes import MANY, Lookalikes, Shelves

_PARTS = "deploy on Friday ẞ Straße ΣΊΣΥΦΟΣ 日本語 \U0001f680 x_y (a) 42 the İstanbul \n\t, \ud800 é".split(" ")


def _texts(count: int) -> list[tuple[str, str]]:
    dice = Random(7)
    return [(str(at), " ".join(dice.choices(_PARTS, k=dice.choice((0, 1, 3, 9, 30, 60))))) for at in range(count)]


def test_columns_built_at_once_have_the_bits_of_each_text():
    texts = [text for _, text in _texts(3000)]
    for columns in Shelves(0.7, 0.6).columns:
        assert columns.filled_at_once(texts) == rows(texts, columns.bits)


@pytest.mark.parametrize("size", [MANY - 1, MANY])
def test_a_first_question_has_the_same_answer_in_a_large_collection(size: int):
    texts = [(str(at), f"the server {at * 7919} is restarted by worker {at} on port {at % 97}") for at in range(size)]
    found = Lookalikes(0.7, 0.99)
    found.fill(texts)
    asked = "the server 7919 is restarted by worker 1 on port 2"
    assert found.find(asked) == ("0", ratio(asked, texts[0][1]))
    assert found.find("quite another sentence about birds") is None
