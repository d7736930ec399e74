"""`memlane topics` on the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from memlane import Bank
from memlane.surfaces.cli import app, main
from topic_samples import CONFLICT, write


def test_the_verbs_print_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> str:
        found = CliRunner().invoke(app, args, catch_exceptions=False)
        assert found.exit_code == 0
        return found.stdout

    run("init")
    id = run("topics", "store", "auth/oauth2", "--title", "Refresh", "--problem", "It fails.").strip()
    assert json.loads(run("get", id, "--json"))["id"] == id
    assert run("topics", "search", "refresh").split("\t")[0] == id
    loaded = run("topics", "load", "auth/oauth2")
    assert loaded == f"<!-- {id} -->\n{Bank.open(tmp_path).topics.load('auth/oauth2')[0].raw}"
    stored = json.loads(run("topics", "store", "auth/oauth2", "--title", "Refresh", "--problem", "Again.", "--json"))
    assert stored["entry"]["id"] == f"{id}-2"
    for args in (("search", "refresh"), ("load", "auth/oauth2")):
        assert {entry["id"] for entry in json.loads(run("topics", *args, "--json"))} == {id, f"{id}-2"}
    run("topics", "reindex")
    for found in (id, f"{id}-2"):
        run("rm", found)
    assert run("topics", "load", "auth/oauth2") == ""


@pytest.mark.parametrize("verb", [("store", "a/b", "text"), ("reindex",)])
def test_the_verbs_fail_with_an_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    bank = Bank.init(tmp_path)
    write(bank.topics, "a/b", CONFLICT)
    write(bank.topics, "index", "")
    (bank.topics.root / "index.md").write_bytes(b"\xff")
    monkeypatch.setattr(sys, "argv", ["memlane", "topics", *verb])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 1
