"""The Python of a Colab runtime differs from the spec's.

## What it does

Compares `python` with the Python of the runtime of each Colab target that installs packages on top
of the runtime's own (`isolation: system`).

## Why

A runtime has one Python, and its notebook runs on it. Wheels that were locked for a different
version cannot be installed, and changing the interpreter of a runtime is not supported.

## How to fix

Use a runtime with that Python, use the runtime's Python in the spec, or set `isolation: venv` for a
separate environment.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.versions import format_versions
from provision.rules.colab.runtimes import pinnable_runtimes, set_runtime_fix
from provision.rules.edits import isolate_fix
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at
from provision.spec import ColabTarget


def _check(context: LintContext) -> Findings:
    python = context.spec.python
    for target, fields in context.targets_of(ColabTarget):
        runtime = target.runtime
        if runtime is None or fields.isolation != "system" or runtime.minor == python:
            continue
        help_text = f'set `isolation: venv`, or set `python: "{runtime.minor}"`'
        fix = isolate_fix(context, target)
        fitting = [row.runtime for row in pinnable_runtimes(context, python)]
        if fitting and fields.via == "browser":
            fix = set_runtime_fix(context, target, fitting[-1])
            help_text = (
                f"{fix.title} (runtimes with Python {python}: {format_versions(fitting)}), or "
                f"{help_text}"
            )
        yield RULE.diagnostic(
            f"target `{target.name}`: Colab runtime `{fields.runtime}` has Python {runtime.minor}, "
            f"but the spec requires Python {python}",
            target.route_to("runtime"),
            evidence=target.python.evidence if target.python else None,
            why="Packages locked for one Python version cannot be installed for another.",
            help=help_text,
            related=related_at(("python",), "Python version set here"),
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
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: []\ntargets:\n'
        '  colab: {kind: colab, runtime: «"2026.07"»}\n',
        'gpu: none\npython: "3.12"\npackages: []\ntargets:\n'
        "  colab: «{kind: colab, via: colab-cli}»\n",
    ),
    good=examples(
        'gpu: none\npython: "3.12"\npackages: []\ntargets:\n'
        '  colab: {kind: colab, runtime: "2026.07"}\n',
        'gpu: none\npython: "3.11"\npackages: []\ntargets:\n'
        '  colab: {kind: colab, runtime: "2026.07", isolation: venv}\n',
        'gpu: none\npython: "3.13"\npackages: []\ntargets:\n  colab: {kind: colab}\n',
    ),
)
