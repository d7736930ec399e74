"""Folders of Markdown, as other programs leave them: walking, front matter, names that are safe everywhere."""

from __future__ import annotations

import hashlib
import json
import os
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memlane.core.dates import moment
from memlane.core.errors import InvalidInput, StorageError
from memlane.core.front_matter import FrontMatterError, find_front, load_front
from memlane.core.invisible import visible
from memlane.core.markdown import first_heading
from memlane.core.model import Draft, Problem
from memlane.disk import files
from memlane.disk.names import is_reserved, safe_parts
from memlane.exchange import marked_block
from memlane.exchange.importers.item import Found, Item, Skipped
from memlane.lanes import read_file
from memlane.lanes.notes.store import STATUSES, TYPES

SUFFIXES = (".md", ".markdown")
MARK, HASH = "imported_from", "imported_hash"  # front-matter keys of an imported note
_NOT_OURS = frozenset({"node_modules", "__pycache__"})
_CREATED = ("created_at", "created", "date", "date created", "date_created", "creation date", "modified", "updated")
_BAD = re.compile(r'[\x00-\x1f\x7f-\x9f<>:"|?*\\]+')
_LONGEST = 150  # bytes of a part of a name: room for a number behind it

Drafted = Callable[[str, Mapping[str, Any], str, datetime | None], Draft]


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
                continue
            elif entry.name.lower().endswith(SUFFIXES):
                yield entry.path
            else:
                yield Skipped(relative, "not Markdown")
        pending.extend(reversed(folders))


def notes(root: Path, drafted: Drafted, skip: Collection[str] = (), below: str = "") -> Iterator[Found]:
    """An item for every Markdown file below a folder (or for the one file that `root` is); `below` leads its name."""
    if root.is_file():
        yield from _note(os.fspath(root), root.name, drafted, below)
        return
    for path in walk(root, skip):
        if isinstance(path, str):
            yield from _note(path, os.path.relpath(path, root), drafted, below)
        else:
            yield path


def _note(path: str, relative: str, drafted: Drafted, below: str) -> Iterator[Found]:
    text = read_file(path)
    if isinstance(text, Problem):
        yield text
        return
    if text is None:
        return
    try:
        relative.encode()
    except UnicodeEncodeError:
        shown = os.fsencode(path).decode(errors="replace")
        yield Problem(Path(shown), "has a name that is not UTF-8; rename it")
        return
    text = _without_block(text)
    values: dict[str, Any] = {}
    body = text.removeprefix("\ufeff")
    front = find_front(text)
    if front:
        try:
            values = load_front(text[front.start : front.end])
            body = text[front.body :]
        except FrontMatterError as error:
            yield Problem(Path(path), f"front matter {error}; it is taken as text", error.line)
    draft = drafted(relative, values, body, changed(path))
    if not draft.text.strip() and not values:
        yield Skipped(relative, "empty")
        return
    stem = os.path.splitext(relative)[0].replace(os.sep, "/")
    yield Item(relative.replace(os.sep, "/"), draft, safe_name(f"{below}/{stem}" if below else stem))


def _without_block(text: str) -> str:
    """The text without what we ourselves have written into it: memories do not come back as new ones."""
    if marked_block.START not in text:
        return text
    with suppress(StorageError):  # damaged markers: then it is text
        return (marked_block.without_block(text.encode()) or b"").decode()
    return text


def changed(path: str) -> datetime | None:
    """When a file was last written, to the second: the last resort for a date."""
    try:
        return datetime.fromtimestamp(int(os.stat(path).st_mtime), UTC)
    except (OSError, ValueError, OverflowError):
        return None


# -- front matter


def draft_of(
    relative: str, values: Mapping[str, Any], body: str, written: datetime | None, more_tags: Sequence[str] = ()
) -> Draft:
    """A note from front matter and body. A key that means something else here is kept as `imported_<key>`."""
    rest = {str(key): plain(value) for key, value in values.items() if key not in (MARK, HASH)}
    title, kind, scope, thread = (rest.pop(key, None) for key in ("title", "type", "scope", "thread"))
    fields = {}
    words = {"scope": _word(scope), "thread": _word(thread), "type": kind if kind in TYPES else None}
    for key, value in {"title": title, "type": kind, "scope": scope, "thread": thread}.items():
        if value not in (None, "") and (_word(value) if key == "title" else words[key]) is None:
            fields[f"imported_{key}"] = value
    tags = [*_tags(rest.pop("tags", None)), *_tags(rest.pop("tag", None)), *more_tags]
    dates = (moment(rest.get(key)) for key in _CREATED)
    created = next((when for when in dates if when), written)
    rest.pop("created_at", None)
    for key, value in rest.items():
        clash = key == "filename" or (key == "status" and value not in STATUSES)
        fields[f"imported_{key}" if clash else key] = value
    stem = os.path.splitext(os.path.basename(relative))[0]
    return Draft(
        body,
        _word(title) or first_heading(body) or stem,
        tuple(dict.fromkeys(tags)),
        words["type"],
        words["scope"],
        words["thread"],
        created,
        fields,
    )


def _word(value: Any) -> str | None:
    """Text of a scalar that says something."""
    found = " ".join(str(value).split()) if isinstance(value, str | int | float) else ""
    return found or None


def _tags(value: Any) -> Iterator[str]:
    """Tags as people write them: a list, text with commas, or (without any) with spaces; a # before them is no part."""
    if isinstance(value, str):
        value = value.split(",") if "," in value else value.split()
    for item in value if isinstance(value, list) else () if value is None or isinstance(value, dict) else (value,):
        if not isinstance(item, list | dict) and item is not None and (tag := str(item).strip().lstrip("#").strip()):
            yield tag


def plain(value: Any) -> Any:
    """A value of YAML or JSON with text for every key."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def is_unicode(value: Any) -> bool:
    """Whether a value of JSON can be written: half of a surrogate pair cannot."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


# -- names


def safe_name(path: str) -> str:
    """A note's name for a path: as it is where every file system can hold it, else the nearest one that all can."""
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
