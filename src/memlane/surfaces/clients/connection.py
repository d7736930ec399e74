"""Plan how connecting or disconnecting a client changes its files, and carry the plan out.

The whole plan is worked out before anything is written, so a damaged file stops it before the first change. Carrying it
out writes the client's files, and the record and backups of `backups`.
"""

from __future__ import annotations

import difflib
import json
import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from memlane.core.errors import AlreadyExists, ConfigError, InvalidInput
from memlane.disk import files
from memlane.gate import redacted
from memlane.surfaces.clients import backups, wiring
from memlane.surfaces.clients.backups import Backups, FileBackup, digest
from memlane.surfaces.clients.jsonc import Damaged
from memlane.surfaces.clients.machine import Machine, damaged, decoded, read, read_text
from memlane.surfaces.clients.table import SERVER, Client
from memlane.surfaces.clients.wiring import PLUGIN_MARK, Foreign, Target

_VENDOR_SECONDS = 30  # how long a client's own command may take


@dataclass(frozen=True, slots=True)
class Change:
    """One file's bytes before and after; None where there is no file."""

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
        """The change as a unified diff for people, with whatever looks like a secret covered."""
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
    """What connecting or disconnecting a client does; `targets` are the files of `changes`, when connecting."""

    client: Client
    scope: str
    machine: Machine
    changes: tuple[Change, ...]
    targets: tuple[Target, ...] = ()
    vendor: tuple[str, ...] = ()  # the client's own command, tried first
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
    if scope == "project":
        files.take_root(machine.project)
    planned = targets(client, scope, machine, command, hooks)
    changes = []
    for target in planned:
        before = read(target.path)
        try:
            text = wiring.put(decoded(before, target.path), target, client, replace=replace)
        except Damaged as error:
            raise damaged(target.path, error) from None
        except Foreign as error:
            raise AlreadyExists(
                f"{target.path} has {error}.", hint="Take it out or rename it; --replace puts memlane's in its place."
            ) from None
        changes.append(Change(target.path, target.what, before, text.encode()))
    notes = tuple(note for note in client.notes if hooks or "hook" not in note)
    if not hooks and _has_hooks(client, scope, machine):
        notes = (
            f"The hooks are still there; `memlane connect {client.name} --remove` first to be without them.",
            *notes,
        )
    vendor = _vendor_command(client, scope, command, changes[0])
    return Plan(client, scope, machine, tuple(changes), tuple(planned), vendor, replace, notes)


def connect(plan: Plan) -> Plan:
    """Back up the files, let the client add its entry where it can, and write the rest. Returns what was done."""
    if not plan.changed:
        return plan
    client, state = plan.client, plan.machine.state
    name = backups.name_of(client.name, plan.scope, plan.machine.project)
    saved = backups.load(state, name)
    planned = {os.fspath(change.path) for change in plan.changes}
    others = [file for file in saved.files if file.path not in planned]
    changed, copies = [], {}
    for change in plan.changes:
        earlier = saved.of(change.path)
        base = change.before  # at the first connection even an entry of our name is the user's own
        if earlier:
            base = _without(change.path, change.before, client, earlier, backups.original(state, earlier))
        copy = None
        if base is not None:
            copy = f"{name}-{digest(bytes(change.path))[:8]}-{change.path.name}.bak"
            copies[copy] = base
        folders = earlier.folders if earlier else _missing_folders(change.path)
        changed.append(FileBackup(os.fspath(change.path), copy, digest(change.after or b""), folders))
    hooks = saved.hooks or any(target.hooks or target.plugin for target in plan.targets)
    backups.save(state, name, Backups(hooks, (*others, *changed)), copies)
    notes = (*_run_vendor(plan), *plan.notes)
    done = [_write(target, change, plan) for target, change in zip(plan.targets, plan.changes, strict=True)]
    changed = [replace(file, after=digest(change.after or b"")) for file, change in zip(changed, done, strict=True)]
    backups.save(state, name, Backups(hooks, (*others, *changed)), {})
    return replace(plan, changes=tuple(done), notes=notes)


