"""Make a folder a bank: recognise the stores that are already there and write the configuration."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from memlane import config
from memlane.core.errors import ConfigError, InvalidInput
from memlane.core.model import Memory
from memlane.core.patterns import lazily
from memlane.core.text import newline_of
from memlane.core.toml import MAX_TOML, load_toml
from memlane.disk import files
from memlane.lanes import NAMES, open_lane, scan

_LAYER_FOLDERS = ("projects", "skills", "commands", "agents")
_CODE = lazily(r"\.(?:py|js|ts|tsx|go|rs|java|kt|c|h|cc|cpp|rb|php|cs|swift)$")
_UUID_FILE = lazily(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.md")


def stores(folder: Path) -> dict[str, str]:
    """The lanes that already have a store at their seed's own place, with its path relative to the folder.

    A folder that could be two kinds, or is full of source code, is left alone: guessing would be worse.
    """
    found = {}
    if (folder / "data/memory/vault.jsonl").is_file():
        found["vault"] = "data/memory/vault.jsonl"
    if _has_layers(folder / "forge-plugin/memory"):
        found["layers"] = "forge-plugin/memory"
    elif _has_layers(folder / "memory"):
        found["layers"] = "memory"
    if found.get("layers") != "memory" and _has_topics(folder / "memory"):
        found["topics"] = "memory"
    for name in ("local-recall/memories", "local-recall/episodic-memory"):
        if (folder / name).is_dir() and any(map(_UUID_FILE.fullmatch, files.names_in(folder / name))):
            found["records"] = name
            break
    return found


def _has_layers(root: Path) -> bool:
    return any(path.endswith(".md") for name in _LAYER_FOLDERS for path in files.tree(root / name))


def _has_topics(root: Path) -> bool:
    if not root.is_dir() or any(_CODE.search(os.path.basename(path)) for path in files.tree(root, links=True)):
        return False
    return (root / "index.md").is_file() or next(root.glob("*/*.md"), None) is not None


def init(folder: Path, *, user: bool = False) -> Path:
    """Write (or complete) the configuration that makes this folder a bank; return the file. Safe to repeat.

    With `user`, the user's own config.toml is written and the bank is read in all projects; its folder is closed to
    other users of the machine.
    The project is trusted from then on. A configuration that is already there and is not trusted must hold nothing that
    weakens the gate or leads elsewhere: that is for `memlane trust` to show. Raises NotTrusted.
    A seed-003 config.toml is completed where it is. Other keys and comments of an existing file stay as they are.
    In a linked worktree whose memory goes to the main worktree's bank, that bank is meant.
    """
    if not user:
        with suppress(ConfigError):  # what is wrong with a configuration is said below
            settings = config.load(folder)
            if settings.project and settings.worktree == Path(os.path.realpath(folder)):
                folder = settings.project
        config.require_utf8(folder)
        files.take_root(folder)
    path = _config_file(folder, user)
    memory = {"enabled": True, "storage_strategy": "user" if user else "project"}
    wanted: dict[str, dict[str, Any]] = {"memory": memory} if user else {"memory": memory, "lanes": stores(folder)}
    if not user and os.path.isfile(path):
        config.refuse_foreign(path)
        files.set_read_only(folder, None)
        files.set_read_only(folder / config.FOLDER, None)
    before = files.read_bytes(os.fspath(path)) if os.path.isfile(path) else b""
    found = not user and before and config.trust.distrust(config.user_state(), path, before)
    present = parsed(decoded(before, path), path)
    text = decoded(before, path)
    for table, keys in wanted.items():
        for key, value in keys.items():
            if key == "enabled" or key not in present.get(table, {}):
                text = set_key(text, table, key, value, path)
    if text.encode() != before:
        files.replace(os.fspath(path), text.encode())
    if not user:
        config.trust.record(config.user_state(), path, text.encode())
        if found:
            note_memories(config.load(folder))
    root = config.user_bank() if user else config.load(folder).root
    files.make_folder(os.fspath(root), private=user)
    return path


def note_memories(settings: config.Config) -> int:
    """Note that the memories of a project were there before the user trusted it; return how many nobody here wrote."""
    from memlane.history import origin

    opened = {name: open_lane(name, settings.lane_root(name)) for name in NAMES}
    items = (item for lane in opened.values() if os.path.exists(lane.root) for item in scan(lane))
    return origin.note_as_found(opened.__getitem__, (item for item in items if isinstance(item, Memory)))


def _config_file(folder: Path, user: bool) -> Path:
    if user:
        path = config.user_file()
        if path is None:
            raise ConfigError("There is no home folder.", hint="Set HOME.")
        return path
    if not os.path.isdir(folder):
        raise InvalidInput("There is no such folder.", hint="Make it first, or name another.")
    seed, own = folder / config.SEED_FILE, folder / config.PROJECT_FILE
    return seed if config.is_seed_file(seed) and not os.path.exists(own) else own


def decoded(data: bytes, path: Path) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8.", hint="Save it as UTF-8.") from None


def set_key(text: str, table: str, key: str, value: Any, path: Path) -> str:
    """TOML text with one key set, everything else byte for byte as it was. Raises ConfigError when that cannot be."""
    before = parsed(text, path)
    if before.get(table, {}).get(key) == value:
        return text
    end_of_line = newline_of(text)
    line = f"{key} = {json.dumps(value, ensure_ascii=False)}{end_of_line}"
    header = re.search(rf"^\[{table}\][ \t]*(?:#.*)?\r?\n?", text, re.MULTILINE)
    if header is None:
        gap = "" if not text else end_of_line if text.endswith("\n") else end_of_line * 2
        after = f"{text}{gap}[{table}]{end_of_line}{line}"
        if table not in before and len(after) <= MAX_TOML:
            return after  # a new table below a whole text changes nothing of it
    else:
        following = re.search(r"^\[", text[header.end() :], re.MULTILINE)
        end = header.end() + following.start() if following else len(text)
        section = text[header.end() : end]
        present = re.search(rf"^{key}[ \t]*=.*\n?", section, re.MULTILINE)
        at, rest = present.span() if present else (0, 0)
        section = section[:at] + line + section[rest:]
        head = text[: header.end()]
        after = (head if head.endswith("\n") else head + end_of_line) + section + text[end:]
    expected = {**before, table: {**before.get(table, {}), key: value}}
    try:
        done = load_toml(after) == expected
    except (ValueError, RecursionError):  # two deep values are not even compared
        done = False
    if not done:
        raise ConfigError(
            f"{path}: {table}.{key} cannot be set automatically.", hint=f"Write it by hand: {line.strip()}"
        )
    return after


def without_key(text: str, table: str, key: str) -> str:
    """TOML text without one key, nor its table where that has no other; the text as it is where that cannot be done."""
    header = re.search(rf"(?:^\r?\n)?^\[{table}\][ \t]*\r?\n", text, re.MULTILINE)
    line = re.compile(rf"^{key}[ \t]*=.*(?:\n|\Z)", re.MULTILINE)
    found = line.search(text, header.end()) if header else None
    if header is None or found is None:
        return text
    try:
        before = load_toml(text)
        tables = {name: values for name, values in before.items() if name != table}
        left = {name: value for name, value in before[table].items() if name != key}
        start = header.start() if not left and header.end() == found.start() else found.start()
        after = text[:start] + text[found.end() :]
        said = load_toml(after)
        return after if {**tables, table: left} == {table: {}, **said} else text
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return text


def parsed(text: str, path: Path) -> dict[str, Any]:
    try:
        return load_toml(text)
    except ValueError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.", hint="Mend it in an editor.") from None
