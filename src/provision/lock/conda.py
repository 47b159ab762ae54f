"""Conda packages of a lock, solved for each conda target in the versions that all targets share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from packaging.version import Version

from provision.effects.conda import CondaMatchSpec, CondaRecord
from provision.effects.system import ProgressCallback, System
from provision.errors import Unsatisfiable
from provision.facts import Facts, cuda_of
from provision.facts.versions import parse_version
from provision.kinds.base import TargetFacts
from provision.lock.conda_package import LockedCondaPackage
from provision.lock.conda_request import (
    CondaEnvironment,
    build_solve_request,
    explain_unsatisfiable,
    public_version,
    to_index_name,
)
from provision.lock.model import (
    Lock,
    LockedEnvironment,
    LockedPackage,
    environment_digest,
    reachable_names,
    with_digest,
)
from provision.lock.wheels import with_platform_files
from provision.spec import Spec
from provision.target_facts import collect_target_facts

_MAX_ROUNDS = 4
_GLIBC_FLOOR = re.compile(r"^__glibc >=(\d+\.\d+)")


class _CondaSolution(NamedTuple):
    """The conda packages of an environment, and the index packages that they replace."""

    environment: CondaEnvironment
    records: tuple[CondaRecord, ...]
    provided: frozenset[str]


def with_conda_packages(
    lock: Lock,
    spec: Spec,
    facts: Facts,
    system: System,
    progress: ProgressCallback,
    keep: Lock | None = None,
) -> Lock:
    """Return a lock with the conda packages of the targets that conda makes.

    Each such target gets its own environments, with `-conda` in their keys. They leave out the
    index packages that conda provides in the same version, and what only those need.

    Raises:
        CondaUnsatisfiable: no set of conda packages fits the locked versions.
        NetworkError: a channel cannot be reached.
        ExternalError: the extra `conda` is not installed.
    """
    by_target: dict[str, tuple[CondaEnvironment, ...]] = {}
    solutions: dict[str, _CondaSolution] = {}
    for target in collect_target_facts(spec, facts):
        if target.kind.uses_conda(target.target):
            by_target[target.name] = tuple(_conda_environments(lock, target))
            for environment in by_target[target.name]:
                if environment.key not in solutions:
                    solution = _solve_environment(
                        environment, lock, spec, facts, system, progress, keep
                    )
                    solutions[environment.key] = solution
    return with_digest(_with_solutions(lock, spec, by_target, solutions))


def _conda_environments(lock: Lock, target: TargetFacts) -> Iterator[CondaEnvironment]:
    for platform in target.platforms:
        base = lock.environment(target.name, platform)
        if base is not None:
            flavour = base.flavour or target.gpu_settings.flavour
            cuda = cuda_of(flavour) if flavour not in (None, "cpu") else None
            own = f"-cu{cuda.replace('.', '')}" if cuda and base.flavour is None else ""
            yield CondaEnvironment(base, f"{base.key}{own}-conda", cuda)


def _solve_environment(
    environment: CondaEnvironment,
    lock: Lock,
    spec: Spec,
    facts: Facts,
    system: System,
    progress: ProgressCallback,
    keep: Lock | None,
) -> _CondaSolution:
    """Solve with more constraints until no Python package differs from its locked version."""
    locked = lock.versions(environment.base)
    request = build_solve_request(environment, locked, spec, facts, keep)
    conda_versions: dict[str, str] = {}
    for _ in range(_MAX_ROUNDS):
        try:
            records = system.solve_conda(request, progress)
        except Unsatisfiable as error:
            raise explain_unsatisfiable(error, request, environment, conda_versions) from error
        provided, constraints = set(), []
        for record in records:
            name = to_index_name(record.name)
            if name not in locked or not _is_python_package(record):
                continue
            provided.add(name)
            version, expected = parse_version(record.version), public_version(locked[name])
            if version is None or version.public != expected:
                conda_versions[name] = record.version
                constraints.append(CondaMatchSpec(record.name, f"=={expected}"))
        if not constraints:
            return _CondaSolution(environment, records, frozenset(provided))
        request = request._replace(constraints=(*request.constraints, *constraints))
    unsolved = Unsatisfiable(f"no set of conda packages fits on {environment.base.platform}")
    raise explain_unsatisfiable(unsolved, request, environment, conda_versions)


def _is_python_package(record: CondaRecord) -> bool:
    """Return whether a record is a Python package, not a program of the same name (graphviz)."""
    if record.name == "pip":
        return False
    needs = {need.split()[0] for need in record.depends}
    return record.noarch == "python" or not needs.isdisjoint(("python", "python_abi"))


def _with_solutions(
    lock: Lock,
    spec: Spec,
    by_target: Mapping[str, tuple[CondaEnvironment, ...]],
    solutions: Mapping[str, _CondaSolution],
) -> Lock:
    """Return the lock with the solved environments, without those that no target uses any more."""
    targets = dict(lock.targets)
    for name, environments in by_target.items():
        keys = tuple(environment.key for environment in environments)
        targets[name] = replace(targets[name], environments=keys)
    used = sorted({key for choice in targets.values() for key in choice.environments})
    packages = tuple(_indexed_packages(lock, spec, used, solutions))
    conda = tuple(_locked_conda_packages(solutions))
    existing = {environment.key: environment for environment in lock.environments}
    for key, solution in solutions.items():
        existing[key] = _locked_environment(solution.environment, lock, packages, conda)
    index_names = {package.index for package in packages}
    indexes = {name: url for name, url in lock.indexes.items() if name in index_names}
    channels = {package.record.channel for package in conda}
    indexes |= {name: index.url for name, index in spec.indexes.items() if name in channels}
    return replace(
        lock,
        environments=tuple(existing[key] for key in used),
        targets=targets,
        indexes=indexes,
        packages=packages,
        conda=conda,
    )


def _indexed_packages(
    lock: Lock, spec: Spec, keys: list[str], solutions: Mapping[str, _CondaSolution]
) -> Iterator[LockedPackage]:
    """Yield the packages that still come from an index, with the environments that keep them."""
    remaining = {key: _remaining_names(lock, solution, spec) for key, solution in solutions.items()}
    for package in lock.packages:
        environments = []
        for key in keys:
            solution = solutions.get(key)
            base = key if solution is None else solution.environment.base.key
            if base in package.environments and (
                solution is None or package.name in remaining[key]
            ):
                environments.append(key)
        if environments:
            yield replace(package, environments=tuple(environments))


def _remaining_names(lock: Lock, solution: _CondaSolution, spec: Spec) -> set[str]:
    """Return the index packages that the spec or what remains of them needs, without conda's."""
    base = solution.environment.base
    requires = {package.name: package.requires for package in lock.packages_in(base)}
    return reachable_names(
        (package.key for package in spec.packages), requires, leave_out=solution.provided
    )


def _locked_conda_packages(
    solutions: Mapping[str, _CondaSolution],
) -> Iterator[LockedCondaPackage]:
    environments: dict[CondaRecord, list[str]] = {}
    for key, solution in sorted(solutions.items()):
        for record in solution.records:
            environments.setdefault(record, []).append(key)
    for record, keys in sorted(environments.items()):
        yield LockedCondaPackage(record, tuple(keys))


def _locked_environment(
    environment: CondaEnvironment,
    lock: Lock,
    packages: tuple[LockedPackage, ...],
    conda: tuple[LockedCondaPackage, ...],
) -> LockedEnvironment:
    base, key = environment.base, environment.key
    content = tuple(
        with_platform_files(package, lock.python, base.platform)
        for package in packages
        if key in package.environments
    )
    records = tuple(package.record for package in conda if key in package.environments)
    floors = [base.glibc] if base.glibc else []
    for record in records:
        for need in record.depends:
            floor = _GLIBC_FLOOR.match(need)
            if floor is not None:
                floors.append(floor[1])
    glibc = max(floors, key=Version, default=None)
    digest = environment_digest(lock.python, base.platform, base.flavour, content, records)
    return replace(base, key=key, glibc=glibc, digest=digest)
