"""Coverage-guided fuzzing of every parser with atheris, where it is installed (`pip install atheris`).

    python tests/guided.py [SECONDS] [PARSER]

Gives each parser so many seconds (default 20), one process each, and stops at the first crash, whose input it names.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path


def fuzz(name: str, seconds: str, corpus: str) -> None:
    import atheris

    with atheris.instrument_imports(include=["memlane"]):
        from hostile_texts import HOSTILE, PARSERS, cpu, expected

        cpu(PARSERS[name], "a warm start: [[b]]\n")

    def one(data: bytes) -> None:
        try:
            PARSERS[name](data.decode("utf-8", "surrogateescape"))
        except Exception as error:
            if not expected(error):
                raise

    corpus = tempfile.mkdtemp(dir=corpus)
    for number, make in enumerate(HOSTILE.values()):
        (Path(corpus) / str(number)).write_bytes(make(200).encode(errors="surrogatepass"))
    options = [f"-max_total_time={seconds}", "-max_len=4096", "-timeout=10", "-print_final_stats=1", "-verbosity=0"]
    atheris.Setup([sys.argv[0], *options, corpus], one)
    atheris.Fuzz()


def main() -> None:
    given = sys.argv[1:]
    seconds = given[0] if given else "20"
    wanted = given[1] if len(given) > 1 else ""
    if len(given) > 2:
        fuzz(wanted, seconds, given[2])
        return
    from hostile_texts import PARSERS

    for name in (name for name in PARSERS if wanted in name):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, __file__, seconds, name, folder],
                capture_output=True, text=True, cwd=folder, env={**os.environ, "TMPDIR": folder},
            )  # fmt: skip
            said = [line for line in done.stderr.splitlines() if "executed_units" in line]
            print(f"{name:<24} {said[0].split()[-1] if said else '?':>10} inputs", flush=True)
            if done.returncode:
                print(done.stdout[-3000:], done.stderr[-3000:])
                sys.exit(1)


if __name__ == "__main__":
    main()
