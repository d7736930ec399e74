"""The vault's own search (seed 002): records that share a word with the query, by a score."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from operator import itemgetter

from memlane.lanes.vault.log import Fits
from memlane.lanes.vault.record import Record, newest_first


def _ratio(a: str, b: str) -> float:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, a, b).ratio()


def _length_ratio(a: str, b: str) -> float:
    """What the ratio of two texts is at most, by their lengths."""
    return 2.0 * min(len(a), len(b)) / (len(a) + len(b))


def search_score(query: str, text: str, ratio: Callable[[str, str], float] = _ratio) -> float:
    """Share of the query's words, + 0.3 when the query is a substring, + 0.4 × ratio; 0 when no word is shared."""
    from memlane.gate.likeness import tokens

    words = tokens(query)
    shared = words & tokens(text)
    if not shared:
        return 0.0
    low_query, low_text = query.lower(), text.lower()
    bonus = 0.3 if low_query.strip() in low_text else 0.0
    return len(shared) / len(words) + bonus + 0.4 * ratio(low_query, low_text)


def best(groups: Iterable[tuple[int, Iterable[Record]]], query: str, fits: Fits, most: int | None) -> list[Record]:
    """The records that share a word with the query and fit, by `search_score`, best first; None wants all of them.

    They come in groups, each with the number of the query's words that its records have at most, the largest first.
    What a score can be at most is known by that, and then by the length of a text: only what may be among the best is
    looked at, and only that is compared with the query.
    """
    from memlane.gate.likeness import tokens

    found: list[tuple[float, tuple[float, str], Record]] = []

    def enough(top: float) -> bool:
        return most is not None and len(found) >= most and (not found or top < -found[-1][0])

    words = len(tokens(query))
    for shared, records in groups if words else ():
        if enough(shared / words + (0.3 if shared == words else 0.0) + 0.4):
            break
        bounded = [(top, record) for record in records if (top := search_score(query, record.text, _length_ratio))]
        bounded.sort(key=itemgetter(0), reverse=True)
        for top, record in bounded:
            if enough(top):
                break
            if fits(record):
                insort(found, (-search_score(query, record.text), newest_first(record), record), key=itemgetter(0, 1))
                del found[most if most is not None else len(found) :]
    return [record for *_, record in found]
