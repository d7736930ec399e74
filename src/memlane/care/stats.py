"""A bank in numbers, and all damage in it: from what is known of its files."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from memlane.care.known import Known, look
from memlane.core.model import Problem
from memlane.disk import anchors
from memlane.history.judging import told
from memlane.lanes import NAMES

if TYPE_CHECKING:
    from memlane.bank import Bank


def stats(bank: Bank) -> dict[str, Any]:
    """Counts over the whole bank and per lane; what is archived is counted apart; and what sessions were told of it."""
    with look(bank) as known:
        known.require_all()
        counts = _counts(known)
        size = _sizes(known)
        damaged = sum(1 for _ in known.problems("undecided"))
    tags: Counter[str] = Counter()
    types: Counter[str] = Counter()
    totals: Counter[tuple[str, bool]] = Counter()
    for (lane, archived, type, names), count in counts.items():
        totals[lane, archived] += count
        if not archived:
            types[type or ""] += count
            for tag in json.loads(names):
                tags[tag] += count
    del types[""]
    per_lane = {
        name: {"count": totals[name, False], "archived": totals[name, True], "bytes": size[name]} for name in NAMES
    }
    return {
        "root": os.fspath(bank.root),
        "count": sum(lane["count"] for lane in per_lane.values()),
        "archived": sum(lane["archived"] for lane in per_lane.values()),
        "lanes": per_lane,
        "tags": _most_first(tags),
        "types": _most_first(types),
        "problems": damaged,
        "removed": len(bank.removed()),
        "told": told(bank),
    }


def _counts(known: Known) -> Counter[tuple[str, bool, str, str]]:
    """How many memories there are of each lane, archived or not, type and tags, without those that are held back."""
    labels = "SELECT lane, status IS 'archived', type, tags"
    rows = known.rows(f"{labels}, count(*) FROM entries GROUP BY 1, 2, 3, 4")
    counts = Counter({(lane, bool(archived), *rest): count for lane, archived, *rest, count in rows})
    for held in known.held:
        for lane, archived, *rest in known.rows(f"{labels} FROM entries WHERE path = ? AND id = ?", *held):
            counts[lane, bool(archived), *rest] -= 1
    return +counts


def _sizes(known: Known) -> Counter[str]:
    """The bytes of each lane's files, of those that have memories."""
    without = {path for (path,) in known.rows("SELECT path FROM looked WHERE path NOT IN (SELECT path FROM entries)")}
    held = Counter(path for path, _ in known.held)
    for path, count in held.items():
        if known.rows("SELECT count(*) FROM entries WHERE path = ?", path) == [(count,)]:
            without.add(path)
    sizes: Counter[str] = Counter()
    for path, (lane, info) in known.files.items():
        if path not in without:
            sizes[lane] += info.st_size
    return sizes


def _most_first(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def days(bank: Bank) -> dict[str, int]:
    """How many memories each day has brought, by the days of UTC; those that are archived or held back not counted."""
    with look(bank) as known:
        known.require_all()
        rows = known.rows("SELECT date(created, 'unixepoch'), path, id FROM entries WHERE status IS NOT 'archived'")
        held = set(known.held)
    return dict(sorted(Counter(day for day, *which in rows if day and tuple(which) not in held).items()))


def problems(bank: Bank) -> list[Problem]:
    """All damage found on disk, and what a merge has left in several versions."""
    with look(bank) as known:
        known.require_all()
        found = list(known.problems("undecided"))
    found += anchors.problems(os.path.join(bank.root, anchors.NAME))
    return list(dict.fromkeys((*found, *bank.tombstones.problems(), *bank.replaced.problems(), *bank.left_out)))
