"""The backend of Keras is ambiguous, contradictory or has no effect.

## What it does

Compares `training.backend`, KERAS_BACKEND under `env` and the listed packages. It is an error if
both name a backend and differ, or if the variable names one that provision does not verify. It is a
warning if neither is set and several backends are listed, and if `backend` is set although training
does not use Keras.

## Why

Keras reads KERAS_BACKEND, then the machine's own ~/.keras/keras.json, and takes tensorflow if
neither names a backend. The same program then computes with different libraries on different
machines, and each backend allocates most of the GPU's memory for itself.

## How to fix

Set `training.backend` and remove KERAS_BACKEND, or set both to the same name. List only one
backend.
"""

from __future__ import annotations

from provision.diagnostics import Insert, Severity
from provision.rules.edits import unsafe_fix
from provision.rules.framework_packages import BACKENDS
from provision.rules.rule import Findings, LintContext, Rule, examples, related_at

VARIABLE = "KERAS_BACKEND"


def _check(context: LintContext) -> Findings:
    if context.resolved is not None:
        return
    spec = context.spec
    declared, variable = spec.training.backend, spec.env.get(VARIABLE)
    backend, where = ("training", "backend"), ("env", VARIABLE)
    if spec.framework() != "keras":
        if declared is not None:
            yield RULE.diagnostic(
                f"`backend: {declared}` has no effect, because the training framework is "
                f"{spec.framework()}",
                backend,
                severity=Severity.WARNING,
                why="Only Keras has a choice of backends.",
                help="remove `backend`, or set `framework: keras`",
            )
    elif variable is not None and variable not in BACKENDS:
        yield RULE.diagnostic(
            f"{VARIABLE}={variable[:40]} is not a backend that can be verified",
            where,
            why="The verification trains a model with tensorflow, jax or torch.",
            help=f"set {VARIABLE} to {', '.join(BACKENDS)}, or remove it",
        )
    elif declared is not None and variable is not None and declared != variable:
        yield RULE.diagnostic(
            f"`backend: {declared}` contradicts {VARIABLE}={variable}",
            backend,
            why="Programs would use the backend that the variable sets.",
            help=f"remove {VARIABLE}, or set both to the same backend",
            related=related_at(where, "set here"),
        )
    elif declared is None and variable is None:
        listed = [
            name
            for name, packages in BACKENDS.items()
            if not context.package_names.isdisjoint(packages)
        ]
        if len(listed) > 1:
            edit = Insert(("training",), "backend", listed[0])
            if "training" not in spec.model_fields_set:
                edit = Insert((), "training", f"{{backend: {listed[0]}}}")
            yield RULE.diagnostic(
                f"Keras can use {' and '.join(listed)}, but no backend is selected",
                ("packages",),
                severity=Severity.WARNING,
                why=(
                    "On each machine, Keras uses tensorflow unless ~/.keras/keras.json or "
                    f"{VARIABLE} names another backend; the verification uses {spec.backend()}."
                ),
                help=(
                    f"set `training.backend`, and {VARIABLE} under `env`, or list only one backend"
                ),
                fix=unsafe_fix(f"set `training.backend: {listed[0]}`", edit),
            )


RULE = Rule(
    id="TRN022",
    name="backend-unclear",
    severity=Severity.ERROR,
    sources=(
        "keras/src/backend/config.py in the wheel of keras 3",
        "Keras documentation, Configuring your backend",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: none\npython: "3.12"\npackages: [keras, jax, tensorflow-cpu]\n'
        "env: {KERAS_BACKEND: jax}\ntraining: {backend: «tensorflow»}\n",
        'gpu: none\npython: "3.12"\npackages: [keras, jax]\nenv: {KERAS_BACKEND: «mlx»}\n',
        'gpu: none\npython: "3.12"\npackages: «[keras, jax, tensorflow-cpu]»\n',
        'gpu: none\npython: "3.12"\npackages: [jax]\ntraining: {backend: «jax»}\n',
    ),
    good=examples(
        'gpu: none\npython: "3.12"\npackages: [keras, jax, tensorflow-cpu]\n'
        "training: {backend: jax}\n",
        'gpu: none\npython: "3.12"\npackages: [keras, jax, tensorflow-cpu]\n'
        "env: {KERAS_BACKEND: jax}\n",
        'gpu: none\npython: "3.12"\npackages: [keras, jax]\n'
        "env: {KERAS_BACKEND: jax}\ntraining: {backend: jax}\n",
    ),
)
