"""What prose puts near a credential's name, before it or after it: "I reset the password on Monday. It's … now."

No sign joins the two, so the value must say by itself what it is: a word that is no word, name, path or version.
"""

from __future__ import annotations

from memlane.gate.secrets import decoys, names, values
from memlane.gate.secrets.rule import exact, pattern

# How far from the name on its line a value may stand.
_BEFORE, _AFTER = 60, 90
# A long word with a digit, a sign or hyphens in it, without what opens a bracket or a stress around it.
_WORD = r"(?<!\S)[(*\[{<]{0,4}(?=\S{0,80}?(?:\d|[!@#$%^&?~+=|<>;]\S|[a-z]-[a-z]{2,12}-[a-z]))(?P<word>\S{6,100}+)(?!\S)"
# Methods, formats, versions, keys of a keyboard and dates, which texts about passwords have.
ALGORITHM = (
    r"sha|md[45]|hmac|pbkdf|crypt|argon|aes|o?auth|utf|base\d|x\.?509|ldap|v\d|2fa|ntlm|http|\d(?:st|nd|rd|th)\b|zxcvbn"
    r"|ipv\d|tls|ssl|pkcs|rfc|iso-?\d|fido|wpa\d|ctrl|ed25519|rsa-?\d|cve-|\d[a-z]{3}20\d\d"
)
# Addresses, paths, files, options, templates and code.
_LINKED = r"://|\]\(|\$[({]|\{\{"
_MARKUP = r"</|\}\}|=[\"']|=>|::|\(\)|\$argon|\$\w{1,6}\$"
_OTHER = (
    r"\A[\w-]+=[\w-]+\Z|\A[=/.@~\\#$&-]|</|\}\}|::|\(\)|=>|=[\"']|[\w)]\.\w+\(|\$2[aby]\$|--|'s\Z|\.[a-z]{2,4}\d?\Z"
    r"|\A[^\s@]+@[\w-]+\.[\w.-]+\Z|\A(?-i:[a-z][\w.+-]*@[a-z])[\w.:-]*\Z"
)
# What passwords have and names of things have not; other signs count where nothing else is a word.
_SIGNS = r"[!@#$%^&?~*]"
_MORE_SIGNS = r"[!@#$%^&?~*+=,;|<>()\[\]{}]"
_CODE = r"[()\[\]{}<>=;/\\|,\"'`:+]|\*(?!\w)|(?<!\w)\*"
# An issue, a package and its version, a share.
_NUMBERED = r"(?-i:[a-z_-]*#\d+|[a-z][a-z0-9_.-]*@v?\d[\w.-]*)|\d+%.*"
_CHANGE = r"(?-i:[a-z](?=[A-Z0-9])|[A-Z](?=[a-z0-9])|\d(?=[A-Za-z]))"
_PREFIXED = r"(?:[spar]k|key|tok|token|pat|api|secret)[-_][0-9a-f]{32,64}"
# The user before a password.
_USER = r"(?-i:[a-z][a-z0-9_.-]{1,30}):(?!/)"
# A word and a number: people choose such passwords, and names of many things, too.
_CHOSEN = r"(?!.*[a-z]1234?\Z)(?-i:[A-Za-z][a-z]{3,}\d{3,}|[A-Z][a-z]{3,}(?P<joined>[-_.])\d{2,4})"
# After these stands another thing: "the password for host1234", "in May2024".
_OF_ANOTHER = frozenset(
    "for of on in at by via the a an this that any each every and or since until after before into as le la el der die "
    "das dem den für von vom auf im am de du des del en sur pour para per di da do na w z для от на в".split()
)
_TO = frozenset("to from into zu in auf a à para na на".split())
_CHANGED = r"(?:chang|reset|set|rotat|updat|geändert|gesetzt|cambi|modif|alter|zmieni|смен|измен)\w*"
_WITH = frozenset("with using mit avec con com met z с".split())
_DIGEST = r"commit|sha\d*\b|hash|digest|checksum|\brev\b|md5|fingerprint|etag|uuid|guid"
_LINK = (
    r"(?:\b(?:is|was|be|are|to|now|use|using|with|ist|lautet|est|es|è|é|jest|är|on)|[a-z]'s|c'est|[:=–—]|->|→|\s-)"
    r"[\s\"'`*(]*\Z"
)
# What follows is shown for its form.
_FOR_EXAMPLE = (
    r"(?<!\S)(?:like(?: this| that)?|such as|e\.?g\.?|i\.e\.|ex|example|instance|format|form)[:,]?[\s\"'`*(]*\Z"
)
# Four words or more, none of them one that joins others: "end-to-end-encrypted" is no passphrase.
PHRASE = (
    r"(?!(?:.*[-_. ])?(?:the|and|for|with|how|not|you|your|per|via|use|to|in|on|of|by|is|it|at|or|as)(?:[-_. ]|\Z))"
    r"(?-i:[a-z]{3,12}(?P<join>[-_. ])[a-z]{2,12}(?:(?P=join)[a-z]{2,12}){2,7})(?:[-_. ]?\d{1,4}!?)?"
)
# Such a word alone is a name of something else.
WEAK = r"pass|secret|pw|user|admin|login|key|token|test"
# What has a password, so that "pass" is a noun behind it, and not what a test did.
HOLDERS = frozenset(
    "admin db database ftp keystore login mysql mqtt nas postgres rabbitmq redis root router sftp smb smtp ssh sudo "
    "truststore user vnc vpn wifi".split()
)
_NOUN = rf"\b(?:(?:the|my|our|your|his|her|their) (?=pass (?:is|was)\b)|(?:{'|'.join(sorted(HOLDERS))}) (?=pass\b))"


