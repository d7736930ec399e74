"""What was said, cut into passages that can stand by themselves: one to three sentences, or a list with what it is a
list of. Markup, code, greetings and talk about progress are left out. Pure text → data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memlane.core.patterns import lazily

LONGEST = 500  # characters of a passage
_SENTENCES = 3
_LEAD = 110  # characters of a heading or lead that is put before what it introduces
_TOGETHER, _SHORT_LIST = 6, 480  # items and characters of a list that is told as a whole

_FENCE = lazily(r"^\s*(?:```|~~~)")
_HEADING = lazily(r"^\s*#{1,6}\s+(.*?)\s*#*\s*$|^\s*\*\*([^*]{3,90}?):?\*\*:?\s*$")
_ITEM = lazily(r"^(\s*)(?:[-*•]|\d{1,2}[.)]|\(\d\))\s+(.*)$")
_TABLE = lazily(r"^\s*\|")
_RULE = lazily(r"^\s*(?:[-=_*] ?){3,}\s*$")
_BOLD = lazily(r"\*\*(.+?)\*\*|__(.+?)__")
_EMPHASIS = lazily(r"(?<![\w*])\*([^*\s][^*]*?)\*(?![\w*])")
_LINK = lazily(r"\[([^\]]+)\]\((?:https?|diffhunk|file)[^)]*\)")
_SYMBOLS = lazily(r"[✅❌⚠️❗🎯🏗📱🎉🚀✨✓✔👀🔧💡📝]+\ufe0f?\s*")
_QUOTED = lazily(r"^\s*(?:>\s?)+")
_SPAN = lazily(r"(`+[^`]*`+)")
_END = lazily(r"(?<=[.!?。！？])[\"')\]*`]*\s+(?=[A-Z0-9`\"'(\[*_—-]|[^\x00-\x7f])|(?<=[。！？])")
_ABBREVIATED = lazily(r"\b(?:e\.g|i\.e|vs|etc|cf|approx|incl|resp|no|v\d+)\.$", re.IGNORECASE)

_FILLER = (
    r"(?:ok(?:ay)?|good|great|perfect|excellent|now|next|first|then|finally|so|and|but|alright|right|also|wait|hmm+|"
    r"actually|yes|sure|interesting|nice|done|understood|got it|since \w+ \w+)"
)
_PROGRESS = lazily(
    rf"^(?:{_FILLER}[,.!:;— –-]*\s+)*(?:let me|let['’]?s|let us|i['’]ll|i will|i['’]m (?:going|now|about)|i am going|"
    r"i(?: now)? (?:need|want|have) to|i should|i can now|i have (?:a|the) (?:full|clear|complete|good)|"
    r"we['’]ll|time to|checking|running|looking|reading|moving on|proceeding|continuing|starting|waiting|launching|"
    r"now (?:add|run|update|the|for|create|fix|remove|revert|i|we|write|build|implement|commit|check|verify)|"
    r"first,? (?:the|add|remove|read|check)|here(?:['’]s| is| are)|(?:site|step|phase|task|part|file) \d+\b|"
    r"(?:do|would|should|shall|can|could) (?:you|i|we)\b.*\?$|want me to|ready (?:to|for)|same (?:for|with|in))",
    re.IGNORECASE,
)
_PLANNED = lazily(
    r"(?:(?:so|now|ok(?:ay)?|then|first|next)[,:]? )*(?:let me|i['’]ll|i will|i['’]m going to|"
    r"(?:i|we) (?:now )?(?:need|have|want) to|(?:my|the) plan\b|remaining\b|next steps?\b|test plan\b)"
    r"|.*\b(?:i|we) (?:now )?(?:need|have|want) to:$",
    re.IGNORECASE,
)
_LET_ME = lazily(r"\blet me\b", re.IGNORECASE)
_SEEN = lazily(
    r"^(?:(?:ah+|so|now|ok(?:ay)?),? )?(?:i (?:think )?(?:i )?(?:can |now )?(?:see|found|understand|know|traced)|"
    r"i['’]ve found|there['’]s|here['’]s|that['’]s|this is)(?: now)? (?:the|it|what)\b[^.:;,—]{0,40}[.!:]$",
    re.IGNORECASE,
)
_DOING = lazily(r"\w+ing\b")
_TELLING = lazily(
    r"\b(?:instead|rather than|because|since|so that|otherwise|not\b|n['’]t\b|without|must|never|always|only)\b",
    re.IGNORECASE,
)
_STATUS = lazily(
    r"^(?:\W*(?:all|both|the|everything|full|and|no|0|\d+)\b)*\W*(?:\w+ ){0,3}?(?:tests?|lint(?:er|ing)?|builds?|"
    r"checks?|suite|compil\w+|typecheck|green|clean|errors?|warnings?|issues|changes?|done|complete[d]?)\b.{0,60}?"
    r"\b(?:pass(?:es|ed|ing)?|clean(?:ly)?|green|succe\w+|ok|remain\w*|complete[d]?|done|in place|working|works)\b\W*$",
    re.IGNORECASE,
)
_OPENER = lazily(
    r"^(?:i (?:can )?(?:also )?(?:(?:see|found|now see)(?: now)? (?:that |there['’]s |[-—:] )|notice[d]? (?:that )?)|"
    r"(?:that['’]s |a |you['’]re |you are )?(?:absolutely |exactly |totally |completely )?"
    r"(?:good|great|perfect|excellent|right|correct|fair|nice|ok(?:ay)?|yes|yup|no|done|understood|sure|sorry|clean|"
    r"got it|makes sense|i see|agreed|all green|interesting|hmm+|wait|ah+|found it|found the \w+|fixed|confirmed|noted)"
    r"(?: (?:catch|question|questions|point|call|idea|news|progress|find|now|i apologi[sz]e|my mistake|work|job))?"
    r"(?:,? (?:you['’]re|you are) (?:absolutely |exactly |totally )?right)?\s*[.!:,—–-]+)\s*",
    re.IGNORECASE,
)
_PASTED = lazily(
    r"^\s*(?:\[\d\d/\d\d/\d\d .*?\]|[$>%❯#] \S|\w+@[\w.-]+[:~]|\S+\.\w{1,5}:\d+(?::\d+)?:?\s|\d{4}-\d\d-\d\d[T ]\d\d:|"
    r"[\u2190-\u2bff\U0001f000-\U0001faff]|at \S+ ?\(|File \"|\s{4,}\S|\d+→|go: |npm (?:ERR|WARN)|"
    r"error(?:\[\w+\])?: |ERROR|WARN|INFO|DEBUG)"
)
_IDLE = lazily(
    r"^(?:(?:it|this|that|everything|the (?:code|package|project|build)) (?:all )?(?:compiles|builds|works|passes|"
    r"looks)\b.{0,20}|(?:\w+ ){0,2}(?:feedback|picture|point|question|findings?|catch|news|instinct|call|progress|find|"
    r"idea|mistake)|\w[\w'’]*(?: \w[\w'’]*){0,2})[.!]$",
    re.IGNORECASE,
)
# A beginning that leans on what was said before, and one that can be left out.
_LEANING = lazily(
    r"(?:this|that|it|its|these|those|they|their|them|he|she|which|both|neither|the same)\b", re.IGNORECASE
)
_JOINT = lazily(
    r"^(?:(?:so|but|and|also|still|however|then|thus|therefore|plus|additionally|that said|basically|in short|"
    r"note that|also note|importantly|meanwhile|in addition|besides|of course|again|indeed|"
    r"i (?:also )?noticed?(?: that)?)\b(?: also\b)?[,:—–-]*\s+)+",
    re.IGNORECASE,
)
# A lead that says nothing about the list that follows.
_EMPTY_LEAD = lazily(
    r"(?:summary|overview|changes?|changed|what (?:i|we|was|changed|it)|files?|notes?|details|key|main|here|results?|"
    r"findings|the (?:(?:flow|fix|changes?|plan|issues?|approach) (?:is|are|was)|user \w+)|it |"
    r"this (?:means|is|includes)|two|three|four|five|six|\d+|\w+ (?:things|items|points|changes|issues|fixes|bugs)\b|"
    r"next|pros|cons|approach|options?|done|status)",
    re.IGNORECASE,
)
_IDENTIFIER = lazily(r"\S{0,40}?(?:\w[._/:]\w|[a-z][A-Z]|\w\()|[a-z]+-[a-z]+-")
_THREE_WORDS = lazily(r"(?:[^\W\d_]{2,}\W.*?){2}[^\W\d_]{2,}")


class Passage(NamedTuple):
    """A passage, which sentences of the text it is made of (from the first to before the last), and what it stood
    under: a heading, or the lead of a list."""

    text: str
    start: int
    end: int
    sentences: tuple[str, ...]
    heading: str = ""
    whole: bool = False  # it is all that was said
    listed: bool = False
    leans: bool = False  # it begins with a word for something that it does not name


class _Block(NamedTuple):
    kind: str  # paragraph, item, heading
    text: str
    depth: int = 0


def passages(text: str, own: bool = False) -> list[Passage]:
    """The passages of a text, overlapping: whoever chooses keeps those that do not. `own`: they are the user's words,
    of which progress and greetings are no part, but pasted output is."""
    found: list[Passage] = []
    blocks = _blocks(text, own)
    pieces = [_pieces(block, own) for block in blocks]
    heading, at, place = "", 0, 0
    while at < len(blocks):
        end = at + 1
        if blocks[at].kind == "heading":
            heading, at = blocks[at].text, end
            continue
        while end < len(blocks) and blocks[end].kind == blocks[at].kind:
            end += 1
        group = pieces[at:end]
        if blocks[at].kind == "item":
            lead = blocks[at - 1].text if at and blocks[at - 1].text.endswith(":") else heading
            found += _list(blocks[at:end], group, place, _split(lead)[-1] if lead else "")
        else:
            found += _flow([sentence for sentences in group for sentence in sentences], place, heading, own)
        at, place = end, place + max(len(group), sum(map(len, group)))
    whole = tuple(sentence for sentences in pieces for sentence in sentences)
    if own and len(" ".join(whole)) <= LONGEST and all(block.kind == "paragraph" for block in blocks):
        found.append(Passage(" ".join(whole), 0, len(whole), whole, whole=True))
    return [passage for passage in found if _THREE_WORDS.search(passage.text)]


def typed(text: str) -> str:
    """The lines of a prompt that the user typed, without pasted output, quotations and code."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if _FENCE.match(line):
            inside = not inside
        elif not inside and not _PASTED.match(line) and not _QUOTED.match(line) and not _TABLE.match(line):
            lines.append(line)
    return "\n".join(lines)


