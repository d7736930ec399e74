"""What a bank as a whole needs: one Plan over all lanes, and carrying out the part of it that no one has to decide.

    prune        what the lanes' own rules would archive or delete (memlane.care.prune)
    retention    records beyond capture.keep_days and capture.keep_count, where these are switched on
    duplicate    memories that say the same, or nearly, in whatever lanes
    superseded   memories that a newer one replaces or contradicts by its own words, or that share its title
    link         links to memories that do not exist; links to missing files are remarks
    stale        memories that nobody has confirmed for long, by days (memlane.care.ages)
    drifted      memories whose code has changed, moved or gone (memlane.care.fresh)
    size         files that have become too long
    register     registers of the vault without a topic
    empty        memories without text
    suspicious   memories that read like instructions to a model

A step is either safe (archive, delete) or a thing to "look at". `apply` does the safe ones alone, and `undo` takes
them back.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from math import ceil
from typing import Any

from memlane.bank import Bank
from memlane.care import prune
from memlane.care.inventory import File, Progress, Seen, Survey, places, unseen
from memlane.core.dates import utc_now
from memlane.core.errors import AlreadyExists, InvalidInput, NotFound
from memlane.core.model import Memory, Plan, Problem, Step
from memlane.core.text import first_line
from memlane.gate import redacted, shown
from memlane.gate.likeness import tokens
from memlane.history.undo import recording
from memlane.index.links import links_in
from memlane.lanes import NAMES
from memlane.lanes.layers import aging

LOOK, ARCHIVE, DELETE = "look at", "archive", "delete"
ALIKE = 0.8  # of the words that either of two texts has, so many are in both
ALIKE_SHORT, SHORT = 0.7, 30  # in texts of so many words at most, one word more or less weighs more
RELATED = 0.3  # of the words of the smaller text, for two texts of one title to be about the same
LONG = 50_000  # characters of a note or record
SETTLED = timedelta(days=1)  # an empty note younger than this may be about to be written
_KEPT_FIRST = ("vault", "notes", "topics", "layers", "records")  # of memories that say the same
_FEW = 3  # words that say too little to compare
_NAME = 4  # words of a title at most that is a name rather than a statement
_LABEL = re.compile(r"^\*\*(?:Context:\*\*.*|[^*\n]{1,40}:\*\*)", re.MULTILINE)  # of a topic's entry
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)  # Thai … Hangul
_AGAIN = re.compile(
    r"(?:-\d{1,3}|-[0-9a-f]{8}| ?\(\d{1,3}\)|[ -]copy(?: \d)?)?"
)  # what a second note of one name is called


@dataclass(frozen=True, slots=True)
class Item(Step):
    """One step of the plan. `command` does this step alone, or shows what has to be decided; `options` decide it."""

    kind: str = ""
    others: tuple[str, ...] = ()  # ids that the reason speaks of
    command: str = ""
    options: tuple[str, ...] = ()
    along: tuple[str, ...] = ()  # ids that go with this one

    @property
    def safe(self) -> bool:
        return self.action != LOOK

    def to_dict(self) -> dict[str, Any]:
        own = {
            "kind": self.kind, "others": list(self.others), "safe": self.safe,
            "command": self.command, "options": list(self.options),
        }  # fmt: skip
        return {**Step.to_dict(self), **own}


def plan(
    bank: Bank,
    *,
    only: Collection[str] = (),
    lanes: Collection[str] = (),
    items: Sequence[str] = (),
    folder: str | None = None,
    progress: Progress = unseen,
) -> Plan:
    """Everything that the bank needs, always in the same order: of these kinds, in these lanes, about these ids.

    `items` may also be numbers of the whole list, from 1. `folder` is what the printed commands name the bank by.
    Changes nothing. Raises InvalidInput, and NotFound for an item that is not on the list.
    """
    for kind in only:
        if kind not in KINDS:
            raise InvalidInput("There is no such kind of upkeep.", hint=f"Use some of: {', '.join(KINDS)}.")
    look = _Look(bank, folder, tuple(lanes or NAMES), progress)
    found: dict[tuple[str, str], Item] = {}
    settled: set[str] = set()  # no memory is changed twice, and what goes anyway needs no look
    for kind, find in KINDS.items():
        if not only or kind in only:
            for item in find(look):
                if item.id.partition(":")[0] in look.lanes and item.id not in settled:
                    found.setdefault((kind, item.id), look.completed(replace(item, kind=kind)))
            for item in [item for (of, _), item in found.items() if of == kind]:
                if kind == "prune":
                    settled |= {item.id, *item.along}
                elif item.safe:
                    settled.add(item.id)
    asked = [find for kind, find in _REMARKS.items() if not items and (not only or kind in only)]
    remarks = (redacted(remark) for find in asked for remark in find(look))
    return Plan(_selected(list(found.values()), items), tuple(dict.fromkeys(remarks)))


def _selected(found: list[Item], items: Sequence[str]) -> tuple[Item, ...]:
    if not items:
        return tuple(found)
    ids = {item.id for item in found}
    for name in items:
        if not (name in ids or (name.isdecimal() and 0 < int(name) <= len(found))):
            raise NotFound(f"There is nothing to do about {shown(name)}.", hint="`memlane upkeep` lists what there is.")
    return tuple(item for number, item in enumerate(found, 1) if item.id in items or str(number) in items)


def apply(bank: Bank, proposed: Plan) -> Plan:
    """Carry out the safe steps of a plan and return what was done; `undo` takes it back.

    What has changed meanwhile is judged again, never forced. Steps to "look at" are left to a person. Raises
    StorageError; what was done until then can be undone.
    """
    wanted = [step for step in proposed.steps if isinstance(step, Item) and step.safe]
    others = [step for step in proposed.steps if not isinstance(step, Item)]
    kinds = {item.kind for item in wanted}
    now = plan(bank, only=kinds).steps if kinds else ()
    still = {(item.kind, item.id, item.action) for item in now if isinstance(item, Item)}
    remarks = [f"{item.id}: is no longer as the plan saw it" for item in wanted if _key(item) not in still]
    wanted = [item for item in wanted if _key(item) in still]
    done: list[Step] = []
    with recording(bank, "upkeep") as journal:
        if rules := [item for item in wanted if item.kind == "prune"]:
            along = [Step(id, item.action, "") for item in rules for id in item.along]
            pruned = prune.apply(bank, Plan((*rules, *along)))
            gone = {step.id for step in pruned.steps}
            done += [item for item in rules if item.id in gone]
        if others:
            pruned = prune.apply(bank, Plan(tuple(others)))
            done += pruned.steps
            remarks += pruned.remarks
        for item in wanted:
            if item.kind == "prune":
                continue
            journal.step(item.id, item.action)
            try:
                _APPLY[item.kind](bank, item.id)
            except (NotFound, InvalidInput, AlreadyExists) as error:
                remarks.append(f"{item.id}: {error}")
            else:
                done.append(item)
    return Plan(tuple(done), tuple(remarks))


def _key(item: Item) -> tuple[str, str, str]:
    return item.kind, item.id, item.action


_APPLY: Mapping[str, Callable[[Bank, str], object]] = {
    "retention": lambda bank, which: bank.records.archive(which.removeprefix("records:")),
    "duplicate": lambda bank, which: bank.delete(which),
    "superseded": lambda bank, which: bank.update(which, status="archived"),
    "empty": lambda bank, which: bank.delete(which),
}


# -- looking


@dataclass
class _Look:
    """The bank while a plan is made. What is read of it is read once, and only when a kind asks for it."""

    bank: Bank
    folder: str | None
    lanes: tuple[str, ...]
    progress: Progress

    @cached_property
    def memories(self) -> list[Memory]:
        """Everything but what is archived, by id: all lanes, for a link may come from any."""
        held = self.bank.tombstones.held
        found = []
        for name in NAMES:
            lane = self.bank.lane(name)
            for path in self.progress(list(lane.files()), "reading"):
                for item in () if isinstance(path, Problem) else lane.parse(path):
                    if isinstance(item, Memory) and not held(item):
                        found.append(item)
        self._archived = {memory.id for memory in found if memory.status == "archived"}
        found.sort(key=lambda memory: memory.id)
        return [memory for memory in found if memory.status != "archived"]

    @cached_property
    def by_id(self) -> dict[str, Memory]:
        return {memory.id: memory for memory in self.memories}

    @cached_property
    def ids(self) -> set[str]:
        """Of all memories, archived ones too."""
        return {*self.by_id, *self._archived}

    @cached_property
    def links(self) -> dict[str, list[tuple[str, str, str]]]:
        """(node, edge type, context) of each memory's links."""
        return {memory.id: found for memory in self.memories if (found := list(links_in(memory.text)))}

    @cached_property
    def linked(self) -> set[str]:
        """The ids that other memories link to."""
        return {
            id
            for source, found in self.links.items()
            for node, _, _ in found
            if (id := self.target(node)) and id != source
        }

    @cached_property
    def words(self) -> dict[str, frozenset[str]]:
        return {memory.id: _words(_said(memory)) for memory in self.progress(self.memories, "comparing")}

    def target(self, node: str) -> str | None:
        """The id of the memory that a link names; None when there is none."""
        _, _, name = node.partition(":")
        return next((id for id in (f"notes:{name}", name) if id in self.ids), None)

    def command(self, *words: str) -> str:
        return shlex.join(["memlane", *(["--bank", self.folder] if self.folder else []), *words])

    def completed(self, item: Item) -> Item:
        """The item with its command line and title, and no secret in it."""
        flag = "--apply" if item.safe else "--show"
        command = "" if shown(item.id) != item.id else self.command("upkeep", flag, "--only", item.kind, item.id)
        if item.kind == "drifted":
            command = self.command("fresh", item.id)
        return replace(item, reason=redacted(item.reason), title=redacted(item.title), command=item.command or command)


