"""Contents in less room, for the databases that keep many of them. `zlib.decompress` unpacks each."""

from __future__ import annotations

import struct
import zlib

_SHORT = 500  # bytes: to pack as much takes longer than to note it in a database, and saves a fifth


def packed(data: bytes) -> bytes:
    """The content as zlib has it; a short one as it is, between the few bytes that say so (RFC 1950)."""
    size = len(data)
    if size > _SHORT:
        return zlib.compress(data, 1)
    return b"\x78\x01\x01" + struct.pack("<HH", size, 0xFFFF - size) + data + struct.pack(">I", zlib.adler32(data))
