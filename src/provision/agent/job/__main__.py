"""Lets the program run as `python -m` from a source tree, as it does from the zip."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
