"""Whether what memories say about code may still be true: each against the code as it was when it was written.

    fresh      the file, or the named symbol in it, is what it was
    moved      it is elsewhere now: renamed in git, or the same content stands in another file
    drifted    it has changed since
    orphaned   it is gone

No model, no network, no guess about meaning: `drifted` says that somebody should look. Only `accept`, and writing the
memory's text anew, make it fresh again; reading never does. `indices/code.json` and `indices/mentions.json` keep what
was read, so that only what changed is read again; they can be deleted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlane import gate, lanes
from memlane.care.fresh.code import Code, Gone, Seen, Unreadable, decoded
from memlane.care.fresh.mentions import Mention, mentions
from memlane.care.fresh.symbols import Unparsable, find, normal
from memlane.core.dates import utc_now
from memlane.core.errors import MemlaneError, NotFound
from memlane.core.model import Memory, Problem
from memlane.disk import anchors as sidecar
from memlane.disk import files
from memlane.disk.anchors import Anchor, Anchors

if TYPE_CHECKING:
    from memlane.bank import Bank

FRESH, MOVED, DRIFTED, ORPHANED = VERDICTS = ("fresh", "moved", "drifted", "orphaned")  # the worst last
FACTORS = {DRIFTED: 0.9, ORPHANED: 0.8}  # what the score of such a memory is multiplied by
LOOKS = 20  # changed files that are read for one search or block
_DIFF_LINES, _DIFF_CHARS = 20, 200_000
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Finding:
    """One place that a memory speaks of, as it is now. `now` is the file where it is when that is another one."""

    target: str
    symbol: str
    verdict: str
    since: str
    why: str = ""
    now: str = ""
    diff: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of the code that one memory speaks of: the worst of its findings."""

    id: str
    verdict: str
    findings: tuple[Finding, ...]

    @property
    def why(self) -> str:
        """What is not fresh, in a line."""
        return "; ".join(finding.why for finding in self.findings if finding.why)

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, "verdict": self.verdict, "findings": [asdict(finding) for finding in self.findings]}


