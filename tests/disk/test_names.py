"""Names that every file system takes, and none that leads out of the bank."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlane import InvalidInput
from memlane.disk.names import inside, safe_parts


@pytest.mark.parametrize(
    "name",
    [
        "",
        "  ",
        "..",
        "../x.md",
        "a/../b.md",
        "/etc/passwd",
        "a//b.md",
        "./x.md",
        "C:\\x.md",
        "a\\b.md",
        "nul\0.md",
        "tab\t.md",
        "bell\x07.md",
        "con.md",
        "COM1.md",
        "aux",
        ".hidden.md",
        "trailing. ",
        "trailing.",
        " leading.md",
        "what?.md",
        "a:b.md",
        "zero\u200bwidth.md",
        "right\u202eleft.md",
        "x" * 201,
        "é" * 101,
        "lone\ud800.md",
    ],
)
def test_unsafe_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        safe_parts(name)


@pytest.mark.parametrize("name", ["../secret-canary.md", "secret-canary\0.md", "/secret-canary", "secret-canary" * 30])
def test_a_refused_name_is_not_echoed(name: str) -> None:
    """It may be a secret in the wrong place."""
    with pytest.raises(InvalidInput) as caught:
        safe_parts(name)
    assert "canary" not in str(caught.value) + caught.value.hint


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a.md", ("a.md",)),
        ("2025/january/day.md", ("2025", "january", "day.md")),
        ("日本語 ノート.md", ("日本語 ノート.md",)),
        ("cafe\u0301.md", ("caf\u00e9.md",)),
        ("console.md", ("console.md",)),
    ],
)
def test_safe_names_are_split_and_normalised(name: str, parts: tuple[str, ...]) -> None:
    assert safe_parts(name) == parts


@given(st.text(max_size=40))
def test_no_accepted_name_leaves_the_folder(name: str) -> None:
    try:
        parts = safe_parts(name)
    except InvalidInput:
        return
    assert os.path.normpath(os.path.join("/bank", *parts)).startswith("/bank/")


def test_a_link_out_of_the_bank_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "bank").mkdir()
    (tmp_path / "bank/out").symlink_to(tmp_path)
    with pytest.raises(InvalidInput, match="leads out of the bank"):
        inside(tmp_path / "bank", "out", "x.md")


def test_a_bank_behind_a_link_is_fine(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "bank").symlink_to(tmp_path / "real")
    assert inside(tmp_path / "bank", "x.md") == str(tmp_path / "bank/x.md")
