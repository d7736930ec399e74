"""Gemini's generateContent and streamGenerateContent: what Gemini CLI speaks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from scripted import JSON, Body, events


def tools(request: dict[str, Any]) -> dict[str, str]:
    declared = [each for tool in request.get("tools", ()) for each in tool.get("functionDeclarations", ())]
    return {tool["name"]: tool["name"] for tool in declared}


def results(request: dict[str, Any]) -> int:
    return sum("functionResponse" in part for content in request["contents"] for part in content.get("parts", ()))


def called(path: str, request: dict[str, Any], tool: str, arguments: Mapping[str, Any]) -> Body:
    return _response(path, {"functionCall": {"name": tool, "args": dict(arguments)}})


def said(path: str, request: dict[str, Any], text: str) -> Body:
    if ":countTokens" in path:
        return JSON, b'{"totalTokens": 100}'
    return _response(path, {"text": text})


def _response(path: str, part: dict[str, Any]) -> Body:
    response = {
        "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20},
    }
    return events(("", response)) if "alt=sse" in path else (JSON, json.dumps(response).encode())
