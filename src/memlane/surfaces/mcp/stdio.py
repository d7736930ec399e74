"""Serve over standard input and output, as clients start it. Ends at the end of input, by SIGTERM and by Ctrl-C.

What was asked before the end is still answered, so that `memlane mcp < requests` works, too.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, ErrorData, JSONRPCError, JSONRPCNotification, JSONRPCRequest
from pydantic import ValidationError

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
        tasks.start_soon(_take, incoming, from_client, outgoing, due)
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


async def _take(incoming: Any, requests: ObjectSendStream[Item], outgoing: Any, due: _Due) -> None:
    """Hand on what the client sends; at its end, wait for the answers before the server hears of the end.

    What cannot be read the SDK would leave unanswered, and the client would wait for it in vain.
    """
    async with requests:
        async for item in incoming:
            refusal = _refusal(item) if isinstance(item, ValidationError) else None
            if refusal is not None:
                await outgoing.send(SessionMessage(refusal))
                continue
            due.asked(getattr(item, "message", None))
            await requests.send(item)
        await due.wait(AT_END)


def _refusal(error: ValidationError) -> JSONRPCError | None:
    """The answer to a request that is not valid, without anything of it but its number; None when it has none."""
    for one in error.errors(include_url=False, include_context=False):
        sent = one["input"]
        if one["type"] == "json_invalid":
            try:
                sent = json.loads(sent)  # takes half a character, such as a cut emoji, where the SDK does not
            except (ValueError, RecursionError):
                continue
        if isinstance(sent, dict) and isinstance(sent.get("id"), int) and "method" in sent:
            why = "The request cannot be read: it is not valid JSON-RPC, or has half a character (a lone surrogate)."
            return JSONRPCError(jsonrpc="2.0", id=sent["id"], error=ErrorData(code=INVALID_REQUEST, message=why))
    return None


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
