"""git: where a folder's repository is, what a commit holds, which commits changed what. The one place that calls it.

A repository may be somebody else's, so git is asked safely, and what it says is not believed.

- **No program but git runs.** git gets an environment of our own: no prompts, pager, hooks, signatures, fetching, and
  nothing of a surrounding git command's. No command that we use reads the work tree through filters or makes a patch.
- **Paths** that git hands over pass `names.path_problem`, and lie below what was asked for. Others are set aside.
- **Sizes and times** have limits: a few kilobytes of tree objects can name billions of files.
- **Facts of a commit** come from its object, whose length is known: no name or subject can pass for a separator.

Only `set_configs` writes, and only into .git/config.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import IO, NamedTuple, cast

from memlane.core.dates import moment
from memlane.core.errors import InvalidInput, MemlaneError, NotFound, StorageError
from memlane.core.invisible import visible
from memlane.core.patterns import lazily
from memlane.core.values import dataclass
from memlane.disk import files, names
from memlane.gate import shown

_SETTINGS = (
    "core.fsmonitor=",  # empty: older ones take "false" for a program's name
    "core.hooksPath=/dev/null", "core.attributesFile=/dev/null", "core.askPass=", "core.sshCommand=false",
    "core.pager=cat", "core.quotePath=off", "credential.helper=", "gpg.program=false", "log.showSignature=false",
    "log.showRoot=true", "diff.orderFile=/dev/null", "diff.relative=false", "grep.fullName=false",
    "submodule.recurse=false", "color.ui=false", "protocol.allow=never",
    "safe.bareRepository=explicit",  # a folder that was cloned may look like one; see _refuse_bare, too
)  # fmt: skip
_SAFE = ("--no-pager", *(word for setting in _SETTINGS for word in ("-c", setting)))
LITERAL = "--literal-pathspecs"
_INHERITED = ("HOME", "XDG_CONFIG_HOME", "TMPDIR", "PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
_ENVIRONMENT = {
    "LC_ALL": "C.UTF-8", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_ASKPASS": "", "SSH_ASKPASS": "",
    "GIT_PAGER": "cat", "GIT_EDITOR": ":", "GIT_SEQUENCE_EDITOR": ":", "GIT_SSH_COMMAND": "false",
    "GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_ATTR_NOSYSTEM": "1",
}  # fmt: skip
_SHA = lazily(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_HEX = lazily(r"[0-9a-fA-F]{4,64}")
_ENCODING = lazily(
    r"latin-?1|iso-?8859-\d{1,2}|(?:windows-|cp)125\d|koi8-[ru]|shift_jis|euc-(?:jp|kr)|gbk|big5", re.IGNORECASE
)
PLAIN = frozenset({"100644", "100755"})
SECONDS = 120.0  # that one call of git may take
MAX_MEMORY = 2 * 1024**3  # of git; what it maps of its packs is not counted
MAX_OUTPUT = 256 * 1024 * 1024
MAX_LISTING = 32 * 1024 * 1024  # some 200,000 files
MAX_BLOB = 64 * 1024 * 1024
_BATCH, _BATCH_BYTES = 500, 64 * 1024 * 1024  # so much is in memory at once


class Commit(NamedTuple):
    """One commit: full name, when it was made, who wrote it and when, its message's first line, its parents."""

    id: str
    date: datetime | None
    author: str
    authored: datetime | None
    subject: str
    parents: tuple[str, ...]


class Entry(NamedTuple):
    """A line of git's raw difference: its commit, modes and blobs (those before, then the one after), paths."""

    commit: str
    modes: tuple[str, ...]
    blobs: tuple[str, ...]
    status: str
    path: str
    old_path: str  # the same where it was not renamed


@dataclass(frozen=True, slots=True)
class Touched:
    """A file that a commit differs in from all its parents: the blobs before (one a parent) and after; "" is none."""

    path: str
    before: tuple[str, ...]
    after: str


# -- calling it


