"""The command line: words in, one command, text and exit code out."""

from provision.cli.entry import run_cli

__all__ = ["run_cli"]
