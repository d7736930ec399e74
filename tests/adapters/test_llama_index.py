"""The memory block of LlamaIndex over a bank, in a `Memory` as an agent has it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed: its memory block is not tried")

from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory

from memlane import Bank
from memlane.adapters.llama_index import MemlaneMemoryBlock


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Bank]:
    with Bank.init(tmp_path) as bank:
        yield bank


def memory(bank: Bank, **given: int) -> Memory:
    return Memory.from_defaults(
        session_id="s1", memory_blocks=[MemlaneMemoryBlock(bank=bank)], tokenizer_fn=str.split, **given
    )


def test_what_the_bank_knows_of_the_last_question_is_in_the_prompt(bank: Bank) -> None:
    bank.add("Ann likes oolong tea.")
    bank.add("Deploys go out on Tuesdays.")

    async def run() -> list[ChatMessage]:
        chat = memory(bank)
        await chat.aput(ChatMessage(role="user", content="Which tea does Ann like?"))
        return await chat.aget()

    system, question = asyncio.run(run())
    assert "Ann likes oolong tea." in (system.content or "")
    assert "Tuesdays" not in (system.content or "")
    assert question.content == "Which tea does Ann like?"


def test_nothing_asked_nothing_said(bank: Bank) -> None:
    bank.add("Ann likes oolong tea.")
    assert asyncio.run(MemlaneMemoryBlock(bank=bank).aget([])) == ""


def test_what_falls_out_of_the_chat_is_captured_with_its_session(bank: Bank) -> None:
    advice = "Roll the shop back with `make rollback` first.\nThen open an incident and tell Maria about it."

    async def run() -> None:
        chat = memory(bank, token_limit=60, token_flush_size=20)
        for number in range(8):
            await chat.aput(ChatMessage(role="user", content=f"The shop is down, says customer number {number}!"))
            await chat.aput(ChatMessage(role="assistant", content=f"{advice} (case {number})"))

    asyncio.run(run())
    records = bank.list(lane="records")
    assert records
    assert {record.thread for record in records} == {"s1"}
    assert all(advice in record.text for record in records)
