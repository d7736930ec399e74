"""The folder of a layered store: where each memory lies, and how its file is created, rewritten and archived."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path

from memlane import gate
from memlane.core.errors import AlreadyExists, InvalidInput, NotFound, StorageError
from memlane.core.model import Problem
from memlane.disk import files, trash, walking
from memlane.disk.names import folded, inside, safe_parts
from memlane.lanes import readable
from memlane.lanes.layers import aging
from memlane.lanes.layers.entries import id_of, path_of, type_of

STRUCTURAL = frozenset({"index", "lifecycle", "quality_guidance"})
BEFORE_PRUNE = "~before-prune"  # no memory has a "~" in its name, so these copies are not taken for deleted memories


class Folder:
    """The files below a root. `rewrite` and `prune` copy what they remove into its `.trash/`."""

    def __init__(self, root: Path, clock: Callable[[], datetime]) -> None:
        self.root = root
        self.clock = clock
        self._home = os.fspath(root)

    def today(self) -> date:
        return self.clock().astimezone(UTC).date()

    # -- where things are

    def path(self, id: str) -> str:
        return inside(self.root, *path_of(id).split("/"))

    def existing(self, id: str) -> str:
        """The path of a memory that is there. Raises NotFound, InvalidInput."""
        path = self.path(id)
        _refuse_structural(id)
        if not os.path.isfile(path):
            raise NotFound(
                f"There is no memory {gate.shown(id)}.", hint="Create it; `memlane list --lane layers` shows the ids."
            )
        return path

    def below(self, path: str) -> str:
        """The path relative to the root."""
        return path[len(self._home) + 1 :]

    def native(self, path: str) -> str:
        """The id of a file; one outside the four layers goes by its place."""
        return id_of(self.below(path)) or self.below(path)[:-3]

    def walk(self, without: frozenset[str]) -> Iterator[tuple[str, str]]:
        """(id, path) of every readable file whose name is not one of these."""
        for path in walking.walk(self.root):
            if not isinstance(path, Problem) and os.path.basename(path)[:-3] not in without:
                yield self.native(path), path

    # -- writing

    def create(self, id: str, content: str, *, ahead: Callable[[], None]) -> str:
        """Write a new file below today's Last Updated line; return its text. Raises AlreadyExists, InvalidInput.

        `ahead` notes what is known of it before anybody can see it, and index it: nobody would see that later.
        """
        path = self.path(id)
        text = aging.page(content, self.today())
        data = files.encoded(text)
        safe_parts(path_of(id))
        _refuse_structural(id)
        if taken := self._namesake(path):
            raise AlreadyExists(
                f"{gate.shown(taken)} differs only in case or Unicode form, which some file systems cannot tell apart.",
                hint="Use that name.",
            )
        try:
            files.create(path, data, ahead=ahead)
        except AlreadyExists:
            raise AlreadyExists(
                f"The memory already exists: {gate.shown(id)}", hint="Update it, or append to it."
            ) from None
        return text

    def _namesake(self, path: str) -> str | None:
        """The name that differs only in case or Unicode form from the first new one on this path."""
        while not os.path.isdir(os.path.dirname(path)):
            path = os.path.dirname(path)
        folder, name = os.path.split(path)
        siblings = names_in(folder) if path.startswith(self._home + os.sep) else []
        return next((other for other in siblings if folded(other) == folded(name) and other != name), None)

    def rewrite(
        self, path: str, old: str, text: str, before: str = "", pruned: aging.Pruned | None = None
    ) -> list[aging.Action]:
        """Replace a file's text, after what pruning takes out of `before` is durable elsewhere.

        A kill in between leaves it in both places, never in none. Returns the actions of pruning; where something was
        removed, the reason says where a copy of `before` lies.
        """
        data = files.encoded(text)
        stem = path.removesuffix(".md")
        actions = list(pruned.actions) if pruned else []
        if pruned and pruned.archived:
            self._archive(f"{stem}{aging.ARCHIVE}.md", pruned.archived, aging.updated_on(text))
        if pruned and pruned.removed:
            copy = trash.put(f"{stem}{BEFORE_PRUNE}.md", self.root, self.clock(), copy=files.encoded(before))
            said = f" (the file as it was: {self.below(copy)})"
            actions = [done._replace(reason=done.reason + said * (done.action == "removed")) for done in actions]
        if text != old:  # an entry that is already old when it is appended goes straight to the archive
            files.replace(path, data)
        return actions

    def _archive(self, path: str, sections: Sequence[str], updated: date | None) -> None:
        """Add sections to an archive, which is as fresh as the file that they come from, or as it was."""
        inside(self.root, *self.below(path).split(os.sep))
        if not os.path.lexists(path):
            with suppress(AlreadyExists):  # somebody else created it just now
                text = aging.with_archived("", sections)
                files.create(path, files.encoded(aging.page(text, updated) if updated else text))
                return
        with files.locked(path):
            old = readable(path)
            text = aging.with_archived(old, sections)
            latest = max(filter(None, (aging.updated_on(old), updated)), default=None)
            self.rewrite(path, old, aging.stamped(text, latest) if latest else text)

    def prune(self, path: str, *, dry_run: bool) -> tuple[list[aging.Action], str]:
        """Apply the rule of the file's type; return what was done and the text now. Raises NotFound, StorageError.

        A dry run writes nothing and returns what would be done.
        """
        file_type = os.path.basename(path)[:-3]
        today = self.today()
        old = readable(path)
        pruned = aging.prune(file_type, old, today)
        actions = list(pruned.actions)
        if actions and not dry_run:
            with files.locked(path):
                old = readable(path)  # somebody may have changed it meanwhile
                pruned = aging.prune(file_type, old, today)
                text = aging.pruned_page(file_type, pruned.text, today)
                actions = self.rewrite(path, old, text, old, pruned) if pruned.actions else []
        return actions, aging.pruned_page(file_type, pruned.text, today) if pruned.actions else old


def _refuse_structural(id: str) -> None:
    """Raise InvalidInput for a file that files.walk and the seed pass over."""
    if "indices" in id.split("/") or type_of(id) in STRUCTURAL:
        raise InvalidInput("That name is not for memories.", hint="Choose another file type or name.")


def names_in(folder: str) -> list[str]:
    """The sorted names in a folder; [] where there is none. Raises StorageError."""
    try:
        return sorted(files.names_in(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StorageError(f"{os.path.basename(folder)}: {error.strerror}.", hint="Check the folder.") from error
