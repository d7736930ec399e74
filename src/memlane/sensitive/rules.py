"""`RULES`: every row of the table, the most telling first. A later row does not report what an earlier one has."""

from __future__ import annotations

from memlane.sensitive.pii import PII
from memlane.sensitive.platforms import CLOUD, LLM, REGISTRIES, SOURCE_HOSTS
from memlane.sensitive.rule import Rule
from memlane.sensitive.services import CHAT, MONEY, OBSERVE, WORK
from memlane.sensitive.shapes import HASHES, KEYS, LOGINS, UNKNOWN

RULES: tuple[Rule, ...] = (
    *KEYS, *CLOUD, *SOURCE_HOSTS, *REGISTRIES, *LLM, *CHAT, *MONEY, *OBSERVE, *WORK, *LOGINS, *HASHES, *PII, *UNKNOWN,
)  # fmt: skip
