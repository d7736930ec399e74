"""What memlane ships besides the package: the Claude Code plugin, the .mcpb bundle and the registry's server.json.

The vendors' own validators run where they are installed: on PATH, or in the npm folder that MEMLANE_CLIENTS names.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from memlane import __version__
from memlane.surfaces.clients import CLIENTS, plugin

ROOT = Path(__file__).parent.parent
PLUGIN = ROOT / "plugin"
BUNDLE = ROOT / "packaging/mcpb"
SKILL = PLUGIN / "skills/memlane/SKILL.md"
VENDORS = os.environ.get("MEMLANE_CLIENTS")  # read here: tests do not see the variables of memlane


def vendor(name: str) -> tuple[str, dict[str, str]]:
    """A vendor's program and the environment it runs in; skips the test where it is not installed."""
    path = os.pathsep.join([*([f"{VENDORS}/node_modules/.bin"] if VENDORS else []), os.environ["PATH"]])
    program = shutil.which(name, path=path)
    if program is None:
        pytest.skip(f"{name} is not installed: put it on PATH, or name its npm folder in MEMLANE_CLIENTS")
    return program, {**os.environ, "PATH": path}


def validated(name: str, *arguments: object) -> None:
    program, environment = vendor(name)
    result = subprocess.run([program, *map(str, arguments)], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def load(path: Path) -> Any:
    return json.loads(path.read_text())


def front() -> tuple[dict[str, Any], str]:
    _, matter, body = SKILL.read_text().split("---\n", 2)
    return yaml.safe_load(matter), body


def test_all_versions_are_the_packages() -> None:
    server = load(ROOT / "server.json")
    found = {
        "plugin": load(PLUGIN / ".claude-plugin/plugin.json")["version"],
        "marketplace": load(ROOT / ".claude-plugin/marketplace.json")["plugins"][0]["version"],
        "bundle": load(BUNDLE / "manifest.json")["version"],
        "bundle's project": tomllib.loads((BUNDLE / "pyproject.toml").read_text())["project"]["version"],
        "server": server["version"],
        "package of the server": server["packages"][0]["version"],
    }
    assert found == dict.fromkeys(found, __version__)
    assert tomllib.loads((BUNDLE / "pyproject.toml").read_text())["project"]["dependencies"] == [
        f"memlane=={__version__}"
    ]


def test_the_plugin_runs_the_same_hooks_as_connect() -> None:
    client = CLIENTS["claude-code"]
    assert client.handler is not None
    found = load(PLUGIN / "hooks/hooks.json")["hooks"]
    for (group,) in found.values():  # the guard for a machine without memlane comes first
        group["hooks"][0]["command"] = group["hooks"][0]["command"].rpartition("; ")[2]
    assert found == {
        event: [client.handler(event, f"memlane hook claude-code {ours}")] for event, ours in client.events
    }
    assert load(PLUGIN / ".mcp.json") == {"mcpServers": {"memlane": client.entry("memlane")}}


def test_the_plugin_without_memlane_says_so_once_and_is_never_in_the_way(tmp_path: Path) -> None:
    said = {}
    for event, (group,) in load(PLUGIN / "hooks/hooks.json")["hooks"].items():
        done = subprocess.run(
            ["/bin/sh", "-c", group["hooks"][0]["command"]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={"PATH": str(tmp_path)},
            check=True,
        )
        assert done.stderr == b""
        said[event] = done.stdout
    assert json.loads(said.pop("SessionStart")) == {
        "systemMessage": "memlane is not installed: run pipx install . in a checkout of memlane"
    }
    assert set(said.values()) == {b""}


def test_the_source_distribution_has_all_that_ships() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["sdist"][
        "include"
    ]
    assert {"/plugin", "/packaging", "/.claude-plugin", "/server.json"} <= set(listed)
    assert all((ROOT / name.lstrip("/")).exists() for name in listed)


def test_the_marketplace_names_the_plugin() -> None:
    (listed,) = load(ROOT / ".claude-plugin/marketplace.json")["plugins"]
    described = load(PLUGIN / ".claude-plugin/plugin.json")
    assert (ROOT / listed["source"]).resolve() == PLUGIN
    assert {key: listed[key] for key in ("name", "description")} == {
        key: described[key] for key in ("name", "description")
    }
    assert len((PLUGIN / "README.md").read_text().split()) >= 40


def test_the_icon_is_a_square_png() -> None:
    data = (PLUGIN / ".claude-plugin/icon.png").read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", data[16:24]) == (512, 512)


def test_the_skill_keeps_to_its_limits() -> None:
    matter, body = front()
    assert set(matter) <= {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert matter["name"] == SKILL.parent.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", matter["name"])
    assert len(matter["name"]) <= 64
    assert 0 < len(matter["description"]) <= 1024
    assert len(matter["compatibility"]) <= 500
    assert all(isinstance(value, str) for value in matter["metadata"].values())
    assert len(body.splitlines()) < 500


def test_the_skill_names_commands_and_tools_that_exist() -> None:
    from memlane.surfaces.cli import COMMANDS
    from memlane.surfaces.mcp import all_lanes, notes, remember_recall

    _, body = front()
    commands = set(re.findall(r"`memlane ([a-z-]+)", body))
    assert commands
    assert commands <= set(COMMANDS)
    tools = set(re.findall(r"`([a-z]+_[a-z_]+|recall|remember)`", body))
    assert tools
    homes = (notes, all_lanes, remember_recall)
    assert all(any(hasattr(home, name) for home in homes) for name in tools), tools


def test_the_server_description_keeps_to_the_registrys_limits() -> None:
    server = load(ROOT / "server.json")
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", server["name"])
    assert 3 <= len(server["name"]) <= 200
    assert 1 <= len(server["title"]) <= 100
    assert 1 <= len(server["description"]) <= 100
    (package,) = server["packages"]
    assert (package["registryType"], package["identifier"]) == ("pypi", "memlane")
    assert package["transport"] == {"type": "stdio"}


def test_the_bundle_starts_memlane_mcp() -> None:
    manifest = load(BUNDLE / "manifest.json")
    server = manifest["server"]
    assert (BUNDLE / server["entry_point"]).is_file()
    assert server["mcp_config"]["args"][-3:] == ["--bank", "${user_config.folder}", "mcp"]
    assert set(manifest["user_config"]) == {"folder"}


def test_nothing_that_ships_names_a_place_on_one_machine() -> None:
    shipped = [path for folder in (PLUGIN, BUNDLE, ROOT / ".claude-plugin") for path in folder.rglob("*")]
    for path in [ROOT / "server.json", *shipped]:
        if path.is_file() and path.suffix != ".png":
            assert not re.search(r"(?<![\w.])/(home|Users|root|tmp|work)/", path.read_text()), path


# -- the vendors' validators


def test_claude_accepts_the_plugin_and_the_marketplace() -> None:
    validated("claude", "plugin", "validate", PLUGIN, "--strict")
    validated("claude", "plugin", "validate", ROOT, "--strict")


def test_mcpb_accepts_the_manifest() -> None:
    validated("mcpb", "validate", BUNDLE / "manifest.json")


def test_node_accepts_the_plugin_for_opencode(tmp_path: Path) -> None:
    (tmp_path / "memlane.mjs").write_text(plugin('/a "b"/memlane'))
    validated("node", "--check", tmp_path / "memlane.mjs")