def _flow(sentences: list[str], place: int, heading: str, own: bool) -> Iterator[Passage]:
    """Every one to three sentences in a row of paragraphs. What only leads to a list or to code is no part of them."""
    for first, sentence in enumerate(sentences):
        leans = not own and bool(_LEANING.match(_JOINT.sub("", sentence)))
        if leans and first:
            continue  # it is told with what goes before
        for last in range(first, min(first + _SENTENCES, len(sentences))):
            window = tuple(sentences[first : last + 1])
            if (window[-1].endswith(":") and not own) or len(text := " ".join(window)) > LONGEST:
                break
            text, under = _begun(text, heading if leans else "") if not own else (text, False)
            yield Passage(
                text, place + first, place + last + 1, window, heading,
                whole=len(window) == len(sentences) and not place, leans=leans and not under,
            )  # fmt: skip


def _list(blocks: list[_Block], pieces: list[list[str]], place: int, lead: str) -> Iterator[Passage]:
    """The items of a list, each under the lead if that says something, and a short list as a whole. Not of a list of
    what the assistant is going to do."""
    if _PLANNED.match(lead):
        return
    under = f"{lead.rstrip(':')}:" if lead and len(lead) <= _LEAD and not _EMPTY_LEAD.match(lead) else ""
    nested: list[tuple[int, int, list[str]]] = []
    for at, (block, sentences) in enumerate(zip(blocks, pieces, strict=True), place):
        if block.depth and nested and sum(map(len, nested[-1][2] + sentences)) < LONGEST - 2:
            begun, _, before = nested.pop()
            nested.append((begun, at + 1, [*before[:-1], _joined(before[-1], sentences)]))
        elif sentences:
            nested.append((at, at + 1, sentences))
    items = [" ".join(sentences) for _, _, sentences in nested]
    together = _joined(under, items)
    quotes = any(item.startswith(('"', "“")) for item in items)
    if 1 < len(items) <= _TOGETHER and len(together) <= _SHORT_LIST and not quotes:
        yield Passage(together, nested[0][0], nested[-1][1], tuple(items), lead, listed=True)
    for begun, ended, sentences in nested:
        for first in range(len(sentences)):
            for last in range(first, min(first + _SENTENCES, len(sentences))):
                window = tuple(sentences[first : last + 1])
                text, leans = " ".join(window), bool(_LEANING.match(window[0]))
                if first and leans:
                    break
                if under and len(under) + len(text) < LONGEST:
                    text, leans = f"{under} {text}", False
                else:
                    text, _ = _begun(text, "")
                if 30 < len(text) <= LONGEST:
                    yield Passage(text, begun, ended, window, lead, listed=True, leans=leans)


