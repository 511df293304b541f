"""Makes ``python -m usher.cli`` run the program ``usher``."""

from __future__ import annotations

import sys

from .main import main

if __name__ == "__main__":
    sys.exit(main())
