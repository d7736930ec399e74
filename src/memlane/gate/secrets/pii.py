"""Rows for numbers that belong to a person: national ids, cards, bank accounts; e-mail and phone on request.

Each number is proved by its range or checksum, because nine or sixteen digits alone may be an order number or a
timestamp. Most national ids also need the word for them before them on the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from memlane.gate.secrets.rule import Rule

# A number after one of these is part of a longer one, of an address or of a name.
_INSIDE = "_.+/=#&?-"
_CARD = r"(?:[2-6]\d{3}(?:[ -]?\d{4}){2}[ -]?\d{1,7}|3\d{3}[ -]?\d{6}[ -]?\d{4,5})(?![\w/=-]|\.\d)"
_IBAN = r"[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?(?![A-Za-z0-9])"
_EMAIL = r"[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,18}(?![A-Za-z0-9@])"
_PHONE = (
    r"(?<![\w.+/=#-])(?:\+[1-9]\d{0,2}[ .-]?(?:\(0?\d{1,4}\)[ .-]?)?\d{1,4}(?:[ .-]?\d{2,4}){2,4}"
    r"|(?:1[ .-]?)?\([2-9]\d{2}\) ?\d{3}[ .-]\d{4}|(?:1[ .-])?[2-9]\d{2}([ .-])[2-9]\d{2}\1\d{4}"
    r"|1[3-9]\d{9}|1[3-9]\d([ -])\d{4}\2\d{4})(?![\w-]|[.,]\d)"  # the last two: mobile numbers of China
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


# Numbers that payment services publish for tests.
_TEST_CARDS = frozenset(
    "4242424242424242 4000056655665556 4000000000000002 4000000000009995 4000002500003155 4000000000003220 "
    "5555555555554444 2223003122003222 5200828282828210 5105105105105100 378282246310005 371449635398431 "
    "6011111111111117 6011000990139424 3056930009020004 36227206271667 6555900000604105 3566002020360505 "
    "6200000000000005".split()
)


def card(value: str) -> bool:
    """An issuer's range and length, and the checksum. The same few digits over and over are no card."""
    digits = re.sub(r"[ -]", "", value)
    if len(set(digits)) < 2 or digits in _TEST_CARDS or not luhn(digits):
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
    if digits in ("078051120", "219099999"):  # printed in advertisements
        return False
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


def _digits(value: str) -> list[int]:
    return [int(char) for char in value if char.isdigit()]


def _weighted(digits: list[int], weights: str) -> int:
    """The sum of the digits, each times its weight; `a` is ten."""
    return sum(digit * int(weight, 16) for digit, weight in zip(digits, weights, strict=False))


def cpf(value: str) -> bool:
    """Brazil: two check digits, each the weighted sum of those before it, modulo 11."""
    digits = _digits(value)
    first = _weighted(digits, "a98765432") * 10 % 11 % 10
    second = _weighted(digits, "ba98765432") * 10 % 11 % 10
    return digits[9:] == [first, second] and len(set(digits)) > 1


def aadhaar(value: str) -> bool:
    """India: Verhoeff's check digit, by the dihedral group of ten elements."""
    total, step = 0, list(range(10))
    for digit in reversed(_digits(value)):
        other = step[digit]
        turn = (total + other) % 5 if total < 5 else (total - other) % 5
        total = turn if (total < 5) == (other < 5) else turn + 5
        step = [(1, 5, 7, 6, 2, 8, 3, 0, 9, 4)[place] for place in step]
    return total == 0


def pesel(value: str) -> bool:
    """Poland: a date of birth, whose month also says the century, and a check digit."""
    digits = _digits(value)
    month, day = (10 * digits[2] + digits[3]) % 20, 10 * digits[4] + digits[5]
    return 1 <= month <= 12 and 1 <= day <= 31 and _weighted(digits, "13791379131") % 10 == 0


def codice_fiscale(value: str) -> bool:
    """Italy: the last letter is made of the others, which count by other tables at odd places."""
    odd = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
    places = [int(char) if char.isdigit() else ord(char) - ord("A") for char in value[:15]]
    total = sum(odd[place] if number % 2 == 0 else place for number, place in enumerate(places))
    return chr(ord("A") + total % 26) == value[15] and 1 <= int(value[9:11]) % 40 <= 31


def dni(value: str) -> bool:
    """Spain, DNI and NIE: the letter is the number modulo 23; X, Y and Z before it count as 0, 1 and 2."""
    compact = re.sub(r"[ .-]", "", value.upper())
    number = int(compact[:-1].translate({ord("X"): "0", ord("Y"): "1", ord("Z"): "2"}))
    return compact[-1] == "TRWAGMYFPDXBNJZSQVHLCKE"[number % 23]


def nino(value: str) -> bool:
    """Britain: two letters that are given out; there is no checksum."""
    return value[:2].upper() not in ("BG", "GB", "KN", "NK", "NT", "TN", "ZZ")


def resident_id(value: str) -> bool:
    """China: a date of birth, and a check digit modulo 11, of which X is ten."""
    month, day = int(value[10:12]), int(value[12:14])
    check = "10X98765432"[_weighted(_digits(value[:17]), "79a584216379a5842") % 11]
    return value[17].upper() == check and 1 <= month <= 12 and 1 <= day <= 31


def sin(value: str) -> bool:
    """Canada: the checksum of cards; none begins with 0 or 8."""
    digits = re.sub(r"\D", "", value)
    return digits[0] not in "08" and luhn(digits) and len(set(digits)) > 1