def _begun(text: str, heading: str) -> tuple[str, bool]:
    """A passage without the word that joins it to the one before, put under its heading if that fits; whether it is."""
    text = _JOINT.sub("", text) or text
    if heading and len(heading) <= _LEAD and len(text) + len(heading) + 2 <= LONGEST:
        return f"{heading.rstrip(':')}: {text}", True
    return _capital(text), False


def _capital(text: str) -> str:
    """A sentence with a capital at its start, unless that is the name of something."""
    return text if _IDENTIFIER.match(text) else text[0].upper() + text[1:]


def _joined(lead: str, items: list[str]) -> str:
    items = [item.rstrip(" ;,.") for item in items if item]
    text = "; ".join(items)
    if not lead:
        return text
    return f"{lead} {text}" if lead.endswith((":", ".", "!", "?")) else f"{lead}; {text}"


def _blocks(text: str, own: bool) -> list[_Block]:
    """The paragraphs, list items and headings of a text; a short block of code becomes part of what it follows."""
    blocks: list[_Block] = []
    code: list[str] | None = None
    open_block = False
    for line in text.splitlines():
        line = _QUOTED.sub("", line)
        if _FENCE.match(line):
            if code is None:
                code = []
            else:
                kept = [part.strip() for part in code if part.strip()]
                if len(kept) == 1 and len(kept[0]) <= 120 and blocks and blocks[-1].kind != "heading":
                    blocks[-1] = blocks[-1]._replace(text=f"{blocks[-1].text} `{kept[0]}`")
                code = None
            open_block = False
        elif code is not None:
            code.append(line)
        elif not line.strip() or _RULE.match(line) or _TABLE.match(line) or (own and _PASTED.match(line)):
            open_block = False
        elif found := _HEADING.match(line):
            blocks.append(_Block("heading", _plain(found[1] or found[2])))
            open_block = False
        elif found := _ITEM.match(line):
            blocks.append(_Block("item", _plain(found[2]), int(len(found[1].expandtabs()) >= 2)))
            open_block = True
        elif open_block:
            blocks[-1] = blocks[-1]._replace(text=f"{blocks[-1].text} {_plain(line)}")
        else:
            blocks.append(_Block("paragraph", _plain(line)))
            open_block = True
    return [block for block in blocks if block.text]


