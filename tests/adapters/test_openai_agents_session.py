"""Sessions of the OpenAI Agents SDK in a bank: every clause of the protocol, alone and in a run of an agent."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents", reason="openai-agents is not installed: its sessions are not tried")

from agents import Agent, Runner, Session, SessionSettings
from agents.testing import ScriptedModel

from memlane import Bank
from memlane.adapters.openai_agents import MemlaneSession

TOKEN = "ghp_" + "R4nd0mV4lueTh4tIsN0tRealAtAll1234567"
ADVICE = "Roll the shop back with `make rollback` first.\nThen open an incident and tell Maria about it."


@pytest.fixture
def bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bank]:
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    with Bank.init(tmp_path) as bank:
        yield bank


def said(number: int) -> dict[str, Any]:
    return {"role": "user", "content": f"Message {number}"}


def answer(text: str) -> dict[str, Any]:
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }  # fmt: skip


def do(awaitable: Any) -> Any:
    async def run() -> Any:
        return await awaitable

    return asyncio.run(run())


def history(bank: Bank) -> list[Path]:
    return sorted((bank.root / "private/sessions").rglob("*.jsonl"))


# -- the protocol


def test_it_is_a_session(bank: Bank) -> None:
    session = MemlaneSession("one", bank)
    assert isinstance(session, Session)
    assert (session.session_id, session.session_settings) == ("one", SessionSettings())
    assert do(session.get_items()) == []
    assert do(session.pop_item()) is None
    do(session.clear_session())


def test_items_come_back_as_they_were_added_in_their_order(bank: Bank) -> None:
    session = MemlaneSession("one", bank)
    call = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": '{"a": "ü\\n"}', "id": "fc_1"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "😀 \u200b"}
    batches = [[said(1), call], [output], [said(1)], []]
    for batch in batches:
        do(session.add_items(batch))
    assert do(session.get_items()) == [said(1), call, output, said(1)]
    assert do(MemlaneSession("one", bank).get_items()) == [said(1), call, output, said(1)]


@pytest.mark.parametrize(
    ("setting", "limit", "expected"),
    [
        (None, None, [1, 2, 3, 4]),
        (None, 2, [3, 4]),
        (None, 9, [1, 2, 3, 4]),
        (None, 0, []),
        (None, -1, [1, 2, 3, 4]),
        (3, None, [2, 3, 4]),
        (3, 1, [4]),
        (0, None, []),
        (1, 3, [2, 3, 4]),
    ],
)
def test_a_limit_is_of_the_latest_and_a_given_one_counts_more(
    bank: Bank, setting: int | None, limit: int | None, expected: list[int]
) -> None:
    session = MemlaneSession("one", bank, session_settings=SessionSettings(limit=setting))
    do(session.add_items([said(number) for number in (1, 2, 3, 4)]))
    assert do(session.get_items(limit)) == [said(number) for number in expected]


def test_settings_may_be_a_mapping_and_are_checked(bank: Bank) -> None:
    assert MemlaneSession("one", bank, session_settings={"limit": 2}).session_settings == SessionSettings(limit=2)
    with pytest.raises(TypeError):
        MemlaneSession("one", bank, session_settings={"limitt": 2})


def test_the_last_item_is_popped_across_batches(bank: Bank) -> None:
    session = MemlaneSession("one", bank)
    do(session.add_items([said(1), said(2)]))
    do(session.add_items([said(3)]))
    assert [do(session.pop_item()) for _ in range(2)] == [said(3), said(2)]
    do(session.add_items([said(4)]))
    assert do(session.get_items()) == [said(1), said(4)]
    assert [do(session.pop_item()) for _ in range(3)] == [said(4), said(1), None]
    assert "Message" not in history(bank)[0].read_text()


def test_a_cleared_session_is_empty_and_nothing_is_left_of_it(bank: Bank) -> None:
    session, other = MemlaneSession("one", bank), MemlaneSession("two", bank)
    do(session.add_items([said(1)]))
    do(other.add_items([said(2)]))
    do(session.clear_session())
    assert (do(session.get_items()), do(other.get_items())) == ([], [said(2)])
    assert [path.name for path in history(bank)] == ["two.jsonl"]
    do(session.add_items([said(3)]))
    assert do(session.get_items()) == [said(3)]


def test_any_string_names_a_session_of_its_own(bank: Bank) -> None:
    ids = ["one", "One", "one ", "../../one", "a/b", "日本", "x" * 500, "a\nb"]
    for number, id in enumerate(ids):
        do(MemlaneSession(id, bank).add_items([said(number)]))
    assert [do(MemlaneSession(id, bank).get_items()) for id in ids] == [[said(number)] for number in range(len(ids))]


def test_a_batch_that_is_not_json_leaves_the_history_as_it_was(bank: Bank) -> None:
    session = MemlaneSession("one", bank)
    do(session.add_items([said(1)]))
    with pytest.raises(TypeError):
        do(session.add_items([said(2), {"role": "user", "content": object()}]))
    assert do(session.get_items()) == [said(1)]


def test_a_damaged_line_hides_nothing_and_is_not_popped(bank: Bank) -> None:
    session = MemlaneSession("one", bank)
    do(session.add_items([said(1)]))
    do(session.add_items([said(2)]))
    [path] = history(bank)
    path.write_text(path.read_text() + '{"id": "x", "items"\n[]\n{"id": "torn"')
    assert do(session.get_items(1)) == [said(2)]
    do(session.add_items([said(3)]))
    assert do(session.get_items()) == [said(1), said(2), said(3)]
    assert [do(session.pop_item()) for _ in range(4)] == [said(3), said(2), said(1), None]


def test_a_closed_session_does_nothing_and_leaves_the_bank_open(bank: Bank) -> None:
    session = MemlaneSession("one", bank)
    session.close()
    for call in (session.get_items, lambda: session.add_items([]), session.pop_item, session.clear_session):
        with pytest.raises(RuntimeError, match="MemlaneSession is closed"):
            do(call())
    assert bank.list() == []


def test_a_cancelled_wait_ends_when_the_items_are_stored(bank: Bank) -> None:
    session = MemlaneSession("one", bank, capture=False)

    async def cancelled() -> list[Any]:
        task = asyncio.create_task(session.add_items([said(1)]))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await session.get_items()

    assert asyncio.run(cancelled()) in ([said(1)], [])  # cancelled before it began, or whole
    do(session.add_items([said(2)]))
    assert do(session.get_items(1)) == [said(2)]


# -- many at once


def test_many_threads_add_and_pop_and_nothing_is_lost_or_popped_twice(bank: Bank) -> None:
    session = MemlaneSession("one", bank, capture=False)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: do(session.add_items([said(number), said(number)])), range(10)))
        items = do(session.get_items())
        assert [items[at] for at in range(0, 20, 2)] == [items[at] for at in range(1, 20, 2)]
        assert sorted(item["content"] for item in items) == sorted(f"Message {n}" for n in range(10) for _ in "ab")
        popped = list(pool.map(lambda _: do(session.pop_item()), range(20)))
    assert sorted(item["content"] for item in popped) == sorted(item["content"] for item in items)
    assert do(session.get_items()) == []


WRITER = """
import asyncio, sys
from memlane import Bank
from memlane.adapters.openai_agents import MemlaneSession
with Bank.open(sys.argv[1]) as bank:
    session = MemlaneSession("one", bank, capture=False)
    for number in range(10):
        asyncio.run(session.add_items([{"role": "user", "content": sys.argv[2] + str(number)}]))
