"""The checkpoints do not fit on the disk.

## What it does

Calculates the size of a checkpoint (trained weights in 32 bits and optimizer state) and how many
are kept at once, from `save_total_limit`, or from `max_steps` and `save_steps`; adds the downloaded
weights in 16 bits; and compares the sum with the target's disk. If none of these arguments is set,
one checkpoint is counted.

## Why

A checkpoint that does not fit ends the run after hours, and the progress since the last checkpoint
is lost.

## How to fix

Set `save_total_limit`, save less often, save only the model (`save_only_model: true`), or use a
larger disk.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from provision.diagnostics import Severity
from provision.facts.memory import checkpoint_bytes
from provision.rules.examples import example_spec
from provision.rules.memory.capacity import capacity_of, format_size, training_workload
from provision.rules.rule import Findings, LintContext, Rule, examples, related_if_written


def _check(context: LintContext) -> Findings:
    arguments = context.spec.training.arguments
    kept = _max_checkpoints(arguments)
    if not context.trains_with_trainer or not kept:
        return
    for target in context.targets:
        workload = training_workload(context, target)
        disk = capacity_of(context, target, "disk")
        each = checkpoint_bytes(workload, context.facts) if workload else None
        if workload is None or disk is None or each is None:
            continue
        model_only = 4 * workload.parameters if workload.method == "full" else 0
        if arguments.get("save_only_model") is True:
            each = model_only
        downloaded = 2 * workload.parameters
        total = downloaded + kept * each
        if total <= disk.bytes:
            continue
        most = int((disk.bytes - downloaded) // each) - 1
        advice = ""
        if most >= 1:
            advice = f"set training.arguments.save_total_limit: {most}, or "
        elif downloaded + kept * model_only <= disk.bytes:
            advice = "set training.arguments.save_only_model: true, or "
        yield RULE.diagnostic(
            f"{kept} checkpoint{'s' if kept > 1 else ''} of {format_size(each)} and the "
            f"downloaded weights take {format_size(total)}, but {disk.provider} has "
            f"{format_size(disk.bytes)}",
            ("training", "arguments") if arguments else ("training", "model", "parameters"),
            why="The download or the run fails, and the progress since the last checkpoint is "
            "lost.",
            help=f"{advice}use a disk larger than {format_size(total)}",
            related=related_if_written(context, disk.route, "disk of this target"),
        )


def _max_checkpoints(arguments: Mapping[str, Any]) -> int:
    """Return the most checkpoints on the disk at a time.

    The newest is written before the oldest is deleted (Trainer, rotate_checkpoints).
    """
    if arguments.get("save_strategy") == "no":
        return 0
    limit = _positive(arguments.get("save_total_limit"))
    steps = _positive(arguments.get("max_steps"))
    every = _positive(arguments.get("save_steps"))
    counts = []
    if limit:
        counts.append(limit + 1)
    if steps and every:
        counts.append(math.ceil(steps / every))
    return min(counts, default=1)


def _positive(value: Any) -> int:
    """Return a positive integer, or 0 for any other value."""
    return value if type(value) is int and value > 0 else 0


RULE = Rule(
    id="MEM007",
    name="checkpoints-exceed-disk",
    severity=Severity.WARNING,
    sources=(
        (
            "transformers 5.23.0 trainer.py: model, optimizer and scheduler are saved, "
            "rotation follows the save"
        ),
        "notebooks.v2 discovery document, DataDisk.diskSizeGb",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        example_spec(
            "gpu: A100-80GB\n"
            "training: {framework: hf-trainer, precision: bf16, model: {parameters: 2B}, "
            "arguments: «{save_total_limit: 4}»}\n",
            machine_type="auto",
        ),
        example_spec(
            "gpu: L4\n"
            "training: {framework: hf-trainer, precision: bf16, model: {parameters: 1B}, "
            "arguments: «{max_steps: 1000, save_steps: 100}»}\n",
            machine_type="auto",
        ),
    ),
    good=examples(
        example_spec(
            "gpu: A100-80GB\n"
            "training: {framework: hf-trainer, precision: bf16, model: {parameters: 2B}, "
            "arguments: {save_total_limit: 3}}\n",
            machine_type="auto",
        ),
        example_spec(
            "gpu: L4\n"
            "training: {framework: hf-trainer, precision: bf16, model: {parameters: 1B}, "
            "arguments: {max_steps: 800, save_steps: 100}}\n",
            machine_type="auto",
        ),
        example_spec(
            "gpu: L4\n"
            "training: {precision: bf16, model: {parameters: 1B}, arguments: {max_steps: "
            "1000, save_steps: 100}}\n",
            machine_type="auto",
        ),
    ),
)
