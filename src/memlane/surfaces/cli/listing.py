"""The lines of `memlane list`.

Whoever lists all of a large bank has mostly listed it before. Then its lines come straight from the index: id and title
from the beginning of a row, the day from its date, and no memory is made of it. They are taken in pages, which end
where the digest of a row says so, so that a new memory changes one page alone. Whether the long way has the same lines
for a page (it reads each row, and looks for what is held back and for secrets) is found out once. That it has is noted,
as `memlane.recall.harmless` notes what has no secrets; where it has not, it is gone again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from memlane.core.choosing import Fits, list_order
from memlane.core.dates import iso
from memlane.core.invisible import escaped
from memlane.core.model import Memory
from memlane.index.peek import Peek
from memlane.index.rows import loaded
from memlane.recall import harmless, leaving, listing
from memlane.recall.superseded import marked
from memlane.surfaces.cli.output import guards_of, titled, titled_lines

if TYPE_CHECKING:
    from memlane.bank import Bank

_STRING = r'[^"\\]*(?:\\.[^"\\]*)*'
_HEAD = re.compile(rf'\{{"id": "{_STRING}", "lane": "[a-z]+", "title": "([^"\\]*(\\.[^"\\]*)*)", ')  # of a row's JSON
_LAST = 4  # a row whose digest begins with a byte below this is the last of its page: one in 64
_DAY = 86_400  # seconds
_NEVER = -listing.FAR  # instead of the date that a memory has not
_LAST_OF_ALL = float("inf")  # where such a memory stands, as in `list_order`
_ASKED = 500  # rows in one question
_AT_ONCE = 20  # pages that are read together
Placed = tuple[float, str, str, bytes, int, Memory | None]  # by date and id: line, digest and number of a row; a memory


def lines(bank: Bank, chosen: Mapping[str, Any]) -> Iterable[str]:
    """The lines of the memories that are chosen as by `bank.list`, secrets blanked."""
    whole = listing.whole(bank, **chosen)
    if whole is None:
        return _long(bank, listing.chosen(bank, **chosen, brief=True))
    indexed = [name for name in whole.lanes if name in listing.IN_INDEX]
    with Peek(bank.index_file, [lane for lane in bank.present() if lane.name in indexed]) as peek:
        found = peek.answer(lambda: _in_pages(bank, peek, whole))
    return found[whole.offset :]


def _long(bank: Bank, memories: Iterable[Memory], *, many: bool = False) -> Iterator[str]:
    return titled_lines(bank, memories, _cells, many=many)


def _cells(memory: Memory) -> tuple[str, str, str]:
    return memory.id, (iso(memory.created_at or memory.updated_at) or "")[:10], titled(memory)


def _in_pages(bank: Bank, peek: Peek, whole: listing.Whole) -> list[str]:
    """All lines. Raises ValueError where a row is not what was written."""
    unseen = bank.unseen(expired=whole.expired)

    def may_show(memory: Memory) -> bool:
        return whole.fits(memory) and not unseen(memory)

    pages = list(_pages(sorted(_placed(bank, peek, whole, may_show), key=itemgetter(0, 1))))
    check = f"list {sorted(map(leaving.check_of, guards_of(bank)))} {bank.tombstones.state()}"
    texts = list(map(_text, pages))
    noted = harmless.passing(bank, check, texts, lambda _: False, apart="pages")
    found = [_short(page) if is_noted else [] for page, is_noted in zip(pages, noted, strict=True)]
    others = [at for at, is_noted in enumerate(noted) if not is_noted]
    same: set[str] = set()
    for at, lines in zip(others, _read(bank, peek, [pages[at] for at in others], may_show), strict=True):
        found[at] = lines
        if lines == _short(pages[at]):
            same.add(texts[at])
    harmless.passing(bank, check, [texts[at] for at in others], same.__contains__, apart="pages")
    return list(chain.from_iterable(found))


def _placed(bank: Bank, peek: Peek, whole: listing.Whole, may_show: Fits) -> Iterator[Placed]:
    """Every memory that may be listed, in no order; those with more to be said of them than a row has were read."""
    links = bank.replaced.links()
    special = {*links, *(new for ids in links.values() for new in ids)}
    ending = peek.ending()
    days: dict[float, str] = {_NEVER // _DAY: ""}
    head, after, before = _HEAD.match, *whole.between
    for n, created, id, digest, data, _ in peek.rows(whole.fits):
        match = head(data)
        when = _NEVER if created is None else created
        if match is None or not after <= when < before or n in ending or id in special:
            memory = loaded(data, digest)
            if may_show(memory):
                yield (*list_order(memory), "", b"", 0, memory)
            continue
        day = when // _DAY
        if day not in days:
            days[day] = datetime.fromtimestamp(when, UTC).date().isoformat()
        title = match[1] if match[2] is None else json.loads(f'"{match[1]}"')
        line = f"{id}\t{days[day]}\t{' '.join(title.split())}"
        yield _LAST_OF_ALL if created is None else -when, id, line, digest, n, None
    elsewhere = [memory for name in whole.lanes if name not in listing.IN_INDEX for memory in bank.memories(name)]
    for memory in filter(may_show, (*peek.read(), *elsewhere)):
        yield (*list_order(memory), "", b"", 0, memory)


def _pages(placed: Iterable[Placed]) -> Iterator[list[Placed]]:
    """What stands together; a memory that was read stands alone."""
    page: list[Placed] = []
    for one in placed:
        if one[5] and page:
            yield page
            page = []
        page.append(one)
        if one[5] or one[3][0] < _LAST:
            yield page
            page = []
    if page:
        yield page


def _text(page: Sequence[Placed]) -> str:
    """What a page is known by: its lines, and the digests of all that its rows say."""
    return "\n".join([*[one[2] for one in page], b"".join([one[3] for one in page]).hex()])


def _short(page: Sequence[Placed]) -> list[str]:
    return escaped("\n".join([one[2] for one in page])).split("\n")


def _read(bank: Bank, peek: Peek, pages: Iterable[Sequence[Placed]], may_show: Fits) -> Iterator[list[str]]:
    """The lines of each page the long way, many pages at a time."""
    pages = iter(pages)
    while some := list(islice(pages, _AT_ONCE)):
        rows = [one for page in some for one in page if one[5] is None]
        known = {
            id: memory
            for start in range(0, len(rows), _ASKED)
            for id, memory in peek.numbered([one[4] for one in rows[start : start + _ASKED]]).items()
        }
        items = ([memory or known.get(id) for _, id, *_, memory in page] for page in some)
        memories = [[item for item in page if item and may_show(item)] for page in items]
        lines = _long(bank, marked(bank, chain.from_iterable(memories)), many=True)
        for own in memories:
            yield list(islice(lines, len(own)))
