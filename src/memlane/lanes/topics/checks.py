"""What a topic lane refuses (seed 000): the seed's blocked words, or only values shaped like secrets.

The checks that all lanes share come from the gate. Nothing here reads a file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from memlane import gate
from memlane.core.errors import Refused
from memlane.core.invisible import visible
from memlane.core.model import Draft
from memlane.core.values import replace
from memlane.lanes.topics import entries as text_of
from memlane.lanes.topics.drafts import FIELDS, OWN

PLACE = "topics"  # in a bank's folder
PATTERNS = (
    *("password", "token", "key", "secret", "credential"),
    *("ghp_", "sk-", "ak_", "-----BEGIN", "api_key"),
    *("@gmail.com", "amazonaws.com/key", "bearer "),
)


_NAMES = ("topic", "subtopic")
_SMART = ' Where the word is harmless: topics.security = "smart" refuses only what is shaped like a secret.'


class SecurityViolation(Refused):
    """Seed 000's refusal. `patterns` names what matched, never the text around it."""

    code = "SECURITY_VIOLATION"

    def __init__(
        self, patterns: Sequence[str], more: str = "", fingerprints: Callable[[], Sequence[str]] = tuple
    ) -> None:
        self.patterns = tuple(patterns)
        super().__init__(
            "Security violation: Cannot store sensitive data",
            check="blocked_words",
            hint=f"It matches {', '.join(map(repr, self.patterns))}. "
            f"Store the location or method of access instead of the value.{more}",
            fingerprints=fingerprints,
        )

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "patterns": list(self.patterns)}


def security_of(settings: Any) -> str:
    """The mode that a bank's settings mean. With "auto", a store in the bank's folder refuses secrets and not words;
    one that has a place of its own, as an adopted one has, keeps the word list that it was made with.
    """
    chosen: str = settings["topics.security"]
    own_place = settings.lane_root("topics") != settings.root / PLACE
    return chosen if chosen != "auto" else "strict" if own_place else "smart"


def blocked_words(draft: Draft, lane: Any) -> Draft:
    """words such as "password" and "token" are refused (smart: values shaped like secrets)"""
    # in what an entry says; its topic's name is none of it ("task-queue" has "sk-"), and the checks of all lanes see it
    content = replace(draft, scope=None, fields={key: draft.fields[key] for key in draft.fields if key not in _NAMES})
    given = [text for field, text in gate.strings(content) if field != gate.FIELD_NAME]
    given += [name for name in draft.fields if name not in FIELDS | OWN and not text_of.is_known_label(name)]
    if getattr(lane, "security", "strict") == "strict":
        # what the common checks strip afterwards must not hide a word from this list
        texts = [visible(text).lower() for text in given]
        if found := [pattern for pattern in PATTERNS if any(pattern.lower() in text for text in texts)]:
            raise SecurityViolation(found, _SMART)
        return draft
    guard = getattr(lane, "guard", gate.DEFAULT)
    if guard.secrets != "refuse":  # redacted or let through by the check that follows, as configured
        return draft
    if rules := dict.fromkeys(finding.rule for text in given for finding in gate.findings(text, guard, draft)):
        raise SecurityViolation(list(rules), fingerprints=lambda: gate.fingerprints_of(given, guard, draft))
    return draft


CHECKS: tuple[gate.Check, ...] = (blocked_words,)
