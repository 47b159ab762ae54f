"""Which CUDA builds of torch may still come to a place, and what keeps each from running there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from provision.diagnostics import Route
from provision.facts import Card, TorchBuild, TorchRelease, cuda_of
from provision.facts.versions import format_versions, require_version
from provision.rules.package_lines import find_line
from provision.rules.releases import AdmittedReleases, torch_releases
from provision.rules.rule import LintContext
from provision.target_facts import TargetFacts

LINUX_PLATFORMS = ("linux-x86_64", "linux-aarch64")
"""The platforms whose CUDA builds the tables hold."""


class BuildOption(NamedTuple):
    """A torch release in a CUDA flavour for a platform; `build` is None where it is not known what
    it was compiled for.
    """

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
        """Whether it is known well enough to be installable to be recommended."""
        return self.release.builds[self.flavour] != "low"


class BuildQuery(NamedTuple):
    """A place with a known card, one platform of it, the flavour that is settled for it (None:
    still free), and what torch may be.
    """

    target: TargetFacts
    card: Card
    platform: str
    flavour: str | None
    releases: AdmittedReleases

    @property
    def gpu_route(self) -> Route:
        """Where the card is asked for."""
        return self.target.gpu_settings.gpu_route

    @property
    def cuda_route(self) -> Route:
        """Where the CUDA version is asked for; the card where it is not."""
        return (
            self.target.gpu_settings.cuda_route
            if self.target.gpu_settings.cuda != "auto"
            else self.target.gpu_settings.gpu_route
        )


def build_queries(context: LintContext) -> tuple[BuildQuery, ...]:
    """Return each pair of a place with an NVIDIA card and one of its Linux platforms, where torch
    comes from where the tables hold.
    """
    return context.cached("questions", lambda: tuple(_questions(context)))


def possible_torch_releases(context: LintContext) -> AdmittedReleases | None:
    """Return what torch may be; any release where no line names it but something listed brings it."""  # noqa: E501
    if find_line(context, "torch") or context.resolved is not None:
        return torch_releases(context)
    if context.spec.framework() == "none":
        return None
    return AdmittedReleases(
        "torch",
        tuple(row.release for row in context.facts.torch),
        includes_newer=True,
        route=("packages",),
    )


def possible_builds(context: LintContext, question: BuildQuery) -> Iterator[BuildOption]:
    """Yield the builds that are still possible, the newest torch and the newest CUDA first, among
    releases with a wheel for the Python.
    """
    for release in reversed(question.releases.known):
        row = context.facts.torch_release(release)
        if row is not None and _python(context) in row.pythons_on(question.platform):
            yield from _of(context, question, row)


def can_run(context: LintContext, question: BuildQuery, offer: BuildOption) -> bool | None:
    """Tell whether a build has code for the card and, where the driver is known, runs with it; None
    when the facts cannot tell.
    """
    if offer.build is None:
        return None
    driver = question.target.driver
    if driver is None:
        return context.facts.has_code_for(question.card, offer.build)
    return context.facts.can_run(driver.value, offer.build, question.card)


def runnable_builds(context: LintContext, question: BuildQuery) -> Iterator[BuildOption]:
    """Yield the builds that run there in any flavour, of the torch releases that are admitted, as
    `offers` does.
    """
    return (
        offer
        for offer in possible_builds(context, question._replace(flavour=None))
        if offer.is_confirmed and can_run(context, question, offer)
    )


def runnable_cudas(context: LintContext, question: BuildQuery) -> dict[str, str]:
    """Return CUDA versions with an admitted torch that runs there, each with the newest such torch,
    the best first.

    Older CUDA versions than the one asked for come first, as a driver that runs the newer runs
    them too: those with the newest torch before the nearest. Of
    newer ones the nearest comes first. Where none is asked for, the newest torch decides.
    """
    found: dict[str, str] = {}
    for offer in runnable_builds(context, question):
        found.setdefault(offer.cuda, offer.release.release)
    if question.flavour is None:
        return found
    asked, known = require_version(cuda_of(question.flavour)), list(found)
    older = sorted(
        (cuda for cuda in known if require_version(cuda) < asked),
        key=lambda cuda: (require_version(found[cuda]), require_version(cuda)),
        reverse=True,
    )
    newer = sorted((cuda for cuda in known if require_version(cuda) > asked), key=require_version)
    return {cuda: found[cuda] for cuda in (*older, *newer)}


def runnable_releases(context: LintContext, question: BuildQuery) -> tuple[str, ...]:
    """Return all known torch releases, admitted or not, that run there in the flavour that is
    settled; () where it is free.
    """
    return (
        tuple(offer.release.release for offer in _nearest(context, question, question.flavour))
        if question.flavour
        else ()
    )


def describe_alternatives(
    context: LintContext, question: BuildQuery, else_do: str = "take another card"
) -> str:
    """Say which combinations of torch and CUDA run there, the nearest to what is asked for, and
    what else can be done.
    """
    same = runnable_cudas(context, question)
    said = [
        f'write cuda: "{cuda}", for which torch {release} runs there'
        for cuda, release in list(same.items())[:2]
    ]
    others = _nearest(context, question, question.flavour) if question.flavour else []
    if not same and not others:
        others = _nearest(context, question, None)
    if others:
        said.append(
            f"take torch {format_versions(offer.release.release for offer in others)} for "
            f"CUDA {others[0].cuda}{_pythons(context, question, others[-1])}"
        )
    return ", or ".join([*said, else_do])


def _questions(context: LintContext) -> Iterator[BuildQuery]:
    targets = [
        target
        for target in context.targets
        if target.card is not None
        and target.gpu_settings.is_nvidia
        and target.gpu_settings.flavour != "cpu"
    ]
    releases = possible_torch_releases(context) if targets else None
    if releases is None:
        return
    for target in targets:
        flavour = target.gpu_settings.flavour
        if context.resolved is not None:
            if context.resolved.flavour in (None, "cpu") or flavour not in (
                None,
                context.resolved.flavour,
            ):
                continue
            flavour = context.resolved.flavour
        for platform in target.platforms:
            if platform in LINUX_PLATFORMS and target.card is not None:
                yield BuildQuery(target, target.card, platform, flavour, releases)


def _nearest(context: LintContext, question: BuildQuery, flavour: str | None) -> list[BuildOption]:
    """Return the release nearest to the admitted ones that runs there, in its newest flavour; with
    a flavour, all releases that run there in it.
    """
    known, rows = question.releases.known, context.facts.torch
    at = next(
        (number for number, row in enumerate(rows) if known and row.release == known[-1]),
        len(rows) - 1,
    )
    asked = question._replace(flavour=flavour)
    good = [
        (number, offer)
        for number, row in enumerate(rows)
        if (offer := _fitting(context, asked, row)) is not None
    ]
    good = [(number, offer) for number, offer in good if _has_python(context, offer)] or good
    if flavour is not None:
        return [offer for _, offer in good]
    return [min(good, key=lambda pair: (abs(pair[0] - at), -pair[0]))[1]] if good else []


def _fitting(context: LintContext, question: BuildQuery, row: TorchRelease) -> BuildOption | None:
    return next(
        (
            offer
            for offer in _of(context, question, row)
            if offer.is_confirmed and can_run(context, question, offer)
        ),
        None,
    )


def _of(context: LintContext, question: BuildQuery, row: TorchRelease) -> Iterator[BuildOption]:
    for flavour in _newest_first(tuple(row.builds)):
        if question.flavour in (None, flavour):
            yield BuildOption(
                row,
                flavour,
                question.platform,
                context.facts.builds.get(f"{row.release}:{flavour}:{question.platform}"),
            )


@lru_cache(maxsize=256)
def _newest_first(flavours: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        sorted(flavours, key=lambda flavour: require_version(cuda_of(flavour)), reverse=True)
    )


def _pythons(context: LintContext, question: BuildQuery, offer: BuildOption) -> str:
    return (
        ""
        if _has_python(context, offer)
        else f", which has Python {format_versions(offer.release.pythons_on(question.platform))}"
    )


def _has_python(context: LintContext, offer: BuildOption) -> bool:
    return _python(context) in offer.release.pythons_on(offer.platform)


def _python(context: LintContext) -> str:
    return context.resolved.python if context.resolved else context.spec.python