@dataclass(frozen=True, slots=True)
class Report:
    """The verdicts by id, how many memories speak of no code, how many places were anchored just now."""

    verdicts: tuple[Verdict, ...]
    unanchored: int
    anchored: int
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
        self._folder = root / "indices"
        self._own = [path for path in (root, *own) if not project.is_relative_to(path)]
        self._anchors: Anchors = {}
        self._damaged = 0
        self._size: tuple[int, int, int] | None = None
        self._code: Code | None = None
        self._places: dict[str, str] = {}  # where git said, at the last report, that what is gone went
        self._past: dict[str, str] = {}
        self._head = ""
        self._news = False  # whether there is more to keep than files that were read
        self._kept_at = 0

    # -- what is known

    def anchors(self) -> Anchors:
        size = sidecar.size_of(self.path)
        if size is None or size != self._size:
            self._anchors, self._damaged = sidecar.load(self.path)
            self._size = size
        return self._anchors

    @property
    def code(self) -> Code:
        if self._code is None:
            kept = _kept(self._folder / "code.json", os.fspath(self.project))
            try:
                known = {path: Seen(*facts) for path, facts in kept.get("files", {}).items()}
                self._places, self._past, self._head = (
                    kept.get("places", {}),
                    kept.get("past", {}),
                    kept.get("head", ""),
                )
            except (TypeError, AttributeError):
                known = {}
            self._code = Code(self.project, self._own, known)
        return self._code

    def _keep_code(self) -> None:
        facts = {path: [s.size, s.mtime, s.inode, s.blob, s.symbols] for path, s in sorted(self.code.known.items())}
        kept = {"files": facts, "places": self._places, "past": self._past, "head": self._head}
        _keep(self._folder / "code.json", os.fspath(self.project), kept)

    # -- anchoring

    def anchor(self, memory: Memory, now: datetime) -> None:
        """Write down what the code is that a memory names. Raises StorageError, OSError."""
        named = mentions(memory)
        if named:
            made = (self._made(memory.id, mention, sidecar.stamp(now)) for mention in named)
            sidecar.append(self.path, [anchor for anchor in made if anchor])

    def _made(self, id: str, mention: Mention, at: str, path: str = "") -> Anchor | None:
        place = path or mention.target
        try:
            if not self.code.holds(place):
                return None
            blob, hash = self.code.blob(place), ""
            if mention.symbol:
                try:
                    hash = self.code.symbol(place, mention.symbol)
                except Unparsable:
                    hash = ""
            return Anchor(id, *mention, blob, hash, at, path if path != mention.target else "")
        except (Gone, Unreadable, ValueError):
            return None

    def accept(self, verdicts: Iterable[Verdict], now: datetime) -> None:
        """Anchor what is not fresh to what is there now; where nothing is, watch it no more. Raises StorageError."""
        lines = []
        for verdict in verdicts:
            of_id = self.anchors().get(verdict.id, {})
            for finding in verdict.findings:
                if finding.verdict != FRESH:
                    mention = Mention(finding.target, finding.symbol)
                    before = of_id.get(mention)
                    at = sidecar.stamp(now, before)
                    place = finding.now or (before.place if before else finding.target)
                    made = self._made(verdict.id, mention, at, place)
                    lines.append(made or Anchor(verdict.id, *mention, "", "", at))
        sidecar.append(self.path, lines)

    # -- a quick look

    def look(self, memories: Sequence[Memory]) -> dict[str, Verdict]:
        """Those of these memories that are not fresh, as far as it can be told without git and much reading."""
        if len(memories) == 1 and self._size is None:
            known, _ = sidecar.load(self.path, memories[0].id)
        else:
            known = self.anchors()
        found: dict[str, Verdict] = {}
        code = self.code
        start = code.read
        seen: dict[str, str | Gone | Unreadable] = {}
        for memory in memories:
            findings = []
            for anchor in known.get(memory.id, {}).values():
                if anchor.blob and code.read - start <= LOOKS:
                    finding = _judged(anchor, code, seen)
                    if finding.verdict != FRESH:
                        findings.append(self._moved_before(finding, anchor))
            if findings:
                named = set(mentions(memory))  # the memory may have been changed since
                findings = [finding for finding in findings if (finding.target, finding.symbol) in named]
            if findings:
                found[memory.id] = _verdict(memory.id, findings)
        return found

    def weights(self, memories: Sequence[Memory]) -> dict[str, float]:
        """What the scores of these memories are multiplied by, those for which it is not 1."""
        found = self.look(memories)
        return {id: FACTORS[verdict.verdict] for id, verdict in found.items() if verdict.verdict in FACTORS}

    def _moved_before(self, finding: Finding, anchor: Anchor) -> Finding:
        place = self._places.get(_key(anchor)) if finding.verdict == ORPHANED else None
        return _moved(finding, anchor, place, self.code) if place else finding

    # -- the whole truth

    def report(self, bank: Bank, ids: Sequence[str] | None = None) -> Report:
        """Verdicts over the whole bank, or over some memories. What is not anchored yet is anchored now.

        Writes anchors.jsonl where something is new, and the caches where something changed. Raises NotFound.
        """
        remarks = []
        first = sidecar.size_of(self.path) is None
        known = self.anchors()
        if self._damaged:
            remarks.append(f"{self._damaged} damaged lines of {sidecar.NAME} are passed over")
        named = _named(bank) if ids is None else {memory.id: mentions(memory) for memory in map(bank.get, ids)}
        pairs, new = self._anchored(named, known)
        if first and new:
            remarks.append(f"there was no {sidecar.NAME}: memories are compared with the code as it is now")
        try:
            sidecar.append(self.path, new)
        except MemlaneError as error:
            remarks.append(f"nothing could be anchored: {error}")
        verdicts = self._judged(pairs)
        if bank.tombstones.any():
            verdicts = [v for v in verdicts if v.verdict == FRESH or not bank.tombstones.held(bank.get(v.id))]
        unanchored = len(named) - len(verdicts)
        with suppress(MemlaneError, OSError):  # it only saves time and room
            if ids is None:
                self._compacted(bank, named, known)
            if self.code.read != self._kept_at or self._news:
                self._keep_code()
                self._kept_at, self._news = self.code.read, False
        return Report(tuple(verdicts), unanchored, len(new), tuple(remarks))

    def _anchored(
        self, named: Mapping[str, Sequence[Mention]], known: Anchors
    ) -> tuple[list[tuple[str, list[Anchor]]], list[Anchor]]:
        """The anchors of every memory, and those that had to be made."""
        pairs, new = [], []
        none: dict[tuple[str, str], Anchor] = {}
        missing: set[str] = set()
        at = sidecar.stamp(utc_now())
        for id, wanted in named.items():
            of_id = known.get(id, none)
            found = []
            for mention in wanted:
                anchor = of_id.get(mention)
                if anchor is None or not anchor.blob:
                    if mention.target in missing:
                        continue
                    anchor = self._made(id, mention, at)
                    if anchor is None:
                        missing.add(mention.target)
                        continue
                    new.append(anchor)
                found.append(anchor)
            if found:
                pairs.append((id, found))
        return pairs, new

    def _judged(self, pairs: Iterable[tuple[str, list[Anchor]]]) -> list[Verdict]:
        seen: dict[str, str | Gone | Unreadable] = {}
        alike: dict[tuple[str, ...], Finding] = {}  # many memories speak of the same place
        fresh: dict[tuple[str, ...], tuple[Finding, ...]] = {}
        cases: dict[tuple[str, ...], Anchor] = {}
        keyed = []
        for id, anchors in pairs:
            keys = []
            for anchor in anchors:
                key = (anchor.target, anchor.symbol, anchor.path, anchor.blob, anchor.hash, anchor.at[:10])
                if key not in alike:
                    alike[key] = _judged(anchor, self.code, seen)
                    if alike[key].verdict != FRESH:
                        cases[key] = anchor
                keys.append(key)
            keyed.append((id, keys))
        if cases:
            alike |= self._explained(cases, alike)
        verdicts = []
        for id, keys in keyed:
            if len(keys) == 1:
                findings = fresh.get(keys[0])
                if findings is None:
                    findings = fresh[keys[0]] = (alike[keys[0]],)
                verdicts.append(Verdict(id, findings[0].verdict, findings))
            else:
                verdicts.append(_verdict(id, [alike[key] for key in keys]))
        return verdicts

    def _explained(
        self, cases: Mapping[tuple[str, ...], Anchor], found: Mapping[tuple[str, ...], Finding]
    ) -> dict[tuple[str, ...], Finding]:
        """The findings that are not fresh with what git knows: where the code went, and what changed in it."""
        from memlane.care.fresh import moves

        project, code = self.project, self.code
        orphans = {key: anchor for key, anchor in cases.items() if found[key].verdict == ORPHANED}
        places: dict[str, str] = {}
        if orphans:
            head = moves.head(project)
            if head != self._head:
                self._head, self._past = head, {}
            gone = {anchor.place for anchor in orphans.values() if not code.holds(anchor.place)}
            renamed = moves.renames(project, gone, self._past) if gone else {}
            whole = {a.blob for a in orphans.values() if a.place in gone and a.place not in renamed and not a.hash}
            same = moves.same_content(project, code, whole) if whole else {}
            for anchor in orphans.values():
                place = renamed.get(anchor.place)
                if anchor.hash and (place is None or not _has(code, place, anchor.symbol)):
                    place = moves.same_symbol(project, code, anchor.place, anchor.symbol, anchor.hash)
                elif place is None:
                    place = same.get(anchor.blob)
                if place and code.holds(place):
                    places[_key(anchor)] = place
        if places != self._places:
            self._places = places
            self._news = True
        explained = {
            key: _moved(found[key], anchor, places[_key(anchor)], code) if _key(anchor) in places else found[key]
            for key, anchor in cases.items()
        }
        changed = {key: cases[key] for key, finding in explained.items() if "changed since" in finding.why}
        old = moves.contents(project, {anchor.blob for anchor in changed.values()}) if changed else {}
        for key, anchor in changed.items():
            if anchor.blob in old:
                diff = _diff(anchor, decoded(old[anchor.blob]), code, explained[key].now or anchor.place)
                explained[key] = replace(explained[key], diff=diff)
        return explained

    def _compacted(self, bank: Bank, named: Mapping[str, object], known: Anchors) -> None:
        """Rewrite the file when most of it does not count any more: memories that are gone, older anchors."""
        lines = files.size_of(self.path) // 150
        live = sum(len(known.get(id, ())) for id in named)
        if lines > 3 * live + 1000:
            sidecar.compact(self.path, {*named, *(removed.id for removed in bank.removed())})