def _said(memory: Memory) -> str:
    """The text of a memory without what its lane's form adds."""
    return _LABEL.sub("", memory.text) if memory.lane == "topics" else memory.text


def _words(text: str) -> frozenset[str]:
    """What of a text is compared: its words; where a script has none, its pairs of characters."""
    if not text.isascii() and _UNSPACED.search(text):
        from memlane.index.words import terms

        return frozenset(terms(text))
    return tokens(text)


def _when(memory: Memory) -> datetime | None:
    return memory.updated_at or memory.created_at


def _is_newer(one: Memory, other: Memory) -> bool:
    """Whether one is known to be newer than the other."""
    first, second = _when(one), _when(other)
    return first is not None and second is not None and first > second


def _by_age(one: Memory, other: Memory) -> tuple[Memory, Memory]:
    """The older and the newer of two; where that is not known, in the order of their ids."""
    return (other, one) if _is_newer(one, other) else (one, other)


# -- the lanes' own rules


def _pruned(look: _Look) -> Iterator[Item]:
    for name in NAMES:
        if name in look.lanes:
            answers = look.bank.lane(name).answers
            for group in answers.grouped(answers.prunable().steps):
                first, *rest = [step.id for step in group.steps]
                others = tuple(id for id in rest if id != first)
                options = (look.command(group.option, first),) if group.option else ()
                yield Item(
                    first, group.action, group.reason, group.title, others=(*others, *group.others), options=options,
                    along=others,
                )  # fmt: skip


