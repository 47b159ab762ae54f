"""torch does not use tf32 for matrix products by default.

## What it does

If `training.precision` is tf32 and a GPU supports it, looks for `tf32: true` under
`training.arguments` of Trainer, and for plain torch and Keras on torch names the setting. jax and
TensorFlow use tf32 by default.

## Why

Since torch 1.12, `torch.backends.cuda.matmul.allow_tf32` is false: products of fp32 matrices are
computed in full fp32, up to eight times slower. Only convolutions use tf32 by default.

## How to fix

Trainer: `arguments: {tf32: true}`. Plain torch: `torch.set_float32_matmul_precision("high")` at the
start of the program.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.edits import set_argument_fix
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.spec import Precision


def _check(context: LintContext) -> Findings:
    training = context.spec.training
    framework, backend = context.spec.framework(), context.spec.backend()
    if training.precision is not Precision.TF32 or framework in ("none", "jax"):
        return
    if framework == "keras" and backend != "torch":
        return
    cards = (target.card for target in context.targets if target.card)
    if training.arguments.get("tf32") is True or not any(
        context.facts.has_feature(card, "tf32") for card in cards
    ):
        return
    help_text = 'call torch.set_float32_matmul_precision("high") in the program'
    fix = None
    if context.uses_trainer:
        help_text = "set `arguments: {tf32: true}` under `training`"
        if "tf32" not in training.arguments:
            fix = set_argument_fix(context, "tf32")
    yield RULE.diagnostic(
        "`precision: tf32` is set, but torch computes matrix products in fp32 unless the "
        "program enables tf32",
        ("training", "precision"),
        why="torch.backends.cuda.matmul.allow_tf32 has been false by default since torch 1.12.",
        help=help_text,
        fix=fix,
    )


RULE = Rule(
    id="GPU007",
    name="tf32-not-default",
    severity=Severity.INFO,
    sources=(
        "PyTorch documentation, CUDA semantics, TensorFloat-32",
        "PyTorch 1.12 release notes",
        "TrainingArguments of transformers 5.23.0 (tf32)",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: L4\npython: "3.12"\npackages: [torch]\ntraining: {precision: «tf32»}\n',
        'gpu: A100\npython: "3.12"\npackages: ["transformers[torch]"]\n'
        "training: {precision: «tf32»}\n",
        'gpu: A100\npython: "3.12"\npackages: [keras, torch]\n'
        "training: {framework: keras, precision: «tf32»}\n",
    ),
    good=examples(
        'gpu: A100\npython: "3.12"\npackages: ["transformers[torch]"]\n'
        "training: {precision: tf32, arguments: {tf32: true}}\n",
        'gpu: A100\npython: "3.12"\npackages: [torch]\n',
        'gpu: A100\npython: "3.12"\npackages: ["jax[cuda13]"]\ntraining: {precision: tf32}\n',
    ),
)
