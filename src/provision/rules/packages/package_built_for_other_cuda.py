"""A package is compiled for a different major CUDA version than torch.

## What it does

Some packages on PyPI have wheels for only one major CUDA version: those of vllm are compiled for
CUDA 12 up to 0.19.1, and for CUDA 13 from 0.20.0 on. The facts have the CUDA majors that the
compiled modules of vllm, xformers, torchao, sgl-kernel, onnxruntime-gpu, autoawq-kernels and
auto-gptq name. The lock chooses a torch build of that major if the GPU and its driver support it.
The rule combines the newest release of the package that the other requirements allow with the torch
build that the lock chooses for each GPU, and compares their CUDA majors. It does the same with the
versions in a lock.

## Why

torch's dependencies include the CUDA libraries of its own build only. The package loads those of
another major, and its import fails with "ImportError: libcudart.so.13: cannot open shared object
file"; xformers and torchao are imported without their kernels, which is a warning. A resolver
cannot detect this, because wheels do not declare their CUDA version.

## How to fix

Set `cuda` to a version of the package's CUDA major if the GPU and its driver support it, or require
a release of the package that is compiled for torch's CUDA major.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from provision.diagnostics import Fix, Severity
from provision.errors import LockError
from provision.facts import cuda_of
from provision.facts.schema_packages import CudaWheels
from provision.facts.versions import is_satisfiable, parse_specifiers, require_version
from provision.kinds.base import TargetFacts
from provision.rules.edits import set_field_edit, unsafe_fix
from provision.rules.package_requirements import (
    ReleaseRow,
    RequestedPackage,
    declared_specifier,
    origin_route,
    possible_releases,
    release_rows,
    requested_package,
    requested_packages,
    set_version_fix,
)
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
    related_if_written,
)
from provision.rules.torch_builds import LINUX_PLATFORMS

if TYPE_CHECKING:
    from provision.lock.flavours import FlavourProposal


_EFFECTS = {
    "import": "Its import fails, because it loads",
    "kernels": "Its compiled code cannot be used, because it loads",
}


class PackageWithTorch(NamedTuple):
    """A release of a package with the release (None: unknown) and flavour of torch next to it."""

    version: str
    torch: str | None
    flavour: str


def _check(context: LintContext) -> Findings:
    tables = context.facts.cuda_wheels
    requested = {name: requested_package(context, name) for name in tables}
    if not any(requested.values()):
        return
    from provision.lock.cuda_ties import wheels_of  # 9 ms, of which most specs need nothing

    targets = {
        (target.gpu_settings.gpu_route, target.gpu_settings.cuda_route): target
        for target in context.targets
        if target.gpu_settings.flavour != "cpu" and _linux_platform(target)
    }
    for name, package in requested.items():
        if package is None:
            continue
        table = tables[name]
        for target in targets.values():
            pair = _chosen_pair(context, package, target)
            wheels = wheels_of(table, pair.version) if pair else None
            if pair is None or wheels is None or _cuda_major(pair.flavour) == wheels.cuda_major:
                continue
            settings = target.gpu_settings
            fixes = list(_fixes(context, package, target, pair, wheels))
            is_newer = require_version(pair.version) > require_version(wheels.last)
            yield RULE.diagnostic(
                f"{name} {pair.version} is compiled for CUDA {wheels.cuda_major}, but the "
                f"torch build for {settings.gpu.type} is {pair.flavour}",
                origin_route(context, package, settings.cuda_route),
                severity=Severity.WARNING if is_newer or wheels.effect != "import" else None,
                evidence=wheels.evidence,
                why=f"{_EFFECTS[wheels.effect]} libcudart.so.{wheels.cuda_major}, which only a "
                f"torch build for CUDA {wheels.cuda_major} includes.",
                help=", or ".join(fix.title for fix in fixes)
                or f"use a GPU or an image that supports CUDA {wheels.cuda_major}, or remove "
                f"{name}",
                related=related_if_written(
                    context,
                    settings.gpu_route if settings.cuda == "auto" else settings.cuda_route,
                    "the GPU and its CUDA version",
                ),
                fix=fixes[0] if fixes else None,
            )


def _linux_platform(target: TargetFacts) -> str | None:
    return next((platform for platform in target.platforms if platform in LINUX_PLATFORMS), None)


def _chosen_pair(
    context: LintContext, package: RequestedPackage, target: TargetFacts
) -> PackageWithTorch | None:
    """Return the resolved pair, or the newest release for the first possible torch."""
    resolved = context.resolved
    if resolved is None:
        return next(_possible_pairs(context, package, package.specifiers, target), None)
    if resolved.flavour in (None, "cpu") or "torch" not in resolved.versions:
        return None
    versions = resolved.versions
    return PackageWithTorch(versions[package.name], versions.get("torch"), resolved.flavour)


def _possible_pairs(
    context: LintContext, package: RequestedPackage, specifiers: str, target: TargetFacts
) -> Iterator[PackageWithTorch]:
    table = release_rows(context.facts, package.name)
    if not table:
        yield from _pairs_of_unread(context, package, specifiers, target)
        return
    known = f"{specifiers},<={table[-1].last}".strip(",")
    releases = possible_releases(context.facts, package.name, known)
    rows = [row for row in releases.rows if _fits_listed(context, row, package)] if releases else []
    for proposal in context.cached("torch builds", lambda: _proposals(context)):
        flavour = proposal.choices[target.name].flavour
        torch = [proposal.release] if proposal.release else _torch_releases(context, flavour)
        for row in rows:
            admits = parse_specifiers(declared_specifier(row, "torch") or "")
            admitted = (release for release in torch if admits.contains(release, prereleases=True))
            if newest := next(admitted, None):
                yield PackageWithTorch(row.last, newest, flavour)


def _pairs_of_unread(
    context: LintContext, package: RequestedPackage, specifiers: str, target: TargetFacts
) -> Iterator[PackageWithTorch]:
    """Yield the newest release of a package whose requirements are not in the facts."""
    newest = context.facts.cuda_wheels[package.name][-1].last
    listed = requested_package(context, "torch") is not None
    if not listed or not parse_specifiers(specifiers).contains(newest):
        return
    for proposal in context.cached("torch builds", lambda: _proposals(context)):
        flavour = proposal.choices[target.name].flavour
        yield PackageWithTorch(newest, proposal.release, flavour)


def _torch_releases(context: LintContext, flavour: str) -> list[str]:
    from provision.lock.flavours import admitted_torch_releases

    rows = admitted_torch_releases(context.spec, context.facts)
    return [row.release for row in rows if flavour in row.builds]


def _fixes(
    context: LintContext,
    package: RequestedPackage,
    target: TargetFacts,
    pair: PackageWithTorch,
    wheels: CudaWheels,
) -> Iterator[Fix]:
    """Yield the changes of the CUDA version and of the package, the less intrusive one first."""
    settings = target.gpu_settings
    fixes = []
    if release := _release_for(context, package, target):
        fixes.append(set_version_fix(context, package, f"=={release}"))
    if cuda := _cuda_for(context, target, pair, wheels):
        title = f'set `cuda: "{cuda}"` (driver {context.facts.driver_floor(cuda)} or newer)'
        edit = set_field_edit(context, settings.cuda_route, f'"{cuda}"')
        fixes.insert(0 if settings.cuda == "auto" else 1, unsafe_fix(title, edit))
    yield from fixes


def _cuda_for(
    context: LintContext, target: TargetFacts, pair: PackageWithTorch, wheels: CudaWheels
) -> str:
    """Return the oldest CUDA version of the package's major in which torch runs; "" if unknown."""
    torch = context.facts.torch_release(pair.torch or "")
    if torch is None or target.card is None:
        return ""
    platform = _linux_platform(target) or ""
    for build in context.facts.builds_for_card(target.card, torch.release, platform):
        if _cuda_major(build.flavour) != wheels.cuda_major or torch.builds[build.flavour] == "low":
            continue
        if target.driver is None or context.facts.can_run(target.driver.value, build, target.card):
            return cuda_of(build.flavour)
    return ""


