"""`RULES`: every row of the table, the most telling first: of two that overlap, the earlier is reported."""

from __future__ import annotations

from memlane.sensitive.commands import COMMANDS
from memlane.sensitive.logins import LOGINS
from memlane.sensitive.pii import PII
from memlane.sensitive.platforms import CLOUD, LLM, REGISTRIES, SOURCE_HOSTS
from memlane.sensitive.rule import Rule
from memlane.sensitive.services import CHAT, MONEY, OBSERVE, WORK
from memlane.sensitive.shapes import HASHES, KEYS, TOKENS, UNKNOWN

RULES: tuple[Rule, ...] = (
    *KEYS, *TOKENS, *CLOUD, *SOURCE_HOSTS, *REGISTRIES, *LLM, *CHAT, *MONEY, *OBSERVE, *WORK,
    *LOGINS, *COMMANDS, *HASHES, *PII, *UNKNOWN,
)  # fmt: skip
