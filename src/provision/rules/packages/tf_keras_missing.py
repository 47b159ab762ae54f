"""Trainer in transformers 4 fails with TensorFlow 2.16 or newer unless tf-keras is installed.

## What it does

If the program uses the Hugging Face Trainer, compares the requested transformers with 4.42 to 4.57
and tensorflow with 2.16 or newer, and looks for tf-keras: as a listed or resolved package, or
through a package that requires it (tensorflow-hub). It is a warning if the specifiers admit other
releases too, and in a spec with packages whose dependencies are unknown.

There is no finding if USE_TF=0 or USE_TORCH=1 is set under `env`, or if every target is a Colab
runtime that has tf-keras preinstalled.

## Why

These releases of transformers import their TensorFlow classes for `Trainer` wherever tensorflow is
installed, also if the program uses torch alone. TensorFlow 2.16 and newer bring Keras 3, which
these classes refuse: "Your currently installed version of Keras is Keras 3, but this is not yet
supported in Transformers". transformers does not require tf-keras, and Colab has it preinstalled:
the same program works there and fails on other machines.

## How to fix

Set USE_TF=0 if the program does not use TensorFlow through transformers; otherwise add tf-keras.
"""

from __future__ import annotations

from provision.diagnostics import Insert, Severity
from provision.facts.versions import parse_specifiers
from provision.rules.edits import unsafe_fix
from provision.rules.framework_packages import (
    KERAS_3,
    has_package,
    is_tf_keras_preinstalled,
    requested_tensorflow,
)
from provision.rules.package_requirements import (
    RequestedPackage,
    has_unknown_packages,
    is_certainly_within,
    related_line,
    requested_package,
)
from provision.rules.rule import (
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    example,
    examples,
)

_FIRST, _LAST, _BELOW = "4.42", "4.57.99", "5"
"""The releases whose integrations/integration_utils.py imports TFPreTrainedModel for Trainer."""
_TRUE = frozenset({"1", "ON", "YES", "TRUE"})
_TRUE_OR_AUTO = _TRUE | {"AUTO"}
"""Values of the switches, in utils/import_utils.py of transformers."""


def _check(context: LintContext) -> Findings:
    transformers = requested_package(context, "transformers")
    tensorflow = requested_tensorflow(context)
    if (
        transformers is None
        or tensorflow is None
        or not context.trains_with_trainer
        or not transformers.may_be(_FIRST, _BELOW)
        or not tensorflow.may_be(KERAS_3)
        or _is_newest_fine(transformers)
        or has_package(context, ("tf-keras",))
        or _is_switched_off(context)
        or is_tf_keras_preinstalled(context)
    ):
        return
    is_certain = (
        is_certainly_within(transformers.specifiers, _FIRST, _LAST)
        and not tensorflow.may_be("0", KERAS_3)
        and not (context.resolved is None and has_unknown_packages(context))
    )
    edit = Insert((), "env", '{USE_TF: "0"}')
    if context.spec.env:
        edit = Insert(("env",), "USE_TF", '"0"')
    yield RULE.diagnostic(
        f"Trainer in {transformers.description} cannot be imported alongside "
        f"{tensorflow.description} without tf-keras",
        transformers.route,
        severity=None if is_certain else Severity.WARNING,
        why=(
            "TensorFlow 2.16 and newer come with Keras 3, which transformers 4 rejects when "
            "Trainer is imported, even if the program uses only torch."
        ),
        help="set USE_TF=0 under `env`, or add tf-keras if the program uses TensorFlow models",
        related=related_line(tensorflow),
        fix=unsafe_fix("set USE_TF=0", edit),
    )


def _is_newest_fine(transformers: RequestedPackage) -> bool:
    """Return whether 5 or newer is admitted, which an installer then chooses."""
    return parse_specifiers(transformers.specifiers).contains("5.0.0")


def _is_switched_off(context: LintContext) -> bool:
    env = context.spec.env
    return (
        env.get("USE_TF", "AUTO").upper() not in _TRUE_OR_AUTO
        or env.get("USE_TORCH", "AUTO").upper() in _TRUE
    )


RULE = Rule(
    id="PKG028",
    name="tf-keras-missing",
    severity=Severity.ERROR,
    sources=(
        "integrations/integration_utils.py and activations_tf.py of transformers 4.37.2 to 4.57.1",
        "utils/import_utils.py in the transformers wheels (USE_TF, USE_TORCH)",
        "METADATA of the tensorflow wheels on PyPI (keras)",
        "transformers 4.57.1 with tensorflow-cpu 2.21.0, run on 2026-11-28",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: none\npython: "3.11"\n'
        "packages: [torch, «transformers==4.57.1», accelerate, tensorflow==2.19.0]\n",
        'gpu: L4\npython: "3.11"\n'
        "packages: [torch==2.8.0, «transformers==4.46.3», accelerate, tensorflow-cpu>=2.15]\n"
        "env: {A: b}\n",
        'gpu: none\npython: "3.11"\n'
        'packages: [torch, «"transformers>=4.30,<5"», accelerate, tensorflow==2.19.0]\n',
        'gpu: none\npython: "3.11"\n'
        "packages: [torch, «transformers==4.57.1», accelerate, tensorflow==2.19.0, our-tools]\n",
        example(
            'gpu: none\npython: "3.11"\n'
            'packages: [torch, «"transformers<5"», accelerate, tensorflow]\n',
            ResolvedSet(
                {
                    "torch": "2.13.0",
                    "transformers": "4.57.1",
                    "accelerate": "1.15.0",
                    "tensorflow": "2.21.0",
                },
                "3.11",
                "cpu",
            ),
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\n'
        "packages: [torch, transformers==4.57.1, accelerate, tensorflow==2.19.0, tf-keras]\n",
        'gpu: none\npython: "3.11"\n'
        "packages: [torch, transformers==4.57.1, accelerate, tensorflow==2.19.0, tensorflow-hub]\n",
        'gpu: none\npython: "3.11"\n'
        "packages: [torch, transformers==4.57.1, accelerate, tensorflow==2.19.0]\n"
        'env: {USE_TF: "0"}\n',
        'gpu: none\npython: "3.11"\n'
        "packages: [torch, transformers==4.57.1, accelerate, tensorflow==2.19.0]\n"
        'env: {USE_TORCH: "1"}\n',
        'gpu: none\npython: "3.11"\n'
        "packages: [torch, transformers==4.41.2, accelerate, tensorflow==2.19.0]\n",
        'gpu: none\npython: "3.11"\n'
        "packages: [torch, transformers==4.57.1, accelerate, tensorflow==2.15.1]\n",
        'gpu: none\npython: "3.11"\n'
        "packages: [torch, transformers>=4.50, accelerate, tensorflow==2.19.0]\n",
        'gpu: none\npython: "3.11"\n'
        "packages: [torch, transformers==4.57.1, tensorflow==2.19.0]\n"
        "training: {method: inference}\n",
        'gpu: T4\npython: "3.12"\n'
        "packages: [transformers==4.57.1, accelerate, tensorflow]\n"
        'targets: {colab: {kind: colab, runtime: "2026.07"}}\n',
    ),
)
