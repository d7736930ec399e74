"""Repositories of somebody else: none of their programs runs, and none of their paths is believed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from commands import Run
from conftest import tree
from memlane import Bank
from memlane.config import user_state
from memlane.core.errors import MemlaneError
from memlane.disk import names, scratch
from memlane.exchange.sharing import join_git
from memlane.history import git as asked
from memlane.history import past
from repositories import git, save
from warm import loaded

OLD = '"""Checks tokens."""\n\n\ndef check(token):\n    return token == "right"\n' + "# a line\n" * 20


@pytest.fixture
def old(repo: Path) -> Path:
    """A note that was made and changed."""
    with Bank.open(repo) as bank:
        bank.add("Deploys go out on Tuesdays.", title="day")
        save(repo, "One", "2025-01-10")
        bank.update("notes:day", text="Deploys go out on Mondays.")
        save(repo, "Two", "2025-02-10")
        bank.delete("notes:day")
        save(repo, "Three", "2025-03-10")
    return repo


# -- programs


def traps(repo: Path, canaries: Path) -> None:
    """Everything in .git that could name a program, each with a canary of its own."""
    canaries.mkdir()

    def trap(name: str) -> str:
        script = canaries / f"{name}.sh"
        script.write_text(f"#!/bin/sh\ntouch {canaries}/{name}.ran\ncat 2>/dev/null\n")
        script.chmod(0o755)
        return str(script)

    hooks = repo / "hooks-of-theirs"
    hooks.mkdir()
    for name in ("post-index-change", "pre-commit", "post-checkout", "fsmonitor-watchman", "reference-transaction"):
        shutil.copy(trap(f"hook-{name}"), hooks / name)
        shutil.copy(trap(f"hook-{name}"), repo / ".git/hooks" / name)
    lines = [
        "[core]", f"fsmonitor = {trap('fsmonitor')}", f"pager = {trap('pager')}", f"editor = {trap('editor')}",
        f"sshCommand = {trap('ssh')}", f"askPass = {trap('askpass')}", f"hooksPath = {hooks}",
        f"alternateRefsCommand = {trap('alternates')}", f"gitProxy = {trap('proxy')}",
        '[filter "x"]', f"clean = {trap('clean')}", f"smudge = {trap('smudge')}", f"process = {trap('process')}",
        "required = true",
        "[diff]", f"external = {trap('external')}", "[log]", "showSignature = true",
        '[diff "x"]', f"textconv = {trap('textconv')}", f"command = {trap('diff')}",
        '[merge "x"]', f"driver = {trap('merge')}",
        "[gpg]", f"program = {trap('gpg')}", '[gpg "ssh"]', f"program = {trap('gpg-ssh')}",
        "[credential]", f"helper = {trap('credential')}", "[sequence]", f"editor = {trap('sequence')}",
        "[pager]", *(f"{name} = {trap('pager-' + name)}" for name in ("history", "grep", "config", "diff")),
        "[alias]", *(f"{name} = !{trap('alias-' + name)}" for name in ("rev-list", "log", "ls-tree", "cat-file")),
        "[trailer \"x\"]", f"command = {trap('trailer')}",
        '[remote "origin"]', f"url = {repo}/nowhere", "promisor = true", f"uploadpack = {trap('uploadpack')}",
        "partialCloneFilter = blob:none", '[remote "evil"]', f"vcs = {trap('vcs')}", "[extensions]",
        "partialClone = origin", '[protocol "ext"]', "allow = always", '[protocol "file"]', "allow = always",
        "[include]", f"path = {repo}/.git/included",
    ]  # fmt: skip
    with open(repo / ".git/config", "a") as config:
        config.write("\n".join(lines) + "\n")
    (repo / ".git/included").write_text(f'[core]\nfsmonitor = {trap("included")}\n[filter "y"]\nclean = {trap("y")}\n')
    for file in (repo / ".gitattributes", repo / ".git/info/attributes"):
        file.write_text("* filter=x diff=x merge=x\n*.txt filter=y\n")


@pytest.fixture
def trapped(repo: Path, tmp_path: Path) -> Path:
    """Memories of files that were then renamed, changed and deleted, with every trap set."""
    for name in ("gone", "moved", "byhand", "changed", "committed"):
        (repo / f"{name}.py").write_text(OLD.replace("right", name))
    with Bank.open(repo) as bank:
        for name in ("gone", "moved", "byhand", "changed", "committed"):
            bank.add(f"See `{name}.py` and `{name}.py:check`.", title=name)
        bank.add("Mission: keep it stable", lane="vault")
        save(repo, "One", "2025-01-10")
        git(repo, "mv", "committed.py", "there.py")
        save(repo, "Two", "2025-02-10")
        bank.update("notes:gone", text="See `gone.py`, which matters.")
        save(repo, "Three", "2025-03-10")
    (repo / "gone.py").unlink()
    git(repo, "mv", "moved.py", "elsewhere.py")
    (repo / "elsewhere.py").write_text(OLD.replace("right", "moved") + "# more\n")
    (repo / "byhand.py").rename(repo / "hand.py")
    (repo / "hand.py").write_text(OLD.replace("right", "byhand") + "# more\n")
    git(repo, "add", "hand.py")
    (repo / "changed.py").write_text(OLD.replace("token ==", "token is"))
    missing = git(repo, "hash-object", "-w", "--stdin", "-t", "blob", "--path", "x")  # of an empty text
    git(repo, "update-index", "--add", "--cacheinfo", f"100644,{missing},.memories/empty.md")
    traps(repo, tmp_path / "canaries")
    shutil.rmtree(repo / ".git/objects" / missing[:2])  # a partial clone would fetch it now
    return repo


COMMANDS = [
    ["review", "--only", "drifted", "--show"], ["review", "--only", "drifted", "--all"], ["review", "--accept"],
    ["review"], ["history"], ["history", "notes:gone"],
    ["history", "notes:gone"], ["list", "--as-of", "HEAD~1"], ["search", "matters", "--as-of", "2025-03-11"],
    ["get", "notes:gone", "--as-of", "HEAD~1"], ["doctor", "--only", "secrets", "--history"], ["doctor"],
    ["doctor", "--fix"],
    ["forget", "notes:gone", "--dry-run"], ["init", "--git"], ["context"], ["context", "matters"],
    ["add", "Something about `changed.py`."], ["hook", "claude-code"], ["search", "matters"], ["stats"],
    ["doctor", "--only", "damage"],
    ["forget", "notes:moved", "--yes"],
]  # fmt: skip


def test_no_program_of_the_repository_runs(
    trapped: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trapped)
    before = git_free(trapped)
    event = json.dumps({"hook_event_name": "UserPromptSubmit", "prompt": "What matters?", "cwd": str(trapped)})
    for command in COMMANDS:
        run(*command, stdin=event)
        ran = sorted(path.name for path in (tmp_path / "canaries").glob("*.ran"))
        assert ran == [], (command, ran)
    assert git_free(trapped) == before


def git_free(repo: Path) -> dict[str, bytes]:
    """What git has of its own: memlane writes its configuration only."""
    return {name: data for name, data in tree(repo / ".git").items() if name != "config"}


def test_nothing_but_git_and_python_is_executed(trapped: Path, tmp_path: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    trace = tmp_path / "trace"
    words = [strace, "-f", "--seccomp-bpf", "-qq", "-e", "trace=execve,execveat", "-e", "signal=none", "-o", str(trace)]
    done = subprocess.run([*words, "true"], capture_output=True, text=True)
    if not trace.exists():
        pytest.skip(f"strace does not work here: {done.stderr.strip()}")
    with loaded(*words) as folder:
        for command in COMMANDS:
            subprocess.run([folder / "memlane", *command], cwd=trapped, input=b"{}", capture_output=True)
    programs = re.findall(r'execve(?:at)?\((?:[^"]*)"([^"]+)".*= 0$', trace.read_text(), re.MULTILINE)
    others = {os.path.realpath(program) for program in programs} - {os.path.realpath(sys.executable)}
    assert {os.path.basename(program) for program in others} == {"git"}
    assert sum(os.path.basename(program) == "git" for program in programs) > 30  # else the traps were never near


def test_a_rename_that_is_in_the_index_or_in_a_commit_is_still_found(trapped: Path, run: Run) -> None:
    rows = run("--bank", trapped, "review", "--only", "drifted", "--show", "--json").json["verdicts"]
    found = {row["id"]: {place.get("now") for place in row["findings"]} - {None, ""} for row in rows}
    assert found["notes:moved"] == {"elsewhere.py"}
    assert found["notes:byhand"] == {"hand.py"}
    assert found["notes:committed"] == {"there.py"}


def test_what_a_partial_clone_lacks_is_not_fetched(old: Path, run: Run, tmp_path: Path) -> None:
    git(old, "config", "uploadpack.allowFilter", "true")
    part, canary, script = tmp_path / "part", tmp_path / "canary", tmp_path / "evil.sh"
    git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{old}", str(part))
    script.write_text(f"#!/bin/sh\ntouch {canary}\n")
    script.chmod(0o755)
    git(part, "config", "remote.origin.uploadpack", str(script))
    for command in (["history"], ["list", "--as-of", "HEAD~1"], ["doctor", "--only", "secrets", "--history"]):
        result = run("--bank", part, *command)
        assert (result.code, "`git fetch --refetch --no-filter` brings it" in result.err) == (1, True), command
    assert not canary.exists()


def test_a_folder_that_passes_for_a_bare_repository_is_not_asked(repo: Path, run: Run, tmp_path: Path) -> None:
    """Such a folder can be cloned, configuration and all."""
    bank = repo / ".memories"
    canary = tmp_path / "canary"
    for name in ("objects", "refs"):
        (bank / name).mkdir()
    (bank / "HEAD").write_text("ref: refs/heads/main\n")
    (bank / "config").write_text(f'[core]\nbare = false\nworktree = ..\nfsmonitor = "touch {canary}; false"\n')
    for command in (
        ["history"],
        ["list", "--as-of", "HEAD"],
        ["doctor", "--only", "secrets", "--history"],
        ["init", "--git"],
    ):
        result = run("--bank", repo, *command)
        assert (result.code, "looks like a git repository" in result.err) == (1, True), command
    assert run("--bank", repo, "doctor").code != 2
    assert not canary.exists()


def test_a_work_tree_elsewhere_is_not_believed(repo: Path, run: Run, home: Path) -> None:
    git(repo, "config", "core.worktree", str(home))
    result = run("--bank", repo, "history")
    assert (result.code, "another folder than it lies in" in result.err) == (1, True)


def test_git_is_not_looked_for_in_the_project(repo: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = repo / ".memories/git"
    fake.write_text(f"#!/bin/sh\ntouch {repo}/canary\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}:")
    assert run("--bank", repo, "history").code == 0
    assert not (repo / "canary").exists()


def test_no_library_of_the_project_is_loaded(repo: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty part in the list, which is easily left there, means the working directory."""
    for folder in (repo, repo / ".memories"):
        for name in ("libz.so.1", "libpcre2-8.so.0"):
            (folder / name).write_text("not a library")
    monkeypatch.setenv("LD_LIBRARY_PATH", ":/usr/local/lib")
    assert run("--bank", repo, "history").code == 0


