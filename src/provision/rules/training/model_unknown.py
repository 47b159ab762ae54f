"""training.model.id names a model whose size is unknown.

## What it does

Looks up `training.model.id` in a table of well-known models, and compares
`training.model.parameters` with it: more than 5 % apart is a warning.

## Why

The memory estimate needs the number of parameters. Without it, nothing is reported about memory:
neither by `lint`, nor by `provision fit`, nor by the verification.

## How to fix

Name a folder with the model's config.json, as in `id: ./model`, or set `parameters`, `hidden_size`
and `layers`: they are on the model's page, and in its config.json
as hidden_size and num_hidden_layers.
"""

from __future__ import annotations

from difflib import get_close_matches

from provision.diagnostics import Severity
from provision.facts.lazy_tables import load_models
from provision.rules.rule import Findings, LintContext, Rule, examples
from provision.spec import parse_parameter_count

TOLERANCE = 0.05
"""Share by which a declared number may differ: it is rounded, or excludes the embedding. Our
choice.
"""


def _check(context: LintContext) -> Findings:
    model = context.spec.training.model
    if model is None or model.id is None or context.resolved is not None:
        return
    models = load_models()
    known = models.get(model.id.lower())
    if known is None and model.parameters is None:
        similar = get_close_matches(model.id.lower(), models, n=3)
        names = ", ".join(models[name].id for name in similar)
        yield RULE.diagnostic(
            f"the size of {model.id} is unknown",
            ("training", "model", "id"),
            severity=Severity.UNKNOWN,
            why="Without the size, the memory that training needs cannot be estimated.",
            help="set `parameters`, `hidden_size` and `layers` under `training.model`"
            + (f"; known models: {names}" if names else ""),
        )
    elif known is not None and model.parameters is not None:
        declared = parse_parameter_count(model.parameters)
        if abs(declared - known.parameters) > TOLERANCE * known.parameters:
            yield RULE.diagnostic(
                f"{known.id} has {known.parameters / 1e9:.2f}B parameters, not {model.parameters}",
                ("training", "model", "parameters"),
                evidence=known.evidence,
                why="The memory estimate uses the declared number.",
                help="remove `parameters`, or correct `id`",
                source=known.evidence.source,
            )


RULE = Rule(
    id="TRN023",
    name="model-unknown",
    severity=Severity.WARNING,
    sources=("litgpt/config.py in the wheel of litgpt 0.5.13: `provision facts list models`",),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: none\npython: "3.12"\npackages: []\n'
        "training: {model: {id: «meta-llama/Llama-9-8B»}}\n",
        'gpu: none\npython: "3.12"\npackages: []\n'
        "training: {model: {id: Qwen/Qwen2.5-7B, parameters: «0.5B»}}\n",
    ),
    good=examples(
        'gpu: none\npython: "3.12"\npackages: []\ntraining: {model: {id: Qwen/Qwen2.5-0.5B}}\n',
        'gpu: none\npython: "3.12"\npackages: []\n'
        "training: {model: {id: our/own, parameters: 1.1B}}\n",
        'gpu: none\npython: "3.12"\npackages: []\n'
        "training: {model: {id: Qwen/Qwen2.5-7B, parameters: 7.6B}}\n",
    ),
)
