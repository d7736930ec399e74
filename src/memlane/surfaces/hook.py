"""The command that clients run during a session: `memlane hook CLIENT [EVENT]`, with the client's JSON on stdin.

    session-start                    prints what a session should know, and tells the user how much that is
    prompt                           prints what is relevant to the prompt, if anything is
    tool                             prints what applies to the tool call, if anything does: see `moments`
    stop, pre-compact, session-end   captures what the assistant said; the last two also distil the session, or the
                                     first asks the agent once what to remember of it (`hook.distil`)

A hook never blocks and never fails: it has a deadline, and whatever happens, it prints an answer that the client
accepts and exits with 0. The work is done in a child process, so that this also holds for one that hangs or crashes in
C and is ended by force (`resident.alone`, `_deadline`). While a server runs, it is the child of a process that has
loaded all this already (`resident.answered`).
Errors go to `hook.log` in the state folder. It also imports little: `memlane hook` does not load the rest of the
command line, and NumPy is loaded only for a search.

Writes the log of failures, what capture writes, and what each session was given and what was kept of it
(`memlane.history.sessions`), by which it is shown no memory twice.
"""

from __future__ import annotations

import faulthandler
import io
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from typing import TYPE_CHECKING, Any, TextIO

from memlane import config
from memlane.core.errors import ConfigError, InvalidInput, MemlaneError
from memlane.disk import journal, locks, state
from memlane.surfaces import moments

if TYPE_CHECKING:
    from memlane.bank import Bank
    from memlane.capture.messages import Captured
    from memlane.core.model import Memory

MAX_INPUT = 64 * 1024 * 1024  # bytes
MAX_LOG = 256 * 1024
KEPT_SESSIONS = 200  # whose moments are kept
_AGAIN = 0.1  # seconds; SQLite swallows what is raised while it works, and only ends the query
_GRACE = 0.4  # seconds that Python has to notice the deadline
Payload = Mapping[str, Any]

EVENTS = {  # ours -> what clients call it, letters only
    "session-start": ("sessionstart",),
    "prompt": ("userpromptsubmit", "beforeagent", "beforesubmitprompt"),
    "tool": ("pretooluse", "aftertool", "posttooluse"),
    "stop": ("stop", "afteragent", "postcascaderesponse", "postcascaderesponsewithtranscript"),
    "pre-compact": ("precompact", "precompress"),
    "session-end": ("sessionend",),
}
_START_FOLDERS = {"claude-code": "CLAUDE_PROJECT_DIR", "gemini": "GEMINI_PROJECT_DIR"}
_SESSION = ("session_id", "conversation_id", "trajectory_id")  # what clients call it
_REPLY_NAMES = {"session-start": "SessionStart", "prompt": "UserPromptSubmit", "tool": "PreToolUse"}
ASKABLE = ("claude-code", "codex", "gemini", "opencode", "cursor", "vscode")  # let a hook continue a turn


class _TimeIsUp(BaseException):
    """Raised by the timer at the deadline. Not an Exception, so that no handler on the way catches it."""


def gave_up(arguments: Sequence[str]) -> str:
    """What is said for a process that gave no answer."""
    client = next((word for word in arguments if not word.startswith("-")), "")
    _log(client, "", "it hung or crashed, and was ended by force")
    return _reply(client, "", "")


