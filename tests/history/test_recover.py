"""`memlane recover`: what vanished without memlane comes back, and nothing else does."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from commands import Run
from conftest import tree, trusted
from memlane import Bank
from memlane.core.errors import NotEnabled
from memlane.history.noticing import noticed
from repositories import git, save

FIELDS = {
    "notes": {"title": "Deploys"},
    "vault": {},
    "topics": {"title": "Deploys", "topic": "ops", "subtopic": "release"},
    "records": {"title": "Deploys"},
    "layers": {"project": "api", "file_type": "common_patterns"},
}


def fill(bank: Bank) -> list[str]:
    """A memory in every lane, changed once, and one that was deleted."""
    ids = []
    for lane, fields in FIELDS.items():
        id = bank.add(f"Deploys go out on Tuesdays, as the {lane} say.", lane=lane, **fields).id
        ids.append(bank.update(id, text=f"Deploys go out on Wednesdays, as the {lane} say.").id)
    bank.delete(bank.add("Nobody needs this.", title="Needless").id)
    return ids


def kept(folder: Path) -> dict[str, bytes]:
    found = tree(folder / ".memories")
    return {name: data for name, data in found.items() if not name.startswith(("indices/", ".trash/", ".gitignore"))}


def test_a_bank_that_was_removed_comes_back_whole(run: Run, bank: Bank, tmp_path: Path) -> None:
    ids = fill(bank)
    before = kept(tmp_path)
    bank.close()
    shutil.rmtree(bank.root)
    said = run("list")
    assert said.out == ""
    assert "files are gone or changed back, not by memlane; `memlane recover` shows what" in said.err
    assert run("list").err == "nothing found\n"  # once
    rows = [line.split("\t")[:2] for line in run("recover").out.splitlines()]
    beside = ["tombstones.jsonl", "layers/projects/api/.stats.jsonl"]
    assert sorted(rows) == sorted([id, "gone"] for id in (*ids, *beside))
    assert kept(tmp_path) == {}
    assert run("recover", "--apply").code == 0
    assert kept(tmp_path) == before
    assert run("recover").err == "nothing is lost\n"
    assert run("undo").code == 0
    assert kept(tmp_path) == {}


def test_what_is_gone_is_examined_once(bank: Bank) -> None:
    """Each command took as long as the first: minutes, where ten thousand files were gone."""
    for number in range(30):
        bank.add(f"Shelf {number} holds box {number * 7}.", title=f"Shelf {number}")
        os.remove(bank.root / f"shelf-{number}.md")
    opened: list[object] = []
    counting = [True]
    sys.addaudithook(lambda event, args: opened.append(args[0]) if counting and event == "open" else None)
    try:
        assert noticed(bank) == 30
        first = len(opened)
        assert noticed(bank) == 0
        assert len(opened) < first + 30  # not one for each of them
    finally:
        counting.clear()
    bank.add("One more.", title="More")
    os.remove(bank.root / "more.md")
    assert noticed(bank) == 31


def test_git_clean_and_checkout_take_nothing_for_good(repo: Path) -> None:
    with Bank.open(repo) as bank:
        bank.add("Deploys go out on Tuesdays.", title="Deploys")
        save(repo)
        bank.update("notes:deploys", text="Deploys go out on Wednesdays.")
        bank.add("Something new.", title="New")
    git(repo, "checkout", "-q", ".")
    git(repo, "clean", "-fdq")
    with Bank.open(repo) as bank:
        assert [(one.ids, one.what) for one in bank.lost()] == [
            (("notes:deploys",), "changed back"), (("notes:new",), "gone"),
        ]  # fmt: skip
        bank.recover("notes:new")
        assert bank.get("notes:new").text.strip() == "Something new."
        assert [one.ids for one in bank.lost()] == [("notes:deploys",)]
        bank.recover()
        assert bank.get("notes:deploys").text.strip() == "Deploys go out on Wednesdays."
        assert bank.lost() == []


@pytest.mark.parametrize("way", ["rm", "undo", "forget"])
def test_what_was_taken_away_with_memlane_is_not_offered(bank: Bank, way: str) -> None:
    bank.add("Deploys go out on Tuesdays.", title="Deploys")
    if way == "rm":
        bank.delete("notes:deploys")
        shutil.rmtree(bank.root / ".trash")
    elif way == "undo":
        bank.undo()
    else:
        bank.forget("notes:deploys")
    assert bank.lost() == []


def test_what_somebody_changed_by_hand_is_not_offered(bank: Bank) -> None:
    memory = bank.add("Deploys go out on Tuesdays.", title="Deploys")
    memory.path.write_text(memory.path.read_text().replace("Tuesdays", "Mondays"))
    assert bank.lost() == []


def test_what_another_branch_has_is_not_lost(repo: Path, run: Run) -> None:
    git(repo, "checkout", "-q", "-b", "side")
    with Bank.open(repo) as bank:
        bank.add("Deploys go out on Tuesdays.", title="Deploys")
    save(repo)
    git(repo, "checkout", "-q", "main")
    assert run("--bank", repo, "list").err == "nothing found\n"
    shown = run("--bank", repo, "recover")
    assert shown.out.split("\t")[0] == "notes:deploys"
    assert shown.out.rstrip().endswith("on branch side")
    assert run("--bank", repo, "recover", "--apply").code == 0
    assert not (repo / ".memories/deploys.md").exists()


def test_what_was_not_committed_on_another_branch_is(repo: Path) -> None:
    git(repo, "checkout", "-q", "-b", "side")
    with Bank.open(repo) as bank:
        bank.add("Deploys go out on Tuesdays.", title="Deploys")
    git(repo, "clean", "-fdq")
    git(repo, "checkout", "-q", "main")
    with Bank.open(repo) as bank:
        assert [(one.ids, one.branch) for one in bank.lost()] == [(("notes:deploys",), "")]


def test_a_deletion_that_git_brought_counts(repo: Path, tmp_path: Path) -> None:
    with Bank.open(repo) as bank:
        bank.add("Deploys go out on Tuesdays.", title="Deploys")
    save(repo)
    git(tmp_path, "clone", "-q", str(repo), "clone")
    trusted(tmp_path / "clone/memlane.toml")
    with Bank.open(tmp_path / "clone") as clone:
        clone.delete("notes:deploys")
    save(tmp_path / "clone")
    git(repo, "pull", "-q", str(tmp_path / "clone"))
    with Bank.open(repo) as bank:
        assert not (bank.root / "deploys.md").exists()
        assert bank.lost() == []


def test_a_work_tree_that_was_removed_takes_no_memory_along(repo: Path, tmp_path: Path) -> None:
    with Bank.open(repo) as bank:
        bank.add("Deploys go out on Tuesdays.", title="Deploys")
    save(repo)
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"))
    trusted(tmp_path / "linked/memlane.toml")
    with Bank.open(tmp_path / "linked") as linked:
        linked.add("Learnt in the work tree.", title="Learnt")
        linked.update("notes:deploys", text="Deploys go out on Wednesdays.")
        linked.delete(linked.add("Nobody needs this.", title="Needless").id)
    git(repo, "worktree", "remove", "--force", str(tmp_path / "linked"))
    with Bank.open(repo) as bank:
        assert {one.ids[0]: one.what for one in bank.lost()} == {
            "notes:learnt": "gone", "notes:deploys": "changed back", "tombstones.jsonl": "gone",
        }  # fmt: skip
        bank.recover()
        assert bank.get("notes:learnt").text.strip() == "Learnt in the work tree."
        assert bank.get("notes:deploys").text.strip() == "Deploys go out on Wednesdays."
        assert bank.lost() == []


def test_nothing_is_lost_where_nothing_is(run: Run, bank: Bank) -> None:
    fill(bank)
    assert bank.lost() == []
    assert run("recover").err == "nothing is lost\n"


def test_a_bank_that_went_with_its_configuration_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`git clean -fdx` takes an uncommitted memlane.toml along."""
    project = tmp_path / "project"
    project.mkdir()
    with Bank.init(project) as bank:
        bank.add("Deploys go out on Tuesdays.", title="deploy")
    shutil.rmtree(project / ".memories")
    (project / "memlane.toml").unlink()
    (project / "src").mkdir()
    monkeypatch.chdir(project / "src")
    with pytest.raises(NotEnabled) as error:
        Bank.open()
    said = f"There was a bank in {project}: `memlane init` there, then `memlane recover` shows what it held."
    assert error.value.hint == said
    with Bank.init(project) as bank:
        assert [memory.text for memory in bank.memories()] == []
        bank.recover()
        assert [memory.text for memory in bank.memories()] == ["Deploys go out on Tuesdays."]
