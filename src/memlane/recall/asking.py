"""What a prompt asks memory for: the queries in it, or nothing.

Nobody asked for memories when a prompt is sent, so that most prompts should get none: small talk ("thanks, go on"),
questions about this moment ("did you run it?") and general knowledge ("what is a semaphore?") can have words in common
with a memory and still not be about it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import dropwhile, islice, takewhile

from memlane.core.patterns import lazily

DOUBT = 2.0  # how much likelier a memory must be where the form of a prompt says that it is about none
_ENDS = 2  # how many lines of a long prompt make one query
_BEGIN = 3  # words, of which the last is the first of the question itself: "can you explain …"
_ERROR = lazily(r"\w(?:Error|Exception)\b")
_CHATTER = frozenset(
    """ok okay yes yeah yep no nope please thanks thank you great good nice perfect cool sure continue keep going go on
    ahead proceed do it next again try retry looks look fine done that this these those is are was the a an and now just
    more hi hello hey so what why correct right agreed sounds lgtm stop wait undo all too also same other one ones
    first second third last option answer shorter longer better worked works there how s it going morning evening think
    hmm not quite meant mean say said simpler words be wrong take long will where were we left let move awesome solved
    once did bye welcome sorry maybe i my me of to in""".split()
)
# "did you push?", "is it running?", "summarise what you just did", "the second one"
_MOMENT = lazily(
    r"""^\W*+(?:ok(?:ay)?|yes|no|so|and|now|well)?\W*+(?:
      (?:did|have|has|are|were|is|was)\s+(?:you|it|that|this|they|all)\b(?:\W++\w++){0,3}\W*+$
    | .{0,40}\b(?:you\s+(?:just|have\s+just)|your\s+last|just\s+now|this\s+conversation|so\s+far)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_IN_CODE = lazily(r"\w_\w|[a-z][A-Z]|\w\.\w|\w/\w|`|\b[A-Z]{2,}-?\d")  # a name of something
# What general questions begin with, and how they go on: only the forms of one that begins so are compiled.
_GENERAL = {
    openings: lazily(rf"^\W*+(?:(?:please|hey|can\s+you|could\s+you)\s+)?(?:{form})", re.IGNORECASE | re.VERBOSE)
    for openings, form in {
        ("what", "define", "describe", "calculate", "compute"): r"""
      (?:what(?:'s|\s+is|\s+are)|define|describe)\s+an?\s
    | what\s+(?:does|do)\s+(?!we\b|our\b|the\b|this\b|it\b)\S.{0,50}\b(?:mean|do|stand\s+for)\b
    | what(?:'s|\s+is)\s+the\s+(?:weather|time|difference\s+between|(?:time\s+complexity|capital|meaning)\s+of)
    | (?:what\s+is|what's|calculate|compute)\s+[\d(][\d\s.,()+*/^x-]*+\W*+$""",
        ("explain",): r"""
      explain(?:\s+to\s+me)?(?:\s+what)?\s+an?\s
    | explain\s++(?:what\s++|how\s++)?(?!.*\b(?:we|our|us|this|the\s+(?!difference))\b)""",
        ("how",): r"""
      how\s+do(?:es)?\s+(?!we\b|you\b|i\b|our\b|the\b|this\b|it\b)\S.{0,50}\bwork
    | how\s+(?:do|can|would|should)\s+(?:i|you|one)\s.{0,60}\b(?:in|on|with)\s+(?:an?\s)?[\w+#.-]++\W*+$
    | how\s+many\s.{0,60}\b(?:does|do)\s+an?\s""",
        ("why",): r"why\s+(?:is|are)\s+\w+\s+(?:slow|fast|bett|call)\w*",
        ("who",): r"""
      who\s+(?:wrote|invented|made|created|is|was)\s+(?!this\b|that\b|it\b|our\b|responsible\b|in\s+charge\b)""",
        ("which", "what", "when"): r"""
      (?:which|what)\s+(?:of\s+the\s+two\s+)?(?:is|are)\s+(?:faster|better)\b
    | (?:what|which)\s+year\b | (?:what|when)\s+was\s+the\s.{0,40}\b(?:released|invented|founded)""",
        tuple("write give tell make recommend suggest translate convert reverse sort plot".split()): r"""
      (?:write|give|tell|make|recommend|suggest|translate|convert|reverse|sort|plot)\s+(?:me\s+)?
      (?:an?|three|some|this|these)\s+(?:\w+\s+){0,2}(?:regex|regexp|haiku|poem|joke|story|one-liner|limerick|ideas?
      |names?|list|string|array|dict|json|graph|case|paragraph|sentence|hello\s+world)\b""",
        ("was", "erkl", "qu", "expli"): r"""
      was\s+ist\s+ein | was\s+bedeutet\s | erkl[äa]r\w*\s+(?:mir\s+)?(?:was|wie)\s
    | qu'est-ce\s+qu'une?\s | que\s+(?:veut\s+dire|signifie)\s | explique(?:-moi)?\s+ce\s+qu'
    | qu[ée]\s+(?:es\s+una?|significa)\s | explica\s+qu[ée]\s""",
        (): r"""что\s+такое\s | объясни,?\s+что\s
    | 什么是 | (?:.{1,20}|(?<=[^\w\n]))(?:是什么意思|とは(?:何|なん))""",
    }.items()
}
# "add types to this function", "commit this", "show me the diff again", "did the tests pass?"
_AT_HAND = lazily(
    r"""\b(?:this|that|these|those)\s+(?:function|method|class|module|file|line|block|loop|variable|expression|snippet|code
      |paragraph|sentence|heading|list|table|part|string|query|import|comment|diff|change)s?\b
    | ^(?:\W*+\w++){1,3}\W++(?:it|this|that|these|those)\W*+$
    | \b(?:again|once\s+more|so\s+far)\W*$ | \byou\s+(?:just\s+)?\w+ed\b
    | ^\W*+(?:did|have|has)\b(?:\W++\w++){1,5}\W*+$""",
    re.IGNORECASE | re.VERBOSE,
)
# "which tools do carpenters need?", but not "which tools do we need?", "what does the parser need?"
_QUESTION = lazily(r"^\W*+(?:what|which|who|whose|when|where|why|how|is|are|does|do|can|should)\b", re.IGNORECASE)
_OURS = lazily(r"\b(?:the|we|our|us|this|that|these|those|your?|its)\b", re.IGNORECASE)


def doubt(query: str) -> float:
    """How much likelier than otherwise a memory must be to be given to this prompt.

    Prompts about what is at hand, general questions that name something, and questions that name nothing of ours may be
    about a memory, but mostly are not.
    """
    anybodys = _QUESTION.match(query) and not _OURS.search(query) and not _IN_CODE.search(query)
    return DOUBT if anybodys or _AT_HAND.search(query) or _has_form(query) else 1.0


def queries(prompt: str) -> list[str]:
    """What to search for, one after the other until something is found: the prompt itself, if it says enough.

    A long prompt has a log or a trace pasted into it, which no memory matches as a whole. Its queries are the lines at
    its beginning, at the error that it names, and at its end. Quotes and minus signs lose their meaning for a search.
    """
    return [text for text in _parts(prompt) if substantial(text)]


def why_none(prompt: str) -> str:
    """Why `queries` are none."""
    parts = _parts(prompt)
    return _silence(parts[0]) if parts else "a command of the client"


def _parts(prompt: str) -> list[str]:
    """What is looked at of a prompt; nothing of a command."""
    if prompt.lstrip().startswith("/"):
        return []
    lines = re.sub(r'"|(?<!\S)-+', " ", prompt).splitlines()
    worded = [line for line in lines if re.search(r"\w", line)]
    parts = [worded]
    if len(worded) > 2 * _ENDS:
        error = next((at for at, line in enumerate(worded) if _ERROR.search(line)), len(worded))
        parts = [_paragraph(lines)[:_ENDS], worded[error : error + _ENDS], _paragraph(lines[::-1])[:_ENDS][::-1]]
    return ["\n".join(part) for part in parts]


def substantial(text: str) -> bool:
    """Whether a text says enough to search for it: not small talk, nor about this moment, nor general knowledge."""
    return not _silence(text)


def _silence(text: str) -> str:
    """What a text is that nothing is searched for; "" for one that says enough."""
    if not set(re.findall(r"[^\W_]+", text.lower())) - _CHATTER:
        return "small talk"
    if _MOMENT.match(text):
        return "about this moment"
    return "general knowledge" if is_general(text) else ""


def is_general(text: str) -> bool:
    """Whether anybody could answer this who never saw the project: it has the form, and names nothing of the code."""
    return _has_form(text) and _IN_CODE.search(text) is None


def _has_form(text: str) -> bool:
    """Whether it is put as general questions are."""
    begun = [match[0].lower() for match in islice(re.finditer(r"\w+", text), _BEGIN)]
    return any(
        form.match(text) is not None
        for openings, form in _GENERAL.items()
        if not text.isascii() or any(word.startswith(openings) for word in begun)
    )


def _paragraph(lines: Sequence[str]) -> list[str]:
    """The first lines with words in them, up to one without."""
    rest = dropwhile(lambda line: not re.search(r"\w", line), lines)
    return list(takewhile(lambda line: re.search(r"\w", line), rest))