def _retention(look: _Look) -> Iterator[Item]:
    days, count = (look.bank.config[f"capture.keep_{name}"] for name in ("days", "count"))
    if days or count:
        for record, why in look.bank.records.prune(keep_days=days, keep_count=count, dry_run=True):
            yield Item(f"records:{os.path.basename(record.path)[:-3]}", ARCHIVE, why, record.subject)


# -- what is said twice


def _duplicates(look: _Look) -> Iterator[Item]:
    same: defaultdict[bytes, list[Memory]] = defaultdict(list)
    for memory in look.memories:
        if len(look.words[memory.id]) >= _FEW and (said := " ".join(_said(memory).split())):
            same[hashlib.blake2b(said.encode(errors="replace"), digest_size=16).digest()].append(memory)
    found: list[Item] = []
    first: list[Memory] = []  # one for each text
    for group in same.values():
        kept = min(group, key=lambda memory: _worth(look, memory))
        first.append(kept)
        for memory in group:
            if memory is not kept and not (memory.lane == kept.lane == "records"):  # what was said twice was said twice
                sure = _adds_nothing(look, memory, kept)
                reason = f"says the same as {kept.id}"
                options = () if sure else (look.command("rm", memory.id),)
                action = DELETE if sure else LOOK
                found.append(Item(memory.id, action, reason, memory.title, others=(kept.id,), options=options))
    for one, other, share in _alike([memory for memory in first if memory.lane != "records"], look.words):
        older, newer = _by_age(one, other)
        when = ", which is newer" if _is_newer(newer, older) else ""
        reason = f"says nearly the same as {newer.id}{when}: {share:.0%} of the words"
        either = (look.command("rm", older.id), look.command("rm", newer.id))
        found.append(Item(older.id, LOOK, reason, older.title, others=(newer.id,), options=either))
    yield from sorted(found, key=lambda item: (not item.safe, item.id))


