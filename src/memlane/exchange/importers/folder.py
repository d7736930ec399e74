"""Folders of Markdown, as other programs leave them: walking them, reading front matter, and names that every file
system can hold."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from memlane.core.dates import moment
from memlane.core.errors import InvalidInput, StorageError
from memlane.core.front_matter import FrontMatterError, find_front, load_front
from memlane.core.invisible import visible
from memlane.core.markdown import first_heading
from memlane.core.model import Draft, Problem
from memlane.core.progress import tell
from memlane.disk import files
from memlane.disk.names import is_reserved, is_utf8, safe_parts
from memlane.exchange import marked_block
from memlane.exchange.importers.item import Found, Item, Skipped
from memlane.lanes import read_file
from memlane.lanes.notes.store import STATUSES, TYPES

MARK, HASH = "imported_from", "imported_hash"  # front-matter keys of an imported note
_NOT_OURS = frozenset({"node_modules", "__pycache__"})
_CREATED = ("created_at", "created", "date", "date created", "date_created", "creation date", "modified", "updated")
_BAD = re.compile(r'[\x00-\x1f\x7f-\x9f<>:"|?*\\]+')
_LONGEST = 150  # bytes of one part of a path: that leaves room for a number behind it


class Page(NamedTuple):
    """A Markdown file: its path from the source's folder, its front matter and body, and when it was written."""

    relative: str
    front: Mapping[str, Any]
    body: str
    written: datetime | None


# -- walking


def walk(root: Path, skip: Collection[str] = ()) -> Iterator[str | Problem | Skipped]:
    """Paths of the Markdown files below a folder, in order of name; everything else is passed over and named.

    Hidden folders (.git, .obsidian, .trash) and node_modules are not looked into. Links are never followed.
    """
    pending = [os.fspath(root)]
    while pending:
        here = pending.pop()
        try:
            with os.scandir(here) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            yield files.unreadable(here, error)
            continue
        folders = []
        for entry in entries:
            relative = os.path.relpath(entry.path, root)
            if entry.is_symlink():
                yield Skipped(relative, "a link, which is not followed")
            elif entry.is_dir():
                if not entry.name.startswith(".") and entry.name not in _NOT_OURS and entry.path not in skip:
                    folders.append(entry.path)
            elif entry.name.startswith("."):
                if is_markdown(entry.name):  # somebody may miss it
                    yield Skipped(relative, "hidden")
            elif is_markdown(entry.name):
                yield entry.path
            else:
                yield Skipped(relative, "not Markdown")
        pending.extend(reversed(folders))


def is_markdown(name: str) -> bool:
    return name.lower().endswith((".md", ".markdown"))


def notes(
    root: Path, skip: Collection[str] = (), below: str = "", draft: Callable[[Page], Draft] | None = None
) -> Iterator[Found]:
    """An item for every Markdown file below a folder, or for the one file that `root` is.

    `below` is the folder of the bank that the notes go into; `draft` makes a draft of a file (default: `draft_of`).
    """
    paths = (os.fspath(root),) if root.is_file() else tuple(walk(root, skip))
    for done, path in enumerate(paths):
        tell("importing", done, len(paths))
        if isinstance(path, str):
            relative = root.name if root.is_file() else os.path.relpath(path, root)
            yield from _note(path, relative, below, draft or draft_of)
        else:
            yield path
    tell("importing", len(paths), len(paths))


def _note(path: str, relative: str, below: str, draft: Callable[[Page], Draft]) -> Iterator[Found]:
    text = read_file(path)
    if not isinstance(text, str):
        if text is not None:
            yield text
        return
    if not is_utf8(relative):
        shown = os.fsencode(path).decode(errors="replace")
        yield Problem(Path(shown), "has a name that is not UTF-8; rename it")
        return
    text = _without_block(text)
    front: dict[str, Any] = {}
    body = text.removeprefix("\ufeff")
    if span := find_front(text):
        try:
            front = load_front(text[span.start : span.end])
            body = text[span.body :]
        except FrontMatterError as error:
            yield Problem(Path(path), f"front matter {error}; it is taken as text", error.line)
    drafted = draft(Page(relative, front, body, changed(path)))
    if not drafted.text.strip() and not front:
        yield Skipped(relative, "empty")
        return
    key = relative.replace(os.sep, "/")
    stem = os.path.splitext(key)[0]
    yield Item(key, drafted, safe_name(f"{below}/{stem}" if below else stem))


