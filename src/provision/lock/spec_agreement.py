"""Agreement of a lock with its spec: all of it is required and comes from an allowed index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from packaging.version import Version

from provision.effects.conda import CondaRecord
from provision.facts import Facts
from provision.kinds.base import TargetFacts
from provision.lock.conda_request import (
    DEFAULT_CHANNEL,
    requested_conda_names,
    to_index_name,
    with_index_names,
)
from provision.lock.flavours import flavour_on, has_torch_index
from provision.lock.integrity import (
    FLAVOUR_PATTERN,
    Flaw,
    find_lock_flaws,
    flaw_in_conda,
    flaw_in_environment,
    flaw_in_package,
)
from provision.lock.model import (
    Lock,
    LockedEnvironment,
    LockedPackage,
    TargetChoice,
    reachable_names,
)
from provision.lock.origins import LockedOrigin
from provision.lock.source_builds import buildable_packages
from provision.lock.uv_project import lock_platforms
from provision.lock.wheels import LINUX_PLATFORMS, marker_applies
from provision.spec import Package as Requested
from provision.spec import Spec
from provision.target_facts import collect_target_facts


class _Context(NamedTuple):
    """A lock and its spec, under the names of the package index, with the spec's targets."""

    lock: Lock
    spec: Spec
    facts: Facts
    targets: tuple[TargetFacts, ...]


def find_disagreements(lock: Lock, spec: Spec, facts: Facts) -> tuple[Flaw, ...]:
    """Return every flaw of a lock by itself or as the lock of a spec, without a network.

    The fields of the spec that the lock records are not compared; `list_changed_inputs` does.
    """
    flaws = list(find_lock_flaws(lock))
    if flaws:
        return tuple(flaws)
    context = _Context(lock, with_index_names(spec), facts, collect_target_facts(spec, facts))
    flaws = [*_head_flaws(context), *_target_flaws(context)]
    if not flaws:
        for environment in lock.environments:
            flaws += _environment_flaws(environment, context)
    return tuple(flaws or _unused_indexes(lock))


def _head_flaws(context: _Context) -> Iterator[Flaw]:
    lock, spec = context.lock, context.spec
    if lock.python != spec.python:
        yield Flaw(
            "python",
            f"the lock is for Python {lock.python}, but the spec requires {spec.python}",
            '"python"',
        )
    declared = spec.code.git if spec.code is not None else None
    locked = lock.code.git if lock.code is not None else None
    if declared != locked:
        found, wanted = locked or "no repository", declared or "none"
        yield Flaw("code", f"the lock has {found}, but the spec has {wanted}", '"code"')
    for name, url in lock.indexes.items():
        expected = _expected_index_url(name, context)
        if expected is None:
            yield Flaw(
                f"index {name}",
                f"the lock has it at {url}, but the spec has no such index",
                f'"{name}": "',
            )
        elif url != expected:
            yield Flaw(
                f"index {name}",
                f"its address is {expected}, but the lock has {url}",
                f'"{name}": "',
            )


def _unused_indexes(lock: Lock) -> Iterator[Flaw]:
    used = {package.index for package in lock.packages}
    used.update(package.record.channel for package in lock.conda)
    for name in lock.indexes:
        if name not in used:
            yield Flaw(f"index {name}", "no package in the lock comes from it", f'"{name}": "')


def _expected_index_url(name: str, context: _Context) -> str | None:
    """Return the address of an index by the spec or the facts, None if neither names it."""
    if name == "pypi":
        return None
    if name in context.spec.indexes:
        return context.spec.indexes[name].url
    flavour = name.removeprefix("pytorch-")
    if flavour == name or not FLAVOUR_PATTERN.fullmatch(flavour):
        return None
    return context.facts.flavour_index(flavour)


def _target_flaws(context: _Context) -> Iterator[Flaw]:
    lock = context.lock
    for name in lock.targets:
        if name not in context.spec.targets:
            yield Flaw(
                f"target `{name}`", "the spec has no such target", f'"{name}": {{"environments"'
            )
    for target in context.targets:
        choice = lock.targets.get(target.name)
        if choice is None:
            yield Flaw(
                f"target `{target.name}`",
                "the lock has no environment for this target",
                '"targets"',
            )
        else:
            yield from (
                Flaw(f"target `{target.name}`", what, f'"{target.name}": {{"environments"')
                for what in _choice_flaws(target, choice, context)
            )
    used = {key for choice in lock.targets.values() for key in choice.environments}
    yield from (
        flaw_in_environment(environment, "no target uses it")
        for environment in lock.environments
        if environment.key not in used
    )


def _choice_flaws(target: TargetFacts, choice: TargetChoice, context: _Context) -> Iterator[str]:
    environments, missing = [], []
    platforms = lock_platforms(context.spec, target.name)
    for platform in platforms:
        environment = context.lock.environment(target.name, platform)
        if environment is None:
            missing.append(platform)
        else:
            environments.append(environment)
    if missing:
        yield f"it has no environment for {', '.join(missing)}"
    elif sorted(environment.key for environment in environments) != sorted(choice.environments):
        yield f"it has environments for platforms other than {', '.join(platforms)}"
    kind = target.kind
    by_conda = kind.uses_conda(target.target)
    declared = target.gpu_settings.flavour
    for environment in environments:
        if by_conda != environment.key.endswith("-conda"):
            yield f"{environment.key} is {'not ' if by_conda else ''}a conda environment"
        if declared is None or environment.flavour is None:
            continue
        expected = flavour_on(declared, environment.platform)
        if environment.flavour != expected:
            yield (
                f"the spec requires the torch build {expected}, but {environment.key} has "
                f"{environment.flavour}"
            )
    if choice.runtime is not None and environments:
        if not kind.has_runtimes:
            yield "only a target of kind colab has a runtime"
        listed = [*choice.kept, *choice.changed, *choice.added]
        if sorted(listed) != sorted(context.lock.versions(environments[0])):
            yield (
                "its lists `kept`, `changed` and `added` do not contain each of its packages "
                "exactly once"
            )
        if not {*choice.restart} <= {*choice.changed}:
            yield "its list `restart` contains a package that is not changed"


