"""The command line of provision."""

from provision.cli.entry import run_cli

__all__ = ["run_cli"]
