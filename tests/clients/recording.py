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
LONGEST = 120  # characters of a text that is not ours; of a longer one the beginning is kept
BEGINNING = 40
WIDEST = 4000  # characters of a line; a longer one keeps its plain fields
_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-f])")
_NAMED_ID = re.compile(r"\b(ses|msg|toolu|req)_[0-9A-Za-z]{16,}\b")
_HASH = re.compile(r"\b[0-9a-f]{32,64}\b")
_BLOCK = re.compile(r"(?:<|&lt;)memlane-([a-z]+).*?/memlane-\1(?:>|&gt;)", re.DOTALL)


class Scrub:
    """The same id becomes the same id, in all files of a client."""

    def __init__(self, home: Path, project: Path) -> None:
        self.places = {project: "/home/user/project", home: "/home/user", home.parent: "/home/user"}
        self.ids: dict[str, str] = {}

    def line(self, line: dict[str, Any]) -> dict[str, Any]:
        """A line of a transcript."""
        clean = self(line, short=True)
        if len(json.dumps(clean)) > WIDEST:
            return {key: value for key, value in clean.items() if isinstance(value, str | bool)}
        return clean  # type: ignore[no-any-return]

    def __call__(self, value: Any, *, short: bool = False) -> Any:
        if isinstance(value, dict):
            return {self.text(key, short): self(inner, short=short) for key, inner in value.items()}
        if isinstance(value, list):
            return [self(inner, short=short) for inner in value]
        return self.text(value, short) if isinstance(value, str) else value

    def text(self, text: str, short: bool) -> str:
        for place, name in self.places.items():
            text = text.replace(str(place), name)
            text = text.replace(re.sub(r"[^A-Za-z0-9]", "-", str(place)), re.sub(r"[^A-Za-z0-9]", "-", name))
        if short and len(text) > LONGEST:
            block = _BLOCK.search(text)
            start, end = block.span() if block else (0, 0)
            text = text[max(start - BEGINNING, 0) : end + BEGINNING] + ("" if block else "…")
        text = re.sub(r"http://127\.0\.0\.1:\d+", "http://127.0.0.1:9", text)
        text = re.sub(r"\bLinux \d[\w.+-]*", "Linux", text)
        text = _ID.sub(lambda found: self._id(found[0]), text)
        text = _NAMED_ID.sub(lambda found: f"{found[1]}_{self._id(found[0])[-12:]}", text)
        return _HASH.sub("0" * 32, text)

    def _id(self, id: str) -> str:
        return self.ids.setdefault(id, f"00000000-0000-4000-8000-{len(self.ids):012}")


def record(client: str, home: Path, project: Path, hooks: list[dict[str, Any]]) -> None:
    """Write the payloads of a client, and the transcripts that they name."""
    scrub = Scrub(home, project)
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob(f"{client}*.jsonl"):
        path.unlink()
    paths = dict.fromkeys(
        call["payload"]["transcript_path"] for call in hooks if call["payload"].get("transcript_path")
    )
    names = {path: f"{client}-{number}.jsonl" for number, path in enumerate(paths, 1)}
    for path, name in names.items():
        lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
        _write(FOLDER / name, [scrub.line(line) for line in lines])
    calls = []
    for call in hooks:
        payload = scrub(call["payload"])
        if call["payload"].get("transcript_path"):
            payload["transcript_path"] = names[call["payload"]["transcript_path"]]
        calls.append({**call, "payload": payload})
    _write(FOLDER / f"{client}.jsonl", calls)


def _write(path: Path, lines: list[Any]) -> None:
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