def _worth(look: _Look, memory: Memory) -> tuple[bool, bool, int, str, str]:
    """Sort key: of memories of one text, the one to keep comes first."""
    canon = memory.fields.get("tier") == "canon"
    rank = _KEPT_FIRST.index(memory.lane) if memory.lane in _KEPT_FIRST else len(_KEPT_FIRST)
    return memory.id not in look.linked, not canon, rank, str(_when(memory) or "9"), memory.id


def _adds_nothing(look: _Look, memory: Memory, kept: Memory) -> bool:
    """Whether a note can go because another one says all that it says, and nothing points to it."""
    labels = ("type", "status", "scope", "project", "thread")
    return (
        memory.lane == kept.lane == "notes"
        and _is_named_after(memory.native_id, kept.native_id)
        and memory.id not in look.linked
        and set(memory.tags) <= set(kept.tags)
        and all(getattr(memory, name) in (None, getattr(kept, name)) for name in labels)
        and all(kept.fields.get(name) == value for name, value in memory.fields.items())
        and memory.title in (kept.title, memory.native_id)
    )


def _are_siblings(one: Memory, other: Memory, words: Mapping[str, frozenset[str]]) -> bool:
    """Whether two texts of one form are about two things: each has a word of its own name that the other lacks."""
    for memory, without in ((one, words[other.id]), (other, words[one.id])):
        name, said = tokens(memory.title), words[memory.id]
        if len(memory.title.split()) > _NAME or 2 * len(name) > len(said) or not (name & said) - without:
            return False
    return True


def _is_named_after(one: str, other: str) -> bool:
    """Whether two notes would have one name, had the other not been there: a name of its own may say something."""
    short, long = sorted((one, other), key=len)
    return long.startswith(short) and _AGAIN.fullmatch(long[len(short) :]) is not None


