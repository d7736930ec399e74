"""Remove memories for good: from files, trash, archives, index, caches and the blocks that were exported.

    plan(bank, ["notes:plan"]).left       what cannot be reached from here: git's history, transcripts, backups

A deletion (`Bank.delete`) keeps a way back; this has none. What it leaves is a tombstone, a keyed hash that keeps
capture and import from bringing the text back. Copies go first and the memory itself last, so that whoever is
interrupted finds the rest by calling again. Bytes are unlinked, not overwritten: what a disk or a file system keeps of
them is beyond us.
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from memlane import config, gate
from memlane.bank import Bank
from memlane.core.errors import InvalidInput, MemlaneError, NotFound, StorageError
from memlane.core.text import FrontMatterError, find_front, load_front
from memlane.disk import anchors, files
from memlane.disk import log as logs
from memlane.disk.tombstones import plain
from memlane.exchange import export, marked_block
from memlane.history import git, undo
from memlane.lanes import NAMES, Lane, read_file
from memlane.lanes.layers import aging
from memlane.lanes.layers.entries import path_of, type_of
from memlane.lanes.layers.store import BEFORE_PRUNE, OLD_STATS, STATS
from memlane.lanes.records import ARCHIVE
from memlane.lanes.topics import entries as text_of
from memlane.lanes.topics import index_page, pages
from memlane.lanes.topics.drafts import memory_of
from memlane.lanes.vault.record import Record, read_line
from memlane.recall.address import named

TRANSCRIPTS = (".claude/projects", ".codex/sessions", ".gemini/tmp", ".cursor/projects")
EXPORTS = ("*.md", "*.mdc", ".claude/*.md", ".github/*.md", ".cursor/rules/*.mdc")
_FOLDERS = ("notes", "topics", "records", "layers")  # the lanes that are folders, with a trash of their own
_TELLING = 12  # characters of a line that is looked for in files that are not memories


@dataclass(frozen=True, slots=True)
class Piece:
    """Something of a memory that is (or was) removed. `what` is file, entry, lines, trash, archive, index …"""

    id: str
    what: str
    path: str

    def to_dict(self) -> dict[str, str]:
        return {"id": self.id, "what": self.what, "path": self.path}


@dataclass(frozen=True, slots=True)
class Left:
    """Where something may be left that we do not reach, and the command that does, if there is one."""

    where: str
    why: str
    command: str = ""

    def to_dict(self) -> dict[str, str]:
        return {"where": self.where, "why": self.why, "command": self.command}


@dataclass(frozen=True, slots=True)
class Forgotten:
    ids: tuple[str, ...]
    removed: tuple[Piece, ...]
    left: tuple[Left, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "ids": list(self.ids),
            "removed": [piece.to_dict() for piece in self.removed],
            "left": [left.to_dict() for left in self.left],
        }


@dataclass(frozen=True, slots=True)
class _Step:
    """One piece, the texts in it that are the memory's, and how it is removed; doing it twice does no harm.

    `marks` are lines that are the memory's, but not of its text: its title, the heading of an entry.
    """

    what: str
    path: str
    texts: tuple[str, ...]
    remove: Callable[[], object]
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Target:
    lane: str
    native: str
    steps: tuple[_Step, ...]

    @property
    def id(self) -> str:
        return f"{self.lane}:{self.native}"

    @property
    def texts(self) -> tuple[str, ...]:
        """What it says and has said, each once."""
        return tuple(dict.fromkeys(text for step in self.steps for text in step.texts if plain(text)))

    def needles(self, *, every: bool = False, least: int = _TELLING) -> set[bytes]:
        """What tells that bytes hold one of its texts."""
        marks = [mark for step in self.steps for mark in step.marks]
        return {needle for text in (*self.texts, *marks) for needle in _needles(text, every=every, least=least)}


def plan(bank: Bank, ids: Sequence[str]) -> Forgotten:
    """What `forget` would remove, and what it could not. Writes nothing. Raises NotFound."""
    return _planned(bank, _targets(bank, ids))


def forget(bank: Bank, ids: Sequence[str]) -> Forgotten:
    """Remove memories for good, there or deleted, with all that is derived from them. There is no way back.

    Leaves tombstones. Raises NotFound before anything is changed, StorageError; call again after that.
    """
    targets = _targets(bank, ids)
    done = _planned(bank, targets)
    bank.tombstones.bury(*((target.id, text) for target in targets for text in target.texts))
    bank.close()  # an open index would be written again
    _remove_index(bank)
    for path in _temporary(bank):
        files.remove(path)
    for target in targets:
        for path in _holding(bank, target):
            files.remove(path)
        for file in _exported(bank, target):
            with suppress(MemlaneError):  # then it is said that the file still has it
                export.write_block(bank, file)  # the memory is held back by now, and not in the block
        for step in target.steps:
            step.remove()
        _forget_id(bank, target.id)
    _remove_index(bank)  # somebody may have searched meanwhile
    for piece in done.removed:
        _remove_empty(bank, piece.path)
    still = [path for target in targets for path in _exported(bank, target, _TELLING)]
    why = "has it outside of our block; take it out in an editor"
    return replace(done, left=(*(Left(os.fspath(path), why) for path in still), *done.left))


def _planned(bank: Bank, targets: Sequence[_Target]) -> Forgotten:
    pieces: list[Piece] = []
    left: list[Left] = []
    for target in targets:
        pieces += [Piece(target.id, step.what, step.path) for step in target.steps]
        pieces += [Piece(target.id, "copy", path) for path in _holding(bank, target)]
        pieces += [Piece(target.id, "export", os.fspath(path)) for path in _exported(bank, target)]
    if pieces and (index := [path for path in _index_files(bank) if path.endswith("index.db")]):
        pieces += [Piece("", "index", path) for path in index]
    rejected = os.path.realpath(bank.vault.path) + logs.REJECTED
    if any(target.lane == "vault" for target in targets) and os.path.isfile(rejected):
        why = "has damaged lines of the vault; those without an id may be of any record"
        left.append(Left(rejected, why, f"rm {shlex.quote(rejected)}"))
    for target in targets:
        left += _in_git(bank, target)
        left += _elsewhere(bank, target, targets)
        left += _in_state(target)
    left += _outside()
    return Forgotten(tuple(target.id for target in targets), tuple(dict.fromkeys(pieces)), tuple(dict.fromkeys(left)))


# -- what there is of a memory


def _targets(bank: Bank, ids: Sequence[str]) -> list[_Target]:
    found = []
    for id in dict.fromkeys(ids):
        lane, native = _located(bank, id)
        steps = [*_twins(bank, lane, native), *_STEPS[lane](bank, native)]
        unique = {(step.what, step.path, step.texts): step for step in reversed(steps)}
        target = _Target(lane, native, tuple(reversed(unique.values())))
        if not target.steps and not bank.tombstones.knows(target.id):
            raise NotFound(
                f"There is no memory {gate.shown(id)}, and none was deleted.",
                hint="`memlane list` and `memlane trash` show the ids.",
            )
        found.append(target)
    return found


def _located(bank: Bank, id: str) -> tuple[str, str]:
    """Lane and native id of what is there, damaged, deleted, or was forgotten by half."""
    with suppress(NotFound, InvalidInput, StorageError):
        memory = bank.get(id)
        return memory.lane, memory.native_id
    name, _, native = id.partition(":")
    if name in NAMES and native:
        return name, native
    gone = [removed.id for removed in bank.removed() if removed.id.partition(":")[2] == id]
    if len(set(gone)) > 1:
        raise InvalidInput("That id was deleted in several lanes.", hint=f"Name one: {', '.join(sorted(set(gone)))}.")
    place = named(bank, id)
    if not gone and place is None:
        raise NotFound(f"There is no memory {gate.shown(id)}.", hint="`memlane list` and `memlane trash` show the ids.")
    found = gone[0] if gone else place.id if place else ""
    return found.partition(":")[0], found.partition(":")[2]


def _inside(root: Path, name: str) -> str:
    return files.inside(root, *name.split("/"))


def _file(what: str, path: str, lane: str) -> Iterator[_Step]:
    """A file that is the memory's alone."""
    if os.path.lexists(path):
        yield _Step(what, path, tuple(_says(path, lane)), partial(files.remove, path), tuple(_titles(path)))


