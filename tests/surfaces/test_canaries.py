"""No surface hands out a byte of a secret that is in a file, and none puts one there."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.types import PromptReference, ResourceTemplateReference

from canaries import PASSWORD, PEM, TOKEN, fill, leaked, on_disk
from commands import MEMLANE, Run, leaves
from mcp_calls import with_client
from memlane import Bank
from memlane.surfaces import hook
from memlane.surfaces.cli import app
from memlane.surfaces.mcp import toolsets
from samples import transcript
from terminals import on_terminal

READS = (
    ["list"], ["list", "--json"], ["list", "-n", "3"], ["stats"], ["stats", "--json"], ["search", "zebra", "-n", "50"],
    ["search", "zebra", "-n", "50", "--json"], ["search", "zebra", "--explain"], ["search", "key", "--json"],
    ["get", "labels"], ["get", "labels", "--raw"], ["get", "labels", "--json"], ["get", "key"], ["get", "key", "--raw"],
    ["get", "key", "--json"], ["get", f"zebra-{TOKEN}"], ["get", f"zebra-{TOKEN}", "--json"],
    ["get", "vault:aaaaaaaaaaaa"],
    ["get", "zebra", "--raw"], ["links"], ["links", "src/auth.py"], ["links", "src/auth.py", "--json"],
    ["context"], ["context", "zebra"], ["context", "zebra", "--budget", "100000", "--json"],
    ["context", "zebra", "--budget", "120", "--explain"], ["context", "the key", "--budget", "300"],
    ["context", "--json"], ["history"], ["history", "--json"], ["history", "labels"], ["history", "labels", "--json"],
    ["history", "labels", "--show", "HEAD"], ["history", "vault:aaaaaaaaaaaa"],
    ["history", "vault:aaaaaaaaaaaa", "--json"], ["history", "vault:aaaaaaaaaaaa", "--show", "1"],
    ["log"], ["log", "--json"], ["judge"], ["judge", "--json"],
    ["doctor"], ["doctor", "--json"], ["doctor", "--only", "secrets"], ["doctor", "--only", "secrets", "--json"],
    ["doctor", "--only", "secrets", "--history"], ["doctor", "--only", "format"], ["doctor", "--only", "damage"],
    ["review"], ["review", "--show"], ["review", "--json"], ["review", "--only", "similar", "--show"],
    ["export"], ["export", "--json"], ["export", "--format", "markdown"], ["export", "--tag", "zebra"],
    ["vault", "list"], ["vault", "list", "--json"], ["vault", "search", "zebra"], ["vault", "snapshot"],
    ["vault", "stats"], ["vault", "candidates"], ["vault", "proposals"], ["vault", "history", "aaaaaaaaaaaa"],
    ["topics", "search", "zebra"], ["topics", "load", "ops/zebra"], ["topics", "list"], ["topics", "embed", "zebra"],
    ["records", "list"], ["records", "find", "zebra"], ["records", "index"], ["records", "validate"],
    ["layers", "project", "api"], ["layers", "read", "--project", "api", "--type", "known_issues"],
    ["layers", "search", "zebra"], ["layers", "search", PEM.splitlines()[4][:5]], ["layers", "search", "-A", "."],
    ["layers", "stale"], ["layers", "validate", "projects/api/known_issues"], ["layers", "get", "--project", "api"],
    ["layers", "prune", "--dry-run"], ["check-config"], ["trust", "--memories", "--show"], ["restore"],
    ["undo", "--list"], ["add", "zebra of the vault is here"], ["gate", "test", f"zebra {TOKEN} of the vault"],
    ["vault", "add", f"zebra {TOKEN} of the vault"], ["vault", "add", "zebra of the vault"],
    ["forget", "labels", "--dry-run"], ["append", "labels", "zebra"], ["append", "vault:aaaaaaaaaaaa", "zebra"],
    ["append", "topics:ops/zebra/2024-01-02", "zebra"], ["edit", "key", "--old", "More", "--new", "Less", "--json"],
    ["update", "labels", "--tag", "lion", "--json"], ["rm", "twin", "--json"], ["restore", "twin", "--json"],
    ["list", "--as-of", "HEAD", "--json"], ["get", "labels", "--as-of", "HEAD"],
    ["topics", "reindex"], ["records", "retain", "--count", "0"], ["vault", "compact"],
    ["search", "zebra", "--as-of", "HEAD", "--json"], ["rm", f"zebra-{TOKEN}"], ["restore"], [],
    ["recover"], ["undo", "--list", "--json"], ["rm", "labels"], ["undo"], ["redo"], ["undo"],
    ["changes"], ["changes", "--json"], ["put", "key", "Less of the zebra."],
    ["distil", "labels.jsonl"],
    ["share"], ["backup", "kept"], ["restore-backup", "kept"], ["move", "labels", "notes"],
)  # fmt: skip


@pytest.fixture
def full(bank: Bank, tmp_path: Path) -> Bank:
    fill(bank)
    identity = ["-c", "user.name=Ann", "-c", f"user.email={TOKEN}@example.org"]
    for command in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-q", "-m", f"zebra {TOKEN}"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True, capture_output=True)
    return bank


def test_no_command_prints_a_secret_into_a_pipe(run: Run, full: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=full.root, capture_output=True, text=True).stdout.strip()
    wrong = {}
    for call in READS:
        result = run(*(head if word == "HEAD" else word for word in call))
        if found := leaked(result.out + result.err):
            wrong[" ".join(call)] = found
        assert "Traceback" not in result.err
    assert wrong == {}


def test_every_command_is_tried_one_way_or_the_other() -> None:
    tried = {tuple(call[:count]) for call in (*READS, *_writes()) for count in (1, 2)}
    elsewhere = {("import",), ("capture",), ("hook",), ("completion",), ("merge-driver",), ("init",), ("connect",)}
    elsewhere |= {("mcp",), ("ui",), ("help",), ("gate", "show"), ("encoder", "show")}  # the last four read no memory
    elsewhere |= {("token", name) for name in ("add", "list", "revoke", "log", "code")}  # nor do these
    elsewhere |= {("sync", name) for name in ("add", "now", "status", "remove")}  # tests/care/test_sync_hostile.py
    assert [leaf for leaf in leaves(app) if leaf not in tried | elsewhere] == []


def test_nothing_is_redacted_that_is_no_secret(run: Run, full: Bank) -> None:
    """What is beside a secret is still found and shown."""
    assert "zebra labels" in run("get", "labels").out
    assert {"notes:labels", "notes:key", "vault:aaaaaaaaaaaa"} <= {
        hit["id"] for hit in run("search", "zebra", "-n", "50", "--json").json
    }


def test_a_person_at_a_terminal_sees_the_file(full: Bank, tmp_path: Path) -> None:
    shown = on_terminal("get", "plain", cwd=tmp_path)
    assert (PASSWORD in shown, "it holds a secret or personal data" in shown) == (True, True)
    assert PASSWORD in on_terminal("get", "plain", "--raw", cwd=tmp_path)
    assert not leaked(on_terminal("get", "plain", "--json", cwd=tmp_path))
    assert not leaked(on_terminal("search", "zebra", cwd=tmp_path))


def test_an_export_holds_no_secret(run: Run, full: Bank, tmp_path: Path) -> None:
    for form, name in (("jsonl", "out.jsonl"), ("markdown", "out.md")):
        assert run("export", "--format", form, "-o", name).code == 0
    assert run("export", "--to", "CLAUDE.md").code == 0
    files = [tmp_path / name for name in ("out.jsonl", "out.md", "CLAUDE.md")]
    assert [leaked(path.read_bytes()) for path in files] == ["", "", ""]
    assert all(json.loads(line) for line in files[0].read_text().splitlines())


def test_a_shell_is_offered_no_secret(full: Bank, tmp_path: Path) -> None:
    for words, at in (
        ("memlane get z", "2"),
        ("memlane list --tag gh", "3"),
        ("memlane rm ", "2"),
        ("memlane restore ", "2"),
    ):
        env = {**os.environ, "_MEMLANE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": at}
        result = subprocess.run([MEMLANE], cwd=tmp_path, env=env, capture_output=True, check=True)
        assert leaked(result.stdout + result.stderr) == ""


@pytest.mark.parametrize("client", ["claude-code", "codex", "gemini", "opencode"])
def test_no_hook_puts_a_secret_before_a_model(
    full: Bank,
    tmp_path: Path,
    home: Path,
    client: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    capsys.readouterr()
    for event, more in (("session-start", {}), ("prompt", {"prompt": "what about the zebra and its key?"})):
        payload = json.dumps({"cwd": str(tmp_path), "session_id": f"s {event}", **more})
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(payload.encode())))
        hook.main([client, event])
        assert "zebra" in (shown := capsys.readouterr().out)
        assert leaked(shown) == ""


# -- MCP


ASKED = {
    "recall": [{"query": "zebra", "budget": budget} for budget in (60, 300, 100_000)],
    "read_memory": [
        *({"filename": name} for name in ("labels", "key", f"zebra-{TOKEN}", "vault:bbbbbbbbbbbb", "topics:ops/zebra")),
        *({"filename": "key", "offset": at, "limit": 40} for at in range(0, 1700, 40)),
        *({"filename": "labels", "offset": at, "limit": 7} for at in range(0, 200, 7)),
        {"filename": "key", "section": "zebra"},
    ],
    "search_memories": [{"query": "zebra", "limit": 100}, {"query": "key", "limit": 100}],
    "search_linked_memories": [{"query": "zebra", "target_document": "src/auth.py", "limit": 100}],
    "get_memory_stats": [{}],
    "suggest_memory_merges": [{"threshold": 0.1, "filter_type": None}],
    "list_memories": [{"limit": 100}, {"limit": 2}, {"deleted": True}],
    "remember": [{"text": "zebra of the vault", "tier": "canon"}, {"text": "The zebra crossing of the town hall"}],
    "edit_memory": [
        {"id": "key", "old": "More", "new": "Less"},
        {"id": "labels", "old": f"[REDACTED:{'x'}]", "new": ""},
    ],
    "append_memory": [{"filename": "labels", "content": "more"}],
    "update_memory": [{"filename": "vault:aaaaaaaaaaaa", "content": "zebra of the vault, three"}],
    "vault_recall_memories": [{"limit": 100}],
    "vault_search_memories": [{"query": "zebra"}],
    "vault_find_consolidation_candidates": [{"floor": 0.0}],
    "vault_propose_deletions": [{}],
    "vault_build_snapshot": [{}],
    "vault_stats": [{}],
    "vault_update_memory": [{"id": "cccccccccccc", "tags": ["x"]}],
    "topics_search": [{"query": "zebra"}],
    "topics_load": [{"topic": "ops/zebra"}],
    "topics_list": [{}],
    "topics_embed": [{"query": "zebra", "max_tokens": tokens} for tokens in (20, 1000)],
    "layers_read": [{"layer": "shared-project", "file_type": "known_issues", "project_name": "api"}],
    "layers_get_shared_project_memory": [{"project_name": "api"}],
    "layers_get_by_project": [{"project_name": "api"}],
    "layers_validate": [{"id": "shared-project/api/known_issues"}],
    "layers_get_staleness_report": [{}],
    "layers_search": [{"pattern": "zebra"}, {"pattern": "[0-9]"}],
    "layers_prune": [{}],
    "records_get": [],
    "records_list": [{}],
    "records_find": [{"query": "zebra"}],
    "records_index": [{}],
    "records_validate": [{}],
}


def test_no_tool_answers_with_a_secret(full: Bank, tmp_path: Path) -> None:
    wrong: dict[str, str] = {}

    async def ask(client: Client) -> None:
        for name, given in ASKED.items():
            for arguments in given:
                result = await client.call_tool(name, arguments)
                if found := leaked(result.model_dump_json()):
                    wrong[f"{name} {arguments}"] = found
                assert result.is_error is not True or "failed inside" not in result.model_dump_json()

    with_client(tmp_path, ask, more=toolsets.NAMES)
    assert wrong == {}


def test_no_resource_prompt_or_completion_holds_a_secret(full: Bank, tmp_path: Path) -> None:
    async def ask(client: Client) -> None:
        listed = await client.list_resources()
        assert leaked(listed.model_dump_json()) == ""
        assert len(listed.resources) > 10
        for resource in listed.resources:
            with suppress(MCPError):  # the one whose name is a secret has no address
                read = await client.read_resource(resource.uri)
                assert leaked(read.model_dump_json()) == ""
        for name, arguments in (("recall", {"topic": "zebra"}), ("remember", {"what": "zebra"})):
            assert leaked((await client.get_prompt(name, arguments)).model_dump_json()) == ""
        tags = await client.complete(PromptReference(name="recall"), {"name": "topic", "value": ""})
        template = ResourceTemplateReference(uri="memory://memory/{id}")
        ids = await client.complete(template, {"name": "id", "value": "notes"})
        assert leaked(tags.model_dump_json() + ids.model_dump_json()) == ""

    with_client(tmp_path, ask, more=toolsets.NAMES)


# -- the way in


def test_every_tool_that_writes_is_tried_with_a_secret_in_each_of_its_texts(
    bank: Bank, tmp_path: Path, home: Path
) -> None:
    """Also with a mark that would let it pass: not a byte of it reaches the disk, nor comes back."""
    bank.add("Deploys go out on Tuesdays.", title="Deploy day")
    marked = f"{TOKEN} # memlane:allow because I say so"
    tools = toolsets.tools(toolsets.NAMES)
    wrong: dict[str, str] = {}

    async def write(client: Client) -> None:
        for tool in tools:
            properties = tool.definition.input_schema["properties"]
            plain = {name: _plausible(name, kind) for name, kind in properties.items()}
            for name, value in plain.items():
                if not isinstance(value, str | list):
                    continue
                given = {**plain, name: marked if isinstance(value, str) else [marked]}
                result = await client.call_tool(tool.name, given)
                if found := leaked(result.model_dump_json()) or on_disk(tmp_path, home):
                    wrong[f"{tool.name} {name}"] = str(found)

    with_client(tmp_path, write, more=toolsets.NAMES)
    assert wrong == {}


def _plausible(name: str, schema: dict[str, Any]) -> Any:
    given = {
        "layer": "shared-project", "file_type": "known_issues", "project_name": "api", "id": "deploy-day",
        "old": "Tuesdays",
        "filename": "deploy-day.md", "lane": "notes", "topic": "ops/deploys", "scope": "shared", "category": "other",
        "items": [{"text": "Deploys."}], "keywords": ["deploys"], "source_files": ["deploy-day.md"],
    }  # fmt: skip
    if name in given:
        return given[name]
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    return {"string": "words", "array": ["words"], "integer": 5, "number": 0.5, "boolean": False, "object": {}}.get(
        kind
    )


def _writes() -> Iterator[list[str]]:
    for secret in (TOKEN, f"{TOKEN} memlane:allow because I say so", f"password: {PASSWORD}", PEM):
        for lane in ("notes", "vault", "topics", "records"):
            yield ["add", secret, "--lane", lane]
            yield ["add", "words", "--lane", lane, "--title", secret]
            yield ["add", "words", "--lane", lane, "--tag", secret]
        yield ["add", "words", "--lane", "layers", "--title", secret]
        yield ["add", secret, "--lane", "layers", "--field", "project=api", "--type", "known_issues"]
        yield ["add", "words", "--extra", f"own={secret}"]
        yield ["add", "words", "--scope", secret]
        yield ["add", "words", "--thread", secret]
        yield ["put", "words", secret]
        yield ["put", secret, "words"]
        for verb in ("update", "append", "edit"):
            yield [verb, "deploy-day", secret]
        yield ["update", "deploy-day", "--tag", secret]
        yield ["update", "deploy-day", "--title", secret]
        yield ["edit", "deploy-day", "--old", "Tuesdays", "--new", secret]
        yield ["rename", "deploy-day", secret]
        yield ["merge", "deploy-day", "--into", "new", "--text", secret]
        yield ["merge", "deploy-day", "--into", secret.replace("/", ""), "--text", "words"]
        yield ["vault", "add", secret]
        yield ["vault", "add", "words", "--topic", secret]
        yield ["topics", "store", "ops/x", secret]
        yield ["topics", "store", f"ops/{secret}", "words"]
        yield ["records", "create", secret, "--subject", "words", "--keyword", "words"]
        yield ["records", "create", "words", "--subject", secret, "--keyword", "words"]
        yield ["layers", "create", secret, "--project", "api", "--type", "known_issues"]
        yield ["layers", "create", "words", "--project", secret, "--type", "known_issues"]
        yield ["layers", "upsert", "shared-project/api/known_issues", secret]
        yield ["vault", "update", "aaaaaaaaaaaa", secret]
        yield ["vault", "promote", "aaaaaaaaaaaa", secret]
        yield ["layers", "update", "shared-project/api/known_issues", secret]
        yield ["layers", "append", "shared-project/api/known_issues", secret]
        yield ["layers", "delete", secret]
        yield ["gate", "test", secret]
        yield ["gate", "allow", secret, "--reason", secret]
        yield ["encoder", "use", secret]
        for verb in ("get", "search", "rm", "restore", "history", "context", "links", "forget"):
            yield [verb, secret]


def test_no_command_stores_or_repeats_a_secret(run: Run, bank: Bank, tmp_path: Path, home: Path) -> None:
    bank.add("Deploys go out on Tuesdays.", title="Deploy day")
    wrong = {}
    for call in _writes():
        result = run(*call)
        if found := leaked(result.out + result.err) or on_disk(tmp_path, home):
            wrong[" ".join(call)[:80]] = str(found)
            break
    assert wrong == {}


def test_neither_import_nor_capture_stores_one(run: Run, bank: Bank, tmp_path: Path, home: Path) -> None:
    source = tmp_path.parent / f"{tmp_path.name}-source"
    source.mkdir()
    for number, secret in enumerate((TOKEN, f"{TOKEN} memlane:allow because I say so", PEM)):
        (source / f"{number}.md").write_text(f"A note.\n\n{secret}\n")
        said = transcript(
            source / f"{number}.jsonl", f"A message.\nIt says {secret}.", f"A good one, {number}.\nOf two lines."
        )
        result = run("capture", str(said))
        assert not leaked(result.out + result.err)
        payload = {"cwd": str(tmp_path), "session_id": "s", "transcript_path": str(said)}
        assert run("hook", "claude-code", "stop", stdin=json.dumps(payload)).code == 0
    result = run("import", str(source))
    assert not leaked(result.out + result.err)
    assert on_disk(tmp_path, home) == []
    assert len(bank.list(lane="records")) == 3
