"""A package that keeps Colab's kernel from starting.

## What it does

Finds versions of packages of Colab's kernel with which the kernel does not start again: ipython 9
and newer. It checks the spec if the spec admits no other version, and each resolved set, because
ipykernel and ipywidgets depend on ipython.

## Why

With `isolation: system` the package replaces the runtime's own. At the next restart the kernel
cannot be imported, the notebook does not connect any more, and only a new runtime helps.

## How to fix

Keep the package below that version, or say `isolation: venv`, where Colab's kernel keeps its own
packages.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.colab.runtimes import (
    base_runtimes,
    breaks_kernel,
    replaced_packages,
    request_fix,
)
from provision.rules.examples import COLAB_TARGETS, CPU_HEAD
from provision.rules.rule import Example, Findings, LintContext, ResolvedSet, Rule, examples


def _check(context: LintContext) -> Findings:
    protected = context.facts.protected
    deadly = [row.package for row in protected.values() if row.kills]
    for system in base_runtimes(context):
        for change in replaced_packages(context, system, deadly):
            row = protected[change.package]
            if not breaks_kernel(change, row):
                continue
            fix = request_fix(context, change, specifiers=f"<{row.kills.lstrip('>=')}")
            yield RULE.diagnostic(
                f"target {system.colab.name}: {change.requested} takes the place of {row.package} "
                f"{change.installed} and keeps Colab's kernel from starting",
                change.route,
                evidence=row.evidence,
                why=f"Colab's kernel does not come back with {row.package}{row.kills}; only a new "
                "runtime helps then.",
                help=f"{fix.title}, or isolation: venv at target {system.colab.name}",
                related=system.related,
                fix=fix,
            )


RULE = Rule(
    id="IMG028",
    name="colab-kernel-dies",
    severity=Severity.ERROR,
    sources=(
        "googlecolab/colabtools at 3c07d776, its kernel started with ipython 9.0.0",
        "googlecolab/colabtools#5133",
    ),
    check=_check,
    bad=(
        Example(f'{CPU_HEAD}packages: ["ipython>=9"]\n{COLAB_TARGETS}', '"ipython>=9"'),
        Example(f"{CPU_HEAD}packages: [ipython==9.4.0]\n{COLAB_TARGETS}", "ipython==9.4.0"),
        Example(
            f"{CPU_HEAD}packages: [ipywidgets]\n{COLAB_TARGETS}",
            "[ipywidgets]",
            ResolvedSet({"ipywidgets": "8.1.7", "ipython": "9.6.0"}, "3.12"),
        ),
    ),
    good=(
        *examples(
            f"{CPU_HEAD}packages: [ipython==7.34.0]\n{COLAB_TARGETS}",
            f'{CPU_HEAD}packages: ["ipython>=8"]\n{COLAB_TARGETS}',
            f'{CPU_HEAD}packages: ["ipython>=9"]\ntargets:\n  colab: {{kind: colab, runtime: '
            f'"2026.07", isolation: venv}}\n',
        ),
        Example(
            f"{CPU_HEAD}packages: [ipywidgets]\n{COLAB_TARGETS}",
            resolved=ResolvedSet({"ipywidgets": "8.1.7", "ipython": "8.37.0"}, "3.12"),
        ),
    ),
)
