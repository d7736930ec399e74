"""Write the reference part of docs/mcp.md from the tools, resources and prompts in the code.

python scripts/mcp_reference.py           writes it
python scripts/mcp_reference.py --check   exit code 1 when it is not what the code says
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memlane.surfaces.mcp import prompts, resources, toolsets
from memlane.surfaces.mcp.server import INSTRUCTIONS
from memlane.surfaces.mcp.tools import Tool

PAGE = Path(__file__).parent.parent / "docs/mcp.md"
MARK = "<!-- From here on written by scripts/mcp_reference.py. -->\n"


def reference() -> str:
    lines = ["## Tools", "", "### By default", ""]
    for tool in toolsets.DEFAULT:
        lines += described(tool)
    for name in toolsets.NAMES:
        lines += [f"### Toolset `{name}`", ""]
        for tool in toolsets.tools([name])[len(toolsets.DEFAULT) :]:
            lines += described(tool)
    lines += ["## Resources", ""]
    for uri, what in (
        (resources.INDEX, resources.INDEX_RESOURCE.description),
        (resources.TEMPLATE.uri_template, resources.TEMPLATE.description),
    ):
        lines.append(f"- `{uri}`: {what}")
    lines += ["", "## Prompts", ""]
    for prompt in (template.prompt for template in prompts.TEMPLATES.values()):
        arguments = ", ".join(f"`{argument.name}`" for argument in prompt.arguments or [])
        lines.append(f"- `{prompt.name}`{f' ({arguments})' if arguments else ''}: {prompt.description}")
    lines += ["", "## Instructions", "", "What a client tells its model about the server:", ""]
    lines += [f"> {line}".rstrip() for line in INSTRUCTIONS.splitlines()]
    return "\n".join(lines) + "\n"


def described(tool: Tool) -> Iterator[str]:
    definition = tool.definition
    hints = definition.annotations
    kind = "reads" if hints.read_only_hint else "can remove or replace" if hints.destructive_hint else "adds"
    yield from (f"#### `{definition.name}`", "", f"{definition.description} *({kind})*", "")
    required = definition.input_schema.get("required", [])
    if definition.input_schema["properties"]:
        yield from ("| argument | type | default | |", "|---|---|---|---|")
    for name, schema in definition.input_schema["properties"].items():
        default = "required" if name in required else f"`{schema['default']}`" if "default" in schema else ""
        yield f"| `{name}` | {typed(schema)} | {default} | {schema.get('description', '')} |"
    if definition.input_schema["properties"]:
        yield ""
    result = definition.output_schema
    wrapped = result["properties"]["result"] if tool.wraps else {}
    if "items" in wrapped:
        yield f"Answers a list of objects{keys(wrapped['items'])}."
    elif wrapped:
        yield f"Answers an object{keys(wrapped)}, or null."
    else:
        yield f"Answers an object{keys(result)}."
    yield ""


def typed(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {typed(schema['items'])}"
    bounds = [f"{schema[key]:,}" for key in ("minimum", "maximum") if key in schema]
    return f"{kind} {' … '.join(bounds)}".strip()


def keys(schema: dict[str, Any]) -> str:
    names = [f"`{name}`" for name in schema.get("properties", {})]
    return f" with {', '.join(names)}" if names else " in the lane's own shape"


def main() -> None:
    by_hand = PAGE.read_text().partition(MARK)[0]
    page = f"{by_hand}{MARK}\n{reference()}"
    if "--check" not in sys.argv:
        PAGE.write_text(page)
    elif PAGE.read_text() != page:
        sys.exit("docs/mcp.md is not what the code says; run `python scripts/mcp_reference.py`")


if __name__ == "__main__":
    main()
