"""SHA-256 and BLAKE2 for short texts, without OpenSSL: `hashlib` loads it, which takes two milliseconds of every hook.

What hashes megabytes takes `hashlib`: there OpenSSL is several times as fast.
"""

from __future__ import annotations

TYPE_CHECKING = False  # the hook that runs before every tool call does without `typing`
if TYPE_CHECKING:
    from hashlib import blake2b, sha256
else:
    try:
        from _blake2 import blake2b

        try:
            from _sha2 import sha256
        except ImportError:  # Python 3.11
            from _sha256 import sha256
    except ImportError:  # a Python that was built without them
        from hashlib import blake2b, sha256

__all__ = ["blake2b", "sha256"]