def test_a_link_at_the_configuration_of_git_is_not_written_through(repo: Path, home: Path) -> None:
    git(repo, "config", "--remove-section", "merge.memlane-note")
    target = home / "gitconfig"
    (repo / ".git/config").rename(target)
    (repo / ".git/config").symlink_to(target)
    before = target.read_bytes()
    with pytest.raises(MemlaneError, match="is a link"):
        join_git(Bank.open(repo).config)
    assert target.read_bytes() == before


@pytest.mark.parametrize("kind", ["file", "link", "common"])
def test_another_repository_that_git_leads_to_is_not_written(repo: Path, run: Run, tmp_path: Path, kind: str) -> None:
    """An archive may bring a .git that names any repository of the user's."""
    archive = tmp_path / "archive"
    archive.mkdir()
    if kind == "file":
        (archive / ".git").write_text(f"gitdir: {repo / '.git'}\n")
    elif kind == "link":
        (archive / ".git").symlink_to(repo / ".git")
    else:
        git(archive, "init", "-q")
        (archive / ".git/commondir").write_text(f"{repo / '.git'}\n")
    git(repo, "config", "--remove-section", "merge.memlane-note")
    before = (repo / ".git/config").read_bytes()
    result = run("init", archive, "--git")
    assert (result.code, ".git leads to another repository" in result.err) == (1, True), result
    assert (repo / ".git/config").read_bytes() == before


