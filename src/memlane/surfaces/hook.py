"""What agents' clients call at the edges of a session: `memlane hook CLIENT [EVENT]`, the client's JSON on stdin.

    session-start              the snapshot, and the newest memories
    prompt                     what is relevant to the prompt; nothing when nothing is
    stop, pre-compact, session-end     capture of what the assistant said

A hook never blocks and never fails: whatever happens, the answer is one that the client accepts, the exit code is 0,
and what went wrong is a line in `hook.log` under the state folder. It has a deadline, and it imports little: this
module is reached without the command line's own imports, and NumPy comes in only with a search.

Written to disk: the log; under `sessions/` of the state folder the ids that a session has seen, so that no memory is
shown to it twice; and what capture writes.
"""

from __future__ import annotations

import io
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING, Any

from memlane import config
from memlane.core.errors import InvalidInput, MemlaneError
from memlane.disk import files

if TYPE_CHECKING:
    from pathlib import Path

    from memlane.bank import Bank

MAX_INPUT = 64 * 1024 * 1024  # bytes
MAX_LOG = 256 * 1024
KEPT_SESSIONS = 200
_ENDS = 2  # lines of a long prompt that are looked up at a time
_ERROR = re.compile(r"\w(?:Error|Exception)\b")
Payload = Mapping[str, Any]

EVENTS = {
    "session-start": ("sessionstart",),
    "prompt": ("userpromptsubmit", "beforeagent", "beforesubmitprompt"),
    "stop": ("stop", "afteragent", "postcascaderesponse", "postcascaderesponsewithtranscript"),
    "pre-compact": ("precompact", "precompress"),
    "session-end": ("sessionend",),
}
_STARTED = {"claude-code": "CLAUDE_PROJECT_DIR", "gemini": "GEMINI_PROJECT_DIR"}
_NAMES = {"session-start": "SessionStart", "prompt": "UserPromptSubmit"}


class _TimeIsUp(BaseException):
    """The deadline came. Raised by the timer, wherever the hook is; nothing on the way takes it for an error."""


def main(arguments: Sequence[str]) -> None:
    """Answer one event on stdout. Never raises and never ends the process with anything but 0."""
    client = event = answer = ""
    try:
        with _deadline() as patience, redirect_stderr(io.StringIO()):  # clients show or log what they find there
            client, event, payload = _asked(arguments, sys.stdin.buffer.read(MAX_INPUT + 1))
            settings = config.load(_folder(client, payload))
            if settings["memory.enabled"] and settings["hook.enabled"]:
                patience(settings["hook.deadline"])
                answer = _answered(event, payload, settings)
    except _TimeIsUp:
        _log(client, event, "the time was up")
    except MemlaneError as error:
        _log(client, event, str(error))
    except Exception as error:  # a hook that fails must not be the user's problem
        _log(client, event, f"{type(error).__name__} in {_where(error)}")
    with suppress(OSError, ValueError, AttributeError):  # a client that has gone away
        sys.stdout.write(_reply(client, event, answer))
        sys.stdout.flush()


# -- what is asked


def _asked(arguments: Sequence[str], data: bytes) -> tuple[str, str, Payload]:
    """The client, the event and what the client says about it. Raises InvalidInput."""
    arguments = [word for word in arguments if not word.startswith("-")]
    client = arguments[0] if arguments else ""
    if len(data) > MAX_INPUT:
        raise InvalidInput("The client's message is too long.", hint="Nothing to do.")
    try:
        payload = json.loads(data or b"{}")
    except (ValueError, RecursionError):  # also for bytes that are no text
        raise InvalidInput("The client's message is not JSON.", hint="Nothing to do.") from None
    if not isinstance(payload, dict):
        raise InvalidInput("The client's message is not a JSON object.", hint="Nothing to do.")
    named = arguments[1] if len(arguments) > 1 else payload.get("hook_event_name") or payload.get("agent_action_name")
    word = re.sub(r"[^a-z]", "", str(named or "").lower())
    for event, others in EVENTS.items():
        if word == event.replace("-", "") or word in others:
            return client, event, payload
    raise InvalidInput("There is no such event.", hint=f"Use one of: {', '.join(EVENTS)}.")


