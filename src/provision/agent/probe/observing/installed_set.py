"""The distributions of this interpreter, and the installer's result about them."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass

from ..context import ObserverContext
from ..inventory import Distribution, find_distributions
from ..model import Readings

MAX_NAMED = 20
"""Most names in one reading."""
_MAX_RESULT_BYTES = 2**22


@dataclass(frozen=True, slots=True)
class CondaProvidedPackage:
    """A Python package from a locked conda file: version, and files that conda rewrote."""

    version: str
    rebuilt_files: frozenset[str]


def read_conda_packages(context: ObserverContext) -> dict[str, CondaProvidedPackage] | None:
    """Return conda's Python packages that are not locked; None if the installer noted none."""
    if not context.expected.conda:
        return {}
    packages = read_install_result(context.expected.provenance_file).get("packages")
    reported = packages if isinstance(packages, dict) else {}
    of_conda = {
        name: package
        for name, package in reported.items()
        if isinstance(package, dict) and str(package.get("conda")) in context.expected.conda
    }
    provided = {}
    for name, package in of_conda.items():
        remade, version = package.get("remade"), package.get("version")
        paths = (
            [path for path in remade if isinstance(path, str)] if isinstance(remade, list) else []
        )
        if isinstance(version, str):
            provided[str(name)] = CondaProvidedPackage(
                version,
                frozenset(os.path.normpath(os.path.join(sys.prefix, path)) for path in paths),
            )
    return provided or None


def read_install_result(path: str) -> Readings:
    """Return the installer's result; {} if it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            note = json.loads(file.read(_MAX_RESULT_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return note if isinstance(note, dict) else {}


def is_own_environment(context: ObserverContext) -> bool:
    """Return whether the environment has only what the lock names, and nothing of an image."""
    return sys.prefix != sys.base_prefix and not context.expected.shared


def inventory(context: ObserverContext) -> tuple[Distribution, ...]:
    """Return the distributions in the order in which Python finds them."""
    dists: tuple[Distribution, ...] | None = context.memo.get("inventory")
    if dists is None:
        dists = context.memo["inventory"] = find_distributions(package_entries())
    return dists


def package_entries() -> list[str]:
    """Return the folders of sys.path, without the working folder."""
    return [entry for entry in sys.path if entry and os.path.isdir(entry)]


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is a folder, or in it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
