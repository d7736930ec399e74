"""Checks of one value: checksums, decodings and shapes that the rule table names.

Each takes the value and answers yes or no. The decoders of the standard library are imported on first use.
"""

from __future__ import annotations

from memlane.gate.secrets.decoys import (
    entropy,
    is_code,
    is_digest,
    is_generated,
    is_random,
    is_stand_in,
    kinds,
    wordiness,
)
from memlane.gate.secrets.rule import exact, pattern

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def crc_base62(value: str) -> bool:
    """GitHub and npm: the last six characters are the CRC-32 of the thirty before them, in base 62."""
    import zlib

    body = value.rpartition("_")[2]
    number, digits = zlib.crc32(body[:-6].encode()), ""
    while number:
        number, rest = divmod(number, 62)
        digits = _BASE62[rest] + digits
    return len(body) == 36 and body[-6:] == digits.rjust(6, "0")


def crc_base32(value: str) -> bool:
    """NATS and Stellar: the last two bytes, in base 32, are the CRC-16 of those before them."""
    import base64
    import binascii

    data = base64.b32decode(value + "=" * (-len(value) % 8))
    return binascii.crc_hqx(data[:-2], 0) == int.from_bytes(data[-2:], "little")


def symmetric_jwk(value: str) -> bool:
    """A JSON web key of one secret, `k`, of at least 128 bits."""
    return bool(exact(r"\"k\\?\"\s{0,3}:\s{0,3}\\?\"[A-Za-z0-9_-]{22,}").search(value))


def random_after_dash(value: str) -> bool:
    """The part after the first `-` or `_` was chosen by a machine (`sk-…`, but not the class `sk-circle-bounce`)."""
    return is_random(exact(r"[-_]").split(value, maxsplit=1)[1])


def basic_pair(value: str) -> bool:
    """Base64 of `user:password`, both of printable characters; or too long and random to be anything else."""
    import base64

    try:
        plain = base64.b64decode(value + "=" * (-len(value) % 4)).decode()
    except ValueError:
        return is_random(value, 40) and bool(exact(r"[A-Z]").search(value)) and bool(exact(r"[g-z]").search(value))
    _, colon, password = plain.partition(":")
    return bool(colon) and plain.isprintable() and len(password) >= 3 and not is_stand_in(password)


def jwt(value: str) -> bool:
    """The first part decodes to a JSON header that names an algorithm or a type."""
    import base64
    import json

    head = value.partition(".")[0]
    try:
        header = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (ValueError, RecursionError):
        return False
    parts = value.split(".")
    if len(parts) == 3 and 0 < len(parts[2]) < 12:  # `….signature` shows the form; no algorithm signs in so little
        return False
    return isinstance(header, dict) and bool(header.keys() & {"alg", "typ", "enc", "kid", "zip", "cty"})


def not_stand_in(value: str) -> bool:
    """No word that only stands where the password would be."""
    return not is_stand_in(value)


def odbc_password(value: str) -> bool:
    """Anything but a marked value, a constant's name (`password=FILE0`) or an expression of code."""
    code = r"[A-Z_]+\d*|(?i:none|null|nil|true|false|password|pwd)[,)]*|[A-Za-z_][\w.]*[),\]]+|[a-z_]\w*(?:\.\w+)+"
    return not is_stand_in(value) and not is_code(value) and not exact(code).fullmatch(value)


def password_in_url(value: str) -> bool:
    """Not a stand-in such as `user:password@host`, nor a port or a path."""
    stand_in = r"pass(?:w(?:or)?d)?\d{0,2}|[a-z]*password|x+|\d{1,5}|.*\]"
    return is_generated(value) or not (is_stand_in(value) or pattern(stand_in).fullmatch(value))


def password_in_call(value: str) -> bool:
    """Letters and a digit or sign, as a password has and an address, a path or a name has not."""
    name = r"[\w.-]*[./:][\w./:-]*|[A-Za-z]+[-_\w]*|[\d.,:-]+"
    if mixed(value) and not exact(name).fullmatch(value):
        return True
    return bool(exact(r"[a-z]\d|\d[a-z]").search(value)) and cli_password(value)


def password_on_localhost(value: str) -> bool:
    """More than the short word of an example (`scott:tiger@localhost`)."""
    return password_in_url(value) and not (value.isalpha() and value.islower() and wordiness(value) > 0.8)


