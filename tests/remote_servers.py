"""The servers that remotes are tested with: PostgreSQL as the system has it, and moto for object stores.

One of each serves a whole run of the tests. Every test has a bank of its own in it, and where it needs one a database.
"""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true"}


# -- PostgreSQL


def program(name: str) -> str | None:
    """A program of the newest PostgreSQL here; Debian keeps them apart from the others."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), key=lambda path: int(path.split("/")[4]))
    return found[-1] if found else shutil.which(name)


class Cluster:
    """A PostgreSQL server of our own in a temporary folder, which trusts whoever can reach it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.user = "postgres" if os.geteuid() == 0 else None  # it refuses to run as root
        if self.user:
            os.chown(folder, pwd.getpwnam(self.user).pw_uid, -1)
        os.chmod(folder, 0o755)
        self._run("initdb", "--username=owner", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C")
        self.start()

    def _run(self, name: str, *options: str) -> None:
        command = [program(name) or name, "--pgdata", str(self.folder / "data"), *options]
        with open(os.devnull) as nothing:
            done = subprocess.run(
                command, stdin=nothing, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, user=self.user,
                cwd=self.folder, text=True,
            )  # fmt: skip
        assert done.returncode == 0, done.stdout

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self.folder} -c fsync=off -c max_connections=60"
        self._run("pg_ctl", "start", "--wait", "--silent", "--log", str(self.folder / "log"), "--options", options)

    def stop(self) -> None:
        self._run("pg_ctl", "stop", "--wait", "--silent", "--mode=immediate")

    def url(self, database: str = "postgres", user: str = "owner", port: int | None = None) -> str:
        return f"postgresql://{user}@127.0.0.1:{port or self.port}/{database}"

    def sql(self, *statements: str, database: str = "postgres", user: str = "owner") -> list[Any]:
        """The rows of the last statement."""
        import psycopg

        with psycopg.connect(self.url(database, user), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    if program("initdb") is None:
        pytest.skip("PostgreSQL is not installed here (apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="memlane-pg-"))
    try:
        made = Cluster(folder)
        yield made
        made.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def database(cluster: Cluster) -> Iterator[str]:
    """An empty database of the test's own."""
    name = f"db_{os.urandom(4).hex()}"
    cluster.sql(f"create database {name}")
    yield name
    cluster.sql(f"drop database {name} with (force)")


# -- object stores

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


@contextmanager
def object_store(around: Callable[[Application], Application] = lambda inner: inner) -> Iterator[str]:
    """The address of a store. It answers one request at a time, once all of it is there: moto's own comparison of
    versions is not safe when two come at once.
    """
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"  # whoever sends a content asks first, and waits a second for an answer

        def log(self, type: str, message: str, *args: Any) -> None:
            pass

    inner = around(DomainDispatcherApplication(create_backend_app))
    alone = threading.Lock()

    def application(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        size = int(environ.get("CONTENT_LENGTH") or 0)
        content = environ["wsgi.input"].read(size)
        if len(content) < size:  # the line was cut: no store takes half of a content
            start("400 Bad Request", [("Content-Length", "0")])
            return []
        with alone:
            return inner(environ | {"wsgi.input": BytesIO(content)}, start)

    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def bucket_at(endpoint: str, name: str) -> Any:
    """A client of botocore, with the bucket made."""
    from botocore.session import Session

    client = Session().create_client(
        "s3", region_name="us-east-1", endpoint_url=endpoint, aws_access_key_id="key", aws_secret_access_key="secret"
    )
    client.create_bucket(Bucket=name)
    return client


def s3_url(endpoint: str, bucket: str, prefix: str = "") -> str:
    return f"s3://{bucket}{prefix}?endpoint={quote(endpoint, safe='')}"


@pytest.fixture(scope="session")
def store() -> Iterator[str]:
    pytest.importorskip("moto")
    with object_store() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def bucket(store: str) -> str:
    """The address of a bucket that all tests share: to make a client of botocore is dear."""
    bucket_at(store, "memory").close()
    return s3_url(store, "memory", "/team")


# -- a line that can be cut


def free_port() -> int:
    """A port that nobody is given who asks for any, for a minute or so: a connection was just closed at it, and only
    who names it may have it again so soon.
    """
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        server.accept()[0].close()
        return int(server.getsockname()[1])


class Line:
    """A way to a server that can be cut: `cut_after(b"…")` lets a request with these words through, but no answer."""

    def __init__(self, port: int) -> None:
        self.to = port
        self.trap: bytes | None = None
        self.silent = False
        self.sprung = threading.Event()
        self._open: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.to))
            except OSError:  # nobody is there
                client.close()
                continue
            self._open += (client, server)
            for source, target, asks in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._carry, args=(source, target, asks), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, asks: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if asks and self.trap is not None and self.trap in data:
                    self.trap = None
                    self.sprung.set()
                    target.sendall(data)
                    if not self.silent:
                        # the server has it all and will answer; nobody will hear that
                        source.shutdown(socket.SHUT_RDWR)
                    continue
                if asks or not self.sprung.is_set():
                    target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._open = []

    def heal(self) -> None:
        self.sprung.clear()

    def close(self) -> None:
        self._listening.close()
        self.cut()


@pytest.fixture
def line(cluster: Cluster) -> Iterator[Line]:
    made = Line(cluster.port)
    yield made
    made.close()


class Place(NamedTuple):
    """A remote to try: its address, and a bank that nobody else uses."""

    kind: str
    url: str
    bank: str


@pytest.fixture(params=["folder", "postgres", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    bank = f"bank {os.urandom(4).hex()}"
    if request.param == "folder":
        (tmp_path / "drive").mkdir()
        return Place("folder", str(tmp_path / "drive"), bank)
    if request.param == "postgres":
        return Place("postgres", request.getfixturevalue("cluster").url(), bank)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    return Place("s3", request.getfixturevalue("bucket"), bank)
