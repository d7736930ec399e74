"""The readers over real notes that nobody here wrote: no crash, no silent loss, every edit confined to its key.

Needs a folder of notes-*.tar.gz and vault-*.tar.gz, named by MEMLANE_DATA when the tests are run.
"""

from __future__ import annotations

import os
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from memlane import Memory, NoteLane
from memlane.core.front_matter import FrontMatterError, edit_front, find_front, load_front
from memlane.lanes import scan

DATA = Path(os.environ.get("MEMLANE_DATA", "nowhere"))
ARCHIVES = sorted([*DATA.glob("notes-*.tar.gz"), *DATA.glob("vault-*.tar.gz")]) or [
    pytest.param(None, marks=pytest.mark.skip("MEMLANE_DATA names no folder with notes-*.tar.gz"))
]


@pytest.fixture(scope="module", params=ARCHIVES, ids=str)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("real")
    with tarfile.open(request.param) as tar:
        tar.extractall(target, filter="data")
    return target


def test_every_file_is_a_memory_or_a_problem(folder: Path) -> None:
    items = list(scan(NoteLane(folder)))
    seen = {item.file if isinstance(item, Memory) else str(item.path) for item in items}
    files = {str(path) for path in folder.rglob("*.md") if ".github" not in path.parts}
    assert files - seen == set()
    reasons = Counter(item.why for item in items if not isinstance(item, Memory))
    assert set(reasons) <= {"is hidden and not read; rename it without the leading dot"}


def test_the_whole_text_is_read(folder: Path) -> None:
    for memory in scan(NoteLane(folder)):
        if isinstance(memory, Memory):
            assert memory.path.read_bytes().decode().endswith(memory.text)


def test_an_edit_of_one_key_changes_nothing_else(folder: Path) -> None:
    count = 0
    for memory in scan(NoteLane(folder)):
        if not isinstance(memory, Memory):
            continue
        text = memory.path.read_bytes().decode()
        try:
            edited = edit_front(text, {"memlane_probe": "x"})
        except FrontMatterError:
            continue  # a style that cannot be edited key by key is refused, not guessed at
        count += 1
        front = find_front(edited)
        assert front is not None
        assert load_front(edited[front.start : front.end])["memlane_probe"] == "x"
        assert edited.endswith(memory.text)
        if find_front(text):
            assert edit_front(edited, {"memlane_probe": None}) == text
    assert count > 700
