"""Memories of the layers lane as values: which names make an id and a path, and the seed's shapes. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any, NamedTuple

from memlane.core.dates import moment
from memlane.core.errors import InvalidInput
from memlane.core.markdown import first_heading
from memlane.core.model import Memory
from memlane.core.values import asdict, dataclass, field, fields
from memlane.disk.names import safe_parts
from memlane.lanes.layers import aging
from memlane.lanes.layers.usage import Usage


class Layer(NamedTuple):
    folder: str
    names: tuple[str, ...]  # what makes the path below the folder


LAYERS = {
    "shared-project": Layer("projects", ("project_name",)),
    "skill-specific": Layer("skills", ("skill_name", "project_name")),
    "command": Layer("commands", ("project_name",)),
    "agent": Layer("agents", ("agent_name",)),
}
LAYER_OF = {layer.folder: name for name, layer in LAYERS.items()}
SCOPES = ("project", "skill", "all")
_DEPTH = {name: len(layer.names) + 2 for name, layer in LAYERS.items()}
_SAMPLES = {
    "project_name": "my-api", "skill_name": "python-code-review", "command_name": "analyze", "agent_name": "hephaestus",
}  # fmt: skip
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
        return {
            _camel(name): value
            for name, value in asdict(self).items()
            if name != "advisory" and (value is not None or name.endswith("_at"))
        }


# -- names and ids


def layer_named(name: Any) -> Layer:
    if not isinstance(name, str) or name not in LAYERS:
        raise InvalidInput("There is no such layer.", hint=f"Use one of: {', '.join(LAYERS)}.")
    return LAYERS[name]


def layer_of(names: Mapping[str, Any]) -> str:
    """The layer that is named, or else the one that the other names are of."""
    by_name = {"agent_name": "agent", "skill_name": "skill-specific", "command_name": "command"}
    implied = (layer for name, layer in by_name.items() if names.get(name))
    return names.get("layer") or next(implied, "shared-project")


def checked(name: Any) -> str:
    if not is_name(name):
        raise InvalidInput(
            "A name of a project, skill, agent or file type is empty or has characters that it may not have.",
            hint="Use letters and digits of any alphabet, spaces, '.', '_' and '-', and start with a letter or digit.",
        )
    return str(name)


def is_name(name: Any) -> bool:
    """Whether a project, skill, agent or file type may have this name: that of a folder or repository, as it is."""
    if not isinstance(name, str) or "/" in name or "~" in name or not name[:1].isalnum():
        return False
    try:
        safe_parts(name)
    except InvalidInput:
        return False
    return True


def id_for(values: Mapping[str, Any]) -> str:
    """The id of a layer, names and file type. Raises InvalidInput, also for a bad name that the layer does not use."""
    layer = layer_named(values.get("layer"))
    for name, sample in _SAMPLES.items():
        value = values.get(name)
        if value is None and name in layer.names:
            raise InvalidInput(
                f"The layer {values['layer']} needs the name of its {name.removesuffix('_name')}.",
                hint=f"Name it, such as {sample}.",
            )
        if value or name in layer.names:
            checked(value)
    if values.get("file_type") in (None, ""):
        raise InvalidInput("The memory needs a file type.", hint="Name it, such as known_issues.")
    return "/".join((values["layer"], *(values[name] for name in layer.names), checked(values["file_type"])))


def path_of(id: Any) -> str:
    """The path of an id below the root. Raises InvalidInput (invalid_id)."""
    if not isinstance(id, str) or not _is_id(id):
        raise InvalidInput(
            "That is not the id of a memory in a layer.",
            code="invalid_id",
            hint="Ids look like shared-project/my-api/project_profile or skill-specific/review/my-api/known_issues.",
        )
    layer, _, names = id.partition("/")
    return f"{LAYERS[layer].folder}/{names}.md"


def _is_id(id: str) -> bool:
    parts = id.split("/")
    return len(parts) == _DEPTH.get(parts[0]) and all(map(is_name, parts))


def id_of(relative: str) -> str | None:
    """The id of a path below the root, when it is where a memory can be."""
    folder, _, below = relative.partition("/")
    id = f"{LAYER_OF.get(folder)}/{below[:-3]}"
    return id if below.endswith(".md") and _is_id(id) else None


def names_of(id: str) -> dict[str, str]:
    """layer, project_name …, file_type of an id; {} for the id of a file outside the layers."""
    layer, *names = id.split("/")
    if len(names) + 1 != _DEPTH.get(layer):
        return {}
    *names, file_type = names
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
        return asdict(entry)
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
    policy: dict[str, Any] = {"scope": "all", "dry_run": False, "project_name": None, "skill_name": None}
    for key, value in options.items():
        if keys.get(key) not in policy:
            raise InvalidInput("The policy has an unknown field.", hint="Use scope, projectName, skillName, dryRun.")
        policy[keys[key]] = value
    scope = policy["scope"]
    if scope not in SCOPES:
        raise InvalidInput("There is no such scope.", hint=f"Use one of: {', '.join(SCOPES)}.")
    if scope != "all" and not policy[f"{scope}_name"]:
        raise InvalidInput(f"The scope {scope} needs the name of a {scope}.", hint="Name it, or use the scope all.")
    for name in ("project_name", "skill_name"):
        if policy[name] is not None:
            checked(policy[name])
    return policy


def entry_of(id: str, text: str, usage: Usage, today: date) -> MemoryEntry:
    """The seed's entry of a file's text."""
    updated = aging.updated_on(text)
    staleness = aging.staleness(updated, today)
    return MemoryEntry(
        id=id,
        **names_of(id),
        content=aging.body(text),
        created_at=usage.created,
        updated_at=str(updated) if updated else None,
        staleness=staleness,
        line_count=aging.line_count(text),
        advisory="[POTENTIALLY STALE]" if staleness == "stale" else None,
    )


def memory_of(path: str, id: str, text: str, usage: Usage, today: date) -> Memory:
    names = {name.removesuffix("_name"): value for name, value in names_of(id).items()}
    file_type = names.pop("file_type")
    updated = aging.updated_on(text)
    body = aging.body(text)
    return Memory(
        id=f"layers:{id}",
        lane="layers",
        text=body,
        title=first_heading(body) or file_type,
        file=path,
        type=file_type,
        status="archived" if file_type.endswith(aging.ARCHIVE) else "active",
        scope=names["layer"],
        project=names.pop("project", None),
        created_at=moment(usage.created),
        updated_at=moment(updated),
        fields={**names, "staleness": aging.staleness(updated, today), "line_count": aging.line_count(text)},
    )
