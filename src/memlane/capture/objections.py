"""What a prompt objects to of what the assistant has just said. Pure text → data.

A prompt that begins with a no is about the message before it: about what it names of that, and what was only proposed
there; about all of it where it says nothing but no, or names nothing and points back ("that's wrong"). A refusal
further on, or one that is put politely, is about what it names and nothing else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from memlane.core.patterns import lazily
from memlane.core.values import NamedTuple
from memlane.gate.changes import content

_LOOKED_AT = 2_000  # characters of a prompt: what comes later is seldom about the message before
_LONGEST = 400  # characters of a sentence; longer ones were pasted
_MOST = 8  # objections of one prompt
_NAMED = 0.6  # of the words for what is refused

_SENTENCE = lazily(r"(?<=[.!?;。！？])[\"')]*\s+|\s*\n\s*")
_BEFORE = r"""(?:(?: hmm+ | ok(?:ay)? | k | well | sorry | thanks? | thank\ you | great | good | nice | wait | ah+ | oh
    | uh+ | um+ | but | and | so | please | hey | hold\ on | yes | yeah | also | though | however | unfortunately
    | honestly | i'm\ afraid | danke | bitte | aber | merci | mais | gracias | pero )\b\W*)*"""
_IDLE = r"""(?: problems? | worr(?:y|ies) | rush | idea | doubt | longer | hurry | matter | one | errors? | issues?
    | warnings? | failures? | changes? | difference | preference | clue | luck | wonder | output | response | reply
    | results? | news | comments? | objections? )\b"""
_HARMLESS = r"(?:worry|forget|hesitate|know|think|see|get|understand|remember|mind|care|have|find|you|we|i|they)\b"
# A prompt that begins like this says no to the message before it.
_NO = lazily(
    rf"""{_BEFORE}(?:
    (?: no | nope | nah | nein | non )\b (?!'|\s+{_IDLE})
    | (?: don't | dont | do\ not )\b (?!\s+{_HARMLESS})
    | not\b (?!\s+(?:yet|sure|bad|only|just|a\ problem|an\ issue|to\ mention)\b)
    | stop\b (?=\W*$|\W+\w+ing\b|\s+(?:it|that|right\ there)\b|[,.!])
    | (?: that | this | it | which )(?:'s|\ is|\ was)?\s+
      (?: not | wrong | incorrect | false | isn't | wasn't | a\ bad\ idea | overkill | too\ much )\b
      (?!\s+(?:bad|a\ problem|an\ issue)\b)
    | (?: wrong | incorrect | falsch | faux | never\ mind | forget\ (?:it|that|about) )\b
    | (?: revert | undo | scrap | drop )\ (?: that | this | it | all )\b
    | actually,?\s+(?: no | don't | do\ not | not | let's\ not | never\ mind )\b
    | (?: i'd | i\ would | let's | we'd | we\ would )\s+(?: rather\ not | prefer\ not | not )\b
    | (?: rather | better )\ not\b | lieber\ nicht\b | mejor\ no\b
    | (?: nicht | kein\w{{0,2}} )\b (?!\s+(?:problem|ahnung)\b)
    )""",
    re.VERBOSE,
)
# A prompt that begins like this says how it is instead, of what it names of the message.
_INSTEAD = lazily(
    rf"""{_BEFORE}(?: actually | instead | eigentlich | stattdessen | en\ fait | plutôt | en\ realidad
    | i\ (?:said|meant|told\ you) | (?:i'd|i\ would)\ (?:rather|prefer) | you\ (?:shouldn't|should\ not|misunderstood)
    )\b""",
    re.VERBOSE,
)
# The words for what is refused follow, wherever in a sentence this is.
_REFUSED = lazily(
    rf"""(?: (?:^|[,;:.(—–-]\s*|\b(?:please|but|and|so|just|then|bitte|aber|mais|pero)\s+)
      (?: no\b(?!\s+{_IDLE})(?:\s+(?:on|to)\b)? | (?:don't|dont|do\ not)\b(?!\s+{_HARMLESS})
      | not | avoid | stop(?=\s+\w+ing\b) )
    | \b(?: (?:i|we|you)\s+(?: don't | do\ not | can't | cannot | can\ not | won't | will\ not | shouldn't | should\ not
      | mustn't | must\ not | never | aren't\ allowed\ to | are\ not\ allowed\ to )\b(?!\s+{_HARMLESS})
    | let's\ not | rather\ not | prefer\ not\ to | instead\ of | rather\ than | without\ using
    | kein\w{{0,2}} | bitte\ nicht | lieber\ nicht | statt | anstatt | pas\ de | au\ lieu\ de | plutôt\ que
    | en\ vez\ de | en\ lugar\ de | no\ uses | mejor\ no ))\b""",
    re.VERBOSE,
)
# The words for what is refused stand before this.
_RULED_OUT = lazily(
    r"""\b(?: (?: (?:is|are|was|were|would\ be)\ not | isn't | aren't | wasn't | weren't )\ (?: an\ option | allowed
    | acceptable | right | what | needed | necessary | wanted | worth | ok(?:ay)? )
    | (?: is | are | was | were | would\ be )\ (?: overkill | wrong | out | a\ no-?go | a\ bad\ idea | off\ the\ table
      | forbidden | too\ \w+ ) | won't\ do )\b""",
    re.VERBOSE,
)
# "No, that's fine": what follows takes the no back.
_ASSENT = lazily(
    r"\b(?:that's|it's|that is|it is|this is|all|looks?|sounds?) (?:\w+ )?(?:fine|ok(?:ay)?|good|great|right|perfect)\b"
    r"|\bgo ahead\b|\bdo it\b|\bproceed\b"
)
_CLAUSE = lazily(
    r"""[,;:.!?()—–] | \s-\s | \b(?: because | since | but | as | so | until | unless | if | when | use | weil | sondern
    | denn | mais | car | parce | pero | porque | sino )\b""",
    re.VERBOSE,
)
_BACK = lazily(
    r"\b(?:that|this|it|they|these|those)(?:'s|'re|\s+(?:is|are|was|were|isn't|aren't|has|must|should|does|doesn't))\b"
    r"|\b(?:wrong|incorrect|falsch|faux|still)\b"
)
_USING = lazily(r"[\s,:]*(?:us(?:e|ing)\b)?")
_SAYS_LITTLE = frozenset(
    """use used uses using add adding want wanted need needed needs make making please instead rather thing things way
    do don't dont not no nope nah never stop mind yes ok okay can can't cannot could should shouldn't would wouldn't
    won't must may might get got go going have has had know think see say said tell told put give work works working
    good bad right wrong fine one some any all more much many still only just even again also here there then without
    thanks sorry nein nicht kein keine keinen bitte non pas de plus gracias let's it's that's i'm i'd i'll we're we'd
    you're isn't doesn't didn't aren't wasn't""".split()
)
# What the assistant would do, and has neither done nor found out.
_PROPOSAL = lazily(
    r"""\b(?: i(?:'d|\ would)?\ (?:suggest|propose|recommend|advise)
    | (?:my|the)\ (?:suggestion|proposal|recommendation)
    | i(?:'d|\ would)\ (?!say|expect) | (?:we|you|i)\ could | let's | shall\ (?:i|we) | should\ (?:i|we) | want\ me\ to
    | would\ you\ like | i'll | i\ will | i'm\ going\ to | ich\ (?:schlage|würde|empfehle)
    | je\ (?:propose|suggère|recommande) | propongo | sugiero )\b""",
    re.VERBOSE,
)


class Objection(NamedTuple):
    """A sentence of the user's that refuses something.

    `answers`: the prompt begins with it, so that it is about the message before; `outright`: it says no to that.
    `refused` are the words for each thing that it refuses, `words` those of the sentence.
    """

    sentence: str
    answers: bool
    outright: bool
    refused: tuple[frozenset[str], ...]
    words: frozenset[str]

    def names(self, text: str) -> bool:
        """Whether a text has most of the words for something that is refused."""
        said = _words(text) if self.refused else frozenset()
        return any(len(words & said) >= math.ceil(_NAMED * len(words)) for words in self.refused)

    def touches(self, text: str) -> bool:
        """Whether a text of the message before has any word of the answer."""
        return self.answers and not self.words.isdisjoint(_words(text))

    def is_in(self, text: str) -> bool:
        """Whether a text of the user's has the objection in it."""
        return bool(self.words) and self.words <= _words(text)

    @property
    def points_back(self) -> bool:
        """Whether it speaks of what the message says without naming it: "that's wrong", "no, it is four"."""
        return _BACK.search(_plain(self.sentence)) is not None

    def about(self, message: str) -> Callable[[str], bool]:
        """Which texts of the message before it is about: those that it names, or else those that it touches."""
        return self.names if any(map(self.names, sentences(message))) else self.touches

    def concerns(self, message: str) -> bool:
        """Whether it is about anything that the message before says."""
        return any(map(self.about(message), sentences(message)))


def objections(prompt: str) -> list[Objection]:
    """What a prompt objects to; [] nearly always."""
    return [*_objections(prompt)][:_MOST]


def is_objected(message: str, prompt: str) -> bool:
    """Whether a prompt objects to the message before it, or to a sentence of it."""
    found = objections(prompt)
    return any(map(objected(message, found), sentences(message))) if found else False


def objected(message: str, found: Sequence[Objection]) -> Callable[[str], bool]:
    """Whether a text of a message is what the prompt after it objects to."""
    about = [one.about(message) for one in found]
    outright = [one for one in found if one.outright]
    all_of_it = any(not one.words or (one.points_back and not one.concerns(message)) for one in outright)

    def is_meant(text: str) -> bool:
        return any(meant(text) for meant in about) or (bool(outright) and (all_of_it or is_proposal(text)))

    return is_meant


def is_proposal(text: str) -> bool:
    """Whether words of the assistant propose something, rather than say how it is."""
    return _PROPOSAL.search(_plain(text)) is not None


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text."""
    return [sentence for sentence in _SENTENCE.split(text.strip()) if sentence.strip()]


def _objections(prompt: str) -> Iterator[Objection]:
    said = sentences(prompt[:_LOOKED_AT])
    for at, sentence in enumerate(said):
        low = _plain(sentence)
        if len(sentence) > _LONGEST or (at and low.endswith("?")):
            continue
        words, refused = _words(sentence), tuple(dict.fromkeys(filter(None, _refused(low))))
        outright = at == 0 and _NO.match(low) is not None and (bool(refused) or _ASSENT.search(low) is None)
        answers = outright or (at == 0 and _INSTEAD.match(low) is not None)
        if outright and not words and len(said) > 1:  # "No. Ops refuses to run Redis."
            words = _words(said[1])
        if outright or refused or (answers and words):
            yield Objection(sentence, answers, outright, refused, words)


def _refused(low: str) -> Iterator[frozenset[str]]:
    """The words of a sentence for each thing that it refuses."""
    for found in _REFUSED.finditer(low):
        rest = _USING.sub("", low[found.end() :], count=1)
        yield _words(_CLAUSE.split(rest, maxsplit=1)[0])
    for found in _RULED_OUT.finditer(low):
        yield _words(_CLAUSE.split(low[: found.start()])[-1])


@lru_cache(maxsize=1024)  # the passages of a message are looked at by each objection
def _words(text: str) -> frozenset[str]:
    return frozenset(root for word, root in content(text).items() if word.lower() not in _SAYS_LITTLE)


def _plain(text: str) -> str:
    return text.lower().replace("’", "'")
