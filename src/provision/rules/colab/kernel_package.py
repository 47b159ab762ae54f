"""A package that Colab's kernel runs on is replaced.

## What it does

Compares the packages that google-colab pins and that its kernel imports when it starts
(google-auth, ipykernel, ipython, tornado) with those of the runtime, if packages are installed on
top of it (`isolation: system`). It checks the spec if the spec admits no other version, and each
resolved set. A separate rule reports versions that are known to stop the kernel.

## Why

google-colab works with exactly these versions. Some others were seen to work, some keep the kernel
from starting, and then only a new runtime helps. A lock is made to be applied unseen, so it leaves
them alone.

## How to fix

Ask for the runtime's own version, loosen the package that needs another one, or say `isolation:
venv`, where Colab's kernel keeps its own packages.
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
from provision.rules.rule import Example, Findings, LintContext, ResolvedSet, Rule


def _check(context: LintContext) -> Findings:
    protected = context.facts.protected
    names = [row.package for row in protected.values() if row.critical]
    for system in base_runtimes(context):
        for change in replaced_packages(context, system, names):
            row = protected[change.package]
            if breaks_kernel(change, row):
                continue
            name = system.colab.name
            fix = request_fix(context, change)
            yield RULE.diagnostic(
                f"target {name}: {change.requested} takes the place of {change.package} "
                f"{change.installed}, which Colab's kernel runs on",
                change.route,
                evidence=row.evidence,
                why=f"google-colab pins {change.package} exactly, and imports it when the kernel "
                "starts; with another one the kernel may not come back.",
                help=f"{fix.title}, loosen what needs another one, or write isolation: venv at "
                f"target {name}",
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
    bad=(
        Example(f"{CPU_HEAD}packages: [ipykernel==6.29.5]\n{COLAB_TARGETS}", "ipykernel==6.29.5"),
        Example(f'{CPU_HEAD}packages: ["tornado>=6.6"]\n{COLAB_TARGETS}', '"tornado>=6.6"'),
        Example(
            f"{CPU_HEAD}packages: [ipywidgets]\n{COLAB_TARGETS}",
            "[ipywidgets]",
            ResolvedSet({"ipywidgets": "8.1.7", "ipykernel": "7.0.0"}, "3.12"),
        ),
    ),
    good=(
        Example(f"{CPU_HEAD}packages: [ipykernel, traitlets==5.14.3]\n{COLAB_TARGETS}"),
        Example(
            f"{CPU_HEAD}packages: [ipykernel]\n{COLAB_TARGETS}",
            resolved=ResolvedSet({"ipykernel": "6.17.1", "traitlets": "5.14.3"}, "3.12"),
        ),
        Example(
            f"{CPU_HEAD}packages: [ipykernel==6.29.5]\ntargets:\n  colab: {{kind: colab, "
            f'runtime: "2026.07", isolation: venv}}\n'
        ),
    ),
)
