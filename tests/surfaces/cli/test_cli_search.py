"""`memlane search`, `links`, `graph`, `suggest-merges` and `reindex`."""

from __future__ import annotations

from commands import Run
from memlane import Bank


def test_the_search_verbs(run: Run, bank: Bank) -> None:
    run("add", "We deploy on Tuesdays, see [[src/deploy.py]].", "--title", "Deploy day", "-t", "ops")
    run("add", "Cats like tuna.", "--title", "Pets")
    assert [hit["id"] for hit in run("search", "deployment day", "-n", "1", "--json").json] == ["notes:deploy-day"]
    assert run("search", "deploy", "--explain").out.startswith("notes:deploy-day\t")
    assert "words" in run("search", "deploy", "--explain").out
    assert run("search", "--json", "--", "-deploy tuna").json[0]["id"] == "notes:pets"
    assert [link["id"] for link in run("links", "src/deploy.py", "--json").json] == ["notes:deploy-day"]
    assert any(node["is_ghost"] for node in run("links", "--json").json["nodes"])
    assert run("review", "--only", "similar", "--json").json == []
    assert run("doctor", "--reindex", "--json").json == {"indexed": 2}
    assert run("search", "zzzz qqqq").err == "nothing found\n"


def test_words_are_searched_for_with_quotes_or_without(run: Run, bank: Bank) -> None:
    run("add", "We deploy on Tuesdays.", "--title", "Deploy day")
    quoted = run("search", "deploy on tuesdays", "--explain").out
    assert run("search", "deploy", "on", "tuesdays", "--explain").out == quoted
    assert run("context", "deploy", "on", "tuesdays").out == run("context", "deploy on tuesdays").out
    assert run("search").err.startswith("error: Missing argument 'QUERY'")
