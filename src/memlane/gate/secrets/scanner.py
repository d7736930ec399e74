"""Find secrets and personal numbers in a text, and take them out.

No file, no network, no state. A finding says which class and where, never what: it can be logged and shown.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from itertools import accumulate, chain, islice

from memlane.core.patterns import lazily
from memlane.core.values import dataclass
from memlane.gate.fingerprints import is_allowed
from memlane.gate.plain import LONG, PIECE, TELLS_KEY, has_number
from memlane.gate.secrets import assignments, disguises, keywords, tables, values, vendors
from memlane.gate.secrets.assignments import places
from memlane.gate.secrets.decoys import entropy, is_elided, is_marked_whole, is_placeholder, is_random, wordiness
from memlane.gate.secrets.disguises import Reading
from memlane.gate.secrets.pii import EMAIL, NUMBERS, PHONE
from memlane.gate.secrets.rule import Rule
from memlane.gate.secrets.rules import RULES

_DIGIT = lazily(r"[0-9]")
# When something was written, which most notes say in their first lines. No rule takes such a word for a key, and to ask
# them all takes as long as the rest of a short note.
_TIME = lazily(r"[\"'(]?\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?[\"'),;.]{0,3}", re.ASCII)
# What may be a number of a person, unlike a date; how many digits it has where no word stands before it; and how far
# before it the word may stand.
_NUMBER = lazily(r"[0-9](?<![0-9].)(?!\d{3}-\d\d-\d\d(?!\d))(?:[ .-]?[0-9]){6,}+")
_LONG_NUMBER = 9
_TO_NUMBER = 80
# A marker counts only with a reason after it, so that an allowed line explains itself.
_ALLOW_MARK = r"(?:memlane:allow|gitleaks:allow|pragma: ?allowlist secret)\b[ \t:,;(-]*[A-Za-z][^\n]{2,}"


# A text with more findings than this is a dump of secrets: only a first part of it is read.
MOST = 1000
_UNREAD = "unread"

# A credential's name with a colon and the word after it; and the beginning of a token that is cut off.
_LABELLED = (
    r"(?i)\b(passw(?:or)?d|passphrase|api[_ ]?key|(?:secret|access)[_ ]?(?:key|token)|auth[_ ]?token)\s?: {1,3}"
    r"([^\s.,;]{3,200})|\b(?=bearer eyJ)(bearer) (eyJ[\w-]{5,})|-----BEGIN [A-Z ]*(PRIVATE) (KEY)-----"
)
_POINTERS = frozenset(
    "see stored kept from via set ask lives the use used managed not never none unknown rotate rotated rotates held "
    "found read taken comes only must should may can has needs expires valid for each per with when where "
    "required optional string text hidden redacted yes true false null empty missing wrong same new old".split()
)

# The match of a wide rule begins at most this far before its keyword.
_BEFORE = 420

# Place and text.
_Word = tuple[int, str]
# Start, end, rule, kind, description.
_Span = tuple[int, int, str, str, str]


@dataclass(frozen=True, slots=True)
class Finding:
    """One secret in a text: its class and place (line and column count from 1), never the value."""

    rule: str
    kind: str
    description: str
    start: int
    end: int
    line: int
    column: int


@cache
def _compiled(regex: str, ignore_case: bool) -> re.Pattern[str]:
    return re.compile(regex, re.IGNORECASE if ignore_case else 0)


@cache
def _words_before_numbers() -> tuple[tuple[str, Rule], ...]:
    return tuple((keyword, rule) for rule in NUMBERS for keyword in rule.keywords)


def scan(
    text: str,
    *,
    email: bool = False,
    phone: bool = False,
    allow: Collection[str] = (),
    marks: bool = False,
    first: bool = False,
) -> list[Finding]:
    """Every secret and personal number in the text, in order of place; [] when it is clean.

    `allow` holds fingerprints (see `memlane.gate.fingerprints`) of values that may stay. With `marks`, a line that says
    `memlane:allow <reason>` is skipped: for what a person wrote, since whoever writes a text can put a mark into it.
    A text with more than `MOST` findings is read only in part; a last finding, `unread`, covers the rest.
    E-mail addresses and phone numbers are looked for only on request: most notes hold some.
    With `first`, one finding is enough: the text is read no further, unless something in it may be allowed.
    """
    first = first and not allow and not marks
    taken, upto = _collect(text, email, phone, first)
    if not taken and upto == len(text):
        return []
    breaks = [at.start() for at in re.finditer("\n", text)]
    excused = {bisect_right(breaks, mark.start()) for mark in re.finditer(_ALLOW_MARK, text)} if marks else set()
    if upto < len(text):
        taken.append((upto, len(text), _UNREAD, "secret", f"more than {MOST:,} findings, the rest was not read"))
    findings = []
    for start, end, rule, kind, description in taken:
        row = bisect_right(breaks, start)
        column = start - (breaks[row - 1] + 1 if row else 0) + 1
        finding = Finding(rule, kind, description, start, end, row + 1, column)
        if rule == _UNREAD:
            findings.append(finding)  # nothing excuses what nobody looked at
        elif row not in excused and not (allow and is_allowed(rule, text[start:end], allow)):
            findings.append(finding)
    return findings


def _collect(text: str, email: bool, phone: bool, first: bool = False) -> tuple[list[_Span], int]:
    """Spans in order of place, at most `MOST`, and up to where the text was read for them."""
    if first:
        return [_best(text, span) for span in islice(_candidates(text, email, phone), 1)], len(text)
    upto = len(text)
    while True:
        taken: list[_Span] = []
        for span in _candidates(text[:upto], email, phone):
            _take(taken, span)
            if len(taken) > MOST:
                break
        else:
            return taken, upto
        # As far as the last of them, but at most half of it again: all turns together read no more than twice the text.
        last = min(taken[-1][0], upto // 2)
        upto = text.rfind("\n", 0, last) + 1 or last


def _best(text: str, span: _Span) -> _Span:
    """A span as all the rules together see it, on its own line."""
    low = max(text.rfind("\n", 0, span[0]) + 1, span[0] - _BEFORE)
    high = text.find("\n", span[1], span[1] + _BEFORE)
    around, _ = _collect(text[low : high if high >= 0 else span[1] + _BEFORE], False, False)
    same = (s for s in around if s[0] + low < span[1] and s[1] + low > span[0])
    return next(((s[0] + low, s[1] + low, *s[2:]) for s in same), span)


def _take(taken: list[_Span], span: _Span) -> None:
    """Add a span; those that overlap become one, so that redaction leaves nothing of either.

    The longest of them names the finding, the first among equals: a GitHub token after "Bearer" is a GitHub token.
    """
    start, end, *_ = span
    low = high = bisect_right(taken, (start, end))
    while low and taken[low - 1][1] > start:
        low -= 1
    while high < len(taken) and taken[high][0] < end:
        high += 1
    group = [*taken[low:high], span]
    longest = max(group, key=lambda s: s[1] - s[0])
    taken[low:high] = [(min(s[0] for s in group), max(s[1] for s in group), *longest[2:])]


def _candidates(text: str, email: bool, phone: bool) -> Iterator[_Span]:
    """Every match of a rule, disguises or not, with its place in this text; a text that breaks a rule is one."""
    try:
        reading = disguises.plain(text)
        if reading is None:
            yield from _in_plain(text, text, email, phone)
            return
        lines, broken = reading.text, disguises.broken(text)
        if broken != text:
            again = disguises.plain(broken)
            lines = again.text if again else broken
        yield from _placed(reading, _in_plain(reading.text, lines, email, phone))
    except Exception:
        yield 0, len(text), "unjudged", "secret", "could not be judged"


def _in_plain(text: str, lines: str, email: bool, phone: bool) -> Iterator[_Span]:
    """What the rules find in a text without disguised letters; in `lines` it is also broken where no rule breaks it."""
    pieces = _long_words(text, PIECE)
    words = [word for word in pieces if len(word[1]) >= LONG and not _TIME.fullmatch(word[1])]
    yield from _secrets(text, words)
    yield from _numbers(text)
    if email:
        yield from _matches(EMAIL, text)
    if phone:
        yield from _matches(PHONE, text)
    yield from _over_lines(lines, pieces if lines is text else _long_words(lines, PIECE))
    if coded := disguises.decoded(text, words):
        yield from _placed(coded, _secrets(coded.text, _long_words(coded.text)))


def _lowered(text: str) -> str:
    """The text in lower case, every letter in its place."""
    lowered = text.lower()
    if len(lowered) != len(text):  # a few letters grow in lower case and would shift every place after them
        lowered = "".join(c.lower() if c.isascii() else c for c in text)
    return lowered


def _secrets(text: str, words: list[_Word]) -> Iterator[_Span]:
    yield from _in_words(words)
    lowered = _lowered(text)
    found = keywords.held(lowered)
    wakes = keywords.rules_of(True)
    for number in sorted({number for keyword in found for number in wakes.get(keyword, ())}):
        rule = RULES[number]
        for low, high in _around_keywords(rule, lowered, found):
            yield from _matches(rule, text, low, high, lowered)
    for rule_id, description, start, end in chain(
        vendors.find(text, words), assignments.find(text, lowered, found), tables.find(text, lowered)
    ):
        yield start, end, rule_id, "secret", description


def _numbers(text: str) -> Iterator[_Span]:
    """What the rules for personal numbers find: around long numbers, and after their words where there is a number."""
    if not has_number(text):
        return
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return
    long = (found.span() for found in numbers if sum(map(str.isdigit, found[0])) >= _LONG_NUMBER)
    # Room for an IBAN's letters on both sides of a long number.
    for low, high in _merged((max(0, start - 16), end + 48) for start, end in long):
        for rule in (rule for rule in NUMBERS if not rule.keywords):
            yield from _matches(rule, text, low, high)
    near = _merged((max(0, found.start() - _TO_NUMBER), found.end() + 8) for found in numbers)
    lowered = "\n".join(text[low:high] for low, high in near).lower()
    for rule in [rule for keyword, rule in _words_before_numbers() if keyword in lowered]:
        for low, high in near:
            yield from _matches(rule, text, low, high)


def _over_lines(text: str, words: list[_Word]) -> Iterator[_Span]:
    """Tokens that go on in the next line. What was whole without it is so only if the rest is random and no other."""
    joined = disguises.wrapped(text, words)
    if not joined:
        return
    known: dict[str, bool] = {}
    for span in _placed(joined, _in_words(_long_words(joined.text))):
        token = text[span[0] : span[1]]
        if token not in known:
            known[token] = _goes_on(token)
        if known[token]:
            yield span


def _goes_on(token: str) -> bool:
    head, broken, rest = token.partition("\n")
    tail = "".join(rest.split())
    if not broken or not (_DIGIT.search(tail) or wordiness(tail) < 0.7):
        return False  # what follows is prose
    is_whole = any(found[1] == len(head.rstrip()) for found in _in_words([(0, head.rstrip())]))
    return not is_whole or (is_random(tail, 8) and not any(_in_words([(0, tail)])))


def _placed(reading: Reading, spans: Iterable[_Span]) -> Iterator[_Span]:
    """Spans of a reading as spans of the text that it was taken from."""
    for start, end, rule, kind, description in spans:
        yield *reading.place(start, end), rule, kind, description


def _holds(check: Callable[[str], bool], value: str, *, otherwise: bool) -> bool:
    """Whether a check passes. One that fails by itself decides nothing: a text must not be lost, or let pass, by it."""
    try:
        return check(value)
    except Exception:
        return otherwise


def _around_keywords(rule: Rule, lowered: str, found: set[str]) -> list[tuple[int, int]]:
    """The stretches of the text in which a wide rule can match, by those of its keywords that were found."""
    starts = sorted(at for keyword in rule.keywords if keyword in found for at in places(lowered, keyword, _BEFORE))
    return _merged((max(0, at - _BEFORE), at + _BEFORE + rule.reach) for at in starts)


def _merged(stretches: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Stretches of one text in order, those that touch made one. Each ends after the one before it."""
    merged: list[tuple[int, int]] = []
    for low, high in stretches:
        if merged and low <= merged[-1][1]:
            merged[-1] = merged[-1][0], high
        else:
            merged.append((low, high))
    return merged