"""


def test_two_processes_begin_one_session_and_nothing_is_lost(bank: Bank) -> None:
    running = [subprocess.Popen([sys.executable, "-c", WRITER, str(bank.root.parent), name]) for name in "ab"]
    assert [process.wait() for process in running] == [0, 0]
    found = [item["content"] for item in do(MemlaneSession("one", bank).get_items())]
    for name in "ab":
        assert [text for text in found if text.startswith(name)] == [f"{name}{number}" for number in range(10)]


# -- secrets, and what becomes of what was said


def test_a_secret_is_blanked_and_the_run_goes_on(bank: Bank) -> None:
    session = MemlaneSession("one", bank)
    call = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": json.dumps({"token": TOKEN})}
    do(session.add_items([{"role": "user", "content": f"My token is {TOKEN}"}, call, answer(f"Use {TOKEN}.\nNow.")]))
    first, second, third = do(session.get_items())
    assert TOKEN not in "".join(path.read_text() for path in bank.root.rglob("*") if path.suffix in (".md", ".jsonl"))
    assert first["content"].startswith("My token is [REDACTED:")
    assert json.loads(second["arguments"])["token"].startswith("[REDACTED:")
    assert third["content"][0]["text"].startswith("Use [REDACTED:")


def test_what_only_the_api_reads_stays_as_it_is(bank: Bank) -> None:
    items = [
        {"type": "reasoning", "id": f"rs_{TOKEN}", "summary": [], "encrypted_content": f"gAAAA{TOKEN}"},
        {"type": "function_call_output", "call_id": f"call_{TOKEN}", "output": "done"},
        {"role": "user", "content": [{"type": "input_image", "image_url": f"data:image/png;base64,{TOKEN}"}]},
    ]
    session = MemlaneSession("one", bank)
    do(session.add_items(items))
    assert do(session.get_items()) == items


def test_what_the_assistant_said_is_captured_and_found(bank: Bank) -> None:
    session = MemlaneSession("incident-7", bank)
    do(session.add_items([{"role": "user", "content": "The shop is down!"}, answer(ADVICE)]))
    [record] = bank.list(lane="records")
    assert (record.text.strip(), record.thread) == (ADVICE, "incident-7")
    assert [hit.memory.id for hit in bank.search("what to do when the shop is down: rollback?")] == [record.id]
    assert bank.users_word([record]) == set()
    do(session.clear_session())
    assert [memory.id for memory in bank.list()] == [record.id]


def test_forget_says_which_conversation_has_what_is_forgotten(bank: Bank) -> None:
    do(MemlaneSession("incident-7", bank).add_items([answer(ADVICE)]))
    do(MemlaneSession("other", bank).add_items([said(1)]))
    [record] = bank.list(lane="records")
    path = str(bank.root / "private/sessions/incident-7.jsonl")
    told = [left for left in bank.forget(record.id).left if left.where.endswith(".jsonl")]
    assert [(left.where, left.why, left.command) for left in told] == [
        (path, f"has words of {record.id}", f"rm {path}")
    ]


def test_without_capture_nothing_becomes_a_record(bank: Bank) -> None:
    do(MemlaneSession("one", bank, capture=False).add_items([answer(ADVICE)]))
    assert bank.list() == []


def test_history_is_no_memory_and_git_and_undo_leave_it_alone(bank: Bank) -> None:
    do(MemlaneSession("one", bank, capture=False).add_items([said(1)]))
    assert (bank.list(), bank.search("Message 1"), bank.changes().changes, bank.problems()) == ([], [], (), [])
    assert (bank.root / "private/.gitignore").read_text() == "*\n"
    assert history(bank)[0].parent.stat().st_mode & 0o077 == 0


# -- in a run


def test_an_agent_remembers_the_turns_before(bank: Bank) -> None:
    model = ScriptedModel([[answer_item("The Golden Gate Bridge.")], [answer_item("California.")]])
    agent = Agent(name="Guide", model=model)
    session = MemlaneSession("trip", bank)

    async def talk() -> list[str]:
        first = await Runner.run(agent, "What is that bridge?", session=session)
        second = await Runner.run(agent, f"In which state? My token is {TOKEN}", session=session)
        return [first.final_output, second.final_output]

    assert asyncio.run(talk()) == ["The Golden Gate Bridge.", "California."]
    items = do(session.get_items())
    assert [item["role"] for item in items] == ["user", "assistant", "user", "assistant"]
    assert TOKEN not in json.dumps(items)


def answer_item(text: str) -> Any:
    from openai.types.responses import ResponseOutputMessage

    return ResponseOutputMessage.model_validate(answer(text))