def _alike(memories: Iterable[Memory], words: Mapping[str, frozenset[str]]) -> Iterator[tuple[Memory, Memory, float]]:
    """Pairs of memories of which each has nearly all the words of the other, but in what they are named by.

    Two such texts must share some of their rarest words, so that only those are looked up, and what is like an earlier
    text is compared with that one alone: the cost grows with the number of texts, not with its square.
    """
    chosen = [memory for memory in memories if len(words[memory.id]) >= _FEW]
    chosen.sort(key=lambda memory: (len(words[memory.id]), memory.id))
    counts: Counter[str] = Counter()
    for memory in chosen:
        counts.update(words[memory.id])
    rank = {word: place for place, word in enumerate(sorted(counts, key=lambda word: (counts[word], word)))}
    holders: defaultdict[str, list[int]] = defaultdict(list)  # places in `chosen` of those with this rare word
    needed: list[int] = []  # how many rare words of it another text must share
    for place, memory in enumerate(chosen):
        own = words[memory.id]
        enough = ALIKE_SHORT if len(own) <= SHORT else ALIKE
        least = ceil(enough * len(own) - 1e-9)  # words that both must have
        needed.append(min(_FEW, least))
        rarest = sorted(own, key=rank.__getitem__)[: len(own) - least + needed[place]]
        met: Counter[int] = Counter()
        for word in rarest:
            met.update(holders[word])
        best = (0.0, 0)
        for other in [other for other, times in met.items() if times >= needed[other]]:
            theirs = words[chosen[other].id]
            shared = len(own & theirs)
            share = (shared / (len(own) + len(theirs) - shared), -other)
            if share > best and share[0] >= enough and not _are_siblings(memory, chosen[other], words):
                best = share
        if best[0]:
            yield memory, chosen[-best[1]], best[0]
            continue
        for word in rarest:
            holders[word].append(place)


# -- what is no longer so

_OLD = r"(?:(?:the|our|my|this|old|older|previous|earlier|former|note|plan|memory|decision|entry|rule)\s+){0,3}"
_ACTIVE = r"(?:supersed(?:es|ed|ing)|replac(?:es|ed|ing)|obsolet(?:es|ed)|deprecat(?:es|ed))"
_PASSIVE = r"(?:superseded|replaced|obsoleted|deprecated|made\s+obsolete)\s+by"
_DOUBT = re.compile(
    r"(?:\b(?:not|never|cannot|nothing|would|could|should|might|may|will|if|unless|before|to|be)|n['’]t)\s+(?:\w+\s+)?$"
)


def _superseded(look: _Look) -> Iterator[Item]:
    found: list[Item] = []
    for source, links in look.links.items():
        for node, edge, context in links:
            kind, _, _ = node.partition(":")
            target = look.target(node) if kind == "memory" else None
            if target is None or target not in look.by_id or target == source:
                continue
            direction = _stated(context, node)
            old, new = (source, target) if direction == "by" else (target, source)
            if direction or edge == "SUPERSEDES":
                found += _replaced(look, look.by_id[old], look.by_id[new], direction)
            elif edge == "CONTRADICTS":
                found += _contradicted(look, look.by_id[target], look.by_id[source])
    found += _same_title(look, {(item.id, item.others) for item in found})
    yield from sorted(found, key=lambda item: (not item.safe, item.id))


def _stated(context: str, node: str) -> str:
    """Whether the words right before a link say that this replaces that ("this"), or is replaced "by" it; else ""."""
    link = rf"\[\[\s*{re.escape(node)}\s*(?=[|\]])"
    if re.search(rf"{link}\|\s*type:SUPERSEDES", context):
        return "this"
    for direction, words in (("by", _PASSIVE), ("this", _ACTIVE)):
        for match in re.finditer(rf"\b{words}\s+{_OLD}{link}", context, re.IGNORECASE):
            if not _DOUBT.search(context[: match.start()].lower()) or direction == "by":
                return direction
    return ""


def _replaced(look: _Look, old: Memory, new: Memory, stated: str) -> Iterator[Item]:
    if _is_newer(old, new):
        return  # what speaks of it is older: it may have been written anew since
    sure = bool(stated) and old.lane == "notes" and _is_newer(new, old)
    reason = {
        "this": f"{new.id} says that it replaces this",
        "by": f"says that {new.id} replaces it",
    }.get(stated, f"{new.id} speaks of replacing this")
    undo_it = look.command("update", old.id, "--status", "archived") if old.lane == "notes" else ""
    options = () if sure else (undo_it or look.command("rm", old.id),)
    yield Item(old.id, ARCHIVE if sure else LOOK, reason, old.title, others=(new.id,), options=options)