def main(arguments: Sequence[str], out: TextIO | None = None) -> None:
    """Answer one event on stdout. Never raises, and never makes the process exit with anything but 0."""
    client = event = answer = note = failed = ""
    payload: Payload = {}
    settings: config.Config | None = None
    try:
        with _deadline() as set_deadline, redirect_stderr(io.StringIO()):  # clients would show or log stderr
            client, event, payload = _request(arguments, sys.stdin.buffer.read(MAX_INPUT + 1))
            settings = config.load(_folder(client, payload))
            if settings.unread:
                raise settings.unread
            note = _untrusted(event, settings)
            if settings["memory.enabled"] and settings["hook.enabled"] and _may_answer(event, settings):
                set_deadline(settings["hook.deadline"])
                locks.patience.set(settings["hook.deadline"] / 4)
                session = _text(payload, *_SESSION)
                with journal.acting("hook", client, session), journal.change(f"hook {event}"):
                    answer = _answer(client, event, payload, settings)
                note = note or _notice(event, payload, settings, answer)
    except _TimeIsUp:
        failed = "the time was up"
    except ConfigError as error:  # nothing is remembered until somebody mends it
        failed, note = str(error), _misconfigured(event, error)
    except MemlaneError as error:
        failed = str(error)
    except Exception as error:  # even a bug must not get in the user's way
        failed = f"{type(error).__name__} in {_where(error)}"
    if failed:
        _log(client, event, failed)
        _note_failure(client, event, payload, settings, failed)
    _print(_reply(client, event, answer, note), out or sys.stdout)


def _print(answer: str, out: TextIO) -> None:
    with suppress(OSError, ValueError, AttributeError):  # the client has closed the pipe
        out.write(answer)
        out.flush()


# -- the request


def _request(arguments: Sequence[str], data: bytes) -> tuple[str, str, Payload]:
    """The client, our name of the event, and the client's JSON. Raises InvalidInput."""
    arguments = [word for word in arguments if not word.startswith("-")]
    client = arguments[0] if arguments else ""
    if len(data) > MAX_INPUT:
        raise InvalidInput("The client's message is too long.", hint="Nothing to do.")
    try:
        payload = json.loads(data or b"{}")
    except (ValueError, RecursionError):  # includes bytes that are not text
        raise InvalidInput("The client's message is not JSON.", hint="Nothing to do.") from None
    if not isinstance(payload, dict):
        raise InvalidInput("The client's message is not a JSON object.", hint="Nothing to do.")
    named = arguments[1] if len(arguments) > 1 else payload.get("hook_event_name") or payload.get("agent_action_name")
    word = re.sub(r"[^a-z]", "", str(named or "").lower())
    for event, aliases in EVENTS.items():
        if word == event.replace("-", "") or word in aliases:
            return client, event, payload
    raise InvalidInput("There is no such event.", hint=f"Use one of: {', '.join(EVENTS)}.")


def _folder(client: str, payload: Payload) -> str | None:
    """The folder that the session was started in; None means MEMLANE_BANK, else the current folder.

    The client's own variable comes before `cwd`, which changes with every `cd`: what was said in one project would end
    up in the bank of another.
    """
    if config.variables("MEMLANE_BANK"):
        return None
    started = config.variables(_START_FOLDERS[client]).values() if client in _START_FOLDERS else ()
    roots = payload.get("workspace_roots")
    for folder in (*started, payload.get("cwd"), *(roots if isinstance(roots, list) else ())):
        if isinstance(folder, str) and os.path.isdir(folder):
            return folder
    return None


def _text(payload: Payload, *names: str) -> str:
    """The first of these fields that is a string, else ""."""
    return next((value for name in names if isinstance(value := payload.get(name), str)), "")


# -- the answer


def _answer(client: str, event: str, payload: Payload, settings: config.Config) -> str:
    from memlane.bank import Bank

    with Bank(settings) as bank:
        if event == "session-start":
            return _session_start(bank, client, payload)
        if event == "prompt":
            return _prompt(bank, payload)
        if event == "tool":
            return _tool(bank, payload)
        return _capture(bank, client, event, payload)


def _may_answer(event: str, settings: config.Config) -> bool:
    """Whether there is something to do. In a project that is not trusted, the user's own memory is read, if there is
    any, and nothing else.
    """
    return not settings.distrust or (event in _REPLY_NAMES and not isinstance(config.under(settings), str))


