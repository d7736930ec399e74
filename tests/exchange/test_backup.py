"""A bank in one file and back again, archives that are damaged or lie, and banks that are moved."""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import Run
from conftest import tree
from memlane import Bank
from memlane.config import load
from memlane.core.errors import AlreadyExists, ConfigError, InvalidInput, NotFound
from memlane.disk import archive
from memlane.exchange import backup


@pytest.fixture
def full(bank: Bank) -> Bank:
    """A bank with something in every lane, something deleted, private and forgotten, and a database about it."""
    bank.add("Deploys go out on Tuesdays.", title="deploy")
    bank.add("Ann earns too little.", title="salary", scope="private")
    bank.add("Ann prefers tea over coffee.", lane="vault", tier="canon")
    bank.add("Restart the queue first.", lane="topics", topic="ops/queue", title="restart")
    bank.add("What was said in a conversation.", lane="records")
    bank.add("The build is slow on Mondays.", lane="layers", project="api", file_type="known_issues")
    bank.add("Not any more, since the new cluster came in spring.", title="old")
    bank.delete("notes:old")
    bank.add("The canary sings at the bottom of the ninth mine shaft.", title="canary")
    bank.forget("notes:canary")
    bank.search("anything")
    return bank


def bank_files(root: Path) -> dict[str, bytes]:
    return {name: data for name, data in tree(root).items() if not name.startswith("indices")}


@pytest.fixture
def file(full: Bank, tmp_path: Path) -> Path:
    path = tmp_path / "out" / "backup.tar.gz"
    path.parent.mkdir()
    backup.write(full, path)
    return path


# -- there and back


def test_a_restored_bank_is_the_bank_byte_for_byte(full: Bank, file: Path, tmp_path: Path) -> None:
    done = backup.restore(file, tmp_path / "new")
    assert bank_files(done.root) == bank_files(full.root)
    assert (done.root, done.files, done.remarks) == (tmp_path / "new/.memories", len(bank_files(full.root)) + 1, ())
    with Bank.open(tmp_path / "new") as there:
        assert [memory.id for memory in there.list()] == [memory.id for memory in full.list()]
        assert there.restore("notes:old").text.startswith("Not any more")
        assert there.tombstones.deleted("The canary sings at the bottom of the ninth mine shaft.")
        assert there.add("It can be written to.").id == "notes:it-can-be-written-to"
        assert [one.verb for one in there.journal.changes()][2:] == [one.verb for one in full.journal.changes()]


def test_a_file_whose_name_is_not_utf_8_comes_back(bank: Bank, tmp_path: Path) -> None:
    (bank.root / os.fsdecode(b"caf\xe9.md")).write_text("Old, of another system.")
    backup.write(bank, tmp_path / "backup.tar.gz")
    done = backup.restore(tmp_path / "backup.tar.gz", tmp_path / "new")
    assert bank_files(done.root) == {**bank_files(bank.root), os.fsdecode(b"caf\xe9.md"): b"Old, of another system."}


def test_a_backup_is_for_its_owner_alone_and_replaces_nothing_unasked(full: Bank, file: Path) -> None:
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_bytes()
    with pytest.raises(AlreadyExists):
        backup.write(full, file)
    assert file.read_bytes() == before
    assert os.listdir(file.parent) == ["backup.tar.gz"]
    assert backup.write(full, file, overwrite=True)["path"] == str(file)


def test_a_backup_in_no_folder_says_so(full: Bank, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"There is no such folder\."):
        backup.write(full, tmp_path / "nowhere/x.tar.gz")
    assert not (tmp_path / "nowhere").exists()


def test_a_backup_inside_the_bank_is_refused(full: Bank) -> None:
    with pytest.raises(InvalidInput, match="inside the bank"):
        backup.write(full, full.root / "backup.tar.gz")


def test_what_differs_is_only_replaced_when_asked_for(run: Run, full: Bank, file: Path) -> None:
    path = full.root / "deploy.md"
    whole = path.read_bytes()
    path.write_text("Changed by hand.\n")
    (full.root / "later.md").write_text("Written since.\n")
    result = run("restore-backup", file)
    assert (result.code, f"{path} is there already, and differs." in result.err) == (5, True)
    assert path.read_text() == "Changed by hand.\n"
    assert run("restore-backup", file, "--overwrite").err.endswith("1 file was written\n")
    assert (path.read_bytes(), (full.root / "later.md").exists()) == (whole, True)


