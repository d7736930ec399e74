"""What connecting or disconnecting a client changes, as a plan, and carrying it out.

Everything is worked out before anything is written, so that a damaged file stops it all. Written: the client's files,
the record of what was there before, and its backups.
"""

from __future__ import annotations

import difflib
import json
import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memlane.core.errors import AlreadyExists, ConfigError, InvalidInput
from memlane.disk import files
from memlane.gate import redacted
from memlane.surfaces.clients import backups as records
from memlane.surfaces.clients import wiring
from memlane.surfaces.clients.backups import Kept, Record, digest
from memlane.surfaces.clients.jsonc import Damaged
from memlane.surfaces.clients.machine import Machine, damaged, decoded, load
from memlane.surfaces.clients.table import SERVER, Client
from memlane.surfaces.clients.wiring import PLUGIN_MARK, Foreign, Wanted

_PATIENCE = 30  # seconds for a client's own command


@dataclass(frozen=True, slots=True)
class Change:
    """One file: its bytes before and after; None where there is no file."""

    path: Path
    what: str
    before: bytes | None
    after: bytes | None

    @property
    def how(self) -> str:
        if self.before == self.after:
            return "unchanged"
        return "create" if self.before is None else "remove" if self.after is None else "write"

    def diff(self) -> str:
        """What changes, for people to look at; what looks like a secret in the lines around it is covered."""
        before, after = ((data or b"").decode(errors="replace") for data in (self.before, self.after))
        lines = difflib.unified_diff(
            before.splitlines(keepends=True),
            after.splitlines(keepends=True),
            os.fspath(self.path) if self.before is not None else "/dev/null",
            os.fspath(self.path) if self.after is not None else "/dev/null",
        )
        ended = (line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)
        return redacted("".join(ended))

    def to_dict(self) -> dict[str, Any]:
        return {"path": str(self.path), "what": self.what, "how": self.how}


@dataclass(frozen=True, slots=True)
class Plan:
    """What connecting or disconnecting a client does. `vendor` is the client's own command that is tried first."""

    client: Client
    scope: str
    machine: Machine
    changes: tuple[Change, ...]
    wanted: tuple[Wanted, ...] = ()
    vendor: tuple[str, ...] = ()
    replace: bool = False
    notes: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return any(change.how != "unchanged" for change in self.changes)

    def to_dict(self) -> dict[str, Any]:
        return {
            "client": self.client.name,
            "scope": self.scope,
            "changed": self.changed,
            "files": [change.to_dict() for change in self.changes],
            "vendor": shlex.join(self.vendor) or None,
            "notes": list(self.notes),
        }


# -- connecting


def plan(
    client: Client, scope: str, machine: Machine, command: str, *, hooks: bool = True, replace: bool = False
) -> Plan:
    """What connecting would change. Reads only.

    Raises ConfigError for a damaged file, AlreadyExists for an entry of our name that is not ours (unless `replace`),
    InvalidInput where the client has no such scope.
    """
    if scope not in client.servers:
        raise InvalidInput(
            f"{client.title} has no configuration of its own for a project.", hint=f"memlane connect {client.name}"
        )
    aims = targets(client, scope, machine, command, hooks)
    changes = []
    for target in aims:
        before = load(target.path)
        try:
            text = wiring.put(decoded(before, target.path), target, client, replace=replace)
        except Damaged as error:
            raise damaged(target.path, error) from None
        except Foreign as error:
            raise AlreadyExists(
                f"{target.path} has {error}.", hint="Take it out or rename it; --replace puts memlane's in its place."
            ) from None
        changes.append(Change(target.path, target.what, before, text.encode()))
    vendor = _vendor(client, scope, command, changes[0]) if client.vendor else ()
    notes = tuple(note for note in client.notes if hooks or "hook" not in note)
    if not hooks and _has_hooks(client, scope, machine):
        notes = (f"The hooks are still there; `memlane disconnect {client.name}` first to be without them.", *notes)
    return Plan(client, scope, machine, tuple(changes), tuple(aims), vendor, replace, notes)


