"""Places that hold the files that several members share: a folder, a PostgreSQL database, an object store.

A remote holds the current content of each file and nothing older, so that a text is gone when its file has been
replaced. Every change is a compare-and-swap: it names the version that it was made from, and `Conflict` says that
somebody else was quicker. What a version looks like is the remote's own business. A deleted file stays as an entry
without content, so that members who were away learn of it.

Merging, and what of a bank travels at all, is decided by the caller. Whatever comes out of a remote was written by
somebody else: paths, sizes, authors and contents are claims to be checked before they are used.

    with closing(opened("/mnt/team/memory")) as remote:
        version = remote.put("notes/deploy.md", b"On Tuesdays.", None, scope=SHARED, author="ada")
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple, Protocol
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from memlane.core.errors import Conflict, InvalidInput, MemlaneError
from memlane.core.values import dataclass

__all__ = ["LONGEST", "SHARED", "Conflict", "Entry", "New", "Remote", "TooLarge", "Unreachable", "opened"]

SHARED = "shared"  # the scope of what everybody may read
LONGEST = 700  # bytes of a path: S3 takes 1,024 for a whole key, PostgreSQL 2,700 for one of an index
SECRET_PARAMETERS = ("password", "passfile", "sslpassword", "secret", "token", "access_key", "aws_secret_access_key")
WHERE_PASSWORDS_GO = {
    "postgresql": "Put the password into ~/.pgpass or PGPASSWORD, and name only the user in the address.",
    "s3": "Put the keys into ~/.aws/credentials, or into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """What a remote says of one file. Nothing of it has been checked."""

    path: str  # relative to the bank, with slashes
    scope: str
    version: str  # only ever compared
    size: int  # of the content, in bytes
    deleted: bool
    author: str  # who says to have put it; "" where unknown
    lineage: str = ""  # what whoever put it says of where it comes from; only `get` tells


class New(NamedTuple):
    """A file that is to be put where none was before."""

    path: str
    scope: str
    data: bytes
    lineage: str = ""


class Unreachable(MemlaneError):
    """The remote cannot be reached, or broke off. After a `put` or `delete` it may have happened: read to find out."""

    code = "unreachable"


class TooLarge(InvalidInput):
    """The content is larger than the caller wants to read."""

    code = "too_large"


class Remote(Protocol):
    """What each kind of remote can do. An object is for one thread at a time, but `watch` may run beside the others."""

    def changes(self, cursor: str) -> Iterator[tuple[list[Entry], str]]:
        """Pages of what has changed, each with the cursor to go on from; "" is the start. A page with the cursor ""
        says that these pages have everything that there is: the remote has no list of changes, or was brought back
        from a backup.
        """

    def get(self, path: str, scope: str, most: int) -> tuple[Entry, bytes] | None:
        """The file as it is now; without content when it is deleted. Raises TooLarge above `most` bytes."""

    def get_many(self, listed: Sequence[Entry]) -> list[tuple[Entry, bytes]]:
        """Files that `changes` has just listed, as they are now or were then, in any order: for the price of a few
        requests. What is not there, or is larger than it was listed, is left out, and `get` tells more of it. The
        caller sees to it that all of them together fit into memory.
        """

    def put(self, path: str, data: bytes, expected: str | None, *, scope: str, author: str, lineage: str = "") -> str:
        """Store the content, if the file still has the `expected` version, and return its new one. With None it must
        not have been there before: a deleted file counts, and has a version. Raises Conflict.

        `lineage` is kept beside the content: at most 2,000 plain characters, which mean nothing to the remote.
        """

    def put_many(self, new: Sequence[New], *, author: str) -> Iterator[tuple[New, str]]:
        """`put` with None for each of these, for the price of a few requests: those that are stored, each with its
        version. One that has been there before is left out. When it breaks off, it tells first what is stored.
        """

    def delete(self, path: str, expected: str, *, scope: str, author: str, lineage: str = "") -> str:
        """Remove the content, and leave an entry that says so, with a version of its own. Raises Conflict."""

    def watch(self, cursor: str, seconds: float) -> bool:
        """Wait until something may have changed since `cursor`, at most so long; with 0, look at once.

        Whoever calls it again and again does not make it look more often than is good for the remote.
        """

    def keeps_history(self) -> bool:
        """Whether it keeps what is replaced and deleted, and so what was forgotten."""

    def close(self) -> None: ...


def opened(url: str, *, bank: str = "default") -> Remote:
    """The remote at an address: a folder, file://…, postgresql://…, s3://BUCKET/PREFIX[?endpoint=…&region=…].

    `bank` is which of the banks there, unless the address itself says it: postgresql://…/DATABASE?bank=NAME. Nothing is
    connected before it is used. Raises InvalidInput for an address that is none or holds a password, and for a remote
    whose driver is not installed.
    """
    parts = _split(url)
    options = parse_qsl(parts.query, keep_blank_values=True)
    bank = checked("bank", dict(options).get("bank", bank))
    parts = parts._replace(query=urlencode([option for option in options if option[0] != "bank"], quote_via=quote))
    scheme = {"postgres": "postgresql", "": "file"}.get(parts.scheme, parts.scheme)
    if scheme in WHERE_PASSWORDS_GO:
        _refuse_secrets(parts, WHERE_PASSWORDS_GO[scheme])
    if scheme == "postgresql":
        from memlane.exchange.remotes.postgres import PostgresRemote

        return PostgresRemote(parts._replace(scheme="postgresql").geturl(), bank)
    if scheme == "s3":
        from memlane.exchange.remotes.s3 import S3Remote

        return S3Remote(parts.netloc, unquote(parts.path).strip("/"), dict(parse_qsl(parts.query)), bank)
    if scheme == "file":
        from memlane.exchange.remotes.folder import FolderRemote

        return FolderRemote(_folder(url, parts), bank)
    raise InvalidInput(
        f"{parts.scheme}:// is no kind of address that memlane can share through.",
        hint="Name a folder, postgresql://USER@HOST/DATABASE, or s3://BUCKET/PREFIX.",
    )


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  it is checked when it is asked for
    except ValueError:
        parts = None
    if not url.strip() or parts is None:  # the address is not repeated: what is wrong with it may be a password
        raise InvalidInput(
            "This is no address.", hint="Name a folder, postgresql://USER@HOST/DATABASE, or s3://BUCKET/PREFIX."
        )
    return parts if parts.scheme and "://" in url else SplitResult("", "", url, "", "")


def _folder(url: str, parts: SplitResult) -> str:
    if parts.scheme and (parts.netloc not in ("", "localhost") or not parts.path.startswith("/")):
        raise InvalidInput(
            "A file:// address names a folder of this machine: file:///mnt/team/memory.",
            hint="Mount the other machine's folder, and name the place where it is mounted.",
        )
    return unquote(parts.path) if parts.scheme else url


def _refuse_secrets(parts: SplitResult, hint: str) -> None:
    named = {name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    if parts.password is not None or named & set(SECRET_PARAMETERS) or (parts.scheme == "s3" and "@" in parts.netloc):
        raise InvalidInput("An address must not hold a password: it is stored, and shown.", hint=hint)


def checked(what: str, name: str) -> str:
    """A path, scope or bank as every kind of remote can keep it. Raises InvalidInput."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        size = LONGEST + 1
    names = name.split("/") if what == "path" else [name]
    odd = any(one in ("", ".", "..") for one in names) or not name.isprintable() or "\\" in name
    if size > LONGEST or odd or (what != "path" and "/" in name):
        raise InvalidInput(
            f"This {what} cannot be shared: it is empty, too long, or has characters that not every remote can keep.",
            hint="Give it a shorter name, of letters, digits, spaces and punctuation"
            + (", without slashes." if what != "path" else "."),
        )
    return name


