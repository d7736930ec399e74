"""`memlane topics`."""

from __future__ import annotations

from commands import Run
from memlane import Bank


def test_the_topics_verbs(run: Run, bank: Bank) -> None:
    stored = run("topics", "store", "auth/oauth2", "--title", "Refresh", "--problem", "It fails.", "--json").json
    assert (stored["stored"], stored["pruned"]) == (True, 0)
    assert [entry["title"] for entry in run("topics", "search", "refresh", "--json").json] == ["Refresh"]
    assert [entry["title"] for entry in run("topics", "load", "auth/oauth2", "--json").json] == ["Refresh"]
    assert "It fails." in run("topics", "embed", "auth").out
    assert run("topics", "reindex").code == 0
