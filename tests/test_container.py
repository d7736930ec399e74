"""The container image, the compose file and the systemd unit: what can be checked without building or starting them."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from packaging.requirements import Requirement

from memlane.surfaces.cli import app
from memlane.surfaces.mcp import health, oauth

ROOT = Path(__file__).parent.parent
PLACE = ROOT / "packaging/container"
SECRET = re.compile(r"TOKEN|PASSWORD|SECRET|KEY")


def instructions() -> list[tuple[str, str]]:
    """The Containerfile's instructions, each with what follows it."""
    text = re.sub(r"^\s*#.*\n", "", (PLACE / "Containerfile").read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines if line)]


def last(name: str) -> str:
    return [rest for given, rest in instructions() if given == name][-1]


def accepted(words: list[str]) -> click.Context:
    """What the command line makes of these words; it exits when it does not understand them."""
    command: click.Command | None = app
    context = click.Context(app)
    while isinstance(command, click.Group):
        name, *words = words
        command = command.get_command(context, name)
        assert command is not None, name
        context = click.Context(command, parent=context, info_name=name)
    assert command is not None
    return command.make_context(context.info_name, words, parent=context.parent)


def test_the_image_runs_what_the_command_line_knows_as_a_user_of_its_own() -> None:
    assert json.loads(last("ENTRYPOINT")) == ["memlane"]
    assert accepted(json.loads(last("CMD"))).params["host"] == "0.0.0.0"
    assert last("USER") == "10001:10001"
    stages = [rest for name, rest in instructions() if name == "FROM"]
    assert all(re.fullmatch(r"docker\.io/library/python:\$\{PYTHON\}-slim( AS build)?", stage) for stage in stages)


def test_the_image_asks_the_server_whether_it_lives() -> None:
    command = json.loads(last("HEALTHCHECK").partition("CMD ")[2])
    assert command[:2] == ["python", "-c"]
    assert f":8765{health.ALIVE}" in command[2]
    compile(command[2], "HEALTHCHECK", "exec")


def test_what_is_installed_is_locked_and_nothing_secret_is_in_the_image() -> None:
    installs = [line for name, line in instructions() if name == "RUN" and "pip install" in line]
    assert ["--require-hashes --only-binary :all:" in line for line in installs] == [True, False]
    assert "--no-deps --no-build-isolation ." in installs[1]
    assert [rest for name, rest in instructions() if name in ("ENV", "ARG") and SECRET.search(rest)] == []
    assert "ADD" not in dict(instructions())


def test_every_file_that_is_copied_is_there_and_gets_into_the_build() -> None:
    copied = [word for name, rest in instructions() if name == "COPY" and "--from" not in rest for word in rest.split()]
    sources = {word for word in copied if not word.startswith("./")}
    assert {name for name in sources if not (ROOT / name).exists()} == set()
    let_in = {line[1:] for line in (PLACE / "Containerfile.dockerignore").read_text().splitlines() if line[:1] == "!"}
    assert sources == let_in


def test_the_lock_of_the_image_has_the_versions_that_are_tested() -> None:
    def locked(name: str) -> set[str]:
        return set(re.findall(r"^[a-z0-9][^\s;]*==\S+", (ROOT / name).read_text(), re.MULTILINE))

    names = {Requirement(line).name for line in locked("requirements-server.txt")}
    assert locked("requirements-server.txt") - locked("requirements-dev.txt") == set()
    assert {"mcp", "numpy", "psycopg", "psycopg-binary", "botocore", "hatchling"} <= names
    assert {"pytest", "mypy", "moto", "playwright"} & names == set()


@pytest.fixture
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((PLACE / "compose.yaml").read_text())
    return loaded


def test_the_compose_file_starts_what_the_command_line_knows_with_as_little_as_it_needs(
    compose: dict[str, Any],
) -> None:
    services = compose["services"]
    for name in ("server", "sync"):
        one = services[name]
        accepted(one["command"])
        kept = (one["read_only"], one["cap_drop"], one["security_opt"], one["tmpfs"])
        assert kept == (True, ["ALL"], ["no-new-privileges:true"], ["/tmp"])
        assert one["depends_on"] == {"db": {"condition": "service_healthy"}}
        assert one["image"] == "memlane"
    build = services["server"]["build"]
    assert (PLACE / build["context"] / build["dockerfile"]).resolve() == PLACE / "Containerfile"
    assert ("build" in services["sync"], services["sync"]["pull_policy"]) == (False, "never")
    assert services["server"]["ports"] == ["127.0.0.1:8765:8765"]
    assert ("ports" in services["db"], "healthcheck" in services["db"]) == (False, True)
    mounted = {volume.partition(":")[0] for one in services.values() for volume in one["volumes"]}
    assert mounted == set(compose["volumes"])


def test_compose_takes_the_file_with_its_three_settings_alone() -> None:
    known = subprocess.run(["docker", "compose", "version"], capture_output=True) if shutil.which("docker") else None
    if known is None or known.returncode:
        pytest.skip("needs docker compose")
    names = re.findall(r"#   export (\w+)=", (PLACE / "compose.yaml").read_text())
    for left_out in (None, *names):
        environment = {**os.environ, **{name: "https://mem.example.com" for name in names if name != left_out}}
        asked = ["docker", "compose", "--file", PLACE / "compose.yaml", "config", "--quiet"]
        done = subprocess.run(asked, env=environment, capture_output=True, text=True)
        assert (done.returncode == 0) == (left_out is None), done.stderr


def test_no_secret_is_written_down(compose: dict[str, Any]) -> None:
    given = {name: value for one in compose["services"].values() for name, value in one["environment"].items()}
    literal = {name for name, value in given.items() if SECRET.search(name) and not value.startswith("${")}
    assert literal == set()


def test_the_commands_that_the_compose_file_tells_are_commands() -> None:
    told = re.findall(r"docker compose run --rm server (.*)", (PLACE / "compose.yaml").read_text())
    assert told
    for line in told:
        accepted(shlex.split(line))


def test_the_unit_runs_what_the_command_line_knows() -> None:
    unit = RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(PLACE / "memlane.service")
    service = unit["Service"]
    for name in ("ExecStartPre", "ExecStart"):
        program, *words = shlex.split(service[name])
        assert program == "/usr/local/lib/memlane/bin/memlane"
        accepted(words)
    assert (service["User"], service["ProtectSystem"], service["NoNewPrivileges"]) == ("memlane", "strict", "yes")
    (told,) = re.findall(r"sudo .* /usr/local/lib/memlane/bin/memlane (.*)", (PLACE / "memlane.service").read_text())
    accepted(shlex.split(told))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_takes_the_unit_and_finds_little_that_it_could_do_harm_with(tmp_path: Path) -> None:
    unit = tmp_path / "memlane.service"
    text = (PLACE / "memlane.service").read_text()
    unit.write_text(text.replace("/usr/local/lib/memlane/bin/memlane", str(Path(sys.executable).with_name("memlane"))))
    verified = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True)
    assert (verified.returncode, verified.stdout, verified.stderr) == (0, "", "")
    rated = ["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", unit]  # of 100
    assert subprocess.run(rated, capture_output=True).returncode == 0


def test_the_public_address_of_the_examples_is_one() -> None:
    told = re.findall(
        r"MEMLANE_PUBLIC_URL=(\S+)|(http://127\.0\.0\.1:\d+) to try", (PLACE / "compose.yaml").read_text()
    )
    for address in filter(None, (word for pair in told for word in pair)):
        assert oauth.public(address) == address
