"""The program ``usher``; also ``python -m usher.cli``."""

from __future__ import annotations

import signal
import sys


def program() -> int:
    """Runs ``usher``, and returns its exit code. While Python imports the modules of ``usher``, Ctrl-C ends the process
    at once and without a traceback."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from .main import main

    signal.signal(signal.SIGINT, before)
    return main()


if __name__ == "__main__":
    sys.exit(program())
