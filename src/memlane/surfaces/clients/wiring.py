"""Our entries in one configuration text: find them, put them in, take them out. Pure text → text.

An entry is ours by what it runs, wherever it stands: a command called `memlane` followed by `mcp` or `hook`.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memlane.surfaces.clients import jsonc, toml
from memlane.surfaces.clients.jsonc import Damaged, Key, value_at
from memlane.surfaces.clients.table import SERVER, Client

PLUGIN_MARK = "// Written by `memlane connect opencode`; `memlane connect opencode --remove` removes it."
_HOOKS = ("hooks",)  # where every client with JSON hooks keeps them


class Foreign(Exception):
    """Something that is not ours already has our name."""


@dataclass(frozen=True, slots=True)
class Target:
    """What one file should hold: a server entry, hooks as (event, handler), or the whole text of a plugin."""

    path: Path
    entry: Mapping[str, Any] | None = None
    hooks: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    plugin: str = ""
    fresh: str = ""  # the text to start from when there is no file

    @property
    def what(self) -> str:
        return " and ".join([*(["server"] if self.entry else []), *(["hooks"] if self.hooks or self.plugin else [])])


# -- finding


def command_of(entry: Any) -> str | None:
    """The command that a server entry of ours runs; None when it is not ours."""
    if not isinstance(entry, dict):
        return None
    command, args = entry.get("command"), entry.get("args", [])
    words = [command] if isinstance(command, str) else command
    words = [*words, *args] if isinstance(words, list) and isinstance(args, list) else []
    ours = words and all(isinstance(word, str) for word in words) and os.path.basename(words[0]) == "memlane"
    return str(words[0]) if ours and "mcp" in words[1:] else None


def hook_command(handler: Any) -> str | None:
    """The command that a hook of ours runs; None when it is not ours."""
    line = handler.get("command") if isinstance(handler, dict) else None
    try:
        words = shlex.split(line) if isinstance(line, str) else []
    except ValueError:
        return None
    return words[0] if words[1:2] == ["hook"] and os.path.basename(words[0]) == "memlane" else None


def our_hooks(tree: Any, path: tuple[Key, ...] = ()) -> Iterator[tuple[tuple[Key, ...], dict[str, Any]]]:
    """(path, handler) of every hook of ours below a value, in the order of the text."""
    if hook_command(tree) is not None:
        yield path, tree
    elif isinstance(tree, dict | list):
        for key, inner in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from our_hooks(inner, (*path, key))


def hooks_in(text: str, path: Path) -> list[tuple[tuple[Key, ...], dict[str, Any]]]:
    """(path below `hooks`, handler) of every hook of ours in a configuration. Raises Damaged."""
    return list(our_hooks(value_at(read(text, path), _HOOKS)))


def read(text: str, path: Path) -> dict[str, Any]:
    """The value of a configuration's text; `path` tells TOML from JSON. Raises Damaged."""
    tree = toml.value(text) if path.suffix == ".toml" else jsonc.value(text)
    if not isinstance(tree, dict):
        raise Damaged(None, "it is not an object")
    return tree


def entry(text: str | None, client: Client, path: Path) -> Any:
    """Whatever has our name among a client's servers; None when nothing does. Raises Damaged."""
    return value_at(read(text or "", path), (client.key, SERVER))


# -- putting in


def put(text: str | None, target: Target, client: Client, *, replace: bool = False) -> str:
    """The text with our entries, unchanged when it has them. Raises Damaged and, unless `replace`, Foreign."""
    if target.plugin:
        if text is not None and not text.startswith(PLUGIN_MARK) and not replace:
            raise Foreign("a plugin called memlane that memlane did not write")
        return target.plugin
    text = target.fresh if text is None else text
    if target.entry is not None:
        text = _put_entry(text, target.entry, client, target.path, replace)
    for event, handler in target.hooks:
        text = _put_hook(text, event, handler)
    return text


