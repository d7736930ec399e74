"""A branch that was squashed, went on, and is merged again: what both sides had last, though git does not know.

After `git merge --squash` git takes what the branch had become for somebody else's change. Merged once more, the branch
clashes with what it was itself, and both would stay as versions. But both sides have had the file as it was squashed,
byte for byte: it is what they have in common. Only `git merge` tells a driver what it merges; elsewhere, and where the
other side had changed the file as well, nothing is known, and both versions stay.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from memlane.core.errors import MemlaneError
from memlane.history import git
from memlane.history.merge import merge
from memlane.lanes.merging import clashes

_HEAD = "GITHEAD_"  # git names in its environment what it merges
_COMMITS = 500  # of each side that are looked at


def merged(driver: str, base: bytes, ours: bytes, theirs: bytes, path: str | None) -> bytes:
    """As `merge`, for a file of the work tree that git is merging: from what both sides had in common last, where that
    leaves nothing in versions. Raises Unmergeable.
    """
    result = merge(driver, base, ours, theirs)
    if path and clashed(result, base, ours, theirs):
        with suppress(MemlaneError):  # git may not tell, and the merge goes on without
            later = _common(path, ours, theirs)
            again = result if later is None else merge(driver, later, ours, theirs)
            return result if clashed(again, ours, theirs) else again
    return result


def clashed(result: bytes, *before: bytes) -> bool:
    """Whether a merge has left something in versions that nobody had so."""
    return bool(clashes(result).difference(*map(clashes, before)))


def _common(path: str, ours: bytes, theirs: bytes) -> bytes | None:
    """The last content of a file that both sides had since they parted; None where git knows of none."""
    heads = [name.removeprefix(_HEAD) for name in os.environ if name.startswith(_HEAD)]
    top = git.top(Path.cwd())
    if len(heads) != 1 or top is None or not git.usable(path):
        return None
    one, two = (git.commit_at(top, name) for name in ("HEAD", heads[0]))
    listed = [blob for commit in (one, two) for _, blob in git.blobs_at(top, commit, [path])[0]]
    if [*git.read_blobs(top, listed)] != [ours, theirs]:
        return None  # it was renamed, or this is a merge on the way to another one
    mine, yours = (_blobs(top, each, other, path) for each, other in ((one, two), (two, one)))
    both = [blob for blob in mine if blob in yours]
    if not both:
        return None
    last = min(both, key=lambda blob: (mine.index(blob) + yours.index(blob), blob))
    return next(git.read_blobs(top, [last]))


def _blobs(top: Path, commit: str, other: str, path: str) -> list[str]:
    """What a file was in the commits that the other one does not have, the newest first."""
    ids = git.revisions(top, "--topo-order", f"--max-count={_COMMITS}", commit, f"^{other}", "--", path)
    changed, _ = git.touched(top, ids, [path])
    return [each.after for id in ids for each in changed[id] if each.after]
