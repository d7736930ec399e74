"""Whether a text that is much like an older one says something that the older one does not.

"The API port is 9090" is like "The API port is 8080", word for word, and yet no repetition of it. Likeness
(`memlane.gate.likeness`) finds the pairs to ask about; here the new text is read for what it has and the old one has
not: a number, version, date, unit, name, identifier or path, a negation or another word that turns a statement round,
and content words in the place of others. What is left is a repetition: reordered, inflected, a little reworded.

When in doubt it is a change: storing a thing twice costs a line, and not storing it costs the thing. Whether the new
text can stand in the place of the old one is another question (`renews`), and there, when in doubt, both stay.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import dropwhile

from Stemmer import Stemmer

from memlane.core.patterns import lazily
from memlane.core.text import remembered
from memlane.core.values import NamedTuple

# Words that carry no content of their own.
_PLAIN = frozenset(
    """a about actually also although am an and are as at be because been being but by currently did do does doing done
    for from further had has have having he her here hers him his how however i if in into is it its itself just let
    like made make makes me mine my now of on or our ours per quite rather really same shall she so such than
    that the their theirs them then there these they this those though through thus to too toward towards upon us very
    via was we well were what whatever when where whether which while who whom whose why will with within would yet you
    your yours mr mrs inc corp co ltd llc""".split()
)
_CARDINALS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty"""
_ORDINALS = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth"
_NUMBERS = {
    word: str(number) for words in (_CARDINALS, _ORDINALS) for number, word in enumerate(words.split())
} | {
    "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "seventy": "70", "eighty": "80", "ninety": "90",
    "hundred": "100", "thousand": "1000", "million": "million", "billion": "billion", "half": "half",
    "quarter": "quarter", "once": "1x", "twice": "2x", "double": "2x", "dozen": "12",
}  # fmt: skip
_DATES = frozenset(
    """january february march april may june july august september october november december jan feb mar apr jun jul
    aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs
    fri sat sun""".split()
)
_NOT = frozenset("not no never cannot without neither nor none nothing nobody longer".split())
_TURNING = frozenset(
    """except unless instead off disable disabled forbid forbidden prohibit prohibited ban banned deny denied refuse
    refused reject rejected stop stopped false optional deprecated remove removed obsolete exclude lack avoid""".split()
)
_OPENING = frozenset(
    "turns turn turned out note noted notes remember interesting ok okay apparently indeed important found".split()
)
_LIMITING = frozenset("only solely always".split())
_UNITS = frozenset("ms sec second minute min hour day week month quarter year percent kb mb gb tb byte px".split())
_SPELT_OUT = {  # one word for the other
    "config": "configuration", "repo": "repository", "db": "database", "docs": "documentation", "env": "environment",
    "dev": "development", "prod": "production", "app": "application", "auth": "authentication", "params": "parameters",
    "deps": "dependencies", "max": "maximum", "min": "minimum", "info": "information", "dir": "directory",
    "kept": "keep", "ran": "run", "wrote": "write", "written": "write", "built": "build", "sent": "send",
    "chose": "choose", "chosen": "choose", "went": "go", "gone": "go", "got": "get", "u.s": "us", "american": "us",
}  # fmt: skip

_CHANGE = lazily(
    r"""\b(?: no\ longer | any\ ?more | instead\ of | rather\ than | not\ just | previous(?:ly)? | former(?:ly)?
    | used\ to | replac(?:e[sd]?|ing) | migrat(?:ed|ion|ing) | switched | renamed | remov(?:ed|al) | dropped
    | decommission(?:ed|ing)? | deprecated | obsolete | retired | revert(?:ed|s) | recalibrated | relaxed
    | supersed(?:ed|es) | moved\ (?:from|off) | there\ is\ no | (?:is|are)\ now | \(was\b | was\ \d
    | now\ (?:uses?|defaults?|requests?|comes?|lives?|needs?|runs?|bounds?|goes|go)
    | nicht\ mehr | statt(?:dessen)? | ersetzt | früher | umgestellt | ne\ .{1,20}\ plus | remplac\w+ | au\ lieu\ de
    | désormais | ya\ no | en\ lugar\ de | reemplaz\w+ | ahora | больше\ не | вместо | заменен\w* | теперь )\b
    | 不再 | 改为 | 替换 | 以前 | もう.{1,8}ない | 代わりに | に変更""",
    re.IGNORECASE | re.VERBOSE,
)
_WORD = lazily(r"[^\W_]+(?:[._/'+#@:&-]+[^\W_]+|_+[^\W_]+)*[+#]{0,2}")
_PART = lazily(r"[^\W_]+")
_IDENTIFIER = lazily(r"[_/@#+]|\w\.\w|[a-z][A-Z]")
_SENTENCE = lazily(r"(?<=[^.\s]{3}[.!?])\s+(?=[^a-z\s])|\n+")
_ACCENTS = lazily("[\u0300-\u036f]")
_ENDED = frozenset('.!?:\n"“”-•*(')  # what a word may follow that is written large for no other reason
_SHORT = 6  # content words of a text in which each one counts
_ENOUGH = 10  # content words of a sentence: in so long a one, more may be put in other words
_REWORDED = (
    (4, 0.0),
    (6, 0.2),
    (8, 0.34),
    (None, 0.5),
)  # up to so many content words: the share of them that may be new ones
_SAME_FORM = 0.8  # of the words, for two texts to be one form with something else filled in
_ONE_THING = 0.6  # of the words, for two texts to say it of one thing, where they differ in values alone
_SUBJECT = 2  # content words that two texts begin with when they are about one thing
_MOST_WORDS = 400  # texts longer than that are compared without their order
_stemmer = Stemmer("english", 0)


