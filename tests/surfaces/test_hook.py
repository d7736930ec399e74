"""Hooks: the right answer in each client's own contract, silence otherwise, and never in the way."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commands import CANARY, MEMLANE
from conftest import tree, trusted
from memlane import Bank
from memlane.history import sessions
from memlane.recall.blocks import FENCE
from memlane.surfaces import hook
from repositories import git
from samples import transcript
from terminals import steering

Ask = Callable[..., str]


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    (tmp_path / "project").mkdir()
    return Bank.init(tmp_path / "project")


@pytest.fixture
def ask(bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Call a hook in this process; gives what it writes to stdout."""

    def call(client: str, event: str | None = None, data: str | bytes | None = None, /, **payload: Any) -> str:
        given = json.dumps({"session_id": "s1", "cwd": str(tmp_path / "project"), **payload}) if data is None else data
        given = given.encode() if isinstance(given, str) else given
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        capsys.readouterr()
        hook.main([client, event] if event else [client])
        captured = capsys.readouterr()
        assert captured.err == ""
        return captured.out

    return call


def context(answer: str) -> str:
    """What the client will show to the model; "" when there is nothing."""
    return (
        str(json.loads(answer)["hookSpecificOutput"]["additionalContext"]) if answer.strip() not in ("", "{}") else ""
    )


def log(home: Path) -> str:
    path = home / ".local/state/memlane/hook.log"
    return path.read_text() if path.exists() else ""


def configure(project: Path, text: str) -> Path:
    (project / "memlane.toml").write_text(text)
    return trusted(project / "memlane.toml")


# -- the start of a session


def test_a_session_starts_with_the_snapshot_and_some_more_memories(bank: Bank, ask: Ask) -> None:
    """S001-51"""
    bank.add("Keep the runtime stable.", lane="vault", type="mission")
    bank.add("House style: short sentences.", title="Style", tags=["pinned"], created_at="2024-01-01")
    for day in range(1, 9):
        bank.add(f"What happened on day {day}.", title=f"Day {day}", created_at=f"2025-01-0{day}")
    answer = json.loads(ask("claude-code", "session-start", source="startup", hook_event_name="SessionStart"))
    text = answer["hookSpecificOutput"]["additionalContext"]
    block = bank.snapshot(budget=1500, recent=5)
    assert text == block
    assert answer == {
        "systemMessage": f"memlane: 7 memories, {block.tokens} tokens",
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text},
    }
    assert [f"day {day}." in text for day in range(1, 9)] == [False] * 3 + [True] * 5
    assert "Keep the runtime stable." in text
    assert "House style" in text


def test_a_session_in_a_bank_that_is_not_indexed_starts_with_the_newest_files(bank: Bank, tmp_path: Path) -> None:
    """A hook has no time to read all of a large bank; what it has read is shown."""
    for number in range(30):
        bank.add(f"Fact number {number}.", title=f"Fact {number}", created_at=f"2025-01-{number + 1:02}")
        os.utime(bank.root / f"fact-{number}.md", (number, number))
    shutil.rmtree(bank.root / "indices", ignore_errors=True)
    with Bank.open(tmp_path / "project") as unread:
        assert unread.snapshot(recent=1, wait=-1).memories == ()
        assert [memory.id for memory in unread.snapshot(recent=1, wait=60).memories] == ["notes:fact-29"]


def test_how_much_a_session_starts_with_is_configured(bank: Bank, ask: Ask, tmp_path: Path) -> None:
    """S001-51"""
    for day in range(1, 9):
        bank.add(f"What happened on day {day}.", title=f"Day {day}", created_at=f"2025-01-0{day}")
    configure(tmp_path / "project", "[memory]\nenabled = true\n[hook]\nrecent = 2\n")
    text = context(ask("claude-code", "session-start"))
    assert [f"day {day}." in text for day in range(1, 9)] == [False] * 6 + [True] * 2


