"""What a server over HTTP has done, in numbers, in the text format of Prometheus.

The labels are names of tools, paths and outcomes that the server has itself: nothing that a client sent becomes one, no
name of a memory is among them, and there are never more of them than these.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mcp import types
from mcp.server import ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memlane import __version__
from memlane.surfaces.mcp.answers import CODE
from memlane.surfaces.mcp.tools import Tool

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
CONTENT = "text/plain; version=0.0.4; charset=utf-8"
KINDS = ("search", "read", "write")
_BROKEN = ("internal", "storage", "busy", "not_shared")  # codes of failures that are ours, not the caller's

Labels = tuple[tuple[str, str], ...]
Context = ServerRequestContext[Any, Any]


class Metrics:
    """The numbers of one server. `paths` are those that requests are told apart by."""

    def __init__(
        self, tools: Mapping[str, Tool], paths: Iterable[str], clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._tools, self._paths, self._clock = tools, frozenset(paths), clock
        self._requests: Counter[tuple[str, int]] = Counter()
        self._calls: Counter[tuple[str, str]] = Counter()
        self._seconds = {kind: Histogram() for kind in KINDS}
        self._under_way = 0

    async def timed(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """For `Server.middleware`: count a call of a tool, and how long it took."""
        tool = self._tools.get(str((ctx.params or {}).get("name", ""))) if ctx.method == "tools/call" else None
        if tool is None:
            return await call_next(ctx)
        with self.timing(tool) as outcomes:
            try:
                result = await call_next(ctx)
            except MCPError:
                outcomes.append("failed")  # it may not call this, or not like that
                raise
            outcomes.append(_outcome(result))
            return result

    @contextmanager
    def timing(self, tool: Tool) -> Iterator[list[str]]:
        """Count a call of a tool, and how long it took. Its outcome is to be put on the list."""
        outcomes, start = ["error"], self._clock()
        self._under_way += 1
        try:
            yield outcomes
        finally:
            self._under_way -= 1
            self._calls[tool.name, outcomes[-1]] += 1
            self._seconds[_kind(tool)].add(self._clock() - start)

    def counted(self, app: ASGIApp) -> ASGIApp:
        """The application, with its requests counted by path and status."""

        async def counting(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            path = scope["path"] if scope["path"] in self._paths else "other"

            async def noted(message: Message) -> None:
                if message["type"] == "http.response.start":
                    self._requests[path, message["status"]] += 1
                await send(message)

            await app(scope, receive, noted)

        return counting

    def text(self, now: Mapping[str, float]) -> str:
        """Everything as Prometheus reads it. `now` has what is not counted but looked up: see `GAUGES`."""
        calls = self._calls.items()
        of_kind = {kind: sum(count for (name, _), count in calls if _kind(self._tools[name]) == kind) for kind in KINDS}
        written = sum(
            count for (name, outcome), count in calls if outcome == "ok" and _kind(self._tools[name]) == "write"
        )
        refused = sum(count for (_, outcome), count in calls if outcome == "refused")
        lines = [
            *_family("memlane_info", "gauge", "The version that runs.", {(("version", __version__),): 1}),
            *_family(
                "memlane_http_requests_total",
                "counter",
                "Requests by path and status.",
                {(("path", path), ("code", str(code))): count for (path, code), count in self._requests.items()},
            ),
            *_family(
                "memlane_calls_total",
                "counter",
                "Calls of tools: ok, refused by the gate, failed by the caller's mistake, or an error of the server's.",
                {(("tool", name), ("outcome", outcome)): count for (name, outcome), count in calls},
            ),
            *_family("memlane_searches_total", "counter", "Calls that searched.", {(): of_kind["search"]}),
            *_family("memlane_writes_total", "counter", "Calls that wrote something.", {(): written}),
            *_family("memlane_refusals_total", "counter", "Calls that the gate refused.", {(): refused}),
            *_family("memlane_calls_under_way", "gauge", "Calls that are being answered.", {(): self._under_way}),
            *_histogram("memlane_call_seconds", "How long calls of tools took.", self._seconds),
        ]
        for name, help in GAUGES.items():
            if name in now:
                lines += _family(f"memlane_{name}", "gauge", help, {(): now[name]})
        return "\n".join(lines) + "\n"


GAUGES = {
    "sessions": "Sessions that are open: clients of the older revisions of the protocol have one.",
    "bank_ready": "Whether the bank opens and its index answers.",
    "sync_reachable": "Whether every remote of the bank answers.",
    "index_memories": "Memories in the index.",
    "index_bytes": "Size of the index.",
}


class Histogram:
    """How many values there were up to each bound, and their sum."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BUCKETS) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        self._counts[bisect_left(BUCKETS, value)] += 1
        self.sum += value

    def cumulative(self) -> list[tuple[str, int]]:
        """Each bound, and how many were not above it."""
        total, rows = 0, []
        for bound, count in zip((*map(repr, BUCKETS), "+Inf"), self._counts, strict=True):
            total += count
            rows.append((bound, total))
        return rows


def _outcome(result: HandlerResult) -> str:
    if isinstance(result, types.CallToolResult):
        result = {"isError": result.is_error, "_meta": result.meta}
    if not isinstance(result, dict):
        return "ok"
    return outcome(bool(result.get("isError")), (result.get("_meta") or {}).get(CODE, ""))


def outcome(failed: bool, code: str) -> str:
    """How a call ended."""
    if not failed:
        return "ok"
    return "refused" if code == "refused" else "error" if code in _BROKEN else "failed"


def _kind(tool: Tool) -> str:
    if not tool.reads:
        return "write"
    return "search" if tool.reads_index else "read"


def _family(name: str, type: str, help: str, values: Mapping[Labels, float]) -> Iterable[str]:
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {type}"
    for labels, value in sorted(values.items()):
        yield f"{name}{_written(labels)} {value}"


def _histogram(name: str, help: str, of: Mapping[str, Histogram]) -> Iterable[str]:
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} histogram"
    for kind, histogram in of.items():
        rows = histogram.cumulative()
        for bound, count in rows:
            yield f"{name}_bucket{_written((('kind', kind), ('le', bound)))} {count}"
        yield f"{name}_sum{_written((('kind', kind),))} {histogram.sum}"
        yield f"{name}_count{_written((('kind', kind),))} {rows[-1][1]}"


def _written(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels) + "}" if labels else ""