def _write(target: Target, change: Change, plan: Plan) -> Change:
    """Put our entries into a file as it is now: the client may just have written it."""
    before = read(target.path)
    after = wiring.put(decoded(before, target.path), target, plan.client, replace=plan.replace).encode()
    if after != before:
        files.replace(os.fspath(target.path), after)
    return replace(change, after=after)


def targets(client: Client, scope: str, machine: Machine, command: str, hooks: bool) -> list[Target]:
    """The files a connection needs and our entries in each; the file with the server comes first."""
    server = machine.existing(client.servers[scope])
    entry = client.entry(command)
    if not hooks or scope not in client.hooks:
        return [Target(server, entry)]
    hooks_file = machine.path(client.hooks[scope])
    if client.handler is None:
        return [Target(server, entry), Target(hooks_file, plugin=plugin(command))]
    handlers = tuple(
        (event, client.handler(event, shlex.join([command, "hook", client.name, ours])))
        for event, ours in client.events
    )
    if hooks_file == server:
        return [Target(server, entry, handlers)]
    return [Target(server, entry), Target(hooks_file, hooks=handlers, fresh=client.fresh)]


def plugin(command: str) -> str:
    """The plugin file that hands opencode's events to memlane."""
    source = Path(__file__).with_name("opencode.js").read_text(encoding="utf-8")
    return PLUGIN_MARK + "\n" + source.replace('"{command}"', json.dumps(command))


def _has_hooks(client: Client, scope: str, machine: Machine) -> bool:
    """Whether an earlier connection left hooks of ours in the client's file."""
    if scope not in client.hooks:
        return False
    path = machine.path(client.hooks[scope])
    try:
        text = read_text(path) or ""
        return text.startswith(PLUGIN_MARK) if client.handler is None else bool(wiring.hooks_in(text, path))
    except (Damaged, ConfigError):
        return False


def _missing_folders(path: Path) -> tuple[str, ...]:
    """The folders that writing a file will create; for a link, those of the file behind it."""
    real = Path(os.path.realpath(path))
    return tuple(os.fspath(folder) for folder in reversed(real.parents) if not folder.exists())


# -- the client's own command


def _vendor_command(client: Client, scope: str, command: str, change: Change) -> tuple[str, ...]:
    """The client's own command that adds the entry; () where it has none or there is an entry already."""
    program = shutil.which(client.programs[0]) if scope == "user" and client.vendor else None
    if program is None or client.vendor is None:
        return ()
    if wiring.entry(decoded(change.before, change.path), client, change.path) is not None:
        return ()
    return (program, *(command if word == "{command}" else word for word in client.vendor.add.split()))


def _run_vendor(plan: Plan) -> tuple[str, ...]:
    """Run the client's own command; returns notes for the user.

    When it changed more of the file than its entry, the file is restored, and `connect` writes the entry itself.
    """
    client, change = plan.client, plan.changes[0]
    if not plan.vendor or client.vendor is None:
        return ()
    worked = _run(plan.vendor)
    after = read(change.path)
    if client.vendor.lives or after == change.before:
        return () if worked else (f"`{client.programs[0]} mcp add` did not work; memlane wrote the entry itself.",)
    try:
        rest = _without(change.path, after, client, None, change.before)
    except ConfigError:
        rest = None
    if worked and (rest == change.before or (change.before is None and rest is not None and not rest.strip(b"{} \n"))):
        return ()
    if change.before is None:
        files.remove(files.real(os.fspath(change.path)))
    else:
        files.replace(os.fspath(change.path), change.before)
    return (f"`{client.programs[0]} mcp add` changed more than its entry; memlane undid that and wrote it itself.",)


