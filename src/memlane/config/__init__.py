"""Find the bank and read its settings. Nothing here writes.

The first of these sources that has a setting decides its value (see `_sources` and `_decide`):

    flag         an option of the command line, or a keyword of Bank.open
    MEMLANE_KEY  an environment variable
    memlane.toml the nearest one, in the folder or above it; or seed 003's config.toml
    config.toml  the user's own, in ~/.config/memlane
    default      the one in settings.SETTINGS

`Config.sources` names the deciding source of every setting. No other module reads memlane's environment variables.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from memlane.config import claims, own, profiles, trust, worktrees
from memlane.config.own import is_user_bank as is_user_bank
from memlane.config.own import own_folder as own_folder
from memlane.config.own import under as under
from memlane.config.places import absolute, expanded, way_to_a_bank
from memlane.config.places import earlier_user_bank as earlier_user_bank
from memlane.config.places import forgotten_texts as forgotten_texts
from memlane.config.places import home as home
from memlane.config.places import require_utf8 as require_utf8
from memlane.config.places import user_bank as user_bank
from memlane.config.places import user_file as user_file
from memlane.config.places import user_state as user_state
from memlane.config.places import variables as variables
from memlane.config.places import written as written
from memlane.config.profiles import Profile as Profile
from memlane.config.settings import SETTINGS as SETTINGS
from memlane.config.settings import Setting as Setting
from memlane.core.errors import ConfigError, NotEnabled, NotTrusted
from memlane.core.toml import load_toml
from memlane.core.values import NamedTuple, dataclass, replace
from memlane.disk import files
from memlane.gate import shown
from memlane.lanes import LANES, NAMES
from memlane.lanes.topics import base

PROJECT_FILE = "memlane.toml"
SEED_FILE = "config.toml"  # seed 003's name for it; read where it has a [memory] table
FOLDER = ".memories"
BRINGS_IN = ("memory.user_bank", True)  # what a project's configuration may not say

_BY_KEY = {setting.key: setting for setting in SETTINGS}
_TABLES = {key.partition(".")[0] for key in _BY_KEY}
_OWN = "journal"  # a table that only the user has a say in: it is about what is kept outside the project
_USERS = ("mcp.rules",)  # settings that only the user's own file can change
_ALLOW = "allow"  # [[allow]] is a list of findings that somebody has accepted, not a setting


@dataclass(frozen=True, slots=True)
class Config:
    """The settings in force. `file` is the project's configuration; None leaves only the user's own bank."""

    file: Path | None
    values: Mapping[str, Any]
    sources: Mapping[str, str]  # for each key the deciding source: "flag", a variable, a file's path or "default"
    allow: tuple[str, ...] = ()  # fingerprints of accepted findings, from all files
    distrust: str = ""  # why the project's configuration does not count; "" when it does
    folder: Path | None = None  # the bank's folder, where it is not what the settings say: a copy of the past
    worktree: Path | None = None  # the project's folder in a linked worktree, whose bank is the main worktree's
    records: Path | None = None  # where the records are, in a linked worktree whose own would go with it
    why: str = ""  # in a linked worktree: why it is this bank
    unread: ConfigError | None = None  # why nobody can tell whether a configuration that is not trusted has a memory

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    @property
    def project(self) -> Path | None:
        """The project's folder."""
        return self.file.parent if self.file else None

    @property
    def code(self) -> Path | None:
        """The folder of the code that the memories speak of: the project's, in a linked worktree as it is there."""
        return self.worktree or self.project

    @property
    def root(self) -> Path:
        """The bank's folder."""
        if self.folder:
            return self.folder
        if external := self._external:
            return external if is_bank(external) else external / FOLDER
        if self["memory.storage_strategy"] == "user" or self.project is None:
            decided_by = Path(self.sources["memory.storage_strategy"])
            return earlier_user_bank() if decided_by == self.file and decided_by.name == SEED_FILE else user_bank()
        return self.project / FOLDER

    def lane_root(self, lane: str) -> Path:
        """Where a lane's files are: as configured, else at its place in the bank's folder."""
        if lane == "records" and self.records:
            return self.records
        configured = self.values.get(f"lanes.{lane}")
        if lane == "topics" and not configured and not (self._external and is_bank(self._external)):
            configured = base.configured(self.values)
        return self.resolve(configured) if configured else self.root / LANES[lane].place

    @property
    def _external(self) -> Path | None:
        """The folder outside the project that its memory is in, if there is one."""
        external = self["memory_configuration.external_path"]
        return self.resolve(external) if external else None

    def take_root(self) -> None:
        """Let no link lead out of the project, nor out of what the configuration names outside it."""
        chosen = [os.path.abspath(self.project)] if self.project else []
        for name, place in {"": self.root, **{name: self.lane_root(name) for name in NAMES}}.items():
            path = os.path.abspath(place)
            if not any(path == folder or path.startswith(folder + os.sep) for folder in chosen):
                chosen.append(path)
                if name and os.path.splitext(LANES[name].place)[1]:  # a file: what lies beside it is ours too
                    chosen.append(os.path.dirname(path))
        for path in chosen:
            files.take_root(path)

    def without_user_bank(self) -> Config:
        """The same settings, with no other bank to be read."""
        sources = {**self.sources, "memory.user_bank": own.WITHHELD}
        return replace(self, values={**self.values, "memory.user_bank": False}, sources=sources)

    @property
    def profile(self) -> Profile:
        """What prompt blocks show: the [profile] table, or the YAML file that it names. Raises ConfigError."""
        return profile(self)

    def resolve(self, path: str) -> Path:
        """A configured path: `~` is the home folder, and a relative path starts at the project's folder."""
        return (self.project or absolute(".")) / expanded(path)

    def to_dict(self) -> dict[str, Any]:
        return {
            "project": str(self.project) if self.project else None,
            "root": str(self.root),
            "lanes": {name: str(self.lane_root(name)) for name in NAMES},
            "settings": {
                key: {"value": value, "source": source, "what": _BY_KEY[key].what}
                for key, (value, source) in sorted(in_force(self).items())
            },
        }


