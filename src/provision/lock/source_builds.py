"""Which packages are locked as source: those with `build: true` whose newest release has no wheel
that fits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from provision.effects.packages import Index, IndexBinding, Release, UvProject, VersionPreference
from provision.effects.system import ProgressCallback, System
from provision.errors import LockError, Unsatisfiable
from provision.facts import Facts
from provision.lock.model import LockedFile
from provision.lock.wheels import marker_applies, marker_of, wheel_runs_on
from provision.spec import Package, Spec
from provision.target_facts import collect_target_facts


@dataclass(frozen=True, slots=True)
class SourceBuild:
    """A package that is built where it is installed: its source distribution, its index, and where
    a wheel of its metadata stands in for it.
    """

    package: str
    version: str
    index: str
    file: LockedFile
    metadata_index_url: str

    @property
    def metadata_index_name(self) -> str:
        """The name of the index that stands in; no index of a spec may be called so."""
        return f"source.{self.package}"


def find_source_builds(
    spec: Spec,
    facts: Facts,
    preferences: Sequence[VersionPreference],
    world: System,
    tell: ProgressCallback,
) -> Mapping[str, SourceBuild]:
    """Return the packages of a spec that have to be built, by name. Nothing of them is run.

    The newest release that the spec admits is taken, or the one of `preferences`. Where it has a
    wheel for every platform, uv is left to choose. Raises
    LockError when the metadata of a source distribution cannot be read, NetworkError when it is
    out of reach.
    """
    asked = {
        package.key: package
        for package in spec.packages
        if package.build and package.source != "conda" and package.key not in facts.flavoured
    }
    everywhere = (
        sorted(
            {platform for site in collect_target_facts(spec, facts) for platform in site.platforms}
        )
        if asked
        else []
    )
    places = {
        name: tuple(p for p in everywhere if marker_applies(package.marker, p, spec.python))
        for name, package in asked.items()
    }
    wanted = [asked[name] for name, platforms in places.items() if platforms]
    return {
        found.package: found
        for package in wanted
        for found in _source_build(package, places[package.key], spec, preferences, world, tell)
    }


def with_source_hints(error: Unsatisfiable, sources: Mapping[str, SourceBuild]) -> Unsatisfiable:
    """Return an error with a way out for each source that takes part in it: uv had no other release
    to choose.
    """
    named = [
        source
        for source in sources.values()
        if re.search(rf"(?<![\w.-]){re.escape(source.package)}(?![\w-])", error.why)
    ]
    said = "".join(
        f"\n{one.package} is taken in its newest release as source, {one.version}: name an "
        "older one in its `version`"
        for one in named
    )
    return Unsatisfiable(error.what, why=error.why, hint=error.hint + said)


def _source_build(
    package: Package,
    platforms: tuple[str, ...],
    spec: Spec,
    preferences: Sequence[VersionPreference],
    world: System,
    tell: ProgressCallback,
) -> Iterator[SourceBuild]:
    project = _project(package, platforms, spec, preferences)
    try:
        release = world.find_newest_release(project)
    except Unsatisfiable:
        return  # the resolution of the whole spec says so, with all that takes part
    if release.source is None or all(
        _has_wheel(release, spec.python, platform) for platform in platforms
    ):
        return
    file = release.source
    if not file.sha256:
        raise LockError(
            f"the index tells no sha256 of {file.name}", hint="take it from an index that does"
        )
    tell(
        f"{package.key} {release.version} has no wheel that fits: {file.name} is locked, "
        "and built when it is installed"
    )
    index = next(iter(project.indexes), None)
    yield SourceBuild(
        package.key,
        release.version,
        package.index or "pypi",
        LockedFile(file.name, file.sha256),
        world.create_metadata_index(release, index),
    )


def _has_wheel(release: Release, python: str, platform: str) -> bool:
    return any(wheel_runs_on(name, python, platform) for name in release.wheels)


def _project(
    package: Package,
    platforms: tuple[str, ...],
    spec: Spec,
    preferences: Sequence[VersionPreference],
) -> UvProject:
    indexes = (
        (Index(package.index, spec.indexes[package.index].url),)
        if package.index in spec.indexes
        else ()
    )
    return UvProject(
        spec.python,
        f"=={spec.python}.*",
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