def _without_block(text: str) -> str:
    """The text without the block that memlane has written into it: memories do not come back as new ones."""
    if marked_block.START in text:
        with suppress(StorageError):  # damaged markers: then it is text
            return (marked_block.without_block(text.encode()) or b"").decode()
    return text


def changed(path: str) -> datetime | None:
    """When a file was last written, to the second: the date of a note that has no other."""
    try:
        return datetime.fromtimestamp(int(os.stat(path).st_mtime), UTC)
    except (OSError, ValueError, OverflowError):
        return None


# -- front matter


def draft_of(page: Page, more_tags: Iterable[str] = ()) -> Draft:
    """A note from front matter and body. A key that means something else to a note is kept as `imported_<key>`."""
    rest = {str(key): _plain(value) for key, value in page.front.items() if key not in (MARK, HASH)}
    tags = dict.fromkeys([*_tags(rest.pop("tags", None)), *_tags(rest.pop("tag", None)), *more_tags])
    dates = (moment(rest.get(key)) for key in _CREATED)
    created = next((when for when in dates if when), page.written)
    rest.pop("created_at", None)
    fields = {}
    words: dict[str, Any] = {}
    for key in ("title", "type", "scope", "thread"):
        value = rest.pop(key, None)
        words[key] = _word(value) if key != "type" else value if value in TYPES else None
        if words[key] is None and value not in (None, ""):
            fields[f"imported_{key}"] = value
    for key, value in rest.items():
        clash = key == "filename" or (key == "status" and value not in STATUSES)
        fields[f"imported_{key}" if clash else key] = value
    stem = os.path.splitext(os.path.basename(page.relative))[0]
    title = words.pop("title") or first_heading(page.body) or stem
    return Draft(page.body, title, tuple(tags), **words, created_at=created, fields=fields)


def _word(value: Any) -> str | None:
    """The text of a scalar on one line; None when there is none."""
    return (" ".join(str(value).split()) or None) if isinstance(value, str | int | float) else None


def _tags(value: Any) -> Iterator[str]:
    """Tags as people write them: a list, or text with commas or (without any) spaces. A # before a tag goes."""
    if isinstance(value, str):
        value = value.split(",") if "," in value else value.split()
    for item in value if isinstance(value, list) else (value,):
        if not isinstance(item, list | dict) and item is not None and (tag := str(item).strip().lstrip("#").strip()):
            yield tag


def _plain(value: Any) -> Any:
    """A value of YAML with text for every key."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


# -- names


def safe_name(path: str) -> str:
    """A note's name for a path: the path itself where every file system can hold it, else the nearest one."""
    parts = [_safe_part(part) for part in unicodedata.normalize("NFC", path).split("/") if part]
    folders = [f"{part}-" if part == "indices" or part.endswith(".md") else part for part in parts[:-1]]
    return "/".join([*folders, parts[-1] if parts else "note"])


def _safe_part(part: str) -> str:
    clean = _BAD.sub("-", visible(part)).strip(" ").lstrip(".").rstrip(". ").strip()
    if len(clean.encode()) > _LONGEST:
        clean = clean.encode()[:_LONGEST].decode(errors="ignore").rstrip(". ")
    if clean and is_reserved(clean):
        clean = f"note-{clean}"
    try:
        safe_parts(f"{clean}.md")
    except InvalidInput:
        return "note-" + hashlib.sha256(part.encode()).hexdigest()[:8]
    return clean
