"""Remove memories for good: from files, trash, archives, index, caches and the blocks that were exported.

    plan(bank, ["notes:plan"]).left       what cannot be reached from here: git's history, transcripts, backups

A deletion (`Bank.delete`) can be undone; this cannot. What was forgotten is remembered as keyed hashes in the user's
state folder (`memlane.disk.forgotten`), so that it does not come back, not even with a word changed; nothing about it
stays in the bank. Copies go first and the memory itself last, so that after an interruption a second call
finds the rest. Files are unlinked, not overwritten: what a disk or a file system keeps of them is out of our reach.
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlane import config, gate
from memlane.care import forget_journal
from memlane.care.distilled import FOLDER, INSTEAD_OF
from memlane.core.errors import Busy, InvalidInput, MemlaneError, NotFound, StorageError
from memlane.core.model import Memory
from memlane.disk import anchors, derived, files, journal, log, names, scratch, state, trash
from memlane.disk.forgotten import Gone
from memlane.disk.tombstones import plain
from memlane.exchange import export, marked_block
from memlane.history import git, sessions, undo
from memlane.index import facts
from memlane.lanes import NAMES, Lane
from memlane.lanes.answers import TELLING, Trace, needles
from memlane.lanes.records.record import ARCHIVE
from memlane.recall import judged
from memlane.recall.address import find, find_any

if TYPE_CHECKING:
    from memlane.bank import Bank

TRANSCRIPTS = (".claude/projects", ".codex/sessions", ".gemini/tmp", ".cursor/projects", ".local/share/opencode")
_LOGS = ("hook.log", "hook.log.1")
EXPORTS = ("*.md", "*.mdc", ".claude/*.md", ".github/*.md", ".cursor/rules/*.mdc")


@dataclass(frozen=True, slots=True)
class Piece:
    """Something of a memory that is (or was) removed. `what` is file, entry, lines, trash, archive, index …"""

    id: str
    what: str
    path: str


@dataclass(frozen=True, slots=True)
class Left:
    """Where something may be left that we do not reach, and the command that reaches it, if there is one."""

    where: str
    why: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class Forgotten:
    ids: tuple[str, ...]
    removed: tuple[Piece, ...]
    left: tuple[Left, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "ids": list(self.ids),
            "removed": [asdict(piece) for piece in self.removed],
            "left": [asdict(left) for left in self.left],
        }


@dataclass(frozen=True, slots=True)
class _Target:
    lane: Lane
    native: str
    path: str
    traces: tuple[Trace, ...]
    stays: bool = False  # something else has its name by now

    @property
    def id(self) -> str:
        return f"{self.lane.name}:{self.native}"

    @property
    def texts(self) -> tuple[str, ...]:
        """Each text that it has or had, once."""
        return tuple(dict.fromkeys(text for trace in self.traces for text in trace.texts if plain(text)))

    @property
    def gone(self) -> Gone:
        """What has to be remembered of it, so that it stays forgotten."""
        marks = tuple(mark for trace in self.traces for mark in trace.marks)
        return Gone(self.id, self.texts, marks, self.lane.answers.ids_are_random, self.scope)

    @property
    def scope(self) -> str:
        """The scope that it names, there or deleted."""
        if self.lane.answers.shares_files:
            with suppress(MemlaneError):
                return self.lane.fetch(self.native).scope or ""
            return ""
        paths = dict.fromkeys((self.path, *(trace.path for trace in self.traces if trace.what in ("file", "trash"))))
        items = (item for path in paths if os.path.isfile(path) for item in self.lane.parse(path))
        return next((item.scope for item in items if isinstance(item, Memory) and item.scope), "")

    def needles(self, *, every: bool = False, least: int = TELLING) -> set[bytes]:
        """What tells that bytes hold one of its texts."""
        marks = [mark for trace in self.traces for mark in trace.marks]
        return {needle for text in (*self.texts, *marks) for needle in needles(text, every=every, least=least)}


def plan(bank: Bank, ids: Sequence[str]) -> Forgotten:
    """What `forget` would remove, and what it could not. Writes nothing. Raises NotFound."""
    return _planned(bank, _targets(bank, ids))


def forget(bank: Bank, ids: Sequence[str]) -> Forgotten:
    """Remove memories for good, there or deleted, with all that is derived from them. There is no way back.

    Remembers it in the user's state folder. Raises NotTrusted and NotFound before anything is changed, StorageError;
    call again then.
    """
    config.require_trust(bank.config)
    with journal.paused():  # it is not to be told of what it must not know
        return _forget(bank, ids)


def forget_again(bank: Bank, ids: Iterable[str]) -> tuple[Piece, ...]:
    """Remove here what others have forgotten, as far as there is anything of it; what was removed. Raises StorageError.

    That it was forgotten is known already: see `memlane.disk.forgotten_shared`. Something else that has its name by now
    stays.
    """
    config.require_trust(bank.config)
    is_gone = bank.tombstones.private.is_gone

    def is_forgotten(id: str, trace: Trace) -> bool:
        return any(is_gone(text, id, title) for text in trace.texts for title in trace.marks or ("",))

    with journal.paused():
        targets: list[_Target] = []
        for id in ids:
            with suppress(NotFound, InvalidInput):
                targets += _targets(bank, [id], is_forgotten)
        bank.tombstones.drop([target.gone for target in targets])
        _remove(bank, targets)
        pieces = tuple(Piece(target.id, trace.what, trace.path) for target in targets for trace in target.traces)
        _tidy(bank, targets, pieces)
        return pieces


def forget_captured(bank: Bank, *, dry_run: bool = False) -> Forgotten:
    """Remove all that was captured and distilled, there or deleted, from the bank, its journal and the log of its
    sessions. There is no way back.

    Unlike what `forget` removes, nobody remembers what it was: a transcript that is read again brings it back. How far
    transcripts were read stays noted, so that hooks do not. Raises NotTrusted, StorageError.
    """
    config.require_trust(bank.config)
    folders = [os.fspath(bank.records.root), os.path.join(bank.notes.root, names.PRIVATE, FOLDER)]
    paths = list(dict.fromkeys(_captured_files(bank, folders)))
    removed = [one.id for one in bank.removed() if _was_captured(one.id)]
    ids = [*(one.id for lane in ("records", "notes") for one in bank.memories(lane) if _was_captured(one.id)), *removed]
    logs = [path for path in state.newest(config.user_state() / sessions.FOLDER) if _is_of(bank, path)]
    pieces = [*(Piece("", "file", path) for path in paths), *(Piece("", "log of a session", path) for path in logs)]
    if bank.journal and bank.journal.path:
        pieces.append(Piece("", "journal", bank.journal.path))
    left = (*_captured_in_git(bank, folders), *_shared_with(bank), *_outside())
    done = Forgotten(tuple(dict.fromkeys(ids)), tuple(pieces), left)
    if dry_run:
        return done
    with journal.paused():
        bank.close()  # an open index would be written again
        for path in (*paths, *_temporary(bank), *_index_files(bank)):
            if not path.startswith(os.path.join(bank.root, derived.FOLDER, "capture") + os.sep):
                files.remove(path)
        with files.storage(os.fspath(bank.root)):
            facts.remove(bank.index_file)
        scratch.clear(config.user_state())
        state.remove(logs)
        _purge_captured(bank, folders, done.ids)
        _tidy(bank, (), pieces)
    return done


def _was_captured(id: str) -> bool:
    return id.startswith(("records:", f"notes:{names.PRIVATE}/{FOLDER}/"))


def _captured_files(bank: Bank, folders: Sequence[str]) -> Iterator[str]:
    """The files of what was captured, damaged ones too, and what was deleted of it."""
    records, distilled = folders
    for each in bank.records.files():
        path = each if isinstance(each, str) else os.fspath(each.path)
        if os.path.dirname(path) in (records, os.path.join(records, ARCHIVE)):  # a folder in it may be another lane's
            yield path
    yield from (lies for _, lies, _ in trash.contents(records))
    yield from _walk(distilled)
    inside = os.path.relpath(distilled, bank.notes.root) + os.sep
    yield from (lies for name, lies, _ in trash.contents(bank.notes.root) if name.startswith(inside))
    yield from _walk(os.path.join(bank.root, *undo.FOLDER))  # copies from before changes


def _is_of(bank: Bank, path: str) -> bool:
    """Whether the log of a session names this bank."""
    return json.dumps(os.fspath(bank.root)).encode() in files.read_bytes(path)


def _captured_in_git(bank: Bank, folders: Sequence[str]) -> Iterator[Left]:
    with suppress(MemlaneError):  # no git
        top = git.top(bank.root)
        for path in [git.relative(top, folder) for folder in folders] if top else []:
            if top and path and git.run(top, git.LITERAL, "rev-list", "--all", "-1", "--", path).strip():
                command = f"git filter-repo --invert-paths --path {shlex.quote(path)}"
                yield Left("git history", f"commits have files of {path}; to rewrite them, in a fresh clone", command)
                yield _CLONES


def _purge_captured(bank: Bank, folders: Sequence[str], ids: Collection[str]) -> None:
    """Take what was captured out of the journal, and its ids out of what lists ids."""
    kept = bank.journal
    inside = tuple(os.path.relpath(folder, bank.root) + os.sep for folder in folders)
    known = {name for name, _ in kept.texts() if name.startswith(inside)} if kept else set()
    ids = {*ids, *(undo.name_of(bank, name) for name in known)}
    path = os.path.join(bank.root, anchors.NAME)
    for each in (path, names.private_twin(path)):
        if os.path.isfile(each):
            anchors.compact(each, drop=ids)
    bank.replaced.forget(ids)
    for id in ids:
        judged.forget(bank, id)
    for moments in (config.user_state() / "moments").glob("*.json"):  # of open sessions, which do without them
        moments.unlink(missing_ok=True)
    if kept is None:
        return
    signs = (b'"records:', f"{names.PRIVATE}/{FOLDER}/".encode())

    def without(name: str, data: bytes) -> bytes | None:
        if name.startswith(inside) or (trash.TRASH in name.split(os.sep) and any(each in name for each in inside)):
            return None
        if ".jsonl" in os.path.basename(name):
            return b"".join(line for line in data.splitlines(True) if not any(sign in line for sign in signs))
        return data

    if not kept.purge(without, {*ids, *known}):
        raise Busy("The journal is being read by another program, and may still hold it.", hint="Call it again.")


def _forget(bank: Bank, ids: Sequence[str]) -> Forgotten:
    targets = _targets(bank, ids)
    done = _planned(bank, targets)
    own = {target.id for target in targets}
    bank.tombstones.forget([target.gone for target in targets], (one for one in bank.memories() if one.id not in own))
    _remove(bank, targets)
    _tidy(bank, targets, done.removed)
    still = [path for target in targets for path in _exported(bank, target, TELLING)]
    why = "has it outside of our block; take it out in an editor"
    return replace(done, left=(*(Left(os.fspath(path), why) for path in still), *done.left))


def _remove(bank: Bank, targets: Sequence[_Target]) -> None:
    bank.close()  # an open index would be written again
    _remove_index(bank)
    for path in _temporary(bank):
        files.remove(path)
    scratch.clear(config.user_state())
    for target in targets:
        for path in _holding(bank, target):
            files.remove(path)
        for file in _exported(bank, target):
            with suppress(MemlaneError):  # then the file is listed below as one that still has it
                export.write_block(bank, file)  # the memory is held back by now, and not in the block
        sessions.forget(target.id, target.needles(every=True))
        for trace in target.traces:
            trace.remove()
        if not target.stays:
            judged.forget(bank, target.id)
            _forget_id(bank, target.id)
    _remove_index(bank)  # a search may have made it again meanwhile


def _tidy(bank: Bank, targets: Sequence[_Target], removed: Sequence[Piece]) -> None:
    """Nothing that was removed leaves its name, nor its text in what is known of remotes."""
    from memlane.care.sync.forgetting import clean_bases

    for piece in removed:
        _remove_empty(bank, piece.path)
    _clear_trash(bank)
    clean_bases(bank, {*(target.path for target in targets), *(piece.path for piece in removed)})


def _planned(bank: Bank, targets: Sequence[_Target]) -> Forgotten:
    pieces: list[Piece] = []
    left: list[Left] = []
    for target in targets:
        pieces += [Piece(target.id, trace.what, trace.path) for trace in target.traces]
        pieces += [Piece(target.id, "copy", path) for path in _holding(bank, target)]
        pieces += [Piece(target.id, "export", os.fspath(path)) for path in _exported(bank, target)]
        left += [Left(*sign) for sign in target.lane.answers.out_of_reach()]
    pieces += [Piece("", "left by a killed command", path) for path in scratch.left(config.user_state())]
    if pieces:
        pieces += [Piece("", "index", path) for path in _index_files(bank) if path.endswith("index.db")]
    for target in targets:
        left += _in_git(bank, target)
        left += _elsewhere(bank, target, targets)
        left += _in_files(bank, target)
    left += _shared_with(bank)
    left += _outside()
    return Forgotten(tuple(target.id for target in targets), tuple(dict.fromkeys(pieces)), tuple(dict.fromkeys(left)))


# -- what there is of a memory


def _targets(
    bank: Bank, ids: Sequence[str], is_forgotten: Callable[[str, Trace], bool] = lambda *_: True
) -> list[_Target]:
    found = []
    for id in dict.fromkeys(ids):
        lane, native, path = find_any(bank, id)
        every = list(lane.answers.traces(native))
        stays = any(trace.texts and not is_forgotten(id, trace) for trace in every)
        own = [trace for trace in every if is_forgotten(id, trace) or not (trace.texts or stays)]
        traces = [*_twins(bank, f"{lane.name}:{native}", own), *own]
        traces = [*forget_journal.traces(bank, lane, native, traces), *traces]
        unique = {(trace.what, trace.path, trace.texts): trace for trace in reversed(traces)}
        target = _Target(lane, native, path, tuple(reversed(unique.values())), stays)
        if not target.traces and not bank.tombstones.knows(target.id):
            find(bank, id)  # or else it says which names are near
        found.append(target)
    return found


def _twins(bank: Bank, id: str, own: Sequence[Trace]) -> Iterator[Trace]:
    """Deleted memories of any name that say, word for word, what this one says or has said."""
    texts = {plain(text) for trace in own for text in trace.texts} - {""}
    for lane in map(bank.lane, NAMES):
        for trace in lane.answers.trashed():
            if any(plain(text) in texts or bank.tombstones.was(id, text) for text in trace.texts):
                yield trace


# -- copies besides the memories


def _roots(bank: Bank) -> list[Path]:
    """The bank's folder and those of its lanes, each once. What lies beside a lane that is a file is not ours."""
    lanes = (lane for lane in map(bank.lane, NAMES) if lane.answers.is_folder)
    return list(dict.fromkeys((bank.root, *(lane.root for lane in lanes))))


