"""Connecting and disconnecting clients: only our entries come and go, and everything else stays byte for byte."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import stat
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import Run
from conftest import tree
from memlane.core.errors import AlreadyExists, ConfigError, InvalidInput
from memlane.surfaces import clients
from memlane.surfaces.clients import CLIENTS, Machine, jsonc, toml, wiring
from memlane.surfaces.clients.connection import targets
from memlane.surfaces.clients.jsonc import Damaged
from memlane.surfaces.hook import EVENTS
from samples import tries

SCOPED = [(client, scope) for client in CLIENTS.values() for scope in client.servers]
IDS = [f"{client.name}-{scope}" for client, scope in SCOPED]
HOME_VARIABLES = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME")


@pytest.fixture(autouse=True)
def programs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH on which no client of whoever runs the tests is found."""
    folder = tmp_path_factory.mktemp("bin")
    monkeypatch.setenv("PATH", str(folder))
    for name in HOME_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def command(programs: Path) -> str:
    """A memlane with a blank in its path."""
    path = programs / "my tools" / "memlane"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def machine(home: Path, tmp_path: Path) -> Machine:
    return clients.here(tmp_path)


def connect(name: str, scope: str, machine: Machine, command: str, **options: bool) -> clients.Plan:
    return clients.connect(clients.plan(CLIENTS[name], scope, machine, command, **options))


def disconnect(name: str, scope: str, machine: Machine) -> clients.Plan:
    return clients.disconnect(CLIENTS[name], scope, machine)


def folders(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_dir()}


def everything(machine: Machine) -> tuple[dict[str, bytes], dict[str, bytes], set[str], set[str]]:
    """All files and folders but our own state."""
    homes = {name: data for name, data in tree(machine.home).items() if not name.startswith(".local/")}
    dirs = {name for name in folders(machine.home) if not name.startswith(".local")}
    return homes, tree(machine.project), dirs, folders(machine.project)


# -- every client


@pytest.mark.parametrize(("client", "scope"), SCOPED, ids=IDS)
def test_a_client_is_connected_once_and_disconnected_without_a_trace(
    client: clients.Client, scope: str, machine: Machine, command: str
) -> None:
    before = everything(machine)
    done = connect(client.name, scope, machine, command)
    assert done.changed
    after = everything(machine)
    assert {change.path for change in done.changes} == {
        root / name for root, names in ((machine.home, after[0]), (machine.project, after[1])) for name in names
    }
    again = connect(client.name, scope, machine, command)
    assert not again.changed
    assert everything(machine) == after
    assert disconnect(client.name, scope, machine).changed
    assert everything(machine) == before
    assert not machine.state.exists()


@pytest.mark.parametrize(("client", "scope"), SCOPED, ids=IDS)
def test_the_entry_runs_this_memlane_by_its_whole_path(
    client: clients.Client, scope: str, machine: Machine, command: str
) -> None:
    path = connect(client.name, scope, machine, command).changes[0].path
    entry = wiring.read(path.read_text(), path)[client.key]["memlane"]
    assert wiring.command_of(entry) == command
    words = entry["command"] if client.name == "opencode" else [entry["command"], *entry["args"]]
    assert words == [command, "mcp"]


@pytest.mark.parametrize(("client", "scope"), SCOPED, ids=IDS)
def test_each_hook_names_the_client_and_one_of_our_events(
    client: clients.Client, scope: str, machine: Machine, command: str
) -> None:
    path = connect(client.name, scope, machine, command).changes[-1].path
    if path.suffix == ".toml" or not client.events:
        return
    hooks = wiring.read(path.read_text(), path)["hooks"]
    lines = {event: [hook["command"] for _, hook in wiring.our_hooks(items)] for event, items in hooks.items()}
    assert {event: list(map(shlex.split, found)) for event, found in lines.items()} == {
        event: [[command, "hook", client.name, ours]] for event, ours in client.events
    }
    assert {ours for _, ours in client.events} <= set(EVENTS)


def test_no_hooks_means_no_hooks(machine: Machine, command: str) -> None:
    done = connect("claude-code", "user", machine, command, hooks=False)
    assert [change.path.name for change in done.changes] == [".claude.json"]
    assert not (machine.home / ".claude").exists()


def test_timeouts_are_in_each_clients_own_unit(machine: Machine, command: str) -> None:
    for name in ("claude-code", "codex", "gemini"):
        connect(name, "user", machine, command)
    found = {}
    for name, file in (("claude-code", ".claude/settings.json"), ("codex", ".codex/hooks.json")):
        found[name] = json.loads((machine.home / file).read_text())["hooks"]["Stop"][0]["hooks"][0]
    gemini = json.loads((machine.home / ".gemini/settings.json").read_text())["hooks"]["AfterAgent"][0]["hooks"][0]
    assert (found["claude-code"]["timeout"], found["codex"]["timeout"], gemini["timeout"]) == (10, 10, 10_000)


def test_a_client_without_a_project_file_says_so(machine: Machine, command: str) -> None:
    with pytest.raises(InvalidInput, match="Windsurf has no configuration of its own for a project"):
        clients.plan(CLIENTS["windsurf"], "project", machine, command)


