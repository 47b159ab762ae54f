"""The requested torch build has no code for the GPU.

## What it does

Compares the compute capability of each GPU with those that the possible CUDA builds of torch were
compiled for. Machine code runs on the same major version and the same or a newer minor version (8.6
on an 8.9 GPU), PTX on every newer capability, where the driver compiles it when the program starts.

## Why

Such a build installs, and `torch.cuda.is_available()` is true; the first kernel fails with "CUDA
error: no kernel image is available for execution on the device". Builds for CUDA 13 start at 7.5,
without Volta (V100), Pascal (P100, GTX 10xx) and Maxwell. Blackwell (RTX 50xx, B200) requires CUDA
12.8 or newer.

## How to fix

Use a CUDA version or a torch release whose build has code for the GPU. For Volta and older that is
CUDA 12.6, up to torch 2.14.
"""

from __future__ import annotations

from provision.diagnostics import Diagnostic, Fix, RelatedLocation, Route, Severity
from provision.facts import TorchBuild
from provision.facts.compatibility import CodeForm, runs_machine_code
from provision.facts.versions import require_version
from provision.rules.edits import unsafe_fix
from provision.rules.package_lines import find_line, set_version_edit, version_specifiers
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
    related_gpu,
)
from provision.rules.torch_builds import (
    BuildOption,
    BuildQuery,
    build_queries,
    describe_alternatives,
    possible_builds,
    runnable_cudas,
    runnable_releases,
    set_cuda_fix,
)


def _check(context: LintContext) -> Findings:
    queries = {
        (query.gpu_route, query.cuda_route, query.platform): query
        for query in reversed(build_queries(context))
    }
    for query in queries.values():
        builds = list(possible_builds(context, query))
        known = [(option, option.build) for option in builds if option.build]
        codes = [context.facts.code_for(query.card, build) for _, build in known]
        if any(code and code.form is CodeForm.MACHINE for code in codes):
            continue
        by_ptx = next(
            (option for (option, _), code in zip(known, codes, strict=True) if code), None
        )
        unread = next((option for option in builds if option.build is None), None)
        card = f"{query.card.name} (compute capability {query.card.cc})"
        if by_ptx:
            yield RULE.diagnostic(
                f"torch {by_ptx.release.release} for CUDA {by_ptx.cuda} has only PTX for {card}, "
                "no machine code",
                query.cuda_route,
                severity=Severity.INFO,
                why=(
                    "The driver compiles the PTX when the program first starts, which takes "
                    "minutes, and caches the result in ~/.nv/ComputeCache."
                ),
                help="no change is needed; a build with machine code for the GPU starts faster",
                related=_related(query),
            )
        elif unread:
            yield RULE.diagnostic(
                f"torch=={unread.release.release}+{unread.flavour} for {query.platform} is not in "
                "the facts",
                query.cuda_route,
                severity=Severity.UNKNOWN,
                why=f"This build may not have been published, or may have no code for {card}.",
                help=(
                    "check on the device with `python -c 'import torch; "
                    "print(torch.cuda.get_arch_list())'`"
                ),
                related=_related(query),
            )
        elif known:
            yield _missing_code_finding(context, query, *known[0])


def _missing_code_finding(
    context: LintContext, query: BuildQuery, option: BuildOption, build: TorchBuild
) -> Diagnostic:
    card = query.card
    releases = query.releases
    severity = build.evidence.cap_severity(Severity.ERROR)
    why = (
        "The first CUDA kernel fails with: no kernel image is available for execution on the "
        "device."
    )
    if releases.includes_newer and not _is_dropped_for_good(context, query, option):
        severity = Severity.UNKNOWN
        why += " Releases newer than the facts may have code for it."
    newest = option.release.release
    if query.flavour:
        subject = f"{releases.requested} for CUDA {option.cuda} has no"
    else:
        subject = f"no build of {releases.requested} has"
        newest += f" for CUDA {option.cuda}"
    which = "it"
    if len(releases.known) > 1 or not query.flavour:
        which = f"the newest release, {newest},"
    bound = _bound_fix(context, query)
    return RULE.diagnostic(
        f"{subject} code for {card.name} (compute capability {card.cc}): {which} was built for "
        f"{', '.join(build.sm)}" + (f" and PTX {build.ptx}" if build.ptx else ""),
        bound[0] if bound else query.cuda_route,
        severity=severity,
        evidence=card.evidence,
        why=why,
        help=describe_alternatives(context, query),
        related=related_gpu(query.target) if bound else _related(query),
        fix=bound[1] if bound else _fix(context, query),
    )


