"""A hook is answered by a process that is there already, if one is: most of what a hook costs is to load the program.

    ~/.local/state/memlane/hooks/    socket    where the waiting process listens
                                     lock      held by it: there is one for all servers of a user

An MCP server over standard input and output starts a waiting process (`main`). When a first hook knocks, it knows that
there are hooks, and runs every one of them once in a bank of its own (`_rehearse`). From then on, `memlane hook` hands
over what makes one call differ from another: its arguments, standard input, current folder, umask and environment
(`answered`). The waiting process forks, and the copy is the hook, with the same deadline. Without a waiting process, or
when it does not take the hook, the hook answers by itself (`alone`).

Both sides look at each other before a word is said: same user, same rights, same view of the machine (`_rights`), so
that a program in a sandbox gets no hand outside of it, and hands nothing to one inside. Only Linux tells, so only there
is there a waiting process. An installation that differs, or was changed since, is not used.

The first half runs in every hook, and imports next to nothing.
"""

from __future__ import annotations

import os
import sys

import memlane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as plain_socket
    from collections.abc import Mapping, Sequence
    from socket import socket
    from typing import Any

FOLDER = "hooks"
_PATIENCE = 0.25  # seconds that the waiting process has to take a hook
_LONGEST = 62.0  # seconds; longer than any hook.deadline
_TAKEN, _BEGIN, _DONE = b"+", b"!", b"\0"
_RIGHTS = (b"Uid", b"Gid", b"Groups", b"Cap", b"NoNewPrivs", b"Seccomp")
_VIEWS = ("root", "ns/mnt", "ns/user", "ns/pid", "ns/net", "ns/ipc")
_OFF = ("false", "0", "no")


def state_folder() -> str:
    """memlane's folder in the user's state folder, without the configuration's help. Raises OSError without a home."""
    given = os.environ.get("XDG_STATE_HOME", "")
    given = given if os.path.isabs(given) else os.path.expanduser("~/.local/state")
    if not os.path.isabs(given):
        raise FileNotFoundError("There is no home folder.")
    return os.path.join(given, "memlane")


# -- the hook's side


def answered(arguments: Sequence[str]) -> bool:
    """Have the waiting process answer a hook, and print what it says. False when nothing was begun."""
    try:
        connection = _taken(arguments, _stdin())
        connection.send(_BEGIN)
    except (OSError, ValueError, AttributeError):  # also: no standard input, an argument with a NUL
        return False
    answer = b""
    try:
        connection.settimeout(_LONGEST)
        while not answer.endswith(_DONE) and (more := connection.recv(1 << 16)):
            answer += more
    except OSError:
        pass
    if answer.endswith(_DONE):
        text = answer[:-1].decode("ascii")
    else:  # whatever was begun is not begun again
        from memlane.surfaces.hook import gave_up

        text = gave_up(arguments)
    _print(text)
    return True


def alone(arguments: Sequence[str]) -> None:
    """Answer a hook in a process of its own: its whole answer on stdout, or when it was ended by force, an empty one.

    It is forked before it loads the program: what is loaded by then would be copied, page by page, as it is used.
    """
    reading, writing = os.pipe()
    try:
        child = os.fork()
    except OSError:  # there are too many processes
        from memlane.surfaces.hook import main

        main(arguments)
        return
    if child == 0:
        try:
            os.close(reading)
            from memlane.surfaces.hook import main

            with open(writing, "w", encoding="ascii") as out:
                main(arguments, out)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writing)
    with open(reading, encoding="ascii") as pipe:
        text = pipe.read()
    if os.waitpid(child, 0)[1]:
        from memlane.surfaces.hook import gave_up

        text = gave_up(arguments)
    _print(text)


def _print(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):  # the client has closed the pipe
        pass


def is_ready() -> bool:
    """Whether a hook that is called now would be answered by a waiting process."""
    try:
        with open(os.devnull, "rb") as nothing:
            _taken([], nothing.fileno()).close()
    except (OSError, AttributeError):
        return False
    return True


