"""Connect memlane to the programs that agents run in, and take it out again without a trace.

    machine = here()
    connect(plan(CLIENTS["codex"], "user", machine, command))
    disconnect(CLIENTS["codex"], "user", machine)

A connection is a server entry, and usually hooks, in the client's own configuration files. Nothing else in those files
is touched. Disconnecting restores them byte for byte; a file that somebody has edited since only loses our entries.

    table        one row per client; says how to add one
    machine      where the clients' files are on this machine
    jsonc, toml  change one member of a text
    wiring       our entries in a text: find, put in, take out
    backups      the files as they were before
    connection   plan, connect, disconnect
    status       what is installed, connected, or broken
"""

from __future__ import annotations

from memlane.surfaces.clients.connection import Plan, connect, disconnect, disconnection, plan, plugin
from memlane.surfaces.clients.machine import Machine, here
from memlane.surfaces.clients.status import problems, statuses
from memlane.surfaces.clients.table import CLIENTS, SCOPES, Client

__all__ = [
    "CLIENTS",
    "SCOPES",
    "Client",
    "Machine",
    "Plan",
    "connect",
    "disconnect",
    "disconnection",
    "here",
    "plan",
    "plugin",
    "problems",
    "statuses",
]
