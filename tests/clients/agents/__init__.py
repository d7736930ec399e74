"""The clients side by side: how each is run without a person and without an account, against a model on this machine.

What `memlane connect` has to write is not here: the tests let it write that. Nothing leaves the machine: the variables
and settings that switch off reports, updates and downloads are the vendors' own. `{url}` is where the model listens.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scripted import Call, Wire, completions, gemini, messages, responses


@dataclass(frozen=True)
class Agent:
    client: str  # memlane's name for it
    package: str  # npm's
    program: str
    wire: Wire
    arguments: tuple[str, ...]  # with {prompt}
    resume: tuple[str, ...]  # as well, before the prompt, to go on with the last session
    variables: Mapping[str, str]
    settings: tuple[str, str]  # a file in the home folder, and what the user has in it before
    writes: Call  # how its own tool writes {file} with {text}


def _json(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"


_OPENCODE = {
    "model": "local/scripted",
    "small_model": "local/small",
    "provider": {
        "local": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Local",
            "options": {"baseURL": "{url}/v1", "apiKey": "none"},
            "models": {"scripted": {"name": "Scripted", "tool_call": True}, "small": {"name": "Small"}},
        }
    },
}

_MINE = """\
{
  "$schema": "https://opencode.ai/config.json",
  // mine
  "share": "disabled"
}
"""

_CODEX = """\
model = "scripted"  # on this machine
model_provider = "local"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.local]
name = "Local"
env_key = "LOCAL_KEY"
wire_api = "responses"
"""

_GEMINI = {
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    "privacy": {"usageStatisticsEnabled": False},
    "security": {"folderTrust": {"enabled": False}, "auth": {"selectedType": "gemini-api-key"}},
}

_PATCH = """\
apply_patch <<'EOF'
*** Begin Patch
*** Add File: {file}
+{text}
*** End Patch
EOF
"""

AGENTS = (
    Agent(
        client="claude-code",
        package="@anthropic-ai/claude-code",
        program="claude",
        wire=messages,
        arguments=("--allowedTools", "mcp__memlane__remember,Write", "--output-format", "json", "-p", "{prompt}"),
        resume=("--continue",),
        variables={
            "ANTHROPIC_BASE_URL": "{url}",
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS": "30000",  # 1500 without it; this machine may be a slow one
            "ENABLE_TOOL_SEARCH": "false",  # the tools are in the first request, not looked up
            "MCP_CONNECTION_NONBLOCKING": "false",  # and the first request waits for them
        },
        settings=(".claude/settings.json", _json({"cleanupPeriodDays": 30})),
        writes=Call("Write", {"file_path": "{file}", "content": "{text}"}),
    ),
    Agent(
        client="codex",
        package="@openai/codex",
        program="codex",
        wire=responses,
        arguments=(
            "exec",
            "--skip-git-repo-check",
            "--json",
            "--dangerously-bypass-hook-trust",  # a person types /hooks once instead
            "--dangerously-bypass-approvals-and-sandbox",
            "-c",
            "mcp_servers.memlane.required=true",  # else a first turn that begins within a second may have no tools yet
            "-c",
            'model_providers.local.base_url="{url}/v1"',
            "{prompt}",
        ),
        resume=("resume", "--last"),
        variables={"LOCAL_KEY": "none"},
        settings=(".codex/config.toml", _CODEX),
        writes=Call("exec_command", {"cmd": _PATCH}),
    ),
    Agent(
        client="opencode",
        package="opencode-ai",
        program="opencode",
        wire=completions,
        arguments=("run", "--format", "json", "{prompt}"),
        resume=("--continue",),
        variables={
            "OPENCODE_CONFIG_CONTENT": json.dumps(_OPENCODE),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "npm_config_registry": "http://127.0.0.1:9",  # else it fetches its package for writing plugins
            "npm_config_fetch_retries": "0",
        },
        settings=(".config/opencode/opencode.jsonc", _MINE),
        writes=Call("write", {"filePath": "{file}", "content": "{text}"}),
    ),
    Agent(
        client="gemini",
        package="@google/gemini-cli",
        program="gemini",
        wire=gemini,
        arguments=("-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-o", "json", "-p", "{prompt}"),
        resume=("--resume", "latest"),
        variables={"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": "{url}"},
        settings=(".gemini/settings.json", _json(_GEMINI)),
        writes=Call("write_file", {"file_path": "{file}", "content": "{text}"}),
    ),
)
