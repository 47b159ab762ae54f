"""flash-attn has no ready-made wheel for this torch, CUDA or Python.

## What it does

Compares the requested torch releases, CUDA version and Python with the wheels on flash-attn's
release page. Its installation downloads one of these wheels if one fits.

## Why

Compiling takes a CUDA toolkit of torch's major version, much memory and up to hours.

## How to fix

Take a torch and a Python that have a wheel, or leave flash-attn out: torch's own
`scaled_dot_product_attention` uses the same kernels.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Severity
from provision.facts.schema_packages import FlashAttentionWheels
from provision.facts.versions import (
    has_version_in_range,
    next_version,
    parse_specifiers,
    require_version,
)
from provision.rules.package_requirements import RequestedPackage, requested_package
from provision.rules.releases import torch_releases
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    examples,
    related_at,
)


def _check(context: LintContext) -> Findings:
    package = requested_package(context, "flash-attn")
    wanted = (
        package is not None
        and package.package is not None
        and package.package.build
        and any(device.is_nvidia for device in context.devices)
    )
    releases = torch_releases(context) if wanted else None
    if package is None or releases is None or not releases.known:
        return
    wheels = _newest_wheels(context, package)
    lacking = next(_missing_wheels(context, wheels, releases.known), None) if wheels else None
    if wheels is None or lacking is None:
        return
    if package.specifiers:
        newer = has_version_in_range(
            parse_specifiers(package.specifiers), next_version(wheels.version)
        )
    else:
        newer = True
    yield RULE.diagnostic(
        f"flash-attn {wheels.version} has ready-made wheels for torch {wheels.torch_first} "
        f"to {wheels.torch_last}, {_describe_wheels(wheels)}; {lacking}",
        package.route,
        severity=Severity.INFO if newer else Severity.WARNING,
        why="It will be compiled: that needs nvcc of torch's CUDA major, memory, and up to hours."
        + (" A newer release may have wheels." if newer else ""),
        help=f"take torch {wheels.torch_last}.* on Python "
        f"{wheels.pythons[-1] if wheels.pythons else context.spec.python}, or leave "
        "flash-attn out",
        related=related_at(releases.route, "torch asked for here"),
    )


def _describe_wheels(wheels: FlashAttentionWheels) -> str:
    pythons = f" and Python {wheels.pythons[0]} to {wheels.pythons[-1]}" if wheels.pythons else ""
    return f"CUDA {' and '.join(wheels.cuda_majors)}{pythons}"


def _newest_wheels(context: LintContext, package: RequestedPackage) -> FlashAttentionWheels | None:
    """Return the newest release with known wheels that may be taken."""
    admitted = [
        row
        for row in context.facts.flash_attention
        if parse_specifiers(package.specifiers).contains(row.version, prereleases=True)
    ]
    return admitted[-1] if admitted else None


def _missing_wheels(
    context: LintContext, wheels: FlashAttentionWheels, torch: tuple[str, ...]
) -> Iterator[str]:
    minors = [require_version(release) for release in torch]
    if all(minor < require_version(wheels.torch_first) for minor in minors) or all(
        minor.release[:2] > require_version(wheels.torch_last).release for minor in minors
    ):
        yield f"torch is {torch[-1]}"
    if wheels.pythons and context.spec.python not in wheels.pythons:
        yield f"Python is {context.spec.python}"
    for device in context.devices:
        flavour = (context.resolved.flavour if context.resolved else None) or device.flavour
        if (
            device.is_nvidia
            and flavour
            and flavour != "cpu"
            and flavour[2:-1] not in wheels.cuda_majors
        ):
            yield f"CUDA is {flavour[2:-1]}.{flavour[-1]}"


RULE = Rule(
    id="PKG015",
    name="flash-attn-compiled",
    severity=Severity.WARNING,
    sources=(
        (
            "Dao-AILab/flash-attention README.md, setup.py and .github/workflows/publish.yml "
            "at each tag"
        ),
        "Dao-AILab/flash-attention#1717",
    ),
    check=_check,
    bad=(
        Example(
            'gpu: L4\npython: "3.11"\npackages: [torch==2.9.1, {name: flash-attn, version: '
            '"==2.8.3", build: true}]\n',
            '{name: flash-attn, version: "==2.8.3", build: true}',
            other_ids=("CUD011",),
        ),
        Example(
            'gpu: L4\npython: "3.14"\npackages: [torch==2.10.0, {name: flash-attn, build: true}]\n',
            "{name: flash-attn, build: true}",
            other_ids=("CUD011",),
        ),
        Example(
            'gpu: L4\npython: "3.11"\npackages: [torch, {name: flash-attn, build: true}]\n',
            "{name: flash-attn, build: true}",
            ResolvedSet({"torch": "2.13.0+cu130", "flash-attn": "2.8.3.post1"}, "3.11", "cu130"),
            other_ids=("CUD011",),
        ),
    ),
    good=examples(
        'gpu: L4\npython: "3.11"\npackages: [torch==2.8.0, {name: flash-attn, version: '
        '"==2.8.3", build: true}]\n',
        'gpu: L4\npython: "3.13"\npackages: [torch==2.8.0, {name: flash-attn, build: true}]\n',
        'gpu: L4\npython: "3.11"\npackages: [torch, {name: flash-attn, build: true}]\n',
    ),
)