def test_a_linked_worktree_and_a_submodule_are_taught_to_merge(repo: Path, run: Run, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"))
    git(repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repo), "sub")
    for folder in (tmp_path / "linked", repo / "sub"):
        git(repo, "config", "--remove-section", "merge.memlane-note")
        result = run("init", folder, "--git")
        assert result.code == 0, result
        assert "merge-driver note" in git(folder, "config", "merge.memlane-note.driver")
        git(repo, "config", "merge.memlane-note.name", "x")


# -- paths


def make(repo: Path, kind: str, data: bytes) -> str:
    """An object that git itself would not make."""
    body = kind.encode() + b" %d\0" % len(data) + data
    id = hashlib.sha1(body).hexdigest()
    file = repo / ".git/objects" / id[:2] / id[2:]
    file.parent.mkdir(exist_ok=True)
    if not file.exists():
        file.write_bytes(zlib.compress(body))
    return id


def nest(repo: Path, *entries: tuple[str, str, str]) -> str:
    """A tree of (mode, name, object), as they come."""
    return make(repo, "tree", b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(id) for mode, name, id in entries))


def commit(
    repo: Path, bank: str, author: str = "Ann <ann@example.org>", subject: str = "Work", at: int = 1750000000
) -> str:
    """A commit whose .memories is this tree, then one that is as the first again: HEAD is clean, as after a clone."""
    top = nest(repo, ("40000", ".memories", bank))
    clean, tip = git(repo, "rev-parse", "HEAD^{tree}"), git(repo, "rev-parse", "HEAD")
    for tree_id, text in ((top, subject), (clean, "Clean")):
        head = f"tree {tree_id}\nparent {tip}\nauthor {author} {at} +0000\ncommitter {author} {at} +0000\n\n{text}\n"
        tip = make(repo, "commit", head.encode())
    git(repo, "update-ref", "HEAD", tip)
    return tip + "~1"


