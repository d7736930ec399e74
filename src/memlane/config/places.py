"""Places of the user's on this machine, and environment variables that are no settings."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from memlane.core.errors import ConfigError
from memlane.disk.names import is_utf8

if TYPE_CHECKING:
    from memlane.disk.forgotten import ForgottenTexts
    from memlane.disk.written import Written

BANK = "memlane/bank"  # below the user's data folder
EARLIER = "mcp-markdown-ragdocs/memories"  # seed 003's place for it


def home() -> Path:
    """The user's home folder. Raises ConfigError where there is none; so do `user_bank` and `user_state`."""
    return expanded("~")


def user_bank() -> Path:
    """The user's own bank, for what holds in every project. An earlier one is adopted where it is."""
    data = _data()
    own, earlier = _in(data, BANK), _in(data, EARLIER)
    return earlier if os.path.isdir(earlier) and not os.path.exists(own) else own


def models() -> Path:
    """Where models are that memlane was given in a wheel."""
    return _data() / "memlane" / "models"


def earlier_user_bank() -> Path:
    """Where the user's bank was before memlane had a place of its own, and where seed 003's config.toml means it."""
    return _in(_data(), EARLIER)


def user_state() -> Path:
    """Where memlane keeps what belongs to this machine: backups of changed configurations, logs."""
    return _own_folder("XDG_STATE_HOME", "~/.local/state") / "memlane"


def require_utf8(place: Path) -> None:
    """Raise ConfigError for a place whose path cannot be written down, as the index and the journal do."""
    path = os.fspath(place)
    if not path.isascii() and not is_utf8(path):
        shown = os.fsencode(path).decode(errors="replace")
        raise ConfigError(f"{shown} has a name that is not UTF-8.", hint="Rename the folder, or keep memory elsewhere.")


def forgotten_texts(bank: Path) -> ForgottenTexts:
    """What was forgotten of a bank: a file in `user_state`, named after the bank's real path, also an earlier one."""
    from memlane.core.digests import sha256
    from memlane.disk.forgotten import FOLDER, ForgottenTexts, of_moved

    place = os.path.realpath(bank)
    try:
        folder = user_state() / FOLDER
    except ConfigError:
        return ForgottenTexts()
    path = os.path.join(folder, f"{sha256(os.fsencode(place)).hexdigest()[:32]}.jsonl")
    if os.path.isdir(folder) and not os.path.lexists(path):
        path = of_moved(folder, place) or path
    return ForgottenTexts(path, bank=place)


def databases(bank: Path) -> dict[str, Path]:
    """The databases in `user_state` that are about a bank, there or not, by the name that a backup has for them."""
    from memlane.disk.journal_place import path_of

    folder = journal_folder()
    return {"journal.db": Path(path_of(os.fspath(folder), os.path.realpath(bank)))} if folder else {}


def written() -> Written | None:
    """Which memories were written here: in `user_state`. None without a home folder."""
    from memlane.disk.written import FOLDER, Written

    try:
        return Written(user_state() / FOLDER)
    except ConfigError:
        return None


def journal_folder() -> Path | None:
    """Where the journals of all banks are: in `user_state`. None without a home folder."""
    try:
        return user_state() / "journal"
    except ConfigError:
        return None


def way_to_a_bank(here: Path, name: str) -> str:
    """What to do where there is no bank."""
    return bank_that_was(here, name) or "Run `memlane init` in your project's folder."


def bank_that_was(here: Path, name: str) -> str:
    """Where there was a bank that went with its memlane.toml, which the journal has, and what to do; else ""."""
    from memlane.disk.journal_place import path_of

    journals = journal_folder()
    if journals is None or not journals.is_dir():
        return ""
    for folder in (here, *here.parents):
        if os.path.exists(path_of(os.fspath(journals), os.path.realpath(folder / name))):
            return f"There was a bank in {folder}: `memlane init` there, then `memlane recover` shows what it held."
    return ""


def user_file() -> Path | None:
    """The user's own configuration; None when there is no home folder to look in."""
    try:
        return _own_folder("XDG_CONFIG_HOME", "~/.config") / "memlane" / "config.toml"
    except ConfigError:
        return None


def _data() -> Path:
    return _own_folder("XDG_DATA_HOME", "~/.local/share")


def mcp_token() -> str | None:
    """The token that clients of the MCP server must send; never in a file, since a project may share its files."""
    return os.environ.get("MEMLANE_MCP_TOKEN") or None


def variables(*names: str) -> dict[str, str]:
    """Those of these environment variables that are set and not empty."""
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def _own_folder(variable: str, otherwise: str) -> Path:
    """A folder of the user's by the XDG rules. They ignore a relative path, which would be in somebody's project."""
    given = os.environ.get(variable, "")
    return _folder(given, otherwise, os.environ.get("HOME"))


@cache
def _folder(given: str, otherwise: str, _home: str | None) -> Path:
    """Kept for each home folder: every search asks whether the user has a bank."""
    return Path(given) if os.path.isabs(given) else expanded(otherwise)


@cache
def _in(folder: Path, name: str) -> Path:
    return folder / name


def expanded(path: str | Path) -> Path:
    """A path with `~` as the home folder, which must not depend on the current one. Raises ConfigError."""
    try:
        found = Path(path).expanduser()
    except RuntimeError:
        found = None
    if found is None or (os.fspath(path).startswith("~") and not found.is_absolute()):
        raise ConfigError("There is no home folder for '~'.", hint="Set HOME, or write the path out.")
    return found


def absolute(path: str | Path) -> Path:
    try:
        return expanded(path).absolute()
    except FileNotFoundError:
        raise ConfigError("The current folder is gone.", hint="Change to a folder that exists.") from None
