"""Object stores as remotes: stores that ignore conditions, lost answers, what lies in the bucket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from memlane.core.errors import StorageError
from memlane.exchange.remotes import SHARED, Conflict, Remote, Unreachable, opened, s3
from remote_servers import KEYS, Application, bucket_at, object_store, s3_url

MOST = 1 << 20


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("moto")
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[Application], Application]], tuple[Remote, Any]]]:
    """A remote in a store that answers as it is told to, and a client that sees what lies there."""
    with ExitStack() as ends:

        def served(around: Callable[[Application], Application]) -> tuple[Remote, Any]:
            endpoint = ends.enter_context(object_store(around))
            client = bucket_at(endpoint, "memory")
            remote = opened(s3_url(endpoint, "memory", "/team"))
            ends.callback(client.close)
            ends.callback(remote.close)
            for page in client.get_paginator("list_objects_v2").paginate(Bucket="memory"):
                for one in page.get("Contents", ()):  # moto's buckets are one for the whole process
                    client.delete_object(Bucket="memory", Key=one["Key"])
            return remote, client

        yield served


def put(remote: Remote, path: str, data: bytes = b"text", expected: str | None = None) -> str:
    return remote.put(path, data, expected, scope=SHARED, author="")


def keys(client: Any) -> dict[str, bytes]:
    listed = client.list_objects_v2(Bucket="memory").get("Contents", ())
    return {one["Key"]: client.get_object(Bucket="memory", Key=one["Key"])["Body"].read() for one in listed}


def test_an_object_is_the_file_as_it_is(serve: Any) -> None:
    remote, client = serve(lambda inner: inner)
    put(remote, "notes/deploy.md", b"On Tuesdays.\n")
    remote.delete("gone.md", put(remote, "gone.md"), scope=SHARED, author="")
    assert keys(client) == {
        "team/default/shared/gone.md": b"",
        "team/default/shared/notes/deploy.md": b"On Tuesdays.\n",
    }


def test_objects_of_other_programs_are_not_taken_for_files(serve: Any) -> None:
    remote, client = serve(lambda inner: inner)
    put(remote, "a.md")
    for key in ("team/default/", "team/default/loose.txt", "team/default/shared/../../x", "team/default/shared/a//b"):
        client.put_object(Bucket="memory", Key=key, Body=b"from elsewhere")
    assert [entry.path for page, _ in remote.changes("") for entry in page] == ["a.md"]


def test_an_object_that_another_member_tries_the_store_with_is_nothing_that_could_be_lost(serve: Any) -> None:
    remote, client = serve(lambda inner: inner)
    client.put_object(Bucket="memory", Key="team/default/.tried-0123456789abcdef", Body=b"tried")
    seen = list(remote.changes(""))
    client.delete_object(Bucket="memory", Key="team/default/.tried-0123456789abcdef")
    assert seen == list(remote.changes(seen[-1][1])) == [([], "")]


def ignoring(*headers: str) -> Callable[[Application], Application]:
    """A store that does not look at these headers."""

    def around(inner: Application) -> Application:
        def application(environ: dict[str, Any], start: Any) -> Any:
            return inner({name: value for name, value in environ.items() if name not in headers}, start)

        return application

    return around


@pytest.mark.parametrize(
    "headers", [("HTTP_IF_MATCH",), ("HTTP_IF_NONE_MATCH",), ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH")]
)
def test_a_store_that_does_not_compare_is_refused_before_the_first_write(serve: Any, headers: tuple[str, ...]) -> None:
    remote, client = serve(ignoring(*headers))
    with pytest.raises(StorageError, match="does not compare") as refused:
        put(remote, "a.md")
    assert refused.value.hint
    assert keys(client) == {}


def test_a_store_that_does_not_know_conditions_is_refused(serve: Any) -> None:
    def around(inner: Application) -> Application:
        def application(environ: dict[str, Any], start: Any) -> Any:
            if "HTTP_IF_NONE_MATCH" not in environ:
                return inner(environ, start)
            b"".join(inner(environ, lambda *_: None))
            start("501 Not Implemented", [("Content-Type", "application/xml")])
            return [b"<Error><Code>NotImplemented</Code><Message>no</Message></Error>"]

        return application

    with pytest.raises(StorageError, match="does not compare"):
        put(serve(around)[0], "a.md")


def losing(lose: list[str]) -> Callable[[Application], Application]:
    """A store that loses the answer to the next write of a name with this in it, once."""

    def around(inner: Application) -> Application:
        def application(environ: dict[str, Any], start: Any) -> Any:
            if environ["REQUEST_METHOD"] != "PUT" or not lose or lose[0] not in environ["PATH_INFO"]:
                return inner(environ, start)
            lose.clear()
            b"".join(inner(environ, lambda *_: None))
            start("500 Internal Server Error", [("Content-Type", "application/xml")])
            return [b"<Error><Code>InternalError</Code><Message>try again</Message></Error>"]

        return application

    return around


def test_a_write_whose_answer_was_lost_is_found_to_be_ours(serve: Any) -> None:
    """The second attempt of the same write meets the first one, which is not somebody else's."""
    lose: list[str] = []

    remote, _ = serve(losing(lose))
    put(remote, "other.md")
    lose.append("a.md")
    version = put(remote, "a.md", b"first")
    lose.append("a.md")
    put(remote, "a.md", b"second", version)
    assert remote.get("a.md", SHARED, MOST)[1] == b"second"  # type: ignore[index]
    with pytest.raises(Conflict):
        put(remote, "a.md", b"second", version)


