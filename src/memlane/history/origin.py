"""Whose a memory is: this user's, or somebody else's that came with a clone, a pull or a sync and was never reviewed.

What was written here is known by its hash (`memlane.disk.written`), and so is whether the user wrote it: only that, and
what the user has reviewed, is the user's word (`users_word`). Of anything else that git tracks, the reflog tells, which
no clone and no pull brings: it says which commits were made in this very clone. A file is somebody else's if a commit
in its past was not, unless its very content was committed here by `git commit`: then somebody here has seen it whole.
A merge and a rebase put the text of several people together, and nobody looks at it. Nor does anybody look at all of a
file of many memories, or at one that memlane itself has changed: these are somebody else's if any commit was.
An author's name proves nothing; it is shown, in quotes. What git answered is noted, so that it is asked once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memlane import config
from memlane.core.errors import MemlaneError
from memlane.core.model import Memory
from memlane.core.patterns import lazily
from memlane.core.values import NamedTuple
from memlane.disk.written import CAME, CHANGED, GIT, HERE, OWN, REVIEWED, SYNC, WORD, by_user
from memlane.recall.starting import PINNED, RULES, is_rule

if TYPE_CHECKING:
    from memlane.bank import Bank
    from memlane.history.git import Entry
    from memlane.lanes import Lane

PATIENCE = 0.3  # seconds that a prompt waits for git
MANY = 1_000  # files; of more, git is asked about the folder that they are in
_COMMITTED = lazily(r"commit\b(?! \(merge\))")
_MERGED = lazily(r"commit \(merge\)|(?:merge|pull)\b.*: Merge made by the '[\w-]+' strategy\.$")
_REPLAYED = lazily(r"(?:rebase|pull)\b[^:]*\((?:pick|reword|edit|squash|fixup|continue)\)")
_LOG = ("--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-textconv", "--format=%H")


def origins(bank: Bank, memories: Sequence[Memory]) -> dict[str, str]:
    """Where memories came from that are not this user's own, in a few words, by id. Others are left out.

    Writes what git answered into the user's state folder.
    """
    if bank.config.distrust:
        return dict.fromkeys((memory.id for memory in memories), "of a project that you do not trust")
    if config.trusts_everyone(bank.config):
        return {}
    return _others(_noted(bank, memories))


def users_word(bank: Bank, memories: Sequence[Memory]) -> set[str]:
    """The ids of those of these memories that the user wrote, or has read and accepted.

    Whoever trusts everybody that commits to a project accepts what git brings, but not what an agent writes.
    """
    if bank.config.distrust or not memories:
        return set()
    others = () if not config.trusts_everyone(bank.config) else (CAME, GIT)
    noted = _noted(bank, memories).items()
    return {id for id, what in noted if what in WORD or what.partition(" ")[0] in others}


def whose(bank: Bank, memories: Sequence[Memory], rules: Collection[str]) -> tuple[dict[str, str], set[str]]:
    """The `origins` of these memories, and of those with the ids `rules` the `users_word`: asked once for both."""
    if bank.config.distrust or config.trusts_everyone(bank.config):  # only one of the two has to ask
        return origins(bank, memories), users_word(bank, [memory for memory in memories if memory.id in rules])
    noted = _noted(bank, memories)
    return _others(noted), {id for id, what in noted.items() if what in WORD and id in rules}


def _others(noted: Mapping[str, str]) -> dict[str, str]:
    return {id: _in_words(what) for id, what in noted.items() if what not in OWN}


def _noted(bank: Bank, memories: Sequence[Memory]) -> dict[str, str]:
    """What is noted of each memory, by id; of those of which nothing is, what git says is noted now."""
    known = config.written()
    keys = {memory.id: "" for memory in memories}
    for name in {memory.lane for memory in memories}:
        own = [memory for memory in memories if memory.lane == name]
        keys.update(zip((memory.id for memory in own), bank.lane(name).answers.keys_of(own), strict=True))
    found = {id: known.what(key) if known else "" for id, key in keys.items()}
    unknown = [memory for memory in memories if found[memory.id] in ("", CHANGED)]
    if unknown:
        answers, sure = _ask_git(bank, unknown, {id for id, what in found.items() if what == CHANGED})
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
    new = {key for key in found if known and known.what(key) in ("", CHANGED)}
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


class _Here(NamedTuple):
    """The commits that were made in this clone, by how."""

    committed: set[str]
    merged: set[str]
    replayed: set[str]  # by their own author


def _ask_git(bank: Bank, memories: Sequence[Memory], changed: Collection[str]) -> tuple[dict[str, str], bool]:
    """What git knows of memories that nobody noted: here, or git and the author of the last commit that was not.

    `changed` are the ids of those that memlane has changed. Also whether that is sure: where git is missing, says no or
    takes too long, they count as somebody else's for now.
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
        of_many = {memory.id for memory in memories if bank.lane(memory.lane).answers.shares_files}
        seen_whole = {path for id, path in paths.items() if id not in of_many and id not in changed}
        theirs = _foreign_commits(top, set(filter(None, paths.values())), seen_whole)
        authors = {commit.id: commit.author for commit in git.facts(top, sorted(set(theirs.values())))}
    except MemlaneError:
        return dict.fromkeys(ids, GIT), False
    commits = {id: theirs.get(path) for id, path in paths.items()}
    return {id: f"{GIT} {authors[commit][:60]}".strip() if commit else HERE for id, commit in commits.items()}, True