def _titles(path: str) -> Iterator[str]:
    text = read_file(path)
    front = find_front(text) if isinstance(text, str) else None
    if isinstance(text, str) and front:
        with suppress(FrontMatterError):
            values = load_front(text[front.start : front.end])
            yield from (str(values[key]) for key in ("title", "subject") if values.get(key))


def _says(path: str, lane: str) -> list[str]:
    """What a memory's own file says, as its lane reads it; a deleted topic entry is a file of its own."""
    text = read_file(path)
    if not isinstance(text, str):
        return []
    if lane == "topics":
        return [memory_of(text_of.parse(raw)).text for raw in text_of.split(text).raws]
    if lane == "layers":
        return [aging.body(text)]
    front = find_front(text)
    return [text[front.body :] if front else text.removeprefix("\ufeff")]


def _trashed(lane: Lane, *names: str) -> Iterator[_Step]:
    for name, lies, _ in files.trashed(lane.root):
        if name in names:
            yield from _file("trash", lies, lane.name)


def _notes(bank: Bank, native: str) -> Iterator[_Step]:
    yield from _trashed(bank.notes, f"{native}.md")
    yield from _file("file", _inside(bank.notes.root, f"{native}.md"), "notes")


def _records(bank: Bank, native: str) -> Iterator[_Step]:
    root = bank.records.root
    yield from _trashed(bank.records, f"{native}.md")
    yield from _file("archive", _inside(root, f"{ARCHIVE}/{native}.md"), "records")
    yield from _file("file", _inside(root, f"{native}.md"), "records")


