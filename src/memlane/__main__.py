"""The `memlane` command; also `python -m memlane`. Little is imported before Ctrl-C is minded.

Hooks run at every turn of a conversation and take a shorter way than the command line.
"""

from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a search is too short to be shared out among threads
    try:
        if sys.argv[1:2] == ["hook"] and sys.argv[2:] and "--help" not in sys.argv:
            gc.disable()  # it lives for a moment
            from memlane.surfaces.hook import main as hook

            hook(sys.argv[2:])
            os._exit(0)  # all is written and said: taking the interpreter apart would only take time
        else:
            from memlane.surfaces.cli import main as run

            run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