def climbing(repo: Path, target: str, data: bytes) -> str:
    """A tree in which a file leads up and out: ../../../…/target."""
    *folders, name = target.strip("/").split("/")
    entry = ("100644", name, make(repo, "blob", data))
    for folder in reversed(folders):
        entry = ("40000", folder, nest(repo, entry))
    for _ in range(30):
        entry = ("40000", "..", nest(repo, entry))
    note = ("100644", "note.md", make(repo, "blob", b"A plain note.\n"))
    return nest(repo, entry, note)


def test_a_tree_that_leads_out_writes_nothing_outside(repo: Path, run: Run, tmp_path: Path) -> None:
    victim, new = tmp_path / "victim/settings.md", tmp_path / "victim/new.md"
    victim.parent.mkdir()
    victim.write_text("mine")
    for target in (victim, new):
        when = commit(repo, climbing(repo, str(target), b"theirs"))
        for command in (
            ["list", "--as-of", when],
            ["search", "plain", "--as-of", when],
            ["get", "note", "--as-of", when],
        ):
            result = run("--bank", repo, *command)
            assert (result.code, "leads out of its folder" in result.err) == (0, True), (command, result)
        result = run("--bank", repo, "history")
        assert (result.code, "leads out of its folder" in result.out) == (0, True)
        assert run("--bank", repo, "doctor", "--only", "secrets", "--history").code == 0
    assert tree(victim.parent) == {"settings.md": b"mine"}


