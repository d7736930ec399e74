"""An index that was not made here by this user is never read; one that is damaged meanwhile is made anew."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from commands import Run
from conftest import trusted
from memlane import Bank, config
from memlane.disk import locks

NOTE = "---\ntags: [pinned]\ncreated_at: 2025-01-01\n---\n"
ENDLESS = (
    "CREATE VIEW meta AS WITH RECURSIVE c(key, value) AS (SELECT 'token', 1 UNION ALL SELECT key, value + 1 FROM c) "
    "SELECT key, value FROM c WHERE value < 0"
)
HANG = "from memlane.surfaces import hook\n{}\nwith hook._deadline() as set_deadline:\n    set_deadline(1)\n    {}"
HANDS = 4  # processes at once
LONGEST = 120  # seconds for a process that ends by itself


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    (tmp_path / "project").mkdir()
    bank = Bank.init(tmp_path / "project")
    (bank.root / "a.md").write_text(f"{NOTE}Real tuna.\n")
    return bank


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


def ghosts(path: Path) -> None:
    """Rows of a memory that no file has, in an otherwise sound index."""
    change(
        path,
        "INSERT INTO memories SELECT n + 50, 'notes:ghost', '/nowhere/ghost.md', digest, created + 9, thread, "
        "position, lane, type, status, scope, project FROM memories",
        "INSERT INTO shapes SELECT n + 50, data FROM shapes",
        "INSERT INTO chunks SELECT n + 1, memory + 50, length, passage, header, 'GHOST tuna' FROM chunks",
        "INSERT INTO tags SELECT memory + 50, tag FROM tags",
        "UPDATE shapes SET data = replace(replace(data, 'Real', 'GHOST'), 'notes:a', 'notes:ghost') WHERE n > 50",
    )


def seen(bank: Bank) -> list[str]:
    """The ids that every way of reading shows, each by an instance of its own."""
    ways: tuple[Callable[[Bank], list[str]], ...] = (
        lambda it: [memory.id for memory in it.snapshot(recent=5).memories],
        lambda it: [memory.id for memory in it.list(limit=5)],
        lambda it: [hit.memory.id for hit in it.search("tuna")],
        lambda it: [memory.id for memory in it.context("tuna").memories],
        lambda it: [node["id"] for node in it.graph()["nodes"] if node["id"].startswith("notes:")],
    )
    shown = []
    for way in ways:
        with Bank.open(bank.config.project) as other:
            shown += way(other)
    return sorted({id.rpartition(":")[2] for id in shown})


# -- what a repository can ship


def shipped(folder: Path, target: Path) -> None:
    """Another bank's index with a ghost in it, changed so that its paths are those of the bank it is shipped in."""
    source = Bank.init(folder)
    (source.root / "a.md").write_text(f"{NOTE}Real tuna.\n")
    (source.root / "ghost.md").write_text(f"{NOTE}GHOST tuna.\n")
    source.search("tuna")
    source.close()
    target.parent.mkdir(exist_ok=True)
    shutil.copyfile(source.index_file.path, target)
    root, wanted = source.root, target.parent.parent
    for table, column in (("files", "path"), ("memories", "file")):
        change(target, f"UPDATE {table} SET {column} = replace({column}, '{root}', '{wanted}')")
    change(target, "DELETE FROM files WHERE path LIKE '%ghost%'")


@pytest.mark.parametrize("known", [False, True])
def test_a_shipped_index_is_not_read(bank: Bank, tmp_path: Path, known: bool) -> None:
    if known:
        bank.search("tuna")
        bank.close()
    (tmp_path / "other").mkdir()
    shipped(tmp_path / "other", bank.index_file.path)
    assert [memory.id for memory in bank.snapshot(recent=5).memories] == ["notes:a"]
    assert seen(bank) == ["a"]


