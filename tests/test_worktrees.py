"""Which bank a linked git worktree uses: real worktrees, and archives whose `.git` lies."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from commands import Run
from memlane import Bank
from memlane.config import load, trust, user_state, worktrees
from memlane.core.errors import NotTrusted
from repositories import git, save


@pytest.fixture
def main(tmp_path: Path) -> Path:
    """A repository with code in it, and a bank that git knows nothing of."""
    folder = tmp_path / "main"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "auth.py").write_text("def login():\n    return 1\n")
    save(folder)
    with Bank.init(folder) as bank:
        bank.add("There from the start.", title="first")
    return folder


def linked(main: Path, place: str = "../linked") -> Path:
    folder = Path(os.path.normpath(main / place))
    git(main, "worktree", "add", "-q", "-b", folder.name, str(folder))
    return folder


def ids(folder: Path) -> list[str]:
    with Bank.open(folder) as bank:
        return sorted(memory.id for memory in bank.list())


# -- which one


def test_what_git_does_not_track_goes_to_the_main_worktrees_bank(main: Path) -> None:
    other = linked(main)
    with Bank.open(other) as bank:
        bank.add("Deploys go out on Tuesdays.", title="deploy")
        assert (bank.root, bank.config.code) == (main / ".memories", other)
    git(main, "worktree", "remove", "--force", str(other))
    assert ids(main) == ["notes:deploy", "notes:first"]


@pytest.mark.parametrize("place", ["../linked", ".worktrees/linked"])
def test_a_worktree_inside_or_beside_the_main_one_and_a_folder_in_it(main: Path, place: str) -> None:
    below = linked(main, place) / "deep/down"
    below.mkdir(parents=True)
    config = load(below)
    assert (config.root, config.code) == (main / ".memories", below.parent.parent)
    assert config.why == "git does not track the bank of this worktree"


def test_a_project_in_a_folder_of_the_repository(main: Path) -> None:
    (main / "apps/api").mkdir(parents=True)
    Bank.init(main / "apps/api").close()
    other = linked(main)
    (other / "apps/api/src").mkdir(parents=True)
    config = load(other / "apps/api/src")
    assert (config.root, config.code) == (main / "apps/api/.memories", other / "apps/api")


def test_what_git_tracks_goes_to_the_worktrees_own_bank(repo: Path) -> None:
    other = linked(repo)
    with Bank.open(other) as bank:
        bank.add("Only on this branch.", title="mine")
        assert (bank.root, bank.config.code) == (other / ".memories", other)
        assert bank.config.why == "git tracks the bank of this worktree"
    assert ids(repo) == []


def test_a_branch_from_before_the_bank_was_committed_uses_the_main_one(main: Path) -> None:
    other = linked(main)
    save(main)
    assert load(other).root == main / ".memories"
    git(other, "merge", "-q", "main")
    assert load(other).root == other / ".memories"


@pytest.mark.parametrize(
    ("setting", "in_main", "in_repo"), [("shared", "main", "main"), ("own", None, "linked"), ("auto", "main", "linked")]
)
def test_the_setting_chooses(main: Path, setting: str, in_main: str | None, in_repo: str) -> None:
    flags = {"memory.worktrees": setting}
    other = linked(main)
    found = load(other, flags)
    assert (found.file and found.file.parent.name) == in_main
    save(main)
    git(other, "merge", "-q", "main")
    assert load(other, flags).root.parent.name == in_repo


def test_one_bank_has_one_configuration(main: Path) -> None:
    """A branch's own memlane.toml says nothing of the main worktree's bank."""
    other = linked(main)
    (other / "memlane.toml").write_text('[memory]\nenabled = true\n\n[gate]\nsecrets = "off"\n')
    assert (load(other)["gate.secrets"], load(other).file) == ("refuse", main / "memlane.toml")


@pytest.mark.parametrize(
    "options", [["-c", "index.version=4"], ["-c", "core.splitIndex=true"], ["-c", "index.version=3"]]
)
def test_every_form_of_gits_index_is_read(main: Path, options: list[str]) -> None:
    for number in range(40):
        (main / f"file-{number}.txt").write_text("x")
    (main / "deep/.memories").mkdir(parents=True)
    (main / "deep/.memories/x.md").write_text("Another one's.")
    (main / ".memories-old").write_text("x")
    git(main, "add", "deep", ".memories-old", *(f"file-{number}.txt" for number in range(40)))
    git(main, "commit", "-q", "-m", "Work")
    other = linked(main)
    worktree = worktrees.linked(other)
    assert worktree
    (other / "later.txt").write_text("x")
    git(other, *options, "add", "-N", "later.txt")
    assert not worktrees.tracks(worktree, [".memories"])
    (other / ".memories").mkdir()
    (other / ".memories/note.md").write_text("A note.")
    git(other, *options, "add", ".memories")
    assert worktrees.tracks(worktree, [".memories"])
    assert worktrees.tracks(worktree, ["auth.py"])
    assert not worktrees.tracks(worktree, ["auth", "note.md", "memories"])


def test_the_code_is_that_of_the_worktree(main: Path) -> None:
    with Bank.open(main) as bank:
        bank.add("[[auth.py]] always lets you in.", title="auth")
    other = linked(main)
    (other / "auth.py").write_text("def login():\n    return 2\n")
    with Bank.open(other) as there, Bank.open(main) as here:
        assert [verdict.verdict for verdict in there.fresh()] == ["drifted"]
        assert [verdict.verdict for verdict in here.fresh()] == ["fresh"]


def test_a_session_in_a_worktree_starts_with_the_main_banks_memories(main: Path) -> None:
    payload = json.dumps({"hook_event_name": "SessionStart", "session_id": "s", "cwd": str(linked(main))})
    command = [sys.executable, "-m", "memlane", "hook", "claude-code"]
    done = subprocess.run(command, input=payload, text=True, capture_output=True, check=True)
    assert "There from the start." in done.stdout


# -- saying so


def test_memlane_and_doctor_say_which_bank_is_used_and_why(run: Run, main: Path) -> None:
    other = linked(main)
    said = "he main worktree's bank is used: git does not track the bank of this worktree"
    assert f"T{said}.\n" in run("--bank", other).out
    (finding,) = run("--bank", other, "doctor", "--only", "worktree", "--json").json["findings"]
    assert (finding["severity"], finding["why"]) == ("info", f"t{said}")
    assert run("--bank", main, "doctor", "--only", "worktree", "--json").json["findings"] == []


def test_init_in_a_worktree_does_not_hide_the_main_bank(run: Run, main: Path) -> None:
    other = linked(main)
    result = run("init", other)
    assert (result.out, "the main worktree's bank is used" in result.err) == (f"{main / '.memories'}\n", True)
    assert not (other / "memlane.toml").exists()


# -- trust


def test_the_main_worktrees_trust_is_what_counts(run: Run, main: Path) -> None:
    other = linked(main)
    trust.revoke(user_state(), main / "memlane.toml")
    with Bank.open(other) as bank, pytest.raises(NotTrusted):
        bank.add("Not yet.")
    assert run("--bank", other, "trust", "--yes").code == 0
    with Bank.open(other) as bank:
        assert bank.add("Now.").id == "notes:now"


def test_who_trusts_everyone_does_so_in_worktrees(run: Run, repo: Path) -> None:
    run("--bank", repo, "trust", "--everyone")
    assert trust.trusts_everyone(user_state(), linked(repo) / "memlane.toml")


@pytest.mark.parametrize("kind", ["copied", "link", "made up", "main"])
def test_a_git_file_that_leads_elsewhere_opens_nobodys_bank(main: Path, tmp_path: Path, kind: str) -> None:
    """An archive may bring a `.git` that names a repository of the user's, which does not name it back."""
    with Bank.open(main) as bank:
        bank.add("The plan is secret.", title="plan")
    other = linked(main)
    hostile = tmp_path / "unpacked"
    hostile.mkdir()
    if kind == "copied":
        shutil.copy(other / ".git", hostile / ".git")
    elif kind == "link":
        (hostile / ".git").symlink_to(other / ".git")
    elif kind == "main":
        (hostile / ".git").write_text(f"gitdir: {main / '.git'}\n")
    else:  # a worktree's folder of its own, which names the user's repository as the common one
        admin = tmp_path / "unpacked/admin"
        admin.mkdir()
        (admin / "gitdir").write_text(f"{hostile / '.git'}\n")
        (admin / "commondir").write_text(f"{main / '.git'}\n")
        (hostile / ".git").write_text("gitdir: admin\n")
    assert worktrees.linked(hostile) is None
    assert load(hostile).file is None
    (hostile / "memlane.toml").write_bytes((main / "memlane.toml").read_bytes())
    assert (load(hostile).root, bool(load(hostile).distrust)) == (hostile / ".memories", True)