def _environment_flaws(environment: LockedEnvironment, context: _Context) -> Iterator[Flaw]:
    packages = {package.name: package for package in context.lock.packages_in(environment)}
    records = {record.name: record for record in context.lock.conda_records_in(environment)}
    by_conda = {to_index_name(name): record.version for name, record in records.items()}
    requested: dict[str, list[Requested]] = {}
    for line in context.spec.packages:
        if marker_applies(line.marker, environment.platform, context.spec.python):
            requested.setdefault(line.key, []).append(line)
    for name, lines in requested.items():
        if name in packages:
            yield from _version_flaws(packages[name], lines)
        elif name not in by_conda:
            yield flaw_in_environment(environment, f"{name}, which the spec requires, is missing")
    needed = reachable_names(
        requested, {name: package.requires for name, package in packages.items()}
    )
    for name, package in packages.items():
        if name not in needed:
            yield flaw_in_package(
                package, f"no package that the spec requires depends on it in {environment.key}"
            )
        yield from (
            flaw_in_package(package, what) for what in _source_flaws(package, environment, context)
        )
    if environment.flavour is None and "torch" in packages:
        yield flaw_in_environment(environment, "it has torch, but does not record the torch build")
    if environment.key.endswith("-conda"):
        yield from _conda_flaws(environment, records, context)


def _version_flaws(package: LockedPackage, lines: Iterable[Requested]) -> Iterator[Flaw]:
    version = Version(package.version)
    for line in lines:
        allowed = line.specifiers
        if not allowed.contains(version, prereleases=True) and not allowed.contains(
            version.public, prereleases=True
        ):
            yield flaw_in_package(package, f"the spec requires {line.key}{line.version}")


def _source_flaws(
    package: LockedPackage, environment: LockedEnvironment, context: _Context
) -> Iterator[str]:
    """Yield the problems of a package's index, its torch build, and source it may not build."""
    index = _index_of(package.name, environment, context)
    line = context.spec.package(package.name)
    declared = line is not None and not line.is_from_index
    if declared != (package.origin is not None):
        yield "the lock and the spec disagree about whether it comes from a path or a repository"
        return
    if package.origin is not None and line is not None:
        yield from _origin_flaws(package.origin, line)
        return
    if package.index != index:
        yield f"it comes from index {package.index}, but the spec requires {index}"
    local = Version(package.version).local
    if (
        package.name in context.facts.flavoured
        and local is not None
        and environment.platform in LINUX_PLATFORMS
        and local != environment.flavour
    ):
        yield f"it is a build for {local}, but it is in {environment.key}"
    if package.built and not any(
        package.name == allowed.key for allowed in buildable_packages(context.spec, context.facts)
    ):
        yield "it would be built from source, but the spec does not allow that with `build`"


def _origin_flaws(origin: LockedOrigin, line: Requested) -> Iterator[str]:
    """Yield what differs from the spec; the path, whose root is not known here, is not compared."""
    locked = origin.git, bool(origin.path), origin.editable, origin.subdirectory
    declared = line.git or "", line.path is not None, line.editable, line.subdirectory or ""
    if locked != declared:
        yield f"its source is {origin.description}, but the spec has {line.origin}"


def _index_of(name: str, environment: LockedEnvironment, context: _Context) -> str:
    """Return the index that a package is bound to, as `provision.lock.uv_project` binds it."""
    for line in context.spec.packages:
        if line.key == name and line.index:
            return line.index
    flavour = environment.flavour
    if (
        name in context.facts.flavoured
        and flavour
        and has_torch_index(environment.platform, flavour)
    ):
        return f"pytorch-{flavour}"
    return "pypi"


def _conda_flaws(
    environment: LockedEnvironment, records: Mapping[str, CondaRecord], context: _Context
) -> Iterator[Flaw]:
    channels = {DEFAULT_CHANNEL, *(package.channel for package in context.spec.conda_packages)}
    needs = {
        name: tuple(need.split()[0] for need in record.depends if need.split())
        for name, record in records.items()
    }
    start = requested_conda_names(context.spec)
    needed = reachable_names(start, needs)
    for package in context.lock.conda:
        if environment.key in package.environments:
            record = package.record
            if record.channel not in channels:
                yield flaw_in_conda(
                    package, f"the spec does not list the channel {record.channel!r}"
                )
            if record.name not in needed:
                yield flaw_in_conda(
                    package, f"no package that the spec requires depends on it in {environment.key}"
                )
            if record.name == "python" and not record.version.startswith(f"{context.spec.python}."):
                yield flaw_in_conda(package, f"the spec requires Python {context.spec.python}")
    for name in (*(package.name for package in context.spec.conda_packages), "python"):
        if name not in records:
            yield flaw_in_environment(
                environment, f"{name}, which conda should provide, is missing"
            )
