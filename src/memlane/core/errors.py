"""Everything memlane raises.

    MemlaneError            a sentence, a code and a next step
    ├── ConfigError         a configuration file, key or value is wrong
    ├── NotEnabled          there is no bank here, or memory is switched off
    ├── NotTrusted          the project is somebody else's until you trust it; nothing was written
    ├── InvalidInput        a name, id or field that cannot be stored; also a ValueError
    ├── NotFound            no memory has this id; also a KeyError
    ├── AlreadyExists       the name is taken
    ├── Conflict            somebody else changed it meanwhile
    ├── Refused             the gate said no; also a ValueError
    └── StorageError        the disk said no: full, read-only, no permission
        └── Busy            another process has been writing it for too long

    try:
        bank.add(text)
    except memlane.Refused as refusal:
        print(refusal, refusal.hint)

A message never repeats the text that was to be stored: it may be a secret.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any


class MemlaneError(Exception):
    """Base of all errors. `code` is stable, `hint` says what to do next, `exit_code` is the command line's."""

    code = "error"
    exit_code = 1

    def __init__(self, message: str, *, hint: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return self.message

    def to_dict(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message, "hint": self.hint}


class ConfigError(MemlaneError):
    code = "config"


class NotEnabled(MemlaneError):
    code = "not_enabled"


class NotTrusted(MemlaneError):
    code = "not_trusted"


class InvalidInput(MemlaneError, ValueError):
    code = "invalid_input"
    exit_code = 2


class NotFound(MemlaneError, KeyError):
    """`near` are ids that may have been meant, the likeliest first; the hint names them."""

    code = "not_found"
    exit_code = 3

    def __init__(self, message: str, *, hint: str = "", code: str | None = None, near: Sequence[str] = ()) -> None:
        meant = f"Did you mean {', '.join(near)}?" if near else ""
        super().__init__(message, hint=f"{meant} {hint}".strip(), code=code)
        self.near = tuple(near)

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), **({"near": list(self.near)} if self.near else {})}


class AlreadyExists(MemlaneError):
    code = "already_exists"
    exit_code = 5


class Conflict(MemlaneError):
    """`version` is the one that the memory has now; None where it is gone, or nobody expected a version."""

    code = "conflict"
    exit_code = 5

    def __init__(self, message: str, *, hint: str = "", code: str | None = None, version: str | None = None) -> None:
        super().__init__(message, hint=hint, code=code)
        self.version = version

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), **({"version": self.version} if self.version else {})}


class Refused(MemlaneError, ValueError):
    """`check` names the gate's check that refused, and `rule` what it found, where the check knows several things.

    `fingerprints` are the names under which a person can allow what was found. They are slow to work out, so that they
    are when somebody asks for them.
    """

    code = "refused"
    exit_code = 4

    def __init__(
        self,
        message: str,
        *,
        check: str,
        hint: str = "",
        code: str | None = None,
        rule: str = "",
        fingerprints: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        super().__init__(message, hint=hint, code=code)
        self.check, self.rule = check, rule
        self._fingerprints = fingerprints

    @cached_property
    def fingerprints(self) -> tuple[str, ...]:
        return tuple(self._fingerprints())

    @property
    def way_to_allow(self) -> str:
        """How a person allows what was found; "" where nobody can."""
        names = " ".join(self.fingerprints)
        return f'If it is none, a person can allow it: `memlane gate allow {names} --reason "…"`.' if names else ""

    def to_dict(self) -> dict[str, Any]:
        names = {"fingerprints": list(self.fingerprints)} if self.fingerprints else {}
        hint = " ".join(filter(None, (self.hint, self.way_to_allow)))
        return {**super().to_dict(), "hint": hint, "check": self.check, **names}


class StorageError(MemlaneError):
    code = "storage"


class Busy(StorageError):
    code = "busy"
    exit_code = 5
