"""A call of TrainingArguments sets load_best_model_at_end without evaluating and saving together.

## What it does

Compares `eval_strategy`, `save_strategy`, `eval_steps` and `save_steps` in calls of
TrainingArguments and of its subclasses, as TrainingArguments does. Calls with values that are not
literals, or with unpacked arguments, are left out.

## Why

The best checkpoint must have been both evaluated and saved. The call fails with
"--load_best_model_at_end requires the save and eval strategy to match": by default, checkpoints are
saved every few steps and nothing is evaluated.

## How to fix

Set `eval_strategy` to the value of `save_strategy`, and `save_steps` to a multiple of `eval_steps`.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.rules.notebook.context import NotebookContext
from provision.rules.notebook.notebook_examples import notebook_example
from provision.rules.notebook.python_code import UNKNOWN
from provision.rules.notebook.trainer_classes import is_trainer_class
from provision.rules.rule import Findings, Rule
from provision.rules.training.best_model import WHY, find_best_model_mismatch

_COMPARED = frozenset(
    {
        "eval_strategy",
        "evaluation_strategy",
        "save_strategy",
        "eval_steps",
        "save_steps",
        "logging_steps",
    }
)


def _check(context: NotebookContext) -> Findings:
    for call in context.code.calls:
        if not call.is_complete or not is_trainer_class(call, context.facts):
            continue
        arguments = {argument.name: argument.value for argument in call.arguments}
        mismatch = find_best_model_mismatch(arguments)
        if mismatch is None or any(arguments.get(name) is UNKNOWN for name in _COMPARED):
            continue
        (span,) = (one.span for one in call.arguments if one.name == "load_best_model_at_end")
        value = mismatch.value
        yield RULE.diagnostic(
            mismatch.message,
            span,
            why=WHY,
            help=f"set `{mismatch.field}={value!r}`",
        )


RULE = Rule(
    id="NTB016",
    name="call-best-model",
    severity=Severity.ERROR,
    sources=(
        "__post_init__ in training_args.py of transformers 4.20.1, 4.57.6 and 5.23.0",
        "zjunlp/DeepKE#394",
        "hiyouga/LlamaFactory#8133",
    ),
    check=_check,
    bad=(
        notebook_example(
            "from transformers import TrainingArguments\n"
            'args = TrainingArguments("out", «load_best_model_at_end=True»)\n',
            colab="T4",
        ),
        notebook_example(
            "from trl import SFTConfig\n"
            'args = SFTConfig("out", eval_strategy="epoch", «load_best_model_at_end=True»)\n',
            colab="T4",
            other_ids=("NTB015",),
        ),
        notebook_example(
            "from transformers import TrainingArguments\n"
            'args = TrainingArguments("out", eval_strategy="steps", eval_steps=200,\n'
            "    «load_best_model_at_end=True»)\n",
            colab="T4",
        ),
    ),
    good=(
        notebook_example(
            "from transformers import TrainingArguments\n"
            'args = TrainingArguments("out", eval_strategy="epoch", save_strategy="epoch",\n'
            "    load_best_model_at_end=True)\n",
            colab="T4",
        ),
        notebook_example(
            "from transformers import TrainingArguments\n"
            'args = TrainingArguments("out", load_best_model_at_end=True, **more)\n'
            'args = TrainingArguments("out", load_best_model_at_end=True, save_strategy=mine)\n',
            colab="T4",
        ),
        notebook_example(
            "from transformers import TrainingArguments\n"
            'args = TrainingArguments("out", load_best_model_at_end=False)\n',
            colab="T4",
        ),
    ),
)
