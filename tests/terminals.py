"""A terminal for a command, and everything hostile that a bank can hold: for the tests of what reaches a terminal."""

from __future__ import annotations

import gc
import json
import os
import pkgutil
import pty
import re
import subprocess
import sys
import termios
import tty
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

import memlane
from memlane import Bank
from memlane.__main__ import main

# Title, colour, cursor and clipboard sequences in seven and eight bits; deletion; overrides; what is not seen at all.
EVIL = (
    "\x1b]0;pwned\x07\x1b[2J\x1b[31m\x9b5m\x9d52;c;cHduZWQ=\x9c\x7f\x08\r\x00\x0b\x0c"
    "\u202e\u2066\u200b\u200f\u2028\ufeff\U000e0041"
)
IN_A_NAME = EVIL.replace("\x00", "") + "\nforged"
IN_TOML = "".join(char if " " <= char < "\x7f" else f"\\U{ord(char):08x}" for char in EVIL)


@cache
def _import_everything() -> None:
    """What a command imports late it would import in every child anew."""
    for module in pkgutil.walk_packages(memlane.__path__, "memlane."):
        if not module.name.startswith("memlane.adapters"):
            import_module(module.name)


Environment = Mapping[str, str | None]  # what is None is not set


def on_terminal(*args: str, cwd: Path, typed: bytes = b"", env: Environment | None = None, columns: int = 0) -> str:
    """What a command shows on a terminal that changes no byte: in a child that has everything imported already."""
    return one_by_one([args], cwd=cwd, typed=typed, env=env, columns=columns)[0]


_END = b"<this command has ended>"


def one_by_one(
    calls: Sequence[Sequence[str]], *, cwd: Path, typed: bytes = b"", env: Environment | None = None, columns: int = 0
) -> list[str]:
    """What each of these commands shows on a terminal, to all of which the same is typed. One child runs them all: to
    fork a process that has run a thousand tests takes longer than a command.
    """
    _import_everything()
    ours, theirs = pty.openpty()
    tty.setraw(theirs, termios.TCSANOW)
    termios.tcsetwinsize(theirs, (24 if columns else 0, columns))
    child = os.fork()
    if child == 0:
        try:
            gc.freeze()  # else the child copies all that it looks through
            os.close(ours)
            os.login_tty(theirs)
            os.chdir(cwd)
            for name, value in {"TERM": "xterm", "NO_COLOR": "1", "PWD": str(cwd), **(env or {})}.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value
            for args in calls:
                _run(args)
                os.write(1, _END)
        finally:
            os._exit(0)
    os.close(theirs)
    os.write(ours, typed)
    shown = b""
    for piece in _pieces(ours, child):
        ended = shown.count(_END)
        shown += piece
        for _ in range(ended, min(shown.count(_END), len(calls) - 1)):
            os.write(ours, typed)
    parts = shown.decode().split(_END.decode())
    assert len(parts) >= len(calls)
    return parts[: len(calls)]


def _run(args: Sequence[str]) -> None:
    sys.argv = ["memlane", *args]
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    try:
        main()
    except SystemExit:
        pass
    except BaseException:
        sys.excepthook(*sys.exc_info())  # as Python itself would do
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()


def _pieces(terminal: int, child: int) -> Iterator[bytes]:
    try:
        while piece := os.read(terminal, 65536):
            yield piece
    except OSError:  # Linux says so when the other end is closed
        pass
    finally:
        os.close(terminal)
        os.waitpid(child, 0)


def steering(shown: str) -> set[str]:
    """The characters in what a terminal was sent that steer it, or that nobody sees. A line may end with CR and LF.

    The line that says how far a slow command is begins with CR and ends with an escape of memlane's own.
    """
    text = re.sub(r"\r([^\r\n\x1b]*)\x1b\[K", r"\1", shown.replace("\r\n", "\n"))
    return {
        char for char in text if char not in "\n\t" and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    }


def fill(bank: Bank) -> None:
    """Put hostile text into every place of a bank that somebody else could have written."""
    quoted = json.dumps(EVIL)
    front = f"title: {quoted}\ntype: {quoted}\nscope: {quoted}\nthread: {quoted}\nstatus: active\n"
    for name, more in (("evil", ""), ("twin", ""), ("z" + IN_A_NAME, "")):
        text = f"---\n{front}tags: [{quoted}, pinned]\n{quoted}: {quoted}\n---\nzebra {EVIL} [[src/{EVIL}.py]]{more}\n"
        (bank.root / f"{name}.md").write_text(text.replace("\x00", ""), newline="")
    (bank.root / f"y{IN_A_NAME}.md").write_bytes(b"---\n: [\n---\nzebra \xff\x9b5m\xc2\x9b5m")
    record = {
        "id": "aaaaaaaaaaaa", "version": 1, "created_at": "2024-01-01T00:00:00Z", "tier": "register",
        "topic_id": EVIL, "source": "manual", "scope": "shared", "category": EVIL, "tags": [EVIL],
        "text": f"zebra {EVIL}", "title": EVIL,
    }  # fmt: skip
    lines = [record, {**record, "id": f"b{EVIL}"}, {**record, "id": "cccccccccccc", "scope": EVIL, "tier": "canon"}]
    bank.vault.path.write_text("".join(json.dumps(line) + "\n" for line in lines) + f'{{"id": "{EVIL}')
    topics = bank.root / "topics" / "ops"
    topics.mkdir(parents=True)
    entry = f"## 2024-01-02: zebra {EVIL}\n**Problem:** zebra {EVIL}\n**Solution:** {EVIL}\n---\n".replace("\x00", "")
    for name in ("evil", f"x{IN_A_NAME}"):
        (topics / f"{name}.md").write_text(entry * 12, newline="")
    layer = bank.root / "layers" / "projects" / f"api{IN_A_NAME}"
    layer.mkdir(parents=True)
    body = f"<!-- Last Updated: 2020-01-01 {EVIL} -->\n\n### zebra {EVIL}\n**Status**: Resolved (2020-01-01) {EVIL}\n"
    for folder in (layer, layer.parent / "api"):
        folder.mkdir(exist_ok=True)
        (folder / "known_issues.md").write_text(body.replace("\x00", ""), newline="")
    records = bank.root / "records"
    records.mkdir()
    stored = bank.records.create("zebra spoke", subject="zebra", keywords=["zebra"])
    path = Path(bank.get(f"records:{stored.id}").file)
    path.write_text(path.read_text().replace("spoke", EVIL.replace("\x00", "")), newline="")
    (records / f"w{IN_A_NAME}.md").write_text("---\nsubject: [\n---\n")


def commit(folder: Path) -> None:
    """The folder as a repository whose author and message are hostile."""
    named = {
        f"GIT_{who}_{what}": EVIL.replace("\x00", "") for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", EVIL.replace("\x00", "")]):
        subprocess.run(["git", *command], cwd=folder, check=True, env={**os.environ, **named}, stdout=subprocess.PIPE)
