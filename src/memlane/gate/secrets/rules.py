"""`RULES`: all rows of the table, the most specific first: of overlapping findings of one length the first is kept."""

from __future__ import annotations

from memlane.gate.secrets.commands import COMMANDS
from memlane.gate.secrets.logins import LOGINS
from memlane.gate.secrets.pii import PII
from memlane.gate.secrets.platforms import CLOUD, LLM, REGISTRIES, SOURCE_HOSTS
from memlane.gate.secrets.rule import Rule
from memlane.gate.secrets.services import CHAT, MONEY, OBSERVE, WORK
from memlane.gate.secrets.shapes import HASHES, KEYS, SPOKEN, TOKENS, UNKNOWN

RULES: tuple[Rule, ...] = (
    *KEYS, *TOKENS, *CLOUD, *SOURCE_HOSTS, *REGISTRIES, *LLM, *CHAT, *MONEY, *OBSERVE, *WORK,
    *LOGINS, *COMMANDS, *HASHES, *SPOKEN, *PII, *UNKNOWN,
)  # fmt: skip
