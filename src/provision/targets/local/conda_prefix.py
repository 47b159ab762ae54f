"""The part of a local environment that conda makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from provision.effects.conda import CondaChannel, CondaProgram, CreateCondaPrefix
from provision.effects.system import Reader
from provision.kinds.base import Refusal
from provision.lock.conda_request import requested_conda_names, to_index_name
from provision.spec import LocalTarget
from provision.targets.context import TargetContext

INSTALL_RECORD = "installed.json"
"""In an environment: how each of its packages came there."""
_HISTORY = "history"


def uses_conda(context: TargetContext) -> bool:
    """Return whether the target declares `manager: conda`."""
    target = context.spec.targets[context.target]
    return isinstance(target, LocalTarget) and target.manager == "conda"


def build_prefix_effect(context: TargetContext, program: CondaProgram) -> CreateCondaPrefix:
    """Return the effect that makes the conda prefix; the caller sets its path."""
    held = context.lock.conda_records_in(context.environment)
    indexes = context.spec.indexes
    channels = tuple(
        CondaChannel(name, indexes[name].url if name in indexes else "")
        for name in sorted({package.channel for package in held})
    )
    asked = requested_conda_names(context.spec)
    options = tuple(
        f"{package.name} =={package.version} {package.build}"
        for package in held
        if package.name in asked
    )
    return CreateCondaPrefix(context.folder, context.platform, channels, held, options, program)


def find_conda_refusals(
    context: TargetContext, program: CondaProgram | None, foreign: Path | None = None
) -> Iterator[Refusal]:
    """Yield why conda cannot make the environment here.

    `foreign` is something at its path that provision did not make.
    """
    route = ("targets", context.target, "manager")
    if program is None:
        from provision.extras import install_command

        yield Refusal(
            route,
            "conda environments need py-rattler, which is not installed",
            install_command("conda"),
        )
    if not context.lock.conda_records_in(context.environment):
        yield Refusal(
            route,
            "the lock was made without what conda brings",
            "make it again with `provision lock --upgrade`",
        )
    if foreign is not None:
        yield Refusal(
            (),
            f"{foreign} is there already, and nothing says that it was made by provision",
            "look at it, and move it away or remove it",
        )
    if context.platform.startswith("windows"):
        yield Refusal(route, "conda environments are made on Linux and macOS", "run it inside WSL")


def find_conda_drift(context: TargetContext, entries: tuple[str, ...]) -> tuple[str, ...]:
    """Return the differences of conda's records (`entries` of conda-meta) from the lock."""
    locked = {
        package.stem: package for package in context.lock.conda_records_in(context.environment)
    }
    found = {entry.removesuffix(".json") for entry in entries if entry.endswith(".json")}
    lost = [
        f"conda's {locked[name].name} {locked[name].version} is missing"
        for name in sorted(locked.keys() - found)
    ]
    return (
        *lost,
        *(f"conda's {name} was added" for name in sorted(found - locked.keys())),
        *([] if _HISTORY in entries else ["conda's history is missing"]),
    )


def list_python_names(context: TargetContext) -> frozenset[str]:
    """Return the names that Python's installers use for conda's packages.

    They are derived from conda's own names, which mostly are the same.
    """
    return frozenset(
        {
            to_index_name(record.name)
            for record in context.lock.conda_records_in(context.environment)
        }
    )


def read_python_packages(context: TargetContext, note: Mapping[str, Any] | None) -> dict[str, str]:
    """Return name and version of conda's Python packages, as noted when they were linked."""
    stems = {record.stem for record in context.lock.conda_records_in(context.environment)}
    packages = (note or {}).get("packages")
    told = packages.items() if isinstance(packages, Mapping) else ()
    return {
        name: str(one.get("version"))
        for name, one in told
        if isinstance(one, Mapping) and str(one.get("conda")) in stems
    }


def find_conda_program(context: TargetContext, reader: Reader) -> CondaProgram | None:
    """Return the program that makes conda environments; None without one, or without conda."""
    return reader.conda_program() if uses_conda(context) else None