class _Word(NamedTuple):
    shown: str
    plain: str  # lower case, without accents, without 's
    begins: bool  # a sentence, or what is like one


class _Text(NamedTuple):
    words: list[_Word]
    known: frozenset[str]  # the stems of all words and of their parts
    values: frozenset[str]

    @classmethod
    def of(cls, text: str) -> _Text:
        words = _words(text)
        parts = {part for word in words for part in (word.plain, *_PART.findall(word.plain))}
        return cls(words, frozenset(map(_root, parts)), frozenset(filter(None, map(_value, parts))))

    @property
    def content(self) -> list[str]:
        return list(dict.fromkeys(word.plain for word in self.words if word.plain not in _PLAIN))

    def has(self, word: str) -> bool:
        return _root(word) in self.known


def what_is_new(new: str, old: str) -> str:
    """The first thing that the new text says and the old one does not, as it is written; "" for a repetition."""
    text, before = _Text.of(new), _Text.of(old)
    sentences = [piece for piece in _SENTENCE.split(new) if piece.strip()]
    lenient = len(sentences) == 1 and min(len(text.content), len(before.content)) >= _ENOUGH
    return (
        _new_value(text, before)
        or _new_name(text, before, lenient)
        or _turned(text, before, lenient)
        or next(filter(None, (_new_words(sentence, before) for sentence in sentences)), "")
        or _filled_in(text.words, before.words)
    )


def repeats(new: str, old: str) -> bool:
    """Whether a text says nothing new, in a long one even if a word stands in the place of another: for what nobody
    wants to see again.
    """
    text, before = _Text.of(new), _Text.of(old)
    if min(len(text.content), len(before.content)) < _ENOUGH:
        return not what_is_new(new, old)
    sentences = (piece for piece in _SENTENCE.split(new) if piece.strip())
    return not (
        _new_value(text, before)
        or _new_name(text, before, lenient=True)
        or _turned(text, before, lenient=True)
        or any(_new_words(sentence, before) for sentence in sentences)
    )


def renews(new: str, old: str) -> bool:
    """Whether a new text can stand in the place of an old one: it says all that the old one says, and more, or it says
    another value of the same thing, or the opposite.

    Names and other words do not count as values: a driver may lack two things.
    """
    if not what_is_new(old, new):
        return True
    text, before = _begun(_words(new)), _begun(_words(old))
    if max(len(text), len(before)) > _MOST_WORDS:
        return False
    from difflib import SequenceMatcher

    own, theirs = [_key(word) for word in text], [_key(word) for word in before]
    matcher = SequenceMatcher(None, theirs, own, autojunk=False)
    if matcher.ratio() < _ONE_THING:
        return False
    spans = [span for span in matcher.get_opcodes() if span[0] != "equal"]
    differing = [word for _, start, end, first, last in spans for word in (*before[start:end], *text[first:last])]
    telling = [word for word in differing if word.plain not in _PLAIN]
    if all(_turns(word) for word in telling):
        return bool(telling)
    same = next(at for at, (one, other) in enumerate(zip([*own, ""], [*theirs, " "], strict=False)) if one != other)
    subject = [word for word in text[:same] if word.plain not in _PLAIN]
    return len(subject) >= _SUBJECT and all(_turns(word) or _is_setting(word) for word in telling)


def content(text: str) -> dict[str, str]:
    """The words of a text that carry content, as they are written, each with its root."""
    return {word.shown: _root(word.plain) for word in _words(text) if word.plain not in _PLAIN}


@remembered(2_000)  # a search asks this of its best hits, which are often the same ones
def tells_of_change(text: str) -> bool:
    """Whether a text says that something is not as it was."""
    return _CHANGE.search(text) is not None


def _begun(words: list[_Word]) -> list[_Word]:
    """The words from the first one on that may say what this is about: "Turns out the" does not."""
    return list(dropwhile(lambda word: word.plain in _PLAIN or word.plain in _OPENING, words))


def _turns(word: _Word) -> bool:
    return word.plain.endswith("n't") or word.plain in _NOT or word.plain in _TURNING


def _is_setting(word: _Word) -> bool:
    """Whether a word is a value, or the unit of one."""
    single = word.plain.removesuffix("s")
    return bool(_value(word.plain)) or word.plain in _DATES or single in _DATES or single in _UNITS


