"""An adapter whose framework is not installed says what to install."""

from __future__ import annotations

from memlane.adapters import missing


def test_a_missing_framework_is_answered_with_the_extra_that_brings_it() -> None:
    assert str(missing("langgraph", "langgraph", "langgraph-checkpoint")) == (
        "memlane.adapters.langgraph needs langgraph-checkpoint, which is not installed here. "
        'Install memlane with its extra "langgraph", or the package alone: pip install langgraph-checkpoint'
    )
