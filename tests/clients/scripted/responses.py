"""OpenAI's Responses: what Codex speaks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from scripted import Body, events


def tools(request: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Tools of a server come in a namespace."""
    found = {}
    for tool in request.get("tools", ()):
        if tool.get("type") == "namespace":
            for inner in tool["tools"]:
                found[f"{tool['name']}.{inner['name']}"] = {"namespace": tool["name"], "name": inner["name"]}
        elif "name" in tool:
            found[tool["name"]] = {"name": tool["name"]}
    return found


def results(request: dict[str, Any]) -> int:
    return sum(str(item.get("type")).endswith("_call_output") for item in request["input"])


def called(path: str, request: dict[str, Any], tool: dict[str, str], arguments: Mapping[str, Any]) -> Body:
    number = results(request)
    ids = {"id": f"fc_{number}", "call_id": f"call_{number}"}
    return _response({"type": "function_call", **ids, "arguments": json.dumps(arguments), **tool})


def said(path: str, request: dict[str, Any], text: str) -> Body:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    name = f"msg_{len(request.get('input', ())):04}"
    return _response({"type": "message", "id": name, "role": "assistant", "status": "completed", "content": content})


def _response(item: dict[str, Any]) -> Body:
    usage = {"input_tokens": 10, "output_tokens": 10, "total_tokens": 20}
    response = {"id": "resp_1", "object": "response", "status": "completed", "output": [item], "usage": usage}
    return events(
        ("response.created", {"type": "response.created", "response": {**response, "output": []}}),
        ("response.output_item.added", {"type": "response.output_item.added", "output_index": 0, "item": item}),
        ("response.output_item.done", {"type": "response.output_item.done", "output_index": 0, "item": item}),
        ("response.completed", {"type": "response.completed", "response": response}),
    )
