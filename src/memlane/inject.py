"""Memory as text for a prompt: the always-injected snapshot and the block that is relevant to a query.

Does not choose what is stored and does not search by itself: it asks the vault.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import Any

from memlane.errors import ConfigError
from memlane.gate import visible
from memlane.lanes.vault import TIERS, MemoryVault, Record


@dataclass(frozen=True, slots=True)
class Profile:
    """What one agent sees of the vault: the `memory` key of its profile."""

    enabled: bool = True
    scopes: tuple[str, ...] = ("shared",)
    max_items: int = 20
    similarity_threshold: float = 0.70


def load_profile(path: str | Path) -> Profile:
    """The `memory` key of a YAML profile; what it leaves out has its default. Raises ConfigError."""
    import yaml

    path = Path(path)
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.", hint="Check the path of the profile.") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
        raise ConfigError(f"{path} is not YAML.", hint="Check its indentation and quotes.") from None
    memory = found.get("memory") if isinstance(found, dict) else found
    if memory is None:
        return Profile()
    if not isinstance(memory, dict):
        raise ConfigError(
            f"{path}: memory is not a mapping.", hint=f"It takes {', '.join(field.name for field in fields(Profile))}."
        )
    return Profile(**{str(key): _setting(path, str(key), value) for key, value in memory.items()})


def _setting(path: Path, key: str, value: Any) -> Any:
    names = [field.name for field in fields(Profile)]
    if key not in names:
        raise ConfigError(f"{path}: memory has no key {key!r}.", hint=f"It takes {', '.join(names)}.")
    if key == "enabled":
        allowed, fits = "true or false", isinstance(value, bool)
    elif key == "scopes":
        value = [value] if isinstance(value, str) else value
        allowed = "a list of scope names such as [shared, orion]"
        fits = isinstance(value, list) and all(isinstance(scope, str) and scope for scope in value)
        value = tuple(value) if fits else value
    elif key == "max_items":
        allowed, fits = "a whole number from 0", isinstance(value, int) and not isinstance(value, bool) and value >= 0
    else:
        allowed = "a number from 0 to 1"
        fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    if not fits:
        raise ConfigError(f"{path}: memory.{key} has a wrong value.", hint=f"Allowed is {allowed}.")
    return value


# -- blocks


def build_snapshot_block(vault: MemoryVault, scopes: str | Sequence[str]) -> str:
    """Canon and active registers of these scopes, for every prompt; "" when there are none."""
    return vault.build_snapshot(scopes)


def build_memory_block(
    vault: MemoryVault, scopes: str | Sequence[str], max_items: int = 20, query: str | None = None
) -> str:
    """The memories of these scopes that fit the query (without one: the newest), canon first; "" when none do."""
    if query is None or not query.strip():
        found = vault.recall_memories(scope=scopes, limit=max_items)
    else:
        found = vault.search_memories(query, scope=scopes, limit=max_items)
    parts = []
    for tier in TIERS:
        of_tier = sorted((record for record in found if record.tier == tier), key=lambda record: record.category)
        if of_tier:
            parts.append(f"### {'Canon' if tier == 'canon' else 'Registers'}")
        for category, records in groupby(of_tier, key=lambda record: record.category):
            parts.append("\n".join((f"#### {_plain(category)}", "", *map(_bullet, records))))
    return "\n\n".join(("## Long-Term Memory Context", *parts)) + "\n" if parts else ""


def snapshot_block(vault: MemoryVault, profile: Profile) -> str:
    """build_snapshot_block for a profile; "" when its memory is switched off."""
    return build_snapshot_block(vault, profile.scopes) if profile.enabled else ""


def memory_block(vault: MemoryVault, profile: Profile, query: str | None = None) -> str:
    """build_memory_block for a profile; "" when its memory is switched off."""
    return build_memory_block(vault, profile.scopes, profile.max_items, query) if profile.enabled else ""


def _bullet(record: Record) -> str:
    topic = f"**{_plain(record.topic_id)}**: " if record.topic_id else ""
    tags = f" [{_plain(', '.join(record.tags))}]" if record.tags else ""
    text = visible(record.text).strip().replace("\n", "\n  ")
    return f"- {topic}{text}{tags} (scope: {_plain(record.scope)})"


def _plain(label: str) -> str:
    """A label on one line: nothing that a model could take for another line of the block."""
    return " ".join(visible(label).split())