def _removed_by_vendor(plan: Plan, file: FileBackup | None) -> bool:
    """Let the client take our entry out of a file that it rewrites all the time; False when it did not."""
    client, change = plan.client, plan.changes[0]
    if plan.scope != "user" or client.vendor is None or not client.vendor.lives or change.before is None:
        return False
    if file and digest(change.before) == file.after:
        return False  # it is as we left it, so the backup is restored
    if change.after is None or wiring.entry(decoded(change.after, change.path), client, change.path) is not None:
        return False  # another entry of our name comes back
    program = shutil.which(client.programs[0])
    if program is None or not _run((program, *client.vendor.remove.split())):
        return False
    return wiring.entry(read_text(change.path), client, change.path) is None


def _run(command: tuple[str, ...]) -> bool:
    """Whether a client's own command ran and succeeded."""
    try:
        done = subprocess.run(  # noqa: S603 - the program the user has installed, without a shell
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_VENDOR_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


# -- disconnecting


def disconnection(client: Client, scope: str, machine: Machine) -> Plan:
    """What disconnecting would change. Reads only. Raises ConfigError for a damaged file."""
    if scope == "project":
        files.take_root(machine.project)
    saved = backups.load(machine.state, backups.name_of(client.name, scope, machine.project))
    paths = {target.path: target.what for target in targets(client, scope, machine, "memlane", True)}
    for file in saved.files:
        paths.setdefault(Path(file.path), "server or hooks")
    changes, notes = [], []
    for path, what in paths.items():
        before, backup = read(path), saved.of(path)
        after = _without(path, before, client, backup, backups.original(machine.state, backup))
        if before is not None and before == after and path.suffix == ".js" and before.startswith(PLUGIN_MARK.encode()):
            notes.append(f"{path} was edited since memlane wrote it; delete it if you no longer need it.")
        changes.append(Change(path, what, before, after))
    return Plan(client, scope, machine, tuple(changes), notes=tuple(notes))


def disconnect(client: Client, scope: str, machine: Machine) -> Plan:
    """Restore files that nobody has changed since; take our entries out of the others.

    Deletes the files and folders that connecting made, and the record with its backups. Raises ConfigError for a
    damaged file.
    """
    name = backups.name_of(client.name, scope, machine.project)
    saved = backups.load(machine.state, name)
    plan = disconnection(client, scope, machine)
    for change in plan.changes:
        file = saved.of(change.path)
        if change.how == "unchanged" or (change is plan.changes[0] and _removed_by_vendor(plan, file)):
            continue
        if change.after is None:
            files.remove(files.real(os.fspath(change.path)))
            _remove_empty(file.folders if file else ())
        else:
            files.replace(os.fspath(change.path), change.after)
    if saved.files:
        backups.delete(machine.state, name, saved)
    return plan


def _without(
    path: Path, data: bytes | None, client: Client, file: FileBackup | None, original: bytes | None
) -> bytes | None:
    """What a file with the bytes `data` would be without our entries; None when there would be no file.

    `file` is its backup, if it has one, and `original` what the file was before. Raises ConfigError.
    """
    if data is None:
        return None
    if file and digest(data) == file.after and (original is not None or file.backup is None):
        return original
    if path.suffix == ".js":
        return None if not file and data.startswith(PLUGIN_MARK.encode()) else data
    if not file and SERVER.encode() not in data:
        return data  # we are not in it, so it may even be damaged
    try:
        text = wiring.take(decoded(data, path) or "", client, path, decoded(original, path))
        gone = file and file.backup is None and wiring.is_empty(text, path, client.fresh)
    except Damaged as error:
        raise damaged(path, error) from None
    return None if gone else text.encode()


def _remove_empty(folders: tuple[str, ...]) -> None:
    """Remove the folders that connecting made, innermost first, up to one that is not empty."""
    for folder in reversed(folders):
        try:
            os.rmdir(folder)
        except OSError:
            return