def is_bank(folder: Path) -> bool:
    """Whether a folder is itself a bank, as an external one once was: no store of topics has such files."""
    return any(os.path.lexists(folder / name) for name in ("indices", "vault.jsonl", "tombstones.jsonl"))


# -- loading: which source decides


class _Source(NamedTuple):
    """A place that settings come from: what `Config.sources` calls it, and the settings it has."""

    name: str
    values: Mapping[str, Any]
    allow: Sequence[str] = ()


_PLACES = ("lanes.", "memory_configuration.", "directory_structure.")  # settings that say where lanes are


def load(folder: str | Path | None = None, flags: Mapping[str, Any] | None = None) -> Config:
    """The configuration for a folder (default: MEMLANE_BANK, else the current folder).

    In a linked git worktree it is the main worktree's, or its own: see `worktrees.chosen`. Raises ConfigError, which
    names the source, the key and what is allowed.
    """
    start = _start(folder)
    if worktree := worktrees.linked(start):
        return worktrees.chosen(worktree, start, _nearest, lambda file: _loaded(file, flags or {}))
    return _loaded(_nearest(start), flags or {})


def _loaded(file: Path | None, flags: Mapping[str, Any]) -> Config:
    data, distrust = _looked_at(file) if file else (b"", "")
    claim = claims.memory(file, data) if file and distrust else None
    config = _config(file, list(_sources(flags, file, data, claim)), distrust)
    if isinstance(claim, ConfigError) and config.sources["memory.enabled"] == str(file):
        config = replace(config, unread=claim)
    require_utf8(config.root)
    _refuse_overlaps(config)
    return config


