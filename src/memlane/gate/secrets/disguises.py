"""A text as the rules should read it: without what is invisible, look-alike letters as what they look like, words
that go on in the next line in one piece, and what a word says once it is decoded.

A `Reading` knows where its characters stand in the text that it was taken from, so that a finding names, and redaction
takes out, what is really there. Most texts need none of this, which a few quick searches say.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise

from memlane.core.invisible import HIDDEN, unusual

# Part of a reading, and the start and end of what it stands for. Of one length, they match character by character.
_Stretch = tuple[str, int, int]


class Reading:
    """A text, and where each stretch of it stands in another one."""

    def __init__(self, stretches: Iterable[_Stretch]) -> None:
        kept = [stretch for stretch in stretches if stretch[0]]
        self.text = "".join(part for part, _, _ in kept)
        self._sources = [(start, end) for _, start, end in kept]
        self._starts = [0]
        for part, _, _ in kept:
            self._starts.append(self._starts[-1] + len(part))

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Where a stretch of this text, which is not empty, stands in the other one."""
        first, last = (bisect_right(self._starts, at) - 1 for at in (start, end - 1))
        low, high = self._sources[first][0], self._sources[last][1]
        if self._is_literal(first):
            low += start - self._starts[first]
        if self._is_literal(last):
            high -= self._starts[last + 1] - end
        return low, high

    def _is_literal(self, number: int) -> bool:
        start, end = self._sources[number]
        return end - start == self._starts[number + 1] - self._starts[number]