def _session_start(bank: Bank, client: str, payload: Payload) -> str:
    """What a session should know. It begins afresh, so any memory may be shown again. One that was compacted before
    its agent could be asked what to remember is asked now, which takes no turn of its own."""
    from memlane.history import sessions
    from memlane.history.working import files_in_work
    from memlane.recall.under import SCOPE

    settings = bank.config
    known = _known(bank)
    block = bank.snapshot(
        SCOPE if settings.distrust else None,
        budget=settings["hook.session_budget"],
        recent=settings["hook.recent"],
        files=files_in_work(bank, settings["hook.deadline"] / 8),
        branch=journal.branch_of(os.fspath(settings.code or bank.root)) or None,
        without=known,
        wait=_left() / 4,
    )
    sessions.note(bank.config, sessions.START, _text(payload, *_SESSION), block=block)
    _save_moments(bank, payload, block.moments)
    if payload.get("source") == "compact" and (asked := _ask(client, payload, due=True)):
        return type(block).of(f"{block}\n\n{asked}".lstrip(), block.memories, block.left_out, block.tokens, block.why)
    return block


def _prompt(bank: Bank, payload: Payload) -> str:
    from memlane.history import sessions

    session = _text(payload, *_SESSION)
    prompt = _text(payload, "prompt", "user_prompt")
    shown = [*_known(bank), *sessions.shown(session)]
    block = bank.for_prompt(prompt, without=shown, wait=_left() / 2)
    sessions.note(bank.config, "prompt", session, prompt=prompt, block=block)
    return block


def _known(bank: Bank) -> list[str]:
    """The ids of what the client reads anyway, in its own file."""
    from memlane.exchange import marked_block

    folder = None if bank.config.distrust else bank.config.code
    block = marked_block.read_by(journal.by.get().client, folder) if folder else ""
    if not block:
        return []
    from memlane.exchange.export import held

    return held(bank, block)


def _save_moments(bank: Bank, payload: Payload, when: Mapping[str, Sequence[str]]) -> None:
    """Write down when memories apply, for `moments`."""
    session = _text(payload, *_SESSION)
    if session:
        known = {"root": os.fspath(bank.config.code or bank.root), "when": when}
        name = os.path.join(moments.FOLDER, moments.name_of(session))
        state.write(config.user_state(), name, json.dumps(known).encode() if when else b"", kept=KEPT_SESSIONS)


def _tool(bank: Bank, payload: Payload) -> str:
    """What applies to a tool call, as it is now, once in a session: a rule that it began with is said again."""
    from memlane.core.triggers import of
    from memlane.history import sessions
    from memlane.recall.prompts import for_moment
    from memlane.recall.starting import is_rule

    session = _text(payload, *_SESSION)
    known = moments.read(os.fspath(config.user_state()), session)
    shown = sessions.shown(session)
    memories = []
    calls = moments.calls_of(known["root"], payload)
    for id in moments.applying(known, payload):
        del known["when"][id]  # it is looked at once
        with suppress(MemlaneError):  # it may have been deleted
            memory = bank.get(id)
            current = memory.status != "archived" and not memory.superseded_by
            if current and (id not in shown or is_rule(memory)) and moments.meets(of(memory.fields), calls):
                memories.append(memory)
    _save_moments(bank, payload, known["when"])
    block = for_moment(bank, memories, " ".join(f"{file} {command}" for file, command in calls))
    if block.memories:
        sessions.note(bank.config, "tool", session, block=block)
    return block


