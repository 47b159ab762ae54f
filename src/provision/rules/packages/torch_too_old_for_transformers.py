"""torch is older than the minimum that transformers accepts.

## What it does

Compares the torch releases that the spec allows with the minimum below which the allowed
transformers releases refuse to use PyTorch.

## Why

torch is only an extra of transformers, so an installer installs both without a warning. At import,
transformers reports "Disabling PyTorch because PyTorch >= X is required but found Y", and the first
model class fails with an error that PyTorch was not found.

## How to fix

Raise torch to the minimum, or use a transformers release that still accepts your torch.
"""

from __future__ import annotations

from packaging.specifiers import SpecifierSet

from provision.diagnostics import Severity
from provision.facts.versions import has_version_in_range
from provision.rules.admitted_releases import transformers_releases
from provision.rules.package_lines import find_line, version_specifiers, without_local
from provision.rules.rule import (
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
    related_at,
)


def _check(context: LintContext) -> Findings:
    releases = transformers_releases(context)
    floor = context.facts.torch_floor(releases.known[0]) if releases and releases.known else None
    line = find_line(context, "torch")
    if context.resolved is not None:
        version = context.resolved.versions.get("torch")
        what = f"torch {version}"
        allowed = SpecifierSet(f"=={without_local(version)}") if version else None
    else:
        allowed = version_specifiers(line[1]) if line else None
        what = f"torch{allowed}"
    if releases is None or floor is None or allowed is None:
        return
    if has_version_in_range(allowed, floor.version):
        return
    older = [
        row.last
        for row in context.facts.transformers
        if row.torch is None or has_version_in_range(allowed, row.torch)
    ]
    is_certain = floor.certain and not has_version_in_range(allowed, floor.certain)
    yield RULE.diagnostic(
        f"{what} is too old: {releases.requested} needs torch>={floor.version}",
        line[0] if line else releases.route,
        severity=None if is_certain else Severity.WARNING,
        why=(
            "transformers disables PyTorch on import and reports that PyTorch was not found. "
            "Installers do not check this."
        ),
        help=f"use torch>={floor.version}" + (f", or transformers<={older[-1]}" if older else ""),
        related=related_at(releases.route, "transformers requested here") if line else (),
    )


RULE = Rule(
    id="PKG002",
    name="torch-too-old-for-transformers",
    severity=Severity.ERROR,
    sources=("is_torch_available in utils/import_utils.py of the transformers wheels",),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: [«torch==2.5.1», transformers==5.20.2, accelerate]\n',
        'gpu: none\npython: "3.11"\npackages: [«"torch<2.4"», "transformers[torch]>=5.13"]\n',
        example(
            'gpu: none\npython: "3.11"\npackages: [«torch», "transformers[torch]"]\n',
            ResolvedSet(
                {"torch": "2.5.1+cpu", "transformers": "5.23.0", "accelerate": "1.15.0"},
                "3.11",
                "cpu",
            ),
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [torch==2.6.0, transformers==5.20.2, accelerate]\n',
        'gpu: none\npython: "3.11"\npackages: ["torch<2.4", "transformers[torch]"]\n',
    ),
)