class Seen:
    """The cursor of a remote that has no list of changes: it tells whether a listing is the same as before.

    "" is the cursor of nothing, so that a place which was seen with something and has nothing now is found out.
    """

    def __init__(self) -> None:
        self._digest, self._any = sha256(), False

    def add(self, name: str, version: str) -> None:
        self._digest.update(f"{name} {version}\n".encode(errors="surrogatepass"))
        self._any = True

    def cursor(self) -> str:
        return self._digest.hexdigest() if self._any else ""


class Looks:
    """Looks at a remote that does not tell of changes: not too often, and less often where one takes long."""

    def __init__(self, least: float) -> None:
        self._least = least  # seconds between two
        self._next = 0.0  # kept between calls, each of which may be shorter than that

    def until(self, changed: Callable[[], bool], seconds: float) -> bool:
        """Look until something has changed, at most so long; with 0, at once and once."""
        end = time.monotonic() + seconds
        while not seconds or self._next <= end:
            if seconds:
                time.sleep(max(0.0, self._next - time.monotonic()))
            begun = time.monotonic()
            if changed():
                return True
            now = time.monotonic()
            self._next = now + max(self._least, 10 * (now - begun))
            if not seconds:
                return False
        time.sleep(max(0.0, end - time.monotonic()))
        return False


def emptied(place: str) -> Unreachable:
    """The error for a place that had something of a bank. It is not taken for empty: a drive may not be mounted."""
    return Unreachable(
        f"{place} has nothing of this bank any more.",
        hint="If it is a drive or a mounted folder, connect it again. Where it is really empty now, remove this remote "
        "(`memlane sync remove`) and add it again: that sends all of this bank.",
    )


def exchanged(name: str, gone: int, there: int) -> Unreachable:
    """The error for a remote that has no trace of most of its files. It is not given all of them unasked: another drive
    may be mounted in its place.
    """
    return Unreachable(
        f"{name} has no trace of {gone:,} of its {there:,} files: it may be another bank's now.",
        hint="Look at its address. If it was brought back from an old backup, remove this remote (`memlane sync "
        "remove`) and add it again: that sends all of this bank.",
    )


def conflict(path: str, version: str | None = None) -> Conflict:
    """The error for a change that was made from another version than the present one."""
    return Conflict(f"Somebody else has changed {path} at the remote.", hint="Merge, and try again.", version=version)


def not_installed(kind: str, extra: str, package: str) -> InvalidInput:
    """The error for a remote whose driver is not here: which extra and which package bring it."""
    return InvalidInput(
        f"Sharing through {kind} needs {package}, which is not installed here.",
        hint=f"Install memlane with its extra memlane[{extra}], or the package alone: pip install '{package}'",
    )
