"""What a tool is: a function of the bank and its arguments, made into schemas by its signature.

    @tool(READS, indexed=True)
    def search_memories(bank: Bank, query: str, limit: Limit = 5) -> list[Found]: …

The docstring is the description. Arguments are checked before the function is called; what is wrong with them is said
without repeating them, for they may hold a secret.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_origin, get_type_hints

from mcp.types import ToolAnnotations
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from memlane.core.errors import InvalidInput

READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False)


def _listed(value: Any) -> Any:
    """A list that a client sent as JSON text, as some do, or as words with commas."""
    if not isinstance(value, str):
        return value
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        read = None
    return read if isinstance(read, list) else [word.strip() for word in value.split(",") if word.strip()]


Words = Annotated[list[str], BeforeValidator(_listed)]
Limit = Annotated[int, Field(ge=0, le=100)]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `indexed` says that it asks the index, which is brought up to date before; `told`, that what it writes
    is told to the index at once.
    """

    name: str
    title: str
    description: str
    run: Callable[..., Any]
    annotations: ToolAnnotations
    indexed: bool
    told: bool
    arguments: type[BaseModel]
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    listing: bool  # its result is a list: structured content must be an object, so that it stands under "result"

    @property
    def behind(self) -> bool:
        """Whether the index may not know what it has written."""
        return not self.annotations.read_only_hint and not self.told

    def checked(self, given: Mapping[str, Any] | None) -> dict[str, Any]:
        """The arguments as the function takes them. Raises InvalidInput, which repeats nothing of what was given."""
        try:
            read = self.arguments.model_validate(dict(given or {}))
        except ValidationError as error:
            raise InvalidInput(self._complaint(error), hint=f"It takes: {', '.join(self._names())}.") from None
        return {name: getattr(read, name) for name in self.arguments.model_fields}

    def _complaint(self, error: ValidationError) -> str:
        wrong: list[str] = []
        for one in error.errors(include_input=False, include_url=False, include_context=False):
            name = str(one["loc"][0]) if one["loc"] else ""
            if name in self.arguments.model_fields:
                wrong.append(f"{name}: {one['msg'][:1].lower()}{one['msg'][1:]}")
            else:
                wrong.append("there is an argument that it does not have")
        return f"{self.name} cannot be called like that; {'; '.join(dict.fromkeys(wrong))}."

    def _names(self) -> list[str]:
        fields = self.arguments.model_fields.items()
        return [name if field.is_required() else f"{name} (optional)" for name, field in fields] or ["no arguments"]


def tool(
    annotations: ToolAnnotations, *, indexed: bool = False, told: bool = False, name: str = ""
) -> Callable[[Callable[..., Any]], Tool]:
    """Make a function a tool. Its first parameter is the bank; the others are what a client may send."""

    def make(function: Callable[..., Any]) -> Tool:
        hints = get_type_hints(function, include_extras=True)
        result = hints.pop("return")
        fields: dict[str, Any] = {}
        for parameter in list(inspect.signature(function).parameters.values())[1:]:
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[parameter.name] = (hints[parameter.name], default)
        called = name or function.__name__
        model = create_model(called, __config__=ConfigDict(extra="forbid"), **fields)
        listing = get_origin(result) is list
        output = compact(TypeAdapter(result).json_schema())
        if listing:
            output = {"type": "object", "properties": {"result": output}, "required": ["result"]}
        return Tool(
            name=called,
            title=called.replace("_", " ").capitalize(),
            description=" ".join((inspect.getdoc(function) or "").split()),
            run=function,
            annotations=annotations,
            indexed=indexed,
            told=told,
            arguments=model,
            input_schema=compact(model.model_json_schema(), nullable=False),
            output_schema=output,
            listing=listing,
        )

    return make


def compact(schema: dict[str, Any], *, nullable: bool = True) -> dict[str, Any]:
    """A schema without titles and references, since an agent pays for every word of it.

    With `nullable=False`, null is accepted but not advertised: leaving an argument out says the same.
    """
    definitions = schema.get("$defs", {})

    def shrink(part: Any, names: bool = False) -> Any:
        if isinstance(part, list):
            return [shrink(item) for item in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return shrink(definitions[part["$ref"].rpartition("/")[2]])
        if names:  # what stands here are the names of properties, whatever they are called
            return {name: shrink(value) for name, value in part.items()}
        kinds = part.get("anyOf", [])
        if {"type": "null"} in kinds and len(kinds) == 2:
            only = next(kind for kind in kinds if kind != {"type": "null"})
            part = {**{key: value for key, value in part.items() if key != "anyOf"}, **only}
            if nullable:
                part["type"] = [part["type"], "null"]
        return {
            key: shrink(value, key == "properties")
            for key, value in part.items()
            if key not in ("title", "$defs") and not (key == "default" and value is None)
        }

    found: dict[str, Any] = shrink(schema)
    return found
