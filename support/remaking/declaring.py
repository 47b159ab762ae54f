"""Declared requirements (METADATA) and checked versions, and ranges of releases with equal ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from remaking.index import File
from remaking.sheets import Row
from remaking.wheels import bound


def newest_of_minors(
    releases: Mapping[Version, list[File]], first: str
) -> dict[Version, list[File]]:
    """Return the newest patch of each minor from `first` on."""
    return {
        version: files
        for version, files in _last_of_minor(releases).items()
        if version.release[:2] >= Version(first).release[:2]
    }


def linux_wheel(files: Iterable[File]) -> File:
    """Return the wheel that the newest CPython on Linux x86_64 would take; any other where there is
    none.
    """
    return max(files, key=lambda file: (_fit(file), file.name))


def declared(
    requirements: Iterable[Requirement], names: Iterable[str], pythons: Iterable[str]
) -> dict[str, str]:
    """Return the specifiers that a wheel declares for `names` ("numpy", or "torch[extra]" for what
    only an extra asks for) on Linux x86_64.

    Where bounds differ with the Python, the one with the lowest floor is taken: below it, no
    Python of `pythons` will do.
    """
    asked, wanted = list(requirements), list(pythons)
    found = (
        (name, [bounds for python in wanted if (bounds := _asked(asked, name, python)) is not None])
        for name in names
    )
    return {
        name: bound(min(bounds, key=lambda bounds: (_floor(bounds), len(bounds))))
        for name, bounds in found
        if bounds
    }


def in_runs(rows: Iterable[tuple[Version, Row]]) -> Iterator[dict[str, Any]]:
    """Yield one row for each run of releases with equal content."""
    for _, group in groupby(rows, key=lambda item: item[1]):
        run = list(group)
        yield {"first": str(run[0][0]), "last": str(run[-1][0]), **run[0][1]}


def project(constant: str) -> str:
    """Return the package that a constant such as LIGER_KERNEL speaks of."""
    return {"autoround": "auto-round"}.get(constant.lower(), canonicalize_name(constant))


def _last_of_minor(releases: Mapping[Version, list[File]]) -> dict[Version, list[File]]:
    last = {version.release[:2]: version for version in sorted(releases)}
    return {version: releases[version] for version in last.values()}


def _fit(file: File) -> tuple[int, tuple[int, ...]]:
    pythons = [
        tuple(int(part) for part in found.groups())
        for tag in file.tags
        if (found := re.fullmatch(r"cp(3)(\d+)", tag.interpreter))
    ]
    usual = any(
        tag.platform == "any" or ("linux" in tag.platform and tag.platform.endswith("x86_64"))
        for tag in file.tags
    )
    return int(usual and not any(tag.abi.endswith("t") for tag in file.tags)), max(
        pythons, default=()
    )


def _asked(requirements: list[Requirement], name: str, python: str) -> SpecifierSet | None:
    package, _, extra = name.partition("[")
    place = {
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": "x86_64",
        "os_name": "posix",
        "implementation_name": "cpython",
    }
    place |= {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "platform_python_implementation": "CPython",
        "extra": extra.rstrip("]"),
    }
    fitting = [
        found
        for found in requirements
        if canonicalize_name(found.name) == package
        and (found.marker is None or found.marker.evaluate(place))
    ]
    if extra:
        fitting = [
            found for found in fitting if found.marker is not None and "extra" in str(found.marker)
        ]
    return _tightest(fitting) if fitting else None


def _tightest(requirements: list[Requirement]) -> SpecifierSet:
    """Return what all of `requirements` ask together; of several floors only the highest is kept."""  # noqa: E501
    clauses = {clause for requirement in requirements for clause in requirement.specifier}
    highest = max(
        (clause for clause in clauses if clause.operator == ">="),
        key=lambda clause: Version(clause.version),
        default=None,
    )
    return SpecifierSet(
        ",".join(str(clause) for clause in clauses if clause.operator != ">=" or clause is highest)
    )


def _floor(bounds: SpecifierSet) -> Version:
    return max(
        (Version(clause.version) for clause in bounds if clause.operator == ">="),
        default=Version("0"),
    )
