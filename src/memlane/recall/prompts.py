"""Which memories a prompt gets: the snapshot for every prompt, the context for one. How they look is `blocks.py`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from memlane.core import triggers
from memlane.core.choosing import Fits, date_of
from memlane.core.dates import utc_now
from memlane.core.errors import InvalidInput
from memlane.core.model import USERS, Hit, Memory
from memlane.core.text import estimate
from memlane.core.where import Where
from memlane.disk.names import is_private
from memlane.index.fields import Asked
from memlane.index.peek import Peek
from memlane.recall import asking, judged, starting, under
from memlane.recall import scopes as scopes_
from memlane.recall.arguments import check_query
from memlane.recall.blocks import (
    CANDIDATES,
    CHOSEN,
    RELEVANT,
    WHOLE,
    Block,
    Composer,
    LeftOut,
    without_blocks,
    worth_showing,
)
from memlane.recall.harmless import suspicious
from memlane.recall.leaving import without_secrets
from memlane.recall.starting import PINNED, is_rule
from memlane.recall.superseded import in_place

if TYPE_CHECKING:
    from memlane.bank import Bank
    from memlane.recall.judged import Judged

Count = Callable[[str], int]
MOST = 3  # memories that a prompt is given unasked
EXTRA = 2  # hits beyond them: some may be replaced by others
SHARE = 0.2  # of the best one's probability that the first must have to be shown; the second twice that, and so on
_LASTING = ("notes", "topics")  # lanes that a session's start is chosen from


def snapshot(
    bank: Bank,
    scopes: str | Sequence[str] | None,
    budget: int | None,
    recent: int | None,
    count: Count | None,
    wait: float | None,
    *,
    files: Sequence[str] = (),
    branch: str | None = None,
    without: Collection[str] = (),
    private: bool = True,
) -> Block:
    """As `Bank.snapshot`; without `private` notes where others will read it."""
    if not bank.profile.enabled:
        return Block.of("")
    at, scopes = under.asked(bank, scopes)
    in_scope = _seen(at, scopes, wait)
    # what one person has judged is left out for that person alone
    hidden = judged.held_back(at) if private else (lambda memory: is_private(memory.id))
    seen = lambda memory: in_scope(memory) and not hidden(memory)  # noqa: E731
    said = ("records",) if at.config["hook.records"] else ()
    groups, moments = _groups(at, seen, recent, wait, (*_LASTING, *said), files, branch)
    if at is not bank:
        moments = {USERS + id: when for id, when in moments.items()}
        groups = [list(map(under.as_users, without_secrets(at, group))) for group in groups]
    elif below := bank.under:
        stays_out = under.hidden(bank, [memory for group in groups for memory in group])
        unwanted = judged.held_back(below)
        # not what was captured: that was said somewhere else
        fits = lambda memory: in_scope(memory) and not stays_out(memory) and not unwanted(memory)  # noqa: E731
        theirs, their_moments = _groups(below, fits, recent, wait, _LASTING)
        moments |= {USERS + id: when for id, when in their_moments.items()}
        groups = [
            [*own, *map(under.as_users, without_secrets(below, users))]
            for own, users in zip(groups, theirs, strict=True)
        ]
    titled = dict(zip((*WHOLE, *CHOSEN), groups, strict=True))
    composer = _composer(bank, count, [memory for group in groups for memory in group])
    if recent is None:  # of rules, every prompt gets the user's own alone
        titled[CHOSEN[0]] = [memory for memory in titled[CHOSEN[0]] if memory.id in composer.rules]
    if without:
        titled = {title: [one for one in group if one.id not in without] for title, group in titled.items()}
    block = _without_secrets(
        bank,
        lambda clean: composer.snapshot({title: clean(group) for title, group in titled.items()}, budget),
    )
    block.moments = moments
    return block


def _groups(
    bank: Bank,
    seen: Fits,
    recent: int | None,
    wait: float | None,
    lanes: Sequence[str],
    files: Sequence[str] = (),
    branch: str | None = None,
) -> tuple[list[list[Memory]], dict[str, tuple[str, ...]]]:
    """Of one bank: canon, registers with a topic, pinned notes, rules, and with `recent` what `starting` chooses; and
    then also when memories apply that say so, by id."""
    present = {lane.name: lane for lane in bank.present()}
    vault = list(filter(seen, bank.memories("vault"))) if "vault" in present else []
    vault.sort(key=lambda memory: (memory.type or "", date_of(memory), memory.id))
    canon = [memory for memory in vault if memory.fields["tier"] == "canon"]
    registers = [memory for memory in vault if memory.fields["tier"] == "register" and memory.fields["topic_id"]]
    names = _LASTING if recent is None else lanes
    unseen = bank.unseen()

    def fits(memory: Memory) -> bool:
        return memory.status != "archived" and seen(memory) and not unseen(memory)

    with Peek(bank.index_file, [lane for name, lane in present.items() if name in names], wait) as peek:
        pinned = [memory for memory in peek.tagged(PINNED) if memory.lane == "notes" and fits(memory)]
        unpinned = lambda memory: memory not in pinned and fits(memory)  # noqa: E731
        others = (
            [starting.rules_in(peek, unpinned), *[[]] * (len(CHOSEN) - 1)]
            if recent is None
            else starting.chosen(peek, unpinned, files, recent, branch)
        )
        having = [] if recent is None else [memory for memory in peek.with_moments() if fits(memory)]
    groups = in_place(bank, (canon, registers, pinned, *others), seen)
    return groups, {memory.id: when for memory in having if (when := triggers.of(memory.fields))}


def context(
    bank: Bank,
    query: str,
    budget: int,
    scopes: str | Sequence[str] | None,
    without: Collection[str],
    least: float,
    count: Count | None,
    wait: float | None,
    order: str = "best",
    where: Where = (),
) -> Block:
    """As `Bank.context`."""
    if not isinstance(budget, int) or budget < 0:
        raise InvalidInput("The budget is not a number of tokens.", hint="1000 is the default.")
    from memlane.recall.finding import found, limit_of, ordered

    check_query(query, CANDIDATES)
    limit_of(None, order)
    fetched = CANDIDATES + len(without)  # what must not be shown leaves its place to others
    seen = scopes_.seen(bank, None, wait) if scopes is None else scopes
    hits = found(bank, query, fetched, {"asked": Asked(where)}, seen, wait)
    shown = [hit for hit in hits if hit.memory.id not in without]
    from memlane.recall.graph import about_files  # NumPy, which a snapshot does without

    at, _ = under.asked(bank, scopes)
    named = bank.index.ask(lambda: about_files(bank.index, query), look=False) if least and at is bank else set()
    shown = [hit for hit in shown[:CANDIDATES] if hit.why["relevance"] >= least or hit.memory.id in named]
    known = {*without, *(hit.memory.id for hit in shown)}
    replaced = [hit.memory for hit in shown if hit.memory.superseded_by in known]
    shown = [hit for hit in shown if hit.memory not in replaced]
    old = [LeftOut(memory.id, f"{memory.superseded_by} took its place") for memory in replaced]
    shown, weak = (ordered(shown, order), []) if order == "time" else worth_showing(shown)
    composer = _composer(bank, count, [hit.memory for hit in shown])
    most = bank.profile.max_items
    return _without_secrets(bank, lambda clean: composer.context(clean(shown), budget, most, [*old, *weak]))


def for_prompt(bank: Bank, prompt: str, without: Collection[str], budget: int | None, wait: float | None) -> Block:
    """As `Bank.for_prompt`."""
    if not bank.profile.enabled:
        return Block.of("", nothing="the profile is switched off")
    budget = bank.config["hook.prompt_budget"] if budget is None else budget
    said = without_blocks(prompt)
    nothing = ""
    queries = asking.queries(said)
    verdicts = judged.standing(judged.answers(bank)) if queries else {}
    for query in queries:
        chosen, why_none = _for_query(bank, query, without, wait, verdicts)
        wait = None if wait is None else 0  # any further indexing is left to the next prompt
        composer = _composer(bank, None, [hit.memory for hit in chosen])
        if chosen and (block := composer.brief(without_secrets(bank, chosen), query, budget)):
            return block
        nothing = nothing or why_none or f"{chosen[0].memory.id} does not fit into {budget:,} tokens"
    return Block.of("", nothing=nothing or asking.why_none(said))


def _for_query(
    bank: Bank, query: str, without: Collection[str], wait: float | None, verdicts: Mapping[str, Judged]
) -> tuple[list[Hit], str]:
    """The two or three memories that a query is about; none nearly always, and then why. What the user has judged
    never to be given, or wrong, leaves its place to others.

    Of a project that the user does not trust, nobody gets anything unasked: then these are the user's own.
    """
    from memlane.recall.finding import found
    from memlane.recall.graph import about_files  # NumPy, which a snapshot does without

    only_users = bool(bank.config.distrust and bank.under)
    seen = under.SCOPE if only_users else scopes_.seen(bank, None, wait)
    hits = found(bank, query, MOST + EXTRA + len(without) + len(verdicts), {}, seen, wait)
    named = set() if only_users else bank.index.ask(lambda: about_files(bank.index, query), look=False)
    named |= {hit.memory.id for hit in hits if _names_its_files(hit.memory, query)}
    likely = {hit.memory.id: 1.0 if hit.memory.id in named else hit.relevance for hit in hits}
    least = RELEVANT * asking.doubt(query)
    known = {*without, *(hit.memory.id for hit in hits)}
    held = {hit.memory.id for hit in hits if judged.holds_back(verdicts.get(hit.memory.id), hit.memory)}
    hits = [hit for hit in hits if hit.memory.id not in held]
    best = max((likely[hit.memory.id] for hit in hits), default=0.0)
    chosen: list[Hit] = []
    for hit in hits:
        if hit.memory.id in without or hit.memory.superseded_by in known:
            continue
        if likely[hit.memory.id] >= max(least, SHARE * (len(chosen) + 1) * best):
            chosen.append(hit)
    if chosen:
        return chosen[:MOST], ""
    if unwanted := next((id for id in likely if id in held and likely[id] >= least), ""):
        return [], f"{unwanted} was judged: {verdicts[unwanted].verdict}"
    if not hits:
        return [], "nothing was found" if bank.index.complete else "nothing was found yet: the bank is being indexed"
    first = max((hit.memory for hit in hits), key=lambda memory: likely[memory.id])
    if best < least:
        return [], f"nothing relevant: the best was {first.id} at {best:.2f}, and {least:.2f} is needed"
    if first.id in without:
        return [], f"already shown: {first.id}"
    return [], f"{first.superseded_by} took the place of {first.id}"


def _names_its_files(memory: Memory, query: str) -> bool:
    """Whether a query names a file that the memory applies to, by a pattern in its `when`."""
    moments = triggers.of(memory.fields)
    paths = [word.strip("`'\"()[],:;") for word in query.split() if "/" in word or "." in word] if moments else []
    return any(triggers.fits(moment, path=path) for moment in moments for path in paths)


def for_moment(bank: Bank, memories: Sequence[Memory], call: str) -> Block:
    """A line for each of the first of these memories, which apply at this moment: a tool is called with `call`."""
    verdicts = judged.standing(judged.answers(bank)) if memories else {}
    wanted = [memory for memory in memories if not judged.holds_back(verdicts.get(memory.id), memory)]
    # found by when they apply, so that nobody has to be told when that is
    hits = [Hit(memory, 1.0, "".join(triggers.of(memory.fields)[:1]), "") for memory in wanted[:MOST]]
    composer, budget = _composer(bank, None, memories), bank.config["hook.prompt_budget"]
    block = composer.brief(without_secrets(bank, hits), call, budget)
    block.why = dict.fromkeys(block.why, ("Applies to it", None))
    return block


def embed(bank: Bank, query: str, limit: int, max_tokens: int) -> Block:
    """As `Bank.embed`."""
    for number in (limit, max_tokens):
        if not isinstance(number, int) or number < 0:
            raise InvalidInput("The limits are not numbers.", hint="3 entries and 1000 tokens are the default.")
    from memlane.lanes.topics.drafts import memory_of

    entries = bank.topics.relevant(query, CANDIDATES)
    memories = list(filter(_seen(bank, None, None), map(memory_of, entries)))
    composer = _composer(bank, None, memories)
    return _without_secrets(bank, lambda clean: composer.shares(clean(memories), max_tokens, limit))


def _seen(bank: Bank, scopes: str | Sequence[str] | None, wait: float | None) -> Fits:
    return scopes_.seen(bank, scopes, wait) or (lambda _: True)


def _without_secrets(bank: Bank, write: Callable[[Callable[[Any], Any]], Block]) -> Block:
    """A block without secrets. Only what is in it is looked at; in the rare case that it has one, it is made again."""
    block = write(list)
    if all(
        clean is memory for clean, memory in zip(without_secrets(bank, block.memories), block.memories, strict=True)
    ):
        return block
    return write(partial(without_secrets, bank))


def _composer(bank: Bank, count: Count | None, memories: Sequence[Memory]) -> Composer:
    root = bank.config.project or bank.root
    known = (bank.changed_code(memories), *bank.whose(memories, {memory.id for memory in memories if is_rule(memory)}))
    return Composer(root, utc_now().date(), count or estimate, *known, partial(suspicious, bank))
