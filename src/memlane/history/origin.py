"""Whose a memory is: this user's, or somebody else's that came with a clone, a pull or a sync and was never reviewed.

What was written here is known by its hash (`memlane.disk.written`), and so is whether the user wrote it: only that, and
what the user has reviewed, is the user's word (`users_word`). Anything else that git tracks is somebody else's,
unless the commit that last touched its file was made in this very clone: the reflog, which no clone and no pull brings,
says so. An author's name proves nothing; it is shown, in quotes. What git answered is noted, so that it is asked once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memlane import config
from memlane.core.errors import MemlaneError
from memlane.core.model import Memory
from memlane.core.patterns import lazily
from memlane.disk.written import CAME, GIT, HERE, OWN, REVIEWED, SYNC, WORD, by_user
from memlane.recall.starting import PINNED, RULES, is_rule

if TYPE_CHECKING:
    from memlane.bank import Bank
    from memlane.lanes import Lane

PATIENCE = 0.3  # seconds that a prompt waits for git
_MADE_HERE = lazily(r"commit\b")
_REPLAYED_HERE = lazily(r"(?:rebase|pull)\b[^:]*\((?:pick|reword|edit|squash|fixup|continue)\)")


def origins(bank: Bank, memories: Sequence[Memory]) -> dict[str, str]:
    """Where memories came from that are not this user's own, in a few words, by id. Others are left out.

    Writes what git answered into the user's state folder.
    """
    if bank.config.distrust:
        return dict.fromkeys((memory.id for memory in memories), "of a project that you do not trust")
    if config.trusts_everyone(bank.config):
        return {}
    return {id: _in_words(what) for id, what in _noted(bank, memories).items() if what not in OWN}


def users_word(bank: Bank, memories: Sequence[Memory]) -> set[str]:
    """The ids of those of these memories that the user wrote, or has read and accepted.

    Whoever trusts everybody that commits to a project accepts what git brings, but not what an agent writes.
    """
    if bank.config.distrust or not memories:
        return set()
    others = () if not config.trusts_everyone(bank.config) else (CAME, GIT)
    noted = _noted(bank, memories).items()
    return {id for id, what in noted if what in WORD or what.partition(" ")[0] in others}


def _noted(bank: Bank, memories: Sequence[Memory]) -> dict[str, str]:
    """What is noted of each memory, by id; of those of which nothing is, what git says is noted now."""
    known = config.written()
    keys = {memory.id: bank.lane(memory.lane).answers.written_keys(memory)[0] for memory in memories}
    found = {id: known.what(key) if known else "" for id, key in keys.items()}
    unknown = [memory for memory in memories if not found[memory.id]]
    if unknown:
        answers, sure = _ask_git(bank, unknown)
        if known and sure:
            known.note({keys[id]: what for id, what in answers.items()})
        found |= answers
    return found


def review(lane: Callable[[str], Lane], memories: Iterable[Memory]) -> None:
    """Note that the user has read these memories and lets them count as his own. `lane` gives a lane by its name.

    Whoever is not the user cannot review anything: then nothing is noted.
    """
    known = config.written()
    if known and by_user():
        for memory in memories:
            known.note(dict.fromkeys(lane(memory.lane).answers.written_keys(memory), REVIEWED))


def unreview(lane: Callable[[str], Lane], memories: Iterable[Memory]) -> None:
    """Take back a review of memories that were written here."""
    known = config.written()
    if known and by_user():
        for memory in memories:
            known.note(dict.fromkeys(lane(memory.lane).answers.written_keys(memory), HERE))


def unproven(bank: Bank) -> list[Memory]:
    """The rules of which nothing proves that they are the user's word: an agent wrote them, or an unknown hand.

    Those that git brought are left to `foreign`.
    """
    from memlane.core.choosing import fitting
    from memlane.index.fields import Asked
    from memlane.recall.listing import listed

    tagged = listed(bank, None, None, fitting(tags=(*RULES, PINNED)), Asked(expired=True))
    canon = bank.memories("vault")  # whatever its tags are
    rules = [memory for memory in (*(one for one in tagged if one.lane != "vault"), *canon) if is_rule(memory)]
    proven, others = users_word(bank, rules), origins(bank, rules)
    return [memory for memory in rules if memory.id not in proven and memory.id not in others]


def note_as_found(lane: Callable[[str], Lane], memories: Iterable[Memory]) -> int:
    """Note that these memories were there before the user trusted the project; return how many nobody here wrote."""
    known = config.written()
    found = [lane(memory.lane).answers.written_keys(memory)[0] for memory in memories]
    new = {key for key in found if known and not known.what(key)}
    if known:
        known.note(dict.fromkeys(new, CAME))
    return sum(key in new for key in found)


def foreign(bank: Bank) -> Iterator[tuple[Memory, str]]:
    """Every memory that somebody else wrote and nobody here reviewed, with where it came from."""
    memories = list(bank.memories())
    found = origins(bank, memories)
    return ((memory, found[memory.id]) for memory in memories if memory.id in found)


def _in_words(what: str) -> str:
    way, _, author = what.partition(" ")
    if what == CAME:
        return "came with the project, not reviewed"
    way = SYNC if way == SYNC else GIT
    return f'came by {way}, by "{author}", not reviewed' if author else f"came by {way}, not reviewed"


def _ask_git(bank: Bank, memories: Sequence[Memory]) -> tuple[dict[str, str], bool]:
    """What git knows of memories that nobody noted: here, or git and the author of the commit that last touched them.

    Also whether that is sure: where git is missing, says no or takes too long, they count as somebody else's for now.
    """
    ids = [memory.id for memory in memories]
    if not any(os.path.lexists(place / ".git") for place in (bank.root, *bank.root.parents)):
        return dict.fromkeys(ids, HERE), True
    from memlane.history import git

    try:
        top = git.top(bank.config.project or bank.root)
        if top is None:
            return dict.fromkeys(ids, HERE), True
        paths = {memory.id: git.relative(top, bank.original(memory).file) or "" for memory in memories}
        last = _last_commits(top, sorted(set(filter(None, paths.values()))))
        here = _made_here(top) if last else set()
        authors = {commit.id: commit.author for commit in git.facts(top, sorted(set(last.values()) - here))}
    except MemlaneError:
        return dict.fromkeys(ids, GIT), False
    commits = {id: last.get(path) for id, path in paths.items()}
    theirs = {id: f"{GIT} {authors[commit][:60]}".strip() for id, commit in commits.items() if commit in authors}
    return {id: theirs.get(id, HERE) for id in ids}, True


def _last_commits(top: Path, paths: Sequence[str]) -> dict[str, str]:
    """The commit that last touched each path; none for a path that git does not know."""
    from memlane.history import git

    if not paths or not git.run(top, "rev-parse", "--verify", "--quiet", "HEAD", ok=(0, 1), seconds=PATIENCE):
        return {}
    command = ("log", "--format=%H", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-textconv")
    out = git.run(top, git.LITERAL, *command, "HEAD", "--", *paths, most=git.MAX_LISTING, seconds=PATIENCE)
    last: dict[str, str] = {}
    for entry in git.entries(out):
        last.setdefault(entry.path, entry.commit)
    return last


def _made_here(top: Path) -> set[str]:
    """The commits that were made in this clone, or replayed in it by their own author."""
    from memlane.history import git

    out = git.run(top, "log", "-g", "-n", "20000", "--format=%H%x00%ae%x00%ge%x00%gs", "HEAD", seconds=PATIENCE)
    here = set()
    for line in out.decode(errors="replace").splitlines():
        commit, author, actor, action = (*line.split("\0", 3), "", "", "")[:4]
        if _MADE_HERE.match(action) or (_REPLAYED_HERE.match(action) and author == actor):
            here.add(commit)
    return here
