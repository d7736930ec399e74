"""Contents are packed so that zlib unpacks them, and short ones are left as they are."""

from __future__ import annotations

import zlib

from memlane.disk.packing import packed


def test_contents_of_any_length_come_back() -> None:
    for size in (0, 1, 10, 255, 256, 499, 500, 501, 70_000):
        data = bytes(number * 7 % 251 for number in range(size))
        assert zlib.decompress(packed(data)) == data


def test_a_short_content_is_kept_as_it_is_and_a_long_one_packed() -> None:
    assert b"word " * 100 in packed(b"word " * 100)
    assert len(packed(b"word " * 200)) < 100
