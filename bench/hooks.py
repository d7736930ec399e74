"""What a hook costs: CPU time of `memlane hook` in a bank, beside that of the bare interpreter, in turns.

    python bench/hooks.py [--notes 10000] [--rounds 15] [--user 200] [--stages] [--beside FOLDER]

With `--user`, there is also a bank of the user's own with so many notes; what is measured with it is measured in turns
with `memory.user_bank = false`, and so is a search in an open bank.

The bank holds that many notes of made-up prose, one in 200 of which says when it applies, ten vault records and its
index. `tool` is an edit that none of them applies to. The transcript has 200 messages that
were captured before and one new one each round, which `stop` captures and `session-end` distils. User and system time
of whole processes, the median of the rounds.

The last two columns, on Linux, are of the same hooks with a server running (`memlane mcp`), which keeps a process ready
to answer them: the hook's CPU time, and of what that process and its copies used, which is told in hundredths of a
second, the mean of the rounds.

With `--beside`, the folder `src` of another version, that one is measured in the same turns, in a column of its own.

With `--stages`, a second table says where that time goes: the same hooks in processes that time their own parts.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from subprocess import PIPE

from memlane import Bank
from memlane.surfaces import resident

WORDS = (
    "deploy cache token queue index memory server client retry timeout branch merge schema vector budget gate note "
    "session prompt record topic layer vault search graph link anchor parser lock file disk thread worker event hook"
).split()

# Runs one hook in a process of its own and prints the milliseconds of its parts. A part within another counts alone.
STAGES = """
import sys, time
start = time.process_time()
import collections, importlib._bootstrap_external as machinery, io, json, os, re._compiler
spent, inner = {}, []

def timed(stage, function):
    def run(*args, **given):
        began = time.process_time()
        inner.append(0.0)
        try:
            return function(*args, **given)
        finally:
            took = time.process_time() - began
            spent[stage] = spent.get(stage, 0) + took - inner.pop()
            if inner:
                inner[-1] += took
    return run

def part(stage, module, name):
    setattr(module, name, timed(stage, getattr(module, name)))

loader, extension = machinery.SourceFileLoader, machinery.ExtensionFileLoader
machinery.PathFinder.find_spec = classmethod(timed("modules: found", machinery.PathFinder.find_spec.__func__))
loader.get_code = timed("modules: read", loader.get_code)
loader.exec_module = timed("modules: run", loader.exec_module)
for name in ("create_module", "exec_module"):
    part("modules: run", extension, name)
part("patterns compiled", re._compiler, "compile")
event = sys.argv[1]
os.environ["OPENBLAS_NUM_THREADS"] = "1"
from memlane.surfaces import hook
import memlane.bank
from memlane.history import sessions
from memlane.index import peek
from memlane.recall import leaving
part("files compared with the index", peek, "compared")
part("secrets looked for", leaving, "passing")
part("session noted", sessions, "note")
part("configuration and trust", hook.config, "load")
if event == "prompt":
    from memlane.index import kept_columns, store
    from memlane.recall import finding
    part("files compared with the index", store, "compared")
    part("files compared with the index", store, "folders_of")
    part("arrays of the index read", kept_columns, "current")
    part("search", finding, "search")
elif event != "session-start":
    from memlane.capture import messages
    part("transcript read and captured", messages, "capture")
