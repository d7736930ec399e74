"""Everything that can be wrong with a bank, each with the command that mends it.

    report = examine()          reads only
    report = treat(examine())   applies the mends that can do no harm, then looks again

The checks are in `checks.py` and, where they are about one lane's format, with the lane. A mend never deletes or
rewrites a memory: it makes derived files anew, corrects modes, and removes our own temporary files.
"""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from typing import Any

from memlane import __version__
from memlane.care.checks import Check, checks
from memlane.care.inventory import Inventory, take
from memlane.config import Config, require_trust
from memlane.core.errors import InvalidInput, MemlaneError
from memlane.gate import redacted

SEVERITIES = ("error", "warning", "info")
Flags = Mapping[str, Any] | None  # settings that override the configuration


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. `fix` is the command that mends it, or a sentence where none can."""

    check: str
    severity: str
    where: str
    why: str
    fix: str
    fixable: bool = False

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Report:
    """What was found, the gravest first, and what `treat` has mended."""

    inventory: Inventory
    findings: tuple[Finding, ...]
    mended: tuple[Finding, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        return {name: sum(finding.severity == name for finding in self.findings) for name in SEVERITIES}

    def to_dict(self) -> dict[str, Any]:
        bank = self.inventory.opened
        return {
            "bank": os.fspath(bank.root) if bank else None,
            "memories": self.inventory.count,
            "versions": {
                "memlane": __version__, "python": platform.python_version(), "sqlite": sqlite3.sqlite_version,
            },
            "counts": self.counts,
            **{name: [finding.to_dict() for finding in getattr(self, name)] for name in ("findings", "mended")},
        }  # fmt: skip


def examine(
    folder: str | None = None,
    flags: Flags = None,
    *,
    only: str | None = None,
    deep: bool = False,
    more: Sequence[Check] = (),
    settings: Config | None = None,
) -> Report:
    """Run every check, and `more` that a surface brings; or `only` that one. What did not change since it was last
    looked at is known, unless `deep` asks for every byte; then the index is made anew, too, to compare it.
    `settings` are those of a bank that is open already. Changes not a byte. Raises InvalidInput when there is no such
    check.
    """
    every = (*checks(deep=deep), *more)
    if only is not None and only not in {check.name for check in every}:
        near = get_close_matches(only, [check.name for check in every], 1)
        hint = f"Did you mean {near[0]}?" if near else "Use damage, format, secrets, or what a report has in brackets."
        raise InvalidInput("There is no such check.", hint=hint)
    inventory = take(folder, flags, settings, anew=deep)
    chosen = [check for check in every if only in (None, check.name)]
    possible = [check for check in chosen if inventory.opened or not check.needs_bank]
    try:
        findings = [finding for check in possible for finding in _findings(check, inventory)]
    finally:
        inventory.close()
    return Report(inventory, tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))))


def treat(
    report: Report,
    flags: Flags = None,
    *,
    only: str | None = None,
    deep: bool = False,
    more: Sequence[Check] = (),
    settings: Config | None = None,
) -> Report:
    """Mend what can be mended without harm, and look again. What could not be mended says why."""
    todo = [finding for finding in report.findings if finding.fixable]
    if not todo:
        return report
    if report.inventory.config:
        require_trust(report.inventory.config)
    failed: dict[Finding, str] = {}
    mends = {check.name: check.mend for check in checks(deep=deep)}
    order = list(mends)
    for finding in sorted(todo, key=lambda finding: order.index(finding.check)):  # the index after what it indexes
        try:
            if mend := mends[finding.check]:
                mend(report.inventory, finding.where)
        except MemlaneError as error:
            failed[finding] = str(error)
        except OSError as error:
            failed[finding] = f"{error.strerror or error}."
    if report.inventory.opened:
        report.inventory.opened.close()
    after = examine(report.inventory.folder, flags, only=only, deep=deep, more=more, settings=settings)
    left = tuple(
        replace(finding, why=f"{finding.why}; it was not mended: {failed[finding]}") if finding in failed else finding
        for finding in after.findings
    )
    return Report(after.inventory, left, tuple(finding for finding in todo if finding not in after.findings))


def _findings(check: Check, inventory: Inventory) -> Iterator[Finding]:
    try:
        for where, why, fix in check.look(inventory):
            fixable = check.mend is not None
            yield Finding(check.name, check.severity, redacted(where), redacted(why), redacted(fix), fixable)
    except MemlaneError as error:
        yield Finding(check.name, "error", "", redacted(f"could not be checked: {error}"), redacted(error.hint))
    except OSError as error:
        why = f"could not be checked: {error.strerror or error}"
        yield Finding(check.name, "error", redacted(str(error.filename or "")), why, "Check its owner and mode.")