def test_what_a_commit_leaves_out_is_a_problem_of_that_bank(repo: Path) -> None:
    blob = make(repo, "blob", b"text\n")
    folder = nest(repo, ("100644", "x.md", blob))
    when = commit(
        repo,
        nest(repo, ("40000", ".GIT", folder), ("40000", ".g\u200cit", folder), ("40000", "git~1", folder),
             ("100644", "a\x1b[31m.md", blob), ("100644", ".", blob), ("100644", "ok.md", blob)),
    )  # fmt: skip
    with Bank.open(repo) as bank, bank.as_of(when) as old:
        assert [memory.id for memory in old.memories()] == ["notes:ok"]
        assert len(old.left_out) == 5
        assert set(old.left_out) <= set(old.problems())
        assert not any("\x1b" in str(problem) for problem in old.left_out)


def test_names_that_stand_in_each_others_way_are_left_out(repo: Path) -> None:
    blob, other = make(repo, "blob", b"text\n"), make(repo, "blob", b"other\n")
    twice = nest(repo, ("100644", "a.md", blob), ("100644", "a.md", other), ("100644", "b.md", blob),
                 ("40000", "b.md", nest(repo, ("100644", "c.md", blob))))  # fmt: skip
    with Bank.open(repo) as bank, bank.as_of(commit(repo, twice)) as old:
        assert "notes:a" in {memory.id for memory in old.memories()}
        assert [problem.why for problem in old.left_out] == [
            "cannot lie beside another file of that commit here, and was left out of the past"
        ]


def test_an_index_that_a_commit_brings_is_not_read(repo: Path) -> None:
    derived = nest(repo, ("100644", "index.db", make(repo, "blob", b"not ours")))
    when = commit(repo, nest(repo, ("40000", "indices", derived)))
    with Bank.open(repo) as bank, bank.as_of(when) as old:
        assert not (old.root / "indices").exists()


def test_a_small_repository_with_billions_of_files_is_refused(
    repo: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asked, "SECONDS", 10.0)
    monkeypatch.setattr(asked, "MAX_MEMORY", 256 * 1024 * 1024)
    monkeypatch.setattr(asked, "MAX_LISTING", 1024 * 1024)
    folder = nest(repo, *(("100644", f"{n}.md", make(repo, "blob", b"text\n")) for n in range(10)))
    for _ in range(9):
        folder = nest(repo, *(("40000", str(n), folder) for n in range(10)))
    when = commit(repo, folder)
    result = run("--bank", repo, "list", "--as-of", when)
    assert (result.code, "git lists more than" in result.err) == (1, True)
    result = run("--bank", repo, "history")
    assert (result.code, "of memory" in result.err or "took longer" in result.err) == (1, True)
    assert os.listdir(user_state() / "scratch") == []


def test_more_than_is_copied_is_said(repo: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "MAX_BYTES", 1000)
    blobs = [("100644", f"{n}.md", make(repo, "blob", b"%d" % n * 600)) for n in range(2)]
    when = commit(repo, nest(repo, *blobs))
    for command in (["list", "--as-of", when], ["history"]):
        result = run("--bank", repo, *command)
        assert (result.code, "2 files of 1,200 bytes; 100,000 and 1,000 are read" in result.err) == (1, True)
    monkeypatch.setattr(asked, "MAX_BLOB", 500)
    result = run("--bank", repo, "list", "--as-of", when)
    assert (result.code, result.err.count("is larger than 500 bytes")) == (0, 2)


@pytest.mark.parametrize(
    "path",
    ["../a", "a/../b", "/a", "a//b", "a/", "", "./a", "a\\..\\b", ".git/x", "a/.GiT/x", ".g\u200cit/x", ".git /x",
     ".git./x", "git~1/x", "GIT~1/x", ".git::$INDEX_ALLOCATION/x", "a\\.git\\x", "\uff0egit/x", "a\0b", "a\nb",
     "a\x1bb", "a\x9bb"],
)  # fmt: skip
def test_paths_that_are_not_used(path: str) -> None:
    assert names.path_problem(path)


@pytest.mark.parametrize(
    "path", ["a.md", "a/b c.md", ".memories/a.md", ".gitignore", "a..b/c.md", "ümläut.md", "git.md"]
)
def test_paths_that_are_used(path: str) -> None:
    assert names.path_problem(path) == ""


# -- what commits say


