"""What can be said of a memory by itself: its lane's rules, its links, its age, its size."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Collection, Iterator
from datetime import timedelta

from memlane.care import ages
from memlane.care.inventory import names_below, places
from memlane.care.known import LONG
from memlane.care.links import to_no_file, to_no_memory
from memlane.care.review.reading import ARCHIVE, DELETE, LOOK, Item, Reading, changed_at
from memlane.core.dates import iso, utc_now
from memlane.core.model import UNCONFIRMED, USERS, Memory
from memlane.history import origin
from memlane.history.judging import prompt_of
from memlane.history.working import all_branches
from memlane.lanes import NAMES
from memlane.lanes.layers import aging
from memlane.recall import judged
from memlane.recall.starting import OPEN
from memlane.recall.unconfirmed import FADED, days_untouched

SETTLED = timedelta(days=1)  # an empty note younger than this may be about to be written


def expired(reading: Reading) -> Iterator[Item]:
    for path, id in sorted(reading.expired, key=lambda place: place[1]):
        if memory := reading.known.memory(path, id):
            yield reading.item(memory, f"expired on {iso(memory.expires)}", action=DELETE)


def pruned(reading: Reading) -> Iterator[Item]:
    for name in NAMES:
        if name in reading.lanes:
            answers = reading.bank.lane(name).answers
            for group in answers.grouped(answers.prunable(reading.known).steps):
                first, *rest = [step.id for step in group.steps]
                along = tuple(id for id in rest if id != first)
                options = (reading.command(group.option, first),) if group.option else ()
                others = (*along, *group.others)
                yield Item(first, group.action, group.reason, group.title, others=others, options=options, along=along)


def retention(reading: Reading) -> Iterator[Item]:
    days, count = (reading.bank.config[f"capture.keep_{name}"] for name in ("days", "count"))
    if days or count:
        for record, why in reading.bank.records.prune(keep_days=days, keep_count=count, dry_run=True):
            yield Item(f"records:{os.path.basename(record.path)[:-3]}", ARCHIVE, why, record.subject)


def versions(reading: Reading) -> Iterator[Item]:
    for memory, why in reading.facts("undecided"):
        yield reading.item(memory, why, ("edit", memory.id))


def links(reading: Reading) -> Iterator[Item]:
    dead: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for id, why, fix in to_no_memory(reading.bank, reading.linking(), reading.known.targets, reading.command):
        dead[id].append((why, fix))
    for id, signs in dead.items():
        reasons, fixes = zip(*signs, strict=True)
        options = [fix for fix in fixes if fix.startswith("memlane ")]
        if len(options) < len(fixes):
            options.append(reading.command("edit", id))
        ((title,), *_) = reading.known.rows("SELECT title FROM entries WHERE id = ?", id)
        yield Item(id, LOOK, "; ".join(reasons), title, options=tuple(dict.fromkeys(options)))


def ghosts(reading: Reading) -> Iterator[str]:
    def known(names: Collection[str]) -> set[str]:
        below = (name for place in places(reading.bank) for name in names_below(os.fspath(place)))
        return {name for name in below if name in names} | reading.known.ids_among(names)

    for id, why, _ in to_no_file(reading.bank, reading.linking(), known):
        if id.partition(":")[0] in reading.lanes:
            yield f"{id} {why}"


def stale(reading: Reading) -> Iterator[Item]:
    for id, why in ages.stale(reading.bank):
        if memory := reading.find(id):
            yield reading.item(memory, why, ("edit", id), ("rm", id))
    now = utc_now()
    for memory in reading.chosen("tags LIKE ?", f'%"{UNCONFIRMED}"%'):
        if memory.unconfirmed and (days := days_untouched(memory, now)) >= FADED:
            why = f"was distilled from a session, and neither confirmed nor said again for {days} days"
            keys = [("review", "--only", "unconfirmed", "--key", key, memory.id) for key in "xk"]
            yield reading.item(memory, why, *keys)
    tagged = reading.chosen("tags LIKE ?", f'%"{OPEN}"%')
    work = [memory for memory in tagged if OPEN in memory.tags and memory.fields.get("branch")]
    branches = all_branches(reading.bank) if work else None
    for memory in work:
        if branches is not None and memory.fields["branch"] not in branches:
            why = f"is open work of the branch {memory.fields['branch']}, which is gone: no session is shown it"
            yield reading.item(memory, why, ("edit", memory.id), ("rm", memory.id))


def unconfirmed(reading: Reading) -> Iterator[str]:
    tagged = reading.chosen("tags LIKE ?", f'%"{UNCONFIRMED}"%')
    count = sum(memory.unconfirmed for memory in tagged if memory.lane in reading.lanes)
    if count:
        yield f"not confirmed by anybody: {count:,}; `memlane review --only unconfirmed` goes through them"
    rules = sum(memory.lane in reading.lanes for memory in origin.unproven(reading.bank))
    if rules:
        yield f"rules that are not known to be yours: {rules:,}; `memlane review --only unconfirmed` goes through them"


def drifted(reading: Reading) -> Iterator[Item]:
    from memlane.care.fresh.verdicts import FRESH

    watch = reading.bank.watching()
    if watch is None:
        return  # nothing was compared with the code yet: `memlane review --only drifted --show` begins with it
    for verdict in watch.report(reading.bank, known_files=reading.known).verdicts:
        if verdict.verdict != FRESH and (memory := reading.find(verdict.id)):
            options = (("review", "--accept", verdict.id), ("edit", verdict.id))
            yield reading.item(memory, f"{verdict.verdict}: {verdict.why}", *options)


def too_long(reading: Reading) -> Iterator[Item]:
    for memory in reading.chosen("lane = 'layers'"):
        if warning := aging.size_warning(memory.type or "", memory.fields["line_count"]):
            yield reading.item(memory, warning, ("edit", memory.id))
    for memory, length in reading.facts("long"):
        warning = f"{int(length):,} characters, over {LONG:,}: Split it, or keep a summary."
        yield reading.item(memory, warning, ("edit", memory.id))


def registers(reading: Reading) -> Iterator[Item]:
    for memory in reading.chosen("lane = 'vault'"):
        if memory.fields["tier"] == "register" and not memory.fields["topic_id"]:
            reason = "is a register without a topic: no update finds it, no prompt shows it"
            assign = ("update", memory.id, "--field", "topic_id=KEY")
            yield reading.item(memory, reason, assign, ("vault", "promote", memory.id))


def empty(reading: Reading) -> Iterator[Item]:
    settled = utc_now() - SETTLED
    for memory in reading.chosen("words IS NULL"):
        if not _is_stub(reading, memory):
            when = changed_at(memory)
            sure = memory.lane == "notes" and not memory.fields and (when is None or when < settled)
            yield reading.item(memory, "has no text", ("rm", memory.id), action=DELETE if sure else LOOK)


def stubs(reading: Reading) -> Iterator[str]:
    ids = [memory.id for memory in reading.chosen("words IS NULL") if _is_stub(reading, memory)]
    if ids and "notes" in reading.lanes:
        yield f"notes with a name and no text: {len(ids):,}, such as {ids[0]}"


def _is_stub(reading: Reading, memory: Memory) -> bool:
    """Whether a note without text says something all the same: by its own title, by tags, or as a link's target."""
    named = memory.title not in ("", memory.native_id) or memory.tags or memory.id in reading.linked
    return memory.lane == "notes" and bool(named)


def suspicious(reading: Reading) -> Iterator[Item]:
    for memory, why in reading.facts("suspicious"):
        said = f"reads like words to the model: it {' and '.join(json.loads(why))}"
        yield reading.item(memory, said, ("rm", memory.id))


def judged_wrong(reading: Reading) -> Iterator[Item]:
    """What was judged wrong and says the same still; of the user's own bank, that one lists it."""
    for id, one in sorted(judged.standing(judged.answers(reading.bank)).items()):
        memory = reading.find(id) if one.verdict == judged.WRONG and not id.startswith(USERS) else None
        if memory and judged.holds_back(one, memory):
            prompt = prompt_of(reading.bank, one)
            why = f"was judged wrong on {(iso(one.at) or '')[:10]}{f', for: {prompt}' if prompt else ''}"
            yield reading.item(memory, why, ("edit", id), ("rm", id), ("judge", id, "none"))
