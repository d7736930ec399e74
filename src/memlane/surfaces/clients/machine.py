"""Where the clients keep their files on this machine, and what is in them. Reads only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memlane import config
from memlane.core.errors import ConfigError
from memlane.disk import files
from memlane.surfaces.clients.jsonc import Damaged
from memlane.surfaces.clients.table import BASES


@dataclass(frozen=True, slots=True)
class Machine:
    """The folders that the table's paths start from, and the environment variables that move them."""

    home: Path
    project: Path
    state: Path  # our own folder: records and backups
    variables: Mapping[str, str] = field(default_factory=dict, hash=False)

    def path(self, template: str) -> Path:
        """The file or folder that a path of the table means here."""
        for name, (variable, otherwise) in BASES.items():
            template = template.replace("{" + name + "}", self.variables.get(variable) or otherwise)
        if template.startswith("~"):
            return self.home / template[1:].lstrip("/")
        return self.project / template

    def existing(self, templates: tuple[str, ...]) -> Path:
        """The first of several candidates that exists, else the first."""
        paths = [self.path(template) for template in templates]
        return next((path for path in paths if path.exists()), paths[0])


def here(project: Path | None = None, home: Path | None = None) -> Machine:
    """This machine. The project is the nearest folder with a memlane.toml, from `project` upwards, else `project`."""
    marker = config.find_project(project)
    project = marker.parent if marker else (project or Path.cwd()).absolute()
    variables = config.variables(*sorted({variable for variable, _ in BASES.values() if variable}))
    return Machine(home or config.home(), project, config.user_state() / "connect", variables)


def read(path: Path) -> bytes | None:
    """A file's bytes; None when it does not exist. Raises OSError, StorageError."""
    try:
        return files.read_bytes(os.fspath(path))
    except FileNotFoundError:
        return None


def read_text(path: Path) -> str | None:
    """A configuration's text; None when it does not exist. Raises ConfigError, OSError, StorageError."""
    return decoded(read(path), path)


def decoded(data: bytes | None, path: Path) -> str | None:
    """The text of a configuration. Raises ConfigError."""
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8.", hint="Save it as UTF-8; nothing was changed.") from None


def damaged(path: Path, error: Damaged) -> ConfigError:
    return ConfigError(f"{path} cannot be changed: {error}.", hint="Mend it in an editor; nothing was changed.")
