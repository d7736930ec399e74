"""A transcript as what was said in it, in order: by the user, by the assistant, by the client in a summary, and by the
user in answers that stand inside the results of tools. One pass, whatever the size of the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from memlane.capture.distil.patterns import begins_with
from memlane.capture.transcripts.entry import Entry, Part, listed, strings, word
from memlane.core.patterns import lazily
from memlane.core.values import dataclass, field

_MOST_QUEUED = 50  # things that the user typed meanwhile
_OPEN_CALLS = 500  # calls of tools that wait for their result
_LONGEST = 40_000  # characters of a message that are looked at
_HEAD = 1500  # characters of a tool's result that are looked at
_CONTINUED = "This session is being continued from a previous conversation"
_ASKS = lazily(r"ask_?user|question|user_?input", re.IGNORECASE)
_ANSWERED = lazily(r'"([^"]{3,600}?)"="(.*?)"(?=[.,]\s|[.,]?$| user notes| selected)', re.DOTALL)
_ANSWER = lazily(r"(?i)\b(?<!no )(?<!not )answer(?:s|ed)?\W+(\S.{1,400})", re.DOTALL)
# Answers that decide nothing, and questions about how to go on rather than about the work.
_UNDECIDED = begins_with(
    r"""you (?:decide|choose|pick)\w*, up to you, your call, no (?:preference|answer), not sure, next area,
    (?:yes|no|ok(?:ay)?|none|other|done|skip|continue|proceed|go ahead|next|either|both are fine)\W*$""",
)
_HOW_ON = lazily(
    r"\b(?:what|how) (?:would|do|should|shall) (?:you|i|we) (?:like (?:me )?|want (?:me )?)?(?:to )?"
    r"(?:do|proceed|continue|go on)\b"
    r"|\b(?:which|what) (?:areas?|topics?|tasks?|phases?|todos?) (?:do|should|would|shall)\b"
    r"|\bmore questions\b|\bready to\b"
    r"|\b(?:shall|should) i (?:start|continue|proceed|commit|push|go)\b|\bwhat(?:'s| is) next\b|\bnext steps?\?"
    r"|\b(?:would you like|do you want) me to (?:start|continue|proceed|commit|push|generate|create|write|show)\b"
)
_BY_NAME = lazily(r'\{\s*"answers"\s*:')
_REFUSED = lazily(
    r"(?:reason for the rejection:|how to proceed, the user said:|user said:|feedback:)\s*(\S.*)", re.DOTALL
)
_REJECTED = "doesn't want to proceed"
_FAILED = lazily(r"(?m)^\s*(?:`{3}\w*\s*)?(?:<tool_use_error>|Exit code [1-9]|Traceback |[Ee]rror:)")
_INTERRUPTED = "[Request interrupted"
# What clients put around or instead of the user's own words.
_WRAPPED = lazily(
    r"<(system-reminder|local-command-\w+|command-(?:name|message|contents)|bash-(?:input|stdout|stderr)|task-notification"
    r"|ide_\w+|environment_context|user_instructions|INSTRUCTIONS|hook_context|hook_prompt|memlane-\w+"
    r"|user-prompt-submit-hook|teammate-message|cross-session-message|session_context)\b[^>]*>.*?(?:</\1>|\Z)",
    re.DOTALL,
)
_TAG = lazily(r"</?(?:command-args|user_query|user_message|[a-z_-]+)(?: [^>]*)?>")
_MARK = lazily(r"\[(?:Image|Request interrupted|Pasted text)[^\]]*\]")
_NOT_SAID = (
    "# AGENTS.md",
    "Caveat: ",
    "Base directory for this skill",
    "<INSTRUCTIONS>",
    "API Error",
    '{"task_id"',
    "Operation stopped by hook",
    "No response requ",
    "This is the Gemini CLI. We are setting up",
)
_SHELLS = frozenset({"Bash", "bash", "shell", "exec_command", "shell_command", "run_shell_command", "local_shell"})


class Said(NamedTuple):
    """Something that was said. `role` is user, assistant, summary or answer; `around` is what went before or comes
    next: failed (a tool), interrupted (by the user), asked (the user spoke just before), last (of the turn)."""

    role: str
    text: str
    lines: tuple[int, ...]
    uuids: tuple[str, ...]
    aside: bool = False
    around: frozenset[str] = frozenset()
    date: str = ""
    branch: str = ""


class Run(NamedTuple):
    """A command of the shell that has come to an end."""

    command: str
    why: str  # what it is for, as the assistant said
    failed: bool
    output: str
    lines: tuple[int, ...]
    uuids: tuple[str, ...]


class _Call(NamedTuple):
    name: str
    arguments: Any
    line: int
    uuid: str


@dataclass
class Session:
    """One pass over a transcript: `take` yields what was said; the fields count what selection asks about.

    `offset` is how far the transcript was read; what was read in an earlier pass is not read again.
    """

    id: str = ""
    cwd: str = ""
    branch: str = ""
    date: str = ""  # and time, as the transcript writes it
    prompts: int = 0
    messages: int = 0
    summaries: int = 0
    offset: int = 0
    done: list[tuple[str, str]] = field(default_factory=list)  # what the assistant said to be done, and when
    _calls: dict[str, _Call] = field(default_factory=dict)
    _around: set[str] = field(default_factory=set)
    _held: Said | None = None
    _queued: list[tuple[str, int]] = field(default_factory=list)  # what the user typed meanwhile, and on which line

    def take(self, line: dict[str, Any], entry: Entry, parts: Iterable[Part], number: int) -> Iterator[Said | Run]:
        """What an object says. `number` is its line; a document counts its messages instead."""
        self.id = self.id or entry.thread
        self.cwd = entry.cwd or self.cwd
        self.branch = entry.branch or self.branch
        if at := word(entry.at) or word(line.get("timestamp")):  # what the user says may have no entry of its own
            self.date = at
        uuid = word(line.get("uuid")) or word(line.get("id"))
        for part in parts:
            for one in self._part(part, number, uuid):  # what was held back knows when it was said
                if isinstance(one, Said) and not one.date:
                    one = one._replace(date=self.date, branch=self.branch)
                yield one

    def finish(self) -> Iterator[Said | Run]:
        """What was held back, as nothing more comes."""
        if self._held:
            yield self._held._replace(around=self._held.around | {"last"})
            self._held = None

    def _part(self, part: Part, line: int, uuid: str) -> Iterator[Said | Run]:
        if part.role == "call":
            self._calls[part.id] = _Call(part.name, part.arguments, line, uuid)
            if len(self._calls) > _OPEN_CALLS:
                del self._calls[next(iter(self._calls))]
        elif part.role == "result":
            yield from self._result(part, line, uuid)
        elif part.role == "assistant":
            if part.text.strip():
                yield from self._hold(None)
                self.messages += 1
                self._held = self._said("assistant", part.text, line, uuid, part.aside)
        elif part.role == "summary" or part.text.startswith(_CONTINUED):
            yield from self._hold(None)
            self.summaries += 1
            yield self._said("summary", part.text, line, uuid, part.aside)
        elif part.role == "queue":
            yield from self._queue(part, line)
        elif not part.aside:  # what a subagent is told is the assistant's word
            if _INTERRUPTED in part.text[:200]:
                self._around.add("interrupted")
            if text := users_own(part.text):
                yield from self._hold("last")
                yield from self._prompt(text, line, uuid)
                self._around = {"asked"}

    def _prompt(self, text: str, line: int, uuid: str = "") -> Iterator[Said]:
        self.prompts += 1
        yield self._said("user", text, line, uuid)

    def _queue(self, part: Part, line: int) -> Iterator[Said]:
        """What was taken out of the queue without a line of its own was told to the assistant while it worked."""
        if part.name == "enqueue":
            self._queued = [*self._queued[1 - _MOST_QUEUED :], (part.text, line)]
        elif part.name == "popAll":
            self._queued.clear()
        elif self._queued:
            text, at = self._queued.pop(0)
            if part.name == "remove" and not part.text and (own := users_own(text)):
                yield from self._prompt(own, at)

    def _hold(self, mark: str | None) -> Iterator[Said]:
        """Let go of the assistant's last words, which are now known to be the turn's last or not."""
        if self._held:
            yield self._held._replace(around=self._held.around | ({mark} if mark else set()))
        self._held = None

    def _said(self, role: str, text: str, line: int, uuid: str, aside: bool = False) -> Said:
        where = (line,), (uuid,) if uuid else ()
        said = Said(role, text[:_LONGEST], *where, aside, frozenset(self._around), self.date, self.branch)
        self._around.clear()
        return said

    def _result(self, part: Part, line: int, uuid: str) -> Iterator[Said | Run]:
        call = self._calls.pop(part.id, None)
        text = part.text[:_HEAD]
        failed = part.failed or bool(_FAILED.search(text[:600]))
        if failed:
            self._around.add("failed")
        lines = (call.line, line) if call else (line,)
        uuids = tuple(filter(None, (call.uuid if call else "", uuid)))
        if call and _ASKS.search(call.name):
            yield from self._hold(None)
            for role, answer in _answers(call, part.text[:_LONGEST]):
                self.prompts += 1
                yield Said(role, answer, lines, uuids, part.aside)
        elif failed and _REJECTED in text and (reason := _REFUSED.search(text)):
            if own := users_own(reason[1].split("\n\nNote: ")[0]):
                yield from self._hold("last")
                yield Said("user", own, (line,), uuids[-1:], part.aside, frozenset({"interrupted"}))
        elif call and call.name in _SHELLS and not part.aside:
            arguments = call.arguments if isinstance(call.arguments, dict) else {}
            command = arguments.get("command") or arguments.get("cmd")
            command = " ".join(strings([command])) if isinstance(command, list) else word(command)
            if command:
                yield Run(command, word(arguments.get("description")), failed, text, lines, uuids)


def users_own(text: str) -> str:
    """The user's own words in what a client sent as the user's message; "" when there are none."""
    if text.startswith(_NOT_SAID):
        return ""
    text = _MARK.sub(" ", _WRAPPED.sub(" ", text[:_LONGEST]))
    return _TAG.sub(" ", text).strip()


def _answers(call: _Call, text: str) -> Iterator[tuple[str, str]]:
    """Each question that the user was asked and answered, with what the question said of the answer. Own words to a
    question about how to go on are what the user says, not an answer."""
    told = call.arguments if isinstance(call.arguments, dict) else {}
    questions = [asked for asked in listed(told.get("questions")) or [told] if isinstance(asked, dict)]
    options = [option for asked in questions for option in listed(asked.get("options")) if isinstance(option, dict)]
    meant = {word(option.get("label")): word(option.get("description")) for option in options}
    for question, answer in _ANSWERED.findall(text) or _answers_by_name(questions, text) or _answer(questions, text):
        question, answer = question.strip(), " ".join(answer.split())
        if not answer or answer.endswith("?") or _UNDECIDED.match(answer.lower()):
            continue
        meaning = meant.get(answer, "").rstrip(".")
        answer = answer.removesuffix("(Recommended)").rstrip()
        if not _HOW_ON.search(question.lower()):
            yield "answer", f"{question} Answer: {answer}" + (f" ({meaning})" if meaning else "")
        elif not meaning and not meant.keys() >= set(answer.split(", ")):
            yield "user", answer


def _answers_by_name(questions: list[dict[str, Any]], text: str) -> list[tuple[str, str]]:
    """Answers that a client wrote as JSON: by the id of the question, or by its number."""
    start = _BY_NAME.search(text)
    if start is None:
        return []
    try:
        answers = json.JSONDecoder().raw_decode(text, start.start())[0]["answers"]
    except (ValueError, RecursionError):
        return []
    if not isinstance(answers, dict):
        return []
    asked = {str(number): word(question.get("question")) for number, question in enumerate(questions)}
    asked |= {word(question.get("id")): word(question.get("question")) for question in questions}
    return [(asked.get(name, ""), ", ".join([*strings(given)][::-1])) for name, given in answers.items()]


def _answer(questions: list[dict[str, Any]], text: str) -> list[tuple[str, str]]:
    found = _ANSWER.search(text)
    return [(word(questions[0].get("question")) if questions else "", found[1])] if found else []