def _layers(bank: Bank, native: str) -> Iterator[_Step]:
    """A file, its archive, and its copies from before a prune; its name leaves the side files, too."""
    root = bank.layers.root
    stem = path_of(native).removesuffix(".md")
    archive = f"{stem}{aging.ARCHIVE}"
    yield from _trashed(bank.layers, f"{stem}.md", f"{stem}{BEFORE_PRUNE}.md", f"{archive}.md")
    yield from _file("archive", _inside(root, f"{archive}.md"), "layers")
    yield from _file("file", _inside(root, f"{stem}.md"), "layers")
    folder, kind = _inside(root, os.path.dirname(stem)), type_of(native)
    for path, key in ((os.path.join(folder, STATS), kind), (os.path.join(root, OLD_STATS), native)):
        if os.path.isfile(path) and json.dumps(key).encode() in files.read_bytes(path):
            yield _Step("counts", path, (), partial(_without_key, path, key))


def _without_key(path: str, key: str) -> None:
    """Take a name out of a side file: JSON objects, one a line or one as a whole. A line that is none goes with it."""
    with files.locked(path):
        lines = files.read_bytes(path).decode(errors="replace")
        kept = []
        for line in [lines] if path.endswith(".json") else lines.splitlines():
            with suppress(ValueError):
                values = json.loads(line)
                values.pop(key, None)
                kept.append(json.dumps(values) + "\n" if values else "")
        files.replace(path, "".join(kept).encode())


def _topics(bank: Bank, native: str) -> Iterator[_Step]:
    lane, folder = bank.topics, bank.topics._folder
    yield from _trashed(lane, f"{native}.md")
    try:
        topic, subtopic, tail = files.safe_parts(native)
        path = folder.path(topic, subtopic)
    except ValueError:  # also what these two raise
        return
    entries = folder.entries(path)
    entries = entries if isinstance(entries, tuple) else ()
    archive = folder.at(pages.ARCHIVE, topic, f"{tail[:4]}.md")
    read = folder.read(archive)
    raws = [raw for name, raw in text_of.archived(read) if name == subtopic] if isinstance(read, str) else []
    tails, _ = lane._tails(topic, subtopic, entries, {tail[:4]})
    known = dict(zip(tails, reversed(raws), strict=True)) if len(tails) == len(raws) else {}
    own = [entry.raw for entry, id in zip(entries, lane._natives(entries), strict=True) if id == native]
    own += [known[tail]] if tail in known else []
    said = {plain(raw) for raw in own}

    def is_its(raw: str) -> bool:
        """By its words: ids are counted anew as soon as a namesake is gone, and a kill may have come after that."""
        return plain(raw) in said or bank.tombstones.was(f"topics:{native}", memory_of(text_of.parse(raw)).text)

    for raw in filter(is_its, raws):
        text = memory_of(text_of.parse(raw)).text
        remove = partial(_unarchive, bank, archive, subtopic, raw)
        yield _Step("archive", archive, (text,), remove, (raw.partition("\n")[0], text_of.parse(raw).title))
    for raw in filter(is_its, (entry.raw for entry in entries)):
        text = memory_of(text_of.parse(raw)).text
        remove = partial(_take_out, bank, path, raw)
        yield _Step("entry", path, (text,), remove, (raw.partition("\n")[0], text_of.parse(raw).title))


