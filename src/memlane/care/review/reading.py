"""What a review reads of a bank, and the items that its plan is made of."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from memlane.care.inventory import command_line
from memlane.care.known import Known
from memlane.core.dates import utc_now
from memlane.core.model import Memory, Step
from memlane.core.values import asdict, dataclass, fields, replace
from memlane.gate import SHOWN, redacted
from memlane.gate.likeness import tokens
from memlane.recall.harmless import passing

if TYPE_CHECKING:
    from memlane.bank import Bank

LOOK, ARCHIVE, DELETE = "look at", "archive", "delete"
ALIKE = 0.8  # of the words that either of two texts has, so many are in both
ALIKE_SHORT, SHORT = 0.7, 30  # in texts of so many words at most, one word more or less weighs more
FEW = 3  # words that say too little to compare
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
    known: Known

    def find(self, id: str) -> Memory | None:
        """A memory that counts: neither archived, held back nor expired."""
        for path, status in self.known.rows("SELECT path, status FROM entries WHERE id = ?", id):
            if status != "archived" and self.counts(path, id):
                return self.known.memory(path, id)
        return None

    def chosen(self, where: str, *values: object) -> Iterator[Memory]:
        """The memories of which this is so in the table `entries`, by id; none that does not count."""
        for path, id in sorted(self.known.entries("", f"status IS NOT 'archived' AND ({where})", *values), key=_by_id):
            if self.counts(path, id) and (memory := self.known.memory(path, id)):
                yield memory

    def facts(self, kind: str) -> Iterator[tuple[Memory, Any]]:
        """The memories that have a fact of this kind, and what it says, by id."""
        for _, id, value in sorted(self.known.of(kind), key=_by_id):
            if memory := self.find(id):
                yield memory, value

    @cached_property
    def expired(self) -> set[tuple[str, str]]:
        """(file, id) of the notes whose time is over; no other lane has such a time."""
        over = self.known.entries("", "lane = 'notes' AND expires <= ?", utc_now().timestamp())
        return {(path, id) for path, id in over if (path, id) not in self.known.held}

    def counts(self, path: str, id: str) -> bool:
        """Whether a memory is neither held back nor expired."""
        return (path, id) not in self.known.held and (path, id) not in self.expired

    @cached_property
    def links(self) -> dict[str, list[tuple[str, str, str]]]:
        """(node, edge type, context) of the links of each memory that has any, by id."""
        archived = {id for _, id in self.known.entries("", "status = 'archived'")}
        return {
            id: [(node, edge, context) for node, edge, context in json.loads(links)]
            for path, id, links in sorted(self.known.of("links"), key=_by_id)
            if id not in archived and self.counts(path, id)
        }

    def linking(self) -> Iterator[tuple[str, str, list[str]]]:
        """As `Known.linking`, of what counts, by id."""
        return ((id, path, nodes) for id, path, nodes in sorted(self.known.linking) if id in self.links)

    @cached_property
    def linked(self) -> set[str]:
        """The ids that other memories link to."""
        pairs = ((id, self.target(node, id)) for id, _, nodes in self.linking() for node in nodes)
        return {target for source, target in pairs if target and target != source}

    def target(self, node: str, source: str) -> str | None:
        """The id of the memory that a link of another means; None when there is none."""
        return self.known.targets.find(node, source)

    def remembered(self, kind: str, work_out: Callable[[Reading], Iterator[Item]]) -> Iterator[Item]:
        """The items of a kind that takes long to work out, completed: they are the same until a file changes."""
        aside = self.bank.tombstones.state(), self.bank.replaced.links()  # with what private files say

        def rows() -> list[tuple[Any, ...]]:
            return [_values(item) for item in self.completed(work_out(self), kind)]

        for id, action, reason, title, of, others, command, options, along in self.known.remembered(
            kind, (self.folder, *aside, sorted(self.expired)), rows
        ):
            yield Item(id, action, reason, title, of, tuple(others), command, tuple(options), tuple(along))

    def command(self, *words: str) -> str:
        return command_line(self.folder, *words)

    def item(
        self, memory: Memory, reason: str, *options: Sequence[str], action: str = LOOK, others: tuple[str, ...] = ()
    ) -> Item:
        """A step about a memory. `options` are the words of the commands to choose from where it is not safe."""
        commands = tuple(self.command(*words) for words in options) if action == LOOK else ()
        return Item(memory.id, action, reason, memory.title, others=others, options=commands)

    def completed(self, items: Iterable[Item], kind: str) -> list[Item]:
        """The items with their kind and their command line, and no secret in them."""
        items = list(items)
        texts = ["\0".join((item.id, item.reason, item.title)) for item in items]
        clean = passing(self.bank, "secrets in a plan", texts, lambda text: all(map(_is_clean, text.split("\0"))))
        return [self._completed(item, kind, passes) for item, passes in zip(items, clean, strict=True)]

    def _completed(self, item: Item, kind: str, clean: bool) -> Item:
        reason, title = (item.reason, item.title) if clean else (redacted(item.reason), redacted(item.title))
        command = ""
        if len(item.id) <= SHOWN and (clean or _is_clean(item.id)):
            command = self.command("review", "--apply" if item.safe else "--show", "--only", kind, item.id)
        return replace(item, kind=kind, reason=reason, title=title, command=command)


def _is_clean(text: str) -> bool:
    return redacted(text) == text


_values = attrgetter(*(field.name for field in fields(Item)))


def _by_id(row: Sequence[str]) -> str:
    return row[1]


def words_of(memory: Memory) -> frozenset[str]:
    """What of a memory is compared with others."""
    return _words(own_text(memory))


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
