"""Secrets and personal numbers: `scan` finds them, `redact` takes them out, `check_pii` is the vault's guard.

Leaf package: standard library only, no file, no network. A pattern is compiled when a text first needs it.
"""

from __future__ import annotations

from memlane.gate.secrets.rule import Rule
from memlane.gate.secrets.rules import RULES
from memlane.gate.secrets.scanner import Finding, check_pii, redact, scan

__all__ = ["RULES", "Finding", "Rule", "check_pii", "redact", "scan"]