def _words(text: str) -> list[_Word]:
    flat = text.replace("’", "'")
    if not flat.isascii():
        flat = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", flat)))
    words = []
    for match in _WORD.finditer(flat):
        before = flat[max(match.start() - 3, 0) : match.start()].rstrip(" \t'")
        plain = match[0].lower()
        plain = plain if plain.endswith("n't") else plain.removesuffix("'s")
        words.append(_Word(match[0], plain, match.start() == 0 or not before or before[-1] in _ENDED))
    return words


@lru_cache(maxsize=20_000)
def _root(word: str) -> str:
    return str(_stemmer.stemWord(_SPELT_OUT.get(word, word)))


def _value(word: str) -> str | None:
    """A number in whatever form, so that two forms of it are the same; None for any other word."""
    if word in _NUMBERS:
        return _NUMBERS[word]
    if not any(map(str.isdigit, word)):
        return None
    ordinal = re.fullmatch(r"(\d+)(?:st|nd|rd|th)", word)
    return ordinal[1] if ordinal else word.replace(",", "")


def _key(word: _Word) -> str:
    return _value(word.plain) or _root(word.plain)


def _new_value(new: _Text, old: _Text) -> str:
    found = (word.shown for word in new.words if (value := _value(word.plain)) and value not in old.values)
    return next(found, "")


def _new_name(new: _Text, old: _Text, lenient: bool) -> str:
    """A name, identifier, path, weekday or month that the old text lacks.

    In a long sentence one may be added without taking the place of another: who said it, and when.
    """
    names = _names(new, old)
    return names[0] if names and not (lenient and not _names(old, new)) else ""


def _names(text: _Text, other: _Text) -> list[str]:
    initials = "".join(word.shown[0] for word in other.words if word.shown[0].isupper())
    found = []
    for word in text.words:
        shown, plain = word.shown, word.plain
        capitals = shown.isupper() and len(shown) > 1
        if (plain in _PLAIN and not capitals) or _value(plain):
            continue
        if _IDENTIFIER.search(shown):
            new = not other.has(plain) and not all(map(other.has, _PART.findall(plain)))
        elif capitals:
            new = not other.has(plain) and shown not in initials
        else:
            named = shown[0].isupper() and not word.begins
            new = (named or plain.removesuffix("s") in _DATES or plain in _DATES) and not other.has(plain)
        if new:
            found.append(shown)
    return found


def _turned(new: _Text, old: _Text, lenient: bool) -> str:
    """A word that turns the statement round and that only one of the texts has."""
    counted = _NOT if lenient else _NOT | _TURNING
    if min(len(new.content), len(old.content)) <= _SHORT:
        counted |= _LIMITING
    own, theirs = _turning(new, counted), _turning(old, counted)
    differing = own.keys() ^ theirs.keys()
    return {**theirs, **own}[min(differing)] if differing else ""


def _turning(text: _Text, counted: Collection[str]) -> dict[str, str]:
    found = {}
    for word in text.words:
        if word.plain.endswith("n't") or word.plain in _NOT:
            found["not"] = word.shown
        elif word.plain in counted:
            found[_root(word.plain)] = word.shown
    return found


def _new_words(sentence: str, old: _Text) -> str:
    """The first of a sentence's content words that the old text lacks, where there are too many for a rewording."""
    content = [word for word in _Text.of(sentence).content if not word.endswith("n't") and word not in _NOT]
    words = [word for word in content if not _value(word)]
    new = [word for word in words if not old.has(word) and not all(map(old.has, _PART.findall(word)))]
    size = min(len(content), len(old.content))
    may_be_new = next(share for most, share in _REWORDED if most is None or size <= most)
    return new[0] if new and len(new) >= may_be_new * len(content) else ""


def _filled_in(new: Sequence[_Word], old: Sequence[_Word]) -> str:
    """What stands in the place of something else, where two texts are otherwise of one form."""
    if max(len(new), len(old)) > _MOST_WORDS:
        return ""
    from difflib import SequenceMatcher

    own, theirs = [_key(word) for word in new], [_key(word) for word in old]
    exchanged = [at for at, (one, other) in enumerate(zip(own, theirs, strict=False)) if one != other]
    if len(own) == len(theirs) and len(exchanged) == 2 and sorted(own) == sorted(theirs):
        return new[exchanged[0]].shown  # tabs over spaces, spaces over tabs
    matcher = SequenceMatcher(None, theirs, own, autojunk=False)
    if matcher.ratio() < _SAME_FORM:
        return ""
    for kind, start, end, first, last in matcher.get_opcodes():
        replaced = kind == "replace" and _content_of(old[start:end], own[first:last])
        if replaced and (word := _content_of(new[first:last], theirs[start:end])):
            return word
    return ""


def _content_of(words: Sequence[_Word], others: Collection[str]) -> str:
    """The first content word of these that the others lack."""
    return next((word.shown for word in words if word.plain not in _PLAIN and _key(word) not in others), "")
