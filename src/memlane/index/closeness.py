"""How near a few texts are to a query when they are looked at closely, by the built-in table: sentence by sentence, and
word by word.

The vector of a whole text is a mean: one telling sentence drowns in it, and so does one telling word. Too slow for all
texts of a bank, so that only the best are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from memlane.core.patterns import lazily
from memlane.index.columns import Array
from memlane.index.encoders import StaticEncoder
from memlane.index.encoders import words as encoded_words
from memlane.index.words import importance, terms

KEPT = 4_000  # texts whose passages are kept
_SENTENCE = lazily(r"(?<=[.!?;:])\s+|\n+")


class _Passage(NamedTuple):
    """A text: its distinct tokens, and the vectors of its sentences."""

    tokens: Array
    sentences: Array


_kept: WeakKeyDictionary[StaticEncoder, dict[str, _Passage]] = WeakKeyDictionary()


def sentences(encoder: StaticEncoder, query: Array, mean: Array, texts: Sequence[str]) -> Array:
    """The cosine of the query and the nearest sentence of each text, without the `mean` of the bank's vectors."""
    parts = [_passage(encoder, text).sentences for text in texts]
    rows = np.concatenate(parts)
    near = (rows @ query - mean @ query) / np.sqrt(np.maximum(1 - 2 * rows @ mean + mean @ mean, 1e-9))
    result: Array = np.maximum.reduceat(near, _starts(parts))
    return result


def words(encoder: StaticEncoder, query: str, chunks: int, texts: Sequence[str]) -> Array:
    """How much of the query's words each text has, 0 … 1: of each, as much as the text's nearest word is like it.

    Words that are rare in the bank count more (`chunks` is its size), and words that ask count less.
    """
    factors = {word: max(map(importance, terms(word)), default=1.0) for word in encoded_words(query)}
    asked, weights = encoder.query_tokens(factors, chunks)
    if not len(asked):
        return np.zeros(len(texts), np.float32)
    tokens = [_passage(encoder, text).tokens for text in texts]
    distinct, places = np.unique(np.concatenate(tokens), return_inverse=True)
    near = encoder.likeness(distinct, asked)
    nearest = np.maximum.reduceat(near[places], _starts(tokens), axis=0)
    result: Array = nearest @ weights
    return result


def _passage(encoder: StaticEncoder, text: str) -> _Passage:
    kept = _kept.setdefault(encoder, {})
    if (known := kept.get(text)) is None:
        if len(kept) >= KEPT:
            kept.clear()
        known = kept[text] = _Passage(*encoder.take_apart(_SENTENCE.split(text)))
    return known


def _starts(parts: Sequence[Array]) -> Array:
    return np.cumsum([0, *map(len, parts[:-1])])
