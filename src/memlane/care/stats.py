"""A bank in numbers, and all damage in it. Reads every file."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from memlane.core.model import Memory, Problem
from memlane.disk import anchors, files
from memlane.lanes import NAMES, scan
from memlane.lanes.merging import undecided

if TYPE_CHECKING:
    from memlane.bank import Bank


def stats(bank: Bank) -> dict[str, Any]:
    """Counts over the whole bank and per lane; what is archived is counted apart."""
    per_lane: dict[str, dict[str, int]] = {}
    tags: Counter[str] = Counter()
    types: Counter[str] = Counter()
    damaged = 0
    for name in NAMES:
        items = list(_scan(bank, name))
        found = [item for item in items if isinstance(item, Memory)]
        damaged += len(items) - len(found)
        memories = [memory for memory in found if memory.status != "archived"]
        for memory in memories:
            tags.update(memory.tags)
            types.update([memory.type] if memory.type else [])
        size = sum(files.size_of(path) for path in {memory.file for memory in found})
        per_lane[name] = {"count": len(memories), "archived": len(found) - len(memories), "bytes": size}
    return {
        "root": os.fspath(bank.root),
        "count": sum(lane["count"] for lane in per_lane.values()),
        "archived": sum(lane["archived"] for lane in per_lane.values()),
        "lanes": per_lane,
        "tags": dict(tags.most_common()),
        "types": dict(types.most_common()),
        "problems": damaged,
        "removed": len(bank.removed()),
    }


def problems(bank: Bank) -> list[Problem]:
    """All damage found on disk, and what a merge has left in two versions."""
    found = [item for name in NAMES for item in _scan(bank, name) if isinstance(item, Problem)]
    found += anchors.problems(os.path.join(bank.root, anchors.NAME))
    return list(dict.fromkeys((*found, *bank.tombstones.problems(), *bank.replaced.problems(), *bank.left_out)))


def _scan(bank: Bank, lane: str) -> Iterator[Memory | Problem]:
    for item in scan(bank.lane(lane)):
        if isinstance(item, Problem):
            yield item
        elif why := bank.held(item):
            yield Problem(item.path, why)
        else:
            yield item
            if why := undecided(item):
                yield Problem(item.path, why)
