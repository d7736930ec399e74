"""Serve over standard input and output, as clients start it. Ends at the end of input, by SIGTERM and by Ctrl-C.

What was asked before the end is still answered, so that `memlane mcp < requests` works, too.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCNotification, JSONRPCRequest

AT_END = 30.0  # seconds for answers that are still due when the input ends
AT_SIGNAL = 5.0  # and when the process is told to end

Item = SessionMessage | Exception


def serve(server: Server[Any]) -> None:
    """Serve until the input ends. A signal ends the process: 0 after SIGTERM, 130 after Ctrl-C."""
    try:
        anyio.run(_serve, server)
    except* BrokenPipeError:
        pass  # nobody reads the answers any more


async def _serve(server: Server[Any]) -> None:
    due = _Due()
    from_client, requests = anyio.create_memory_object_stream[Item]()
    answers, to_client = anyio.create_memory_object_stream[SessionMessage]()
    async with stdio_server() as (incoming, outgoing), anyio.create_task_group() as tasks:
        tasks.start_soon(_end_by_signal, due)
        tasks.start_soon(_take, incoming, from_client, due)
        tasks.start_soon(_give, to_client, outgoing, due)
        await server.run(requests, answers, server.create_initialization_options())
        tasks.cancel_scope.cancel()


class _Due:
    """The requests that are not answered yet."""

    def __init__(self) -> None:
        self._ids: set[Any] = set()
        self._none = anyio.Event()
        self._none.set()

    def asked(self, message: Any) -> None:
        if isinstance(message, JSONRPCRequest):
            self._ids.add(message.id)
            if self._none.is_set():
                self._none = anyio.Event()
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self.answered((message.params or {}).get("requestId"))

    def answered(self, id: Any) -> None:
        if isinstance(id, str | int):
            self._ids.discard(id)
        if not self._ids:
            self._none.set()

    async def wait(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self._none.wait()


async def _take(incoming: Any, requests: ObjectSendStream[Item], due: _Due) -> None:
    """Hand on what the client sends; at its end, wait for the answers before the server hears of the end."""
    async with requests:
        async for item in incoming:
            due.asked(getattr(item, "message", None))
            await requests.send(item)
        await due.wait(AT_END)


async def _give(answers: ObjectReceiveStream[SessionMessage], outgoing: Any, due: _Due) -> None:
    async with outgoing:
        async for item in answers:
            await outgoing.send(item)
            if not isinstance(item.message, JSONRPCRequest | JSONRPCNotification):
                due.answered(item.message.id)


async def _end_by_signal(due: _Due) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for received in signals:
            await due.wait(AT_SIGNAL)
            sys.stderr.flush()
            # A thread waits for input, and nothing but input can wake it: there is no other way out.
            os._exit(0 if received == signal.SIGTERM else 130)
