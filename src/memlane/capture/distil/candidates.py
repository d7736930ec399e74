"""Candidate memories of a session: which passages are chosen, and what is said of each.

The best passages that do not overlap and do not say the same become candidates, no more of them than such a session
usually has to tell. `distil` reads one transcript; it stores nothing.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterable, Sequence
from typing import Any

from memlane import gate
from memlane.capture.distil import commands
from memlane.capture.distil.features import speaker
from memlane.capture.distil.kinds import kind_of
from memlane.capture.distil.reading import Seen, read, seen
from memlane.capture.distil.scorer import Weights, reasons, score, weights
from memlane.capture.distil.session import Run, Session
from memlane.capture.scope import is_brand, relative
from memlane.capture.transcripts import KINDS
from memlane.core.errors import InvalidInput
from memlane.core.patterns import lazily
from memlane.core.values import dataclass

_PER_MESSAGE, _PER_SECTION = 3, 5  # candidates of one thing that was said, and of a section of a summary
_SURE, _SURE_ROOM = 0.86, 1.5  # what is surely worth keeping has so much more room
_HELD = 300  # passages kept in mind while a transcript is read
_ALIKE = 0.55  # share of the shorter text's words that a better candidate has, too
_WORD = lazily(r"\w{4,}")
_FILE = lazily(
    r"(?<![\w/.@:-])(?:~?\.{0,2}/)?(?:[\w@.-]+/)*[\w@-][\w@.-]*\.[A-Za-z][A-Za-z0-9]{0,4}\b(?!\()(?:(?=:\d)|(?![\w/]))"
)
_SUFFIXES = frozenset(
    """py pyi js jsx ts tsx mjs cjs go rs rb java kt swift c h cc cpp hpp cs php ex exs heex erl hs ml scala sh
    bash zsh sql md mdx rst txt toml yaml yml json jsonc json5 lock xml html css scss vue svelte proto graphql
    tf ini cfg conf env work mod sum gradle nix lua r dart zig ipynb""".split()
)

Scored = tuple[int, Seen, float]


@dataclass(frozen=True, slots=True)
class Candidate:
    """What might be remembered of a session. `lines` and `uuids` are the evidence: where in the transcript it was
    said. `date` is the time of that as well, and `branch` the one of git that the session was on then. `rule` says what
    it was taken for, and `signs` what each of its signs added to its confidence."""

    text: str
    type: str
    confidence: float
    session: str
    date: str
    lines: tuple[int, ...]
    uuids: tuple[str, ...]
    files: tuple[str, ...]
    rule: str
    signs: dict[str, float]
    branch: str = ""

    def to_dict(self, explain: bool = False) -> dict[str, Any]:
        told = {
            "text": self.text,
            "type": self.type,
            "confidence": self.confidence,
            "session": self.session,
            "date": self.date[:10],
            "lines": list(self.lines),
            "uuids": list(self.uuids),
            "files": list(self.files),
            **({"branch": self.branch} if self.branch else {}),
        }
        return told | {"rule": self.rule, "signs": self.signs} if explain else told


def distil(
    transcript: str | os.PathLike[str] | list[Any],
    *,
    kind: str | None = None,
    session: Session | None = None,
    deadline: float | None = None,
) -> list[Candidate]:
    """The candidates of a transcript, or of messages that a client has handed over, in the order they were said; the
    same ones each time.

    With a `session`, of what comes after the part that it has read; it then says how far that was. Reading stops at a
    deadline of the monotonic clock.
    Texts that the gate would refuse are left out. Raises NotFound, StorageError, InvalidInput for a file that is no
    transcript.
    """
    if kind is not None and kind not in KINDS:
        raise InvalidInput("There is no such kind of transcript.", hint=f"Use one of: {', '.join(KINDS)}.")
    session, model, ran = session or Session(), weights(), commands.Commands()
    held: list[tuple[float, int, int, int, Seen]] = []  # a heap: the worst first
    source = transcript if isinstance(transcript, list) else os.path.realpath(transcript)
    for order, said in enumerate(read(source, session, kind, deadline)):
        if isinstance(said, Run):
            ran.add(said, session.date)
            continue
        scored = [(order, one, score(one.signs, model)) for one in seen(said)]
        for _, one, worth in best_of([each for each in scored if each[2] >= model.threshold]):
            heapq.heappush(held, (worth, order, -one.part, -one.passage.start, one))
            if len(held) > _HELD:
                heapq.heappop(held)
    picked = chosen(((order, one, worth) for worth, order, *_, one in held), session, model.threshold)
    made = [_candidate(one, worth, session, model) for _, one, worth in picked]
    made += [_of_command(found, session) for found in ran.found()]
    return [one for one in sorted(made, key=lambda one: one.lines) if gate.redacted(one.text) == one.text]


def chosen(scored: Iterable[Scored], session: Session, threshold: float) -> list[Scored]:
    """The passages of a session that become candidates, in the order they were said."""
    messages: dict[int, list[Scored]] = {}
    for each in scored:
        if each[2] >= threshold:
            messages.setdefault(each[0], []).append(each)
    best = [each for group in messages.values() for each in best_of(group)]
    kept: list[tuple[Scored, frozenset[str]]] = []
    for each in sorted(best, key=lambda each: (-each[2], -each[0], each[1].part, each[1].passage.start)):
        words = frozenset(_WORD.findall(each[1].passage.text.lower()))
        most = room(session) * (_SURE_ROOM if each[2] >= _SURE else 1)
        if len(kept) < most and not any(_alike(words, other) for _, other in kept):
            kept.append((each, words))
    return sorted((each for each, _ in kept), key=lambda each: (each[0], each[1].part, each[1].passage.start))


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


def room(session: Session) -> int:
    """How many candidates a session may have: a longer talk tells more, but not in proportion."""
    talk = 0.5 * min(session.prompts, 40) + 0.03 * min(session.messages, 400)
    return round(1 + talk + 5 * min(session.summaries, 6))


def _alike(words: frozenset[str], other: frozenset[str]) -> bool:
    return len(words & other) >= _ALIKE * min(len(words), len(other))


def _candidate(one: Seen, worth: float, session: Session, model: Weights) -> Candidate:
    said = one.said
    source = f"summary: {one.section}" if one.section else "subagent" if said.aside else said.role
    return Candidate(
        text=one.passage.text,
        type=kind_of(one.passage.text, speaker(said, one.section), one.section),
        confidence=round(worth, 2),
        session=session.id,
        date=said.date,
        lines=said.lines,
        uuids=said.uuids,
        files=files_in(one.passage.text, session.cwd),
        rule=source,
        signs=reasons(one.signs, model),
        branch=said.branch,
    )


def _of_command(found: commands.Found, session: Session) -> Candidate:
    return Candidate(
        found.text, found.type, found.confidence, session.id, found.date, found.lines, found.uuids,
        files_in(found.text, session.cwd), found.rule, {}, session.branch,
    )  # fmt: skip


def files_in(text: str, cwd: str = "") -> tuple[str, ...]:
    """The files that a text names, from the session's folder if they are in it."""
    named = (match[0] for match in _FILE.finditer(text))
    files = (name for name in named if name.rsplit(".", 1)[1].lower() in _SUFFIXES and not is_brand(name))
    return tuple(dict.fromkeys((relative(name, None, cwd) or name) if cwd else name for name in files))[:8]