def _contradicted(look: _Look, one: Memory, by: Memory) -> Iterator[Item]:
    older, newer = _by_age(one, by)
    when = ", which is newer" if _is_newer(newer, older) else ""
    options = (look.command("rm", older.id), look.command("rm", newer.id), look.command("edit", older.id))
    yield Item(older.id, LOOK, f"contradicts {newer.id}{when}", older.title, others=(newer.id,), options=options)


def _same_title(look: _Look, said: set[tuple[str, tuple[str, ...]]]) -> Iterator[Item]:
    """Of notes and entries of one title that speak of the same, those that a newer one may have taken the place of."""
    titled: defaultdict[str, list[Memory]] = defaultdict(list)
    for memory in look.memories:
        title = " ".join(memory.title.casefold().split())
        if memory.lane in ("notes", "topics") and " " in title and any(map(str.isalpha, title)):
            titled[title].append(memory)
    for group in titled.values():
        if len(group) < 2 or None in map(_when, group):
            continue
        newest = max(group, key=lambda memory: (str(_when(memory)), memory.id))
        for memory in group:
            one, other = look.words[memory.id], look.words[newest.id]
            small = min(len(one), len(other))
            related = small >= _FEW and len(one & other) >= RELATED * small
            near = len(one & other) >= ALIKE_SHORT * len(one | other)  # said as a duplicate
            if related and not near and _is_newer(newest, memory) and (memory.id, (newest.id,)) not in said:
                reason = f"has the same title as {newest.id}, which is newer"
                options = (look.command("rm", memory.id),)
                yield Item(memory.id, LOOK, reason, memory.title, others=(newest.id,), options=options)


# -- links


def _links(look: _Look) -> Iterator[Item]:
    from memlane.care.checks import links

    found: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for id, why, fix in links(_survey(look)):
        found[id].append((why, fix))
    for id, signs in found.items():
        reasons, fixes = zip(*signs, strict=True)
        options = [fix for fix in fixes if fix.startswith("memlane ")]
        if len(options) < len(fixes):
            options.append(look.command("edit", id))
        yield Item(id, LOOK, "; ".join(reasons), look.by_id[id].title, options=tuple(dict.fromkeys(options)))


def _ghosts(look: _Look) -> Iterator[str]:
    from memlane.care.checks import ghosts

    for id, why, _ in ghosts(_survey(look)):
        if id.partition(":")[0] in look.lanes:
            yield f"{id} {why}"


def _survey(look: _Look) -> Survey:
    """As much of a survey as the doctor needs to judge links."""
    memories = [
        Seen(replace(memory, text=""), b"", b"", tuple(dict.fromkeys(node for node, _, _ in look.links[memory.id])), ())
        for memory in look.memories
        if memory.id in look.links
    ]
    known = [Seen(Memory(id, "", "", "", ""), b"", b"", (), ()) for id in look.ids.difference(look.links)]
    nothing = os.stat_result((0,) * 10)
    found = [
        File(os.path.join(folder, name), os.fspath(root), nothing, True)
        for root in places(look.bank)
        for folder, _, names in os.walk(root)
        for name in names
    ]
    return Survey(look.folder, look.bank.config, None, look.bank, tuple(found), (*memories, *known))


# -- one by one


def _stale(look: _Look) -> Iterator[Item]:
    from memlane.care.ages import ages

    for age in ages(look.bank):
        if age.band == "stale" and age.id in look.by_id:
            why = f"was not updated for {age.days} days" if age.days is not None else "does not say when it was updated"
            options = (look.command("edit", age.id), look.command("rm", age.id))
            yield Item(age.id, LOOK, why, look.by_id[age.id].title, options=options)


