"""What a bank has open: its lanes, its index, and its watch over the code that memories speak of."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, partial, wraps
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

from memlane import config, gate, lanes
from memlane.config import Profile, places
from memlane.core.access import EVERYTHING
from memlane.core.dates import utc_now
from memlane.core.errors import InvalidInput, MemlaneError
from memlane.core.model import USERS, Memory, Problem, Removed
from memlane.core.values import replace
from memlane.disk import files, journal, names, replaced, tombstones, written
from memlane.disk.journal import Journal
from memlane.disk.tombstones import Tombstones
from memlane.lanes import NAMES, Lane

if TYPE_CHECKING:
    from memlane.bank import Bank
    from memlane.care.fresh.verdicts import Watch
    from memlane.history.past import Copy
    from memlane.index.seal import IndexFile
    from memlane.index.store import Index
    from memlane.lanes.layers.store import MemoryStore
    from memlane.lanes.notes.store import NoteLane
    from memlane.lanes.records.store import RecordLane
    from memlane.lanes.topics.store import TopicLane
    from memlane.lanes.vault.store import MemoryVault

L = TypeVar("L")
F = TypeVar("F", bound=Callable[..., Any])
_RANKING = ("topics", "records")  # lanes with a search of their own, which ranks what the index has


def verb(method: F) -> F:
    """What a method of the bank changes is one change in the journal, about the memory that it returns."""

    @wraps(method)
    def run(*args: Any, **given: Any) -> Any:
        with journal.change(method.__name__):
            result = method(*args, **given)
            if isinstance(result, Memory | Removed):
                journal.about(result.id)
            return result

    return cast("F", run)


def _journal(settings: config.Config) -> Journal | None:
    """The journal that changes to this bank go to: none for one of the past or one that is not trusted.

    One that is switched off can be read, and forget reaches it.
    """
    home = os.path.realpath(settings.root)
    folder = places.journal_folder()
    kept = None
    if folder and not settings.distrust and settings.folder is None:
        options = {"max_bytes": settings["journal.max_mb"] << 20, "days": settings["journal.days"]}
        options["beside"] = os.path.dirname(os.path.realpath(settings.records)) if settings.records else ""
        kept = journal.of(os.fspath(folder), home, commit_of=_first_commit, **options)
    kept_at = {home: "", os.fspath(settings.root): ""}
    for name in NAMES:
        root = os.path.realpath(settings.lane_root(name))
        if not f"{root}{os.sep}".startswith(home + os.sep):
            beside = ("", ".old", ".rejected") if os.path.splitext(lanes.LANES[name].place)[1] else ("",)
            kept_at |= {root + suffix: os.path.relpath(root + suffix, home) for suffix in beside}
    journal.keep(kept_at, kept if settings["journal.enabled"] else None)
    return kept


def _refused(root: Path, rule: str) -> None:
    """The gate refused something in this bank, by this rule."""
    from memlane.disk import refusals

    with suppress(MemlaneError):  # there is no home folder
        refusals.note(config.user_state(), root, rule)


def _listed(bank: Opened, lane: str, *args: Any, **given: Any) -> Any:
    """`recall.listing.memories`, which who only writes to a lane does not load."""
    from memlane.recall.listing import memories

    return memories(cast("Bank", bank), lane, *args, **given)


def _first_commit(folder: str) -> str:
    from memlane.history import git

    with suppress(MemlaneError):
        return git.first_commit(Path(folder))
    return ""


class _LaneNamed(Generic[L]):
    """An attribute of the bank that is the lane of its name."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, bank: Opened, owner: type) -> L:
        return cast("L", bank.lane(self.name))


