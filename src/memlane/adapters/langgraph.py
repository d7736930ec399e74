"""A store of LangGraph's on a bank: long-term memory for graphs and agents, one note for each item.

    graph = builder.compile(store=MemlaneStore(bank))

A note says the item's texts in its body, for people and for search, and in its front matter, under `langgraph`, which
item it is: namespace, key and value. Without `index`, a query is answered by memlane's own ranking; with it, as the
contract says, by the cosine of the vectors that its embedder makes, which are kept under `indices/`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
import uuid
from base64 import b64decode, b64encode
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar

from memlane.adapters import missing
from memlane.bank import Bank
from memlane.core.dates import iso, moment, utc_now
from memlane.core.errors import Conflict, NotFound
from memlane.core.front_matter import MAX_FRONT, FrontMatterError, load_front, render_front
from memlane.core.model import Memory
from memlane.disk import derived, files, journal, log
from memlane.recall.leaving import without_secrets
from memlane.recall.listing import memories

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        PutOp,
        SearchItem,
        SearchOp,
        ensure_embeddings,
        get_text_at_path,
        validate_op_namespace,
    )
except ImportError as error:
    raise missing("langgraph", "langgraph", "langgraph-checkpoint") from error

FOLDER = "langgraph"  # of the notes that are items, and the key of what they say about themselves
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda one, other: bool(one == other),
    "$ne": lambda one, other: bool(one != other),
    "$gt": lambda one, other: float(one) > float(other),
    "$gte": lambda one, other: float(one) >= float(other),
    "$lt": lambda one, other: float(one) < float(other),
    "$lte": lambda one, other: float(one) <= float(other),
}
Vector = list[float]
T = TypeVar("T")


class _Kept(NamedTuple):
    """An item as its note says it."""

    memory: Memory
    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any]
    updated: datetime
    paths: Any  # the fields that are searched by: those that its put named, False for none, None for the store's
    ttl: float | None  # minutes


class _Embed(NamedTuple):
    """How vectors are made in this call: by waiting, or by awaiting in the caller's event loop."""

    documents: Callable[[list[str]], list[Vector]]
    query: Callable[[str], Vector]


