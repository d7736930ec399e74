"""What every kind of remote does, one and the same: a folder, PostgreSQL, an object store."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from urllib.parse import quote

import pytest

from memlane.core.values import replace
from memlane.exchange.remotes import (
    SHARED,
    Conflict,
    Entry,
    InvalidInput,
    Looks,
    New,
    Remote,
    TooLarge,
    Unreachable,
    opened,
)
from remote_servers import Place

MOST = 1 << 20


@pytest.fixture
def remote(place: Place) -> Iterator[Remote]:
    made = opened(place.url, bank=place.bank)
    yield made
    made.close()


def everything(remote: Remote, cursor: str = "") -> tuple[dict[tuple[str, str], Entry], str]:
    """The entries that `changes` tells, by scope and path, and the last cursor."""
    found: dict[tuple[str, str], Entry] = {}
    for page, after in remote.changes(cursor):
        cursor = after
        found |= {(entry.scope, entry.path): entry for entry in page}
    return found, cursor


def put(remote: Remote, path: str, data: bytes, expected: str | None = None, scope: str = SHARED) -> str:
    return remote.put(path, data, expected, scope=scope, author="ada")


def content(remote: Remote, path: str, scope: str = SHARED) -> bytes | None:
    found = remote.get(path, scope, MOST)
    return found and found[1]


@pytest.mark.parametrize("data", [b"On Tuesdays.\n", b"", b"\0", b"\0\0 zero", bytes(range(256)) * 50])
def test_what_was_put_is_there_byte_for_byte(remote: Remote, data: bytes) -> None:
    version = put(remote, "notes/deploy day.md", data)
    expected = Entry("notes/deploy day.md", SHARED, version, len(data), False, "ada")
    assert remote.get("notes/deploy day.md", SHARED, MOST) == (expected, data)


def test_a_path_may_be_in_any_script_and_an_author_too(remote: Remote) -> None:
    version = remote.put("ノート/größe +%20&'\"?#.md", b"x", None, scope="équipe α", author="Zoë – λ")
    expected = Entry("ノート/größe +%20&'\"?#.md", "équipe α", version, 1, False, "Zoë – λ")
    assert remote.get("ノート/größe +%20&'\"?#.md", "équipe α", MOST) == (expected, b"x")
    told, _ = everything(remote)
    assert {key: replace(entry, author="") for key, entry in told.items()} == {
        ("équipe α", expected.path): replace(expected, author="")
    }


def test_what_is_said_of_a_content_is_kept_beside_it(remote: Remote) -> None:
    lineage = " ".join(f"{number:06x}:{number}" for number in range(1, 80))
    version = remote.put("a.md", b"text", None, scope=SHARED, author="ada", lineage=lineage)
    found = remote.get("a.md", SHARED, MOST)
    assert found
    assert found[0].lineage == lineage
    remote.delete("a.md", version, scope=SHARED, author="ada", lineage="0000ff:2")
    found = remote.get("a.md", SHARED, MOST)
    assert found
    assert found[0].lineage == "0000ff:2"


def test_nothing_is_there_before_it_was_put(remote: Remote) -> None:
    assert remote.get("notes/deploy.md", SHARED, MOST) is None
    assert everything(remote)[0] == {}


def test_paths_that_differ_in_case_alone_are_two_files(remote: Remote) -> None:
    put(remote, "notes/A.md", b"large")
    put(remote, "notes/a.md", b"small")
    assert (content(remote, "notes/A.md"), content(remote, "notes/a.md")) == (b"large", b"small")


def test_a_new_file_does_not_replace_one_that_is_there(remote: Remote) -> None:
    put(remote, "a.md", b"first")
    with pytest.raises(Conflict):
        put(remote, "a.md", b"second")
    assert content(remote, "a.md") == b"first"


def test_a_change_names_the_version_that_it_was_made_from(remote: Remote) -> None:
    first = put(remote, "a.md", b"first")
    second = put(remote, "a.md", b"second", first)
    assert second != first
    with pytest.raises(Conflict):
        put(remote, "a.md", b"third", first)
    with pytest.raises(Conflict):
        remote.delete("a.md", first, scope=SHARED, author="ada")
    assert content(remote, "a.md") == b"second"


def test_a_change_of_what_is_not_there_is_a_conflict(remote: Remote) -> None:
    version = put(remote, "a.md", b"first")
    with pytest.raises(Conflict):
        put(remote, "b.md", b"second", version)
    with pytest.raises(Conflict):
        put(remote, "a.md", b"second", "no version of anybody")


def test_a_deleted_file_stays_as_an_entry_without_content(remote: Remote) -> None:
    first = put(remote, "a.md", b"first")
    gone = remote.delete("a.md", first, scope=SHARED, author="bo")
    assert gone != first
    entry = Entry("a.md", SHARED, gone, 0, True, "bo")
    assert remote.get("a.md", SHARED, MOST) == (entry, b"")
    told, _ = everything(remote)
    assert {key: replace(one, author="bo") for key, one in told.items()} == {(SHARED, "a.md"): entry}


def test_a_deleted_file_comes_back_only_over_its_own_version(remote: Remote) -> None:
    gone = remote.delete("a.md", put(remote, "a.md", b"first"), scope=SHARED, author="ada")
    with pytest.raises(Conflict):
        put(remote, "a.md", b"again")
    put(remote, "a.md", b"again", gone)
    assert content(remote, "a.md") == b"again"


def test_banks_and_scopes_are_apart(remote: Remote, place: Place) -> None:
    put(remote, "a.md", b"shared")
    put(remote, "a.md", b"of the team", scope="team")
    other = opened(place.url, bank=place.bank + "x")
    put(other, "a.md", b"of another bank")
    other.close()
    assert (content(remote, "a.md"), content(remote, "a.md", "team")) == (b"shared", b"of the team")
    assert sorted(everything(remote)[0]) == [(SHARED, "a.md"), ("team", "a.md")]


def test_an_address_may_say_which_bank_it_is(remote: Remote, place: Place) -> None:
    put(remote, "a.md", b"shared")
    url = place.url if "://" in place.url else f"file://{quote(place.url)}"
    named = opened(f"{url}{'&' if '?' in url else '?'}bank={quote(place.bank)}")
    found = content(named, "a.md")
    named.close()
    assert found == b"shared"


def test_what_is_too_large_is_not_read(remote: Remote) -> None:
    put(remote, "a.md", b"x" * 1000)
    assert content(remote, "a.md") == b"x" * 1000
    assert remote.get("a.md", SHARED, 1000) is not None
    with pytest.raises(TooLarge):
        remote.get("a.md", SHARED, 999)


def test_changes_come_in_pages_and_go_on_where_they_were(
    remote: Remote, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module(f"memlane.exchange.remotes.{place.kind}"), "_PAGE", 3)
    versions = {f"notes/{number}.md": put(remote, f"notes/{number}.md", b"text") for number in range(8)}
    pages = [[entry.path for entry in page] for page, _ in remote.changes("")]
    assert [len(page) for page in pages][:3] == [3, 3, 2]
    assert sorted(path for page in pages for path in page) == sorted(versions)
    _, cursor = everything(remote)
    versions["notes/3.md"] = remote.delete("notes/3.md", versions["notes/3.md"], scope=SHARED, author="ada")
    versions["notes/new.md"] = put(remote, "notes/new.md", b"new")
    told, after = everything(remote, cursor)
    assert {"notes/3.md", "notes/new.md"} <= {path for _, path in told}
    assert {path: entry.version for (_, path), entry in told.items()}.items() <= versions.items()
    assert after != cursor


def test_a_reader_who_stops_half_way_misses_nothing(
    remote: Remote, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module(f"memlane.exchange.remotes.{place.kind}"), "_PAGE", 2)
    for number in range(5):
        put(remote, f"{number}.md", b"text")
    seen, cursor = next(iter(remote.changes("")))
    told, _ = everything(remote, cursor)
    assert {entry.path for entry in seen} | {path for _, path in told} == {f"{number}.md" for number in range(5)}


def test_watching_tells_of_changes_since_the_cursor(remote: Remote) -> None:
    put(remote, "a.md", b"first")
    _, cursor = everything(remote)
    assert remote.watch(cursor, 0) is False
    put(remote, "b.md", b"second")
    assert remote.watch(cursor, 0) is True
    assert remote.watch("", 0) is True


def test_short_waits_one_after_the_other_do_not_look_more_often_than_a_long_one() -> None:
    looks, looked = Looks(60.0), []

    def changed() -> bool:
        looked.append("looked")
        return False

    assert [looks.until(changed, 0.01) for _ in range(3)] == [False, False, False]
    assert len(looked) == 1
    assert looks.until(changed, 0) is False
    assert len(looked) == 2


def test_a_write_that_was_in_conflict_does_not_wake_the_others(remote: Remote) -> None:
    put(remote, "a.md", b"first")
    _, cursor = everything(remote)
    with pytest.raises(Conflict):
        put(remote, "a.md", b"second")
    assert remote.watch(cursor, 0) is False


@pytest.mark.parametrize(
    "path",
    ["", "/etc/passwd", "../a.md", "a/../b", "a//b", "./a", "a\\b", "a\0b", "a\nb", "a" * 701, "\udcff"],
)
def test_a_path_that_not_every_remote_can_keep_is_refused(remote: Remote, path: str) -> None:
    with pytest.raises(InvalidInput):
        put(remote, path, b"text")
    with pytest.raises(InvalidInput):
        remote.get(path, SHARED, MOST)


def test_a_remote_can_be_used_again_after_it_was_closed(remote: Remote) -> None:
    put(remote, "a.md", b"text")
    remote.close()
    assert content(remote, "a.md") == b"text"


# -- many files at once


def news(*names: str, scope: str = SHARED) -> list[New]:
    return [New(name, scope, f"text of {name}".encode(), "0000ff:1") for name in names]


def test_many_files_are_put_and_fetched_as_one_by_one(remote: Remote) -> None:
    wanted = [
        *news(*(f"notes/{number}.md" for number in range(120))),
        New("empty.md", SHARED, b""),
        *news("a.md", scope="équipe α"),
    ]
    stored = dict(remote.put_many(wanted, author="ada"))
    assert set(stored) == set(wanted)
    told, _ = everything(remote)
    assert {key: entry.version for key, entry in told.items()} == {(one.scope, one.path): stored[one] for one in wanted}
    found = remote.get_many(list(told.values()))
    assert sorted((entry.path, entry.scope, data, entry.lineage) for entry, data in found) == sorted(
        (one.path, one.scope, one.data, one.lineage) for one in wanted
    )
    assert {entry.author for entry, _ in found} == {"ada"}
    assert {(entry.scope, entry.path): remote.get(entry.path, entry.scope, MOST) for entry, _ in found} == {
        (entry.scope, entry.path): (entry, data) for entry, data in found
    }


def test_of_many_those_that_have_been_there_are_left_out(remote: Remote) -> None:
    put(remote, "1.md", b"first")
    remote.delete("2.md", put(remote, "2.md", b"first"), scope=SHARED, author="ada")
    stored = dict(remote.put_many(news("0.md", "1.md", "2.md", "3.md"), author="ada"))
    assert sorted(one.path for one in stored) == ["0.md", "3.md"]
    assert [content(remote, f"{number}.md") for number in range(4)] == [b"text of 0.md", b"first", b"", b"text of 3.md"]


def test_of_many_what_is_gone_or_grew_or_was_never_there_is_left_out(remote: Remote) -> None:
    versions = {one.path: version for one, version in remote.put_many(news("a.md", "b.md", "c.md"), author="ada")}
    told, _ = everything(remote)
    put(remote, "b.md", b"much longer than it was listed", versions["b.md"])
    never = Entry("never.md", SHARED, told[SHARED, "a.md"].version, 100, False, "")
    found = remote.get_many([*told.values(), never])
    assert sorted((entry.path, data) for entry, data in found) == [("a.md", b"text of a.md"), ("c.md", b"text of c.md")]


def test_nothing_is_asked_for_or_put_where_nothing_is_wanted(remote: Remote) -> None:
    assert list(remote.put_many([], author="ada")) == []
    assert remote.get_many([]) == []


def test_many_files_wake_the_others_and_a_conflict_does_not(remote: Remote) -> None:
    list(remote.put_many(news("a.md", "b.md"), author="ada"))
    _, cursor = everything(remote)
    assert list(remote.put_many(news("a.md", "b.md"), author="ada")) == []
    assert remote.watch(cursor, 0) is False
    list(remote.put_many(news("b.md", "c.md"), author="ada"))
    assert remote.watch(cursor, 0) is True
    assert "c.md" in {path for _, path in everything(remote, cursor)[0]}


# -- several processes

COUNT = """
import sys
from memlane.exchange.remotes import Conflict, opened
remote, mine = opened(sys.argv[1], bank=sys.argv[2]), 0
while mine < int(sys.argv[3]):
    entry, data = remote.get("count", "shared", 100)
    try:
        remote.put("count", str(int(data) + 1).encode(), entry.version, scope="shared", author="counter")
        mine += 1
    except Conflict:
        pass
