"""Questions about the whole bank are answered by a process of their own, and whatever happens to it, answered."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from memlane.surfaces.mcp.shared_bank import SharedBank
from memlane.surfaces.ui.aside import Answer, Aside


async def _here() -> bool:
    return False


async def _gone() -> bool:
    return True


async def _count(aside: Aside) -> Answer | None:
    answer = await aside.answer("truth-count", {}, _here)
    return answer and answer._replace(body=json.loads(answer.body))


@pytest.fixture
def doubted(folder: Path) -> Path:
    (folder / ".memories" / "hollow.md").write_text("")
    return folder


def test_a_process_that_was_killed_is_started_anew_and_ends_with_the_server(doubted: Path) -> None:
    async def story() -> tuple[list[Answer | None], int]:
        aside = Aside(SharedBank(doubted))
        given = [await _count(aside)]
        assert aside.process
        aside.process.kill()
        given += [await _count(aside), await _count(aside)]
        last = aside.process.pid
        await aside.close()
        return given, last

    given, last = asyncio.run(story())
    assert given == [Answer(200, {"count": 1}), None, Answer(200, {"count": 1})]  # None: the server answers by itself
    with pytest.raises(ProcessLookupError):
        os.kill(last, 0)


def test_what_is_refused_is_a_sentence_and_a_page_that_is_gone_costs_nothing(tmp_path: Path) -> None:
    async def story() -> tuple[Answer | None, bool, Answer | None]:
        aside = Aside(SharedBank(tmp_path))
        unread = await aside.answer("truth", {}, _gone)
        was_started = aside.process is not None
        refused = await _count(aside)
        await aside.close()
        return unread, was_started, refused

    unread, was_started, refused = asyncio.run(story())
    assert (unread, was_started) == (Answer(499, b""), False)
    assert refused
    assert (refused.status, sorted(refused.body)) == (400, ["code", "hint", "message"])
