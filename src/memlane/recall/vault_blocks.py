"""Prompt blocks of the vault alone, in the Markdown of the vault's own format (seed 002).

`memlane.recall.blocks` writes the blocks of a whole bank.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from memlane.lanes.vault.record import TIERS, Record, list_item, one_line

if TYPE_CHECKING:
    from memlane.config import Profile
    from memlane.lanes.vault.store import MemoryVault


def build_snapshot_block(vault: MemoryVault, scopes: str | Sequence[str] | None) -> str:
    """Canon and active registers of these scopes (None: of all), for every prompt; "" when there are none."""
    return vault.build_snapshot(scopes)


def build_memory_block(
    vault: MemoryVault, scopes: str | Sequence[str] | None, max_items: int = 20, query: str | None = None
) -> str:
    """The memories of these scopes (None: of all) that fit the query (without one: the newest), canon first; "" when
    none do.
    """
    if query is None or not query.strip():
        found = vault.recall_memories(scope=scopes, limit=max_items)
    else:
        found = vault.search_memories(query, scope=scopes, limit=max_items)
    parts = []
    for tier in TIERS:
        records = sorted((record for record in found if record.tier == tier), key=lambda record: record.category)
        if records:
            parts.append(f"### {'Canon' if tier == 'canon' else 'Registers'}")
        for category, group in groupby(records, key=lambda record: record.category):
            parts.append("\n".join((f"#### {one_line(category)}", "", *map(_bullet, group))))
    return "\n\n".join(("## Long-Term Memory Context", *parts)) + "\n" if parts else ""


def snapshot_block(vault: MemoryVault, profile: Profile) -> str:
    """build_snapshot_block for a profile; "" when its memory is switched off."""
    return build_snapshot_block(vault, profile.scopes or None) if profile.enabled else ""


def memory_block(vault: MemoryVault, profile: Profile, query: str | None = None) -> str:
    """build_memory_block for a profile; "" when its memory is switched off."""
    return build_memory_block(vault, profile.scopes or None, profile.max_items, query) if profile.enabled else ""


def _bullet(record: Record) -> str:
    topic = f"**{one_line(record.topic_id)}**: " if record.topic_id else ""
    tags = f" [{one_line(', '.join(record.tags))}]" if record.tags else ""
    return f"- {topic}{list_item(record.text)}{tags} (scope: {one_line(record.scope)})"
