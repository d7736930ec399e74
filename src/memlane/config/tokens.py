"""Who may use the server of a bank: names, what each may do, and a hash of the token, never the token itself.

`tokens.json` in the user's configuration folder, readable by the user alone. It is replaced as a whole under a lock, so
that two commands lose nothing of each other, and read again when it has changed: a server knows of a token, and that it
was revoked, with the next request.

    {"/srv/team/.memories": {"ann": {"right": "write", "scopes": ["billing"], "made": …, "expires": …, "hash": "9f…"}}}

A token is for one bank. What was revoked stays without its hash: who revokes the last one does not want everybody in.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from memlane.config.places import user_file
from memlane.core.access import RIGHTS, Access
from memlane.core.choosing import scope_given
from memlane.core.dates import iso, moment, utc_now
from memlane.core.errors import AlreadyExists, ConfigError, InvalidInput, NotFound
from memlane.core.patterns import lazily
from memlane.core.values import dataclass
from memlane.disk import files

NAME = "tokens.json"
PREFIX = "mlt_"
DAYS, MOST_DAYS = 90, 3650
_NAMES = lazily(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
_LARGE = 16 * 1024 * 1024  # bytes: more is no file of ours
_loaded: dict[str, tuple[tuple[int, ...], dict[str, dict[str, dict[str, Any]]]]] = {}  # with what the file was like


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token. `state` is active, expired or revoked."""

    access: Access
    made: datetime
    expires: datetime
    state: str

    def to_dict(self) -> dict[str, Any]:
        scopes = None if self.access.scopes is None else list(self.access.scopes)
        return {
            "name": self.access.name, "right": self.access.right, "scopes": scopes, "made": iso(self.made),
            "expires": iso(self.expires), "state": self.state,
        }  # fmt: skip


def add(bank: Path, access: Access, days: int = DAYS) -> str:
    """Make a token for a bank and return it: nobody can see it again. Raises InvalidInput, AlreadyExists, StorageError.

    A name that was revoked, or has expired, is free.
    """
    if not _NAMES.fullmatch(access.name):
        raise InvalidInput(
            "That is no name for a token.", hint="Use letters, digits and . _ @ + -, at most 64, such as ann@laptop."
        )
    if access.right not in RIGHTS:
        raise InvalidInput("There is no such right.", hint=f"Use one of: {', '.join(RIGHTS)}.")
    if access.scopes is not None and not all(map(str.strip, access.scopes or ("",))):
        raise InvalidInput("A scope is empty.", hint="Name it, such as billing or team/*.")
    if any("*" in scope[:-1] for scope in access.scopes or ()):
        raise InvalidInput("A * stands for the rest of a name, at its end.", hint="Write it like team/*.")
    for scope in access.scopes or ():
        scope_given(scope)
    if not 1 <= days <= MOST_DAYS:
        raise InvalidInput(f"A token lasts from 1 to {MOST_DAYS} days.", hint=f"{DAYS} is the default.")
    token = PREFIX + secrets.token_urlsafe(32)
    now = utc_now()

    def added(known: dict[str, Any]) -> None:
        if access.name in known and _token(access.name, known[access.name]).state == "active":
            raise AlreadyExists(
                f"There is a token of {access.name} already.", hint=f"`memlane token revoke {access.name}` ends it."
            )
        known[access.name] = {
            "right": access.right,
            "scopes": None if access.scopes is None else list(access.scopes),
            "made": iso(now),
            "expires": iso(now + timedelta(days=days)),
            "hash": _hash(token),
        }

    _change(bank, added)
    return token


def revoke(bank: Path, name: str) -> None:
    """End a token, now. Raises NotFound, StorageError."""

    def ended(known: dict[str, Any]) -> None:
        if not known.get(name, {}).get("hash"):
            raise NotFound("There is no token of that name.", hint="`memlane token list` shows the names.")
        known[name] = {**known[name], "hash": ""}

    _change(bank, ended)


def listed(bank: Path) -> list[Token]:
    """The tokens of a bank by name, with those that were revoked or have expired."""
    return [_token(name, entry) for name, entry in sorted(_of(bank).items())]


def known(bank: Path, token: str) -> Token | None:
    """What is known of a token that is good for this bank now."""
    digest = _hash(token)
    for name, entry in _of(bank).items():
        if secrets.compare_digest(entry["hash"], digest):
            found = _token(name, entry)
            return found if found.state == "active" else None
    return None


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def _token(name: str, entry: Mapping[str, Any]) -> Token:
    made, ends = moment(entry["made"]), moment(entry["expires"])
    scopes = None if entry["scopes"] is None else tuple(entry["scopes"])
    now = utc_now()
    state = "revoked" if not entry["hash"] else "active" if ends and ends > now else "expired"
    return Token(Access(name, entry["right"], scopes), made or now, ends or now, state)


def _path() -> str:
    place = user_file()
    if place is None:
        raise ConfigError("There is no home folder for tokens.", hint="Set HOME or XDG_CONFIG_HOME.")
    return os.path.join(place.parent, NAME)


def _of(bank: Path) -> Mapping[str, dict[str, Any]]:
    return _load(_path()).get(os.path.realpath(bank), {})


def _change(bank: Path, change: Any) -> None:
    path = _path()
    folder = os.path.dirname(path)
    files.make_folder(folder, private=True)
    with files.locked(folder):
        every = {place: dict(entries) for place, entries in _load(path).items()}
        change(every.setdefault(os.path.realpath(bank), {}))
        old = os.umask(0o077)
        try:
            files.replace(path, json.dumps(every, indent=1).encode())
        finally:
            os.umask(old)
        os.chmod(path, 0o600)


def _load(path: str) -> Mapping[str, dict[str, dict[str, Any]]]:
    """What the file says. Raises ConfigError where it is not the user's own, open to others, or not ours: nobody must
    get in, nor be thrown away with the next change.
    """
    try:
        info = os.stat(path, follow_symlinks=False)
        stamp = (info.st_dev, info.st_ino, info.st_uid, info.st_mode, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
        if (
            path in _loaded and _loaded[path][0] == stamp
        ):  # it is only ever replaced, and another file has another number
            return _loaded[path][1]
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return {}
    except OSError:
        raise _unusable(path, "cannot be read") from None
    with os.fdopen(fd, "rb") as file:
        own = os.fstat(fd)
        if own.st_uid not in (os.geteuid(), 0) or own.st_mode & 0o077:
            raise _unusable(path, "is open to other users of this machine")
        try:
            found = json.loads(file.read(_LARGE))
        except ValueError:
            raise _unusable(path, "is damaged") from None
    if not isinstance(found, dict) or not all(_is_bank(entries) for entries in found.values()):
        raise _unusable(path, "is damaged")
    _loaded[path] = stamp, found
    return found


def _unusable(path: str, why: str) -> ConfigError:
    return ConfigError(f"{path} {why}, so that no token counts.", hint="Mend it (chmod 600), or delete it.")


def _is_bank(entries: Any) -> bool:
    return isinstance(entries, dict) and all(_is_entry(entry) for entry in entries.values())


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or entry.get("right") not in RIGHTS:
        return False
    scopes = entry.get("scopes", "")
    some = isinstance(scopes, list) and scopes and all(isinstance(scope, str) and scope for scope in scopes)
    return bool(scopes is None or some) and all(
        isinstance(entry.get(name), str) for name in ("made", "expires", "hash")
    )
