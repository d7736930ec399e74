"""Learning from past sessions: those of this project alone, with a yes, and each once."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from commands import CANARY, Run
from conftest import tree
from memlane import Bank, config
from memlane.capture import clients
from memlane.care import backfill
from memlane.history.undo import undo
from repositories import git
from terminals import on_terminal

RULE = "No, always use {} instead of npm in this repository."
LESSON = "The build fails because esbuild does not support top-level await in CommonJS output; the format must be esm."
DECISION = "We decided to keep the invoices until March."
AT = "2025-01-15T10:29:00Z"


def claude(home: Path, cwd: Path, name: str = "s1", *, tool: str = "pnpm", folder: Path | None = None) -> Path:
    """A session of Claude Code in a folder."""
    common = {"cwd": str(cwd), "sessionId": name, "timestamp": AT, "isSidechain": False}
    lines: list[dict[str, Any]] = [
        {"type": "queue-operation", "sessionId": name, "content": "x"},
        {"type": "user", "uuid": "u1", **common, "message": {"role": "user", "content": RULE.format(tool)}},
        {
            "type": "assistant", "uuid": "u2", **common,
            "message": {"id": "m", "role": "assistant", "content": [{"type": "text", "text": LESSON}]},
        },
    ]  # fmt: skip
    place = home / "projects" / re.sub(r"[^a-zA-Z0-9]", "-", str(folder or cwd))
    return written(place / f"{name}.jsonl", lines)


def codex(home: Path, cwd: Path, **meta: Any) -> Path:
    lines = [
        {"type": "session_meta", "timestamp": AT, "payload": {"id": "c1", "cwd": str(cwd), **meta}},
        {
            "type": "response_item", "timestamp": AT,
            "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": DECISION}]},
        },
    ]  # fmt: skip
    return written(home / "sessions/2025/01/15" / f"rollout-{len(str(cwd))}-{len(meta)}.jsonl", lines)


def gemini(home: Path, project: str, head: dict[str, Any]) -> Path:
    said = {"id": "a", "timestamp": AT, "type": "user", "content": [{"text": RULE.format("yarn")}]}
    return written(
        home / "tmp" / project / "chats/session-1.jsonl", [{"sessionId": "g1", "kind": "main", **head}, said]
    )


def opencode(path: Path, *sessions: tuple[str, Path, str | None]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE session (id TEXT, directory TEXT, parent_id TEXT, time_updated INTEGER)")
        db.execute("CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT)")
        db.execute("CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT)")
        for id, folder, parent in sessions:
            db.execute("INSERT INTO session VALUES (?, ?, ?, 1736937000000)", (id, str(folder), parent))
            info = {"role": "user", "time": {"created": 1736937000000}}
            db.execute("INSERT INTO message VALUES (?, ?, 1, ?)", (f"m{id}", id, json.dumps(info)))
            part = {"type": "text", "text": DECISION}
            db.execute("INSERT INTO part VALUES (?, ?, ?, ?)", (f"p{id}", f"m{id}", id, json.dumps(part)))
        db.commit()
    return path


def written(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def found(bank: Bank) -> list[tuple[str, str]]:
    return [(one.client, one.session or one.path) for one in clients.past(bank.config)]


def learned(bank: Bank) -> list[str]:
    return sorted(memory.text.strip() for memory in bank.list(tags=["unconfirmed"]))


# -- whose a session is


def test_sessions_of_this_project_are_found_and_no_others(bank: Bank, home: Path, tmp_path: Path) -> None:
    """In its folder or below it; not in a bank of its own, nor in a folder whose name looks alike."""
    for folder in ("sub/deep", "inner", "other-bank"):
        (tmp_path / folder).mkdir(parents=True)
    Bank.init(tmp_path / "other-bank").close()
    base = home / ".claude"
    ours = [claude(base, tmp_path), claude(base, tmp_path / "sub/deep", "s2"), claude(base, tmp_path / "gone", "s3")]
    claude(base, tmp_path / "other-bank", "s4")
    claude(base, tmp_path.with_name(f"{tmp_path.name}-x"), "s5")
    claude(base, tmp_path / "../elsewhere", "s6", folder=tmp_path)
    assert sorted(found(bank)) == sorted(("claude-code", str(path)) for path in ours)


def test_each_clients_sessions_are_found(bank: Bank, home: Path, tmp_path: Path) -> None:
    hashed = sha256(str(tmp_path).encode()).hexdigest()
    expected = [
        ("claude-code", str(claude(home / ".claude", tmp_path))),
        ("codex", str(codex(home / ".codex", tmp_path))),
        ("gemini", str(gemini(home / ".gemini", hashed, {"projectHash": hashed}))),
        ("gemini", str(gemini(home / ".gemini", "app", {"projectHash": "0" * 64}))),
        ("opencode", "ses_1"),
    ]
    (home / ".gemini/tmp/app/.project_root").write_text(str(tmp_path))
    others = tmp_path.parent
    opencode(
        home / ".local/share/opencode/opencode.db",
        ("ses_1", tmp_path, None), ("ses_2", others, None), ("ses_3", tmp_path, "ses_1"),
    )  # fmt: skip
    codex(home / ".codex", others)
    codex(home / ".codex", tmp_path, source={"subagent": "review"})
    gemini(home / ".gemini", "theirs", {"projectHash": "1" * 64})
    assert sorted(found(bank)) == sorted(expected)


def test_an_older_opencode_kept_a_file_for_each_part(bank: Bank, home: Path, tmp_path: Path) -> None:
    storage = home / ".local/share/opencode/storage"
    for id, info in {"ses_1": {}, "ses_2": {"directory": "/elsewhere"}, "ses_3": {"parentID": "ses_1"}}.items():
        info = {"id": id, "directory": str(tmp_path), **info}
        written(storage / f"session/p1/{id}.json", [info])
        written(storage / f"message/{id}/m{id}.json", [{"role": "user", "time": {"created": 1736937000000}}])
        written(storage / f"part/m{id}/p{id}.json", [{"type": "text", "text": DECISION}])
    assert found(bank) == [("opencode", "ses_1")]
    backfill.learn(bank, backfill.unread(bank), lambda _: None)
    assert [(memory.text.strip(), memory.fields["session"]) for memory in bank.list()] == [(DECISION, "ses_1")]
    assert backfill.unread(bank) == []


def test_the_clients_own_variables_say_where_they_are(
    bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    claude(tmp_path / "CLAUDE_CONFIG_DIR", tmp_path)
    codex(tmp_path / "CODEX_HOME", tmp_path)
    hashed = sha256(str(tmp_path).encode()).hexdigest()
    gemini(tmp_path / "GEMINI_CLI_HOME/.gemini", "a", {"projectHash": hashed})
    opencode(tmp_path / "XDG_DATA_HOME/opencode/opencode.db", ("ses_1", tmp_path, None))
    assert sorted(client for client, _ in found(bank)) == ["claude-code", "codex", "gemini", "opencode"]


def test_a_linked_worktree_that_shares_the_bank_has_its_sessions_there(bank: Bank, home: Path, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-qm", "one", "--allow-empty")
    beside = tmp_path.with_name(f"{tmp_path.name}-feature")
    git(tmp_path, "worktree", "add", "-q", str(beside))
    path = claude(home / ".claude", beside)
    assert found(bank) == [("claude-code", str(path))]


def test_links_pipes_strangers_and_huge_files_are_left_alone(
    bank: Bank, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = claude(tmp_path / "elsewhere", tmp_path)
    place = claude(home / ".claude", tmp_path).parent
    (place / "s1.jsonl").unlink()
    (place / "linked.jsonl").symlink_to(elsewhere)
    os.mkfifo(place / "pipe.jsonl")
    (place / "empty.jsonl").touch()
    (place / "broken.jsonl").write_bytes(b"\xff\0{\n" * 10)
    (place / "endless.jsonl").write_bytes(b"x" * 1_000_000)
    (place.parent / f"{place.name}-linked").symlink_to(elsewhere.parent)
    (home / ".local/share/opencode").mkdir(parents=True)
    (home / ".local/share/opencode/opencode.db").write_bytes(b"no database" * 100)
    assert found(bank) == []
    claude(home / ".claude", tmp_path)
    monkeypatch.setattr(clients, "LARGEST", 100)
    assert found(bank) == []
    monkeypatch.undo()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert [one for one in clients.past(bank.config) if one] == []


def test_the_users_own_bank_has_no_sessions(run: Run, home: Path, tmp_path: Path) -> None:
    claude(home / ".claude", tmp_path)
    assert run("init", "--user", "--backfill").code == 2
    assert "past sessions" not in run("init", "--user").err


# -- with a yes


def test_nothing_is_read_without_a_yes(run: Run, home: Path, tmp_path: Path) -> None:
    claude(home / ".claude", tmp_path)
    done = run("init")
    assert "past sessions of this project: 1 of Claude Code (1 KB)" in done.err
    assert "`memlane init --backfill` learns from them" in done.err
    assert run("init", "--json").json["past"] == [
        {"client": "claude-code", "sessions": 1, "bytes": backfill.unread(Bank.open(tmp_path))[0].size}
    ]
    refused = on_terminal("init", cwd=tmp_path, typed=b"n\n")
    assert "Learn from them" in refused
    assert learned(Bank.open(tmp_path)) == []
    assert list((tmp_path / ".memories").rglob("*.json*")) == []


def test_a_yes_on_a_terminal_is_enough(run: Run, home: Path, tmp_path: Path) -> None:
    claude(home / ".claude", tmp_path)
    shown = on_terminal("init", cwd=tmp_path, typed=b"y\n")
    assert "next: `memlane connect`" in shown
    assert learned(Bank.open(tmp_path)) == [RULE.format("pnpm"), LESSON]


def test_what_was_learned_is_shown_and_private_and_can_be_taken_back(run: Run, home: Path, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    opencode(home / ".local/share/opencode/opencode.db", ("ses_1", tmp_path, None))
    claude(home / ".claude", tmp_path)
    done = run("init", "--backfill")
    bank = Bank.open(tmp_path)
    notes = {memory.text.strip(): memory for memory in bank.list(tags=["unconfirmed"])}
    assert sorted(notes) == [RULE.format("pnpm"), LESSON, DECISION]
    rows = [line.split("\t") for line in done.out.splitlines()]
    assert rows[0] == [str(bank.root)]
    assert sorted(row[:2] for row in rows[1:]) == sorted([memory.id, memory.tags[0]] for memory in notes.values())
    assert "3 learned from 2 sessions" in done.err
    assert f"{bank.root}/private/distilled" in done.err
    assert "memlane review --only unconfirmed" in done.err
    assert "next: `memlane connect` puts memlane into your client's configuration" in done.err
    assert [memory.fields["session"] for memory in notes.values() if "March" in memory.text] == ["ses_1"]
    assert "distilled" not in git(tmp_path, "status", "--porcelain", "--untracked-files=all")
    assert list((config.user_state() / "scratch").iterdir()) == []
    undo(bank)
    assert learned(bank) == []


def test_a_second_run_reads_only_what_is_new(run: Run, home: Path, tmp_path: Path) -> None:
    path = claude(home / ".claude", tmp_path)
    opencode(home / ".local/share/opencode/opencode.db", ("ses_1", tmp_path, None))
    assert run("init", "--backfill", "--json").json["learned"]["read"] == 2
    bank = Bank.open(tmp_path)
    before = tree(bank.root / "private")
    assert "no past sessions" in run("init", "--backfill").err
    path.write_text(
        path.read_text() + json.dumps({**json.loads(path.read_text().splitlines()[1]), "uuid": "u3"}) + "\n"
    )
    os.utime(path, (2e9, 2e9))
    again = run("init", "--backfill", "--json").json
    assert [row["client"] for row in again["past"]] == ["claude-code"]
    assert again["past"][0]["bytes"] < path.stat().st_size / 2
    assert again["learned"]["stored"] == []
    assert tree(bank.root / "private") == before


def test_an_interruption_loses_nothing_and_the_next_run_goes_on(bank: Bank, home: Path, tmp_path: Path) -> None:
    for number, tool in enumerate(("pnpm", "yarn", "bun")):
        path = claude(home / ".claude", tmp_path, f"s{number}", tool=tool)
        os.utime(path, (1e9 + number, 1e9 + number))
    past = backfill.unread(bank)
    assert [os.path.basename(one.path) for one in past] == ["s0.jsonl", "s1.jsonl", "s2.jsonl"]  # the oldest first

    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        backfill.learn(bank, past, stop)
    assert learned(bank) == [RULE.format("pnpm"), LESSON]
    rest = backfill.unread(bank)
    assert [os.path.basename(one.path) for one in rest] == ["s1.jsonl", "s2.jsonl"]
    done = backfill.learn(bank, past, lambda _: None)  # the first one again, too
    assert (done.read, done.failed) == (3, 0)
    assert len(learned(bank)) == len(set(learned(bank)))


def test_one_that_cannot_be_read_does_not_stop_the_others(bank: Bank, home: Path, tmp_path: Path) -> None:
    gone = claude(home / ".claude", tmp_path, "s1")
    claude(home / ".claude", tmp_path, "s2")
    past = backfill.unread(bank)
    gone.unlink()
    done = backfill.learn(bank, past, lambda _: None)
    assert (done.read, done.failed, len(done.stored.memories)) == (1, 1, 2)


def test_no_secret_is_learned(run: Run, home: Path, tmp_path: Path) -> None:
    claude(home / ".claude", tmp_path, tool=f"the token {CANARY}")
    done = run("init", "--backfill")
    written = b"".join(tree(tmp_path).values()) + b"".join(tree(home / ".local").values())
    assert CANARY.encode() not in written
    assert CANARY not in done.out + done.err


def test_a_hook_goes_on_where_the_backfill_stopped(bank: Bank, home: Path, tmp_path: Path) -> None:
    from memlane.care.distilled import Stored, store_new

    path = claude(home / ".claude", tmp_path)
    backfill.learn(bank, backfill.unread(bank), lambda _: None)
    assert store_new(bank, str(path), 10) == Stored()


@pytest.mark.parametrize("make", [codex, claude])
def test_a_folder_of_transcripts_can_be_captured(
    run: Run, bank: Bank, home: Path, tmp_path: Path, make: Callable[..., Path]
) -> None:
    path = make(home, tmp_path)
    assert run("capture", path.parent, "--dry-run").code == 0