def load_user() -> Config:
    """The configuration of the user's own bank. Raises ConfigError. Lanes that it puts elsewhere are every bank's."""
    own = [*_from_environment(), *_from_user()]
    kept = ({key: value for key, value in one.values.items() if not key.startswith(_PLACES)} for one in own)
    return _config(None, [one._replace(values=values) for one, values in zip(own, kept, strict=True)])


def _config(file: Path | None, sources: Sequence[_Source], distrust: str = "") -> Config:
    decided = {setting.key: _decide(setting, sources) for setting in SETTINGS}
    return Config(
        file,
        values={key: value for key, (value, _) in decided.items()},
        sources={key: name for key, (_, name) in decided.items()},
        allow=tuple(fingerprint for source in sources for fingerprint in source.allow),
        distrust=distrust,
    )


def _looked_at(file: Path) -> tuple[bytes, str]:
    """What a project's configuration says, and why that does not count ("" when it does).

    It is read once: what is obeyed is what was compared, even if somebody changes the file at this moment.
    """
    data = b""
    try:
        data = trust.read(file)
        return data, trust.distrust(user_state(), file, data)
    except ConfigError as error:  # no home folder to remember it in, or a file that is no configuration
        return data, f"cannot be trusted: {error}".rstrip(".")


def _sources(
    flags: Mapping[str, Any], file: Path | None, data: bytes, claim: bool | ConfigError | None
) -> Iterator[_Source]:
    """All sources that are obeyed, the one with the highest precedence first. Raises ConfigError.

    Of a project that the user does not trust, only the claim to have a memory at all; and that is read where a
    project's is. A project may keep the user's bank out of its own, but not bring it in where the user does not want
    it.
    """
    for key in flags:
        if key not in _BY_KEY:
            raise ConfigError(f"There is no setting {shown(key)!r}.", hint=_suggestion(key))
    yield _Source("flag", flags)
    yield from _from_environment()
    if file is not None and claim is None:
        project = _from_file(file, data)
        said = {key: value for key, value in project.values.items() if (key, value) != BRINGS_IN}
        yield project._replace(values=said)
    elif file is not None:
        yield _Source(str(file), {"memory.enabled": claim is True})
        yield _Source("default", {"memory.storage_strategy": "project"})
    yield from _from_user()


def _from_user() -> Iterator[_Source]:
    """The user's own configuration, if there is one. Raises ConfigError."""
    own = user_file()
    if own is not None and os.path.isfile(own):
        yield _from_file(own, trust.read(own, follow=True))


def _decide(setting: Setting, sources: Sequence[_Source]) -> tuple[Any, str]:
    """A setting's value and the name of the source that decided it. Raises ConfigError for a value it cannot have."""
    for source in sources:
        if setting.key in source.values:
            if setting.key in _USERS and source.name != str(user_file()):
                raise ConfigError(
                    f"{source.name}: only you decide on {setting.key}.", hint=f"Put it into {user_file()}."
                )
            return _checked(setting, source.values[setting.key], source.name), source.name
    return setting.default, "default"


def require_enabled(config: Config) -> None:
    """Raise NotEnabled unless memory is switched on, or ConfigError where nobody can tell whether it is."""
    if config.unread:
        raise config.unread
    if not config["memory.enabled"]:
        where = f" in {config.file}" if config.file else " here: no memlane.toml was found"
        if not config.file:
            foreign = (
                trust.owner_problem(path, path.parent, path.parent / FOLDER) for path in _candidates(absolute("."))
            )
            where += next((f"; {problem}" for problem in foreign if problem), "")
        raise NotEnabled(f"Memory system is not enabled{where}", hint=way_to_a_bank(absolute("."), FOLDER))


def distrusted(config: Config) -> NotTrusted | ConfigError | None:
    """The error for whoever would write into a project that the user does not trust; None when the user does."""
    if config.unread:
        return config.unread
    if not config.distrust:
        return None
    return NotTrusted(
        f"The memory of {config.project} {config.distrust}.",
        hint="`memlane trust` shows its configuration and lets you trust it.",
    )


