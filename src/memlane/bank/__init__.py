"""The front object: one bank, all its lanes, the same verbs over them.

A write goes straight to the lane, whose gate may refuse it; when the call returns, the memory is on the disk.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from memlane import config
from memlane.bank.expected import expecting
from memlane.bank.keyed import Keyed
from memlane.bank.opened import verb
from memlane.core.choosing import Expiry, date_given, expiry_given, last_of, scope_given, tags_of
from memlane.core.errors import InvalidInput, MemlaneError
from memlane.core.model import Hit, Link, Memory, Plan, Problem, Removed
from memlane.core.where import where_given
from memlane.lanes import NAMES, unless_forgotten
from memlane.recall import address, under
from memlane.recall.arguments import check_query
from memlane.recall.leaving import briefly, without_secrets

if TYPE_CHECKING:
    from memlane.care.forget import Forgotten
    from memlane.care.fresh.verdicts import Verdict
    from memlane.recall.blocks import Block
    from memlane.recall.clusters import Cluster


class Bank(Keyed):
    """A folder of memory with its configuration. Use `Bank.init` to make one and `Bank.open` to find one."""

    @classmethod
    def init(cls, folder: str | Path = ".", *, user: bool = False, git: bool = False) -> Self:
        """Make a folder a bank and open it: writes memlane.toml and `.memories/`, adopts stores already there.

        Safe to repeat. With `user`, makes the user's own bank instead, which is read in all projects. With `git`, also
        teaches the repository around it to merge memory; captured records are kept out of git in any case: `sharing`.
        """
        from memlane.exchange import adopt, sharing

        adopt.init(Path(folder).expanduser().absolute(), user=user)
        bank = cls.open(folder, **({"memory__storage_strategy": "user"} if user else {}))
        if git or not user:
            sharing.joined(bank.config, git=git)
        return bank

    @classmethod
    def open(cls, folder: str | Path | None = None, **settings: Any) -> Self:
        """Open the bank of a folder or of the nearest one above it.

        Settings override the configuration, with `__` for the dot: `Bank.open(memory__storage_strategy="user")`.
        Raises NotEnabled when there is none, ConfigError when the configuration is wrong. Writes nothing.
        """
        return cls(config.load(folder, {key.replace("__", "."): value for key, value in settings.items()}))

    # -- the verbs over all lanes

    @under.adding
    @verb
    def add(
        self,
        /,
        text: str,
        *,
        lane: str | None = None,
        title: str | None = None,
        tags: Sequence[str] = (),
        type: str | None = None,
        scope: str | None = None,
        thread: str | None = None,
        created_at: datetime | str | None = None,
        replaces: str | None = None,
        expires: Expiry = None,
        extra: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Memory:
        """Remember a text, as a note unless `lane` says else. Durable when it returns.

        A text that is there already is not written again (`duplicate`); what is much like it is named (`similar`).
        The scope `user` stores it in the user's own bank, which is read in every project: see `memlane.recall.under`.
        `replaces` is the id of a memory whose place this takes. From `expires` on, a time or a span such as "30d", a
        note is in no answer, and a review removes it. `fields` are the lane's own (a vault record's `tier`,
        a topic's `problem`), `extra` any others. Raises Refused by the gate, NotFound, InvalidInput, AlreadyExists,
        StorageError; then nothing is written.
        """
        from memlane.recall.adding import add, drafted

        labels: dict[str, Any] = {"title": title, "tags": tags, "type": type, "scope": scope, "thread": thread}
        draft = drafted(text, **labels, created_at=created_at, replaces=replaces, expires=expires, fields=fields)
        memory = add(self, draft, lane, extra or {})
        return memory if memory.duplicate else self._anchored(self._indexed(memory), is_new=True)

    def list(
        self,
        *,
        limit: int | None = None,
        offset: int = 0,
        lane: str | None = None,
        tags: Sequence[str] = (),
        type: str | None = None,
        status: str | None = None,
        scope: str | Sequence[str] | None = None,
        project: str | None = None,
        thread: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        where: Mapping[str, Any] | None = None,
        archived: bool = False,
        expired: bool = False,
        brief: bool = False,
    ) -> builtins.list[Memory]:
        """Memories, the newest first; those without a date come last. `tags` and `scope` mean any of them.

        The scope `team/*` stands for all that begin like it, `where` asks about fields: see `memlane.core.where`.
        Archived ones are left out, unless they are asked for by `archived` or `status="archived"`, and so are those
        that have `expired`. With `brief`, which
        is quicker, a text is its first line. `offset` leaves out so many of the first.
        """
        from memlane.recall import listing

        filters: dict[str, Any] = {
            "tags": tags, "type": type, "status": status, "scope": scope, "project": project, "thread": thread,
            "since": since, "until": until, "where": where, "archived": archived, "expired": expired,
        }  # fmt: skip
        found = listing.chosen(self, limit=limit, offset=offset, lane=lane, brief=brief, **filters)
        return listing.clean(self, briefly(found) if brief else found)

    def search(
        self,
        query: str,
        limit: int | None = None,
        *,
        offset: int = 0,
        tags: Sequence[str] = (),
        type: str | None = None,
        lane: str | None = None,
        status: str | None = None,
        scope: str | Sequence[str] | None = None,
        project: str | None = None,
        thread: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        where: Mapping[str, Any] | None = None,
        archived: bool = False,
        expired: bool = False,
        order: str = "best",
        wait: float | None = None,
    ) -> builtins.list[Hit]:
        """The best five memories for a query, best first; filters apply before the cut, `tags` means any of them.

        `where` asks about fields: see `memlane.core.where`. `offset` leaves out so many of the first.
        With order "time", everything that is about it, the newest first; with a limit, the best so many of these.
        "Quoted phrases" must occur and -words must not. `scope`, one or several, leaves out the memories of others:
        see `memlane.recall.scopes`. Archived and expired memories are left out unless asked for. A bank that is not
        indexed yet is indexed first; with `wait`, for so many seconds at most: then the answer comes from what is
        there, and `bank.index.complete` is False.
        """
        from memlane.index.fields import Asked
        from memlane.recall import finding

        limit = finding.limit_of(limit, order, offset)
        check_query(query, limit, type=type, lane=lane, status=status, project=project, thread=thread)
        if lane is not None and lane not in NAMES:
            raise InvalidInput("There is no such lane.", hint=f"Use one of: {', '.join(NAMES)}.")
        first, last = date_given(since, "since"), date_given(until, "until", end_of_day=True)
        filters = {
            "tags": tags_of(tags), "type": type, "lane": lane, "status": status, "project": project,
            "since": first.timestamp() if first else None, "until": last.timestamp() if last else None,
            "archived": archived, "asked": Asked(where_given(where), thread, expired),
        }  # fmt: skip
        found = finding.found(self, query, last_of(limit, offset), filters, scope, wait)
        hits = finding.ordered(found, order)
        return without_secrets(self, hits[offset:])

    def snapshot(
        self,
        scopes: str | Sequence[str] | None = None,
        *,
        budget: int | None = None,
        recent: int | None = None,
        files: Sequence[str] = (),
        branch: str | None = None,
        without: Collection[str] = (),
        count: Callable[[str], int] | None = None,
        wait: float | None = None,
    ) -> Block:
        """What belongs in every prompt: the user's rules, canon, registers with a topic, and `pinned` notes.

        With `recent`, also what a session should start with: rules of others, open work (but not that of another
        `branch` of git), what is about `files` (paths in the project), and so many of the rest. `scopes` leave out what
        is in others (default: the profile's), `without` names ids that the prompt has already. With `budget`, at most
        so many tokens, counted by `count`.
        With `wait`, no more than so many seconds go to files that are not indexed, the newest first: then a pinned note
        may be missed. "" when there is nothing, or the profile is switched off. Writes nothing.
        """
        from memlane.recall.prompts import snapshot

        return snapshot(self, scopes, budget, recent, count, wait, files=files, branch=branch, without=without)

    def context(
        self,
        query: str,
        budget: int = 1000,
        *,
        scope: str | Sequence[str] | None = None,
        scopes: str | Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        without: Collection[str] = (),
        least: float = 0.0,
        order: str = "best",
        count: Callable[[str], int] | None = None,
        wait: float | None = None,
    ) -> Block:
        """The memories that a prompt should know of, as a block of at most `budget` tokens, counted by `count`.

        `scope`, one or several (default: the profile's), leaves out what is in others; `scopes` is another name for it,
        as `snapshot` has it. `without` names ids that the prompt has already.
        Hits whose relevance is below `least` do not count; `blocks.RELEVANT` is a good value where nobody asked for
        memories. "" when nothing is relevant. `where`, `order` and `wait` are those of `search`.
        """
        from memlane.recall.prompts import context

        if scope is not None and scopes is not None:
            raise InvalidInput("scope and scopes are both given.", hint="They mean the same: give one of them.")
        scopes = scopes if scope is None else scope
        return context(self, query, budget, scopes, without, least, count, wait, order, where_given(where))

    def for_prompt(
        self, prompt: str, *, without: Collection[str] = (), budget: int | None = None, wait: float | None = None
    ) -> Block:
        """What the prompt hook gives a prompt, unasked: the two or three memories that it is about, a line each.

        "" for small talk, questions about this moment and general knowledge. `without` and `wait` are those of
        `context`; the budget is the hook's unless given.
        """
        from memlane.recall.prompts import for_prompt

        return for_prompt(self, prompt, without, budget, wait)

    def embed(self, query: str, limit: int = 3, max_tokens: int = 1000) -> Block:
        """The two or three entries of topics that a prompt should know of, as a block of at most so many tokens.

        Chosen as `bank.topics.embed` does, and written as `context` is. Long ones are cut, so that there are two.
        """
        from memlane.recall.prompts import embed

        return embed(self, query, limit, max_tokens)

    def fresh(self, ids: Sequence[str] | None = None) -> builtins.list[Verdict]:
        """What became of the code that memories speak of: of all that do, or of these. Reading resets nothing.

        What is not anchored yet is anchored to the code as it is now. Raises NotFound. A bank that several projects
        share has no code to be compared with, and no verdicts.
        """
        watch = self.watch
        return list(watch.report(self, ids).verdicts) if watch else []

    @verb
    def accept(self, id: str) -> Verdict:
        """Say that a memory is right about the code as it is now; what is gone is not watched any more.

        Writes anchors.jsonl. Raises NotFound when it speaks of no code, StorageError.
        """
        from memlane.care.fresh import verdicts

        left = verdicts.accept(self, [id]).verdicts
        return left[0] if left else verdicts.Verdict(address.get(self, id).id, verdicts.FRESH, ())

    @verb
    def anchor(self, id: str) -> None:
        """Note what the code is that a memory names, after one of a lane's own verbs wrote it. Never fails a write.

        `add`, `update` and `append` do it by themselves; what nobody anchored, `fresh` anchors when it first sees it.
        """
        with suppress(MemlaneError):
            self._anchored(address.get(self, id))

    def linked(self, target: str, query: str = "", limit: int = 5) -> builtins.list[Link]:
        """Memories that link to a file (`src/auth.py`) or a memory by any of its names, ranked by the query."""
        from memlane.recall.graph import linked

        check_query(query, limit)
        check_query(target, limit)
        return without_secrets(self, linked(self, target, query, limit))

    def graph(self) -> dict[str, Any]:
        """All memories and what they link to, as nodes and edges; targets that are no memory are ghosts."""
        from memlane.care.graph import graph

        return graph(self)

    def suggest_merges(
        self, threshold: float = 0.85, limit: int = 5, type: str | None = "journal"
    ) -> builtins.list[Cluster]:
        """Groups of memories that say much the same. `threshold` means the same for every encoder. Changes nothing."""
        from memlane.recall.clusters import suggest_merges

        if not isinstance(threshold, int | float) or not 0 <= threshold <= 1:
            raise InvalidInput("The threshold is not between 0 and 1.", hint="0.85 is the default.")
        check_query("", limit, type=type)
        held = self.tombstones.held if self.tombstones.any() else None
        found = self.index.ask(
            lambda: suggest_merges(self.index, threshold=threshold, limit=limit, type=type, held=held)
        )
        return without_secrets(self, found)

    def review(self, /, **chosen: Any) -> Plan:
        """What the bank as a whole needs; `chosen` narrows it, as `memlane.care.review.plan` says. Changes nothing."""
        from memlane.care.review import plan

        return plan(self, **chosen)

    @verb
    def apply(self, plan: Plan) -> Plan:
        """Carry out what in a plan needs no decision and return what was done; `undo` takes it back."""
        from memlane.care import review

        done = review.apply(self, plan)
        self._look_again()
        return done

    @verb
    def prune(self, *lanes: str, apply: bool = False) -> Plan:
        """What the rules of these lanes (of all) would archive or delete; with `apply`, do it: `undo` takes it back."""
        from memlane.care import prune

        plan = prune.plan(self, lanes)
        if apply:
            plan = prune.apply(self, plan)
            self._look_again()
        return plan

    @under.by_id
    @verb
    def update(self, /, id: str, text: str | None = None, *, expected: str | None = None, **changes: Any) -> Memory:
        """Change a memory's text, or its title, tags, type, scope, expires …; what is not named stays as it is.

        `extra` sets keys of your own in a note, and None removes one. With `expected`, a `Memory.version`, raises
        Conflict where it is another by now; then nothing is written.
        """
        lane, native = address.locate(self, id)
        if text is not None:
            changes["text"] = text
        if not changes:
            raise InvalidInput("There is nothing to change.", hint="Give a new text, or a field such as the tags.")
        if "tags" in changes:
            changes["tags"] = tags_of(changes["tags"])
        scope_given(changes.get("scope"))
        if "expires" in changes:
            changes["expires"] = expiry_given(changes["expires"])
        if "created_at" in changes:
            changes["created_at"] = date_given(changes["created_at"], "created_at")
        is_wanted = "text" in changes
        with (
            nullcontext() if is_wanted else unless_forgotten(self.tombstones, lambda: lane.fetch(native)),
            expecting(self, lane, native, expected),
        ):
            memory = self._indexed(lane.revise(native, changes))
        return self._anchored(memory) if "text" in changes or "scope" in changes else memory

    @under.by_id
    @verb
    def append(self, id: str, text: str, *, expected: str | None = None) -> Memory:
        """Add text to the end of a memory. `expected` is that of `update`."""
        if not isinstance(text, str) or not text.strip():
            raise InvalidInput("There is no text to append.", hint="Give some text.")
        lane, native = address.locate(self, id)
        with (
            unless_forgotten(self.tombstones, lambda: lane.fetch(native)),
            expecting(self, lane, native, expected),
        ):
            memory = lane.extend(native, text)
        return self._anchored(self._indexed(memory))

    @under.by_id
    @verb
    def delete(self, id: str, *, expected: str | None = None) -> Removed:
        """Delete a memory in its lane's own way (trash or tombstone). `restore` undoes it. `expected` is `update`'s.

        Its text stays deleted: capture and import do not bring it back, and a file that comes back is held back. See
        `memlane.disk.tombstones`; `memlane.care.forget` removes a memory for good.
        """
        memory = address.get(self, id)
        lane = self.lane(memory.lane)
        with expecting(self, lane, memory.native_id, expected):
            removed = lane.drop(memory.native_id)
        self.wrote(memory.lane, memory.file)
        return removed

    @under.by_ids
    def forget(self, *ids: str, dry_run: bool = False) -> Forgotten:
        """Remove memories for good, there or deleted: see `memlane.care.forget`. There is no way back.

        Says what was removed, and what may be left where we do not reach. With `dry_run`, changes nothing.
        Raises NotFound before anything is changed, StorageError.
        """
        from memlane.care import forget

        return forget.plan(self, ids) if dry_run else forget.forget(self, ids)

    def stats(self) -> dict[str, Any]:
        """Counts over the whole bank and per lane."""
        from memlane.care.stats import stats

        return stats(self)

    def problems(self) -> builtins.list[Problem]:
        """All damage found on disk, and what a merge has left in several versions. Everything else keeps working."""
        from memlane.care.stats import problems

        return problems(self)
