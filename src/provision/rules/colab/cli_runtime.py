"""A Colab runtime version is named where none can be chosen.

## What it does

Finds Colab targets that are driven by Colab's command line (`via: colab-cli`) and name a runtime
version.

## Why

The command line has no option for the version, on purpose: its sessions are always on the newest
runtime.

## How to fix

Write `runtime: latest`, or go through the browser, where the notebook names the version.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.colab.runtimes import colab_targets
from provision.rules.edits import set_field_edit, unsafe_fix
from provision.rules.rule import Example, Findings, LintContext, Rule, examples, related_at


def _check(context: LintContext) -> Findings:
    for colab in colab_targets(context):
        if colab.target.via != "colab-cli" or colab.target.runtime == "latest":
            continue
        via = (*colab.facts.route, "via")
        yield RULE.diagnostic(
            f"target {colab.name}: runtime {colab.target.runtime} is asked for, and via: "
            "colab-cli always gets the newest one",
            colab.runtime_route,
            why="Colab's command line has no option for the runtime version.",
            help="write via: browser to keep the version, or runtime: latest",
            related=related_at(via, "the way there"),
            fix=unsafe_fix("go through the browser", set_field_edit(context, via, "browser")),
        )


RULE = Rule(
    id="IMG023",
    name="colab-cli-runtime",
    severity=Severity.ERROR,
    sources=("googlecolab/google-colab-cli 0.7.5 and its pull request #15",),
    check=_check,
    bad=(
        Example(
            'gpu: none\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
            'runtime: "2026.07", via: colab-cli}\n',
            '"2026.07"',
        ),
        Example(
            'gpu: none\npython: "3.12"\npackages: []\ntargets:\n  c: {kind: colab, via: '
            'colab-cli, isolation: venv, runtime: "2026.04"}\n',
            '"2026.04"',
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.12"\npackages: []\ntargets:\n  colab: {kind: colab, '
        'runtime: "2026.07"}\n',
        'gpu: none\npython: "3.13"\npackages: []\ntargets:\n  colab: {kind: colab, '
        "via: colab-cli}\n",
    ),
)
