"""Releases of a framework that a spec admits, and the GPUs that they have no machine code for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from provision.diagnostics import RelatedLocation
from provision.facts import Card
from provision.facts.compatibility import CodeForm
from provision.facts.schema_torch import JaxPlugin, TensorFlowRelease
from provision.facts.versions import parse_specifiers, require_version
from provision.rules.package_requirements import RequestedPackage
from provision.rules.rule import LintContext, related_at

_Build = TypeVar("_Build", JaxPlugin, TensorFlowRelease)


class UnfitCard(NamedTuple):
    """A requested GPU without machine code in any admitted release; some may have PTX for it."""

    card: Card
    has_ptx: bool
    related: tuple[RelatedLocation, ...]

    @property
    def description(self) -> str:
        """The card with its compute capability."""
        return f"{self.card.name} (compute capability {self.card.cc})"


def admitted_builds(
    context: LintContext, package: RequestedPackage, builds: Sequence[_Build]
) -> list[_Build]:
    """Return the admitted releases with a wheel for the Python of the spec, in their order."""
    admits = parse_specifiers(package.specifiers)
    python = context.resolved.python if context.resolved else context.spec.python
    return [
        row
        for row in builds
        if python in row.pythons and admits.contains(require_version(row.release))
    ]


def find_unfit_cards(
    context: LintContext, builds: Sequence[JaxPlugin] | Sequence[TensorFlowRelease]
) -> Iterator[UnfitCard]:
    """Yield the requested GPUs that none of some releases has machine code for."""
    for route, target in context.targets_by_gpu.items() if builds else ():
        if target.card is None:
            continue
        codes = [context.facts.code_for(target.card, row) for row in builds]
        if not any(code and code.form is CodeForm.MACHINE for code in codes):
            yield UnfitCard(target.card, any(codes), related_at(route, "GPU requested here"))
