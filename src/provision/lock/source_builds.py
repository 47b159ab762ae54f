"""Packages that are locked as source: `build: true`, and no wheel of the newest release fits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from provision.effects.packages import (
    IndexBinding,
    NamedIndex,
    UvProject,
    VersionPreference,
)
from provision.effects.system import Notice, ProgressCallback, System
from provision.errors import LockError, Unsatisfiable
from provision.facts import Facts
from provision.facts.wheel_releases import brought_without_wheel
from provision.lock.model import Lock, LockedFile
from provision.lock.origins import LockedOrigin
from provision.lock.wheels import marker_applies, marker_of, wheel_runs_on
from provision.spec import Package, Spec
from provision.target_facts import collect_target_facts


@dataclass(frozen=True, slots=True)
class SourceBuild:
    """A package that is built when it is installed, or comes from a path or a repository.

    While uv resolves, a wheel with its metadata from `metadata_index_url` replaces it.
    """

    package: str
    version: str
    index: str
    file: LockedFile | None
    metadata_index_url: str
    origin: LockedOrigin | None = None

    @property
    def metadata_index_name(self) -> str:
        """The name of the metadata index, which no index of a spec can have."""
        return f"source.{self.package}"


def find_source_builds(
    spec: Spec,
    facts: Facts,
    preferences: Sequence[VersionPreference],
    system: System,
    progress: ProgressCallback,
) -> Mapping[str, SourceBuild]:
    """Return the packages of a spec that have to be built, by name; none of their code runs.

    The release is the one in `preferences`, else the newest that the spec admits. If it has a wheel
    for every platform, uv chooses.

    Raises:
        LockError: the metadata of a source distribution cannot be read.
        NetworkError: it cannot be fetched.
    """
    requested = {
        package.key: package
        for package in buildable_packages(spec, facts)
        if package.source != "conda"
        and package.key not in facts.flavoured
        and package.is_from_index
    }
    platforms: set[str] = set()
    if requested:
        for target in collect_target_facts(spec, facts):
            platforms.update(target.platforms)
    builds = {}
    for package in requested.values():
        needed = tuple(
            platform
            for platform in sorted(platforms)
            if marker_applies(package.marker, platform, spec.python)
        )
        if needed:
            build = _find_source_build(package, needed, spec, preferences, system, progress)
            if build is not None:
                builds[package.key] = build
    return builds


def buildable_packages(spec: Spec, facts: Facts) -> list[Package]:
    """Return the packages that may be built: listed ones, and those that a listed one brings.

    The latter have the specifiers with which it requires them, as far as the facts have them.
    """
    listed = {package.key for package in spec.packages}
    packages = [package for package in spec.packages if package.is_built]
    for line in spec.packages:
        brought = {
            row.name: row.requires for row in brought_without_wheel(facts, line.key, line.version)
        }
        names = brought if line.build is True else line.built_names
        packages += [
            Package(name=name, version=brought.get(name, ""), marker=line.marker)
            for name in names
            if name not in listed
        ]
    return packages


def refuse_unused_builds(lock: Lock, spec: Spec) -> None:
    """Raise LockError if a name in `build` is a package that no other package requires."""
    required = {name for package in lock.packages for name in package.requires}
    for line in spec.packages:
        for name in line.built_names:
            if name not in required and name != line.key:
                raise LockError(
                    f"`build` of {line.key} lists {name}, but no locked package requires it",
                    hint=f"remove {name} from `build`, or add it to `packages`",
                )


def with_source_hints(error: Unsatisfiable, sources: Mapping[str, SourceBuild]) -> Unsatisfiable:
    """Return an error with a hint for each source in it: uv had no other release to choose."""
    hint = error.hint
    for source in sources.values():
        if re.search(rf"(?<![\w.-]){re.escape(source.package)}(?![\w-])", error.why):
            if source.origin is not None:
                hint += f"\n{source.package} {source.version} is {source.origin.description}"
                continue
            hint += (
                "\n"
                f"{source.package} is built from its newest source release, {source.version}: "
                "set an older release as its `version`"
            )
    return Unsatisfiable(error.what, why=error.why, hint=hint)


def _find_source_build(
    package: Package,
    platforms: tuple[str, ...],
    spec: Spec,
    preferences: Sequence[VersionPreference],
    system: System,
    progress: ProgressCallback,
) -> SourceBuild | None:
    project = _single_package_project(package, platforms, spec, preferences)
    try:
        release = system.find_newest_release(project)
    except Unsatisfiable:
        return None  # the resolution of the whole spec reports it, with all that takes part
    lacking = [
        platform
        for platform in platforms
        if not any(wheel_runs_on(name, spec.python, platform) for name in release.wheels)
    ]
    if release.source is None or not lacking:
        return None
    file = release.source
    if not file.sha256:
        raise LockError(
            f"the index has no sha256 hash for {file.name}",
            hint="use an index that provides sha256 hashes",
        )
    progress(
        Notice(
            f"{package.key} {release.version} has no matching wheel: {file.name} is locked, "
            "and will be built when it is installed"
        )
    )
    index = next(iter(project.indexes), None)
    return SourceBuild(
        package.key,
        release.version,
        package.index or "pypi",
        LockedFile(file.name, file.sha256),
        system.create_metadata_index(release, index),
    )


def _single_package_project(
    package: Package,
    platforms: tuple[str, ...],
    spec: Spec,
    preferences: Sequence[VersionPreference],
) -> UvProject:
    indexes = (
        (NamedIndex(package.index, spec.indexes[package.index].url),)
        if package.index in spec.indexes
        else ()
    )
    return UvProject(
        spec.python,
        (f"{package.key}{package.version}",),
        indexes,
        tuple(IndexBinding(package.key, index.name) for index in indexes),
        tuple(marker_of(platform) for platform in platforms),
        spec.exclude_newer,
        tuple(
            VersionPreference(kept.name, kept.version, kept.index)
            for kept in preferences
            if kept.name == package.key
        ),
    )