def test_the_clients_own_variables_move_its_files(
    machine: Machine, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "else"
    for name in (*HOME_VARIABLES, "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(elsewhere / name.lower()))
    moved = clients.here(tmp_path)
    found = {seen.client.name: [path.relative_to(elsewhere) for path in seen.files] for seen in clients.statuses(moved)
             if seen.client.name in ("claude-code", "codex", "gemini", "opencode")}  # fmt: skip
    assert {name: list(map(str, paths)) for name, paths in found.items()} == {
        "claude-code": ["claude_config_dir/.claude.json", "claude_config_dir/settings.json"],
        "codex": ["codex_home/config.toml", "codex_home/hooks.json"],
        "gemini": ["gemini_cli_home/.gemini/settings.json"],
        "opencode": ["xdg_config_home/opencode/opencode.json", "xdg_config_home/opencode/plugin/memlane.js"],
    }


def test_an_existing_jsonc_file_is_used_instead_of_a_new_one(machine: Machine, command: str) -> None:
    there = machine.project / "opencode.jsonc"
    there.write_text('{ // mine\n  "model": "x",\n}\n')
    assert connect("opencode", "project", machine, command).changes[0].path == there
    assert '{ // mine\n  "model": "x",\n  "mcp": {\n' in there.read_text()


# -- any configuration

names = st.sampled_from(["a", "mcpServers", "hooks", "memlane", "SessionStart", "é ☃", 'q"uo\\te', "", "// no"])
scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["x", "/* no */", "a,b}", "l\n", "ü"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=8
)
foreign_servers = st.dictionaries(st.sampled_from(["x", "y z", "memory"]), values, max_size=3)
foreign_hooks = st.dictionaries(
    st.sampled_from(["SessionStart", "Stop", "PreToolUse"]),
    st.lists(st.just({"matcher": "*", "hooks": [{"type": "command", "command": "echo hi"}]}), max_size=2),
    max_size=3,
)


@st.composite
def configurations(draw: st.DrawFn) -> dict[str, Any]:
    found = draw(st.dictionaries(st.sampled_from(["theme", "é", "model", "env"]), values, max_size=3))
    parts = {"mcpServers": foreign_servers, "hooks": foreign_hooks}
    for key in draw(st.permutations(sorted(parts))):
        if draw(st.booleans()):
            found[key] = draw(parts[key])
    return found


@st.composite
def jsonc_texts(draw: st.DrawFn) -> str:
    """A configuration as somebody may have typed it: any blanks, comments and trailing commas."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    blanks = ["", " ", newline, f"{newline}  ", f"{newline}\t", f" // it's{newline}", "/* {, */", f"/*{newline}*/"]
    plain = draw(st.booleans())

    def blank() -> str:
        return "" if plain else draw(st.sampled_from(blanks))

    def written(value: Any) -> str:
        if not isinstance(value, dict | list):
            return json.dumps(value, ensure_ascii=draw(st.booleans()))
        if isinstance(value, dict):
            items = [f"{json.dumps(key)}{blank()}:{blank()}{written(item)}" for key, item in value.items()]
        else:
            items = [written(item) for item in value]
        inside = ",".join(f"{blank()}{item}{blank()}" for item in items)
        trailing = "," if items and not plain and draw(st.booleans()) else ""
        opening, closing = "{}" if isinstance(value, dict) else "[]"
        return f"{opening}{blank()}{inside}{trailing}{blank()}{closing}"

    config = draw(configurations())
    indent = draw(st.sampled_from([None, None, 2, 4, "\t"]))
    if indent:
        text = json.dumps(config, indent=indent, ensure_ascii=False).replace("\n", newline)
    else:
        text = f"{blank()}{written(config)}{blank()}"
    return draw(st.sampled_from(["", "\ufeff"])) + text + draw(st.sampled_from(["", newline]))


def without_ours(value: Any) -> Any:
    """A configuration less our entries, and less what they left empty."""
    kept = {key: item for key, item in value.items() if key not in ("mcpServers", "hooks")}
    servers = {name: item for name, item in value.get("mcpServers", {}).items() if wiring.command_of(item) is None}
    hooks = {}
    for event, groups in value.get("hooks", {}).items():
        left = [group for group in groups if not list(wiring.our_hooks(group))]
        hooks.update({event: left} if left else {})
    return {**kept, **({"mcpServers": servers} if servers else {}), **({"hooks": hooks} if hooks else {})}


@given(text=jsonc_texts())
@settings(max_examples=tries(25, 250))
def test_any_json_comes_back_byte_for_byte(
    text: str, tmp_path_factory: pytest.TempPathFactory, command: str, machine: Machine
) -> None:
    machine = dataclasses.replace(machine, home=tmp_path_factory.mktemp("one"), state=tmp_path_factory.mktemp("kept"))
    path = machine.home / ".gemini/settings.json"
    path.parent.mkdir()
    path.write_bytes(text.encode())
    connect("gemini", "user", machine, command)
    connected = path.read_bytes()
    assert without_ours(jsonc.value(connected.decode())) == without_ours(jsonc.value(text))
    assert not connect("gemini", "user", machine, command).changed
    assert path.read_bytes() == connected
    disconnect("gemini", "user", machine)
    assert path.read_bytes() == text.encode()


@given(text=jsonc_texts(), added=values)
def test_of_json_that_was_edited_since_only_our_entries_go(
    text: str, added: Any, command: str, machine: Machine
) -> None:
    client, path = CLIENTS["gemini"], Path("settings.json")
    (wanted,) = targets(client, "user", machine, command, True)
    edited = jsonc.put(wiring.put(text, wanted, client), ("added",), added)
    left = wiring.take(edited, client, path, text)
    assert jsonc.value(left) == {**jsonc.value(text), "added": added}
    assert json.dumps(command)[1:-1] not in left
    assert wiring.take(left, client, path, text) == left
    remarks = [text.count(mark) for mark in ("// it's", "/* {, */")]
    assert [left.count(mark) for mark in ("// it's", "/* {, */")] == remarks


@given(text=jsonc_texts())
def test_taking_out_is_the_opposite_of_putting_in(text: str, command: str, machine: Machine) -> None:
    client = CLIENTS["gemini"]
    (wanted,) = targets(client, "user", machine, command, True)
    assert wiring.take(wiring.put(text, wanted, client), client, wanted.path, text) == text


toml_tables = st.lists(
    st.sampled_from(
        [
            'model = "gpt"   # mine\n',
            "\n# about the next\n",
            '[mcp_servers.other]\ncommand = "x" # keep\nargs = [\n  "a", # b\n]\n',
            '[mcp_servers.other.env]\nA = "1"\n',
            '[projects."/a b"]\ntrust_level = "trusted"\n\n',
            "[[things]]\nname = 'one'\n",
            '[decoy]\ntext = """\n[mcp_servers.memlane]\ncommand = "no"\n"""\nlist = [\n  [1, 2],\n]\n',
            "# [mcp_servers.memlane]\n",
            "[profiles]\n",
        ]
    ),
    max_size=6,
    unique=True,
)


def toml_text(parts: list[str], newline: str, end: str) -> str | None:
    text = ("".join(parts).rstrip("\n") + end).replace("\n", newline)
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    return text


toml_texts = st.builds(
    toml_text, toml_tables, st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "\n", "\n\n"])
).filter(lambda text: text is not None)


@given(text=toml_texts)
@settings(max_examples=tries(25, 250))
def test_any_toml_comes_back_byte_for_byte(
    text: str, tmp_path_factory: pytest.TempPathFactory, command: str, machine: Machine
) -> None:
    machine = dataclasses.replace(machine, home=tmp_path_factory.mktemp("one"), state=tmp_path_factory.mktemp("kept"))
    path = machine.home / ".codex/config.toml"
    path.parent.mkdir()
    path.write_bytes(text.encode())
    connect("codex", "user", machine, command, hooks=False)
    connected = path.read_bytes()
    found, before = tomllib.loads(connected.decode()), tomllib.loads(text)
    assert found["mcp_servers"].pop("memlane") == {"command": command, "args": ["mcp"]}
    assert {"mcp_servers": {}, **found} == {"mcp_servers": {}, **before}
    assert connected.startswith(text.encode())
    assert not connect("codex", "user", machine, command, hooks=False).changed
    assert path.read_bytes() == connected
    disconnect("codex", "user", machine)
    assert path.read_bytes() == text.encode()


@given(text=toml_texts)
def test_of_toml_that_was_edited_since_only_our_table_goes(text: str, machine: Machine, command: str) -> None:
    client = CLIENTS["codex"]
    wanted = targets(client, "user", machine, command, False)[0]
    edited = wiring.put(text, wanted, client) + '\n# later\n[added]\nby = "hand"\n'
    left = wiring.take(edited, client, wanted.path, text)
    assert tomllib.loads(left) == {**tomllib.loads(text), "added": {"by": "hand"}}
    assert left.startswith(text.rstrip())
    assert left.endswith('\n# later\n[added]\nby = "hand"\n')


# -- by hand


def test_comments_order_and_indentation_stay(machine: Machine, command: str) -> None:
    path = machine.home / ".config/zed/settings.json"
    path.parent.mkdir(parents=True)
    path.write_text(
        '// Zed settings\n{\n    "theme": "One", // dark\n    "context_servers": {\n        /* mine */\n'
        '        "x": {}, // last\n    },\n    "vim": true\n}\n'
    )
    connect("zed", "user", machine, command)
    assert path.read_text() == (
        '// Zed settings\n{\n    "theme": "One", // dark\n    "context_servers": {\n        /* mine */\n'
        '        "x": {}, // last\n        "memlane": {\n            "source": "custom",\n'
        f'            "command": {json.dumps(command)},\n            "args": [\n                "mcp"\n            ],\n'
        '            "env": {}\n        },\n    },\n    "vim": true\n}\n'
    )


def test_a_file_on_one_line_stays_on_one_line() -> None:
    text = '{"mcpServers":{"x":{"command":"y"}},"z":[]}'
    assert jsonc.put(text, ("mcpServers", "m"), {"command": "c", "args": []}) == (
        '{"mcpServers":{"x":{"command":"y"},"m":{"command":"c","args":[]}},"z":[]}'
    )


def test_an_edit_by_the_user_survives_disconnecting(machine: Machine, command: str) -> None:
    path = machine.home / ".claude/settings.json"
    path.parent.mkdir()
    path.write_text('{\n  "model": "opus",\n  "hooks": {\n    "Stop": []\n  }\n}\n')
    connect("claude-code", "user", machine, command)
    path.write_text(path.read_text().replace('"opus"', '"sonnet"'))
    disconnect("claude-code", "user", machine)
    assert path.read_text() == '{\n  "model": "sonnet",\n  "hooks": {\n    "Stop": []\n  }\n}\n'


def test_our_hook_in_somebody_elses_group_goes_alone(machine: Machine, command: str) -> None:
    path = machine.home / ".claude/settings.json"
    connect("claude-code", "user", machine, command)
    found = json.loads(path.read_text())
    other = {"type": "command", "command": "say done"}
    found["hooks"]["Stop"][0]["hooks"].append(other)
    path.write_text(json.dumps(found, indent=2))
    disconnect("claude-code", "user", machine)
    assert json.loads(path.read_text()) == {"hooks": {"Stop": [{"hooks": [other]}]}}


def test_a_file_that_gained_something_is_not_deleted(machine: Machine, command: str) -> None:
    path = machine.project / ".mcp.json"
    connect("claude-code", "project", machine, command, hooks=False)
    path.write_text(jsonc.put(path.read_text(), ("mcpServers", "other"), {"command": "x"}))
    disconnect("claude-code", "project", machine)
    assert json.loads(path.read_text()) == {"mcpServers": {"other": {"command": "x"}}}


def test_an_edited_file_that_only_we_made_is_deleted_with_its_folder(machine: Machine, command: str) -> None:
    connect("cursor", "user", machine, command)
    path = machine.home / ".cursor/hooks.json"
    path.write_text(path.read_text() + "\n")
    disconnect("cursor", "user", machine)
    assert not (machine.home / ".cursor").exists()


def test_a_plugin_that_was_edited_is_left_with_a_word(machine: Machine, command: str) -> None:
    connect("opencode", "project", machine, command)
    path = machine.project / ".opencode/plugin/memlane.js"
    path.write_text(path.read_text() + "// mine\n")
    done = disconnect("opencode", "project", machine)
    assert path.read_text().endswith("// mine\n")
    assert done.notes == (f"{path} was edited since memlane wrote it; delete it if you no longer need it.",)
    assert not (machine.project / "opencode.json").exists()


def test_without_its_record_a_connection_is_still_taken_out(machine: Machine, command: str) -> None:
    path = machine.home / ".claude/settings.json"
    path.parent.mkdir()
    path.write_text('{\n  "model": "opus"\n}\n')
    connect("claude-code", "user", machine, command)
    for file in machine.state.iterdir():
        file.unlink()
    disconnect("claude-code", "user", machine)
    assert path.read_text() == '{\n  "model": "opus"\n}\n'
    assert json.loads((machine.home / ".claude.json").read_text()) == {}


def test_a_link_stays_a_link_and_its_file_keeps_its_mode(machine: Machine, command: str, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles/zed.json"
    target.parent.mkdir()
    target.write_text("{}")
    target.chmod(0o600)
    path = machine.home / ".config/zed/settings.json"
    path.parent.mkdir(parents=True)
    path.symlink_to(target)
    connect("zed", "user", machine, command)
    assert (path.is_symlink(), stat.S_IMODE(target.stat().st_mode)) == (True, 0o600)
    assert "memlane" in target.read_text()
    disconnect("zed", "user", machine)
    assert (path.is_symlink(), target.read_text(), stat.S_IMODE(target.stat().st_mode)) == (True, "{}", 0o600)


def test_a_link_to_a_file_that_is_not_there_yet_stays(machine: Machine, command: str, tmp_path: Path) -> None:
    path = machine.home / ".config/zed/settings.json"
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "later.json")
    connect("zed", "user", machine, command)
    assert "memlane" in (tmp_path / "later.json").read_text()
    disconnect("zed", "user", machine)
    assert (path.is_symlink(), path.exists()) == (True, False)


def test_folders_behind_a_link_go_again(machine: Machine, command: str, tmp_path: Path) -> None:
    link = machine.home / ".config/zed/settings.json"
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "dotfiles/zed/settings.json")
    before = everything(machine)
    connect("zed", "user", machine, command)
    assert (tmp_path / "dotfiles/zed/settings.json").is_file()
    disconnect("zed", "user", machine)
    assert (everything(machine), link.is_symlink()) == (before, True)
    assert not machine.state.exists()


def test_backups_are_the_users_alone(machine: Machine, command: str) -> None:
    (machine.project / ".mcp.json").write_text('{"mcpServers": {"x": {"env": {"KEY": "value"}}}}')
    machine.state.parent.mkdir(parents=True, exist_ok=True)
    machine.state.parent.chmod(0o755)  # as an older memlane left it
    connect("claude-code", "project", machine, command)
    folders = [machine.state.parent, machine.state]
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in folders] == [0o700, 0o700]
    assert {stat.S_IMODE(path.stat().st_mode) for path in machine.state.iterdir()} == {0o600}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("claude-code", b'{"hooks": {'),
        ("claude-code", b'{"mcpServers": {"x": 1} "y": 2}'),
        ("claude-code", b"[]"),
        ("claude-code", b'{"mcpServers": []}'),
        ("claude-code", b'{"a": 1}}'),
        ("claude-code", b"\xff{}"),
        ("claude-code", b"[" * 100_000),
        ("claude-code", b'{"a": NaN}'),
        ("codex", b"a = = 1"),
        ("codex", b"mcp_servers = { other = {} }"),
        ("codex", b"mcp_servers = 1"),
    ],
)
def test_a_damaged_file_is_refused_and_nothing_is_changed(
    name: str, data: bytes, machine: Machine, command: str
) -> None:
    client = CLIENTS[name]
    path = machine.path(client.servers["project"][0])
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    before = everything(machine)
    with pytest.raises(ConfigError) as error:
        connect(name, "project", machine, command)
    assert str(path) in str(error.value)
    assert "nothing was changed" in error.value.hint
    assert everything(machine) == before


def test_damage_in_a_file_that_memlane_is_not_in_does_not_stop_disconnecting(machine: Machine, command: str) -> None:
    connect("claude-code", "user", machine, command, hooks=False)
    settings = machine.home / ".claude/settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_bytes(b'{"a": \xff')
    assert not connect("claude-code", "user", machine, command, hooks=False).changed
    disconnect("claude-code", "user", machine)
    assert settings.read_bytes() == b'{"a": \xff'
    assert not (machine.home / ".claude.json").exists()


def test_dotted_keys_are_refused_with_a_word(machine: Machine, command: str) -> None:
    path = machine.home / ".codex/config.toml"
    path.parent.mkdir()
    path.write_text('mcp_servers.memlane.command = "/old/memlane"\nmcp_servers.memlane.args = ["mcp"]\n')
    with pytest.raises(ConfigError, match="cannot be changed automatically"):
        connect("codex", "user", machine, command)


def test_damage_in_the_second_file_leaves_the_first_alone(machine: Machine, command: str) -> None:
    (machine.project / ".claude").mkdir()
    (machine.project / ".claude/settings.local.json").write_text('{"hooks": "none"}')
    before = everything(machine)
    with pytest.raises(ConfigError, match="hooks is not an object"):
        connect("claude-code", "project", machine, command)
    assert everything(machine) == before


# -- what is there already


def test_another_entry_of_our_name_is_refused_then_replaced_then_restored(machine: Machine, command: str) -> None:
    path = machine.project / ".mcp.json"
    text = '{"mcpServers": {"memlane": {"command": "docker", "args": ["run"]}}}'
    path.write_text(text)
    with pytest.raises(AlreadyExists, match="an entry 'memlane' under 'mcpServers' that memlane did not write"):
        connect("claude-code", "project", machine, command)
    assert path.read_text() == text
    connect("claude-code", "project", machine, command, replace=True)
    assert json.loads(path.read_text())["mcpServers"]["memlane"]["command"] == command
    path.write_text(path.read_text() + "\n")
    disconnect("claude-code", "project", machine)
    assert json.loads(path.read_text()) == json.loads(text)


def test_another_plugin_of_our_name_is_refused(machine: Machine, command: str) -> None:
    path = machine.project / ".opencode/plugin/memlane.js"
    path.parent.mkdir(parents=True)
    path.write_text("export const Mine = async () => ({})\n")
    with pytest.raises(AlreadyExists, match="a plugin called memlane"):
        connect("opencode", "project", machine, command)
    connect("opencode", "project", machine, command, replace=True)
    disconnect("opencode", "project", machine)
    assert path.read_text() == "export const Mine = async () => ({})\n"


@pytest.mark.parametrize(("client", "scope"), SCOPED, ids=IDS)
def test_a_memlane_that_moved_is_connected_anew(
    client: clients.Client, scope: str, machine: Machine, command: str
) -> None:
    before = everything(machine)
    connect(client.name, scope, machine, "/old/place/memlane")
    done = connect(client.name, scope, machine, command)
    assert all(change.how == "write" for change in done.changes)
    assert all(b"/old/place" not in (change.after or b"") for change in done.changes)
    disconnect(client.name, scope, machine)
    assert everything(machine) == before


def test_what_the_user_added_to_our_entry_stays(machine: Machine, command: str) -> None:
    path = machine.project / ".mcp.json"
    connect("claude-code", "project", machine, "/old/memlane", hooks=False)
    path.write_text(jsonc.put(path.read_text(), ("mcpServers", "memlane", "env"), {"MEMLANE_BANK": "/b"}))
    connect("claude-code", "project", machine, command, hooks=False)
    entry = {"type": "stdio", "command": command, "args": ["mcp"], "env": {"MEMLANE_BANK": "/b"}}
    assert json.loads(path.read_text()) == {"mcpServers": {"memlane": entry}}


def test_hooks_can_follow_later(machine: Machine, command: str) -> None:
    before = everything(machine)
    connect("gemini", "user", machine, command, hooks=False)
    assert connect("gemini", "user", machine, command).changed
    disconnect("gemini", "user", machine)
    assert everything(machine) == before


def test_no_hooks_says_that_earlier_ones_stay_and_their_way_back_is_kept(machine: Machine, command: str) -> None:
    before = everything(machine)
    connect("claude-code", "user", machine, "/old/memlane")
    done = connect("claude-code", "user", machine, command, hooks=False)
    assert (
        done.notes[0] == "The hooks are still there; `memlane connect claude-code --remove` first to be without them."
    )
    disconnect("claude-code", "user", machine)
    assert everything(machine) == before


# -- the client's own command


def install(programs: Path, name: str, body: str) -> Path:
    """A stand-in for a client's program that notes what it was called with."""
    log = programs / f"{name}.log"
    script = programs / name
    script.write_text(
        f"#!{sys.executable}\nimport json, os, pathlib, sys\nhome = pathlib.Path(os.environ['HOME'])\n"
        f"with open({str(log)!r}, 'a') as log: log.write(json.dumps(sys.argv[1:]) + '\\n')\n" + textwrap.dedent(body)
    )
    script.chmod(0o755)
    return log


CLAUDE = """
    path = home / ".claude.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    found["numStartups"] = found.get("numStartups", 0) + 1
    servers = found.setdefault("mcpServers", {})
    if sys.argv[2] == "add":
        command, *args = sys.argv[sys.argv.index("--") + 1:]
        servers["memlane"] = {"type": "stdio", "command": command, "args": args, "env": {}}
    else:
        del servers["memlane"]
    path.write_text(json.dumps(found, indent=2))
"""


def calls(log: Path) -> list[list[str]]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def test_claude_adds_and_removes_its_entry_itself(programs: Path, machine: Machine, command: str) -> None:
    log = install(programs, "claude", CLAUDE)
    path = machine.home / ".claude.json"
    path.write_text('{"numStartups":7,"projects":{}}')
    connect("claude-code", "user", machine, command)
    assert not connect("claude-code", "user", machine, command).changed
    path.write_text(path.read_text().replace('"projects": {}', '"projects": {"/a": {}}'))  # it writes all the time
    disconnect("claude-code", "user", machine)
    assert calls(log) == [
        ["mcp", "add", "-s", "user", "memlane", "--", command, "mcp"],
        ["mcp", "remove", "-s", "user", "memlane"],
    ]
    assert json.loads(path.read_text()) == {"numStartups": 9, "projects": {"/a": {}}, "mcpServers": {}}
    assert not (machine.home / ".claude").exists()


def test_what_claude_wrote_is_undone_byte_for_byte_when_nothing_else_happened(
    programs: Path, machine: Machine, command: str
) -> None:
    log = install(programs, "claude", CLAUDE)
    path = machine.home / ".claude.json"
    path.write_text('{"numStartups":7}')
    connect("claude-code", "user", machine, command)
    disconnect("claude-code", "user", machine)
    assert (path.read_text(), len(calls(log))) == ('{"numStartups":7}', 1)


def test_an_entry_that_was_replaced_comes_back_even_where_claude_is_installed(
    programs: Path, machine: Machine, command: str
) -> None:
    log = install(programs, "claude", CLAUDE)
    path = machine.home / ".claude.json"
    path.write_text('{"mcpServers": {"memlane": {"url": "http://x"}}}')
    connect("claude-code", "user", machine, command, replace=True)
    path.write_text(path.read_text() + "\n")
    disconnect("claude-code", "user", machine)
    assert (calls(log), json.loads(path.read_text())) == ([], {"mcpServers": {"memlane": {"url": "http://x"}}})


def test_when_claude_is_gone_its_entry_is_taken_out_all_the_same(
    programs: Path, machine: Machine, command: str
) -> None:
    install(programs, "claude", CLAUDE)
    connect("claude-code", "user", machine, command)
    (programs / "claude").unlink()
    path = machine.home / ".claude.json"
    path.write_text(path.read_text().replace('"numStartups": 1', '"numStartups": 2'))
    disconnect("claude-code", "user", machine)
    assert path.read_text() == '{\n  "numStartups": 2\n}'


@pytest.mark.parametrize("body", ["sys.exit(1)", "(home / '.claude.json').write_text('{}')"])
def test_a_command_that_does_not_do_it_is_made_up_for(
    programs: Path, machine: Machine, command: str, body: str
) -> None:
    install(programs, "claude", body)
    connect("claude-code", "user", machine, command, hooks=False)
    found = json.loads((machine.home / ".claude.json").read_text())
    assert found == {"mcpServers": {"memlane": {"type": "stdio", "command": command, "args": ["mcp"]}}}


@pytest.mark.parametrize(
    ("lost", "how"), [("", "mcp add"), (".replace(' # keep', '')", "written by memlane")], ids=["keeps", "loses"]
)
def test_a_command_that_loses_a_comment_is_undone(
    programs: Path, machine: Machine, command: str, lost: str, how: str
) -> None:
    """`codex mcp add` drops comments inside the tables of other servers."""
    body = f"""
        path = home / ".codex/config.toml"
        table = "\\n[mcp_servers.memlane]\\ncommand = " + json.dumps(sys.argv[-2]) + '\\nargs = ["mcp"]\\n'
        path.write_text(path.read_text(){lost} + table)
    """
    log = install(programs, "codex", body)
    path = machine.home / ".codex/config.toml"
    path.parent.mkdir()
    text = '[mcp_servers.other]\ncommand = "x" # keep\n'
    path.write_text(text)
    done = connect("codex", "user", machine, command, hooks=False)
    assert path.read_text() == f'{text}\n[mcp_servers.memlane]\ncommand = {json.dumps(command)}\nargs = ["mcp"]\n'
    assert calls(log) == [["mcp", "add", "memlane", "--", command, "mcp"]]
    assert any("memlane undid that" in note for note in done.notes) == (how != "mcp add")
    disconnect("codex", "user", machine)
    assert path.read_text() == text


def test_a_project_is_never_left_to_the_clients_command(programs: Path, machine: Machine, command: str) -> None:
    log = install(programs, "claude", CLAUDE)
    connect("claude-code", "project", machine, command)
    assert calls(log) == []


# -- looking


def test_problems_are_none_when_all_is_well(machine: Machine, command: str) -> None:
    for client in CLIENTS.values():
        connect(client.name, "user", machine, command)
    assert clients.problems(machine.home, machine.project) == []


def said(machine: Machine) -> list[str]:
    return [str(problem) for problem in clients.problems(machine.home, machine.project)]


def test_a_command_that_is_gone_or_cannot_run_is_a_problem(machine: Machine, command: str) -> None:
    connect("zed", "user", machine, command)
    path = machine.home / ".config/zed/settings.json"
    os.chmod(command, 0o644)
    again = "run `memlane connect zed`"
    assert said(machine) == [f"{path}: Zed runs {command}, which is not executable; {again}"]
    os.unlink(command)
    assert said(machine) == [f"{path}: Zed runs {command}, which is not there; {again}"]


def test_hooks_that_are_missing_or_run_another_memlane_are_problems(machine: Machine, command: str) -> None:
    connect("claude-code", "user", machine, command)
    path = machine.home / ".claude/settings.json"
    text = path.read_text()
    where, again = f"{path}: the hooks of Claude Code", "run `memlane connect claude-code`"
    path.write_text(text.replace(shlex.quote(command), "/old/memlane"))
    assert said(machine) == [f"{where} run /old/memlane, but its server is {command}; {again}"]
    path.write_text(jsonc.drop(text, ("hooks", "Stop")))
    assert said(machine) == [f"{where} are missing for Stop; {again}"]
    path.unlink()
    events = "SessionStart, UserPromptSubmit, Stop, PreCompact, SessionEnd, PreToolUse"
    assert said(machine) == [f"{where} are missing for {events}; {again}"]


def test_hooks_in_the_background_are_a_problem_that_connecting_again_mends(machine: Machine, command: str) -> None:
    """As an older memlane wrote them: they are too late to continue a turn."""
    connect("claude-code", "user", machine, command)
    path = machine.home / ".claude/settings.json"
    text = path.read_text()
    path.write_text(jsonc.put(text, ("hooks", "Stop", 0, "hooks", 0, "async"), True))
    why = "the hooks of Claude Code run in the background, where they cannot ask the agent what to remember"
    assert said(machine) == [f"{path}: {why}; run `memlane connect claude-code`"]
    connect("claude-code", "user", machine, command)
    assert said(machine) == []
    assert json.loads(path.read_text()) == json.loads(text)


def test_no_hooks_at_all_is_a_choice(machine: Machine, command: str) -> None:
    connect("claude-code", "user", machine, command, hooks=False)
    assert said(machine) == []


def test_the_plugin_of_opencode_is_looked_at_too(machine: Machine, command: str) -> None:
    connect("opencode", "project", machine, command)
    path = machine.project / ".opencode/plugin/memlane.js"
    where, again = f"{path}: the plugin of opencode", "run `memlane connect opencode --project`"
    path.write_text(path.read_text().replace("my tools", "old"))
    assert said(machine) == [f"{where} runs another memlane than {command}; {again}"]
    path.unlink()
    assert said(machine) == [f"{where} is gone; {again}"]


def test_a_damaged_file_is_a_problem_only_where_memlane_is_in_it(machine: Machine) -> None:
    path = machine.project / ".mcp.json"
    path.write_text('{\n  "a": \n}')
    assert said(machine) == []
    path.write_text('{\n  "memlane": \n}')
    assert said(machine) == [f"{path}:3: Claude Code's configuration is damaged: line 3: a value is expected here"]


def test_being_connected_and_a_plugin_is_a_problem(machine: Machine, command: str) -> None:
    connect("claude-code", "user", machine, command)
    path = machine.home / ".claude/settings.json"
    path.write_text(jsonc.put(path.read_text(), ("enabledPlugins", "memlane@memlane"), True))
    why = "Claude Code has memlane as a plugin as well, so every hook runs twice"
    assert said(machine) == [f"{machine.home / '.claude.json'}: {why}; run `memlane connect claude-code --remove`"]


def test_being_connected_twice_is_a_problem(machine: Machine, command: str) -> None:
    connect("zed", "user", machine, command)
    connect("zed", "project", machine, command)
    why = "Zed is connected for the user and for the project; run `memlane connect zed --remove --project`"
    assert said(machine) == [f"{machine.project / '.zed/settings.json'}: {why}"]


# -- the command line


def test_connect_alone_shows_what_is_here_and_changes_nothing(run: Run, home: Path, tmp_path: Path) -> None:
    (home / ".config/zed").mkdir(parents=True)
    before = tree(home), tree(tmp_path)
    result = run("connect")
    assert (result.code, result.out) == (0, f"zed\tnot connected\twould write {home}/.config/zed/settings.json\n")
    assert "not found here: claude-code, codex" in result.err
    assert [seen["client"] for seen in run("connect", "--json").json] == list(CLIENTS)
    assert (tree(home), tree(tmp_path)) == before


def test_print_shows_the_change_and_makes_none(run: Run, home: Path) -> None:
    result = run("connect", "zed", "--print")
    assert result.out.startswith(f"--- /dev/null\n+++ {home}/.config/zed/settings.json\n")
    assert '+    "memlane": {\n' in result.out
    assert [plan["changed"] for plan in run("connect", "zed", "--print", "--json").json] == [True]
    assert tree(home) == {}


def test_a_secret_in_a_configuration_is_not_printed(run: Run, tmp_path: Path) -> None:
    token = "ghp_" + "R4nd0mCanaryV4lueTh4tIsN0tReal" + "123456"
    (tmp_path / ".mcp.json").write_text(f'{{"mcpServers": {{"x": {{"env": {{"TOKEN": "{token}"}}}}}}}}')
    for arguments in (["--print"], ["--print", "--json"], ["--json"]):
        result = run("connect", "claude-code", "--project", *arguments)
        assert (result.code, token in result.out + result.err) == (0, False)
    assert token in (tmp_path / ".mcp.json").read_text()


def test_connect_and_disconnect_from_the_command_line(run: Run, home: Path) -> None:
    result = run("connect", "zed")
    assert (result.code, result.out) == (0, f"{home}/.config/zed/settings.json\tserver\n")
    entry = json.loads((home / ".config/zed/settings.json").read_text())["context_servers"]["memlane"]
    assert Path(entry["command"]) == Path(sys.executable).with_name("memlane")
    assert run("connect", "zed").err == "Zed is already connected.\n"
    assert run("connect").out == "zed\tconnected (user)\n"
    result = run("connect", "zed", "--remove", "--json")
    assert [(plan["scope"], plan["files"][0]["how"]) for plan in result.json] == [("user", "remove")]
    assert (run("connect", "zed", "--remove").code, tree(home)) == (3, {})


@pytest.mark.parametrize(
    ("client", "more", "told"), [("cursor", [], True), ("cursor", ["--no-hooks"], False), ("zed", [], False)]
)
def test_connect_says_how_to_see_that_it_works(run: Run, client: str, more: list[str], told: bool) -> None:
    """Where hooks run: they write the log that it names."""
    assert ("`memlane log --sessions`" in run("connect", client, "--project", *more).err) is told


def test_disconnect_finds_the_scope_itself(run: Run, tmp_path: Path) -> None:
    run("connect", "cursor", "--project")
    result = run("connect", "cursor", "--remove")
    assert (result.code, tree(tmp_path)) == (0, {})
    assert result.out == "".join(f"{tmp_path}/.cursor/{name}\tremoved\n" for name in ("mcp.json", "hooks.json"))


def test_the_project_is_the_one_with_the_bank(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("init")
    (tmp_path / "deep/er").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep/er")
    run("connect", "zed", "--project")
    assert (tmp_path / ".zed/settings.json").exists()


def test_bank_names_another_project(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    run("--bank", "other", "connect", "zed", "--project")
    assert (tmp_path / "other/.zed/settings.json").exists()


def test_a_taken_name_is_exit_code_5(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text('{"mcpServers": {"memlane": {"url": "http://x"}}}')
    result = run("connect", "claude-code", "--project")
    assert (result.code, "--replace" in result.err) == (5, True)


# -- the editors


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"a": }', 1),
        ("{\n'a': 1}", 2),
        ('{"a" 1}', 1),
        ('{"a": 1 "b": 2}', 1),
        ("{} x", 1),
        ("/* open", 1),
        ("{,}", 1),
    ],
)
def test_what_is_not_json_is_located(text: str, line: int) -> None:
    with pytest.raises(Damaged) as error:
        jsonc.parse(text)
    assert error.value.line == line


def test_dropping_what_is_not_there_changes_nothing() -> None:
    assert jsonc.drop('{"a": 1}', ("b", "c")) == '{"a": 1}'
    assert toml.drop("a = 1\n", ("b", "c")) == "a = 1\n"


def test_of_a_key_that_is_there_twice_the_last_counts() -> None:
    text = '{"m": {"x": 1}, "m": {"y": 2}}'
    assert jsonc.put(text, ("m", "z"), 3) == '{"m": {"x": 1}, "m": {"y": 2, "z": 3}}'


@pytest.mark.parametrize("edited", [False, True])
def test_an_entry_that_the_user_had_before_comes_back(machine: Machine, command: str, edited: bool) -> None:
    path = machine.home / ".codex/config.toml"
    path.parent.mkdir()
    before = 'model = "x"\n\n[mcp_servers.memlane]\ncommand = "/mine/memlane"\nargs = ["--bank", "/notes", "mcp"]\n'
    path.write_text(before)
    connect("codex", "user", machine, command)
    if edited:
        path.write_text(f"# mine\n{path.read_text()}")
    disconnect("codex", "user", machine)
    assert path.read_text() == ("# mine\n" if edited else "") + before
