"""A package prevents Colab's kernel from starting.

## What it does

Finds versions of the kernel's packages with which Colab's kernel does not start again: ipython 9
and newer. It checks the spec if the spec admits no other version, and each resolved set, because
ipykernel and ipywidgets depend on ipython.

## Why

With `isolation: system`, the package replaces the runtime's own. After the next restart the kernel
fails to import it, the notebook can no longer connect, and only a new runtime helps.

## How to fix

Keep the package below that version, or set `isolation: venv`: Colab's kernel then keeps its own
packages.
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
    for system, change, row in kernel_replacements(context, is_fatal=True):
        fix = request_fix(context, change, specifiers=f"<{row.kills.lstrip('>=')}")
        yield RULE.diagnostic(
            f"target `{system.target.name}`: {change.requested} replaces {row.package} "
            f"{change.installed} and prevents Colab's kernel from starting",
            change.route,
            evidence=row.evidence,
            why=(
                f"Colab's kernel does not start with {row.package}{row.kills}; the only remedy "
                "then is to delete the runtime and start a fresh one."
            ),
            help=f"{fix.title}, or set `isolation: venv` on target `{system.target.name}`",
            related=system.related,
            fix=fix,
        )


RULE = Rule(
    id="IMG028",
    name="colab-kernel-dies",
    severity=Severity.ERROR,
    sources=(
        "googlecolab/colabtools at 3c07d776, tested by starting its kernel with ipython 9.0.0",
        "googlecolab/colabtools#5133",
    ),
    check=_check,
    bad=examples(
        colab_spec('[«"ipython>=9"»]'),
        colab_spec("[«ipython==9.4.0»]"),
        example(
            colab_spec("«[ipywidgets]»"),
            ResolvedSet({"ipywidgets": "8.1.7", "ipython": "9.6.0"}, "3.12"),
        ),
    ),
    good=examples(
        colab_spec("[ipython==7.34.0]"),
        colab_spec('["ipython>=8"]'),
        colab_spec('["ipython>=9"]', target='runtime: "2026.07", isolation: venv'),
        Example(
            colab_spec("[ipywidgets]"),
            resolved=ResolvedSet({"ipywidgets": "8.1.7", "ipython": "8.37.0"}, "3.12"),
        ),
    ),
)