def _has(code: Code, place: str, symbol: str) -> bool:
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


def _judged(anchor: Anchor, code: Code, seen: dict[str, str | Gone | Unreadable]) -> Finding:
    """What became of one place, by the file as it is now. `seen` are the files that were looked at already."""
    place = anchor.path or anchor.target
    now = seen.get(place)
    if now is None:
        try:
            now = code.blob(place)
        except (Gone, Unreadable) as reason:
            now = reason
        seen[place] = now
    since = anchor.at[:10]
    if now == anchor.blob:
        return Finding(anchor.target, anchor.symbol, FRESH, since)
    name = str(Mention(place, anchor.symbol))
    verdict, why = DRIFTED, f"{name} changed since {since}"
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
    """The finding of something that is at another place now, unchanged or not; as it was, if that is gone, too."""
    there = _judged(anchor._replace(path=place), code, {})
    if there.verdict == ORPHANED:
        return finding
    why = f"{Mention(anchor.place, anchor.symbol)} is in {place} now"
    if there.verdict == DRIFTED:
        why += f", and changed since {finding.since}"
    return replace(finding, verdict=MOVED, why=why, now=place)


def _diff(anchor: Anchor, old: str, code: Code, place: str) -> str:
    """What changed, in a few lines without secrets; "" where it cannot be told."""
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


