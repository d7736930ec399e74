"""Serve the page on loopback until Ctrl-C."""

from __future__ import annotations

import logging
import mimetypes
import os
import sys
import webbrowser
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from errno import EADDRINUSE
from importlib.resources import files
from importlib.resources.abc import Traversable
from socket import socket
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from memlane.core.errors import MemlaneError
from memlane.surfaces import connections
from memlane.surfaces.mcp.shared_bank import SharedBank
from memlane.surfaces.ui import api, events
from memlane.surfaces.ui.aside import Aside
from memlane.surfaces.ui.guard import NAMES, Keys, guarded

PORT = 7417  # unless it is taken
_SHUTDOWN = 1  # seconds for open streams to finish when the server ends
_TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}


def serve(
    folder: str | None, flags: Mapping[str, Any], port: int | None, tell: Callable[[str], None], *, browser: bool
) -> None:
    """Serve until SIGTERM or Ctrl-C. `tell` is given the address, and a new one whenever that was used.

    Raises MemlaneError when the port is taken.
    """
    listener = _listener(port)
    keys = Keys(listener.getsockname()[1], tell)
    tell(keys.address)
    if browser and _has_screen():
        webbrowser.open(keys.address)
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # questions that are under way at the end are no error
    connections.serve(application(SharedBank(folder, flags), keys), listener, _SHUTDOWN)


def application(bank: SharedBank, keys: Keys) -> ASGIApp:
    """The page, what it asks for, and the guard before both."""
    assets = dict(_assets(files(__package__) / "page", "/static/"))
    start = assets.pop("/static/index.html")

    async def asset(request: Request) -> Response:
        found = assets.get(request.url.path)
        return found or Response("There is no such file.", 404)

    async def page(request: Request) -> Response:
        return start

    aside = Aside(bank)

    @asynccontextmanager
    async def serving(app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await aside.close()

    routes = [
        *events.routes(bank),
        *api.routes(bank, aside),
        Route("/static/{name:path}", asset),
        Route("/{view:path}", page),
    ]
    return guarded(Starlette(routes=routes, lifespan=serving), keys)


def _assets(folder: Traversable, at: str) -> list[tuple[str, Response]]:
    found: list[tuple[str, Response]] = []
    for each in folder.iterdir():
        if each.is_dir():
            found += _assets(each, f"{at}{each.name}/")
        else:
            ending = os.path.splitext(each.name)[1]
            kind = _TYPES.get(ending) or mimetypes.types_map.get(ending, "application/octet-stream")
            found.append((at + each.name, Response(each.read_bytes(), media_type=kind)))
    return found


def _listener(port: int | None) -> socket:
    """A socket at this port; without one at ours, or where that is taken, at any."""
    try:
        return connections.opened(NAMES[0], PORT if port is None else port)
    except OSError as error:
        if port is None and error.errno == EADDRINUSE:
            return connections.opened(NAMES[0], 0)
        why = "is taken" if error.errno == EADDRINUSE else f"cannot be used: {error.strerror}"
        raise MemlaneError(f"Port {port} {why}.", hint="Name another one with --port, or none.") from None


def _has_screen() -> bool:
    """Whether a browser has a place to open: on a terminal alone, one of text would take it over."""
    return sys.platform == "darwin" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
