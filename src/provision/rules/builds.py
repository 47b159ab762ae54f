"""Which CUDA builds of torch may still come to a place, and what keeps each from running there."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from provision.diagnostics import Route
from provision.facts import Build, Card, TorchRelease, cuda_of
from provision.facts.versions import ordered, span
from provision.rules.lines import line
from provision.rules.releases import Releases, torch_releases
from provision.rules.rule import Case
from provision.sites import Site

LINUX = ("linux-x86_64", "linux-aarch64")
"""The platforms whose CUDA builds the tables hold."""


class Offer(NamedTuple):
    """A torch release in a CUDA flavour for a platform; `build` is None where it is not known what it was compiled for."""

    release: TorchRelease
    flavour: str
    platform: str
    build: Build | None

    @property
    def cuda(self) -> str:
        """The CUDA version of the wheels: "12.8"."""
        return cuda_of(self.flavour)

    @property
    def sure(self) -> bool:
        """Whether it is known well enough to be installable to be recommended."""
        return self.release.builds[self.flavour] != "low"


class Question(NamedTuple):
    """A place with a known card, one platform of it, the flavour that is settled for it (None: still free), and what torch may be."""

    site: Site
    card: Card
    platform: str
    flavour: str | None
    releases: Releases

    @property
    def gpu_route(self) -> Route:
        """Where the card is asked for."""
        return self.site.device.gpu_route

    @property
    def cuda_route(self) -> Route:
        """Where the CUDA version is asked for; the card where it is not."""
        return self.site.device.cuda_route if self.site.device.cuda != "auto" else self.site.device.gpu_route


def questions(case: Case) -> tuple[Question, ...]:
    """Return each pair of a place with an NVIDIA card and one of its Linux platforms, where torch comes from where the tables hold."""
    return case.once("questions", lambda: tuple(_questions(case)))


def torch_of(case: Case) -> Releases | None:
    """Return what torch may be; any release where no line names it but something listed brings it."""
    if line(case, "torch") or case.resolved is not None:
        return torch_releases(case)
    if case.spec.framework() == "none":
        return None
    return Releases("torch", tuple(row.release for row in case.facts.torch), beyond=True, route=("packages",))


def offers(case: Case, question: Question) -> Iterator[Offer]:
    """Yield the builds that are still possible, the newest torch and the newest CUDA first, among releases with a wheel for the Python."""
    for release in reversed(question.releases.known):
        row = case.facts.torch_release(release)
        if row is not None and _python(case) in row.pythons_on(question.platform):
            yield from _of(case, question, row)


def runs(case: Case, question: Question, offer: Offer) -> bool | None:
    """Tell whether a build has code for the card and, where the driver is known, runs with it; None when the facts cannot tell."""
    if offer.build is None:
        return None
    driver = question.site.driver
    if driver is None:
        return case.facts.covers(question.card, offer.build)
    return case.facts.runs_on(driver.value, offer.build, question.card)


def fitting(case: Case, question: Question) -> Iterator[Offer]:
    """Yield the builds that run there in any flavour, of the torch releases that are admitted, as `offers` does."""
    return (offer for offer in offers(case, question._replace(flavour=None)) if offer.sure and runs(case, question, offer))


def fitting_cudas(case: Case, question: Question) -> dict[str, str]:
    """Return CUDA versions with an admitted torch that runs there, each with the newest such torch, the best first.

    Older CUDA versions than the one asked for come first, as a driver that runs the newer runs them too: those with the newest torch before the nearest. Of
    newer ones the nearest comes first. Where none is asked for, the newest torch decides.
    """
    found: dict[str, str] = {}
    for offer in fitting(case, question):
        found.setdefault(offer.cuda, offer.release.release)
    if question.flavour is None:
        return found
    asked, known = ordered(cuda_of(question.flavour)), list(found)
    older = sorted((cuda for cuda in known if ordered(cuda) < asked), key=lambda cuda: (ordered(found[cuda]), ordered(cuda)), reverse=True)
    newer = sorted((cuda for cuda in known if ordered(cuda) > asked), key=ordered)
    return {cuda: found[cuda] for cuda in (*older, *newer)}


def fitting_releases(case: Case, question: Question) -> tuple[str, ...]:
    """Return all known torch releases, admitted or not, that run there in the flavour that is settled; () where it is free."""
    return tuple(offer.release.release for offer in _nearest(case, question, question.flavour)) if question.flavour else ()


def advice(case: Case, question: Question, else_do: str = "take another card") -> str:
    """Say which combinations of torch and CUDA run there, the nearest to what is asked for, and what else can be done."""
    same = fitting_cudas(case, question)
    said = [f'write cuda: "{cuda}", for which torch {release} runs there' for cuda, release in list(same.items())[:2]]
    others = _nearest(case, question, question.flavour) if question.flavour else []
    if not same and not others:
        others = _nearest(case, question, None)
    if others:
        said.append(f"take torch {span(offer.release.release for offer in others)} for CUDA {others[0].cuda}{_pythons(case, question, others[-1])}")
    return ", or ".join([*said, else_do])


def _questions(case: Case) -> Iterator[Question]:
    sites = [site for site in case.sites if site.card is not None and site.device.nvidia and site.device.flavour != "cpu"]
    releases = torch_of(case) if sites else None
    if releases is None:
        return
    for site in sites:
        flavour = site.device.flavour
        if case.resolved is not None:
            if case.resolved.flavour in (None, "cpu") or flavour not in (None, case.resolved.flavour):
                continue
            flavour = case.resolved.flavour
        for platform in site.platforms:
            if platform in LINUX and site.card is not None:
                yield Question(site, site.card, platform, flavour, releases)


def _nearest(case: Case, question: Question, flavour: str | None) -> list[Offer]:
    """Return the release nearest to the admitted ones that runs there, in its newest flavour; with a flavour, all releases that run there in it."""
    known, rows = question.releases.known, case.facts.torch
    at = next((number for number, row in enumerate(rows) if known and row.release == known[-1]), len(rows) - 1)
    asked = question._replace(flavour=flavour)
    good = [(number, offer) for number, row in enumerate(rows) if (offer := _fitting(case, asked, row)) is not None]
    good = [(number, offer) for number, offer in good if _has_python(case, offer)] or good
    if flavour is not None:
        return [offer for _, offer in good]
    return [min(good, key=lambda pair: (abs(pair[0] - at), -pair[0]))[1]] if good else []


def _fitting(case: Case, question: Question, row: TorchRelease) -> Offer | None:
    return next((offer for offer in _of(case, question, row) if offer.sure and runs(case, question, offer)), None)


def _of(case: Case, question: Question, row: TorchRelease) -> Iterator[Offer]:
    for flavour in _newest_first(tuple(row.builds)):
        if question.flavour in (None, flavour):
            yield Offer(row, flavour, question.platform, case.facts.builds.get(f"{row.release}:{flavour}:{question.platform}"))


@lru_cache(maxsize=256)
def _newest_first(flavours: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(flavours, key=lambda flavour: ordered(cuda_of(flavour)), reverse=True))


def _pythons(case: Case, question: Question, offer: Offer) -> str:
    return "" if _has_python(case, offer) else f", which has Python {span(offer.release.pythons_on(question.platform))}"


def _has_python(case: Case, offer: Offer) -> bool:
    return _python(case) in offer.release.pythons_on(offer.platform)


def _python(case: Case) -> str:
    return case.resolved.python if case.resolved else case.spec.python
