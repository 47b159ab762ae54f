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
    """Return 0 if all stages ended, 1 if one stopped, or the exit code of the program."""
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
        prog="cell.pyz", description="Brings this runtime to what a cell says, and proves it."
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb, description in (
        ("start", "all stages"),
        ("verify", "the proof alone"),
        ("rollback", "the way back"),
        ("run", "a program in the environment"),
    ):
        command = verbs.add_parser(verb, help=description)
        command.add_argument("folder", type=Path, metavar="FOLDER", help="what the cell laid out")
        if verb == "start":
            command.add_argument(
                "--continue-anyway",
                action="store_true",
                help="go on where the machine is not the one that was asked for",
            )
        if verb == "verify":
            command.add_argument(
                "--again",
                action="store_true",
                help="run the probe though a stored report still holds",
            )
        if verb == "run":
            command.add_argument("program", nargs=argparse.REMAINDER, metavar="WORD")
    return parser
