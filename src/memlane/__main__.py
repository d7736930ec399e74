"""The `memlane` command; also `python -m memlane`.

Everything is imported inside `main`, so that Ctrl-C ends quietly from the first moment. A hook runs at every turn of a
conversation and therefore skips the command line.
"""

from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a search is too short to gain from threads
    try:
        if sys.argv[1:2] == ["hook"] and sys.argv[2:] and "--help" not in sys.argv:
            gc.disable()  # the process lives for a moment only
            if sys.argv[3:4] == ["tool"]:
                from memlane.surfaces.moments import nothing_applies

                if nothing_applies(sys.argv[2:]):
                    sys.stdout.flush()
                    os._exit(0)
            from memlane.surfaces.hook import run as hook

            hook(sys.argv[2:])
            os._exit(0)  # everything is printed; tearing down the interpreter would only take time
        else:
            from memlane.surfaces.cli import main as run

            run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
