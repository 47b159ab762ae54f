"""A Colab runtime version is not in the facts.

## What it does

Looks up the runtime version of each Colab target among those that Colab has published.

## Why

A notebook that requests a version that does not exist gets the newest one, with a different Python
and different packages.

## How to fix

Use one of the versions that the finding names. A version newer than the facts may exist: Colab
lists the available versions under Runtime > Change runtime type.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.colab.runtimes import named_runtimes, set_runtime_fix
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.spec import ColabTarget


def _check(context: LintContext) -> Findings:
    known = [row.runtime for row in named_runtimes(context)]
    for target, fields in context.targets_of(ColabTarget):
        if target.runtime is not None:
            continue
        requested = fields.runtime
        near = min(known, key=lambda name: (abs(_months(name) - _months(requested)), name))
        rank, severity = "nearest", RULE.severity
        why = "A runtime version with this name was never published, or is no longer offered."
        help_text = f"use one of {', '.join(known)}"
        if requested > known[-1]:
            rank, severity = "newest", Severity.UNKNOWN
            why = (
                "provision does not know its packages. Colab lists the available versions under "
                "Runtime > Change runtime type > Runtime version."
            )
            help_text += ", or keep it if Colab lists it"
        yield RULE.diagnostic(
            f"target `{target.name}`: unknown Colab runtime {requested}; the {rank} known "
            f"version is {near}",
            target.route_to("runtime"),
            severity=severity,
            why=why,
            help=help_text,
            fix=set_runtime_fix(context, target, near),
        )


def _months(runtime: str) -> int:
    year, month = runtime.split(".")
    return int(year) * 12 + int(month)


RULE = Rule(
    id="IMG021",
    name="colab-runtime-unknown",
    severity=Severity.ERROR,
    sources=(
        "googlecolab/backend-info README: runtime versions",
        "googlecolab/colab-vscode: runtime_version_names",
    ),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.12"\npackages: []\ntargets:\n'
        '  colab: {kind: colab, runtime: «"2026.05"»}\n',
        'gpu: none\npython: "3.13"\npackages: []\ntargets:\n'
        '  colab: {kind: colab, runtime: «"2027.01"»}\n',
    ),
    good=examples(
        'gpu: none\npython: "3.12"\npackages: []\ntargets:\n'
        '  colab: {kind: colab, runtime: "2026.04"}\n',
        'gpu: none\npython: "3.13"\npackages: []\ntargets:\n'
        "  colab: {kind: colab, runtime: latest}\n",
    ),
)
