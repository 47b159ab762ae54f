"""A package name leads to an empty, abandoned or unrelated package.

## What it does

Looks up names in a table of frequently requested names that do not install what people expect:
`sklearn`, `pytorch`, `nvidia-ml-py3` and others.

## Why

The name of a module, a project or an old release is not always the name of the package. Some of
these packages refuse to install, some install nothing, and some install somebody else's work.

## How to fix

Use the name in the finding. Version bounds are not kept, because the versions differ.
"""

from __future__ import annotations

from provision.diagnostics import Applicability, Fix, Route, Severity
from provision.facts import ReplacedPackage
from provision.rules.edits import unsafe_fix
from provision.rules.package_lines import index_lines, rename_edit, set_version_edit
from provision.rules.package_requirements import is_excluded
from provision.rules.rule import Findings, LintContext, Rule, example, examples
from provision.spec import Package


def _check(context: LintContext) -> Findings:
    for route, package in index_lines(context):
        replaced = context.facts.replaced.get(package.key)
        if replaced is None or package.source == "conda" or package.index is not None:
            continue
        if any(is_excluded(context, name, bound) for name, bound in replaced.beside.items()):
            continue
        yield RULE.diagnostic(
            f"{package.key} is {replaced.what}; the package you need is {replaced.instead}",
            route,
            severity=Severity.ERROR if replaced.kind in ("stub", "hostile") else Severity.WARNING,
            why="Names like this are easily mistaken for the right one; the packages behind "
            "them are empty, unmaintained, unrelated or malicious.",
            help=f"use {replaced.instead}",
            fix=_fix(context, route, package, replaced),
        )


def _fix(
    context: LintContext, route: Route, package: Package, replaced: ReplacedPackage
) -> Fix | None:
    title = f"use {replaced.instead}"
    if package.version:
        if context.source.text(route) is None:
            return None
        new = package.model_copy(update={"name": replaced.instead})
        return unsafe_fix(title, set_version_edit(context, route, new, ""))
    fix = unsafe_fix(title, rename_edit(context, route, package, replaced.instead))
    if replaced.kind == "stub" and context.spec.package(replaced.instead) is None:
        return fix._replace(applicability=Applicability.SAFE)
    return fix


RULE = Rule(
    id="PKG006",
    name="name-replaced",
    severity=Severity.ERROR,
    sources=("project pages on the public package index", "pytorch/pytorch#92226"),
    check=_check,
    bad=examples(
        'gpu: none\npython: "3.11"\npackages: [numpy, «sklearn»]\n',
        example(
            'gpu: none\npython: "3.11"\npackages:\n  - «nvidia_ml_py3>=7.352»\n',
            other_ids=("PKG014",),
        ),
        'gpu: none\npython: "3.11"\npackages: [«{name: pytorch}»]\n',
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [scikit-learn, torch, nvidia-ml-py]\n',
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]==4.48.0", auto-gptq==0.7.1]\n',
        'gpu: none\npython: "3.11"\npackages: [{name: pytorch, source: conda}]\n'
        "targets: {here: {kind: local, manager: conda}}\n",
    ),
)
