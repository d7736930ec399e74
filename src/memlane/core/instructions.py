"""Text that reads like instructions to a model.

Judged from the text whenever it is needed, never stored: a file edited by hand, pulled from git or imported is judged
like any other, and no format needs a field for it.

A text becomes a line of letters, one for each word, that say what the word is about (`suspect_words.WORDS`); `.` is any
other word, `/` the end of a sentence. The rules are patterns over that line, so that one rule serves all languages.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache

from memlane.core.invisible import visible
from memlane.core.text import remembered
from memlane.core.values import NamedTuple

# In a rule, NAME|NAME is one word of either kind; ~5 at most five words of any kind; -5 the same, none of them a
# negation; =5 the same as ~5, over the end of a sentence. ^ is the part of a sentence before, without a negation; !2
# sees to it that none of the two words behind is one. Names in lower case are parts.
_PARTS = {
    "old": ("PRIOR|ALL|SYSTEM|YOUR|SECRETIVE",),
    "key": ("SECRET|SECRET_FILE|AGENT_FILE|TALK", "KIND ~1 KEY", "KEY ~2 KIND"),
    "become": ("YOU ~2 NOW", "NOW ~4 YOU", "NOW ~1 BE", "ACT"),
    "whenever": ("BEFORE ~3 TASK|ALL", "EACH ~2 TASK", "ALWAYS"),
    "unasked": ("NOT ~4 CONFIRM", "CONFIRM ~1 NOT"),
    "told": ("DEAR ~2 AGENT", "MEMO|RULE|MUST ~1 TO ~2 AGENT", "AGENT ~3 MUST", "MUST ~3 AGENT"),
    "disable": ("DISABLE", "TURN ~4 OFF"),
    "leash": ("SAFETY|GUARD ~1 CHECKS|LIMIT|RULE|GUARD",),
}
_RULES = {
    "overrides instructions": (
        "OVERRIDE ~5 old ~3 RULE|AGENT_FILE",
        "OVERRIDE ~3 RULE ~3 PRIOR|SYSTEM",
        "OVERRIDE ~2 ALL ~2 BEFORE|PRIOR",
        "OVERRIDE ~1 AGENT_FILE",
        "OVERRIDE ~4 PRIOR ~2 MESSAGE|TALK",
        "PRIOR ~1 SYSTEM ~1 MEMO ~4 VOID|OVERRIDE",
        "RULE|LIMIT ~2 NOT LONGER APPLY",
        "EXEMPT ~4 LIMIT|CHECKS|SAFETY",
        "YOUR ~1 NEW ~1 GOAL|RULE",
        "RULE ~1 OVERRIDE ~4 FREE|ANSWER|FOLLOW|DANGER",
        "YOUR|SYSTEM ~1 RULE ~3 OVERRIDE|VOID|NEW",
        "PRIOR ~3 RULE ~4 OVERRIDE|VOID",
        "RULE ~1 PRIOR ~4 OVERRIDE|VOID",
        "NOT ~2 FOLLOW ~3 old ~3 RULE",
        "NOT ~3 FOLLOW ~3 RULE ~3 PRIOR",
        "PRIOR ~3 RULE ~3 NOT ~3 APPLY|FOLLOW",
        "PRIOR ~3 RULE ~3 APPLY|FOLLOW ~3 NOT",
        "RULE ~1 PRIOR ~3 NOT|APPLY ~2 APPLY|NOT|LONGER",
        "RULE ~1 PRIOR ~3 NOT ~2 APPLY",
        "old ~2 RULE ~4 FOLLOW ~2 NOT",
        "FOLLOW ~5 NOT LONGER",
        "STOP ~1 FOLLOW ~3 old ~2 RULE",
        "FOLLOW ~3 ONLY ~4 THIS|MEMO",
        "ONLY ~3 THIS|MEMO ~5 FOLLOW",
    ),
    "claims to rank above other instructions": (
        "THIS ~1 MEMO ~8 OUTRANK|OVERRIDE ~6 RULE|AGENT_FILE|USER|ALL|PRIOR",
        "THIS ~1 MEMO ~2 RULE|AGENT_FILE|USER|ALL ~4 OUTRANK",
        "MEMO ~1 FROM ~2 ADMIN ~25 AGENT|RULE|unasked|DANGER",
        "ADMIN ~4 MEMO =12 AGENT|RULE|unasked|OUTRANK",
    ),
    "speaks to the model": (
        "become ~8 UNLEASHED",
        "become =12 NOT ~3 LIMIT|RULE",
        "become ~8 LIMIT ~2 NOT",
        "YOU ~3 NOW ~3 MODE",
        "FROM NOW ~2 YOU MUST|BE|ACT",
        "UNLEASHED|ADMIN MODE",
        "YOU ~3 PRETEND",
        "PRETEND ~1 YOU",
        "YOU BE NOW ~3 AGENT",
        "ENTER ~3 DEVELOPER ~1 MODE",
        "DEVELOPER MODE ~1 ENTER",
        "MODE DEVELOPER",
        "ADMIN|SYSTEM OVERRIDE",
        "YOU BE NOW FREE",
        "YOU BE FREE NOW",
        "YOU|BE ~3 NOT ~1 LONGER ~3 AGENT",
        "YOU|BE ~3 NOT ~1 AGENT ~1 LONGER",
        "AGENT|YOU ~5 NOT ~2 LIMIT",
        "LIMIT ~1 NOT ~1 AGENT",
        "become|AGENT ~6 FREE ~2 LIMIT",
        "NOT ~2 leash",
        "REVEAL|TELL ~5 YOUR|SYSTEM ~1 SECRETIVE|SYSTEM ~1 RULE|MEMO",
        "REVEAL|TELL ~3 YOUR ~1 RULE",
        "REVEAL ~4 SECRETIVE|SYSTEM ~1 RULE",
        "REVEAL ~3 SYSTEM MEMO",
        "SYSTEM|SECRETIVE ~1 RULE ~2 REVEAL",
        "PRIOR ~1 RULE ~1 REVEAL",
        "YOU ~2 NOT ~1 LONGER ~1 BOUND",
        "NOT ~1 BOUND ~3 RULE|LIMIT|SAFETY",
        "AGENT|YOU|ALWAYS ~6 NOT ~1 REFUSE",
        "NOT ~1 REFUSE ~3 ALL|REQUEST",
        "FOLLOW ~3 ALL ~2 REQUEST|COMMAND",
        "AGENT ~1 READ ~1 THIS",
        "AGENT ~3 SHALL|MUST -8 SEND ~10 URL|key|DATA",
        "AGENT ~3 SHALL|MUST -6 REVEAL ~6 key|RULE",
        "AGENT ~3 SHALL|MUST -4 OVERRIDE ~4 RULE|LIMIT|CHECKS|CONFIRM",
        "AGENT ~3 SHALL|MUST -3 APPROVE|DISABLE ~4 ALL|GUARD|CHECKS|REQUEST",
        "NEW|IMPORTANT ~1 RULE TO ~1 AGENT",
        "IMPORTANT ~1 MESSAGE FROM|TO",
        "SEND|PUT|TELL ~8 YOUR ~1 ANSWER",
        "BEFORE ~2 ANSWER ~15 SEND|DANGER|REVEAL|key",
        "SEND|DANGER|REVEAL|FETCHED ~15 BEFORE ~2 ANSWER",
        "TOOL ~6 DANGER ~12 BEFORE",
        "NEW ~1 SYSTEM|RULE ~2 SYSTEM|AGENT",
        "END ~2 SYSTEM|YOUR ~1 RULE|MEMO",
        "told -15 key|DANGER",
        "told =20 unasked",
        "told ~10 SEND|PUT ~10 URL|key",
        "AGENT RULE =15 SEND|PUT ~6 key|URL",
        "AGENT ~6 key ~3 PLACE|URL ~3 PUT|SEND !2",
    ),
    "keeps something from the user": (
        "NOT ~3 TELL ~5 USER",
        "USER ~6 TELL ~1 NOT",
        "USER ~3 NOT ~2 TELL",
        "TELL ~3 USER ~5 NOT",
        "HIDE ~3 FROM ~2 USER",
        "CONCEAL ~5 USER",
        "USER ~4 CONCEAL",
        "NOT ~3 USER ~2 KNOW",
        "USER ~2 NOT|MUST ~1 MUST|NOT ~2 KNOW",
        "USER ~3 HIDE",
        "NOT ~3 TELL ~3 THIS ~5 REPORT",
        "OMIT ~3 REPORT",
        "KEEP THIS ~1 QUIET",
        "DANGER|DISABLE|HIDE ~3 TRACES",
    ),
    "sends secrets away": (
        "^ SEND|PUT ~12 key ~12 URL",
        "^ SEND|PUT ~12 URL ~12 TALK",
        "^ key ~12 SEND|PUT ~12 URL",
        "^ key ~8 URL ~6 SEND !2",
        "^ whenever ~8 SEND ~12 key|URL",
        "^ SECRETLY ~6 SEND|PUT ~6 key",
        "^ SEND -6 SECRET_FILE",
        "^ SECRET_FILE -6 SEND !2",
        "^ SEND -2 ALL -6 DATA|TALK ~6 URL",
        "^ PUT -6 SECRET_FILE ~8 ANSWER|PLACE|URL",
        "^ SEND|PUT ~6 key ~8 PLACE",
        "^ key ~4 PLACE ~2 PUT|SEND !2",
    ),
    "lifts the guard": (
        "^ ALWAYS|MUST ~5 FLAG",
        "^ DANGER -10 unasked",
        "^ unasked -8 DANGER !2",
        "^ OBEY -3 COMMAND -6 unasked",
        "^ unasked -4 COMMAND -2 OBEY !2",
        "^ APPROVE ~2 ALL|ALWAYS ~4 REQUEST|CONFIRM",
        "^ ALWAYS ~1 APPROVE ~3 REQUEST|CONFIRM",
        "AGENT ~2 ALL ~3 APPROVE",
        "^ disable|OVERRIDE -4 leash|SAFEGUARDS",
        "leash|SAFEGUARDS ~5 VOID|DISABLE",
        "^ disable -4 YOUR ~2 SAFETY|GUARD|LIMIT|CHECKS",
        "^ DISABLE|TURN -1 ALL|YOUR -2 FILTER|LIMIT",
        "^ ALL|YOUR -2 FILTER|LIMIT -2 DISABLE|OFF !2",
        "AGENT ~4 ALLOWED ~4 DANGER",
    ),
    "runs what it fetches": (
        "^ whenever ~12 FETCHED",
        "AGENT|MUST ~12 FETCHED",
        "DECODE ~10 OBEY",
        "OBEY ~5 DECODE ~1 RULE",
    ),
}
# Of how many of a hundred paragraphs of notes have such a word. A rule is tried only where its rarest word is there.
_COMMON = {
    **dict.fromkeys("TO FROM".split(), 35),
    **dict.fromkeys("THIS URL DATA NOT YOU MEMO BE".split(), 10),
    **dict.fromkeys("ALL KIND OBEY REVEAL DANGER NEW PUT YOUR SHALL PLACE".split(), 6),
    **dict.fromkeys("PRIOR USER ONLY KEY TASK COMMAND TOOL REQUEST RULE AGENT REPORT SYSTEM CHECKS".split(), 3),
    **dict.fromkeys(
        "BEFORE EACH SEND CONFIRM SECRET MESSAGE LIMIT ALWAYS FOLLOW LONGER ENTER ANSWER SECRETIVE".split(), 2
    ),
}
# What pretends to be the end of the data, or another voice. Looked for in lower case.
_TURN = (
    r"[<\[=#-](?:"
    r"\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id)\|>|/?inst\]|</?sys>>"
    r"|/?(?:antml:)?(?:function_calls|function_results|tool_call|tool_use|tool_result|system-reminder)\b"
    r"|/?(?:antml:)?invoke name="
    r"|/memlane|/?system(?:_\w{1,20})?>"
    r"|[=-]{0,9}[ \t]{0,4}(?:begin|end|start)(?: of)?(?: (?:the|new|all|your|system|user|trusted|untrusted)){0,2} "
    r"(?:instructions?|prompts?|memor(?:y|ies)|context|data|input|conversation|document)\b(?! -->)"
    r"|##[ \t]{0,8}(?:system|instruction|assistant)s?[ \t]{0,8}:)"
)
_HEADING = r"^(?:system|developer) (?:prompt|message)[ \t]{0,8}:"
_HEADS = ("system prompt", "system message", "developer prompt", "developer message")
_VOICE = (
    r"\[/?SYSTEM(?: [A-Z]{1,15}){0,3}\]"
    r"|^\W{0,6}SYSTEM(?: (?:OVERRIDE|NOTE|MESSAGE|ALERT|INSTRUCTION|COMMAND|NOTICE|UPDATE))?:"
)
_STYLE = (
    r"style(?<!\wstyle)[ \t]{0,8}=[ \t]{0,8}[\"'][^\"'\n]{0,200}"
    r"(?:display[ ]?:[ ]?none|visibility[ ]?:[ ]?hidden|font-size[ ]?:[ ]?0|opacity[ ]?:[ ]?0[;\"' ])"
)
_COMMENT = r"\b(?:disregard|assistant|the model|system prompt|do not tell|exfiltrate|curl|wget)\b"
# An address that is to be filled with what was said: the classic way out is an image that the client fetches.
_FILLED = (
    r"//[^\s)]{1,200}=(?:\{\{?|<|\[|\$\{?)?(?:system_?prompt|conversation|chat_?history|history|secrets?|internal_?data|user_?data"
    r"|messages|base64_encoded_conversation)\b"
)
_FETCHED = (
    r"(?:curl|wget|iwr|irm|invoke-webrequest) [^\n|]{0,200}\|\s{0,4}(?:sudo\s{1,4})?"
    r"(?:(?:ba|z|da)?sh|python3?|node|iex)\b"
    r"|(?:sh|eval|source|iex|python3?)[ \t\"'$<(-]{1,8}c?[ \t\"'$<(]{0,8}(?:curl|wget|iwr|irm) [^\n]{0,200}"
)
_FETCHERS = ("curl ", "wget ", "iwr ", "irm ", "invoke-webrequest ")
# Runs of characters that show nothing: long enough to spell something, longer than any emoji needs.
_UNSEEN = "[\U000e0020-\U000e007e]{12,}|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{6,}|[\u200b-\u200f\u2060-\u2064]{16,}"
_NO_WIDTH = "[\u200b-\u200f\u2060-\u2064]+"
_ENCODED = r"[A-Za-z0-9+/]{20,4000}={0,2}"

_EAST = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
_SCRIPTS = f"[{_EAST}。！？]+|[^{_EAST}。！？]+"
_SPACES = bytes.maketrans(b',;:()[]{}"`*<>=', b" " * 15)  # as bytes, which is a hundred times quicker than as text
_ACCENTS = "[\u0300-\u036f]+"
_EASTERN = f"[{_EAST}。！？]"
_EDGES = ".!?'-_“”„«»‘…"
_HOLDS_SECRETS = (
    r"(?:^|/)(?:\.env(?:\.[a-z]+)?|id_rsa|id_ed25519|id_ecdsa|\.netrc|\.npmrc|\.pypirc|\.pgpass|\.ssh|\.aws|\.kube|\.gnupg"
    r"|\.git-credentials|\.bash_history|etc/passwd|etc/shadow)(?:/|$)"
)
_FLAG = r"--(?:dangerously|allow-dangerously|yolo|trust-all)[a-z-]*$|^bypasspermissions$"
_ADDRESS = r"^//(?!localhost|127\.)[\w.-]+|^[\w.+-]+@[\w-]+\.[\w.]+$|^\d{1,3}(?:\.\d{1,3}){3}(?:[:/]|$)|^www\."
# Letters of other scripts that stand in for Latin ones, in a word that has both.
_MIXED = "[a-z][^ ]{0,9}[\u0370-\u058f]|[\u0370-\u058f][^ ]{0,9}[a-z]"
_LATIN = str.maketrans("аеорсухіјѕԁһгтнмвкոօαορντ", "aeopcyxijsdhrthmbknoaopvt")
_LOOKALIKES = {"\u0130": "i", "\u0131": "i", "\u017f": "s", "\u212a": "k"}  # what lower() does not make i, s, k


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """The patterns are made when a text asks for them: a hook reads a few short memories and ends."""
    return re.compile(pattern, re.MULTILINE)


class _Vocabulary(NamedTuple):
    """Letters for words. A letter stands for a set of names, so `names` has all the letters of a name."""

    names: dict[str, str]
    words: dict[str, str]
    stems: dict[str, list[tuple[str, str]]]  # by their first three letters
    eastern: dict[str, str]
    eastern_pattern: str


@cache
def _vocabulary() -> _Vocabulary:
    from memlane.core.suspect_words import WORDS

    about: dict[str, set[str]] = {}
    for name, listed in WORDS.items():
        for word in _fold(listed).split():
            about.setdefault(word, set()).add(name)
    for name in ("URL", "SECRET_FILE", "FLAG", "FETCHED", "ENCODED"):
        about[f"\0{name}"] = {name}
    stems: dict[str, list[str]] = {}
    for word in about:
        if word.endswith("*"):
            stems.setdefault(word[:3], []).append(word)
    for word, kinds in about.items():  # a word of its own stands for what its stem stands for, too
        for stem in stems.get(word[:3], ()):
            if word.startswith(stem[:-1]):
                kinds |= about[stem]
    letters: dict[frozenset[str], str] = {}
    names: dict[str, str] = {}
    for kinds in about.values():
        key = frozenset(kinds)
        if key not in letters:
            letters[key] = chr(0x100 + len(letters))
            for name in kinds:
                names[name] = names.get(name, "") + letters[key]
    known = {word: letters[frozenset(kinds)] for word, kinds in about.items()}
    eastern = {word: letter for word, letter in known.items() if word[0] >= _EAST[0]} | dict.fromkeys("。！？", "/")
    return _Vocabulary(
        names,
        known | dict.fromkeys(("-", "–", "—", "#", "##", "###", "+", "|"), "/"),
        {start: [(word[:-1], known[word]) for word in words] for start, words in stems.items()},
        eastern,
        _any_of(eastern),
    )


def _any_of(words: Iterable[str]) -> str:
    """A pattern for any of these words, the longest first; their first two letters are looked at before the words."""
    short = "".join(word for word in words if len(word) == 1)
    long = sorted((word for word in words if len(word) > 1), key=len, reverse=True)
    first, second = ("".join(dict.fromkeys(word[at] for word in long)) for at in (0, 1))
    return f"(?=[{first}][{second}])(?:{'|'.join(long)})|[{short}]"


def _fold(text: str) -> str:
    """The text in lower case, without accents, and with one form for what looks the same."""
    if text.isascii():
        return text.lower()
    for lookalike, letter in _LOOKALIKES.items():  # str.translate would be a thousand times slower
        text = text.replace(lookalike, letter)
    text = text.lower()
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _compiled(_ACCENTS).sub("", unicodedata.normalize("NFKD", text))).replace(
        "’", "'"
    )


class _Letters(dict[str, str]):
    """What pieces of text are about, kept for those that come again."""

    def __missing__(self, blob: str) -> str:
        letters = _about(blob)
        if len(blob) < 40:
            if len(self) > 50_000:  # about 10 MB
                self.clear()
            self[blob] = letters
        return letters


_letters = _Letters()


def _about(blob: str) -> str:
    """What a piece of text without blanks is about."""
    vocabulary = _vocabulary()
    end = "/" if blob[-1] in ".!?" else ""
    word = blob.strip(_EDGES)
    if letter := vocabulary.words.get(blob) or vocabulary.words.get(word):
        return letter + end
    if not blob.isascii():
        if _compiled(_EASTERN).search(blob):
            pieces = _compiled(_SCRIPTS).findall(blob)
            return "".join(
                _eastern_letters(piece) if _compiled(_EASTERN).match(piece) else _about(piece) for piece in pieces
            )
        if _compiled(_MIXED).search(word):
            word = word.translate(_LATIN)
            return vocabulary.words.get(word, ".") + end
    for stem, letter in vocabulary.stems.get(word[:3], ()):
        if word.startswith(stem):
            return letter + end
    if not word or (len(word) < 20 and word.isalpha()):
        return "." + end
    kind = _kind(blob.rstrip(".!?'"), word)
    if kind:
        return vocabulary.words[f"\0{kind}"] + end
    parts = word.replace("'", "' ").replace("-", " ").split()
    if 1 < len(parts) < 6 and blob[0] != "-":  # l'utilisateur, n'en, KI-Agenten
        return "".join(_about(part) for part in parts if part not in ("l'", "d'", "s'")) + end
    return "." + end


def _kind(blob: str, word: str) -> str:
    """What a piece is that is no word."""
    if (blob.startswith(("//", "www.")) or "@" in blob or blob[:1].isdigit()) and _compiled(_ADDRESS).search(blob):
        return "URL"
    if ("/" in blob or "." in blob or "_" in blob) and _compiled(_HOLDS_SECRETS).search(blob):
        return "SECRET_FILE"
    if blob.startswith(("--", "bypass")) and _compiled(_FLAG).search(blob):
        return "FLAG"
    return "ENCODED" if len(word) >= 20 and not word.isalpha() and _compiled(_ENCODED).fullmatch(word) else ""


def _eastern_letters(blob: str) -> str:
    """The words that are found in a run of Chinese, Japanese or Korean; any two other characters count as a word."""
    *_, eastern, pattern = _vocabulary()
    letters, end = "", 0
    for match in _compiled(pattern).finditer(blob):
        letters += "." * ((match.start() - end) // 2) + eastern[match[0]]
        end = match.end()
    return letters + "." * ((len(blob) - end) // 2)


class _Rule(NamedTuple):
    why: str
    needs: tuple[frozenset[str], ...]  # of each of these, a line that fits has a letter
    pattern: str
    across: bool  # it may fit over the end of a sentence


@cache
def _rules() -> dict[str, list[_Rule]]:
    """The rules by the letters without which they do not fit: those that few texts have."""
    shares: dict[str, int] = {}
    for name, letters in _vocabulary().names.items():
        for letter in letters:
            shares[letter] = max(shares.get(letter, 0), _COMMON.get(name, 1))
    found: dict[str, list[_Rule]] = {}
    for why, rules in _RULES.items():
        for rule in rules:
            needs = sorted(_needs(rule), key=lambda need: max(shares[letter] for letter in need))
            entry = _Rule(why, tuple(needs[1:]), _pattern(rule), "=" in rule)
            for letter in needs[0]:
                found.setdefault(letter, []).append(entry)
    return found


def _pattern(rule: str) -> str:
    names = _vocabulary().names
    never = names["NOT"]
    pattern = ""
    for part in rule.split():
        if part[0] in "~=-":
            pattern += {"~": "[^/]", "=": ".", "-": f"[^/{never}]"}[part[0]] + f"{{0,{part[1:]}}}"
        elif part[0] == "!":
            pattern += f"(?![^/]{{0,{part[1:]}}}[{never}])"
        elif part == "^":
            pattern += f"(?:^|/)[^/{never}]*"
        else:
            options = [option for name in part.split("|") for option in _PARTS.get(name, (name,))]
            pattern += "(?:" + "|".join(f"[{names[o]}]" if o in names else _pattern(o) for o in options) + ")"
    return pattern


def _needs(rule: str) -> Iterator[frozenset[str]]:
    for part in rule.split():
        if part[0].isalpha():
            options = [option for name in part.split("|") for option in _PARTS.get(name, (name,))]
            if len(options) == 1 and options[0] != part:
                yield from _needs(options[0])
            else:
                yield frozenset("".join("".join(_all_letters(option)) for option in options))


def _all_letters(rule: str) -> Iterator[str]:
    for name in re.findall(r"[A-Za-z_]+", rule):
        if name in _PARTS:
            for option in _PARTS[name]:
                yield from _all_letters(option)
        else:
            yield _vocabulary().names[name]


@remembered(4_000)  # who searches again sees much of the same
def suspicious(text: str) -> tuple[str, ...]:
    """Why a text reads like instructions to the model; () when it does not."""
    shown = visible(text)
    signs = list(_signs(shown))
    if len(shown) != len(text):
        if _compiled(_UNSEEN).search(text):
            signs.append("hides text in characters that nobody sees")
        if _compiled(_NO_WIDTH).search(text):  # `visible` joins the words on both sides of it
            signs += _signs(visible(_compiled(_NO_WIDTH).sub(" ", text)))
    return tuple(dict.fromkeys(signs))


def _signs(text: str, encoded: bool = True) -> Iterator[str]:
    """Why a text reads like instructions; what it says in an encoding is read once, and not decoded again."""
    folded = _fold(text)
    words = folded
    if any(map(folded.__contains__, _FETCHERS)):
        words = _compiled(_FETCHED).sub(" \0FETCHED ", folded)
    line = "".join(map(_letters.__getitem__, _blobs(words)))
    there = set(line)
    found = {rule.why for rule in _candidates(there) if rule.across and _compiled(rule.pattern).search(line)}
    telling = _rules().keys()
    for sentence in set(line.split("/")):
        letters = set(sentence)
        if not telling.isdisjoint(letters):  # few have the words of any rule
            rules = _candidates(letters)
            found |= {rule.why for rule in rules if not rule.across and _compiled(rule.pattern).search(sentence)}
    yield from (why for why in _RULES if why in found)
    if "//" in folded and "=" in folded and _compiled(_FILLED).search(folded):
        yield "sends secrets away"
    if (
        _compiled(_TURN).search(folded)
        or ("SYSTEM" in text and _compiled(_VOICE).search(text))
        or (any(map(folded.__contains__, _HEADS)) and _compiled(_HEADING).search(folded))
    ):
        yield "looks like a tool call or a chat turn"
    if "style" in folded and _compiled(_STYLE).search(folded):
        yield "hides text by its style"
    if "<!--" in folded and any(_compiled(_COMMENT).search(comment) for comment in _comments(folded)):
        yield "hides an instruction in a comment"
    encoded = encoded and (_vocabulary().words["\0ENCODED"] in there or "&#" in text)
    if encoded and any(sign in _RULES for decoded in _decoded(text) for sign in _signs(decoded, encoded=False)):
        yield "hides an instruction in an encoding"


def _blobs(text: str) -> list[str]:
    """The pieces between blanks and brackets; `|` stands for the end of a paragraph or of a cell in a table."""
    text = text.replace("|", " | ").replace("\n\n", " | ")
    return text.encode(errors="surrogatepass").translate(_SPACES).decode(errors="surrogatepass").split()


def _candidates(there: set[str]) -> Iterator[_Rule]:
    """The rules that could fit a line with these letters."""
    rules = _rules()
    for letter in there:
        for rule in rules.get(letter, ()):
            for need in rule.needs:
                if there.isdisjoint(need):
                    break
            else:
                yield rule


def _decoded(text: str) -> Iterator[str]:
    """What a text says in base64 and in HTML entities, as far as that is text."""
    import base64
    import html

    if "&#" in text:
        yield html.unescape(text)
    long = [word for word in text.split() if len(word) >= 20]
    for match in (match for word in long for match in _compiled(_ENCODED).finditer(word)):
        word = match[0].rstrip("=")
        try:
            found = base64.b64decode(word + "=" * (-len(word) % 4)).decode()
        except ValueError:
            continue
        if found.isprintable():
            yield found


def _comments(text: str) -> Iterator[str]:
    """The insides of HTML comments; one that never ends runs to the end of the text."""
    end = 0
    while (start := text.find("<!--", end)) >= 0:
        end = text.find("-->", start)
        end = len(text) if end < 0 else end
        yield text[start + 4 : end]
