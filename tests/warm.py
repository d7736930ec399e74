"""A `memlane` that is loaded already: the pages of the docs run two hundred commands, and to start Python and load the
program for each takes ten times as long as what they do.

`warm` is a folder with a program of that name. It hands its arguments, folder, environment and streams to a process
that has loaded memlane; that one forks, and the copy runs the command as a process of its own. The program hands on
signals that can be caught, and the copy is killed when the program is. Run as a program, this file is that process:
`python warm.py SOCKET`, and with one more word it has loaded what a server needs, too.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

PROGRAM = str(Path(sys.executable).with_name("memlane"))

# Without the modules of Python that take longer to load than all the rest of it.
_ASKING = """#!{python} -IS
import _signal, _socket, os, sys
line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
line.connect({address!r})
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
environment = [name + "=" + value for name, value in os.environ.items()]
asked = os.fsencode("\\0".join([os.getcwd(), str(len(sys.argv)), *sys.argv, *environment]))
line.sendmsg([len(asked).to_bytes(8, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
line.sendall(asked)
child = int(line.recv(8, _socket.MSG_WAITALL))
for number in (_signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM):
    _signal.signal(number, lambda sent, _: os.kill(child, sent))
os._exit(int(line.recv(8) or b"70"))
"""


@pytest.fixture(scope="session")
def warm() -> Iterator[Path]:
    with loaded() as folder:
        yield folder


@contextmanager
def loaded(*before: str, servers: bool = False) -> Iterator[Path]:
    """A folder with such a program. The process that it asks may be started by another one: `before`, with options."""
    with tempfile.TemporaryDirectory(prefix="memlane-warm-") as folder:
        address = f"{folder}/socket"
        asking = Path(folder) / "bin/memlane"
        asking.parent.mkdir()
        asking.write_text(_ASKING.format(python=sys.executable, address=address))
        asking.chmod(0o755)
        command = [*before, sys.executable, __file__, address, *["servers"] * servers]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout
            assert process.stdout.readline() == b"ready\n"
            yield asking.parent


def _load(servers: bool) -> None:
    """All of memlane but what needs large packages; what is there now stays, so that a fork copies less."""
    import gc
    import pkgutil
    from importlib import import_module

    import memlane

    for module in pkgutil.walk_packages(memlane.__path__, "memlane."):
        large = module.name.startswith(("memlane.surfaces.mcp", "memlane.surfaces.ui"))
        if not module.name.startswith("memlane.adapters") and (servers or not large):
            with suppress(ImportError):
                import_module(module.name)
    if servers:
        import_module("uvicorn.loops.auto")
        import_module("uvicorn.protocols.http.auto")
    gc.collect()
    gc.freeze()


def _received(line: socket.socket) -> tuple[list[int], list[str]]:
    size, streams, _, _ = socket.recv_fds(line, 8, 3)
    with line.makefile("rb") as parts:
        return streams, os.fsdecode(parts.read(int.from_bytes(size, "big"))).split("\0")


def _run(streams: list[int], parts: list[str]) -> None:
    """In the copy: be the command."""
    from memlane.__main__ import script

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = open(0)  # noqa: SIM115 - for as long as the process lives, as the next two
    sys.stdout = open(1, "w")  # noqa: SIM115
    sys.stderr = open(2, "w", 1, errors="backslashreplace")  # noqa: SIM115
    folder, count, *rest = parts
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(part.split("=", 1) for part in rest[int(count) :])
    sys.argv = [PROGRAM, *rest[1 : int(count)]]
    script()


def serve(address: str) -> None:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen()
    awake, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, socket.socket] = {}
    print("ready", flush=True)
    with selectors.DefaultSelector() as waiting:
        waiting.register(listening, selectors.EVENT_READ)
        waiting.register(awake, selectors.EVENT_READ)
        waiting.register(sys.stdin, selectors.EVENT_READ)
        while True:
            for key, _ in waiting.select():
                if key.fileobj is listening:
                    line, _ = listening.accept()
                    streams, parts = _received(line)
                    child = os.fork()
                    if child == 0:
                        signal.set_wakeup_fd(-1)
                        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                        waiting.close()
                        for one in (listening, awake, wake, line, *running.values()):
                            one.close()
                        _run(streams, parts)
                        os._exit(70)
                    for stream in streams:
                        os.close(stream)
                    running[child] = line
                    waiting.register(line, selectors.EVENT_READ, child)
                    with suppress(OSError):
                        line.sendall(b"%8d" % child)
                elif key.fileobj is awake:
                    awake.recv(64)
                    for child, code in _ended():
                        with suppress(KeyError):  # it may have been killed
                            waiting.unregister(running[child])
                        with running.pop(child) as line, suppress(OSError):
                            line.sendall(b"%d" % (code if code >= 0 else 128 - code))
                elif key.fileobj is sys.stdin:  # whoever started this has ended
                    return
                elif key.data in running:  # the program was killed: it says nothing else
                    waiting.unregister(key.fileobj)
                    os.kill(key.data, signal.SIGKILL)


def _ended() -> Iterator[tuple[int, int]]:
    """The copies that have ended, each with how."""
    with suppress(ChildProcessError):
        while found := os.waitpid(-1, os.WNOHANG):
            if found[0] == 0:
                return
            yield found[0], os.waitstatus_to_exitcode(found[1])


if __name__ == "__main__":
    del sys.path[0]  # the folder of the tests
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _load(servers="servers" in sys.argv)
    serve(sys.argv[1])