def _holding(bank: Bank, target: _Target) -> list[str]:
    """Files in the trash that are no deleted memory and hold a text of this one: copies from before a change.

    Of what `undo` keeps, a run goes as a whole: its journal names what it changed.
    """
    ids = {target.id, target.native, *target.lane.answers.aliases(target.native)}
    if not target.lane.answers.shares_files:
        ids.add(os.path.relpath(target.path, bank.root))
    signs = target.needles() | {json.dumps(id, ensure_ascii=way).encode() for id in ids for way in (False, True)}
    runs = os.path.join(bank.root, *undo.FOLDER)
    found: dict[str, None] = {}
    for root in _roots(bank):
        stamped = {lies for _, lies, _ in trash.contents(root)}
        for path in _walk(os.path.join(root, trash.TRASH)):
            is_of_run = path.startswith(runs + os.sep)
            is_copy = is_of_run or (path in stamped and not path.endswith(".md"))
            if is_copy and _has_any(path, signs):
                found |= dict.fromkeys(sorted(_walk(os.path.dirname(path))) if is_of_run else [path])
    return list(found)


def _has_any(path: str, needles: Collection[bytes]) -> bool:
    """Whether a file's bytes hold one of these. Raises OSError."""
    data = log.read_all(path)
    return any(needle in data for needle in needles)