def test_a_worktree_with_relative_paths_is_known(main: Path) -> None:
    other = linked(main)
    admin = main / ".git/worktrees/linked"
    (other / ".git").write_text(f"gitdir: {os.path.relpath(admin, other)}\n")
    (admin / "gitdir").write_text(f"{os.path.relpath(other / '.git', admin)}\n")
    assert load(other).root == main / ".memories"


def test_what_is_captured_in_a_worktree_has_one_history(repo: Path) -> None:
    """Its file lies in the main worktree's bank, whoever changes it: deleted in one is not lost in the other."""
    other = linked(repo)
    with Bank.open(repo) as bank:
        id = bank.add("Said in the main worktree.", lane="records", title="Said").id
    with Bank.open(other) as bank:
        assert bank.root.is_relative_to(other)
        assert not Path(bank.get(id).file).is_relative_to(other)
        bank.update(id, text="Changed in the linked one.")
        assert [version.what for version in bank.history(id)] == ["update", "add"]
    with Bank.open(repo) as bank:
        assert [version.what for version in bank.history(id)] == ["update", "add"]
        assert bank.lost() == []
    with Bank.open(other) as bank:
        bank.delete(id)
    with Bank.open(repo) as bank:
        assert bank.lost() == []
    with Bank.open(other) as bank:
        bank.undo()
        assert bank.get(id).text.strip() == "Changed in the linked one."
        bank.forget(id)
    with Bank.open(repo) as bank:
        assert bank.journal
        assert [name for name, data in bank.journal.texts() if b"linked one" in data or b"Said in" in data] == []


def test_lines_of_a_vault_outlive_their_worktree(repo: Path) -> None:
    """Though the main worktree's vault was changed after it."""
    other = linked(repo)
    with Bank.open(other) as bank:
        kept = bank.add("Remembered in the linked worktree.", lane="vault").id
    with Bank.open(repo) as bank:
        bank.add("Remembered in the main worktree.", lane="vault")
        gone = bank.add("Deleted and compacted away here.", lane="vault").id
        bank.delete(gone)
        bank.vault.compact()
    git(repo, "worktree", "remove", "--force", str(other))
    with Bank.open(repo) as bank:
        assert [one.ids for one in bank.lost()] == [(kept,)]
        bank.recover()
        assert bank.get(kept).text == "Remembered in the linked worktree."
        assert bank.lost() == []
