"""PostgreSQL as a remote: who may see what, numbers in their order, lost connections, the first use of a database."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from memlane.core.errors import StorageError
from memlane.exchange.remotes import SHARED, Conflict, Remote, Unreachable, opened, postgres
from remote_servers import Cluster, Line

MOST = 1 << 20


@pytest.fixture
def remote(cluster: Cluster, database: str) -> Iterator[Remote]:
    made = opened(cluster.url(database))
    yield made
    made.close()


@pytest.fixture
def people(cluster: Cluster, database: str, remote: Remote) -> Iterator[tuple[Remote, Remote]]:
    """alice and bob, with a team that only alice is in. The owner has made the tables."""
    list(remote.changes(""))
    cluster.sql("create role alice login", "create role bob login", "create role team", "grant team to alice")
    cluster.sql(postgres.setup("alice", "bob"), database=database)
    both = opened(cluster.url(database, "alice")), opened(cluster.url(database, "bob"))
    yield both
    for one in both:
        one.close()
    cluster.sql("drop owned by alice, bob", database=database)
    cluster.sql("drop role alice", "drop role bob", "drop role team")


def put(remote: Remote, path: str, data: bytes = b"text", expected: str | None = None, scope: str = SHARED) -> str:
    return remote.put(path, data, expected, scope=scope, author="")


def seen(remote: Remote) -> list[tuple[str, str]]:
    return sorted((entry.scope, entry.path) for page, _ in remote.changes("") for entry in page)


def refusal(remote: Remote, path: str, scope: str, expected: str | None) -> tuple[type[Exception], str, str]:
    with pytest.raises((StorageError, Conflict)) as refused:
        put(remote, path, b"by bob", expected, scope)
    return type(refused.value), refused.value.message.replace(path, "PATH"), refused.value.hint


# -- scopes


def test_a_scope_is_seen_by_the_members_of_its_role(people: tuple[Remote, Remote], remote: Remote) -> None:
    alice, bob = people
    for scope in ("alice", "team", SHARED):
        put(alice, "diary.md", scope.encode(), scope=scope)
    assert seen(alice) == [("alice", "diary.md"), (SHARED, "diary.md"), ("team", "diary.md")]
    assert seen(bob) == [(SHARED, "diary.md")]
    assert seen(remote) == seen(alice)
    assert bob.get("diary.md", "alice", MOST) is None
    put(bob, "diary.md", b"mine", scope="bob")
    assert seen(alice) == [("alice", "diary.md"), (SHARED, "diary.md"), ("team", "diary.md")]


def test_a_refusal_does_not_tell_whether_a_hidden_file_exists(people: tuple[Remote, Remote]) -> None:
    alice, bob = people
    version = put(alice, "diary.md", b"hidden", scope="alice")
    for expected in (None, version, "1-guessed"):
        assert refusal(bob, "diary.md", "alice", expected) == refusal(bob, "nothing.md", "alice", expected)
    put(bob, "diary.md", b"shared", scope=SHARED)
    assert alice.get("diary.md", "alice", MOST)[1] == b"hidden"  # type: ignore[index]


def test_what_others_hide_does_not_wake_those_who_cannot_see_it(people: tuple[Remote, Remote]) -> None:
    alice, bob = people
    put(alice, "a.md")
    *_, (_, cursor) = bob.changes("")
    put(alice, "b.md", scope="alice")
    assert (bob.watch(cursor, 0), alice.watch(cursor, 0)) == (False, True)


def test_nobody_but_the_owner_removes_rows(people: tuple[Remote, Remote], cluster: Cluster, database: str) -> None:
    put(people[0], "a.md")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        cluster.sql("delete from memlane.file", database=database, user="bob")


# -- numbers


def test_a_number_is_not_seen_before_the_ones_below_it(remote: Remote, cluster: Cluster, database: str) -> None:
    """The trap of a plain sequence: whoever has seen 2 would never see 1."""
    put(remote, "first.md")
    other = opened(cluster.url(database))
    with psycopg.connect(cluster.url(database)) as slow:
        slow.execute(
            "with n as (update memlane.bank set number = number + 1 returning number) "
            "insert into memlane.file select name, 'shared', 'slow.md', n.number, 'slow', '', '' from memlane.bank, n"
        )
        quick = threading.Thread(target=put, args=(other, "quick.md"))
        quick.start()
        while not cluster.sql("select 1 from pg_stat_activity where wait_event_type = 'Lock'"):
            pass
        *_, (_, cursor) = remote.changes("")
        assert seen(remote) == [(SHARED, "first.md")]
    quick.join()
    other.close()
    assert [entry.path for page, _ in remote.changes(cursor) for entry in page] == ["slow.md", "quick.md"]


@pytest.mark.parametrize("written_since", [0, 1, 5])
def test_a_database_that_was_brought_back_from_a_backup_lists_everything_again(
    remote: Remote, cluster: Cluster, database: str, written_since: int
) -> None:
    """Also where others have written as much since: then its number tells nothing."""
    put(remote, "a.md")
    cluster.sql("create table saved as select * from memlane.file", database=database)
    put(remote, "b.md")
    put(remote, "c.md")
    *_, (_, cursor) = remote.changes("")
    assert [*remote.changes(cursor)] == [([], cursor)]
    cluster.sql(
        "delete from memlane.file; insert into memlane.file select * from saved; update memlane.bank set number = 1",
        database=database,
    )
    new = [f"new {number}.md" for number in range(written_since)]
    for path in new:
        put(remote, path)
    pages = list(remote.changes(cursor))
    assert pages[0] == ([], "")
    assert [entry.path for page, _ in pages for entry in page] == ["a.md", *new]
    *_, (_, after) = pages
    assert [*remote.changes(after)] == [([], after)]


def test_a_file_that_was_changed_again_is_no_sign_of_a_backup(remote: Remote) -> None:
    version = put(remote, "a.md")
    *_, (_, cursor) = remote.changes("")
    put(remote, "b.md")
    put(remote, "a.md", b"another", version)
    assert [[entry.path for entry in page] for page, _ in remote.changes(cursor)] == [["b.md", "a.md"]]


def test_a_cursor_of_an_earlier_version_goes_on_where_it_was(remote: Remote) -> None:
    put(remote, "a.md")
    put(remote, "b.md")
    assert [[entry.path for entry in page] for page, _ in remote.changes("1")] == [["b.md"]]


def test_the_notice_of_a_change_carries_its_number_alone(remote: Remote, cluster: Cluster, database: str) -> None:
    list(remote.changes(""))
    with psycopg.connect(cluster.url(database), autocommit=True) as listener:
        listener.execute(f"listen {remote._channel}")  # type: ignore[attr-defined]
        put(remote, "notes/of nobody's concern.md", b"a secret plan")
        assert [notice.payload for notice in listener.notifies(timeout=60, stop_after=1)] == ["1"]


def test_whoever_watches_is_woken_at_once(
    remote: Remote, cluster: Cluster, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at the next look, which comes long after the end of this test."""
    monkeypatch.setattr(postgres, "POLL", 120.0)
    put(remote, "a.md")
    *_, (_, cursor) = remote.changes("")
    assert remote.watch(cursor, 0) is False
    other = opened(cluster.url(database))
    writer = threading.Timer(0.2, put, args=(other, "b.md"))
    writer.start()
    begun = time.monotonic()
    assert remote.watch(cursor, 120) is True
    assert time.monotonic() - begun < postgres.POLL
    writer.join()
    other.close()


