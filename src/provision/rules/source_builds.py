"""Packages that are built from source, and the CUDA compiler of a target."""

from __future__ import annotations

from typing import NamedTuple

from provision.diagnostics import Fix, Route
from provision.facts import cuda_of
from provision.facts.schema_platforms import OperatingSystem
from provision.facts.schema_torch import CudaToolkit
from provision.kinds.base import TargetFacts
from provision.rules.edits import replace_fix
from provision.rules.package_lines import package_lines
from provision.rules.rule import LintContext
from provision.spec import Package


class Nvcc(NamedTuple):
    """A CUDA compiler: its version, as in "12.8", its provider, and the route that chose it."""

    cuda: str
    provider: str
    route: Route


def source_built_packages(context: LintContext) -> list[tuple[Route, Package]]:
    """Return the packages that may be compiled, or that compile parts when used (deepspeed).

    Packages that are in the facts about releases without a wheel are left out, also with
    `build: true`: hardly any of them is compiled with nvcc.
    """
    facts = context.facts
    known = facts.wheel_releases.keys() | facts.brought_sources.keys()
    return [
        (route, package)
        for route, package in package_lines(context)
        if package.is_from_index
        and (package.key in facts.source_only or (package.is_built and package.key not in known))
    ]


def torch_extensions(context: LintContext) -> list[tuple[Route, Package]]:
    """Return the packages that are known to compile against torch."""
    return [
        (route, package)
        for route, package in source_built_packages(context)
        if (row := context.facts.source_only.get(package.key)) and "torch" in row.needs
    ]


def toolkit_to_build_with(context: LintContext) -> CudaToolkit | None:
    """Return the facts of `cuda_toolkit`; None if it is unknown, or no package is built."""
    toolkit = context.facts.toolkits.get(context.spec.cuda_toolkit or "")
    return toolkit if source_built_packages(context) else None


def set_toolkit_fix(cuda: str) -> Fix:
    """Return the fix that requests another CUDA toolkit."""
    return replace_fix(f'set `cuda_toolkit: "{cuda}"`', ("cuda_toolkit",), f'"{cuda}"')


def nvcc_at(context: LintContext, target: TargetFacts) -> Nvcc | None:
    """Return the CUDA compiler of the spec, of Colab or of the target's image; None if unknown."""
    if context.spec.cuda_toolkit is not None:
        return Nvcc(context.spec.cuda_toolkit, "cuda_toolkit", ("cuda_toolkit",))
    if target.target.kind == "colab" and target.gpu_settings.is_nvidia:
        return Nvcc(
            ".".join(context.facts.conditions["nvcc"].value.split(".")[:2]),
            "Colab's image",
            target.route_to("kind"),
        )
    if target.image is not None and target.image.cuda:
        return Nvcc(target.image.cuda, f"image {target.image.family}", target.route_to("image"))
    return None


def wheel_cuda_at(context: LintContext, target: TargetFacts) -> str | None:
    """Return the CUDA version of a target's wheels; None without CUDA, or if it is still open."""
    flavour = target.gpu_settings.flavour
    if flavour is None and context.resolved:
        flavour = context.resolved.flavour
    return None if flavour in (None, "cpu") else cuda_of(flavour)


def operating_system_at(context: LintContext, target: TargetFacts) -> OperatingSystem | None:
    """Return the operating system of a target; None if it is unknown."""
    row = target.image or target.runtime
    return context.facts.systems.get(row.os) if row else None


def major_version(cuda: str) -> str:
    """Return the major part of a CUDA version: "12" of "12.8"."""
    return cuda.split(".", maxsplit=1)[0]
