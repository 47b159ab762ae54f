"""A package is published as source only, and building it is not allowed.

## What it does

Looks for packages that have no wheel on the public index: flash-attn, causal-conv1d, mamba-ssm,
deepspeed, gptqmodel. The finding is a warning if the release is newer than the facts: it may have a
wheel.

## Why

Only wheels are installed unless a package has `build: true`. A build runs the package's code at
install time, takes minutes to hours, and needs the tools that the finding names.

## How to fix

Write `{name: flash-attn, version: ..., build: true}`, or bind the package to an index that has
wheels of it.
"""

from __future__ import annotations

import json

from provision.diagnostics import (
    Edit,
    Insert,
    Replace,
    Route,
    RouteLocation,
    Severity,
)
from provision.facts.versions import is_satisfiable
from provision.rules.edits import unsafe_fix
from provision.rules.package_lines import MAX_SPECIFIER_LENGTH, package_lines
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.spec import Package


def _check(context: LintContext) -> Findings:
    for route, package in package_lines(context):
        known = context.facts.source_only.get(package.key)
        if known is None or package.build or package.source == "conda":
            continue
        if package.index is not None or "+" in package.version:
            continue
        message = f"{package.key} is published as source only"
        severity = None
        if len(package.version) > MAX_SPECIFIER_LENGTH or not is_satisfiable(
            package.version, f"<={known.last}"
        ):
            message = (
                f"{package.requirement} is unknown; {package.key} up to {known.last} was "
                "published as source only"
            )
            severity = Severity.WARNING
        yield RULE.diagnostic(
            f"{message}, and `build: true` is not set",
            route,
            severity=severity,
            why=f"Building it needs {', '.join(known.needs)}"
            + (f"; {known.note}." if known.note else "."),
            help="set build: true, or bind the package to an index that has wheels of it",
            fix=unsafe_fix("allow building it", _allow_build_edit(context, route, package)),
        )


def _allow_build_edit(context: LintContext, route: Route, package: Package) -> Edit:
    if context.source.text(route) is None:
        return Insert(route, "build", "true")
    version = f", version: {json.dumps(package.version)}" if package.version else ""
    extras = f", extras: [{', '.join(package.extras)}]" if package.extras else ""
    marker = f", marker: {json.dumps(package.marker)}" if package.marker else ""
    return Replace(
        RouteLocation(route), f"{{name: {package.name}{version}{extras}{marker}, build: true}}"
    )


RULE = Rule(
    id="PKG014",
    name="source-only",
    severity=Severity.ERROR,
    sources=("PyPI file lists, 2026-11-21", "Dao-AILab/flash-attention#1421"),
    check=_check,
    bad=examples(
        'gpu: L4\npython: "3.11"\npackages: [torch, «flash-attn==2.8.3»]\n',
        'gpu: L4\npython: "3.11"\npackages: [torch, «{name: mamba-ssm}»]\n',
        'gpu: L4\npython: "3.11"\npackages: [torch, «flash-attn==3.0.0»]\n',
    ),
    good=examples(
        'gpu: L4\npython: "3.11"\npackages: [torch==2.8.0, {name: flash-attn, build: true}]\n',
        'gpu: L4\npython: "3.11"\npackages: [{name: flash-attn, index: ours}]\n'
        'indexes: {ours: {url: "https://packages.example.com/simple"}}\n',
        'gpu: L4\npython: "3.11"\npackages: [torch, xformers]\n',
    ),
)
