"""The Python of a Colab runtime is another one than the spec's.

## What it does

Compares `python` with the Python of the runtime that a Colab target names, where packages are to go
on top of the runtime's own (`isolation: system`).

## Why

A runtime has one Python, and its notebook runs on that. Wheels that were locked for another one
cannot be installed there, and changing the interpreter of a runtime is not supported.

## How to fix

Take a runtime with that Python, write the runtime's Python in the spec, or write `isolation: venv`
for a separate environment.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.versions import format_versions
from provision.rules.colab.runtimes import colab_targets, pinnable_runtimes, set_runtime_fix
from provision.rules.edits import isolate_fix
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at


def _check(context: LintContext) -> Findings:
    python = context.spec.python
    for colab in colab_targets(context):
        runtime = colab.facts.runtime
        if runtime is None or colab.target.isolation != "system" or runtime.minor == python:
            continue
        help_text = f'isolation: venv, or python: "{runtime.minor}"'
        fix = isolate_fix(context, colab.facts)
        fitting = [row.runtime for row in pinnable_runtimes(context, python)]
        if fitting and colab.target.via == "browser":
            help_text = (
                f'write runtime: "{fitting[-1]}" (runtimes with that Python: '
                f"{format_versions(fitting)}), {help_text}"
            )
            fix = set_runtime_fix(context, colab, fitting[-1])
        yield RULE.diagnostic(
            f"target {colab.name}: Colab runtime {colab.target.runtime} has Python "
            f'{runtime.minor}, and python: "{python}" is asked for',
            colab.runtime_route,
            evidence=colab.facts.python.evidence if colab.facts.python else None,
            why="What is locked for one Python cannot be installed for another.",
            help=help_text,
            related=related_at(("python",), "Python asked for here"),
            fix=fix,
        )


RULE = Rule(
    id="IMG020",
    name="colab-python-differs",
    severity=Severity.ERROR,
    sources=(
        "googlecolab/backend-info README and pip-freeze of each runtime version",
        "googlecolab/colabtools#3716",
    ),
    check=_check,
    bad=(
        Example(
            'gpu: none\npython: "3.11"\npackages: []\ntargets:\n  colab: {kind: colab, '
            'runtime: "2026.07"}\n',
            '"2026.07"',
        ),
        Example(
            'gpu: none\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
            "via: colab-cli}\n",
            "{kind: colab, via: colab-cli}",
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
        'runtime: "2026.07"}\n',
        'gpu: none\npython: "3.11"\npackages: []\ntargets:\n  colab: {kind: colab, '
        'runtime: "2026.07", isolation: venv}\n',
        'gpu: none\npython: "3.13"\npackages: []\ntargets:\n  colab: {kind: colab}\n',
    ),
)