def _fits_listed(context: LintContext, row: ReleaseRow, package: RequestedPackage) -> bool:
    """Return whether the declared requirements of a release fit the other lines of the spec."""
    if not parse_specifiers(row.python).contains(context.spec.python):
        return False
    extras = package.package.extras if package.package else ()
    for name, other in requested_packages(context).items():
        declared = declared_specifier(row, name, extras)
        if (
            name != package.name
            and declared is not None
            and not is_satisfiable(declared, other.specifiers)
        ):
            return False
    return True


def _proposals(context: LintContext) -> tuple[FlavourProposal, ...]:
    from provision.lock.flavours import propose_flavours

    try:
        return tuple(propose_flavours(context.spec, context.facts))
    except LockError:
        return ()


def _cuda_major(flavour: str) -> str:
    return cuda_of(flavour).partition(".")[0]


def _release_for(context: LintContext, package: RequestedPackage, target: TargetFacts) -> str:
    """Return the newest admitted release that is compiled for torch's CUDA major, or ""."""
    from provision.lock.cuda_ties import wheels_of

    if context.resolved is not None:
        context = LintContext(context.spec, context.source, context.facts)
    table = context.facts.cuda_wheels[package.name]
    for other in _possible_pairs(context, package, "", target):
        row = wheels_of(table, other.version)
        if row is not None and row.cuda_major == _cuda_major(other.flavour):
            return other.version
    return ""


RULE = Rule(
    id="PKG027",
    name="package-built-for-other-cuda",
    severity=Severity.ERROR,
    sources=(
        (
            "libcudart.so.N in the compiled modules of the Linux wheels on PyPI: "
            "support/remake_cuda_wheels.py"
        ),
        "vllm-project/vllm#44335",
        "vllm-project/vllm#43435",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: A100-80GB\npython: "3.11"\npackages: [«vllm»]\nrequires: {driver: "==550.*"}\n',
        'gpu: L4\ncuda: "12.6"\npython: "3.11"\npackages: [torch==2.13.0, «torchao==0.18.0»]\n',
        'gpu: L4\ncuda: "12.6"\npython: "3.11"\npackages: [torch==2.14.0, «vllm==0.33.0»]\n',
        'gpu: L4\ncuda: "13.0"\npython: "3.11"\npackages: [torch==2.9.1, «vllm»]\n',
        example(
            'gpu: L4\npython: "3.11"\npackages: [«vllm»]\n',
            ResolvedSet({"torch": "2.14.0", "vllm": "0.33.0"}, "3.11", "cu126"),
        ),
    ),
    good=(
        *examples(
            'gpu: A100-80GB\npython: "3.11"\npackages: [vllm]\n',
            'gpu: L4\ncuda: "13.0"\npython: "3.11"\npackages: [vllm]\n',
            'gpu: L4\ncuda: "12.6"\npython: "3.11"\npackages: [torch==2.9.1, vllm]\n',
            'gpu: A100-80GB\npython: "3.11"\npackages: ["vllm<0.20"]\n',
        ),
        Example(
            'gpu: L4\npython: "3.11"\npackages: [vllm]\n',
            resolved=ResolvedSet({"torch": "2.10.0", "vllm": "0.19.1"}, "3.11", "cu128"),
        ),
    ),
)
