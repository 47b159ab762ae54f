"""Requests to uv for a spec, and the packages of every environment in its result."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from provision.effects.packages import (
    IndexBinding,
    NamedIndex,
    PackageSources,
    Resolution,
    UvProject,
    VersionPreference,
    pylock_file_name,
)
from provision.errors import LockError
from provision.facts import Facts
from provision.lock.flavours import FlavourProposal, flavour_on, has_torch_index
from provision.lock.model import LockedFile, LockedPackage
from provision.lock.source_builds import SourceBuild
from provision.lock.wheels import (
    marker_applies,
    marker_of,
    marker_of_any,
    wheel_runs_on,
)
from provision.spec import Spec, canonical_name


class ResolveRequest(NamedTuple):
    """A spec to resolve with the torch builds of its targets.

    `direct` are the names to require directly, `source_builds` the packages to build, and `bounds`
    further constraints, which hold whatever `constraints` become.
    """

    spec: Spec
    facts: Facts
    proposal: FlavourProposal
    preferences: tuple[VersionPreference, ...] = ()
    constraints: Mapping[str, str] = MappingProxyType({})
    direct: frozenset[str] = frozenset()
    source_builds: Mapping[str, SourceBuild] = MappingProxyType({})
    bounds: tuple[str, ...] = ()

    @property
    def flavours(self) -> dict[str, tuple[str, ...]]:
        """The platforms of each flavour, both sorted."""
        flavours: dict[str, set[str]] = {}
        for target, choice in self.proposal.choices.items():
            for platform in lock_platforms(self.spec, target):
                flavours.setdefault(flavour_on(choice.flavour, platform), set()).add(platform)
        return {
            flavour: tuple(sorted(platforms)) for flavour, platforms in sorted(flavours.items())
        }


def lock_platforms(spec: Spec, target: str) -> tuple[str, ...]:
    """Return the platforms that a target is locked for, sorted."""
    kind = spec.registry.kind_of(spec.targets[target])
    return tuple(sorted(kind.lock_platforms(spec.platforms)))


def to_uv_project(request: ResolveRequest) -> UvProject:
    """Return the project for uv to resolve, with a variant for each of several flavours."""
    spec, flavours = request.spec, request.flavours
    family = tuple(sorted(request.direct & request.facts.flavoured))
    torch_indexes = _torch_indexes(request, family)
    torch_names = {index.name for index in torch_indexes.values()}
    own_indexes = [
        NamedIndex(name, index.url)
        for name, index in sorted(spec.indexes.items())
        if name not in torch_names
    ]
    metadata_indexes = {
        name: NamedIndex(source.metadata_index_name, source.metadata_index_url)
        for name, source in sorted(request.source_builds.items())
    }
    several = len(flavours) > 1
    bindings = _bind_packages(spec, family, torch_indexes, metadata_indexes, several=several)
    listed = {package.key for package in spec.packages}
    requirements = (
        *(package.requirement for package in spec.packages),
        *sorted(request.direct - listed),
    )
    platforms = sorted({platform for group in flavours.values() for platform in group})
    variants = []
    if several:
        for flavour, group in flavours.items():
            marker = marker_of_any(group)
            variants.append((flavour, tuple(_with_marker(line, marker) for line in requirements)))
    overridden = {binding.package for binding in bindings if binding.marker}
    return UvProject(
        spec.python,
        () if several else requirements,
        (*own_indexes, *torch_indexes.values(), *metadata_indexes.values()),
        tuple(bindings),
        tuple(map(marker_of, platforms)),
        spec.exclude_newer,
        request.preferences,
        (
            *(f"{name}{version}" for name, version in sorted(request.constraints.items())),
            *request.bounds,
        ),
        tuple(variants),
        tuple(sorted(overridden | metadata_indexes.keys())),
    )


def _bind_packages(
    spec: Spec,
    family: tuple[str, ...],
    torch_indexes: Mapping[str, NamedIndex],
    metadata_indexes: Mapping[str, NamedIndex],
    *,
    several: bool,
) -> list[IndexBinding]:
    """Return the index of every bound package; torch's family is bound by flavour."""
    declared = {package.key: package.index for package in spec.packages if package.index}
    declared |= {name: index.name for name, index in metadata_indexes.items()}
    bindings = [IndexBinding(name, index) for name, index in declared.items()]
    for flavour, torch_index in torch_indexes.items():
        marker = marker_of_any(torch_index.platforms)
        variant = flavour if several else ""
        bindings += [
            IndexBinding(name, torch_index.name, marker, variant)
            for name in family
            if name not in declared
        ]
    return bindings


