"""Reads the value that stands at a place of a text, whole: to the matching quote, or to the next blank.

What belongs to the text around a bare value is left out again: the bracket, quote or tag that was opened before it,
the next field of an address or a connection string, the sign that ends a sentence. Judges nothing.
"""

from __future__ import annotations

from memlane.core.values import NamedTuple
from memlane.gate.secrets.rule import pattern

# How many quotes inside a value are passed over for the one that ends it.
_QUOTES = 6
# No value is read further than this.
_MOST = 600
# How much of the line before a value is looked at for what it has opened.
_LINE = 300
# A blank of any width, but no new line.
BLANK = r"[^\S\n\r]"
_TYPE = rf"(?:!!\w{{1,10}}{BLANK}{{1,4}})?"  # of YAML
_QUOTE = (
    rf"{BLANK}{{0,60}}+(?:\*\*?{BLANK}?)?{_TYPE}(?P<sigil>[a-z]{{1,2}}|@)?"
    r"(?P<quote>\\{1,7}[\"']|\"{3}|'{3}|[\"']|`{1,3}|&quot;|&#3[49];|[“„«‘])"
)
_BARE = rf"{BLANK}{{0,60}}+(?:\*\*?{BLANK})?{_TYPE}(?P<bare>(?-i:[^\s\u2010-\u209f\u20d0-\U0010ffff]){{1,{_MOST}}}+)"
_CLOSING = {"“": "”", "„": "“”", "«": "»", "‘": "’"}
# What follows a quote that ends a value, and not one inside it.
_AFTER_QUOTE = frozenset(",;:)]}>.|&+*?\\/=\"'`<!-")
# Where the text goes on without a blank: another field, another tag.
_TAG = r"</?[A-Za-z][\w:.-]{0,30}/?>|<!--|&(?:lt|gt|quot|#3[49]);"
_NEXT = r"[&;,](?:amp;)?[A-Za-z_][\w.-]{1,40}[=:]|\\(?-i:[nrt])(?=\Z|[\w-])"
_BRACKETS = {")": "(", "]": "[", "}": "{", ">": "<"}


class Value(NamedTuple):
    """A value, where it lies, the quote around it ("" for a bare one), and up to where it is blanked.

    A bare value with signs in it may go on behind one that looked like the text's own: better too much than a rest.
    """

    text: str
    start: int
    end: int
    stop: int
    quote: str = ""
    sigil: str = ""


def read(text: str, at: int) -> Value | None:
    """The value at a place, blanks before it skipped; None where there is none."""
    opened = pattern(_QUOTE).match(text, at)
    if opened and (value := _quoted(text, opened.end(), opened["quote"], opened["sigil"] or "")):
        return value
    match = pattern(_BARE).match(text, at)
    if not match:
        return None
    run = match["bare"].lstrip("\"'`")
    start = match.end() - len(run)
    own, reach = run, len(run)
    if not run.isalnum():
        line = max(0, text.rfind("\n", 0, start) + 1, start - _LINE)
        own, reach = _own(run, text[line : match.start("bare")])
    end = start + len(own)
    signs = not pattern(r"[\w.+/=~-]*").fullmatch(own)
    return Value(own, start, end, start + reach if signs else end) if own else None


def _quoted(text: str, start: int, quote: str, sigil: str) -> Value | None:
    line = text.find("\n", start, start + _MOST)
    stop = min(len(text), start + _MOST) if line < 0 else line
    at = start
    signs = _CLOSING.get(quote)
    for _ in range(_QUOTES):
        if signs:
            end = min((place for sign in signs if (place := text.find(sign, at, stop)) >= 0), default=-1)
        else:
            end = text.find(quote, at, stop)
        if end < 0:
            return None
        closing = end + len(quote)
        slashes = len(text[start:end]) - len(text[start:end].rstrip("\\")) if text[end - 1] == "\\" else 0
        escaped = slashes % 2 == 1 and quote in ('"', "'")
        after = text[closing : closing + 1]
        if end > start and not escaped and (not after or after in _AFTER_QUOTE or after.isspace()):
            inner = text[start:end].strip(" \xa0\u202f") if quote == "«" else text[start:end]  # French has blanks there
            start = text.find(inner, start)
            end = start + len(inner)
            return Value(inner, start, end, end, quote, sigil)
        if end == start:
            return None
        at = closing
    return None


def _own(run: str, before: str) -> tuple[str, int]:
    """A bare run without what belongs to the text before it, and how far a value with signs may reach."""
    if before.endswith("="):
        path, query, _ = before.rsplit(None, 1)[-1].partition("?")
        run = run.partition("&")[0] if query and "/" in path else run  # in an address, which writes `&` as %26
    if ("<" in run or "&" in run) and (tag := pattern(_TAG).search(run)):
        run = run[: tag.start()]
    reach = len(run)
    if following := pattern(_NEXT).search(run):
        run = run[: following.start()]
    closing = {sign for sign in ")]}>\"'`|" if sign in run and _is_open(sign, before)}
    for at, sign in enumerate(run) if closing else ():
        opening = _BRACKETS.get(sign, "")
        if sign in closing and not (opening and run.count(opening, 0, at) > run.count(sign, 0, at)):
            reach = reach if opening and pattern(r"[^\W_]").search(run, at) else at
            run = run[:at]
            break
    if "**" in before and run.endswith("**"):
        reach, run = len(run) - 2, run[:-2]
    # The sign that ends a sentence or a statement, and the dots of one that goes on.
    own = run.rstrip(".,;:?`(")
    own = own[:-1] if own == run and run.endswith("\\") else own
    return own, len(own) if reach - len(own) < 2 else reach


def _is_open(sign: str, before: str) -> bool:
    """Whether the text before a value has opened what a sign closes."""
    if opening := _BRACKETS.get(sign):
        return before.count(opening) > before.count(sign)
    if sign == "'":  # an apostrophe stands between letters
        return len(pattern(r"'(?:(?<![^\W_]')|(?![^\W_]))").findall(before)) % 2 == 1
    return before.lstrip().startswith("|") if sign == "|" else before.count(sign) % 2 == 1
