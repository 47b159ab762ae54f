"""The requested torch build has no code for the card.

## What it does

Compares the compute capability of each card with what the possible CUDA builds of torch were
compiled for. Machine code runs on the same major version and a minor at least its own (8.6 on an
8.9 card), PTX on every newer capability, where the driver compiles it when the program starts.

## Why

Such a build installs, and `torch.cuda.is_available()` is true; the first kernel ends in "CUDA
error: no kernel image is available for execution on the device". Builds for CUDA 13 start at 7.5:
Volta (V100), Pascal (P100, GTX 10xx) and Maxwell are out. Blackwell (RTX 50xx, B200) needs CUDA
12.8 or newer.

## How to fix

Take a CUDA version or a torch release whose build has code for the card. For Volta and older that
is CUDA 12.6, up to torch 2.14.
"""

from __future__ import annotations

from typing import NamedTuple

from provision.diagnostics import (
    Diagnostic,
    Fix,
    RelatedLocation,
    Route,
    Severity,
)
from provision.facts import TorchBuild
from provision.facts.compatibility import CodeForm, runs_machine_code
from provision.facts.versions import require_version
from provision.rules.edits import replace_fix, unsafe_fix, yaml_scalar
from provision.rules.package_lines import find_line, set_version_edit, version_specifiers
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    examples,
    related_at,
)
from provision.rules.torch_builds import (
    BuildOption,
    BuildQuery,
    build_queries,
    describe_alternatives,
    possible_builds,
    runnable_cudas,
    runnable_releases,
)

WHY = "The first kernel would end in: no kernel image is available for execution on the device."


class _MissingCode(NamedTuple):
    """The newest builds with known and with unknown code, and PTX if nothing else fits."""

    newest: tuple[BuildOption, TorchBuild] | None = None
    unread: BuildOption | None = None
    ptx: BuildOption | None = None


def _check(context: LintContext) -> Findings:
    reported = set()
    for query in build_queries(context):
        key = (query.gpu_route, query.cuda_route, query.platform)
        looked = None if key in reported else _find_missing_code(context, query)
        reported.add(key)
        if looked is None:
            continue
        if looked.ptx:
            yield RULE.diagnostic(
                f"torch {looked.ptx.release.release} for CUDA {looked.ptx.cuda} has PTX alone for "
                f"{query.card.name} ({query.card.cc})",
                query.cuda_route,
                severity=Severity.INFO,
                why="The driver compiles it when the program first starts, which takes minutes, "
                "and keeps the result in ~/.nv/ComputeCache.",
                help="nothing needs to change; a build with machine code for the card starts at "
                "once",
                related=_related(query),
            )
        elif looked.unread:
            wheel = f"torch=={looked.unread.release.release}+{looked.unread.flavour}"
            yield RULE.diagnostic(
                f"the facts do not know what {wheel} for {query.platform} was compiled for, nor "
                "whether it was published",
                query.cuda_route,
                severity=Severity.UNKNOWN,
                why=f"It may have no code for {query.card.name} ({query.card.cc}).",
                help="on the device, `python -c 'import torch; print(torch.cuda.get_arch_list())'` "
                "tells it",
                related=_related(query),
            )
        elif looked.newest:
            yield _missing_code_finding(context, query, *looked.newest)


def _find_missing_code(context: LintContext, query: BuildQuery) -> _MissingCode | None:
    """Return None when some possible build has machine code for the card."""
    newest = unread = ptx = None
    for option in possible_builds(context, query):
        if option.build is None:
            unread = unread or option
            continue
        code = context.facts.code_for(query.card, option.build)
        if code is not None and code.form is CodeForm.MACHINE:
            return None
        newest = newest or (option, option.build)
        ptx = ptx or (option if code else None)
    return _MissingCode(newest, unread, ptx)