def _put_entry(text: str, new: Mapping[str, Any], client: Client, path: Path, replace: bool) -> str:
    there = entry(text, client, path)
    ours = command_of(there) is not None
    if there is not None and not ours and not replace:
        raise Foreign(f"an entry {SERVER!r} under {client.key!r} that memlane did not write")
    kept = there if ours else {}  # what the user added to it stays
    if all(kept.get(key) == item for key, item in new.items()):
        return text
    return _put(text, (client.key, SERVER), {**kept, **new}, path)


def _put(text: str, place: tuple[str, str], new: dict[str, Any], path: Path) -> str:
    return toml.put(text, place, new) if path.suffix == ".toml" else jsonc.put(text, place, new)


def _put_hook(text: str, event: str, handler: Mapping[str, Any]) -> str:
    """Add our hook for an event, in place of any that runs another command, or in the background."""
    place = (*_HOOKS, event)
    ours = list(our_hooks(value_at(jsonc.value(text), place), place))
    line = next(hook["command"] for _, hook in our_hooks(handler))
    if [(hook["command"], hook.get("async", False)) for _, hook in ours] == [(line, False)]:
        return text
    for path, _ in reversed(ours):
        text = _drop_hook(text, path, keep={place})
    return jsonc.append(text, place, handler)


# -- taking out


def take(text: str, client: Client, path: Path, original: str | None) -> str:
    """The text without our entries; an entry that `original` had in place of ours comes back.

    A container that this leaves empty goes too, unless the original had it. Raises Damaged.
    """
    had = read(original, path) if original is not None else {}
    tree = read(text, path)
    place = (client.key, SERVER)
    if command_of(value_at(tree, place)) is not None:
        if (before := value_at(had, place)) is not None:
            text = _put(text, place, before, path)
        elif path.suffix == ".toml":
            text = toml.drop(text, place)
        else:
            text = jsonc.drop(text, place)
            if value_at(jsonc.value(text), place[:1]) == {} and client.key not in had:
                text = jsonc.drop(text, place[:1])
    if path.suffix == ".toml":
        return text
    events = [(*_HOOKS, event) for event in value_at(had, _HOOKS) or ()]
    keep = {_HOOKS, *events} if "hooks" in had else set()
    for hook, _ in reversed(list(our_hooks(value_at(tree, _HOOKS), _HOOKS))):
        text = _drop_hook(text, hook, keep)
    for container in ((), (client.key,), _HOOKS, *events):
        text = _blanks_back(text, original or "", container)
    return text


def _blanks_back(text: str, original: str, place: tuple[str, ...]) -> str:
    """Give an object or list that is empty again the blanks that it had inside."""
    node, was = jsonc.find(jsonc.parse(text), place), jsonc.find(jsonc.parse(original), place)
    if node is None or was is None or node.value not in ({}, []) or was.value != node.value:
        return text
    now, before = text[node.start + 1 : node.end - 1], original[was.start + 1 : was.end - 1]
    same = now.split() == before.split()  # also the comments, which somebody may have changed
    return text[: node.start + 1] + before + text[node.end - 1 :] if same else text


def _drop_hook(text: str, path: tuple[Key, ...], keep: set[tuple[str, ...]]) -> str:
    """Take a hook out, then each container around it that is left without hooks, up to one in `keep`."""
    text = jsonc.drop(text, path)
    for depth in range(len(path) - 1, 0, -1):
        place = path[:depth]
        if place in keep:
            break
        left = value_at(jsonc.value(text), place)
        if left == [] and depth > 2 and place[-1] == "hooks":
            continue  # the list of a group: the group goes as a whole
        empty_group = isinstance(place[-1], int) and value_at(left, _HOOKS) == []
        if left not in ([], {}) and not empty_group:
            break
        text = jsonc.drop(text, place)
    return text


def is_empty(text: str, path: Path, fresh: str = "") -> bool:
    """Whether a text holds no more than a file that we started."""
    if path.suffix == ".toml":
        return not text.strip()
    return jsonc.value(text) in ({}, jsonc.value(fresh))
