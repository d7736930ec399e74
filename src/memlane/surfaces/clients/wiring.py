"""Our entries in one configuration text: see them, put them in, take them out. Pure text → text.

An entry is known by what it runs, not by its place: a command called `memlane` with `mcp` or `hook` behind it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memlane.surfaces.clients import jsonc, toml
from memlane.surfaces.clients.jsonc import Damaged, Key
from memlane.surfaces.clients.table import SERVER, Client

PLUGIN_MARK = "// Written by `memlane connect opencode`; `memlane disconnect opencode` removes it."


class Foreign(Exception):
    """Something with our name is there already that is not ours."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be in one file: a server entry, hooks as (event, handler), or the whole text of a plugin."""

    path: Path
    entry: Mapping[str, Any] | None = None
    hooks: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    plugin: str = ""
    fresh: str = ""

    @property
    def what(self) -> str:
        return " and ".join([*(["server"] if self.entry else []), *(["hooks"] if self.hooks or self.plugin else [])])


# -- seeing


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


def read(text: str, path: Path) -> Any:
    """What a configuration says. Raises Damaged."""
    found = toml.value(text) if path.suffix == ".toml" else jsonc.value(text)
    if not isinstance(found, dict):
        raise Damaged(None, "it is not an object")
    return found


def at(tree: Any, path: Sequence[Key]) -> Any:
    for key in path:
        try:
            tree = tree[key]
        except (LookupError, TypeError):
            return None
    return tree


def entry(text: str | None, client: Client, path: Path) -> Any:
    """Whatever stands under our name among a client's servers; None when nothing does. Raises Damaged."""
    return at(read(text or "", path), (client.key, SERVER))


# -- putting in


def put(text: str | None, wanted: Wanted, client: Client, *, replace: bool = False) -> str:
    """The text with our entries. Unchanged when they are there; raises Damaged and, unless `replace`, Foreign."""
    if wanted.plugin:
        if text is not None and not text.startswith(PLUGIN_MARK) and not replace:
            raise Foreign("a plugin called memlane that memlane did not write")
        return wanted.plugin
    text = wanted.fresh if text is None else text
    if wanted.entry is not None:
        text = _put_entry(text, wanted.entry, client, wanted.path, replace)
    for event, handler in wanted.hooks:
        text = _put_hook(text, event, handler)
    return text


def _put_entry(text: str, entry: Mapping[str, Any], client: Client, path: Path, replace: bool) -> str:
    place = (client.key, SERVER)
    there = at(read(text, path), place)
    if there is not None and command_of(there) is None and not replace:
        raise Foreign(f"an entry {SERVER!r} under {client.key!r} that memlane did not write")
    kept = there if command_of(there) is not None else {}
    if all(kept.get(key) == item for key, item in entry.items()):
        return text
    return _put(text, place, {**kept, **entry}, path)


def _put(text: str, place: tuple[str, str], new: dict[str, Any], path: Path) -> str:
    return toml.put(text, place, new) if path.suffix == ".toml" else jsonc.put(text, place, new)


def _put_hook(text: str, event: str, handler: Mapping[str, Any]) -> str:
    """Our hook for an event, once; one of ours that runs something else gives way to it."""
    place = ("hooks", event)
    ours = list(our_hooks(at(jsonc.value(text), place), place))
    line = next(inner["command"] for _, inner in our_hooks(handler))
    if [inner["command"] for _, inner in ours] == [line]:
        return text
    for path, _ in reversed(ours):
        text = _drop_hook(text, path, keep={place})
    return jsonc.append(text, place, handler)


# -- taking out


def take(text: str, client: Client, path: Path, original: str | None) -> str:
    """The text without our entries. What `original` had in their place comes back; everything else stays as it is.

    A container that this empties goes too, unless the original had it. Raises Damaged.
    """
    had = read(original, path) if original is not None else {}
    tree = read(text, path)
    place = (client.key, SERVER)
    if command_of(at(tree, place)) is not None:
        if (before := at(had, place)) is not None:
            text = _put(text, place, before, path)
        elif path.suffix == ".toml":
            text = toml.drop(text, place)
        else:
            text = jsonc.drop(text, place)
            if at(read(text, path), place[:1]) == {} and client.key not in had:
                text = jsonc.drop(text, place[:1])
    if path.suffix == ".toml":
        return text
    events = [("hooks", event) for event in at(had, ("hooks",)) or ()]
    for found, _ in reversed(list(our_hooks(at(tree, ("hooks",)), ("hooks",)))):
        text = _drop_hook(text, found, keep={("hooks",), *events} if "hooks" in had else set())
    for empty in ((), (client.key,), ("hooks",), *events):
        text = _blanks_back(text, original or "", empty)
    return text


def _blanks_back(text: str, original: str, place: tuple[str, ...]) -> str:
    """An object or list that is empty again gets back the blanks that it had inside."""
    node, was = jsonc.find(jsonc.parse(text), place), jsonc.find(jsonc.parse(original), place)
    if node is None or was is None or node.value not in ({}, []) or was.value != node.value:
        return text
    now, before = text[node.start + 1 : node.end - 1], original[was.start + 1 : was.end - 1]
    same = now.split() == before.split()  # also the comments, which somebody may have changed
    return text[: node.start + 1] + before + text[node.end - 1 :] if same else text


def _drop_hook(text: str, path: tuple[Key, ...], keep: set[tuple[str, ...]]) -> str:
    """Take a hook out, then each container that is left with no hook in it."""
    text = jsonc.drop(text, path)
    place: tuple[Key, ...] = path[:-1]
    while place and place not in keep:
        left = at(jsonc.value(text), place)
        group = isinstance(left, dict) and left.get("hooks") == [] and isinstance(place[-1], int)
        if left not in ([], {}) and not group:
            break
        if isinstance(left, list) and len(place) > 2 and place[-1] == "hooks":
            place = place[:-1]  # the group goes, not its list
            continue
        text = jsonc.drop(text, place)
        place = place[:-1]
    return text


def is_empty(text: str, path: Path, fresh: str = "") -> bool:
    """Whether nothing but an empty shell is left."""
    if path.suffix == ".toml":
        return not text.strip()
    return jsonc.value(text) in ({}, jsonc.value(fresh))