def _drifted(look: _Look) -> Iterator[Item]:
    from memlane.care.fresh.verdicts import FRESH
    from memlane.disk.anchors import NAME

    if not os.path.exists(os.path.join(look.bank.root, NAME)):
        return  # nothing was compared with the code yet: `memlane fresh` begins with it
    for verdict in look.bank.fresh():
        if verdict.verdict != FRESH and verdict.id in look.by_id:
            options = (look.command("fresh", "--accept", verdict.id), look.command("edit", verdict.id))
            reason = f"{verdict.verdict}: {verdict.why}"
            yield Item(verdict.id, LOOK, reason, look.by_id[verdict.id].title, options=options)


def _size(look: _Look) -> Iterator[Item]:
    for memory in look.memories:
        warning = None
        if memory.lane == "layers":
            warning = aging.size_warning(memory.type or "", memory.fields["line_count"])
        elif memory.lane in ("notes", "records") and len(memory.text) > LONG:
            warning = f"{len(memory.text):,} characters, over {LONG:,}: Split it, or keep a summary."
        if warning:
            yield Item(memory.id, LOOK, warning, memory.title, options=(look.command("edit", memory.id),))


def _registers(look: _Look) -> Iterator[Item]:
    for memory in look.memories:
        if memory.lane == "vault" and memory.fields["tier"] == "register" and not memory.fields["topic_id"]:
            options = (look.command("update", memory.id, "--field", "topic_id=KEY"), look.command("promote", memory.id))
            reason = "is a register without a topic: no update finds it, no prompt shows it"
            yield Item(memory.id, LOOK, reason, memory.title, options=options)


def _empty(look: _Look) -> Iterator[Item]:
    settled = utc_now() - SETTLED
    for memory in look.memories:
        if not memory.text.strip() and not _is_stub(look, memory):
            when = _when(memory)
            sure = memory.lane == "notes" and not memory.fields and (when is None or when < settled)
            options = () if sure else (look.command("rm", memory.id),)
            yield Item(memory.id, DELETE if sure else LOOK, "has no text", memory.title, options=options)


def _is_stub(look: _Look, memory: Memory) -> bool:
    """Whether a note without text says something all the same: by its own title, by tags, or as a link's target."""
    named = memory.title not in ("", memory.native_id) or memory.tags or memory.id in look.linked
    return memory.lane == "notes" and bool(named)


def _stubs(look: _Look) -> Iterator[str]:
    stubs = [memory.id for memory in look.memories if not memory.text.strip() and _is_stub(look, memory)]
    if stubs and "notes" in look.lanes:
        yield f"notes with a name and no text: {len(stubs):,}, such as {stubs[0]}"


def _suspicious(look: _Look) -> Iterator[Item]:
    for memory in look.progress(look.memories, "looking for instructions"):
        if why := memory.suspicious:
            reason = f"reads like words to the model: it {' and '.join(why)}"
            yield Item(memory.id, LOOK, reason, memory.title, options=(look.command("rm", memory.id),))


KINDS: Mapping[str, Callable[[_Look], Iterator[Item]]] = {
    "prune": _pruned,
    "retention": _retention,
    "duplicate": _duplicates,
    "superseded": _superseded,
    "link": _links,
    "stale": _stale,
    "drifted": _drifted,
    "size": _size,
    "register": _registers,
    "empty": _empty,
    "suspicious": _suspicious,
}
_REMARKS: Mapping[str, Callable[[_Look], Iterator[str]]] = {"link": _ghosts, "empty": _stubs}


# -- showing


def sides(bank: Bank, item: Item) -> list[Memory]:
    """The memories that an item speaks of, as they are now; what is gone meanwhile is left out."""
    found = []
    for id in (item.id, *item.others):
        try:
            found.append(bank.get(id))
        except (NotFound, InvalidInput):
            continue
    return found


def summary(memory: Memory, lines: int = 40) -> str:
    """A memory in so many lines at most."""
    shown_lines = memory.text.strip("\n").split("\n")
    rest = len(shown_lines) - lines
    more = [f"… {rest} more lines"] if rest > 0 else []
    return "\n".join([*shown_lines[:lines], *more]) if memory.text.strip() else first_line(memory.title) or "(no text)"
