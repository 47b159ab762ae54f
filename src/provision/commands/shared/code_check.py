"""Reports code and packages that a spec names and that do not exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from provision.diagnostics import Diagnostic, RouteLocation
from provision.source.findings import make_finding

if TYPE_CHECKING:
    from provision.effects.system import Reader
    from provision.source import Source
    from provision.spec import Spec

_PYTHON = re.compile(r"python(?:3(?:\.\d+)?)?")


def find_unusable_packages(document: Source, spec: Spec, reader: Reader) -> Iterator[Diagnostic]:
    """Yield a finding for each package whose path cannot be used."""
    if all(package.path is None for package in spec.packages):
        return
    # Imported here: most specs need nothing of it.
    from provision.commands.shared.path_packages import find_origin_problems

    for number, error in find_origin_problems(spec, document.path, document.root, reader):
        yield make_finding(
            "package-source-unusable",
            error.what,
            RouteLocation(("packages", number)),
            why=error.why,
            hint=error.hint,
        )


def find_missing_code(document: Source, spec: Spec, reader: Reader) -> Iterator[Diagnostic]:
    """Yield a finding if the folder of `code`, or the program of `verify.command`, is missing.

    Nothing is fetched: a repository is not looked at.
    """
    if spec.code is None or spec.code.git is not None:
        return
    folder = document.path.resolve().parent / spec.code.path
    if not reader.exists(folder):
        yield make_finding(
            "code-not-found",
            f"code: the folder {spec.code.path} does not exist",
            RouteLocation(("code",)),
            why=f"Without the folder {folder}, no target can get the project's code.",
            hint="correct the path, which is relative to the spec, or create the folder",
        )
        return
    program = (spec.verify.command or ())[:2]
    if len(program) < 2 or not _PYTHON.fullmatch(program[0]) or not program[1].endswith(".py"):
        return
    if "$" not in program[1] and not reader.exists(folder / program[1]):
        yield make_finding(
            "command-file-not-found",
            f"verify.command: the file {program[1]} does not exist",
            RouteLocation(("verify", "command")),
            why=f"The command runs in {folder}, the `code` folder.",
            hint="correct the path, which is relative to the `code` folder",
        )
