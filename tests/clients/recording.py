"""What clients said, kept for tests/test_payloads.py: small, and without anything of the machine it was said on.

Written to tests/payloads, for each client: CLIENT.jsonl, one line for each hook that was fired, in order; and
CLIENT-N.jsonl, the transcript of session N. In them the project is /home/user/project. Ids become ids that count up,
and long texts that are the vendor's own (system prompts, lists of tools) are cut.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "payloads"
LONGEST = 300  # characters
_ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_HASH = re.compile(r"\b[0-9a-f]{40,64}\b")
_BLOCK = re.compile(r"<memlane-([a-z]+)>.*</memlane-\1>", re.DOTALL)


class Scrub:
    """The same id becomes the same id, in all files of a client."""

    def __init__(self, home: Path, project: Path) -> None:
        self.home, self.project = str(home), str(project)
        self.ids: dict[str, str] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self.text(key): self(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self(inner) for inner in value]
        return self.text(value) if isinstance(value, str) else value

    def text(self, text: str) -> str:
        if len(text) > LONGEST:
            block = _BLOCK.search(text)
            text = block[0] if block else text[:LONGEST] + "…"
        for path, name in ((self.project, "/home/user/project"), (self.home, "/home/user")):
            text = text.replace(path, name)
            text = text.replace(re.sub(r"[^A-Za-z0-9]", "-", path), re.sub(r"[^A-Za-z0-9]", "-", name))
        text = re.sub(r"http://127\.0\.0\.1:\d+", "http://127.0.0.1:9", text)
        text = _HASH.sub("0" * 40, text)
        return _ID.sub(
            lambda found: self.ids.setdefault(found[0], f"00000000-0000-4000-8000-{len(self.ids):012}"), text
        )


def record(client: str, home: Path, project: Path, hooks: list[dict[str, Any]]) -> None:
    """Write the payloads of a client, and the transcripts that they name."""
    scrub = Scrub(home, project)
    FOLDER.mkdir(exist_ok=True)
    paths = dict.fromkeys(
        call["payload"]["transcript_path"] for call in hooks if call["payload"].get("transcript_path")
    )
    names = {path: f"{client}-{number}.jsonl" for number, path in enumerate(paths, 1)}
    for path, name in names.items():
        lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
        _write(FOLDER / name, [scrub(line) for line in lines])
    calls = []
    for call in hooks:
        payload = scrub(call["payload"])
        if call["payload"].get("transcript_path"):
            payload["transcript_path"] = names[call["payload"]["transcript_path"]]
        calls.append({**call, "payload": payload})
    _write(FOLDER / f"{client}.jsonl", calls)


def _write(path: Path, lines: list[Any]) -> None:
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