def _missing_code_finding(
    context: LintContext, query: BuildQuery, option: BuildOption, build: TorchBuild
) -> Diagnostic:
    card = query.card
    releases = query.releases
    certain = not releases.includes_newer or _is_dropped_for_good(context, query, option)
    if certain:
        severity = build.evidence.cap_severity(card.evidence.cap_severity(Severity.ERROR))
    else:
        severity = Severity.UNKNOWN
    if query.flavour:
        what = f"{releases.requested} for CUDA {option.cuda} has no"
    else:
        what = f"no build of {releases.requested} has"
    newest = option.release.release + ("" if query.flavour else f" for CUDA {option.cuda}")
    if len(releases.known) > 1 or not query.flavour:
        which = f"{newest}, the newest of them,"
    else:
        which = "it"
    bound = _bound_fix(context, query)
    route = bound[0] if bound else query.cuda_route
    return RULE.diagnostic(
        f"{what} code for {card.name} ({card.cc}): {which} was built for {' '.join(build.sm)}"
        + (f" and PTX {build.ptx}" if build.ptx else ""),
        route,
        severity=severity,
        why=WHY + ("" if certain else " Releases newer than the facts may have code for it."),
        help=describe_alternatives(context, query),
        related=_related(query)
        if bound is None
        else related_at(query.gpu_route, "card asked for here"),
        fix=_fix(context, query) if bound is None else bound[1],
    )


def _is_dropped_for_good(context: LintContext, query: BuildQuery, option: BuildOption) -> bool:
    """Return whether releases newer than the table cannot have code either.

    A flavour that the newest release has dropped does not come back, nor does a capability that
    CUDA has dropped; and a compiler that makes no code for a
    card has none to option.
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


def _related(query: BuildQuery) -> tuple[RelatedLocation, ...]:
    torch = related_at(query.releases.route, "torch comes from here")
    if query.cuda_route == query.gpu_route:
        return torch
    return related_at(query.gpu_route, "card asked for here") + torch


def _fix(context: LintContext, query: BuildQuery) -> Fix | None:
    cuda = next(iter(runnable_cudas(context, query)), None)
    if cuda is None or query.target.gpu_settings.cuda == "auto" or context.resolved is not None:
        return None
    return replace_fix(f'write cuda: "{cuda}"', query.cuda_route, yaml_scalar(cuda))


def _bound_fix(context: LintContext, query: BuildQuery) -> tuple[Route, Fix] | None:
    """Return the line of a resolved torch and the fix that keeps the CUDA version, or None."""
    line = find_line(context, "torch")
    if context.resolved is not None and line is not None:
        good = runnable_releases(context, query)
    else:
        good = ()
    if line is None or not good:
        return None
    after = next(
        (
            row.release
            for row in context.facts.torch
            if require_version(row.release) > require_version(good[-1])
        ),
        None,
    )
    specifiers = version_specifiers(line[1])
    if (
        after is None
        or specifiers is None
        or not any(specifiers.contains(release) for release in good)
    ):
        return None
    version = f"{line[1].version}," if line[1].version else ""
    return line[0], unsafe_fix(
        f"ask for torch<{after}", set_version_edit(context, *line, f"{version}<{after}")
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
    bad=(
        Example('gpu: V100\ncuda: "13.0"\npython: "3.12"\npackages: [torch==2.11.0]\n', '"13.0"'),
        Example('gpu: RTX-5090\ncuda: "12.6"\npython: "3.12"\npackages: [torch]\n', '"12.6"'),
        Example(
            'gpu: V100\ncuda: "12.8"\npython: "3.12"\npackages: ["torch>=2.9"]\n',
            '"torch>=2.9"',
            ResolvedSet({"torch": "2.11.0"}, "3.12", "cu128"),
        ),
        Example(
            'gpu: GB10\ncuda: "12.8"\npython: "3.12"\npackages: '
            "[torch==2.10.0]\nplatforms: [linux-aarch64]\n",
            '"12.8"',
        ),
        Example('gpu: P100\npython: "3.12"\npackages: [torch==2.15.0]\n', "P100"),
    ),
    good=(
        *examples(
            'gpu: V100\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.14.1]\n',
            'gpu: RTX-5090\ncuda: "12.8"\npython: "3.12"\npackages: [torch]\n',
            'gpu: L4\ncuda: "12.6"\npython: "3.12"\npackages: [torch==2.11.0]\n',
        ),
        Example(
            'gpu: V100\ncuda: "12.8"\npython: "3.12"\npackages: ["torch>=2.9"]\n',
            resolved=ResolvedSet({"torch": "2.10.0"}, "3.12", "cu128"),
        ),
    ),
)