hook.main(["claude-code", event], io.StringIO())
total = time.process_time() - start
spent["the rest"] = total - sum(spent.values())
json.dump({stage: 1000 * took for stage, took in spent.items()}, sys.stdout)
sys.stdout.flush()
os._exit(0)
"""


def stages(payload: Mapping[str, object], folder: Path, rounds: int) -> None:
    """Print where the time of a hook goes: the median of each part, by event."""
    events = ("session-start", "prompt", "stop")
    found: dict[str, dict[str, list[float]]] = {}
    for number in range(rounds):
        for event in events:
            given = json.dumps({**payload, "session_id": f"stages{number}"})
            command = [sys.executable, "-c", f"import gc; gc.disable(){STAGES}", event]
            done = subprocess.run(command, input=given, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
            for stage, took in json.loads(done.stdout).items():
                found.setdefault(stage, {}).setdefault(event, []).append(took)
    middle = {stage: {event: statistics.median(times) for event, times in row.items()} for stage, row in found.items()}
    print(f"\nwhere it goes, CPU ms | {' | '.join(events)}")
    print("---|---|---|---")
    for stage, row in sorted(middle.items(), key=lambda item: -sum(item[1].values())):
        print(f"{stage} | {' | '.join(f'{row[event]:.1f}' if event in row else '' for event in events)}")


def fill(folder: Path, notes: int, *, user: bool = False) -> None:
    """A bank with its index. Notes are written directly: what is measured is reading."""
    rng = random.Random(2 if user else 1)
    bank = Bank.init(folder, user=user)
    for number in range(notes):
        prose = " ".join(rng.choice(WORDS) for _ in range(80))
        day = f"2024-{1 + number % 12:02}-{1 + number % 28:02}T10:00:00Z"
        when = f'when: "src/part{number}/**"\n' if number % 200 == 0 else ""
        front = f'---\ntype: "journal"\nstatus: "active"\ntags: ["t{number % 50}"]\ncreated_at: "{day}"\n{when}---\n\n'
        name, title = ("habit", f"Habit {number}") if user else ("note", f"Note {number}")
        (bank.root / f"{name}-{number:05}.md").write_text(f"{front}# {title}\n\n{prose}.\n")
    for number in range(10):
        words = " ".join(rng.sample(WORDS, 12))
        bank.add(f"Rule {number}: {words}.", lane="vault", type="constraint")
    bank.search("deploy")
    bank.close()


def line(number: int) -> str:
    text = f"Answer {number}.\n\nIt has two paragraphs and says what was done about number {number}."
    message = {"id": f"m{number}", "role": "assistant", "content": [{"type": "text", "text": text}]}
    when = f"2025-01-10T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z"
    return json.dumps({"type": "assistant", "sessionId": "s", "timestamp": when, "message": message}) + "\n"


def searching(folder: Path, rounds: int) -> dict[str, float]:
    """Milliseconds of CPU time of a search in an open bank, with and without the user's in turns: the median."""
    times: dict[str, list[float]] = {"search": [], "search, without it": []}
    with Bank.open(folder) as both, Bank.open(folder, memory__user_bank=False) as alone:
        for number in range(10 * rounds):
            query = f"{WORDS[number % len(WORDS)]} retry of the {WORDS[(7 * number) % len(WORDS)]} queue"
            for name, bank in zip(times, (both, alone), strict=True):
                began = time.process_time()
                bank.search(query)
                times[name].append(1000 * (time.process_time() - began))
    return {name: statistics.median(found[10:]) for name, found in times.items()}


def cpu(command: list[str], given: str, folder: Path, source: str = "", *, alone: bool = True) -> float:
    """Milliseconds of user and system time of a process, which may have another version's source."""
    env = {**os.environ, "MEMLANE_HOOK_RESIDENT": str(not alone)}
    if source:
        env["PYTHONPATH"] = source
    with tempfile.TemporaryFile() as stdin:
        stdin.write(given.encode())
        stdin.seek(0)
        process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.DEVNULL, cwd=folder, env=env)
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{command} failed")
    return 1000 * (usage.ru_utime + usage.ru_stime)


