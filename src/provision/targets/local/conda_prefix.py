"""The part of a local environment that conda makes: which program does it, what it makes, and
whether it is still there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from provision.effects import CondaChannel, CondaProgram, CreateCondaPrefix, Reader
from provision.lock.conda import requested_conda_names, to_index_name
from provision.spec import LocalTarget
from provision.targets.base import Refusal, TargetContext

INSTALL_RECORD = "installed.json"
"""In an environment: how each of its packages came there."""
_HISTORY = "history"


def uses_conda(context: TargetContext) -> bool:
    """Tell whether the target says `manager: conda`."""
    target = context.spec.targets[context.target]
    return isinstance(target, LocalTarget) and target.manager == "conda"


def build_prefix_effect(context: TargetContext, program: CondaProgram) -> CreateCondaPrefix:
    """Return the effect that makes the prefix of a place; the caller says where."""
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
    """Yield why conda cannot make a place here; `foreign` is what lies where it would be, and was
    not made by us.
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
    """Return what conda's own records say differs from the lock; `entries` are the names in
    conda-meta.
    """
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
    """Return the names, as Python's installers have them, of all that conda brings: by conda's own
    names, which mostly are the same.
    """
    return frozenset(
        {
            to_index_name(record.name)
            for record in context.lock.conda_records_in(context.environment)
        }
    )


def read_python_packages(context: TargetContext, note: Mapping[str, Any] | None) -> dict[str, str]:
    """Return name and version of the Python packages that the locked files of conda brought, as was
    noted when they were linked.
    """
    stems = {record.stem for record in context.lock.conda_records_in(context.environment)}
    packages = (note or {}).get("packages")
    told = packages.items() if isinstance(packages, Mapping) else ()
    return {
        name: str(one.get("version"))
        for name, one in told
        if isinstance(one, Mapping) and str(one.get("conda")) in stems
    }


def find_conda_program(context: TargetContext, reader: Reader) -> CondaProgram | None:
    """Return what makes conda environments on this machine; None where nothing does, or the place
    is not conda's.
    """
    return reader.conda_program() if uses_conda(context) else None
