"""Anthropic's Messages: what Claude Code speaks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from scripted import JSON, Body, events


def tools(request: dict[str, Any]) -> dict[str, str]:
    return {tool["name"]: tool["name"] for tool in request.get("tools", ())}


def results(request: dict[str, Any]) -> int:
    content = [message.get("content") for message in request["messages"]]
    blocks = [block for each in content if isinstance(each, list) for block in each]
    return sum(block.get("type") == "tool_result" for block in blocks)


def called(path: str, request: dict[str, Any], tool: str, arguments: Mapping[str, Any]) -> Body:
    block = {"type": "tool_use", "id": f"toolu_scripted_{results(request)}", "name": tool, "input": {}}
    return _message(request, block, {"type": "input_json_delta", "partial_json": json.dumps(arguments)}, "tool_use")


def said(path: str, request: dict[str, Any], text: str) -> Body:
    if path.split("?")[0].endswith("count_tokens"):
        return JSON, b'{"input_tokens": 100}'
    return _message(request, {"type": "text", "text": ""}, {"type": "text_delta", "text": text}, "end_turn")


def _message(request: dict[str, Any], block: dict[str, Any], delta: dict[str, Any], stop: str) -> Body:
    usage = {"input_tokens": 10, "output_tokens": 10}
    message = {
        "id": f"msg_{len(request['messages']):04}_{stop}", "type": "message", "role": "assistant",
        "model": request.get("model", ""), "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    if not request.get("stream"):
        whole = {**block, "text": delta["text"]} if "text" in delta else {**block, "input": {}}
        return JSON, json.dumps({**message, "content": [whole], "stop_reason": stop}).encode()
    return events(
        ("message_start", {"type": "message_start", "message": message}),
        ("content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}),
        ("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}),
        ("content_block_stop", {"type": "content_block_stop", "index": 0}),
        (
            "message_delta",
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
        ),
        ("message_stop", {"type": "message_stop"}),
    )
