"""What uv answered, as packages of environments: one row for each version, with the files that run
there.
"""

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
    """What uv found, as packages of environments; `keys` are the environments by flavour and
    platform.
    """

    project: UvProject
    packages: tuple[LockedPackage, ...]
    environment_keys: Mapping[tuple[str, str], str]
    has_torch: bool
    unused_extras: tuple[str, ...] = ()
    """Extras of the spec that bring nothing, as in "idna[nosuch]"."""


def parse_resolution(
    question: ResolveRequest,
    project: UvProject,
    resolution: Resolution,
    rows: Mapping[str, list[dict[str, Any]]],
) -> ResolvedPackages:
    """Return the packages of uv's answer; `rows` are those of its exports, by variant. Raises
    LockError for a package without a wheel where it is needed.
    """
    with_torch = any(row["name"] == "torch" for found in rows.values() for row in found)
    keys = {
        (flavour, platform): f"{platform}-{flavour}" if with_torch else platform
        for flavour, platforms in question.flavours.items()
        for platform in platforms
    }
    merged: dict[tuple[str, str, str], LockedPackage] = {}
    for variant, found in rows.items():
        flavours = [variant] if variant else list(question.flavours)
        here = {
            platform: keys[flavour, platform]
            for flavour in flavours
            for platform in question.flavours[flavour]
        }
        for row in found:
            package = _package(row, question, project, here, resolution, variant)
            if package.environments:
                same = merged.setdefault((package.name, package.version, package.index), package)
                merged[package.name, package.version, package.index] = _merge_packages(
                    same, package, tuple(keys.values())
                )
    packages = tuple(sorted(merged.values(), key=lambda p: (p.name, p.version, p.index)))
    return ResolvedPackages(
        project, packages, keys, with_torch, tuple(_unused_extras(question, resolution.graph))
    )


def _unused_extras(question: ResolveRequest, graph: str) -> Iterator[str]:
    if not any(package.extras for package in question.spec.packages):
        return
    known = {row["name"]: row.get("optional-dependencies", {}) for row in _rows(graph)}
    for package in question.spec.packages:
        if package.key in known and package.key not in question.source_builds:
            yield from (
                f"{package.key}[{extra}]"
                for extra in package.extras
                if canonical_name(extra) not in known[package.key]
            )


def _merge_packages(
    one: LockedPackage, other: LockedPackage, order: tuple[str, ...]
) -> LockedPackage:
    held = {*one.environments, *other.environments}
    files = tuple(sorted({*one.files, *other.files}))
    unique = tuple(key for key in dict.fromkeys(sorted(order)) if key in held)
    return replace(
        one, environments=unique, files=files, unconfirmed=one.unconfirmed or other.unconfirmed
    )


@cache
def _rows(graph: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tomllib.loads(graph)["package"]
    return rows


@cache
def _requires(graph: str) -> dict[tuple[str, str], tuple[str, ...]]:
    needs: dict[tuple[str, str], set[str]] = {}
    for row in _rows(graph):  # one version may come from two indexes: then it has two rows
        extras = [
            needed for extra in row.get("optional-dependencies", {}).values() for needed in extra
        ]
        of_row = {needed["name"] for needed in (*row.get("dependencies", []), *extras)} - {
            row["name"]
        }
        needs.setdefault((row["name"], row.get("version", "")), set()).update(of_row)
    return {key: tuple(sorted(names)) for key, names in needs.items()}


def _package(
    row: Mapping[str, Any],
    question: ResolveRequest,
    project: UvProject,
    keys: Mapping[str, str],
    resolution: Resolution,
    variant: str,
) -> LockedPackage:
    platforms = tuple(
        platform
        for platform in keys
        if marker_applies(row.get("marker", ""), platform, question.spec.python)
    )
    if source := question.source_builds.get(row["name"]):
        return _source_package(source, row, tuple(keys[p] for p in platforms), question, resolution)
    files = {_file_name(wheel): wheel["hashes"]["sha256"] for wheel in row.get("wheels", ())}
    kept = tuple(
        LockedFile(name, value)
        for name, value in sorted(files.items())
        if any(wheel_runs_on(name, question.spec.python, p) for p in platforms)
    )
    index = _index_of(row["name"], platforms, question.spec.python, project, variant)
    for platform in platforms:
        if not any(wheel_runs_on(file.name, question.spec.python, platform) for file in kept):
            _refuse_without_wheel(row, platform, question)
    requires = _requires(resolution.graph).get((row["name"], row["version"]), ())
    unconfirmed = _is_unconfirmed(index, kept, question.facts, resolution.sources)
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
    question: ResolveRequest,
    resolution: Resolution,
) -> LockedPackage:
    """Return a package that is built where it is installed: its source in the place of the wheel
    that stood in for it.
    """
    requires = _requires(resolution.graph).get((row["name"], row["version"]), ())
    unconfirmed = _is_unconfirmed(source.index, (source.file,), question.facts, resolution.sources)
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
    """Tell whether a file lies on this machine, in an index or beside one, and no other source has
    confirmed its hash.
    """
    local = {wheel.name for wheel in sources.wheels}
    here = any(
        source.name == index and source.is_local for source in (sources.default, *sources.named)
    )
    return any(
        (here or file.name in local) and facts.wheels.get(file.name) != file.sha256
        for file in files
    )


def _index_of(
    name: str, platforms: tuple[str, ...], python: str, project: UvProject, variant: str
) -> str:
    """Return the index that a package is bound to where it is held. Addresses would not tell: two
    indexes may share one mirror.
    """
    bound = [
        binding
        for binding in project.bindings
        if binding.package == name and binding.variant in ("", variant)
    ]
    return next(
        (
            binding.index_name
            for binding in bound
            if any(marker_applies(binding.marker, platform, python) for platform in platforms)
        ),
        "pypi",
    )


def _file_name(wheel: Mapping[str, Any]) -> str:
    return (
        str(wheel["name"])
        if "name" in wheel
        else unquote(urlsplit(wheel.get("url", wheel.get("path", ""))).path).rsplit("/", 1)[-1]
    )


def _refuse_without_wheel(
    row: Mapping[str, Any], platform: str, question: ResolveRequest
) -> NoReturn:
    raise LockError(
        f"{row['name']} {row['version']} has no wheel for Python {question.spec.python} on "
        f"{platform}",
        why="its files: "
        f"{', '.join(_file_name(wheel) for wheel in row.get('wheels', ())[:5]) or 'source only'}",
        hint="choose a version that has one, or another `python`",
    )