def _taken(arguments: Sequence[str], stdin: int) -> plain_socket:
    """A connection to the waiting process, which has taken a hook and waits for the word to begin. Raises OSError."""
    if os.environ.get("MEMLANE_HOOK_RESIDENT", "").lower() in _OFF:
        raise FileNotFoundError("It is switched off.")
    folder = os.path.join(state_folder(), FOLDER)
    path = os.path.join(folder, "socket")
    os.lstat(path)
    _check_private(folder)
    import _socket  # what `socket` adds costs more than the call

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.settimeout(_PATIENCE)
    connection.connect(path)
    _check_peer(connection)
    old = os.umask(0o077)
    os.umask(old)
    words = [_installation(), b"%d" % old, b"%d" % len(arguments), *map(os.fsencode, arguments)]
    words += (b"%s=%s" % pair for pair in os.environb.items())
    message = b"\0".join(words)
    here = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    handed = b"".join(fd.to_bytes(4, sys.byteorder) for fd in (stdin, here))
    rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, handed)
    connection.sendmsg([len(message).to_bytes(8, "big")], [rights])
    connection.sendall(message)
    if connection.recv(1) != _TAKEN:
        raise ConnectionRefusedError("The hook was not taken.")
    return connection


def _stdin() -> int:
    """The hook's standard input, or a file with it when it was read already: see `moments`."""
    import io

    if not isinstance(sys.stdin.buffer, io.BytesIO):
        return sys.stdin.fileno()
    fd = os.memfd_create("stdin")
    with open(fd, "wb", closefd=False) as file:
        file.write(sys.stdin.buffer.getvalue())
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


# -- who is at the other end


def _check_private(folder: str) -> None:
    """Raise PermissionError unless a folder is the user's own, and nobody else's."""
    info = os.lstat(folder)
    if info.st_mode & 0o170077 != 0o040000 or info.st_uid != os.geteuid():
        raise PermissionError("The folder is open to others.")


def _check_peer(connection: plain_socket | socket) -> None:
    """Raise PermissionError unless the process at the other end may do and sees exactly what this one does."""
    import _socket

    told = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    if _rights(int.from_bytes(told[:4], sys.byteorder)) != _rights(os.getpid()):
        raise PermissionError("The other process has other rights.")


def _rights(process: int) -> list[Any]:
    """The user, groups, capabilities and sandbox of a process, and which files and processes it sees. Raises OSError.

    Landlock, seccomp and bubblewrap show: they forbid new privileges, and the last has namespaces of its own.
    """
    place = f"/proc/{process}"
    with open(f"{place}/status", "rb") as file:
        found: list[Any] = [line for line in file.read().splitlines() if line.startswith(_RIGHTS)]
    found += (os.readlink(f"{place}/{name}") for name in _VIEWS)
    try:
        with open(f"{place}/attr/current", "rb") as file:
            found.append(file.read())
    except OSError:  # no such thing as AppArmor or SELinux here
        pass
    return found


def _installation() -> bytes:
    """Which program this is: of memlane and of Python, and from where modules are imported."""
    python = sys.executable, sys.version, sys.path, sys.flags.optimize, sys.getfilesystemencoding()
    return repr((memlane.__version__, memlane.__file__, *python)).encode(errors="backslashreplace")


# -- the waiting process

_DELAY = 2.0  # seconds after the first knock, in which that hook answers itself
_AGAIN = 30.0  # seconds between two looks whether the waiting process of another server is gone
_MOST = 16  # hooks at the same time
_SLOWEST = 5.0  # seconds that a hook may take to say what it is
_LARGEST = 16 << 20  # bytes of arguments and environment
_CHANGED = 3  # the exit code of a copy that finds another installation than the one it was loaded from


def command(folder: str | None, flags: Mapping[str, Any]) -> list[str]:
    """What starts a waiting process; [] where a server is to start none."""
    from memlane import config
    from memlane.core.errors import MemlaneError
    from memlane.disk import children

    try:
        wanted = sys.platform == "linux" and bool(config.load(folder, flags)["hook.resident"])
    except MemlaneError:  # the tools say what is wrong with the configuration
        wanted = False
    return children.command(__name__, "main") if wanted else []


