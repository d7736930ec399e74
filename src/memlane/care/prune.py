"""What the lanes' own rules would archive or delete, as a Plan, and carrying it out.

    layers    old reviews and sessions to the archive, issues resolved long ago out (seed 004's policy)
    vault     what `propose_deletions` names: duplicates, noise, registers that nobody updates (seed 002)
    topics    what is too many or too much for a topic file goes to its archive (seed 000)

Notes and records have no such rule. Everything can be brought back: tombstones, archives, copies in the trash.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from memlane.bank import Bank
from memlane.core.model import Plan, Step
from memlane.core.text import first_line
from memlane.history.undo import recording
from memlane.lanes.layers.entries import path_of

LANES = ("vault", "topics", "layers")
_VERBS = {
    "archived": "archive",
    "removed": "remove",
    "flagged": "look at",
    "compressed": "fold",
}  # the seed's: the plan's


def plan(bank: Bank, lanes: Sequence[str] = LANES) -> Plan:
    """What the rules of these lanes propose. Writes nothing."""
    steps: list[Step] = []
    remarks: list[str] = []
    if "vault" in lanes:
        steps += [
            Step(f"vault:{found['id']}", "delete", f"{found['reason']}: {found['detail']}", first_line(found["text"]))
            for found in bank.vault.propose_deletions()
        ]
    if "topics" in lanes:
        steps += [
            Step(entry.id, "archive", "newer entries have taken its place", entry.title)
            for entry in bank.topics.prune(dry_run=True)
        ]
    if "layers" in lanes:
        found, remarks = _layers(bank, dry_run=True)
        steps += found
    return Plan(tuple(steps), tuple(remarks))


def apply(bank: Bank, proposed: Plan) -> Plan:
    """Carry a plan out and return what was done. What has changed meanwhile is judged again, never forced.

    All entries of a topic file that are too many go together, and all that a rule says of a layer's file. `undo` takes
    it back.
    """
    wanted = {step.id: step for step in proposed.steps}
    done: list[Step] = []
    remarks: list[str] = []
    with recording(bank, "prune") as journal:
        if of_vault := [id for id in wanted if id.startswith("vault:")]:
            still = {f"vault:{found['id']}" for found in bank.vault.propose_deletions()}
            journal.step("vault", "delete")
            deleted = bank.vault.bulk_delete([id.removeprefix("vault:") for id in of_vault if id in still])["deleted"]
            done += [wanted[f"vault:{id}"] for id in deleted]
        if any(id.startswith("topics:") for id in wanted):
            entries = [entry for entry in bank.topics.prune(dry_run=True) if entry.id in wanted]
            for path in dict.fromkeys(entry.path for entry in entries):
                first = next(entry for entry in entries if entry.path == path)
                journal.step(f"topics:{first.topic}/{first.subtopic}", "archive")
                done += [wanted[entry.id] for entry in bank.topics.prune(paths=[path]) if entry.id in wanted]
        for id in [id for id in wanted if id.startswith("layers:")]:
            native = id.removeprefix("layers:")
            journal.step(id, "prune")
            found, warnings = _layers(bank, dry_run=False, paths=[os.path.join(bank.layers.root, path_of(native))])
            done += found
            remarks += warnings
    return Plan(tuple(done), tuple(remarks))


def _layers(bank: Bank, *, dry_run: bool, paths: Sequence[str] | None = None) -> tuple[list[Step], list[str]]:
    found = bank.layers.prune(dry_run=dry_run, paths=paths)
    steps = [
        Step(f"layers:{step['id']}", _VERBS.get(step["action"], step["action"]), step["reason"])
        for step in found["pruned"]
    ]
    return steps, found["warnings"]