def test_a_database_that_cannot_notify_is_looked_at_instead(
    remote: Remote, cluster: Cluster, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "POLL", 0.05)
    silent = opened(cluster.url(database))
    silent._channel = "to 'nothing' that a database understands"  # type: ignore[attr-defined]
    put(silent, "a.md")
    *_, (_, cursor) = silent.changes("")
    writer = threading.Timer(0.2, put, args=(remote, "b.md"))
    writer.start()
    assert silent.watch(cursor, 60) is True
    writer.join()
    silent.close()


def test_a_bank_that_was_brought_back_from_a_backup_is_told_from_the_start(
    remote: Remote, cluster: Cluster, database: str
) -> None:
    for name in "abc":
        put(remote, f"{name}.md")
    *_, (_, cursor) = remote.changes("")
    cluster.sql("delete from memlane.file where number > 1", "update memlane.bank set number = 1", database=database)
    assert [entry.path for page, _ in remote.changes(cursor) for entry in page] == ["a.md"]


def test_a_bank_that_is_gone_is_not_taken_for_an_empty_one(remote: Remote, cluster: Cluster, database: str) -> None:
    put(remote, "a.md")
    *_, (_, cursor) = remote.changes("")
    cluster.sql("delete from memlane.file", "delete from memlane.bank", database=database)
    with pytest.raises(Unreachable, match="nothing of this bank any more"):
        list(remote.changes(cursor))


# -- the first use


FIRST = """
import sys
from memlane.exchange.remotes import opened
remote = opened(sys.argv[1])
sys.stdin.readline()
remote.put(sys.argv[2], b"text", None, scope="shared", author="")
"""


def test_the_first_members_may_come_at_the_same_moment(remote: Remote, cluster: Cluster, database: str) -> None:
    command = [sys.executable, "-c", FIRST, cluster.url(database)]
    members = [subprocess.Popen([*command, name], stdin=subprocess.PIPE, text=True) for name in "abcdef"]
    for one in members:
        assert one.stdin
        one.stdin.write("go\n")
        one.stdin.close()
    assert [one.wait() for one in members] == [0] * 6
    assert seen(remote) == [(SHARED, name) for name in "abcdef"]


def test_preparing_a_database_twice_changes_nothing(remote: Remote, cluster: Cluster, database: str) -> None:
    put(remote, "a.md")
    cluster.sql(postgres.SCHEMA, database=database)
    assert seen(remote) == [(SHARED, "a.md")]


