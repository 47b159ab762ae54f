"""A platform that does not go with the accelerator.

## What it does

At local targets, compares the accelerator with `platforms`: there is no CUDA on macOS, MPS
exists on macOS alone, and some cards sit in machines of one
processor (GH200, GB10, Jetson: aarch64).

## Why

macOS has no CUDA: `torch.cuda.is_available()` would be false there. PyTorch's own index has CUDA
builds for Windows; which ones, the tables do not know. A lock
for another processor cannot be installed at all.

## How to fix

List the platforms that the targets really have. On Windows, WSL2 is `linux-x86_64`, with the
driver of Windows.
"""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Diagnostic, RelatedLocation, Route, Severity
from provision.facts import Card
from provision.rules.rule import Example, LintContext, Rule, related_at
from provision.spec import LocalTarget
from provision.target_facts import TargetFacts

MAC, WINDOWS = "macos-arm64", "windows-x86_64"


def check(case: LintContext) -> Iterator[Diagnostic]:
    """Yield a finding for each local target with such a platform, and for MPS where there is none."""  # noqa: E501
    said: set[Route] = set()
    for site in case.targets:
        route = site.gpu_settings.gpu_route
        if route in said or (
            site.gpu_settings.flavour == "cpu" and site.gpu_settings.gpu.type != "mps"
        ):
            continue
        said.add(route)
        if site.gpu_settings.gpu.type == "mps":
            yield from _mps(case, site)
        elif isinstance(site.target, LocalTarget):
            yield from _cuda(case, site)


def _mps(case: LintContext, site: TargetFacts) -> Iterator[Diagnostic]:
    if MAC in site.platforms:
        return
    local = isinstance(site.target, LocalTarget)
    yield RULE.diagnostic(
        f"gpu: mps is asked for at target {site.name}, "
        + (f"whose platforms are {', '.join(site.platforms)}" if local else "which runs Linux"),
        site.gpu_settings.gpu_route,
        why="MPS is the GPU of Apple silicon: it exists on macOS alone.",
        way_out=f"write platforms: [{MAC}]" if local else "ask for an NVIDIA card there, or none",
        related=_platforms(case) if local else (),
    )


def _cuda(case: LintContext, site: TargetFacts) -> Iterator[Diagnostic]:
    host = site.card.host if site.card is not None else ""
    if site.card is not None and host and host not in site.platforms:
        yield _other_host(case, site, site.card)
        return
    if MAC in site.platforms:
        yield _mac(case, site)
    if WINDOWS in site.platforms:
        yield _windows(case, site)


def _mac(case: LintContext, site: TargetFacts) -> Diagnostic:
    alone = set(site.platforms) == {MAC}
    return RULE.diagnostic(
        f"gpu: {site.gpu_settings.gpu} is asked for, and {MAC} has no CUDA build of torch: "
        "there is no CUDA on macOS",
        site.gpu_settings.gpu_route,
        severity=Severity.ERROR if alone else Severity.INFO,
        why="The lock takes a build without CUDA there, and torch.cuda.is_available() would be "
        "false.",
        way_out="list linux-x86_64, or write gpu: mps"
        if alone
        else "nothing needs to change where the card is not wanted there",
        related=_platforms(case),
    )


def _windows(case: LintContext, site: TargetFacts) -> Diagnostic:
    return RULE.diagnostic(
        f"gpu: {site.gpu_settings.gpu} is asked for, and which CUDA builds of torch there "
        f"are for {WINDOWS} is not known",
        site.gpu_settings.gpu_route,
        severity=Severity.UNKNOWN,
        why="The lock takes torch for Windows from the index of its CUDA version. The tables "
        "hold the builds for Linux only.",
        way_out='write cuda:, as in cuda: "12.8", and let `provision lock` ask the index; or use '
        "WSL2, which is linux-x86_64",
        related=_platforms(case),
    )


def _other_host(case: LintContext, site: TargetFacts, card: Card) -> Diagnostic:
    return RULE.diagnostic(
        f"{card.name} sits in machines of {card.host}, and the platforms are "
        f"{', '.join(site.platforms)}",
        site.gpu_settings.gpu_route,
        severity=card.evidence.cap_severity(Severity.ERROR),
        why="Wheels for another processor cannot be installed there.",
        way_out=f"write platforms: [{card.host}]",
        related=_platforms(case),
    )


def _platforms(case: LintContext) -> tuple[RelatedLocation, ...]:
    return (
        (related_at(("platforms",), "platforms are listed here"),)
        if "platforms" in case.spec.model_fields_set
        else ()
    )


RULE = Rule(
    id="CUD010",
    name="accelerator-not-on-platform",
    severity=Severity.ERROR,
    summary="A platform that does not go with the accelerator.",
    sources=(
        (
            "wheel tags and version.py of torch on the public package index: no CUDA build for "
            "macOS, and none for Windows on the default index"
        ),
        "PyTorch documentation, MPS backend",
    ),
    page=__doc__,
    check=check,
    bad=(
        Example(
            'gpu: RTX-4090\npython: "3.12"\npackages: [torch]\nplatforms: [windows-x86_64]\n',
            "RTX-4090",
        ),
        Example(
            'gpu: L4\npython: "3.12"\npackages: [torch]\nplatforms: [linux-x86_64, macos-arm64]\n',
            "L4",
        ),
        Example('gpu: mps\npython: "3.12"\npackages: [torch]\n', "mps"),
        Example('gpu: GH200\npython: "3.12"\npackages: [torch]\n', "GH200"),
    ),
    good=(
        Example('gpu: mps\npython: "3.12"\npackages: [torch]\nplatforms: [macos-arm64]\n'),
        Example('gpu: GH200\npython: "3.12"\npackages: [torch]\nplatforms: [linux-aarch64]\n'),
        Example('gpu: L4\npython: "3.12"\npackages: [torch]\nplatforms: [linux-x86_64]\n'),
    ),
)
