"""Loss of power, again and again: a file system of its own is shut down under the writers, mounted again and checked.

    python tests/torture_power.py --rounds 4 --seed 1 [--control]

The bank lies on a loop device with ext4, and with xfs where mkfs.xfs is there. The eight processes of torture.py write
to it; then the file system is told to stop at once, without writing its journal (the shutdown ioctl), as if the power
had gone. After the next mount every acknowledged write must be there, and every cut-off one wholly or not at all. It
needs root and loop devices; where they are missing it says so and ends with 0. A loop device keeps what it was given:
this tests what memlane syncs and in which order, not a drive that lies. With --control nothing is synced at all,
which shows that the harness would see a loss.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from torture import SURFACES, Figures, Storm, check, environment, table

SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN are the same number
NO_LOG_FLUSH = 2
SIZE = 320 * 1024 * 1024


class Skipped(Exception):
    """This machine cannot do it."""


def command(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise Skipped(f"{' '.join(words[:3])} failed: {done.stderr.strip()[:200]}")


def mounted(folder: Path) -> bool:
    return os.path.ismount(folder)


def unmount(folder: Path) -> None:
    """Wait until the last process of the killed ones has let go."""
    for _ in range(50):
        if subprocess.run(["umount", str(folder)], capture_output=True).returncode == 0:
            return
        time.sleep(0.1)
    subprocess.run(["umount", "-l", str(folder)], capture_output=True)


def power_off(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        fcntl.ioctl(fd, SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
    except OSError as error:
        raise Skipped(f"this kernel does not shut the file system down: {error.strerror}") from None
    finally:
        os.close(fd)


def one_round(place: Path, kind: str, seed: str, seconds: float) -> Figures:
    figures = Figures(disk=f"{kind} on a loop device")
    for name in ("journals", "home", "disk"):
        (place / name).mkdir(parents=True)
    image, disk = place / "image", place / "disk"
    with open(image, "wb") as file:
        file.truncate(SIZE)
    command(f"mkfs.{kind}", "-q", str(image))
    command("mount", "-o", "loop", str(image), str(disk))
    os.environ["HOME"] = str(place / "home")
    try:
        storm = Storm(place, seed, figures, False)
        storm.prepare()
        os.sync()  # what git wrote is not ours to keep
        for number in range(len(SURFACES)):
            storm.start(number)
        try:
            time.sleep(seconds)
            for worker in storm.workers.values():  # in the middle of what they do; none reads a disk that is gone
                with suppress(ProcessLookupError):
                    os.killpg(worker.pid, signal.SIGSTOP)
            power_off(disk)
        finally:
            for worker in storm.workers.values():
                storm.end(worker)
        unmount(disk)
        command("mount", "-o", "loop", str(image), str(disk))
        figures.chaos["losses of power"] += 1
        check(storm, figures)
    finally:
        if mounted(disk):
            unmount(disk)
    return figures


def why_not() -> str:
    if sys.platform != "linux" or os.geteuid() != 0:
        return "it needs root on Linux"
    if not os.path.exists("/dev/loop-control"):
        return "there are no loop devices"
    return "" if shutil.which("mkfs.ext4") else "mkfs.ext4 is not installed"


def main() -> None:
    parser = argparse.ArgumentParser(description="Loss of power under eight writers, again and again.")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--control", action="store_true", help="without any fsync: losses must be found")
    chosen = parser.parse_args()
    if why := why_not():
        print(f"skipped: {why}")
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    kinds = [kind for kind in ("ext4", "xfs") if shutil.which(f"mkfs.{kind}")]
    dice = random.Random(chosen.seed)
    place = Path(tempfile.mkdtemp(prefix="memlane-power-"))
    surroundings = environment(place)
    os.environ.clear()
    os.environ.update(surroundings)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    if chosen.control:
        (place / "unsynced").mkdir()
        (place / "unsynced/sitecustomize.py").write_text("import os\nos.fsync = os.fdatasync = lambda fd: None\n")
        os.environ["PYTHONPATH"] = str(place / "unsynced")
    bad = False
    try:
        for number in range(chosen.rounds):
            begin = time.monotonic()
            kind, seed = kinds[number % len(kinds)], f"{chosen.seed} {number}"
            figures = one_round(place / str(number), kind, seed, dice.uniform(4, 8))
            figures.seconds = time.monotonic() - begin
            bad = bad or figures.bad
            lines = list(table(figures))
            begin_at = next(at for at, line in enumerate(lines) if line.startswith("operations "))
            print(f"round {number + 1} of {chosen.rounds}", *lines[begin_at:], sep="\n", flush=True)
    except Skipped as why:
        print(f"skipped: {why}")
    finally:
        shutil.rmtree(place, ignore_errors=True)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
