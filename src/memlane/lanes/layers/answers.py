"""What the layers lane answers about its own format: files that age, with archives, copies and usage counts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from memlane.core.model import Draft, Memory, Plan, Step
from memlane.disk import files
from memlane.lanes import merging, read_file
from memlane.lanes.answers import Age, Answers, Group, Kept, Trace
from memlane.lanes.layers import aging
from memlane.lanes.layers.entries import LAYERS, id_of, path_of, type_of
from memlane.lanes.layers.folder import BEFORE_PRUNE, STRUCTURAL
from memlane.lanes.layers.store import MemoryStore
from memlane.lanes.layers.usage import OLD_STATS, STATS, remove_key

_ACTIONS = {"archived": "archive", "removed": "remove", "flagged": "look at"}  # the seed's words


class LayerAnswers(Answers):
    prunes = True
    rules_bind = False  # the seed's rules are advice
    rules_are_lasting = False  # they ask how old a file is and how often it was used
    merges = (("layer", "**/*.md"),)
    ignores = (*Answers.ignores, OLD_STATS, f"**/{STATS}")
    lane: MemoryStore

    def path_of(self, native: str) -> str:
        return self._inside(path_of(native))

    def native_of(self, path: str) -> str | None:
        return id_of(os.path.relpath(path, self.lane.root))

    def owns(self, path: str) -> bool:
        return super().owns(path) and os.path.basename(path).removesuffix(".md") not in STRUCTURAL

    # -- removing for good

    def texts_in(self, path: str) -> list[str]:
        text = read_file(path)
        return [aging.body(text)] if isinstance(text, str) else []

    def traces(self, native: str) -> Iterator[Trace]:
        """A file, its archive, and its copies from before a prune; its name leaves the side files, too."""
        stem = path_of(native).removesuffix(".md")
        archive = f"{stem}{aging.ARCHIVE}"
        yield from self.trashed(f"{stem}.md", f"{stem}{BEFORE_PRUNE}.md", f"{archive}.md")
        yield from self.file_traces("archive", self._inside(f"{archive}.md"))
        yield from self.file_traces("file", self._inside(f"{stem}.md"))
        counts = os.path.join(self._inside(os.path.dirname(stem)), STATS)
        for path, key in ((counts, type_of(native)), (os.path.join(self.lane.root, OLD_STATS), native)):
            if os.path.isfile(path) and json.dumps(key).encode() in files.read_bytes(path):
                yield Trace("counts", path, (), partial(remove_key, path, key))

    def aliases(self, native: str) -> set[str]:
        return {type_of(native)}

    # -- is it sound

    def broken_rules(self, memory: Memory) -> Iterator[str]:
        """Seed 004's own checks: a timestamp, a bearable length, completeness and specificity."""
        text = read_file(memory.file)
        if isinstance(text, str) and aging.updated_on(text) is None:
            yield "has no `<!-- Last Updated: YYYY-MM-DD -->` on its first line"
        report = self.lane.validate(memory.native_id)
        yield from report["details"]["warnings"]
        if not report["checks"]["completeness"]:
            missing = report["details"]["completeness"]["missing"]
            yield "says nothing yet" if missing == ["content"] else f"says nothing about: {', '.join(missing)}"
        if not report["checks"]["specificity"]:
            counts = report["details"]["specificity"]
            yield f"names no files, lines or functions in {counts['unspecific']} of {counts['claims']} claims"

    # -- what has aged

    def ages(self) -> Iterator[Age]:
        """By the `Last Updated` line: fresh up to 30 days, aging up to 90, then stale (seed 004)."""
        for band, items in self.lane.get_staleness_report().items():
            for item in items:
                if item["id"].partition("/")[0] in LAYERS:
                    yield Age(f"layers:{item['id']}", band, item["updatedAt"], item["daysSinceUpdate"])

    def prunable(self, known: Kept | None = None, **policy: Any) -> Plan:
        """Old reviews and sessions go to the archive, issues resolved long ago out (seed 004's policy)."""
        return _plan(self.lane.prune(policy, dry_run=True))

    def report(self, plan: Plan) -> dict[str, Any]:
        """A plan as the seed's `prune` says it."""
        words = {action: word for word, action in _ACTIONS.items()}
        done = [
            {"id": step.id.removeprefix("layers:"), "action": words[step.action], "reason": step.reason}
            for step in plan.steps
        ]
        return {"pruned": done, "warnings": list(plan.remarks)}

    def prune(self, steps: Mapping[str, Step], begin: Callable[[str, str], None]) -> Plan:
        """Everything that the rules say of a file is done together."""

        def paths() -> Iterator[str]:
            for id in steps:
                begin(id, "prune")
                yield self.path_of(id.removeprefix("layers:"))

        return _plan(self.lane.prune(paths=paths()))

    def grouped(self, steps: Sequence[Step]) -> Iterator[Group]:
        memories: dict[str, list[Step]] = {}
        for step in steps:
            memories.setdefault(step.id, []).append(step)
        for together in memories.values():
            action = "archive" if any(step.action != "look at" for step in together) else "look at"
            yield Group(together, action, "; ".join(step.reason for step in together), option="edit")

    # -- editing and merging

    def edited(self, text: str) -> str:
        return aging.page(text.removeprefix("\ufeff"), self.lane.folder.today(), text)

    def merge_files(self, driver: str, base: bytes, ours: bytes, theirs: bytes) -> bytes:
        return _merged(*merging.decoded(base, ours, theirs)).encode()

    def put_back(self, memory: Memory) -> Memory:
        """Store it with a clock that stands at the day on which the memory was last updated."""
        lane = self.lane
        if (updated := memory.updated_at) is not None:
            lane = MemoryStore(lane.root, prune_timing=lane.prune_timing, clock=lambda: updated, guard=lane.guard)
        return lane.put(self.draft_of(memory))

    def draft_of(self, memory: Memory) -> Draft:
        names = {name: memory.fields[name] for name in ("layer", "skill", "agent") if memory.fields.get(name)}
        fields = {**names, "file_type": memory.type, **({"project": memory.project} if memory.project else {})}
        return Draft(memory.text, created_at=memory.created_at, fields=fields)

    def changes_to(self, memory: Memory) -> dict[str, Any]:
        return {"text": memory.text}


def _plan(report: Mapping[str, Any]) -> Plan:
    """What the lane says it pruned, or would prune."""
    steps = (Step(f"layers:{item['id']}", _ACTIONS[item["action"]], item["reason"]) for item in report["pruned"])
    return Plan(tuple(steps), tuple(report["warnings"]))


def _merged(base: str, ours: str, theirs: str) -> str:
    """As any Markdown file, below the later of the two Last Updated lines."""
    body = merging.document(aging.body(base), aging.body(ours), aging.body(theirs))
    head = max(text.removesuffix(aging.body(text)) for text in (ours, theirs))
    latest = max(filter(None, map(aging.updated_on, (ours, theirs))), default=None)
    return (aging.stamped(head, latest) if latest else head) + body
