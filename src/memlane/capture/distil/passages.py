"""What was said, cut into passages that can stand by themselves: one to three sentences, or a list with what it is a
list of. Markup, code, greetings and talk about progress are left out. Pure text → data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

LONGEST = 500  # characters of a passage
_SENTENCES = 3
_LEAD = 110  # characters of a heading or lead that is put before what it introduces

_FENCE = re.compile(r"^\s*(?:```|~~~)")
_HEADING = re.compile(r"^\s*#{1,6}\s+(.*?)\s*#*\s*$|^\s*\*\*([^*]{3,90}?):?\*\*:?\s*$")
_ITEM = re.compile(r"^(\s*)(?:[-*•]|\d{1,2}[.)]|\(\d\))\s+(.*)$")
_TABLE = re.compile(r"^\s*\|")
_RULE = re.compile(r"^\s*(?:[-=_*] ?){3,}\s*$")
_BOLD = re.compile(r"\*\*(.+?)\*\*|__(.+?)__")
_EMPHASIS = re.compile(r"(?<![\w*])\*([^*\s][^*]*?)\*(?![\w*])")
_LINK = re.compile(r"\[([^\]]+)\]\((?:https?|diffhunk|file)[^)]*\)")
_SYMBOLS = re.compile(r"[✅❌⚠️❗🎯🏗📱🎉🚀✨✓✔👀🔧💡📝]+\ufe0f?\s*")
_END = re.compile(r"(?<=[.!?。！？])[\"')\]*`]*\s+(?=[A-Z0-9`\"'(\[*_—-]|[^\x00-\x7f])|(?<=[。！？])")
_ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|vs|etc|cf|approx|incl|resp|no|v\d+)\.$", re.IGNORECASE)

_FILLER = (
    r"(?:ok(?:ay)?|good|great|perfect|excellent|now|next|first|then|finally|so|and|but|alright|right|also|wait|hmm+|"
    r"actually|yes|sure|interesting|nice|done|understood|got it|since \w+ \w+)"
)
_PROGRESS = re.compile(
    rf"^(?:{_FILLER}[,.!:;— –-]*\s+)*(?:let me|let['’]?s|let us|i['’]ll|i will|i['’]m (?:going|now|about)|i am going|"
    r"i(?: now)? (?:need|want|have) to|i should|i can now|i have (?:a|the) (?:full|clear|complete|good)|"
    r"we['’]ll|time to|checking|running|looking|reading|moving on|proceeding|continuing|starting|waiting|launching|"
    r"now (?:add|run|update|the|for|create|fix|remove|revert|i|we|write|build|implement|commit|check|verify)|"
    r"first,? (?:the|add|remove|read|check)|here(?:['’]s| is| are)|(?:site|step|phase|task|part|file) \d+\b|"
    r"(?:do|would|should|shall|can|could) (?:you|i|we)\b.*\?$|want me to|ready (?:to|for)|same (?:for|with|in))",
    re.IGNORECASE,
)
_SEEN = re.compile(
    r"^(?:(?:ah+|so|now|ok(?:ay)?),? )?(?:i (?:think )?(?:i )?(?:can |now )?(?:see|found|understand|know|traced)|"
    r"i['’]ve found|there['’]s|here['’]s|that['’]s|this is)(?: now)? (?:the|it|what)\b[^.:;,—]{0,40}[.!:]$",
    re.IGNORECASE,
)
_DOING = re.compile(r"\w+ing\b")
_TELLING = re.compile(
    r"\b(?:instead|rather than|because|since|so that|otherwise|not\b|n['’]t\b|without|must|never|always|only)\b",
    re.IGNORECASE,
)
_STATUS = re.compile(
    r"^(?:\W*(?:all|both|the|everything|full|and|no|0|\d+)\b)*\W*(?:\w+ ){0,3}?(?:tests?|lint(?:er|ing)?|builds?|"
    r"checks?|suite|compil\w+|typecheck|green|clean|errors?|warnings?|issues|changes?|done|complete[d]?)\b.{0,60}?"
    r"\b(?:pass(?:es|ed|ing)?|clean(?:ly)?|green|succe\w+|ok|remain\w*|complete[d]?|done|in place|working|works)\b\W*$",
    re.IGNORECASE,
)
_OPENER = re.compile(
    r"^(?:i (?:can )?(?:see|notice|noticed|found|now see)(?: now)? (?:that |there['’]s )|"
    r"(?:that['’]s |a |you['’]re |you are )?(?:absolutely |exactly |totally |completely )?"
    r"(?:good|great|perfect|excellent|right|correct|fair|nice|ok(?:ay)?|yes|yup|no|done|understood|sure|sorry|clean|"
    r"got it|makes sense|i see|agreed|all green|interesting|hmm+|wait|ah+|found it|found the \w+|fixed|confirmed|noted)"
    r"(?: (?:catch|question|questions|point|call|idea|news|progress|find|now|i apologi[sz]e|my mistake|work|job))?"
    r"(?:,? (?:you['’]re|you are) (?:absolutely |exactly |totally )?right)?\s*[.!:,—–-]+)\s*",
    re.IGNORECASE,
)
_PASTED = re.compile(
    r"^\s*(?:\[\d\d/\d\d/\d\d .*?\]|[$>%❯#] \S|\w+@[\w.-]+[:~]|\S+\.\w{1,5}:\d+(?::\d+)?:?\s|\d{4}-\d\d-\d\d[T ]\d\d:|"
    r"[\u2190-\u2bff\U0001f000-\U0001faff]|at \S+ ?\(|File \"|\s{4,}\S|\d+→|go: |npm (?:ERR|WARN)|"
    r"error(?:\[\w+\])?: |ERROR|WARN|INFO|DEBUG)"
)
_THREE_WORDS = re.compile(r"(?:[^\W\d_]{2,}\W.*?){2}[^\W\d_]{2,}")


class Passage(NamedTuple):
    """A passage, where it begins in the text (its first block, its last), and the heading it stood under."""

    text: str
    start: int
    end: int
    heading: str = ""
    whole: bool = False  # it is all that was said
    listed: bool = False


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
    heading = ""
    at = 0
    while at < len(blocks):
        if blocks[at].kind == "heading":
            heading, at = blocks[at].text, at + 1
            continue
        end = at + 1
        if blocks[at].kind == "item" or blocks[at].text.endswith(":"):
            while end < len(blocks) and blocks[end].kind == "item":
                end += 1
        found += _group(blocks, pieces, at, end, heading)
        at = end
    if len(blocks) > 1:
        found += _runs(blocks, pieces)
    whole = " ".join(sentence for sentences in pieces for sentence in sentences)
    if own and len(whole) <= LONGEST and all(block.kind == "paragraph" for block in blocks):
        found.append(Passage(whole, 0, len(blocks), "", True))
    return [passage for passage in found if _THREE_WORDS.search(passage.text)]


def _group(blocks: list[_Block], pieces: list[list[str]], start: int, end: int, heading: str) -> Iterator[Passage]:
    """Passages of one paragraph, or of a list with its lead."""
    whole = len(blocks) == 1
    first = start + (blocks[start].kind != "item")
    lead = " ".join(pieces[start]) if first > start else ""
    if first == end:  # a paragraph
        for window in _windows(pieces[start]):
            yield Passage(_shown(window, heading), start, end, heading, whole)
        return
    items = [(at, " ".join(pieces[at])) for at in range(first, end) if pieces[at]]
    lead = lead or (f"{heading.rstrip(':')}:" if heading else "")
    together = _joined(lead, [item for _, item in items])
    if len(together) <= LONGEST:
        yield Passage(together, start, end, heading, whole, True)
    nested: list[tuple[int, int, str]] = []
    for at, item in items:
        if blocks[at].depth and nested and len(nested[-1][2]) + len(item) < LONGEST - 2:
            begun, _, before = nested.pop()
            nested.append((begun, at + 1, _joined(before, [item])))
        else:
            nested.append((at, at + 1, item))
    short = lead if len(lead) <= _LEAD else ""
    for begun, ended, item in nested:
        if len(item) > 30:
            for window in _windows(_split(item)):
                text = f"{short} {window}" if short and len(short) + len(window) < LONGEST else window
                yield Passage(text, begun, ended, heading, False, True)


def _runs(blocks: list[_Block], pieces: list[list[str]]) -> Iterator[Passage]:
    """Neighbouring short paragraphs, and a paragraph with the list after it, as far as they fit into one passage."""
    for start, block in enumerate(blocks):
        if block.kind != "paragraph" or not pieces[start]:
            continue
        text, count = " ".join(pieces[start]), len(pieces[start])
        for end in range(start + 1, len(blocks)):
            more = pieces[end]
            if blocks[end].kind == "heading" or len(text) + sum(map(len, more)) > LONGEST - len(more):
                break
            if blocks[end].kind == "item":
                text = _joined(text, [" ".join(more)])
            else:
                text, count = f"{text} {' '.join(more)}".strip(), count + len(more)
            if count > _SENTENCES + 1:
                break
            last = end + 1 == len(blocks) or blocks[end + 1].kind != "item"
            if more and last:
                yield Passage(text, start, end + 1, "", start == 0 and end + 1 == len(blocks))


def _windows(sentences: list[str]) -> Iterator[str]:
    """Up to three sentences in a row: all of them if they fit, else every window that is as long as may be."""
    if not sentences:
        return
    at = done = 0
    while at < len(sentences) and done < len(sentences):
        end = at + 1
        while end < len(sentences) and end - at < _SENTENCES and len(" ".join(sentences[at : end + 1])) <= LONGEST:
            end += 1
        window = " ".join(sentences[at:end])
        if end > done:
            yield window if len(window) <= LONGEST else window[: LONGEST - 1].rsplit(None, 1)[0] + "…"
        done, at = max(done, end), at + 2


def _shown(window: str, heading: str) -> str:
    """A passage that begins with a word for something said before is put under its heading."""
    vague = re.match(r"(?:this|that|it|these|those|they)\b", window, re.IGNORECASE)
    if vague and heading and len(heading) <= _LEAD and len(window) + len(heading) + 2 <= LONGEST:
        return f"{heading.rstrip(':')}: {window}"
    return window


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
    text = _LINK.sub(r"\1", _SYMBOLS.sub("", text))
    text = _BOLD.sub(lambda found: found[1] or found[2], text)
    return " ".join(_EMPHASIS.sub(r"\1", text).split())


def _pieces(block: _Block, own: bool) -> list[str]:
    """The sentences of a block that say something."""
    if block.kind == "heading":
        return []
    sentences = _split(block.text)
    if own:
        return sentences
    kept: list[str] = []
    for sentence in sentences:
        sentence = _OPENER.sub("", sentence)
        progress = _PROGRESS.match(sentence) and not (kept and _TELLING.search(sentence))
        progress = progress or (_DOING.match(sentence) and sentence.endswith(":"))
        if sentence and not progress and not _STATUS.match(sentence) and not _SEEN.match(sentence):
            kept.append(sentence[0].upper() + sentence[1:])
    return kept


def _split(text: str) -> list[str]:
    sentences: list[str] = []
    for piece in _END.split(text):
        if sentences and _ABBREVIATED.search(sentences[-1]):
            sentences[-1] += " " + piece
        elif piece and piece.strip():
            sentences.append(piece.strip())
    return sentences
