"""Characters that a model reads and nobody sees."""

from __future__ import annotations

import re

# Stripped everywhere: terminal colour codes, control characters, zero-width spaces, bidirectional overrides, and the
# Unicode tag block, in which text can hide. NUL is left alone, so that files.encoded refuses it.
_ALWAYS = re.compile(
    "\x1b\\[[0-9;?]{0,32}[ -/]{0,8}[@-~]"
    "|[\x01-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U000e0001-\U000e01ef]"
)
# Some scripts and emoji need joiners and direction marks; between ASCII characters they only hide things.
_NEEDLESS = re.compile("(?<![^\x00-\x7f])[\u200c-\u200f]+(?![^\x00-\x7f])|([\u200c-\u200f])[\u200c-\u200f]+")
_LAYOUT = dict.fromkeys(map(ord, "\n\r\t"))


def visible(text: str) -> str:
    """The text without characters that a model reads and nobody sees."""
    if text.isascii() and text.translate(_LAYOUT).isprintable():
        return text
    bom = "\ufeff" * text.startswith("\ufeff")  # harmless at the very start
    return bom + _NEEDLESS.sub(r"\1", _ALWAYS.sub("", text[len(bom) :]))
