"""A branch that was squashed, went on, and is merged again: what both sides had last, though git does not know.

After `git merge --squash` git takes what the branch had become for somebody else's change. Merged once more, the branch
clashes with what it was itself: both would stay, as versions or as two entries. But both sides have had the file as it
was squashed, byte for byte: it is what they have in common. Only `git merge` tells a driver what it merges; elsewhere,
and where the other side had changed the file before the squash, nothing is known, and both stay.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from memlane.core.errors import MemlaneError
from memlane.core.patterns import lazily
from memlane.history import git
from memlane.history.merge import merge
from memlane.lanes.merging import clashes

_HEAD = lazily(r"GITHEAD_([0-9a-f]{40}(?:[0-9a-f]{24})?)")  # git names in its environment what it merges
_COMMITS = 500  # of each side that are looked at


def merged(driver: str, base: bytes, ours: bytes, theirs: bytes, path: str | None) -> bytes:
    """As `merge`, for a file that git is merging: from what both sides had in common last. Raises Unmergeable."""
    if path and base not in (ours, theirs) and ours != theirs:
        with suppress(MemlaneError):  # git may not tell, and the merge goes on without
            if (later := _common(path, base, ours, theirs)) is not None:
                return merge(driver, later, ours, theirs)
    return merge(driver, base, ours, theirs)


def clashed(result: bytes, *before: bytes) -> bool:
    """Whether a merge has left something in versions that nobody had so."""
    return bool(clashes(result).difference(*map(clashes, before)))


def _common(path: str, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """The last content of a file that both sides had since they parted; None where git knows of none, or one side has
    gone back behind it.
    """
    heads = [match[1] for match in map(_HEAD.fullmatch, os.environ) if match]
    if len(heads) != 1 or not git.usable(path):
        return None
    top = Path.cwd()  # of the work tree: git calls drivers there
    mine, yours = (_blobs(top, one, other, path) for one, other in (("HEAD", heads[0]), (heads[0], "HEAD")))
    if not {*mine} & {*yours}:
        return None
    last = min({*mine} & {*yours}, key=lambda blob: (mine.index(blob) + yours.index(blob), blob))
    now = [blob for commit in ("HEAD", heads[0]) for _, blob in git.blobs_at(top, commit, [path])[0]]
    since = [*mine[: mine.index(last)], *yours[: yours.index(last)]]
    common, *known = git.read_blobs(top, [last, *now, *since])
    if known[: len(now)] != [ours, theirs] or base in known:
        return None  # it was renamed, this is a merge on the way to another one, or what was squashed was taken back
    return common


def _blobs(top: Path, commit: str, other: str, path: str) -> list[str]:
    """What a file was in the commits that the other one does not have, the newest first."""
    ids = git.revisions(top, "--topo-order", f"--max-count={_COMMITS}", commit, f"^{other}", "--", path)
    changed, _ = git.touched(top, ids, [path])
    return [each.after for id in ids for each in changed[id] if each.after]
