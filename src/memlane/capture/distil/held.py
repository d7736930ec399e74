"""The passages kept in mind while a transcript is read: the best, without what the user objects to in the next prompt.

What the user leaves for later is kept, whatever else there is to tell.

What of a message is objected to is decided in `memlane.capture.objections`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence

from memlane.capture.distil.features import speaker
from memlane.capture.distil.passages import typed
from memlane.capture.distil.reading import Seen, seen
from memlane.capture.distil.scorer import Weights, score
from memlane.capture.distil.session import Said
from memlane.capture.objections import Objection, objected, objections, sentences
from memlane.capture.solved import leaves_open, may_solve, says_solved

_PER_MESSAGE, _PER_SECTION = 3, 5  # candidates of one thing that was said, and of a section of a summary
_HELD = 300  # passages
_LONGEST = 500  # characters of a sentence that tells that something is done
_AGAINST = 5  # sentences of the assistant's that a correction names

Scored = tuple[int, Seen, float]


class Held:
    """One pass over what was said. `add` takes each thing in order; `passages` gives the best at the end."""

    def __init__(self, model: Weights) -> None:
        self._model = model
        self._best: list[tuple[float, int, int, int, Seen]] = []  # a heap: the worst first
        self._turn = 0  # where the assistant's turn began
        self._last: Said | None = None  # what the assistant said last in it
        self._waiting: list[Scored] = []  # its passages: the next prompt may object
        self._told = False  # they were candidates before
        self.done: list[tuple[int, str, str]] = []  # sentences of the assistant's that tell that something is done

    def add(self, order: int, said: Said) -> None:
        scored = [(order, one, score(one.signs, self._model)) for one in seen(said)]
        if said.role == "assistant":
            self._note_done(order, said)
        if said.role == "user":
            if speaker(said, "") == "user":
                scored = _left(self._answered(said, scored) if self._last else scored, self._model.threshold)
            self._turn, self._last = order, None
        if said.role == "user" or (said.role == "assistant" and not said.aside):
            self._let_go()
        if said.role == "assistant" and not said.aside:
            self._last, self._waiting = said, self._worth(scored)
        else:
            self._push(scored)

    def resume(self, said: Said) -> None:
        """Begin with what the assistant said last in the part that was read before, to which the user may object."""
        self._last, self._told = said, True
        self._waiting = self._worth([(-1, one, score(one.signs, self._model)) for one in seen(said)])

    def passages(self) -> Iterator[Scored]:
        self._let_go()
        return ((order, one, worth) for worth, order, *_, one in self._best)

    def _let_go(self) -> None:
        """Nobody has objected to what is left of the last message."""
        if not self._told:
            self._push(self._waiting)
        self._waiting, self._told = [], False

    def _push(self, scored: Iterable[Scored]) -> None:
        for order, one, worth in best_of(self._worth(scored)):
            heapq.heappush(self._best, (worth, order, -one.part, -one.passage.start, one))
            if len(self._best) > _HELD:
                heapq.heappop(self._best)

    def _worth(self, scored: Iterable[Scored]) -> list[Scored]:
        return [each for each in scored if each[2] >= self._model.threshold or each[1].sure]

    def _note_done(self, order: int, said: Said) -> None:
        if not may_solve(said.text):
            return
        done = [(order, text, said.date) for text in sentences(said.text) if len(text) < _LONGEST and says_solved(text)]
        if done:
            self.done = [*self.done, *done][-_HELD:]

    def _answered(self, said: Said, scored: list[Scored]) -> list[Scored]:
        """The passages of a prompt, its correction marked; what it objects to is not held any more."""
        found = objections(typed(said.text))
        if not found or self._last is None:
            return scored
        message = self._last.text
        is_objected = objected(message, found)
        gone = [each for each in self._waiting if is_objected(each[1].passage.text)]
        before = [one for _, order, _, _, one in self._best if order > self._turn and _is_named(one, found)]
        self._waiting = [each for each in self._waiting if each not in gone]
        if before:
            self._best = [each for each in self._best if each[1] <= self._turn or each[-1] not in before]
            heapq.heapify(self._best)
        corrected = [*filter(is_objected, (text for _, one, _ in gone for text in one.passage.sentences))]
        corrected += [
            text for one in before for text in one.passage.sentences if any(each.names(text) for each in found)
        ]
        if not gone and not before and not any(one.concerns(message) for one in found):
            return scored
        return _marked(scored, found, tuple(dict.fromkeys(corrected))[:_AGAINST], self._model.threshold)


def _left(scored: Sequence[Scored], threshold: float) -> list[Scored]:
    """The passages of a prompt, those of them kept that leave something for later: the shortest that say so."""
    left = [one for _, one, _ in scored if leaves_open(one.passage.text)]
    left = [one for one in left if not any(_is_within(other, one) for other in left)]
    return [
        (order, one._replace(sure=True), max(worth, threshold)) if one in left else (order, one, worth)
        for order, one, worth in scored
    ]


def _is_within(one: Seen, other: Seen) -> bool:
    """Whether a passage is a part of another one."""
    return (
        other.passage.start <= one.passage.start
        and one.passage.end <= other.passage.end
        and len(one.passage.text) < len(other.passage.text)
    )


def _is_named(one: Seen, found: Sequence[Objection]) -> bool:
    return speaker(one.said, one.section) == "assistant" and any(each.names(one.passage.text) for each in found)


def _marked(
    scored: Sequence[Scored], found: Sequence[Objection], against: tuple[str, ...], threshold: float
) -> list[Scored]:
    """The passages, and of those with the words of an objection the best one marked as a correction. One that is not
    worth keeping by itself is kept for what it corrects, if it names that."""
    named = [one for one in found if any(map(one.names, against))]
    telling = [
        (order, one, worth)
        for order, one, worth in scored
        if any(each.is_in(one.passage.text) for each in (found if worth >= threshold else named))
    ]
    best = max(telling, key=lambda each: each[2], default=None)
    if best is None:
        return list(scored)
    order, one, worth = best
    return [each if each != best else (order, one._replace(against=against, sure=True), worth) for each in scored]


def best_of(scored: Sequence[Scored]) -> list[Scored]:
    """The best passages of one thing that was said that do not overlap; of a summary, per section."""
    kept: list[Scored] = []
    for each in sorted(scored, key=lambda each: (-each[2], each[1].part, each[1].passage.start)):
        _, one, _ = each
        beside = [other for _, other, _ in kept if other.part == one.part]
        apart = (one.passage.end <= o.passage.start or one.passage.start >= o.passage.end for o in beside)
        if len(beside) < (_PER_SECTION if one.section else _PER_MESSAGE) and all(apart):
            kept.append(each)
    return kept
