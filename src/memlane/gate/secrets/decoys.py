"""What looks like a secret and is none: placeholders, variables, words, hashes and ids.

Pure functions over one value. Does not search a text and knows no vendor.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache, lru_cache
from itertools import pairwise

from memlane.gate.secrets.rule import U, exact, pattern

# The followers that make up 97 % of the letter pairs in English prose and identifiers, by first letter
# (counted over the development notes). About two pairs in five of a random string are in here.
_FOLLOWERS = (
    "abcdfgiklmnprstuvwy baeilorsu cacehiklorstuy dadeilorsu eabcdefgilmnopqrstvwxy faefilortuy gaeghilnorsu "
    "haeiortu iabcdefgklmnoprstvz jeou keins ladefilopstuvy mabeimopsu nacdefgiklnostuvy oabcdefgiklmnoprstuvw "
    "paehiloprstuy qu racdefgiklmnorstuvy sacehiklmnopstuy tacehiloprstuwy uabcdegilmnprst vaeio waehinors xaeipt "
    "yeinopst zae"
)

# Parts of a value that say "this is not a real one". Real random values hold none of them by chance.
_PLACEHOLDER_WORDS = tuple(
    """
    example sample placeholder changeme change-me change_me changethis change-this change_this changeit
    change-for your- your_ your. yourkey yourtoken yoursecret yourpass yourapi my-secret my_secret mysecret
    my-token my_token mytoken my-pass my_pass mypass my-key my_key my-api my_api my-super my_super replace-me
    replace_me replaceme replace-with replace_with insert-your insert_your redacted dummy foobar not-real
    not_real notreal put-your put_your goes-here goes_here -here> to-be- to_be_ xxxxx
    """.split()
)
_PLACEHOLDER_SIGNS = r"\*{3,}|\.{3,}|…|•{3,}|_{6,}|-{6,}|#{4,}|<[a-z]|\{\{|\$\{|\$\(|%\(|%\{|#\{|@\{|\{%|<%|\[hidden"
# The whole value says where to get the secret, or is a type or an expression of code.
_REFERENCE = (
    r"[$%@&!][A-Za-z_({\[].*|%[A-Za-z_]+%|\{[A-Za-z_][\w.: -]*\}|<[^>]*>?|\[[A-Za-z_ ]+\]?"
    r"|(?:process\.|import\.meta\.|os\.|System\.|std::|Deno\.|ENV\b|env\b|config\b|conf\b|secrets?\b|self\b|this\b"
    r"|settings?\b|params?\b|options?\b|args?\b|vault\b|var\b|data\b|local\b|module\b|ref\b|op://|arn:|file:|sops"
    r"|enc\[|crypt\()[.\[(:/'\"].*"
    r"|[A-Za-z_][\w.:>-]*+\(.*|[A-Za-z_]\w*+\[.*|(?:\.{0,2}/|~/|[A-Za-z]:\\).*|[\[(<]?[a-z][a-z0-9+.]*://.*|\[.*\]\(.*"
)
# Stand-in passwords and the words that follow "password:" in forms, schemas and prose.
_STAND_INS = frozenset(
    """
    password passwd passwort passphrase pass pwd secret secrets token tokens apikey api_key key keys auth
    credential credentials admin administrator root user username userpass guest test testing tester test1
    test12 test123 test1234 demo default none null nil undefined true false yes no on off empty blank unset
    optional required string str text varchar int integer number bool boolean bytes char object array any
    unknown hidden masked encrypted hashed hash plain plaintext cleartext prompt ask stdin file env
    environment variable keyring keychain vault here todo tbd fixme foo bar baz qux foobar abc abc123 abcd
    abcdef xyz asdf qwerty 123 1234 12345 123456 1234567 12345678 123456789 1234567890 0000 00000000 changeme
    changeit letmein private public value values valid invalid input field form type basic bearer digest oauth
    oauth2 jwt saml ldap kerberos md5 sha1 sha256 sha512 bcrypt scrypt argon2 base64 hex utf8 new old current
    previous same different missing wrong correct incorrect expired reset forgotten lost found and or the this
    that it not if is in for with your my our their only also now never always
    """.split()
)
# What made-up passwords are made of. A value of nothing but these is none that anybody uses.
_MADE_UP = (
    "password|passwd|passwort|passphrase|pass|pwd|pw|secret|secure|credentials?|credential|token|apikey|api|key|user|name"
    "|admin|login|service|account|app|application|client|server|database|db|root|super|strong|very|long|random|some|any"
    "|new|old|current|wrong|bad|good|correct|incorrect|invalid|valid|temp|tmp|initial|initpass|default|demo|prod|dev|local"
    "|value|string|text|plain|here|goes|in|production|a|an|the|is|it|this|that|of|for|to|be|and|or|not|real|only|at|least"
    "|encrypted|hashed|secretkey|auth|oauth|jwt|access|private|webhook|session|signing|master|shared|hard|guess|easy"
    "|minimum|characters|chars|generated|generate|set|me|you|unknown|hidden|masked|none|null|empty|blank|required|one"
    "|postgres(?:ql)?|mysql|mongo(?:db)?|redis|rabbitmq|minio|mariadb|elastic|grafana|sa|username|email|hunter|sendgrid"
    "|stripe|github|openai|anthropic|aws|azure|google|slack|twilio|smtp|mail"
)
_SAYS_SO = (
    "my|your|our|example|sample|change|changeme|changeit|changethis|placeholder|dummy|fake|foo|bar|baz|qux|foobar|replace"
    "|insert|put|enter|type|use|fill|redacted|removed|omitted|todo|tbd|xxx+|yyy+|zzz+|test|testing|tester|mock|stub|abc|asdf"
    "|qwerty|lorem|ipsum|example|samples?|notarealsecret|not-?a-?real"
)
_CODE = r"\.?[$@]{0,2}[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)\$?\w+)*"
# Dates, versions, numbers with units, addresses, paths, options, methods: mixed characters, and nobody's password.
_SHAPED = (
    r"\d{4}-\d\d-\d\d.*|v?\d+(?:\.\w+)+.*|[\d.,:/+-]+[a-z%°]{0,4}|\.{0,2}/[\w.~/-]*|--?[a-z][\w-]*(?:=.*)?|#[0-9a-f]{3,8}"
    r"|[\w.-]+@[\w-]+(?:\.[\w-]+)+|(?-i:[A-Z][A-Z0-9]*(?:[-_/+.][A-Z0-9]+)*)|0x[0-9a-f]+|\^.*\$|/.*/[gimsuy]*|\d+[-x]\d+.*"
)
_CLASSES = r"(?-i:a-z|a-f|A-Z|A-F)|0-9|\\[dws][+*{\]]|\{\d+,\d*\}|\(\?[:=!]|\.\*|\[\^"
# What fingers type for an example, as `sk_live_abc123xyz789`.
_TYPED = r"(?:[a-z]{2,8}[-_]){0,3}(?=.{3,20}\Z)(?=\d*[a-z])(?:abcd?|defg?|ghi|jkl|xyz|1234?|456|5678|789|000){2,}"
_WHOLE = r"abcdefghijklmnopqrstuvwxyz|0123456789|1234567890|234567|[-_.]"
_IN_ORDER = r"abcdefgh|0123456789|1234567890"
_MASKED = r"\*{3}|\.{3}|…|•{3}|_{6}|-{6}|#{4}|x{4}|\[redacted|\[hidden"
_MARKED = (
    r"<[\w .,:/'|-]+>?|\$\{.*|\$\$?\(.*|\{\{.*|\{%.*|<%.*|[#%@]\{.*|%\(.*|\$\$?[a-z_][a-z_.]*\d?|%[a-z_]+%"
    r"|\{[\w.: -]*\}\W*|@@?[a-z_]+@?@?|\^\w+\^|\\\$\w+"
    r"|:[a-z_]+|&[a-z_]+|\[[a-z][\w :-]*\]"
    r"|(?:op|vault|ref|secret|ssm|keyring|pass|awssm|gcpsm|azurekeyvault)(?:\+\w+)?:/?/?.*|arn:.*|file:.*"
    r"|--[a-z][\w-]*(?:=.*)?|env[:.].*|enc\[.*|[\[(<]?[a-z][a-z0-9+.]*://.*|\[.*\]\(.*|sops:.*|!(?:secret|vault|ref|sub|env|include|getatt|join|importvalue)\w*.*|~?\.{0,2}/[\w.~/#?=&-]+|[a-z]:\\.*"
)
_SAID = (
    r"(?:qwert[yz]|azerty|asdf|zxcv)[a-z]{0,4}\d?|(?:your|my|change|replace|insert|enter|put|example|sample|some)[-_][\w.-]*"
    r"|(?:(?:required|nullable|string|confirmed|min|max|between|size)(?::[\d,]+)?\|?)+"
    r"|change[-_]?(?:me|it|this)(?![a-z]).*|[a-z]+[-_](?:password|passwd|pass|pwd|secret|token|key)\d?"
)
# A value is judged by its first characters, so that a megabyte without a blank costs no more than a key.
_ENOUGH = 256


@cache
def _pairs() -> frozenset[str]:
    return frozenset(row[0] + follower for row in _FOLLOWERS.split() for follower in row[1:])


@cache
def _placeholder_word() -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, _PLACEHOLDER_WORDS)))


def entropy(value: str) -> float:
    """Shannon entropy in bits per character."""
    value = value[:_ENOUGH]
    total = len(value)
    return -sum(n / total * math.log2(n / total) for n in Counter(value).values()) if total else 0.0


def wordiness(value: str) -> float:
    """The share of letter pairs that words are made of: near 1 for words, near 0.4 for random letters."""
    lowered = value[:_ENOUGH].lower()
    pairs = _pairs()
    seen = [a + b in pairs for a, b in pairwise(lowered) if a.isalpha() and b.isalpha()]
    return sum(seen) / len(seen) if seen else 0.0


@lru_cache(1024)
def kinds(value: str) -> tuple[bool, bool, bool, bool]:
    """Whether a value has small letters, capitals, digits, and other signs."""
    other = bool(value) and not (value.isascii() and value.isalnum())
    small, capital, digit = exact(r"[a-z]").search(value), exact(r"[A-Z]").search(value), exact(r"\d").search(value)
    return small is not None, capital is not None, digit is not None, other


@lru_cache(1024)
def words_in(value: str) -> int:
    """How many characters of a value belong to words: four letters or more of one case, in pairs that words have."""
    if value.isalpha() and value.islower():
        pieces = [value]
    else:
        pieces = exact(r"[A-Z]?[a-z]{3,}|[A-Z]{4,}|[^\W\d_A-Za-z]{2,}").findall(value[:_ENOUGH])
    return sum(len(piece) for piece in pieces if len(piece) >= 4 and (wordiness(piece) >= 0.75 or not piece.isascii()))


def is_generated(value: str, least: int = 8) -> bool:
    """True for what a password generator makes, over any signs: three kinds of characters and no word among them."""
    if not least <= len(value) <= 128 or len(set(value)) < 6 or not value.isascii():
        return False
    lower, upper, digit, sign = kinds(value)
    if lower + upper + digit + sign < 3 or not (digit or (lower and upper and len(value) >= 10)):
        return False
    if len(value) < 12 and not lower:
        return False
    # Four or five letters among many signs are a word by chance.
    signs = {c for c in value if not c.isalnum()}
    words = words_in(value)
    if words and (words > 5 or len(value) < 12 or len(signs - set("-_./:")) < 3 or is_code(value)):
        return False
    return not pattern(_SHAPED).fullmatch(value) and not pattern(_CLASSES).search(value)


def is_noise(value: str) -> bool:
    """Letters without a word in them, in both cases: a generated value that happens to have no digit."""
    if len(value) < 10 or not value.isalpha() or not value.isascii():
        return False
    return len(exact(r"[a-z][A-Z]|[A-Z][a-z]").findall(value)) >= 4 and wordiness(value) < 0.65


def is_published(value: str) -> bool:
    """True for the half of a pair of keys that is meant for everybody's browser, and for a finding's fingerprint."""
    address = value.startswith("0x") and len(value) == 42
    fingerprint = "@" in value and exact(r"\(?[a-z][a-z0-9-]*@[0-9a-f]{4}-[0-9a-f]{5}\)?").fullmatch(value)
    return (
        address
        or bool(fingerprint)
        or value.startswith(("pk_live_", "pk_test_", "pub_", "pub-", "ssh-rsa", "ssh-ed25519"))
    )


def is_code(value: str) -> bool:
    """True for an expression that fetches a value: a call, an index, a member, a constant with a name."""
    match = pattern(_CODE).match(value)
    if not match:
        return value[:1] in "([{*&!~-+" and words_in(value) > 0 and not exact(r"\d").search(value)
    rest = value[match.end() :].rstrip("!")
    if not rest:
        return bool(exact(r"[.$@]|::|->").search(value)) and words_in(value) * 2 > len(exact(r"\W").sub("", value))
    if rest[0] not in "([{" and not rest.startswith(("->", "::", "||", "&&", "==", "!=", "=>", "<", "??")):
        return False
    balanced = all(rest.count(a) == rest.count(b) for a, b in ("()", "[]", "{}"))
    return words_in(value) > 0 or (balanced and rest[0] in "([{")


def counts_up(lowered: str) -> bool:
    """True where half of a value is the alphabet or the digits in their order, unless it is as long as a key.

    An alphabet that is complete is that of an encoding.
    """
    if not exact(_IN_ORDER).search(lowered):
        return False
    if exact(r"(?=.*\d)[\w.-]{20,}").fullmatch(lowered) and exact(_WHOLE).sub("", lowered):
        return False
    runs, run = 0, 1
    for a, b in pairwise(lowered + "\0"):
        if ord(b) - ord(a) == 1 or a + b == "90":
            run += 1
            continue
        runs += run if run >= 6 else 0
        run = 1
    return 2 * runs >= len(lowered)


@lru_cache(1024)
def is_marked_whole(value: str) -> bool:
    """True where all of a value says that it is none: `<your-password>`, `${VAR}`, `********`, `[omitted]`."""
    return (
        len(set(value)) <= 3
        or bool(pattern(_MASKED).search(value) or pattern(_CLASSES).search(value))
        or counts_up(value.lower())
        or bool(pattern(_MARKED).fullmatch(value) or pattern(_TYPED).fullmatch(value))
    )


def is_marked(value: str) -> bool:
    """True for a value that says it is not a real one: `<your-token>`, `xxxxxx`, `${VAR}`, `$VAR`."""
    value = value[:_ENOUGH]
    lowered = value.lower()
    if len(set(value)) <= 3 or _placeholder_word().search(lowered) or pattern(_TYPED).fullmatch(lowered):
        return True
    if value.isalnum():
        return False
    return bool(pattern(_PLACEHOLDER_SIGNS).search(value) or pattern(r"[$%]\w+%?|\{\w*\}|op://.*").fullmatch(value))


def is_elided(text: str, end: int) -> bool:
    """True where the text shows only the beginning of a value: `ghp_abc...`, `sk-1234****`."""
    rest = text[end : end + 8].lstrip("-_:/")
    return rest.startswith(("...", "…", "***", "•••", "xxxx", "XXXX", "####", "[..."))


def is_placeholder(value: str) -> bool:
    """True for marked values and, outside quotes, for expressions of code that fetch the value."""
    return is_marked(value) or bool(pattern(_REFERENCE).fullmatch(value[:_ENOUGH]))


@cache
def _made_up() -> re.Pattern[str]:
    words = rf"(?:(?:{_MADE_UP}|{_SAYS_SO})[-_. ]?){{1,12}}"
    return re.compile(rf"(?:{words}|(?=.*(?:{_SAYS_SO})){words}\d{{1,3}})")


def is_stand_in(value: str) -> bool:
    """True for a word that stands where a password could stand (`password: required`), or several of them."""
    word = value.lower().strip(".,;:!?")
    if word in _STAND_INS or pattern(_SAID).fullmatch(word):
        return True
    return len(value) <= 48 and bool(_made_up().fullmatch(value.lower()))


@cache
def _example() -> re.Pattern[str]:
    number = "0?1|12|123|1234|12345|123456|321|456|789|00"
    return re.compile(rf"(?=[a-z]{{4}})(?:{_MADE_UP}|{_SAYS_SO}){{1,2}}[@#_.-]?(?:{number})[!@#$]?")


def is_example(value: str) -> bool:
    """True for the passwords of tutorials and tests: a word or two that say "password", and 1, 123 or 456."""
    return len(value) <= 32 and bool(_example().fullmatch(value.lower()))


def is_digest(value: str) -> bool:
    """True for a bare hash or id, which nothing marks as secret: hex of a digest's length, or a UUID."""
    value = value[-_ENOUGH:]
    if len(value) in (32, 40, 56, 64, 96, 128):
        return bool(exact(r"[0-9a-f]+|[0-9A-F]+").fullmatch(value))
    if exact(r"[-_.:][0-9a-f]{32,128}(?:\.\w{1,5})?\Z").search(value):
        return True  # a name with its hash: a cache key, a built file, `sha256:…`
    return len(value) == 36 and bool(exact(U).fullmatch(value))


