"""torch.compile in the requested torch does not run on the requested Python.

## What it does

If `torch_compile: true` is set, looks up the first torch whose torch.compile runs on the Python:
2.1 for 3.11, 2.4 for 3.12, 2.6 for 3.13, 2.10 for 3.14.

## Why

torch publishes wheels for a new Python before torch.compile supports it. Until then torch.compile
raises "Dynamo is not supported on Python 3.12+" or a similar error.

## How to fix

Use the torch that the finding names, use an older Python, or set `torch_compile: false`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.versions import require_version
from provision.rules.admitted_releases import torch_releases
from provision.rules.edits import replace_fix
from provision.rules.rule import (
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
    related_at,
)

ROUTE = ("training", "torch_compile")


def _check(context: LintContext) -> Findings:
    row = context.facts.compile_pythons.get(context.python)
    releases = torch_releases(context)
    if not context.spec.training.torch_compile or row is None or releases is None:
        return
    if not releases.known or releases.includes_newer:
        return
    newest = releases.known[-1]
    if require_version(newest) >= require_version(row.first):
        return
    yield RULE.diagnostic(
        f"`torch_compile: true` needs torch {row.first} on Python {row.python}, but "
        f"{releases.requested} allows at most {newest}",
        ROUTE,
        evidence=row.evidence,
        why="Older releases have wheels for this Python, but their torch.compile raises a "
        "RuntimeError.",
        help=f"use torch>={row.first} or an older Python, or set `torch_compile: false`",
        related=related_at(releases.route, "torch requested here")
        + related_at(("python",), "Python requested here"),
        fix=replace_fix("set `torch_compile: false`", ROUTE, "false"),
    )


RULE = Rule(
    id="TRN018",
    name="compile-without-python",
    severity=Severity.ERROR,
    sources=(
        "check_if_dynamo_supported in torch/_dynamo/eval_frame.py of the torch wheels",
        "pytorch/pytorch#120233",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: L4\npython: "3.12"\npackages: [torch==2.3.1]\ntraining: {torch_compile: «true»}\n',
        'gpu: L4\npython: "3.13"\npackages: ["torch<2.6"]\ntraining: {torch_compile: «true»}\n',
        example(
            'gpu: L4\npython: "3.14"\npackages: [torch]\ntraining: {torch_compile: «true»}\n',
            ResolvedSet({"torch": "2.9.1"}, "3.14", "cu128"),
        ),
    ),
    good=examples(
        'gpu: L4\npython: "3.11"\npackages: [torch==2.3.1]\ntraining: {torch_compile: true}\n',
        'gpu: L4\npython: "3.12"\npackages: ["torch>=2.3"]\ntraining: {torch_compile: true}\n',
        'gpu: L4\npython: "3.12"\npackages: [torch==2.3.1]\ntraining: {torch_compile: false}\n',
    ),
)
