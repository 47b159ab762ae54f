"""Which build of torch every target gets, and why: as the spec says, or chosen from what the facts
know of its card and driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from provision.errors import LockError
from provision.facts import Facts, TorchBuild, TorchRelease, cuda_of
from provision.facts.compatibility import CodeForm
from provision.facts.schema_platforms import ColabRuntime
from provision.facts.versions import require_version
from provision.kinds import kind_of
from provision.spec import Spec
from provision.target_facts import TargetFacts, collect_target_facts


class FlavourChoice(NamedTuple):
    """The torch build family of a target ("cpu", "cu128"), and the reason in words."""

    flavour: str
    reason: str


class FlavourProposal(NamedTuple):
    """What one release of torch comes to: a choice for every target. `release` is None where any
    release will do.
    """

    release: str | None
    choices: Mapping[str, FlavourChoice]

    @property
    def flavours(self) -> frozenset[str]:
        """All flavours of the targets."""
        return frozenset(choice.flavour for choice in self.choices.values())


def propose_flavours(
    spec: Spec, facts: Facts, kept: str | None = None
) -> Iterator[FlavourProposal]:
    """Yield what may be asked of uv, the best first: the release that is kept, that of a Colab
    runtime, then the newest.

    A spec that pins one flavour leaves the release to uv. Raises LockError when no release has a
    build for every target.
    """
    sites = collect_target_facts(spec, facts)
    pinned = {site.name: choice for site in sites if (choice := _pinned(site)) is not None}
    named_by_facts = (
        spec.package("torchaudio") is not None
    )  # its last release names no torch, so uv cannot tell which one it was made for
    if (
        len(pinned) == len(sites)
        and len({choice.flavour for choice in pinned.values()}) == 1
        and not named_by_facts
    ):
        yield FlavourProposal(None, pinned)
        return
    releases = admitted_torch_releases(spec, facts)
    fitting = 0
    for release in _ordered(releases, sites, kept):
        if (choices := _choices(spec, facts, sites, pinned, release)) is not None:
            fitting += 1
            yield FlavourProposal(release.release, choices)
    if not fitting and len(pinned) == len(sites):
        yield FlavourProposal(
            None, pinned
        )  # every flavour stands in the spec: what the facts do not know, the indexes may
    elif not fitting:
        raise _no_release_error(spec, facts, sites, pinned, releases)


def admitted_torch_releases(spec: Spec, facts: Facts) -> tuple[TorchRelease, ...]:
    """Return the releases of torch, newest first, that the spec's own line, its Python, its
    platforms and its `exclude_newer` admit.
    """
    asked = spec.package("torch")
    specifiers = asked.specifiers if asked is not None else SpecifierSet()
    platforms = {
        platform for site in collect_target_facts(spec, facts) for platform in site.platforms
    }
    return tuple(
        row
        for row in reversed(facts.torch)
        if specifiers.contains(row.release, prereleases=True)
        and all(spec.python in row.pythons_on(platform) for platform in platforms)
        and (spec.exclude_newer is None or _day(row) <= spec.exclude_newer[:10])
    )


def flavour_on(flavour: str, platform: str) -> str:
    """Return the flavour that a target's choice comes to on one of its platforms: macOS has one
    build of torch, without CUDA.
    """
    return "cpu" if platform.startswith("macos") else flavour


def _day(row: TorchRelease) -> str:
    return row.released if len(row.released) == 10 else f"{row.released}-31"


def _pinned(site: TargetFacts) -> FlavourChoice | None:
    device = site.gpu_settings
    said = "the spec says" if device.gpu_route[0] == "gpu" else f"target {site.name} says"
    if not device.is_nvidia:
        return FlavourChoice("cpu", f"cpu: {said} gpu: {device.gpu.type}")
    if device.flavour is None:
        return None
    said = "the spec says" if device.cuda_route[0] == "cuda" else f"target {site.name} says"
    return FlavourChoice(device.flavour, f"{device.flavour}: {said} cuda: {device.cuda}")


def _ordered(
    releases: Sequence[TorchRelease], sites: Sequence[TargetFacts], kept: str | None
) -> list[TorchRelease]:
    first = [
        kept,
        *(
            site.runtime.torch
            for site in sites
            if site.runtime is not None and _base_runtime(site) is not None
        ),
    ]
    return sorted(
        releases, key=lambda row: first.index(row.release) if row.release in first else len(first)
    )


def _base_runtime(site: TargetFacts) -> ColabRuntime | None:
    return kind_of(site.target).base_runtime(site)


def _choices(
    spec: Spec,
    facts: Facts,
    sites: Sequence[TargetFacts],
    pinned: Mapping[str, FlavourChoice],
    release: TorchRelease,
) -> dict[str, FlavourChoice] | None:
    """Return the choice of every target with one release; None when a target has none.

    Targets share a flavour where one runs at all of them: what a Colab runtime brings, else what
    another target has, else the newest that all can have, among
    the builds that the facts are sure of where there are some.
    """
    if any(choice.flavour not in release.flavours for choice in pinned.values()):
        return None
    open_sites = [site for site in sites if site.name not in pinned]
    candidates = {site.name: _candidates(spec, facts, site, release) for site in open_sites}
    if not all(candidates.values()):
        return None
    found = dict(pinned)
    for site in sorted(open_sites, key=lambda site: not _is_runtime_torch(site, release)):
        found[site.name] = _choose_flavour(spec, facts, site, release, candidates, found)
    return {site.name: found[site.name] for site in sites}


def _is_runtime_torch(site: TargetFacts, release: TorchRelease) -> bool:
    return (
        _base_runtime(site) is not None
        and site.runtime is not None
        and site.runtime.torch == release.release
    )


def _choose_flavour(
    spec: Spec,
    facts: Facts,
    site: TargetFacts,
    release: TorchRelease,
    candidates: Mapping[str, Sequence[TorchBuild]],
    found: Mapping[str, FlavourChoice],
) -> FlavourChoice:
    own = {build.flavour: build for build in candidates[site.name]}
    if (
        _is_runtime_torch(site, release)
        and site.runtime is not None
        and site.runtime.flavour in own
    ):
        return _explained_choice(
            facts,
            site,
            own[site.runtime.flavour],
            f"what Colab runtime {site.runtime.runtime} brings with torch "
            f"{release.release}; it covers",
        )
    for name, choice in found.items():
        if choice.flavour in own:
            return _explained_choice(
                facts, site, own[choice.flavour], f"as at target {name}; it covers"
            )
    everywhere = [
        flavour
        for flavour in own
        if all(flavour in {build.flavour for build in others} for others in candidates.values())
    ]
    build = own[
        max(
            everywhere or own,
            key=lambda flavour: (
                release.builds.get(flavour) == "high",
                require_version(cuda_of(flavour)),
            ),
        )
    ]
    shared = " and runs at every target" if everywhere and len(candidates) > 1 else ""
    if _driver(spec, site) is None:
        return _explained_choice(
            facts,
            site,
            build,
            f"the driver there is not known, and no build of torch {release.release} asks "
            f"for an older one{shared}; it covers",
        )
    return _explained_choice(
        facts,
        site,
        build,
        f"the newest build of torch {release.release} that is sure to be there{shared}; it covers",
    )


def _candidates(
    spec: Spec, facts: Facts, site: TargetFacts, release: TorchRelease
) -> list[TorchBuild]:
    """Return the builds that run at a site on all its platforms, oldest CUDA first. Where the
    driver is unknown, those that ask for the oldest one.
    """
    if site.card is None:
        return []
    platforms = [platform for platform in site.platforms if not platform.startswith("macos")]
    by_platform = [
        {
            build.flavour: build
            for build in facts.builds_for_card(site.card, release.release, platform)
        }
        for platform in platforms
    ]
    builds = (
        [
            build
            for build in by_platform[0].values()
            if all(build.flavour in other for other in by_platform)
        ]
        if by_platform
        else []
    )
    sure = [build for build in builds if release.builds.get(build.flavour) != "low"]
    driver = _driver(spec, site)
    if driver is not None:
        return [build for build in sure if facts.can_run(driver, build, site.card)]
    floors = {
        build.flavour: floor
        for build in sure
        if (floor := facts.driver_floor(cuda_of(build.flavour))) is not None
    }
    lowest = min(floors.values(), key=require_version, default=None)
    return [build for build in sure if floors.get(build.flavour) == lowest and lowest is not None]


def _driver(spec: Spec, site: TargetFacts) -> str | None:
    """Return the driver that a site has, or else the oldest that the spec requires of it, or the
    newest that it admits.
    """
    if site.driver is not None:
        return site.driver.value
    required = SpecifierSet(spec.for_target(site.name).requires.driver or "")
    least = [
        clause.version.removesuffix(".*")
        for clause in required
        if clause.operator in (">=", "==", "~=", ">")
    ]
    most = [clause.version for clause in required if clause.operator == "<="] + [
        _below(clause.version) for clause in required if clause.operator == "<"
    ]
    return max(least, key=require_version, default=None) or min(
        most, key=require_version, default=None
    )


def _below(driver: str) -> str:
    return f"{require_version(driver).major - 1}.999"


def _explained_choice(
    facts: Facts, site: TargetFacts, build: TorchBuild, why: str
) -> FlavourChoice:
    card, code = (
        site.gpu_settings.gpu.type,
        facts.code_for(site.card, build) if site.card is not None else None,
    )
    form = (
        ""
        if code is None
        else " "
        f"(sm_{site.card.cc.replace('.', '')}{', by PTX' if code.form is CodeForm.PTX else ''})"
        if site.card is not None
        else ""
    )
    driver = (
        f"driver {site.driver.value} of {site.driver.provider}"
        if site.driver is not None
        else f"driver {facts.driver_floor(cuda_of(build.flavour))} and newer"
    )
    return FlavourChoice(build.flavour, f"{build.flavour}: {why} {card}{form} and runs on {driver}")


def _no_release_error(
    spec: Spec,
    facts: Facts,
    sites: Sequence[TargetFacts],
    pinned: Mapping[str, FlavourChoice],
    releases: Sequence[TorchRelease],
) -> LockError:
    asked = spec.package("torch")
    wanted = asked.requirement if asked is not None else "torch"
    hint = 'write `cuda:`, as in cuda: "12.8", or ask `provision suggest`'
    if not releases:
        newest = facts.torch[-1].release
        why = (
            f"the facts know releases of torch up to {newest}; none of them is {wanted} with a "
            f"wheel for Python {spec.python}"
        )
        return LockError("no torch build can be chosen for `cuda: auto`", why=why, hint=hint)
    unknown = next((site for site in sites if site.card is None and site.name not in pinned), None)
    if unknown is not None:
        what = (
            f"no torch build can be chosen for target {unknown.name}: the facts have no GPU "
            f"named {unknown.gpu_settings.gpu.type}"
        )
        return LockError(what, hint=f"name a GPU that `provision facts list gpus` lists, or {hint}")
    newest_first = releases[0]
    lines = [f"of torch {newest_first.release}, the newest that fits {wanted}:"]
    for site in sites:
        builds = (
            [pinned[site.name].flavour]
            if site.name in pinned
            else [build.flavour for build in _candidates(spec, facts, site, newest_first)]
        )
        driver = f", driver {found}" if (found := _driver(spec, site)) else ""
        lines.append(
            f"  target {site.name} ({site.gpu_settings.gpu}{driver}): "
            f"{', '.join(builds) or 'no build that the facts know runs there'}"
        )
    return LockError(
        "no one release of torch has a build for every target", why="\n".join(lines), hint=hint
    )