def _folder(client: str, payload: Payload) -> str | None:
    """The folder that the session was started in; None leaves it to MEMLANE_BANK, else the current folder.

    Where the client says which that is, `cwd` does not count: it moves with every `cd`, and what was said in one
    project would end up in the bank of another.
    """
    if config.variables("MEMLANE_BANK"):
        return None
    started = config.variables(_STARTED[client]).values() if client in _STARTED else ()
    roots = payload.get("workspace_roots")
    for folder in (*started, payload.get("cwd"), *(roots if isinstance(roots, list) else ())):
        if isinstance(folder, str) and os.path.isdir(folder):
            return folder
    return None


def _text(payload: Payload, *names: str) -> str:
    return next((value for name in names if isinstance(value := payload.get(name), str)), "")


# -- what is answered


def _answered(event: str, payload: Payload, settings: config.Config) -> str:
    from memlane.bank import Bank

    with Bank(settings) as bank:
        if event == "session-start":
            return _session_start(bank, payload)
        if event == "prompt":
            return _prompt(bank, payload)
        return _capture(bank, payload)


def _session_start(bank: Bank, payload: Payload) -> str:
    """The snapshot with the newest memories. The session starts anew: everything may be shown to it again."""
    settings = bank.config
    block = bank.snapshot(
        budget=settings["hook.session_budget"], recent=settings["hook.recent"], wait=settings["hook.deadline"] / 4
    )
    _seen(payload).write([memory.id for memory in block.memories])
    return block


def _prompt(bank: Bank, payload: Payload) -> str:
    from memlane.recall.blocks import RELEVANT, without_blocks

    prompt = without_blocks(_text(payload, "prompt", "user_prompt"))
    seen = _seen(payload)
    shown = seen.read()
    wait = bank.config["hook.deadline"] / 2
    for question in questions(prompt):
        block = bank.context(
            question,
            bank.config["hook.prompt_budget"],
            without=shown,
            least=RELEVANT,
            wait=wait,
        )
        wait = 0  # to index more is for the next prompt
        if block.memories:
            seen.write([*shown, *(memory.id for memory in block.memories)])
            return block
    return ""


def _capture(bank: Bank, payload: Payload) -> str:
    from memlane.capture.messages import capture, capture_messages

    if not _may_capture(bank.config):
        return ""
    seconds = _left() * 0.8  # what was read by then is remembered; the deadline itself would lose the place
    messages = payload.get("messages")
    if isinstance(messages, list):
        capture_messages(bank, messages, thread=_text(payload, "session_id"), shown=_shown(bank, payload))
    elif transcript := _transcript(payload):
        capture(bank, transcript, seconds=seconds)
    return ""


def _may_capture(settings: config.Config) -> bool:
    """Whether what is said here may be kept. In a folder without a bank of its own it would go to the user's, among
    what was said elsewhere: only when somebody has asked for that by setting hook.capture."""
    asked = settings.project is not None or settings.sources["hook.capture"] != "default"
    return bool(settings["hook.capture"]) and asked


def _shown(bank: Bank, payload: Payload) -> Iterator[str]:
    """The texts of the memories that a session was shown, for a client whose messages do not tell."""
    for id in _seen(payload).read():
        with suppress(MemlaneError):  # it may be gone by now
            yield bank.get(id).text


def _transcript(payload: Payload) -> str:
    info = payload.get("tool_info")
    return _text(payload, "transcript_path") or _text(info if isinstance(info, dict) else {}, "transcript_path")


_CHATTER = frozenset(
    "ok okay yes yeah yep no nope please thanks thank you great good nice perfect cool sure continue go on ahead "
    "proceed do it next again try looks look fine done that this is the a an and now just more hi hello hey so what "
    "why correct right agreed sounds lgtm stop wait undo".split()
)


def questions(prompt: str) -> list[str]:
    """What to look up for a prompt, until something is found: the prompt itself, if it says enough.

    A long one has something pasted in it, a log or a trace, which no memory speaks of as a whole. There, what stands
    at its beginning, at the error that it names, and at its end. Quotes and minus signs are how people write, here,
    not how they search.
    """
    lines = re.sub(r'"|(?<!\S)-+', " ", prompt).splitlines()
    said = [line for line in lines if re.search(r"\w", line)]
    if len(said) > 2 * _ENDS:
        error = next((at for at, line in enumerate(said) if _ERROR.search(line)), len(said))
        parts = [_paragraph(lines)[:_ENDS], said[error : error + _ENDS], _paragraph(lines[::-1])[:_ENDS][::-1]]
    else:
        parts = [said]
    slash = prompt.lstrip().startswith("/")
    return [] if slash else [text for text in map("\n".join, parts) if substantial(text)]


