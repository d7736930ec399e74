"""Real files in temporary folders, a clock that stands still, and nothing from the user's own environment."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from commands import ask as ask
from commands import bank as bank
from commands import run as run
from memlane.config import trust, user_state
from memlane.disk.written import AGENTS
from remote_servers import bucket as bucket
from remote_servers import cluster as cluster
from remote_servers import database as database
from remote_servers import line as line
from remote_servers import place as place
from remote_servers import store as store
from repositories import repo as repo
from samples import FUZZ
from ui_pages import browser as browser
from ui_pages import folder as folder
from ui_pages import open_page as open_page
from ui_pages import page as page
from ui_pages import serve as serve
from ui_pages import served as served
from warm import warm as warm

# The same examples in every run, so that a change is judged by what it changed; MEMLANE_FUZZ=1 looks for new ones, and
# for more of them where a test does not say how many.
settings.register_profile(
    "memlane",
    deadline=None,
    database=None,
    derandomize=not FUZZ,
    max_examples=1000 if FUZZ else 50,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.load_profile("memlane")

# Hundreds of processes are started here. What they run is compiled once, as an installed memlane is, not by each anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What a shell runs in the background ignores Ctrl-C, and so would all that is started here: tests send it to some.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Thousands of tests make folders, write files and wait until the disk has them. Where a disk of memory has the room,
# programs may be started from it and nobody chose another place, they do so there: it takes a fifth less time, and
# nobody waits for what others write on the disk.
MEMORY = "/dev/shm"


def _in_memory() -> bool:
    if not os.access(MEMORY, os.W_OK) or "TMPDIR" in os.environ:
        return False
    disk = os.statvfs(MEMORY)
    return disk.f_bavail * disk.f_frsize > 2_000_000_000 and not disk.f_flag & getattr(os, "ST_NOEXEC", 0)


if _in_memory():
    os.environ["TMPDIR"] = tempfile.tempdir = MEMORY  # for what is started here, too

_numbers = count()
_passed = pytest.StashKey[bool]()


def pytest_collection_finish() -> None:
    """What is there now stays: nobody looks for garbage in thousands of tests again, and a fork copies less."""
    gc.collect()
    gc.freeze()


class Clock:
    """A clock that moves only when told to."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> None:
        self.now += timedelta(**by)


@pytest.fixture
def clock() -> Clock:
    return Clock(datetime(2025, 1, 10, 14, 30, 22, tzinfo=UTC))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash[_passed] = item.stash.get(_passed, True) and not report.failed
    return report


@pytest.fixture
def _room(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A folder for all that one test writes; it stays where a test failed. To find the next number, pytest's own
    `tmp_path` looks through the folders of all tests before it, which is quadratic: a minute in thousands of tests.
    """
    room = tmp_path_factory.mktemp(str(next(_numbers)), numbered=False)
    yield room
    if request.node.stash[_passed]:
        shutil.rmtree(room, ignore_errors=True)


@pytest.fixture
def tmp_path(_room: Path, request: pytest.FixtureRequest) -> Path:
    path = _room / re.sub(r"\W", "_", request.node.name)[:30]
    path.mkdir(mode=0o700)
    return path


@pytest.fixture(autouse=True)
def _own_home(_room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the settings of whoever runs it."""
    home = _room / "home"
    home.mkdir(mode=0o700)
    for name in list(os.environ):
        if name.startswith(("MEMLANE_", "XDG_")) or name in AGENTS:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))


@pytest.fixture
def home(_own_home: None) -> Path:
    return Path(os.environ["HOME"])


def tree(root: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes: to show that nothing was written."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def trusted(file: Path) -> Path:
    """A project's configuration, trusted as it is now."""
    trust.record(user_state(), file)
    return file
