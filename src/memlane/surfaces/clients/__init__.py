"""Connect memlane to the programs that agents run in, and take it out again without a trace.

    machine = here()
    connect(plan(CLIENTS["codex"], "user", machine, command))
    disconnect(CLIENTS["codex"], "user", machine)

A connection is a server entry and hooks in the client's own files. Only those are touched; what was there before comes
back byte for byte, unless somebody else has changed the file since. Then our entries alone are taken out.

    table        the clients side by side            machine   where their files are
    jsonc, toml  change one member of a text         wiring    our entries in a text
    record       what was there before               connection, survey
"""

from __future__ import annotations

from memlane.surfaces.clients.connection import Change, Plan, connect, disconnect, disconnection, plan, plugin
from memlane.surfaces.clients.machine import Machine, here
from memlane.surfaces.clients.status import Seen, problems, survey
from memlane.surfaces.clients.table import CLIENTS, SCOPES, Client

__all__ = [
    "CLIENTS",
    "SCOPES",
    "Change",
    "Client",
    "Machine",
    "Plan",
    "Seen",
    "connect",
    "disconnect",
    "disconnection",
    "here",
    "plan",
    "plugin",
    "problems",
    "survey",
]
