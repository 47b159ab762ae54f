"""bitsandbytes has no binary for torch's CUDA version.

## What it does

Compares the requested or resolved CUDA version with the binaries in the possible bitsandbytes
releases. From 0.50 on, a release falls back to the next lower binary for the same major CUDA
version.

## Why

bitsandbytes loads libbitsandbytes_cudaNNN.so for torch's CUDA version. Without that file, the
import works and the first 8-bit optimizer or 4-bit layer fails.

## How to fix

Use a bitsandbytes release that has the binary, or a CUDA version that bitsandbytes was built for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

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
    example,
    examples,
    related_at,
)
from provision.rules.source_builds import major_version


def _check(context: LintContext) -> Findings:
    package = requested_package(context, "bitsandbytes")
    rows = _possible_rows(context, package.specifiers) if package else ()
    if package is None or not rows:
        return
    newest = rows[-1]
    devices = {device.cuda_route: device for device in context.devices if device.is_nvidia}
    for route, device in devices.items():
        flavour = context.flavour_of(device)
        if flavour in (None, "cpu"):
            continue
        cuda = cuda_of(flavour)
        if any(_binary_for(row, cuda) for row in rows):
            continue
        fix = None
        help_text = f"use CUDA {_lower(newest, cuda) or newest.cudas[0]}"
        for row in context.facts.bitsandbytes:
            if _binary_for(row, cuda):
                if require_version(row.version) > require_version(newest.version):
                    fix = set_version_fix(context, package, f">={row.version}")
                    help_text = f"use bitsandbytes>={row.version}"
                break
        yield RULE.diagnostic(
            f"{package.description} has no binary for CUDA {cuda}, only for "
            f"{', '.join(newest.cudas)}",
            origin_route(context, package, route),
            why=(
                "Without a binary for torch's CUDA version, the first use of an 8-bit optimizer "
                "or a quantized layer fails."
            ),
            help=help_text,
            related=() if context.resolved else related_at(route, "CUDA requested here"),
            fix=fix,
        )


def _possible_rows(context: LintContext, specifiers: str) -> tuple[BitsandbytesBinaries, ...]:
    """Return the rows of the admitted releases; () if newer ones are admitted too."""
    table = context.facts.bitsandbytes
    versions = [require_version(row.version) for row in table]
    admits = parse_specifiers(specifiers)
    if not specifiers or has_version_in_range(admits, next_version(table[-1].version)):
        return ()
    low, high = version_bounds(admits)
    begin = bisect_right(versions, low) - 1 if low else 0
    end = bisect_left(versions, high) if high else len(versions)
    return table[begin : end + 1] if begin >= 0 else ()


def _lower(row: BitsandbytesBinaries, cuda: str) -> str:
    """Return the newest CUDA version of a release's binaries that is not above another, or ""."""
    lower = [own for own in row.cudas if require_version(own) <= require_version(cuda)]
    return lower[-1] if lower else ""


def _binary_for(row: BitsandbytesBinaries, cuda: str) -> bool:
    """Return whether a release has a binary that it loads for a CUDA version."""
    if cuda in row.cudas:
        return True
    return row.falls_back and major_version(_lower(row, cuda)) == major_version(cuda)


RULE = Rule(
    id="PKG016",
    name="bitsandbytes-binary-missing",
    severity=Severity.ERROR,
    sources=(
        "libbitsandbytes_cudaNNN.so inside the Linux x86_64 wheels on PyPI",
        "bitsandbytes-foundation/bitsandbytes#631",
    ),
    check=_check,
    bad=examples(
        'gpu: L4\ncuda: "13.0"\npython: "3.11"\n'
        "packages: [torch==2.10.0, «bitsandbytes==0.47.0»]\n",
        'gpu: L4\ncuda: "12.6"\npython: "3.11"\n'
        'packages: [torch==2.6.0, «"bitsandbytes<=0.44.1"»]\n',
        'gpu: L4\ncuda: "12.8"\npython: "3.11"\npackages: [torch==2.7.0, «bitsandbytes==0.45.1»]\n',
        example(
            'gpu: L4\npython: "3.11"\npackages: [torch, «bitsandbytes»]\n',
            ResolvedSet({"torch": "2.15.0", "bitsandbytes": "0.49.2"}, "3.11", "cu132"),
        ),
    ),
    good=(
        *examples(
            'gpu: L4\ncuda: "12.8"\npython: "3.11"\n'
            "packages: [torch==2.10.0, bitsandbytes==0.47.0]\n",
            'gpu: L4\ncuda: "13.0"\npython: "3.11"\n'
            "packages: [torch==2.10.0, bitsandbytes==0.48.2]\n",
            'gpu: L4\ncuda: "12.8"\npython: "3.11"\n'
            "packages: [torch==2.7.0, bitsandbytes==0.45.4]\n",
            'gpu: L4\ncuda: "12.6"\npython: "3.11"\npackages: [torch==2.6.0, bitsandbytes]\n',
        ),
        Example(
            'gpu: L4\npython: "3.11"\npackages: [torch, bitsandbytes]\n',
            resolved=ResolvedSet({"torch": "2.14.0", "bitsandbytes": "0.50.2"}, "3.11", "cu134"),
        ),
    ),
)