def _torch_indexes(request: ResolveRequest, family: tuple[str, ...]) -> dict[str, NamedIndex]:
    """Return the index of each flavour, for the platforms that get torch from it."""
    lines = {package.key: f"{package.key}{package.version}" for package in request.spec.packages}
    packages = tuple(lines.get(name, name) for name in family)
    indexes = {}
    for flavour, platforms in request.flavours.items():
        served = tuple(name for name in platforms if has_torch_index(name, flavour))
        if packages and served:
            name = f"pytorch-{flavour}"
            declared = request.spec.indexes.get(name)
            url = declared.url if declared is not None else request.facts.flavour_index(flavour)
            indexes[flavour] = NamedIndex(name, url, flavour, packages, served)
    return indexes


def _with_marker(requirement: str, marker: str) -> str:
    line, _, own = requirement.partition(" ; ")
    return f"{line} ; ({own}) and ({marker})" if own else f"{line} ; {marker}"


class ResolvedPackages(NamedTuple):
    """The resolved packages; `environment_keys` are by flavour and platform."""

    project: UvProject
    packages: tuple[LockedPackage, ...]
    environment_keys: Mapping[tuple[str, str], str]
    has_torch: bool
    unused_extras: tuple[str, ...] = ()
    """Extras of the spec that bring nothing, as in "idna[nosuch]"."""


def parse_resolution(
    request: ResolveRequest,
    project: UvProject,
    resolution: Resolution,
    rows: Mapping[str, list[dict[str, Any]]],
) -> ResolvedPackages:
    """Return the packages of a resolution.

    Args:
        request: the spec and its flavours.
        project: the project that uv resolved.
        resolution: uv's result.
        rows: the packages of its exports, by variant.

    Raises:
        LockError: a package has no wheel for a platform that needs it.
    """
    with_torch = any(row["name"] == "torch" for group in rows.values() for row in group)
    keys = {
        (flavour, platform): f"{platform}-{flavour}" if with_torch else platform
        for flavour, platforms in request.flavours.items()
        for platform in platforms
    }
    merged: dict[tuple[str, str, str], LockedPackage] = {}
    for variant, group in rows.items():
        flavours = [variant] if variant else list(request.flavours)
        variant_keys = {
            platform: keys[flavour, platform]
            for flavour in flavours
            for platform in request.flavours[flavour]
        }
        for row in group:
            package = _to_locked_package(row, request, project, variant_keys, resolution, variant)
            if package.environments:
                identity = package.name, package.version, package.index
                same = merged.get(identity, package)
                merged[identity] = _merge_packages(same, package, sorted(keys.values()))
    packages = tuple(package for _, package in sorted(merged.items()))
    unused = tuple(_unused_extras(request, resolution.graph))
    return ResolvedPackages(project, packages, keys, with_torch, unused)


def _unused_extras(request: ResolveRequest, graph: str) -> Iterator[str]:
    if not any(package.extras for package in request.spec.packages):
        return
    known = {row["name"]: row.get("optional-dependencies", {}) for row in _graph_rows(graph)}
    for package in request.spec.packages:
        if package.key in known and package.key not in request.source_builds:
            yield from (
                f"{package.key}[{extra}]"
                for extra in package.extras
                if canonical_name(extra) not in known[package.key]
            )


def _merge_packages(package: LockedPackage, other: LockedPackage, keys: list[str]) -> LockedPackage:
    used = {*package.environments, *other.environments}
    return replace(
        package,
        environments=tuple(key for key in dict.fromkeys(keys) if key in used),
        files=tuple(sorted({*package.files, *other.files})),
        unconfirmed=package.unconfirmed or other.unconfirmed,
    )


