"""What in a bank is not as its lane's format says: damage, and values that are read but do not mean what they seem.

Reads only. Memory that is merely old is not wrong: see `ages.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memlane.care.known import Known, look
from memlane.core.model import Problem
from memlane.lanes import NAMES
from memlane.recall.address import find

if TYPE_CHECKING:
    from memlane.bank import Bank


def validate(bank: Bank, ids: Sequence[str] = (), *, lane: str | None = None) -> list[Problem]:
    """Everything that breaks a lane's rules: in the whole bank, in one lane, or in the files of these memories.

    Raises NotFound; writes nothing.
    """
    if not ids:
        with look(bank) as known:
            known.require_all()
            return [problem for name in ((lane,) if lane else NAMES) for problem in broken_rules(known, name)]
    problems: dict[Problem, None] = {}  # each once, in order
    for place in (find(bank, id) for id in ids):
        answers = place.lane.answers
        for problem in answers.format_problems([place.path]):
            if answers.is_folder or place.native in problem.why:  # one file may hold the whole lane
                problems[problem] = None
    return list(problems)


def broken_rules(known: Known, lane: str) -> list[Problem]:
    """Everything that breaks the rules of a lane, as far as they last from what is known of its files."""
    answers = known.bank.lane(lane).answers
    if not answers.rules_are_lasting:
        return list(answers.format_problems())
    return [*known.problems("rule", "undecided", lanes=(lane,), held=False), *answers.crowding()]
