"""TOML, read within limits that keep a hostile file from blocking the parser."""

from __future__ import annotations

from typing import Any

MAX_TOML = 256 * 1024  # characters of a file
MAX_DOTS = 1000  # in one line: Python's parser takes minutes for a key of many parts


def load_toml(source: str) -> dict[str, Any]:
    """Parse a configuration. Raises ValueError for broken TOML, and for a file that is too large, wide or deep."""
    import tomllib

    if len(source) > MAX_TOML:
        raise ValueError(f"it is larger than {MAX_TOML // 1024} KiB")
    if any(line.count(".") > MAX_DOTS for line in source.split("\n")):
        raise ValueError(f"a line has more than {MAX_DOTS:,} dots")
    try:
        return tomllib.loads(source)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
