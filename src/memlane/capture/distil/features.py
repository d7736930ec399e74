"""What tells a passage worth keeping from talk: signs in its words, where it stood, and what went before. Each sign is
a number with a name, so that a choice can be explained. Pure text → data.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from memlane.capture.distil.passages import Passage
from memlane.capture.distil.patterns import any_of, begins_with
from memlane.capture.distil.session import Said
from memlane.core.patterns import lazily

_CUES = {
    "cause": any_of(
        r"""because, since, due to, reason, caused? by, root cause, turns? out, that's why, which
        (?:means|is why), as a result, the (?:real |actual |underlying |core |main
        )?(?:problem|issue|bug|cause|culprit|fix|key|trick) (?:is|was|here)"""
    ),
    "limit": any_of(
        r"""cannot, can't, (?:do|does|did|is|are|was|has|have|will|would)(?:n't| not), won't, unsupported,
        not (?:possible|supported|allowed|available), no way, only works?, never(?! mind), unable, fails?,
        refuses?, ignor(?:es?|ed), silently"""
    ),
    "must": any_of(
        r"""must, needs?, requires?d?, has to, have to, should(?:n't)?, always, make sure, ensure,
        expects?"""
    ),
    "contrast": any_of(
        r"""instead(?: of)?, rather than, but, however, actually, wrong(?:ly)?, mistake\w*, unlike, whereas,
        although, except, otherwise, not just, mismatch\w*, discrepanc\w+, differs?, different, assum\w+"""
    ),
    "choice": any_of(
        r"""decided, decision, chose, choose, going with, go with, option, approach, prefer\w*, better,
        let's, we want, we don't, agreed, in favou?r, trade-?offs?"""
    ),
    "being": any_of(
        r"""is, are, uses?, has, lives?, stored, called, calls, returns?, defaults?, means, contains?,
        comes, belongs?, works, handles?, runs, treats?, reads, writes, takes, accepts, gets, depends,
        supports?"""
    ),
    "order": any_of(
        r"""always, never(?! mind), don't, do not, make sure, please, let's, we (?:want|need|should|don), prefer,
        instead, remember, from now on, stop, avoid, want you, i want, discuss, before you, should"""
    ),
    "trouble": any_of(
        r"""errors?, bugs?, fail\w*, broken?, break\w*, crash\w*, missing, wrong, issue, problem, leak\w*,
        race, stale, conflict\w*, duplicate\w*, hang\w*, mismatch, regress\w*, deprecat\w*, flak\w+,
        corrupt\w*"""
    ),
    "doubt": any_of(
        r"""maybe, perhaps, probably, might, seems?, looks? like, i think, not sure, apparently, wonder, likely,
        could mean, may (?:be|have), suspect"""
    ),
    "you": any_of(r"""you, your, you're"""),
    "i": any_of(r"""i, i've, i'm, my, me"""),
    "we": any_of(r"""we, our, us"""),
    "quantity": re.compile(r"\b\d+(?:\.\d+)*\b"),
    # what something cannot do, or does in one way alone
    "incapable": any_of(
        r"""(?:ca|do|does|is|are|was|were|did|has|have|could|wo)(?:n't|not| not) (?:\w+ ){0,2}?(?:support\w*|works?|
        allow\w*|accept\w*|includ\w+|return\w*|handl\w+|persist\w*|honou?r\w*|appl(?:y|ied)|match\w*|exist|have|
        used?|read|add\w*|available|possible|shared?|derived|contain\w*|import\w*|trigger\w*|run|rely|valid|safe|
        found|track\w*|called|emit\w*|updat\w+|generat\w+|respect\w*|detect\w*|know|see|set|need\w*|pass\w*),
        cannot, no (?:built-in|native|such|equivalent|way|bulk), only (?:supports?|works?|accepts?|allows?|handles?|
        reads?|applies|affects?|matches|when|if|has|have|needs?|returns?|appears?|looks?|detects?|strips?|used),
        never \w+s"""
    ),
    # the moment at which it was said
    "moment": any_of(
        r"""(?:tests?|lint|linter|build|diagnostics?|coverage|suite|checks?|ci) (?:(?:now|all|still|are|is|
        were) )*(?:pass\w*|fail(?:s|ing)?|green|clean|stale|succeed\w*|up.to.date), still (?:nil|0|shows?|fails?|
        failing|used|needed|there|present|referenced), already (?:used|imported|exists|there|covered|handled|done|
        merged|committed), no longer (?:needed|used), unused, pre-existing, not related to, unrelated, stale,
        compiles, works (?:now|fine|correctly), as expected, so far, just now, at the moment, currently, right now,
        for now, working tree, pushed, committed, merged, in progress, remaining, undid, redo, (?:pr|pull request|
        branch|commit) (?:is|was|has been|created|merged), (?:task|step|phase) \d+, showed, coverage, (?:was|
        were) (?:run|truncated), not visible, \d+ (?:\w+ )?tests?, (?:zero|no) (?:\w+ )?errors, ha(?:s|ve) stopped,
        (?:is|are) (?:complete|done|finished|verified|in place|healthy|running), solved, next logical,
        (?:most recent|exact) request"""
    ),
    # what the assistant is about to do, or thinks of doing
    "intent": any_of(
        r"""let me, i need to, i'll, i will, i should, i want to, i'd (?:suggest|say|expect), need to (?:check|
        verify|look|see|fix), to check, try again, run .{0,20} again, you need to, you'll need, we need to fix, wait"""
    ),
    # what the assistant offers or asks
    "offer": any_of(
        r"""if you(?:'d| would)? (?:want|prefer|like|need|wish|think), want me to, let me know, should i, shall i,
        do you want, (?:i|we) can (?:also |now )?(?:add|create|do|make|switch|change|use), would you, you (?:should|
        can|could) now, you could, the user (?:has not|asked|said|wants|requested)"""
    ),
    "admits": any_of(
        r"""i was wrong, my (?:mistake|earlier|prediction|assumption), made that up, i (?:incorrectly|mistakenly|
        wrongly|assumed|missed), (?:had|got) .{0,30} (?:backwards|wrong), was wrong, turns? out,
        wrong(?:ly)? assum\w+, contrary to, not what"""
    ),
}
# A sentence without any of these adds nothing to its neighbours.
_TELLING = frozenset("cause limit must contrast choice trouble incapable admits order".split())
# What makes the report of a change worth keeping.
_REASON = frozenset({"cause", "incapable", "admits"})
_DOCUMENT = 1500  # characters of a prompt that was hardly typed
_TODO = begins_with(
    """update, delete, add, remove, create, change, rename, fix, move, simplify, regenerate, replace, run, check,
    implement, rewrite, refactor, extend, write, verify, test, commit, push, extract, need to, make, set up,
    install, pass, review, investigate, keep, show, find, ensure, consider, continue""",
    after=r"\W*(?:[^:]{3,60}: )?(?:\W|\d)*",
)
_CHANGED = lazily(
    r"^(?:[^:]{3,60}: )?`?[\w./*-]+\.\w{1,5}(?::[\d-]+)?`?:? ?(?:\([^)]*\) ?)?(?:[—–-]+ |; )"
    r"|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,12}\b|\bPR #?\d+|/pull/\d+|\((?:CREATED|MODIFIED|NEW|most recent)"
)
_CODE = lazily(r"`[^`]+`")
_NAME = lazily(r"\b\w+(?:\.\w+)+\b|\b[a-z]+[A-Z]\w*|\b\w+_\w+\b|\b[A-Z]{2,}\w*\b|(?<!\w)--?[a-z][\w-]+|\w+\(\)|\S+/\S+")
_PAST = begins_with(
    r"""added, updated, created, removed, implemented, fixed, changed, renamed, moved, wrote, extracted, deleted,
    replaced, refactored, verified, tested, ran, used, built, made, reverted, applied, written, completed?, done,
    researched, mapped, expanded, maintained, successfully, switched, simplified, registered, cleaned, rewrote,
    rewritten, modified, regenerated, committed, pushed, merged, established, ensured, configured, installed,
    set up, passed, improved, refined, enhanced, adjusted, bumped, tightened, introduced, addressed, amended,
    all switched, i(?:'ve| have)? (?:read|wrote|created|placed|put|ran|added|updated|removed|made|fixed)""",
    after=r"(?:[^:]{3,90}(?:: | [—–-]+ ))?(?:\W|\d)*",
)
_REPORTED = any_of(
    r"""(?:has|have) been \w+ed, (?:has|have) been (?:made|set|built|written), successfully, comprehensive(?:ly)?,
    (?:is|are) now, now (?:each|every|both|when|correctly|properly|shows?|works?), as requested, as expected,
    (?:is|are) expected"""
)
_THINKING = lazily(
    r"^(?:but )?(?:wait|hmm+|actually|now,|let's see)\b|\b(?:the (?:key |real )?question is|let me think|i wonder)\b"
)
_REVIEW = lazily(
    r"(?:^|[;:.] )(?:\(\d+\) ?)?(?:good|nice|minor|nit|note|clean|correct)\b ?[-—:]|^lines? \d+|^\(?\d+[).] "
    r"|\b(?:comment|issue|suggestion) #?\d+|\bid: \d+"
)
_LINES = lazily(r"\blines? \d+|\bl\d+\b|\.\w+:\d+")
_CORRECTION = begins_with(
    r"""no, nope, not, actually, wait, hmm+, stop, why (?:did|do|are|is), you (?:should|shouldn|can|forgot),
    that'?s (?:not|wrong), don'?t, i (?:don|said|meant|told|think), uh+, but, we (?:don|should)"""
)
_LASTING = any_of(
    r"""always, never(?! mind), from now on, in (?:the )?future, every time, whenever, as a rule, in general,
    going forward, remember, by default, convention, policy, prefer"""
)
_TASK = begins_with(
    """please, can you, could you, would you, start, begin, finish, show me, tell me, let me, update, add, fix, create,
    implement, run, write, commit, look, read, check, do, make, review, show, explain, give, find, help, test, think,
    evaluate, merge, consider, investigate, analy[sz]e, list, generate, build, deploy, revert, search, summari[sz]e,
    open, compare, audit, prepare, draft, log, push, try, can we, never mind,
    let's (?:consider|look|see|start|try|move|think|talk|continue)""",
    after=r"\W*(?:(?:ok|okay|now|thanks|great|please|and|then|also|so|hmm+)\W+)*",
)
_ASKING = begins_with(
    "why, what, how, where, when, which, who, is there, are there, can (?:you|we|i), could you, does, did"
)
_ORDINARY = begins_with(
    "yes, ok, okay, yup, sure, thanks, great, do it, go ahead, continue, proceed, commit, push, run"
)
# of the heading that a passage stood under
_REPORT = any_of(
    r"""summary, verif\w+, what (?:i|was|we|changed), changes?, changed, accomplish\w*, complet\w+, implement\w+, pros,
    cons, next steps?, files?, usage, features?, created, updated?, added, tests?, status, results?, options?"""
)
_FINDING = any_of(
    r"""problem, cause, why, differen\w+, discrepanc\w+, diagnos\w+, decisions?, lessons?, notes?, gotchas?, caveats?,
    limit\w*, issue, bug, finding, warning, important, happening, key"""
)