def _in_words(words: list[_Word]) -> Iterator[_Span]:
    """What the rules that are not wide find in the long words, with places in the text."""
    if not words:
        return
    dense = "\n".join(word for _, word in words)
    lowered = dense.lower()
    joined = list(accumulate((len(word) + 1 for _, word in words), initial=0))
    for number in sorted(keywords.woken_by(lowered)):
        for start, end, rule, kind, description in _matches(RULES[number], dense):
            row = bisect_right(joined, start) - 1
            shift = words[row][0] - joined[row]
            yield start + shift, end + shift, rule, kind, description


def _long_words(text: str, least: int = LONG) -> list[_Word]:
    """Place and text of each word that is long enough for a key and holds a digit: a twentieth of prose.

    One in sixty AWS key ids has no digit, so that its form counts, too.
    """
    words, at = [], 0
    for word in filter(TELLS_KEY.search, [word for word in text.split() if len(word) >= least]):
        at = text.index(word, at)
        words.append((at, word))
        at += len(word)
    return words


@cache
def _fits_lowered(rule: Rule) -> bool:
    """Whether a rule can look into the text in lower case for where a value begins, which is quicker than any case."""
    return rule.whole and rule.ignore_case and not re.search(r"(?<!\\)[A-Z]|\(\?-i", rule.regex)


