"""Secrets and personal numbers: `scan` finds them, `redact` takes them out, `check_pii` is the vault's guard.

Leaf package: standard library only, no file, no network. A pattern is compiled when a text first needs it.
"""

from __future__ import annotations

from memlane.sensitive.rule import Rule
from memlane.sensitive.rules import RULES
from memlane.sensitive.scanner import Finding, check_pii, fingerprint, redact, scan

__all__ = ["RULES", "Finding", "Rule", "check_pii", "fingerprint", "redact", "scan"]
