"""Whether something that was said leaves work open, or tells that such work is done. Pure text → yes or no."""

from __future__ import annotations

import re

from memlane.core.patterns import lazily
from memlane.gate.changes import content

_SOLVED = lazily(
    r"""\b(?: fix(?:ed|es) | resolved | solved | done | finished | completed | implemented | closed | merged | shipped
    | landed | works?\ (?:now|again) | now\ works? | passes\ (?:now|again)
    | no\ longer\ (?:fails?|crash\w*|breaks?|hangs?) | is\ (?:gone|in\ place) | behoben | gelöst | erledigt )\b""",
    re.IGNORECASE | re.VERBOSE,
)
# What says, before such a word, that it is not so: "not fixed", "must be resolved", "until it is done".
_NOT_SO = lazily(
    r"""(?: n[’']t | \b(?: not | never | cannot | no | without | un | be | get | if | until | unless | before | once
    | when | to | will | would | should | could | must | needs? | half | partly | almost | nearly ) )
    \s+ (?: (?: been | yet | fully | really | be | it | is | it's | this | that | get | quite )\s+ ){0,3} \Z""",
    re.IGNORECASE | re.VERBOSE,
)
_OPEN = lazily(
    r"""\b(?: todo | fixme | unresolved | not\ yet | still\ (?:fail|need|open|broken|to|not|miss)\w* | remain(?:s|ing)
    | pending | left\ to\ do | next\ steps? | needs?\ (?:investigation|fixing|to\ be) | offen | ungelöst )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_ABOUT_OPENNESS = frozenset(
    """todo fixme unresolved still need needs needed not yet remain remains remaining pending left next step steps open
    follow up followup investigate investigation fix fixed fixes fixing fail fails failing failed failure broken break
    breaks work works working done resolve resolved solve solved add implement implemented issue problem bug
    whether should must later missing forget remind reminder thing one more tomorrow week""".split()
)
# How the user says that something is left for later, rather than to be done now.
_WHEN = (
    r"(?:tomorrow|later|another\ day|next\ (?:week|time|session|sprint|month|release)|(?:mon|tues|wednes|thurs|fri)day|"
    r"morgen|später)"
)
_LEFT = lazily(
    rf"""(?: ^\W* (?: (?:also|and|but|ok(?:ay)?|oh|one\ more\ thing|another\ thing|note)\b\W* )*
      (?: todo(?:\ \w+){{0,3}}: | todo\ (?:for|next|later|tomorrow)\b | fixme: | reminder\b
        | (?:still\ )?(?:missing|open|left|to\ do):
        | {_WHEN}[:,] | {_WHEN}\ (?:we|i|you)\b | for\ {_WHEN}[:,] )
    | \b(?: remind\ (?:me|us)\ (?:to|that|about) | (?:one\ more|another)\ thing\ for\ {_WHEN}
      | (?:we|i|you)(?:'ll)?\ still\ (?: (?:need|have|want)\ to | must | should | miss | lack )
      | still\ (?: needs?\ (?:to\ be|an?) | missing | to\ be\ \w+ | not\ (?:done|implemented) )
      | left\ to\ do | not\ done\ yet
      | noch\ (?:offen|zu\ tun|zu\ erledigen) | fehlt\ noch | erinner\w*\ mich ) )""",
    re.IGNORECASE | re.VERBOSE,
)
_ALWAYS = lazily(r"\b(?:always|never|every time|whenever|from now on|each time|immer|nie)\b", re.IGNORECASE)
_SHARE = 0.6  # of the words that say what the open work is about
_WORDS, _NAMED = 3, 2  # so many of them at least; so many where one is the name of something in code
_NAME = lazily(r"[_/.]|[a-z][A-Z]|\d")


def says_open(text: str) -> bool:
    """Whether a text tells of work that is not done."""
    return _OPEN.search(text) is not None


def leaves_open(text: str) -> bool:
    """Whether words of the user leave something to be done later; a rule or a question does not."""
    return not text.rstrip().endswith("?") and _LEFT.search(text) is not None and _ALWAYS.search(text) is None


def may_solve(text: str) -> bool:
    """Whether any sentence of a text may tell that something is done."""
    return _SOLVED.search(text) is not None


def says_solved(text: str) -> bool:
    """Whether a text tells that something is done, and of nothing that is not."""
    told = any(not _NOT_SO.search(text[: match.start()]) for match in _SOLVED.finditer(text))
    return told and not says_open(text)


def is_about(text: str, work: str) -> bool:
    """Whether a text is about the same as open work: it has most of the words that say what that is."""
    named = {root: word for word, root in content(work).items() if word.lower() not in _ABOUT_OPENNESS}
    shared = named.keys() & set(content(text).values())
    least = _NAMED if any(_NAME.search(named[root]) for root in shared) else _WORDS
    return len(shared) >= max(least, _SHARE * len(named))
