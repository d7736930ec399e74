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


def examples(text: str) -> list[tuple[str, str]]:
    """(language, block) of all examples that can be run, in their order."""
    return re.findall(r"^```(console|python)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def steps(block: str) -> list[tuple[str, str]]:
    """(command, expected output) of a console block; `…` stands for anything."""
    return [
        (part.split("\n", 1)[0], part.split("\n", 1)[1]) for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    ]


def matches(expected: str, actual: str) -> bool:
    pattern = "".join(".*" if part == "…" else re.escape(part) for part in re.split("(…)", expected))
    return re.fullmatch(pattern, actual) is not None


def run_console(block: str, folder: Path, programs: str) -> None:
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "NO_COLOR": "1"}
    for command, expected in steps(block):
        result = subprocess.run(
            ["bash", "-c", f"{{ {command}; }} 2>&1"], cwd=folder, env=environment, capture_output=True, text=True
        )
        assert matches(expected, result.stdout), f"$ {command}\n{result.stdout}\nexpected:\n{expected}"


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda path: path.name
)
def test_the_examples_do_what_they_say(page: Path, tmp_path: Path, warm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page is one session in an empty folder: its commands and its Python, one after the other."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for language, block in examples(page.read_text()):
        if language == "console":
            run_console(block, tmp_path, f"{warm}:{Path(sys.executable).parent}")
            continue
        test = doctest.DocTestParser().get_doctest(block, names, page.name, page.name, 0)
        said: list[str] = []
        assert test.examples, f"not as a session:\n{block}"
        assert doctest.DocTestRunner().run(test, out=said.append, clear_globs=False).failed == 0, "".join(said)
        names.update(test.globs)


def test_no_example_leaves_the_folder_that_the_next_one_is_for() -> None:
    """Here each command has a shell of its own; somebody who follows a page types them all into one."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    blocks = [block for page in pages for language, block in examples(page.read_text("utf-8")) if language == "console"]
    commands = [command for block in blocks for command, _ in steps(block)]
    assert [command for command in commands if re.search(r"(?:^|&&|;) *cd ", command)] == []


def test_every_method_of_a_bank_has_an_example() -> None:
    from memlane import Bank

    code = "\n".join(
        block for language, block in examples((ROOT / "docs/python.md").read_text()) if language == "python"
    )
    used = set(re.findall(r"\b(?:bank|then|Bank)\.(\w+)", code))
    assert sorted({name for name in vars(Bank) if not name.startswith("_")} - used) == []


def test_the_readmes_first_commands_exist_in_the_makefile() -> None:
    first = re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE)[:2]
    assert first == ["demo", "test"]
    for target in first:
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_every_link_in_the_docs_leads_somewhere() -> None:
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
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
