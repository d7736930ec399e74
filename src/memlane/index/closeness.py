"""How near a few texts are to a query when they are looked at closely, by the built-in table: sentence by sentence, and
word by word.

The vector of a whole text is a mean: one telling sentence drowns in it, and so does one telling word. Too slow for all
texts of a bank, so that only the best are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import cast
from weakref import WeakKeyDictionary

import numpy as np

from memlane.core.patterns import lazily
from memlane.core.values import NamedTuple
from memlane.index.columns import Array
from memlane.index.encoders import StaticEncoder
from memlane.index.encoders import words as encoded_words
from memlane.index.words import importance, terms
from memlane.index.writing import Chunk

KEPT = 20_000  # chunks whose passages are kept: some 10 MB, beside their texts
AT_ONCE = 64  # texts that are taken apart together
_SENTENCE = lazily(r"(?<=[.!?;:])\s+|\n+")


class _Passage(NamedTuple):
    """A text: its tokens, how many each of its sentences has, and the length of each one's vector.

    As bytes of uint16, intp and float32: joining those of many texts takes a fifth of the time that arrays take.
    """

    tokens: bytes
    sizes: bytes
    lengths: bytes


_kept: WeakKeyDictionary[StaticEncoder, dict[Chunk, _Passage]] = WeakKeyDictionary()


def look(
    encoder: StaticEncoder, query: str, vector: Array, mean: Array, size: int, chunks: Sequence[Chunk]
) -> tuple[Array, Array]:
    """How near each of some chunks is to the query, by its sentences and by its words.

    By sentences: the cosine of the query's `vector` and the nearest one, without the `mean` of the bank's vectors.
    By words: how much of the query's words it has, 0 … 1; of each, as much as its nearest word is like it. Words that
    are rare in the bank count more (`size` is how many chunks it has), and words that ask count less.
    """
    tokens_of, sizes_of, lengths_of = zip(*_passages(encoder, chunks), strict=True)
    distinct, places = _distinct(np.frombuffer(b"".join(tokens_of), np.uint16))
    sizes, lengths = np.frombuffer(b"".join(sizes_of), np.intp), np.frombuffer(b"".join(lengths_of), np.float32)
    factors = {word: _factor(word) for word in encoded_words(query)}
    asked, weights = encoder.query_tokens(factors, size)
    near, products = encoder.compared(distinct, asked, (vector, mean))

    sums = np.add.reduceat(products.take(places, axis=0), np.cumsum(sizes) - sizes)
    sums /= np.maximum(lengths, 1e-9)[:, None]
    cosines = (sums[:, 0] - mean @ vector) / np.sqrt(np.maximum(1 - 2 * sums[:, 1] + mean @ mean, 1e-9))
    by_sentences = np.maximum.reduceat(cosines, _starts(lengths_of, np.float32))
    nearest = np.maximum.reduceat(near.take(places, axis=0), _starts(tokens_of, np.uint16))
    np.minimum(np.maximum(nearest, 0, out=nearest), 1, out=nearest)
    return by_sentences, nearest.dot(weights)  # `@` may warn of numbers that BLAS has read beyond so narrow an array


@lru_cache(maxsize=10_000)
def _factor(word: str) -> float:
    """How much a word of a query counts, apart from its rarity."""
    return max(map(importance, terms(word)), default=1.0)


def _passages(encoder: StaticEncoder, chunks: Sequence[Chunk]) -> list[_Passage]:
    kept = _kept.setdefault(encoder, {})  # other threads have it, too
    found = [kept.get(chunk) for chunk in chunks]
    if None not in found:  # nearly always: who searches again sees much of the same
        return cast(list[_Passage], found)
    known = {chunk: passage for chunk, passage in zip(chunks, found, strict=True) if passage}
    new = [chunk for chunk in dict.fromkeys(chunks) if chunk not in known]
    for start in range(0, len(new), AT_ONCE):
        batch = new[start : start + AT_ONCE]
        apart = encoder.take_apart([_SENTENCE.split(chunk.embedded) for chunk in batch])
        passages = (_Passage(*(array.tobytes() for array in arrays)) for arrays in apart)
        known.update(zip(batch, passages, strict=True))
    if len(kept) >= KEPT:
        kept.clear()
    kept.update(known)
    return [known[chunk] for chunk in chunks]


def _distinct(tokens: Array) -> tuple[Array, Array]:
    """These tokens once each, and which of those each of them is."""
    tokens = tokens.astype(np.intp)
    there = np.zeros(int(tokens.max()) + 1, np.bool_)  # quicker than sorting them
    there[tokens] = True
    distinct = np.flatnonzero(there)
    places = np.empty(len(there), np.intp)
    places[distinct] = np.arange(len(distinct))
    return distinct, places.take(tokens)


def _starts(parts: Sequence[bytes], kind: type[np.generic]) -> Array:
    """Where each of these begins when they are joined, as an array of this kind."""
    starts: Array = np.array([*accumulate(map(len, parts[:-1]), initial=0)]) // np.dtype(kind).itemsize
    return starts
