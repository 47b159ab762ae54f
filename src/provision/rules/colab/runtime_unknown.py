"""A Colab runtime version that the facts do not know.

## What it does

Looks up the runtime version of each Colab target among those that Colab has named.

## Why

A notebook that requests a version that does not exist gets the newest one, with another Python and
other packages.

## How to fix

Write one of the versions that the finding names. A version newer than the facts may exist: Colab
shows the list under Runtime, Change runtime type.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.colab.runtimes import colab_targets, named_runtimes, set_runtime_fix
from provision.rules.rule import Example, Findings, LintContext, Rule, examples


def _check(context: LintContext) -> Findings:
    known = [row.runtime for row in named_runtimes(context)]
    for colab in colab_targets(context):
        if colab.facts.runtime is not None:
            continue
        requested = colab.target.runtime
        near = min(known, key=lambda name: (abs(_months(name) - _months(requested)), name))
        message = f"target {colab.name}: the facts know no Colab runtime {requested}; the "
        help_text = f"write one of {', '.join(known)}"
        if requested > known[-1]:
            message += f"newest they know is {near}"
            severity = Severity.UNKNOWN
            why = (
                "What it holds cannot be told. Colab shows its list under Runtime, Change runtime "
                "type, Runtime version."
            )
            help_text += ", or keep it if Colab's list shows it"
        else:
            message += f"nearest is {near}"
            severity = RULE.severity
            why = "No version of that name was published, or it is gone."
        yield RULE.diagnostic(
            message,
            colab.runtime_route,
            severity=severity,
            why=why,
            help=help_text,
            fix=set_runtime_fix(context, colab, near),
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
    bad=(
        Example(
            'gpu: none\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
            'runtime: "2026.05"}\n',
            '"2026.05"',
        ),
        Example(
            'gpu: none\npython: "3.13"\npackages: []\ntargets:\n  colab: {kind: colab, '
            'runtime: "2027.01"}\n',
            '"2027.01"',
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
        'runtime: "2026.04"}\n',
        'gpu: none\npython: "3.13"\npackages: []\ntargets:\n  colab: {kind: colab, '
        "runtime: latest}\n",
    ),
)
