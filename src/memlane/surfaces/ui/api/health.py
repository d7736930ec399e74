"""Whether all is well: what doctor finds, what the gate refused, sizes, the index, clients, and which bank this is."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from memlane import __version__, config
from memlane.bank import Bank
from memlane.care import doctor, sync
from memlane.core.dates import utc_now
from memlane.core.errors import MemlaneError
from memlane.disk import files, refusals
from memlane.history import git
from memlane.surfaces.clients.health import CHECK
from memlane.surfaces.clients.machine import here
from memlane.surfaces.clients.status import statuses
from memlane.surfaces.ui.asking import Asked, Question

_FINDINGS = 200  # that are listed
_WEEK = timedelta(days=7)


def health(bank: Bank, asked: Asked) -> dict[str, Any]:
    report = _examined(bank)
    return {
        "counts": report.counts,
        "findings": [finding.to_dict() for finding in report.findings[:_FINDINGS]],
        "fixable": sum(finding.fixable for finding in report.findings),
        "refused": _refused(bank),
        "sync": [each.to_dict() for each in sync.status(bank, waiting=False)],
        "sizes": _sizes(bank),
        "index": _index(bank),
        "clients": _clients(bank),
        "places": _places(bank),
    }


def mend(bank: Bank, asked: Asked) -> dict[str, Any]:
    """Mend what can be mended without touching a memory."""
    settings = bank.config
    done = doctor.treat(_examined(bank), more=[CHECK], settings=settings)
    return {"mended": [finding.to_dict() for finding in done.mended]}


def _examined(bank: Bank) -> doctor.Report:
    project = bank.config.project
    folder = os.fspath(project) if project and not Path.cwd().is_relative_to(project) else None
    return doctor.examine(folder, more=[CHECK], settings=bank.config)


def _refused(bank: Bank) -> list[dict[str, Any]]:
    """How often each rule refused something, the latest first."""
    try:
        found = refusals.counts(config.user_state(), bank.root)
    except MemlaneError:  # there is no home folder
        return []
    since = (utc_now() - _WEEK).date().isoformat()
    last: dict[str, str] = {}
    whole: Counter[str] = Counter()
    week: Counter[str] = Counter()
    for (day, rule), count in sorted(found.items()):
        last[rule] = day
        whole[rule] += count
        week[rule] += count if day > since else 0
    rules = sorted(last, key=lambda rule: (last[rule], rule), reverse=True)
    return [{"rule": rule, "last": last[rule], "week": week[rule], "all": whole[rule]} for rule in rules]


def _sizes(bank: Bank) -> dict[str, Any]:
    found = bank.stats()
    return {name: found[name] for name in ("lanes", "count", "archived", "removed", "problems")}


def _index(bank: Bank) -> dict[str, Any]:
    from memlane.index.health import reading

    memories = 0
    with suppress(sqlite3.Error), reading(bank.index_file) as db:  # none yet, or a damaged one, which doctor finds
        ((memories,),) = db.execute("SELECT count(*) FROM memories")
    return {
        "memories": memories,
        "bytes": files.size_of(os.fspath(bank.index_file.path)),
        "encoder": bank.config["search.encoder"],
    }


def _clients(bank: Bank) -> list[dict[str, Any]]:
    found = (status.to_dict() for status in statuses(here(bank.config.project)))
    return [status for status in found if status["installed"] or status["connected"]]


def _places(bank: Bank) -> dict[str, Any]:
    own = config.under(bank.config)
    top = git.top(bank.root)
    return {
        "version": __version__,
        "bank": os.fspath(bank.root),
        "project": os.fspath(bank.config.project) if bank.config.project else None,
        "git": os.fspath(top) if top else None,
        "own": None if isinstance(own, str) else os.fspath(own.root),
        "why_not": own if isinstance(own, str) else "",
        "journal": files.size_of(bank.journal.path) if bank.journal and bank.journal.path else 0,
    }


READS: dict[str, Question] = {"health": health}
WRITES: dict[str, Question] = {"mend": mend}
