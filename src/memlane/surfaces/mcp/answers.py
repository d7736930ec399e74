"""What a client is sent for a call: a text and data, without secrets and without characters that nobody sees.

A failure is a sentence and a next step that a model can act on: never a traceback, and nothing that the client sent.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pydantic_core import from_json, to_json

from memlane.bank import Bank
from memlane.core.access import EVERYTHING, Access
from memlane.core.errors import MemlaneError, Refused, StorageError
from memlane.core.invisible import neutral, visible
from memlane.core.model import USERS
from memlane.disk import derived, files, journal
from memlane.gate.outgoing import cleaned
from memlane.lanes import NAMES
from memlane.surfaces.mcp import hints
from memlane.surfaces.mcp.tools import Tool

CODE = "memlane/code"  # in an answer's metadata: what went wrong, in one word for programs
_PATHS = frozenset({"path", "file_path", "memory_path", "moved_to"})
_IDS = frozenset({"id", "ids", "memory_id", "filename", "target_file", "deleted"})


class Answer(NamedTuple):
    """The text and the data of an answer; `failed` says that the text is a complaint, and `code` of what kind."""

    text: str
    data: dict[str, Any] | None = None
    failed: bool = False
    code: str = ""


class Packed(NamedTuple):
    """An answer as it is sent: `inside` is what stands between the braces of the protocol's result.

    It is passed on as it is, from the process that made it to the client. `ids` are those of the memories in it.
    """

    inside: bytes
    failed: bool = False
    code: str = ""
    ids: Sequence[str] = ()


def packed(answer: Answer) -> Packed:
    """The answer with its fields in the order and the writing of the SDK."""
    result: dict[str, Any] = {"content": [{"text": answer.text, "type": "text"}], "isError": answer.failed}
    result["resultType"] = "complete"
    if answer.data is not None:
        result["structuredContent"] = answer.data
    try:
        text = json.dumps(result, separators=(",", ":"), allow_nan=False)
    except ValueError:  # a number that JSON has no word for
        text = json.dumps(from_json(to_json(result, inf_nan_mode="null")), separators=(",", ":"))
    return Packed(text[1:-1].encode(), answer.failed, answer.code, ids_in(answer.data))


def unpacked(packed: Packed) -> Answer:
    result = json.loads(b"{%b}" % packed.inside)
    return Answer(result["content"][0]["text"], result.get("structuredContent"), packed.failed, packed.code)


def ids_in(data: Any) -> list[str]:
    """The ids of memories in an answer, as its tool writes them."""
    found: dict[str, None] = {}

    def look(value: Any, key: str = "") -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                look(inner, name)
        elif isinstance(value, list):
            for inner in value:
                look(inner, key)
        elif isinstance(value, str) and key in _IDS:
            found[value[:200]] = None

    look(data)
    return list(found)


def of_bank(tool: str, ids: Sequence[str]) -> list[str]:
    """The bank's ids of memories that a tool has named: it may say `memory:plan` or `plan.md` for `notes:plan`."""
    prefix = tool.partition("_")[0]
    lane = prefix if prefix in NAMES else "notes"  # the tools of one lane have its name
    found: dict[str, None] = {}
    for given in ids:
        owner, id = (USERS, given.removeprefix(USERS)) if given.startswith(USERS) else ("", given)
        said, colon, rest = id.partition(":")
        if colon and said == "memory":
            id = f"notes:{rest}"
        elif not colon or said not in NAMES:
            id = f"{lane}:{id.removesuffix('.md') if lane == 'notes' else id}"
        found[owner + id] = None
    return list(found)


def answer(
    bank: Bank,
    tool: Tool,
    arguments: Mapping[str, Any],
    who: str,
    tools: Collection[str],
    access: Access = EVERYTHING,
) -> Answer:
    """Call the tool for a client of this name, and in the name of whoever has access. Raises what the tool raises."""
    with _as(bank, who, access), journal.change(tool.name) as change:
        result = cleaned(tool.run(bank, **arguments), bank.guard)
    if access.name:
        result = _placed(result, f"{bank.root.parent}{os.sep}")
    if not tool.reads and bank.config["memory.sync"] == "on-write":
        _send(bank, change, access)
    text, data = tool.answer(hints.in_remarks(result, tools))
    # a memory may keep characters that a model reads and nobody sees
    return Answer(visible(neutral(text)), neutral(data))


def _placed(value: Any, above: str, key: str = "") -> Any:
    """An answer whose paths begin with the bank's own folder: where that lies on the server concerns nobody else."""
    if isinstance(value, dict):
        return {name: _placed(inner, above, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_placed(inner, above, key) for inner in value]
    return value.removeprefix(above) if isinstance(value, str) and key in _PATHS else value


def _send(bank: Bank, change: journal.Group, access: Access) -> None:
    """Send what was just changed to the remotes. Raises MemlaneError, which says that it is stored here."""
    from memlane.care.sync import on_write

    if access.scopes is None:
        on_write(bank, change)
        return
    try:
        with Bank(bank.config) as whole:  # what travels is decided with a look at all of it
            on_write(whole, change)
    except MemlaneError:  # it may name what is not to be seen
        hint = "Do not store it again: the next sync sends it."
        raise MemlaneError("Stored here, not yet at the remote.", hint=hint, code="not_shared") from None


@contextmanager
def _as(bank: Bank, who: str, access: Access) -> Iterator[None]:
    """Changes are made in the name of whoever has access, and are the user's word only where it is the user."""
    own = not access.name
    users = own and bank.config["mcp.rules"]
    token = None if access.may("write") else files.on_write.set(partial(_refuse_write, bank))
    try:
        with journal.acting("mcp", who if own else access.name, users=users, author=access.name):
            yield
    finally:
        if token is not None:
            files.on_write.reset(token)


def _refuse_write(bank: Bank, path: str, _: bytes | None) -> None:
    """For who may only read, whatever a tool does: nothing in the bank is written, but what is derived from it."""
    for root in (bank.root, *map(bank.config.lane_root, NAMES)):
        inside = os.path.relpath(path, root)
        if not inside.startswith("..") and derived.FOLDER not in inside.split(os.sep):
            raise MemlaneError("The token may only read.", hint="Ask for one that may write.", code="not_allowed")


def failure(error: Exception, action: str, tools: Collection[str]) -> Answer:
    """The answer for an error. One that memlane did not foresee is also named on standard error."""
    return Answer(visible(sentence(error, action, tools)), failed=True, code=_code(error))


def _code(error: Exception) -> str:
    if isinstance(error, MemlaneError):
        return "refused" if isinstance(error, Refused) else error.code
    return StorageError.code if isinstance(error, OSError) else "internal"


def sentence(error: Exception, action: str, tools: Collection[str]) -> str:
    """What a client is told of a failure, and what to do next: never a traceback, and nothing that it sent.

    An error that memlane did not foresee is also named on standard error, with the file and line that raised it.
    """
    if isinstance(error, OSError) and not isinstance(error, MemlaneError):
        error = StorageError(f"The disk said no: {error.strerror or 'it cannot be read or written'}.")
    if isinstance(error, MemlaneError):
        message = hints.in_tools(str(error), tools)
        ended = message if message.endswith((".", "!", "?")) else f"{message}."
        return f"{ended} {hints.next_step(error, tools)}".strip()
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}"
    print(f"memlane: {action} failed: {where}", file=sys.stderr)
    return f"That failed inside memlane ({where}). Nothing more is known; please report it."
