"""The backend that Keras computes with is missing.

## What it does

If training uses Keras, looks for the package of its backend: tensorflow (or tensorflow-cpu), jax or
torch. The backend is `training.backend`, else KERAS_BACKEND under `env`, else tensorflow if no
backend is listed. A spec with unknown packages gives a warning until it is resolved.

## Why

Keras 3 does not install a backend. Without one, `import keras` fails with
"ModuleNotFoundError: No module named 'tensorflow'". Colab has three backends preinstalled, so the
same notebook works there and fails on other machines.

## How to fix

Add the package of the backend, or set `backend` to one that is listed.
"""

from __future__ import annotations

from provision.diagnostics import Route, Severity
from provision.rules.framework_packages import BACKENDS, FRAMEWORKS, has_package
from provision.rules.package_requirements import add_package_fix, has_unknown_packages
from provision.rules.rule import Findings, LintContext, ResolvedSet, Rule, example, examples


def _check(context: LintContext) -> Findings:
    spec = context.spec
    # Without keras, framework-not-listed is reported instead.
    if spec.framework() != "keras" or not has_package(context, FRAMEWORKS["keras"]):
        return
    backend = spec.backend()
    if has_package(context, BACKENDS[backend]):
        return
    name, route = BACKENDS[backend][0], _route(context)
    is_certain = context.resolved is not None or not has_unknown_packages(context)
    yield RULE.diagnostic(
        f"Keras with the {backend} backend needs {name}, which is not {context.package_list}",
        route,
        severity=None if is_certain else Severity.WARNING,
        why="Keras 3 does not install a backend, and importing it fails without one.",
        help=f"add {name} to `packages`, or set `training.backend` to a backend that is listed",
        fix=add_package_fix(name, ""),
    )


def _route(context: LintContext) -> Route:
    training = context.spec.training
    if training.backend is not None:
        return ("training", "backend")
    if context.spec.env.get("KERAS_BACKEND") in BACKENDS:
        return ("env", "KERAS_BACKEND")
    return ("training", "framework") if training.framework else ("packages",)


RULE = Rule(
    id="TRN021",
    name="backend-not-listed",
    severity=Severity.ERROR,
    sources=(
        "METADATA of the keras wheels on PyPI, which names no backend",
        "keras/src/backend/__init__.py in the wheel of keras 3",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: none\npython: "3.12"\npackages: «[keras]»\n',
        'gpu: none\npython: "3.12"\npackages: [keras, jax]\n'
        "training: {framework: keras, backend: «torch»}\n",
        'gpu: none\npython: "3.12"\npackages: [keras, jax]\nenv: {KERAS_BACKEND: «tensorflow»}\n',
        'gpu: none\npython: "3.12"\npackages: [keras, our-tools]\ntraining: {backend: «jax»}\n',
        example(
            'gpu: none\npython: "3.12"\npackages: [keras]\ntraining: {backend: «jax»}\n',
            ResolvedSet({"keras": "3.13.2", "numpy": "2.4.6"}, "3.12"),
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.12"\npackages: [keras, jax]\n',
        'gpu: none\npython: "3.12"\npackages: [tensorflow-cpu]\n',
        'gpu: none\npython: "3.12"\npackages: [keras, torch]\n'
        "training: {framework: keras, backend: torch}\n",
        'gpu: none\npython: "3.12"\npackages: [keras]\ntraining: {framework: none}\n',
    ),
)
