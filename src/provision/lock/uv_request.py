"""What uv is asked for a spec: requirements by torch flavour, each bound to its index."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from provision.effects import Index, IndexBinding, UvProject, VersionPreference
from provision.facts import Facts
from provision.kinds import kind_of
from provision.lock.flavours import FlavourProposal, flavour_on
from provision.lock.source_builds import SourceBuild
from provision.lock.wheels import LINUX_PLATFORMS, marker_of, marker_of_any
from provision.spec import Spec


class ResolveRequest(NamedTuple):
    """What is being locked: the spec, the torch flavours with the platforms that each is for, what
    is held fast or preferred, what is taken as source.
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
        """The platforms that each flavour is locked for, both sorted."""
        found: dict[str, set[str]] = {}
        for target, choice in self.proposal.choices.items():
            for platform in lock_platforms(self.spec, target):
                found.setdefault(flavour_on(choice.flavour, platform), set()).add(platform)
        return {flavour: tuple(sorted(platforms)) for flavour, platforms in sorted(found.items())}


def lock_platforms(spec: Spec, target: str) -> tuple[str, ...]:
    """Return the platforms that a target is locked for, sorted."""
    return tuple(sorted(kind_of(spec.targets[target]).lock_platforms(spec.platforms)))


def to_uv_project(question: ResolveRequest) -> UvProject:
    """Return the project that uv is asked to resolve: one variant for each flavour where there are
    several.
    """
    spec, flavours = question.spec, question.flavours
    family = tuple(sorted(question.direct & question.facts.flavoured))
    asked = {package.key: f"{package.key}{package.version}" for package in spec.packages}
    wanted = tuple(asked.get(member, member) for member in family)
    torch = {
        flavour: index
        for flavour, platforms in flavours.items()
        if (index := _torch_index(question, flavour, platforms, wanted)) is not None
    }
    own = tuple(
        Index(name, index.url)
        for name, index in sorted(spec.indexes.items())
        if name not in {index.name for index in torch.values()}
    )
    stand_ins = {
        name: Index(source.metadata_index_name, source.metadata_index_url)
        for name, source in sorted(question.source_builds.items())
    }
    listed = {
        package.key: stand_ins[package.key].name if package.key in stand_ins else package.index
        for package in spec.packages
    }
    several = len(flavours) > 1
    bindings = [IndexBinding(name, index) for name, index in listed.items() if index]
    for flavour, index in torch.items():
        variant = flavour if several else ""
        marker = marker_of_any(index.platforms)
        bindings += [
            IndexBinding(name, index.name, marker, variant)
            for name in family
            if not listed.get(name)
        ]
    requirements = tuple(
        [package.requirement for package in spec.packages] + sorted(question.direct - listed.keys())
    )
    environments = tuple(
        marker_of(platform)
        for platform in sorted({p for platforms in flavours.values() for p in platforms})
    )
    return UvProject(
        spec.python,
        f"=={spec.python}.*",
        () if several else requirements,
        (*own, *torch.values(), *stand_ins.values()),
        tuple(bindings),
        environments,
        spec.exclude_newer,
        question.preferences,
        tuple(f"{name}{version}" for name, version in sorted(question.constraints.items())),
        tuple(
            (flavour, tuple(_only(r, marker_of_any(platforms)) for r in requirements))
            for flavour, platforms in flavours.items()
        )
        if several
        else (),
        tuple(
            sorted({binding.package for binding in bindings if binding.marker} | stand_ins.keys())
        ),
    )


def _torch_index(
    question: ResolveRequest, flavour: str, platforms: tuple[str, ...], wanted: tuple[str, ...]
) -> Index | None:
    """Return the index of a flavour, for the platforms that take torch from it: Linux, and Windows
    where a card is asked for.
    """
    served = tuple(
        platform
        for platform in platforms
        if platform in LINUX_PLATFORMS or (platform.startswith("windows") and flavour != "cpu")
    )
    if not wanted or not served:
        return None
    name = f"pytorch-{flavour}"
    url = (
        question.spec.indexes[name].url
        if name in question.spec.indexes
        else question.facts.flavour_index(flavour)
    )
    return Index(name, url, flavour, wanted, served)


def _only(requirement: str, marker: str) -> str:
    line, _, own = requirement.partition(" ; ")
    return f"{line} ; ({own}) and ({marker})" if own else f"{line} ; {marker}"