def run(
    folder: str | Path,
    *args: str,
    input: bytes = b"",
    ok: Sequence[int] = (0,),
    most: int = MAX_OUTPUT,
    seconds: float | None = None,
) -> bytes:
    """What git prints. Raises MemlaneError when it is not there or says no; its words may be in the hint."""
    folder = os.path.realpath(folder)
    _refuse_bare(folder)
    # The user's and the system's configuration are read: they say which repositories are safe to look into.
    inherited = {"PATH": os.defpath, **os.environ}
    environment = {name: found for name in _INHERITED if (found := _absolute_only(inherited.get(name, "")))}
    environment |= _ENVIRONMENT
    git = _program(environment.get("PATH", ""))
    if git is None:
        raise MemlaneError("git is not installed.", hint="Install git, or leave this option out.", code="git")
    process = subprocess.Popen(  # noqa: S603 - the user's git, without a shell
        [git, *_SAFE, *args], cwd=folder, env=environment,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out, words, late = _conversation(process, input, most, seconds or SECONDS)
    if late or len(out) > most:
        raise _endless(
            f"git took longer than {seconds or SECONDS:g} seconds." if late else f"git lists more than {most:,} bytes."
        )
    if process.returncode not in ok:
        raise _refused(words.decode(errors="replace").strip().splitlines())
    return out


def _conversation(
    process: subprocess.Popen[bytes], input: bytes, most: int, seconds: float
) -> tuple[bytes, bytes, bool]:
    """What a process prints, up to one byte more than `most`; what it says on stderr; whether it took too long."""
    words: list[bytes] = []
    late = threading.Event()

    def feed(pipe: IO[bytes]) -> None:
        with suppress(BrokenPipeError), pipe:
            pipe.write(input)

    def listen(pipe: IO[bytes]) -> None:
        words.append(pipe.read(65536))
        while pipe.read(65536):
            pass

    def stop() -> None:
        late.set()
        process.kill()

    stdin, stdout, stderr = (cast("IO[bytes]", pipe) for pipe in (process.stdin, process.stdout, process.stderr))
    threads = [
        threading.Thread(target=feed, args=(stdin,), daemon=True),
        threading.Thread(target=listen, args=(stderr,), daemon=True),
    ]
    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    if hasattr(resource, "prlimit"):  # Linux; elsewhere time alone is limited
        with suppress(OSError, ValueError):
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))
    try:
        for thread in (*threads, timer):
            thread.start()
        out = stdout.read(most + 1)
        if len(out) > most:
            process.kill()
        process.wait()
    except BaseException:
        process.kill()
        raise
    finally:
        timer.cancel()
        process.wait()
        for thread in threads:
            thread.join()
        stdout.close()
        stderr.close()
    return out, b"".join(words), late.is_set()


def _absolute_only(given: str) -> str:
    """A folder, or a list of them, without what is relative to the working directory: here, somebody's repository."""
    return os.pathsep.join(folder for folder in given.split(os.pathsep) if os.path.isabs(folder))


@lru_cache(maxsize=4)
def _program(path: str) -> str | None:
    return shutil.which("git", path=path)


def _refuse_bare(folder: str) -> None:
    """Raise MemlaneError when git would take a folder of the work tree for a bare repository, with its configuration.

    Such a folder can be cloned. Versions of git before 2.38 have no setting against it.
    """
    while True:
        head, objects, common, own = (
            os.path.lexists(os.path.join(folder, name)) for name in ("HEAD", "objects", "commondir", ".git")
        )
        if head and (objects or common) and os.path.basename(folder) != ".git":
            raise MemlaneError(
                f"{visible(folder)} looks like a git repository without a work tree; git is not asked there.",
                hint="If HEAD, objects and refs in it are not yours, somebody may mean harm: delete them.",
                code="git",
            )
        if own or folder == os.path.dirname(folder):
            return
        folder = os.path.dirname(folder)


