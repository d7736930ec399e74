"""memlane, with a note of every hook that a client fires: its arguments, what it was told, how long its transcript was.

Installed as `memlane` in a folder of its own, so that `memlane connect` writes that path into the client's
configuration. Appends to hooks.jsonl beside it, before the hook does anything.
"""

from __future__ import annotations

import io
import json
import os
import sys

from memlane.__main__ import main


def note(data: bytes) -> None:
    path = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "hooks.jsonl")
    payload = json.loads(data)
    try:
        with open(payload.get("transcript_path") or os.devnull, "rb") as transcript:
            lines = len(transcript.read().splitlines())
    except OSError:
        lines = 0
    call = {"arguments": sys.argv[2:], "lines": lines, "payload": payload}
    with open(path, "ab") as file:
        file.write(json.dumps(call, ensure_ascii=False).encode() + b"\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["hook"]:
        data = sys.stdin.buffer.read()
        note(data)
        sys.stdin = io.TextIOWrapper(io.BytesIO(data))
    main()
