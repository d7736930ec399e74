"""What may be remembered: a draft passes a tuple of small functions before anything touches the disk.

This room judges texts (the checks that all lanes share, the scanner for secrets, how alike two texts are); it reads
and writes no file, and a lane's own checks belong in the lane.

A check takes (draft, lane) and returns the draft, perhaps changed, or raises Refused. The first refusal wins.
A refusal says what kind of thing was found and where, never the text itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from memlane.core.errors import InvalidInput, Refused
from memlane.core.invisible import separators, visible
from memlane.core.model import Draft
from memlane.core.text import strings_in
from memlane.core.values import dataclass, replace
from memlane.disk import files
from memlane.gate.plain import is_plain

if TYPE_CHECKING:
    from memlane.gate.secrets import Finding

Check = Callable[[Draft, Any], Draft]

FIELD_NAME = "a field's name"
_LABELS = ("title", "type", "scope", "thread")
ENOUGH = 20_000  # characters: no secret in the first words of a text needs more of it to be told
SHOWN = 120  # characters of a caller's own words in a message
MOST_NAMED = 5  # findings of a refusal that get a fingerprint
WHERE_NOT_WHAT = "Store where the secret lives and how to get it, not the secret itself."


@dataclass(frozen=True, slots=True)
class Guard:
    """How the common checks behave; the defaults are the safe ones.

    `allow` holds fingerprints of findings that a person has accepted, `salt` is that of new ones.
    """

    secrets: str = "refuse"  # or "redact", or "off"
    characters: str = "strip"  # or "refuse", or "keep"
    email: bool = False
    phone: bool = False
    allow: tuple[str, ...] = ()
    salt: str = "0000"


DEFAULT = Guard()
_told: dict[str, Callable[[str], None]] = {}  # who is told of refusals, by the place of a lane


def admit(checks: Sequence[Check], draft: Draft, lane: Any) -> Draft:
    """The draft as the checks leave it. Raises InvalidInput for what no lane can hold, and Refused."""
    _well_formed(draft)
    try:
        for check in checks:
            draft = check(draft, lane)
    except Refused as refusal:
        if told := _told.get(str(getattr(lane, "root", ""))):
            told(f"{refusal.check}: {refusal.rule}" if refusal.rule else refusal.check)
        raise
    return draft


def tell(place: str, told: Callable[[str], None]) -> None:
    """Let somebody know what kind of thing is refused in the lane at this place, and never what it was."""
    _told[place] = told


def common(guard: Guard = DEFAULT, *, keeps_text: bool = False) -> tuple[Check, ...]:
    """The checks that guard every lane. With `keeps_text`, nothing is stripped from the text itself.

    What the text of such a lane hides is made harmless wherever it is shown.
    """

    def characters(draft: Draft, lane: Any) -> Draft:
        """invisible, bidirectional and control characters are stripped (or refused)"""
        if guard.characters == "keep":
            return draft
        strips = guard.characters == "strip"
        texts = [text for field, text in strings(draft) if not (strips and keeps_text and field == "text")]
        removed = sum(len(text) - len(visible(text)) for text in texts)
        broken = sum(map(separators, texts))
        if not removed and not broken:
            return draft
        if not strips:
            raise Refused(
                f"The text has {removed + broken} invisible or control characters.",
                check="characters",
                code="invisible_characters",
                hint='Remove them, or set gate.characters = "strip".',
            )
        clean = _map_strings(draft, visible)
        remarks = [f"{removed} invisible or control characters were removed"] if removed else []
        remarks += [f"{broken} line separators became newlines"] if broken else []
        return replace(clean, text=draft.text if keeps_text else clean.text, remarks=(*draft.remarks, *remarks))

    def secrets(draft: Draft, lane: Any) -> Draft:
        """values shaped like secrets and personal data are refused (or redacted)"""
        if guard.secrets == "off":
            return draft
        _refuse_blanks(draft, guard)
        if not guard.phone and all(is_plain(visible(text)) for _, text in strings(draft)):
            return draft

        def redacted(text: str) -> str:
            from memlane.gate.secrets import redact

            return redact(visible(text), found) if (found := findings(text, guard, draft)) else text

        first = guard.secrets != "redact"  # a refusal names one
        if not findings("\n".join(text for _, text in strings(draft)), guard, draft, first=first):
            return draft
        each = ((field, text, findings(text, guard, draft, first=first)) for field, text in strings(draft))
        hits = [(field, text, found) for field, text, found in each if found]
        if not hits:
            return draft
        if guard.secrets == "redact":
            clean = _map_strings(draft, redacted)
            rules = dict.fromkeys(finding.rule for _, _, found in hits for finding in found)
            return replace(clean, remarks=(*draft.remarks, f"redacted: {', '.join(rules)}"))
        field, _, (one, *_) = hits[0]
        place = f"line {one.line}, column {one.column}" + ("" if field == "text" else f" of {field}")
        raise Refused(
            f"Not stored: it looks like it contains a secret or personal data ({one.description}, {place}).",
            check="secrets",
            code="sensitive",
            rule=one.rule,
            hint=WHERE_NOT_WHAT,
            fingerprints=lambda: fingerprints_of([text for _, text, _ in hits], guard, draft),
        )

    return (characters, secrets)


# -- what is found


def findings(text: str, guard: Guard, draft: Draft | None = None, *, first: bool = False) -> list[Finding]:
    """The secrets in a text, as everybody sees it, that a guard does not let pass; or the first of them.

    A draft says whether a person wrote it, so that marks in it count, and what it is written over: what is there
    already is no news.
    """
    text = visible(text)  # nothing that is kept or shown as nothing must hide a secret
    if is_plain(text) and not guard.phone:
        return []
    from memlane.gate import secrets

    marks = draft is not None and draft.by_person
    first = first and not (draft is not None and draft.over)
    found = secrets.scan(text, email=guard.email, phone=guard.phone, allow=guard.allow, marks=marks, first=first)
    if found and draft is not None and draft.over:
        before = visible(draft.over)
        found = [finding for finding in found if text[finding.start : finding.end] not in before]
    return found


def fingerprints_of(texts: Iterable[str], guard: Guard, draft: Draft | None = None) -> list[str]:
    """The names under which a person can allow what is found in these texts, each once. Slow: see `fingerprints`."""
    from memlane.gate.fingerprints import fingerprint

    named = {
        (finding.rule, visible(text)[finding.start : finding.end]): None
        for text in texts
        for finding in findings(text, guard, draft)
    }
    return [fingerprint(rule, value, guard.salt) for rule, value in list(named)[:MOST_NAMED]]


def _refuse_blanks(draft: Draft, guard: Guard) -> None:
    """Raise Refused for a change that would write the mark of a value that is not shown over that value."""
    if not draft.over or "[REDACTED:" not in draft.text:
        return
    from memlane.gate.secrets import scan

    hidden = {finding.rule for finding in scan(visible(draft.over), email=guard.email, phone=guard.phone, marks=True)}
    for mark in re.finditer(r"\[REDACTED:([\w-]+)\]", draft.text):
        if mark[1] in hidden and mark[0] not in draft.over:
            raise Refused(
                f"Not stored: {mark[0]} stands for a value of the file that is not shown, and would overwrite it.",
                check="secrets",
                code="redacted",
                hint="Change the passages around it alone, or write in its place where the secret lives.",
            )


def redacted(text: str) -> str:
    """A text in which everything that looks like a secret is blanked."""
    if is_plain(text):
        return text
    from memlane.gate import secrets

    return secrets.redact(text, secrets.scan(text))


def shown(text: str) -> str:
    """A caller's own words for use in a message: short, and without secrets."""
    return redacted(text[:ENOUGH])[:SHOWN]


