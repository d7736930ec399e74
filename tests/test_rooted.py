"""A project that was merely cloned: links, pipes and huge files at every name of a bank, under every command."""

from __future__ import annotations

import hashlib
import os
import resource
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from commands import Run
from memlane import Bank, StorageError
from memlane.disk import files, rooted

# what a hostile repository may hold in the place of ours, below the project
PLACES = (
    ".memories",
    ".memories/topics",
    ".memories/records",
    ".memories/layers",
    ".memories/indices",
    ".memories/indices/capture",
    ".memories/.trash",
    ".memories/.trash/undo",
    ".memories/topics/.trash",
    ".memories/topics/index.md",
    ".memories/topics/api",
    ".memories/records/archived",
    ".memories/vault.jsonl",
    ".memories/vault.jsonl.old",
    ".memories/vault.jsonl.rejected",
    ".memories/anchors.jsonl",
    ".memories/tombstones.jsonl",
    ".memories/odd.md",
    ".memories/.gitignore",
    ".memories/.gitattributes",
    ".memories/indices/.gitignore",
    ".memories/indices/index.db",
    ".memories/indices/index.db-wal",
    ".memories/indices/code.json",
    ".memories/indices/mentions.json",
    "memlane.toml",
    "CLAUDE.md",
    ".mcp.json",
)
COMMANDS = (
    ("search", "chapter"),
    ("add", "The build runs on Tuesdays in Berlin"),
    ("add", "Berlin has a second build machine", "--lane", "records"),
    ("vault", "add", "The build machine is called bear", "--topic", "build"),
    ("topics", "store", "The API limits callers to ten a second", "--topic", "api", "--subtopic", "limits"),
    ("topics", "reindex"),
    ("vault", "compact"),
    ("append", "notes:odd", "one more line"),
    ("list",),
    ("context", "chapter"),
    ("context",),
    ("review", "--only", "drifted", "--show"),
    ("review", "--only", "prune"),
    ("review", "--apply"),
    ("rm", "notes:odd"),
    ("restore", "notes:odd"),
    ("doctor", "--fix"),  # which begins with all that `doctor` does
    ("doctor", "--deep", "--fix"),
    ("doctor", "--reindex"),
    ("undo",),
    ("export", "--to", "CLAUDE.md"),
    ("connect", "claude-code", "--project"),
    ("init",),
    ("init", "--git"),
    ("doctor", "--only", "format"),
    ("doctor", "--only", "secrets"),
    ("forget", "notes:odd", "--yes"),
)


def _canaries(folder: Path) -> dict[str, str]:
    """Every name outside the project, with a hash of what is there."""
    found = {}
    for path in sorted(folder.rglob("*")):
        what = b"" if path.is_dir() else path.read_bytes()
        found[str(path.relative_to(folder))] = hashlib.sha256(what).hexdigest()
    return found


def _outside(folder: Path) -> Path:
    """A home with things that must stay: files, folders that look like a bank, a database, a JSON file."""
    (folder / "thesis").mkdir(parents=True)
    (folder / "thesis/one.tex").write_text("Chapter one. An odd line that somebody may look for.\n")
    (folder / "bashrc").write_text("export PATH\n")
    (folder / "settings.json").write_text("{}\n")
    for name in ("api", "archived", "capture", "undo/20250101-000000"):
        (folder / "thesis" / name).mkdir(parents=True)
        (folder / "thesis" / name / "limits.md").write_text("# Limits\n\nAn odd line that somebody may look for.\n")
    for name in ("index.db", "code.json", "odd_20250101_000000.md", ".memlane-1-aa.tmp", "journal.jsonl"):
        (folder / "thesis" / name).write_text("An odd line that somebody may look for.\n")
    with sqlite3.connect(folder / "data.db") as db:
        db.execute("CREATE TABLE mine (x)")
    return folder


def _project(folder: Path) -> Path:
    folder.mkdir()
    subprocess.run(["git", "init", "-q", "--template=", folder], check=True)  # without a dozen examples of hooks
    bank = Bank.init(folder)
    (bank.root / "odd.md").write_text("An odd line that somebody may look for.\n")
    return folder


def _target(outside: Path, place: str, kind: str) -> Path:
    name = os.path.basename(place)
    if kind == "missing":
        return outside / "missing"
    if "." not in name.strip(".") or name in (".memories", ".trash"):
        return outside / "thesis"
    return outside / {"index.db": "data.db", "code.json": "settings.json", ".mcp.json": "settings.json"}.get(
        name, "bashrc"
    )


