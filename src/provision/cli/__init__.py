"""The door: words in, one command, text and exit code out."""

from provision.cli.door import main

__all__ = ["main"]
