"""What the project says of itself is true: the layout, the contributors' guide, the decisions, the checks."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src/memlane"
MODULES = sorted(SOURCE.rglob("*.py"))
DECISIONS = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
# A path that starts in one of the project's own folders; not the target of a link such as [[src/auth.py]].
PATH = re.compile(r"(?<![\w./\[-])(?:src|tests|docs|bench|scripts|plugin|packaging|\.github)/[\w./-]*\w")


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def config(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


# -- the layout


def test_the_source_folder_can_be_taken_in_at_a_glance() -> None:
    entries = [path.name for path in SOURCE.iterdir() if path.name != "__pycache__"]
    assert len(entries) <= 17, sorted(entries)


def test_every_package_and_module_says_what_it_is() -> None:
    silent = [relative(path) for path in MODULES if not ast.get_docstring(parsed(path))]
    assert silent == []


def test_no_module_is_too_long_to_read_in_one_sitting() -> None:
    lengths = {relative(path): len(path.read_text().splitlines()) for path in MODULES}
    assert {name: length for name, length in lengths.items() if length > 600} == {}


def test_no_class_is_too_long_to_keep_in_mind() -> None:
    lengths = {
        f"{relative(path)}:{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in MODULES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef)
    }
    assert {name: length for name, length in lengths.items() if length > 400} == {}


def test_no_two_test_files_have_the_same_name() -> None:
    """pytest runs without packages, so the second of two would not be imported."""
    names = [path.name for path in (ROOT / "tests").rglob("*.py") if path.name not in ("__main__.py", "__init__.py")]
    assert sorted(names) == sorted(set(names))


# -- the contributors' guide


def test_the_guide_has_a_row_for_every_part() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \| \S", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    parts = {path.name for path in SOURCE.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert sorted(rows) == sorted(parts - {"__init__.py", "__main__.py", "__pycache__"})


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/design.md", *map(relative, DECISIONS)])
def test_every_path_that_a_page_names_exists(page: str) -> None:
    named = PATH.findall((ROOT / page).read_text())
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_file_that_the_design_points_to_exists() -> None:
    table = re.search(r"^## Where to look\n(.*?)^## ", (ROOT / "docs/design.md").read_text(), re.MULTILINE | re.DOTALL)
    assert table
    named = re.findall(r"`([\w/]+(?:\.py|/))`", table[1])
    assert len(named) > 40
    assert [path for path in named if not (SOURCE / path).exists() and not list(SOURCE.rglob(path))] == []


def test_every_make_target_that_the_guide_names_exists() -> None:
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert named
    assert named - targets == set()


# -- the decisions


@pytest.mark.parametrize("record", DECISIONS, ids=relative)
def test_a_decision_has_its_three_parts(record: Path) -> None:
    headings = re.findall(r"^#+ .*$", record.read_text(), re.MULTILINE)
    assert headings[0].startswith(f"# {int(record.name[:4])}. ")
    assert headings[1:] == ["## Context", "## Decision", "## Consequences"]


def test_the_index_lists_every_decision_by_its_title() -> None:
    index = (ROOT / "docs/decisions/README.md").read_text()
    listed = re.findall(r"^\| (\d+) \| \[(.+)\]\((.+)\) \|$", index, re.MULTILINE)
    titles = [record.read_text().split("\n", 1)[0].removeprefix("# ") for record in DECISIONS]
    assert [(f"{number}. {title}", name) for number, title, name in listed] == [
        (title, record.name) for title, record in zip(titles, DECISIONS, strict=True)
    ]
    assert [int(number) for number, _, _ in listed] == list(range(1, len(DECISIONS) + 1))


def test_the_design_links_to_every_decision() -> None:
    linked = re.findall(r"\(decisions/(\d.*?\.md)\)", (ROOT / "docs/design.md").read_text())
    assert linked == [record.name for record in DECISIONS]


# -- continuous integration and checks


def test_ci_runs_the_python_versions_of_the_package() -> None:
    found = project()["project"]
    versions = [name.rpartition(" ")[2] for name in found["classifiers"] if re.search(r"Python :: 3\.\d+$", name)]
    matrix = config(".github/workflows/ci.yml")["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == versions
    assert found["requires-python"] == f">={versions[0]}"
    assert {entry["python"] for entry in matrix["include"]} <= set(versions)


def test_ci_runs_make_test_and_may_only_read() -> None:
    workflow = config(".github/workflows/ci.yml")
    steps = workflow["jobs"]["test"]["steps"]
    assert workflow["permissions"] == {"contents": "read"}
    assert [step["run"] for step in steps if "run" in step] == ["make test SYSTEM=no"]
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"]) for step in steps if "uses" in step)


def test_every_check_of_make_lint_is_a_commit_hook() -> None:
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe
    checks = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe[1].splitlines()]
    hooks = [hook["entry"] for repo in config(".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    assert [check for check in checks if check not in hooks] == []


@pytest.mark.parametrize("form", ["bug_report", "feature_request"])
def test_an_issue_form_warns_before_it_asks_for_the_doctors_output(form: str) -> None:
    body = config(f".github/ISSUE_TEMPLATE/{form}.yml")["body"]
    (asked,) = [field["attributes"] for field in body if field.get("id") == "doctor"]
    assert "memlane doctor --json" in asked["label"]
    assert "Read it before you paste it" in asked["description"]


# -- files of a bank are touched by memlane.disk alone

TOUCHING = {
    "open", "os.open", "os.walk", "os.listdir", "os.scandir", "os.unlink", "os.remove", "os.rename", "os.replace",
    "os.link", "os.symlink", "os.mkdir", "os.makedirs", "os.rmdir", "os.chmod", "os.truncate", "shutil.rmtree",
    "shutil.move", "shutil.copy", "shutil.copyfile", "shutil.copytree",
}  # fmt: skip
TOUCHING_METHODS = {
    "read_text", "read_bytes", "write_text", "write_bytes", "unlink", "mkdir", "rmdir", "iterdir", "glob", "rglob",
    "touch", "rename", "symlink_to", "hardlink_to", "chmod",
}  # fmt: skip
ELSEWHERE = {  # modules that work on something other than a bank, and on what
    "capture/clients.py": "the client's transcripts",
    "capture/distil/scorer.py": "weights that memlane ships",
    "capture/transcript_file.py": "the client's transcripts",
    "care/forget.py": "exports in the project and the user's own state: only their names",
    "care/sync/state.py": "the user's own state",
    "config/trust.py": "the user's own state, and a configuration before it is trusted",
    "config/tokens.py": "the user's own file of tokens",
    "exchange/adopt.py": "names of stores in the project",
    "exchange/importers/folder.py": "folders that are imported",
    "exchange/importers/json_lines.py": "files that are imported",
    "exchange/remotes/folder.py": "a folder that several people share, whose files belong to each of them",
    "history/past.py": "a temporary copy",
    "index/database.py": "SQLite's file, which is checked before it is opened",
    "index/encoders.py": "models",
    "index/facts.py": "the user's own state",
    "index/seal.py": "SQLite's file, which is checked before it is opened, and the user's own state",
    "surfaces/cli/__init__.py": "/dev/null",
    "surfaces/cli/edit.py": "a temporary copy for the editor",
    "surfaces/cli/mcp.py": "the token file that the user names",
    "surfaces/clients/backups.py": "the user's own state",
    "surfaces/clients/connection.py": "clients' configuration",
    "surfaces/hook.py": "the user's own state",
    "surfaces/moments.py": "the user's own state",
    "surfaces/resident.py": "the user's own state, the program's files, and what the system says of processes",
    "surfaces/ui/serving.py": "the files of the page, which come with the package",
}


def _touches(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            owner, _, method = name.rpartition(".")
            if name in TOUCHING or (owner not in ("", "files", "re") and method in TOUCHING_METHODS):
                yield f"{node.lineno}: {name}"


def test_only_the_disk_room_touches_the_files_of_a_bank() -> None:
    """It alone refuses links, pipes, strangers' files and huge ones: use memlane.disk.files, not open() or os.walk."""
    found = {path.relative_to(SOURCE).as_posix(): list(_touches(path)) for path in MODULES}
    touching = {name for name, calls in found.items() if calls and not name.startswith("disk/")}
    assert {name: found[name] for name in touching - ELSEWHERE.keys()} == {}
    assert ELSEWHERE.keys() - touching == set()  # nothing that needs no exception has one