def main() -> None:
    """Wait for hooks until standard input ends, which the server that started it holds open as long as it lives."""
    if os.fork():
        os._exit(0)  # nobody has to wait for the one that stays
    try:
        os.setsid()  # a signal to the server and its processes is none to a hook
        _wait()
    finally:
        os._exit(0)


def _wait() -> None:
    import fcntl

    installed = _files()
    os.umask(0o077)
    folder = os.path.join(state_folder(), FOLDER)
    os.makedirs(folder, exist_ok=True)
    _check_private(folder)
    lock = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if _ended(_AGAIN):
                return
    path = os.path.join(folder, "socket")
    try:
        with _listening(path) as listener:
            knocked = _knocked(listener)
        _remove(path)
        if knocked and not _ended(_DELAY) and _files() == installed and _rehearse(os.path.join(folder, "rehearsal")):
            with _listening(path) as listener:
                _serve(listener, lock, installed)
    finally:
        _remove(path)


def _listening(path: str) -> socket:
    import socket

    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    _remove(path)  # of one that was killed
    listener.bind(path)
    listener.listen(_MOST)
    return listener


def _remove(path: str) -> None:
    if os.path.lexists(path):
        os.unlink(path)


def _ended(seconds: float) -> bool:
    """Whether standard input ends within so many seconds."""
    import select

    return bool(select.select([0], [], [], seconds)[0])


def _knocked(listener: socket) -> bool:
    """Wait for a hook, and send it away; False when the input ends before one comes."""
    import select

    while 0 not in select.select([0, listener.fileno()], [], [])[0]:
        with listener.accept()[0] as connection:
            try:
                _check_peer(connection)
                return True
            except OSError:  # none of ours
                pass
    return False


def _files() -> list[Any]:
    """What the installation is like: every file of the program, and when something else was last installed."""
    found: list[Any] = [os.stat(sys.executable).st_mtime_ns]
    found += (os.stat(folder).st_mtime_ns for folder in sys.path if os.path.isdir(folder))
    folders = [os.path.dirname(memlane.__file__)]
    for folder in folders:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if not entry.is_dir(follow_symlinks=False):
                    info = entry.stat()
                    found.append((entry.path, info.st_mtime_ns, info.st_size))
                elif entry.name != "__pycache__":
                    folders.append(entry.path)
    return found


