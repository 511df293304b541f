"""Makes ``python -m usher.testing.headend`` run the program ``usher-headend``."""

from __future__ import annotations

import sys

from usher.cli.headend_program import main

if __name__ == "__main__":
    sys.exit(main())
