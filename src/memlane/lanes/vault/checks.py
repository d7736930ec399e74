"""The vault's gate (seed 002): a check for emptiness, then the seed's eight steps in its order and words.

A check takes (draft, vault) and returns the draft, perhaps changed, or raises Refused, as in `memlane.gate`.
What a draft may repeat is looked up in what the vault's log knows. Nothing is written.

In a bank (`MemoryVault.by_meaning`) two of them ask for more than the seed's measures: a journal-only signal has to be
most of what a text says, and a near-duplicate that carries another value is a fact of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from memlane import gate
from memlane.core.errors import Refused
from memlane.core.model import Draft
from memlane.core.values import replace
from memlane.gate import Check
from memlane.lanes.vault.log import Damaged
from memlane.lanes.vault.record import SOURCES, TIERS

if TYPE_CHECKING:
    from memlane.lanes.vault.store import MemoryVault

NOISE = (
    "tick marker", "runtime snapshot", "check-in", "heartbeat", "burst tick", "no changes", "nothing to report",
    "status unchanged", "routine scan", "ephemeral",
)  # fmt: skip
MAX_TEXT = 1200
LITTLE = 1  # words besides journal-only signals, and besides those that say no more than when and that all is well
_JOURNAL = frozenset(
    "again all burst check checked complete completed current cycle detected done everything fine found good hourly "
    "last latest logged minute minutes new nightly normal nothing now number ok okay previous received recorded run "
    "running seconds sent since still system tick time today tonight usual well".split()
)


def not_empty(draft: Draft, lane: MemoryVault) -> Draft:
    """empty text"""
    text = draft.text.strip()
    if not text:
        raise _refusal("not_empty", "empty", "the text is empty", "Say what is to be remembered.")
    return replace(draft, text=text)


def noise(draft: Draft, lane: MemoryVault) -> Draft:
    """journal-only signals such as tick markers and heartbeats"""
    if signal := noise_signal(draft.text, by_meaning=lane.by_meaning):
        hint = "Keep it as a note, outside the vault. Or store what was learned from it, in other words."
        raise _refusal("noise", "noise", f"the text contains the journal-only signal {signal!r}", hint)
    return draft


def log_tier(draft: Draft, lane: MemoryVault) -> Draft:
    """tier "log\""""
    if draft.fields.get("tier") == "log":
        hint = "Keep it as a note, outside the vault. Or use tier canon or register for what should last."
        raise _refusal("log_tier", "log_tier", 'tier "log" is journal-only', hint)
    return draft


def length(draft: Draft, lane: MemoryVault) -> Draft:
    """text over 1200 characters"""
    if len(draft.text) > MAX_TEXT:
        why = f"the text is too long ({len(draft.text)} characters; {MAX_TEXT} are allowed)"
        raise _refusal("length", "too_long", why, "Compress it, or split it into several memories.")
    return draft


def known_words(draft: Draft, lane: MemoryVault) -> Draft:
    """unknown scope, tier or source"""
    given = {"scope": draft.scope, "tier": draft.fields.get("tier"), "source": draft.fields.get("source")}
    for name, allowed in (("scope", lane.scopes), ("tier", TIERS), ("source", SOURCES)):
        if given[name] is not None and allowed and given[name] not in allowed:
            hint = f"Use one of: {', '.join(allowed)}."
            raise _refusal("known_words", f"unknown_{name}", f"there is no such {name}", hint)
    return draft


def pii(draft: Draft, lane: MemoryVault) -> Draft:
    """PII: social security and card numbers, passwords, API keys"""
    from memlane.gate import secrets

    guard = lane.guard
    if guard.secrets == "redact":
        return draft  # the scanner after this step blanks them
    found = secrets.check_pii(draft.text)
    if secrets.scan(draft.text):  # or else only a word after the name of a credential: nothing lets that pass
        found = [finding.description for finding in gate.findings(draft.text, guard, draft)]
    if found:
        kinds = ", ".join(dict.fromkeys(found))
        raise Refused(
            f"Not stored: the text contains PII ({kinds}).",
            check="pii",
            code="sensitive",
            hint=gate.WHERE_NOT_WHAT,
            fingerprints=lambda: gate.fingerprints_of([draft.text], guard, draft),
        )
    return draft


def upsert(draft: Draft, lane: MemoryVault) -> Draft:
    """a register whose topic exists in the scope becomes its next version"""
    topic = draft.fields.get("topic_id")
    if draft.fields.get("tier") == "register" and topic:
        with lane.log.reading() as known:
            old = known.register(draft.scope or lane.default_scope, topic)
        id = old.id if old else _without_topic(draft, lane)
        if id:
            return replace(draft, fields={**draft.fields, "upsert_of": id})
    return draft