def test_a_bank_that_was_removed_comes_back_where_its_configuration_says(bank: Bank, tmp_path: Path, run: Run) -> None:
    with (tmp_path / "memlane.toml").open("a") as out:
        out.write('\n[lanes]\nrecords = "said"\nvault = "data/facts.jsonl"\n')
    run("trust", "--yes")
    with Bank.open(tmp_path) as bank:
        bank.add("Ann prefers tea over coffee.", lane="vault", tier="canon")
        bank.add("What was said in a conversation.", lane="records")
    before = {name: data for name, data in tree(tmp_path).items() if "indices" not in name}
    assert run("backup", "../whole.tar.gz").code == 0
    for name in before:
        if name != "memlane.toml":
            (tmp_path / name).unlink()
    assert run("restore-backup", "../whole.tar.gz").code == 0
    assert tree(tmp_path) == before
    done = backup.restore(tmp_path / "../whole.tar.gz", tmp_path / "new")
    assert sorted(tree(done.root)) == sorted(
        [".gitignore", "vault.jsonl", *(f"records/{name[5:]}" for name in before if "said/" in name)]
    )
    assert done.remarks == ("it is not trusted yet: `memlane trust` shows its configuration",)
    assert run("--bank", "new", "trust", "--yes").code == 0
    assert sorted(row["lane"] for row in run("--bank", "new", "list", "--json").json) == ["records", "vault"]
    (tmp_path / "../whole.tar.gz").unlink()


def test_what_was_trusted_is_not_carried_by_an_archive(bank: Bank, tmp_path: Path, run: Run) -> None:
    with (tmp_path / "memlane.toml").open("a") as out:
        out.write('\n[gate]\nsecrets = "off"\n')
    run("trust", "--yes")
    assert run("backup", "b.tar.gz").code == 0
    assert "it is not trusted yet: `memlane trust`" in run("restore-backup", "b.tar.gz", "new").err
    assert load(tmp_path / "new").distrust


def test_the_users_own_bank_comes_back_as_that(run: Run, home: Path, tmp_path: Path) -> None:
    run("init", "--user")
    run("add", "Ann prefers tea.", "--title", "tea")
    own = home / ".local/share/memlane/bank"
    before = bank_files(own)
    assert run("backup", tmp_path / "own.tar.gz").code == 0
    (own / "tea.md").unlink()
    assert run("restore-backup", tmp_path / "own.tar.gz").out == f"{own}\n"
    assert bank_files(own) == before


def test_a_journal_that_is_here_stays(full: Bank, file: Path, tmp_path: Path) -> None:
    assert backup.restore(file).remarks == (
        "what is known here of what was forgotten stays; what the backup knows was left out",
        "the journal that is here stays; that of the backup was left out",
    )


# -- what is no backup


