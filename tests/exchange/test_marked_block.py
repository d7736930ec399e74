"""A marked block in a file that is not ours: every other byte stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlane import InvalidInput, StorageError
from memlane.exchange import marked_block
from taking import write

BYTES = (
    st.text(st.characters(codec="utf-8", exclude_characters="\0") | st.sampled_from("\r\n\r\n <!->"), max_size=80)
    .map(str.encode)
    .filter(lambda data: b"memlane:" not in data)
)
CONTENT = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=60) | st.just(
    f"a\n{marked_block.END}\nb\n{marked_block.START}\n"
)


@given(data=BYTES | BYTES.map(lambda data: data + b"\r\n"), content=CONTENT, again=CONTENT)
def test_a_block_leaves_every_other_byte_and_can_be_taken_out_again(data: bytes, content: str, again: str) -> None:
    first = marked_block.with_block(data, content)
    assert first.startswith(data)
    assert marked_block.with_block(first, content) == first
    second = marked_block.with_block(first, again)
    assert marked_block.with_block(second, content) == first
    assert marked_block.without_block(second) == data


@given(before=BYTES, after=BYTES, content=CONTENT, newline=st.sampled_from([b"\n", b"\r\n"]))
def test_a_block_in_the_middle_stays_where_it_is(before: bytes, after: bytes, content: str, newline: bytes) -> None:
    head = before + newline
    found = head + newline.join([marked_block.START.encode(), b"old", marked_block.END.encode()]) + newline + after
    changed = marked_block.with_block(found, content)
    assert changed.startswith(head + marked_block.START.encode())
    assert changed.endswith(marked_block.END.encode() + newline + after)


@pytest.mark.parametrize(
    "text",
    [
        f"{marked_block.START}\n",
        f"{marked_block.END}\n",
        f"{marked_block.END}\n{marked_block.START}\n",
        f"{marked_block.START}\na\n{marked_block.START}\n{marked_block.END}\n",
        f"{marked_block.START}\n{marked_block.END}\n{marked_block.START}\n{marked_block.END}\n",
    ],
)
def test_damaged_markers_are_refused(text: str, tmp_path: Path) -> None:
    path = write(tmp_path / "AGENTS.md", text)
    for attempt in (lambda: marked_block.write(path, "x"), lambda: marked_block.remove(path)):
        with pytest.raises(StorageError, match="markers are damaged"):
            attempt()
    assert path.read_text() == text


def test_a_file_that_is_not_text_is_left_alone(tmp_path: Path) -> None:
    for data in (b"\xff\xfea\0", b"caf\xe9", b"a\0b"):
        (tmp_path / "CLAUDE.md").write_bytes(data)
        with pytest.raises(StorageError):
            marked_block.write(tmp_path / "CLAUDE.md", "x")
        assert (tmp_path / "CLAUDE.md").read_bytes() == data
    with pytest.raises(InvalidInput):
        marked_block.write(tmp_path / "settings.json", "x")
