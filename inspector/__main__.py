"""`python -m inspector`: the command line, also where the command `inflight` is not on the path."""

from __future__ import annotations

import sys

from inspector.cli import main

if __name__ == "__main__":
    sys.exit(main())
