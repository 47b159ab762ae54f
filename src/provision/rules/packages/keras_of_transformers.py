"""TensorFlow models of transformers 4.38 to 4.57 cannot use the Keras of TensorFlow.

## What it does

Looks for transformers 4.38 to 4.57 with TensorFlow, without torch and without tf-keras. These
releases import tf_keras, or keras in its place: TensorFlow from 2.16 on brings Keras 3, which they
refuse, and the keras of TensorFlow before 2.13 lacks names that they use. There is no finding about
Keras 3 if every target is a Colab runtime that has tf-keras preinstalled. tf-keras-missing reports
what Trainer needs.

## Why

The import of a model fails with "Your currently installed version of Keras is Keras 3", or training
fails with "module 'keras.utils' has no attribute 'unpack_x_y_sample_weight'".

## How to fix

Add tf-keras, or use the release that the finding names.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.framework_packages import (
    KERAS_3,
    has_package,
    is_tf_keras_preinstalled,
    requested_tensorflow,
)
from provision.rules.package_requirements import (
    RequestedPackage,
    add_package_fix,
    is_certainly_within,
    related_line,
    requested_package,
)
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    examples,
)
from provision.rules.torch_presence import has_torch

FIRST, LAST = "4.38.0", "4.57.6"
"""The releases whose activations_tf.py refuses Keras 3; 5.0 has no TensorFlow models."""


def _check(context: LintContext) -> Findings:
    transformers = requested_package(context, "transformers")
    tensorflow = requested_tensorflow(context)
    if transformers is None or tensorflow is None or has_package(context, ("tf-keras",)):
        return
    if has_torch(context) or not is_certainly_within(transformers.specifiers, FIRST, LAST):
        return
    if _is_keras_3(context, tensorflow):
        if context.trains_with_trainer and transformers.may_be("4.42"):
            return  # tf-keras-missing reports it
        if is_tf_keras_preinstalled(context):
            return
        yield RULE.diagnostic(
            f"{transformers.description} requires tf-keras, because {tensorflow.description} "
            "comes with Keras 3",
            transformers.route,
            why='Importing a model fails with "Your currently installed version of Keras is Keras '
            '3, but this is not yet supported in Transformers".',
            help="add tf-keras",
            related=related_line(tensorflow),
            fix=add_package_fix("tf-keras", ""),
        )
    elif not tensorflow.may_be("2.13"):
        yield RULE.diagnostic(
            f"{transformers.description} needs functions that are missing from the Keras in "
            f"{tensorflow.description}",
            tensorflow.route,
            why="Training fails with \"module 'keras.utils' has no attribute "
            "'unpack_x_y_sample_weight'\".",
            help="use transformers<4.38, or tensorflow>=2.15 with tf-keras",
            related=related_line(transformers),
        )


def _is_keras_3(context: LintContext, tensorflow: RequestedPackage) -> bool:
    keras = requested_package(context, "keras")
    if keras is not None and keras.specifiers:
        return not keras.may_be("0", "3")
    return not tensorflow.may_be("0", KERAS_3)


RULE = Rule(
    id="PKG029",
    name="keras-of-transformers",
    severity=Severity.ERROR,
    sources=(
        "activations_tf.py and integration_utils.py in the transformers wheels 4.37.2 to 5.0.0",
        "huggingface/transformers#36330",
        "huggingface/transformers#36410",
        "huggingface/transformers#33189",
        "amaiya/ktrain#528",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: none\npython: "3.12"\npackages: [«transformers==4.49.0», tensorflow==2.18.0]\n'
        "training: {framework: keras}\n",
        'gpu: none\npython: "3.11"\npackages: [«transformers==4.41.2», tensorflow-cpu==2.18.0]\n',
        'gpu: none\npython: "3.10"\n'
        'packages: [transformers==4.39.3, «tensorflow==2.12.0», "numpy<1.24"]\n',
    ),
    good=(
        *examples(
            'gpu: none\npython: "3.12"\n'
            "packages: [transformers==4.49.0, tensorflow==2.18.0, tf-keras]\n",
            'gpu: none\npython: "3.10"\npackages: [transformers==4.49.0, tensorflow==2.15.0]\n',
            'gpu: none\npython: "3.12"\npackages: [transformers==4.49.0, tensorflow==2.19.0]\n'
            "training: {framework: keras}\n"
            'targets: {c: {kind: colab, runtime: "2026.07"}}\n',
            'gpu: none\npython: "3.12"\n'
            "packages: [torch==2.6.0, transformers==4.49.0, tensorflow==2.18.0]\n"
            "training: {framework: torch}\n",
        ),
        Example(
            'gpu: none\npython: "3.12"\npackages: [transformers, tensorflow, tf-keras]\n',
            resolved=ResolvedSet(
                {"transformers": "4.49.0", "tensorflow": "2.18.0", "tf-keras": "2.18.0"}, "3.12"
            ),
        ),
    ),
)