# -- what was read before


def _named(bank: Bank) -> dict[str, tuple[Mention, ...]]:
    """What every memory of the bank names. Of files that are as they were the last time, without reading them."""
    folder = bank.root / "indices"
    kept = _kept(folder / "mentions.json", "").get("files")
    kept = kept if isinstance(kept, dict) and all(isinstance(entry, list) for entry in kept.values()) else {}
    found: dict[str, tuple[Mention, ...]] = {}
    now: dict[str, Any] = {}
    unchanged = True
    for name in lanes.NAMES:
        lane = bank.lane(name)
        for path in lane.files():
            if isinstance(path, Problem):
                continue
            try:
                info = os.stat(path)
            except OSError:
                continue
            facts = [info.st_size, info.st_mtime_ns]
            entry = kept.get(path)
            if entry is None or entry[0] != facts:
                unchanged = False
                read = [item for item in lane.parse(path) if isinstance(item, Memory)]
                entry = [facts, {memory.id: mentions(memory) for memory in read}]
            now[path] = entry
            found |= entry[1]
    if not unchanged or len(now) != len(kept):
        with suppress(MemlaneError, OSError):  # it only saves time
            _keep(folder / "mentions.json", "", {"files": now})
    return {id: tuple(Mention(*mention) for mention in named) for id, named in found.items()}


def _kept(path: Path, about: str) -> dict[str, Any]:
    try:
        kept = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(kept, dict) or (kept.get("version"), kept.get("about")) != (_VERSION, about):
        return {}
    return kept


def _keep(path: Path, about: str, kept: Mapping[str, Any]) -> None:
    ignore = path.parent / ".gitignore"
    if not ignore.exists():
        files.replace(os.fspath(ignore), b"*\n")  # derived files have no place in a history
    data = json.dumps({"version": _VERSION, "about": about, **kept}, ensure_ascii=True, separators=(",", ":"))
    files.replace(os.fspath(path), data.encode())


def report(bank: Bank, ids: Sequence[str] | None = None) -> Report:
    """Verdicts over the whole bank, or over these memories; see Watch.report."""
    watch = bank.watch
    if watch is None:
        why = "this bank belongs to no one project, so there is no code that it could be compared with"
        return Report((), 0, 0, (why,))
    return watch.report(bank, ids)


def accept(bank: Bank, ids: Sequence[str] | None) -> Report:
    """Anchor memories to the code as it is now: these, or all that are not fresh. Raises NotFound for what has none."""
    watch = bank.watch
    report_ = report(bank, ids)
    found = {verdict.id for verdict in report_.verdicts}
    for id in ids or ():
        if bank.get(id).id not in found:
            raise NotFound(
                f"{gate.shown(id)} speaks of no code of this project.", hint="`memlane fresh --all` lists what does."
            )
    if watch is None:
        return report_
    watch.accept(report_.verdicts, utc_now())
    return watch.report(bank, ids)
