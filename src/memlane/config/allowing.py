"""Let the gate pass what it took for a secret: `[[allow]]` in the project's memlane.toml, or in the user's own file.

Somebody at a terminal has to say so: see `memlane gate allow`. What is written here counts in a project that is
trusted; the project stays trusted with it, since it is the user who changes the file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memlane.config import trust
from memlane.config.places import user_file, user_state
from memlane.core.errors import ConfigError, InvalidInput
from memlane.core.invisible import visible
from memlane.core.text import newline_of
from memlane.core.toml import load_toml
from memlane.disk import files
from memlane.gate.fingerprints import is_fingerprint

if TYPE_CHECKING:
    from memlane.config import Config

OF_EARLIER = "is of an earlier memlane and does not count, for it can be reversed"
INSTEAD = (
    'Delete the entry; `memlane doctor --only secrets` prints its name of now, `memlane gate allow … --reason "…"`'
)


def earlier(config: Config) -> list[str]:
    """The entries that do not count any more."""
    return [name for name in config.allow if not is_fingerprint(name)]


def file_for(config: Config, *, user: bool) -> Path:
    """The file that an allowance is written to. Raises ConfigError without a home folder."""
    path = user_file() if user or config.file is None else config.file
    if path is None:
        raise ConfigError("There is no home folder for the user's own configuration.", hint="Set HOME.")
    return path


def allow(config: Config, fingerprints: Sequence[str], reason: str, *, user: bool = False) -> Path:
    """Add entries to the allow-list; return the file. Raises InvalidInput, ConfigError, StorageError."""
    reason = " ".join(visible(reason).split())
    if not reason:
        raise InvalidInput("There is no reason.", hint="Say why it may stay, for whoever reads the file next.")
    for name in fingerprints:
        if not is_fingerprint(name):
            hint = "It looks like ssn@7f3a-9c21b: `memlane gate test` and `memlane doctor --only secrets` print it."
            raise InvalidInput("That is no fingerprint.", hint=hint)
    path = file_for(config, user=user)
    is_project = path == config.file
    before = trust.read(path, follow=not is_project) if os.path.isfile(path) else b""
    if is_project and (why := trust.distrust(user_state(), path, before)):
        raise ConfigError(f"The memory of {config.project} {why}.", hint="`memlane trust` shows it and asks you.")
    text = before.decode()
    end = newline_of(text)
    for name in dict.fromkeys(fingerprints):
        if name not in config.allow:
            gap = "" if not text else end if text.endswith("\n") else end * 2
            lines = ("[[allow]]", f'fingerprint = "{name}"', f"reason = {json.dumps(reason, ensure_ascii=False)}", "")
            text += gap + end.join(lines)
    load_toml(text)
    files.make_folder(os.path.dirname(path), private=not is_project)
    files.replace(os.fspath(path), text.encode())
    if is_project:
        trust.record(user_state(), path, text.encode())
    return path
