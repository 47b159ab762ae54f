"""The logging options of the command group, which precede the command."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

VERBOSITY = click.option(
    "--verbose",
    "-v",
    "verbosity",
    count=True,
    help="Log programs, requests and writes to stderr; -vv logs their outcome too.",
)
LOG_FILE = click.option(
    "--log-file",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Append the full log to a file.",
)


def start_log(verbosity: int, log_file: Path | None) -> None:
    """Start the log of a command; raises UsageError if the log file cannot be written."""
    from provision.adapters.logs import configure_logging

    configure_logging(sys.argv[1:], os.environ, verbosity=verbosity, log_file=log_file)
