"""What may be remembered: a draft passes a tuple of small functions before anything touches the disk.

This room judges texts (the checks that all lanes share, the scanner for secrets, how alike two texts are); it reads
and writes no file, and a lane's own checks belong in the lane.

A check takes (draft, lane) and returns the draft, perhaps changed, or raises Refused. The first refusal wins.
A refusal says what kind of thing was found and where, never the text itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from memlane.core.errors import InvalidInput, Refused
from memlane.core.invisible import separators, visible
from memlane.core.model import Draft
from memlane.core.text import strings_in
from memlane.disk import files

Check = Callable[[Draft, Any], Draft]

FIELD_NAME = "a field's name"
_LABELS = ("title", "type", "scope", "thread")
WHERE_NOT_WHAT = "Store where the secret lives and how to get it, not the secret itself."


@dataclass(frozen=True, slots=True)
class Guard:
    """How the common checks behave; the defaults are the safe ones. `allow` holds fingerprints of findings."""

    secrets: str = "refuse"  # or "redact", or "off"
    characters: str = "strip"  # or "refuse", or "keep"
    email: bool = False
    phone: bool = False
    allow: tuple[str, ...] = ()


DEFAULT = Guard()


def admit(checks: Sequence[Check], draft: Draft, lane: Any) -> Draft:
    """The draft as the checks leave it. Raises InvalidInput for what no lane can hold, and Refused."""
    _well_formed(draft)
    for check in checks:
        draft = check(draft, lane)
    return draft


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
        from memlane.gate import secrets

        def scan(text: str) -> list[secrets.Finding]:
            # nothing that is kept or shown as nothing must hide a secret
            return secrets.scan(visible(text), email=guard.email, phone=guard.phone, allow=guard.allow)

        def redacted(text: str) -> str:
            return secrets.redact(visible(text), found) if (found := scan(text)) else text

        if not scan("\n".join(text for _, text in strings(draft))):
            return draft
        hits = [(field, findings) for field, text in strings(draft) if (findings := scan(text))]
        if not hits:
            return draft
        if guard.secrets == "redact":
            clean = _map_strings(draft, redacted)
            rules = dict.fromkeys(finding.rule for _, findings in hits for finding in findings)
            return replace(clean, remarks=(*draft.remarks, f"redacted: {', '.join(rules)}"))
        field, (first, *others) = hits[0]
        more = f" and {len(others)} more" if others else ""
        place = f"line {first.line}, column {first.column}" + ("" if field == "text" else f" of {field}")
        raise Refused(
            f"Not stored: it looks like it contains a secret or personal data ({first.description}, {place}{more}).",
            check="secrets",
            code="sensitive",
            hint=WHERE_NOT_WHAT,
        )

    return (characters, secrets)


def redacted(text: str) -> str:
    """A text in which everything that looks like a secret is blanked."""
    from memlane.gate import secrets

    return secrets.redact(text, secrets.scan(text))


def shown(text: str) -> str:
    """A caller's own words for use in a message: short, and without secrets."""
    return redacted(text)[:120]


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