def _refused(lines: Sequence[str]) -> MemlaneError:
    """The error for what git printed."""
    if any("dubious ownership" in line for line in lines):
        trust = next((visible(line.strip()) for line in lines if "safe.directory" in line), "See `git help config`.")
        return MemlaneError("git does not trust this repository: it is another user's.", hint=trust, code="git")
    if any("out of memory" in line.lower() for line in lines):
        return _endless(f"git needs more than {MAX_MEMORY:,} bytes of memory.")
    if any("lazy fetching disabled" in line for line in lines):
        return _missing()
    hint = visible(lines[0])[:500] if lines else "Run `git status` there."
    return MemlaneError("git could not do that.", hint=hint, code="git")


def _endless(why: str) -> MemlaneError:
    return MemlaneError(why, hint="Look at it with git itself: a commit may be made to be too large.", code="git")


def _missing() -> MemlaneError:
    hint = "In a partial clone, `git fetch --refetch --no-filter` brings it; else run `git fsck`."
    return MemlaneError("git does not have all files of that commit, or one is too large.", hint=hint, code="git")


def top(folder: str | Path) -> Path | None:
    """The top folder of the work tree that a folder is in; None when it is in none."""
    folder = Path(folder).absolute()
    folder = next(there for there in (folder, *folder.parents) if there.is_dir())
    try:
        found = os.fsdecode(run(folder, "rev-parse", "--show-toplevel")).removesuffix("\n")
    except MemlaneError as error:
        if any(words in error.hint for words in ("not a git repository", "work tree", "bare repository")):
            return None
        raise
    if found and relative(Path(found), folder) is None:  # core.worktree may name any folder
        hint = "Take core.worktree out of its .git/config."
        raise MemlaneError("The repository's work tree is another folder than it lies in.", hint=hint, code="git")
    return Path(found) if found else None


def required_top(folder: str | Path) -> Path:
    """As `top`. Raises MemlaneError outside of a repository."""
    found = top(folder)
    if found is None:
        raise MemlaneError(
            "The bank is not in a git repository.", hint="Run `git init` and commit the bank first.", code="not_git"
        )
    return found


def first_commit(folder: Path, seconds: float = 1.0) -> str:
    """A commit that every clone of a repository has: its first; "" where there is none, or it takes too long."""
    found = run(folder, "rev-list", "--max-parents=0", "HEAD", ok=(0, 128), seconds=seconds)
    return min(found.decode(errors="replace").split(), default="")


def relative(top: Path, path: str | Path) -> str | None:
    """A path as git names it, "" for the top itself; None when it lies outside."""
    found = os.path.relpath(os.path.realpath(path), os.path.realpath(top)).replace(os.sep, "/")
    return None if found == ".." or found.startswith("../") else "" if found == "." else found


def config(folder: Path, key: str) -> str | None:
    """A setting of the repository's own configuration."""
    found = run(folder, "config", "--local", "--null", "--get", key, ok=(0, 1)).decode().partition("\0")[0]
    return found or None


def configs(folder: Path, begin: str) -> dict[str, str]:
    """All settings of the repository's own configuration whose keys begin so. One process tells them all."""
    asked = ("config", "--local", "--null", "--get-regexp", "^" + begin.replace(".", "[.]"))
    found = run(folder, *asked, ok=(0, 1)).decode(errors="replace")
    return {key: value for key, _, value in (line.partition("\n") for line in found.split("\0")) if key}


def set_configs(folder: Path, values: Mapping[str, str]) -> None:
    """Write settings into .git/config, which all work trees of a clone share.

    Raises MemlaneError for a link, and for the configuration of a repository that does not know this folder.
    """
    if not values:
        return
    own, common = (os.path.join(os.path.realpath(folder), place) for place in _places(folder))
    if not _knows(folder, own, common):
        hint = "If it is yours, let .git lie in this folder; else delete .git."
        raise MemlaneError(".git leads to another repository, which is left alone.", hint=hint, code="git")
    file = os.path.join(common, "config")
    for key, value in values.items():
        if os.path.islink(file):
            raise MemlaneError(f"{visible(file)} is a link.", hint="Replace it by the file it points to.", code="git")
        run(folder, "config", "--local", "--replace-all", key, value)


def _places(folder: Path) -> tuple[str, str]:
    """What git keeps of this work tree alone, and what it shares with others."""
    own, common = (os.fsdecode(run(folder, "rev-parse", f"--git-{name}dir"))[:-1] for name in ("", "common-"))
    return own, common


