"""Write requirements-dev.txt, requirements-adapters.txt and requirements-server.txt: the exact version and the hashes
of everything that `.[dev]`, `.[test-adapters]` and `.[server]` need. Run by `make lock`.

    python scripts/lock.py [--upgrade]

It needs uv (https://docs.astral.sh/uv) on PATH, and a package index. Each file serves Python 3.11 and newer on Linux
and macOS: versions that differ have a marker, and each version has the hash of every file that the index offers.
Without --upgrade what is locked stays, unless pyproject.toml rules it out. Where the packages came from is not
written down: hashes say what they are, whichever index delivers them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
LOCKS = {
    "dev": ROOT / "requirements-dev.txt",
    "test-adapters": ROOT / "requirements-adapters.txt",
    "server": ROOT / "requirements-server.txt",
}
HEAD = """\
# Everything that `.[{extra}]` needs, with hashes. Made by `make lock` from pyproject.toml; do not edit.
# It names no index: pip takes the files from wherever yours is, and refuses any that is not one of these.
"""
OPTIONS = ("--universal", "--python-version", "3.11", "--generate-hashes", "--no-header", "--no-annotate")
LINE = re.compile(r"[a-z0-9][a-z0-9._-]*==\S+( ; [^\\]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?")


def compiled(uv: str, extra: str, lock: Path, upgrade: bool) -> list[str]:
    """uv's answer, line by line. What is locked now is where it starts from, so that nothing else moves."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / lock.name
        start = lock if lock.exists() else LOCKS["dev"]  # a new one begins with the versions that were tested
        if not upgrade:
            shutil.copy(start, output)
        command = [uv, "pip", "compile", "--quiet", *OPTIONS, "--extra", extra, "pyproject.toml", "-o", str(output)]
        if subprocess.run(command, cwd=ROOT).returncode:  # noqa: S603
            sys.exit(f"uv could not resolve the requirements; {lock.name} is as it was.")
        return output.read_text().splitlines()


def write(uv: str, extra: str, lock: Path, upgrade: bool) -> None:
    """Replace one lock file; exits when a requirement has no hashes."""
    lines = [line for line in compiled(uv, extra, lock, upgrade) if not line.startswith(("#", "--"))]
    strange = [line for line in lines if not LINE.fullmatch(line)]
    if strange:  # a requirement without hashes, by URL or by path
        sys.exit(f"{len(strange)} lines are no locked requirements, the first: {strange[0]}")
    new = lock.with_suffix(".new")
    new.write_text(HEAD.format(extra=extra) + "\n".join(lines) + "\n")
    os.replace(new, lock)
    print(f"{sum('==' in line for line in lines)} packages are locked in {lock.name}")


def main() -> None:
    uv = shutil.which("uv")
    if uv is None:
        sys.exit("uv is not on PATH. Install it (pipx install uv), then run this again.")
    for extra, lock in LOCKS.items():
        write(uv, extra, lock, "--upgrade" in sys.argv[1:])


if __name__ == "__main__":
    main()