@cache
def _regex(source: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(source, flags)


# -- what is invisible, and what looks like something else

_LAYOUT = dict.fromkeys(map(ord, "\n\r\t"))
# Whatever a terminal or a page shows as nothing. The rules need no emoji's selectors and no script's joiners.
_UNSEEN = f"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u200c-\u200f\ufe0e\ufe0f\U0001d159{HIDDEN}]"
_MARK = "[\u0300-\u036f\u0489\u20d0-\u20ff]"
# Each begins with a character of its own, so that they are found fast.
_GONE = (
    "\x1b(?:\\[[0-9;?]{0,32}[ -/]{0,8}[@-~]|\\][^\x07\x1b\n]{0,400}(?:\x07|\x1b\\\\))|\x9b[0-9;?]{0,32}[@-~]"
    f"|{_UNSEEN}+|{_MARK}(?<=[!-~].){_MARK}*"
)
# Letters of other scripts, and the Latin letters that they look like.
_TWINS = dict(
    zip(
        "аВвсСԁԀеЕёһНіІїӀӏјЈКкМоОрРԛԚѕЅТтуУхХѵѴԝԜԌЗЬгαΑΒϲϹΕΖΗιΙϳͿκΚΜΝηοΟρΡτΤυΥνχΧγωացհոօսՍԼզյՕ"
        "ᎪᏴᏟᎠᎬᏀᎻᎥᎫᏦᏞᎷᏢᎡᏚᎢᏙᎳᏃıȷɑɡɩƽʋᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ",
        "aBbcCdDeEehHiIiIljJKkMoOpPqQsSTtyYxXvVwWG3BraABcCEZHiIjJkKMNnoOpPtTuYvxXywwghnouULqjO"
        "ABCDEGHIJKLMPRSTVWZijagisuabcdefghijklmnoprstuvwyz",
        strict=True,
    )
)
_SIGNS = dict(zip("“”„‟‘’‚‛‐‑‒−﹣∶꞉﹕∕⁄․", "\"\"\"\"''''-----::://.", strict=True))
_BLANKS = "\xa0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000"
_ENDS = "\x0b\x0c\x85\u2028\u2029"
# The zeros of scripts with digits of their own; letters and digits of full width, mathematical, letterlike, in circles
# and squares. Superscripts stay: they number footnotes.
_ZEROS = "٠۰߀०০੦૦୦௦౦೦൦๐໐༠၀០᠐"
_WIDE = "\uff10-\uff19\uff21-\uff3a\uff41-\uff5a"
_COMPATIBLE = f"{_WIDE}\u02b0-\u02b8\u1d2c-\u1d6b\u2102-\u2149\u2460-\u2468\u24b6-\u24e9\U0001d400-\U0001d7ff"
_SQUARES = "\U0001f130-\U0001f149\U0001f150-\U0001f169\U0001f170-\U0001f189\U0001f1e6-\U0001f1ff"


# Full-width signs and dashes are read as plain ones inside a word alone: elsewhere they are a script's punctuation.
_INSIDE = "\u2013\u2014\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff5e"


@cache
def _inside() -> frozenset[str]:
    return frozenset(map(chr, [0x2013, 0x2014, *range(0xFF01, 0xFF5F)]))


def _sign(match: re.Match[str]) -> str:
    return "-" if match[0] in "\u2013\u2014" else chr(ord(match[0]) - 0xFEE0)


@cache
def _twins() -> str:
    """A word of another script is left alone: its letters are twins where all of them look Latin, or others are."""
    twins = "".join(_TWINS)
    other = f"[^\\W\x00-\x7f{twins}{_WIDE}]"
    return f"[{twins}](?<![{twins}].)(?<!{other}.)[{twins}]*+(?!{other})"


@cache
def _read_as(char: str) -> str | None:
    """What stands for a character that is no plain one: another, "" for nothing; None where it stays, or it depends."""
    import unicodedata

    if _regex(f"{_UNSEEN}|{_MARK}").match(char) and char not in _ENDS:
        return ""
    if char in _SIGNS or char in _ENDS:
        return _SIGNS.get(char, "\n")
    if char.isspace() or char == "\u2800":
        return " "
    if char.isdecimal():
        return str(unicodedata.decimal(char))
    if _regex(f"[{_SQUARES}]").match(char):
        return chr(ord("A") + (ord(char) - (0x1F1E6 if char >= "\U0001f1e6" else 0x1F130)) % 32)
    folded = unicodedata.normalize("NFKC", char) if _regex(f"[{_COMPATIBLE}]").match(char) else ""
    return folded if len(folded) == 1 and folded.isascii() else None


def plain(text: str) -> Reading | None:
    """The text without disguises of its letters; None where it has none."""
    odd = unusual(text)
    if not odd:
        return None
    folded, gone = text, False
    for char in odd:
        read = _read_as(char)
        gone = gone or read == ""
        if read:
            folded = folded.replace(char, read)
    if not _TWINS.keys().isdisjoint(odd):
        folded = _regex(_twins()).sub(lambda match: "".join(map(_TWINS.__getitem__, match[0])), folded)
    if not odd.isdisjoint(_inside()):
        folded = _regex(f"[{_INSIDE}](?<=[A-Za-z0-9_].)(?=[A-Za-z0-9_])").sub(_sign, folded)
    if not gone:
        return Reading([(folded, 0, len(text))]) if folded != text else None
    cuts = [place for match in _regex(_GONE).finditer(folded) for place in match.span()]
    kept = list(pairwise([0, *cuts, len(text)]))[::2]
    return Reading((folded[start:end], start, end) for start, end in kept)


# -- words that go on in the next line

_MOST_LINES = 60
_INSIDE_WORD = r"[\w+/=.~-]"
# A word of prose is no part of a token.
_PROSE = r"[^\w\s]{0,3}(?:[A-Za-z]?[a-z]{2,}|[A-Za-z])(?![\w+/=~-]|\.\w)"
_CONTINUES = (
    rf"[\\=]?[ \t]{{0,2}}\r?\n[ \t>]{{0,40}}(?:(?:#|//|--)[ \t]{{1,4}})?(?!https?:|{_PROSE})([\w+/.~-]\S{{0,500}})"
)
_BLANK_INSIDE = f"[{_BLANKS}](?<={_INSIDE_WORD}.)(?={_INSIDE_WORD})"


def broken(text: str) -> str:
    """The text with blanks inside words that are no plain blanks as line ends: a page breaks no line there."""
    return text if text.isascii() else _regex(_BLANK_INSIDE).sub("\n", text)


def wrapped(text: str, words: list[tuple[int, str]]) -> Reading | None:
    """Each long word that may go on from the line before it, or in the lines after it, in one piece; None if none does.

    Lines in the middle are of one word.
    """
    stretches: list[_Stretch] = []
    done = 0
    for at, word in words:
        if at < done or "://" in word:
            continue
        pieces = [(at, at + len(word.rstrip("\\=")))]
        line = text.rfind("\n", max(done, at - 45), at)
        if line >= 0 and not text[line + 1 : at].strip(" \t>#/-"):
            low = max(done, line - 100)
            before = text[low:line].rstrip(" \t\r\\=")
            start = max(map(before.rfind, " \t\n")) + 1
            if (
                start < len(before)
                and _regex(_INSIDE_WORD).match(before[-1])
                and not _regex(_PROSE).match(before, start)
            ):
                pieces.insert(0, (low + start, low + len(before)))
        while len(pieces) < _MOST_LINES and (more := _next_piece(text, pieces[-1][1])):
            pieces.append(more)
        done = pieces[-1][1]
        if len(pieces) > 1:
            stretches += [(text[start:end], start, end) for start, end in pieces]
            stretches.append(("\n", done, done))
    return Reading(stretches) if stretches else None


def _next_piece(text: str, end: int) -> tuple[int, int] | None:
    """The first word of the next line where the line ends here, in the middle of a token."""
    if "\n" not in text[end : end + 5] or not _regex(_INSIDE_WORD).match(text[end - 1]):
        return None
    more = _regex(_CONTINUES).match(text, end)
    return (more.start(1), more.end(1) - more[1].endswith(("\\", "="))) if more else None


# -- what a word says once it is decoded

# By the sign that they begin with: a pattern that begins with one sign is found fast.
_ESCAPES = {
    "%": r"%(?:2[1-9a-f]|[3-7][0-9a-f])",
    "\\": r"\\(?:u00|u\{|x)[2-7][0-9a-f]\}?",
    "&": r"&(?:#(?:3[3-9]|[4-9]\d|1[01]\d|12[0-6]|x0{0,4}[2-7][0-9a-f])"
    r"|quot|apos|amp|lt|gt|equals|colon|semi|lowbar|hyphen|dash|period|comma|plus|sol|bsol|num|dollar|percnt|excl|quest"
    r"|commat|ast|lpar|rpar|lbrack|rbrack);",
}
# Where code puts a string together of two.
_INNER = r"[\w+/=.!@#$%^&*~-]"
_GLUE = (
    rf"(?<={_INNER}[\"'`])[ \t]{{0,8}}(?:(?:\+|\.{{1,2}}|&|\|\||<>)\s{{0,60}}|\\?\r?\n[ \t]{{0,60}}"
    rf"(?:(?:\+|\.{{1,2}}|&|\|\||<>)[ \t]{{0,8}})?)[\"'`](?={_INNER})"
)
_BEFORE = 80
_BORDER = r"[\s/?&=;,\"'<>]"
# Base64 over several lines, or less, or hex.
_CODED = r"[A-Za-z0-9+/_-]{24,}+={0,6}"
_LINE = r"[ \t]{0,2}\r?\n[ \t>]{0,20}[A-Za-z0-9+/_-]"
_MORE = rf"(?:{_LINE}{{40,}}+(?=[\s=]|\Z)){{0,200}}+(?:{_LINE}{{2,}}+={{0,2}}(?=[\s\"'`,.;)]|\Z))?"
_APART = "\n\0\n"  # no rule reads over this


def decoded(text: str, words: list[tuple[int, str]]) -> Reading | None:
    """What escapes, strings put together, and long words in base64, base32 or hex say; None where none do."""
    edits: list[tuple[int, int, str]] = []
    for quote in "\"'`":
        if quote in text:
            edits += ((match.start(), match.end(), "") for match in _regex(quote + _GLUE).finditer(text))
    for sign, escape in _ESCAPES.items():
        if sign in text:
            found = _regex(escape, re.IGNORECASE).finditer(text)
            edits += ((match.start(), match.end(), _unescaped(match[0])) for match in found)
    stretches = [*_edited(text, sorted(edits)), *_decoded_words(text, words)]
    return Reading(stretches) if stretches else None


def _unescaped(escape: str) -> str:
    if escape[0] == "&":
        from html import unescape

        return "-" if escape.lower() in ("&hyphen;", "&dash;") else unescape(escape)  # U+2010 looks the same
    return chr(int(escape.rstrip("}")[-2:], 16))


def _edited(text: str, edits: list[tuple[int, int, str]]) -> Iterator[_Stretch]:
    """The words with edits in them, edited, and a little of what stands before them on the line."""
    if not edits:
        return
    done = high = 0
    for start, end, new in edits:
        if start < done:
            continue  # in the middle of the last one
        if start >= high:
            yield text[done:high], done, high
            yield _APART, high, high
            low = max(high, start - _BEFORE)
            line = text.rfind("\n", low, start) + 1
            border = None if line or not low else _regex(_BORDER).search(text, low, start)
            done = line or (border.end() if border else low and start)
        yield text[done:start], done, start
        yield new, start, end
        done = end
        if end >= high:
            high = _regex(r"\S*").match(text, end).end()  # type: ignore[union-attr]  # it matches nothing, too
    yield text[done:high], done, high


def _decoded_words(text: str, words: list[tuple[int, str]]) -> Iterator[_Stretch]:
    done = 0
    known: dict[str, str] = {}  # what the beginnings of words say: a text may have the same one over and over
    for at, word in words:
        for run in _regex(_CODED).finditer(word) if len(word) >= 24 and at >= done else ():
            for value, start in _codes(run[0], at + run.start()):
                head = value[:32]
                if (said := known.get(head)) is None:
                    said = known[head] = _decode(head)
                if not said:
                    continue
                end = start + len(value)
                more = _regex(_MORE).match(text, end) if len(value) >= 40 else None
                longer = _decode(_regex(r"[\s>]+").sub("", text[start : more.end()])) if more else ""
                done = more.end() if more and longer else end
                yield _APART, start, start
                yield longer or (_decode(value) if value != head else said), start, done
                break


def _codes(value: str, at: int) -> Iterator[tuple[str, int]]:
    """What may be the code in a run of its characters: all of it, or a part between signs that a code can have, too."""
    yield value, at
    if _regex(r"[-_/]").search(value):
        for part in _regex(r"[A-Za-z0-9+]{24,}={0,6}").finditer(value):
            yield part[0], at + part.start()


def _decode(value: str) -> str:
    """The text that a value in hex, base32 or base64 says; "" when it says none."""
    from base64 import b32decode, urlsafe_b64decode

    bare = value.rstrip("=")
    if _regex(r"[0-9a-f]{24,}|[0-9A-F]{24,}").fullmatch(bare) and (
        said := _text(bytes.fromhex(bare[: len(bare) & ~1]))
    ):
        return said
    if bare.isupper() and _regex(r"[A-Z2-7]{24,}").fullmatch(bare):
        whole = bare[: len(bare) - {1: 1, 3: 1, 6: 1}.get(len(bare) % 8, 0)]
        if said := _text(b32decode(whole + "=" * (-len(whole) % 8))):
            return said
    if bare.islower() or bare.isupper():
        return ""
    whole = bare[: len(bare) - (len(bare) % 4 == 1)].replace("+", "-").replace("/", "_")
    return _text(urlsafe_b64decode(whole + "=" * (-len(whole) % 4)))


def _text(data: bytes) -> str:
    """The bytes as text, of which the last character may be cut off; "" for anything else than text."""
    if not any(data[1:24:2]):
        data = data[::2]  # two bytes a character, as Windows counts
    said = data.decode(errors="replace")
    return said if "\ufffd" not in said[:-1] and said[:-1].translate(_LAYOUT).isprintable() else ""
