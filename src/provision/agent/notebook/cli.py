"""Command line for a machine without a notebook: `start`, `verify`, `rollback`, `run`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .api import rollback, run, start, verify
from .errors import StageError
from .kernel import Notebook


def main(words: Sequence[str] | None = None) -> int:
    """Return 0 if all stages passed, 1 if one stopped, or the exit code of the program."""
    arguments = _parser().parse_args(words)
    try:
        if arguments.verb == "start":
            start(arguments.folder, continue_anyway=arguments.continue_anyway, notebook=Notebook())
        elif arguments.verb == "verify":
            verify(arguments.folder, again=arguments.again, notebook=Notebook())
        elif arguments.verb == "rollback":
            rollback(arguments.folder)
        else:
            return run(arguments.folder, arguments.program)
    except StageError as stopped:
        print("\n".join(stopped.lines), file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cell.pyz", description="Sets up this runtime as a cell declares, and verifies it."
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb, description in (
        ("start", "run all stages"),
        ("verify", "run only the verification"),
        ("rollback", "restore the packages that the cell changed"),
        ("run", "run a program in the environment"),
    ):
        command = verbs.add_parser(verb, help=description)
        command.add_argument(
            "folder", type=Path, metavar="FOLDER", help="folder with the cell's files"
        )
        if verb == "start":
            command.add_argument(
                "--continue-anyway",
                action="store_true",
                help="continue even if the machine does not meet the spec",
            )
        if verb == "verify":
            command.add_argument(
                "--again",
                action="store_true",
                help="run the probe even if the stored report is still valid",
            )
        if verb == "run":
            command.add_argument("program", nargs=argparse.REMAINDER, metavar="WORD")
    return parser