def connect(plan: Plan) -> Plan:
    """Carry a plan out: keep what is there, then let the client add its entry, or write it. Returns what was done."""
    if not plan.changed:
        return plan
    client, machine = plan.client, plan.machine
    name = records.name_of(client.name, plan.scope, machine.project)
    known = records.load(machine.state, name)
    planned = {change.path for change in plan.changes}
    others = [kept for kept in known.files if Path(kept.path) not in planned] if known else []
    kept, backups = [], {}
    for change in plan.changes:
        base = _without(change.path, change.before, client, machine, known)
        earlier = known.kept(change.path) if known else None
        backup = f"{name}-{digest(bytes(change.path))[:8]}-{change.path.name}.bak" if base is not None else None
        if backup and base is not None:
            backups[backup] = base
        folders = earlier.folders if earlier else _missing_folders(change.path)
        kept.append(Kept(os.fspath(change.path), backup, digest(change.after or b""), folders))
    hooks = any(wanted.hooks or wanted.plugin for wanted in plan.wanted) or (known is not None and known.hooks)
    records.save(machine.state, name, Record(hooks, (*others, *kept)), backups)
    notes = (*_ask_vendor(plan), *plan.notes)
    done = [_write(wanted, change, plan) for wanted, change in zip(plan.wanted, plan.changes, strict=True)]
    final = [
        Kept(item.path, item.backup, digest(change.after or b""), item.folders)
        for item, change in zip(kept, done, strict=True)
    ]
    records.save(machine.state, name, Record(hooks, (*others, *final)), {})
    return Plan(client, plan.scope, machine, tuple(done), plan.wanted, plan.vendor, plan.replace, notes)


def _write(wanted: Wanted, change: Change, plan: Plan) -> Change:
    """Put our entries into a file as it is now: the client may just have written it."""
    before = load(wanted.path)
    text = wiring.put(decoded(before, wanted.path), wanted, plan.client, replace=plan.replace)
    if text.encode() != before:
        files.replace(os.fspath(wanted.path), text.encode())
    return Change(change.path, change.what, change.before, text.encode())


def targets(client: Client, scope: str, machine: Machine, command: str, hooks: bool) -> list[Wanted]:
    """Our entries by file; the one with the server comes first."""
    server = machine.existing(client.servers[scope])
    entry = client.entry(command)
    if not hooks or scope not in client.hooks:
        return [Wanted(server, entry)]
    place = machine.path(client.hooks[scope])
    if client.handler is None:
        return [Wanted(server, entry), Wanted(place, plugin=plugin(command))]
    handlers = []
    for event, ours in client.events:
        handlers.append((event, client.handler(event, shlex.join([command, "hook", client.name, ours]))))
    if place == server:
        return [Wanted(server, entry, tuple(handlers))]
    return [Wanted(server, entry), Wanted(place, hooks=tuple(handlers), fresh=client.fresh)]


def plugin(command: str) -> str:
    """The plugin file that hands opencode's events to memlane."""
    source = Path(__file__).with_name("opencode.js").read_text(encoding="utf-8")
    return PLUGIN_MARK + "\n" + source.replace('"{command}"', json.dumps(command))


def _has_hooks(client: Client, scope: str, machine: Machine) -> bool:
    """Whether hooks of ours are in the client's file, from an earlier time."""
    if scope not in client.hooks:
        return False
    path = machine.path(client.hooks[scope])
    try:
        text = decoded(load(path), path) or ""
        if client.handler is None:
            return text.startswith(PLUGIN_MARK)
        return any(wiring.our_hooks(wiring.at(wiring.read(text, path), ("hooks",))))
    except (Damaged, ConfigError):
        return False


def _vendor(client: Client, scope: str, command: str, change: Change) -> tuple[str, ...]:
    """The client's own command that adds the entry; () when it is not installed or there is an entry to change."""
    program = shutil.which(client.programs[0]) if scope == "user" and client.vendor else None
    if program is None or client.vendor is None:
        return ()
    if wiring.entry(decoded(change.before, change.path), client, change.path) is not None:
        return ()
    return (program, *(command if word == "{command}" else word for word in client.vendor.add.split()))


def _ask_vendor(plan: Plan) -> tuple[str, ...]:
    """Run the client's own command. A result that lost or moved anything else is undone, and we write instead."""
    if not plan.vendor or plan.client.vendor is None:
        return ()
    client, change = plan.client, plan.changes[0]
    worked = _run(plan.vendor)
    after = load(change.path)
    if plan.client.vendor.lives or after == change.before:
        return () if worked else (f"`{client.programs[0]} mcp add` did not work; memlane wrote the entry itself.",)
    try:
        rest = _without(change.path, after, client, plan.machine, None, change.before)
    except ConfigError:
        rest = None
    if worked and (rest == change.before or (change.before is None and rest is not None and not rest.strip(b"{} \n"))):
        return ()
    if change.before is None:
        files.remove(os.path.realpath(change.path))
    else:
        files.replace(os.fspath(change.path), change.before)
    return (f"`{client.programs[0]} mcp add` changed more than its entry; memlane undid that and wrote it itself.",)