def test_a_session_starts_with_what_is_about_the_files_in_work(bank: Bank, ask: Ask, tmp_path: Path) -> None:
    bank.add("Tokens in auth.py last a day.", title="Tokens", created_at="2020-01-01")
    for day in range(1, 9):
        bank.add(f"What happened on day {day}.", title=f"Day {day}", created_at=f"2025-01-0{day}")
    assert "Tokens" not in context(ask("claude-code", "session-start"))
    git(tmp_path / "project", "init", "-q")
    (tmp_path / "project/auth.py").write_text("a = 1\n")
    git(tmp_path / "project", "add", "auth.py")
    git(tmp_path / "project", "commit", "-qm", "one")
    (tmp_path / "project/auth.py").write_text("a = 22\n")
    assert "### About files in work\n\n- [notes:tokens]" in context(ask("claude-code", "session-start"))


def test_a_session_starts_with_open_work_of_its_branch_alone(bank: Bank, ask: Ask, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "-b", "pdf"], cwd=tmp_path, check=True)
    for branch in ("pdf", "login"):
        bank.add(f"Work on {branch} is half done.", tags=["open"], extra={"branch": branch})
    text = context(ask("claude-code", "session-start"))
    assert ("Work on pdf" in text, "Work on login" in text) == (True, False)
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "Start")
    git(tmp_path, "checkout", "-q", "--detach")
    assert "Work on" not in context(ask("claude-code", "session-start"))


@pytest.mark.parametrize(
    ("client", "told"), [("claude-code", True), ("codex", True), ("gemini", True), ("vscode", False), ("cursor", False)]
)
def test_the_user_is_told_how_much_a_session_starts_with(bank: Bank, ask: Ask, client: str, told: bool) -> None:
    """Only where the client has a field for the user."""
    bank.add("Deploys go out on Tuesdays.", title="Deploys")
    expected = f"memlane: 1 memory, {bank.snapshot(recent=5).tokens} tokens" if told else None
    assert json.loads(ask(client, "session-start", source="startup")).get("systemMessage") == expected


def test_the_user_is_told_once_and_not_at_all_where_that_is_switched_off(bank: Bank, ask: Ask, tmp_path: Path) -> None:
    bank.add("Deploys go out on Tuesdays.", title="Deploys")
    assert "systemMessage" not in json.loads(ask("claude-code", "session-start", source="compact"))
    assert "systemMessage" not in json.loads(
        ask("claude-code", "prompt", prompt="When do deploys go out?", session_id="b")
    )
    configure(tmp_path / "project", "[memory]\nenabled = true\n[hook]\nnotice = false\n")
    assert "systemMessage" not in json.loads(ask("claude-code", "session-start", source="startup"))


# -- a prompt