class MemlaneStore(BaseStore):
    """A store on a bank. `index` and `ttl` are the contract's `IndexConfig` and `TTLConfig`.

    What the gate refuses raises Refused from `put`; then nothing of its batch is stored.
    """

    supports_ttl = True

    def __init__(self, bank: Bank, *, index: Any = None, ttl: Any = None) -> None:
        self.bank = bank
        self.index_config = dict(index) if index else None
        self.ttl_config = ttl
        self.embeddings = ensure_embeddings(index["embed"]) if index and index.get("embed") else None
        self._fields = list((index or {}).get("fields") or (index or {}).get("text_fields") or ["$"])
        self._vectors = _Vectors(bank, index) if self.embeddings else None
        self._stopped = threading.Event()
        self._sweeper: threading.Thread | None = None

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        """Carry out operations: reads see what was there before, and of several puts of a key the last one counts."""
        made = self.embeddings
        return self._batch(list(ops), _Embed(made.embed_documents, made.embed_query) if made else None)

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        """`batch` in a thread, so that the event loop goes on; it embeds in the loop."""
        loop, made = asyncio.get_running_loop(), self.embeddings

        def wait(call: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., T]:
            return lambda given: asyncio.run_coroutine_threadsafe(call(given), loop).result()

        embed = _Embed(wait(made.aembed_documents), wait(made.aembed_query)) if made else None
        return await asyncio.to_thread(self._batch, list(ops), embed)

    # -- time to live

    def sweep_ttl(self) -> int:
        """Delete what has expired, and say how much that was."""
        now = utc_now()
        gone = self._all((), lambda item: item.memory.expired(now), self.bank.unseen(expired=True))
        with journal.acting("python", "langgraph"), journal.change("store sweep"):
            for item in gone:
                self._delete(item)
        return len(gone)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> None:
        """Sweep in a thread of its own, by default as often as the configuration says, or every five minutes."""
        minutes = sweep_interval_minutes or (self.ttl_config or {}).get("sweep_interval_minutes") or 5
        if self._sweeper is None or not self._sweeper.is_alive():
            self._stopped.clear()
            self._sweeper = threading.Thread(target=self._sweep, args=(minutes * 60,), daemon=True)
            self._sweeper.start()

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Let the thread end; whether it has."""
        self._stopped.set()
        if self._sweeper is not None:
            self._sweeper.join(timeout)
        return self._sweeper is None or not self._sweeper.is_alive()

    def _sweep(self, seconds: float) -> None:
        while not self._stopped.wait(seconds):
            self.sweep_ttl()

    # -- the operations

    def _batch(self, ops: list[Any], embed: _Embed | None) -> list[Any]:
        for op in ops:
            validate_op_namespace(op)
        results = [self._read(op, embed) for op in ops]
        puts = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        self._write(list(puts.values()), embed)
        return results

    def _read(self, op: Any, embed: _Embed | None) -> Any:
        if isinstance(op, GetOp):
            found = self._get(op.namespace, op.key)
            return next((Item(**item) for item in self._handed(found, op.refresh_ttl)), None)
        if isinstance(op, SearchOp):
            items, scores = self._search(op, embed)
            handed = zip(items, self._handed(items, op.refresh_ttl), strict=True)
            return [SearchItem(**item, score=scores.get(kept.memory.id)) for kept, item in handed]
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        if isinstance(op, PutOp):
            return None
        raise ValueError(f"Unknown operation type: {type(op)}")

    def _write(self, puts: list[Any], embed: _Embed | None) -> None:
        drafts = [self._draft(op) for op in puts if op.value is not None]
        if len(puts) > 1:  # one alone is checked when it is stored
            for name, text, given in drafts:
                self.bank.check(text, title=given["title"], filename=f"{name}.md", **given["extra"])
        if embed and self._vectors:
            texts = [text for op in puts if op.value is not None for text in self._texts(dict(op.value), op.index)]
            self._vectors.of(texts, embed)
        with journal.acting("python", "langgraph"), journal.change("store"):
            for op in puts:
                if op.value is None and (old := self._get(op.namespace, op.key)):
                    self._delete(old[0])
            for name, text, given in drafts:
                self.bank.put(name, text, **given)

    def _draft(self, op: Any) -> tuple[str, str, dict[str, Any]]:
        """The name of an item's note, its text, and what else `put` is to be given."""
        value = json.loads(json.dumps(dict(op.value)))
        now = utc_now()
        own: dict[str, Any] = {"namespace": list(op.namespace), "key": op.key, "updated": iso(now)}
        if op.index is not None:
            own["index"] = op.index
        expires = None
        if op.ttl is not None:
            own["ttl"], expires = op.ttl, now + timedelta(minutes=op.ttl)
        text = self._body(value, op.index)
        if _fits_front({**own, "value": value}):
            own["value"] = value
        else:
            text = json.dumps(value, ensure_ascii=False)
        title = None if _is_uuid(op.key) else op.key
        return _name(op.namespace, op.key), text, {"title": title, "expires": expires, "extra": {FOLDER: own}}

    def _body(self, value: Mapping[str, Any], index: Any) -> str:
        """What people read and memlane searches: the texts of the item."""
        paths = index or self._fields
        if index is False or paths == ["$"]:
            leaves = list(_leaves(value))
            text = leaves[0][1] if len(leaves) == 1 else "\n".join(f"{name}: {said}" for name, said in leaves)
        else:
            text = "\n\n".join(text for path in paths for text in get_text_at_path(value, path))
        return text if text.strip() else json.dumps(value, ensure_ascii=False)

    def _texts(self, value: dict[str, Any], index: Any) -> list[str]:
        """What an embedder is given of an item, by the contract."""
        return (
            [] if index is False else [text for path in index or self._fields for text in get_text_at_path(value, path)]
        )

    def _delete(self, item: _Kept) -> None:
        with suppress(NotFound):
            self.bank.delete(item.memory.id)

    # -- finding

    def _get(self, namespace: tuple[str, ...], key: str) -> list[_Kept]:
        try:
            memory = self.bank.notes.fetch(_name(namespace, key))
        except NotFound:
            return []
        item = None if self._unseen()(memory) else _kept(memory)
        return [item] if item and (item.namespace, item.key) == (tuple(namespace), key) else []

    def _unseen(self) -> Callable[[Memory], bool]:
        """Whether a note is not to be read. What has expired is read until a sweep, where the configuration lets it."""
        return self.bank.unseen(expired=not (self.ttl_config or {}).get("omit_expired"))

    def _all(
        self,
        prefix: tuple[str, ...],
        fits: Callable[[_Kept], bool] = lambda _: True,
        unseen: Callable[[Memory], bool] | None = None,
    ) -> list[_Kept]:
        """The items below a namespace, those that were changed last first."""
        unseen = unseen or self._unseen()
        found = memories(self.bank, "notes", lambda memory: FOLDER in memory.fields and not unseen(memory))
        items = [item for memory in found if (item := _kept(memory)) and item.namespace[: len(prefix)] == prefix]
        return sorted(filter(fits, items), key=lambda item: item.updated, reverse=True)

    def _search(self, op: Any, embed: _Embed | None) -> tuple[list[_Kept], dict[str, float]]:
        """A page of the items that fit, and the scores by id. A query leaves none out: it says which come first."""
        items = self._all(tuple(op.namespace_prefix), _filter(op.filter or {}))
        scores: dict[str, float] = {}
        if op.query and items:
            scores = self._cosines(op.query, items, embed) if embed else self._ranking(op, items)
        scored = [item for item in items if item.memory.id in scores]
        scored.sort(key=lambda item: -scores[item.memory.id])
        others = [item for item in items if item.memory.id not in scores]
        return [*scored, *others][op.offset : op.offset + op.limit], scores

    def _ranking(self, op: Any, items: list[_Kept]) -> dict[str, float]:
        """The scores of memlane's own search: of as many items as are asked for, or of all that it finds."""
        wanted = {item.memory.id for item in items if item.paths is not False}
        enough = min(op.offset + op.limit, len(wanted))
        label = op.namespace_prefix[-1] if op.namespace_prefix else {"$exists": True}
        limit = 2 * enough + 20
        while True:  # the rest of what is asked for is known of the hits alone
            where = {f"{FOLDER}.namespace": label}
            hits = self.bank.search(op.query, limit=limit, lane="notes", archived=True, expired=True, where=where)
            found = {hit.memory.id: hit.score for hit in hits if hit.memory.id in wanted}
            if len(hits) < limit or len(found) >= enough:
                return found
            limit *= 4

    def _cosines(self, query: str, items: list[_Kept], embed: _Embed) -> dict[str, float]:
        """The cosine of the query with the nearest text of each item that has any."""
        import numpy as np

        assert self._vectors is not None  # noqa: S101 - there is an embedder
        texts = {item.memory.id: self._texts(item.value, item.paths) for item in items}
        vectors = self._vectors.of([text for said in texts.values() for text in said], embed)
        asked = np.asarray(embed.query(query), float)

        def cosine(text: str) -> float:
            vector = np.asarray(vectors[text], float)
            lengths = float(np.linalg.norm(vector) * np.linalg.norm(asked))
            return float(vector @ asked) / lengths if lengths else 0.0

        return {id: max(map(cosine, said)) for id, said in texts.items() if said}

    def _namespaces(self, op: Any) -> list[tuple[str, ...]]:
        conditions = op.match_conditions or ()
        found = {item.namespace for item in self._all(())}
        found = {namespace for namespace in found if all(_matches(one, namespace) for one in conditions)}
        if op.max_depth is not None:
            found = {namespace[: op.max_depth] for namespace in found}
        return sorted(found)[op.offset : op.offset + op.limit]

    def _handed(self, items: list[_Kept], refresh: bool) -> list[dict[str, Any]]:
        """What the caller is given of items, without secrets of other hands; they live on from now."""
        if refresh and (self.ttl_config or {}).get("refresh_on_read"):  # a read writes where it is told to
            for item in items:
                if item.ttl is not None:
                    self._refresh(item)
        clean = without_secrets(self.bank, [item.memory for item in items])
        return [
            {
                "namespace": item.namespace,
                "key": item.key,
                "value": _value(memory),
                "created_at": memory.created_at or item.updated,
                "updated_at": item.updated,
            }
            for item, memory in zip(items, clean, strict=True)
        ]

    def _refresh(self, item: _Kept) -> None:
        """Let an item live from now on again. It was read, not changed: there is nothing to undo."""
        expires = utc_now() + timedelta(minutes=item.ttl or 0)
        [seen] = without_secrets(self.bank, [item.memory])
        with suppress(Conflict, NotFound), journal.paused():  # who put or deleted it meanwhile knows better
            self.bank.update(item.memory.id, expected=seen.version, expires=expires)


