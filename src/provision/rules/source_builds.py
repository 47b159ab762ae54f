"""What is built from source at a place, and with which CUDA compiler."""

from __future__ import annotations

from typing import NamedTuple

from provision.diagnostics import Route
from provision.facts import cuda_of
from provision.facts.schema_platforms import OperatingSystem
from provision.rules.package_lines import package_lines
from provision.rules.rule import LintContext
from provision.spec import Package
from provision.target_facts import TargetFacts


class Nvcc(NamedTuple):
    """A CUDA compiler: its version as "12.8", who brings it in words, and where that is written."""

    cuda: str
    provider: str
    route: Route


def source_built_packages(context: LintContext) -> list[tuple[Route, Package]]:
    """Return the packages that are compiled: those that may be built, and those that compile parts
    of themselves when used (deepspeed).
    """
    return [
        (route, package)
        for route, package in package_lines(context)
        if package.build or package.key in context.facts.source_only
    ]


def torch_extensions(context: LintContext) -> list[tuple[Route, Package]]:
    """Return the packages that are known to compile against torch."""
    return [
        (route, package)
        for route, package in source_built_packages(context)
        if (row := context.facts.source_only.get(package.key)) and "torch" in row.needs
    ]


def nvcc_at(context: LintContext, target: TargetFacts) -> Nvcc | None:
    """Return the CUDA compiler of a place: the spec's own, or what Colab or a virtual machine image
    carries; None where there is none for sure.
    """
    if context.spec.cuda_toolkit is not None:
        return Nvcc(context.spec.cuda_toolkit, "cuda_toolkit", ("cuda_toolkit",))
    if target.target.kind == "colab" and target.gpu_settings.is_nvidia:
        return Nvcc(
            ".".join(context.facts.conditions["nvcc"].value.split(".")[:2]),
            "Colab's image",
            (*target.route, "kind"),
        )
    if target.image is not None and target.image.cuda:
        return Nvcc(target.image.cuda, f"image {target.image.family}", (*target.route, "image"))
    return None


def wheel_cuda_at(context: LintContext, target: TargetFacts) -> str | None:
    """Return the CUDA version of the wheels at a place, None where it is not settled or there is
    none.
    """
    flavour = target.gpu_settings.flavour or (
        context.resolved.flavour if context.resolved else None
    )
    return None if flavour in (None, "cpu") else cuda_of(flavour)


def operating_system_at(context: LintContext, target: TargetFacts) -> OperatingSystem | None:
    """Return the operating system of a place, where it is known."""
    row = target.image or target.runtime
    return context.facts.systems.get(row.os) if row is not None else None


def major_version(cuda: str) -> str:
    """Return the major part of a CUDA version: "12" of "12.8"."""
    return cuda.split(".", maxsplit=1)[0]