def _rehearse(folder: str) -> bool:
    """Run the hooks of a session in a bank of their own, so that all they load is there; False when that went wrong.

    The environment is not the server's: what is found out here holds for every hook.
    """
    import gc
    import io
    import json
    import shutil

    import yaml  # noqa: F401 - for front matter that somebody else has written

    from memlane.bank import Bank
    from memlane.surfaces import hook

    shutil.rmtree(folder, ignore_errors=True)
    os.environ.clear()
    os.environ.update(HOME=folder, PATH=os.defpath, OPENBLAS_NUM_THREADS="1", MEMLANE_HOOK_DEADLINE="20")
    os.mkdir(folder, 0o700)
    try:
        with Bank.init(folder) as bank:
            bank.add("Deploys go out on Tuesdays, after the tests in src/deploy.py.", title="Deploy day", tags=["ci"])
            bank.add("Tell Ann before it is changed.", title="Ann", when="src/deploy.py")
            bank.add("Run the tests before every deploy.", lane="vault", type="constraint")
            bank.search("deploy")
        said = {"type": "text", "text": "The deploy failed.\n\nThe token had expired, so we decided to renew it daily."}
        message = {"id": "m", "role": "assistant", "content": [said]}
        line = {"type": "assistant", "sessionId": "s", "timestamp": "2025-01-10T00:00:00Z", "message": message}
        transcript = os.path.join(folder, "transcript.jsonl")
        with open(transcript, "w", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        payload = {
            "cwd": folder,
            "session_id": "s",
            "transcript_path": transcript,
            "prompt": "When do deploys go out?",
            "tool_input": {"file_path": os.path.join(folder, "src/deploy.py")},
        }
        for event in hook.EVENTS:
            sys.stdin = io.TextIOWrapper(io.BytesIO(json.dumps(payload).encode()))
            hook.main(["claude-code", event], io.StringIO())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    gc.collect()
    gc.freeze()
    gc.disable()  # as in every hook
    return len(os.listdir("/proc/self/task")) == 1  # or else a copy of it might lack a thread that holds a lock


def _serve(listener: socket, lock: int, installed: list[Any]) -> None:
    """Fork for every hook, until the input ends or the program has changed; then wait for the hooks under way."""
    import select
    import signal

    copies: dict[int, tuple[int, socket]] = {}  # by a descriptor of a process: its id, and the hook that waits for it
    callers: dict[int, int] = {}  # by the descriptor of a hook's connection: that of its process
    poll = select.poll()
    door = listener.fileno()
    for fd in (0, door):
        poll.register(fd, select.POLLIN)
    while door >= 0 or copies:
        ends = False
        for fd, _ in poll.poll():
            if fd == door:
                connection = listener.accept()[0]
                pid = _forked(connection, [lock, door, *copies, *callers], installed) if len(copies) < _MOST else 0
                if pid:
                    process = os.pidfd_open(pid)
                    copies[process], callers[connection.fileno()] = (pid, connection), process
                    poll.register(process, select.POLLIN)
                    poll.register(connection, 0)  # hears when it is closed, and nothing else
                else:
                    connection.close()
            elif fd in copies:  # it is done
                pid, connection = copies.pop(fd)
                ends = ends or os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == _CHANGED
                poll.unregister(fd)
                os.close(fd)
                if callers.pop(connection.fileno(), None):
                    poll.unregister(connection)
                connection.close()
            elif fd in callers:  # the client has ended its hook
                signal.pidfd_send_signal(callers.pop(fd), signal.SIGKILL)
                poll.unregister(fd)
            ends = ends or fd == 0
        if ends and door >= 0:
            for fd in (0, door):
                poll.unregister(fd)
            listener.close()
            door = -1


def _forked(connection: socket, others: list[int], installed: list[Any]) -> int:
    """A copy of this process that answers a hook: its id, or 0 when there is none."""
    try:
        _check_peer(connection)
        pid = os.fork()
    except OSError:
        return 0
    if pid == 0:
        try:
            for fd in others:  # a hook waits until the last of its connection is closed
                os.close(fd)
            connection.settimeout(_SLOWEST)
            os._exit(_answer(connection, installed))
        finally:
            os._exit(1)
    return pid


def _answer(connection: socket, installed: list[Any]) -> int:
    """Be the hook that is at the other end; gives the exit code of this process."""
    import io
    import time

    from memlane.surfaces import hook

    message, (stdin, here) = _received(connection)
    program, umask, count, *words = message.split(b"\0")
    if program != _installation():
        return 0
    if _files() != installed:
        return _CHANGED
    connection.sendall(_TAKEN)
    if connection.recv(1) != _BEGIN:
        return 0
    connection.settimeout(_LONGEST)
    os.fchdir(here)
    os.umask(int(umask))
    os.environ.clear()
    for word in words[int(count) :]:
        name, _, value = word.partition(b"=")
        os.environb[name] = value
    time.tzset()
    os.dup2(stdin, 0)
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
    out = io.StringIO()
    hook.main([os.fsdecode(word) for word in words[: int(count)]], out)
    connection.sendall(out.getvalue().encode("ascii") + _DONE)
    return 0


def _received(connection: socket) -> tuple[bytes, list[int]]:
    """What a hook hands over: words, and the descriptors of its standard input and its folder. Raises OSError."""
    import socket

    first, fds, _, _ = socket.recv_fds(connection, 8, 2)
    length = int.from_bytes(first, "big")
    if len(first) < 8 or len(fds) != 2 or length > _LARGEST:
        raise ConnectionAbortedError("That is no hook.")
    message = b""
    while len(message) < length and (more := connection.recv(length - len(message))):
        message += more
    if len(message) < length:
        raise ConnectionAbortedError("The hook has gone.")
    return message, fds