def _walk(folder: str) -> Iterator[str]:
    return files.tree(folder)


def _temporary(bank: Bank) -> Iterator[str]:
    """Temporary files whose writer is gone."""
    paths = [path for root in _roots(bank) for path in _walk(os.fspath(root))]
    for lane in map(bank.lane, NAMES):
        if not lane.answers.is_folder and lane.root.parent.is_dir():
            paths += [os.path.join(lane.root.parent, name) for name in files.names_in(lane.root.parent)]
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
    """All derived files: the index, how far transcripts were read, what was looked up of the code."""
    derived.refuse_link(bank.root)
    return list(derived.paths(bank.root))


def _remove_index(bank: Bank) -> None:
    derived.remove(bank.root)
    with files.storage(os.fspath(bank.root)):
        facts.remove(bank.index_file)


def _exported(bank: Bank, target: _Target, least: int = 1) -> list[Path]:
    """Files of the project that have a block of ours, and a line of this memory of at least so many characters."""
    projects = dict.fromkeys(filter(None, (bank.config.project, bank.config.code)))
    needles = target.needles(every=True, least=least)
    found = []
    for path in [path for folder in projects for pattern in EXPORTS for path in sorted(folder.glob(pattern))]:
        with suppress(OSError, StorageError):
            data = files.read_bytes(os.fspath(path))
            if marked_block.START.encode() in data and any(needle in data for needle in needles):
                found.append(path)
    return found