def _plain(text: str) -> str:
    """A text without markup; what stands in backquotes stays as it is."""
    text = _LINK.sub(r"\1", _SYMBOLS.sub("", text))
    parts = _SPAN.split(text)
    return " ".join("".join(part if at % 2 else _unmarked(part) for at, part in enumerate(parts)).split())


def _unmarked(text: str) -> str:
    text = _BOLD.sub(lambda found: found[1] or found[2], text)
    return _EMPHASIS.sub(r"\1", text).replace("**", "")


def _pieces(block: _Block, own: bool) -> list[str]:
    """The sentences of a block that say something."""
    if block.kind == "heading":
        return []
    sentences = [sentence for sentence in _split(block.text) if len(sentence) <= LONGEST]
    if own:
        return sentences
    kept: list[str] = []
    for whole in sentences:
        sentence = _OPENER.sub("", whole)
        progress = _PROGRESS.match(sentence) and not (
            kept and _TELLING.search(sentence) and not _LET_ME.search(sentence)
        )
        progress = progress or (_DOING.match(sentence) and sentence.endswith(":"))
        idle = _STATUS.match(sentence) or _SEEN.match(sentence) or _IDLE.match(sentence)
        if sentence and not progress and not idle:
            kept.append(whole if sentence == whole else _capital(sentence))
    return kept


def _split(text: str) -> list[str]:
    sentences: list[str] = []
    for piece in _END.split(text):
        if sentences and _ABBREVIATED.search(sentences[-1]):
            sentences[-1] += " " + piece
        elif piece and piece.strip():
            sentences.append(piece.strip())
    return sentences