def test_a_prompt_gets_what_is_relevant_within_the_budget(bank: Bank, ask: Ask) -> None:
    """S001-51"""
    bank.add("Deploys go out on Tuesdays after standup.", title="Deploy day")
    bank.add("The cat sleeps on the keyboard.", title="Cat")
    answer = json.loads(ask("claude-code", "prompt", prompt="When do deploys go out?"))
    assert answer["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"
    text = answer["hookSpecificOutput"]["additionalContext"]
    assert "Deploys go out on Tuesdays" in text
    assert "cat sleeps" not in text
    assert len(text) / 4 <= 800


@pytest.mark.parametrize(
    "prompt",
    [
        "", "continue", "yes please", "ok, thanks", "/compact",
        "Which restaurant in Lisbon has a table for seven tonight?",
        "<memlane-context>Deploys go out</memlane-context>", "<hook_context>when do deploys go out?</hook_context> ok",
    ],
)  # fmt: skip
def test_a_prompt_that_no_memory_is_about_gets_nothing(bank: Bank, ask: Ask, prompt: str) -> None:
    bank.add("Deploys go out on Tuesdays after standup.", title="Deploy day")
    assert ask("claude-code", "prompt", prompt=prompt) == ""


_TRACE = """java.lang.NullPointerException: Cannot invoke "Card.getId()" because "card" is null
	at com.shop.payment.PaymentService.charge(PaymentService.java:142)
	at java.base/jdk.internal.reflect.NativeMethodAccessorImpl.invoke(NativeMethodAccessorImpl.java:77)
	at org.springframework.web.servlet.DispatcherServlet.doDispatch(DispatcherServlet.java:1072)
	at org.apache.catalina.core.ApplicationFilterChain.doFilter(ApplicationFilterChain.java:166)"""
_LOG = "\n".join(f"2025-01-10 INFO worker-{n} request {n * 7919:x} handled in {n} ms" for n in range(1000))


@pytest.mark.parametrize(
    ("prompt", "found"),
    [
        (f"Why does this fail?\n{_TRACE}", "Payment bug: NullPointerException"),
        (f"Why does this fail?\n\n```\n{_TRACE}\n```\n", "Payment bug: NullPointerException"),
        (f"{_LOG}\n{_TRACE}\n\nWhat is this?", "Payment bug: NullPointerException"),
        (f"{_LOG}\n\nWhy are there too many clients of Postgres?", "The pool is limited"),
        (f"Why are there too many clients of Postgres?\n\n```\n{_LOG}\n```", "The pool is limited"),
        (f"Here is the log, what is wrong?\n{_LOG}", ""),
        (
            "fix this function\n\ndef add(a, b):\n    result = a + b\n    if result:\n        pass\n    return result",
            "",
        ),
    ],
)
def test_what_is_pasted_does_not_drown_the_question(bank: Bank, ask: Ask, prompt: str, found: str) -> None:
    bank.add("NullPointerException in PaymentService.charge: the customer has no default card.", title="Payment bug")
    bank.add("The pool is limited to 10: more led to too many clients in Postgres.", title="Postgres pool")
    bank.add("Deploys go out on Tuesdays.", title="Deploy day")
    told = context(ask("claude-code", "prompt", prompt=prompt))
    lines = re.findall(r"^- \S+ (.*)", told, re.MULTILINE)
    assert [line[: len(found)] for line in lines] == ([found] if found else [])


def test_a_session_sees_a_memory_once_until_it_starts_anew(bank: Bank, ask: Ask) -> None:
    bank.add("Deploys go out on Tuesdays after standup.", title="Deploy day")
    question = {"prompt": "When do deploys go out?"}
    assert context(ask("claude-code", "prompt", **question))
    assert ask("claude-code", "prompt", **question) == ""
    assert context(ask("claude-code", "prompt", session_id="another", **question))
    assert "Deploys" in context(ask("claude-code", "session-start", source="compact"))  # its context is gone
    assert ask("claude-code", "prompt", **question) == ""  # the newest memories were in the start


def test_quotes_and_dashes_in_a_prompt_are_only_punctuation(bank: Bank, ask: Ask) -> None:
    bank.add("Deploys go out on Tuesdays after standup.", title="Deploy day")
    assert context(ask("claude-code", "prompt", prompt='- deploys: "when exactly" do they go out -standup?'))


def test_a_bank_that_is_not_indexed_yet_is_indexed_in_silence(bank: Bank, ask: Ask, tmp_path: Path) -> None:
    for number in range(600):
        (tmp_path / f"project/.memories/n{number}.md").write_text(f"Note {number} about apples.\n")
    bank.add("Deploys go out on Tuesdays after standup.", title="Deploy day")
    assert context(ask("claude-code", "prompt", prompt="When do deploys go out?")).startswith("<memlane-context>")


# -- capture

TWO_LINES = "The deploy failed because the token had expired.\n\nI renewed it and ran it again."


@pytest.mark.parametrize("event", ["stop", "pre-compact", "session-end"])
def test_what_the_assistant_said_is_kept(bank: Bank, ask: Ask, tmp_path: Path, event: str) -> None:
    """S001-33: twice is once."""
    path = transcript(tmp_path / "t.jsonl", TWO_LINES, "One line.")
    for _ in range(2):
        assert ask("claude-code", event, transcript_path=str(path)) == ""
    assert [memory.text for memory in bank.list(lane="records")] == [TWO_LINES]


def test_messages_may_come_with_the_event(bank: Bank, ask: Ask) -> None:
    messages = [
        {"id": "a", "role": "user", "content": "Why\nnot?", "timestamp": "2025-01-10T10:00:00Z"},
        {"id": "b", "role": "assistant", "content": TWO_LINES, "timestamp": "2025-01-10T10:00:01Z"},
    ]
    for _ in range(2):
        assert ask("opencode", "stop", messages=messages) == "{}\n"
    assert [(memory.text, memory.fields["occurred_at"]) for memory in bank.list(lane="records")] == [
        (TWO_LINES, "2025-01-10T10:00:01Z")
    ]


def test_what_is_injected_is_never_captured(bank: Bank, ask: Ask, tmp_path: Path) -> None:
    """Ten rounds of a session in which the assistant repeats what it was told: memory does not feed on itself."""
    bank.add(TWO_LINES, title="Deploys")
    said: list[str] = []
    for turn in range(10):
        told = context(ask("claude-code", "session-start")) + context(
            ask(
                "claude-code",
                "prompt",
                prompt="why did the deploy fail, was it the expired token?",
                session_id=f"s{turn}",
            )
        )
        assert FENCE.search(told)
        said += [f"Here is what I know:\n\n{told}", f"A new thought, number {turn}.\nIt has two lines."]
        ask("claude-code", "stop", transcript_path=str(transcript(tmp_path / "t.jsonl", *said)))
    records = sorted(memory.text for memory in bank.list(lane="records"))
    assert records == sorted(f"A new thought, number {turn}.\nIt has two lines." for turn in range(10))


def test_what_is_injected_is_not_captured_where_messages_do_not_show_it(bank: Bank, ask: Ask) -> None:
    """opencode adds context to the system prompt, which is not among its messages."""
    bank.add(TWO_LINES, title="Deploys")
    assert FENCE.search(context(ask("opencode", "session-start")))
    said = [f"As I know it:\n1. {TWO_LINES}", "A new thought.\nIt has two lines."]
    messages = [
        {"id": f"m{at}", "role": "assistant", "content": text, "timestamp": f"2025-01-10T10:00:0{at}Z"}
        for at, text in enumerate(said)
    ]
    ask("opencode", "stop", messages=messages)
    assert [memory.text for memory in bank.list(lane="records")] == [said[1]]


def test_the_users_own_bank_keeps_what_was_said_elsewhere_only_when_asked(ask: Ask, tmp_path: Path, home: Path) -> None:
    """A folder without a bank: the user's own bank is not filled with what is said in any project."""
    (tmp_path / "elsewhere").mkdir()
    said = str(transcript(tmp_path / "t.jsonl", TWO_LINES))
    with Bank.init(user=True) as own:
        ask("claude-code", "stop", cwd=str(tmp_path / "elsewhere"), transcript_path=said)
        assert own.list(lane="records") == []
        file = home / ".config/memlane/config.toml"
        file.write_text(file.read_text() + "\n[hook]\ncapture = true\n")
        ask("claude-code", "stop", cwd=str(tmp_path / "elsewhere"), transcript_path=said)
        assert [memory.text for memory in own.list(lane="records")] == [TWO_LINES]


def test_capture_can_be_switched_off(bank: Bank, ask: Ask, tmp_path: Path) -> None:
    configure(tmp_path / "project", "[memory]\nenabled = true\n[hook]\ncapture = false\n")
    ask("claude-code", "stop", transcript_path=str(transcript(tmp_path / "t.jsonl", TWO_LINES)))
    assert bank.list(lane="records") == []


# -- distilling

SAID = (
    {"role": "user", "timestamp": "2025-01-15T10:29:00Z", "content": "No, always use uv instead of pip here."},
    {
        "role": "assistant",
        "timestamp": "2025-01-15T10:30:00Z",
        "content": "The migration fails because SQLite does not support DROP CONSTRAINT; the table must be rebuilt.",
    },
)
DECIDED = {
    "role": "user",
    "timestamp": "2025-01-16T10:30:00Z",
    "content": "We decided to keep the invoices until March.",
}


def talk(path: Path, *said: dict[str, str]) -> str:
    with path.open("a") as file:
        file.writelines(json.dumps(one) + "\n" for one in said)
    return str(path)


def distilled(bank: Bank) -> list[tuple[str, str, str, list[int]]]:
    """(text, kind, day, lines) of what nobody has confirmed yet."""
    return sorted(
        (memory.text.strip(), memory.tags[0], str(memory.created_at)[:10], memory.fields["lines"])
        for memory in bank.list(tags=["unconfirmed"])
    )


def test_a_session_that_ends_or_is_compacted_is_distilled_from_where_it_stopped(
    bank: Bank, ask: Ask, tmp_path: Path, home: Path
) -> None:
    path = talk(tmp_path / "t.jsonl", *SAID)
    assert ask("claude-code", "stop", transcript_path=path) == ""
    assert distilled(bank) == []
    assert ask("claude-code", "pre-compact", transcript_path=path) == ""
    first = [(SAID[0]["content"], "rule", "2025-01-15", [1]), (SAID[1]["content"], "lesson", "2025-01-15", [2])]
    assert distilled(bank) == first
    for memory in bank.list(tags=["unconfirmed"]):
        bank.delete(memory.id)
    talk(tmp_path / "t.jsonl", DECIDED)
    assert ask("claude-code", "session-end", transcript_path=path) == ""
    assert distilled(bank) == [(DECIDED["content"], "decision", "2025-01-16", [3])]
    assert all(memory.id.startswith("notes:private/") for memory in bank.list(tags=["unconfirmed"]))
    assert log(home) == ""


@pytest.mark.parametrize("setting", ['distil = "off"', "capture = false"])
def test_distilling_can_be_switched_off(bank: Bank, ask: Ask, tmp_path: Path, setting: str) -> None:
    configure(tmp_path / "project", f"[memory]\nenabled = true\n[hook]\n{setting}\n")
    ask("claude-code", "session-end", transcript_path=talk(tmp_path / "t.jsonl", *SAID))
    assert distilled(bank) == []


def test_a_secret_is_not_distilled(bank: Bank, ask: Ask, tmp_path: Path) -> None:
    said = {**SAID[0], "content": f"No, always use this key for the staging server: {CANARY}"}
    ask("claude-code", "session-end", transcript_path=talk(tmp_path / "t.jsonl", said))
    assert distilled(bank) == []
    assert not any(CANARY.encode() in data for data in tree(tmp_path / "project").values() if isinstance(data, bytes))


# -- the clients


@pytest.mark.parametrize(
    ("client", "named", "expected"),
    [
        ("claude-code", "SessionStart", "SessionStart"),
        ("codex", "SessionStart", "SessionStart"),
        ("vscode", "SessionStart", "SessionStart"),
        ("gemini", "SessionStart", "SessionStart"),
        ("claude-code", "UserPromptSubmit", "UserPromptSubmit"),
        ("codex", "UserPromptSubmit", "UserPromptSubmit"),
        ("gemini", "BeforeAgent", "BeforeAgent"),
    ],
)
def test_the_event_is_known_from_the_clients_own_name(
    bank: Bank, ask: Ask, client: str, named: str, expected: str
) -> None:
    bank.add("Deploys go out on Tuesdays after standup.", title="Deploy day")
    answer = json.loads(ask(client, hook_event_name=named, prompt="When do deploys go out?"))
    assert answer["hookSpecificOutput"]["hookEventName"] == expected
    assert "Tuesdays" in answer["hookSpecificOutput"]["additionalContext"]


def test_cursor_has_a_contract_of_its_own(bank: Bank, ask: Ask, tmp_path: Path) -> None:
    bank.add("Deploys go out on Tuesdays after standup.", title="Deploy day")
    payload = {"conversation_id": "c", "workspace_roots": [str(tmp_path / "project")], "cwd": None}
    assert "Tuesdays" in json.loads(ask("cursor", hook_event_name="sessionStart", **payload))["additional_context"]
    assert ask("cursor", hook_event_name="beforeSubmitPrompt", prompt="When do deploys go out?", **payload) == "{}\n"
    assert ask("cursor", hook_event_name="stop", **payload) == "{}\n"


def test_windsurf_names_its_transcript_elsewhere(bank: Bank, ask: Ask, tmp_path: Path) -> None:
    path = transcript(tmp_path / "t.jsonl", TWO_LINES)
    info = {"transcript_path": str(path)}
    assert ask("windsurf", agent_action_name="post_cascade_response_with_transcript", tool_info=info) == ""
    assert len(bank.list(lane="records")) == 1


@pytest.mark.parametrize(
    ("client", "silence"), [("claude-code", ""), ("codex", ""), ("gemini", "{}\n"), ("cursor", "{}\n")]
)
def test_nothing_to_say_is_said_as_the_client_expects_it(bank: Bank, ask: Ask, client: str, silence: str) -> None:
    for event in hook.EVENTS:
        assert ask(client, event) == silence


# -- never in the way


@pytest.mark.parametrize(
    "data", [b"", b"not json", b"[1]", b"\xff\xfe", b'{"cwd": 5, "prompt": [], "transcript_path": {}}', b"{" * 100_000]
)
@pytest.mark.parametrize("event", [*hook.EVENTS, "no-such-event", None])
def test_bad_input_is_never_the_users_problem(ask: Ask, data: bytes, event: str | None) -> None:
    """S001-50"""
    assert ask("claude-code", event, data) == ""


@pytest.mark.parametrize("path", ["/nowhere/t.jsonl", "/", "", "relative.jsonl"])
def test_an_unreadable_transcript_is_not_either(bank: Bank, ask: Ask, path: str) -> None:
    """S001-50"""
    assert ask("claude-code", "stop", transcript_path=path) == ""
    assert bank.list() == []


def test_no_bank_means_silence_and_nothing_written(ask: Ask, tmp_path: Path, home: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    for event in hook.EVENTS:
        assert ask("claude-code", event, cwd=str(tmp_path / "elsewhere"), prompt="When do deploys go out?") == ""
    assert tree(tmp_path / "elsewhere") == {}
    assert log(home) == ""


def test_hooks_can_be_switched_off(bank: Bank, ask: Ask, tmp_path: Path) -> None:
    bank.add("Deploys go out on Tuesdays after standup.", title="Deploy day")
    configure(tmp_path / "project", "[memory]\nenabled = true\n[hook]\nenabled = false\n")
    assert ask("claude-code", "session-start") == ""


def test_a_profile_that_is_switched_off_keeps_memory_out_of_prompts(bank: Bank, ask: Ask, tmp_path: Path) -> None:
    """S002-61."""
    bank.add("Deploys go out on Tuesdays after standup.", title="Deploy day")
    configure(tmp_path / "project", "[memory]\nenabled = true\n[profile]\nenabled = false\n")
    answers = [ask("claude-code", "session-start"), ask("claude-code", "prompt", prompt="When do deploys go out?")]
    assert [context(answer) for answer in answers] == ["", ""]


def test_a_broken_configuration_is_told_to_the_user_and_a_line_in_the_log(ask: Ask, tmp_path: Path, home: Path) -> None:
    file = configure(tmp_path / "project", "[memory\n")
    why = f"{file} is not valid TOML: Expected ']' at the end of a table declaration (at line 1, column 8)."
    told = f"memlane: {why} Hooks do nothing here. Mend it in an editor."
    assert json.loads(ask("claude-code", "session-start")) == {"systemMessage": told}
    assert f"claude-code session-start: {why}\n" in log(home)


def test_one_that_was_broken_since_it_was_trusted_is_told_to_the_user(
    bank: Bank, ask: Ask, tmp_path: Path, home: Path
) -> None:
    file = tmp_path / "project/memlane.toml"
    file.write_text("[memory]\nenabled = true\n[vault\n")
    why = f"{file} is not valid TOML (at line 3, column 7)."
    told = f"memlane: {why} Hooks do nothing here. Mend it in an editor; `memlane trust` says what is wrong with it."
    answers = [ask("claude-code", event, prompt="When?") for event in ("session-start", "prompt")]
    assert (json.loads(answers[0]), answers[1]) == ({"systemMessage": told}, "")
    assert [line.partition(" ")[2] for line in log(home).splitlines()] == [
        f"claude-code session-start: {why}",
        f"claude-code prompt: {why}",
    ]


def test_nothing_secret_reaches_the_log_or_the_bank(bank: Bank, ask: Ask, tmp_path: Path, home: Path) -> None:
    path = transcript(tmp_path / "t.jsonl", f"The key is\n{CANARY}")
    ask("claude-code", "stop", transcript_path=str(path))
    ask(CANARY, "prompt", b"{" + CANARY.encode())
    ask("claude-code", "prompt", prompt=f"deploy with {CANARY}", session_id=CANARY)
    written = b"".join([*tree(home).values(), *tree(tmp_path / "project").values()])
    assert CANARY.encode() not in written
    assert bank.list() == []


def test_the_log_does_not_grow_for_ever(ask: Ask, home: Path) -> None:
    path = home / ".local/state/memlane/hook.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x" * (hook.MAX_LOG + 1))
    ask("claude-code", "prompt", b"no json")
    assert path.read_text().count("\n") == 1
    assert path.with_suffix(".log.1").exists()


def test_the_state_folder_is_for_the_user_alone(ask: Ask, home: Path) -> None:
    state = home / ".local/state/memlane"
    state.mkdir(parents=True, exist_ok=True)
    state.chmod(0o755)  # as an older memlane left it
    (state / "hook.log").touch(0o644)
    ask("claude-code", "session-start", session_id="s")
    ask("claude-code", "prompt", b"no json")
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in (state, *state.rglob("*"))}
    expected = {"memlane": "0o700", "sessions": "0o700", "hook.log": "0o600"}
    assert {name: modes.pop(name) for name in expected} == expected
    assert set(modes.values()) == {"0o600"}


