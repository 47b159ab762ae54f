"""A package that Colab's kernel depends on is replaced.

## What it does

Compares the packages that google-colab pins and that its kernel imports when it starts
(google-auth, ipykernel, ipython, tornado) with those of the runtime, if packages are installed on
top of it (`isolation: system`). It checks the spec if the spec admits no other version, and each
resolved set. A separate rule reports versions that are known to stop the kernel.

## Why

google-colab works with exactly these versions. Some other versions were seen to work; some prevent
the kernel from starting, and then only a new runtime helps. A lock must be safe to apply without a
trial, so it does not replace them.

## How to fix

Use the runtime's own version, loosen the package that needs a different one, or set `isolation:
venv`: Colab's kernel then keeps its own packages.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.colab.runtimes import kernel_replacements, request_fix
from provision.rules.examples import colab_spec
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
)


def _check(context: LintContext) -> Findings:
    for system, change, row in kernel_replacements(context, is_fatal=False):
        name = system.target.name
        fix = request_fix(context, change)
        yield RULE.diagnostic(
            f"target `{name}`: {change.requested} replaces {row.package} {change.installed}, which "
            "Colab's kernel depends on",
            change.route,
            evidence=row.evidence,
            why=f"google-colab pins {row.package} exactly and imports it when the kernel starts; "
            "with a different version the kernel may not start again.",
            help=(
                f"{fix.title}, relax the requirement that excludes this version, or set "
                f"`isolation: venv` on target `{name}`"
            ),
            related=system.related,
            fix=fix,
        )


RULE = Rule(
    id="IMG033",
    name="colab-kernel-package",
    severity=Severity.ERROR,
    sources=(
        "googlecolab/colabtools at 3c07d776, setup.py and its kernel started with Colab's pins",
        "googlecolab/colabtools#5133",
    ),
    check=_check,
    bad=examples(
        colab_spec("[«ipykernel==6.29.5»]"),
        colab_spec('[«"tornado>=6.6"»]'),
        example(
            colab_spec("«[ipywidgets]»"),
            ResolvedSet({"ipywidgets": "8.1.7", "ipykernel": "7.0.0"}, "3.12"),
        ),
    ),
    good=examples(
        colab_spec("[ipykernel, traitlets==5.14.3]"),
        Example(
            colab_spec("[ipykernel]"),
            resolved=ResolvedSet({"ipykernel": "6.17.1", "traitlets": "5.14.3"}, "3.12"),
        ),
        colab_spec("[ipykernel==6.29.5]", target='runtime: "2026.07", isolation: venv'),
    ),
)
