"""Which folder the topics are in, by the configuration: one rule for the lane alone and for a bank."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from memlane.core.errors import ConfigError

EXTERNAL = ("memory_configuration", "external_path")
OWN = ("directory_structure", "memory_path")


def configured(config: Mapping[str, Any]) -> str:
    """`memory_configuration.external_path`, else `directory_structure.memory_path`, else "". Raises ConfigError."""
    return setting(config, *EXTERNAL) or setting(config, *OWN)


def setting(config: Mapping[str, Any], table: str, key: str) -> str:
    """A path from tables, or from keys with dots."""
    section = config.get(table)
    value = section.get(key) if isinstance(section, Mapping) else config.get(f"{table}.{key}")
    if value is not None and not isinstance(value, str | os.PathLike):
        raise ConfigError(f"{table}.{key} is not a path.", hint='Write it as text: "~/memory".')
    return os.fspath(value) if value else ""
