"""The trash overwrites nothing, and remembers the names."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from conftest import tree
from memlane import InvalidInput
from memlane.disk import trash

NOW = datetime(2025, 1, 10, 14, 30, 22, tzinfo=UTC)


def test_the_trash_never_overwrites(tmp_path: Path) -> None:
    for text in (b"1", b"2", b"3"):
        (tmp_path / "a.md").write_bytes(text)
        trash.put(str(tmp_path / "a.md"), tmp_path, NOW)
    assert tree(tmp_path / ".trash") == {
        "a_20250110_143022-1.md": b"2",
        "a_20250110_143022-2.md": b"3",
        "a_20250110_143022.md": b"1",
    }


def test_a_trash_that_is_a_link_out_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "bank").mkdir()
    (tmp_path / "bank/.trash").symlink_to(tmp_path)
    (tmp_path / "bank/a.md").write_text("x")
    with pytest.raises(InvalidInput):
        trash.put(str(tmp_path / "bank/a.md"), tmp_path / "bank", NOW)
    assert (tmp_path / "bank/a.md").exists()


def test_other_files_in_the_trash_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / ".trash").mkdir()
    for name in ("foo_99999999_999999.md", "readme.md"):
        (tmp_path / ".trash" / name).write_text("x")
    assert list(trash.contents(tmp_path)) == []


def test_the_trash_remembers_names_and_order(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("a_20240101_000000.md", "sub/b.md", "sub/b.md"):
        (tmp_path / name).write_text("x")
        trash.put(str(tmp_path / name), tmp_path, NOW)
    assert [(name, Path(path).name) for name, path, _ in trash.contents(tmp_path)] == [
        ("sub/b.md", "b_20250110_143022-1.md"),
        ("sub/b.md", "b_20250110_143022.md"),
        ("a_20240101_000000.md", "a_20240101_000000_20250110_143022.md"),
    ]