# -- the strings of a draft


def strings(draft: Draft) -> Iterator[tuple[str, str]]:
    """(field, string) for everything in a draft that a caller wrote, the names of fields included."""
    yield "text", draft.text
    for name in _LABELS:
        if value := getattr(draft, name):
            yield name, value
    for tag in draft.tags:
        yield "tags", tag
    for name, value in draft.fields.items():
        yield FIELD_NAME, name
        for string in strings_in(value):
            yield "a field", string


def _well_formed(draft: Draft) -> None:
    """Raise InvalidInput for a value of the wrong type, NUL, lone surrogates, or more than a file may hold."""
    if not isinstance(draft.text, str):
        raise InvalidInput("The text is not text.", hint="Give a string.")
    for name in _LABELS:
        if not isinstance(getattr(draft, name), str | None):
            raise InvalidInput(f"The {name} is not text.", hint="Give a string.")
    if not all(isinstance(tag, str) for tag in draft.tags):
        raise InvalidInput("A tag or keyword is not text.", hint="Give strings.")
    for name, value in draft.fields.items():
        if not isinstance(name, str) or not _storable(value):
            raise InvalidInput("A field has a value that cannot be stored.", hint="Use text, numbers, lists and dates.")
    size = sum(len(files.encoded(text)) for _, text in strings(draft))
    if size > files.MAX_BYTES:
        raise InvalidInput(
            f"That is {size:,} bytes; {files.MAX_BYTES:,} are allowed.", hint="Split it, or store a summary."
        )


def _storable(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _storable(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(_storable, value))
    return value is None or isinstance(value, str | int | float | bool | date)


def _map_strings(draft: Draft, change: Callable[[str], str]) -> Draft:
    """The draft with every string that `strings` yields changed."""

    def mapped(value: Any) -> Any:
        if isinstance(value, str):
            return change(value)
        if isinstance(value, Mapping):
            return {mapped(key): mapped(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(mapped(item) for item in value)
        return value

    return replace(
        draft,
        text=change(draft.text),
        tags=tuple(map(change, draft.tags)),
        fields=mapped(draft.fields),
        **{name: mapped(getattr(draft, name)) for name in _LABELS},
    )