def _run(command: tuple[str, ...]) -> bool:
    """Whether the client's own program ended well."""
    try:
        done = subprocess.run(  # noqa: S603 - the program the user has installed, without a shell
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


# -- disconnecting


def disconnection(client: Client, scope: str, machine: Machine) -> Plan:
    """What disconnecting would change. Reads only. Raises ConfigError for a damaged file."""
    known = records.load(machine.state, records.name_of(client.name, scope, machine.project))
    paths = {wanted.path: wanted.what for wanted in targets(client, scope, machine, "memlane", True)}
    if known:
        paths |= {Path(kept.path): "server or hooks" for kept in known.files if Path(kept.path) not in paths}
    changes, notes = [], []
    for path, what in paths.items():
        before = load(path)
        after = _without(path, before, client, machine, known)
        if before is not None and before == after and path.suffix == ".js" and before.startswith(PLUGIN_MARK.encode()):
            notes.append(f"{path} was edited since memlane wrote it; delete it if you no longer need it.")
        changes.append(Change(path, what, before, after))
    return Plan(client, scope, machine, tuple(changes), notes=tuple(notes))


def disconnect(client: Client, scope: str, machine: Machine) -> Plan:
    """Take our entries out: the bytes from before where nobody has changed the file since, else our entries alone.

    Deletes the files and folders that connecting made, and the record. Raises ConfigError for a damaged file.
    """
    name = records.name_of(client.name, scope, machine.project)
    known = records.load(machine.state, name)
    plan = disconnection(client, scope, machine)
    for change in plan.changes:
        if change.how == "unchanged":
            continue
        kept = known.kept(change.path) if known else None
        if change is plan.changes[0] and _taken_by_vendor(plan, kept):
            continue
        if change.after is None:
            files.remove(os.path.realpath(change.path))
            _remove_folders(kept)
        else:
            files.replace(os.fspath(change.path), change.after)
    if known:
        records.forget(machine.state, name, known)
    return plan


def _taken_by_vendor(plan: Plan, kept: Kept | None) -> bool:
    """Let the client take its entry out of a file that it rewrites all the time; False when it did not."""
    client, change = plan.client, plan.changes[0]
    if plan.scope != "user" or client.vendor is None or not client.vendor.lives or change.before is None:
        return False
    if kept and digest(change.before) == kept.after:
        return False  # as we left it: the bytes from before come back
    if change.after is None or wiring.entry(decoded(change.after, change.path), client, change.path) is not None:
        return False  # another entry of the name comes back
    program = shutil.which(client.programs[0])
    if program is None or not _run((program, *client.vendor.remove.split())):
        return False
    return wiring.entry(decoded(load(change.path), change.path), client, change.path) is None


def _without(
    path: Path,
    data: bytes | None,
    client: Client,
    machine: Machine,
    known: Record | None,
    original: bytes | None = None,
) -> bytes | None:
    """A file's bytes as they were, or would be, without us; None when there would be no file."""
    kept = known.kept(path) if known else None
    if data is None:
        return None
    if kept:
        original = records.backup(machine.state, kept)
        if digest(data) == kept.after and (original is not None or kept.backup is None):
            return original
    if path.suffix == ".js":
        return None if not kept and data.startswith(PLUGIN_MARK.encode()) else data
    if not kept and SERVER.encode() not in data:
        return data  # none of our business, even when it is damaged
    try:
        text = wiring.take(decoded(data, path) or "", client, path, decoded(original, path))
        gone = kept and kept.backup is None and wiring.is_empty(text, path, client.fresh)
    except Damaged as error:
        raise damaged(path, error) from None
    return None if gone else text.encode()


def _missing_folders(path: Path) -> tuple[str, ...]:
    """The folders that writing a file makes; where it is a link, those of the file behind it."""
    real = Path(os.path.realpath(path))
    return tuple(os.fspath(folder) for folder in reversed(real.parents) if not folder.exists())


def _remove_folders(kept: Kept | None) -> None:
    """The folders that connecting made, as far as they are empty."""
    for folder in reversed(kept.folders if kept else ()):
        try:
            os.rmdir(folder)
        except OSError:
            return
