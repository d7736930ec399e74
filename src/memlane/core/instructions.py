"""Text that reads like instructions to a model.

Judged from the text whenever it is needed, never stored: a file edited by hand, pulled from git or imported is judged
like any other, and no format needs a field for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from memlane.core.invisible import visible

_WORD = r"[\w'-]{1,20}"
_OVERRIDES = (
    rf"\b(?:ignore|disregard|forget|override|bypass|neglect)\s+(?:{_WORD}\s+){{0,4}}"
    r"(?:previous|prior|above|earlier|preceding|former|existing|original|system|your|all)\s+"
    rf"(?:{_WORD}\s+){{0,2}}"
    r"(?:instructions?|prompts?|rules|directions?|directives?|guidelines|messages|training|programming)\b"
)
_SPEAKS = (
    r"\byou are now (?:no longer|free from|free of|dan|jailbroken|unrestricted|an? (?:unrestricted|evil|rogue))\b"
    r"|\bfrom now on,? you (?:will|must|are|should)\b"
    r"|\b(?:reveal|print|repeat|output|leak) (?:me )?(?:your|the) (?:system|hidden|initial) (?:prompt|instructions?)\b"
    r"|\bdo not (?:tell|inform|alert|notify|mention (?:this|it) to) the user\b"
    r"|\bwithout (?:telling|informing) the user\b"
    r"|\b(?:new|updated|real|important) (?:system )?instructions? (?:for|to) (?:the )?(?:ai|assistant|model|agent)\b"
    r"|\b(?:ai|language) model,? you must\b"
)
_TURNS = (
    r"<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id)\|>|\[/?INST\]|<</?SYS>>"
    r"|</?(?:antml:)?(?:function_calls|function_results|invoke|tool_call|tool_use|tool_result|system-reminder)\b"
    r"|^###[ \t]{0,8}(?:system|instruction|assistant)s?[ \t]{0,8}:|^(?:system|developer) (?:prompt|message)[ \t]{0,8}:"
)
_STYLE = (
    r"\bstyle[ \t]{0,8}=[ \t]{0,8}[\"'][^\"'\n]{0,200}"
    r"(?:display[ ]?:[ ]?none|visibility[ ]?:[ ]?hidden|font-size[ ]?:[ ]?0|opacity[ ]?:[ ]?0[;\"' ])"
)
# The lookbehind leaves out `prettier-ignore` and the like, which speak to a program.
_COMMENT = (
    r"(?<!-)\b(?:ignore|disregard|assistant|the model|system prompt|you must|you should|do not tell|exfiltrate|curl"
    r"|wget)\b"
)
# Each pattern, with lower-case words of which every match holds at least one: looking for those first is much quicker.
_SIGNS = {
    "overrides instructions": (_OVERRIDES, ("ignore", "disregard", "forget", "override", "bypass", "neglect")),
    "speaks to the model": (
        _SPEAKS, ("you are now", "from now on", " prompt", " instruction", "the user", "you must"),
    ),
    "looks like a tool call or a chat turn": (
        _TURNS,
        ("<|", "inst]", "<<", "function_", "invoke", "tool_", "system-", "###", "system ", "developer "),
    ),
    "hides text by its style": (_STYLE, ("style",)),
}  # fmt: skip
_LOOKALIKES = {"\u0130": "i", "\u0131": "i", "\u017f": "s", "\u212a": "k"}  # re.IGNORECASE takes them for i, s, k


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)


def suspicious(text: str) -> tuple[str, ...]:
    """Why a text reads like instructions to the model; () when it does not."""
    text = visible(text)
    lowered = text
    for lookalike, letter in _LOOKALIKES.items():  # str.translate would be a thousand times slower
        lowered = lowered.replace(lookalike, letter)
    lowered = lowered.lower()
    signs = [
        why
        for why, (pattern, words) in _SIGNS.items()
        if any(word in lowered for word in words) and _compiled(pattern).search(text)
    ]
    if any(_compiled(_COMMENT).search(comment) for comment in _comments(text)):
        signs.append("hides an instruction in a comment")
    return tuple(signs)


def _comments(text: str) -> Iterator[str]:
    """The insides of HTML comments; one that never ends runs to the end of the text."""
    end = 0
    while (start := text.find("<!--", end)) >= 0:
        end = text.find("-->", start)
        end = len(text) if end < 0 else end
        yield text[start + 4 : end]