class _Vectors:
    """The vectors of the caller's embedder, by text: derived, kept in a file, and made again where they are missing."""

    def __init__(self, bank: Bank, index: Mapping[str, Any]) -> None:
        embed = index["embed"]
        model = embed if isinstance(embed, str) else f"{type(embed).__qualname__} {getattr(embed, 'model', '')}"
        name = sha256(json.dumps([model, index.get("dims")]).encode()).hexdigest()[:16]
        self._folder = bank.root / derived.FOLDER
        self._path = os.fspath(self._folder / f"vectors-{name}.jsonl")
        self._at = log.Position()
        self._known: dict[str, Vector] = {}
        self._lock = threading.Lock()

    def of(self, texts: Iterable[str], embed: _Embed) -> dict[str, Vector]:
        """The vector of each text."""
        import numpy as np

        keys = {text: sha256(text.encode("utf-8", "surrogatepass")).hexdigest() for text in texts}
        with self._lock:
            self._load()
            new = [text for text, key in keys.items() if key not in self._known]
        if new:
            made = [list(map(float, vector)) for vector in embed.documents(new)]
            lines = [
                {"text": keys[text], "vector": b64encode(np.asarray(vector, "<f4").tobytes()).decode()}
                for text, vector in zip(new, made, strict=True)
            ]
            derived.prepare(self._folder)
            with journal.paused():
                files.append_lines(self._path, b"".join(json.dumps(line).encode() + b"\n" for line in lines))
            with self._lock:
                self._known |= {keys[text]: vector for text, vector in zip(new, made, strict=True)}
        return {text: self._known[key] for text, key in keys.items()}

    def _load(self) -> None:
        """Take in what this or another process has added to the file."""
        import numpy as np

        data, another = log.read_new(self._path, self._at, trusting=True)
        if another:
            self._known.clear()
        for line in map(log.json_of, log.split_lines(data)):
            with suppress(TypeError, KeyError, ValueError):  # a damaged line: that vector is made again
                self._known[line["text"]] = np.frombuffer(b64decode(line["vector"]), "<f4").tolist()