def _capture(bank: Bank, client: str, event: str, payload: Payload) -> str:
    """Keep what the assistant said. Of a session that ends or is compacted, also store what is worth remembering of
    it; or at the end of a turn, return what the agent is asked about it. `hook.distil` says which of the two, or both;
    a client that lets nobody ask leaves it to the rules.
    """
    from memlane.capture.messages import Captured, capture, capture_messages
    from memlane.history import sessions

    said, session, who = _transcript(payload), _text(payload, *_SESSION), bank.config["hook.distil"]
    if not _may_capture(bank.config):
        return ""
    asks = who in ("agent", "both") and client in ASKABLE and not payload.get("last_turn")
    endless = client == "windsurf"  # it does not say when a session ends
    stores = (who in ("rules", "both") or (who == "agent" and not asks)) and (endless or event != "stop")
    done = Captured()
    learned: Sequence[Memory] = ()
    if isinstance(said, list):
        done = capture_messages(bank, said, thread=session, shown=_shown_texts(bank, session))
    elif said:
        done = capture(bank, said, seconds=_left() * (0.4 if stores or asks else 0.8))
    if said and stores and done.complete:
        from memlane.care.distilled import store_new, store_one_before

        if endless and isinstance(said, str):
            learned = store_one_before(bank, said, seconds=_left() * 0.5).memories
        else:
            learned = store_new(bank, said, seconds=_left() * 0.5, session=session).memories
    if done.records or learned or event != "stop":
        captured = [sessions.Item(record.id, record.subject) for record in done.records]
        sessions.note(bank.config, event, session, captured=captured, distilled=map(sessions.item_of, learned))
    if asks and event == "stop" and _worth_asking(payload, done):
        return _ask(client, payload)
    if asks and event == "pre-compact" and _worth_asking(payload, done):
        from memlane.care.agent import mark

        mark(session, due=True)  # nobody can be asked now; the agent is when the session goes on
    return ""


def _transcript(payload: Payload) -> str | list[Any]:
    """The session's transcript: a path, or messages that came with the event; "" when there is none."""
    messages, info = payload.get("messages"), payload.get("tool_info")
    if isinstance(messages, list):
        return messages
    return _text(payload, "transcript_path") or _text(info if isinstance(info, dict) else {}, "transcript_path")


def _worth_asking(payload: Payload, done: Captured) -> bool:
    """Whether the agent may be asked: not when the turn goes on because of a hook already, or was broken off."""
    from memlane.care.agent import worth_asking

    again = payload.get("stop_hook_active") or payload.get("loop_count")
    return not again and payload.get("status") in (None, "completed") and worth_asking(done)


def _ask(client: str, payload: Payload, *, due: bool = False) -> str:
    """What the agent is asked about the session; "" when it was asked before. With `due`, only if that was put off."""
    from memlane.care import agent

    session = _text(payload, *_SESSION)
    if (due and not agent.is_due(session)) or not agent.mark(session):
        return ""
    return agent.asked(_transcript(payload), client, session, seconds=_left() * 0.6)


def _left() -> float:
    """The seconds until the deadline, which would lose our place."""
    return signal.getitimer(signal.ITIMER_REAL)[0]


def _may_capture(settings: config.Config) -> bool:
    """Whether to capture in this folder. One without a bank would add to the user's bank, together with what was said
    elsewhere, so there hook.capture must have been set by somebody."""
    chosen = settings.project is not None or settings.sources["hook.capture"] != "default"
    return bool(settings["hook.capture"]) and chosen


def _shown_texts(bank: Bank, session: str) -> Iterator[str]:
    """The texts of the memories that a session was shown, for a client whose messages do not mark them."""
    from memlane.history import sessions

    for id in sessions.shown(session):
        with suppress(MemlaneError):  # it may have been deleted
            yield bank.get(id).text


def _untrusted(event: str, settings: config.Config) -> str:
    """What the user is told when a session starts in a project that is not trusted."""
    error = config.distrusted(settings) if settings["memory.enabled"] and event == "session-start" else None
    if error is None:
        return ""
    from memlane.core.invisible import escaped

    done = "Hooks show only your own memory here." if _may_answer(event, settings) else "Hooks do nothing here."
    return escaped(" ".join(f"memlane: {error} {done} {error.hint}".split()))  # of a folder's name, too


def _misconfigured(event: str, error: ConfigError) -> str:
    """What the user is told when a session starts and the configuration cannot be understood."""
    from memlane.core.invisible import escaped
    from memlane.gate import redacted

    said = f"memlane: {error} Hooks do nothing here. {error.hint}"
    return escaped(redacted(" ".join(said.split()))) if event == "session-start" else ""