class Waiting:
    """A server over standard input and output, and the process beside it that answers hooks."""

    def __init__(self, memlane: str, folder: Path) -> None:
        self._server = subprocess.Popen([memlane, "mcp"], stdin=PIPE, stdout=PIPE, cwd=folder, text=True)
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
        print(json.dumps(asked), file=self._server.stdin, flush=True)
        place = os.path.join(resident.state_folder(), resident.FOLDER, "socket")
        doctor = [memlane, "doctor", "--only", "clients"]
        while b"hooks are answered" not in subprocess.run(doctor, stderr=PIPE, cwd=folder).stderr:
            if self._server.poll() is not None:
                raise SystemExit("memlane mcp ended")
            time.sleep(0.1)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(place)
            (pid,) = struct.unpack_from("i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        self._place = Path(f"/proc/{pid}")
        self._pid = pid

    def cpu(self) -> float:
        """Milliseconds of user and system time that it and its copies have used, once no copy is at work."""
        while (self._place / f"task/{self._pid}/children").read_text().strip():
            time.sleep(0.001)
        used = (self._place / "stat").read_text().rpartition(")")[2].split()[11:15]
        return 1000 * sum(map(int, used)) / os.sysconf("SC_CLK_TCK")

    def end(self) -> int:
        """End the server; gives the kilobytes that are free without the process beside it."""
        rows = (self._place / "smaps_rollup").read_text().splitlines()
        self._server.communicate()
        return sum(int(row.split()[1]) for row in rows if row.startswith("Private"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--user", type=int, default=0)
    parser.add_argument("--stages", action="store_true")
    parser.add_argument("--beside", default="", help="the folder `src` of another version")
    options = parser.parse_args()
    sides = (options.beside, "") if options.beside else ("",)
    folder = Path(tempfile.mkdtemp())
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for name in ("STATE", "DATA", "CONFIG"):
        os.environ[f"XDG_{name}_HOME"] = str(folder / name.lower())
    try:
        fill(folder, options.notes)
        if options.user:
            fill(folder, options.user, user=True)
        transcript = folder / "transcript.jsonl"
        transcript.write_text("".join(map(line, range(200))))
        memlane = str(Path(sys.executable).parent / "memlane")
        payload = {
            "cwd": str(folder),
            "transcript_path": str(transcript),
            "prompt": "why did the cache retry time out?",
            "tool_input": {"file_path": "src/parts/cache.py"},
        }
        commands = {"python -c pass": [sys.executable, "-c", "pass"]}
        events = ("session-start", "prompt", "tool", "stop", "session-end")
        commands |= {f"hook {event}": [memlane, "hook", "claude-code", event] for event in events}
        agent = ["env", "MEMLANE_HOOK_DISTIL=agent"]  # nothing is asked: no file was changed
        commands["hook stop, may ask the agent"] = [*agent, *commands["hook stop"]]
        off = ["env", "MEMLANE_USER_BANK=false"]
        for event in events[:2] if options.user else ():
            commands[f"hook {event}, without it"] = [*off, *commands[f"hook {event}"]]
        times: dict[tuple[str, str], list[float]] = {(name, side): [] for name in commands for side in sides}
        shared: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        waiting = Waiting(memlane, folder) if sys.platform == "linux" else None
        for number in range(options.rounds + 1):
            for at, side in enumerate(sides):
                with transcript.open("a") as file:
                    file.write(line(1000 + 2 * number + at))
                for name, command in commands.items():
                    given = json.dumps({**payload, "session_id": f"{'ba'[at]}{number}"})
                    took = cpu(command, given, folder, side)
                    if number:  # the first round compiles and captures
                        times[name, side].append(took)
            if waiting is None:
                continue
            with transcript.open("a") as file:
                file.write(line(5000 + number))
            for name, command in commands.items():
                given = json.dumps({**payload, "session_id": f"c{number}"})
                before = waiting.cpu()
                took = cpu(command, given, folder, alone=False)
                if number:
                    shared[name].append((took, waiting.cpu() - before))
        bare = statistics.median(times["python -c pass", ""])
        heads = ["before: CPU ms", "beyond the interpreter", "now: CPU ms"] if options.beside else ["CPU ms"]
        heads += ["beyond the interpreter", *(["with a server: CPU ms", "beyond the interpreter"] if waiting else ())]
        print(" | ".join((f"{options.notes:,} notes", *heads)))
        print("---" + "|---" * len(heads))
        for name in commands:
            middles = [statistics.median(times[name, side]) for side in sides]
            if waiting:
                own, others = zip(*shared[name], strict=True)
                middles.append(statistics.median(own) + statistics.mean(others))
            print(" | ".join((name, *(f"{middle:.0f} | {middle - bare:.0f}" for middle in middles))))
        if waiting:
            print(
                f"\nmemory of the process that answers hooks: {waiting.end() / 1024:.0f} MB that it shares with nobody"
            )
        for name, took in searching(folder, options.rounds).items() if options.user else ():
            print(f"{name} | {took:.1f} |")
        if options.stages:
            stages(payload, folder, options.rounds)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
