"""A package name leads to an empty, abandoned or different package.

## What it does

Looks names up in a table of often requested names that are not what they seem: `sklearn`,
`pytorch`, `nvidia-ml-py3` and the like.

## Why

The name of a module, a project or an old release is not always the name of the package. Some of
these refuse to install, some install nothing, some install the work of somebody else.

## How to fix

Write the name that the finding gives. Its versions are others: bounds are not taken over.
"""

from __future__ import annotations

from provision.diagnostics import Applicability, Fix, Route, Severity
from provision.facts import ReplacedPackage
from provision.rules.edits import unsafe_fix
from provision.rules.package_lines import package_lines, rename_edit, set_version_edit
from provision.rules.package_requirements import is_excluded
from provision.rules.rule import Example, Findings, LintContext, Rule, examples
from provision.spec import Package


def _check(context: LintContext) -> Findings:
    for route, package in package_lines(context):
        replaced = context.facts.replaced.get(package.key)
        if replaced is None or package.source == "conda" or package.index is not None:
            continue
        if any(is_excluded(context, name, bound) for name, bound in replaced.beside.items()):
            continue
        yield RULE.diagnostic(
            f"{package.key} is {replaced.what}; the package meant is {replaced.instead}",
            route,
            severity=Severity.ERROR if replaced.kind in ("stub", "hostile") else Severity.WARNING,
            why="It would install nothing, nothing that is kept up, or somebody else's work.",
            help=f"write {replaced.instead}",
            fix=_fix(context, route, package, replaced),
        )


def _fix(
    context: LintContext, route: Route, package: Package, replaced: ReplacedPackage
) -> Fix | None:
    title = f"write {replaced.instead}"
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
    bad=(
        Example('gpu: none\npython: "3.11"\npackages: [numpy, sklearn]\n', "sklearn"),
        Example(
            'gpu: none\npython: "3.11"\npackages:\n  - nvidia_ml_py3>=7.352\n',
            "nvidia_ml_py3>=7.352",
        ),
        Example('gpu: none\npython: "3.11"\npackages: [{name: pytorch}]\n', "{name: pytorch}"),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: [scikit-learn, torch, nvidia-ml-py]\n',
        'gpu: L4\npython: "3.11"\npackages: ["transformers[torch]==4.48.0", auto-gptq==0.7.1]\n',
        'gpu: none\npython: "3.11"\npackages: [{name: pytorch, source: '
        "conda}]\ntargets: {here: {kind: local, manager: conda}}\n",
    ),
)
