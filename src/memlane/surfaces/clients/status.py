"""Which clients are installed, which are connected, and what is wrong with their connections. Reads only."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memlane.core.errors import MemlaneError
from memlane.core.model import Problem
from memlane.surfaces.clients import backups, wiring
from memlane.surfaces.clients.connection import targets
from memlane.surfaces.clients.jsonc import Damaged
from memlane.surfaces.clients.machine import Machine, here, read, read_text
from memlane.surfaces.clients.table import CLIENTS, SERVER, Client
from memlane.surfaces.clients.wiring import PLUGIN_MARK


@dataclass(frozen=True, slots=True)
class Status:
    """A client on this machine: whether it is installed, and in which scopes memlane is connected."""

    client: Client
    installed: bool
    connected: tuple[str, ...]
    files: tuple[Path, ...]  # what `memlane connect` would write

    def to_dict(self) -> dict[str, Any]:
        return {
            "client": self.client.name,
            "title": self.client.title,
            "installed": self.installed,
            "connected": list(self.connected),
            "files": [str(path) for path in self.files],
        }


def statuses(machine: Machine) -> list[Status]:
    """Every client of the table, installed or not. A file that cannot be read counts as not connected."""
    rows = []
    for client in CLIENTS.values():
        installed = machine.path(client.folder).is_dir() or any(map(shutil.which, client.programs))
        connected = tuple(scope for scope in client.servers if _is_connected(client, scope, machine))
        paths = tuple(target.path for target in targets(client, "user", machine, "memlane", True))
        rows.append(Status(client, installed, connected, paths))
    return rows


def _is_connected(client: Client, scope: str, machine: Machine) -> bool:
    try:
        return _server(client, machine.existing(client.servers[scope])) is not None
    except (Damaged, MemlaneError, OSError):
        return False


def problems(home: Path | None = None, project: Path | None = None) -> list[Problem]:
    """What is wrong with the connections of this machine and project, for `memlane doctor`. Reads only.

    A client without an entry of ours has no problems. Each sentence names the command that helps, where one does.
    """
    machine = here(project, home)
    return [problem for client in CLIENTS.values() for problem in _problems(client, machine)]


def _problems(client: Client, machine: Machine) -> Iterator[Problem]:
    connected = []
    for scope in client.servers:
        path = machine.existing(client.servers[scope])
        try:
            command = _server(client, path)
            if command is None:
                continue
            connected.append(path)
            again = f"`memlane connect {client.name}{' --project' if scope == 'project' else ''}`"
            if shutil.which(command) is None:
                why = "is not executable" if os.path.exists(command) else "is not there"
                yield Problem(path, f"{client.title} runs {command}, which {why}; run {again}")
            if scope in client.hooks:
                path = machine.path(client.hooks[scope])
                saved = backups.load(machine.state, backups.name_of(client.name, scope, machine.project))
                kind = "plugin" if client.handler is None else "hooks"
                for why in _hook_problems(client, path, command, saved.hooks):
                    yield Problem(path, f"the {kind} of {client.title} {why}; run {again}")
        except Damaged as error:
            if SERVER.encode() in (read(path) or b""):
                yield Problem(path, f"{client.title}'s configuration is damaged: {error}", error.line)
        except (MemlaneError, OSError) as error:
            why = getattr(error, "strerror", None) or str(error)
            yield Problem(path, f"{client.title}'s configuration cannot be read: {why}")
    if connected and client.plugins and _has_plugin(client, machine):
        why = f"{client.title} has memlane as a plugin as well, so every hook runs twice"
        yield Problem(connected[0], f"{why}; run `memlane connect {client.name} --remove`")
    if len(connected) > 1:
        why = f"{client.title} is connected for the user and for the project"
        yield Problem(connected[1], f"{why}; run `memlane connect {client.name} --remove --project`")


def _has_plugin(client: Client, machine: Machine) -> bool:
    path = machine.path(client.hooks["user"])
    try:
        plugins = wiring.read(read_text(path) or "", path).get(client.plugins)
    except (Damaged, MemlaneError, OSError):
        return False
    return isinstance(plugins, dict) and any(plugins[name] is True for name in plugins if name.startswith(f"{SERVER}@"))


def _server(client: Client, path: Path) -> str | None:
    """The command of our entry among a client's servers; None without one. Raises Damaged, MemlaneError, OSError."""
    return wiring.command_of(wiring.entry(read_text(path), client, path))


def _hook_problems(client: Client, path: Path, command: str, expected: bool) -> Iterator[str]:
    """Hooks that are missing, or that run something other than the server's command, or in the background.

    Having no hooks at all is a choice, unless they are `expected`.
    """
    if client.handler is None:
        data = read(path)
        if data is None and expected:
            yield "is gone"
        if data and data.startswith(PLUGIN_MARK.encode()) and json.dumps(command).encode() not in data:
            yield f"runs another memlane than {command}"
        return
    ours = wiring.hooks_in(read_text(path) or "", path)
    missing = [event for event, _ in client.events if event not in {place[0] for place, _ in ours if place}]
    if missing and (ours or expected):
        yield f"are missing for {', '.join(missing)}"
    if any(handler.get("async") for _, handler in ours):
        yield "run in the background, where they cannot ask the agent what to remember"
    for other in sorted({str(wiring.hook_command(handler)) for _, handler in ours} - {command}):
        yield f"run {other}, but its server is {command}"