def near(text: str, start: int, end: int, kind: str) -> tuple[list[tuple[int, int]], int]:
    """Where the values stand that belong to the name between `start` and `end`, and how many words were looked at."""
    found: list[tuple[int, int]] = []
    looked = 0
    name = text[start:end].lower().rstrip(".-")
    if name.startswith("cred"):
        kind = names.LOGIN
    if kind == names.KEY or (kind == names.SECRET and name.endswith("s")):
        return found, looked  # a word of prose more often than a name: "tokens per second"
    verb = name.endswith("pass") and not pattern(_NOUN).search(text, max(0, start - 12), end + 5)
    low = max(text.rfind("\n", max(0, start - _BEFORE), start) + 1, start - _BEFORE, 0)
    line = text.find("\n", end, end + _AFTER)
    high = line if line >= 0 else min(len(text), end + _AFTER + 100)
    for word in pattern(_WORD).finditer(text, low, high):
        at = word.start("word")
        if (at < end and word.end() > start) or at > end + _AFTER or pattern(_LINKED).search(word[0]):
            continue
        looked += 1
        value = values.read(text, at)
        if not value or value.start > word.end():
            continue
        if kind == names.SECRET and len(value.text) < 32 and decoys.is_elided(text, value.end):
            continue  # only its beginning is shown
        before = text[max(low, value.start - 60) : value.start]
        if pattern(_FOR_EXAMPLE).search(before):
            continue
        if value.start > end:
            joined = not text[end : value.start].strip(" \t\"'`(*") or bool(pattern(_LINK).search(before))
        else:
            joined = bool(
                pattern(r"[\"'`*)]{0,3} (?:is|as|was) (?:[\w-]{1,20} ){0,4}").fullmatch(text, value.end, start)
            )
        user = pattern(_USER).match(value.text)
        own = value.text[user.end() :] if user else value.text
        if verb:
            belongs = joined and value.start > end and len(own) > 9 and own.isalnum() and decoys.is_generated(own)
        else:
            belongs = _belongs(own, kind, before, joined, value.start > end)
        if belongs:
            found.append((value.end - len(own), value.stop))
    return found, looked


def _belongs(text: str, kind: str, before: str, joined: bool, follows: bool) -> bool:
    """Whether a word near a name is its value; `joined` where only words that lead to it stand between them."""
    if kind == names.SECRET:
        password = joined and follows and len(text) >= 8 and all(decoys.kinds(text)[:2]) and _is_password(text)
        return password or ((joined or follows) and _is_key(text, before, joined))
    return _is_password(text) or (follows and _is_chosen(text, before, joined, kind))


def _is_password(text: str) -> bool:
    """A generated password, or a word, a number and a sign that no name of a thing has."""
    if not 7 <= len(text) <= 64 or not _may_be(text) or pattern(_NUMBERED).fullmatch(text):
        return len(text) >= 12 and len(set(exact(_MORE_SIGNS).findall(text))) > 1 and _is_noise(text)
    lower, upper, digit, _ = decoys.kinds(text)
    if pattern(_PREFIXED).fullmatch(text) or (lower and upper and digit and "/" not in text and decoys.is_random(text)):
        return True
    if decoys.is_generated(text):
        changes = len(pattern(_CHANGE).findall(text))  # `BRP072Cxx` is a product
        return (lower and upper and digit and changes > 3) or bool(pattern(_MORE_SIGNS).search(text))
    signs = digit and (lower or upper) and pattern(_SIGNS).search(text) and not pattern(_CODE).search(text)
    return bool(signs)


def _is_noise(text: str) -> bool:
    """What begins like a path, an option or a variable, and is full of signs and of nothing else."""
    return decoys.is_generated(text) and not pattern(_MARKUP).search(text) and not decoys.is_marked_whole(text)


def _may_be(text: str) -> bool:
    if not text.isascii() or pattern(_OTHER).search(text) or pattern(rf"(?<![a-z0-9])(?:{ALGORITHM})").search(text):
        return False
    none = decoys.is_marked_whole(text) or decoys.is_published(text) or decoys.is_stand_in(text)
    return not (none or decoys.is_example(text) or decoys.is_code(text))


def _is_chosen(text: str, before: str, joined: bool, kind: str) -> bool:
    """A word and a number, where the words before it lead to it, and not to another thing with a number in its name."""
    if kind == names.PASSWORD and joined and "-" in text and pattern(PHRASE).fullmatch(text):
        return not pattern(WEAK).search(text)
    chosen = pattern(_CHOSEN).fullmatch(text)
    if not chosen or not _may_be(text):
        return False
    last = (before.split() or [""])[-1].lower().strip("\"'`(*")
    if kind == names.LOGIN:
        return last in _WITH and text[0].isupper()
    if last in _TO and pattern(_CHANGED).search(before):
        return True
    return last not in _OF_ANOTHER and (not chosen["joined"] or joined)


def _is_key(text: str, before: str, joined: bool) -> bool:
    """A value that a machine chose; one that may be a digest only where the name leads to it."""
    if not decoys.is_random(text) or pattern(_OTHER).search(text) or text.count("/") > 2:
        return False
    if decoys.is_digest(text) or not all(decoys.kinds(text)[:3]):
        return joined and not pattern(_DIGEST).search(before)
    return len(text) >= 20 and decoys.wordiness(text) < 0.7
