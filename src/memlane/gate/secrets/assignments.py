"""`name = value` in any syntax: env, YAML, JSON, XML, TOML, code, flags, prose ("the password is …").

The name must be one of a credential (`names`) and the value, read whole (`values`), must look like one (`decoys`).
Names are found with plain string search, and only then does a pattern anchored there look for the sign that joins them:
prose without such names costs next to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memlane.gate.secrets import decoys, names, values
from memlane.gate.secrets.decoys import is_digest, is_random, is_stand_in, kinds, wordiness
from memlane.gate.secrets.prose import ALGORITHM, HOLDERS, PHRASE, WEAK, near
from memlane.gate.secrets.repeats import Repeats
from memlane.gate.secrets.rule import exact, pattern
from memlane.gate.secrets.values import BLANK, Value

Found = tuple[str, str, int, int]


def _unnamed(source: str) -> str:
    """A pattern without the names of its groups."""
    return re.sub(r"\(\?P<\w+>", "(?:", source)


_VERB = r"(?=[iwtelèéjä])(?:is|was|to|ist|war|es|est|è|é|era|jest|är|lautet)\b"
_SAYS = rf"(?:{_VERB}|是|为|為|は)(?: .*)?"
# From a credential's word to its value: the rest of the name, perhaps words, and the sign. All repeats are bounded.
_REST = r"(?:[^\W是为為は]|[.-]){0,40}+"
# A name and its value as two fields; the attributes of an element.
_FIELD = r"\b(?:value|default)\b[\"'`]?[ \t]{0,4}[:=]"
_ATTRIBUTES = r"(?:[\w:.-]{1,40}+=\\?[\"'][^\"'<>\n]{0,100}[\"']\s?){1,5}>"
_SIGNED = (
    rf"(?P<more>(?:[ \t]{{1,2}}(?!{_VERB})\w[\w.-]{{0,19}}+){{0,4}}?)"
    r"(?:[ ][(\[][\w -]{1,20}[)\]])?"  # "Password (temporary): …"
    rf"(?:\[\d{{0,4}}\]|\\{{1,7}}[\"']|&quot;|&#3[49];|[\"'`\])*}}]{{0,4}}+){BLANK}{{0,80}}+(?P<sep>"
    # What begins with a letter is tried where one stands, the rest elsewhere: most names have another word after them.
    rf"(?=\w)(?:{_FIELD}|{_ATTRIBUTES}|[是为為は]"
    rf"|(?=[iw])\b(?:is|was)[ ](?:now|set|changed|reset|updated)(?:[ ]to)?\b:?|\b{_VERB}:?)"
    rf"|(?!\w)(?:[,;]?\s{{0,20}}[\"'`]?{_FIELD}|</key>\s{{0,20}}<string>"
    # The default of a variable, and a declaration with a type.
    r"|\{[^{}]{0,300}?\bdefault[ \t]{0,10}=|;s:\d{1,4}:(?=\\?\")"
    rf"|{_ATTRIBUTES}"
    r"|:[ \t]{0,2}[&*]?(?:'\w{1,10} )?[\w.<>?]{1,30}[ \t]{0,3}=(?=[ \t]{0,3}[\"'`])"
    r"|:[-=]|:(?!:)|:{2,3}(?==|[ \t])=?|：|=>|[!=]?={1,3}|->|→"
    r"|\?=|\|\|=?(?=[ \t]{0,2}[\"'`])|\|(?=[ \t]|[^\s|]{8})|,|>|\(|[-–—](?=[ \t])))"
)
# Only blanks: before a quote, or before what is no word of prose.
_BLANK = rf"(?P<more>)[\"'`\])*}}]{{0,2}}(?P<sep>)(?={BLANK}{{1,4}}(?:[\"'`]|(?=\S{{0,40}}\d)\S{{5}}|\S{{10}}))"
# The rest of a name, and how a value can follow it, if any can: what `_below` finds has a sign, too.
_NAME = rf"{_REST}(?:(?={_unnamed(_SIGNED)})(?P<signed>)|(?={_unnamed(_BLANK)})(?P<blank>))?"
_BELOW = (
    r"[\"'`*]{0,3}[ \t]{0,4}[:：]\*{0,2}[ \t]{0,4}\r?\n[ \t>]{0,12}[\"'`*]{0,3}"
    r"(?P<value>[^\s\"'`]{8,80})[\"'`*]{0,3}\s{0,2}(?:\n|\Z)"
)
# Numbers, paths, dotted names, constants and file names.
_OTHER_VALUES = (
    r"[\d.,:/-]+|[A-Za-z]+[-/.][A-Za-z./_-]+|(?-i:[A-Z][A-Z_]*)\d{0,2}(?::(?-i:[A-Z_]+)\d{0,2})?"
    r"|.*\.(?:txt|md|json|ya?ml|py|js|html?|key|pem|crt)|\d+\.[a-z]+|[\w.@-]*(?:/[\w.@-]+)+|[\w.-]+\.[a-z]{2,4}(?::\d+)?"
)
_LOGIN = (
    r"(?:user(?:[_-]?(?:name|id))?|usr|uid|login|account)[\"'\])]{0,3}[ \t]{0,10}(?:=>|:=|[=:]|[ \t]"
    r"(?=[\"']))[ \t]{0,10}[^\s=]{2}"
)
_USERS = ("user", "usr", "uid", "login", "account")
# A value costs as much as so many characters, however short it is.
_TO_JUDGE = 200
# How far before a name and after it anything is read, with room to spare.
_BACK, _AHEAD = 400, 2000
_SECRET = "assigned-secret", "secret in an assignment"
_PASSWORD = "password", "password"


def _has(what: str, value: str) -> bool:
    return bool(exact(what).search(value))


def places(lowered: str, word: str, step: int) -> Iterator[int]:
    """Where a word occurs; the search goes on `step` characters after each place."""
    at = lowered.find(word)
    while at >= 0:
        yield at
        at = lowered.find(word, at + step)


class _Looked(NamedTuple):
    """What was found at a name. Places count from where its word begins."""

    end: int
    kind: str
    # Up to where the text was read for each form that was tried, 0 where it is not there; the last may have the value.
    reaches: tuple[int, ...] = ()
    assigned: Found | None = None
    below: Found | None = None
    near: tuple[tuple[int, int], ...] = ()
    words: int = 0  # that were looked at for these


def find(text: str, lowered: str, held: set[str]) -> Iterator[Found]:
    """Yield (rule, description, start, end) of each value that is assigned to a credential's name.

    Of the words of names, only those that the text holds are looked for.
    """
    words = sorted(names.PLACES.keys() & held, key=names.PLACES.__getitem__)
    starts = {at: len(word) for word in words for at in places(lowered, word, len(word))}
    if not starts:
        return
    # How much may be read twice, and how much near a name: a word without end may be full of names.
    done, left, near_left = 0, 10 * len(text) + 20_000, len(text) + 20_000
    repeats: Repeats[_Looked] = Repeats(text, _BACK, _AHEAD)
    for start in sorted(starts):
        if start < done:
            continue
        looked = repeats.at(start)
        if not looked:
            spent = near_left <= 0  # then only what follows counts, and it is soon told that nothing does
            rest = pattern(_NAME if spent else _REST).match(text, start + starts[start])
            if not rest or (spent and rest.lastgroup is None):
                done = rest.end() if rest else start + 1
                continue
            looked = repeats.note(start, _look(text, start, rest, not spent))
        at = done = start + looked.end
        if not looked.kind:
            continue
        for number, reach in enumerate(looked.reaches, 1):
            upto = start + reach if reach else 0
            left -= max(0, upto - at) + _TO_JUDGE if reach else 0
            if looked.assigned and number == len(looked.reaches):
                done = max(done, upto)
            elif left < 0:
                done = max(done, _end_of_run(text, upto))
        if found := looked.assigned or looked.below:
            yield *found[:2], start + found[2], start + found[3]
        elif near_left > 0:
            near_left -= 50 + 120 * looked.words
            rule = _SECRET if looked.kind == names.SECRET else _PASSWORD
            yield from ((*rule, start + low, start + high) for low, high in looked.near)


def _look(text: str, start: int, rest: re.Match[str], nearby: bool) -> _Looked:
    """What belongs to the name that begins here and ends with `rest`, and what stands near it."""
    at = rest.end()
    name = _name(text, start) + text[start:at]
    kind = names.kind_of(name)
    if not kind or text[max(0, at - len(name) - 5) : at].endswith("/etc/passwd"):
        return _Looked(at - start, "")
    reaches = []
    forms = (_BLANK,) if rest.lastgroup == "blank" else (_SIGNED, _BLANK)
    for form in forms if kind != names.LOGIN else ():
        found, upto = _after(text, name, at, form)
        reaches.append(upto and upto - start)
        if found:
            return _Looked(at - start, kind, tuple(reaches), assigned=_from(start, found))
    if found := _below(text, name, at):
        return _Looked(at - start, kind, tuple(reaches), below=_from(start, found))
    spans, words = near(text, start, at, kind) if nearby else ([], 0)
    beside = tuple((low - start, high - start) for low, high in spans)
    return _Looked(at - start, kind, tuple(reaches), near=beside, words=words)


def _from(start: int, found: Found) -> Found:
    rule, description, low, high = found
    return rule, description, low - start, high - start


def _end_of_run(text: str, at: int) -> int:
    run = pattern(r"\S{0,600}+").match(text, at)
    return run.end() if run else at


def _name(text: str, start: int) -> str:
    """What stands before a credential's word in its name, with one word before that."""
    before = pattern(r"[\w.-]{0,30}+(?: [\w.-]{1,20}+)?").match(text[max(0, start - 52) : start][::-1])
    return before[0][::-1] if before else ""


