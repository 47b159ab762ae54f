"""Reads uv's resolution: the packages of every environment, with the files that run there."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple, NoReturn
from urllib.parse import unquote, urlsplit

from provision.effects.packages import PackageSources, Resolution, UvProject
from provision.errors import LockError
from provision.facts import Facts
from provision.lock.model import LockedFile, LockedPackage
from provision.lock.source_builds import SourceBuild
from provision.lock.uv_request import ResolveRequest
from provision.lock.wheels import marker_applies, wheel_runs_on
from provision.spec import canonical_name


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
            package = _package(row, request, project, variant_keys, resolution, variant)
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
    known = {row["name"]: row.get("optional-dependencies", {}) for row in _rows(graph)}
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
def _rows(graph: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tomllib.loads(graph)["package"]
    return rows


@cache
def _requires(graph: str) -> dict[tuple[str, str], tuple[str, ...]]:
    needs: dict[tuple[str, str], set[str]] = {}
    for row in _rows(graph):  # one version may come from two indexes: then it has two rows
        names = needs.setdefault((row["name"], row.get("version", "")), set())
        for group in (row.get("dependencies", []), *row.get("optional-dependencies", {}).values()):
            names.update(needed["name"] for needed in group if needed["name"] != row["name"])
    return {key: tuple(sorted(names)) for key, names in needs.items()}


def _package(
    row: Mapping[str, Any],
    request: ResolveRequest,
    project: UvProject,
    keys: Mapping[str, str],
    resolution: Resolution,
    variant: str,
) -> LockedPackage:
    platforms = tuple(
        platform
        for platform in keys
        if marker_applies(row.get("marker", ""), platform, request.spec.python)
    )
    if source := request.source_builds.get(row["name"]):
        return _source_package(source, row, tuple(keys[p] for p in platforms), request, resolution)
    files = {_file_name(wheel): wheel["hashes"]["sha256"] for wheel in row.get("wheels", ())}
    kept = tuple(
        LockedFile(name, value)
        for name, value in sorted(files.items())
        if any(wheel_runs_on(name, request.spec.python, p) for p in platforms)
    )
    index = _index_of(row["name"], platforms, request.spec.python, project, variant)
    for platform in platforms:
        if not any(wheel_runs_on(file.name, request.spec.python, platform) for file in kept):
            _refuse_without_wheel(row, platform, request)
    requires = _requires(resolution.graph).get((row["name"], row["version"]), ())
    unconfirmed = _is_unconfirmed(index, kept, request.facts, resolution.sources)
    return LockedPackage(
        row["name"],
        row["version"],
        index,
        tuple(keys[p] for p in platforms),
        requires,
        kept,
        unconfirmed,
    )


def _source_package(
    source: SourceBuild,
    row: Mapping[str, Any],
    environments: tuple[str, ...],
    request: ResolveRequest,
    resolution: Resolution,
) -> LockedPackage:
    """Return a package with its source in place of the wheel of its metadata."""
    requires = _requires(resolution.graph).get((row["name"], row["version"]), ())
    unconfirmed = _is_unconfirmed(source.index, (source.file,), request.facts, resolution.sources)
    return LockedPackage(
        row["name"],
        row["version"],
        source.index,
        environments,
        requires,
        (source.file,),
        unconfirmed,
    )


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


def _file_name(wheel: Mapping[str, Any]) -> str:
    if "name" in wheel:
        return str(wheel["name"])
    address = wheel.get("url", wheel.get("path", ""))
    return unquote(urlsplit(address).path).rsplit("/", 1)[-1]


def _refuse_without_wheel(
    row: Mapping[str, Any], platform: str, request: ResolveRequest
) -> NoReturn:
    raise LockError(
        f"{row['name']} {row['version']} has no wheel for Python {request.spec.python} on "
        f"{platform}",
        why="its files: "
        f"{', '.join(_file_name(wheel) for wheel in row.get('wheels', ())[:5]) or 'source only'}",
        hint="choose a version that has one, or another `python`",
    )
