"""What an error or a remark tells a model to do next, by tools that this server has.

The rooms below speak of commands, `memlane list`, for they know no tools. Here each becomes a call of a tool; what no
tool does is left to a terminal. In a call, … stands for what was given before.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from memlane.core.errors import MemlaneError, Refused

# A command and its options, without its last word, which takes the place of {}. The first tool that there is counts.
# Where a command means something else without an id, there are two keys.
CALLS: dict[str, tuple[str, ...]] = {
    "add": ("remember",),
    "add --lane vault --replaces": ('remember(text=…, replaces="{}")',),
    "append": ('append_memory(filename="{}", content=…)',),
    "get": ('read_memory(filename="{}")',),
    "list": ("list_memories",),
    "list --lane": ('list_memories(lane="{}")',),
    "restore": ("list_memories(deleted=true)",),
    "restore ID": ('restore_memory(id="{}")',),
    "review --only similar": ("suggest_memory_merges",),
    "rm": ('delete_memory(filename="{}")',),
    "search": ("search_memories",),
    "stats": ("get_memory_stats",),
    "topics search --archive": ("search_memories(query=…, archived=true)",),
    "update": ('update_memory(filename="{}", content=…)',),
    "vault candidates": ("vault_find_consolidation_candidates", "suggest_memory_merges(filter_type=null)"),
    "vault proposals": ("vault_propose_deletions", 'list_memories(lane="vault")'),
}
# What a person decides, or does to the whole bank. Every other command that a message names must be above.
TERMINAL = frozenset(
    {
        "backup", "doctor", "edit", "encoder", "export", "forget", "gate", "history", "init", "log", "recover", "redo",
        "restore-backup", "review", "share", "sync", "token", "topics", "trust", "undo",
    }
)  # fmt: skip
_COMMAND = re.compile(r"`memlane ([^`]+)`")
_AS_A_NOTE = "`remember(text=…)`, without tier and topic_id, keeps it as a note."
_WAYS_OUT = dict.fromkeys(("noise", "log_tier", "too_long", "full", "duplicate", "SECURITY_VIOLATION"), _AS_A_NOTE)


def in_tools(text: str, tools: Collection[str]) -> str:
    """The text with calls of these tools in place of commands."""
    return _COMMAND.sub(lambda match: _call(match[1], tools), text)


def next_step(error: MemlaneError, tools: Collection[str]) -> str:
    """What to do about an error."""
    way_out = _WAYS_OUT.get(error.code, "") if isinstance(error, Refused) else ""
    return in_tools(" ".join(filter(None, (error.to_dict()["hint"], way_out))), tools)


def in_remarks(result: Any, tools: Collection[str]) -> Any:
    """A tool's result, its remarks with calls of these tools in place of commands."""
    if isinstance(result, dict) and isinstance(result.get("remark"), str):
        result = {**result, "remark": in_tools(result["remark"], tools)}
    if isinstance(result, dict) and isinstance(result.get("remarks"), list):
        result = {**result, "remarks": [in_tools(remark, tools) for remark in result["remarks"]]}
    return result


def _call(command: str, tools: Collection[str]) -> str:
    *words, last_word = command.split()
    head = " ".join(words)
    for key, last in ((command, ""), (f"{head} ID", last_word), (head, last_word)):
        calls = CALLS.get(key, ())
        if call := next((call for call in calls if call.partition("(")[0] in tools), ""):
            return f"`{call.format(last.replace('notes:', 'memory:', 1) or '…')}`"
    return f"`memlane {command}` in a terminal"
