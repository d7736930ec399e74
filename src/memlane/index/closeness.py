"""How near a few texts are to a query when they are looked at closely, by the built-in table: sentence by sentence, and
word by word.

The vector of a whole text is a mean: one telling sentence drowns in it, and so does one telling word. Too slow for all
texts of a bank, so that only the best are looked at. What that needs of a text, its passage, is in the index:

    u2  how many sentences it has          u2  tokens of each sentence
    u2  tokens of its title and headings   f4  length of the sum of each one's vectors
                                           u2  tokens

so that no text is read again, and none is taken apart, when somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate

import numpy as np

from memlane.index.columns import Array
from memlane.index.encoders import Sentences, StaticEncoder, Vectors
from memlane.index.encoders import words as encoded_words
from memlane.index.words import importance, terms

_MOST = 30_000  # characters of a title with headings, and of a text, so that their tokens can be counted in two bytes
_HEAD = 4  # bytes before the sizes


def passages(encoder: StaticEncoder, chunks: Iterable[tuple[str, str, str]]) -> tuple[Vectors, list[bytes]]:
    """The vectors of chunks, each given by title, headings and text; and their passages."""
    vectors, found = encoder.encode_passages(
        (f"{title}\n{header}"[:_MOST], text[:_MOST]) for title, header, text in chunks
    )
    return vectors, [*map(_packed, found)]


def _packed(sentences: Sentences) -> bytes:
    tokens, sizes, lengths, above = sentences
    return b"".join(
        (
            len(sizes).to_bytes(2, "little"),
            above.to_bytes(2, "little"),
            np.array(sizes, "<u2").tobytes(),
            lengths.astype("<f4").tobytes(),
            tokens.astype("<u2").tobytes(),
        )
    )


def _cut(passage: bytes) -> tuple[bytes, bytes, bytes]:
    """Sizes, lengths and tokens of a passage."""
    sizes_end = _HEAD + 2 * int.from_bytes(passage[:2], "little")
    lengths_end = 3 * sizes_end - 2 * _HEAD
    return passage[_HEAD:sizes_end], passage[sizes_end:lengths_end], passage[lengths_end:]


def counted(passages: Iterable[bytes], encoder: StaticEncoder) -> Array:
    """How often each token of the encoder occurs in the texts of passages, without what stands above them."""
    own = (_cut(passage)[2][2 * int.from_bytes(passage[2:4], "little") :] for passage in passages)
    return encoder.counted(np.frombuffer(b"".join(own), "<u2"))


def look(
    encoder: StaticEncoder, query: str, vector: Array, mean: Array, size: int, passages: Sequence[bytes]
) -> tuple[Array, Array]:
    """How near each of some passages is to the query, by its sentences and by its words.

    By sentences: the cosine of the query's `vector` and the nearest one, without the `mean` of the bank's vectors.
    By words: how much of the query's words it has, 0 … 1; of each, as much as its nearest word is like it. Words that
    are rare in the bank count more (`size` is how many chunks it has), and words that ask count less.
    """
    sizes_of, lengths_of, tokens_of = zip(*(_cut(passage) for passage in passages), strict=True)
    distinct, places = _distinct(np.frombuffer(b"".join(tokens_of), "<u2"))
    sizes, lengths = np.frombuffer(b"".join(sizes_of), "<u2"), np.frombuffer(b"".join(lengths_of), "<f4")
    factors = {word: _factor(word) for word in encoded_words(query)}
    asked, weights = encoder.query_tokens(factors, size)
    near, products = encoder.compared(distinct, asked, (vector, mean))

    sums = np.add.reduceat(products.take(places, axis=0), np.cumsum(sizes, dtype=np.intp) - sizes)
    sums /= np.maximum(lengths, 1e-9)[:, None]
    cosines = (sums[:, 0] - mean @ vector) / np.sqrt(np.maximum(1 - 2 * sums[:, 1] + mean @ mean, 1e-9))
    by_sentences = np.maximum.reduceat(cosines, _starts(lengths_of, 4))
    nearest = np.maximum.reduceat(near.take(places, axis=0), _starts(tokens_of, 2))
    np.minimum(np.maximum(nearest, 0, out=nearest), 1, out=nearest)
    return by_sentences, nearest.dot(weights)  # `@` may warn of numbers that BLAS has read beyond so narrow an array


@lru_cache(maxsize=10_000)
def _factor(word: str) -> float:
    """How much a word of a query counts, apart from its rarity."""
    return max(map(importance, terms(word)), default=1.0)


def _distinct(tokens: Array) -> tuple[Array, Array]:
    """These tokens once each, and which of those each of them is."""
    tokens = tokens.astype(np.intp)
    there = np.zeros(int(tokens.max()) + 1, np.bool_)  # quicker than sorting them
    there[tokens] = True
    distinct = np.flatnonzero(there)
    places = np.empty(len(there), np.intp)
    places[distinct] = np.arange(len(distinct))
    return distinct, places.take(tokens)


def _starts(parts: Sequence[bytes], width: int) -> Array:
    """Where each of these begins when they are joined, as an array of values of so many bytes."""
    starts: Array = np.array([*accumulate(map(len, parts[:-1]), initial=0)]) // width
    return starts