def _take_out(bank: Bank, path: str, raw: str) -> None:
    """An entry out of its topic file; before that, its title out of index.md."""
    folder = bank.topics._folder
    with folder.locked():
        document = text_of.split(pages.sound(path))
        if raw not in document.raws:
            return
        number = document.raws.index(raw)
        before = [folder.parse(path, one) for one in document.raws]
        name = "/".join(folder.named(path))
        listed = index_page.listed(folder).get(name)
        if listed and listed.description == before[number].title:
            index = folder.at(pages.INDEX)
            bare = text_of.edit_index(pages.text(index), {name: listed._replace(description="")})
            pages.write(index, bare)
        raws = [one for place, one in enumerate(document.raws) if place != number]
        kept = pages.trimmed(raws, document.tail)
        pages.write(path, "".join((document.head, *kept, document.tail)))
        index_page.update(folder, path, before)


def _unarchive(bank: Bank, archive: str, subtopic: str, raw: str) -> None:
    folder = bank.topics._folder
    with folder.locked():
        text = pages.text(archive)
        for piece in (text_of.archive_mark(subtopic) + raw, raw):
            if piece in text:
                left = text.replace(piece, "", 1)
                files.replace(archive, files.encoded(left)) if left.strip() else files.remove(archive)
                break
        index_page.write(folder, everything=True)


def _vault(bank: Bank, native: str) -> Iterator[_Step]:
    """All lines of a record: of the log, of what a kill left of a rewrite, and of what was rejected."""
    path = os.path.realpath(bank.vault.path)
    texts = tuple(record.text for record in bank.vault.history(native))
    is_its = partial(_is_line_of, native, texts)
    rejected = path + logs.REJECTED
    if os.path.isfile(rejected) and any(map(is_its, logs.split_lines(files.read_bytes(rejected)))):
        yield _Step("lines", rejected, (), partial(_filter, path, rejected, is_its))
    if os.path.isfile(path) and any(map(is_its, logs.split_lines(_all(path) + logs.read_old(path)))):
        yield _Step("lines", path, texts, partial(_rewrite, path, is_its))


def _is_line_of(id: str, texts: Collection[str], line: bytes) -> bool:
    """Whether a line of the vault is of this record. One that is damaged is, where it has its id or its words."""
    record = read_line(line)
    if isinstance(record, Record):
        return record.id == id
    needles = {needle for text in texts for needle in _needles(text, every=True)}
    return f'"{id}"'.encode() in line or any(needle in line for needle in needles)


def _rewrite(path: str, is_its: Callable[[bytes], bool]) -> None:
    def change(data: bytes) -> tuple[bytes, bytes]:
        lines = [line for line in logs.split_lines(data) if line.strip() and not is_its(line)]
        return b"".join(line + b"\n" for line in lines), b""

    logs.rewrite(path, change, lambda line: isinstance(read_line(line), Record))


def _filter(owner: str, path: str, is_its: Callable[[bytes], bool]) -> None:
    """Take lines out of a file that is written under the lock of another."""
    with files.locked(owner) if os.path.isfile(owner) else nullcontext():
        lines = [line for line in logs.split_lines(_all(path)) if line.strip() and not is_its(line)]
        files.replace(path, b"".join(line + b"\n" for line in lines)) if lines else files.remove(path)


