"""Whether a server lives, whether it is ready, and its numbers: `/healthz`, `/readyz`, `/metrics`.

The first two say nothing that a stranger may not know, and take no token: what starts and stops servers has none. The
numbers are for whoever has a token for the whole bank, for programs on this machine, or for everybody if asked for.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from anyio import Lock, fail_after
from mcp.server import Server
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from memlane.bank import Bank
from memlane.core.errors import MemlaneError
from memlane.surfaces.mcp.auth import access_of
from memlane.surfaces.mcp.metrics import CONTENT, Metrics
from memlane.surfaces.mcp.shared_bank import SharedBank

ALIVE, READY, METRICS = "/healthz", "/readyz", "/metrics"
KEPT = 2.0  # seconds that an answer is kept: whoever asks often must not keep the bank busy
PATIENCE = 5.0  # seconds that the bank has to answer
_LOCAL = ("127.0.0.1", "::1")
_LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")


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

    def routes(self) -> list[Route]:
        return [Route(ALIVE, self.alive), Route(READY, self.ready), Route(METRICS, self.metrics)]

    async def alive(self, request: Request) -> Response:
        return JSONResponse({"alive": True}, headers=_NO_STORE)

    async def ready(self, request: Request) -> Response:
        why = await self._look()
        return JSONResponse({"ready": not why, **({"why": why} if why else {})}, 503 if why else 200, headers=_NO_STORE)

    async def metrics(self, request: Request) -> Response:
        if not self._may_see(request):
            hint = "Send a token for the whole bank, ask from this machine, or start the server with --metrics open."
            return JSONResponse({"error": "forbidden", "error_description": hint}, 403, headers=_NO_STORE)
        why = await self._look()
        sessions = len(self._server.session_manager._server_instances)  # the SDK has no other word for it
        now = {"sessions": sessions, "bank_ready": int(not why), **({} if why else self._index)}
        return PlainTextResponse(self._metrics.text(now), media_type=CONTENT, headers=_NO_STORE)

    def _may_see(self, request: Request) -> bool:
        user = request.scope.get("user")
        if self._everybody or (isinstance(user, AuthenticatedUser) and access_of(user.access_token).scopes is None):
            return True
        host = request.headers.get("host", "").rpartition(":")[0] or request.headers.get("host", "")
        local = request.client is not None and request.client.host in _LOCAL
        return self._direct and local and host in _LOCAL_NAMES and "x-forwarded-for" not in request.headers

    async def _look(self) -> str:
        """Why the server is not ready, in words that tell strangers nothing; "" when it is."""
        async with self._looking:
            if self._clock() < self._looked + KEPT:
                return self._why
            why, said = "", ""
            try:
                with fail_after(PATIENCE):
                    self._index = await self._bank.run(_index)
            except TimeoutError:
                why = "The bank does not answer in time."
            except MemlaneError as error:
                why, said = "The bank cannot be used.", f" {error} {error.hint}".rstrip()
            except Exception as error:
                why, said = "The bank cannot be used.", f" {type(error).__name__}"
            if why != self._why:  # who runs the server is told the rest
                print(f"memlane: {f'not ready. {why}{said}' if why else 'ready again.'}", file=sys.stderr, flush=True)
            self._why, self._looked = why, self._clock()
            return why


_NO_STORE = {"cache-control": "no-store"}


def _index(bank: Bank) -> dict[str, float]:
    """The size of the index, as it is: nothing is indexed for it."""
    index = bank.index
    asked = "SELECT (SELECT count(*) FROM memories), page_count * page_size FROM pragma_page_count, pragma_page_size"
    ((memories, size),) = index.ask(lambda: index.rows(asked), look=False)
    return {"index_memories": memories, "index_bytes": size}
