"""When a memory applies: its `when`, and whether a tool call is such a moment. Light: a hook asks before every edit.

    when: src/api/**            a path pattern: an edit of a file that it fits
    when: git commit            a command: a command line that runs it, whatever else it says
    when: committing            the same, for what git has a command for
    when: adding an endpoint    words: prompts are compared with them, see `memlane.index.writing`

A trigger may also have a path among its words: "changing src/api/routes.py".
"""

from __future__ import annotations

import fnmatch
import re

from memlane.core.patterns import lazily

MOST, LONGEST = 20, 200  # triggers of a memory, and characters of one
_GIT = {"committing": "commit", "pushing": "push", "merging": "merge", "rebasing": "rebase", "tagging": "tag"}
_OPTIONAL = ("before", "after", "when", "whenever", "you")  # words that a trigger may begin with
_COMMANDS = lazily(r"&&|\|\|?|;|\n|\$\(|\(|`")  # what comes between two commands of one line
_SKIPPED = ("sudo", "time", "env", "nohup", "command", "exec")
_PATH = lazily(r"[\w@+.*?/{}\[\]-]*(?:[/*]|\w\.\w{1,5}$)[\w@+.*?/{}\[\]-]*")


def of(fields: object) -> tuple[str, ...]:
    """The triggers of a memory with these fields: a text, or a list of texts."""
    value = fields.get("when") if hasattr(fields, "get") else None
    given = value if isinstance(value, list | tuple) else [value]
    texts = (" ".join(item.split())[:LONGEST] for item in given if isinstance(item, str))
    return tuple(dict.fromkeys(filter(None, texts)))[:MOST]


def fits(trigger: str, path: str = "", command: str = "") -> bool:
    """Whether a trigger means an edit of this file, by its path in the project, or a run of this command line."""
    words = trigger.split()
    while words and words[0].lower() in _OPTIONAL:
        words = words[1:]
    if path and any(_matches(word.strip("`'\",:;"), path) for word in words):
        return True
    return bool(command and words) and any(_runs(words, line.split()) for line in _COMMANDS.split(command))


def _runs(words: list[str], line: list[str]) -> bool:
    """Whether a command line begins with these words; options between them do not count."""
    while line and (line[0] in _SKIPPED or re.fullmatch(r"\w+=\S*", line[0])):
        line = line[1:]
    if subcommand := _GIT.get(words[0].lower().strip(".,:")):
        words = ["git", subcommand]
    if not line or line[0].rsplit("/", 1)[-1] != words[0]:
        return False
    rest = iter(line[1:])
    return all(any(word == wanted for word in rest) for wanted in words[1:]) and _first(words, line)


def _first(words: list[str], line: list[str]) -> bool:
    """Whether a command line says first what the trigger says first: `git log commit` is no `git commit`."""
    if len(words) < 2 or words[1].startswith("-"):
        return True
    bare = [word for at, word in enumerate(line[1:]) if not word.startswith("-") and line[at] not in ("-C", "-c")]
    return bool(bare) and bare[0] == words[1]


def _matches(pattern: str, path: str) -> bool:
    """Whether a word is a pattern of paths that fits this one or a folder that it is in: `**` is any folders."""
    if not _PATH.fullmatch(pattern) or not pattern.strip("*?/."):
        return False
    wanted = [part for part in pattern.removeprefix("./").split("/") if part]
    if "/" not in pattern.rstrip("/"):
        wanted = ["**", *wanted]  # a bare name is meant wherever it is
    reached = {0}  # how many parts of the pattern may be behind us
    for name in path.split("/"):
        reached = _past_folders(wanted, reached)
        if len(wanted) in reached:
            return True
        reached = {
            at + (wanted[at] != "**") for at in reached if wanted[at] == "**" or fnmatch.fnmatchcase(name, wanted[at])
        }
    return len(wanted) in reached


def _past_folders(wanted: list[str], reached: set[int]) -> set[int]:
    found = set(reached)
    for at in sorted(reached):
        while at < len(wanted) and wanted[at] == "**":
            at += 1
            found.add(at)
    return found
