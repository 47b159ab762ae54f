"""Comparison of a local environment with the lock by packages, and with its files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from provision.agent.core.versions import is_same_version
from provision.effects.local import Damage
from provision.effects.system import Reader
from provision.state import Ledger
from provision.targets.context import TargetContext
from provision.targets.local import conda_prefix as conda

MAX_NAMED = 3
"""How many differences are named; of more the number is given."""
_LIMIT = 2**20


def find_drift(context: TargetContext, path: Path, reader: Reader) -> tuple[str, ...]:
    """Return the packages that were removed, changed or added by hand, by the records on disk."""
    installed: dict[str, str] = {}
    for entry in reader.list_folder(path / f"lib/python{context.spec.python}/site-packages"):
        if entry.endswith(".dist-info"):
            name, _, version = entry.removesuffix(".dist-info").partition("-")
            installed[canonicalize_name(name)] = version
    locked = {
        **_read_conda_packages(context, path, reader),
        **context.lock.versions(context.environment),
    }
    lost = [f"{name} is missing" for name in locked if name not in installed]
    other = [
        f"{name} is {installed[name]}, not {version}"
        for name, version in locked.items()
        if name in installed and not is_same_version(installed[name], version)
    ]
    brought = conda.list_python_names(context)
    of_conda = (
        conda.find_conda_drift(context, reader.list_folder(path / "conda-meta"))
        if conda.uses_conda(context)
        else ()
    )
    return (
        *of_conda,
        *lost,
        *other,
        *(f"{name} was added" for name in installed if name not in locked and name not in brought),
    )


def find_damage(context: TargetContext, path: Path, ledger: Ledger, reader: Reader) -> Damage:
    """Return how the files of the packages differ from what was installed.

    After a failed verification every file is read for that.
    """
    stored = ledger.state.resource(context.address, "verification") or {}
    names = tuple(
        sorted(
            {
                *_read_conda_packages(context, path, reader),
                *context.lock.versions(context.environment),
            }
        )
    )
    return reader.find_damage(
        path,
        context.spec.python,
        names,
        hashed=stored.get("verdict") == "failed",
        shared=conda.uses_conda(context),
    )


def describe_damage(damage: Damage) -> tuple[str, ...]:
    """Return a line for each damaged package, and for each foreign file that runs at each start."""
    packages = (f"{name}: {join_limited(flaws, '; ')}" for name, flaws in damage.packages)
    return (
        *packages,
        *(
            f"{name}, which Python reads at each start, belongs to no package"
            for name in damage.startup_files
        ),
    )


def join_limited(found: tuple[str, ...], between: str = ", ") -> str:
    """Return the first of some differences, and how many more there are."""
    more = len(found) - MAX_NAMED
    return between.join(found[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def read_json(path: Path, reader: Reader) -> dict[str, Any] | None:
    """Return the JSON object in a file; None if it is missing or damaged."""
    if not reader.exists(path):
        return None
    try:
        document = json.loads(reader.read(path, _LIMIT))
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _read_conda_packages(context: TargetContext, path: Path, reader: Reader) -> Mapping[str, str]:
    return (
        conda.read_python_packages(context, read_json(path / conda.INSTALL_RECORD, reader))
        if conda.uses_conda(context)
        else {}
    )