def _all(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


_STEPS: dict[str, Callable[[Bank, str], Iterator[_Step]]] = {
    "notes": _notes,
    "vault": _vault,
    "topics": _topics,
    "records": _records,
    "layers": _layers,
}


def _twins(bank: Bank, lane: str, native: str) -> Iterator[_Step]:
    """Deleted memories of any name that say, word for word, what this one says or has said."""
    id = f"{lane}:{native}"
    said = {plain(text) for step in _STEPS[lane](bank, native) for text in step.texts} - {""}
    for name in _FOLDERS:
        for _, lies, _ in files.trashed(bank.lane(name).root):
            texts = _says(lies, name)
            if any(plain(text) in said or bank.tombstones.was(id, text) for text in texts):
                yield from _file("trash", lies, name)


# -- copies that are no memories


def _roots(bank: Bank) -> list[Path]:
    """The bank's folder and those of its lanes, each once; the vault is a file, and what lies beside it is not ours."""
    return list(dict.fromkeys((bank.root, *(bank.lane(name).root for name in _FOLDERS))))


def _needles(text: str, *, every: bool = False, least: int = _TELLING) -> set[bytes]:
    """What tells that bytes hold a text: its longest line, or every one, as it is and as JSON writes it."""
    lines = sorted((line.strip() for line in text.splitlines()), key=len, reverse=True)
    found = set()
    for line in lines if every else lines[:1]:
        if len(line) >= least:
            found |= {line, json.dumps(line)[1:-1], json.dumps(line, ensure_ascii=False)[1:-1]}
    return {said.encode(errors="replace") for said in found}


def _holding(bank: Bank, target: _Target) -> list[str]:
    """Files in the trash that are no deleted memory and hold a text of this one: copies from before a change.

    Of what `undo` keeps, all of a run goes: its journal names what it changed.
    """
    needles = target.needles()
    ids = {target.id, target.native}
    if target.lane == "layers":
        ids.add(type_of(target.native))  # as the side files name it
    if target.lane not in ("vault", "topics") and (place := named(bank, target.id)):
        ids.add(os.path.relpath(place.path, bank.root))
    quoted = {json.dumps(id, ensure_ascii=way).encode() for id in ids for way in (False, True)}
    runs = os.path.join(bank.root, *undo.FOLDER)
    found: dict[str, None] = {}
    for root in _roots(bank):
        memories = {lies for _, lies, _ in files.trashed(root) if lies.endswith(".md")}
        for path in _walk(os.path.join(root, files.TRASH)):
            if path in memories or not any(needle in _all(path) for needle in needles | quoted):
                continue
            ours = path.startswith(runs + os.sep)
            found |= dict.fromkeys(sorted(_walk(os.path.dirname(path))) if ours else [path])
    return list(found)


def _walk(folder: str) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path


def _temporary(bank: Bank) -> Iterator[str]:
    """Files that a writer left who is dead."""
    beside = bank.vault.root.parent
    paths = [path for root in _roots(bank) for path in _walk(os.fspath(root))]
    paths += [entry.path for entry in os.scandir(beside) if entry.is_file()] if beside.is_dir() else []
    for path in paths:
        name = os.path.basename(path)
        if name.startswith(files.TEMP_PREFIX) and name.endswith(files.TEMP_SUFFIX) and _is_nobodys(path):
            yield path


def _is_nobodys(path: str) -> bool:
    digits = os.path.basename(path).removeprefix(files.TEMP_PREFIX).partition("-")[0]
    try:
        os.kill(int(digits), 0)
        return time.time() - os.stat(path).st_mtime > files.LEFT_OVER
    except ProcessLookupError:
        return True
    except (OSError, ValueError):
        return False


def _index_files(bank: Bank) -> list[str]:
    """All that was derived: index, how far transcripts were read, what was looked up of the code."""
    return [path for path in _walk(os.path.join(bank.root, "indices")) if not path.endswith(".gitignore")]


def _remove_index(bank: Bank) -> None:
    for path in sorted(_index_files(bank), reverse=True):  # -wal and -shm before the database itself
        files.remove(path)


def _exported(bank: Bank, target: _Target, least: int = 1) -> list[Path]:
    """Files of the project that have a block of ours, and a line of this memory; the shorter, the less that tells."""
    project = bank.config.project
    needles = target.needles(every=True, least=least)
    found = []
    for pattern in EXPORTS if project and needles else ():
        for path in sorted((project or Path()).glob(pattern)):
            with suppress(OSError, StorageError):
                data = files.read_bytes(os.fspath(path))
                if marked_block.START.encode() in data and any(needle in data for needle in needles):
                    found.append(path)
    return found


def _forget_id(bank: Bank, id: str) -> None:
    """The id out of what lists ids: anchors, what sessions were shown, the log of the hooks."""
    path = os.path.join(bank.root, anchors.NAME)
    quoted = [json.dumps(id, ensure_ascii=way).encode() for way in (False, True)]
    if os.path.isfile(path) and any(needle in _all(path) for needle in quoted):
        anchors.compact(path, drop=[id])
    state = config.user_state()
    lines = [path + logs.REJECTED, *(os.fspath(state / name) for name in ("hook.log", "hook.log.1"))]
    for file in lines:
        if os.path.isfile(file) and id.encode() in _all(file):
            _filter("", file, lambda line: id.encode() in line)
    for file in map(os.fspath, (state / "sessions").glob("*.json")):
        with suppress(OSError, ValueError, TypeError):
            seen = json.loads(_all(file))
            if id in seen:
                files.replace(file, json.dumps([one for one in seen if one != id]).encode())


def _remove_empty(bank: Bank, path: str) -> None:
    """The folders above a path that nothing is left in: their names may be telling."""
    homes = {os.fspath(root) for root in _roots(bank)}
    folder = os.path.dirname(path)
    while folder not in homes and any(folder.startswith(home + os.sep) for home in homes):
        try:
            os.rmdir(folder)
        except OSError:
            return
        folder = os.path.dirname(folder)


# -- what we do not reach


def _in_git(bank: Bank, target: _Target) -> Iterator[Left]:
    place = named(bank, target.id)
    if place is None:
        return
    try:
        top = git.top(bank.root)
        path = git.relative(top, place.path) if top else None
        if top is None or path is None:
            return
        needles = {f'"{target.native}"'.encode()} if target.lane == "vault" else target.needles()
        shared = target.lane in ("vault", "topics") and needles
        if not _has_history(top, path, needles if shared else None):
            return
    except MemlaneError as error:
        yield Left("git", f"could not be asked: {error} {error.hint}")
        return
    shown = shlex.quote(path) if gate.redacted(path) == path else "<its path>"
    yield Left(
        "git history",
        f"{target.id} is in commits of this repository; to rewrite them, in a fresh clone",
        _recipe(target, shown),
    )
    yield Left(
        "other clones",
        "whoever has cloned or fetched it has it, too, and so has the server; what was a secret is to be changed",
    )


def _has_history(top: Path, path: str, needles: Collection[bytes] | None) -> bool:
    """Whether any commit, or the index, has a file at this path; with needles, one that has one of them."""
    out = git.run(top, "--literal-pathspecs", "rev-list", "--all", "--reflog", "--objects", "--", path)
    listed = git.run(top, "--literal-pathspecs", "ls-files", "-s", "--", path).decode().split()
    blobs = [line.split(" ", 1)[0] for line in os.fsdecode(out).splitlines() if line.endswith(f" {path}")]
    blobs += listed[1:2]
    return (
        bool(blobs)
        if needles is None
        else any(needle in data for data in git.read_blobs(top, blobs) for needle in needles)
    )


def _recipe(target: _Target, path: str) -> str:
    """The command that takes it out of the history, without repeating what it says."""
    if target.lane == "vault":
        its = json.dumps(f'"{target.native}"')
        code = f"blob.data = b''.join(line for line in blob.data.splitlines(True) if b{its} not in line)"
        return f"git filter-repo --blob-callback {shlex.quote(code)}"
    if target.lane == "topics":
        return (
            "git filter-repo --replace-text FILE   # a file outside of the repository with the lines to be removed, "
            "one a line; delete it afterwards"
        )
    return f"git filter-repo --invert-paths --path {path}"


def _elsewhere(bank: Bank, target: _Target, targets: Iterable[_Target]) -> Iterator[Left]:
    """Other memories that say the same, in part or as a whole, or that name this one."""
    ids = {one.id for one in targets}
    said = [text for text in map(plain, target.texts) if len(text) >= _TELLING]
    names = {f"[[memory:{target.native}]]", f"[[{target.native}]]", f"[[{target.id}]]"}
    for memory in bank.memories():
        if memory.id in ids:
            continue
        text = plain(memory.text)
        if any(one in text for one in said):
            yield Left(memory.id, f"says what {target.id} says", f"memlane forget {shlex.quote(memory.id)}")
        elif any(name in memory.text for name in names):
            yield Left(memory.id, f"links to {target.id}", f"memlane edit {shlex.quote(memory.id)}")
    for removed in bank.removed():
        if removed.id not in ids and removed.how == "trash":
            texts = map(plain, _says(os.fspath(removed.path), removed.id.partition(":")[0]))
            if any(one != text and one in text for text in texts for one in said):
                why = f"was deleted, and says what {target.id} says"
                yield Left(removed.id, why, f"memlane forget {shlex.quote(removed.id)}")


def _in_state(target: _Target) -> Iterator[Left]:
    """What lies in our own folder of this machine, backups of clients' files for one."""
    needles = target.needles()
    for path in _walk(os.fspath(config.user_state())) if needles else ():
        with suppress(OSError):
            if any(needle in _all(path) for needle in needles):
                yield Left(path, f"has words of {target.id}", f"rm {shlex.quote(path)}")


def _outside() -> Iterator[Left]:
    home = config.home()
    there = [f"~/{name}" for name in TRANSCRIPTS if os.path.isdir(home / name)]
    if there:
        yield Left(", ".join(there), "clients keep what was said in their transcripts; delete those that have it")
    yield Left(
        "backups",
        "copies made by others are not looked for: backups, snapshots of the file system, editors' own copies, files "
        "that were exported, and what a disk keeps of deleted files",
    )