"""


def started(place: Place, code: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, place.url, place.bank, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ.copy())


def test_four_processes_that_count_together_lose_nothing(remote: Remote, place: Place) -> None:
    put(remote, "count", b"0")
    counters = [started(place, COUNT, "6") for _ in range(4)]
    assert [one.wait() for one in counters] == [0] * 4
    for one in counters:
        one.stdout and one.stdout.close()
    assert content(remote, "count") == b"24"


WRITE = """
import sys
from memlane.exchange.remotes import opened
remote, version = opened(sys.argv[1], bank=sys.argv[2]), None
for number in range(int(sys.argv[4])):
    path = f"{sys.argv[3]}/{number}.md"
    version = remote.put(path, b"first", None, scope="shared", author="")
    version = remote.put(path, b"second", version, scope="shared", author="")
    print(path, flush=True)
"""


def test_a_reader_who_follows_four_writers_misses_nothing(remote: Remote, place: Place) -> None:
    writers = [started(place, WRITE, name, "6") for name in "abcd"]
    versions: dict[str, str] = {}
    cursor = ""
    while any(one.poll() is None for one in writers):
        told, cursor = everything(remote, cursor)
        versions |= {path: entry.version for (_, path), entry in told.items()}
    told, cursor = everything(remote, cursor)
    versions |= {path: entry.version for (_, path), entry in told.items()}
    for one in writers:
        one.stdout and one.stdout.close()
    assert versions.keys() == {f"{name}/{number}.md" for name in "abcd" for number in range(6)}
    whole, _ = everything(remote)
    assert versions == {path: entry.version for (_, path), entry in whole.items()}


def test_killed_writers_leave_nothing_that_keeps_others_from_writing(remote: Remote, place: Place) -> None:
    acknowledged = []
    for round in range(4):
        writer = started(place, WRITE, f"round{round}", "1000")
        assert writer.stdout
        acknowledged += [writer.stdout.readline().strip() for _ in range(2 + round)]
        time.sleep(0.003 * round)  # not to wait for anything: the kill is to come at another moment each time
        os.kill(writer.pid, signal.SIGKILL)
        acknowledged += [line.strip() for line in writer.stdout if line.endswith("\n")]
        writer.wait()
        writer.stdout.close()
    assert {content(remote, path) for path in acknowledged} == {b"second"}
    told, _ = everything(remote)
    for (scope, path), entry in told.items():
        put(remote, path, b"by another", entry.version, scope)


# -- addresses


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:hunter2@db/memory", "postgres://ada:hunter2@db/memory", "postgresql://db/m?password=hunter2",
        "postgresql://db/m?sslpassword=hunter2", "s3://key:hunter2@bucket/x", "s3://bucket/x?secret=hunter2",
        "postgresql://ada:@db/memory", "postgresql://db:hunter2/memory", "s3://bucket?aws_secret_access_key=hunter2",
    ],
)  # fmt: skip
def test_an_address_with_a_password_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        opened(url)
    assert "hunter2" not in json.dumps(refused.value.to_dict())
    assert refused.value.hint


@pytest.mark.parametrize("url", ["", "  ", "ftp://host/x", "file://host/x", "s3://", "s3://b?colour=red", "http://[x"])
def test_an_address_of_no_known_kind_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        opened(url)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("url", "package", "extra"),
    [("postgresql://db/memory", "psycopg", "postgres"), ("s3://bucket", "botocore", "s3")],
)
def test_a_driver_that_is_not_installed_is_named_with_its_extra(url: str, package: str, extra: str) -> None:
    code = f"""
import sys
sys.modules[{package!r}] = None
from memlane.exchange.remotes import opened
from memlane import InvalidInput
try:
    opened({url!r})
except InvalidInput as error:
    print(error, error.hint)
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert f"needs {package}" in told
    assert f"memlane[{extra}]" in told


@pytest.mark.parametrize(
    "url",
    [
        "/nowhere/at/all", "file:///nowhere/at/all", "postgresql://ada@127.0.0.1:1/memory",
        "s3://memory?endpoint=http://127.0.0.1:1",
    ],
)  # fmt: skip
def test_what_cannot_be_reached_says_so_with_a_next_step(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "hunter2",
        "PGPASSWORD": "hunter2",
    }.items():
        monkeypatch.setenv(name, value)
    for call in (
        lambda remote: list(remote.changes("")),
        lambda remote: remote.get("a.md", SHARED, MOST),
        lambda remote: put(remote, "a.md", b"text"),
        lambda remote: remote.watch("", 0),
    ):
        with pytest.raises(Unreachable) as failed:
            call(opened(url))
        assert failed.value.hint
        assert "hunter2" not in json.dumps(failed.value.to_dict())
