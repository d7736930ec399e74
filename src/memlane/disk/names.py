"""Which names a file may have, and whether a name or a link leads out of the bank."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Collection
from pathlib import Path

from memlane.core.errors import InvalidInput, StorageError
from memlane.core.patterns import lazily
from memlane.core.text import slug

TRASH = ".trash"  # the folder of what was deleted, in each lane
PRIVATE = "private"  # the folder of notes, and of lines about them, that git is told to leave out
CONVERSATIONS = "sessions"  # the folder in it for conversations that a program keeps
MAX_NAME_BYTES = 200  # of 255: room for the stamp that the trash adds
STRAY = "is a link out of the bank and not followed"
_FORBIDDEN = lazily(r'[\x00-\x1f\x7f-\x9f<>:"|?*\\]')
_CONTROL = lazily("[\x00-\x1f\x7f-\x9f]")
_INVISIBLE = lazily("[\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_PLAIN_KEY = lazily(r"[a-z0-9]+(?:[-_][a-z0-9]+)*(?:/[a-z0-9]+(?:[-_][a-z0-9]+)*)*")
_DEVICE = lazily(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)


def is_utf8(name: str) -> bool:
    """Whether a name can be written down: one of a file that is not UTF-8 has halves of characters for its bytes."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def safe_parts(name: str) -> tuple[str, ...]:
    """Split a relative file name into parts that are safe on every file system, in NFC.

    Raises InvalidInput for names that are absolute, hidden, reserved, too long or unprintable, or have `..`: a bank
    travels by git between Linux, macOS and Windows. The message leaves the name out: it may be a misplaced secret.
    """
    if not is_utf8(name):
        raise InvalidInput("The name is not valid Unicode.", hint="Use letters, digits and dashes.")
    if not name.strip():
        raise InvalidInput("The name is empty.", hint="Give a name such as auth-plan.md.")
    if _FORBIDDEN.search(name) or (not name.isascii() and _INVISIBLE.search(name)):
        raise InvalidInput(
            "The name has characters that file systems do not allow.",
            hint='Leave out control and invisible characters and < > : " | ? * \\.',
        )
    if name.startswith("/"):
        raise InvalidInput("The name is an absolute path.", hint="Give a name inside the bank.")
    parts = tuple(unicodedata.normalize("NFC", name).split("/"))
    for part in parts:
        if part in ("", ".", ".."):
            raise InvalidInput("The name would leave the bank.", hint="Give a name inside it, without '..'.")
        if part.startswith("."):
            raise InvalidInput("The name is hidden.", hint="Start it with a letter or a digit.")
        if part.endswith((" ", ".")) or part.startswith(" ") or is_reserved(part):
            raise InvalidInput("The name is reserved on some systems.", hint="Choose another name.")
        if len(part.encode()) > MAX_NAME_BYTES:
            raise InvalidInput(
                f"The name is too long ({len(part.encode())} bytes; {MAX_NAME_BYTES} are allowed).",
                hint="Choose a shorter name.",
            )
    return parts


def path_problem(path: str) -> str:
    """Why a path that git or an archive hands over is not used; "" when it is a plain relative one.

    Names are otherwise as they are: files that somebody has committed need not have names that we would give.
    """
    if _CONTROL.search(path):
        return "has control characters in its name"
    if path.startswith("/"):
        return "is an absolute path"
    parts = re.split(r"[/\\]", path)
    if ".." in parts or any(part in ("", ".") for part in path.split("/")):
        return "leads out of its folder"
    if any(map(is_git, parts)):
        return "is in a folder that some systems take for .git"
    return ""


def is_git(part: str) -> bool:
    """Whether some file system takes a name for .git: by case, invisible characters, short names, trailing dots."""
    plain = part if part.isascii() else unicodedata.normalize("NFKC", _INVISIBLE.sub("", part))
    plain = plain.casefold()
    return plain.partition(":")[0].rstrip(" .") in (".git", "git~1")


def inside(root: str | Path, *parts: str) -> str:
    """The path of `parts` under root. Raises InvalidInput when it leaves root, by `..` or by a link on the way."""
    path = os.fspath(root)
    for part in parts:
        path = os.path.join(path, part)
        if part in ("", ".", "..") or "/" in part or "\0" in part or is_stray(path, root):
            raise InvalidInput(
                "The name leads out of the bank.",
                hint="Give a name inside it; replace a link by the file it points to.",
            )
    return path


def is_stray(path: str, root: str | Path) -> bool:
    """Whether the path is a link that leads out of root."""
    if not os.path.islink(path):
        return False
    home = os.path.realpath(root)
    return os.path.commonpath((home, os.path.realpath(path))) != home


def refuse_link(path: str, root: str | Path) -> None:
    """Raise StorageError when the path is a link that leads out of root."""
    if is_stray(path, root):
        raise StorageError(f"{os.path.basename(path)} {STRAY}.", hint="Replace it by a file.")


def is_private(id: str) -> bool:
    """Whether a memory is a note that git is told to leave out; what was captured is left out as a whole lane."""
    return id.startswith(f"notes:{PRIVATE}/")


def private_twin(path: str) -> str:
    """The file beside which lines about private memories are kept: `anchors.jsonl` has `private/anchors.jsonl`."""
    folder, name = os.path.split(path)
    return os.path.join(folder, PRIVATE, name)


def is_reserved(name: str) -> bool:
    """Whether Windows reserves this name for a device."""
    return _DEVICE.fullmatch(name) is not None


def folded(name: str) -> str:
    """The form in which a case-insensitive, normalising file system (macOS, Windows) compares a name."""
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def namesake(path: str) -> str | None:
    """A name in the same folder that differs from this one only in case or Unicode form, if there is one."""
    folder, name = os.path.split(path)
    key = folded(name)
    try:
        return next((other for other in os.listdir(folder) if other != name and folded(other) == key), None)
    except FileNotFoundError:
        return None


def of_key(key: str, folders: Collection[str] = ()) -> str:
    """The file name, without its ending, for a name that may be any string; not in one of these folders.

    It is the name itself where that is plain and in lower case, else what can be kept of it, and a tail that tells it
    from others. Raises InvalidInput for an empty one.
    """
    if not isinstance(key, str) or not key:
        raise InvalidInput("There is no name.", hint="Give any text.")
    parts = key.split("/")
    plain = _PLAIN_KEY.fullmatch(key) and len(key) <= MAX_NAME_BYTES // 2 and not any(map(is_reserved, parts))
    if plain and (len(parts) == 1 or parts[0] not in folders):
        return key
    from memlane.core.digests import sha256

    digest = sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{slug(key)[:60].strip('-') or 'key'}-{digest}"