def require_trust(config: Config) -> None:
    """Raise NotTrusted unless the user trusts the project; ConfigError where nobody could."""
    if error := distrusted(config):
        raise error


HARMLESS = frozenset({"memory.enabled", "memory.user_bank", "memory.recency_boost_days", "memory.recency_boost_factor"})


def refuse_foreign(file: Path) -> None:
    """Raise NotTrusted for a configuration that the user has not trusted and that says more than "remember here"."""
    data, why = _looked_at(file)
    if not why:
        return
    source = _from_file(file, data)
    plain = source.values.get("memory.storage_strategy", "project") == "project"
    if not plain or source.allow or not source.values.keys() <= HARMLESS | {"memory.storage_strategy"}:
        raise NotTrusted(
            f"{file} {why}, and it changes settings.", hint="`memlane trust` shows them and lets you trust it."
        )


def default(key: str) -> Any:
    """The value of a setting that no source sets."""
    return _BY_KEY[key].default


# -- sources: the environment


def _from_environment() -> Iterator[_Source]:
    """MEMLANE_STORAGE_STRATEGY for [memory] and [memory_configuration], MEMLANE_VAULT_MAX_ACTIVE for other tables."""
    known = _variables()
    for name in os.environ:
        if name in known and (text := os.environ.get(name)):
            yield _Source(name, {known[name]: parsed(known[name], text)})


@cache
def _variables() -> dict[str, str]:
    """The keys of all settings, by the names of their environment variables."""
    found = {}
    for setting in SETTINGS:
        table, _, key = setting.key.partition(".")
        found[f"MEMLANE_{key if table in ('memory', 'memory_configuration') else setting.key}"] = setting.key
    return {name.replace(".", "_").upper(): key for name, key in found.items()}


def parsed(key: str, text: str) -> Any:
    """A setting's value from the text of a flag or an environment variable; the text itself when it does not fit."""
    kind = _BY_KEY[key].kind if key in _BY_KEY else str
    if kind is bool:
        words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
        return words.get(text.lower(), text)
    if kind is list:
        with suppress(ValueError):
            if text.lstrip().startswith("["):  # written as in a file
                return load_toml(f"value = {text}")["value"]
        return [item.strip() for item in text.split(",") if item.strip()]
    if kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


# -- sources: files


def find_project(folder: str | Path | None = None) -> Path | None:
    """The nearest memlane.toml (or seed 003's config.toml) in a folder or above it.

    The folder is by default that of MEMLANE_BANK, else the current one. Raises ConfigError for one that does not exist.
    """
    return _nearest(_start(folder))


def project_file(folder: str | Path | None, flags: Mapping[str, Any]) -> Path | None:
    """The configuration that counts for a folder: in a linked worktree, it may be that of the main one."""
    try:
        return load(folder, flags).file
    except ConfigError:  # it is there all the same
        return find_project(folder)


def require_sense(file: Path) -> None:
    """Raise ConfigError for a configuration that cannot be understood: nobody can agree to that."""
    if error := _not_understood(file):
        raise error


def _start(folder: str | Path | None) -> Path:
    named = folder or os.environ.get("MEMLANE_BANK")
    start = absolute(named or ".")
    if named and not os.path.isdir(start):
        raise ConfigError("There is no such folder to look for a bank in.", hint="Check --bank or MEMLANE_BANK.")
    return start


def _nearest(start: Path, top: str = "") -> Path | None:
    """The nearest configuration in a folder or above it, but not above `top`."""
    found = (path for path in _candidates(start) if not _owner_problem(path))
    return next((path for path in found if path.parent.is_relative_to(top)), None) if top else next(found, None)


def _owner_problem(path: Path) -> str:
    return trust.owner_problem(path, path.parent, path.parent / FOLDER)


