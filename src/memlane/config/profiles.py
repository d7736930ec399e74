"""The profile of an agent: what prompt blocks show it. The [profile] table says it, or the agent's own YAML file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from memlane.core.errors import ConfigError, StorageError
from memlane.core.values import dataclass, fields
from memlane.disk import files


@dataclass(frozen=True, slots=True)
class Profile:
    """What one agent sees: the [profile] table, or the `memory` key of its YAML profile."""

    enabled: bool = True
    scopes: tuple[str, ...] = ()  # () shows all
    max_items: int = 20
    similarity_threshold: float = 0.70


NAMES = tuple(field.name for field in fields(Profile))


def made_of(values: dict[str, Any]) -> Profile:
    return Profile(**{**values, "scopes": tuple(values.get("scopes", Profile().scopes))})


def said_in(path: Path) -> dict[str, Any]:
    """What the `memory` key of a YAML profile says, unchecked. Raises ConfigError."""
    from memlane.core.front_matter import FrontMatterError, load_front

    try:
        memory = load_front(files.read_text(os.fspath(path), files.MAX_SIDE_BYTES)).get("memory")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.", hint="Check the path of the profile.") from error
    except StorageError as error:
        raise ConfigError(f"{path} cannot be read: {error}", hint=error.hint) from error
    except (FrontMatterError, UnicodeDecodeError):
        raise ConfigError(f"{path} is not a YAML profile.", hint="Check its indentation and quotes.") from None
    memory = {} if memory is None else memory
    if not isinstance(memory, dict) or not memory.keys() <= set(NAMES):
        raise ConfigError(f"{path}: `memory` has a key that is not known.", hint=f"It takes {', '.join(NAMES)}.")
    if isinstance(memory.get("scopes"), str):
        memory = {**memory, "scopes": [memory["scopes"]]}
    return memory
