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
    if os.getpid() == 1:  # the first process of a container: the kernel ends it by no signal that it does not listen to
        import signal

        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if sys.argv[1:2] == ["hook"] and sys.argv[2:] and "--help" not in sys.argv:
            gc.disable()  # the process lives for a moment only
            if sys.argv[3:4] == ["tool"]:
                from memlane.surfaces.moments import nothing_applies

                if nothing_applies(sys.argv[2:]):
                    sys.stdout.flush()
                    os._exit(0)
            from memlane.surfaces.resident import alone, answered

            if not answered(sys.argv[2:]):
                alone(sys.argv[2:])
            os._exit(0)  # everything is printed; tearing down the interpreter would only take time
        else:
            gc.set_threshold(100_000, 50, 50)  # what a command reads is not garbage
            from memlane.surfaces.cli import main as run

            run()
    except KeyboardInterrupt:
        sys.exit(130)


def script() -> None:
    """The `memlane` command: `main`, and the end of the process without taking the interpreter apart piece by piece,
    which would be a fifth of a short command. Whoever asked to be called at the end is called.
    """
    try:
        main()
    except SystemExit as stop:
        import atexit
        import threading
        from contextlib import suppress

        if not isinstance(stop.code, int) or threading.active_count() > 1:
            raise
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # it was closed, here or by whoever read it
                stream.flush()
        os._exit(stop.code)


if __name__ == "__main__":
    script()