def _without_topic(draft: Draft, lane: MemoryVault) -> str | None:
    """In a bank, the register that says the same and has no topic yet: it gets this one."""
    if not lane.by_meaning:
        return None
    with lane.log.reading() as known:

        def is_other(id: str) -> bool:
            return known.active[id].tier != "register" or known.active[id].topic_id is not None

        found = _lookalike(draft, lane, is_other)
    return found[0] if found else None


def duplicate(draft: Draft, lane: MemoryVault) -> Draft:
    """near-duplicates of an active memory in the scope"""
    has_topic = lane.by_meaning and draft.fields.get("tier") == "register" and draft.fields.get("topic_id")
    if "upsert_of" in draft.fields or has_topic or not (found := _lookalike(draft, lane)):
        return draft
    id, score = found
    why, hint = f"Duplicate of {id} (similarity {score:.2f})", f"`memlane update vault:{id}` changes it"
    if lane.by_meaning:
        with lane.log.reading() as known:
            instead = f"`memlane add --lane vault --replaces vault:{id}` takes its place"
            why = f"{why}, which says: {gate.shown(' '.join(known.active[id].text.split())).rstrip('.')}"
        raise _refusal("duplicate", "duplicate", why, f"{hint}; {instead}.")
    raise _refusal("duplicate", "duplicate", why, f"{hint}; or say what is new.")


def _lookalike(
    draft: Draft, lane: MemoryVault, is_other: Callable[[str], bool] = lambda _: False
) -> tuple[str, float] | None:
    """(id, score) of the scope's first active memory that the draft is a near-duplicate of, but for some others."""
    scope = draft.scope or lane.default_scope

    def is_another(id: str, text: str) -> bool:
        from memlane.gate.changes import what_is_new

        return is_other(id) or f"vault:{id}" == draft.replaces or bool(what_is_new(draft.text, text))

    rules = lane.similarity_threshold, lane.token_overlap_threshold
    unless = is_another if lane.by_meaning else None
    with lane.log.reading() as known:
        try:
            return known.lookalikes_in(scope, rules).find(draft.text, unless)
        except Damaged:
            known.without_columns()
            return known.lookalikes_in(scope, rules).find(draft.text, unless)


def capacity(draft: Draft, lane: MemoryVault) -> Draft:
    """a vault that is full"""
    with lane.log.reading() as known:
        active = len(known.active)
    if "upsert_of" not in draft.fields and active >= lane.max_active:
        hint = "Delete or merge some first: `memlane vault proposals` and `memlane vault candidates` list them."
        why = f"the vault is full ({active} of {lane.max_active} active memories)"
        raise _refusal("capacity", "full", why, hint)
    return draft


CHECKS: tuple[Check, ...] = (
    not_empty, noise, log_tier, length, known_words, pii, upsert, duplicate, capacity,
)  # fmt: skip
UPDATE_CHECKS = CHECKS[: CHECKS.index(pii) + 1]  # a change is not compared with other memories
LABEL_CHECKS: tuple[Check, ...] = (log_tier, known_words, pii)  # nor is a text judged that stays as it is


def guarded(checks: Sequence[Check], guard: gate.Guard = gate.DEFAULT) -> tuple[Check, ...]:
    """The vault's checks with those that guard every lane: characters first, the scanner right after the PII step.

    A redacted text may be longer than the one that was given, so that its length is checked again.
    """
    characters, secrets = gate.common(guard)
    after = checks.index(pii) + 1
    again = (length,) if guard.secrets == "redact" else ()
    return (characters, *checks[:after], secrets, *again, *checks[after:])


def noise_signal(text: str, *, by_meaning: bool = False) -> str | None:
    """The first journal-only signal in a text; `by_meaning`, only where the text says little else."""
    lowered = text.lower()
    signals = (signal for signal in NOISE if signal in lowered)
    return next((signal for signal in signals if not by_meaning or _says_little_else(lowered, signal)), None)


def _says_little_else(text: str, signal: str) -> bool:
    from memlane.gate.likeness import tokens

    signals = "|".join(map(re.escape, NOISE))
    rest = re.sub(rf"(?<!\w)(?:{signals})(?!\w)", " ", text)
    words = [word for word in tokens(rest) - _JOURNAL if not word.isdecimal()]
    return re.search(rf"(?<!\w){re.escape(signal)}(?!\w)", text) is not None and len(words) <= LITTLE


def _refusal(check: str, code: str, why: str, hint: str) -> Refused:
    return Refused(f"Not stored: {why}.", check=check, code=code, hint=hint)
