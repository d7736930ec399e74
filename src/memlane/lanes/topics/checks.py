"""What a topic lane refuses (seed 000): the seed's blocked words, or only values shaped like secrets.

The checks that all lanes share come from the gate. Nothing here reads a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from memlane import gate
from memlane.core.errors import Refused
from memlane.core.invisible import visible
from memlane.core.model import Draft
from memlane.lanes.topics import entries as text_of
from memlane.lanes.topics.drafts import FIELDS, OWN

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

    def __init__(self, patterns: Sequence[str], more: str = "") -> None:
        self.patterns = tuple(patterns)
        super().__init__(
            "Security violation: Cannot store sensitive data",
            check="blocked_words",
            hint=f"It matches {', '.join(map(repr, self.patterns))}. "
            f"Store the location or method of access instead of the value.{more}",
        )

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "patterns": list(self.patterns)}


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
    elif found := _shaped(given, getattr(lane, "guard", gate.DEFAULT)):
        raise SecurityViolation(found)
    return draft


def _shaped(texts: Sequence[str], guard: gate.Guard) -> list[str]:
    if guard.secrets != "refuse":  # redacted or let through by the check that follows, as configured
        return []
    from memlane.gate import secrets

    scanned = (secrets.scan(text, email=guard.email, phone=guard.phone, allow=guard.allow) for text in texts)
    return list(dict.fromkeys(finding.rule for found in scanned for finding in found))


CHECKS: tuple[gate.Check, ...] = (blocked_words,)