def test_no_author_subject_or_path_can_pass_for_another_commit(repo: Path, run: Run) -> None:
    forged = "a" * 40
    author = f"Eve\x01{forged}\x02\x1b]0;owned\x07 <eve@example.org>"
    note = make(repo, "blob", b"text\n")
    bank = nest(repo, ("100644", f"\n:100644 100644 {forged} {forged} A", note), ("100644", "note.md", note))
    commit(repo, bank, author, f"Fine\x01{forged}\x02now\x02Ann\x02lie\x02\x1b[2J\x9b31m")
    changes = run("--bank", repo, "history", "--json").json
    assert changes[0]["author"] == f"Eve{forged}]0;owned"
    subjects = [change["subject"] for change in changes]
    assert subjects == ["Clean", f"Fine{forged}nowAnnlie31m", *subjects[2:]]
    versions = run("--bank", repo, "history", "notes:note", "--json").json
    assert [version["what"] for version in versions] == ["Clean", f"Fine{forged}nowAnnlie31m"]
    assert {version["path"] for version in versions} == {".memories/note.md"}
    for command in (["history"], ["history", "notes:note"], ["doctor", "--only", "secrets", "--history"]):
        result = run("--bank", repo, *command)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", result.out + result.err), command


@pytest.mark.parametrize("at", [10**18, -(10**18), 0])
def test_a_commit_of_an_impossible_time_is_told_without_one(at: int, repo: Path, run: Run) -> None:
    commit(repo, nest(repo, ("100644", "note.md", make(repo, "blob", b"text\n"))), at=at)
    result = run("--bank", repo, "history", "--json")
    assert result.code == 0
    assert [change["subject"] for change in result.json[:2]] == ["Clean", "Work"]


@pytest.mark.parametrize(
    ("encoding", "name"), [("ISO-8859-1", "Jürgen"), ("UTF-7", "J\ufffdrgen"), ("hex", "J\ufffdrgen")]
)
def test_an_author_in_another_encoding_is_read_where_that_is_a_plain_one(encoding: str, name: str, repo: Path) -> None:
    head = f"tree {git(repo, 'rev-parse', 'HEAD^{tree}')}\nauthor J\xfcrgen <j@example.org> 1 +0000\n"
    head += f"committer J <j@example.org> 1 +0000\nencoding {encoding}\n\nWork\n"
    assert asked.facts(repo, [make(repo, "commit", head.encode("latin-1"))])[0].author == name


# -- killed


def test_what_a_killed_command_leaves_is_named_and_removed(repo: Path, run: Run) -> None:
    with Bank.open(repo) as bank:
        bank.add("Deploys go out on Tuesdays.", title="day")
    save(repo)
    code = (
        "import os, sys, signal; from memlane import Bank\n"
        f"past = Bank.open({str(repo)!r}).as_of('HEAD'); print(past.root, flush=True); sys.stdin.read()"
    )
    left = []
    for _ in range(2):
        with subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout
            left.append(Path(process.stdout.readline().strip()))
            assert scratch.left(user_state()) == []  # it lives
            process.send_signal(signal.SIGTERM)
            process.wait()
        (found,) = scratch.left(user_state())
        assert left[-1].is_relative_to(found)
    assert not left[0].exists()  # the second has cleared it
    report = run("--bank", repo, "doctor", "--json").json
    assert [finding["where"] for finding in report["findings"] if finding["check"] == "scratch"] == [found]
    assert run("--bank", repo, "doctor", "--fix").code == 0
    assert os.listdir(user_state() / "scratch") == []
    assert left[1].parts[: len(user_state().parts)] == user_state().parts


def test_a_link_at_the_scratch_folder_is_not_followed(repo: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "target/keep").mkdir(parents=True)
    user_state().mkdir(parents=True, exist_ok=True)
    (user_state() / "scratch").symlink_to(tmp_path / "target")
    result = run("--bank", repo, "list", "--as-of", "HEAD")
    assert (result.code, "is not a folder of yours" in result.err) == (1, True)
    scratch.clear(user_state())
    assert os.listdir(tmp_path / "target") == ["keep"]
