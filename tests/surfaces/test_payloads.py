"""What real clients have said to the hooks, and the transcripts they kept, replayed through `memlane hook`.

Recorded by `python tests/clients --record`, where the clients themselves run. Each line of payloads/CLIENT.jsonl is one
call: its arguments, what came on stdin, and how many lines its transcript had at that moment.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from conftest import trusted
from memlane import Bank
from memlane.capture.messages import capture
from memlane.surfaces import hook
from story import ANSWER, ANSWERS, HOUSE_RULE, RELEVANT, fill

PAYLOADS = Path(__file__).parent.parent / "payloads"
CLIENTS = ("claude-code", "codex", "gemini", "opencode")
PLACE = "/home/user/project"


class Call(NamedTuple):
    """A hook that a client called: what it said, and what it was told."""

    arguments: list[str]
    lines: int
    payload: dict[str, Any]
    out: str = ""

    @property
    def event(self) -> str:
        return self.arguments[1]

    @property
    def session(self) -> str:
        return str(self.payload["session_id"])

    @property
    def context(self) -> str:
        answer = json.loads(self.out or "{}")
        return str(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))


class Replay(NamedTuple):
    client: str
    calls: list[Call]
    records: list[tuple[str, str | None]]  # (text, thread)
    again: list[tuple[str, str | None]]  # when all of it has happened twice
    log: str


@pytest.fixture(scope="module", params=CLIENTS)
def replay(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replay]:
    folder = tmp_path_factory.mktemp("replay")
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("MEMLANE_", "XDG_")):
                patch.delenv(name)
        patch.setenv("HOME", str(folder))
        project = folder / "project"
        project.mkdir()
        with Bank.init(project) as bank:
            fill(bank)
            with open(project / "memlane.toml", "a") as file:
                file.write("\n[hook]\ndeadline = 30.0\n")  # this is not about speed
            trusted(project / "memlane.toml")
            lines = (PAYLOADS / f"{request.param}.jsonl").read_text().splitlines()
            calls = [Call(**json.loads(line)) for line in lines]
            answered = [answer(call, folder, patch) for call in calls]
            records = kept(bank)
            for call in calls:
                answer(call, folder, patch)
            log = folder / ".local/state/memlane/hook.log"
            yield Replay(request.param, answered, records, kept(bank), log.read_text() if log.exists() else "")


def answer(call: Call, folder: Path, patch: pytest.MonkeyPatch) -> Call:
    payload = {**call.payload, "cwd": call.payload["cwd"].replace(PLACE, str(folder / "project"))}
    if name := payload.get("transcript_path"):
        payload["transcript_path"] = str(folder / name)
        if call.lines:  # before the first line there is no file
            lines = (PAYLOADS / name).read_text().splitlines(keepends=True)
            (folder / name).write_text("".join(lines[: call.lines]))
    patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(payload).encode())))
    with redirect_stdout(io.StringIO()) as out:
        hook.main(call.arguments)
    return call._replace(out=out.getvalue())


def kept(bank: Bank) -> list[tuple[str, str | None]]:
    return sorted((memory.text, memory.thread) for memory in bank.list(lane="records", limit=100))


def test_the_first_session_gets_the_snapshot_and_what_is_relevant(replay: Replay) -> None:
    """S001-51"""
    start, prompt = replay.calls[:2]
    assert (start.event, prompt.event) == ("session-start", "prompt")
    assert [text in start.context for text in (HOUSE_RULE, RELEVANT)] == [True, False]
    assert [text in prompt.context for text in (HOUSE_RULE, RELEVANT)] == [False, True]


def test_answers_are_what_the_client_wants_to_read(replay: Replay) -> None:
    """The event by the client's own name; JSON whatever happens, where the client wants that."""
    for call in replay.calls:
        if call.context and replay.client != "opencode":  # its plugin, which is ours, does not look at the name
            assert json.loads(call.out)["hookSpecificOutput"]["hookEventName"] == call.payload["hook_event_name"]
        if not call.context:
            assert call.out == ("{}\n" if replay.client in ("gemini", "opencode") else "")


def test_every_answer_is_kept_once_with_its_session(replay: Replay) -> None:
    """S001-33: also when every hook is called again."""
    first, second = dict.fromkeys(call.session for call in replay.calls)
    assert replay.records == sorted(zip(ANSWERS, (first, second, second), strict=True))
    assert replay.again == replay.records
    assert replay.log == ""


def test_the_next_session_recalls_what_the_first_one_said(replay: Replay) -> None:
    later = "\n".join(call.context for call in replay.calls if call.session != replay.calls[0].session)
    assert [line in later for line in ANSWER.split("\n\n")] == [True, True]


@pytest.mark.parametrize("client", [client for client in CLIENTS if client != "opencode"])  # it keeps a database
def test_transcripts_can_be_captured_without_hooks(client: str, tmp_path: Path) -> None:
    """S001-24: in another bank too, where an answer is new although the transcript injects it later on."""
    with Bank.init(tmp_path) as bank:
        for path in sorted(PAYLOADS.glob(f"{client}-*.jsonl")):
            capture(bank, path)
        assert [text for text, _ in kept(bank)] == sorted(ANSWERS)


def test_payloads_are_small_and_tell_nothing_about_the_machine() -> None:
    for path in PAYLOADS.iterdir():
        text = path.read_text().replace("/home/user", "")
        assert [word for word in ("/tmp/", "/home/", "/Users/", "/var/", "pytest") if word in text] == [], path.name
        assert path.stat().st_size < 50_000
