"""A platform that does not go with the accelerator.

## What it does

At local targets, compares the accelerator with `platforms`: there is no CUDA on macOS, MPS exists
on macOS alone, and some cards sit in machines of one processor (GH200, GB10, Jetson: aarch64).

## Why

macOS has no CUDA: `torch.cuda.is_available()` would be false there. PyTorch's own index has CUDA
builds for Windows; which ones, the tables do not know. A lock for another processor cannot be
installed at all.

## How to fix

List the platforms that the targets really have. On Windows, WSL2 is `linux-x86_64`, with the driver
of Windows.
"""

from __future__ import annotations

from provision.diagnostics import RelatedLocation, Severity
from provision.kinds.base import TargetFacts
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at
from provision.spec import LocalTarget

MAC, WINDOWS = "macos-arm64", "windows-x86_64"


def _check(context: LintContext) -> Findings:
    related: tuple[RelatedLocation, ...] = ()
    if "platforms" in context.spec.model_fields_set:
        related = related_at(("platforms",), "platforms are listed here")
    reported = set()
    for target in context.targets:
        route = target.gpu_settings.gpu_route
        is_mps = target.gpu_settings.gpu.type == "mps"
        if route in reported or (target.gpu_settings.flavour == "cpu" and not is_mps):
            continue
        reported.add(route)
        is_local = isinstance(target.target, LocalTarget)
        listed = ", ".join(target.platforms)
        if is_mps and MAC not in target.platforms:
            yield RULE.diagnostic(
                f"gpu: mps is asked for at target {target.name}, "
                + (f"whose platforms are {listed}" if is_local else "which runs Linux"),
                route,
                why="MPS is the GPU of Apple silicon: it exists on macOS alone.",
                help=f"write platforms: [{MAC}]"
                if is_local
                else "ask for an NVIDIA card there, or none",
                related=related if is_local else (),
            )
        elif is_mps or not is_local:
            continue
        elif target.card and target.card.host and target.card.host not in target.platforms:
            yield RULE.diagnostic(
                f"{target.card.name} sits in machines of {target.card.host}, and the platforms "
                f"are {listed}",
                route,
                evidence=target.card.evidence,
                why="Wheels for another processor cannot be installed there.",
                help=f"write platforms: [{target.card.host}]",
                related=related,
            )
        else:
            yield from _cuda_findings(target, related)


def _cuda_findings(target: TargetFacts, related: tuple[RelatedLocation, ...]) -> Findings:
    gpu = target.gpu_settings.gpu
    if MAC in target.platforms:
        alone = set(target.platforms) == {MAC}
        yield RULE.diagnostic(
            f"gpu: {gpu} is asked for, and {MAC} has no CUDA build of torch: there is no CUDA on "
            "macOS",
            target.gpu_settings.gpu_route,
            severity=None if alone else Severity.INFO,
            why="The lock takes a build without CUDA there, and torch.cuda.is_available() would be "
            "false.",
            help="list linux-x86_64, or write gpu: mps"
            if alone
            else "nothing needs to change where the card is not wanted there",
            related=related,
        )
    if WINDOWS in target.platforms:
        yield RULE.diagnostic(
            f"gpu: {gpu} is asked for, and which CUDA builds of torch there are for {WINDOWS} is "
            "not known",
            target.gpu_settings.gpu_route,
            severity=Severity.UNKNOWN,
            why="The lock takes torch for Windows from the index of its CUDA version. The tables "
            "hold the builds for Linux only.",
            help='write cuda:, as in cuda: "12.8", and let `provision lock` ask the index; or use '
            "WSL2, which is linux-x86_64",
            related=related,
        )


RULE = Rule(
    id="CUD010",
    name="accelerator-not-on-platform",
    severity=Severity.ERROR,
    sources=(
        (
            "wheel tags and version.py of torch on the public package index: no CUDA build for "
            "macOS, and none for Windows on the default index"
        ),
        "PyTorch documentation, MPS backend",
    ),
    check=_check,
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
    good=examples(
        'gpu: mps\npython: "3.12"\npackages: [torch]\nplatforms: [macos-arm64]\n',
        'gpu: GH200\npython: "3.12"\npackages: [torch]\nplatforms: [linux-aarch64]\n',
        'gpu: L4\npython: "3.12"\npackages: [torch]\nplatforms: [linux-x86_64]\n',
    ),
)
