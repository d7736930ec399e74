"""Phrases of a query: words that a memory must or must not contain as they are written."""

from __future__ import annotations

import re
from typing import Self

import numpy as np

from memlane.core.model import Memory
from memlane.core.values import dataclass
from memlane.index.columns import Array
from memlane.index.store import Index
from memlane.index.words import fold, plain_parts
from memlane.recall.layout import Layout


@dataclass(slots=True)
class Phrase:
    """Words that a memory must or must not contain as they are written."""

    flat: str
    whole_words: re.Pattern[str] | None  # for stop words only: "to be" is not in "go to bed"
    candidates: Array | None  # whether each memory has the terms; None where there is no term to go by

    @classmethod
    def of(cls, index: Index, layout: Layout, words: str) -> Self:
        flattened = flat(words)
        parts = plain_parts(words)
        whole_words = None
        if not parts and re.search(r"\w", flattened):
            whole_words = re.compile(rf"(?<!\w){re.escape(flattened)}(?!\w)")
        candidates: Array | None = None
        for part in dict.fromkeys(parts):
            has = np.zeros(len(layout.start), np.bool_)
            for alternative in part:
                has |= np.logical_and.reduce([layout.having(index, term) for term in alternative])
            if has.any():  # else it may be a part of longer words
                candidates = has if candidates is None else candidates & has
        return cls(flattened, whole_words, candidates)

    def occurs_in(self, text: str) -> bool:
        return self.flat in text and (self.whole_words is None or self.whole_words.search(text) is not None)

    def excludes(self, row: int, memory: Memory) -> bool:
        if self.candidates is not None and not self.candidates[row]:
            return False
        return self.occurs_in(content(memory)) or self.occurs_in(flat("\n".join((memory.native_id, *memory.tags))))


def content(memory: Memory) -> str:
    """What phrases are looked for in."""
    return flat(f"{memory.title}\n{memory.text}")


def flat(text: str) -> str:
    """A text as phrases are compared: in small letters, without accents, on one line."""
    return " ".join(fold(text).split())