def test_the_log_has_nothing_that_steers_a_terminal(ask: Ask, home: Path) -> None:
    ask("c\x1b[5m\x9b5m\nd", "\x1b]0;x\x07", b"{}")
    ask("claude-code", "stop", transcript_path="/no/\x1b[5m\u202e\nforged")
    logged = (home / ".local/state/memlane/hook.log").read_text()
    assert steering(logged) == set()
    assert "There is no transcript \\u001b[5m\\u202e forged." in logged


def test_the_log_is_not_written_through_a_link(ask: Ask, home: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("x")
    state = home / ".local/state/memlane"
    state.mkdir(parents=True, exist_ok=True)
    (state / "hook.log").unlink(missing_ok=True)
    (state / "hook.log").symlink_to(target)
    ask("claude-code", "prompt", b"no json")
    assert target.read_text() == "x"


def test_only_the_latest_sessions_are_remembered(ask: Ask, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "KEPT", 3)
    for number in range(6):
        ask("claude-code", "session-start", session_id=f"s{number}")
    assert len(list((home / ".local/state/memlane/sessions").iterdir())) == 3


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", ">/dev/full"])
def test_a_client_that_closes_a_stream_gets_zero_all_the_same(bank: Bank, tmp_path: Path, closed: str) -> None:
    """S001-50."""
    bank.add("Deploys go out on Tuesdays.", title="Deploys")
    command = f'"$0" -m memlane hook claude-code session-start {closed} < /dev/null'
    done = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable], cwd=tmp_path / "project", capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_answer_needs_no_encoding(bank: Bank, tmp_path: Path) -> None:
    bank.add("Ausgeliefert wird dienstags: größer, 日本語 🎉.", title="Deploys")
    done = subprocess.run(
        [sys.executable, "-m", "memlane", "hook", "claude-code", "session-start"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=tmp_path / "project",
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=True,
    )
    assert "größer, 日本語 🎉" in context(done.stdout.decode())


def test_an_option_that_is_not_known_does_not_block_the_client(bank: Bank, tmp_path: Path) -> None:
    """Exit code 2 would take the user's prompt away in Claude Code."""
    command = [sys.executable, "-m", "memlane", "hook", "claude-code", "prompt", "--quiet"]
    done = subprocess.run(
        command, input=b'{"prompt": "why?"}', capture_output=True, cwd=tmp_path / "project", check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_session_stays_with_the_project_that_it_was_started_in(
    bank: Bank, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was said in one project is not captured in another because the session has moved there."""
    (tmp_path / "other").mkdir()
    with Bank.init(tmp_path / "other") as other:
        said = str(transcript(tmp_path / "t.jsonl", TWO_LINES))
        monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(tmp_path / "project"))
        ask("claude-code", "stop", cwd=str(tmp_path / "other"), transcript_path=said)
        assert ([memory.text for memory in bank.list(lane="records")], other.list()) == ([TWO_LINES], [])
        ask("codex", "stop", cwd=str(tmp_path / "other"), transcript_path=said)
        assert [memory.text for memory in other.list(lane="records")] == [TWO_LINES]


def test_memlane_bank_names_the_bank_for_hooks_too(
    bank: Bank, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank.add("Deploys go out on Tuesdays.", title="Deploys")
    (tmp_path / "elsewhere").mkdir()
    assert ask("claude-code", "session-start", cwd=str(tmp_path / "elsewhere")) == ""
    monkeypatch.setenv("MEMLANE_BANK", str(tmp_path / "project"))
    assert "Tuesdays" in ask("claude-code", "session-start", cwd=str(tmp_path / "elsewhere"))


def test_a_hook_that_waits_for_its_input_gives_up(bank: Bank, home: Path) -> None:
    """The client never closes stdin: the deadline ends it. Exit code 0, and no word on stdout."""
    with subprocess.Popen(
        [MEMLANE, "hook", "claude-code", "prompt"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as run:
        assert run.stdout
        assert (run.stdout.read(), run.wait()) == (b"", 0)
    assert "the time was up" in log(home)


def test_the_deadline_leaves_an_answer_that_the_client_accepts(
    bank: Bank, ask: Ask, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ring(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGALRM)

    monkeypatch.setattr(Bank, "snapshot", ring)
    assert ask("gemini", "session-start") == "{}\n"
    assert "gemini session-start: the time was up" in log(home)


HALF = "[os.write(n, b'{') for n in range(3, 9) if pathlib.Path(f'/dev/fd/{n}').is_fifo()]"  # of its answer


@pytest.mark.parametrize(
    "end", ["sum(range(10**13))", "os.kill(os.getpid(), 9)", f"({HALF}, os.kill(os.getpid(), 11))"]
)
@pytest.mark.parametrize(("client", "answer"), [("claude-code", ""), ("gemini", "{}\n")])
def test_a_hook_that_hangs_or_dies_in_c_leaves_an_answer_and_exits_with_zero(
    bank: Bank, tmp_path: Path, home: Path, end: str, client: str, answer: str
) -> None:
    deadline = 1.0 if "sum" in end else 60.0  # it has to come that far before its time is up
    configure(tmp_path / "project", f"[memory]\nenabled = true\n[hook]\ndeadline = {deadline}\n")
    code = (
        "import os, pathlib, sys; from memlane import Bank; from memlane.surfaces import resident; "
        f"Bank.snapshot = lambda *_, **__: {end}; resident.alone(sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, client, "session-start"],
        stdin=subprocess.DEVNULL,
        cwd=tmp_path / "project",
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, answer, "")
    assert f"{client} -: it hung or crashed, and was ended by force" in log(home)


def test_as_a_process_it_exits_with_zero_and_imports_little(bank: Bank, tmp_path: Path) -> None:
    bank.add("Deploys go out on Tuesdays after standup.", title="Deploy day", tags=["pinned"])
    bank.search("deploys")
    path = transcript(tmp_path / "t.jsonl", TWO_LINES)
    payload = {"session_id": "s", "cwd": str(tmp_path / "project"), "prompt": "When do deploys go out?"}
    code = (
        "import sys; from memlane.surfaces import hook; hook.main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    )
    for event in (*hook.EVENTS, "prompt"):  # the last one indexes what was captured
        given = json.dumps({**payload, "transcript_path": str(path)})
        command = [sys.executable, "-c", code, "claude-code", event]
        run = subprocess.run(
            command, input=given, capture_output=True, text=True, env={**os.environ, "MEMLANE_BANK": ""}
        )
        assert run.returncode == 0
        loaded = set(run.stderr.split())
        assert loaded.isdisjoint(
            {"mcp", "dataclasses", "pydantic", "click", "starlette", "uvicorn", "httpx", "anyio", "tomllib"}
        ), event
        assert ("numpy" in loaded) == (event == "prompt")
        assert loaded.isdisjoint({"numpy.ma", "memlane.core.three_way", "memlane.gate.secrets"}) or event != "prompt"
        assert "_hashlib" not in loaded or event in ("pre-compact", "session-end")  # which distil
    run = subprocess.run(
        [MEMLANE, "hook", "claude-code", "session-start"], input=json.dumps(payload), capture_output=True, text=True
    )
    assert (run.returncode, "Tuesdays" in run.stdout, run.stderr) == (0, True, "")
