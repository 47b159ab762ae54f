"""The prebuilt wheels that the installation of flash-attn downloads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from provision.diagnostics import Route
from provision.facts import cuda_of
from provision.facts.schema_packages import FlashAttentionWheels
from provision.facts.versions import parse_specifiers, require_version
from provision.kinds.base import GpuSettings
from provision.rules.admitted_releases import torch_releases
from provision.rules.package_requirements import RequestedPackage
from provision.rules.rule import LintContext
from provision.rules.source_builds import major_version


class FlashAttentionBuild(NamedTuple):
    """The wheels of the newest admitted flash-attn, and why none of them fits ("" if one does)."""

    wheels: FlashAttentionWheels
    reason: str
    torch_route: Route


def find_flash_attention_build(
    context: LintContext, package: RequestedPackage
) -> FlashAttentionBuild | None:
    """Return the wheels that flash-attn is installed from; None if torch or they are unknown."""
    devices = [device for device in context.devices if device.is_nvidia]
    releases = torch_releases(context)
    admits = parse_specifiers(package.specifiers)
    admitted = [
        row
        for row in context.facts.flash_attention
        if admits.contains(row.version, prereleases=True)
    ]
    if not devices or releases is None or not releases.known or not admitted:
        return None
    wheels = admitted[-1]
    reason = next(_missing_wheels(context, wheels, releases.known, devices), "")
    return FlashAttentionBuild(wheels, reason, releases.route)


def _missing_wheels(
    context: LintContext,
    wheels: FlashAttentionWheels,
    torch: tuple[str, ...],
    devices: list[GpuSettings],
) -> Iterator[str]:
    first = require_version(torch[0])
    last = require_version(torch[-1])
    if (
        last < require_version(wheels.torch_first)
        or first.release[:2] > require_version(wheels.torch_last).release
    ):
        yield f"torch is {torch[-1]}"
    if wheels.pythons and context.spec.python not in wheels.pythons:
        yield f"Python is {context.spec.python}"
    for device in devices:
        cuda = cuda_of(context.flavour_of(device) or device.flavour or "cpu")
        if cuda != "none" and major_version(cuda) not in wheels.cuda_majors:
            yield f"CUDA is {cuda}"
