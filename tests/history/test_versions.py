"""`memlane history ID` and `restore --version`: every version that was ever stored can be seen and brought back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from commands import Run
from memlane import Bank, NotFound
from memlane.exchange.sharing import share
from memlane.history.versions import difference
from repositories import save

FIELDS = {
    "notes": {"title": "Deploys"},
    "vault": {},
    "topics": {"title": "Deploys", "topic": "ops", "subtopic": "release"},
    "records": {"title": "Deploys"},
    "layers": {"project": "api", "file_type": "common_patterns"},
}
FIRST, SECOND = "Deploys go out on Tuesdays.", "Deploys go out on Wednesdays, never on Fridays."


@pytest.mark.parametrize("lane", list(FIELDS))
def test_an_earlier_version_comes_back_and_that_can_be_undone(bank: Bank, lane: str) -> None:
    id = bank.add(FIRST, lane=lane, **FIELDS[lane]).id
    if lane == "topics":
        bank.add("Something else entirely.", lane=lane, topic="ops", subtopic="release", title="Else")
    id = bank.update(id, text=SECOND).id
    versions = bank.history(id)
    assert len(versions) == 2
    assert FIRST in bank.restore(id, versions[-1].version).text
    assert FIRST in bank.get(id).text
    bank.undo()
    assert SECOND in bank.get(id).text


@pytest.mark.parametrize("lane", list(FIELDS))
def test_it_comes_back_when_the_bank_is_gone(bank: Bank, lane: str) -> None:
    id = bank.add(FIRST, lane=lane, **FIELDS[lane]).id
    id = bank.update(id, text=SECOND).id
    shutil.rmtree(bank.root)
    with Bank.open(bank.root.parent) as again:
        for text, version in zip((SECOND, FIRST), again.history(id), strict=True):
            assert text in again.restore(id, version.version).text


def test_a_version_says_who_made_it(run: Run, bank: Bank) -> None:
    run("add", FIRST, "--title", "Deploys")
    bank.update("notes:deploys", text=SECOND)
    run("rm", "notes:deploys")
    assert [(each.version, each.author, each.what) for each in bank.history("notes:deploys")] == [
        ("c3", "cli", "rm: deleted"), ("c2", "python", "update"), ("c1", "cli", "add"),
    ]  # fmt: skip


def test_git_has_versions_too(repo: Path) -> None:
    with Bank.open(repo) as bank:
        bank.add(FIRST, title="Deploys")
        commit = save(repo, "Deploys", "2025-02-01")
        bank.update("notes:deploys", text=SECOND)
        versions = bank.history("notes:deploys")
        assert [each.what for each in versions] == ["update", "add", "Deploys"]
        assert bank.restore("notes:deploys", commit[:10]).text.strip() == FIRST


def test_the_differences_are_printed(run: Run, bank: Bank) -> None:
    bank.add(FIRST, title="Deploys")
    bank.update("notes:deploys", text=SECOND)
    lines = run("history", "notes:deploys", "--diff", "-n", "1").out.splitlines()
    assert lines[2:] == ["", f"-{FIRST}", f"+{SECOND}"] or lines[2:] == [" ", f"-{FIRST}", f"+{SECOND}"]


def test_a_version_that_is_none_is_said(run: Run, bank: Bank) -> None:
    bank.add(FIRST, title="Deploys")
    with pytest.raises(NotFound, match="There is no version c9 of notes:deploys"):
        bank.restore("notes:deploys", "c9")
    assert run("restore", "--version", "c1").code == 2


def test_what_changed_the_bank_is_listed_without_git(run: Run, bank: Bank) -> None:
    run("add", FIRST, "--title", "Deploys")
    assert [row.split("\t")[2:] for row in run("history").out.splitlines()] == [["cli", "add", "", "notes:deploys"]]


def test_a_note_that_was_moved_has_the_versions_of_its_earlier_name(bank: Bank) -> None:
    id = bank.add(FIRST, title="Deploys").id
    bank.update(id, text=SECOND)
    (moved,) = share(bank, [id], private=True)
    assert [version.what for version in bank.history(moved.id)][1:] == ["update", "add"]
    assert bank.restore(moved.id, bank.history(moved.id)[-1].version).id == moved.id
    assert FIRST in bank.get(moved.id).text


def test_what_a_version_changed_is_told_without_secrets(bank: Bank) -> None:
    id = bank.add(FIRST, title="Deploys").id
    bank.update(id, text=SECOND)
    newer, older = (each.version for each in bank.history(id))
    assert [line for line in difference(bank, id, newer, older) or () if line[0] in "+-"] == [f"-{FIRST}", f"+{SECOND}"]
    path = bank.get(id).path
    path.write_text(path.read_text().replace(SECOND, "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"))
    [_, now] = [line for line in difference(bank, id, "", newer) or () if line[0] in "+-"]
    assert now.startswith("+[REDACTED:")
