"""A package is published only as source, and building it is not allowed.

## What it does

Looks for packages whose admitted releases have no wheel on the public index, such as flash-attn,
deepspeed and rouge-score, including those that a listed package requires: hydra-core requires
antlr4-python3-runtime 4.9. The finding is a warning if the release is newer than the facts (it may
have a wheel), or if an older release of the requiring package does not need it.

## Why

Only wheels are installed unless a package has `build: true`. A build runs the package's code at
install time. Building pure Python takes seconds; compiled code takes minutes to hours, and needs
the tools that the finding names.

## How to fix

Write `{name: flash-attn, version: ..., build: true}`, or bind the package to an index that has
wheels for it. For a dependency of a listed package, name the dependency: `{name: hydra-core, build:
[antlr4-python3-runtime]}`.
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
from provision.facts.wheel_releases import brought_without_wheel, releases_without_wheel
from provision.rules.edits import unsafe_fix
from provision.rules.package_lines import MAX_SPECIFIER_LENGTH, index_lines
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.spec import Package
from provision.spelling import join_words


def _check(context: LintContext) -> Findings:
    for route, package in index_lines(context):
        if package.source == "conda" or package.index is not None or "+" in package.version:
            continue
        if len(package.version) <= MAX_SPECIFIER_LENGTH and context.resolved is None:
            yield from _brought_findings(context, route, package)
        known = context.facts.source_only.get(package.key)
        if package.is_built:
            continue
        if known is None:
            yield from _own_findings(context, route, package)
            continue
        message = f"{package.key} is published only as source"
        severity = None
        if len(package.version) > MAX_SPECIFIER_LENGTH or not is_satisfiable(
            package.version, f"<={known.last}"
        ):
            message = (
                f"{package.requirement} is not in the facts; {package.key} up to {known.last} "
                "was published only as source"
            )
            severity = Severity.WARNING
        yield RULE.diagnostic(
            f"{message}, and `build: true` is not set",
            route,
            severity=severity,
            why=f"Building it requires {join_words(known.needs)}"
            + (f"; {known.note}." if known.note else "."),
            help="set `build: true`, or pin the package to an index that has wheels for it",
            fix=unsafe_fix("allow building it", _allow_build_edit(context, route, package)),
        )


def _own_findings(context: LintContext, route: Route, package: Package) -> Findings:
    if len(package.version) > MAX_SPECIFIER_LENGTH:
        return
    known = releases_without_wheel(context.facts, package.key, package.version)
    if known is not None:
        yield RULE.diagnostic(
            f"{package.requirement} is published only as source, and `build: true` is not set",
            route,
            evidence=known.evidence,
            why=_describe_build(package.key, compiles=known.compiles),
            help="set `build: true`" + (", or request a newer release" if known.wheels else ""),
            fix=unsafe_fix("allow building it", _allow_build_edit(context, route, package)),
        )


def _brought_findings(context: LintContext, route: Route, package: Package) -> Findings:
    for brought in brought_without_wheel(context.facts, package.key, package.version):
        if package.build is True or _is_declared(context, brought.name):
            continue
        names = ", ".join(dict.fromkeys((*package.built_names, brought.name)))
        needed = f"requires {brought.name}{brought.requires}, which is published only as source"
        yield RULE.diagnostic(
            f"{package.key} {brought.release} {needed}, and building it is not allowed",
            route,
            evidence=brought.evidence,
            severity=None if brought.is_certain else Severity.WARNING,
            why=_describe_build(brought.name, compiles=brought.compiles)
            + ("" if brought.is_certain else " The lock would choose an older release."),
            help=f"set `build: [{names}]` on {package.key}",
            fix=unsafe_fix(
                f"allow building {brought.name}",
                _allow_build_edit(context, route, package, f"[{names}]"),
            ),
        )


def _is_declared(context: LintContext, name: str) -> bool:
    """Return whether a package is listed, or may be built for another one."""
    return any(name == line.key or name in line.built_names for line in context.spec.packages)


def _describe_build(name: str, *, compiles: bool) -> str:
    if compiles:
        return f"{name} contains code to compile, so its build needs a compiler."
    return f"{name} is pure Python, so its build does not need a compiler."


def _allow_build_edit(
    context: LintContext, route: Route, package: Package, value: str = "true"
) -> Edit:
    if context.source.text(route) is None:
        if package.built_names:
            return Replace(RouteLocation((*route, "build")), value)
        return Insert(route, "build", value)
    version = f", version: {json.dumps(package.version)}" if package.version else ""
    extras = f", extras: [{', '.join(package.extras)}]" if package.extras else ""
    marker = f", marker: {json.dumps(package.marker)}" if package.marker else ""
    return Replace(
        RouteLocation(route), f"{{name: {package.name}{version}{extras}{marker}, build: {value}}}"
    )


RULE = Rule(
    id="PKG014",
    name="source-only",
    severity=Severity.ERROR,
    sources=("PyPI file lists and METADATA, 2026-11-27", "Dao-AILab/flash-attention#1421"),
    check=_check,
    bad=examples(
        'gpu: L4\npython: "3.11"\npackages: [torch, «flash-attn==2.8.3»]\n',
        'gpu: L4\npython: "3.11"\npackages: [torch, «{name: mamba-ssm}»]\n',
        'gpu: L4\npython: "3.11"\npackages: [torch, «flash-attn==3.0.0»]\n',
        'gpu: none\npython: "3.11"\npackages: [«hydra-core==1.3.2»]\n',
        'gpu: none\npython: "3.11"\npackages: [torch, «{name: wandb, version: ==0.15.0}»]\n',
        'gpu: none\npython: "3.11"\npackages: [torch, «schedulefree==1.4»]\n',
        'gpu: none\npython: "3.11"\npackages: [torch, «jieba»]\n',
    ),
    good=examples(
        'gpu: L4\npython: "3.11"\npackages: [torch==2.8.0, {name: flash-attn, build: true}]\n',
        'gpu: L4\npython: "3.11"\npackages: [{name: flash-attn, index: ours}]\n'
        'indexes: {ours: {url: "https://packages.example.com/simple"}}\n',
        'gpu: L4\npython: "3.11"\npackages: [torch, xformers]\n',
        'gpu: none\npython: "3.11"\n'
        "packages: [{name: hydra-core, build: [antlr4-python3-runtime]}]\n",
        'gpu: none\npython: "3.11"\npackages: [{name: hydra-core, build: true}, schedulefree]\n',
    ),
)
