"""The journal: every change is on stable storage before it is made, outside the project, and can be taken back."""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from commands import Run
from conftest import tree, trusted
from memlane import Bank, ConfigError, StorageError
from memlane.capture.messages import capture
from memlane.config import user_state
from memlane.disk import files, journal
from memlane.history.undo import applied
from repositories import git, save
from samples import transcript, words


def files_of(bank: Bank) -> dict[str, bytes]:
    """Every file of the bank but what is derived, and the rules for git, which are made with the bank."""
    return {name: data for name, data in tree(bank.root).items() if not name.startswith(("indices/", ".gitignore"))}


def folder() -> Path:
    return user_state() / "journal"


# -- any change


def test_every_kind_of_change_is_taken_back_byte_for_byte(bank: Bank) -> None:
    states = [files_of(bank)]

    def done() -> None:
        states.append(files_of(bank))

    note = bank.add("Deploys go out on Tuesdays.", title="Deploys").id
    done()
    bank.update(note, text="Deploys go out on Wednesdays.")
    done()
    bank.append(note, "Never on Fridays.")
    done()
    bank.edit(note, "Wednesdays", "Thursdays")
    done()
    bank.delete(note)
    done()
    bank.restore(note)
    done()
    record = bank.add("Mission: keep the runtime stable", lane="vault").id
    done()
    bank.update(record, text="Mission: keep the runtime fast")
    done()
    bank.delete(record)
    done()
    bank.vault.compact()
    done()
    entry = bank.add("Logins expire.", lane="topics", topic="auth", subtopic="login", title="Expiry").id
    done()
    bank.delete(entry)
    done()
    bank.add("What was said", lane="records", title="Said")
    done()
    bank.add("Patterns", lane="layers", project="api", file_type="common_patterns")
    done()
    while len(states) > 1:
        states.pop()
        undone = bank.undo()
        assert (undone.conflicts, files_of(bank)) == ((), states[-1])
    assert sorted(path.name for path in bank.root.rglob("*") if path.is_dir()) == ["layers", "records", "topics"]


def test_redo_goes_the_way_forward_again(run: Run, bank: Bank) -> None:
    states = []
    for text in ("one", "two", "three"):
        bank.add(f"Text number {text}", title=text)
        states.append(files_of(bank))
    run("undo", "3")
    for state in states:
        assert run("redo").code == 0
        assert files_of(bank) == state
    nothing = run("redo")
    assert (nothing.code, nothing.err.splitlines()[0]) == (3, "error: There is nothing to do again.")


def test_nothing_is_done_again_after_another_change(run: Run, bank: Bank) -> None:
    bank.add("Text one", title="one")
    run("undo")
    bank.add("Text two", title="two")
    assert run("redo").code == 3


def test_a_change_says_who_made_it_and_what_it_was_about(run: Run, bank: Bank) -> None:
    run("add", "Deploys go out on Tuesdays.", "--title", "Deploys")
    run("vault", "add", "Mission: keep the runtime stable", "--scope", "shared", "--category", "other")
    bank.append("notes:deploys", "More.")
    with journal.acting("mcp", "some-client"), journal.change("update_memory"):
        bank.update("notes:deploys", tags=["release"])
    (vault,) = bank.list(lane="vault")
    assert [(one.by, one.what, one.ids) for one in applied(bank)] == [
        ("mcp some-client", "update_memory", ("notes:deploys",)),
        ("python", "append", ("notes:deploys",)),
        ("cli", "vault add", (vault.id,)),
        ("cli", "add", ("notes:deploys",)),
    ]
    assert bank.journal.changes(since=bank.journal.changes()[1].number) == bank.journal.changes(limit=1)


def test_a_change_that_fails_leaves_nothing_to_undo(bank: Bank) -> None:
    bank.add("Deploys go out on Tuesdays.", title="Deploys")
    (bank.root / "taken.md").mkdir()
    with pytest.raises(StorageError):
        files.replace(os.fspath(bank.root / "taken.md"), b"data")
    assert [one.what for one in applied(bank)] == ["add"]


def test_a_refused_secret_is_not_in_it(run: Run, bank: Bank) -> None:
    secret = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"
    assert run("add", f"The token is {secret}").code == 4
    assert run("vault", "add", f"Token {secret}", "--scope", "shared", "--category", "other").code == 4
    assert bank.journal.changes() == []


# -- where it is


