"""The command line: words in, one command, text and exit code out."""

from provision.cli.entry import main

__all__ = ["main"]