def _forget_id(bank: Bank, id: str) -> None:
    """Take an id out of what lists ids: anchors, what replaced what or would, the log of the hooks."""
    path = os.path.join(bank.root, anchors.NAME)
    paths = [path, names.private_twin(path)]
    quoted = [json.dumps(id, ensure_ascii=way).encode() for way in (False, True)]
    if any(os.path.isfile(each) and _has_any(each, quoted) for each in paths):
        anchors.compact(path, drop=[id])
    bank.replaced.forget([id])
    for memory in bank.memories("notes"):
        if memory.fields.get(INSTEAD_OF) == id:
            bank.notes.revise(memory.native_id, {"extra": {INSTEAD_OF: None}})
    state = config.user_state()
    lines = [*(each + log.REJECTED for each in paths), *(os.fspath(state / name) for name in _LOGS)]
    for file in lines:
        if os.path.isfile(file) and _has_any(file, [id.encode()]):
            log.remove_lines(file, lambda line: id.encode() in line)
    for moments in (state / "moments").glob("*.json"):  # of open sessions, which do without it
        moments.unlink(missing_ok=True)


def _remove_empty(bank: Bank, path: str) -> None:
    """Remove the folders above a path that are empty now: their names may tell what was in them."""
    homes = {os.fspath(root) for root in _roots(bank)}
    folder = os.path.dirname(path)
    while folder not in homes and any(folder.startswith(home + os.sep) for home in homes):
        if not files.remove_folder(folder):
            return
        folder = os.path.dirname(folder)


