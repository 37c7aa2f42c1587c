"""`python -m daifu_bc`: the same as the command `daifu`."""

from __future__ import annotations

import sys

from daifu_bc.cli import main

if __name__ == "__main__":
    sys.exit(main())
