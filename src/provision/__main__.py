"""`python -m provision` is the command `provision`."""

import sys

from provision.cli import run_cli

sys.exit(run_cli())