@cache
def _graph_rows(graph: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tomllib.loads(graph)["package"]
    return rows


@cache
def _requirements_in_graph(graph: str) -> dict[tuple[str, str], tuple[str, ...]]:
    needs: dict[tuple[str, str], set[str]] = {}
    for row in _graph_rows(graph):  # one version may come from two indexes: then it has two rows
        names = needs.setdefault((row["name"], row.get("version", "")), set())
        for group in (row.get("dependencies", []), *row.get("optional-dependencies", {}).values()):
            names.update(needed["name"] for needed in group if needed["name"] != row["name"])
    return {key: tuple(sorted(names)) for key, names in needs.items()}


def _to_locked_package(
    row: Mapping[str, Any],
    request: ResolveRequest,
    project: UvProject,
    keys: Mapping[str, str],
    resolution: Resolution,
    variant: str,
) -> LockedPackage:
    name, version, python = row["name"], row["version"], request.spec.python
    platforms = tuple(
        platform for platform in keys if marker_applies(row.get("marker", ""), platform, python)
    )
    files: tuple[LockedFile, ...]
    source = request.source_builds.get(name)
    if source is not None:  # its row has the wheel of its metadata
        index, files = source.index, (source.file,) if source.file is not None else ()
        _require_wheel_runs(source, platforms, python)
    else:
        index = _index_of(name, platforms, python, project, variant)
        files = _wheels_for(row, platforms, python)
    return LockedPackage(
        name,
        version,
        index,
        tuple(keys[platform] for platform in platforms),
        _requirements_in_graph(resolution.graph).get((name, version), ()),
        files,
        _is_unconfirmed(index, files, request.facts, resolution.sources),
        None if source is None else source.origin,
    )


def _require_wheel_runs(source: SourceBuild, platforms: tuple[str, ...], python: str) -> None:
    """Raise LockError if a wheel file of the spec does not run on one of its platforms."""
    if source.origin is None or source.file is None:
        return
    for platform in platforms:
        if not wheel_runs_on(source.file.name, python, platform):
            raise LockError(
                f"{source.origin.path} is not compatible with Python {python} on {platform}",
                hint="build a wheel for that platform, or change `python` or `platforms`",
            )


def _wheels_for(
    row: Mapping[str, Any], platforms: tuple[str, ...], python: str
) -> tuple[LockedFile, ...]:
    """Return the wheels that run on a platform; raise LockError if a platform has none."""
    files = {
        name: LockedFile(name, wheel["hashes"]["sha256"], _download_size(wheel))
        for wheel in row.get("wheels", ())
        if (name := pylock_file_name(wheel))
    }
    used = set()
    for platform in platforms:
        fitting = {name for name in files if wheel_runs_on(name, python, platform)}
        if not fitting:
            raise LockError(
                f"{row['name']} {row['version']} has no wheel for Python {python} on {platform}",
                why=f"available: {', '.join(list(files)[:5]) or 'source only'}",
                hint="choose a version that has a matching wheel, or change `python`",
            )
        used |= fitting
    return tuple(files[name] for name in sorted(used))


def _download_size(wheel: Mapping[str, Any]) -> int | None:
    """Return the bytes to download of a wheel, 0 for a local file, None if they are unknown."""
    is_local = "path" in wheel or str(wheel.get("url")).startswith("file:")
    return 0 if is_local else wheel.get("size")


def _is_unconfirmed(
    index: str, files: tuple[LockedFile, ...], facts: Facts, sources: PackageSources
) -> bool:
    """Return whether a file is from this machine and no other source has confirmed its hash."""
    wheels = {wheel.name for wheel in sources.wheels}
    is_local = any(
        source.name == index and source.is_local for source in (sources.default, *sources.named)
    )
    return any(
        (is_local or file.name in wheels) and facts.wheels.get(file.name) != file.sha256
        for file in files
    )


def _index_of(
    name: str, platforms: tuple[str, ...], python: str, project: UvProject, variant: str
) -> str:
    """Return the index that a package is bound to.

    Addresses cannot show it: two indexes may share one mirror.
    """
    for binding in project.bindings:
        if binding.package == name and binding.variant in ("", variant):
            marker = binding.marker
            if any(marker_applies(marker, platform, python) for platform in platforms):
                return binding.index_name
    return "pypi"
