"""Claude's memory tool (`memory_20250818`) on a bank: the files that the model sees under /memories are its notes.

    client.beta.messages.tool_runner(…, tools=[MemoryTool(bank)])

What the model writes is taken as it is, and its file names stay: /memories/team/plan.md is the note team/plan, and what
does not end in .md keeps its ending (todo.txt is in the file todo.txt.md). Front matter is not shown, and does not
count as lines. What the gate refuses, the model is told as the tool's answer.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Self

from memlane import config
from memlane.adapters import missing
from memlane.bank import Bank
from memlane.core.errors import Conflict, InvalidInput, MemlaneError, NotFound
from memlane.core.model import Draft, Memory
from memlane.disk import files, journal, names

try:
    from anthropic.tools import ToolError
    from anthropic.tools.memory import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool
    from anyio.to_thread import run_sync
except ImportError as error:
    raise missing("anthropic", "anthropic", "anthropic") from error

ROOT = "/memories"
_MOST_LINES = 999_999
_DEPTH = 2  # levels of folders that a listing shows
_ATTEMPTS = 20  # to change a note that others change at the same time


class _Tool:
    """What both tools have: a bank, and the folder of its notes that is /memories."""

    def __init__(self, bank: Bank, *, folder: str = "", cache_control: Any = None) -> None:
        super().__init__(cache_control=cache_control)  # type: ignore[call-arg]
        self.bank = bank
        self._files = _Files(bank, folder)

    @classmethod
    def at(cls, place: str | Path, **given: Any) -> Self:
        """The tool on a bank of its own at this place, for a program without a project.

        What is not there yet is made, and is for its owner alone.
        """
        home = Path(place).expanduser().absolute()
        for folder in (*reversed(home.parents), home, home / config.FOLDER):
            if not folder.is_dir():
                files.make_folder(os.fspath(folder), private=True)
        return cls(Bank.init(home), **given)

    def _do(self, command: Callable[..., str], *given: Any) -> str:
        """Carry out a command of the model's: one change, made by it and not by the user."""
        try:
            with journal.acting("python", "anthropic"), journal.change(f"memory {command.__name__}"):
                return command(*given)
        except MemlaneError as refusal:
            raise ToolError(f"{refusal} {refusal.hint}".strip()) from refusal


def _called(command: Callable[..., str]) -> Callable[..., str]:
    def call(tool: _Tool, *given: Any) -> str:
        return tool._do(command, tool._files, *given)

    return call


def _awaited(command: Callable[..., str]) -> Callable[..., Awaitable[str]]:
    async def call(tool: _Tool, *given: Any) -> str:
        return await run_sync(tool._do, command, tool._files, *given)

    return call