def _notice(event: str, payload: Payload, settings: config.Config, answer: str) -> str:
    """What the user is told: when a session starts with memory, how much it is, but not again when the client compacts
    it; when the agent is asked something, what that costs."""
    if not settings["hook.notice"]:
        return ""
    if "<memlane-request>" in answer:
        from memlane.care.agent import cost

        return cost(answer, turn=event == "stop")
    memories = getattr(answer, "memories", ()) if event == "session-start" else ()
    if not memories or payload.get("source") == "compact":
        return ""
    count = f"{len(memories)} {'memory' if len(memories) == 1 else 'memories'}"
    return f"memlane: {count}, {getattr(answer, 'tokens', 0):,} tokens"


def _reply(client: str, event: str, answer: str, note: str = "") -> str:
    """What the client reads on stdout. The note is for the user alone, where the client has a field for that."""
    told = {"systemMessage": note} if note and client in ("claude-code", "codex", "gemini") else {}
    name = _REPLY_NAMES.get(event)
    if client == "cursor":
        field = {"session-start": "additional_context", "tool": "additional_context", "stop": "followup_message"}
        return json.dumps({field[event]: str(answer)} if answer and event in field else {}) + "\n"
    if answer and event == "stop":
        asked = {"decision": "block", "reason": answer}
        own = {"hookSpecificOutput": {"hookEventName": "Stop", **asked}} if client == "vscode" else asked
        return json.dumps({**told, **own}) + "\n"
    if client == "gemini":
        name = {"UserPromptSubmit": "BeforeAgent", "PreToolUse": "AfterTool"}.get(name or "", name)
    if answer and name:
        context = {"hookEventName": name, "additionalContext": str(answer)}
        return json.dumps({**told, "hookSpecificOutput": context}) + "\n"  # ASCII, which fits any encoding of stdout
    if told:
        return json.dumps(told) + "\n"
    return "{}\n" if client in ("gemini", "opencode") else ""


# -- the deadline and the log


@contextmanager
def _deadline() -> Iterator[Callable[[float], None]]:
    """Raise _TimeIsUp in the body at the deadline. Yields a function that sets the seconds until then anew.

    Python raises it between two of its own steps. Code in C that does not come back is ended from outside: a thread
    that needs nothing of Python's ends the process _GRACE seconds later, with nothing on stdout. Its exit code is 1,
    which `resident.alone` keeps from the client.
    """

    def ring(*_: object) -> None:
        raise _TimeIsUp

    def set_deadline(seconds: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
        faulthandler.dump_traceback_later(seconds + _GRACE, exit=True, file=nowhere)

    before = signal.signal(signal.SIGALRM, ring)
    with open(os.devnull, "wb") as nowhere:
        try:
            set_deadline(config.default("hook.deadline"))
            yield set_deadline
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            faulthandler.cancel_dump_traceback_later()
            signal.signal(signal.SIGALRM, before)


def _log(client: str, event: str, what: str) -> None:
    """Add a line to the log, without anything that was said in the session. Does nothing when it cannot be written."""
    from memlane.core.dates import iso, utc_now
    from memlane.core.invisible import escaped
    from memlane.gate import redacted

    when = iso(utc_now().replace(microsecond=0))
    names = f"{redacted(' '.join(client.split()))[:40] or '-'} {event or '-'}"
    line = escaped(f"{when} {names}: {redacted(' '.join(what.split()))[:500]}")
    with suppress(OSError, MemlaneError):
        path = config.user_state() / "hook.log"
        if path.exists() and path.stat().st_size > MAX_LOG:
            os.replace(path, path.with_suffix(".log.1"))
        state.append(path.parent, path.name, line.encode())


def _note_failure(client: str, event: str, payload: Payload, settings: config.Config | None, failed: str) -> None:
    """Let the log of the session say it, too, so that nobody takes it for a prompt that no memory is about."""
    from memlane.history import sessions

    with suppress(Exception), journal.acting("hook", client):
        prompt = _text(payload, "prompt", "user_prompt")
        if settings and settings["memory.enabled"]:
            sessions.note(settings, event, _text(payload, *_SESSION), prompt=prompt, failed=failed)


def _where(error: Exception) -> str:
    """Where in our code an error was raised; its message may hold what somebody said, so it is not logged."""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else "?"