def _paragraph(lines: Sequence[str]) -> list[str]:
    """The first lines that say something, up to one that does not."""
    begun = dropwhile(lambda line: not re.search(r"\w", line), lines)
    return list(takewhile(lambda line: re.search(r"\w", line), begun))


def substantial(prompt: str) -> bool:
    """Whether a text says enough to look something up: small talk does not."""
    words = set(re.findall(r"[^\W_]+", prompt.lower())) - _CHATTER
    return len(words) > 1 or any(not word.isascii() for word in words)


def _reply(client: str, event: str, answer: str) -> str:
    """What the client reads on stdout."""
    name = _NAMES.get(event)
    if client == "cursor":
        return json.dumps({"additional_context": str(answer)} if answer and event == "session-start" else {}) + "\n"
    if client == "gemini" and name == "UserPromptSubmit":
        name = "BeforeAgent"
    if answer and name:
        context = {"hookEventName": name, "additionalContext": str(answer)}
        return json.dumps({"hookSpecificOutput": context}) + "\n"  # ASCII: whatever encoding stdout has
    return "{}\n" if client in ("gemini", "opencode") else ""


# -- what a session has seen


class _Seen:
    """The ids of the memories that a session was shown: one small file for each of the latest sessions."""

    def __init__(self, folder: Path, session: str) -> None:
        import hashlib

        name = hashlib.sha256(session.encode(errors="replace")).hexdigest()[:32]
        self._path = folder / f"{name}.json" if session else None

    def read(self) -> list[str]:
        if self._path is None:
            return []
        try:
            ids = json.loads(self._path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return []
        return [id for id in ids if isinstance(id, str)] if isinstance(ids, list) else []

    def write(self, ids: Sequence[str]) -> None:
        if self._path is None:
            return
        _private(self._path.parent)
        files.replace(os.fspath(self._path), json.dumps(ids[-1000:]).encode())
        with os.scandir(self._path.parent) as listing:
            old = sorted((entry.stat().st_mtime, entry.path) for entry in listing)[:-KEPT_SESSIONS]
        for _, path in old:
            with suppress(FileNotFoundError):
                os.unlink(path)


def _seen(payload: Payload) -> _Seen:
    return _Seen(config.user_state() / "sessions", _text(payload, "session_id", "conversation_id", "trajectory_id"))


# -- never in the way


@contextmanager
def _deadline() -> Iterator[Callable[[float], None]]:
    """Raise _TimeIsUp in here when the time is up, which what comes out of it can set anew, in seconds."""

    def ring(*_: object) -> None:
        raise _TimeIsUp

    def patience(seconds: float) -> None:
        signal.setitimer(signal.ITIMER_REAL, seconds)

    before = signal.signal(signal.SIGALRM, ring)
    patience(config.default("hook.deadline"))
    try:
        yield patience
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _left() -> float:
    """Seconds until the deadline."""
    return signal.getitimer(signal.ITIMER_REAL)[0]


def _log(client: str, event: str, what: str) -> None:
    """Add a line to the log, without anything that the session said. A log that cannot be written is not written."""
    from memlane.core.dates import iso, utc_now
    from memlane.gate import redacted

    when = iso(utc_now().replace(microsecond=0))
    line = f"{when} {redacted(client)[:40] or '-'} {event or '-'}: {redacted(' '.join(what.split()))[:500]}\n"
    with suppress(OSError, MemlaneError):
        path = config.user_state() / "hook.log"
        _private(path.parent)
        if path.exists() and path.stat().st_size > MAX_LOG:
            os.replace(path, path.with_suffix(".log.1"))
        with open(path, "a", encoding="utf-8") as log:
            log.write(line)


def _private(folder: Path) -> None:
    """Make a folder of the state folder, for the user's eyes only."""
    for place in (config.user_state(), folder):
        os.makedirs(place, mode=0o700, exist_ok=True)


def _where(error: Exception) -> str:
    """The place in the code, not the message: that may hold what somebody said."""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    return f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else "?"
