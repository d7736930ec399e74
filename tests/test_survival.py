"""What was acknowledged survives: SIGKILL at random points, several writers at once, a full disk, no permission."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from conftest import tree
from memlane import Bank, Memory, Problem, StorageError
from memlane.lanes import scan
from samples import LANES, draft, make_lane, root_of, words

HERE = Path(__file__).parent
KILLS = 50  # for each of the five lanes
WRITES = 80  # of each of four processes, into each lane: what they do to each other, they do from the first one on


def run(script: str, *args: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(HERE / script), *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("name", LANES)
def test_a_killed_writer_loses_and_breaks_nothing(name: str, tmp_path: Path) -> None:
    """S001-52 and the durability of every lane: no half file, no acknowledged write missing."""
    output, errors = run("killing.py", name, tmp_path, KILLS, name).communicate()
    assert errors == ""
    report = json.loads(output)
    if name == "vault":  # a line cut off by the kill was never acknowledged: it is reported, and hides nothing
        report["problems"] = [problem for problem in report["problems"] if not problem.endswith("is not JSON")]
    assert (report["lost"], report["halves"], report["problems"], report["kills"]) == ([], [], [], KILLS)
    assert report["acknowledged"] >= KILLS


@pytest.mark.parametrize("name", LANES)
def test_four_writers_lose_nothing(name: str, tmp_path: Path) -> None:
    """4 processes write into one lane at once: all of it is there, no error."""
    writers = [run("writing.py", name, tmp_path, number * WRITES, WRITES) for number in range(4)]
    outputs = [writer.communicate() for writer in writers]
    assert [errors for _, errors in outputs] == [""] * 4
    items = list(scan(make_lane(name, tmp_path)))
    assert [str(item) for item in items if isinstance(item, Problem)] == []
    everything = "\n".join(item.text for item in items if isinstance(item, Memory))  # archived ones, too
    assert [number for number in range(4 * WRITES) if everything.count(words(number)) != 1] == []


def test_four_writers_extend_one_note(tmp_path: Path) -> None:
    """Read-modify-write across processes: every line arrives."""
    lane = make_lane("notes", tmp_path)
    native = lane.put(draft("notes", 0)).native_id
    code = (
        "import sys; from memlane import NoteLane\n"
        "for n in range(50): NoteLane(sys.argv[1]).extend(sys.argv[2], f'line {sys.argv[3]}-{n}.')"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(root_of("notes", tmp_path)), native, str(number)])
        for number in range(4)
    ]
    assert [writer.wait() for writer in writers] == [0] * 4
    text = lane.fetch(native).text
    assert [f"{a}-{b}" for a in range(4) for b in range(50) if f"line {a}-{b}." not in text] == []


# -- a full disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KB, where this user may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = os.geteuid() == 0 and (
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=256k", "memlane-test", str(disk)], capture_output=True
        ).returncode
        == 0
    )
    if not mounted:
        pytest.skip("only root may mount a small disk; the limit on file sizes below covers the same path")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("name", LANES)
def test_a_full_disk_is_an_error_and_the_old_content_stays(name: str, small_disk: Path) -> None:
    lane = make_lane(name, small_disk)
    kept = [lane.put(draft(name, number)) for number in range(3)]
    filler = small_disk / "filler"
    with open(filler, "wb", buffering=0) as file:
        while True:
            try:
                file.write(b"x" * 4096)
            except OSError:
                break
    before = {path: data for path, data in tree(small_disk).items() if path != "filler"}
    texts = ["\n".join(words(f"long {number} {line}", 12) for line in range(9)) for number in range(8)]

    def put() -> None:
        for number, text in enumerate(texts):  # a line or two still fit into the vault's last block
            lane.put(draft(name, 90 + number, text))

    def extend() -> None:
        lane.extend(kept[0].native_id, texts[0])

    for attempt in (put, extend):
        with pytest.raises(StorageError) as caught:
            attempt()
        assert caught.value.code == "disk_full"
    after = {path: data for path, data in tree(small_disk).items() if path != "filler"}
    if name == "vault":  # it grew while there was room; its last line may be torn, and the next append closes it off
        assert after["vault.jsonl"].startswith(before["vault.jsonl"])
    else:
        assert after == before
    filler.unlink()
    lane.put(draft(name, 10))
    found = {item.id for item in scan(make_lane(name, small_disk)) if isinstance(item, Memory)}
    assert found >= {memory.id for memory in kept}


def test_what_a_full_disk_refused_is_not_there_to_be_undone(small_disk: Path) -> None:
    """Also where the vault was made for it: its file is, and stays empty."""
    with Bank.init(small_disk) as bank:
        bank.add("Deploys go out on Tuesdays.")
        with open(small_disk / "filler", "wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"x" * 4096)
        with pytest.raises(StorageError):
            bank.add("Ann prefers tea over coffee.", lane="vault")
        (small_disk / "filler").unlink()
        assert (bank.undo().what, [memory.id for memory in bank.list()]) == ("add", [])


@pytest.mark.parametrize("name", LANES)
def test_a_write_that_is_cut_off_is_an_error(name: str, tmp_path: Path) -> None:
    """The same without a mount: a limit on the size of files stands in for the quota."""
    lane = make_lane(name, tmp_path)
    lane.put(draft(name, 1))
    before = tree(tmp_path)
    code = (
        "import resource, signal, sys; from pathlib import Path; from samples import draft, make_lane, words\n"
        "from memlane import StorageError\n"
        "lane = make_lane(sys.argv[1], Path(sys.argv[2]))\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))\n"
        "try: lane.put(draft(sys.argv[1], 2))\n"
        "except StorageError as error: print(error.hint)"
    )
    arguments = [sys.executable, "-c", code, name, str(tmp_path)]
    result = subprocess.run(arguments, cwd=HERE, capture_output=True, text=True)
    assert result.stderr == ""
    assert result.stdout.strip()
    assert tree(tmp_path) == before


# -- no permission


@pytest.mark.parametrize("name", LANES)
def test_a_read_only_folder_is_an_error(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bank = Path(folder)
        lane = make_lane(name, bank)
        memory = lane.put(draft(name, 1))
        for path in bank.rglob("*"):
            path.chmod(0o555 if path.is_dir() else 0o444)
        before = tree(bank)
        code = (
            "import os, sys, tempfile; from pathlib import Path; from samples import draft, make_lane, words\n"
            "from memlane import StorageError\n"
            "name, native = sys.argv[1], sys.argv[3]\n"
            "with tempfile.TemporaryDirectory() as other:\n"  # loads what is loaded lazily
            "    lane = make_lane(name, Path(other))\n"
            "    lane.drop(lane.extend(lane.put(draft(name, 1)).native_id, words(2)).native_id)\n"
            "if os.geteuid() == 0: os.setegid(65534); os.seteuid(65534)\n"
            "lane = make_lane(name, Path(sys.argv[2]))\n"
            "for attempt in (lambda: lane.put(draft(name, 2)), lambda: lane.extend(native, words(3)),\n"
            "                lambda: lane.drop(native)):\n"
            "    try: attempt()\n"
            "    except StorageError as error: print(error.code)\n"
        )
        bank.chmod(0o755)
        arguments = [sys.executable, "-c", code, name, folder, memory.native_id]
        result = subprocess.run(arguments, cwd=HERE, capture_output=True, text=True)
        assert result.stderr == ""
        for path in [bank, *bank.rglob("*")]:
            path.chmod(0o755)
        assert result.stdout.split() == ["no_permission"] * 3
        assert tree(bank) == before
