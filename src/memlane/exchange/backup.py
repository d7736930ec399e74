"""A bank in one file: what belongs in a backup, and where it goes when it is restored; and moving a bank.

bank/…              the bank's folder without `indices/`, the trash and what is private included
lanes/records/…     a lane that lies elsewhere
config/memlane.toml the project's configuration
side/…              what the user's state folder has about it: what was forgotten, and its databases

How the file is written and verified is `memlane.disk.archive`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlane import __version__, config
from memlane.config import places, trust
from memlane.core.dates import iso, utc_now
from memlane.core.errors import AlreadyExists, InvalidInput, NotTrusted, StorageError
from memlane.disk import archive, derived, files, forgotten, written
from memlane.exchange import adopt
from memlane.exchange.export import place_for
from memlane.lanes import LANES, NAMES

if TYPE_CHECKING:
    from memlane.bank import Bank

_FORGOTTEN = "forgotten.jsonl"
_CONFIG = f"config/{config.PROJECT_FILE}"
_SKIPPED = frozenset({derived.FOLDER, ".git"})


@dataclass(frozen=True, slots=True)
class Restored:
    """Where a backup was restored to, how many files were written, and what a person should know."""

    root: Path
    files: int
    remarks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {"root": os.fspath(self.root), "files": self.files, "remarks": list(self.remarks)}


# -- making one


def write(bank: Bank, path: str | Path, *, overwrite: bool = False) -> dict[str, Any]:
    """Write a backup of a bank; return its path, how many files it has, and those that were left out.

    Raises InvalidInput for a place inside the bank or in no folder, AlreadyExists, StorageError.
    """
    target = place_for(bank, path, overwrite=overwrite)
    left_out: list[str] = []
    facts = {
        "memlane": __version__,
        "made": iso(utc_now()),
        "user": bank.config.project is None or bank.config["memory.storage_strategy"] == "user",
        "lanes": sorted(_elsewhere(bank)),
    }
    count = archive.pack(target, _contents(bank, left_out), facts, replace=overwrite)
    return {"path": target, "files": count, "left_out": left_out}


def _contents(bank: Bank, left_out: list[str]) -> Iterator[tuple[str, bytes | Path]]:
    for name, path in _files(bank):
        try:
            yield name, files.read_bytes(path, files.MAX_LOG_BYTES)
        except FileNotFoundError:
            continue  # it was deleted meanwhile
        except (OSError, StorageError):  # a link that leads out, a file that is too large or of another user
            left_out.append(path)
    if bank.config.file and os.path.isfile(bank.config.file):
        yield _CONFIG, trust.read(bank.config.file)
    texts = bank.tombstones.private.path
    if texts and os.path.isfile(texts):
        yield f"side/{_FORGOTTEN}", files.read_bytes(texts, files.MAX_LOG_BYTES)
    for name, database in places.databases(bank.root).items():
        if os.path.isfile(database):
            yield f"side/{name}", database


def _files(bank: Bank) -> Iterator[tuple[str, str]]:
    """What each file of a bank is called in a backup, and its path."""
    for member, root in {
        "bank": bank.root,
        **{f"lanes/{name}": root for name, root in _elsewhere(bank).items()},
    }.items():
        if os.path.isdir(root):
            for path in files.tree(root, links=True, skip=_SKIPPED):
                if not os.path.basename(path).startswith(files.TEMP_PREFIX):
                    yield f"{member}/{os.path.relpath(path, root)}", path
        elif os.path.isfile(root):  # a log: under its usual name, with what lies beside it
            usual = LANES[member.removeprefix("lanes/")].place
            for name in sorted(files.names_in(root.parent)):
                if name.startswith(root.name):
                    yield f"{member}/{usual}{name[len(root.name) :]}", os.fspath(root.parent / name)


def _elsewhere(bank: Bank) -> dict[str, Path]:
    """The lanes that are there and lie outside the bank's folder."""
    roots = {name: bank.lane(name).root for name in NAMES}
    return {
        name: root
        for name, root in roots.items()
        if os.path.exists(root) and bank.root != root and bank.root not in root.parents
    }


# -- restoring one