class Opened:
    """What a bank has open: its lanes, its index, and its watch over the project's code. Each opens when first used."""

    def __init__(self, settings: config.Config) -> None:
        given: object = settings
        if isinstance(given, str | os.PathLike):
            hint = "Bank.open(folder) opens the bank of a folder, Bank.init(folder) makes one."
            raise InvalidInput("Bank() takes a configuration, not a folder.", hint=hint)
        config.require_enabled(settings)
        self.config = settings
        self.access = EVERYTHING
        self.root = settings.root
        settings.take_root()
        for folder in filter(None, (settings.project, settings.root)):
            files.set_read_only(folder, config.distrusted(settings))
            written.keep(folder, config.written())
        self.journal = _journal(settings)
        self._opening = RLock()  # two threads must not open the same thing twice
        self._lanes: dict[str, Lane] = {}
        self._places = {name: settings.lane_root(name) for name in NAMES}
        self._index: Index | None = None
        self.tombstones = Tombstones(settings.root / tombstones.FILE, private=config.forgotten_texts(settings.root))
        self.replaced = replaced.Replaced(settings.root / replaced.FILE)
        self._copy: Copy | None = None  # of a bank of the past
        self.left_out: tuple[Problem, ...] = ()  # the files of its commit that it does not have
        self._watch: Watch | None = None
        anchors = os.path.join(self.root, "anchors.jsonl")
        self._anchors = (anchors, names.private_twin(anchors))
        self._under: Bank | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of everything. A closed bank opens its lanes again when it is used."""
        self._lanes.clear()
        if self._index is not None:
            self._index.close()
            self._index = None
        if self._under is not None:
            self._under.close()
        if self.journal is not None:
            self.journal.close()
        if self._copy is not None:
            self._copy.remove()

    def __repr__(self) -> str:
        return f"Bank({os.fspath(self.root)!r})"

    @property
    def under(self) -> Bank | None:
        """The user's own bank, which is read together with this one; None where it is not. See `memlane.recall.under`.

        Looked for at every use: it may come and go while a server has this bank open.
        """
        with self._opening:
            found = config.under(self.config)
            if isinstance(found, str):
                return None
            if self._under is None or self._under.config != found:
                self._under = cast("Bank", type(self)(found))
            return self._under

    def alone(self) -> Bank:
        """This bank without the user's own below it: for what is written out of a project. To be closed."""
        return cast("Bank", type(self)(self.config.without_user_bank()))

    def original(self, memory: Memory) -> Memory:
        """A memory of a bank of the past with the path that it has in the project; any other as it is."""
        return self._copy.original(memory) if self._copy else memory

    # -- lanes

    notes: _LaneNamed[NoteLane] = _LaneNamed()
    vault: _LaneNamed[MemoryVault] = _LaneNamed()
    topics: _LaneNamed[TopicLane] = _LaneNamed()
    records: _LaneNamed[RecordLane] = _LaneNamed()
    layers: _LaneNamed[MemoryStore] = _LaneNamed()

    def lane(self, name: str) -> Lane:
        """The lane of this name, opened when it is first asked for."""
        with self._opening:
            if name not in self._lanes:
                if name not in NAMES:
                    raise InvalidInput("There is no such lane.", hint=f"Use one of: {', '.join(NAMES)}.")
                lane = lanes.open_lane(name, self._places[name], **self._options(name))
                self._lanes[name] = self._seen(lane)
                gate.tell(os.fspath(lane.root), partial(_refused, self.root))
            return self._lanes[name]

    def _seen(self, lane: Lane) -> Lane:
        """A lane as this bank shows it."""
        return self._copy.read_only(lane) if self._copy else lane

    @cached_property
    def guard(self) -> gate.Guard:
        """How the checks behave that guard every lane."""
        words = {name: self.config[f"gate.{name}"] for name in ("secrets", "characters", "email", "phone")}
        from memlane.gate.fingerprints import salt_of

        return gate.Guard(**words, allow=self.config.allow, salt=salt_of(self.config.project or self.root))

    @property
    def profile(self) -> Profile:
        """What prompt blocks show: the [profile] table, or the YAML file that it names."""
        return config.profile(self.config)

    def _options(self, name: str) -> dict[str, Any]:
        own: dict[str, Any] = lanes.lane_class(name).options(self.config)
        if name in _RANKING:
            own["memories"] = partial(_listed, self, name)
        if name == "vault":
            own["kept_at"] = self._vault_kept_at
        return {"guard": self.guard, "tombstones": self.tombstones, **own}

    def _vault_kept_at(self) -> Path | None:
        """Where what is known of a long vault is kept."""
        from memlane.index.seal import beside

        return beside(self.index_file, "vault")

    def memories(self, lane: str | None = None) -> Iterator[Memory]:
        """Every memory, lane by lane, in the order of the files, expired or not; not those that are held back."""
        looked = self.tombstones.any()  # once: most banks have none
        for name in (lane,) if lane else NAMES:
            if not os.path.lexists(self._places[name]):  # it is not even imported
                continue
            for item in lanes.scan(self.lane(name)):
                if isinstance(item, Memory) and not (looked and self.tombstones.held(item)):
                    yield item

    def unseen(self, *, expired: bool = False) -> Callable[[Memory], bool]:
        """Whether a memory is in no answer now: it is held back, or it has expired and that is not asked for."""
        now, held = utc_now(), self.tombstones.held if self.tombstones.any() else None  # most banks have none
        return lambda memory: (not expired and memory.expired(now)) or (held is not None and bool(held(memory)))

    def held(self, memory: Memory) -> str | None:
        """Why a memory is held back: it was deleted or forgotten, and came back by git or by hand. None nearly always.

        It is in no list, search or prompt until somebody says what is wanted.
        """
        if memory.owner and (under := self.under):
            return under.held(replace(memory, id=memory.id.removeprefix(USERS)))
        return self.tombstones.why(memory, gate.shown(memory.id))

    def removed(self) -> builtins.list[Removed]:
        """What `restore` can bring back, the latest deletion first."""
        found = [removed for name in NAMES for removed in self.lane(name).removed()]
        return sorted(found, key=lambda removed: removed.removed_at, reverse=True)

    # -- the index

    def wrote(self, lane: str, path: str) -> None:
        """Tell the index of a file that one of a lane's own verbs has written or removed. Never fails a write.

        The bank's verbs do it by themselves. Nobody has to: what the index was not told of, it finds by comparing all
        files with what it knows, which takes time in a large bank. An index that is not open looks when it is opened.
        """
        if self._index is not None:
            self._index.note(self.lane(lane), path)

    def _indexed(self, memory: Memory) -> Memory:
        """A memory that was written, after the index was told; where no answer will show it, it says so."""
        self.wrote(memory.lane, memory.file)
        if not memory.expired(utc_now()):
            return memory
        remark = f"it has expired, so that no answer shows it: `memlane restore {gate.shown(memory.id)}` keeps it"
        return replace(memory, remarks=(*memory.remarks, remark))

    def _look_again(self) -> None:
        """Let an open index know of many writes at once."""
        if self._index is not None:
            self._index.ask(lambda: None, force=True)

    @property
    def index(self) -> Index:
        """The bank's index, opened when it is first needed. Deleting `indices/` loses nothing."""
        with self._opening:
            if self._index is None:
                from memlane.index.store import Index

                self._index = Index(self.index_file, self.present, self.config["search.encoder"])
            return self._index

    @cached_property
    def index_file(self) -> IndexFile:
        """Where the index is, and what in the user's state folder says that it was made here.

        The index of the past, and of a project that is not trusted, is kept in memory.
        """
        from memlane.index.seal import IndexFile

        try:
            state = None if self._copy or self.config.distrust else config.user_state()
        except MemlaneError:  # there is no home folder
            state = None
        return IndexFile.of(self.root, state)

    def present(self) -> builtins.list[Lane]:
        """The lanes that have a place on the disk. Others are not even imported: a search should start quickly."""
        return [self.lane(name) for name, place in self._places.items() if os.path.exists(place)]

    # -- the code that memories speak of

    @property
    def watch(self) -> Watch | None:
        """What ties memories to the project's code; None for a bank of the past or one that several projects share."""
        if self._watch is None and self._copy is None:
            settings, project = self.config, self.config.code
            own = settings["memory.storage_strategy"] == "project" or settings["memory_configuration.external_path"]
            if project is None or not own or settings.distrust:
                return None
            from memlane.care.fresh.verdicts import Watch

            self._watch = Watch(project, self.root, map(settings.lane_root, NAMES))
        return self._watch

    def watch_of(self, memories: Sequence[Memory]) -> Watch | None:
        """`watch`, if one of these memories names any code, or one may have named some before: most name none."""
        if not memories:
            return self.watching()
        from memlane.care.fresh.mentions import mentions

        return self.watch if any(map(mentions, memories)) else self.watching()

    def watching(self) -> Watch | None:
        """`watch`, if there is anything that it could say: most banks have no anchors, and pay a stat for it."""
        return self.watch if any(map(os.path.exists, self._anchors)) else None

    def changed_code(self, memories: Sequence[Memory]) -> dict[str, str]:
        """What prompts and people should know of these memories' code, by id."""
        own = [memory for memory in memories if not memory.owner]
        found = watch.look(own) if (watch := self.watching()) else {}
        return {id: f"{verdict.verdict}: {verdict.why}" for id, verdict in found.items()}

    def origins(self, memories: Sequence[Memory]) -> dict[str, str]:
        """Where those of these memories came from, by id, that somebody else wrote and nobody here has reviewed."""
        from memlane.history import origin

        return origin.origins(cast("Bank", self), [memory for memory in memories if not memory.owner])

    def users_word(self, memories: Sequence[Memory]) -> set[str]:
        """The ids of those of these memories that the user wrote, or has read and accepted."""
        from memlane.history import origin

        found = origin.users_word(cast("Bank", self), [memory for memory in memories if not memory.owner])
        users = [replace(memory, id=memory.id.removeprefix(USERS)) for memory in memories if memory.owner]
        if users and (below := self.under):
            found |= {USERS + id for id in below.users_word(users)}
        return found

    def whose(self, memories: Sequence[Memory], rules: Collection[str]) -> tuple[dict[str, str], set[str]]:
        """The `origins` of these memories, and of those with the ids `rules` the `users_word`, in half the time."""
        from memlane.history import origin

        own = [memory for memory in memories if not memory.owner]
        others, word = origin.whose(cast("Bank", self), own, rules)
        return others, word | self.users_word([memory for memory in memories if memory.owner and memory.id in rules])

    def outdated(self, memory: Memory) -> str:
        """What is not as it was in the code that a memory speaks of, in a line; "" when nothing is. A quick look."""
        return self.changed_code([memory]).get(memory.id, "")

    def _anchored(self, memory: Memory, *, is_new: bool = False) -> Memory:
        """Note what the code is that a memory names. The memory is stored: what goes wrong here is but a remark."""
        try:
            if (watch := self.watch_of([memory])) is not None:
                watch.anchor(memory, utc_now(), is_new=is_new)
        except (MemlaneError, OSError) as error:
            remark = f"the code that it names was not anchored: {error}"
            return replace(memory, remarks=(*memory.remarks, remark))
        return memory
