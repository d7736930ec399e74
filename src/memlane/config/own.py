"""The user's own bank beside a project's: where it is, whether it is read together with it, and if not, why."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from memlane.config.places import user_bank, user_file
from memlane.core.errors import ConfigError, NotEnabled

if TYPE_CHECKING:
    from memlane.config import Config


WITHHELD = "it stays with its user, and is neither read nor written from outside the project"


def under(config: Config) -> Config | str:
    """The configuration of the user's own bank, where it is read below this one; else, in words, why it is not."""
    if config.folder:
        return "a bank of the past is read alone"
    if not config["memory.user_bank"]:
        decided_by = config.sources["memory.user_bank"]
        return WITHHELD if decided_by == WITHHELD else f"memory.user_bank is false ({decided_by})"
    try:
        place = user_bank()
    except ConfigError as error:
        return str(error)
    if not os.path.isdir(place):
        return "there is none; `memlane init --user` makes one"
    if is_user_bank(config):
        return "it is this one"
    from memlane.config import load_user

    own = load_user()
    return own if own["memory.enabled"] else f"memory.enabled is not true in {user_file()}"


def own_folder() -> str:
    """The folder of the user's own bank. Raises NotEnabled when there is none."""
    place = user_bank()
    if not os.path.isdir(place):
        raise NotEnabled("You have no bank of your own yet.", hint="`memlane init --user` makes one.")
    return os.fspath(place)


def is_user_bank(config: Config) -> bool:
    """Whether this is the configuration of the user's own bank rather than of a project's."""
    with suppress(ConfigError):  # there is no home folder
        return os.path.realpath(user_bank()) == os.path.realpath(config.root)
    return False
