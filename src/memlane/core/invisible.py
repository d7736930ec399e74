"""Characters that a model reads and nobody sees, and those that steer a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memlane.core.patterns import lazily

# Line ends that most programs do not show as such. To remove them would join the words around them.
_SEPARATORS = lazily("[\x0b\x85\u2028\u2029]")

# No text needs these: zero-width spaces, bidirectional overrides, fillers, format characters of rare scripts, and the
# Unicode tag block, in which text can hide.
HIDDEN = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff"
    "\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Variation selectors choose between text and emoji, after a symbol or inside a keycap; elsewhere they only hide things.
_SYMBOL = "\xa9\xae\u203c\u2049\u2100-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_SELECTOR = f"[\ufe0e\ufe0f](?<![{_SYMBOL}][\ufe0e\ufe0f])(?<![0-9#*]\ufe0f(?=\u20e3))"
# Some scripts and emoji need joiners and direction marks; between ASCII characters they only hide things.
_JOINER = "[\u200c-\u200f](?<![^\x00-\x7f].)[\u200c-\u200f]*(?![^\x00-\x7f])"

# Stripped everywhere, with terminal colour codes and control characters. NUL is left alone, so that files.encoded
# refuses it.
_STRIPPED = lazily(
    f"\x1b\\[[0-9;?]{{0,32}}[ -/]{{0,8}}[@-~]|[\x01-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f{HIDDEN}]|{_SELECTOR}"
)
_NEEDLESS = lazily(f"{_JOINER}|([\u200c-\u200f])[\u200c-\u200f]+")
# A character that one of these could change.
_SUSPECT = lazily(f"[\x01-\x08\x0b\x0e-\x1f\x7f-\x9f\u200c-\u200f\ufe0e\ufe0f{HIDDEN}]")
_CONTROLS = ("\\u00", "\\b")  # how JSON begins to write a control character that is no layout
_PLAIN = bytes([9, 10, 13, *range(32, 127)])

# Shown as escapes. A carriage return is layout at the end of a line alone: elsewhere it overwrites what stands there.
_ESCAPED = lazily(
    f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\ud800-\udfff{HIDDEN}]|\r(?!\n)|{_SELECTOR}"
    f"|{_JOINER}|(?<=[\u200c\u200d])[\u200c\u200d]"
)

_ESCAPABLE = lazily(
    f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200c-\u200f\ud800-\udfff\ufe0e\ufe0f{HIDDEN}]"
)  # by itself or not


def unusual(text: str) -> set[str]:
    """The characters of a text other than printable ASCII and its layout: none in most texts, a few in others."""
    # As bytes, of which a text has all but a few taken out at once.
    rest = text.encode(errors="surrogatepass").translate(None, _PLAIN)
    return set(rest.decode(errors="surrogatepass"))


def visible(text: str) -> str:
    """The text without characters that a model reads and nobody sees; line separators become newlines."""
    if text.isascii() and text.isprintable():  # most names and words
        return text
    odd = unusual(text)
    if not odd or not _SUSPECT.search("".join(odd)):
        return text
    bom = "\ufeff" * text.startswith("\ufeff")  # harmless at the very start
    return bom + _NEEDLESS.sub(r"\1", _STRIPPED.sub("", _SEPARATORS.sub("\n", text[len(bom) :])))


def separators(text: str) -> int:
    """How many line separators of the text `visible` makes newlines."""
    return 0 if text.isascii() and "\x0b" not in text else len(_SEPARATORS.findall(text))


def neutral(value: Any) -> Any:
    """A value of JSON with every text in it `visible`, names included. Most are so already, which is quickly seen."""
    import json

    if isinstance(value, str):
        return visible(value)
    try:
        whole = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):  # it has mappings that are no dictionaries, or other values
        return _neutral(value)
    is_visible = not any(sign in whole for sign in _CONTROLS) and visible(whole) is whole
    return value if is_visible else _neutral(value)


def _neutral(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {_neutral(key): _neutral(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_neutral(item) for item in value]
    return value


def escaped(text: str) -> str:
    r"""The text for a terminal or a log: what is invisible, or could steer a terminal, as `\u001b`.

    Line ends and tabs stay. In a JSON text the escapes mean the same characters.
    """
    if "\r" not in text:
        odd = unusual(text)
        if not odd or not _ESCAPABLE.search("".join(odd)):
            return text
    return _ESCAPED.sub(lambda match: "".join(map(_escape, match[0])), text)


def _escape(char: str) -> str:
    code = ord(char)
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + (code - 0x10000 >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