def rebuilt(file: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    """A backup with its members changed, and a manifest that vouches for them."""
    import hashlib

    with tarfile.open(file) as tar:
        members = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    manifest = json.loads(members.pop("manifest.json"))
    change(members)
    manifest["files"] = [
        {"name": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in members.items()
    ]
    members["manifest.json"] = json.dumps(manifest).encode()
    path = file.with_name("changed.tar.gz")
    with tarfile.open(path, "w:gz") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


@pytest.mark.parametrize("name", ["../out.md", "/tmp/out.md", "bank/../../out.md", "bank/.git/config", "bank/a\n.md"])
def test_a_member_that_leads_elsewhere_is_refused(file: Path, tmp_path: Path, name: str) -> None:
    hostile = rebuilt(file, lambda members: members.update({name: b"x"}))
    with pytest.raises(InvalidInput, match="it has a member that no backup has"):
        backup.restore(hostile, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_an_archive_does_not_choose_where_its_lanes_go(file: Path, tmp_path: Path) -> None:
    """A hostile one might name the project's own files."""
    hostile = rebuilt(file, lambda members: members.update({"lanes/notes/CLAUDE.md": b"Obey.", "other/Makefile": b"x"}))
    done = backup.restore(hostile, tmp_path / "new")
    assert sorted(os.listdir(tmp_path / "new")) == [".memories", "memlane.toml"]
    assert "CLAUDE.md" not in tree(done.root)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_what_is_no_plain_file_is_refused(tmp_path: Path, bank: Bank, kind: bytes) -> None:
    path = tmp_path / "odd.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        info = tarfile.TarInfo("bank/x.md")
        info.type, info.linkname = kind, "/etc/passwd"
        tar.addfile(info)
    with pytest.raises(InvalidInput, match="it has a member that no backup has"):
        backup.restore(path, tmp_path / "new")


def test_every_cut_and_a_changed_byte_are_noticed(file: Path, tmp_path: Path) -> None:
    data = file.read_bytes()
    bad = tmp_path / "bad.tar.gz"
    for size in range(0, len(data) - 8, max(len(data) // 15, 1)):
        bad.write_bytes(data[:size])
        with pytest.raises(InvalidInput, match="no whole backup"):
            backup.restore(bad, tmp_path / "new")
    for at in range(20, len(data), max(len(data) // 15, 1)):
        bad.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(InvalidInput, match="no whole backup"):
            backup.restore(bad, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_more_than_the_limits_allow_is_refused(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_BYTES", 300)
    with pytest.raises(InvalidInput, match="it is too large"):
        backup.restore(file, tmp_path / "new")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        backup.restore(tmp_path / "none.tar.gz")


# -- moving


def test_a_moved_bank_is_the_same_bank(run: Run, full: Bank, tmp_path: Path) -> None:
    before, ids = bank_files(full.root), [memory.id for memory in full.list()]
    full.close()
    assert run("move", "elsewhere").out == f"{tmp_path}/elsewhere/.memories\n"
    with Bank.open(tmp_path) as bank:
        assert (bank.root, bank_files(bank.root)) == (tmp_path / "elsewhere/.memories", before)
        assert sorted(memory.id for memory in bank.list()) == sorted(ids)
        assert bank.add("Another entry for the queue.", lane="topics", topic="ops/queue").file.startswith(
            str(bank.root)
        )
        assert bank.tombstones.deleted("The canary sings at the bottom of the ninth mine shaft.")
    assert not (tmp_path / ".memories").exists()
    assert run("move", tmp_path).out == f"{tmp_path}/.memories\n"
    assert run("doctor", "--only", "missing", "--json").json["findings"] == []
    assert len(run("list", "--json").json) == len(ids) + 1


def test_moving_says_so_and_leaves_nothing_behind_when_it_is_moved_back(run: Run, bank: Bank, tmp_path: Path) -> None:
    bank.add("Deploys go out on Tuesdays.", title="deploy")
    bank.close()
    before = (tmp_path / "memlane.toml").read_text()
    there, back = run("move", "elsewhere"), run("move", ".")
    assert (there.err, back.err) == (
        f"moved the whole bank to {tmp_path}/elsewhere/.memories; `memlane move {tmp_path}` moves it back\n",
        f"moved the whole bank to {tmp_path}/.memories; `memlane move {tmp_path}/elsewhere` moves it back\n",
    )
    assert (tmp_path / "memlane.toml").read_text() == before
    assert sorted(os.listdir(tmp_path)) == [".memories", "memlane.toml"]


@pytest.mark.parametrize("words", [("deploy",), ("notes:deploy",), ("deploy", "release")])
def test_who_wants_to_rename_a_memory_is_told_how(run: Run, bank: Bank, tmp_path: Path, words: tuple[str, ...]) -> None:
    bank.add("Deploys go out on Tuesdays.", title="deploy")
    before = tree(tmp_path)
    result = run("move", *words)
    assert (result.code, "`memlane rename" in result.err) == (2, True)
    assert tree(tmp_path) == before


def test_a_bank_is_not_moved_to_where_no_path_can_be_written_down(bank: Bank, tmp_path: Path) -> None:
    before = tree(tmp_path)
    with pytest.raises(ConfigError, match="has a name that is not UTF-8"):
        backup.move(bank, tmp_path / os.fsdecode(b"caf\xe9"))
    assert tree(tmp_path) == before


@pytest.mark.parametrize("place", [".", ".memories", ".memories/deep", "taken"])
def test_a_place_that_is_taken_is_refused_and_nothing_changes(full: Bank, tmp_path: Path, place: str) -> None:
    (tmp_path / "taken/.memories").mkdir(parents=True)
    (tmp_path / "taken/.memories/x.md").write_text("Another one's.")
    before = tree(tmp_path)
    with pytest.raises((InvalidInput, AlreadyExists)):
        backup.move(full, tmp_path / place)
    assert tree(tmp_path) == before


def test_a_bank_that_was_removed_and_recovered_keeps_its_changes_when_it_is_moved(bank: Bank, tmp_path: Path) -> None:
    """Its folder is another one on the disk than the journal has met."""
    id = bank.add("Said first.", title="Said").id
    shutil.rmtree(bank.root)
    bank.recover()
    backup.move(bank, tmp_path / "elsewhere")
    with Bank.open(tmp_path) as moved:
        assert [version.what for version in moved.history(id)] == ["recover", "add"]
        moved.update(id, text="Said later.")
        backup.move(moved, tmp_path)
    with Bank.open(tmp_path) as back:
        assert [version.what for version in back.history(id)] == ["update", "recover", "add"]
        back.undo()
        assert back.get(id).text.strip() == "Said first."
