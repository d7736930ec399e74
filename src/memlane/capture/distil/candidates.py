"""Candidate memories of a session: which passages are chosen, and what is said of each.

The best passages that do not overlap and do not say the same become candidates, no more of them than such a session
usually has to tell. What the user objected to is no candidate; the objection is one, whatever else there is to tell.
`distil` reads one transcript; it stores nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from memlane import gate
from memlane.capture.distil import commands
from memlane.capture.distil.features import speaker
from memlane.capture.distil.held import Held, Scored, best_of
from memlane.capture.distil.kinds import kind_of
from memlane.capture.distil.reading import Seen, last_words, read
from memlane.capture.distil.scorer import Weights, reasons, weights
from memlane.capture.distil.session import Run, Session
from memlane.capture.objections import is_proposal
from memlane.capture.scope import is_brand, relative
from memlane.capture.solved import is_about
from memlane.capture.transcripts import KINDS
from memlane.core.errors import InvalidInput
from memlane.core.patterns import lazily
from memlane.core.values import dataclass

_SURE, _SURE_ROOM = 0.86, 1.5  # what is surely worth keeping has so much more room
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


@dataclass(frozen=True, slots=True)
class Candidate:
    """What might be remembered of a session. `lines` and `uuids` are the evidence: where in the transcript it was
    said. `date` is the time of that as well, and `branch` the one of git that the session was on then. `rule` says what
    it was taken for, and `signs` what each of its signs added to its confidence. `against` are the
    assistant's sentences that it corrects, None if it is no correction; `proposed`: the assistant proposes it."""

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
    against: tuple[str, ...] | None = None
    proposed: bool = False

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
            **({"against": list(self.against)} if self.against else {}),
            **({"proposed": True} if self.proposed else {}),
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
    held = Held(model)
    source = transcript if isinstance(transcript, list) else os.path.realpath(transcript)
    if session.offset and isinstance(source, str) and (before := last_words(source, session.offset, kind)):
        held.resume(before)
    for order, said in enumerate(read(source, session, kind, deadline)):
        if isinstance(said, Run):
            ran.add(said, session.date)
        else:
            held.add(order, said)
    picked = chosen(held.passages(), session, model.threshold)
    session.done = [(text, date) for _, text, date in held.done]
    made = [
        candidate
        for order, one, worth in picked
        if (candidate := _candidate(one, worth, session, model)).type != "open"
        or not any(at > order and is_about(text, candidate.text) for at, text, _ in held.done)
    ]
    made += [_of_command(found, session) for found in ran.found()]
    return [one for one in sorted(made, key=lambda one: one.lines) if gate.redacted(one.text) == one.text]


def chosen(scored: Iterable[Scored], session: Session, threshold: float) -> list[Scored]:
    """The passages of a session that become candidates, in the order they were said. Those that are sure come before
    what may say the same, and take no room from the others."""
    messages: dict[int, list[Scored]] = {}
    for each in scored:
        if each[2] >= threshold or each[1].sure:
            messages.setdefault(each[0], []).append(each)
    best = [each for group in messages.values() for each in best_of(group)]
    kept: list[tuple[Scored, frozenset[str]]] = []
    taken = 0
    for each in sorted(best, key=_order):
        words = frozenset(_WORD.findall(each[1].passage.text.lower()))
        most = room(session) * (_SURE_ROOM if each[2] >= _SURE else 1)
        if (each[1].sure or taken < most) and not any(_alike(words, other) for _, other in kept):
            kept.append((each, words))
            taken += not each[1].sure
    return sorted((each for each, _ in kept), key=lambda each: (each[0], each[1].part, each[1].passage.start))


def _order(each: Scored) -> tuple[bool, float, int, int, int]:
    order, one, worth = each
    return not one.sure, -worth, -order, one.part, one.passage.start


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
        against=one.against,
        proposed=speaker(said, one.section) == "assistant" and is_proposal(one.passage.text),
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