def _knows(folder: Path, own: str, common: str) -> bool:
    """Whether a repository is that of a folder: it lies in it, or has it as a work tree or as a submodule.

    An unpacked archive may bring a .git that leads to any repository of the user's.
    """
    git = os.path.join(os.path.realpath(folder), ".git")
    real_own, real_common = os.path.realpath(own), os.path.realpath(common)
    if real_common == git:
        return True
    if real_own == real_common:
        named = config(folder, "core.worktree")
        return named is not None and os.path.realpath(os.path.join(real_own, named)) == os.path.dirname(git)
    try:
        named = os.fsdecode(files.beginning(os.path.join(real_own, "gitdir"), 8192)).strip()
    except (OSError, StorageError):
        return False
    inside = os.path.dirname(real_own) == os.path.join(real_common, "worktrees")
    return inside and os.path.realpath(os.path.join(real_own, named)) == git


def ignored(folder: Path, path: str | Path) -> bool:
    """Whether git's ignore rules keep a path out of the repository."""
    return bool(run(folder, "check-ignore", "--no-index", "--", os.fspath(path), ok=(0, 1)).strip())


def tracked(top: Path, path: str | Path) -> list[str]:
    """The files that git tracks at a path or below it, as git names them."""
    found = run(top, LITERAL, "ls-files", "-z", "--", relative(top, path) or ".", most=MAX_LISTING)
    return [os.fsdecode(name) for name in found.split(b"\0") if name]


# -- which commit


def commit_at(top: Path, when: str | datetime) -> str:
    """The commit of a name (hash, tag, branch, `main~3`), or the last one at or before a date on the current branch.

    The branch is followed by first parents: what was merged counts from its merge on. A bare day means its end, UTC.
    Raises InvalidInput for what is neither or both, NotFound when no commit is that old.
    """
    if isinstance(when, str):
        when = when.strip()
        named, date = _named(top, when), moment(when)
        if named and date and _HEX.fullmatch(when):
            why = f"{shown(when)} is a date and the beginning of a commit's name."
            raise InvalidInput(why, hint="Write the date with dashes, or more of the name.")
        if named and not date:
            return named
        if date and len(when) <= 10:
            date = date.replace(hour=23, minute=59, second=59)
    else:
        date = moment(when)
    if date is None:
        hint = "Write 2025-01-15, 2025-01-15T10:30:00Z, or a commit."
        raise InvalidInput("There is no such date or commit.", hint=hint)
    if _named(top, "HEAD") is None:
        raise NotFound("The repository has no commits yet.", hint="Commit the bank first.")
    seconds = int(date.timestamp())  # git knows none before 1970
    found = ""
    if seconds >= 0:
        limit = f"--before=@{seconds} +0000"
        found = run(top, "rev-list", "--first-parent", "-1", limit, "HEAD", "--").decode().strip()
    if not found:
        hint = "`memlane history` shows how far it goes back."
        if run(top, "rev-parse", "--is-shallow-repository").strip() == b"true":
            hint = "This clone is shallow: `git fetch --unshallow` brings the rest."
        raise NotFound("No commit on this branch is that old.", hint=hint)
    return found


