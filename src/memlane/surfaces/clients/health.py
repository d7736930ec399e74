"""The check that doctor makes of clients' connections."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memlane.care.checks import Check, edit_command, place_of
from memlane.care.inventory import Inventory
from memlane.lanes.answers import Sign
from memlane.surfaces.clients.status import problems


def _broken(inventory: Inventory) -> Iterator[Sign]:
    for problem in problems(project=inventory.project):
        fix = re.search(r"`(memlane [^`]+)`", problem.why)
        yield place_of(problem), problem.why, fix[1] if fix else edit_command(inventory, problem.path)


CHECK = Check("clients", "warning", "a client's entry or hook for memlane does not work", _broken, needs_bank=False)