def _foreign_commits(top: Path, paths: Collection[str], seen_whole: Collection[str]) -> dict[str, str]:
    """Of each path that is somebody else's, the last commit that was not made here."""
    from memlane.history import git

    if not paths or not git.run(top, "rev-parse", "--verify", "--quiet", "HEAD", ok=(0, 1), seconds=PATIENCE):
        return {}
    below = sorted(paths) if len(paths) <= MANY else [os.path.commonpath([os.path.dirname(path) for path in paths])]
    past = _entries(top, ("log", "-c"), below)
    if not past:
        return {}
    here = _made_here(top)
    made = here.committed | here.merged | here.replayed
    foreign = {
        path: commit
        for path in paths & past.keys()
        if (commit := next((entry.commit for entry in past[path] if entry.commit not in made), None))
    }
    in_question = foreign.keys() & set(seen_whole)
    if in_question:
        now = dict(git.blobs_at(top, "HEAD", below)[0])
        own = _committed(here, past)
        if any(entry.commit in here.replayed for path in in_question for entry in past[path]):
            # a rebase leaves what it replays to the reflog alone
            own |= _committed(here, _entries(top, ("log", "-g", "-n", "2000"), sorted(in_question)[:MANY]))
        foreign = {path: commit for path, commit in foreign.items() if (path, now.get(path)) not in own}
    return foreign


def _entries(top: Path, command: Sequence[str], paths: Sequence[str]) -> dict[str, list[Entry]]:
    """What `git log` says of each path, the last commit first."""
    from memlane.history import git

    below = [path or "." for path in paths]
    out = git.run(top, git.LITERAL, *command, *_LOG, "HEAD", "--", *below, most=git.MAX_LISTING, seconds=PATIENCE)
    found: dict[str, list[Entry]] = {}
    for entry in git.entries(out):
        found.setdefault(entry.path, []).append(entry)
    return found


def _committed(here: _Here, past: Mapping[str, Sequence[Entry]]) -> set[tuple[str, str | None]]:
    """(path, content) of what was committed here by `git commit`."""
    return {
        (path, entry.blobs[-1]) for path, entries in past.items() for entry in entries if entry.commit in here.committed
    }


def _made_here(top: Path) -> _Here:
    from memlane.history import git

    out = git.run(top, "log", "-g", "-n", "20000", "--format=%H%x00%ae%x00%ge%x00%gs", "HEAD", seconds=PATIENCE)
    here = _Here(set(), set(), set())
    for line in out.decode(errors="replace").splitlines():
        commit, author, actor, action = (*line.split("\0", 3), "", "", "")[:4]
        if _COMMITTED.match(action):
            here.committed.add(commit)
        elif _MERGED.match(action):
            here.merged.add(commit)
        elif _REPLAYED.match(action) and author == actor:
            here.replayed.add(commit)
    return here
