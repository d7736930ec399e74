"""Whether a server lives, whether it is ready, and its numbers: `/healthz`, `/readyz`, `/metrics`.

The first two say nothing that a stranger may not know, and take no token: what starts and stops servers has none. The
numbers are for whoever has a token for the whole bank, for programs on this machine, or for everybody if asked for.

A server whose remote cannot be reached still answers from its own copy, as every other one does: it is ready, and says
so. Who wants it to be taken out then asks `/readyz?sync`.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from anyio import Lock, fail_after, to_thread
from mcp.server import Server
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from memlane.bank import Bank
from memlane.care.sync import state as states
from memlane.core.errors import MemlaneError
from memlane.exchange import remotes
from memlane.surfaces.mcp.auth import access_of
from memlane.surfaces.mcp.metrics import CONTENT, Metrics
from memlane.surfaces.mcp.shared_bank import SharedBank

ALIVE, READY, METRICS = "/healthz", "/readyz", "/metrics"
KEPT = 2.0  # seconds that an answer is kept: whoever asks often must not keep the bank busy
REMOTE_KEPT = 15.0  # the same of remotes that are reached: they are asked over a network
REMOTE_AGAIN = 1.0  # seconds after which one that is not is asked again
REMOTE_WAIT = 0.5  # seconds that whoever asks waits for remotes: what asks servers for their state gives up after one
PATIENCE = 5.0  # seconds that the bank has to answer
_LOCAL = ("127.0.0.1", "::1")
_LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")
T = TypeVar("T")
_PROXIED = {"forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"}


class Health:
    """The state of a server. `everybody`: its numbers are for all.

    A server behind a proxy is asked everything from this machine: then `direct` is false, and only a token counts.
    """

    def __init__(
        self,
        server: Server[Any],
        bank: SharedBank,
        metrics: Metrics,
        *,
        direct: bool,
        everybody: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server, self._bank, self._metrics = server, bank, metrics
        self._direct, self._everybody, self._clock = direct, everybody, clock
        self._looking = Lock()
        self._looked = -KEPT
        self._why = ""
        self._index: dict[str, float] = {}
        self._root: Path | None = None
        self._asked = -REMOTE_KEPT
        self._asking: Future[tuple[bool | None, str]] | None = None
        self._reached: bool | None = None  # None where there is no remote

    def routes(self) -> list[Route]:
        return [Route(ALIVE, self.alive), Route(READY, self.ready), Route(METRICS, self.metrics)]

    async def alive(self, request: Request) -> Response:
        return JSONResponse({"alive": True}, headers=_NO_STORE)

    async def ready(self, request: Request) -> Response:
        why, reached = await self._look()
        if not why and reached is False and "sync" in request.query_params:
            why = "The remote cannot be reached."
        state = {"ready": not why, **({"why": why} if why else {})}
        shared = {} if reached is None else {"sync": "reached" if reached else "not reached"}
        return JSONResponse({**state, **shared}, 503 if why else 200, headers=_NO_STORE)

    async def metrics(self, request: Request) -> Response:
        if not self._may_see(request):
            here = ", ask from this machine" if self._direct else ""
            hint = f"Send a token for the whole bank{here}, or start the server with --metrics open."
            return JSONResponse({"error": "forbidden", "error_description": hint}, 403, headers=_NO_STORE)
        why, reached = await self._look()
        sessions = len(self._server.session_manager._server_instances)  # the SDK has no other word for it
        now = {"sessions": sessions, "bank_ready": int(not why), **({} if why else self._index)}
        if reached is not None:
            now["sync_reachable"] = int(reached)
        return PlainTextResponse(self._metrics.text(now), media_type=CONTENT, headers=_NO_STORE)

    def _may_see(self, request: Request) -> bool:
        user = request.scope.get("user")
        access = access_of(user.access_token) if isinstance(user, AuthenticatedUser) else None
        if self._everybody or (access and access.may("read") and access.scopes is None):
            return True
        host = request.headers.get("host", "").rpartition(":")[0] or request.headers.get("host", "")
        local = request.client is not None and request.client.host in _LOCAL
        return self._direct and local and host in _LOCAL_NAMES and _PROXIED.isdisjoint(request.headers)

    async def _look(self) -> tuple[str, bool | None]:
        """Why the bank cannot be used, in words that tell strangers nothing, and whether its remotes are reached."""
        async with self._looking:
            if self._clock() >= self._looked + KEPT:
                why, said = await self._bank_state()
                if why != self._why:  # who runs the server is told the rest
                    _say(f"not ready. {why}{said}" if why else "ready again.")
                self._why, self._looked = why, self._clock()
            if self._root is not None:
                await self._ask_remotes(self._root)
            return self._why, self._reached

    async def _ask_remotes(self, root: Path) -> None:
        """Find out whether remotes are reached. While they do not answer, what was known of them counts."""
        if self._asking is None:
            if self._clock() < self._asked + (REMOTE_AGAIN if self._reached is False else REMOTE_KEPT):
                return
            self._asking = _begun(_remotes, root)
        try:
            reached, said = await asyncio.wait_for(asyncio.wrap_future(self._asking), REMOTE_WAIT)
        except TimeoutError:
            if self._reached is None and await to_thread.run_sync(_has_remotes, root):
                self._reached = False
            return
        if reached != self._reached and (said or self._reached is False):
            _say(said or "the remote is reached again.")
        self._reached, self._asked, self._asking = reached, self._clock(), None

    async def _bank_state(self) -> tuple[str, str]:
        try:
            with fail_after(PATIENCE):
                self._root, self._index = await self._bank.run(_index)
        except TimeoutError:
            return "The bank does not answer in time.", ""
        except MemlaneError as error:
            return "The bank cannot be used.", f" {_told(error)}"
        except Exception as error:
            return "The bank cannot be used.", f" {type(error).__name__}"
        return "", ""


_NO_STORE = {"cache-control": "no-store"}
_NOTHING = ".memlane/nothing"  # a file that no remote has: asking for it is the least that can be asked


def _index(bank: Bank) -> tuple[Path, dict[str, float]]:
    """Where the bank is, and the size of its index, as it is: nothing is indexed for it."""
    index = bank.index
    asked = "SELECT (SELECT count(*) FROM memories), page_count * page_size FROM pragma_page_count, pragma_page_size"
    ((memories, size),) = index.ask(lambda: index.rows(asked), look=False)
    return bank.root, {"index_memories": memories, "index_bytes": size}


def _remotes(root: Path) -> tuple[bool | None, str]:
    """Whether every remote of a bank answers, None where it has none; and what is wrong, for who runs the server."""
    try:
        chosen = _chosen(root)
        for each in chosen:
            with closing(remotes.opened(each.url)) as remote:
                remote.get(_NOTHING, each.scopes[0], 1)
    except MemlaneError as error:
        return False, _told(error)
    except Exception as error:  # a driver's own: whatever it is, the server has to say how it is
        return False, f"the remote cannot be asked: {type(error).__name__}."
    return (True if chosen else None), ""


def _has_remotes(root: Path) -> bool:
    try:
        return bool(_chosen(root))
    except MemlaneError:
        return True


def _chosen(root: Path) -> list[states.Settings]:
    with states.opened(root) as state:
        return state.remotes() if state else []


def _begun(work: Callable[[Path], T], root: Path) -> Future[T]:
    """Work that raises nothing, begun in a thread of its own, which keeps nobody from ending the process."""
    future: Future[T] = Future()

    future.set_running_or_notify_cancel()
    Thread(target=lambda: future.set_result(work(root)), daemon=True).start()
    return future


def _told(error: MemlaneError) -> str:
    return f"{str(error).rstrip('.')}. {error.hint}".rstrip()


def _say(line: str) -> None:
    print(f"memlane: {line}", file=sys.stderr, flush=True)
