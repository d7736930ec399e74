"""What a tool is: a function of the bank and its arguments, with schemas made from its signature.

    @tool(READS, reads_index=True)
    def search_memories(bank: Bank, query: str, limit: Limit = 5) -> list[Found]: …

The docstring is the description that clients see. Arguments are checked before the function is called. A complaint
about them never repeats their values, which may hold a secret.

A result is sent twice, for a client shows its model either: as structured content, and as a text of a few lines.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from mcp.types import Tool as Definition
from mcp.types import ToolAnnotations
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError, create_model

from memlane import gate
from memlane.core.errors import InvalidInput
from memlane.surfaces.mcp.lines import as_lines

READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False)


def _listed(value: Any) -> Any:
    """Some clients send a list as JSON text or as words with commas, or null for none: the list it stands for."""
    if value is None:
        return []
    if not isinstance(value, str):
        return value
    try:
        decoded = json.loads(value)
    except (ValueError, RecursionError):
        decoded = None
    return decoded if isinstance(decoded, list) else [word.strip() for word in value.split(",") if word.strip()]


LIST = BeforeValidator(_listed)
Words = Annotated[list[str], LIST]
Limit = Annotated[int, Field(ge=0, le=100)]
Since = Annotated[str | None, Field(description="YYYY-MM-DD")]
Until = Annotated[str | None, Field(description="YYYY-MM-DD")]
T = TypeVar("T")

# Names that models take for one another. One that a tool does not have means the argument of its group that it has.
_SAME = (
    ("text", "content", "body", "memory", "fact", "summary_content"),
    ("id", "filename", "memory_id", "path", "file", "file_path", "name", "title"),
    ("target_document", "document", "target", "path", "file", "file_path"),
    ("type", "memory_type", "filter_type", "category", "kind"),
    ("tags", "tag", "filter_tags", "keywords", "labels"),
    ("limit", "top_k", "k", "n", "count", "max_results"),
    ("query", "q", "question", "text", "search"),
    ("scope", "scopes"),
    ("since", "after", "start"),
    ("until", "before", "end"),
    ("budget", "max_tokens", "tokens"),
    ("topic_id", "topic", "key"),
    ("section", "heading", "header_path"),
    ("old", "old_str", "old_string", "old_text"),
    ("new", "new_str", "new_string", "new_text"),
)


class Remarked(list[T]):
    """A list with a sentence about it: why it is empty, or how to go on."""

    def __init__(self, items: Iterable[T] = (), remark: str = "") -> None:
        super().__init__(items)
        self.remark = remark


def without_lane(lane: str) -> AfterValidator:
    """For an id that may be the bank's, `vault:3f9a1c0b7d2e`: the tool gets the lane's own, `3f9a1c0b7d2e`."""
    return AfterValidator(lambda given: given.removeprefix(f"{lane}:"))


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: what clients are told of it, the function to call, and the model that checks its arguments.

    `reads_index`: the index is brought up to date before the call. `updates_index`: the function itself tells the index
    what it has written.
    """

    definition: Definition
    run: Callable[..., Any]
    arguments: type[BaseModel]
    reads_index: bool
    updates_index: bool
    wraps: bool  # structured content must be an object, so a list or null is sent as {"result": …}
    lines: Callable[[Any], str]

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def reads(self) -> bool:
        """Whether it changes nothing."""
        return self.definition.annotations == READS

    @property
    def right(self) -> str:
        """What a token must be allowed to do: `memlane.core.access.RIGHTS`."""
        if self.reads:
            return "read"
        noted = self.definition.annotations
        return "write" if noted is not None and noted.destructive_hint is False else "remove"

    @property
    def outdates_index(self) -> bool:
        """Whether the index may not know what the tool has written."""
        return not self.reads and not self.updates_index

    def answer(self, result: Any) -> tuple[str, dict[str, Any]]:
        """What a client is sent: a text of a few lines, and the data."""
        if not self.wraps:
            return self.lines(result), result
        remark = getattr(result, "remark", "") or ("" if result else "There is nothing.")
        shown = "\n".join(filter(None, (self.lines(result) if result else "", remark)))
        return shown, {"result": result, **({"remark": remark} if remark else {})}

    def checked(self, given: Mapping[str, Any] | None) -> dict[str, Any]:
        """The arguments as the function takes them. Raises InvalidInput, which repeats nothing of what was given."""
        fields = self.arguments.model_fields
        try:
            arguments = self.arguments.model_validate(self._named(given or {}))
        except ValidationError as error:
            names = [name if field.is_required() else f"{name} (optional)" for name, field in fields.items()]
            hint = f"It takes: {', '.join(names or ['no arguments'])}."
            raise InvalidInput(self._complaint(error), hint=hint) from None
        return {name: getattr(arguments, name) for name in fields}

    def _named(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by the names that the tool has for them, and its own words in lower case."""
        schemas = self.definition.input_schema["properties"]
        named = {name: value for name, value in given.items() if name in schemas}
        for name, value in given.items():
            if name not in schemas:
                meant = {other for group in _SAME if name in group for other in group if other in schemas} - set(named)
                named[meant.pop() if len(meant) == 1 else name] = value
        for name, value in named.items():
            if isinstance(value, str) and value.lower() in schemas.get(name, {}).get("enum", ()):
                named[name] = value.lower()
        return named

    def _complaint(self, error: ValidationError) -> str:
        complaints: list[str] = []
        for detail in error.errors(include_input=False, include_url=False, include_context=False):
            name = str(detail["loc"][0]) if detail["loc"] else ""
            if name in self.arguments.model_fields:
                # of what is missing, the whole path is the schema's own: entities.0.entityType
                where = ".".join(map(str, detail["loc"])) if detail["type"] == "missing" else name
                complaints.append(f"{where}: {detail['msg'][:1].lower()}{detail['msg'][1:]}")
            else:
                is_name = name.isidentifier() and len(name) < 200  # else it is not worth to be judged
                near = get_close_matches(name[:200], self.arguments.model_fields, 1)
                instead = f"use {near[0]}" if near else "leave it out"
                shown = gate.shown(name)[:40] if is_name else "of that name"
                complaints.append(f"there is no argument {shown}: {instead}")
        return f"{self.name} cannot be called like that; {'; '.join(dict.fromkeys(complaints))}."


def tool(
    annotations: ToolAnnotations,
    *,
    reads_index: bool = False,
    updates_index: bool = False,
    name: str = "",
    lines: Callable[[Any], str] = as_lines,
) -> Callable[[Callable[..., Any]], Tool]:
    """Make a function a tool. Its first parameter is the bank; the others are what a client may send.

    `lines` is how its result reads as text.
    """

    def make(function: Callable[..., Any]) -> Tool:
        hints = get_type_hints(function, include_extras=True)
        parameters = list(inspect.signature(function).parameters.values())[1:]
        fields: dict[str, Any] = {
            parameter.name: (hints[parameter.name], ... if parameter.default is parameter.empty else parameter.default)
            for parameter in parameters
        }
        tool_name = name or function.__name__
        arguments = create_model(tool_name, __config__={"extra": "forbid"}, **fields)
        returned = hints["return"]
        wraps = get_origin(returned) in (list, Remarked) or type(None) in get_args(returned)
        if wraps:
            plain: Any = list[get_args(returned)[0]] if get_origin(returned) is Remarked else returned  # type: ignore[misc]
            kinds = {"result": compact(TypeAdapter(plain).json_schema()), "remark": {"type": "string"}}
            output = {"type": "object", "properties": kinds, "required": ["result"]}
        else:
            output = compact(TypeAdapter(returned).json_schema())
        definition = Definition(
            name=tool_name,
            title=tool_name.replace("_", " ").capitalize(),
            description=" ".join((inspect.getdoc(function) or "").split()),
            input_schema=compact(arguments.model_json_schema(), nullable=False),
            output_schema=output,
            annotations=annotations,
        )
        return Tool(definition, function, arguments, reads_index, updates_index, wraps, lines)

    return make


def compact(schema: dict[str, Any], *, nullable: bool = True) -> dict[str, Any]:
    """A schema without titles and references, since an agent pays for every word of it.

    With `nullable=False`, null is accepted but not advertised: leaving an argument out means the same.
    """
    definitions = schema.get("$defs", {})

    def shrink(part: Any, *, is_properties: bool = False) -> Any:
        if isinstance(part, list):
            return [shrink(item) for item in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return shrink(definitions[part["$ref"].rpartition("/")[2]])
        if is_properties:  # the keys are names that somebody chose; `title` may be one of them
            return {name: shrink(value) for name, value in part.items()}
        kinds = part.get("anyOf", [])
        if {"type": "null"} in kinds and len(kinds) == 2:
            not_null = next(kind for kind in kinds if kind != {"type": "null"})
            part = {**{key: value for key, value in part.items() if key != "anyOf"}, **not_null}
            if nullable:
                part["type"] = [part["type"], "null"]
        return {
            key: shrink(value, is_properties=key == "properties")
            for key, value in part.items()
            if key not in ("title", "$defs") and not (key == "default" and value is None)
        }

    shrunk: dict[str, Any] = shrink(schema)
    return shrunk