def _candidates(start: Path) -> Iterator[Path]:
    """The configuration files of projects in a folder and above it, the nearest first."""
    for place in (start, *start.parents):
        if os.path.isfile(place / PROJECT_FILE):
            yield place / PROJECT_FILE
        elif is_seed_file(place / SEED_FILE):
            yield place / SEED_FILE


def is_seed_file(path: Path) -> bool:
    """Whether this config.toml is seed 003's: many programs have such a file, but not our keys in a [memory] table."""
    if not os.path.isfile(path) or path == user_file():
        return False
    try:
        memory = _parsed(path, trust.read(path)).get("memory")
    except ConfigError:
        return False
    return isinstance(memory, dict) and any(f"memory.{key}" in _BY_KEY for key in memory)


def _not_understood(path: Path) -> ConfigError | None:
    """What is wrong with a configuration, trusted or not: it is no TOML, or has keys or values that there are not."""
    try:
        source = _from_file(path, trust.read(path))
        for key, value in source.values.items():
            _checked(_BY_KEY[key], value, source.name)
    except ConfigError as error:
        return error
    return None


def _from_file(path: Path, data: bytes) -> _Source:
    """The settings of a file with this content. Raises ConfigError."""
    return _said(path, data, path == user_file())


@lru_cache(maxsize=16)  # a server asks before every call, and a file seldom changes
def _said(path: Path, data: bytes, is_users: bool) -> _Source:
    """Unknown keys are errors, except in seed 003's config.toml, which has keys of its own."""
    values: dict[str, Any] = {}
    tables = _parsed(path, data)
    accepted = tables.pop(_ALLOW, [])
    if not is_users and tables.pop(_OWN, None) is not None and path.name == PROJECT_FILE:
        raise ConfigError(f"{path}: [{_OWN}] is not for a project to decide.", hint=f"Put it into {user_file()}.")
    for name, table in tables.items():
        if name not in _TABLES or not isinstance(table, dict):
            if path.name == PROJECT_FILE:
                hint = f"It has: {', '.join(sorted({*_TABLES, _ALLOW}))}."
                raise ConfigError(f"{path}: there is no table [{name}].", hint=hint)
            continue
        for key, value in _pairs(name, table):
            if f"{name}.{key}" in _BY_KEY:
                values[f"{name}.{key}"] = value
            elif path.name == PROJECT_FILE or is_users:
                raise ConfigError(f"{path}: there is no key {key!r} in [{name}].", hint=_suggestion(f"{name}.{key}"))
    return _Source(str(path), values, _allowed(accepted, path))


