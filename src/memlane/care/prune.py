"""What the lanes' own rules would archive or delete, as a Plan, and carrying it out.

Everything can be brought back: tombstones, archives, copies in the trash.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from memlane.core.model import Plan
from memlane.disk import journal
from memlane.lanes import NAMES

if TYPE_CHECKING:
    from memlane.bank import Bank


def plan(bank: Bank, lanes: Collection[str] = ()) -> Plan:
    """What the rules of these lanes propose; of all when none is named. Writes nothing."""
    plans = [bank.lane(name).answers.prunable() for name in NAMES if not lanes or name in lanes]
    return _joined(plans)


def apply(bank: Bank, proposed: Plan) -> Plan:
    """Carry a plan out and return what was done; `undo` takes it back. What has changed meanwhile is judged again."""
    steps = {step.id: step for step in proposed.steps}
    done: list[Plan] = []
    with journal.change("prune"):
        for name in NAMES:
            if own := {id: step for id, step in steps.items() if id.startswith(f"{name}:")}:
                done.append(bank.lane(name).answers.prune(own, journal.step))
    return _joined(done)


def _joined(plans: Sequence[Plan]) -> Plan:
    steps = (step for plan in plans for step in plan.steps)
    return Plan(tuple(steps), tuple(remark for plan in plans for remark in plan.remarks))