def test_an_endpoint_that_sends_more_than_it_said_is_not_read_to_the_end(serve: Any) -> None:
    sent = []

    def around(inner: Application) -> Application:
        def application(environ: dict[str, Any], start: Any) -> Any:
            if environ["REQUEST_METHOD"] != "GET" or "a.md" not in environ["PATH_INFO"]:
                return inner(environ, start)
            start("200 OK", [("ETag", '"x"'), ("Content-Length", str(10**10))])

            def body() -> Iterator[bytes]:
                for _ in range(10_000):
                    sent.append(1)
                    yield b"x" * 1_000_000

            return body()

        return application

    remote, _ = serve(around)
    with pytest.raises(s3.TooLarge):
        remote.get("a.md", SHARED, 1000)
    assert len(sent) < 100


def test_a_bucket_that_keeps_versions_says_so(serve: Any) -> None:
    remote, client = serve(lambda inner: inner)
    assert remote.keeps_history() is False
    client.put_bucket_versioning(Bucket="memory", VersioningConfiguration={"Status": "Enabled"})
    assert remote.keeps_history() is True
    client.put_bucket_versioning(Bucket="memory", VersioningConfiguration={"Status": "Suspended"})


def test_a_bucket_that_was_emptied_is_not_taken_for_an_empty_one(serve: Any) -> None:
    remote, client = serve(lambda inner: inner)
    put(remote, "a.md")
    *_, (_, cursor) = remote.changes("")
    client.delete_object(Bucket="memory", Key="team/default/shared/a.md")
    with pytest.raises(Unreachable, match="nothing of this bank any more"):
        list(remote.changes(cursor))


def test_a_bucket_that_is_not_there_is_named(store: str) -> None:
    with pytest.raises(Unreachable, match="no bucket elsewhere"):
        put(opened(s3_url(store, "elsewhere")), "a.md")


def test_keys_that_are_not_allowed_say_so(serve: Any) -> None:
    def around(inner: Application) -> Application:
        def application(environ: dict[str, Any], start: Any) -> Any:
            if "list-type" not in environ.get("QUERY_STRING", "") or "prefix=team" not in environ["QUERY_STRING"]:
                return inner(environ, start)
            start("403 Forbidden", [("Content-Type", "application/xml")])
            return [b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"]

        return application

    with pytest.raises(StorageError, match="does not let you use the bucket memory"):
        list(serve(around)[0].changes(""))


@pytest.mark.parametrize("objects", ["", "<Contents><Key>team/default/shared/a.md</Key></Contents>"])
def test_a_listing_that_says_nothing_without_end_is_cut(
    serve: Any, objects: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages that are empty, or whose objects are not described."""
    monkeypatch.setattr(s3, "_MOST_PAGES", 20)
    asked = []

    def around(inner: Application) -> Application:
        def application(environ: dict[str, Any], start: Any) -> Any:
            if "prefix=team" not in environ["QUERY_STRING"]:
                return inner(environ, start)
            asked.append(1)
            more = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{len(asked)}</NextContinuationToken>"
            start("200 OK", [("Content-Type", "application/xml")])
            return [f"<ListBucketResult>{more}{objects}</ListBucketResult>".encode()]

        return application

    remote, _ = serve(around)
    for ask in (lambda: list(remote.changes("")), lambda: remote.watch("", 0)):
        with pytest.raises(Unreachable, match="without end"):
            ask()
    assert len(asked) == 40


def test_a_store_that_broke_off_while_it_was_tried_is_not_called_careless(serve: Any) -> None:
    lose = [".tried-"]

    remote, client = serve(losing(lose))
    with pytest.raises(Unreachable, match="broke off"):
        put(remote, "a.md")
    assert keys(client) == {}
    put(remote, "a.md")


@pytest.mark.parametrize(
    ("keys", "where", "why"),
    [
        ({}, "endpoint=http://127.0.0.1:1", "there are no keys"),
        ({"AWS_ACCESS_KEY_ID": "key"}, "endpoint=http://127.0.0.1:1", "of its two keys one is missing"),
        (KEYS, "endpoint=http://127.0.0.1:1", "nobody answers at its endpoint"),
        (KEYS, "endpoint=nonsense", "its endpoint is no address"),
        (KEYS, "profile=nobody", "there is no such profile in ~/.aws"),
    ],
)
def test_why_a_store_is_not_reached_is_said_in_words(
    keys: dict[str, str], where: str, why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in keys.items():
        monkeypatch.setenv(name, value)
    s3._session.cache_clear()
    try:
        with pytest.raises(Unreachable) as told:
            list(opened(f"s3://memory/team?region=us-east-1&{where}").changes(""))
    finally:
        s3._session.cache_clear()
    assert str(told.value) == f"The bucket memory cannot be reached: {why}."
