"""Agreement of a lock with its spec: everything in the lock was requested, or is needed by
something that was, and comes from an allowed index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from packaging.version import Version

from provision.effects import CondaRecord
from provision.facts import Facts
from provision.kinds import kind_of
from provision.lock.conda_names import requested_conda_names, to_index_name, with_index_names
from provision.lock.conda_request import DEFAULT_CHANNEL
from provision.lock.flavours import flavour_on
from provision.lock.integrity import (
    FLAVOUR_PATTERN,
    Flaw,
    find_contradictions,
    flaw_in_conda,
    flaw_in_environment,
    flaw_in_package,
)
from provision.lock.model import Lock, LockedEnvironment, LockedPackage, TargetChoice
from provision.lock.uv_request import lock_platforms
from provision.lock.wheels import LINUX_PLATFORMS, marker_applies
from provision.spec import ColabTarget, Spec
from provision.spec import Package as Requested
from provision.target_facts import TargetFacts, collect_target_facts


class _Context(NamedTuple):
    """What a lock is compared with: the spec under the index's names, its targets, and the
    environments of the targets.
    """

    lock: Lock
    spec: Spec
    facts: Facts
    sites: tuple[TargetFacts, ...]


def find_disagreements(lock: Lock, spec: Spec, facts: Facts) -> tuple[Flaw, ...]:
    """Return every flaw that a lock has by itself or as the lock of a spec, () when `provision
    lock` could have written it. No network.

    It does not compare the requests of the spec with those that the lock records:
    `provision.lock.inputs.differences` does.
    """
    if found := find_contradictions(lock):
        return found
    case = _Context(lock, with_index_names(spec), facts, collect_target_facts(spec, facts))
    found = (*_of_head(case), *_of_targets(case))
    if found:
        return found
    found = tuple(
        flaw for environment in lock.environments for flaw in _of_environment(environment, case)
    )
    return found or tuple(_of_unused_indexes(lock))


def _of_head(case: _Context) -> Iterator[Flaw]:
    lock, spec = case.lock, case.spec
    if lock.python != spec.python:
        yield Flaw(
            "python",
            f"the lock is for Python {lock.python}, the spec requires {spec.python}",
            '"python"',
        )
    for name, url in lock.indexes.items():
        expected = _expected_index_url(name, case)
        if expected is None:
            yield Flaw(
                f"index {name}",
                f"the spec names no such index; the lock has it at {url}",
                f'"{name}": "',
            )
        elif url != expected:
            yield Flaw(
                f"index {name}", f"its address is {expected}; the lock has {url}", f'"{name}": "'
            )


def _of_unused_indexes(lock: Lock) -> Iterator[Flaw]:
    used = {package.index for package in lock.packages} | {
        package.record.channel for package in lock.conda
    }
    yield from (
        Flaw(f"index {name}", "nothing in the lock comes from it", f'"{name}": "')
        for name in lock.indexes
        if name not in used
    )


def _expected_index_url(name: str, case: _Context) -> str | None:
    """Return the address that an index has by the spec, or by the facts for a torch build; None for
    an index that neither names.
    """
    if name == "pypi":
        return None
    if name in case.spec.indexes:
        return case.spec.indexes[name].url
    flavour = name.removeprefix("pytorch-")
    return (
        case.facts.flavour_index(flavour)
        if flavour != name and FLAVOUR_PATTERN.fullmatch(flavour)
        else None
    )


def _of_targets(case: _Context) -> Iterator[Flaw]:
    lock = case.lock
    for name in lock.targets:
        if name not in case.spec.targets:
            yield Flaw(
                f"target {name}", "the spec has no such target", f'"{name}": {{"environments"'
            )
    for site in case.sites:
        chosen = lock.targets.get(site.name)
        if chosen is None:
            yield Flaw(f"target {site.name}", "the lock has nothing for this target", '"targets"')
        else:
            yield from (
                Flaw(f"target {site.name}", what, f'"{site.name}": {{"environments"')
                for what in _of_target(site, chosen, case)
            )
    used = {key for chosen in lock.targets.values() for key in chosen.environments}
    yield from (
        flaw_in_environment(environment, "no target uses it")
        for environment in lock.environments
        if environment.key not in used
    )


def _of_target(site: TargetFacts, chosen: TargetChoice, case: _Context) -> Iterator[str]:
    platforms = lock_platforms(case.spec, site.name)
    found = [
        environment
        for platform in platforms
        if (environment := case.lock.environment(site.name, platform)) is not None
    ]
    missing = [
        platform
        for platform in platforms
        if platform not in {environment.platform for environment in found}
    ]
    if missing:
        yield f"it has no environment for {', '.join(missing)}"
    elif {environment.key for environment in found} != {*chosen.environments} or len(found) != len(
        chosen.environments
    ):
        yield f"it has environments for other platforms than {', '.join(platforms)}"
    by_conda = kind_of(site.target).uses_conda(site.target)
    for environment in found:
        if by_conda != environment.key.endswith("-conda"):
            yield f"{environment.key} is {'not ' if by_conda else ''}an environment of conda"
        expected = (
            flavour_on(site.gpu_settings.flavour, environment.platform)
            if site.gpu_settings.flavour is not None
            else None
        )
        if None not in (expected, environment.flavour) and environment.flavour != expected:
            (
                yield f"the spec requires the torch build {expected}; {environment.key} has "
                f"{environment.flavour}"
            )
    if chosen.runtime is not None and found:
        yield from _of_runtime_lists(chosen, site, case.lock.versions(found[0]))


def _of_runtime_lists(
    chosen: TargetChoice, site: TargetFacts, versions: Mapping[str, str]
) -> Iterator[str]:
    if not isinstance(site.target, ColabTarget):
        yield "only a target of kind colab has a runtime"
    listed = [*chosen.kept, *chosen.changed, *chosen.added]
    if sorted(listed) != sorted(versions):
        yield "its lists kept, changed and added do not name each of its packages once"
    if not {*chosen.restart} <= {*chosen.changed}:
        yield "its list restart names a package that is not changed"


def _of_environment(environment: LockedEnvironment, case: _Context) -> Iterator[Flaw]:
    held = {package.name: package for package in case.lock.packages_in(environment)}
    brought = {record.name: record for record in case.lock.conda_records_in(environment)}
    by_conda = {to_index_name(name): record.version for name, record in brought.items()}
    requested: dict[str, list[Requested]] = {}
    for line in case.spec.packages:
        if marker_applies(line.marker, environment.platform, case.spec.python):
            requested.setdefault(line.key, []).append(line)
    for name, lines in requested.items():
        if name in held:
            yield from _of_version(held[name], lines)
        elif name not in by_conda:
            yield flaw_in_environment(environment, f"{name}, which the spec requires, is missing")
    needed = _reachable(requested, {name: package.requires for name, package in held.items()})
    for name, package in held.items():
        if name not in needed:
            yield flaw_in_package(
                package, f"nothing that the spec requires needs it in {environment.key}"
            )
        yield from (
            flaw_in_package(package, what) for what in _of_source(package, environment, case)
        )
    if environment.flavour is None and "torch" in held:
        yield flaw_in_environment(environment, "it has torch, and names no torch build")
    if environment.key.endswith("-conda"):
        yield from _of_conda(environment, brought, case)


def _reachable(start: Iterable[str], needs: Mapping[str, Iterable[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [name for name in start if name in needs]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [need for need in needs[name] if need in needs]
    return found


def _of_version(package: LockedPackage, lines: Iterable[Requested]) -> Iterator[Flaw]:
    version = Version(package.version)
    for line in lines:
        allowed = line.specifiers
        if not allowed.contains(version, prereleases=True) and not allowed.contains(
            version.public, prereleases=True
        ):
            yield flaw_in_package(package, f"the spec requires {line.key}{line.version}")


def _of_source(
    package: LockedPackage, environment: LockedEnvironment, case: _Context
) -> Iterator[str]:
    """Yield what is wrong with where a package comes from: its index, its torch build, or source
    that the spec does not let be built.
    """
    index = _index_of(package.name, environment, case)
    if package.index != index:
        yield f"it comes from index {package.index}; the spec has it from {index}"
    local = Version(package.version).local
    if (
        package.name in case.facts.flavoured
        and local is not None
        and environment.platform in LINUX_PLATFORMS
        and local != environment.flavour
    ):
        yield f"it is a build for {local}, in {environment.key}"
    if package.built and not any(
        line.build and line.key == package.name for line in case.spec.packages
    ):
        yield "it is source that would be built, and the spec has no `build: true` for it"


def _index_of(name: str, environment: LockedEnvironment, case: _Context) -> str:
    """Return the index that a package is bound to, as `provision.lock.uv_request` binds it."""
    bound = next(
        (line.index for line in case.spec.packages if line.key == name and line.index), None
    )
    if bound is not None:
        return bound
    served = environment.platform in LINUX_PLATFORMS or (
        environment.platform.startswith("windows") and environment.flavour != "cpu"
    )
    return (
        f"pytorch-{environment.flavour}"
        if name in case.facts.flavoured and environment.flavour is not None and served
        else "pypi"
    )


def _of_conda(
    environment: LockedEnvironment, brought: Mapping[str, CondaRecord], case: _Context
) -> Iterator[Flaw]:
    channels = {DEFAULT_CHANNEL, *(package.channel for package in case.spec.conda_packages)}
    needs = {
        name: tuple(need.split()[0] for need in record.depends if need.split())
        for name, record in brought.items()
    }
    start = requested_conda_names(case.spec)
    needed = _reachable(start, needs)
    for package in case.lock.conda:
        if environment.key in package.environments:
            record = package.record
            if record.channel not in channels:
                yield flaw_in_conda(package, f"the spec names no channel {record.channel!r}")
            if record.name not in needed:
                yield flaw_in_conda(
                    package, f"nothing that the spec requires needs it in {environment.key}"
                )
            if record.name == "python" and not record.version.startswith(f"{case.spec.python}."):
                yield flaw_in_conda(package, f"the spec requires Python {case.spec.python}")
    missing = [package.name for package in case.spec.conda_packages if package.name not in brought]
    missing += [name for name in ("python",) if name not in brought]
    yield from (
        flaw_in_environment(environment, f"{name}, which conda is to bring, is missing")
        for name in missing
    )