def _pairs(name: str, table: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The keys of a table and their values; those of a table in it, such as [mcp.auth], with its name before them."""
    for key, value in table.items():
        if isinstance(value, dict) and any(known.startswith(f"{name}.{key}.") for known in _BY_KEY):
            yield from ((f"{key}.{inner}", said) for inner, said in value.items())
        else:
            yield key, value


def _allowed(entries: Any, path: Path) -> list[str]:
    """Fingerprints of `[[allow]] fingerprint = …, reason = …`: findings that somebody has accepted."""
    fingerprints = []
    for entry in entries if isinstance(entries, Iterable) else [entries]:
        if not isinstance(entry, dict) or not entry.get("fingerprint") or not entry.get("reason"):
            raise ConfigError(
                f"{path}: each [[allow]] needs a fingerprint and a reason.",
                hint="`memlane doctor --only secrets` prints fingerprints, `memlane gate allow` writes the entry.",
            )
        fingerprints.append(str(entry["fingerprint"]))
    return fingerprints


def _parsed(path: Path, data: bytes) -> dict[str, Any]:
    with suppress(ConfigError):  # there is no home folder
        if (known := trust.tables(user_state(), path, data)) is not None:
            return known
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} cannot be read.", hint="Check its permissions; it must be UTF-8.") from error
    try:
        return load_toml(text)
    except ValueError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.", hint="Mend it in an editor.") from None


# -- checks


def _checked(setting: Setting, value: Any, source: str) -> Any:
    """The value, if the setting can have it. Raises ConfigError, which names the source and not the value."""
    kind = setting.kind
    if isinstance(kind, tuple):
        fits = value in kind
    elif kind is list:
        fits = isinstance(value, list) and all(isinstance(item, str) and item for item in value)
        fits = fits and (not setting.words or set(value) <= set(setting.words))
    else:
        fits = isinstance(value, int | float if kind is float else kind)
        fits = fits and (kind is bool or not isinstance(value, bool))  # in Python, True is an int
    if fits and setting.least is not None:
        fits = value >= setting.least
    if fits and setting.most is not None:
        fits = value <= setting.most
    if not fits:
        raise ConfigError(f"{source}: {setting.key} must be {setting.allowed}.", hint=f"{setting.key}: {setting.what}.")
    return value


def _suggestion(key: str) -> str:
    from difflib import get_close_matches

    table, _, name = key.partition(".")
    siblings = [other for other in _BY_KEY if other.startswith(f"{table}.")]
    names = {other.removeprefix(f"{table}."): other for other in siblings} or {other: other for other in _BY_KEY}
    if close := get_close_matches(name if siblings else key, names, 1):
        return f"Did you mean {names[close[0]]}?"
    return f"There are: {', '.join(siblings or sorted(_TABLES))}."


def _refuse_overlaps(config: Config) -> None:
    """Raise ConfigError for lanes in one place, which would read each other's files; only notes may hold the others."""
    if all(name == "default" or not key.startswith(_PLACES) for key, name in config.sources.items()):
        return  # nobody has put a lane anywhere
    roots = {name: os.fspath(config.lane_root(name)) for name in NAMES}
    for name, root in roots.items():
        inside = os.path.join(root, "")
        for other, place in roots.items():
            within = name not in ("notes", other) and place.startswith(inside) and not _is_hidden(place, inside)
            if (name < other and root == place) or within:
                raise ConfigError(
                    f"The lanes {name} and {other} overlap: {root} and {place}.",
                    hint=f"Give lanes.{other} a folder of its own in {config.sources[f'lanes.{other}']}.",
                )


def _is_hidden(place: str, root: str) -> bool:
    """Whether a place is in a hidden folder below root, which no lane looks into."""
    return any(part.startswith(".") for part in place.removeprefix(root).split(os.sep))


# -- the profile of an agent


def profile(config: Config) -> Profile:
    """The profile in force. Raises ConfigError."""
    return profiles.made_of({name: value for name, (value, _) in _profile_in_force(config).items()})


def load_profile(path: str | Path) -> Profile:
    """The `memory` key of a YAML profile; what it leaves out has its default. Raises ConfigError."""
    return profiles.made_of(_said_in(Path(path)))


def in_force(config: Config) -> dict[str, tuple[Any, str]]:
    """Every setting's value and where it comes from, with what a YAML profile says instead. Raises ConfigError."""
    found = {key: (value, config.sources[key]) for key, value in config.values.items()}
    return found | {f"profile.{name}": decided for name, decided in _profile_in_force(config).items()}


def _profile_in_force(config: Config) -> dict[str, tuple[Any, str]]:
    if not config["profile.file"]:
        return {name: (config[f"profile.{name}"], config.sources[f"profile.{name}"]) for name in profiles.NAMES}
    path = config.resolve(config["profile.file"])
    said = _said_in(path)
    return {
        name: (said[name], str(path)) if name in said else (default(f"profile.{name}"), "default")
        for name in profiles.NAMES
    }


def _said_in(path: Path) -> dict[str, Any]:
    said = profiles.said_in(path)
    return {name: _checked(_BY_KEY[f"profile.{name}"], value, str(path)) for name, value in said.items()}


def trusts_everyone(config: Config) -> bool:
    """Whether the user takes what anybody commits to this project for reviewed."""
    return config.file is not None and trust.trusts_everyone(user_state(), config.file)