@pytest.mark.parametrize("kind", ["there", "missing"])
@pytest.mark.parametrize("place", PLACES)
def test_no_command_follows_a_link_out_of_the_project(
    place: str, kind: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = _outside(tmp_path / "home")
    project = _project(tmp_path / "project")
    link = project / place
    if link.is_dir():
        shutil.rmtree(link)
    else:
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
    link.symlink_to(os.path.relpath(_target(outside, place, kind), link.parent))
    monkeypatch.chdir(project)
    before = _canaries(outside)
    for command in COMMANDS:
        result = run(*command)
        assert _canaries(outside) == before, (command, result)
        assert "Traceback" not in result.err, (command, result)
        replaced = link.name.startswith("index.db")  # a link there is no index of ours: it goes, not what it names
        assert replaced or os.path.islink(link) or command[0] in ("forget", "doctor", "rm", "init")


@pytest.mark.parametrize("place", [place for place in PLACES if place != "memlane.toml"])
def test_no_command_follows_a_link_into_git(
    place: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lies below the project, but no clone brings it: it is the user's own, with passwords and hooks."""
    project = _project(tmp_path / "project")
    (project / ".git/hooks").mkdir(exist_ok=True)
    with open(project / ".git/config", "a") as settings:
        settings.write('[remote "origin"]\n\turl = https://me:a-very-odd-word@example.org\n')
    link = project / place
    is_folder = "." not in link.name.strip(".") or link.name in (".memories", ".trash")
    if link.is_dir():
        shutil.rmtree(link)
    else:
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
    link.symlink_to(os.path.relpath(project / ".git" / ("hooks" if is_folder else "config"), link.parent))
    monkeypatch.chdir(project)
    before = _canaries(project / ".git")
    for command in COMMANDS:
        result = run(*command)
        assert _canaries(project / ".git") == before or command == ("init", "--git"), (command, result)
        assert "a-very-odd-word" not in result.out + result.err, (command, result)
        assert "Traceback" not in result.err, (command, result)
        before = _canaries(project / ".git")


def test_a_folder_is_opened_name_by_name_whatever_is_renamed_meanwhile(tmp_path: Path) -> None:
    """Between the look at a folder and its use it becomes a link: nothing is written behind it."""
    rooted.take_root(tmp_path / "bank")
    (tmp_path / "bank/sub").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    with rooted.parent(str(tmp_path / "bank/sub/a.md")) as (at, name):
        (tmp_path / "bank/sub").rename(tmp_path / "bank/before")
        (tmp_path / "bank/sub").symlink_to(tmp_path / "out")
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=at))
    assert os.listdir(tmp_path / "out") == []
    with pytest.raises(rooted.Stray, match="sub is a link out of the bank"):
        rooted.open_folder(str(tmp_path / "bank/sub"))


@pytest.mark.parametrize("place", [place for place in PLACES if "." in os.path.basename(place)[1:]])
def test_no_command_waits_for_a_pipe_or_reads_a_huge_file(
    place: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both would hang or fill the memory of a hook; the pipe has no writer, and the file is 3 GB of nothing."""
    for kind in ("pipe", "huge"):
        project = _project(tmp_path / kind)
        path = project / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if kind == "pipe":
            os.mkfifo(path)
        else:
            with open(path, "wb") as huge:
                huge.truncate(3 * 2**30)
        monkeypatch.chdir(project)
        for command in COMMANDS:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            result = run(*command)
            assert "Traceback" not in result.err, (command, result)
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000, (command, result)


def test_a_link_that_stays_below_its_root_is_followed(tmp_path: Path) -> None:
    (tmp_path / "root/real").mkdir(parents=True)
    (tmp_path / "root/link").symlink_to("real")
    rooted.take_root(tmp_path / "root")
    files.create(str(tmp_path / "root/link/a.md"), b"text")
    assert (tmp_path / "root/real/a.md").read_bytes() == b"text"
    assert files.read_bytes(str(tmp_path / "root/link/a.md")) == b"text"


def test_of_roots_in_each_other_the_inner_one_that_was_chosen_counts(tmp_path: Path) -> None:
    """A link from a project below the home folder into that folder leads out, though the home folder is a root too."""
    (tmp_path / "project/notes").mkdir(parents=True)
    (tmp_path / "profile").write_bytes(b"mine")
    (tmp_path / "project/notes/a.md").symlink_to(tmp_path / "profile")
    for folder, chosen in ((tmp_path, True), (tmp_path / "project", True), (tmp_path / "project/notes", False)):
        rooted.take_root(folder, chosen=chosen)
    assert rooted.root_of(str(tmp_path / "project/notes/a.md")) == str(tmp_path / "project")
    with pytest.raises(rooted.Stray):
        files.read_bytes(str(tmp_path / "project/notes/a.md"))
    with pytest.raises(rooted.Stray):
        files.append_lines(str(tmp_path / "project/notes/a.md"), b"line\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_of_another_user_are_neither_believed_nor_written(tmp_path: Path) -> None:
    rooted.take_root(tmp_path / "bank")
    (tmp_path / "bank").mkdir()
    path = tmp_path / "bank/a.md"
    path.write_bytes(b"planted\n")
    os.chown(path, 12345, 12345)
    for call in (
        lambda: files.read_bytes(str(path)),
        lambda: files.replace(str(path), b"x"),
        lambda: files.append_lines(str(path), b"x\n"),
        lambda: files.locked(str(path)).__enter__(),
    ):
        with pytest.raises(StorageError, match="belongs to another user"):
            call()
    assert path.read_bytes() == b"planted\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
def test_nothing_is_read_or_written_in_a_folder_of_another_user(tmp_path: Path) -> None:
    """Whoever owns a folder may exchange all that lies in it, whoever owns that."""
    rooted.take_root(tmp_path / "bank")
    (tmp_path / "bank/sub").mkdir(parents=True)
    (tmp_path / "bank/sub/a.md").write_bytes(b"mine\n")
    os.chown(tmp_path / "bank/sub", 12345, 12345)
    for call in (
        lambda: files.read_bytes(str(tmp_path / "bank/sub/a.md")),
        lambda: files.create(str(tmp_path / "bank/sub/b.md"), b"x"),
        lambda: files.move(str(tmp_path / "bank/sub/a.md"), str(tmp_path / "bank/a.md")),
        lambda: files.names_in(tmp_path / "bank/sub"),
    ):
        with pytest.raises(StorageError, match="sub belongs to another user"):
            call()
    assert os.listdir(tmp_path / "bank/sub") == ["a.md"]