def _after(text: str, name: str, at: int, form: str) -> tuple[Found | None, int]:
    """The value after a name, if it is a secret, and up to where the text was read for it."""
    match = pattern(form).match(text, at)
    if not match:
        return None, 0
    if more := match["more"]:
        last = more.rpartition(" ")[2]
        joined = bool(last) and match.end("more") == match.start("sep")
        if joined and (match["sep"][0] == "=" or exact(r"\d|[a-z][A-Z]").search(last)):
            return None, 0  # the sign belongs to the value, or to another name: `PASSWORD x9=…`, `--token --project=…`
    name += more
    kind = names.kind_of(name)
    value = values.read(text, match.end()) if kind else None
    if not value:
        return None, match.end()
    if len(value.text) < 4 or (
        len(value.text) < (8 if kind == names.PASSWORD else 32) and decoys.is_elided(text, value.end)
    ):
        return None, value.end  # too short, or only its beginning is shown
    sign = _sign(text, match, value)
    rule = _judge_password(name, sign, value, match) if kind == names.PASSWORD else _judge(kind, sign, value)
    return (*rule, value.start, value.stop) if rule else None, value.stop


def _below(text: str, name: str, at: int) -> Found | None:
    """A generated password that is all of the line below its name."""
    match = pattern(_BELOW).match(text, at) if names.kind_of(name) == names.PASSWORD else None
    if not match or not decoys.is_generated(match["value"]) or decoys.is_marked_whole(match["value"]):
        return None
    return *_PASSWORD, *match.span("value")


