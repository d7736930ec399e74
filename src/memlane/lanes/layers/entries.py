"""Entries of the layers lane (seed 004): which names make an id and a path, the seed's shapes, usage. No I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from memlane.core.dates import moment
from memlane.core.errors import InvalidInput
from memlane.lanes.layers.aging import EVERY


class Layer(NamedTuple):
    folder: str
    names: tuple[str, ...]  # what makes the path below the folder
    fields: tuple[str, ...]  # what a Memory calls them


LAYERS = {
    "shared-project": Layer("projects", ("project_name",), ("project",)),
    "skill-specific": Layer("skills", ("skill_name", "project_name"), ("skill", "project")),
    "command": Layer("commands", ("project_name",), ("project",)),
    "agent": Layer("agents", ("agent_name",), ("agent",)),
}
LAYER_OF = {layer.folder: name for name, layer in LAYERS.items()}
SCOPES = ("project", "skill", "all")
NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?")
_DEPTH = {name: len(layer.names) + 2 for name, layer in LAYERS.items()}
_BELOW = {  # what a path looks like below the layer's folder
    layer.folder: (name, re.compile("/".join([NAME.pattern] * (len(layer.names) + 1)) + r"\.md"))
    for name, layer in LAYERS.items()
}
_SAMPLES = {
    "project_name": "my-api",
    "skill_name": "python-code-review",
    "command_name": "analyze",
    "agent_name": "hephaestus",
}
ALIASES = {"layer": "layer", "file_type": "file_type", "fileType": "file_type"} | {
    alias: name for name in _SAMPLES for alias in (name, name[:-5], f"{name[:-5]}Name")
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEntry:
    """One memory with the seed's fields. Dates are `YYYY-MM-DD`; created_at is None where nobody noted it."""

    id: str = ""
    layer: str
    project_name: str | None = None
    skill_name: str | None = None
    command_name: str | None = None
    agent_name: str | None = None
    file_type: str
    content: str = ""
    created_at: str | None = None
    updated_at: str | None = None
    staleness: str = "fresh"
    line_count: int = 0
    advisory: str | None = field(default=None, compare=False)  # not part of the seed's schema

    def to_dict(self) -> dict[str, Any]:
        """The seed's shape; names that the layer does not use are left out."""
        shape = {_camel(item.name): getattr(self, item.name) for item in fields(self) if item.name != "advisory"}
        return {key: value for key, value in shape.items() if value is not None or key.endswith("At")}


# -- names and ids


def layer_named(name: Any) -> Layer:
    if not isinstance(name, str) or name not in LAYERS:
        raise InvalidInput("There is no such layer.", hint=f"Use one of: {', '.join(LAYERS)}.")
    return LAYERS[name]


def checked(name: Any) -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InvalidInput(
            "A name of a project, skill, agent or file type is empty or has characters that it may not have.",
            hint="Use letters, digits, '.', '_' and '-', and start with a letter or digit.",
        )
    return name


def id_for(values: Mapping[str, Any]) -> str:
    """The id of a layer, names and file type. Raises InvalidInput, also for a bad name that the layer does not use."""
    layer = layer_named(values.get("layer"))
    for name, sample in _SAMPLES.items():
        value = values.get(name)
        if value is None and name in layer.names:
            raise InvalidInput(f"The layer {values['layer']} needs a {name}.", hint=f"Give {name}, such as {sample}.")
        if value or name in layer.names:
            checked(value)
    if values.get("file_type") in (None, ""):
        raise InvalidInput("The memory needs a file type.", hint="Give file_type, such as known_issues.")
    return "/".join((values["layer"], *(values[name] for name in layer.names), checked(values["file_type"])))


def path_of(id: Any) -> str:
    """The path of an id below the root. Raises InvalidInput (invalid_id)."""
    parts = id.split("/") if isinstance(id, str) else [""]
    if len(parts) != _DEPTH.get(parts[0]) or not all(map(NAME.fullmatch, parts)):
        raise InvalidInput(
            "That is not the id of a memory in a layer.",
            code="invalid_id",
            hint="Ids look like shared-project/my-api/project_profile or skill-specific/review/my-api/known_issues.",
        )
    return "/".join((LAYERS[parts[0]].folder, *parts[1:])) + ".md"


def id_of(relative: str) -> str | None:
    """The id of a path below the root, when it is where a memory can be."""
    folder, _, below = relative.partition("/")
    layer, pattern = _BELOW.get(folder, ("", NAME))
    return f"{layer}/{below[:-3]}" if layer and pattern.fullmatch(below) else None