def test_doctor_names_a_shipped_index(bank: Bank, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    shipped(tmp_path / "other", bank.index_file.path)
    monkeypatch.chdir(tmp_path / "project")
    assert "was not made here by you and is not read" in run("doctor").out


def test_ghosts_in_our_own_index_are_not_shown(bank: Bank) -> None:
    bank.search("tuna")
    bank.close()
    ghosts(bank.index_file.path)
    assert seen(bank) == ["a"]


def plant_link(path: Path) -> None:
    with closing(sqlite3.connect(path.parent / "other.db")) as db:
        db.execute("CREATE TABLE t (x)")
    path.symlink_to("other.db")


def plant_sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10 << 30)


PLANTED: dict[str, Callable[[Path], object]] = {
    "link": plant_link,
    "dangling": lambda path: path.symlink_to("../outside"),
    "fifo": os.mkfifo,
    "folder": lambda path: (path / "x").mkdir(parents=True),
    "sparse": plant_sparse,
    "empty": Path.touch,
}


@pytest.mark.parametrize("name", ["", "-journal", "-wal", "-shm"])
@pytest.mark.parametrize("kind", PLANTED)
def test_what_is_planted_at_a_name_of_the_index_is_not_followed(bank: Bank, kind: str, name: str) -> None:
    bank.search("tuna")
    bank.close()
    path = bank.index_file.path
    if not name:
        path.unlink()
    PLANTED[kind](path.with_name(path.name + name))
    other = path.with_name("other.db")
    before = other.read_bytes() if other.exists() else None
    assert seen(bank) == ["a"]
    assert (other.read_bytes() if other.exists() else None) == before
    assert not (bank.root / "outside").exists()
    assert stat.S_ISREG(path.lstat().st_mode)