def _sign(text: str, match: re.Match[str], value: Value) -> str:
    """The sign between name and value: `=` for all that assigns, `is` for verbs, or the sign itself."""
    if match["sep"] in (":", "=", ""):  # as nearly always
        return match["sep"]
    sep = match["sep"].strip().lower()
    sep = sep.rstrip(":") or sep
    if pattern(_SAYS).fullmatch(sep):
        return "is"
    if sep.endswith(">") and text.find("</", value.end, value.end + 5) >= 0:
        return "="
    if sep in "-–—":
        return ""
    return sep if sep in (",", "(", "->", ":", "=>", ">", "|") else "="


def _judge(kind: str, sign: str, value: Value) -> tuple[str, str] | None:
    """Whether a value after the name of a secret or a key is one."""
    # What makes it none takes longer to find, and most have nothing that speaks for them.
    return _SECRET if _may_be_secret(kind == names.SECRET, sign, value) and not _is_none(value) else None


def _may_be_secret(secret: bool, sign: str, value: Value) -> bool:
    """Whether a value looks like a secret, or else like a key."""
    text = value.text
    apart = sign in ("", ",", ">", "(", "is", "->", "|")
    if len(text) < (8 if secret else 16) or (apart and not secret) or not text.isascii():
        return False
    if exact(r"\s").search(text):  # a phrase, unless a generator put the blanks there
        if not (secret and value.quote):
            return False
        return all(kinds(text)) and decoys.is_generated(text.replace(" ", "_"), 32)
    if secret and value.quote and exact(r"(?:django-insecure-)?[a-z0-9!@#$%^&*(_=+)-]{40,64}").fullmatch(text):
        return decoys.entropy(text) > 4  # Django draws from these signs
    # `sk_` and thirty-two hex digits
    bare = exact(r"\A[A-Za-z][A-Za-z0-9]{0,11}[-_](?=[0-9a-fA-F]{32,64}\Z)").sub("", text)
    if apart:
        return is_random(bare) or (decoys.is_generated(text, 12) and (sign == "is" or bool(value.quote)))
    if secret and exact(r"\d{20,}").fullmatch(text) and len(set(text)) > 4:
        return True
    if bare != text or is_digest(text):
        return secret and is_random(bare)
    if not secret and not exact(r"[\w+/=!@#$%^&*()]+").fullmatch(text):
        return False  # a bare "key" has names and paths for values more often than secrets
    if is_random(text) or (secret and 8 <= len(text) < 40 and (_is_short_key(text) or decoys.is_noise(text))):
        return True
    return secret and (decoys.is_generated(text, 8) or (bool(value.quote) and _is_signed_key(text)))


