"""An adapter whose framework is not installed says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

from memlane.adapters import missing


def test_a_missing_framework_is_answered_with_the_extra_that_brings_it() -> None:
    assert str(missing("langgraph", "langgraph", "langgraph-checkpoint")) == (
        "memlane.adapters.langgraph needs langgraph-checkpoint, which is not installed here. "
        'Install memlane with its extra "langgraph", or the package alone: pip install langgraph-checkpoint'
    )


@pytest.mark.parametrize(
    ("adapter", "extra", "package", "module"),
    [
        ("anthropic", "anthropic", "anthropic", "anthropic"),
        ("openai_agents", "openai-agents", "openai-agents", "agents"),
        ("langgraph", "langgraph", "langgraph-checkpoint", "langgraph"),
        ("langchain", "langchain", "langchain-core", "langchain_core"),
    ],
)
def test_an_adapter_without_its_framework_says_so(adapter: str, extra: str, package: str, module: str) -> None:
    code = f"import sys; sys.modules[{module!r}] = None; import memlane.adapters.{adapter}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stderr.splitlines()[-1] == f"ImportError: {missing(adapter, extra, package)}"
