"""What an open page is told while it is open: that memories or sessions have changed, as server-sent events.

    data: {"memories": ["notes:deploy-day"], "sessions": false}

Memories whose ids are not known, such as those that an editor has saved, are told as `"*"`. A page says with `seen`
what it knows already (`now`, before it has asked for anything else); without that, everything may have changed.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from functools import partial
from typing import NamedTuple

import anyio
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from memlane import config
from memlane.bank import Bank
from memlane.core.errors import MemlaneError
from memlane.disk import notices, state
from memlane.history import sessions
from memlane.surfaces.mcp.shared_bank import SharedBank

PAUSE = 1.0  # seconds between two looks
_HERE = b": still here\n\n"  # how we learn that the page is gone


class _Seen(NamedTuple):
    cursor: str  # in the journal
    sessions: tuple[str, int] | None  # the one that was written last, and when
    files: tuple[tuple[int, int], ...]  # of each lane: how many folders it has, and when the last of them was changed


def routes(bank: SharedBank) -> list[Route]:
    async def changes(request: Request) -> StreamingResponse:
        seen = request.query_params.get("seen", "")
        return StreamingResponse(_told(bank, seen), media_type="text/event-stream")

    return [Route("/api/events", changes)]


def now(bank: Bank) -> str:
    """What can be seen of a bank at this moment."""
    return json.dumps(_look(bank))


def _known(seen: str) -> _Seen | None:
    try:
        cursor, written, files = json.loads(seen)
        return _Seen(str(cursor), written and tuple(written), tuple(map(tuple, files)))
    except (ValueError, TypeError, RecursionError):  # whoever asks has made it up
        return None


async def _told(bank: SharedBank, told: str) -> AsyncIterator[bytes]:
    yield b"retry: 2000\n\n"
    seen = _known(told)
    while True:
        try:
            now = await bank.run(_look)
            if seen is None:  # what changed before we listened is not known
                yield _event(["*"], sessions=True)
            elif now != seen:
                ids = await bank.run(partial(_ids, since=seen.cursor)) if now.cursor != seen.cursor else []
                if not ids and now.files != seen.files:
                    ids = ["*"]
                yield _event(ids, sessions=now.sessions != seen.sessions)
            else:
                yield _HERE
            seen = now
        except MemlaneError:
            seen = None  # there is no bank, or it is not trusted: the page says so when it asks
            yield _HERE
        await anyio.sleep(PAUSE)


def _event(memories: list[str], *, sessions: bool) -> bytes:
    return b"data: " + json.dumps({"memories": memories, "sessions": sessions}).encode() + b"\n\n"


def _look(bank: Bank) -> _Seen:
    """A folder changes when a file in it is made, removed or replaced, which is how most editors save."""
    return _Seen(
        bank.changes("now").cursor,
        state.latest(config.user_state() / sessions.FOLDER),
        tuple(notices.last_written(os.fspath(lane.root)) for lane in bank.present()),
    )


def _ids(bank: Bank, since: str) -> list[str]:
    found = bank.changes(since, limit=200)
    return list(dict.fromkeys(change.id for change in found.changes)) if found.complete else ["*"]
