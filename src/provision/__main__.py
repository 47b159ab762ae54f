"""`python -m provision` is the command `provision`."""

import sys

from provision.cli import main

sys.exit(main())
