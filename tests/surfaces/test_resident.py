"""Hooks that a waiting process answers: as they answer themselves, for nobody else, and never twice."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from commands import MEMLANE
from conftest import tree
from memlane import Bank
from memlane.surfaces import hook, resident
from samples import transcript

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what another process may do")

WAIT = "resident._DELAY = resident._AGAIN = 0.02; resident.main()"
HOOK = "sys.exit(0 if resident.answered(sys.argv[1:]) else 9)"  # 9: nobody else has begun it
IMPORTS = (
    "import ctypes, os, sys; from memlane import Bank; from memlane.surfaces import hook, resident; "
    "resident._PATIENCE = 60.0; "
)
SOON = 120.0
TWO_LINES = "The deploy failed because the token had expired.\n\nI renewed it and ran it again."


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    with Bank.init(folder) as bank:
        bank.add("Deploys go out on Tuesdays after standup.", title="Deploy day")
        bank.add("Tell Ann before it is changed.", title="Ann", when="src/deploy.py")
        bank.add("Keep the runtime stable.", lane="vault", type="mission")
        bank.search("deploys")
    transcript(tmp_path / "t.jsonl", TWO_LINES)
    return folder


def place(home: Path, name: str = "socket") -> Path:
    return home / ".local/state/memlane/hooks" / name


def pid_at(path: Path) -> int:
    """The process that listens there; 0 when none does."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(os.fspath(path))
        except OSError:
            return 0
        return int(struct.unpack_from("i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])


def until(condition: Any) -> Any:
    """What a condition says as soon as it says something."""
    ends = time.monotonic() + SOON
    while not (found := condition()):
        assert time.monotonic() < ends
        select.select([], [], [], 0.01)
    return found


def assert_gone(pid: int) -> None:
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    assert select.select([fd], [], [], SOON)[0]
    os.close(fd)


@contextmanager
def waiting(home: Path, more: str = "", **env: str) -> Iterator[int]:
    """A waiting process, such as a server starts, that is ready; gives its id. It ends when its input does."""
    given = {**os.environ, **env}
    with subprocess.Popen([sys.executable, "-c", IMPORTS + more + WAIT], stdin=subprocess.PIPE, env=given) as started:
        assert started.wait(SOON) == 0
        until(lambda: is_ready(more, given))
        pid = pid_at(place(home))
        yield pid
    assert_gone(pid)


def is_ready(more: str = "", env: dict[str, str] | None = None) -> bool:
    """Whether a hook would be answered: the first one that knocks is not."""
    command = [sys.executable, "-c", IMPORTS + more + "sys.exit(0 if resident.is_ready() else 9)"]
    return subprocess.run(command, env=env).returncode == 0


def called(project: Path, event: str, code: str = HOOK, /, given: str | None = None, **env: str) -> tuple[int, str]:
    """The exit code of a hook, and what it prints."""
    payload = {
        "session_id": "s1",
        "cwd": str(project),
        "prompt": "When do deploys go out?",
        "transcript_path": str(project.parent / "t.jsonl"),
        "tool_input": {"file_path": str(project / "src/deploy.py")},
    }
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS + code, "claude-code", event],
        input=json.dumps(payload) if given is None else given,
        capture_output=True,
        text=True,
        cwd=project,
        env={**os.environ, "MEMLANE_HOOK_DEADLINE": "60", **env},  # this is not about speed
        timeout=SOON,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def log(home: Path) -> str:
    path = home / ".local/state/memlane/hook.log"
    return path.read_text() if path.exists() else ""


# -- the same hook


def test_a_hook_says_and_writes_the_same_whoever_answers_it(project: Path, home: Path, tmp_path: Path) -> None:
    shutil.copytree(tmp_path, tmp_path.parent / "kept")
    shutil.copytree(home, home.with_name("kept-home"))

    def session(code: str) -> tuple[list[str], dict[str, bytes], dict[str, int]]:
        said = [called(project, event, f"os.umask(0o002); {code}")[1] for event in hook.EVENTS]
        bank = {name: data for name, data in tree(project).items() if "indices" not in name}
        modes = {str(path): path.stat().st_mode for folder in (project, home) for path in folder.rglob("*")}
        return said, bank, {path: mode for path, mode in modes.items() if "/hooks" not in path}

    alone = session("resident.alone(sys.argv[1:])")
    for folder, kept in ((tmp_path, tmp_path.parent / "kept"), (home, home.with_name("kept-home"))):
        shutil.rmtree(folder)
        shutil.copytree(kept, folder)
    with waiting(home):
        together = session(HOOK)
    assert together == alone
    assert ["Tuesdays" in said for said in together[0]] == [True, False, False, False, False, False]
    assert "Tell Ann" in together[0][2]
    with Bank.open(project) as bank:
        assert [memory.text for memory in bank.list(lane="records")] == [TWO_LINES]


def test_a_hook_before_a_tool_is_answered_though_its_input_was_read(project: Path, home: Path) -> None:
    looked = "from memlane.surfaces.moments import nothing_applies; assert not nothing_applies(sys.argv[1:]); "
    with waiting(home):
        assert "Tuesdays" in called(project, "session-start")[1]
        code, said = called(project, "tool", looked + HOOK)
    assert (code, "Tell Ann" in said) == (0, True)


def test_the_hooks_own_environment_and_folder_count(project: Path, home: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with Bank.init(tmp_path / "other") as bank:
        bank.add("Deploys wait for Ann.", title="Ann")
    with waiting(home, MEMLANE_BANK=str(project), MEMLANE_HOOK_ENABLED="false"):
        assert "Tuesdays" in called(project, "session-start")[1]
        assert "wait for Ann" in called(project, "session-start", MEMLANE_BANK=str(tmp_path / "other"))[1]
        assert "wait for Ann" in called(tmp_path / "other", "session-start", given="{}")[1]
        assert called(project, "session-start", MEMLANE_HOOK_ENABLED="false") == (0, "")


def test_a_hook_has_its_deadline(project: Path, home: Path) -> None:
    """The client never closes the hook's input."""
    with waiting(home):
        command = [sys.executable, "-c", IMPORTS + HOOK, "claude-code", "prompt"]
        env = {**os.environ, "MEMLANE_HOOK_DEADLINE": "2"}  # it has to come that far before its time is up
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=project) as run:
            assert run.stdout
            assert (run.stdout.read(), run.wait(SOON)) == (b"", 0)
    assert "the time was up" in log(home)


@pytest.mark.parametrize("end", ["sum(range(10**13))", "os.kill(os.getpid(), 9)"])
def test_one_that_hangs_or_dies_leaves_an_answer_and_is_not_begun_again(project: Path, home: Path, end: str) -> None:
    bad = f"usual = Bank.snapshot; Bank.snapshot = lambda *a, **b: {end} if 'BAD' in os.environ else usual(*a, **b); "
    deadline = "1.0" if "sum" in end else "60"  # it has to come that far before its time is up
    with waiting(home, bad):
        assert called(project, "session-start", BAD="1", MEMLANE_HOOK_DEADLINE=deadline) == (0, "")
        assert "Tuesdays" in called(project, "session-start")[1]
    assert log(home).count("claude-code -: it hung or crashed, and was ended by force") == 1


def test_a_hook_that_is_killed_takes_its_copy_along(project: Path, home: Path) -> None:
    with waiting(home) as pid:
        copies = Path(f"/proc/{pid}/task/{pid}/children")
        command = [sys.executable, "-c", IMPORTS + HOOK, "claude-code", "stop"]
        env = {**os.environ, "MEMLANE_HOOK_DEADLINE": "60"}
        with subprocess.Popen(command, stdin=subprocess.PIPE, cwd=project, env=env) as run:
            until(lambda: copies.read_text().strip())
            run.kill()
            until(lambda: not copies.read_text().strip())
        assert pid_at(place(home)) == pid


# -- it is not used


def unused(project: Path, code: str = HOOK, **env: str) -> bool:
    return called(project, "session-start", code, **env) == (9, "")


def test_nobody_is_asked_where_nobody_waits(project: Path, home: Path) -> None:
    assert unused(project)
    with waiting(home):
        assert not unused(project)
        assert unused(project, MEMLANE_HOOK_RESIDENT="False")
        assert unused(project, HOME=str(home.with_name("another")))
        assert unused(project, HOME=str(home / ("long" * 30)))
    assert unused(project)
    assert [path.name for path in place(home, "").iterdir()] == ["lock"]


def test_a_hook_in_a_sandbox_and_one_outside_have_nothing_to_do_with_each_other(project: Path, home: Path) -> None:
    """PR_SET_NO_NEW_PRIVS, which Landlock, seccomp and bubblewrap need."""
    closed = "ctypes.CDLL(None).prctl(38, 1, 0, 0, 0); "
    with waiting(home):
        assert unused(project, closed + HOOK)
    with waiting(home, closed):
        assert unused(project)
        assert not unused(project, closed + HOOK)


def test_a_folder_that_is_open_to_others_or_a_link_is_not_used(project: Path, home: Path) -> None:
    with waiting(home):
        folder = place(home, "")
        folder.chmod(0o750)
        assert unused(project)
        folder.chmod(0o700)
        folder.rename(home / "hooks")
        folder.symlink_to(home / "hooks")
        assert unused(project)
        folder.unlink()
        (home / "hooks").rename(folder)
        assert not unused(project)


def test_another_program_is_not_used(project: Path, home: Path) -> None:
    with waiting(home):
        assert unused(project, f"sys.path.append('/elsewhere'); {HOOK}")
        assert unused(project, f"import memlane; memlane.__version__ += '.post1'; {HOOK}")


def test_one_whose_installation_has_changed_is_not_used_and_ends(project: Path, home: Path, tmp_path: Path) -> None:
    installed = tmp_path / "site-packages"
    installed.mkdir()
    with waiting(home, PYTHONPATH=str(installed)) as pid:
        assert not unused(project, PYTHONPATH=str(installed))
        (installed / "memlane-9.dist-info").mkdir()
        assert unused(project, PYTHONPATH=str(installed))
        assert_gone(pid)
        assert not place(home).exists()


def test_one_that_does_not_move_is_not_waited_for_and_does_nothing_later(project: Path, home: Path) -> None:
    with waiting(home) as pid:
        os.kill(pid, signal.SIGSTOP)
        assert called(project, "stop", f"resident._PATIENCE = 0.1; {HOOK}") == (9, "")
        os.kill(pid, signal.SIGCONT)
        assert "Tuesdays" in called(project, "session-start")[1]
    with Bank.open(project) as bank:
        assert bank.list(lane="records") == []


# -- its life


def test_one_that_was_killed_leaves_nothing_in_the_way_of_the_next(project: Path, home: Path) -> None:
    with waiting(home) as pid:
        os.kill(pid, signal.SIGKILL)
        assert_gone(pid)
        assert place(home).exists()
        assert unused(project)
        with waiting(home) as next:
            assert next != pid
            assert not unused(project)


def test_of_several_one_answers_and_when_it_ends_another_does(project: Path, home: Path) -> None:
    command = [sys.executable, "-c", IMPORTS + WAIT]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as second:
        assert second.wait(SOON) == 0
        until(is_ready)
        pid = pid_at(place(home))
        with subprocess.Popen(command, stdin=subprocess.PIPE) as third:
            assert third.wait(SOON) == 0
            assert second.stdin
            second.stdin.close()
            assert_gone(pid)
            until(is_ready)
            pid = pid_at(place(home))
            assert not unused(project)
    assert_gone(pid)


def test_it_is_alone_in_its_process_and_has_loaded_all_that_hooks_need(project: Path, home: Path) -> None:
    code = (
        "import io, json; keep = dict(os.environ); files = set(os.listdir('/proc/self/fd')); "
        f"print(resident._rehearse({str(project.parent / 'rehearsal')!r})); "
        "print(set(os.listdir('/proc/self/fd')) - files); "
        "os.environ.clear(); os.environ.update(keep); loaded = set(sys.modules)\n"
        "for event in hook.EVENTS:\n"
        f"    payload = {{'cwd': {str(project)!r}, 'prompt': 'When do deploys go out?', 'session_id': event, "
        f"'transcript_path': {str(project.parent / 't.jsonl')!r}}}\n"
        "    sys.stdin = io.TextIOWrapper(io.BytesIO(json.dumps(payload).encode()))\n"
        "    hook.main(['claude-code', event], io.StringIO())\n"
        "print(set(sys.modules) - loaded)"
    )
    assert called(project, "-", code) == (0, "True\nset()\nset()\n")
    assert not (project.parent / "rehearsal").exists()


def serving(project: Path) -> subprocess.Popen[str]:
    """`memlane mcp`, which has answered a request."""
    pipe = subprocess.PIPE
    server = subprocess.Popen([MEMLANE, "mcp"], stdin=pipe, stdout=pipe, stderr=pipe, cwd=project, text=True)
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
    print(json.dumps(asked), file=server.stdin, flush=True)
    assert server.stdout
    assert json.loads(server.stdout.readline())["id"] == 1
    return server


def doctor(project: Path) -> str:
    return subprocess.run([MEMLANE, "doctor", "--only", "clients"], capture_output=True, text=True, cwd=project).stderr


def test_a_server_without_hooks_has_only_an_empty_process_beside_it(project: Path, home: Path) -> None:
    with serving(project) as server:
        until(place(home).exists)
        inode = str(place(home, "lock").stat().st_ino)
        locks = [row.split() for row in Path("/proc/locks").read_text().splitlines()]
        (pid,) = [int(row[4]) for row in locks if row[5].rpartition(":")[2] == inode]
        assert "numpy" not in Path(f"/proc/{pid}/maps").read_text()
        server.communicate()
        assert_gone(pid)


@pytest.mark.parametrize("how", ["its input", "SIGTERM", "SIGKILL"])
def test_a_server_brings_it_along_and_takes_it_along(project: Path, home: Path, how: str) -> None:
    with serving(project) as server:
        until(place(home).exists)
        command = [MEMLANE, "hook", "codex", "session-start"]
        answers = [subprocess.run(command, input=b"{}", capture_output=True, cwd=project).stdout]  # knocks
        until(lambda: "hooks are answered by a process of a running server" in doctor(project))
        answers.append(subprocess.run(command, input=b"{}", capture_output=True, cwd=project).stdout)
        assert [b"Tuesdays" in answer for answer in answers] == [True, True]
        pid = pid_at(place(home))
        if how != "its input":
            server.send_signal(signal.Signals[how])
        assert server.communicate(timeout=SOON) == ("", "")
        assert_gone(pid)
    assert not place(home).exists()
    assert "hooks are answered" not in doctor(project)


def test_a_server_does_not_bring_it_along_where_that_is_switched_off(project: Path) -> None:
    assert resident.command(str(project), {})
    assert not resident.command(str(project), {"hook.resident": False})
    assert not resident.command(str(project), {"hook.resident": "perhaps"})
