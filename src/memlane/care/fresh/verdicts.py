"""Whether what memories say about code may still be true: compare the code with what it was when they were written.

    fresh      the file, or the named symbol in it, is unchanged
    moved      it is in another file now: git knows the rename, or another file has the same content
    drifted    it has changed
    orphaned   it is gone

What was captured or distilled is compared with the code of the time when it was said (`then.py`), even if that is read
much later; anything else with the code of the time when it was written, or first seen.

There is no model and no guess about meaning: `drifted` asks somebody to look. A memory becomes fresh again only by
`accept` or when its text is written anew, never by being read.

Writes anchors.jsonl, and a cache that can be deleted: `indices/code.json` keeps what was read of the code, so that only
changed files are read again. Which code a memory names is known in the same way: see `memlane.care.known`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from memlane import gate
from memlane.care.fresh.code import Code, Gone, Seen, Unreadable, blob_of, decoded, symbol_hash
from memlane.care.fresh.mentions import Mention, mentions
from memlane.care.fresh.symbols import Unparsable, find, normal
from memlane.core.dates import moment, utc_now
from memlane.core.errors import MemlaneError, NotFound, StorageError
from memlane.core.model import Memory
from memlane.core.values import asdict, astuple, dataclass, replace
from memlane.disk import anchors as sidecar
from memlane.disk import derived, files
from memlane.disk.anchors import Anchor, Anchors
from memlane.recall import address

if TYPE_CHECKING:
    from memlane.bank import Bank
    from memlane.care.fresh.then import Heads
    from memlane.care.known import Known

FRESH, MOVED, DRIFTED, ORPHANED = VERDICTS = ("fresh", "moved", "drifted", "orphaned")  # the worst last
FACTORS = {DRIFTED: 0.9, ORPHANED: 0.8}  # a search multiplies the memory's score by this
LOOKS = 20  # how many changed files one search or block may read
_DIFF_LINES, _DIFF_CHARS = 20, 200_000
_VERSION = 2


class Named(NamedTuple):
    """The code that a memory names, and when that was said, for one of a session."""

    mentions: tuple[Mention, ...]
    said: datetime | None = None

    @classmethod
    def of(cls, memory: Memory) -> Named:
        of_session = memory.lane == "records" or memory.distilled
        return cls(mentions(memory), memory.created_at if of_session else None)


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on one file or symbol that a memory names."""

    target: str
    symbol: str
    verdict: str
    since: str  # the day it was compared with
    why: str = ""
    now: str = ""  # the file that has it now, when it moved
    diff: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one memory: the worst of its findings."""

    id: str
    verdict: str
    findings: tuple[Finding, ...]

    @property
    def why(self) -> str:
        """What is not fresh, on one line."""
        return "; ".join(finding.why for finding in self.findings if finding.why)

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, "verdict": self.verdict, "findings": [asdict(finding) for finding in self.findings]}


@dataclass(frozen=True, slots=True)
class Report:
    """The verdicts on the memories that name code."""

    verdicts: tuple[Verdict, ...]
    unanchored: int  # memories that name no code
    anchored: int  # places that were anchored just now
    remarks: tuple[str, ...] = ()

    def counts(self) -> dict[str, int]:
        counts = dict.fromkeys(VERDICTS, 0)
        for verdict in self.verdicts:
            counts[verdict.verdict] += 1
        return {**counts, "unanchored": self.unanchored}

    def to_dict(self) -> dict[str, Any]:
        return {
            "verdicts": [verdict.to_dict() for verdict in self.verdicts],
            "counts": self.counts(),
            "anchored": self.anchored,
            "remarks": list(self.remarks),
        }


class Watch:
    """The anchors of one bank and the code they are about; keeps in memory what it has read."""

    def __init__(self, project: Path, root: Path, own: Iterable[Path] = ()) -> None:
        self.project = project
        self.path = os.fspath(root / sidecar.NAME)
        self._cache = root / "indices" / "code.json"
        self._own = [path for path in (root, *own) if not project.is_relative_to(path)]
        self._anchors: Anchors = {}
        self._damaged = 0
        self._size: tuple[int, ...] | None = None
        self._code: Code | None = None
        self._places: dict[str, str] = {}  # where the last report found what is gone: _key(anchor) -> file
        self._past: dict[str, str] = {}  # the renames known at commit _head: path -> its next name, or ""
        self._head = ""
        self._cached: tuple[int, dict[str, str]] = (0, {})  # `code.read` and `_places` when the cache was written
        self._heads: Heads | None = None

    def anchors(self) -> Anchors:
        """The anchors that count, read again when the file has changed."""
        size = sidecar.size_of(self.path)
        if size is None or size != self._size:
            self._anchors, self._damaged = sidecar.load(self.path)
            self._size = size
        return self._anchors

    @property
    def code(self) -> Code:
        if self._code is None:
            kept = _load_cache(self._cache, os.fspath(self.project))
            known: dict[str, Seen] = {}
            with suppress(TypeError, AttributeError):  # a damaged cache
                known = {path: Seen(*facts) for path, facts in kept.get("files", {}).items()}
                self._places, self._past = kept.get("places", {}), kept.get("past", {})
                self._head = kept.get("head", "")
            self._cached = (0, self._places)
            self._code = Code(self.project, self._own, known)
        return self._code

    def _save_code(self) -> None:
        """Write the cache if there is something new to keep."""
        state = (self.code.read, self._places)
        if state != self._cached:
            facts = {path: astuple(seen) for path, seen in sorted(self.code.known.items())}
            kept = {"files": facts, "places": self._places, "past": self._past, "head": self._head}
            _save_cache(self._cache, os.fspath(self.project), kept)
            self._cached = state

    # -- anchoring

    def anchor(self, memory: Memory, now: datetime, *, is_new: bool = False) -> None:
        """Write anchors for the code that a memory names, as it is now: later than those that there are, whatever
        somebody else's clock said, unless the memory is new and has none. Raises StorageError, OSError.
        """
        found = mentions(memory)
        known = sidecar.load(self.path, memory.id)[0].get(memory.id, {}) if found and not is_new else {}
        made = (self._made(memory.id, mention, sidecar.stamp(now, known.get(mention))) for mention in found)
        sidecar.append(self.path, [anchor for anchor in made if anchor])

    def anchor_said(self, memories: Iterable[Memory]) -> None:
        """Write anchors for the code that memories of a session name, as it was then. Raises StorageError, OSError."""
        sidecar.append(self.path, self._of_then({memory.id: Named.of(memory) for memory in memories}))

    def _of_then(self, named: Mapping[str, Named]) -> list[Anchor]:
        """Anchors to the code as it was when it was spoken of; as it is now, where that is not known."""
        now, missing = utc_now(), set()
        made: list[Anchor | None] = []
        asked: list[tuple[str, Mention, datetime]] = []
        for id, (found, at) in named.items():
            for mention in found:
                if at and not self.code.is_unwritten_since(mention.target, at):
                    asked.append((id, mention, at))
                elif mention.target not in missing:
                    made.append(self._made(id, mention, sidecar.stamp(at or now)))
                    missing |= set() if made[-1] else {mention.target}
        known = self._then({(mention.target, at) for _, mention, at in asked}) if asked else {}
        for id, mention, at in asked:
            if (data := known.get((mention.target, at))) is None:
                made.append(self._made(id, mention, sidecar.stamp(now)))
                continue
            hash = ""
            if mention.symbol:
                with suppress(Unparsable):
                    hash = symbol_hash(find(os.path.splitext(mention.target)[1], decoded(data), mention.symbol))
            made.append(Anchor(id, *mention, blob_of(data), hash, sidecar.stamp(at)))
        return [anchor for anchor in made if anchor]

    def _then(self, asked: Collection[tuple[str, datetime]]) -> dict[tuple[str, datetime], bytes]:
        """What files were at a time, as far as git knows."""
        from memlane.care.fresh import then

        self._heads = self._heads or then.Heads(self.project)
        found = then.contents(self.project, self._heads, [then.Said(*each) for each in asked])
        return {(said.path, said.at): data for said, data in found.items()}

    def _made(self, id: str, mention: Mention, at: str, path: str = "") -> Anchor | None:
        """An anchor to the code as it is now; None where there is no such file."""
        place = path or mention.target
        try:
            if not self.code.holds(place):
                return None
            blob, hash = self.code.blob(place), ""
            if mention.symbol:
                with suppress(Unparsable):
                    hash = self.code.symbol(place, mention.symbol)
        except (Gone, Unreadable, ValueError):
            return None
        return Anchor(id, *mention, blob, hash, at, path if path != mention.target else "")

    def accept(self, verdicts: Iterable[Verdict], now: datetime) -> None:
        """Anchor what is not fresh to the code as it is now, and stop watching what is gone. Raises StorageError."""
        lines = []
        for verdict in verdicts:
            known = self.anchors().get(verdict.id, {})
            for finding in verdict.findings:
                if finding.verdict != FRESH:
                    mention = Mention(finding.target, finding.symbol)
                    before = known.get(mention)
                    at = sidecar.stamp(now, before)
                    place = finding.now or (before.place if before else finding.target)
                    made = self._made(verdict.id, mention, at, place)
                    lines.append(made or Anchor(verdict.id, *mention, "", "", at))
        sidecar.append(self.path, lines)

    # -- a quick look

    def look(self, memories: Sequence[Memory]) -> dict[str, Verdict]:
        """The memories that are not fresh, as far as that shows without git; reads no more than LOOKS changed files."""
        if len(memories) == 1 and self._size is None:
            known, _ = sidecar.load(self.path, memories[0].id)
        else:
            known = self.anchors()
        verdicts: dict[str, Verdict] = {}
        start, now = self.code.read, cache(self.code.state)
        for memory in memories:
            findings = []
            for anchor in known.get(memory.id, {}).values():
                if anchor.blob and self.code.read - start <= LOOKS:
                    finding = _judge(anchor, self.code, now(anchor.place))
                    if finding.verdict == ORPHANED and (place := self._places.get(_key(anchor))):
                        finding = _moved(finding, anchor, place, self.code)
                    if finding.verdict != FRESH:
                        findings.append(finding)
            if findings:
                named = set(mentions(memory))  # the text may have changed since it was anchored
                findings = [finding for finding in findings if (finding.target, finding.symbol) in named]
            if findings:
                verdicts[memory.id] = _verdict(memory.id, findings)
        return verdicts

    def weights(self, memories: Sequence[Memory]) -> dict[str, float]:
        """What to multiply the scores of these memories by, for those where it is not 1."""
        verdicts = self.look(memories)
        return {id: FACTORS[verdict.verdict] for id, verdict in verdicts.items() if verdict.verdict in FACTORS}

    # -- the full report

    def report(self, bank: Bank, ids: Sequence[str] | None = None, known_files: Known | None = None) -> Report:
        """Verdicts on the whole bank, or on these memories. What has no anchor yet gets one now.

        `known_files` is what is known of the bank's files, where that was asked already. Writes anchors.jsonl where
        something is new, and the cache where something changed. Raises NotFound.
        """
        remarks = []
        first = sidecar.size_of(self.path) is None
        known = self.anchors()
        if self._damaged:
            remarks.append(f"{self._damaged} damaged lines of {sidecar.NAME} are passed over")
        asked = [address.get(bank, id) for id in ids or ()]
        named, total = {memory.id: Named.of(memory) for memory in asked}, len(asked)
        if ids is None:
            from memlane.care.known import FORM, SAID, look  # not needed for a quick look

            with nullcontext(known_files) if known_files else look(bank, FORM | SAID) as found:
                named, total = _named(found)
        anchored, new = self._anchored(named, known)
        if first and new:
            remarks.append(f"there was no {sidecar.NAME}: memories are compared with the code as it is now")
        try:
            sidecar.append(self.path, new)
        except MemlaneError as error:
            remarks.append(f"nothing could be anchored: {error}")
        verdicts = self._verdicts(anchored)
        if bank.tombstones.any():
            verdicts = [v for v in verdicts if v.verdict == FRESH or not bank.tombstones.held(address.get(bank, v.id))]
        unanchored = total - len(verdicts)
        with suppress(MemlaneError, OSError):  # this only saves time and room
            if ids is None:
                self._compact(bank, named, known)
            self._save_code()
        return Report(tuple(verdicts), unanchored, len(new), tuple(remarks))

    def _anchored(self, named: Mapping[str, Named], known: Anchors) -> tuple[dict[str, list[Anchor]], list[Anchor]]:
        """The anchors of each memory that has any, and those of them that had to be made."""
        anchored: dict[str, list[Anchor]] = {}
        unknown: dict[str, Named] = {}
        for id, here in named.items():
            of_id = known.get(id, {})
            anchored[id] = [anchor for mention in here.mentions if (anchor := of_id.get(mention)) and anchor.blob]
            left = tuple(mention for mention in here.mentions if not ((old := of_id.get(mention)) and old.blob))
            unknown |= {id: here._replace(mentions=left)} if left else {}
        new = self._of_then(unknown)
        for anchor in new:
            anchored[anchor.id].append(anchor)
        return {id: anchors for id, anchors in anchored.items() if anchors}, new

    def _verdicts(self, anchored: Mapping[str, Sequence[Anchor]]) -> list[Verdict]:
        """The verdict on each memory. Many name the same place, so equal anchors are judged once."""
        alike = {
            id: [anchor._replace(id="", at=anchor.at[:10]) for anchor in anchors] for id, anchors in anchored.items()
        }
        now = cache(self.code.state)
        findings = {
            anchor: _judge(anchor, self.code, now(anchor.place))
            for anchor in dict.fromkeys(anchor for anchors in alike.values() for anchor in anchors)
        }
        open_ = {anchor: finding for anchor, finding in findings.items() if finding.verdict != FRESH}
        if open_:
            findings |= self._explained(open_)
        return [_verdict(id, [findings[anchor] for anchor in anchors]) for id, anchors in alike.items()]

    def _explained(self, findings: Mapping[Anchor, Finding]) -> dict[Anchor, Finding]:
        """The findings with what git adds: where the code went, and what changed in it."""
        from memlane.care.fresh import moves

        self._places = self._moves([anchor for anchor, finding in findings.items() if finding.verdict == ORPHANED])
        explained = {}
        for anchor, finding in findings.items():
            place = self._places.get(_key(anchor))
            explained[anchor] = _moved(finding, anchor, place, self.code) if place else finding
        changed = [anchor for anchor, finding in explained.items() if "changed since" in finding.why]
        old = moves.contents(self.project, {anchor.blob for anchor in changed}) if changed else {}
        for anchor in changed:
            if anchor.blob in old:
                place = explained[anchor].now or anchor.place
                diff = _diff(anchor, decoded(old[anchor.blob]), self.code, place)
                explained[anchor] = replace(explained[anchor], diff=diff)
        return explained

    def _moves(self, orphans: Sequence[Anchor]) -> dict[str, str]:
        """The files that hold what is gone from its place: _key(anchor) -> file."""
        from memlane.care.fresh import moves

        if not orphans:
            return {}
        project, code = self.project, self.code
        head = moves.head(project)
        if head != self._head:
            self._head, self._past = head, {}
        gone = {anchor.place for anchor in orphans if not code.holds(anchor.place)}
        renamed = moves.renames(project, gone, self._past) if gone else {}
        whole = {a.blob for a in orphans if a.place in gone and a.place not in renamed and not a.hash}
        same = moves.same_content(project, code, whole) if whole else {}
        places = {}
        for anchor in orphans:
            place = renamed.get(anchor.place)
            if anchor.hash and (place is None or not _has(code, place, anchor.symbol)):
                place = moves.same_symbol(project, code, anchor.place, anchor.symbol, anchor.hash)
            elif place is None:
                place = same.get(anchor.blob)
            if place and code.holds(place):
                places[_key(anchor)] = place
        return places

    def _compact(self, bank: Bank, named: Mapping[str, object], known: Anchors) -> None:
        """Rewrite anchors.jsonl when most of its lines no longer count: memories that are gone, older anchors.

        With whom a bank is shared, the lines are shared, too, and some may have memories that are not here: those of
        lanes or scopes that this bank does not share, and what is held back or still to come. Of what is not here only
        what was deleted is gone then.
        """
        lines = files.size_of(self.path) // 150
        if lines <= 3 * sum(len(known.get(id, ())) for id in named) + 1000:
            return
        from memlane.care.sync import state as remotes

        with remotes.opened(bank.root) as state:
            is_shared = state is not None and bool(state.remotes())
        others = {id for id in known if is_shared and not bank.tombstones.may_hold(id)}
        if lines > 3 * sum(len(known.get(id, ())) for id in others | named.keys()) + 1000:
            there = (memory.id for memory in bank.memories() if memory.status != "archived")
            sidecar.compact(self.path, {*there, *(removed.id for removed in bank.removed()), *others})


def _has(code: Code, place: str, symbol: str) -> bool:
    """Whether a file has a symbol; one that does not parse at the moment may have it."""
    try:
        return code.symbol(place, symbol) != ""
    except Unparsable:
        return True
    except (Gone, Unreadable):
        return False


def _key(anchor: Anchor) -> str:
    return f"{anchor.place}\t{anchor.symbol}\t{anchor.hash or anchor.blob}"


def _verdict(id: str, findings: Sequence[Finding]) -> Verdict:
    return Verdict(id, max((finding.verdict for finding in findings), key=VERDICTS.index), tuple(findings))


def _judge(anchor: Anchor, code: Code, now: str | Gone | Unreadable) -> Finding:
    """The finding on one place, without git. `now` is the state of its file (see Code.state)."""
    place, since = anchor.place, anchor.at[:10]
    if now == anchor.blob:
        return Finding(anchor.target, anchor.symbol, FRESH, since)
    verdict, why = DRIFTED, f"{Mention(place, anchor.symbol)} changed since {since}"
    if isinstance(now, Gone):
        verdict, why = ORPHANED, f"{place} is gone"
    elif isinstance(now, Unreadable):
        why = f"{place} cannot be read: {now}"
    elif anchor.hash:
        try:
            hash = code.symbol(place, anchor.symbol)
            if hash == anchor.hash:
                verdict, why = FRESH, ""
            elif not hash:
                verdict, why = ORPHANED, f"{anchor.symbol} is gone from {place}"
        except (Gone, Unreadable):
            verdict, why = ORPHANED, f"{place} is gone"
        except Unparsable:
            why = f"{place} does not parse at the moment; it changed after {since}"
    return Finding(anchor.target, anchor.symbol, verdict, since, why)


def _moved(finding: Finding, anchor: Anchor, place: str, code: Code) -> Finding:
    """The finding on what is in another file now, changed or not; the old finding if it is gone from there, too."""
    there = _judge(anchor._replace(path=place), code, code.state(place))
    if there.verdict == ORPHANED:
        return finding
    why = f"{Mention(anchor.place, anchor.symbol)} is in {place} now"
    if there.verdict == DRIFTED:
        why += f", and changed since {finding.since}"
    return replace(finding, verdict=MOVED, why=why, now=place)


def _diff(anchor: Anchor, old: str, code: Code, place: str) -> str:
    """What changed, as a few lines without secrets; "" where it cannot be told."""
    from difflib import unified_diff

    try:
        if anchor.hash:
            before = find(os.path.splitext(anchor.place)[1], old, anchor.symbol)
            after = code.symbol_text(place, anchor.symbol)
        else:
            before, after = normal(old), normal(code.text(place))
    except (Gone, Unreadable, Unparsable):
        return ""
    if before is None or after is None or "\0" in before + after or len(before) + len(after) > _DIFF_CHARS:
        return ""
    lines = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1))[2:]
    shown = lines[:_DIFF_LINES]
    if len(lines) > len(shown):
        shown.append(f"… {len(lines) - len(shown)} more lines")
    return gate.redacted("\n".join(line[:200] for line in shown))


# -- caches


def _named(known: Known) -> tuple[dict[str, Named], int]:
    """The code that memories of the bank name, and how many memories there are, those that name none among them."""
    named = {}
    for _, id, value in known.of("code"):
        found, said = json.loads(value)
        named[id] = Named(tuple(Mention(*mention) for mention in found), moment(said))
    ((total,),) = known.rows("SELECT count(*) FROM entries WHERE status IS NOT 'archived'")
    return named, total


def _load_cache(path: Path, about: str) -> dict[str, Any]:
    """What a cache holds; {} when it is damaged, of another version or about another folder."""
    try:
        kept = json.loads(files.read_bytes(os.fspath(path), files.MAX_LOG_BYTES))
    except (OSError, StorageError, ValueError, RecursionError):
        return {}
    if not isinstance(kept, dict) or (kept.get("version"), kept.get("about")) != (_VERSION, about):
        return {}
    return kept


def _save_cache(path: Path, about: str, kept: Mapping[str, Any]) -> None:
    derived.prepare(path.parent)
    data = json.dumps({"version": _VERSION, "about": about, **kept}, ensure_ascii=True, separators=(",", ":"))
    files.replace(os.fspath(path), data.encode())


# -- for the bank and the command line


def report(bank: Bank, ids: Sequence[str] | None = None) -> Report:
    """Verdicts on the whole bank, or on these memories; see Watch.report."""
    watch = bank.watch
    if watch is None:
        why = "this bank belongs to no one project, so there is no code that it could be compared with"
        if bank.config.distrust:
            why = "in a project that is not trusted, nothing is compared with its code"
        return Report((), 0, 0, (why,))
    return watch.report(bank, ids)


def accept(bank: Bank, ids: Sequence[str] | None) -> Report:
    """Anchor memories to the code as it is now: these, or all that are not fresh.

    Writes anchors.jsonl. Raises NotFound for one of `ids` that names no code, StorageError.
    """
    watch = bank.watch
    before = report(bank, ids)
    naming_code = {verdict.id for verdict in before.verdicts}
    for id in ids or ():
        if address.get(bank, id).id not in naming_code:
            raise NotFound(
                f"{gate.shown(id)} speaks of no code of this project.",
                hint="`memlane review --only drifted --all` lists what does.",
            )
    if watch is None:
        return before
    watch.accept(before.verdicts, utc_now())
    return watch.report(bank, ids)
