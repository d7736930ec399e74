"""Serve over standard input and output. The server ends at the end of its input, on SIGTERM and on Ctrl-C.

Requests that came before the end are still answered, so `memlane mcp < requests` works. A client that talks to a server
also calls hooks: once its first request is answered, a process is started that answers them (`resident`).
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from subprocess import DEVNULL, Popen
from threading import Thread
from typing import Any

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, ErrorData, JSONRPCError, JSONRPCNotification, JSONRPCRequest
from pydantic import ValidationError

AT_END = 30.0  # seconds to wait for open answers when the input ends
AT_SIGNAL = 5.0  # the same when a signal ends the process

Item = SessionMessage | Exception


def serve(server: Server[Any], *, hooks: Callable[[], Sequence[str]]) -> None:
    """Serve until the input ends. A signal ends the process, with exit code 0 after SIGTERM and 130 after Ctrl-C."""
    try:
        anyio.run(_serve, server, hooks)
    except* BrokenPipeError:
        pass  # nobody reads the answers any more


async def _serve(server: Server[Any], hooks: Callable[[], Sequence[str]]) -> None:
    pending = _Pending()
    from_client, requests = anyio.create_memory_object_stream[Item]()
    answers, to_client = anyio.create_memory_object_stream[SessionMessage]()
    async with stdio_server() as (incoming, outgoing), anyio.create_task_group() as tasks:
        tasks.start_soon(_exit_on_signal, pending)
        tasks.start_soon(_forward_requests, incoming, from_client, outgoing, pending)
        tasks.start_soon(_forward_answers, to_client, outgoing, pending)
        tasks.start_soon(_wait_for_hooks, pending, hooks)
        await server.run(requests, answers, server.create_initialization_options())
        tasks.cancel_scope.cancel()


class _Pending:
    """The requests that are not answered yet."""

    def __init__(self) -> None:
        self._ids: set[Any] = set()
        self._none = anyio.Event()
        self._none.set()
        self.first = anyio.Event()  # set when something is answered

    def received(self, message: Any) -> None:
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


async def _forward_requests(incoming: Any, requests: ObjectSendStream[Item], outgoing: Any, pending: _Pending) -> None:
    """Pass on what the client sends. When its input ends, wait for open answers before the server learns of the end.

    A request that cannot be parsed is answered here: the SDK would drop it, and the client would wait in vain.
    """
    async with requests:
        async for item in incoming:
            refusal = _refusal(item) if isinstance(item, ValidationError) else None
            if refusal is not None:
                await outgoing.send(SessionMessage(refusal))
                continue
            pending.received(getattr(item, "message", None))
            await requests.send(item)
        await pending.wait(AT_END)


def _refusal(error: ValidationError) -> JSONRPCError | None:
    """The answer to an invalid request, which repeats nothing but the request's id; None when there is no id."""
    for detail in error.errors(include_url=False, include_context=False):
        sent = detail["input"]
        if detail["type"] == "json_invalid":
            try:
                sent = json.loads(sent)  # accepts half a character, such as a cut emoji; the SDK does not
            except (ValueError, RecursionError):
                continue
        if isinstance(sent, dict) and isinstance(sent.get("id"), int) and "method" in sent:
            why = "The request cannot be read: it is not valid JSON-RPC, or has half a character (a lone surrogate)."
            return JSONRPCError(jsonrpc="2.0", id=sent["id"], error=ErrorData(code=INVALID_REQUEST, message=why))
    return None


async def _forward_answers(answers: ObjectReceiveStream[SessionMessage], outgoing: Any, pending: _Pending) -> None:
    async with outgoing:
        async for item in answers:
            await outgoing.send(item)
            if not isinstance(item.message, JSONRPCRequest | JSONRPCNotification):
                pending.answered(item.message.id)
                pending.first.set()


async def _wait_for_hooks(pending: _Pending, hooks: Callable[[], Sequence[str]]) -> None:
    """Start the process that answers hooks. It ends when its input does: however this one ends, that ends with it.

    A thread waits for it. asyncio would end it with this server, and says on standard error that it does not know the
    process where both find it ended at the same moment.
    """
    await pending.first.wait()
    command = hooks()
    if not command:
        return
    reading, _ = os.pipe()
    try:
        process = Popen(command, stdin=reading, stdout=DEVNULL, stderr=DEVNULL)  # noqa: S603 - our own program
        Thread(target=process.wait, daemon=True).start()
    except OSError:
        pass  # there are too many processes; hooks answer by themselves
    finally:
        os.close(reading)


async def _exit_on_signal(pending: _Pending) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for received in signals:
            await pending.wait(AT_SIGNAL)
            sys.stderr.flush()
            # A thread is blocked reading the input, and only input can wake it: there is no other way out.
            os._exit(0 if received == signal.SIGTERM else 130)
