"""What a configuration that the user does not trust claims: that there is a memory. Nothing else of it is looked at."""

from __future__ import annotations

import re
from pathlib import Path

from memlane.config import trust
from memlane.core.errors import ConfigError
from memlane.core.toml import load_toml

_HINT = "Mend it in an editor; `memlane trust` says what is wrong with it."


def memory(path: Path, data: bytes) -> bool | ConfigError:
    """Whether a file with this content says that there is a memory, or why nobody can tell.

    The error repeats nothing of the file: it may be anybody's, and a model may read what is said of it.
    """
    try:
        said = load_toml((data or trust.read(path)).decode()).get("memory", {})
    except ConfigError as error:  # what is no plain file was not read
        return error
    except UnicodeDecodeError:
        return ConfigError(f"{path} is not UTF-8.", hint=_HINT)
    except ValueError as error:
        at = re.search(r"\(at [a-z\d, ]+\)$", str(error))
        return ConfigError(f"{path} is not valid TOML{f' {at[0]}' if at else ''}.", hint=_HINT)
    enabled = said.get("enabled", False) if isinstance(said, dict) else None
    if isinstance(enabled, bool):
        return enabled
    return ConfigError(f"{path}: memory.enabled must be true or false.", hint=_HINT)
