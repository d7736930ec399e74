"""Made-up tokens in many disguises: how many are found."""

from __future__ import annotations

import argparse
import json
import random
import re
import string
from base64 import b32encode, b64encode
from collections.abc import Callable
from itertools import pairwise

from memlane.gate.secrets import scan

BASE62 = string.digits + string.ascii_letters
# Token kinds by prefix and how many characters follow it. They are put together, so that no scanner finds them here.
KINDS = (("gh" + "p_", 36), ("sk-" + "ant-api03-", 93), ("AI" + "za", 35), ("gl" + "pat-", 20), ("sk_" + "live_", 24),
         ("np" + "m_", 36), ("hv" + "s.", 90), ("dckr" + "_pat_", 27), ("lin" + "_api_", 40),
         ("xai" + "-", 80))  # fmt: skip
FRAMES = ("{}", "token: {}", "The key of the build is {}, do not share.", "export TOKEN={}", "`{}`", '{{"k": "{}"}}')


def between(sign: str, step: int) -> Callable[[str], str]:
    return lambda text: sign.join(text[at : at + step] for at in range(0, len(text), step))


def each(form: str) -> Callable[[str], str]:
    return lambda text: "".join(form.format(ord(char)) for char in text)


def swapped(plain: str, other: str) -> Callable[[str], str]:
    return lambda text: text.translate(str.maketrans(plain, other))


def parts(form: str, *cuts: int) -> Callable[[str], str]:
    return lambda text: form.format(*(text[a:b] for a, b in pairwise((0, *cuts, len(text)))))


# The reader of disguises was written with these in view,
SEEN: dict[str, Callable[[str], str]] = {
    "zero-width space": between("\u200b", 5),
    "variation selector": between("\ufe0f", 5),
    "supplementary selector": between("\U000e0100", 5),
    "tag character": between("\U000e0041", 5),
    "terminal colours": between("\x1b[31m", 9),
    "no-break space": between("\xa0", 12),
    "Cyrillic letters": swapped("aceopxsjKMTBH", "асеорхѕјКМТВН"),
    "full width": lambda text: "".join(chr(ord(char) + 0xFEE0) for char in text),
    "mathematical": lambda text: "".join(
        chr(ord(c) + (0x1D3BF if c.isupper() else 0x1D3B9 if c.islower() else 0x1D79E)) if c.isalnum() else c
        for c in text
    ),
    "base64": lambda text: b64encode(text.encode()).decode(),
    "base32": lambda text: b32encode(text.encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "percent": each("%{:02X}"),
    "JSON escapes": each("\\u{:04x}"),
    "HTML entities": each("&#{};"),
    "two lines": parts("{}\n{}", 15),
    "continued line": parts("{}\\\n  {}", 12),
    "put together": parts('{}" + "{}', 9),
    "named entities": lambda text: text.replace("_", "&lowbar;").replace("-", "&hyphen;").replace(".", "&period;"),
    "quoted-printable": lambda text: "=\n".join(re.findall(".{1,17}", text)),
    "combining ring": between("\u030a", 1),
    "Greek letters": swapped("AEHIKMNOPTXZov", "ΑΕΗΙΚΜΝΟΡΤΧΖον"),
    "percent, every other": lambda text: "".join(f"%{ord(c):02x}" if i % 2 else c for i, c in enumerate(text)),
    "PHP, three parts": parts("{}' . '{}' . '{}", 4, 16),
    "Python, two strings": parts("{}'\n        '{}", 11),
}
# and not with these.
UNSEEN: dict[str, Callable[[str], str]] = {
    "Mongolian vowel separator": between("\u180e", 3),
    "Hangul filler": between("\u3164", 6),
    "invisible times": between("\u2062", 4),
    "right-to-left marks": between("\u200f", 8),
    "cursor movements": between("\x1b[1C\x1b[1D", 11),
    "thin spaces": between("\u2009", 13),
    "Cherokee letters": swapped("ABCDEGHJKLMPRSTVWZ", "ᎪᏴᏟᎠᎬᏀᎻᎫᏦᏞᎷᏢᎡᏚᎢᏙᎳᏃ"),
    "small capitals": swapped("abcdegjkmnoprstuvwz", "ᴀʙᴄᴅᴇɢᴊᴋᴍɴᴏᴘʀꜱᴛᴜᴠᴡᴢ"),
    "monospace letters": lambda text: "".join(
        chr(ord(c) + (0x1D62F if c.isupper() else 0x1D629 if c.islower() else 0x1D7C6)) if c.isalnum() else c
        for c in text
    ),
    "Devanagari digits": swapped(string.digits, "०१२३४५६७८९"),
    "base64 of JSON": lambda text: b64encode(json.dumps({"user": "ci", "value": text}).encode()).decode(),
    "base64 in lines of 48": lambda text: "\n".join(
        re.findall(".{1,48}", b64encode((". " * 20 + text).encode()).decode())
    ),
    "base64 of base64": lambda text: b64encode(b64encode(text.encode())).decode(),
    "hex with colons": lambda text: text.encode().hex(":"),
    "octal escapes": each("\\{:03o}"),
    "four lines, indented": lambda text: "\n      ".join(re.findall(".{1,24}", text)),
    "lines of a comment": parts("{}\n// {}", 14),
    "joined list": parts('{}", "{}', 10),
    "reversed": lambda text: text[::-1],
    "a blank inside": parts("{} {}", 14),
}


def run(parser: argparse.ArgumentParser, argv: list[str]) -> int:
    parser.add_argument("--tokens", type=int, default=5, help="how many of each kind")
    count = parser.parse_args(argv).tokens
    rng = random.Random(11)
    tokens = [head + "".join(rng.choices(BASE62, k=size - 2)) + "7a" for head, size in KINDS for _ in range(count)]
    print("| disguise | found | of |\n|---|---:|---:|")
    for name, group in (("", SEEN), (", unseen", UNSEEN)):
        total = 0
        for disguise, hide in group.items():
            found = sum(bool(scan(frame.format(hide(token)))) for token in tokens for frame in FRAMES)
            total += found
            print(f"| {disguise}{name} | {found} | {len(tokens) * len(FRAMES)} |")
        of = len(group) * len(tokens) * len(FRAMES)
        print(f"| **all{name}** | {total} = {100 * total / of:.1f} % | {of} |")
    return 0
