"""When a rule applies, where its own words say so: "before committing, run make lint", "when adding an endpoint, …"."""

from __future__ import annotations

import re

from memlane.core.patterns import lazily

_BEFORE = r"(?:when(?:ever)?|before|after|every\s+time|each\s+time|if)"
_REST = r"(?:[^,.;:!?\n]|\.(?=\w))"  # a dot in a file's name ends nothing
_DOING = (
    r"(?:you(?:'re)?\s+(?:are\s+)?)?"
    rf"(?P<doing>(?!being\b|having\b)[\w-]+ing\b{_REST}{{0,80}}|you\s+[a-z]+\s+{_REST}{{2,80}})"
)
_FIRST = lazily(rf"^{_BEFORE}\s+{_DOING}\s*[,:]\s*(?P<then>.+)", re.IGNORECASE)
_LAST = lazily(rf"^(?P<then>.+?)\s+{_BEFORE}\s+{_DOING}\s*[.!]?\s*$", re.IGNORECASE)
_IMPERATIVE = lazily(
    r"(?:please\s+|also\s+|then\s+|first\s+)?(?:always|never|do\s+not|don['\u2019]t|make\s+sure|remember|run|use|check|"
    r"add|update|restart|rebuild|regenerate|bump|set|keep|call|register|ask|write|put|avoid|read|create|delete|remove|"
    r"test|start|stop|commit|push|format|lint|edit|change|sync|reload|clear|install|export|document|prefer|"
    r"you\s+(?:must|should|need))\b"
    r"|.*\b(?:must|should|has\s+to|have\s+to|needs?\s+to)\b",
    re.IGNORECASE,
)
_SENTENCE = lazily(r"(?<=[.!?])\s+|\n+")
_MOST_WORDS = 10


def moment_in(text: str) -> str:
    """When the first instruction in a text applies that says when: "committing"; "" when none does.

    What merely happened after something ("after changing it, the tests failed") is no instruction.
    """
    for sentence in _SENTENCE.split(text[:2000]):
        for form in (_FIRST, _LAST):
            found = form.match(sentence.strip())
            if found and _IMPERATIVE.match(found["then"].strip()):
                doing = " ".join(re.sub(r"[`*]+", " ", found["doing"]).split())
                if len(doing.split()) <= _MOST_WORDS:
                    return re.sub(r"^you\s+", "", doing, flags=re.IGNORECASE)
    return ""