def _related(query: BuildQuery) -> tuple[RelatedLocation, ...]:
    torch = query.releases.related
    return torch if query.cuda_route == query.gpu_route else related_gpu(query.target) + torch


def _fix(context: LintContext, query: BuildQuery) -> Fix | None:
    cuda = next(iter(runnable_cudas(context, query)), None)
    if cuda is None or query.target.gpu_settings.cuda == "auto" or context.resolved is not None:
        return None
    return set_cuda_fix(context, query, cuda)


def _bound_fix(context: LintContext, query: BuildQuery) -> tuple[Route, Fix] | None:
    """Return the line of a resolved torch and the fix that keeps the CUDA version, or None."""
    line = find_line(context, "torch")
    good = runnable_releases(context, query)
    if context.resolved is None or line is None or not good:
        return None
    route, package = line
    releases = [row.release for row in context.facts.torch]
    later = releases[releases.index(good[-1]) + 1 :]
    specifiers = version_specifiers(package)
    if not later or specifiers is None or not any(map(specifiers.contains, good)):
        return None
    bound = f"<{later[0]}"
    version = f"{package.version},{bound}" if package.version else bound
    return route, unsafe_fix(
        f"use torch{bound}", set_version_edit(context, route, package, version)
    )


def _is_dropped_for_good(context: LintContext, query: BuildQuery, option: BuildOption) -> bool:
    """Return whether releases newer than the table cannot have code either.

    A flavour that the newest release has dropped does not come back, nor does a capability that
    CUDA has dropped; and a compiler that makes no code for a card cannot add it later.
    """
    if query.flavour and query.flavour not in context.facts.torch[-1].builds:
        return True
    toolkit = context.facts.toolkits.get(option.cuda)
    if toolkit is None or not toolkit.capabilities:
        return False
    if query.flavour is None:
        return require_version(query.card.cc) < require_version(
            min(toolkit.capabilities, key=require_version)
        )
    return not any(
        runs_machine_code(query.card.cc, code, context.facts.capabilities)
        for code in toolkit.capabilities
    )


RULE = Rule(
    id="GPU005",
    name="card-not-in-build",
    severity=Severity.ERROR,
    sources=(
        "arch flags inside libtorch_python.so of the torch wheels",
        "DEVICE_REQUIREMENT in torch/cuda/__init__.py of torch 2.13.0",
        "CUDA C++ Programming Guide, binary and PTX compatibility",
        "pytorch/pytorch#172352",
    ),
    check=_check,
    bad=examples(
        'gpu: V100\ncuda: «"13.0"»\npython: "3.12"\npackages: [torch==2.11.0]\n',
        'gpu: RTX-5090\ncuda: «"12.6"»\npython: "3.12"\npackages: [torch]\n',
        example(
            'gpu: V100\ncuda: "12.8"\npython: "3.12"\npackages: [«"torch>=2.9"»]\n',
            ResolvedSet({"torch": "2.11.0"}, "3.12", "cu128"),
        ),
        'gpu: GB10\ncuda: «"12.8"»\npython: "3.12"\npackages: [torch==2.10.0]\n'
        "platforms: [linux-aarch64]\n",
        'gpu: «P100»\npython: "3.12"\npackages: [torch==2.15.0]\n',
    ),
    good=examples(
        'gpu: V100\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.14.1]\n',
        'gpu: RTX-5090\ncuda: "12.8"\npython: "3.12"\npackages: [torch]\n',
        'gpu: L4\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.11.0]\n',
        Example(
            'gpu: V100\ncuda: "12.8"\npython: "3.12"\npackages: ["torch>=2.9"]\n',
            resolved=ResolvedSet({"torch": "2.10.0"}, "3.12", "cu128"),
        ),
    ),
)