def nir(value: str) -> bool:
    """France: the last two digits are 97 less the others modulo 97; Corsica's 2A and 2B count as 19 and 18."""
    compact = re.sub(r"\D", "", value.upper().replace("2A", "19").replace("2B", "18"))
    return int(compact[13:]) == 97 - int(compact[:13]) % 97


def steuer_id(value: str) -> bool:
    """Germany: ISO 7064 mod 11, 10; of the first ten digits, one occurs twice or three times, and no other."""
    digits = _digits(value)
    product = 10
    for digit in digits[:10]:
        product = ((digit + product) % 10 or 10) * 2 % 11
    often = sorted(map(digits[:10].count, set(digits[:10])))
    return (11 - product) % 10 == digits[10] and often[-1] in (2, 3) and often[:-1].count(1) == len(often) - 1


def phone(value: str) -> bool:
    """Between eight and fifteen digits."""
    return 8 <= sum(map(str.isdigit, value)) <= 15


def _row(id: str, description: str, keywords: tuple[str, ...], regex: str, **more: Any) -> Rule:
    return Rule(id, description, keywords, regex, kind="pii", decoys=False, **more)


def _national(id: str, description: str, words: str, number: str, check: Callable[[str], bool]) -> Rule:
    """A row for a national id: one of the words (separated by `|`), then on the same line the number."""
    regex = rf"(?<!\w)(?:{words})(?!\w)[^\n\d]{{0,40}}?(?<!\w)({number})(?![\w-])"
    keywords = tuple(words.lower().split("|"))
    return _row(id, description, keywords, regex, group=1, check=check, ignore_case=words.islower(),
                starts_word=False, wide=True)  # fmt: skip


# fmt: off
# All of these hold seven digits or more, with no more than a sign between two of them.
NUMBERS: tuple[Rule, ...] = (
    _row("ssn", "US social security number", (), r"\d{3}-\d{2}-\d{4}(?![\w-]|\.\d)", check=ssn, not_after=_INSIDE),
    _row("ssn", "US social security number", ("ssn", "social security"),
         r"(?:\bssns?\b|social security)[^\n\d]{0,40}(\d{9}|\d{3}[ .]\d{2}[ .]\d{4})(?![\w-])", group=1, check=ssn,
         ignore_case=True, starts_word=False, wide=True),
    _row("card", "payment card number", (), _CARD, check=card, not_after=_INSIDE),
    _row("card", "payment card number", ("card", "cc=", "cc_num", "ccnum", "pan="),
         rf"(?:card|\bcc|\bpan)[\w-]{{0,16}}[\"']?\s{{0,2}}[=:]\s{{0,2}}[\"']?({_CARD})", group=1, check=card,
         ignore_case=True, starts_word=False, wide=True),
    _national("cpf", "Brazilian CPF", "cpf", r"\d{3}\.?\d{3}\.?\d{3}[ -]?\d{2}", cpf),
    _national("aadhaar", "Indian Aadhaar number", "aadhaar|aadhar|आधार", r"[2-9]\d{3}([ -]?)\d{4}\2\d{4}", aadhaar),
    _national("pesel", "Polish PESEL", "pesel", r"\d{11}", pesel),
    _national("dni", "Spanish DNI or NIE", "dni|nif|nie",
              r"(?:\d{2}\.?\d{3}\.?\d{3}|[XYZ][ -]?\d{7})[ -]?[A-HJ-NP-TV-Z]", dni),
    _national("resident-id", "Chinese resident id", "resident id|id card|idcard",
              r"[1-9]\d{5}(?:18|19|20)\d{9}[\dX]", resident_id),
    _row("resident-id", "Chinese resident id", ("身份证", "身份證"),
         r"身份[证證][^\n\d]{0,40}?([1-9]\d{5}(?:18|19|20)\d{9}[\dXx])(?![\w-])", group=1, check=resident_id,
         starts_word=False, wide=True),
    _national("sin", "Canadian social insurance number", "SIN|Social Insurance|social insurance|assurance sociale",
              r"\d{3}([ -]?)\d{3}\2\d{3}", sin),
    _national("nir", "French NIR", "nir|sécurité sociale|securite sociale|sécu|insee",
              r"[1-478] ?\d\d ?[0-9]\d ?(?:\d\d|2[AB]) ?\d{3} ?\d{3} ?\d\d", nir),
    _national("steuer-id", "German tax id",
              "steuer-id|steuerid|idnr|steuer-idnr|identifikationsnummer|steueridentifikationsnummer",
              r"[1-9]\d[ ]?\d{3}[ ]?\d{3}[ ]?\d{3}", steuer_id),
    _row("iban", "bank account number (IBAN)", (), _IBAN, check=iban),
)
SHAPES: tuple[Rule, ...] = (
    # The letter of the month is all that every one has.
    _row("codice-fiscale", "Italian codice fiscale", tuple("abcdehlmprst"),
         r"[A-Z]{6}\d\d[A-EHLMPRST][0-7]\d[A-Z]\d{3}[A-Z](?![A-Za-z0-9])", check=codice_fiscale),
    _national("nino", "British national insurance number", "national insurance|nino",
              r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]", nino),
)
# fmt: on
PII = (*NUMBERS, *SHAPES)
EMAIL = _row("email", "e-mail address", ("@",), _EMAIL, wide=True)
PHONE = _row("phone", "phone number", (), _PHONE, check=phone, starts_word=False)