class _Files:
    """The notes of a bank, or those in a folder of it, as the files that the model sees."""

    def __init__(self, bank: Bank, folder: str) -> None:
        self.bank = bank
        self.folder = f"{folder.strip('/')}/" if folder.strip("/") else ""
        names.safe_parts(f"{self.folder}name")

    # -- the commands

    def view(self, command: Any) -> str:
        place = self._place(command.path)
        if memory := self._note(place):
            return _page(self._shown(memory), command)
        return self._listing(place, command.path)

    def create(self, command: Any) -> str:
        place = self._place(command.path)
        above = [place.rsplit("/", level)[0] for level in range(1, place.count("/") + 1)]
        if any(map(self._note, above)):
            raise ToolError(f"A part of {command.path} is a file, and not a directory.")
        if self._note(place) or self._is_folder(place):
            raise ToolError(f"File {command.path} already exists")
        native = _native(self.folder + place)
        made = self.bank.notes.put(Draft(command.file_text, fields={"filename": f"{native}.md"}))
        self.bank.wrote(made.lane, made.file)
        self.bank.anchor(made.id)
        return _with_remarks(f"File created successfully at: {command.path}", made)

    def str_replace(self, command: Any) -> str:
        old, line = command.old_str, 0

        def replaced(text: str) -> str:
            nonlocal line
            at = text.find(old) if old else -1
            if at < 0:
                raise ToolError(
                    f"No replacement was performed, old_str `{old}` did not appear verbatim in {command.path}."
                )
            if text.count(old) > 1:
                lines = ", ".join(map(str, _lines_with(text, old)))
                raise ToolError(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}. "
                    "Please ensure it is unique"
                )
            line = text.count("\n", 0, at)
            return text.replace(old, command.new_str)

        changed = self._change(command.path, replaced)
        lines = self._shown(changed).split("\n")
        first = max(0, line - 2)
        said = "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        return _with_remarks(said + _numbered(lines[first : line + 3], first), changed)

    def insert(self, command: Any) -> str:
        def inserted(text: str) -> str:
            lines = text.split("\n")
            if not lines[-1]:
                lines.pop()
            if not 0 <= command.insert_line <= len(lines):
                raise ToolError(
                    f"Invalid `insert_line` parameter: {command.insert_line}. "
                    f"It should be within the range [0, {len(lines)}]."
                )
            lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
            return "\n".join(lines).removesuffix("\n") + "\n"

        return _with_remarks(f"The file {command.path} has been edited.", self._change(command.path, inserted))

    def delete(self, command: Any) -> str:
        place = self._place(command.path)
        if not place:
            raise ToolError(f"Cannot delete the {ROOT} directory itself")
        self._delete(self._there(place, command.path))
        return f"Successfully deleted {command.path}"

    def rename(self, command: Any) -> str:
        old, new = self._place(command.old_path), self._place(command.new_path)
        if not old:
            raise ToolError(f"Cannot rename the {ROOT} directory itself")
        if self._note(new) or self._is_folder(new):
            raise ToolError(f"The destination {command.new_path} already exists")
        there = self._there(old, command.old_path)
        if f"{new}/".startswith(f"{old}/"):
            raise ToolError(f"The destination {command.new_path} is inside {command.old_path}")
        files_by_id = {
            memory.id: f"{_native(self.folder + new + place.removeprefix(old))}.md" for place, memory in there.items()
        }
        for file in files_by_id.values():
            self.bank.notes.new_path(file)  # all of a folder moves, or nothing does
        for id, file in files_by_id.items():
            self.bank.move(id, file)
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear_all_memory(self) -> str:
        self._delete(self._under(""))
        return "All memory cleared"

    # -- the notes

    def _place(self, path: str) -> str:
        """What a path of the model's is called below /memories; "" for that folder itself. Raises ToolError."""
        if path != ROOT and not path.startswith(f"{ROOT}/"):
            raise ToolError(f"Path must start with {ROOT}, got: {path}")
        place = posixpath.normpath(path.removeprefix(ROOT).strip("/") or ".")
        if place == ".":
            return ""
        try:
            names.inside(self.bank.notes.root, *(self.folder + place).split("/"))
        except InvalidInput:
            raise ToolError(f"Path {path} would escape {ROOT} directory") from None
        if place.endswith("."):
            raise ToolError(f"Path {path} ends in a dot, which some systems do not allow")
        return place

    def _note(self, place: str) -> Memory | None:
        """The note that is this file, as it is on the disk; None where there is none."""
        native = _native(self.folder + place) if place else ""
        try:
            memory = self.bank.notes.fetch(native) if native else None
        except (NotFound, InvalidInput):
            return None
        return None if memory is None or memory.native_id != native or self.bank.unseen()(memory) else memory

    def _is_folder(self, place: str) -> bool:
        """Whether there is anything in a folder of this name."""
        inside = os.path.join(self.bank.notes.root, self.folder + place, "")
        return not place or any(isinstance(path, str) and path.startswith(inside) for path in self.bank.notes.files())

    def _under(self, place: str) -> dict[str, Memory]:
        """The notes in a folder and below it, by what the model calls them."""
        inside = f"{self.folder}{place}/" if place else self.folder
        unseen = self.bank.unseen()
        return {
            _path(memory.native_id).removeprefix(self.folder): memory
            for memory in self.bank.memories("notes")
            if memory.native_id.startswith(inside) and not unseen(memory)
        }

    def _there(self, place: str, path: str) -> dict[str, Memory]:
        """The note that is this file, or the notes in this folder. Raises ToolError where there is neither."""
        if memory := self._note(place):
            return {place: memory}
        if not (found := self._under(place)):
            raise ToolError(f"The path {path} does not exist")
        return found

    def _shown(self, memory: Memory) -> str:
        """What a note says, without secrets that somebody else has put there."""
        return self.bank.get(memory.id).text

    def _listing(self, place: str, path: str) -> str:
        """A folder, its files and the folders in it, with the sizes of what they say."""
        found = self._under(place)
        if place and not found:
            raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
        sizes: dict[str, int] = {"": 0}
        for name, memory in found.items():
            parts = name.removeprefix(f"{place}/" if place else "").split("/")
            size = len(memory.text.encode("utf-8", "surrogatepass"))
            folders = ["/".join(parts[:level]) + "/" for level in range(1, len(parts))]
            for shown in ("", *folders[:_DEPTH], *(["/".join(parts)] if len(parts) <= _DEPTH else [])):
                sizes[shown] = sizes.get(shown, 0) + size
        top = path.rstrip("/")
        lines = [f"{_human(size)}\t{top}{'/' if name else ''}{name}" for name, size in sorted(sizes.items())]
        said = f"Here're the files and directories up to {_DEPTH} levels deep in {path}, excluding hidden items:\n"
        return said + "\n".join(lines)

    def _change(self, path: str, changed: Callable[[str], str]) -> Memory:
        """Change what a file says, whoever else changes it at the same time. Raises ToolError."""
        place = self._place(path)
        for _ in range(_ATTEMPTS):
            memory = self._note(place)
            if memory is None:
                if self._is_folder(place):
                    raise ToolError(f"The path {path} is not a file.")
                raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
            version = self.bank.get(memory.id).version
            if self.bank.notes.fetch(memory.native_id) != memory:
                continue  # it has changed between the two looks
            try:
                return self.bank.update(memory.id, changed(memory.text), expected=version, extra={})
            except Conflict:
                continue
        raise ToolError(f"{path} is being changed by others at this moment. Try again.")

    def _delete(self, found: dict[str, Memory]) -> None:
        for memory in found.values():
            self.bank.delete(memory.id)


