"""Which of several notes of one name a link means."""

from __future__ import annotations

from memlane.index.links import Targets, ghosts_in, links_in


def test_a_link_means_the_note_below_its_own_folder_else_the_one_with_the_shortest_path() -> None:
    targets = Targets(f"notes:{path}" for path in ("b", "d-1/a", "d/e/a", "d/z/y/a", "d0/a", "D/a", "c/d/e/a"))
    sources = ("notes:d/b", "notes:d/z/b", "notes:d-1/b", "notes:d0/b", "notes:D/b", "notes:e/b", "notes:b", "vault:1")
    assert {source: targets.find("ghost:a", source) for source in sources} == {
        "notes:d/b": "notes:d/e/a",
        "notes:d/z/b": "notes:d/z/y/a",
        "notes:d-1/b": "notes:d-1/a",
        "notes:d0/b": "notes:d0/a",
        "notes:D/b": "notes:D/a",
        "notes:e/b": "notes:D/a",
        "notes:b": "notes:D/a",
        "vault:1": "notes:D/a",
    }


def test_a_path_is_shortened_to_its_end_at_a_slash() -> None:
    targets = Targets(["notes:c/d/e/a", "notes:c/xd/e/a", "notes:f/e/a"])
    paths = ("e/a", "d/e/a", "xd/e/a", "c/d/e/a", "x/d/e/a", "de/a")
    assert [targets.find(f"ghost:{path}") for path in paths] == [
        "notes:f/e/a", "notes:c/d/e/a", "notes:c/xd/e/a", "notes:c/d/e/a", None, None,
    ]  # fmt: skip


def test_the_words_around_a_link_say_what_it_is() -> None:
    text = "A plan for [[src/a.py]], which replaces [[memory:old]]; `[[code]]`" + " " * 120 + "xplans [[b|c]] willing"
    kinds = [(node, edge) for node, edge, _ in links_in(text)]
    assert kinds == [("ghost:src/a.py", "plans"), ("memory:old", "SUPERSEDES"), ("ghost:b", "related_to")]
    assert list(ghosts_in(text)) == ["src/a.py", "b"]
