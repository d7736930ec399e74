"""What the commands of a session teach: those run again and again, and pairs of one that failed and one that then
worked. Bounded, whatever the number of commands.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from memlane.capture.distil.patterns import any_of, begins_with
from memlane.capture.distil.session import Run
from memlane.core.patterns import lazily

_OFTEN = 4  # runs that make a command worth knowing
_MOST = 2  # commands of a session, and as many pairs
_LONGEST = 160  # characters of a command
_RECENT = 6  # commands that may lie between a failure and what then worked
_SEEN = 2000
# Looking around teaches nothing about a project.
_LOOKING = begins_with(
    """cd, ls, ll, cat, head, tail, grep, rg, find, echo, pwd, sed, awk, wc, which, sleep, mkdir, rm, cp, mv,
    touch, kill, ps, tree, stat, git, gh, curl, open, export, source, true, man, type, file, diff, sort, less,
    chmod, date, env, printf, test, ssh, scp, docker (?:ps|logs|exec|inspect), python3? -c, node -e, jq, sqlite3,
    psql""",
    after="",
)
_PREFIX = lazily(r"^(?:cd \S+ (?:&&|;) |(?:[A-Z_]+=\S+ )+)+")
_SUFFIX = lazily(
    r"(?:\s*(?:2>&1|2>/dev/null|\|\s*(?:head|tail|grep|tee|cat|wc|sort)\b[^|]*|(?:&&|;)\s*echo\b.*|\|\|\s*true))+\s*$"
)
# An error that is about how the command was called, not about what it found.
_ERROR = lazily(
    r"(?im)^.*?(\S*(?:unknown|unrecogni[sz]ed|invalid|no such|unexpected|missing|bad|ambiguous) (?:\w+ )?"
    r"(?:option|flag|command|subcommand|argument|parameter|script|target|task|recipe|package|module|revision)s?\b"
    r".{0,120}|\S*(?:command not found|permission denied|not a git repository|could not find|cannot find|can't find|"
    r"requires? (?:an? )?(?:\w+ )?(?:argument|option|flag|version)|is not (?:installed|recognized|supported)|"
    r"must (?:be|specify|provide))\b.{0,120})"
)
_UNTELLING = any_of(r"tool_use_error, sibling tool, doesn't want to proceed, timed out, tests?, assert\w*, expected")


class Found(NamedTuple):
    text: str
    type: str
    confidence: float
    rule: str
    date: str
    lines: tuple[int, ...]
    uuids: tuple[str, ...]


class _Count(NamedTuple):
    runs: int
    why: str
    date: str
    lines: tuple[int, ...]
    uuids: tuple[str, ...]


class Commands:
    """The commands of a session, added one by one."""

    def __init__(self) -> None:
        self._counts: dict[str, _Count] = {}
        self._failed: deque[tuple[int, str, str, Run]] = deque(maxlen=_RECENT)
        self._pairs: list[Found] = []
        self._number = 0

    def add(self, run: Run, date: str) -> None:
        command = _bare(run.command)
        self._number += 1
        if not command or len(command) > _LONGEST or "\n" in command or _LOOKING.match(command):
            return
        if run.failed:
            error = _ERROR.search(run.output)
            if error and not _UNTELLING.search(error[1].lower()):
                self._failed.append((self._number, command, " ".join(error[1].split()), run))
            return
        before = self._counts.pop(command, _Count(0, "", date, (), ()))
        lines, uuids = (*before.lines, *run.lines)[:4], (*before.uuids, *run.uuids)[:4]
        self._counts[command] = _Count(
            before.runs + 1, before.why or run.why.strip().rstrip(".")[:120], date, lines, uuids
        )
        if len(self._counts) > _SEEN:
            del self._counts[next(iter(self._counts))]
        self._pair(command, run, date)

    def _pair(self, command: str, run: Run, date: str) -> None:
        for number, failed, error, before in reversed(self._failed):
            if self._number - number <= _RECENT and _another_way(failed, command):
                text = f"`{failed}` fails ({error}); `{command}` works."
                lines, uuids = before.lines + run.lines, before.uuids + run.uuids
                if len(text) <= 500:
                    self._pairs.append(Found(text, "lesson", 0.5, "failed, then worked", date, lines, uuids))
                self._failed.clear()
                return

    def found(self) -> list[Found]:
        """What the commands teach, at most two of each kind."""
        often = sorted(self._counts.items(), key=lambda item: (-item[1].runs, item[1].lines))
        repeated = [
            Found(f"{count.why}: `{command}`", "command", 0.5, f"run {count.runs} times", *count[2:])
            for command, count in often
            if count.runs >= _OFTEN and count.why
        ]
        return self._pairs[-_MOST:] + repeated[:_MOST]


def _bare(command: str) -> str:
    bare = _SUFFIX.sub("", _PREFIX.sub("", command.strip())).strip()
    return bare if bare.count('"') % 2 == 0 and bare.count("'") % 2 == 0 else ""  # cut within quotes


def _another_way(failed: str, worked: str) -> bool:
    """Whether a command does what another one failed to do: the same program, told otherwise, and not just less."""
    one, other = failed.split(), worked.split()
    same = set(one) & set(other)
    return one[0] == other[0] and len(same) * 2 >= min(len(one), len(other)) and not same >= set(other)