def _is_none(value: Value) -> bool:
    """What no name makes a credential: a stand-in, a variable, an expression, a published key."""
    text = value.text
    if decoys.is_marked_whole(text) or is_stand_in(text) or decoys.is_published(text):
        return True
    if value.sigil.lower() in ("f", "rf", "fr", "$") and "{" in text:
        return True
    return value.quote in ("", "`") and (text[0] == "\\" or decoys.is_code(text))


def _judge_password(name: str, sign: str, value: Value, match: re.Match[str]) -> tuple[str, str] | None:
    return _PASSWORD if _is_password(name, sign, value, match) else None


def _is_password(name: str, sign: str, value: Value, match: re.Match[str]) -> bool:
    text = value.text[:200].strip("\"'")
    if match["more"] and sign in ("(", ",", ">", "->", "|"):
        return False  # prose goes on
    if sign == "" and exact(r"[\w-]+=").match(text):
        return False
    login = bool(_login(match.string, match.start()))
    # What turns a value down takes longer, and most have nothing that speaks for them.
    return _may_be_password(name, text, sign, value, match, login) and not _is_other(
        name, text, sign, value, match, login
    )


def _is_other(name: str, text: str, sign: str, value: Value, match: re.Match[str], login: bool) -> bool:
    """Whether a value is no password, whatever it looks like: the object of a verb, a stand-in, its own name."""
    arrow = match["sep"] in ("→", "->") or match[0].endswith(" :")
    if not (login and sign in ("=", ":", "=>")) and _is_verb(name, sign, value, arrow):
        return True
    if _is_none(value) or decoys.is_example(text):
        return True
    words, lowered = names.words_of(name), text.lower()
    return lowered in words or exact(r"[\W_]").sub("", lowered) == "".join(words)


def _may_be_password(name: str, text: str, sign: str, value: Value, match: re.Match[str], login: bool) -> bool:
    """Whether anything speaks for a value: its characters, the sign before it, a user's name."""
    if len(text) < 5 and not login:
        return False
    mix, quoted = kinds(text), bool(value.quote)
    if (sum(mix) >= 3 and decoys.is_generated(text)) and (
        sign in ("=", ":", "=>", "is", "->", "|") or quoted or (sign == "" and _stands_alone(value, match))
    ):
        return True
    strong = mix[2] and sum(mix) >= 2 and text.isascii()
    after = match.string[value.end : value.end + 20].partition("\n")[0]
    stands = sign == "" and strong and _stands_for_password(value, match, after)
    if sign == "" and not quoted and not stands:
        return False
    if pattern(_OTHER_VALUES).fullmatch(text) and not pattern(PHRASE).fullmatch(text):
        return False
    if login and sign in ("=", ":", "=>", "") and (quoted or sign):
        # Next to a user's name even a weak word is the password.
        weak = (_has(r"^[A-Za-z_-]+$", text) and pattern(WEAK).search(text)) or (" " in text and not strong)
        prose = not quoted and not strong and after.strip()[:1].isalpha()
        return not weak and not prose and text.isascii()
    if exact(r"\s").search(text):
        return quoted and "phrase" in name.lower() and bool(pattern(PHRASE).fullmatch(text))
    if len(text) < 5:
        return False
    if sign == "":
        return stands
    if sign in (",", ">", "(", "->", "|"):
        return quoted and strong and len(text) >= 8 and not match["more"]
    phrase = pattern(PHRASE).fullmatch(text) and not pattern(WEAK).search(text)
    if phrase and sign in ("=", ":", "is") and ("-" in text or not after.strip()):
        return True
    if match["more"] or sign == "is":
        # Words between them: only a value with a digit, and "pass" may be the verb.
        return strong and not pattern(ALGORITHM).match(text)
    if strong or decoys.is_noise(text):
        return True
    if phrase:
        return quoted or not after.strip()
    if mix[3] and not exact(r"[\w.-]+").fullmatch(text):
        return len(text) >= 6 and not exact(r"[:=]").search(text) and text.isascii()
    if quoted or (sign == "=" and name.rpartition(" ")[2][:1].isupper() and not exact(r"[a-z][A-Z]").search(text)):
        return len(text) >= 6 and text.isascii() and not pattern(WEAK).search(text) and not names.is_caption(name)
    return False


