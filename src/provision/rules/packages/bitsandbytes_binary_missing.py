"""bitsandbytes carries no binary for torch's CUDA version.

## What it does

Compares the requested or resolved CUDA version with the binaries in the possible bitsandbytes
releases. From 0.50 on a release falls back to the next lower binary of the same CUDA major.

## Why

bitsandbytes loads libbitsandbytes_cudaNNN.so of torch's CUDA version. Without it, importing works
and the first 8-bit optimizer or 4-bit layer fails.

## How to fix

Take a bitsandbytes release that has the binary, or a CUDA version that it was built for.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts import cuda_of
from provision.facts.schema_packages import BitsandbytesBinaries
from provision.facts.versions import (
    has_version_in_range,
    next_version,
    parse_specifiers,
    require_version,
    version_bounds,
)
from provision.rules.package_requirements import (
    RequestedPackage,
    origin_route,
    requested_package,
    set_version_fix,
)
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
    package = requested_package(context, "bitsandbytes")
    rows = _possible_rows(context, package) if package is not None else ()
    for device in (
        {device.cuda_route: device for device in context.devices if device.is_nvidia}.values()
        if rows
        else ()
    ):
        flavour = context.resolved.flavour if context.resolved else device.flavour
        if (
            package is None
            or flavour is None
            or flavour == "cpu"
            or any(_has_binary(row, cuda_of(flavour)) for row in rows)
        ):
            continue
        cuda = cuda_of(flavour)
        having = [row for row in context.facts.bitsandbytes if _has_binary(row, cuda_of(flavour))]
        fitting = ""
        if having and require_version(having[0].version) > require_version(rows[-1].version):
            fitting = f"bitsandbytes>={having[0].version}"
        yield RULE.diagnostic(
            f"{package.description} carries no binary for CUDA {cuda}: it has "
            f"{', '.join(rows[-1].cudas)}",
            origin_route(context, package, device.cuda_route),
            why="It loads the binary of torch's CUDA version, and fails at the first 8-bit "
            "optimizer or quantized layer without it.",
            help=f"ask for {fitting}" if fitting else f"take CUDA {_nearest(rows[-1], cuda)}",
            related=related_at(device.cuda_route, "CUDA asked for here")
            if context.resolved is None
            else (),
            fix=set_version_fix(context, package, f">={having[0].version}") if fitting else None,
        )


def _possible_rows(
    context: LintContext, package: RequestedPackage
) -> tuple[BitsandbytesBinaries, ...]:
    """Return the rows of the admitted releases; () if newer ones are admitted too."""
    table = context.facts.bitsandbytes
    admits = parse_specifiers(package.specifiers)
    if not package.specifiers or has_version_in_range(admits, next_version(table[-1].version)):
        return ()
    low, high = version_bounds(admits)
    above = next(
        (
            index
            for index, row in enumerate(table)
            if high is not None and require_version(row.version) >= high
        ),
        len(table) - 1,
    )
    below = max(
        (
            index
            for index, row in enumerate(table)
            if low is None or require_version(row.version) <= low
        ),
        default=None,
    )
    if below is None:
        return ()
    return table[0 if low is None else below : above + 1]


def _has_binary(row: BitsandbytesBinaries, cuda: str) -> bool:
    major = cuda.partition(".")[0]
    return cuda in row.cudas or (
        row.falls_back
        and any(
            require_version(available) <= require_version(cuda)
            and available.partition(".")[0] == major
            for available in row.cudas
        )
    )


def _nearest(row: BitsandbytesBinaries, cuda: str) -> str:
    lower = [
        available for available in row.cudas if require_version(available) <= require_version(cuda)
    ]
    return (lower or list(row.cudas))[-1 if lower else 0]


RULE = Rule(
    id="PKG016",
    name="bitsandbytes-binary-missing",
    severity=Severity.ERROR,
    sources=(
        "libbitsandbytes_cudaNNN.so inside the Linux x86_64 wheels on PyPI",
        "bitsandbytes-foundation/bitsandbytes#631",
    ),
    check=_check,
    bad=(
        Example(
            'gpu: L4\ncuda: "13.0"\npython: "3.11"\npackages: [torch==2.10.0, '
            "bitsandbytes==0.47.0]\n",
            "bitsandbytes==0.47.0",
        ),
        Example(
            'gpu: L4\ncuda: "12.6"\npython: "3.11"\npackages: [torch==2.6.0, '
            '"bitsandbytes<=0.44.1"]\n',
            "bitsandbytes<=0.44.1".join('""'),
        ),
        Example(
            'gpu: L4\npython: "3.11"\npackages: [torch, bitsandbytes]\n',
            "bitsandbytes",
            ResolvedSet({"torch": "2.15.0", "bitsandbytes": "0.49.2"}, "3.11", "cu132"),
        ),
    ),
    good=(
        *examples(
            'gpu: L4\ncuda: "12.8"\npython: "3.11"\npackages: [torch==2.10.0, '
            "bitsandbytes==0.47.0]\n",
            'gpu: L4\ncuda: "13.0"\npython: "3.11"\npackages: [torch==2.10.0, '
            "bitsandbytes==0.48.2]\n",
            'gpu: L4\ncuda: "12.6"\npython: "3.11"\npackages: [torch==2.6.0, bitsandbytes]\n',
        ),
        Example(
            'gpu: L4\npython: "3.11"\npackages: [torch, bitsandbytes]\n',
            resolved=ResolvedSet({"torch": "2.14.0", "bitsandbytes": "0.50.2"}, "3.11", "cu134"),
        ),
    ),
)
