"""A Colab target sets a runtime version that it cannot select.

## What it does

Finds Colab targets that use Colab's command line (`via: colab-cli`) and set a runtime version.

## Why

The command line deliberately has no option for the version: its sessions always run on the newest
runtime.

## How to fix

Set `runtime: latest`, or set `via: browser`: a notebook can select the version.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.edits import set_field_edit, unsafe_fix
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at
from provision.spec import ColabTarget


def _check(context: LintContext) -> Findings:
    for target, fields in context.targets_of(ColabTarget):
        if fields.via != "colab-cli" or fields.runtime == "latest":
            continue
        via = target.route_to("via")
        yield RULE.diagnostic(
            f"target `{target.name}`: runtime {fields.runtime} cannot be selected with `via: "
            "colab-cli`",
            target.route_to("runtime"),
            why="Colab's command-line program always starts the newest runtime.",
            help="set `via: browser` to keep the version, or set `runtime: latest`",
            related=related_at(via, "always starts the newest runtime"),
            fix=unsafe_fix("set `via: browser`", set_field_edit(context, via, "browser")),
        )


RULE = Rule(
    id="IMG023",
    name="colab-cli-runtime",
    severity=Severity.ERROR,
    sources=("googlecolab/google-colab-cli 0.7.5 and its pull request #15",),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.12"\npackages: []\ntargets:\n'
        '  colab: {kind: colab, runtime: «"2026.07"», via: colab-cli}\n',
        'gpu: none\npython: "3.12"\npackages: []\ntargets:\n'
        '  c: {kind: colab, via: colab-cli, isolation: venv, runtime: «"2026.04"»}\n',
    ),
    good=examples(
        'gpu: none\npython: "3.12"\npackages: []\ntargets:\n'
        '  colab: {kind: colab, runtime: "2026.07"}\n',
        'gpu: none\npython: "3.13"\npackages: []\ntargets:\n'
        "  colab: {kind: colab, via: colab-cli}\n",
    ),
)
