"""The name of a finding in an allow-list: `ssn@7f3a-9c21b`, which tells its kind and little else.

A team shares its allow-list in the project's memlane.toml, so a name must not give the value away to whoever has the
repository, not even where there are few values: a billion social security numbers are soon tried. So a name is slow to
work out (scrypt with 16 MiB), another in every folder (the four digits are a salt), and short: of a billion numbers
about a thousand have the same one, and nothing tells which of them is meant. `python bench/gate fingerprints`
prints what trying all of them costs.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from functools import lru_cache

from memlane.core.patterns import lazily

BITS = 20  # of the hash that a fingerprint shows
_COST = 1 << 14
# Not `rule:…`: after the name of a credential and a colon the gate would take it for one.
_FORM = lazily(r"[a-z0-9][a-z0-9-]*@[0-9a-f]{4}-[0-9a-f]{5}")


def is_fingerprint(text: str) -> bool:
    """Whether a text has the form of a fingerprint. Those of earlier days, which a short search reverses, have not."""
    return _FORM.fullmatch(text) is not None


def salt_of(folder: str | os.PathLike[str]) -> str:
    """The salt of the fingerprints that are made in a folder. It is no secret: what counts is that others differ."""
    from memlane.core.digests import sha256

    return sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:4]


@lru_cache(1024)
def fingerprint(rule: str, value: str, salt: str) -> str:
    """The fingerprint of a value. Takes about 0.05 seconds, on purpose."""
    import hashlib

    name = f"memlane:{rule}:{salt}".encode()
    digest = hashlib.scrypt(value.encode(errors="replace"), salt=name, n=_COST, r=8, p=1, maxmem=1 << 26, dklen=4)
    return f"{rule}@{salt}-{int.from_bytes(digest) >> (32 - BITS):05x}"


def is_allowed(rule: str, value: str, allow: Collection[str]) -> bool:
    """Whether a value is on the list. Only where the list has names of its kind is there anything to work out."""
    names = [name for name in allow if name.startswith(f"{rule}@") and is_fingerprint(name)]
    salts = {name[-10:-6] for name in names}
    return any(fingerprint(rule, value, salt) in names for salt in salts)
