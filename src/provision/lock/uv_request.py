"""Requests to uv for a spec: requirements by torch flavour, each bound to its index."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from provision.effects.packages import Index, IndexBinding, UvProject, VersionPreference
from provision.facts import Facts
from provision.lock.flavours import FlavourProposal, flavour_on
from provision.lock.source_builds import SourceBuild
from provision.lock.wheels import LINUX_PLATFORMS, marker_of, marker_of_any
from provision.spec import Spec


class ResolveRequest(NamedTuple):
    """A spec to resolve with the torch builds of its targets.

    `direct` are the names to require directly, `source_builds` the packages to build.
    """

    spec: Spec
    facts: Facts
    proposal: FlavourProposal
    preferences: tuple[VersionPreference, ...] = ()
    constraints: Mapping[str, str] = MappingProxyType({})
    direct: frozenset[str] = frozenset()
    source_builds: Mapping[str, SourceBuild] = MappingProxyType({})

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
    return tuple(sorted(spec.registry.kind_of(spec.targets[target]).lock_platforms(spec.platforms)))


def to_uv_project(request: ResolveRequest) -> UvProject:
    """Return the project for uv to resolve, with a variant for each of several flavours."""
    spec, flavours = request.spec, request.flavours
    family = tuple(sorted(request.direct & request.facts.flavoured))
    torch_indexes = _torch_indexes(request, family)
    torch_names = {index.name for index in torch_indexes.values()}
    own_indexes = [
        Index(name, index.url)
        for name, index in sorted(spec.indexes.items())
        if name not in torch_names
    ]
    metadata_indexes = {
        name: Index(source.metadata_index_name, source.metadata_index_url)
        for name, source in sorted(request.source_builds.items())
    }
    several = len(flavours) > 1
    bindings = _bindings(spec, family, torch_indexes, metadata_indexes, several=several)
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
            variants.append((flavour, tuple(_limit(line, marker) for line in requirements)))
    overridden = {binding.package for binding in bindings if binding.marker}
    return UvProject(
        spec.python,
        f"=={spec.python}.*",
        () if several else requirements,
        (*own_indexes, *torch_indexes.values(), *metadata_indexes.values()),
        tuple(bindings),
        tuple(map(marker_of, platforms)),
        spec.exclude_newer,
        request.preferences,
        tuple(f"{name}{version}" for name, version in sorted(request.constraints.items())),
        tuple(variants),
        tuple(sorted(overridden | metadata_indexes.keys())),
    )


def _bindings(
    spec: Spec,
    family: tuple[str, ...],
    torch_indexes: Mapping[str, Index],
    metadata_indexes: Mapping[str, Index],
    *,
    several: bool,
) -> list[IndexBinding]:
    """Return the index of every bound package; torch's family is bound by flavour."""
    declared = {}
    for package in spec.packages:
        own = metadata_indexes.get(package.key)
        index = package.index if own is None else own.name
        if index:
            declared[package.key] = index
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


def _torch_indexes(request: ResolveRequest, family: tuple[str, ...]) -> dict[str, Index]:
    """Return the index of each flavour, for the platforms that get torch from it.

    These are Linux, and Windows with a card.
    """
    lines = {package.key: f"{package.key}{package.version}" for package in request.spec.packages}
    packages = tuple(lines.get(name, name) for name in family)
    indexes = {}
    for flavour, platforms in request.flavours.items():
        served = tuple(
            platform
            for platform in platforms
            if platform in LINUX_PLATFORMS or (platform.startswith("windows") and flavour != "cpu")
        )
        if packages and served:
            name = f"pytorch-{flavour}"
            declared = request.spec.indexes.get(name)
            url = declared.url if declared is not None else request.facts.flavour_index(flavour)
            indexes[flavour] = Index(name, url, flavour, packages, served)
    return indexes


def _limit(requirement: str, marker: str) -> str:
    line, _, own = requirement.partition(" ; ")
    return f"{line} ; ({own}) and ({marker})" if own else f"{line} ; {marker}"