@lru_cache(1024)
def is_random(value: str, least: int = 16) -> bool:
    """True where a machine, not a person, chose the characters.

    Words, camelCase, dotted names, paths, versions and dates are not random; hex, base64 and base62 keys are.
    """
    if len(value) < least or is_placeholder(value) or is_published(value):
        return False
    value = value[:_ENOUGH]
    digits = len(exact(r"\d").findall(value))
    letters = len(exact(r"[^\W\d_]").findall(value))
    if not digits or letters < 2 or len(set(value)) < 6:
        # Without a digit only long runs of unlikely letters count: few base62 keys have none.
        return letters >= 20 and len(set(value)) >= 10 and value.isalnum() and wordiness(value) < 0.65
    if entropy(value) < 2.9:
        return False
    if exact(r"[0-9A-Fa-f-]+").fullmatch(value):
        return True
    if words_in(value) * 3 >= len(value) * 2:  # `arrayBuffer32bytes`
        return False
    parts = exact(r"[-_./:]").split(value)
    if max(map(len, parts)) < 10:  # a name with numbers in it (`gpt-4o-2024-08-06`), unless its parts are mixed too
        mixed = [part for part in parts if exact(r"\d").search(part) and exact(r"[A-Za-z]").search(part)]
        return 2 * len(mixed) > len(parts)
    switches = len(exact(r"[0-9][A-Za-z]|[A-Za-z][0-9]").findall(value))
    return wordiness(value) < 0.8 and (switches >= 2 or digits >= 4 or wordiness(value) < 0.6)


def is_password(value: str) -> bool:
    """True where a value stands in a password's place and is more than a stand-in, a variable or a path."""
    if len(value) < 4 or not value.isascii() or is_marked_whole(value) or is_stand_in(value) or is_code(value):
        return False
    if is_generated(value):
        return True
    if exact(r"[-/.=]|\d+$|(?i:(?:my)?pass(?:w(?:or)?d)?\d{0,3}$)").match(value) or exact(
        r"[a-z]+[-_/.][a-z./_-]+"
    ).fullmatch(value):
        return False
    return sum(kinds(value)) >= 2
