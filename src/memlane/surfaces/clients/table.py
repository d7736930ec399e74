"""The clients side by side: where each keeps its servers and hooks, and in what shape. Data only.

To add a client:

1. Add a `Client` to CLIENTS; the fields are explained there. `servers` and `entry` are all it takes to offer the tools.
   Paths start at `~`, at one of BASES in braces, or else at the project's folder. A file ending in `.toml` is edited
   as TOML, any other as JSON with comments.
2. If it has hooks, name their files in `hooks`, map its events to ours (`memlane.surfaces.hook.EVENTS`) in `events`,
   and write a `handler` that builds one hook in the client's format; an existing one may fit. Give each hook a timeout
   in the client's own unit. Then see whether `_reply` in `memlane.surfaces.hook` prints what the client reads.
3. If the client moves its files by an environment variable, add that to BASES.

The tests of `connect` and `disconnect` run for every client of the table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

SERVER = "memlane"  # the name of the entry in every client
SCOPES = ("user", "project")

# {name} in a path: (the client's own environment variable that moves it, where it is otherwise)
_CONFIG = ("XDG_CONFIG_HOME", "~/.config")
BASES = {
    "claude": ("CLAUDE_CONFIG_DIR", "~/.claude"),
    "claude-home": ("CLAUDE_CONFIG_DIR", "~"),
    "codex": ("CODEX_HOME", "~/.codex"),
    "gemini-home": ("GEMINI_CLI_HOME", "~"),
    "config": _CONFIG,
    "app": ("", "~/Library/Application Support") if sys.platform == "darwin" else _CONFIG,
}


@dataclass(frozen=True, slots=True)
class Vendor:
    """The client's own commands for its user scope; `{command}` stands for memlane's path."""

    add: str
    remove: str = ""  # needed only with `lives`
    lives: bool = False  # the client rewrites that file all the time, so it should also remove the entry itself


@dataclass(frozen=True, slots=True)
class Client:
    """One client; see the top of this module for how to add one."""

    name: str  # on our command line
    title: str
    programs: tuple[str, ...]  # its commands; it is installed when one of them or `folder` is there
    folder: str
    servers: Mapping[str, tuple[str, ...]]  # scope → files, of which the first that exists is used, else the first
    key: str  # the object in that file that lists the servers
    entry: Callable[[str], dict[str, Any]]  # memlane's path → our entry in that object
    hooks: Mapping[str, str] = field(default_factory=dict)  # scope → file
    events: tuple[tuple[str, str], ...] = ()  # (the client's event, ours)
    handler: Callable[[str, str], dict[str, Any]] | None = None  # (event, command line) → one hook; None: a plugin file
    fresh: str = ""  # what a new hooks file starts with
    plugins: str = ""  # the object in the user's hooks file that says which plugins are on
    vendor: Vendor | None = None
    notes: tuple[str, ...] = ()  # what the user has to know or do; one with "hook" in it is only for connecting hooks


def _plain(command: str) -> dict[str, Any]:
    return {"command": command, "args": ["mcp"]}


def _typed(command: str) -> dict[str, Any]:
    return {"type": "stdio", **_plain(command)}


def _opencode(command: str) -> dict[str, Any]:
    return {"type": "local", "command": [command, "mcp"], "enabled": True}


def _zed(command: str) -> dict[str, Any]:
    return {"source": "custom", **_plain(command), "env": {}}


def _vscode_hook(event: str, line: str) -> dict[str, Any]:
    return {"type": "command", "command": line, "timeout": 10}


_MATCHERS = {
    "SessionStart": "startup|resume|clear|compact",
    "PreToolUse": "Edit|MultiEdit|Write|NotebookEdit|apply_patch|Bash",
}


def _claude_hook(event: str, line: str) -> dict[str, Any]:
    """Not in the background: what a hook says at the end of a turn would come too late to continue it."""
    matcher = {"matcher": _MATCHERS[event]} if event in _MATCHERS else {}
    return {**matcher, "hooks": [_vscode_hook(event, line)]}


def _gemini_hook(event: str, line: str) -> dict[str, Any]:
    """The timeout is in milliseconds."""
    matcher = {"matcher": "write_file|replace|run_shell_command"} if event == "AfterTool" else {}
    return {**matcher, "hooks": [{"type": "command", "name": "memlane", "command": line, "timeout": 10_000}]}


def _cursor_hook(event: str, line: str) -> dict[str, Any]:
    matcher = {"matcher": "Write|Shell"} if event == "postToolUse" else {}
    return {"command": line, "timeout": 10, **matcher}


def _windsurf_hook(event: str, line: str) -> dict[str, Any]:
    return {"command": line, "show_output": False}


_EVENTS = (  # Claude Code's names, which others have adopted
    ("SessionStart", "session-start"),
    ("UserPromptSubmit", "prompt"),
    ("Stop", "stop"),
    ("PreCompact", "pre-compact"),
    ("SessionEnd", "session-end"),
)
_TOOL = ("PreToolUse", "tool")

CLIENTS = {
    client.name: client
    for client in (
        Client(
            name="claude-code",
            title="Claude Code",
            programs=("claude",),
            folder="{claude}",
            servers={"user": ("{claude-home}/.claude.json",), "project": (".mcp.json",)},
            key="mcpServers",
            entry=_typed,
            hooks={"user": "{claude}/settings.json", "project": ".claude/settings.local.json"},
            events=(*_EVENTS, _TOOL),
            handler=_claude_hook,
            plugins="enabledPlugins",
            vendor=Vendor("mcp add -s user memlane -- {command} mcp", "mcp remove -s user memlane", lives=True),
            notes=("Sessions that are open now see memlane after a restart.",),
        ),
        Client(
            name="codex",
            title="Codex CLI",
            programs=("codex",),
            folder="{codex}",
            servers={"user": ("{codex}/config.toml",), "project": (".codex/config.toml",)},
            key="mcp_servers",
            entry=_plain,
            hooks={"user": "{codex}/hooks.json", "project": ".codex/hooks.json"},
            events=(*_EVENTS, _TOOL),
            handler=_claude_hook,
            vendor=Vendor("mcp add memlane -- {command} mcp"),
            notes=("Codex runs no hook that it does not trust: start codex, type /hooks and trust memlane's.",),
        ),
        Client(
            name="gemini",
            title="Gemini CLI",
            programs=("gemini",),
            folder="{gemini-home}/.gemini",
            servers={"user": ("{gemini-home}/.gemini/settings.json",), "project": (".gemini/settings.json",)},
            key="mcpServers",
            entry=_plain,
            hooks={"user": "{gemini-home}/.gemini/settings.json", "project": ".gemini/settings.json"},
            events=(  # not PreCompress: it fires at every turn, and AfterAgent has captured the turn already
                ("SessionStart", "session-start"),
                ("BeforeAgent", "prompt"),
                ("AfterTool", "tool"),  # BeforeTool cannot add context
                ("AfterAgent", "stop"),
                ("SessionEnd", "session-end"),
            ),
            handler=_gemini_hook,
            vendor=Vendor("mcp add -s user memlane {command} mcp"),
            notes=("Gemini CLI starts no servers in a folder that it does not trust.",),
        ),
        Client(
            name="cursor",
            title="Cursor",
            programs=("cursor", "cursor-agent"),
            folder="~/.cursor",
            servers={"user": ("~/.cursor/mcp.json",), "project": (".cursor/mcp.json",)},
            key="mcpServers",
            entry=_plain,
            hooks={"user": "~/.cursor/hooks.json", "project": ".cursor/hooks.json"},
            events=(  # not beforeSubmitPrompt: it cannot add context
                ("sessionStart", "session-start"),
                ("postToolUse", "tool"),
                ("stop", "stop"),
                ("preCompact", "pre-compact"),
                ("sessionEnd", "session-end"),
            ),
            handler=_cursor_hook,
            fresh='{\n  "version": 1\n}\n',
        ),
        Client(
            name="opencode",
            title="opencode",
            programs=("opencode",),
            folder="{config}/opencode",
            servers={
                "user": ("{config}/opencode/opencode.json", "{config}/opencode/opencode.jsonc"),
                "project": ("opencode.json", "opencode.jsonc"),
            },
            key="mcp",
            entry=_opencode,
            hooks={"user": "{config}/opencode/plugin/memlane.js", "project": ".opencode/plugin/memlane.js"},
        ),
        Client(
            name="vscode",
            title="VS Code (Copilot)",
            programs=("code",),
            folder="{app}/Code",
            servers={"user": ("{app}/Code/User/mcp.json",), "project": (".vscode/mcp.json",)},
            key="servers",
            entry=_typed,
            hooks={"user": "~/.copilot/hooks/memlane.json", "project": ".github/hooks/memlane.json"},
            events=_EVENTS[:-1],  # it has no SessionEnd
            handler=_vscode_hook,
            notes=("VS Code also runs the hooks of Claude Code: with both connected, use --no-hooks for one of them.",),
        ),
        Client(
            name="claude-desktop",
            title="Claude Desktop",
            programs=(),
            folder="{app}/Claude",
            servers={"user": ("{app}/Claude/claude_desktop_config.json",)},
            key="mcpServers",
            entry=_plain,
            notes=(
                "Claude Desktop works in no project: it sees the bank of `memlane init --user`.",
                "Restart Claude Desktop.",
            ),
        ),
        Client(
            name="windsurf",
            title="Windsurf",
            programs=("windsurf",),
            folder="~/.codeium/windsurf",
            servers={"user": ("~/.codeium/windsurf/mcp_config.json",)},
            key="mcpServers",
            entry=_plain,
            hooks={"user": "~/.codeium/windsurf/hooks.json"},
            events=(("post_cascade_response_with_transcript", "stop"),),  # its hooks capture; none can add context
            handler=_windsurf_hook,
        ),
        Client(
            name="zed",
            title="Zed",
            programs=("zed", "zeditor"),
            folder="{config}/zed",
            servers={"user": ("{config}/zed/settings.json",), "project": (".zed/settings.json",)},
            key="context_servers",
            entry=_zed,
        ),
    )
}