class Place(NamedTuple):
    """Where a passage stood: in what was said, and in which section of a summary."""

    said: Said
    section: str
    size: int  # characters of all that was said


def speaker(said: Said, section: str) -> str:
    """Whose words they are: a summary quotes the user, and a long prompt with headings was written by an assistant."""
    if section == "users":
        return "user"
    return "assistant" if _is_document(said) else said.role


def _is_document(said: Said) -> bool:
    return said.role == "user" and len(said.text) > _DOCUMENT and "\n#" in said.text


class _Sentence(NamedTuple):
    cues: frozenset[str]
    done: bool  # it begins with what was done
    task: bool  # it begins with what to do
    code: int
    names: int
    lines: int


@lru_cache(maxsize=1024)  # the passages of a text share their sentences
def _sentence(text: str) -> _Sentence:
    low = text.lower().replace("’", "'")  # the patterns are in lower case: that is twice as fast as to ignore it
    cues = {name for name, cue in _CUES.items() if cue.search(low)}
    done, task = bool(_PAST.match(low)), bool(_TODO.match(low))
    return _Sentence(
        frozenset(cues), done, task, _count(3, _CODE, text), _count(4, _NAME, text), _count(3, _LINES, low)
    )


def features(passage: Passage, place: Place) -> dict[str, float]:
    """The signs of a passage, by name; what is absent is 0 and left out."""
    text, said = passage.text, place.said
    low = text.lower().replace("’", "'")
    sentences = [_sentence(sentence) for sentence in passage.sentences]
    heading = f"{passage.heading} {low[: low.find(':')] if ':' in low[:60] else ''}".lower()
    words = text.count(" ") + 1
    role = "aside" if said.aside and said.role == "assistant" else said.role
    kind = "user" if speaker(said, place.section) in ("user", "answer") else "other"
    unexplained = sum(one.done and one.cues.isdisjoint(_REASON) for one in sentences)
    found = {
        f"from:{role}": 1.0,
        f"section:{place.section}": float(bool(place.section)),
        "length": min(math.log(words / 12), 2.0) if role != "answer" else 1.0,  # a choice needs no words
        "brief": float(words < 8 and role != "answer"),
        "long message": max(0.0, math.log(max(place.size, 1) / 400)),
        "document": float(_is_document(said)),
        "code": min(3, sum(one.code for one in sentences)) / 3,
        "names": min(4, sum(one.names for one in sentences)) / 4,
        "question": float(_is_question(low, kind == "user" and len(sentences) == 1)),
        "asks within": float(kind == "other" and "? " in text),
        "lead only": float(text.rstrip().endswith(":")),
        "list": float(passage.listed),
        "whole": float(passage.whole),
        "leans": float(passage.leans),
        "reports a change": float(bool(_REPORTED.search(low))),
        "reports without a reason": unexplained / len(sentences) if kind == "other" else 0.0,
        "says what to do": sum(one.task for one in sentences) / len(sentences) if kind == "other" else 0.0,
        "entry of a list of changes": float(bool(_CHANGED.search(text))),
        "thinks aloud": float(bool(_THINKING.search(low))),
        "review note": float(bool(_REVIEW.search(low))),
        "line numbers": min(3, sum(one.lines for one in sentences)) / 3,
        "lasting": float(bool(_LASTING.search(low))),
        "first": float(passage.start == 0),
        "under a report": float(bool(_REPORT.search(heading))),
        "under a finding": float(bool(_FINDING.search(heading))),
        f"idle:{kind}": float(sum(one.cues.isdisjoint(_TELLING) for one in sentences)),
    }
    for mark in sorted(said.around):  # in one order: sums of numbers depend on it
        found[f"{mark}:{role}"] = 1.0
    for cue in sorted({cue for one in sentences for cue in one.cues}):
        if cue != "moment" or place.section != "pending":  # open work is about this moment
            found[f"{cue}:{kind}"] = 1.0
    if kind == "user":
        found["correction"] = float(bool(_CORRECTION.match(low)))
        found["task"] = float(bool(_TASK.match(low)))
        found["whole:user"] = float(passage.whole)
        found["go-ahead"] = float(bool(_ORDINARY.match(low)))
    return {name: value for name, value in found.items() if value}


def _is_question(low: str, begun: bool) -> bool:
    """Whether a text asks more than it says, or is a question as it was begun: not everybody types the mark."""
    ends = low.rstrip(" \"'”’)*").endswith("?")
    return ends or low.count("? ") > 1 or (begun and bool(_ASKING.match(low)))


def _count(most: int, pattern: re.Pattern[str], text: str) -> int:
    """How often a text has something; so many times are enough."""
    return sum(1 for _ in islice(pattern.finditer(text), most))
