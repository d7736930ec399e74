"""The README and the docs tell the truth: their examples are run."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def steps(block: str) -> list[tuple[str, str]]:
    """(command, expected output) of a console block; `…` stands for anything."""
    return [
        (part.split("\n", 1)[0], part.split("\n", 1)[1]) for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    ]


def matches(expected: str, actual: str) -> bool:
    pattern = "".join(".*" if part == "…" else re.escape(part) for part in re.split("(…)", expected))
    return re.fullmatch(pattern, actual) is not None


def run_console(text: str, folder: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "NO_COLOR": "1"}
    for block in blocks(text, "console"):
        for command, expected in steps(block):
            result = subprocess.run(
                ["bash", "-c", f"{{ {command}; }} 2>&1"], cwd=folder, env=environment, capture_output=True, text=True
            )
            assert matches(expected, result.stdout), f"$ {command}\n{result.stdout}\nexpected:\n{expected}"


def test_the_readmes_examples_do_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "README.md").read_text()
    run_console(text, tmp_path)
    monkeypatch.chdir(tmp_path)
    for block in blocks(text, "python"):
        test = doctest.DocTestParser().get_doctest(block, {}, "README", "README.md", 0)
        assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_the_examples_of_the_docs_do_what_they_say(page: Path, tmp_path: Path) -> None:
    run_console(page.read_text(), tmp_path)


def test_the_readmes_first_commands_exist_in_the_makefile() -> None:
    first = re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE)[:2]
    assert first == ["demo", "test"]
    for target in first:
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_every_link_in_the_docs_leads_somewhere() -> None:
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text()):
            if "://" not in target:
                assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_no_page_is_empty_or_unfinished() -> None:
    for path in (ROOT / "docs").glob("*.md"):
        text = path.read_text()
        assert len(text) > 1000, path.name
        assert not re.search(r"^(FIGURES|FORMULA|ENCODER|TODO)$", text, re.MULTILINE), path.name


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 150


def test_the_demo_runs() -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    result = subprocess.run([ROOT / "demo.sh"], env=environment, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    for expected in ("notes:deploy-day", "(exit code 4)", "(exit code 6)", "Still readable."):
        assert expected in result.stdout


def test_the_changelog_names_the_version() -> None:
    from memlane import __version__

    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()
