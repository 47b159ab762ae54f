"""The CUDA builds of torch that a target may get, and which of them run there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from provision.diagnostics import Fix, Route
from provision.facts import Card, TorchBuild, TorchRelease, cuda_of
from provision.facts.versions import format_versions, require_version
from provision.kinds.base import TargetFacts
from provision.rules.admitted_releases import AdmittedReleases, torch_releases
from provision.rules.edits import set_field_edit, unsafe_fix
from provision.rules.package_lines import find_line
from provision.rules.rule import LintContext

LINUX_PLATFORMS = ("linux-x86_64", "linux-aarch64")
"""The platforms whose CUDA builds are in the tables."""


class BuildOption(NamedTuple):
    """A torch release in a CUDA flavour; `build` is None if its compiled code is unknown."""

    release: TorchRelease
    flavour: str
    platform: str
    build: TorchBuild | None

    @property
    def cuda(self) -> str:
        """The CUDA version of the wheels: "12.8"."""
        return cuda_of(self.flavour)

    @property
    def is_confirmed(self) -> bool:
        """True if the facts are sure enough about the build to recommend it."""
        return self.release.builds[self.flavour] != "low"


class BuildQuery(NamedTuple):
    """A search for torch builds at a target with a known card.

    Attributes:
        target: the target.
        card: its card.
        platform: one of its platforms.
        flavour: the flavour that is decided for it; None if it is open.
        releases: the admitted releases of torch.
    """

    target: TargetFacts
    card: Card
    platform: str
    flavour: str | None
    releases: AdmittedReleases

    @property
    def gpu_route(self) -> Route:
        """The route of the card."""
        return self.target.gpu_settings.gpu_route

    @property
    def cuda_route(self) -> Route:
        """The route of the CUDA version, or of the card if the version is open."""
        if self.target.gpu_settings.cuda != "auto":
            return self.target.gpu_settings.cuda_route
        return self.target.gpu_settings.gpu_route


def build_queries(context: LintContext) -> tuple[BuildQuery, ...]:
    """Return a query for each target with an NVIDIA card and each of its Linux platforms."""
    return context.cached("build queries", lambda: tuple(_build_queries(context)))


def possible_torch_releases(context: LintContext) -> AdmittedReleases | None:
    """Return the admitted releases of torch: all if only another package requires it."""
    if find_line(context, "torch") or context.resolved is not None:
        return torch_releases(context)
    if context.spec.framework() == "none":
        return None
    table = context.facts.torch_versions
    return AdmittedReleases("torch", table, includes_newer=True, route=("packages",))


def possible_builds(context: LintContext, query: BuildQuery) -> Iterator[BuildOption]:
    """Yield the admitted builds with a wheel for the Python, newest torch and newest CUDA first."""
    for release in reversed(query.releases.known):
        row = context.facts.torch_release(release)
        if row is not None and context.python in row.pythons_on(query.platform):
            yield from _builds_of(context, query, row)


def can_run(context: LintContext, query: BuildQuery, option: BuildOption) -> bool | None:
    """Return whether a build has code for the card and runs with the driver; None if unknown."""
    driver = query.target.driver
    if option.build and driver is None:
        return context.facts.has_code_for(query.card, option.build)
    return driver and context.facts.can_run(driver.value, option.build, query.card)


def runnable_cudas(context: LintContext, query: BuildQuery) -> dict[str, str]:
    """Return CUDA versions that run at the target with the newest torch of each, the best first.

    Versions older than the requested one come first, because a driver for the newer one runs them
    too; among them, the newest torch first. Of newer versions the nearest comes first. If none is
    requested, the newest torch comes first.
    """
    newest_torch: dict[str, str] = {}
    for option in possible_builds(context, query._replace(flavour=None)):
        if option.is_confirmed and can_run(context, query, option):
            newest_torch.setdefault(option.cuda, option.release.release)
    if query.flavour is None:
        return newest_torch
    requested = require_version(cuda_of(query.flavour))
    known = sorted(newest_torch, key=require_version)
    newer = [cuda for cuda in known if require_version(cuda) > requested]
    older = [cuda for cuda in reversed(known) if require_version(cuda) < requested]
    older.sort(key=lambda cuda: require_version(newest_torch[cuda]), reverse=True)
    return {cuda: newest_torch[cuda] for cuda in (*older, *newer)}


def runnable_releases(context: LintContext, query: BuildQuery) -> tuple[str, ...]:
    """Return all known torch releases that run at the target in its flavour; () if it is open."""
    builds = _nearest(context, query, query.flavour) if query.flavour else ()
    return tuple(option.release.release for option in builds)


def set_cuda_fix(context: LintContext, query: BuildQuery, cuda: str) -> Fix:
    """Return the fix that sets the CUDA version of a target."""
    edit = set_field_edit(context, query.target.gpu_settings.cuda_route, f'"{cuda}"')
    return unsafe_fix(f'set `cuda: "{cuda}"`', edit)


def describe_cudas(cudas: dict[str, str]) -> str:
    """Return a help text with the best CUDA versions and the newest torch of each."""
    best = list(cudas.items())[:2]
    return ", or ".join(f'set `cuda: "{cuda}"` (with torch {release})' for cuda, release in best)


def describe_alternatives(
    context: LintContext, query: BuildQuery, last_resort: str = "use a different GPU"
) -> str:
    """Return a help text with the nearest combinations of torch and CUDA that run at a target."""
    cudas = runnable_cudas(context, query)
    builds = _nearest(context, query, query.flavour) if query.flavour else []
    if not cudas and not builds:
        builds = _nearest(context, query, None)
    releases = ""
    if builds:
        releases = (
            f"use torch {format_versions(option.release.release for option in builds)} for CUDA "
            f"{builds[0].cuda}"
        )
        pythons = builds[-1].release.pythons_on(query.platform)
        if context.python not in pythons:
            releases += f", which requires Python {format_versions(pythons)}"
    return ", or ".join(filter(None, (describe_cudas(cudas), releases, last_resort)))


def _build_queries(context: LintContext) -> Iterator[BuildQuery]:
    releases = possible_torch_releases(context)
    if releases is None:
        return
    for target in context.targets:
        flavour = target.gpu_settings.flavour
        if target.card is None or flavour == "cpu":
            continue
        if context.resolved is not None:
            resolved = context.resolved.flavour
            if resolved in (None, "cpu") or flavour not in (None, resolved):
                continue
            flavour = resolved
        for platform in target.platforms:
            if platform in LINUX_PLATFORMS:
                yield BuildQuery(target, target.card, platform, flavour, releases)


def _nearest(context: LintContext, query: BuildQuery, flavour: str | None) -> list[BuildOption]:
    """Return all releases that run in a flavour; without one, the nearest release that runs."""
    query = query._replace(flavour=flavour)
    options: dict[int, BuildOption] = {}
    newest_admitted = len(context.facts.torch) - 1
    for number, row in enumerate(context.facts.torch):
        if row.release in query.releases.known[-1:]:
            newest_admitted = number
        for option in _builds_of(context, query, row):
            if option.is_confirmed and can_run(context, query, option):
                options[number] = option
                break
    numbers = [number for number, option in options.items() if _has_python(context, option)]
    numbers = numbers or list(options)
    if flavour is None:
        numbers.sort(key=lambda number: (abs(number - newest_admitted), -number))
        numbers = numbers[:1]
    return [options[number] for number in numbers]


def _builds_of(context: LintContext, query: BuildQuery, row: TorchRelease) -> Iterator[BuildOption]:
    for flavour in _newest_first(tuple(row.builds)):
        if query.flavour in (None, flavour):
            yield BuildOption(
                row,
                flavour,
                query.platform,
                context.facts.builds.get(f"{row.release}:{flavour}:{query.platform}"),
            )


@lru_cache(maxsize=256)
def _newest_first(flavours: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        sorted(flavours, key=lambda flavour: require_version(cuda_of(flavour)), reverse=True)
    )


def _has_python(context: LintContext, option: BuildOption) -> bool:
    return context.python in option.release.pythons_on(option.platform)
