"""An object store as a remote: Amazon's S3, and what speaks its language (MinIO, R2, Ceph, Tigris and others).

    BUCKET/PREFIX/BANK/SCOPE/notes/deploy.md      one object for each file, whose content is the file's

The store compares and swaps: `If-Match` and `If-None-Match` make a write fail that was not made from the present
object, and the version is the object's ETag. A store that ignores them would lose memories; it is tried before the
first write, and refused. An object without content says that the file was deleted, because a listing tells sizes and
nothing else; a file that is empty, or begins with a zero byte, therefore has one zero byte before its content.

A store keeps no list of changes, so `changes` lists all there is. A bucket that keeps versions keeps older contents,
also of what was forgotten; `keeps_history` tells.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any
from urllib.parse import quote, unquote

from memlane.core.errors import InvalidInput, MemlaneError, StorageError
from memlane.core.waiting import AT_ONCE, side_by_side
from memlane.exchange.remotes import (
    Conflict,
    Entry,
    Looks,
    New,
    Seen,
    TooLarge,
    Unreachable,
    checked,
    conflict,
    emptied,
    not_installed,
)

try:
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.session import Session
except ImportError as error:
    raise not_installed("an object store", "s3", "botocore") from error

CONNECTING = 10  # seconds
PATIENCE = 60  # seconds without a byte
_LOOK = 5.0  # seconds between two listings while somebody waits: they cost money
_PAGE = 1000
_MOST_PAGES = 20_000
_ESCAPE = b"\0"
_PARAMETERS = ("endpoint", "region", "profile")
_GONE = ("NoSuchKey", "404", "NotFound")
_TAKEN = ("PreconditionFailed", "ConditionalRequestConflict", "412", "409")
_WHY = {  # by the name of the error
    "NoCredentialsError": "there are no keys",
    "PartialCredentialsError": "of its two keys one is missing",
    "ProfileNotFound": "there is no such profile in ~/.aws",
    "EndpointConnectionError": "nobody answers at its endpoint",
    "ConnectTimeoutError": "its endpoint does not answer in time",
    "ReadTimeoutError": "its endpoint does not answer in time",
    "ConnectionClosedError": "its endpoint broke off",
    "SSLError": "its endpoint has no certificate that counts here",
    "NoRegionError": "the address names no region",
    "ValueError": "its endpoint is no address",
}


class S3Remote:
    """See `remotes.Remote`."""

    def __init__(self, bucket: str, prefix: str, settings: dict[str, str], bank: str) -> None:
        unknown = sorted(settings.keys() - set(_PARAMETERS))
        if not bucket or unknown:
            raise InvalidInput(
                f"An address of an object store does not know {', '.join(unknown)}." if unknown else "No bucket.",
                hint="Write s3://BUCKET/PREFIX?endpoint=https://HOST&region=NAME&profile=NAME; all three are optional.",
            )
        self._bucket, self._settings = bucket, settings
        self._top = "".join(f"{part}/" for part in (prefix, quote(bank, safe=" ")) if part)
        self._client: Any = None
        self._tried = False
        self._looks = Looks(_LOOK)

    # -- reading

    def changes(self, cursor: str) -> Iterator[tuple[list[Entry], str]]:
        seen = Seen()
        for objects in self._pages():
            page: list[Entry] = []
            for one in objects:
                if entry := self._entry(one["Key"], one["ETag"], one["Size"]):
                    seen.add(one["Key"], one["ETag"])
                    page.append(entry)
            if page:
                yield page, ""
        if cursor and not seen.cursor():
            raise emptied(f"The bucket {self._bucket}")
        yield [], seen.cursor()

    def get(self, path: str, scope: str, most: int) -> tuple[Entry, bytes] | None:
        with self._reached():
            found = self._present(self._key(path, scope), most + 1)
        if found is None:
            return None
        answer, content = found
        if content is None or len(content) > most + (content[:1] == _ESCAPE):
            raise TooLarge(f"{path} has {answer['ContentLength']} bytes at the remote.", hint="Make it smaller there.")
        data = content.removeprefix(_ESCAPE)
        said = answer.get("Metadata", {})
        author, lineage = unquote(said.get("author", "")), said.get("lineage", "")
        return Entry(path, scope, answer["ETag"], len(data), not content, author, lineage), data

    def get_many(self, listed: Sequence[Entry]) -> list[tuple[Entry, bytes]]:
        def one(entry: Entry) -> tuple[Entry, bytes] | None:
            with suppress(TooLarge):
                return self.get(entry.path, entry.scope, entry.size)
            return None

        with self._reached():
            self._s3  # noqa: B018  it is made once, before several threads use it
        return [found for found in side_by_side(one, listed) if found]

    def _present(self, key: str, most: int) -> tuple[dict[str, Any], bytes | None] | None:
        """What the store says of an object, and its content; None instead of what is larger."""
        try:
            answer = self._s3.get_object(Bucket=self._bucket, Key=key)
        except ClientError as error:
            if _code(error) in _GONE:
                return None
            raise
        with answer["Body"] as body:
            if answer["ContentLength"] > most:
                return answer, None
            content = body.read(most + 1)  # an endpoint that is not what it claims to be may send more than it said
            return answer, content if len(content) <= most else None

    def watch(self, cursor: str, seconds: float) -> bool:
        return self._looks.until(lambda: self._cursor() != cursor, seconds)

    def _cursor(self) -> str:
        seen = Seen()
        for objects in self._pages():
            for one in objects:
                if self._entry(one["Key"], one["ETag"], one["Size"]):
                    seen.add(one["Key"], one["ETag"])
        return seen.cursor()

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def keeps_history(self) -> bool:
        with self._reached(), suppress(ClientError):  # not everybody may ask, and not every store knows
            return str(self._s3.get_bucket_versioning(Bucket=self._bucket).get("Status", "")) == "Enabled"
        return False

    # -- writing

    def put(self, path: str, data: bytes, expected: str | None, *, scope: str, author: str, lineage: str = "") -> str:
        escaped = _ESCAPE + data if not data or data[:1] == _ESCAPE else data
        return self._change(self._key(path, scope), escaped, expected, author, lineage)

    def put_many(self, new: Sequence[New], *, author: str) -> Iterator[tuple[New, str]]:
        def one(file: New) -> tuple[New, str] | None:
            with suppress(Conflict):
                return file, self.put(file.path, file.data, None, scope=file.scope, author=author, lineage=file.lineage)
            return None

        with self._reached(writing=True):
            self._try()
        yield from filter(None, side_by_side(one, new))

    def delete(self, path: str, expected: str, *, scope: str, author: str, lineage: str = "") -> str:
        return self._change(self._key(path, scope), b"", expected, author, lineage)

    def _change(self, key: str, content: bytes, expected: str | None, author: str, lineage: str) -> str:
        with self._reached(writing=True):
            self._try()
            try:
                said = {"author": quote(author[:60])[:600], "lineage": lineage[:1200]}  # 2,000 bytes in all
                return self._stored(key, content, expected, said)
            except ClientError as error:
                if _code(error) not in _TAKEN and (expected is None or _code(error) not in _GONE):
                    raise
                found = self._present(key, len(content)) if _retried(error) else None
        if found is None or found[1] != content:
            raise conflict(key.removeprefix(self._top).partition("/")[2])
        return str(found[0]["ETag"])  # the answer to our first attempt was lost

    def _stored(self, key: str, content: bytes, expected: str | None, said: dict[str, str] | None = None) -> str:
        condition = {"IfNoneMatch": "*"} if expected is None else {"IfMatch": expected}
        answer = self._s3.put_object(Bucket=self._bucket, Key=key, Body=content, Metadata=said or {}, **condition)
        return str(answer["ETag"])

    def _try(self) -> None:
        if not self._tried:
            self._refuse_careless()
            self._tried = True

    def _refuse_careless(self) -> None:
        """Raise StorageError for a store that takes what a condition forbids, or refuses what it allows."""
        key = f"{self._top}.tried-{os.urandom(8).hex()}"
        try:
            version = self._stored(key, b"memlane tries whether this store compares before it writes", None)
            for expected in (None, '"00000000000000000000000000000000"'):
                try:
                    self._stored(key, b"overwritten", expected)
                except ClientError as error:
                    if _code(error) in _TAKEN:
                        continue
                    if _code(error) not in ("NotImplemented", "501", "InvalidArgument", "400"):
                        raise
                raise _careless(self._bucket)
            self._stored(key, b"the right version", version)
        except ClientError as error:
            if _code(error) in _TAKEN and _retried(error):  # it met our own first attempt, whose answer was lost
                raise Unreachable(f"The bucket {self._bucket} broke off.", hint="Try again.") from error
            if _code(error) in (*_TAKEN, "NotImplemented", "501"):
                raise _careless(self._bucket) from error
            raise
        finally:
            with suppress(ClientError, BotoCoreError):
                self._s3.delete_object(Bucket=self._bucket, Key=key)

    # -- objects

    def _key(self, path: str, scope: str) -> str:
        key = f"{self._top}{quote(checked('scope', scope), safe=' ')}/{checked('path', path)}"
        if len(key.encode()) > 1024:
            raise InvalidInput("The path is too long for an object store.", hint="Take a shorter prefix or path.")
        return key

    def _entry(self, key: str, version: str, size: int) -> Entry | None:
        """What a listing tells; None for what is no file of a bank. Who put it, only `get` knows."""
        scope, slash, path = key.removeprefix(self._top).partition("/")
        try:
            checked("scope", unquote(scope)), checked("path", path)
        except InvalidInput:
            return None
        return Entry(path, unquote(scope), version, size, size == 0, "") if slash else None

    def _pages(self) -> Iterator[list[dict[str, Any]]]:
        after: dict[str, str] = {}
        for _ in range(_MOST_PAGES):
            with self._reached():
                page = self._s3.list_objects_v2(Bucket=self._bucket, Prefix=self._top, MaxKeys=_PAGE, **after)
            yield [one for one in page.get("Contents", []) if {"Key", "ETag", "Size"} <= one.keys()]
            token = page.get("NextContinuationToken")
            if not page.get("IsTruncated") or not token or after.get("ContinuationToken") == token:
                return
            after = {"ContinuationToken": token}
        raise Unreachable(f"The bucket {self._bucket} lists objects without end.", hint="Look at what answers there.")

    # -- the connection

    @property
    def _s3(self) -> Any:
        if self._client is None:
            endpoint = self._settings.get("endpoint")
            config = Config(
                connect_timeout=CONNECTING,
                read_timeout=PATIENCE,
                max_pool_connections=AT_ONCE,
                retries={"mode": "standard", "total_max_attempts": 3},
                # other stores have no host name for each bucket, and do not know Amazon's newer checksums
                s3={"addressing_style": "path" if endpoint else "auto"},
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            )
            session = _session(self._settings.get("profile"))
            region = self._settings.get("region") or (None if session.get_config_variable("region") else "us-east-1")
            self._client = session.create_client("s3", region_name=region, endpoint_url=endpoint, config=config)
        return self._client

    @contextmanager
    def _reached(self, writing: bool = False) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            raise self._told(error) from error
        except (BotoCoreError, ValueError, OSError) as error:
            if isinstance(error, MemlaneError):
                raise
            unknown = " The write may have arrived: read it again to find out." if writing else ""
            raise Unreachable(
                f"The bucket {self._bucket} cannot be reached: {_why(error)}.{unknown}",
                hint="Check the endpoint, the network, and the keys in ~/.aws/credentials or AWS_ACCESS_KEY_ID.",
            ) from error

    def _told(self, error: Any) -> MemlaneError:
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if status in (401, 403):
            return StorageError(
                f"The object store does not let you use the bucket {self._bucket} ({_code(error)}).",
                hint="Check the keys, and that they may list, read and write the bucket.",
                code="no_permission",
            )
        if _code(error) == "NoSuchBucket":
            return Unreachable(f"There is no bucket {self._bucket}.", hint="Make it, or check its name and endpoint.")
        return Unreachable(
            f"The bucket {self._bucket} cannot be used: {_code(error)}.",
            hint="Try again later; if it stays, ask who looks after the store.",
        )


@cache
def _session(profile: str | None) -> Any:
    """It reads descriptions of every service of Amazon's, which takes longer than many a sync."""
    return Session(profile=profile)


def _why(error: Exception) -> str:
    """What is wrong, in words of ours: those of the library may hold an address with a query, or a line of a file."""
    name = type(error).__name__
    return _WHY.get(name, name)


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _retried(error: Any) -> bool:
    return bool(error.response.get("ResponseMetadata", {}).get("RetryAttempts", 0))


def _careless(bucket: str) -> StorageError:
    return StorageError(
        f"The store of the bucket {bucket} does not compare before it writes (If-Match): members would overwrite "
        "each other's memories.",
        hint="Take a store that does, as Amazon S3, MinIO and R2 do; or share through PostgreSQL or a folder.",
        code="no_compare_and_swap",
    )
