"""Which clients are here, which are connected, and what is wrong with their connections. Reads only."""

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
from memlane.surfaces.clients import backups as records
from memlane.surfaces.clients import wiring
from memlane.surfaces.clients.connection import targets
from memlane.surfaces.clients.jsonc import Damaged
from memlane.surfaces.clients.machine import Machine, decoded, here, load
from memlane.surfaces.clients.table import CLIENTS, SERVER, Client
from memlane.surfaces.clients.wiring import PLUGIN_MARK


@dataclass(frozen=True, slots=True)
class Seen:
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


def survey(machine: Machine) -> list[Seen]:
    """Every client that memlane knows, installed or not. A file that cannot be read counts as not connected."""
    found = []
    for client in CLIENTS.values():
        installed = machine.path(client.folder).is_dir() or any(map(shutil.which, client.programs))
        connected = tuple(scope for scope in client.servers if _is_connected(client, scope, machine))
        paths = tuple(wanted.path for wanted in targets(client, "user", machine, "memlane", True))
        found.append(Seen(client, installed, connected, paths))
    return found


def _is_connected(client: Client, scope: str, machine: Machine) -> bool:
    try:
        return _server(client, machine.existing(client.servers[scope])) is not None
    except (Damaged, MemlaneError, OSError):
        return False


def problems(home: Path | None = None, project: Path | None = None) -> list[Problem]:
    """What is wrong with the connections of this machine and project: for `memlane doctor`. Reads only.

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
                known = records.load(machine.state, records.name_of(client.name, scope, machine.project))
                missing = "plugin" if client.handler is None else "hooks"
                for why in _hook_problems(client, path, command, known is not None and known.hooks):
                    yield Problem(path, f"the {missing} of {client.title} {why}; run {again}")
        except Damaged as error:
            if SERVER.encode() in (load(path) or b""):
                yield Problem(path, f"{client.title}'s configuration is damaged: {error}", error.line)
        except MemlaneError as error:
            yield Problem(path, f"{client.title}'s configuration cannot be read: {error}")
        except OSError as error:
            yield Problem(path, f"{client.title}'s configuration cannot be read: {error.strerror or error}")
    if connected and client.plugins and _has_plugin(client, machine):
        why = f"{client.title} has memlane as a plugin as well, so every hook runs twice"
        yield Problem(connected[0], f"{why}; run `memlane disconnect {client.name}`")
    if len(connected) > 1:
        why = f"{client.title} is connected for the user and for the project"
        yield Problem(connected[1], f"{why}; run `memlane disconnect {client.name} --project`")


def _has_plugin(client: Client, machine: Machine) -> bool:
    path = machine.path(client.hooks["user"])
    try:
        plugins = wiring.at(wiring.read(decoded(load(path), path) or "", path), (client.plugins,))
    except (Damaged, MemlaneError, OSError):
        return False
    return isinstance(plugins, dict) and any(plugins[name] is True for name in plugins if name.startswith(f"{SERVER}@"))


def _server(client: Client, path: Path) -> str | None:
    """The command of our entry among a client's servers; None when there is none. Raises Damaged, ConfigError."""
    return wiring.command_of(wiring.entry(decoded(load(path), path), client, path))


def _hook_problems(client: Client, path: Path, command: str, expected: bool) -> Iterator[str]:
    """Hooks that are missing, or run something else than the server's command. None at all is a choice."""
    data = load(path)
    if client.handler is None:
        if data is None and expected:
            yield "is gone"
        if data and data.startswith(PLUGIN_MARK.encode()) and json.dumps(command).encode() not in data:
            yield f"runs another memlane than {command}"
        return
    ours = list(wiring.our_hooks(wiring.at(wiring.read(decoded(data, path) or "", path), ("hooks",))))
    missing = [event for event, _ in client.events if event not in {at[0] for at, _ in ours if at}]
    if missing and (ours or expected):
        yield f"are missing for {', '.join(missing)}"
    for other in sorted({str(wiring.hook_command(handler)) for _, handler in ours} - {command}):
        yield f"run {other}, but its server is {command}"
