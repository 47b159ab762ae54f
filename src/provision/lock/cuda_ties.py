"""The CUDA majors that packages with compiled code tie the torch build to."""

from __future__ import annotations

from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from provision.facts import Facts
from provision.facts.schema_packages import CudaWheels, ReleaseRange
from provision.facts.versions import has_version_in_range, next_version, require_version
from provision.spec import Package, Spec


class CudaTie(NamedTuple):
    """A release of a listed package that is compiled for one CUDA major."""

    package: str
    version: str
    cuda_major: str


def cuda_ties(spec: Spec, facts: Facts, torch: str) -> list[CudaTie]:
    """Return the ties of the newest admitted releases that fit a release of torch.

    Those whose import fails with another CUDA major come first. A package from another index, and
    one whose fitting releases are not in the facts, ties nothing.
    """
    ties: list[tuple[bool, CudaTie]] = []
    for name, table in facts.cuda_wheels.items():
        package = spec.package(name)
        if package is None or package.index is not None or package.is_built:
            continue
        fitting = (row for row in reversed(facts.runs.get(name, ())) if _fits(row, package, torch))
        release = next(fitting, None)
        row = wheels_of(table, release.last) if release is not None else None
        if row is not None and release is not None:
            tie = CudaTie(name, release.last, row.cuda_major)
            ties.append((row.effect != "import", tie))
    return [tie for _, tie in sorted(ties)]


def wheels_of(table: tuple[CudaWheels, ...], version: str) -> CudaWheels | None:
    """Return the row for a release; the last row also for newer releases."""
    return next(
        (row for row in reversed(table) if require_version(row.first) <= require_version(version)),
        None,
    )


def _fits(row: ReleaseRange, package: Package, torch: str) -> bool:
    admitted = has_version_in_range(package.specifiers, row.first, next_version(row.last))
    return admitted and SpecifierSet(row.declared.get("torch", "")).contains(torch)