def _matches(
    rule: Rule, text: str, low: int = 0, high: int = sys.maxsize, lowered: str | None = None
) -> Iterator[_Span]:
    done, left = 0, 4 * (min(high, len(text)) - low) + 4000  # how much may be read twice: a word may be full of values
    plain = lowered is not None and _fits_lowered(rule)
    searched = lowered if plain and lowered else text
    for match in _compiled(rule.regex, rule.ignore_case and not plain).finditer(searched, low, high):
        before = text[match.start() - 1] if match.start() and rule.starts_word else " "
        if before.isalnum() or before in rule.not_after:
            continue
        value, (start, end) = match[rule.group], match.span(rule.group)
        if rule.whole:
            read = values.read(text, start) if left > 0 or start >= done else None
            if not read:
                continue
            done, left = read.stop, left - (read.stop - start)
            value, start = read.text.rpartition(rule.upto)[0] if rule.upto else read.text, read.start
            end = start + len(value) if rule.upto else read.stop
            if is_marked_whole(value):
                continue
        if not (rule.proof and _holds(rule.proof, value, otherwise=False)):
            if rule.entropy and entropy(value) < rule.entropy:
                continue
            if rule.decoys and is_placeholder(value):
                continue
            if rule.check and not _holds(rule.check, value, otherwise=True):
                continue
            if rule.decoys and is_elided(text, end):
                continue
        yield start, end, rule.id, rule.kind, rule.description


def redact(text: str, findings: Iterable[Finding]) -> str:
    """The text with `[REDACTED:rule]` in place of each value."""
    parts, at = [], 0
    for finding in sorted(findings, key=lambda f: f.start):
        parts += [text[at : finding.start], f"[REDACTED:{finding.rule}]"]
        at = finding.end
    return "".join([*parts, text[at:]])


def check_pii(text: str) -> list[str]:
    """Descriptions of what the vault must not store, [] when the text is clean.

    What the vault holds is in every prompt, so that after the name of a credential and a colon any word counts, also
    one that a person could have chosen; but not one that says where the value is.
    """
    found = [finding.description for finding in scan(text)]
    if not found:
        reading = disguises.plain(text)
        labels = re.finditer(_LABELLED, reading.text if reading else text)
        labelled = ((match[1] or match[3] or match[5], match[2] or match[4] or match[6]) for match in labels)
        found = [
            "password" if name[:4].lower() == "pass" else "credential"
            for name, value in labelled
            if value[0] not in "<$%{[(*…" and value.lower() not in _POINTERS
        ]
    return list(dict.fromkeys(found))