# -- an item and its note


def _name(namespace: Iterable[str], key: str) -> str:
    """The name of an item's note: what can be kept of the item's, and a tail that tells it from all others."""
    whole = json.dumps([*namespace, key]).encode()
    words = re.sub(r"[^a-z0-9]+", "-", "-".join((*namespace, key)).lower())[-50:].strip("-")
    return f"{FOLDER}/{words or 'item'}-{sha256(whole).hexdigest()[:16]}"


def _kept(memory: Memory) -> _Kept | None:
    """The item that a note is; None for another note, or one that somebody has edited until it is none."""
    own = memory.fields.get(FOLDER)
    if not isinstance(own, Mapping):
        return None
    value, namespace, key = _value(memory), own.get("namespace"), own.get("key")
    if not isinstance(value, dict) or not isinstance(namespace, list) or not isinstance(key, str):
        return None
    created = memory.created_at or datetime.fromtimestamp(0, UTC)
    updated = max(created, moment(own.get("updated")) or created)  # it is made a moment after it was put together
    return _Kept(memory, tuple(map(str, namespace)), key, value, updated, own.get("index"), own.get("ttl"))


def _value(memory: Memory) -> Any:
    """The value of the item that a note is: in its front matter, or where that has no room for it, the whole text."""
    own = memory.fields[FOLDER]
    return own["value"] if "value" in own else log.json_of(memory.text)


def _fits_front(own: dict[str, Any]) -> bool:
    """Whether front matter gives these values back as they are; what is large or deep, it does not."""
    front = render_front({FOLDER: own})
    try:
        return len(front) < MAX_FRONT // 2 and json.dumps(load_front(front[4:-5])) == json.dumps({FOLDER: own})
    except FrontMatterError:
        return False


def _is_uuid(key: str) -> bool:
    with suppress(ValueError):
        return bool(uuid.UUID(key))
    return False


def _leaves(value: Any, name: str = "") -> Iterable[tuple[str, str]]:
    """Every text and number in a value, with its place: `user.name`."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, name)
    elif value is not None:
        yield name, str(value)


# -- what is asked for


def _filter(wanted: Mapping[str, Any]) -> Callable[[_Kept], bool]:
    """Whether an item's value has what is wanted. Raises ValueError for a key that no SQL store would take."""
    for key in wanted:
        if re.search(r"[\"'\x00]", key):
            raise ValueError(f"Invalid filter key: {key!r}. A key has no quotes.")
    return lambda item: all(_equals(_at(item.value, key), value) for key, value in wanted.items())


def _at(value: Mapping[str, Any], key: str) -> Any:
    """The value at a key, or at a path of keys with dots between them."""
    if key in value or "." not in key:
        return value.get(key)
    found: Any = value
    for part in key.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _equals(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_compared(value, name, other) for name, other in wanted.items())
        return isinstance(value, Mapping) and all(_equals(value.get(key), item) for key, item in wanted.items())
    if isinstance(wanted, list | tuple):
        same = isinstance(value, list | tuple) and len(value) == len(wanted)
        return same and all(map(_equals, value, wanted))
    return bool(value == wanted)


def _compared(value: Any, operator: str, other: Any) -> bool:
    if operator not in _COMPARISONS:
        raise ValueError(f"Unsupported operator: {operator}")
    try:
        return _COMPARISONS[operator](value, other)
    except (TypeError, ValueError):
        return False  # what is no number is neither more nor less


def _matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    path = condition.path
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return len(part) == len(path) and all(want in ("*", label) for want, label in zip(path, part, strict=True))
