"""What in a bank is not as its lane's format says: damage, and values that are read but do not mean what they seem.

Reads only. Memory that is merely old is not wrong: see `ages.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memlane.core.model import Problem
from memlane.lanes import NAMES
from memlane.lanes.answers import Progress
from memlane.recall.address import find

if TYPE_CHECKING:
    from memlane.bank import Bank


def validate(
    bank: Bank, ids: Sequence[str] = (), *, lane: str | None = None, progress: Progress = iter
) -> list[Problem]:
    """Everything that breaks a lane's rules: in the whole bank, in one lane, or in the files of these memories.

    `progress` is handed the files of each lane and hands them on. Raises NotFound; writes nothing.
    """
    if not ids:
        names = (lane,) if lane else NAMES
        return [problem for name in names for problem in bank.lane(name).answers.format_problems(progress=progress)]
    problems: dict[Problem, None] = {}  # each once, in order
    for place in (find(bank, id) for id in ids):
        answers = place.lane.answers
        for problem in answers.format_problems([place.path]):
            if answers.is_folder or place.native in problem.why:  # one file may hold the whole lane
                problems[problem] = None
    return list(problems)
