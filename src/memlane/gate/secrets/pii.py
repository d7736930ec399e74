"""Rows for numbers that belong to a person: social security, cards, bank accounts; e-mail and phone on request.

Each number is proved by its range or checksum, because nine or sixteen digits alone may be an order number or a
timestamp.
"""

from __future__ import annotations

import re
from typing import Any

from memlane.gate.secrets.rule import Rule

# A number after one of these is part of a longer one, of an address or of a name.
_INSIDE = "_.+/=#&?-"
_CARD = r"(?:[2-6]\d{3}(?:[ -]?\d{4}){2}[ -]?\d{1,7}|3\d{3}[ -]?\d{6}[ -]?\d{4,5})(?![\w/=-]|\.\d)"
_IBAN = r"[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?(?![A-Za-z0-9])"
_EMAIL = r"[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,18}(?![A-Za-z0-9@])"
_PHONE = (
    r"(?<![\w.+/=#-])(?:\+[1-9]\d{0,2}[ .-]?(?:\(0?\d{1,4}\)[ .-]?)?\d{1,4}(?:[ .-]?\d{2,4}){2,4}"
    r"|\(\d{3}\) ?\d{3}[ .-]\d{4}|[2-9]\d{2}[.-][2-9]\d{2}[.-]\d{4})(?![\w-])"
)
# Card issuers: the first digits of their numbers, and the lengths they issue.
_ISSUERS = {
    "4": (13, 16, 19),  # Visa
    "51-55 2221-2720": (16,),  # Mastercard
    "34 37": (15,),  # American Express
    "300-305 36 38-39": (14,),  # Diners
    "3528-3589 6011 644-659 62": range(16, 20),  # JCB, Discover, UnionPay
    "50 56-58": range(13, 20),  # Maestro
    "63 67": range(16, 20),  # Maestro
}
# Lengths of an IBAN by country (ISO 13616 registry).
_IBAN_LENGTHS = {
    code[:2]: int(code[2:])
    for code in (
        "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 "
        "EG29 ES24 FI18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 "
        "LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MR27 MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 "
        "RO24 RS22 SA24 SC31 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20"
    ).split()
}


def luhn(digits: str) -> bool:
    """The checksum of card numbers."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (1 + place % 2)
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0


def card(value: str) -> bool:
    """An issuer's range and length, and the checksum. The same few digits over and over are no card."""
    digits = re.sub(r"[ -]", "", value)
    if len(set(digits)) < 2 or not luhn(digits):
        return False
    for ranges, lengths in _ISSUERS.items():
        for first, _, last in (issued.partition("-") for issued in ranges.split()):
            if first <= digits[: len(first)] <= (last or first) and len(digits) in lengths:
                return True
    return False


def ssn(value: str) -> bool:
    """A number that can have been issued: no area 000, 666 or 9xx, no group 00, no serial 0000."""
    digits = re.sub(r"\D", "", value)
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000" and len(set(digits)) > 1


def iban(value: str) -> bool:
    """The mod-97 checksum, and the length of the country."""
    number = value
    while number:
        compact = re.sub(r"[ -]", "", number)
        if len(compact) == _IBAN_LENGTHS.get(compact[:2]):
            return int("".join(str(int(c, 36)) for c in compact[4:] + compact[:4])) % 97 == 1
        number = number.rpartition(" ")[0]  # the last group may be the next word, in capitals
    return False


def phone(value: str) -> bool:
    """Between eight and fifteen digits."""
    return 8 <= sum(map(str.isdigit, value)) <= 15


def _row(id: str, description: str, keywords: tuple[str, ...], regex: str, **more: Any) -> Rule:
    return Rule(id, description, keywords, regex, kind="pii", decoys=False, **more)


# fmt: off
PII: tuple[Rule, ...] = (
    _row("ssn", "US social security number", (), r"\d{3}([- ])\d{2}\1\d{4}(?![\w-]|\.\d)", check=ssn,
         not_after=_INSIDE),
    _row("ssn", "US social security number", ("ssn", "social security"),
         r"(?:\bssns?\b|social security)[^\n\d]{0,40}(\d{9}|\d{3}[ .]\d{2}[ .]\d{4})(?![\w-])", group=1, check=ssn,
         ignore_case=True, starts_word=False, wide=True),
    _row("card", "payment card number", (), _CARD, check=card, not_after=_INSIDE),
    _row("card", "payment card number", ("card", "cc=", "cc_num", "ccnum", "pan="),
         rf"(?:card|\bcc|\bpan)[\w-]{{0,16}}[\"']?\s{{0,2}}[=:]\s{{0,2}}[\"']?({_CARD})", group=1, check=card,
         ignore_case=True, starts_word=False, wide=True),
    _row("iban", "bank account number (IBAN)", (), _IBAN, check=iban),
)
# fmt: on
EMAIL = _row("email", "e-mail address", ("@",), _EMAIL, wide=True)
PHONE = _row("phone", "phone number", (), _PHONE, check=phone, starts_word=False)
