"""docs/adapters.md tells the truth: the session in each part is run, where its framework is installed."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs/adapters.md").read_text()
PARTS = {part.split("\n", 1)[0]: part for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]}


@pytest.mark.parametrize("name", PARTS)
def test_the_session_does_what_it_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in re.findall(r"memlane\.adapters\.\w+", PARTS[name]):
        try:
            importlib.import_module(module)
        except ImportError as error:
            pytest.skip(str(error))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    names: dict[str, object] = {}
    for block in re.findall(r"^```pycon\n(.*?)^```", PARTS[name], re.MULTILINE | re.DOTALL):
        test = doctest.DocTestParser().get_doctest(block.expandtabs(), names, name, "adapters.md", 0)
        said: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        assert runner.run(test, out=said.append, clear_globs=False).failed == 0, "".join(said)
        names.update(test.globs)


@pytest.mark.parametrize("name", PARTS)
def test_the_programs_are_python(name: str) -> None:
    for block in re.findall(r"^```py\n(.*?)^```", PARTS[name], re.MULTILINE | re.DOTALL):
        compile(block, name, "exec")