def test_a_link_at_indices_is_not_followed(bank: Bank, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (bank.root / "indices").symlink_to(tmp_path / "elsewhere")
    assert seen(bank) == ["a"]
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_link_at_gitignore_is_not_followed(bank: Bank, tmp_path: Path) -> None:
    (bank.root / "indices").mkdir()
    (bank.root / "indices/.gitignore").symlink_to(tmp_path / "made")
    assert seen(bank) == ["a"]
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_journal_or_log_that_somebody_put_there_is_not_played_back(bank: Bank, tmp_path: Path, mode: str) -> None:
    bank.search("tuna")
    bank.close()
    path, copy = bank.index_file.path, tmp_path / "copy.db"
    shutil.copyfile(path, copy)
    change(copy, f"PRAGMA journal_mode = {mode}")
    suffix = "-wal" if mode == "wal" else "-journal"
    with closing(sqlite3.connect(copy, isolation_level=None)) as db:
        db.execute("UPDATE shapes SET data = replace(data, 'notes:a', 'notes:ghost')")
        if mode == "delete":  # a journal has what was there before: begin a change, and write its pages
            db.execute("PRAGMA cache_size = 1")
            db.execute("BEGIN IMMEDIATE")
            db.execute("UPDATE shapes SET data = data || ' '")
            db.execute("CREATE TABLE big AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 999) "
                       "SELECT zeroblob(900) FROM c")  # fmt: skip
        shutil.copyfile(f"{copy}{suffix}", f"{path}{suffix}")
    assert os.path.getsize(f"{path}{suffix}") > 4096
    assert seen(bank) == ["a"]
    assert not os.path.exists(f"{path}{suffix}")


@pytest.mark.parametrize("event", ["session-start", "prompt"])
def test_a_hook_is_not_held_up_by_an_endless_view(bank: Bank, event: str) -> None:
    bank.search("tuna")
    bank.close()
    change(bank.index_file.path, "DROP TABLE meta", ENDLESS)
    payload = {"cwd": os.fspath(bank.config.project), "prompt": "where is the real tuna"}
    done = subprocess.run(
        [sys.executable, "-m", "memlane", "hook", "claude-code", event],
        input=json.dumps(payload), capture_output=True, text=True, timeout=LONGEST,
    )  # fmt: skip
    assert (done.returncode, "Real tuna." in done.stdout) == (0, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a second user")
def test_another_users_index_is_neither_read_nor_replaced(bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    bank.search("tuna")
    bank.close()
    path = bank.index_file.path
    change(path, "UPDATE memories SET id = 'notes:ghost'")
    os.chown(path, 65534, 65534)
    before = path.read_bytes()
    assert seen(bank) == ["a"]
    assert "made in memory" in capsys.readouterr().err
    assert path.read_bytes() == before


# -- the token


def test_the_token_is_private_and_losing_it_costs_only_time(bank: Bank) -> None:
    umask = os.umask(0)
    try:
        bank.search("tuna")
    finally:
        os.umask(umask)
    bank.close()
    folder, file = config.user_state() / "indices", bank.index_file.token_file
    assert file is not None
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (folder, file, bank.index_file.path)]
    assert modes == [0o700, 0o600, 0o600]
    shutil.rmtree(folder)
    assert seen(bank) == ["a"]
    first = bank.index_file.path.stat().st_ino
    assert seen(bank) == ["a"]
    assert bank.index_file.path.stat().st_ino == first  # it is kept from then on


def test_a_bank_that_was_copied_makes_its_own_index(bank: Bank, tmp_path: Path) -> None:
    bank.search("tuna")
    bank.close()
    shutil.copytree(tmp_path / "project", tmp_path / "copy")
    trusted(tmp_path / "copy/memlane.toml")
    before = (tmp_path / "copy/.memories/indices/index.db").read_bytes()
    assert seen(Bank.open(tmp_path / "copy")) == ["a"]
    assert (tmp_path / "copy/.memories/indices/index.db").read_bytes() != before


TOGETHER = """
import sys
from memlane import Bank
from memlane.index import store  # so that nobody is late
bank = Bank.open(".")
print("ready", flush=True)
sys.stdin.readline()
print(len(bank.search("tuna", 99)), bank.index.complete)
"""


@pytest.mark.parametrize("before", ["nothing", "damaged", "foreign", "deleted"])
def test_processes_that_make_the_index_at_once_end_with_one(bank: Bank, before: str) -> None:
    """Several begin at the same moment: none fails, one makes the index, and its seal is the one that stays."""
    for number in range(60):
        (bank.root / f"n{number}.md").write_text(f"about tuna {number}")
    path, token = bank.index_file.path, bank.index_file.token_file
    assert token
    if before == "damaged":
        path.parent.mkdir()
        path.write_bytes(b"SQLite format 3\0" + b"x" * 9000)
    elif before != "nothing":
        bank.search("tuna")
        bank.close()
        (token if before == "foreign" else path).unlink()
    started = [
        subprocess.Popen(
            [sys.executable, "-c", TOGETHER],
            cwd=bank.config.project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(HANDS)
    ]
    assert [process.stdout and process.stdout.readline() for process in started] == ["ready\n"] * HANDS
    for process in started:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    ended = [process.communicate() for process in started]
    assert [out for out, _ in ended] == ["61 True\n"] * HANDS
    anew = ["memlane: the index is damaged or not made here, and is made anew\n"]
    assert [err for _, err in ended if err] == (anew if before in ("damaged", "foreign") else [])
    first = (path.stat().st_ino, token.read_bytes())
    assert len(Bank.open(bank.config.project).search("tuna", 99)) == 61
    assert (path.stat().st_ino, token.read_bytes()) == first


# -- damage under a running program


def truncated(size: int) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        os.truncate(path, size)

    return damage


def sql(*statements: str) -> Callable[[Path], None]:
    return lambda path: change(path, *statements)


def garbage(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"not what was here" * 1000)


TABLES = ("meta", "files", "memories", "shapes", "tags", "chunks", "postings", "vectors", "links", "graves")
DAMAGE: dict[str, Callable[[Path], None]] = {
    **{f"no {table}": sql(f"DROP TABLE {table}") for table in TABLES},
    "no key": sql("UPDATE shapes SET data = '{}'"),
    "no object": sql("UPDATE shapes SET data = '[]'"),
    "no text": sql("UPDATE chunks SET text = NULL"),
    "no passage": sql("UPDATE chunks SET passage = NULL"),
    "a passage cut off": sql("UPDATE chunks SET passage = substr(passage, 1, 9)"),
    "a passage of other tokens": sql("UPDATE chunks SET passage = x'0100000001000000803fffff'"),
    "no memory": sql("UPDATE chunks SET memory = memory + 50"),
    "a number never given out": sql("INSERT INTO chunks VALUES (400000000, 1, 1, x'', '', 'tuna')"),
    "postings": sql("UPDATE postings SET data = x'00'"),
    "vectors": sql("UPDATE vectors SET data = x'0011'"),
    "a trigger": sql("CREATE TRIGGER t AFTER INSERT ON files BEGIN DELETE FROM memories; END"),
    "no token": sql("DELETE FROM meta WHERE key = 'token'", "DROP TABLE meta"),
    "truncated to nothing": truncated(0),
    "truncated to a page": truncated(4096),
    "garbage": garbage,
    "deleted": Path.unlink,
    "all deleted": lambda path: shutil.rmtree(path.parent),
    "a journal": lambda path: Path(f"{path}-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" * 99) and None,
    "a log": lambda path: Path(f"{path}-wal").write_bytes(b"x" * 9000) and None,
    "a shared memory": lambda path: Path(f"{path}-shm").write_bytes(b"") and None,
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_under_a_running_program_leads_to_a_new_index(bank: Bank, kind: str) -> None:
    bank.add("About tuna.", title="b")
    assert len(bank.search("tuna")) == 2
    DAMAGE[kind](bank.index_file.path)
    bank.add("More tuna.", title="c")
    assert len(bank.search("tuna")) == 3
    DAMAGE[kind](bank.index_file.path)
    assert len(bank.search("tuna")) == 3
    assert seen(bank) == ["a", "b", "c"]


def test_an_open_index_has_no_shared_memory_that_could_be_truncated(bank: Bank) -> None:
    bank.search("tuna")
    bank.add("More tuna.", title="b")
    assert sorted(os.listdir(bank.root / "indices")) == [".gitignore", "index.db"]


# -- the deadline


def test_a_hook_that_hangs_in_c_is_ended() -> None:
    code = HANG.format("", "sum(range(10**13))")  # it would take days
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=LONGEST)
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")


def test_the_deadline_cuts_a_query() -> None:
    before = (
        "from memlane.index.database import open_in_memory; db = open_in_memory(); "
        f"hook._GRACE = {LONGEST}"  # it is not ended by force, however slow this machine is
    )
    query = "db.execute('WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c')"
    code = HANG.format(before, query)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LONGEST)
    assert done.stderr.splitlines()[-1] == "sqlite3.OperationalError: interrupted"


def test_where_another_process_hangs_while_it_writes_the_index_what_is_there_is_found(
    bank: Bank,
) -> None:
    told: list[str] = []
    assert len(bank.search("tuna")) == 1
    bank.close()
    (bank.root / "b.md").write_text(f"{NOTE}More tuna.\n")
    with closing(sqlite3.connect(bank.root / "indices/index.db", isolation_level=None)) as other, ExitStack() as vars:
        other.execute("BEGIN IMMEDIATE")
        for variable, value in ((locks.patience, 0.05), (locks.on_wait, lambda: told.append("waits"))):
            vars.callback(variable.reset, variable.set(value))
        with Bank(bank.config) as late:
            assert ([hit.memory.id for hit in late.search("tuna")], late.index.complete) == (["notes:a"], False)
            other.execute("ROLLBACK")
            assert (len(late.search("tuna")), late.index.complete) == (2, True)
    assert "waits" in told
