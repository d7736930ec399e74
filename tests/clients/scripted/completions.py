"""OpenAI's chat completions, which many serve: what opencode speaks to a provider of your own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from scripted import JSON, Body, events


def tools(request: dict[str, Any]) -> dict[str, str]:
    return {tool["function"]["name"]: tool["function"]["name"] for tool in request.get("tools", ())}


def results(request: dict[str, Any]) -> int:
    return sum(message.get("role") == "tool" for message in request["messages"])


def called(path: str, request: dict[str, Any], tool: str, arguments: Mapping[str, Any]) -> Body:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    call = {"index": 0, "id": f"call_{results(request)}", "type": "function", "function": function}
    return _completion(request, {"tool_calls": [call]}, "tool_calls")


def said(path: str, request: dict[str, Any], text: str) -> Body:
    return _completion(request, {"content": text}, "stop")


def _completion(request: dict[str, Any], delta: dict[str, Any], reason: str) -> Body:
    head = {"id": "chatcmpl-1", "created": 0, "model": request.get("model", "")}
    usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
    message = {"role": "assistant", **delta}
    if not request.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return JSON, json.dumps({**head, "object": "chat.completion", "choices": [choice], "usage": usage}).encode()
    head["object"] = "chat.completion.chunk"
    return events(
        ("", {**head, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}),
        ("", {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage}),
        ("", "[DONE]"),
    )