class MemoryTool(_Tool, BetaAbstractMemoryTool):
    """The memory tool for `client.beta.messages.tool_runner`; with `folder`, /memories is that folder of the notes."""

    view = _called(_Files.view)
    create = _called(_Files.create)
    str_replace = _called(_Files.str_replace)
    insert = _called(_Files.insert)
    delete = _called(_Files.delete)
    rename = _called(_Files.rename)
    clear_all_memory = _called(_Files.clear_all_memory)


class AsyncMemoryTool(_Tool, BetaAsyncAbstractMemoryTool):
    """`MemoryTool` for the asynchronous client: the same answers, from a thread, so that the event loop goes on."""

    view = _awaited(_Files.view)
    create = _awaited(_Files.create)
    str_replace = _awaited(_Files.str_replace)
    insert = _awaited(_Files.insert)
    delete = _awaited(_Files.delete)
    rename = _awaited(_Files.rename)
    clear_all_memory = _awaited(_Files.clear_all_memory)


# A note's file ends in .md, and the model's may end in anything or nothing; each has one name in the other world:
# plan.md is the note `plan`, todo.txt the note `todo.txt`, v1.2.md the note `v1.2.md`, and todo the note `todo.`.


def _native(place: str) -> str:
    """What the note of a file is called."""
    stem, ending = posixpath.splitext(place)
    if ending == ".md" and "." not in posixpath.basename(stem):
        return stem
    return place if "." in posixpath.basename(place) else f"{place}."


def _path(native: str) -> str:
    """What the file of a note is called."""
    if "." not in posixpath.basename(native):
        return f"{native}.md"
    return native.removesuffix(".")


def _page(text: str, command: Any) -> str:
    lines = text.split("\n")
    if len(lines) > _MOST_LINES:
        raise ToolError(f"File {command.path} exceeds maximum line limit of {_MOST_LINES:,} lines.")
    first, last = 0, len(lines)
    if command.view_range and len(command.view_range) == 2:
        first = max(1, command.view_range[0]) - 1
        last = len(lines) if command.view_range[1] == -1 else command.view_range[1]
    return f"Here's the content of {command.path} with line numbers:\n" + _numbered(lines[first:last], first)


def _numbered(lines: list[str], before: int) -> str:
    """Lines with their numbers, as the model's training has them: six wide, then a tab."""
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, before + 1))


def _lines_with(text: str, passage: str) -> list[int]:
    found, at = [], text.find(passage)
    while at >= 0:
        found.append(text.count("\n", 0, at) + 1)
        at = text.find(passage, at + 1)
    return found


def _human(size: int) -> str:
    """`6B`, `1.5K`, `2M`."""
    power = min(max(size.bit_length() - 1, 0) // 10, 3)
    value = size / 1024**power
    return f"{int(value) if value == int(value) else f'{value:.1f}'}{'BKMG'[power]}"


def _with_remarks(said: str, memory: Memory) -> str:
    """An answer, and what the gate changed in the text, if anything."""
    return "\n".join((said, *(f"Note: {remark}" for remark in memory.remarks)))
