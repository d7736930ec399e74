"""Nothing that somebody else wrote steers the terminal, whichever command prints it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from itertools import groupby
from pathlib import Path

import pytest

from commands import MEMLANE, Run, leaves
from memlane import Bank
from memlane.config import SETTINGS, trust, user_state
from memlane.surfaces.cli import app
from terminals import EVIL, IN_A_NAME, IN_TOML, commit, fill, one_by_one, steering

NAME = IN_A_NAME.replace("\n", "")
TEXT = EVIL.replace("\0", "")  # an argument cannot hold NUL
CALLS = (  # in the order that leaves something to show for each
    ["list"], ["list", "--json"], ["stats"], ["search", "zebra", "--explain"], ["search", "zebra", "--json"],
    ["get", "evil"], ["get", "evil", "--raw"], ["get", "evil", "--json"], ["get", f"notes:z{IN_A_NAME}"], ["get", TEXT],
    ["get", TEXT, "--json"], ["links", f"src/{TEXT}.py"], ["links"], ["context", "zebra", "--explain"],
    ["context", "zebra", "--budget", "1", "--explain"], ["context", "--explain"], ["context", "--scope", TEXT],
    ["share", "--private", "evil"], ["share", TEXT], ["share", "private/evil"], ["backup", f"{NAME}.tar.gz"],
    ["restore-backup", f"{NAME}.tar.gz"], ["restore-backup", f"no{IN_A_NAME}"], ["move", "."],
    ["history", "evil", "--show"], ["history"], ["history", "evil"], ["doctor", "--only", "format"],
    ["doctor", "--only", "damage"], ["doctor", "--only", "damage", "--json"],
    ["doctor"], ["doctor", "--json"], ["doctor", "--fix"], ["review"], ["review", "--show"], ["review", "--json"],
    ["review", "--only", "unconfirmed", "--json"],
    ["review", "--only", "prune"], ["review", "--only", "stale", "--all"], ["review", "--only", "similar"],
    ["review", "--only", "drifted", "--all"], ["doctor", "--only", "secrets"],
    ["doctor", "--only", "secrets", "--history"],
    ["export"], ["export", "--format", "markdown"], ["export", "--to", "CLAUDE.md"], ["export", "-o", f"{NAME}.jsonl"],
    ["import", f"{NAME}.jsonl"], ["import", f"{NAME}.jsonl", "--json"], ["import", f"in{IN_A_NAME}", "--dry-run"],
    ["import", f"no{IN_A_NAME}"], ["capture", f"said{IN_A_NAME}", "--dry-run"], ["capture", f"no{IN_A_NAME}"],
    ["distil", f"said{IN_A_NAME}", "--explain"], ["distil", f"said{IN_A_NAME}", "--json"], ["distil", f"no{IN_A_NAME}"],
    ["vault", "list"], ["vault", "search", "zebra"], ["vault", "snapshot"], ["vault", "stats"], ["vault", "candidates"],
    ["vault", "proposals"], ["vault", "history", "aaaaaaaaaaaa"], ["vault", "history", TEXT], ["vault", "add", TEXT],
    ["vault", "update", "aaaaaaaaaaaa", "zebra two"], ["vault", "promote", "aaaaaaaaaaaa"],
    ["vault", "promote", f"vault:b{TEXT}"],
    ["vault", "compact"], ["topics", "search", "zebra"], ["topics", "load", "ops/evil"], ["topics", "list"],
    ["topics", "load", TEXT],
    ["topics", "embed", "zebra"], ["topics", "store", "ops/evil", f"zebra {TEXT}"], ["topics", "reindex"],
    ["records", "list"], ["records", "find", "zebra"], ["records", "index"], ["records", "validate"],
    ["records", "create", f"zebra\n{TEXT}", "--subject", TEXT, "--keyword", TEXT],
    ["records", "retain", "--count", "0"], ["layers", "project", "api"], ["layers", "project", TEXT],
    ["layers", "read", "--project", "api", "--type", "known_issues"], ["layers", "search", "zebra"],
    ["layers", "stale"], ["layers", "prune", "--dry-run"], ["layers", "validate", "projects/api/known_issues"],
    ["layers", "append", "projects/api/known_issues", TEXT], ["layers", "update", "projects/api/known_issues", TEXT],
    ["layers", "create", TEXT, "--project", TEXT, "--type", "known_issues"], ["layers", "get", "--project", "api"],
    ["layers", "get", TEXT], ["layers", "upsert", "projects/api/known_issues", TEXT], ["layers", "delete", TEXT],
    ["sync"], ["sync", "now"], ["sync", "add", TEXT, TEXT], ["sync", "add", "team", f"r{IN_A_NAME}", "--author", TEXT],
    ["sync", "now"], ["sync", "status"], ["sync", "status", "--json"], ["sync", "remove", TEXT],
    ["gate", "show"], ["encoder", "show"], ["encoder", "use", TEXT], ["gate", "allow", TEXT, "--reason", TEXT],
    ["gate", "allow", "ssn@7f3a-9c21b", "--reason", TEXT],
    ["gate", "test", TEXT, "--title", TEXT], ["gate", "test", f"x ghp_{TEXT}"], ["check-config"],
    ["check-config", "--json"], ["--set", f"{TEXT}={TEXT}", "list"], ["--bank", TEXT, "list"], ["--bank", TEXT, "init"],
    ["init"], ["init", "--git"], ["trust", "--show"], ["trust", "--yes"], ["add", f"giraffe {TEXT}", "--title", TEXT],
    ["add", TEXT, "--lane", "vault", "--field", f"{TEXT}={TEXT}"], ["update", "evil", "--tag", TEXT],
    ["put", "evil", f"zebra {TEXT}"], ["put", TEXT, TEXT], ["changes"], ["changes", "--since", TEXT],
    ["append", "evil", f"more {TEXT}"], ["edit", "evil"], ["rename", "evil", TEXT],
    ["merge", "evil", "twin", "--into", "both"],
    ["undo", "--list"], ["undo"], ["redo"], ["recover"], ["undo", TEXT], ["rm", f"notes:z{IN_A_NAME}"],
    ["rm", "evil", TEXT], ["restore"], ["restore", "evil"], ["restore", TEXT], ["forget", "evil", "--dry-run"],
    ["forget", "evil"],
    ["forget", "twin", "--yes"], ["merge-driver", "vault", TEXT, TEXT, TEXT, TEXT], ["doctor", "--reindex"],
    ["connect"], ["connect", "codex", "--print"], ["connect", "codex"], ["connect", TEXT],
    ["connect", "codex", "--remove"],
    ["hook", "claude-code", TEXT], ["hook", "--help"], ["log", "--sessions"], ["log", TEXT], ["judge"],
    ["judge", TEXT, "never"],
    ["mcp", "--http", "--host", TEXT], ["token", "add", TEXT], ["token", "add", "ann", "--scopes", TEXT],
    ["token", "list"], ["token", "code", TEXT],
    ["token", "revoke", TEXT], ["token", "log", "--name", TEXT], ["ui", "--port", TEXT], ["completion", "bash"],
    ["help", TEXT], ["help", "add"], [TEXT], ["list", f"--{TEXT}"], ["list", "--limit", TEXT], [],
)  # fmt: skip


def test_every_command_is_tried() -> None:
    tried = {tuple(call[:count]) for call in CALLS for count in (1, 2)}
    assert [leaf for leaf in leaves(app) if leaf not in tried] == []


def test_no_command_passes_on_what_steers_a_terminal(bank: Bank, tmp_path: Path, home: Path) -> None:
    fill(bank)
    commit(tmp_path)
    (tmp_path / f"in{IN_A_NAME}").mkdir()
    (tmp_path / f"in{IN_A_NAME}" / f"a{IN_A_NAME}.md").write_text(TEXT)
    said = {"type": "assistant", "uuid": EVIL, "sessionId": EVIL, "message": {"role": "assistant", "content": TEXT * 2}}
    (tmp_path / f"said{IN_A_NAME}").write_text(json.dumps(said) + "\n" + TEXT)
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").write_text(f'model = "x" # {"".join(c for c in TEXT if c not in chr(13))}\n')
    wrong = {}
    shown_by: list[str] = []
    for _, calls in groupby(CALLS, lambda call: call[:2] == ["hook", "claude-code"]):  # it ends the process it runs in
        shown_by += one_by_one(list(calls), cwd=tmp_path, typed=b"n\n", env={"EDITOR": "true"})
    for call, shown in zip(CALLS, shown_by, strict=True):
        if found := steering(re.sub(r"\r(\d+ items)?\x1b\[K", "", shown)):  # the count that import shows meanwhile
            wrong[" ".join(call)[:60]] = found
        forged = any(line.startswith("forged") for line in shown.splitlines())
        if forged or "Traceback" in shown:
            wrong[" ".join(call)[:60]] = {"forged" if forged else shown[-400:]}
    assert wrong == {}


@pytest.mark.parametrize("trusted", [True, False])
def test_no_setting_passes_it_on(bank: Bank, tmp_path: Path, trusted: bool) -> None:
    lines = {setting.key: f'{setting.key} = "{IN_TOML}"' for setting in SETTINGS}
    lines |= {f"{key} list": f'{key} = ["{IN_TOML}"]' for key in ("vault.scopes", "mcp.toolsets", "profile.scopes")}
    lines |= {
        "a table": f'["{IN_TOML}"]\na = 1',
        "a key": f'memory."{IN_TOML}" = 1',
        "an encoder": f'search.encoder = "onnx:{IN_TOML}"',
        "a finding": f'[[allow]]\nfingerprint = "{IN_TOML}"\nwhy = "{IN_TOML}"\n"{IN_TOML}" = 1',
        "no TOML": f"# {TEXT}",
        "a value": f"x = {TEXT}",
    }
    file, wrong = tmp_path / "memlane.toml", {}
    calls = (["check-config", "--json"], ["doctor"], ["trust"], ["init"], ["add", "a", "--lane", "vault"])
    for name, line in lines.items():
        file.write_text(f"memory.enabled = true\n{line}\n", newline="")
        if trusted:
            trust.record(user_state(), file)
        for call, shown in zip(calls, one_by_one(calls, cwd=tmp_path, typed=b"n\n"), strict=True):
            if found := steering(shown):
                wrong[name, *call] = found
            if "Traceback" in shown:
                wrong[name, *call] = {shown[-300:]}
    assert wrong == {}


def test_data_in_a_pipe_keeps_its_bytes(bank: Bank, tmp_path: Path) -> None:
    data = f"---\ntitle: a\n---\nzebra {EVIL}".encode() + b"\xff"
    (bank.root / "raw.md").write_bytes(data.removesuffix(b"\xff"))
    result = subprocess.run([MEMLANE, "get", "raw", "--raw"], cwd=tmp_path, capture_output=True, check=True)
    assert result.stdout == data.removesuffix(b"\xff")
    result = subprocess.run([MEMLANE, "get", "raw"], cwd=tmp_path, capture_output=True, check=True)
    assert result.stdout.decode() == f"zebra {EVIL}\n"


def test_talk_is_filtered_in_a_pipe_too(bank: Bank, tmp_path: Path) -> None:
    """Clients write what `memlane mcp` says on stderr into their logs, which somebody reads on a terminal."""
    result = subprocess.run([MEMLANE, "get", "no \x9b5m\x1b[5m"], cwd=tmp_path, capture_output=True, check=False)
    assert steering(result.stderr.decode()) == set()
    assert b"\\u009b5m" in result.stderr


def test_json_escapes_what_is_invisible_and_means_the_same(run: Run, bank: Bank) -> None:
    text = "a\x7f\x9b5m\u202eb\u200bc\U000e0041 ❤️ é 👩‍👩‍👧\n"
    (bank.root / "odd.md").write_text(text)
    result = run("get", "odd", "--json")
    assert result.json["text"] == text
    assert "\\u007f\\u009b5m\\u202eb\\u200bc\\udb40\\udc41 ❤️ é 👩‍👩‍👧" in result.out


def test_output_works_with_a_stream_of_ascii(bank: Bank, tmp_path: Path) -> None:
    """click puts a stream of its own in the place of one that has only ASCII, which the filter must survive."""
    (bank.root / "odd.md").write_text("# é \x9b5m")
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    result = subprocess.run([MEMLANE, "list"], cwd=tmp_path, env=env, capture_output=True, check=True)
    assert "é" in result.stdout.decode()
    result = subprocess.run([MEMLANE, "get", "\x9b5m"], cwd=tmp_path, env=env, capture_output=True, check=False)
    assert b"\xc2\x9b" not in result.stderr


def test_half_a_character_in_an_id_ends_no_import(run: Run, bank: Bank, tmp_path: Path) -> None:
    line = {"id": "notes:a\ud800", "lane": "notes", "text": "zebra", "title": "a\ud800"}
    (tmp_path / "in.jsonl").write_text(json.dumps(line) + "\n")
    command = [MEMLANE, "import", "in.jsonl", "--json"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert b"Traceback" not in result.stderr
    assert [item["status"] for item in json.loads(result.stdout)["items"]] == ["refused"]
