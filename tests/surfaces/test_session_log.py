"""What the user can see of sessions: `memlane log --sessions`, as the hooks write it."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest

from commands import CANARY, Ask, Run
from conftest import trusted
from memlane import Bank, NotFound
from memlane.history import sessions
from memlane.history.sessions import Item
from memlane.recall.blocks import Block
from repositories import git

SAID = {
    "role": "assistant",
    "timestamp": "2025-01-15T10:30:00Z",
    "content": "The migration fails because SQLite does not support DROP CONSTRAINT;\nthe table must be rebuilt.",
}


@pytest.fixture
def folder(home: Path) -> Path:
    return home / ".local/state/memlane/sessions"


def test_the_log_tells_what_a_session_was_given_and_what_was_kept_of_it(
    bank: Bank, ask: Ask, run: Run, tmp_path: Path
) -> None:
    git(tmp_path, "init", "-q", "-b", "trunk")
    bank.add("Deploys go out on Tuesdays after standup.", title="Deploy day", tags=["rule"])
    bank.add("The pool is limited to 10: more led to too many clients.", title="Pool", created_at="2020-01-01")
    transcript = tmp_path / "t.jsonl"
    transcript.write_text(json.dumps(SAID) + "\n")
    ask("session-start", source="startup")
    ask("prompt", prompt="ok, thanks")
    ask("prompt", "another", prompt="Why is the pool limited to\nso few clients?")
    ask("stop", transcript_path=str(transcript))
    ask("stop", transcript_path=str(transcript))
    ask("session-end", transcript_path=str(transcript))
    other, first = sessions.sessions(bank)[::-1]
    assert [(one.id, one.client, one.project, one.branch) for one in (first, other)] == [
        ("s1-the-whole-id", "claude-code", str(tmp_path), "trunk"),
        ("another", "claude-code", str(tmp_path), "trunk"),
    ]
    start = bank.snapshot(recent=5)
    (record,) = bank.list(lane="records")
    (learned,) = bank.list(tags=["unconfirmed"])
    assert [(one.event, one.prompt, one.tokens, one.given, one.captured, one.distilled) for one in first.events] == [
        (
            "session-start",
            "",
            sessions.session(bank, "s1").events[0].tokens,
            (
                Item("notes:deploy-day", "Deploy day", "Your rules"),
                Item("notes:pool", "Pool", "Also remembered"),
            ),
            (),
            (),
        ),
        ("prompt", "ok, thanks", 0, (), (), ()),
        ("stop", "", 0, (), (Item(record.id, record.title),), ()),
        ("session-end", "", 0, (), (), (Item(learned.id, learned.title),)),
    ]
    assert 0 < first.events[0].tokens <= start.tokens
    (event,) = other.events
    assert (event.prompt, event.tokens > 0) == ("Why is the pool limited to so few clients?", True)
    assert [(item.id, item.title, item.why, item.relevance is not None) for item in event.given] == [
        ("notes:pool", "Pool", "Related", True)
    ]
    listed = run("log", "--sessions").out.splitlines()
    started = f"started with 2 memories, {first.events[0].tokens} tokens"
    assert [line.split("\t")[0::2] for line in listed] == [
        ["s1-the-w", "claude-code", f"{started}; memory for 0 of 1 prompt; 1 captured; 1 distilled"],
        ["another", "claude-code", "memory for 1 of 1 prompt"],
    ]
    assert run("log", "--sessions", "-n", 1, "--json").json == [first.to_dict()]
    assert run("log", "--sessions", "s1", "--json").json == first.to_dict()
    whole = run("log", "--sessions", "s1").out.splitlines()
    assert [line.split("\t")[1:] for line in whole] == [
        ["session-start", f"given 2 memories, {first.events[0].tokens} tokens", ""],
        ["notes:deploy-day", "Your rules", "Deploy day"],
        ["notes:pool", "Also remembered", "Pool"],
        ["prompt", "given nothing: small talk", "ok, thanks"],
        ["stop", "1 captured", ""],
        [record.id, "captured", record.title],
        ["session-end", "1 distilled", ""],
        [learned.id, "distilled", learned.title],
    ]


def test_the_log_has_what_the_client_got(bank: Bank, ask: Ask, run: Run) -> None:
    bank.add("Deploys go out on Tuesdays after standup.", title="Deploy day", tags=["rule"])
    bank.add("The pool is limited to 10: more led to too many clients.", title="Pool", created_at="2020-01-01")
    start = json.loads(ask("session-start", source="startup"))
    prompt = json.loads(ask("prompt", "another", prompt="Why is the pool limited to so few clients?"))
    got = [answer["hookSpecificOutput"]["additionalContext"] for answer in (start, prompt)]
    events = [sessions.session(bank, id).events[0] for id in ("s1", "another")]
    assert [event.block for event in events] == got
    assert got[1] in run("log", "--sessions", "another", "--show").out
    assert run("log", "--sessions", "--show").code == 2


def test_a_long_block_is_kept_in_part(bank: Bank) -> None:
    sessions.note(bank.config, "prompt", "s", block=Block.of("x" * (sessions.BLOCK + 1)))
    assert sessions.session(bank, "s").events[0].block == "x" * sessions.BLOCK + "\n…"


@pytest.mark.parametrize(
    ("prompt", "why"),
    [
        ("thanks, go on", "small talk"),
        ("did you run it?", "about this moment"),
        ("what is a semaphore?", "general knowledge"),
        ("/compact keep the deploy day", "a command of the client"),
    ],
)
def test_a_prompt_that_got_nothing_says_why(bank: Bank, ask: Ask, prompt: str, why: str) -> None:
    ask("prompt", prompt=prompt)
    assert sessions.session(bank, "s1").events[0].why_nothing == why


def test_a_prompt_that_found_nothing_says_what_was_nearest(bank: Bank, ask: Ask) -> None:
    ask("prompt", "empty", prompt="When do deploys go out?")
    bank.add("Deploys go out on Tuesdays after standup.", title="Deploy day")
    for prompt in (
        "When do deploys go out?",
        "Do deploys go out on Tuesdays?",
        "the deploy script prints a coffee cup",
    ):
        ask("prompt", prompt=prompt)
    (empty,) = sessions.session(bank, "empty").events
    assert empty.why_nothing == "nothing was found"
    first, again, other = (event.why_nothing for event in sessions.session(bank, "s1").events)
    assert (first, again) == ("", "already shown: notes:deploy-day")
    assert re.fullmatch(r"nothing relevant: the best was notes:deploy-day at 0\.0\d, and 0\.09 is needed", other)


def test_a_memory_that_does_not_fit_says_so(bank: Bank) -> None:
    bank.add("Deploys go out on Tuesdays after standup.", title="Deploy day")
    block = bank.for_prompt("When do deploys go out?", budget=5)
    assert (block, block.nothing) == ("", "notes:deploy-day does not fit into 5 tokens")


def test_a_bank_has_its_own_sessions(bank: Bank, ask: Ask, run: Run, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with Bank.init(tmp_path / "other") as other:
        ask("prompt", "theirs", cwd=str(tmp_path / "other"), prompt="When?")
        assert [one.id for one in sessions.sessions(other)] == ["theirs"]
    assert sessions.sessions(bank) == []
    assert "no session has been logged here yet" in run("log", "--sessions").err
    assert run("log", "--sessions", "theirs").code == 3
    with pytest.raises(NotFound):
        sessions.session(bank, "")


def test_ids_are_shown_as_long_as_it_takes_to_tell_them_apart(bank: Bank, ask: Ask, run: Run) -> None:
    for id in ("ses_e1cbfe720ffe", "ses_e1cbfe9", "ses_f"):
        ask("prompt", id, prompt="When?")
    assert [line.split("\t")[0] for line in run("log", "--sessions").out.splitlines()] == [
        "ses_f", "ses_e1cbfe9", "ses_e1cbfe7",
    ]  # fmt: skip


def test_a_prompt_is_logged_by_its_beginning_without_secrets(bank: Bank, ask: Ask, folder: Path) -> None:
    ask("prompt", prompt=f"Use the token {CANARY} for it" + " and so on" * 50)
    (event,) = sessions.session(bank, "s1").events
    assert event.prompt.startswith("Use the token [REDACTED:github-token] for it and so on")
    assert len(event.prompt) == sessions.PROMPT
    ask("prompt", prompt="x" * (sessions.PROMPT - 20) + f" {CANARY}")  # the cut goes through it
    assert CANARY[:16] not in "".join(path.read_text() for path in folder.iterdir())


def test_without_words_the_log_has_ids_and_numbers(bank: Bank, ask: Ask, tmp_path: Path, folder: Path) -> None:
    bank.add("Deploys go out on Tuesdays after standup.", title="Deploy day")
    (tmp_path / "memlane.toml").write_text("[memory]\nenabled = true\n[hook]\nlog = false\n")
    trusted(tmp_path / "memlane.toml")
    ask("prompt", prompt="When do deploys go out?")
    (event,) = sessions.session(bank, "s1").events
    assert event.prompt == ""
    assert event.tokens > 0
    assert [(item.id, item.title, item.why) for item in event.given] == [("notes:deploy-day", "", "")]
    assert event.block == ""
    assert "eploys" not in "".join(path.read_text() for path in folder.iterdir())
    ask("prompt", prompt="When do deploys go out?")
    assert sessions.session(bank, "s1").events[1].why_nothing == ""
    assert sessions.session(bank, "s1").events[1].given == ()  # it is still known that it was shown


def test_a_log_that_grows_too_long_loses_its_older_half(
    bank: Bank, ask: Ask, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_BYTES", 2000)
    for number in range(40):
        ask("prompt", prompt=f"question number {number}")
        assert sum(path.stat().st_size for path in folder.iterdir()) < 3000
    assert sessions.session(bank, "s1").events[-1].prompt == "question number 39"
    assert [oct(path.stat().st_mode & 0o777) for path in folder.iterdir()] == ["0o600"]


def test_blocks_go_before_the_lines_that_say_what_was_shown(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_BYTES", 20_000)
    memory = bank.add("Deploys go out on Tuesdays after standup.", title="Deploy day")
    for number in range(12):
        sessions.note(bank.config, "prompt", "s", block=Block.of(f"{number} " + "x" * 2000, [memory]))
    events = sessions.session(bank, "s").events
    assert [(bool(event.block), bool(event.given)) for event in events] == [*[(False, True)] * 5, *[(True, True)] * 7]


def test_lines_that_are_no_events_are_passed_over(bank: Bank, ask: Ask, folder: Path) -> None:
    ask("prompt", prompt="one")
    (path,) = folder.iterdir()
    odd = {"bank": str(bank.root), "at": "2025-01-10", "event": "prompt", "tokens": "x", "given": [1, {"id": 2}, "x"]}
    wrong = [b"{", b"[]", b"\xff", b'{"at": 1}', json.dumps(odd | {"at": []}).encode(), json.dumps(odd).encode(), b"{"]
    path.write_bytes(path.read_bytes() + b"\n".join(wrong))
    ask("prompt", prompt="two")
    assert [event.prompt for event in sessions.session(bank, "s1").events] == ["one", "", "two"]
    (folder / "linked.jsonl").symlink_to(path)
    (folder / "old.json").write_text("[]")
    assert len(sessions.sessions(bank)) == 1


def test_what_an_older_memlane_left_goes_with_the_next_session(bank: Bank, ask: Ask, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "old.json").write_text('["notes:a"]')
    ask("prompt", prompt="one")
    assert [path.suffix for path in folder.iterdir()] == [".jsonl"]


def test_a_log_that_cannot_be_written_costs_no_answer(bank: Bank, ask: Ask, folder: Path) -> None:
    bank.add("Deploys go out on Tuesdays after standup.", title="Deploy day")
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("no folder")
    assert "Deploys go out on Tuesdays" in ask("prompt", prompt="When do deploys go out?")


def test_a_hook_that_fails_says_so(
    bank: Bank, ask: Ask, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ring(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGALRM)

    ask("stop", transcript_path=str(tmp_path / "none.jsonl"))
    monkeypatch.setattr(Bank, "for_prompt", ring)
    ask("prompt", prompt=f"When? {CANARY}")
    stop, prompt = sessions.session(bank, "s1").events
    assert (stop.event, stop.failed) == ("stop", "There is no transcript none.jsonl.")
    assert (prompt.prompt, prompt.failed) == ("When? [REDACTED:github-token]", "the time was up")
    assert run("log", "--sessions").out.split("\t")[-1] == "memory for 0 of 1 prompt; 2 failed\n"
    assert "failed: the time was up" in run("log", "--sessions", "s1").out


def test_what_is_forgotten_is_in_no_line(bank: Bank, ask: Ask, folder: Path) -> None:
    """Its id goes, and all words of a line that quotes it: a prompt may hold the text that was to be forgotten."""
    door = bank.add("The door code of the office in Leipzig is 4821.", title="Door")
    day = bank.add("Deploys go out on Tuesdays.", title="Deploy day")
    sessions.note(bank.config, "session-start", "s", block=Block.of("", [door, day]))
    sessions.note(bank.config, "prompt", "s", prompt=f"Remember: {door.text}", block=Block.of("", [day]))
    sessions.note(bank.config, "prompt", "s", prompt="What is the day?", block=Block.of("", [day]))
    bank.forget(door.id)
    events = sessions.session(bank, "s").events
    assert [(event.prompt, event.given) for event in events] == [
        ("", (Item(day.id, "Deploy day"),)),
        ("", (Item(day.id),)),
        ("What is the day?", (Item(day.id, "Deploy day"),)),
    ]
    assert "4821" not in "".join(path.read_text() for path in folder.iterdir())


def test_a_block_that_held_what_is_forgotten_goes(bank: Bank, folder: Path) -> None:
    """By its id, or by a passage of it that was shown under another name or cut out of the middle."""
    secret = "Ring twice at the side entrance. The door code of the office in Leipzig is 4821. Then wait for Ann."
    door = bank.add(secret, title="Door")
    day = bank.add("Deploys go out on Tuesdays.", title="Deploy day")
    blocks = {
        "shown": Block.of("- short [notes:door]", [door, day]),
        "named": Block.of("- see [notes:door]", [day]),
        "moved": Block.of("- 2025-01-01 … The door code of the office in Leipzig is 4821. …", [day]),
        "other": Block.of("- Deploys go out on Tuesdays.", [day]),
    }
    for session, block in blocks.items():
        sessions.note(bank.config, "prompt", session, prompt="What is it?", block=block)
    sessions.note(bank.config, "prompt", "none", block=Block.of("", nothing="already shown: notes:door"))
    bank.forget(door.id)
    left = {id: sessions.session(bank, id).events[0].block for id in blocks}
    assert left == {"shown": "", "named": "", "moved": "", "other": "- Deploys go out on Tuesdays."}
    assert sessions.session(bank, "none").events[0].why_nothing == ""
    kept = "".join(path.read_text() for path in folder.iterdir())
    assert "4821" not in kept
    assert "notes:door" not in kept


def test_a_session_is_known_by_its_whole_id_alone(bank: Bank, ask: Ask) -> None:
    ask("session-start", source="startup")
    assert [sessions.is_logged(bank, id) for id in ("s1-the-whole-id", "s1", "")] == [True, False, False]
    assert sessions.session(bank, "s1") == sessions.session(bank, "s1-the-whole-id")