def _named(top: Path, name: str) -> str | None:
    """The commit that a name stands for; None for no name. Raises InvalidInput for the beginning of several."""
    if not name or name.startswith("-") or re.search(r"[\x00-\x1f]", name):
        return None
    try:
        found = run(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", ok=(0, 1, 128))
    except MemlaneError:
        return None
    text = found.decode().strip()
    if _SHA.fullmatch(text):
        return text
    if _HEX.fullmatch(name):
        several = run(top, "rev-parse", f"--disambiguate={name}", ok=(0, 1, 128)).split()
        if len(several) > 1:
            raise InvalidInput("Several commits begin like that.", hint="Give more of the commit's name.")
    return None


# -- what is in it


def _below(paths: Sequence[str]) -> Sequence[str]:
    """The paths as arguments; none at all mean everything."""
    return () if "" in paths else paths


def usable(path: str, paths: Sequence[str] = ("",)) -> bool:
    """Whether a path that git has handed over may be used: a plain name below one of these; "" means all."""
    return not names.path_problem(path) and any(not p or path == p or path.startswith(f"{p}/") for p in paths)


def blobs_at(top: Path, commit: str, paths: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """(path, blob) of every plain file below these paths in a commit, "" means all; and the paths that are not usable.

    Links and submodules are left out. Raises MemlaneError for more than MAX_LISTING.
    """
    listing = run(top, "ls-tree", "-r", "-z", "--full-tree", commit, "--", *_below(paths), most=MAX_LISTING)
    found, refused = [], []
    for entry in filter(None, listing.split(b"\0")):
        facts, _, name = entry.partition(b"\t")
        mode, kind, blob = facts.decode().split(" ")
        path = os.fsdecode(name)
        if not usable(path, paths):
            refused.append(path)
        elif kind == "blob" and mode in PLAIN:
            found.append((path, blob))
    return found, refused


def sizes(top: Path, ids: Sequence[str], kind: str = "blob") -> list[int | None]:
    """The sizes of objects; None for one that git does not have, or that is of another kind."""
    if not ids:
        return []
    out = run(top, "cat-file", "--batch-check", input="".join(f"{id}\n" for id in ids).encode())
    rows = [line.split(b" ") for line in out.split(b"\n")[: len(ids)]]
    return [int(row[2]) if len(row) == 3 and row[1] == kind.encode() else None for row in rows]


def read_blobs(top: Path, blobs: Sequence[str]) -> Iterator[bytes]:
    """The contents of blobs, in their order. Raises MemlaneError for one that is missing or larger than MAX_BLOB."""
    for data in known_blobs(top, blobs):
        if data is None:
            hint = "In a partial clone, `git fetch --refetch --no-filter` brings it; else run `git fsck`."
            raise MemlaneError(
                "git does not have all files of that commit, or one is too large.", hint=hint, code="git"
            )
        yield data


def known_blobs(top: Path, blobs: Sequence[str], kind: str = "blob") -> Iterator[bytes | None]:
    """As `read_blobs`, None for what git does not have and for what is too large."""
    for at in range(0, len(blobs), _BATCH):
        batch: list[str] = []
        room = _BATCH_BYTES
        page = blobs[at : at + _BATCH]
        for blob, size in zip(page, sizes(top, page, kind), strict=True):
            if size is None or size > MAX_BLOB or size > room:
                yield from _contents(top, batch)
                batch, room = [], _BATCH_BYTES
            if size is None or size > MAX_BLOB:
                yield None
            else:
                batch.append(blob)
                room -= size
        yield from _contents(top, batch)


def _contents(top: Path, ids: Sequence[str]) -> Iterator[bytes]:
    """The contents of objects that git has."""
    if not ids:
        return
    data = run(top, "cat-file", "--batch", input="".join(f"{id}\n" for id in ids).encode())
    place = 0
    for _ in ids:
        end = data.index(b"\n", place)
        size = int(data[place:end].split(b" ")[2])
        yield data[end + 1 : end + 1 + size]
        place = end + size + 2


# -- who changed it


def commits(top: Path, paths: Sequence[str], *, skip: int = 0, limit: int = 100) -> list[Commit]:
    """The commits of the current branch and what was merged into it that touched these paths, the newest first."""
    if _named(top, "HEAD") is None:
        return []
    return facts(top, revisions(top, f"--skip={skip}", f"--max-count={limit}", "HEAD", "--", *_below(paths)))


def revisions(folder: str | Path, *args: str) -> list[str]:
    """The commits that `git rev-list` names."""
    return run(folder, LITERAL, "rev-list", *args).decode().split()


def facts(top: Path, ids: Sequence[str]) -> list[Commit]:
    """What these commits say of themselves. Raises MemlaneError for one that git does not have."""
    found = []
    for id, data in zip(ids, known_blobs(top, ids, "commit"), strict=True):
        if data is None:
            raise MemlaneError("git does not have all commits.", hint="Run `git fsck`.", code="git")
        found.append(_commit(id, data))
    return found


def _commit(id: str, data: bytes) -> Commit:
    """A commit by the bytes of its object: lines of headers, an empty line, the message."""
    head, _, message = data.partition(b"\n\n")
    headers: dict[bytes, list[bytes]] = {}
    for line in head.split(b"\n"):  # one that begins with a space goes on with a signature or the like
        key, _, value = line.partition(b" ")
        headers.setdefault(key, []).append(value)
    encoding = headers.get(b"encoding", [b""])[0].decode(errors="replace")
    charset = encoding if _ENCODING.fullmatch(encoding) else "utf-8"
    (author, authored), (_, committed) = (_person(headers.get(key, [b""])[0]) for key in (b"author", b"committer"))
    subject = message.lstrip(b"\n").partition(b"\n\n")[0]
    parents = tuple(parent.decode(errors="replace") for parent in headers.get(b"parent", ()))
    return Commit(id, committed, _line(author, charset), authored, _line(subject, charset), parents)


def _person(line: bytes) -> tuple[bytes, datetime | None]:
    """The name and the time of `Ann <ann@example.org> 1735732800 +0100`."""
    name, _, rest = line.partition(b"<")
    try:
        return name, datetime.fromtimestamp(int(rest.rpartition(b">")[2].split()[0]), UTC)
    except (ValueError, IndexError, OverflowError, OSError):
        return name, None


def _line(data: bytes, charset: str) -> str:
    """A name or subject as one line that cannot steer a terminal."""
    text = data[:4000].decode(charset, errors="replace").replace("\0", "")
    return " ".join(visible(text).split())[:1000]


def entries(out: bytes) -> Iterator[Entry]:
    """What `--raw -z --no-abbrev` prints, with `--stdin` or `--format=%H` for the commits.

    Every path is taken as such because of its place: none can pass for a commit or for a line of facts.
    """
    pieces = iter(out.split(b"\0"))
    commit = ""
    for piece in pieces:
        piece = piece.lstrip(b"\n")
        if not piece.startswith(b":"):
            commit = piece.decode(errors="replace") or commit
            continue
        colons = len(piece) - len(piece.lstrip(b":"))
        facts = piece[colons:].decode().split(" ")
        status = facts[-1]
        old_path = path = os.fsdecode(next(pieces))
        if status[:1] in ("R", "C"):
            path = os.fsdecode(next(pieces))
        modes, blobs = tuple(facts[: colons + 1]), tuple(facts[colons + 1 : 2 * colons + 2])
        yield Entry(commit, modes, blobs, status, path, old_path)


def differences(folder: str | Path, ids: Sequence[str], *args: str) -> Iterator[Entry]:
    """What these commits changed, by `git diff-tree` with these arguments."""
    command = ("diff-tree", "--stdin", "-r", "-z", "--raw", "--no-abbrev", "--no-ext-diff", "--no-textconv")
    if ids:
        input = "".join(f"{id}\n" for id in ids).encode()
        yield from entries(run(folder, LITERAL, *command, *args, input=input, most=2 * MAX_LISTING))


def touched(
    top: Path, ids: Sequence[str], paths: Sequence[str]
) -> tuple[dict[str, list[Touched]], dict[str, list[str]]]:
    """What each commit changed below these paths, and the paths that are not usable.

    Of a merge: only files that are as in none of its parents.
    """
    found: dict[str, list[Touched]] = {id: [] for id in ids}
    refused: dict[str, list[str]] = {id: [] for id in ids}
    for entry in differences(top, ids, "-c", "--root", "--no-renames", "--", *_below(paths)):
        if not usable(entry.path, paths):
            refused[entry.commit].append(entry.path)
            continue
        pairs = zip(entry.modes, entry.blobs, strict=True)
        blobs = [blob if mode in PLAIN and blob.strip("0") else "" for mode, blob in pairs]
        found[entry.commit].append(Touched(entry.path, tuple(blobs[:-1]), blobs[-1]))
    return found, refused
