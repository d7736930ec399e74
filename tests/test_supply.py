"""What is installed is what was meant: the lock with its hashes, exact versions for npm, the bill of materials."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "requirements-dev.txt"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PLACES = [
    {"python_version": version, "python_full_version": f"{version}.0", "sys_platform": system}
    | {"platform_system": {"linux": "Linux", "darwin": "Darwin"}[system], "extra": ""}
    for version in ("3.11", "3.12", "3.13", "3.14")
    for system in ("linux", "darwin")
]


def locked() -> list[tuple[Requirement, list[str]]]:
    """Each requirement of the lock with its hashes."""
    text = LOCK.read_text().replace("\\\n", " ")
    found = []
    for line in text.splitlines():
        if not line.startswith("#"):
            requirement, *hashes = line.split("--hash=")
            found.append((Requirement(requirement), [word.strip() for word in hashes]))
    return found


def versions(place: dict[str, str]) -> dict[str, list[str]]:
    """The locked versions that count at a place, by name."""
    found: dict[str, list[str]] = {}
    for one, _ in locked():
        if one.marker is None or one.marker.evaluate(place):
            (only,) = one.specifier
            assert only.operator == "=="
            found.setdefault(canonicalize_name(one.name), []).append(only.version)
    return found


# -- the lock


def test_every_locked_package_has_hashes() -> None:
    assert len(locked()) > 40
    odd = [str(one) for one, hashes in locked() if not hashes or not all(map(is_sha256, hashes))]
    assert odd == []


def is_sha256(word: str) -> bool:
    return re.fullmatch(r"sha256:[0-9a-f]{64}", word) is not None


def test_the_lock_names_no_index_and_no_machine() -> None:
    line = re.compile(r"# [^:]*[.:].*|[a-z0-9][a-z0-9._-]*==[\w.]+( ; [^\\]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?")
    lines = LOCK.read_text().splitlines()
    assert [text for text in lines if not line.fullmatch(text)] == []
    assert re.search(r"://|index.url|find.links|@ |/\w", LOCK.read_text()) is None


@pytest.mark.parametrize("place", PLACES, ids=lambda place: f"{place['python_version']} {place['sys_platform']}")
def test_the_lock_answers_every_requirement_once(place: dict[str, str]) -> None:
    found = versions(place)
    assert {name: all_of for name, all_of in found.items() if len(all_of) > 1} == {}
    asked = PROJECT["project"]["dependencies"] + PROJECT["project"]["optional-dependencies"]["dev"]
    missed = [
        text
        for text in [*asked, *PROJECT["build-system"]["requires"]]
        if not Requirement(text).specifier.contains(found.get(canonicalize_name(Requirement(text).name), ["0"])[0])
    ]
    assert missed == []


def test_what_the_locked_packages_need_is_locked_too() -> None:
    names = {canonicalize_name(one.name) for one, _ in locked()}
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        from sbom import installed
    finally:
        sys.path.pop(0)
    distributions, _ = installed(frozenset({"dev"} if has("hatchling") else ()))
    assert set(distributions) - names == {"memlane"}


def has(name: str) -> bool:
    try:
        return bool(distribution(name))
    except ModuleNotFoundError:
        return False


def test_setup_installs_by_hash_and_from_nothing_else() -> None:
    recipe = said("make", "--dry-run", "--always-make", "setup")
    installs = [line for line in recipe.splitlines() if "pip install" in line]
    assert [("--require-hashes" in line, "--no-deps --no-build-isolation" in line) for line in installs] == [
        (True, False),
        (False, True),
    ]
    assert "--only-binary :all:" in installs[0]


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    """pip itself, offline: the hash of the lock decides, not the name."""
    found = re.search(r"^iniconfig==(\S+)(?: \\\n    --hash=\S+)+$", LOCK.read_text(), re.MULTILINE)
    assert found
    (tmp_path / "requirements.txt").write_text(found[0] + "\n")
    (tmp_path / f"iniconfig-{found[1]}-py3-none-any.whl").write_bytes(b"not what was locked")
    command = [sys.executable, "-m", "pip", "download", "--isolated", "--no-index", "--find-links", str(tmp_path)]
    command += ["--require-hashes", "--no-deps", "-d", str(tmp_path / "out"), "-r", str(tmp_path / "requirements.txt")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "DO NOT MATCH THE HASHES" in done.stderr


# -- make test says what it installs


def said(*command: str, **environment: str) -> str:
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(command, cwd=ROOT, env={**quiet, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_in_a_bare_place(tmp_path: Path, *arguments: str) -> str:
    """`make node` as root where npm is missing: every program that it could find only says that it was called."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "id").write_text("#!/bin/sh\necho 0\n")
    (programs / "apt-get").write_text('#!/bin/sh\necho "apt-get $1" >> "$CALLS"\n')
    for name in programs.iterdir():
        name.chmod(0o755)
    for name in ("sh", "make", "grep", "tr", "cp", "mkdir"):
        (programs / name).symlink_to(_which(name))
    for name in ("Makefile", "tests/clients/package.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    environment = {"PATH": str(programs), "CALLS": str(tmp_path / "calls")}
    command = [str(programs / "make"), "node", *arguments]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _which(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def test_apt_is_announced_before_it_is_used(tmp_path: Path) -> None:
    output = make_in_a_bare_place(tmp_path)
    assert output.splitlines()[0] == (
        "apt: installing nodejs and npm on this system (make test SYSTEM=no leaves it alone)"
    )
    assert (tmp_path / "calls").read_text() == "apt-get update\napt-get install\n"


def test_the_system_is_left_alone_when_asked(tmp_path: Path) -> None:
    output = make_in_a_bare_place(tmp_path, "SYSTEM=no")
    assert output == "npm is not here: the tests with other people's MCP clients are skipped\n"
    assert not (tmp_path / "calls").exists()


def test_npm_and_pip_are_announced() -> None:
    recipe = said("make", "--dry-run", "--always-make", "setup", "node")
    assert re.search(r'^echo "pip: installing .*requirements-dev.txt', recipe, re.MULTILINE)
    assert 'echo "npm: installing ' in recipe


@pytest.mark.parametrize("folder", ["tests/clients", "tests/clients/agents"])
def test_npm_versions_are_exact(folder: str) -> None:
    described = json.loads((ROOT / folder / "package.json").read_text())
    asked = {**described["dependencies"], **described["optionalDependencies"]}
    assert {
        name: version for name, version in asked.items() if not re.fullmatch(r"\d+\.\d+\.\d+(-[\w.]+)?", version)
    } == {}


def test_no_script_of_an_npm_package_is_run_unnamed() -> None:
    calls = re.findall(r"npm install .*", (ROOT / "Makefile").read_text())
    assert len(calls) == 2
    assert all("--ignore-scripts" in call for call in calls)


# -- the bill of materials


@pytest.fixture(scope="module")
def bill() -> Any:
    done = subprocess.run([sys.executable, str(ROOT / "scripts/sbom.py")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_bill_has_the_shape_of_cyclonedx(bill: Any) -> None:
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", bill["serialNumber"])
    product = bill["metadata"]["component"]
    assert (product["type"], product["name"]) == ("application", "memlane")
    for entry in bill["components"]:
        assert set(entry) <= {"type", "bom-ref", "name", "version", "purl", "licenses"}
        assert entry["type"] == "library"
        assert entry["purl"] == entry["bom-ref"] == f"pkg:pypi/{entry['name']}@{entry['version']}"
        for named in entry.get("licenses", ()):
            assert set(named) <= {"expression"} or set(named["license"]) == {"name"}
    refs = [product["bom-ref"], *(entry["bom-ref"] for entry in bill["components"])]
    assert len(refs) == len(set(refs))
    assert sorted(entry["ref"] for entry in bill["dependencies"]) == sorted(refs)
    assert {ref for entry in bill["dependencies"] for ref in entry["dependsOn"]} == set(refs) - {product["bom-ref"]}


def test_the_bill_lists_what_is_installed_and_no_tools(bill: Any) -> None:
    listed = {entry["name"]: entry["version"] for entry in bill["components"]}
    direct = [canonicalize_name(Requirement(text).name) for text in PROJECT["project"]["dependencies"]]
    assert set(direct) <= set(listed)
    assert listed == {name: distribution(name).version for name in listed}
    assert not {"pytest", "ruff", "mypy", "hypothesis", "hatchling"} & set(listed)


def test_the_bill_is_the_same_twice(bill: Any) -> None:
    assert json.loads(said(sys.executable, "scripts/sbom.py")) == bill


# -- the release


def test_a_release_comes_from_a_tag_and_each_job_may_do_one_thing() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML reads `on` as a truth value
    assert workflow["permissions"] == {}
    jobs = workflow["jobs"]
    assert {name: job["permissions"] for name, job in jobs.items()} == {
        "build": {"contents": "read"},
        "attest": {"id-token": "write", "attestations": "write"},
        "publish": {"id-token": "write"},
    }
    assert {name: job.get("needs") for name, job in jobs.items()} == {
        "build": None,
        "attest": "build",
        "publish": "attest",
    }
    assert jobs["publish"]["environment"] == "pypi"
    for name in ("attest", "publish"):  # what holds a token runs no code of the project and of no package
        assert [step for step in jobs[name]["steps"] if "run" in step or "checkout" in step["uses"]] == []


@pytest.mark.parametrize("name", ["ci", "release"])
def test_every_action_is_named_by_its_commit(name: str) -> None:
    text = (ROOT / f".github/workflows/{name}.yml").read_text()
    used = re.findall(r"uses: (.*)", text)
    assert used
    assert [line for line in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


def test_nobody_is_told_to_install_a_name_that_nobody_has_reserved() -> None:
    """Until memlane is on PyPI, whoever takes the name there first could run code on our users' machines."""
    pages = [
        ROOT / "README.md",
        *(ROOT / "plugin").rglob("*.*"),
        *(ROOT / "docs").rglob("*.md"),
        *ROOT.glob("src/**/*.py"),
    ]
    asked = re.compile(r"(?:pip|pipx|uv tool|uv pip) install (?:-\S+ )*['\"]?memlane\b(?!\S* @)|uvx memlane")
    found = [
        str(page.relative_to(ROOT))
        for page in pages
        if page.is_file() and page.suffix != ".png" and asked.search(page.read_text())
    ]
    assert found == []
