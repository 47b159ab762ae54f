"""Packages of conda by their names on the package index."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement

from provision.facts.lazy_tables import load_conda_names
from provision.imports.model import ImportedPackage, Leftover, Setting
from provision.spec import canonical_name

_SYSTEM_NAME = re.compile(r"_|lib(?!rosa|tpu|sass|cst|clang)")
"""Names of libraries and of metapackages begin so; the exceptions are packages of Python."""
_SHOWN_NAMES = 5
"""Names in a message; more make it unreadable. Our choice."""
_VERSION = re.compile(r"==\s*(\d+\.\d+)")


class CondaContent(NamedTuple):
    """What the packages of conda are in a spec.

    Args:
        packages: Those that the package index has, under the name that they have there.
        conda_packages: Those that a person chose and that only a channel has.
        settings: What metapackages stand for, such as the CUDA version.
        leftovers: What was left out or is not certain.
    """

    packages: tuple[ImportedPackage, ...]
    conda_packages: tuple[ImportedPackage, ...]
    settings: tuple[Setting, ...]
    leftovers: tuple[Leftover, ...]


def translate_conda_packages(packages: Iterable[ImportedPackage]) -> CondaContent:
    """Return packages, of which some are of conda, under their names on the package index."""
    from_index: list[ImportedPackage] = []
    from_channels: list[ImportedPackage] = []
    settings: list[Setting] = []
    leftovers: list[Leftover] = []
    solved: list[ImportedPackage] = []
    for package in packages:
        if package.manager == "pip":
            from_index.append(package)
            continue
        row = load_conda_names().get(package.name)
        if row is not None and row.sets:
            _add_setting(package, row.sets, settings, leftovers)
        elif row is None and not _SYSTEM_NAME.match(package.name):
            from_index.append(_to_index_package(package, package.name, leftovers))
        elif row is not None and row.index_name:
            from_index.append(_to_index_package(package, row.index_name, leftovers))
        elif package.is_exact:
            solved.append(package)
        else:
            from_channels.append(_to_channel_package(package))
    if solved:
        leftovers.append(
            Leftover(
                solved[0].span,
                f"{list_names(solved)}: left out",
                "conda installs them as dependencies; they are not on the package index",
                "add the packages you need to `conda_packages`",
            )
        )
    return CondaContent(tuple(from_index), tuple(from_channels), tuple(settings), tuple(leftovers))


def list_names(packages: Iterable[ImportedPackage]) -> str:
    """Return the names of packages, the first five of many."""
    names = list(dict.fromkeys(package.name for package in packages))
    shown = ", ".join(names[:_SHOWN_NAMES])
    return shown if len(names) <= _SHOWN_NAMES else f"{shown} and {len(names) - _SHOWN_NAMES} more"


def _add_setting(
    package: ImportedPackage, field: str, settings: list[Setting], leftovers: list[Leftover]
) -> None:
    if field == "gpu":
        settings.append(Setting(("gpu",), "none", package.span))
        settings.append(Setting(("cuda",), "none", package.span))
        return
    version = _VERSION.search(package.requirement)
    if version is not None:
        settings.append(Setting(("cuda",), version[1], package.span))
    else:
        message = f"{package.requirement} does not name a single CUDA version"
        leftovers.append(Leftover(package.span, message, help="set `cuda` in the spec"))


def _to_index_package(
    package: ImportedPackage, name: str, leftovers: list[Leftover]
) -> ImportedPackage:
    """Return a package under its name on the index; a version in conda's syntax is left out."""
    name = canonical_name(name)
    try:
        requirement = Requirement(package.requirement)
        specifier = str(requirement.specifier)
    except InvalidRequirement:
        specifier = ""
        message = f"the version of {package.requirement} was left out"
        leftovers.append(
            Leftover(
                package.span,
                message,
                "it has no equivalent on the package index",
                f"add a version to {name}, such as {name}>=1.2",
            )
        )
    return package._replace(name=name, requirement=f"{name}{specifier}", manager="pip", index=None)


def _to_channel_package(package: ImportedPackage) -> ImportedPackage:
    """Return a package in conda's syntax: `gcc=12.*`, not `gcc==12.*`."""
    text = package.requirement.replace(" ", "").replace("==", "=")
    if package.index and package.index != "conda-forge":
        text = f"{package.index}::{text}"
    return package._replace(requirement=text, index=None)
