"""Listing with filters: the index says which files to read, and the answer is what reading all of them gives."""

from __future__ import annotations

import shutil
from itertools import product
from pathlib import Path

import pytest

from memlane import Bank
from memlane.core.choosing import fitting, list_order

FILTERS = [
    {"tags": ["b", "nowhere"]},
    {"type": "plan"},
    {"status": "archived"},
    {"scope": "area:x"},
    {"project": "p"},
    {"thread": "t"},
    {"since": "2025-01-03"},
    {"until": "2025-01-03"},
    {"tags": ["a"], "since": "2025-01-02", "until": "2025-01-04", "archived": True},
    {"archived": True},
    {},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("listing")
    with Bank.init(folder) as bank:
        for number, (tag, archived) in enumerate(product("ab", (False, True, False))):
            head = [f"tags: [{tag}]", f"type: {('plan', 'journal')[number % 2]}", f"project: {'pq'[number % 2]}"]
            head += [f'created_at: "2025-01-0{number + 1}T12:00:00Z"'] if number else []
            head += ["status: archived"] if archived else []
            text = "---\n" + "\n".join(head) + f"\n---\n\nNote {number}.\n"
            (bank.root / f"n{number}.md").write_text(text)
        bank.add("Said in a thread.", lane="records", thread="t", scope="area:x")
        bank.add("In the vault.", lane="vault", scope="area:x")
    return folder


@pytest.mark.parametrize("limit", [None, 2])
@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize("chosen", FILTERS, ids=str)
def test_a_filter_finds_what_the_files_have(
    folder: Path, tmp_path: Path, chosen: dict[str, object], indexed: bool, limit: int | None
) -> None:
    shutil.copytree(folder, tmp_path / "copy", ignore=shutil.ignore_patterns("indices"))
    with Bank.open(tmp_path / "copy") as bank:
        if indexed:
            bank.index.refresh(force=True)
        fits = fitting(**chosen)  # type: ignore[arg-type]
        wanted = sorted(filter(fits, bank.memories()), key=list_order)[:limit]
        assert [memory.id for memory in bank.list(limit=limit, **chosen)] == [memory.id for memory in wanted]  # type: ignore[arg-type]


def test_the_newest_of_the_vault_are_listed_alike_from_the_index_and_from_the_file(tmp_path: Path) -> None:
    with Bank.init(tmp_path) as bank:
        bank.add("Deploys go out on Tuesdays.", lane="vault", type="constraint", tags=["release"], title="Deploys")
        for now in ("Alpha", "Beta"):
            bank.add(f"The current project is {now}.", lane="vault", tier="register", topic_id="current")
        gone = bank.add("Nobody works on Sundays, and that will stay so.", lane="vault")
        bank.delete(gone.id)
        from_file = bank.list(lane="vault", limit=10)
        bank.search("deploys")
        assert bank.list(lane="vault", limit=10) == from_file == bank.list(lane="vault")
        bank.add("Reviews take a day.", lane="vault")
        assert [memory.text for memory in bank.list(lane="vault", limit=1)] == ["Reviews take a day."]
