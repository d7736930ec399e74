"""The connections of a server over HTTP: a socket, and clients that neither stay for ever nor come in numbers.

A request has to arrive as a whole within REQUEST_TIME, and a client has to take some of its answer in each ANSWER_TIME.
Who has been answered and goes on sending, for the answer was a refusal, may send UNREAD more.
There are at most MAX_CONNECTIONS; one more takes the place of the one whose time for either ends first. A server that
is told to end takes no more connections, answers what it was asked, and then ends the streams that only wait for news.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys

import h11
import uvicorn
from sse_starlette.sse import AppStatus
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_TIME = 30.0  # seconds from the connection, or the first byte, to the last byte of a request
ANSWER_TIME = 30.0  # seconds in which a client takes at least PACE of what waits for it
PACE = 64 * 1024  # bytes
UNREAD = 32 * 1024 * 1024  # bytes: to end at once would keep clients from reading why they were refused
MAX_CONNECTIONS = 512


def opened(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 is any free one. Raises OSError when the port is taken."""
    listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    # An answer is sent in two pieces; else the second waits for the client to acknowledge the first, which takes 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def serve(app: ASGIApp, listener: socket.socket, shutdown: int) -> None:
    """Serve until SIGTERM or Ctrl-C; what is under way then has `shutdown` seconds to finish. Logs no request."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # uvicorn raises it again when everything is closed
    asked = Asked(app)
    settings = uvicorn.Config(
        asked,
        http=Connection,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # what a request says of where it came from is nobody's word
        timeout_graceful_shutdown=shutdown,
    )
    _Server(settings, asked).run(sockets=[listener])


class Asked:
    """An application that knows whether somebody waits for an answer. A GET may be a stream that waits for news.

    Once it is `ended`, whoever comes is sent away before anything is done: an answer would not reach them.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._waiting, self.ended = app, 0, False
        self.idle = asyncio.Event()
        self.idle.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self.ended:
            await Response("The server is ending.\n", 503, {"connection": "close"})(scope, receive, send)
            return
        if scope["type"] != "http" or scope["method"] == "GET":
            await self._app(scope, receive, send)
            return
        self._waiting += 1
        self.idle.clear()
        try:
            await self._app(scope, receive, send)
        finally:
            self._waiting -= 1
            if not self._waiting:
                self.idle.set()


class _Server(uvicorn.Server):
    """A server that answers what was asked before it ends the streams; else their library ends every one at once."""

    def __init__(self, settings: uvicorn.Config, asked: Asked) -> None:
        super().__init__(settings)
        self._asked = asked
        AppStatus.enable_automatic_graceful_drain = False

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # that a stream was not finished is meant so
        ending = asyncio.create_task(self._end_streams())
        try:
            await super().shutdown(sockets)
        finally:
            ending.cancel()

    async def _end_streams(self) -> None:
        while not self._asked.idle.is_set():  # something may be asked between the last answer and our turn
            await self._asked.idle.wait()
        self._asked.ended = AppStatus.should_exit = True


class Connection(H11Protocol):
    """A connection that is dropped when its client does not finish a request, or does not take the answer: uvicorn
    would wait for ever.
    """

    _deadline: asyncio.TimerHandle | None = None
    _taking: asyncio.TimerHandle | None = None  # while something of an answer waits for the client
    _left = 0  # bytes of it
    _unread = 0  # bytes of a request that came after its answer

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # so that we are told of the first byte that waits
        if len(self.connections) > MAX_CONNECTIONS:
            late = [each for each in self.connections if isinstance(each, Connection) and each._timers()]
            min(late, key=Connection._ends, default=self)._drop()
        self._expect_request()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._left = self.transport.get_write_buffer_size()
        self._taking = self.loop.call_later(ANSWER_TIME, self._expect_taken)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_taking()

    def _expect_taken(self) -> None:
        left = self.transport.get_write_buffer_size()
        if left > self._left - PACE:
            self._drop()
            return
        self._left = left
        self._taking = self.loop.call_later(ANSWER_TIME, self._expect_taken)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY:
            self._unread += len(data)
            if self._unread > UNREAD:
                self._drop()
                return
        else:
            self._unread = 0
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._expect_request()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_taking()
        super().connection_lost(exc)

    def _expect_request(self) -> None:
        if self._deadline is None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(REQUEST_TIME, self._drop)

    def _drop(self) -> None:
        self._stop_waiting()
        self._stop_taking()
        self.connections.discard(self)  # at once: many may come before the loop tells us that it is lost
        self.transport.abort()

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _stop_taking(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None

    def _timers(self) -> list[asyncio.TimerHandle]:
        return [timer for timer in (self._deadline, self._taking) if timer is not None]

    def _ends(self) -> float:
        return min(timer.when() for timer in self._timers())
