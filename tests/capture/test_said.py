"""A candidate knows when it was said, and on which branch of git."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memlane.capture.distil.candidates import distil

LESSON = "The importer fails because SQLite does not support DROP CONSTRAINT; the table must be rebuilt."


def transcript(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def claude(role: str, text: str, at: str, branch: str) -> dict[str, Any]:
    message = {"role": role, "content": text}
    return {"type": role, "sessionId": "s", "uuid": at, "timestamp": at, "gitBranch": branch, "message": message}


def test_the_time_and_the_branch_are_those_of_the_message(tmp_path: Path) -> None:
    talk = transcript(
        tmp_path / "talk.jsonl",
        claude("user", "Why does it fail?", "2026-03-04T10:00:00Z", "main"),
        claude("assistant", LESSON, "2026-03-04T10:05:00Z", "drop"),
        claude("user", "Good morning.", "2026-03-07T08:00:00Z", "other"),
    )
    [one] = distil(talk)
    assert (one.text, one.date, one.branch) == (LESSON, "2026-03-04T10:05:00Z", "drop")
    assert (one.to_dict()["date"], one.to_dict()["branch"]) == ("2026-03-04", "drop")


def test_codex_names_the_branch_once(tmp_path: Path) -> None:
    def said(role: str, text: str) -> dict[str, Any]:
        message = {"type": "message", "role": role, "content": [{"type": "output_text", "text": text}]}
        return {"timestamp": "2026-03-04T10:05:00Z", "type": "response_item", "payload": message}

    meta = {"id": "s", "cwd": "/p", "git": {"branch": "drop", "commit_hash": "0" * 40}}
    talk = transcript(
        tmp_path / "talk.jsonl",
        {"timestamp": "2026-03-04T10:00:00Z", "type": "session_meta", "payload": meta},
        said("user", "Why does it fail?"),
        said("assistant", LESSON),
    )
    assert [(one.text, one.branch) for one in distil(talk)] == [(LESSON, "drop")]