def test_only_its_owner_can_read_it(bank: Bank) -> None:
    bank.add("Deploys go out on Tuesdays.")
    modes = {path.suffix: stat.S_IMODE(path.stat().st_mode) for path in (folder(), *folder().iterdir())}
    assert set(modes.values()) == {0o700, 0o600}


def test_a_bank_that_was_moved_keeps_it(bank: Bank, tmp_path: Path) -> None:
    bank.add("Deploys go out on Tuesdays.", title="Deploys")
    bank.close()
    (tmp_path / "new").mkdir()
    for name in (".memories", "memlane.toml"):
        os.rename(tmp_path / name, tmp_path / "new" / name)
    trusted(tmp_path / "new/memlane.toml")
    with Bank.open(tmp_path / "new") as moved:
        assert [one.verb for one in moved.journal.changes()] == ["add"]
        assert moved.undo().restored == ("deploys.md",)
        moved.redo()
    for name in (".memories", "memlane.toml"):
        os.rename(tmp_path / "new" / name, tmp_path / name)
    with Bank.open(tmp_path) as back:
        assert back.undo().restored == ("deploys.md",)


def test_a_folder_that_has_the_number_of_one_that_is_gone_is_another_bank(bank: Bank, tmp_path: Path) -> None:
    """Numbers on the disk are given out again."""
    bank.add("Deploys go out on Tuesdays.", title="Deploys")
    bank.close()
    (tmp_path / ".memories/deploys.md").unlink()
    (tmp_path / "new").mkdir()
    for name in (".memories", "memlane.toml"):
        os.rename(tmp_path / name, tmp_path / "new" / name)
    trusted(tmp_path / "new/memlane.toml")
    with Bank.open(tmp_path / "new") as other:
        other.add("Something else", title="Else")
        assert [one.verb for one in other.journal.changes()] == ["add"]


def test_a_clone_and_a_linked_work_tree_share_it_and_undo_only_their_own(repo: Path, tmp_path: Path) -> None:
    with Bank.open(repo) as bank:
        bank.add("Deploys go out on Tuesdays.", title="Deploys")
    save(repo)
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"))
    git(tmp_path, "clone", "-q", str(repo), "clone")
    for place in ("linked", "clone"):
        trusted(tmp_path / place / "memlane.toml")
        with Bank.open(tmp_path / place) as bank:
            bank.add(f"Written in {place}.", title=place)
            assert bank.undo().restored == (f"{place}.md",)
            assert (bank.root / "deploys.md").is_file()
    with Bank.open(repo) as bank:
        assert sorted({Path(one.place).parent.name for one in bank.journal.changes()}) == ["clone", "linked", "repo"]
        assert [one.what for one in applied(bank)] == ["add", "write", "write"]  # of `init --git`


# -- when it cannot be written


def test_without_a_place_for_it_changes_are_made_all_the_same(run: Run, bank: Bank) -> None:
    folder().parent.mkdir(parents=True, exist_ok=True)
    folder().write_text("in the way")
    done = run("add", "Deploys go out on Tuesdays.", "--title", "Deploys")
    assert done.code == 0
    assert "nothing is recorded for undo: its folder cannot be written" in done.err
    assert (bank.root / "deploys.md").is_file()
    assert run("undo").code == 3


def test_a_damaged_journal_is_put_aside_and_a_new_one_begun(bank: Bank) -> None:
    bank.add("Deploys go out on Tuesdays.", title="Deploys")
    bank.close()
    (path,) = folder().glob("*.db")
    path.write_bytes(b"no database at all " * 1000)
    bank.add("Something else", title="Else")
    assert [one.ids for one in bank.journal.changes()] == [("notes:else",)]
    assert len(list(folder().glob("*.damaged"))) == 1


def test_on_a_full_disk_nothing_is_changed(bank: Bank) -> None:
    bank.add("Deploys go out on Tuesdays.", title="Deploys")
    before = files_of(bank)
    assert bank.journal
    pages = bank.journal._do(lambda file: file._db.execute("PRAGMA page_count").fetchone()[0], 0)
    bank.journal._do(lambda file: file._db.execute(f"PRAGMA max_page_count = {pages}").fetchone(), None)
    with pytest.raises(StorageError, match="The disk is full: the journal was not written") as refused:
        bank.update("notes:deploys", text=os.urandom(50_000).hex())
    assert (refused.value.code, files_of(bank)) == ("disk_full", before)
    bank.close()
    assert [one.what for one in applied(bank)] == ["add"]


