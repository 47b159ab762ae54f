"""training.framework is keras or jax, and its package is missing.

## What it does

If `training.framework` is set to keras or jax, looks for its package: keras (or tensorflow, which
depends on it), or jax. A package that another one is known to require counts. A spec with unknown
packages gives a warning until it is resolved.

## Why

The program fails at its first import, and the verification cannot train: it only imports packages.

## How to fix

Add the package, or correct `framework`. Without `framework`, provision uses the framework that the
listed packages imply.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.framework_packages import FRAMEWORKS, has_package
from provision.rules.package_requirements import add_package_fix, has_unknown_packages
from provision.rules.rule import Findings, LintContext, ResolvedSet, Rule, example, examples


def _check(context: LintContext) -> Findings:
    framework = context.spec.training.framework
    names = FRAMEWORKS.get(framework or "")
    if names is None or has_package(context, names):
        return
    is_certain = context.resolved is not None or not has_unknown_packages(context)
    yield RULE.diagnostic(
        f"`framework: {framework}` needs {names[0]}, which is not {context.package_list}",
        ("training", "framework"),
        severity=None if is_certain else Severity.WARNING,
        why="The program fails when it imports the framework, and no training run can be verified.",
        help=f"add {names[0]} to `packages`, or set a different `framework`",
        fix=add_package_fix(names[0], ""),
    )


RULE = Rule(
    id="TRN020",
    name="framework-not-listed",
    severity=Severity.ERROR,
    sources=("METADATA of the tensorflow wheels on PyPI (keras)",),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: none\npython: "3.12"\npackages: [numpy]\ntraining: {framework: «jax»}\n',
        'gpu: none\npython: "3.12"\npackages: [jax]\n'
        "training: {framework: «keras», backend: jax}\n",
        'gpu: none\npython: "3.12"\npackages: [our-tools]\ntraining: {framework: «jax»}\n',
        example(
            'gpu: none\npython: "3.12"\npackages: [our-tools]\ntraining: {framework: «jax»}\n',
            ResolvedSet({"our-tools": "1.0", "numpy": "2.4.6"}, "3.12"),
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.12"\npackages: [jax]\ntraining: {framework: jax}\n',
        'gpu: none\npython: "3.12"\npackages: [tensorflow-cpu]\ntraining: {framework: keras}\n',
        'gpu: none\npython: "3.12"\npackages: [keras, jax]\n'
        "training: {framework: keras, backend: jax}\n",
        example(
            'gpu: none\npython: "3.12"\npackages: [our-tools]\ntraining: {framework: jax}\n',
            ResolvedSet({"our-tools": "1.0", "jax": "0.11.2"}, "3.12"),
        ),
    ),
)
