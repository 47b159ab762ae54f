"""The accelerator does not exist on a platform.

## What it does

On local targets, compares the accelerator with `platforms`: there is no CUDA on macOS, MPS exists
only on macOS, and some GPUs come only in machines with one processor type (GH200, GB10, Jetson:
aarch64).

## Why

macOS has no CUDA: `torch.cuda.is_available()` would be false. PyTorch's own index has CUDA builds
for Windows, but the tables do not list them. A lock for a different processor architecture cannot
be installed at all.

## How to fix

List the platforms that the targets really have. On Windows, WSL2 is `linux-x86_64`, with the
Windows driver.
"""

from __future__ import annotations

from provision.diagnostics import RelatedLocation, Severity
from provision.kinds.base import TargetFacts
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at
from provision.spec import LocalTarget

MAC, MAC_INTEL, WINDOWS = "macos-arm64", "macos-x86_64", "windows-x86_64"


def _check(context: LintContext) -> Findings:
    related: tuple[RelatedLocation, ...] = ()
    if "platforms" in context.spec.model_fields_set:
        related = related_at(("platforms",), "platforms set here")
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
                f"`gpu: mps` requires {MAC}, but target `{target.name}` "
                + (f"is for {listed}" if is_local else "runs Linux"),
                route,
                why="MPS is the GPU of Apple silicon and exists only on macOS.",
                help=f"set `platforms: [{MAC}]`"
                if is_local
                else "set an NVIDIA GPU or `gpu: none` on this target",
                related=related if is_local else (),
            )
        elif is_mps or not is_local:
            continue
        elif target.card and target.card.host and target.card.host not in target.platforms:
            yield RULE.diagnostic(
                f"{target.card.name} is available only in {target.card.host} machines, but the "
                f"platforms are {listed}",
                route,
                evidence=target.card.evidence,
                why="Wheels for a different processor architecture cannot be installed.",
                help=f"set `platforms: [{target.card.host}]`",
                related=related,
            )
        else:
            yield from _cuda_findings(target, related)


def _cuda_findings(target: TargetFacts, related: tuple[RelatedLocation, ...]) -> Findings:
    settings = target.gpu_settings
    macs = [platform for platform in target.platforms if platform in (MAC, MAC_INTEL)]
    if macs:
        severity = None
        other = "mps" if MAC in macs else "none"
        help_text = f"set `platforms: [linux-x86_64]`, or `gpu: {other}`"
        if len(macs) < len(target.platforms):
            severity = Severity.INFO
            help_text = f"to train on a Mac, use a separate spec with `gpu: {other}`"
        yield RULE.diagnostic(
            f"`gpu: {settings.gpu}` is requested, but torch has no CUDA build for "
            f"{' and '.join(macs)}",
            settings.gpu_route,
            severity=severity,
            why="On macOS, the lock selects a build without CUDA, and torch.cuda.is_available() "
            "returns False.",
            help=help_text,
            related=related,
        )
    if WINDOWS in target.platforms:
        yield RULE.diagnostic(
            f"`gpu: {settings.gpu}` is requested, but the fact tables list no CUDA builds of "
            f"torch for {WINDOWS}",
            settings.gpu_route,
            severity=Severity.UNKNOWN,
            why=(
                "The fact tables cover only Linux builds. On Windows, CUDA builds of torch "
                "come only from the PyTorch index for a specific CUDA version."
            ),
            help=(
                'set `cuda`, for example `cuda: "12.8"`, so that `provision lock` uses that '
                "index; or use WSL2, whose platform is linux-x86_64"
            ),
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
    bad=examples(
        'gpu: «RTX-4090»\npython: "3.12"\npackages: [torch]\nplatforms: [windows-x86_64]\n',
        'gpu: «L4»\npython: "3.12"\npackages: [torch]\nplatforms: [linux-x86_64, macos-arm64]\n',
        'gpu: «mps»\npython: "3.12"\npackages: [torch]\n',
        'gpu: «mps»\npython: "3.11"\npackages: [torch==2.2.2]\nplatforms: [macos-x86_64]\n',
        'gpu: «T4»\npython: "3.11"\npackages: [torch==2.2.2]\nplatforms: [macos-x86_64]\n',
        'gpu: «GH200»\npython: "3.12"\npackages: [torch]\n',
    ),
    good=examples(
        'gpu: mps\npython: "3.12"\npackages: [torch]\nplatforms: [macos-arm64]\n',
        'gpu: GH200\npython: "3.12"\npackages: [torch]\nplatforms: [linux-aarch64]\n',
        'gpu: L4\npython: "3.12"\npackages: [torch]\nplatforms: [linux-x86_64]\n',
    ),
)