def test_the_user_can_switch_it_off_and_a_project_cannot(bank: Bank, tmp_path: Path) -> None:
    with Bank.open(tmp_path, journal__enabled=False) as silent:
        silent.add("Deploys go out on Tuesdays.", title="Deploys")
        assert silent.journal.changes() == []
    assert not folder().exists()
    with (tmp_path / "memlane.toml").open("a") as file:
        file.write("[journal]\nenabled = false\n")
    trusted(tmp_path / "memlane.toml")
    with pytest.raises(ConfigError, match="is not for a project to decide"):
        Bank.open(tmp_path)


def test_forget_reaches_one_that_was_switched_off_since(bank: Bank, tmp_path: Path) -> None:
    bank.add("Deploys go out on Tuesdays.", title="Deploys")
    bank.close()
    with Bank.open(tmp_path, journal__enabled=False) as silent:
        silent.forget("notes:deploys")
        assert silent.journal.changes() == []


def test_every_captured_message_is_taken_back_on_its_own(bank: Bank, tmp_path: Path) -> None:
    """One that was changed since is left, and the others go."""
    said = transcript(tmp_path / "session.jsonl", f"First:\n{words('one')}", f"Second:\n{words('two')}")
    with journal.acting("hook", "claude-code", "s1"), journal.change("hook stop"):
        first, second = capture(bank, said).ids
    bank.update(first, text="Something else was meant.")
    undone = bank.undo(bank.journal.changes()[1].id)
    assert [path for path, _ in undone.conflicts] == [f"records/{first.partition(':')[2]}.md"]
    assert undone.restored == (f"records/{second.partition(':')[2]}.md",)


# -- bounds


def test_what_is_too_much_goes_and_the_newest_of_every_file_stays(bank: Bank) -> None:
    assert bank.journal
    for number in range(30):
        bank.add(os.urandom(3000).hex(), title=f"note {number}")
        bank.update("notes:note-0", text=os.urandom(3000).hex())
        bank.add(f"Fact number {number} about {os.urandom(8).hex()}", lane="vault")
    kept = files_of(bank)
    bank.journal.max_bytes = 250_000
    bank.journal.prune()
    assert {name: bank.journal.content(name) for name in kept} == kept
    shutil.rmtree(bank.root)
    bank.recover()
    assert files_of(bank) == kept
    assert len(applied(bank)) < 60
    for _ in range(3):
        bank.undo()


def test_what_is_too_old_goes(bank: Bank) -> None:
    assert bank.journal
    for number in range(3):
        bank.update(bank.add("Deploys.", title="Deploys").id if not number else "notes:deploys", text=f"Text {number}")
    with closing(sqlite3.connect(bank.journal.path)) as db, db:
        db.execute("UPDATE changes SET at = at - 86400 * 10 WHERE number < 4")
    bank.journal.days = 5
    bank.journal.prune()
    assert [one.what for one in applied(bank)] == ["update"]
    assert [each.what for each in bank.history("notes:deploys")] == ["update"]


# -- many writers


def test_many_processes_write_at_once(bank: Bank, tmp_path: Path) -> None:
    program = (
        "import sys; from memlane import Bank\n"
        "bank = Bank.open(sys.argv[1])\n"
        "for n in range(10): bank.add(f'Writer {sys.argv[2]} says {n} times hello', title=f'{sys.argv[2]} {n}')\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path), name]) for name in "abcd"]
    assert [writer.wait() for writer in writers] == [0] * 4
    assert len(bank.journal.changes()) == 40
    for _ in range(40):
        assert bank.undo().conflicts == ()
    assert files_of(bank) == {}


def test_a_purge_leaves_no_copy_in_a_page_that_rows_were_moved_out_of(bank: Bank) -> None:
    dice = random.Random(4)
    for number in range(100):
        with journal.change("add"):
            rest = dice.randbytes(20 + number * 37 % 400).hex()
            files.create(os.fspath(bank.root / f"n{number}.md"), f"Zebra {number} {rest}\n".encode())
    kept = bank.journal
    assert kept is not None
    assert kept.path is not None
    for digit in "13579024":  # rows are moved while others go, and then go themselves
        assert kept.purge(lambda name, data, digit=digit: None if name.endswith(f"{digit}.md") else data, ())
    left = {int(found) for found in re.findall(rb"Zebra (\d+) ", Path(kept.path).read_bytes())}
    assert {number % 10 for number in left} == {6, 8}