def _login(text: str, at: int) -> re.Match[str] | None:
    """A user's name before a password's."""
    before = text[max(0, at - 150) : at].lower()
    if before.isascii() and not any(word in before for word in _USERS):
        return None  # which is quicker to tell
    return pattern(_LOGIN).search(text, max(0, at - 150), at)


def _is_verb(name: str, sign: str, value: Value, arrow: bool) -> bool:
    """Whether the name is another word in prose: how a test went ("Verification pass: 500 ms"), a key ("la clave")."""
    before, _, word = name.lower().rpartition(" ")
    if word in ("clave", "parola"):
        return sign not in ("=", ":", "=>", "is")
    if word != "pass" or (sign in (":", "=", "is", "") and before in HOLDERS and all(kinds(value.text)[:3:2])):
        return False
    if arrow:
        return True
    return not (sign in ("=", ":", "=>") and (not before or (sign == "=" and bool(value.quote))))


def _stands_alone(value: Value, match: re.Match[str]) -> bool:
    """Whether a generated value is that of an option, or long enough for prose without a sign."""
    line = match.string[max(0, match.start() - 60) : match.start()].rpartition("\n")[2]
    if exact(r"(?:^|\s)--?[\w-]*$").search(line) or match["sep"]:
        return True
    return len(value.text) >= 10 and value.text[0] not in "([" and not pattern(ALGORITHM).search(value.text)


def _stands_for_password(value: Value, match: re.Match[str], after: str) -> bool:
    """For a value with only blanks before it: an option, a line of its own, or a value that is no word of prose."""
    text, start = match.string, match.start()
    line = text[max(0, start - 60) : start].rpartition("\n")[2].lower()
    if "-" in line and exact(r"(?:^|\s)--?[\w-]*$").search(line):
        return True
    whole = len(value.text) >= 6 and (value.quote or not after.strip())
    apart = len(value.text) >= 7 and value.text[0] not in "([" and (value.quote or sum(kinds(value.text)) >= 3)
    if not (whole or apart) or pattern(ALGORITHM).search(value.text):
        return False
    declared = r"[\s>*-]*(?:(?:env|setx?|arg|#define|config)\s+(?:-\w+\s+)?)?[\w.-]*"
    if whole and exact(declared).fullmatch(line):
        return True
    return bool(apart) and wordiness(value.text) < 0.9


def _is_signed_key(value: str) -> bool:
    """A framework's SECRET_KEY, full of signs."""
    signs = len(value) >= 20 and _has(r"\d", value) and _has(r"[!@#$%^&*=+]", value)
    return signs and bool(exact(r"[\w!@#$%^&*()=+.,;:?~/-]+").fullmatch(value)) and decoys.entropy(value) > 3.5


def _is_short_key(value: str) -> bool:
    if not exact(r"(?s)(?=.*\d)(?=.*[A-Za-z])[\w+/=.~!@#$%^&*-]*").fullmatch(value):
        return False
    if pattern(r"abc123|12345|abcdef").search(value):
        return False
    versions = r"v?\d+(?:\.\w+)+|\d+[a-z]{1,3}|[a-z]+[-_.]?\d{1,2}|\d{4}-\d\d.*|[a-z]+(?:[-_.][a-z]+)*[-_.]?\d{0,2}"
    if pattern(versions).fullmatch(value):
        return False
    return wordiness(value) < 0.8 and decoys.entropy(value) >= 2.5