def seed_words(value: str) -> bool:
    """Words of a list, hardly one twice; prose has small words among them."""
    words = exact(r"[ ,]+").split(value)
    small = {"the", "and", "you", "your", "for", "with", "that", "this", "are", "from", "not", "have", "was", "will"}
    return len(set(words)) > len(words) - 3 and small.isdisjoint(words)


def bearer(value: str) -> bool:
    """Something a machine made after `Bearer`, not a word of prose."""
    if is_stand_in(value) or not exact(r"\d").search(value):
        return len(value) >= 20 and is_random(value)
    return wordiness(value) < 0.9 or (len(value) >= 16 and entropy(value) > 3)


def mixed(value: str) -> bool:
    """At least two kinds of characters and not one plain word."""
    return sum(kinds(value)) >= 2 and not is_stand_in(value)


def random_key(value: str) -> bool:
    """A machine chose it, and it is no plain hash or id."""
    return is_random(value) and not is_digest(value)


def random_hex_tail(value: str) -> bool:
    """Two letters and thirty-two hex digits with both digits and letters."""
    tail = value[2:]
    return is_random(tail) and bool(exact("[a-f]").search(tail))


def letters_at_random(value: str) -> bool:
    """The part after the first `_` is no identifier (`hf_…`, whose keys may hold letters only)."""
    return wordiness(value.partition("_")[2]) < 0.72


def many_digits(value: str) -> bool:
    """At least four digits, as in `xoxb-12345…`, unlike the word `xoxo-festival`."""
    return sum(map(str.isdigit, value)) >= 4


def clickup(value: str) -> bool:
    """`pk_` + user number + `_` + thirty-two characters."""
    return bool(exact(r"pk_[0-9]{6,9}_[0-9A-Za-z]{32}").fullmatch(value))


def header_value(value: str) -> bool:
    """A machine-made value in a header; `Bearer …` and `Basic …` have rows of their own."""
    return is_random(value, 12) and not pattern(r"(?:bearer|basic|digest|token)\b").match(value)


def cli_password(value: str) -> bool:
    """A value of at least two kinds of characters, not an option or a path."""
    if pattern(r"(?:my)?pass(?:w(?:or)?d)?\d{0,3}").fullmatch(value):
        return False
    return (
        mixed(value)
        and not exact(r"[-/.=]|\d+$").match(value)
        and not exact(r"[a-z]+[-_/.][a-z./_-]+").fullmatch(value)
    )


def pem_block(value: str) -> bool:
    """A key, or the beginning of one; not the header alone, nor a block that is closed after a word or two."""
    body, end, _ = value.partition("-----END")
    body = exact(r"\\[nr]|[\s\"',+\\]").sub("", body.rpartition("-----")[2])
    return len(body) >= 40 or (bool(exact(r"\d").search(body)) and (bool(end) or len(body) >= 16))


def base64_pem(value: str) -> bool:
    """Base64 of a PEM block that is a private key."""
    import base64

    head = value[:80].partition("=")[0]
    return b"PRIVATE KEY" in base64.b64decode(
        head[: len(head) // 4 * 4]
    )  # of one that was cut off, what can be decoded


def random_after_dot(value: str) -> bool:
    """The part after the first dot was chosen by a machine, and has digits in it."""
    return is_random(value.partition(".")[2]) and wordiness(value) < 0.7


def prefixed(value: str) -> bool:
    """`acme_live_…`: the last part was chosen by a machine and mixes digits with letters throughout."""
    if value.startswith(("pk_", "pub_")):
        return False  # published by design
    tail = exact(r"[-_]").split(value)[-1]
    return is_random(tail, 20) and wordiness(tail) < 0.75


def azure_mark(value: str) -> bool:
    """One of the marks that Azure puts into the keys of its services, near the end."""
    marks = r"(?:AzFu|ACDb|AIoT|\+ASt|AzSe|AzCa|AzWPd|\+ACR|\+ASb|\+AMC|\+ATH|APIM|JQQJ99|AAAAAC[0-9A-Za-z])"
    return bool(exact(marks + r"[A-Za-z0-9+/]{5,60}={0,2}\Z").search(value[28:]))