def test_whoever_may_not_make_tables_is_told_the_sql_that_makes_them(cluster: Cluster, database: str) -> None:
    cluster.sql("create role carol login")
    try:
        remote = opened(cluster.url(database, "carol"))
        with pytest.raises(StorageError) as refused:
            put(remote, "a.md")
        asked = refused.value.hint.partition("\n\n")[2]
        assert asked == postgres.setup("carol")
        cluster.sql(asked, database=database)
        put(remote, "a.md")
        assert seen(remote) == [(SHARED, "a.md")]
        remote.close()
    finally:
        cluster.sql("drop owned by carol", database=database)
        cluster.sql("drop role carol")


def test_the_name_of_a_role_is_quoted_in_the_sql_to_run() -> None:
    assert re.findall(r"to (.*);", postgres.setup('o"; drop table x; --')) == ['"o""; drop table x; --"'] * 2


# -- connections


def test_a_restart_of_the_server_goes_unnoticed_by_reads_and_writes(
    remote: Remote, cluster: Cluster, database: str
) -> None:
    version = put(remote, "a.md", b"before")
    *_, (_, cursor) = remote.changes("")
    remote.watch(cursor, 0)
    cluster.stop()
    with pytest.raises(Unreachable):
        put(remote, "b.md")
    cluster.start()
    put(remote, "a.md", b"after", version)
    assert remote.watch(cursor, 0) is True
    assert remote.get("a.md", SHARED, MOST)[1] == b"after"  # type: ignore[index]


def test_a_connection_that_was_cut_is_made_anew(remote: Remote, cluster: Cluster, database: str) -> None:
    version = put(remote, "a.md", b"before")
    end = f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{database}'"
    cluster.sql(end)
    version = put(remote, "a.md", b"after", version)
    cluster.sql(end)
    assert remote.get("a.md", SHARED, MOST)[1] == b"after"  # type: ignore[index]


def test_a_write_whose_answer_is_lost_is_in_doubt_until_it_is_read(cluster: Cluster, database: str, line: Line) -> None:
    remote = opened(cluster.url(database, port=line.port))
    put(remote, "a.md")
    line.trap = b"by a cut line"
    with pytest.raises(Unreachable, match="may have arrived"):
        put(remote, "b.md", b"by a cut line")
    line.heal()
    while (found := remote.get("b.md", SHARED, MOST)) is None:
        pass
    assert found[1] == b"by a cut line"
    with pytest.raises(Conflict):
        put(remote, "b.md", b"once more")
    remote.close()


def test_a_server_that_does_not_answer_is_not_waited_for_for_ever(
    cluster: Cluster, database: str, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "PATIENCE", 0.3)
    monkeypatch.setattr(postgres, "GRACE", 0.2)
    remote = opened(cluster.url(database, port=line.port))
    put(remote, "a.md")
    line.trap, line.silent = b"into silence", True
    with pytest.raises(Unreachable, match="may have arrived"):
        put(remote, "b.md", b"into silence")
    line.heal()
    assert remote.get("a.md", SHARED, MOST)[1] == b"text"  # type: ignore[index]
    remote.close()


def test_a_member_that_is_stopped_does_not_hold_up_the_others(remote: Remote, cluster: Cluster, database: str) -> None:
    """A change is one statement, so nobody sits on the lock of a bank between two."""
    other = opened(cluster.url(database))
    put(other, "a.md")
    assert cluster.sql("select 1 from pg_stat_activity where state like 'idle in transaction%'") == []
    put(remote, "b.md")
    other.close()


def test_a_password_that_is_wrong_is_not_repeated(
    cluster: Cluster, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    with pytest.raises(Unreachable) as failed:
        opened(cluster.url(database, "nobody_at_all")).get("a.md", SHARED, MOST)
    assert "hunter2" not in failed.value.message + failed.value.hint


# -- encodings


def test_paths_are_text_in_a_database_that_knows_no_encoding(cluster: Cluster) -> None:
    """As `initdb` makes one where no locale is set."""
    cluster.sql("create database plain encoding 'SQL_ASCII' template template0")
    remote = opened(cluster.url("plain"))
    try:
        put(remote, "größe.md", "Größe".encode())
        assert seen(remote) == [(SHARED, "größe.md")]
    finally:
        remote.close()
        cluster.sql("drop database plain with (force)")


def test_what_a_member_says_beside_a_content_is_cut_and_not_fetched(
    remote: Remote, cluster: Cluster, database: str
) -> None:
    """A row can say who wrote it in a gigabyte."""
    put(remote, "a.md")
    put(remote, "b.md")
    long = "repeat('x', 3000000)"
    cluster.sql(
        f"update memlane.file set author = {long}, lineage = {long}, version = {long} where path = 'a.md'",
        "update memlane.file set path = repeat('x', 100000) where path = 'b.md'",
        database=database,
    )
    listed = {entry.path: entry for page, _ in remote.changes("") for entry in page}
    assert {path[:4]: len(path) for path in listed} == {"a.md": 4, "xxxx": 701}
    found = remote.get("a.md", SHARED, MOST)
    assert found is not None
    assert [len(each) for each in (found[0].version, found[0].author, found[0].lineage)] == [100, 200, 2000]
    [(entry, data)] = remote.get_many([listed["a.md"]])
    assert (entry, data) == (found[0], b"text")
