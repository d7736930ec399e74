"""What a review reads of a bank, and the items that its plan is made of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from memlane.care.inventory import Progress, command_line, read_lane
from memlane.core.dates import utc_now
from memlane.core.model import Memory, Step
from memlane.core.values import asdict, dataclass, replace
from memlane.gate import redacted, shown
from memlane.gate.likeness import tokens
from memlane.index.links import Targets, links_in
from memlane.lanes import NAMES

if TYPE_CHECKING:
    from memlane.bank import Bank

LOOK, ARCHIVE, DELETE = "look at", "archive", "delete"
_LABEL = re.compile(r"^\*\*(?:Context:\*\*.*|[^*\n]{1,40}:\*\*)", re.MULTILINE)  # of a topic's entry
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)  # Thai … Hangul


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
        fields = asdict(self)
        fields.pop("along")
        return {**fields, "others": list(self.others), "options": list(self.options), "safe": self.safe}


@dataclass
class Reading:
    """The bank while a plan is made. Each part is read once, and only when a kind of review asks for it."""

    bank: Bank
    folder: str | None
    lanes: tuple[str, ...]
    progress: Progress

    @cached_property
    def _present(self) -> list[Memory]:
        """Every memory that is not held back, by id, whatever lanes are asked for: a link may come from any."""
        held = self.bank.tombstones.held
        items = (item for name in NAMES for item in read_lane(self.bank.lane(name), self.progress))
        found = (item for item in items if isinstance(item, Memory) and not held(item))
        return sorted(found, key=lambda memory: memory.id)

    @cached_property
    def ids(self) -> set[str]:
        """Of all memories, archived ones too."""
        return {memory.id for memory in self._present}

    @cached_property
    def memories(self) -> list[Memory]:
        """Everything but what is archived or has expired."""
        return [memory for memory in self._present if memory.status != "archived" and memory not in self.expired]

    @cached_property
    def expired(self) -> list[Memory]:
        """Notes whose time is over; no other lane has such a time."""
        now = utc_now()
        return [memory for memory in self._present if memory.lane == "notes" and memory.expired(now)]

    @cached_property
    def by_id(self) -> dict[str, Memory]:
        return {memory.id: memory for memory in self.memories}

    @cached_property
    def links(self) -> dict[str, list[tuple[str, str, str]]]:
        """(node, edge type, context) of each memory's links."""
        return {memory.id: found for memory in self.memories if (found := list(links_in(memory.text)))}

    @cached_property
    def linking(self) -> list[tuple[Memory, tuple[str, ...]]]:
        """The memories that have links, with the nodes that they link to."""
        return [
            (self.by_id[id], tuple(dict.fromkeys(node for node, _, _ in found))) for id, found in self.links.items()
        ]

    @cached_property
    def linked(self) -> set[str]:
        """The ids that other memories link to."""
        pairs = ((memory.id, self.target(node, memory.id)) for memory, nodes in self.linking for node in nodes)
        return {target for source, target in pairs if target and target != source}

    @cached_property
    def words(self) -> dict[str, frozenset[str]]:
        return {memory.id: _words(own_text(memory)) for memory in self.progress(self.memories, "comparing")}

    @cached_property
    def _targets(self) -> Targets:
        return Targets(self.ids)

    def target(self, node: str, source: str) -> str | None:
        """The id of the memory that a link of another means; None when there is none."""
        return self._targets.find(node, source)

    def command(self, *words: str) -> str:
        return command_line(self.folder, *words)

    def item(
        self, memory: Memory, reason: str, *options: Sequence[str], action: str = LOOK, others: tuple[str, ...] = ()
    ) -> Item:
        """A step about a memory. `options` are the words of the commands to choose from where it is not safe."""
        commands = tuple(self.command(*words) for words in options) if action == LOOK else ()
        return Item(memory.id, action, reason, memory.title, others=others, options=commands)

    def completed(self, item: Item, kind: str) -> Item:
        """The item with its kind and its command line, and no secret in it."""
        command = ""
        if shown(item.id) == item.id:
            command = self.command("review", "--apply" if item.safe else "--show", "--only", kind, item.id)
        reason, title = redacted(item.reason), redacted(item.title)
        return replace(item, kind=kind, reason=reason, title=title, command=command)


def own_text(memory: Memory) -> str:
    """The text of a memory without what its lane's form adds."""
    return _LABEL.sub("", memory.text) if memory.lane == "topics" else memory.text


def _words(text: str) -> frozenset[str]:
    """What of a text is compared: its words; where a script has none, its pairs of characters."""
    if not text.isascii() and _UNSPACED.search(text):
        from memlane.index.words import terms

        return frozenset(terms(text))
    return tokens(text)


def changed_at(memory: Memory) -> datetime | None:
    return memory.updated_at or memory.created_at


def is_newer(memory: Memory, other: Memory) -> bool:
    """Whether one memory is known to be newer than another."""
    first, second = changed_at(memory), changed_at(other)
    return first is not None and second is not None and first > second


def by_age(memory: Memory, other: Memory) -> tuple[Memory, Memory, str]:
    """The older and the newer of two, and a note when that is known; where it is not, they stay in this order."""
    older, newer = (other, memory) if is_newer(memory, other) else (memory, other)
    return older, newer, ", which is newer" if is_newer(newer, older) else ""