def restore(path: str | Path, folder: str | Path | None = None, *, overwrite: bool = False) -> Restored:
    """Restore a backup as the bank of a folder, by default of the current one (of a user's own bank: that bank).

    Where the folder has a configuration that is trusted, that says what goes where; else all goes into `.memories`, and
    the configuration of the backup is written, too, which counts when it is trusted: an archive must not choose the
    places that it is unpacked to. What is there already and the same stays; what differs is only replaced with
    `overwrite`. Raises NotFound, AlreadyExists, InvalidInput for what is no whole backup, StorageError; then nothing is
    written.
    """
    staged, facts = archive.unpack(os.path.abspath(Path(path).expanduser()), config.user_state())
    try:
        own = facts.get("user") is True and folder is None
        project = None if own else Path(os.path.abspath(Path(folder or ".").expanduser()))
        if project:
            config.require_utf8(project)
        settings = _settings_of(project) if project else None
        root = settings.root if settings else project / config.FOLDER if project else config.user_bank()
        planned: dict[str, Path | bytes] = {}
        for member, (prefix, cut) in _places(facts, root, settings).items():
            for file in files.tree(staged.path / member):
                planned[prefix + os.path.relpath(file, staged.path / member)[cut:]] = Path(file)
        if project and settings is None and os.path.isfile(staged.path / _CONFIG):
            moved = {name: f"{config.FOLDER}/{LANES[name].place}".rstrip("/") for name in facts["lanes"]}
            planned[os.path.join(project, config.PROJECT_FILE)] = _configuration(staged.path / _CONFIG, moved)
        files.take_root(project or root)
        count = _put_in_place(planned, overwrite=overwrite)
        files.make_folder(os.fspath(root), private=own)
        remarks = _trusted(project) if project and settings is None else []
        return Restored(root, count, (*remarks, *_beside(staged.path / "side", root)))
    finally:
        staged.remove()


def _settings_of(project: Path) -> config.Config | None:
    """The configuration of a folder, if it has one of its own that is trusted. Raises ConfigError."""
    settings = config.load(project) if project.is_dir() else None
    return settings if settings and settings.project == project and not settings.distrust else None


def _places(facts: dict[str, Any], root: Path, settings: config.Config | None) -> dict[str, tuple[str, int]]:
    """What the names of each part of a backup become: what stands before them, and how much of them goes.

    Raises InvalidInput.
    """
    places = {"bank": (os.path.join(root, ""), 0)}
    for name in facts["lanes"]:
        if name not in NAMES:
            raise InvalidInput("The backup has a lane that there is not.", hint="A newer memlane may have made it.")
        usual = LANES[name].place
        place = settings.lane_root(name) if settings else root / usual
        is_log = bool(os.path.splitext(usual)[1])
        places[f"lanes/{name}"] = (os.fspath(place), len(usual)) if is_log else (os.path.join(place, ""), 0)
    return places


def _configuration(file: Path, moved: dict[str, str]) -> bytes:
    """The configuration of a bank that lies in its project, whatever it said before of where it lies."""
    text = adopt.decoded(files.read_bytes(os.fspath(file)), file)
    known = adopt.parsed(text, file)
    for table, key, value in (("memory", "storage_strategy", "project"), ("memory_configuration", "external_path", "")):
        if known.get(table, {}).get(key, value) != value:
            text = adopt.set_key(text, table, key, value, file)
    for name, place in moved.items():
        text = adopt.set_key(text, "lanes", name, place, file)
    return text.encode()


def _put_in_place(planned: dict[str, Path | bytes], *, overwrite: bool) -> int:
    """Write what is not there yet, or not the same; return how many files. Raises AlreadyExists before anything is."""
    there = {target: _is_same(target, source) for target, source in planned.items() if os.path.lexists(target)}
    differing = [target for target, same in there.items() if not same]
    if differing and not overwrite:
        more = f", and {len(differing) - 1} more" if len(differing) > 1 else ""
        hint = "Give an empty folder; --overwrite replaces what differs."
        raise AlreadyExists(f"{differing[0]} is there already, and differs{more}.", hint=hint)
    new = [target for target in planned if not there.get(target)]
    with written.copying():  # who restores it need not have written it
        for target in new:
            files.replace(target, _bytes(planned[target]))
    return len(new)