def names_of(id: str) -> dict[str, str]:
    """layer, project_name …, file_type of an id; {} for the id of a file outside the layers."""
    layer, *names, file_type = id.split("/")
    if len(names) + 2 != _DEPTH.get(layer):
        return {}
    return {"layer": layer, **dict(zip(LAYERS[layer].names, names, strict=True)), "file_type": file_type}


def type_of(id: str) -> str:
    return id.rpartition("/")[2]


# -- the seed's shapes


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


_ENTRY_KEYS = {
    **ALIASES,
    **{key: item.name for item in fields(MemoryEntry) for key in (item.name, _camel(item.name))},
    "qualityChecks": "quality_checks",
}


def entry_values(entry: Mapping[str, Any] | MemoryEntry) -> dict[str, Any]:
    """An entry's fields in snake_case. What the store computes itself (dates, counts) is accepted and not used."""
    if isinstance(entry, MemoryEntry):
        return {item.name: getattr(entry, item.name) for item in fields(entry)}
    if not isinstance(entry, Mapping):
        raise InvalidInput("The entry is not a mapping.", hint="Give layer, projectName, fileType and content.")
    if any(key not in _ENTRY_KEYS for key in entry):
        raise InvalidInput(
            "The entry has a field that memories do not have.",
            hint="Use layer, projectName, skillName, commandName, agentName, fileType and content.",
        )
    return {_ENTRY_KEYS[key]: value for key, value in entry.items()}


def policy_values(options: Mapping[str, Any]) -> dict[str, Any]:
    """A pruning policy as scope, project_name, skill_name and dry_run. Raises InvalidInput."""
    keys = {"scope": "scope", "dryRun": "dry_run", "dry_run": "dry_run", **ALIASES}
    wanted: dict[str, Any] = {"scope": "all", "dry_run": False, "project_name": None, "skill_name": None}
    for key, value in options.items():
        if keys.get(key) not in wanted:
            raise InvalidInput("The policy has an unknown field.", hint="Use scope, projectName, skillName, dryRun.")
        wanted[keys[key]] = value
    scope = wanted["scope"]
    if scope not in SCOPES:
        raise InvalidInput("There is no such scope.", hint=f"Use one of: {', '.join(SCOPES)}.")
    if scope != "all" and not wanted[f"{scope}_name"]:
        raise InvalidInput(f"The scope {scope} needs a {scope}Name.", hint="Name it, or use the scope all.")
    for name in ("project_name", "skill_name"):
        if wanted[name] is not None:
            checked(wanted[name])
    return wanted


# -- usage


@lru_cache(1024)
def midnight(day: str) -> datetime | None:
    """The moment that a created date stands for; a store has the same few again and again."""
    return moment(day)


class Usage(NamedTuple):
    """What is noted of a memory beside it: when it was created, how often loaded or written, how long it was then."""

    created: str | None = None
    invocations: int = 0
    lines: tuple[int, ...] = ()

    @classmethod
    def of(cls, record: Any) -> Usage:
        """From JSON; what is nonsense in it counts as not noted. Raises AttributeError when it is no object."""
        created, count, lines = record.get("createdAt"), record.get("invocations"), record.get("lines")
        return cls(
            created if isinstance(created, str) and midnight(created) else None,
            count if isinstance(count, int) else 0,
            tuple(line for line in lines if isinstance(line, int))[-EVERY:] if isinstance(lines, list) else (),
        )

    def to_json(self) -> dict[str, Any]:
        return {"createdAt": self.created, "invocations": self.invocations, "lines": list(self.lines)}

    def then(self, later: Usage) -> Usage:
        """This record, continued by one that may not know the beginning."""
        if later.created:
            return later
        return Usage(self.created, self.invocations + later.invocations, (*self.lines, *later.lines)[-EVERY:])


UNUSED = Usage()


def fold(lines: Sequence[str], noted: dict[str, Usage]) -> list[int]:
    """Take the lines of a side file into `noted`; return the places of those that say nothing readable.

    A line is `{"<file type>": …, …}`: a number is the line count at one more invocation, an object the whole record.
    """
    damaged = []
    for place, line in enumerate(lines):
        try:
            news = json.loads(line) if line.strip() else {}
            for file_type, value in news.items():
                if isinstance(value, int):
                    noted[file_type] = noted.get(file_type, UNUSED).then(Usage(None, 1, (value,)))
                else:
                    noted[file_type] = Usage.of(value)
        except (ValueError, RecursionError, AttributeError):  # not JSON, or no objects where they should be
            damaged.append(place)
    return damaged