def _clear_trash(bank: Bank) -> None:
    """Remove the empty folders in the trash: what was restored from them has left its name there."""
    for home in (os.path.join(root, trash.TRASH) for root in _roots(bank)):
        if not os.path.islink(home):
            for folder, _, _ in os.walk(home, topdown=False):
                with suppress(OSError):  # it is not empty
                    os.rmdir(folder)


# -- what we do not reach


def _in_git(bank: Bank, target: _Target) -> Iterator[Left]:
    archives = (trace.path for trace in target.traces if trace.what == "archive")
    answers = target.lane.answers
    try:
        top = git.top(bank.root)
        paths = [git.relative(top, path) for path in dict.fromkeys((target.path, *archives))] if top else []
        signs = answers.git_needles(target.native) or target.needles()
        signs_in = signs if answers.shares_files and signs else None
        found = [path for path in paths if top and path and _has_history(top, path, signs_in)]
    except MemlaneError as error:
        yield Left("git", f"could not be asked: {error} {error.hint}")
        return
    for path in filter(None, found):
        shown = shlex.quote(path) if gate.redacted(path) == path else "<its path>"
        yield Left(
            "git history",
            f"{target.id} is in commits of this repository; to rewrite them, in a fresh clone",
            answers.purge_recipe(target.native, shown),
        )
    if found:
        yield _CLONES


