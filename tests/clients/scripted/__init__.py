"""A model that says what a script tells it to, behind the wire format that a client speaks. Loopback only.

    with serve(messages, Script("Two lines.\nOf text.", [Call("remember", {…})])) as model:
        …                      # the client works against model.url
    model.requests             # what it sent, in order

A request is answered with the first call of the script that it holds no result of yet; one that holds all results is
answered with the text. Whatever else a client asks for (a title, a classification) gets a short word: `main` is False
for it.

One module per wire format, all alike: `tools(request)`, `results(request)`, how many results of tools there are,
`called(tool, arguments)` and `said(text)`, the last two as (content type, body).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Protocol

Body = tuple[str, bytes]
JSON = "application/json"
SSE = "text/event-stream"
REQUEST = "memlane-request"  # Codex escapes the brackets


class Wire(Protocol):
    def tools(self, request: dict[str, Any]) -> Mapping[str, Any]: ...
    def results(self, request: dict[str, Any]) -> int: ...
    def called(self, path: str, request: dict[str, Any], tool: Any, arguments: Mapping[str, Any]) -> Body: ...
    def said(self, path: str, request: dict[str, Any], text: str) -> Body: ...


class Call(NamedTuple):
    """A tool of the client or of memlane, and what it is told."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Script:
    """What the model does: call tools, one after the other, then say the answer. `when_asked` are calls that it makes
    once a hook has asked it what to remember."""

    answer: str
    calls: Sequence[Call] = ()
    when_asked: Sequence[Call] = ()


@dataclass(frozen=True)
class Asked:
    """A request of the client. `main` when it is the conversation itself, `result` when a tool's result is in it."""

    path: str
    body: dict[str, Any]
    main: bool
    result: bool

    @property
    def text(self) -> str:
        """All of its words, as they are sent."""
        return "\n".join(_strings(self.body))


@dataclass
class Model:
    url: str = ""
    requests: list[Asked] = field(default_factory=list)

    @property
    def turns(self) -> list[Asked]:
        return [asked for asked in self.requests if asked.main]


@contextmanager
def serve(wire: Wire, script: Script) -> Iterator[Model]:
    """The scripted model on a free port, until the block ends."""
    model = Model()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.answer((JSON, b"{}"))

        def do_HEAD(self) -> None:
            self.answer((JSON, b""))

        def do_POST(self) -> None:
            request = self.read()
            offered = wire.tools(request)
            main = any("memlane" in name for name in offered)
            results = wire.results(request) if main else 0
            asked = Asked(self.path, request, main, results > 0)
            model.requests.append(asked)
            calls = [*script.calls, *(script.when_asked if REQUEST in asked.text else ())]
            if not main:
                self.answer(wire.said(self.path, request, "Noted."))
            elif results < len(calls):
                call = calls[results]
                named = (call.tool, f"memlane_{call.tool}", f"memlane__{call.tool}", f"memlane.{call.tool}")
                tool = next(tool for name, tool in offered.items() if name == call.tool or name.endswith(named[1:]))
                self.answer(wire.called(self.path, request, tool, call.arguments))
            else:
                self.answer(wire.said(self.path, request, script.answer))

        def read(self) -> dict[str, Any]:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            value = json.loads(data or b"{}")
            return value if isinstance(value, dict) else {}

        def answer(self, body: Body) -> None:
            kind, data = body
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None: ...

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that has gone away."""

    with Server(("127.0.0.1", 0), Handler) as server:
        model.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield model
        finally:
            server.shutdown()
            thread.join()


def events(*payloads: tuple[str, Any]) -> Body:
    """(name, data) as server-sent events; an event without a name has data alone."""
    lines = []
    for name, data in payloads:
        text = data if isinstance(data, str) else json.dumps(data)
        lines.append((f"event: {name}\n" if name else "") + f"data: {text}\n\n")
    return SSE, "".join(lines).encode()


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)
