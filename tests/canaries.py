"""Secrets that must not get out of a bank, nor into one: where they are put, and how a byte of them is noticed."""

from __future__ import annotations

import json
import os
import random
import re
import string
from pathlib import Path

from memlane import Bank

TOKEN = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"
_BODY = "".join(random.Random(5).choices(string.ascii_letters + string.digits, k=64 * 24))
PEM = "\n".join(
    ("-----BEGIN " + "PRIVATE KEY-----", *(_BODY[at : at + 64] for at in range(0, len(_BODY), 64)),
     "-----END " + "PRIVATE KEY-----")
)  # fmt: skip
PASSWORD = "Kx9#mQ2" + "vLp7zW"
_PIECE = 8  # characters in a row of which nobody would say that they are chance
_SECRETS = (TOKEN.removeprefix("ghp_"), _BODY, PASSWORD)
_PIECES = {secret[at : at + _PIECE] for secret in _SECRETS for at in range(len(secret) - _PIECE + 1)}
_RUNS = re.compile(f"[{re.escape(''.join(set().union(*_SECRETS)))}]{{{_PIECE},}}")  # nothing else can hold a piece


def leaked(shown: str | bytes) -> str:
    """A piece of a canary in what somebody is shown; "" when there is none."""
    text = shown.decode(errors="replace") if isinstance(shown, bytes) else shown
    windows = (run[at : at + _PIECE] for run in _RUNS.findall(text) for at in range(len(run) - _PIECE + 1))
    return next((window for window in windows if window in _PIECES), "")


def on_disk(*folders: Path) -> list[str]:
    """The files below these folders that hold a piece of a canary, or are called after one."""
    found = []
    for folder in folders:
        for path in folder.rglob("*"):
            if leaked(path.name) or (path.is_file() and not path.is_symlink() and leaked(path.read_bytes())):
                found.append(os.fspath(path))
    return found


def fill(bank: Bank) -> None:
    """Put canaries into every lane as a pull would: past the gate, and where what shows memory cuts texts."""
    notes = {
        "labels": f"---\ntitle: zebra {TOKEN}\ntype: fact\ntags: [zebra, {TOKEN}, pinned]\nscope: area:{TOKEN}\n"
        f"password: {PASSWORD}\n---\nzebra labels\n",
        "titled": f"The zebra crossing of the town hall in the old quarter {TOKEN}\n\nMore.\n",
        "linked": f"zebra [[src/auth.py]] {'plain words ' * 6}and {TOKEN}\n\n{'other words ' * 30}\n",
        "before": f"zebra {TOKEN} {'plain words ' * 6}and [[src/auth.py]] {'plain words ' * 20}\n",
        "key": f"# zebra\n\nThe key:\n\n{PEM}\n\n## More\n\nzebra\n",
        "twin": f"# zebra\n\nThe key:\n\n{PEM}\n\n## More\n\nzebra too\n",
        "plain": f"zebra password: {PASSWORD}\n",
        f"zebra-{TOKEN}": "zebra in a name\n",
    }
    for name, text in notes.items():
        (bank.root / f"{name}.md").write_text(text)
    record = {
        "id": "aaaaaaaaaaaa", "version": 1, "created_at": "2024-01-01T00:00:00Z", "updated_at": None,
        "tier": "register", "topic_id": "zebra_key", "source": "manual", "scope": "shared", "category": "other",
        "tags": ["zebra"], "deleted_at": None, "text": f"zebra {TOKEN} of the vault",
    }  # fmt: skip
    lines = [
        record,
        {**record, "version": 2, "text": f"zebra {TOKEN} of the vault, version two"},
        {**record, "id": "bbbbbbbbbbbb", "tier": "canon", "topic_id": None, "text": f"zebra\n{PEM}"[:1100]},
        {**record, "id": "cccccccccccc", "tier": "canon", "topic_id": None, "text": f"zebra {TOKEN} of the vault too"},
    ]
    (bank.root / "vault.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    topics = bank.root / "topics" / "ops"
    topics.mkdir(parents=True)
    entry = f"## 2024-01-02: zebra {TOKEN}\n**Problem:** zebra {TOKEN}\n**Solution:** password: {PASSWORD}\n---\n"
    (topics / "zebra.md").write_text(entry)
    layer = bank.root / "layers" / "projects" / "api"
    layer.mkdir(parents=True)
    (layer / "known_issues.md").write_text(f"<!-- Last Updated: 2024-01-01 -->\n\n### zebra {TOKEN}\n\n{PEM}\n")
    stored = bank.records.create("zebra spoke\nof it", subject="zebra", keywords=["zebra"])
    path = bank.root / "records" / f"{stored.id}.md"
    path.write_text(path.read_text().replace("spoke", f"said {TOKEN}"))
