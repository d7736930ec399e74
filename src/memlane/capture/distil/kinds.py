"""What kind of memory a passage makes: lesson, decision, preference, rule, fact, command or open. Pure text → data."""

from __future__ import annotations

from memlane.capture.distil.patterns import any_of, begins_with
from memlane.capture.solved import leaves_open
from memlane.core.patterns import lazily

KINDS = ("lesson", "decision", "preference", "rule", "fact", "command", "open")

_RULE = any_of(
    r"""always, never(?! mind), from now on, must(?: not|n't)?, every time, in general, as a rule,
    make sure (?:you|to|that)"""
)
_WISH = any_of(
    r"""prefer, i (?:want|like|don't (?:want|like)|would (?:like|rather)), i'd (?:like|rather), discuss, ask me,
    before (?:you|doing), let me (?:review|know), for me to, you (?:should|do the|need), please,
    don't (?:fix|change|commit|push|add|use)"""
)
_CHOICE = any_of(
    r"""let'?s, we (?:should|want|need|don't|will|are going|decided), decided, decision, option, go(?:ing)? with,
    instead, rather, better, should (?:not|be|put|go|use), chose, agreed, disallow, no on, approach"""
)
# of the assistant's words, in which "should" and "instead" say little
_CHOSEN = any_of(
    r"""decided, decision, chose, chosen, agreed, go(?:ing)? with, settled, deliberate(?:ly)?, by design,
    intentional(?:ly)?, on purpose, let's, we (?:should|decided|will|want|don't want), the (?:right|cleanest|
    simplest|better|best) (?:approach|fix|way|solution|option), rejected, trade-?off, prefer(?:red|s)?"""
)
_POLICY = any_of(
    r"""(?:project|repo|team|codebase|claude\.md|agents\.md|contributing\.md)(?:'s)? (?:\w+ ){0,3}?(?:rules?|
    conventions?|guidelines?|requires?|says?|must|policy), (?:the |established |existing )*(?:convention|pattern|
    policy|rule) (?:is|in this|here), established pattern, (?:rules|conventions|guidelines) (?:say|require|are),
    must (?:always|never), never use"""
)
_TROUBLE = any_of(
    r"""because, turns? out, root cause, caused, the (?:\w+ )?(?:issue|bug|problem|cause|fix) (?:is|was), error,
    fail\w*, crash\w*, broke\w*, bug, wrong(?:ly)?, mistake\w*, incorrect\w*, made that up, cannot, can't,
    doesn't, does not, not support\w*, isn't, aren't, silently, ignor\w+, fixed, workaround, mismatch, instead of,
    leak\w*, race, stale, conflict\w*, never \w+s, without"""
)
_OPEN = any_of(
    r"""todo, unresolved, not yet, still (?:fail|need|open|broken|to)\w*, remaining, pending, next step, left to do,
    follow.?up, needs? (?:investigation|fixing)"""
)
_MARKED_OPEN = begins_with("unresolved, todo, fixme")
_COMMAND = lazily(
    r"^(?:(?:run|use|to \w+)\b.{0,60})?`(?:[\w./-]+ )+[^`]*`\W*$|\b(?:run|start|build|test)s? (?:with|by) `"
)


def kind_of(text: str, role: str, section: str) -> str:
    """The kind of a passage that `role` said; `section` is that of the summary it stood in."""
    text = text.lower().replace("’", "'")
    if role == "answer":
        return "preference" if _WISH.search(text) else "decision"
    if role == "user" or section == "users":
        if leaves_open(text):
            return "open"
        if _RULE.search(text):
            return "rule"
        if _WISH.search(text):
            return "preference"
        return "decision" if _CHOICE.search(text) else "lesson" if _TROUBLE.search(text) else "fact"
    if section == "pending" or _MARKED_OPEN.match(text):
        return "open"
    if section == "decisions":
        return "decision"
    if section in ("errors", "problems"):
        return "lesson"
    if _COMMAND.search(text):
        return "command"
    if _POLICY.search(text):
        return "rule"
    trouble = _TROUBLE.search(text)
    if _OPEN.search(text) and not trouble:
        return "open"
    if _CHOSEN.search(text):
        return "decision"
    return "lesson" if trouble else "fact"