_CLONES = Left(
    "other clones",
    "whoever has cloned or fetched it has it, too, and so has the server; what was a secret is to be changed",
)


def _has_history(top: Path, path: str, needles: Collection[bytes] | None) -> bool:
    """Whether any commit, or the index, has a file at this path; with needles, one that has one of them."""
    out = git.run(top, git.LITERAL, "rev-list", "--all", "--reflog", "--objects", "--", path)
    listed = git.run(top, git.LITERAL, "ls-files", "-s", "--", path).decode().split()
    blobs = [line.split(" ", 1)[0] for line in os.fsdecode(out).split("\n") if line.endswith(f" {path}")]
    blobs += listed[1:2]
    if needles is None:
        return bool(blobs)
    return any(needle in data for data in git.read_blobs(top, blobs) for needle in needles)


def _elsewhere(bank: Bank, target: _Target, targets: Iterable[_Target]) -> Iterator[Left]:
    """Other memories that say the same, in part or as a whole, or that name this one."""
    ids = {other.id for other in targets}
    texts = [text for text in map(plain, target.texts) if len(text) >= TELLING]
    names = {f"[[memory:{target.native}]]", f"[[{target.native}]]", f"[[{target.id}]]"}
    for memory in bank.memories():
        if memory.id in ids:
            continue
        its_text = plain(memory.text)
        if any(text in its_text for text in texts):
            yield Left(memory.id, f"says what {target.id} says", f"memlane forget {shlex.quote(memory.id)}")
        elif any(name in memory.text for name in names):
            yield Left(memory.id, f"links to {target.id}", f"memlane edit {shlex.quote(memory.id)}")
    for removed in bank.removed():
        if removed.id not in ids and removed.how == "trash":
            lane = bank.lane(removed.id.partition(":")[0])
            its_texts = map(plain, lane.answers.texts_in(os.fspath(removed.path)))
            if any(text != its_text and text in its_text for its_text in its_texts for text in texts):
                why = f"was deleted, and says what {target.id} says"
                yield Left(removed.id, why, f"memlane forget {shlex.quote(removed.id)}")


def _in_files(bank: Bank, target: _Target) -> Iterator[Left]:
    """Files that hold its words: in memlane's own folder for this user, such as backups of clients' files, and
    conversations that a program keeps in the bank as sessions of its agent.
    """
    needles = target.needles()
    state = os.fspath(config.user_state())
    kept = os.path.join(bank.root, names.PRIVATE, names.CONVERSATIONS)
    for path in (*_walk(state), *_walk(kept)) if needles else ():
        folder = os.path.relpath(path, state).split(os.sep)[0]
        if folder in (scratch.NAME, "journal", "moments", "sync", sessions.FOLDER, *_LOGS):
            continue  # removed as a whole, or piece by piece
        with suppress(OSError):
            data = Path(path).read_bytes()
            if any(needle in data for needle in needles):
                yield Left(path, f"has words of {target.id}", f"rm {shlex.quote(path)}")


def _shared_with(bank: Bank) -> Iterator[Left]:
    from memlane.care.sync import status

    for each in status(bank, waiting=False):
        name = each.settings.name
        why = "may have it until the next sync, and other members until theirs"
        yield Left(f"the remote {name}", why, f"memlane sync {name}")


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