def _is_same(target: str, source: Path | bytes) -> bool:
    try:
        return files.read_bytes(target, files.MAX_LOG_BYTES) == _bytes(source)
    except (OSError, StorageError):
        return False


def _bytes(source: Path | bytes) -> bytes:
    return source if isinstance(source, bytes) else files.read_bytes(os.fspath(source), files.MAX_LOG_BYTES)


def _beside(staged: Path, root: Path) -> list[str]:
    """Put back what the state folder knows of a bank; what to say where it knows something already."""
    remarks = []
    if os.path.isfile(staged / _FORGOTTEN):
        data = files.read_bytes(os.fspath(staged / _FORGOTTEN), files.MAX_LOG_BYTES)
        if not forgotten.take_over(config.forgotten_texts(root), data):
            remarks.append("what is known here of what was forgotten stays; what the backup knows was left out")
    for name, database in places.databases(root).items():
        if os.path.isfile(staged / name):
            try:
                archive.place_database(staged / name, database)
            except AlreadyExists:
                remarks.append(f"the {name.partition('.')[0]} that is here stays; that of the backup was left out")
    return remarks


def _trusted(project: Path) -> list[str]:
    """Trust what was restored as `init` does; what to say where that is for the user to decide."""
    try:
        adopt.init(project)
    except NotTrusted:
        return ["it is not trusted yet: `memlane trust` shows its configuration"]
    return []


# -- moving one


def move(bank: Bank, folder: str | Path) -> Path:
    """Move a bank's folder to `.memories` in another folder on the same disk, and let the configuration say so.

    Lanes that lie elsewhere stay there. Raises InvalidInput, AlreadyExists, NotTrusted, StorageError.
    """
    settings = bank.config
    file = settings.file
    if file is None or settings["memory.storage_strategy"] == "user":
        hint = "XDG_DATA_HOME says where it is. `memlane backup` takes a copy."
        raise InvalidInput("The user's own bank has no project that could say where it is.", hint=hint)
    config.require_trust(settings)
    place = Path(os.path.abspath(Path(folder).expanduser()))
    target = place / config.FOLDER
    config.require_utf8(target)
    if target == settings.root:
        raise InvalidInput("The bank is there already.", hint="Name another folder.")
    if settings.root in (place, *place.parents) or config.is_bank(place):
        raise InvalidInput("That folder is a bank itself, or in one.", hint="Name a folder that is none.")
    before = trust.read(file)
    text = adopt.decoded(before, file)
    named = place.relative_to(file.parent).as_posix() if place.is_relative_to(file.parent) else os.fspath(place)
    topics, root = settings.lane_root("topics"), settings.root
    inside = topics.relative_to(root).as_posix() if topics.is_relative_to(root) else ""
    if is_home := place == file.parent:
        text = adopt.without_key(text, "memory_configuration", "external_path")
    if not is_home or adopt.parsed(text, file).get("memory_configuration", {}).get("external_path"):
        text = adopt.set_key(text, "memory_configuration", "external_path", "" if is_home else named, file)
    usual = all(
        source == "default" for key, source in settings.sources.items() if key.startswith("directory_structure.")
    )
    if is_home and usual and inside == LANES["topics"].place:
        text = adopt.without_key(text, "lanes", "topics")
    elif inside:  # they would be looked for beside `.memories`
        text = adopt.set_key(text, "lanes", "topics", f"{named}/{config.FOLDER}/{inside}".removeprefix("./"), file)
    bank.close()
    files.replace(os.fspath(file), text.encode())  # a kill now leaves a configuration that doctor names
    try:
        archive.move_folder(os.fspath(root), os.fspath(target))
    except BaseException:
        files.replace(os.fspath(file), before)
        raise
    trust.record(config.user_state(), file, text.encode())
    if bank.journal:
        bank.journal.move(os.path.realpath(target))
    if root.parent not in (file.parent, *file.parent.parents):
        files.remove_folder(os.fspath(root.parent))  # which was made for it, if nothing else is in it
    return target
