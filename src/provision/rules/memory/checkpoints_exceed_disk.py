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

from provision.diagnostics import Severity
from provision.facts.host_usage import checkpoint_disk_usage
from provision.rules.examples import example_spec
from provision.rules.memory.capacity import capacity_of, format_size, training_workload
from provision.rules.rule import Findings, LintContext, Rule, example, examples, related_if_written


def _check(context: LintContext) -> Findings:
    arguments = context.spec.training.arguments
    if not context.trains_with_trainer:
        return
    for target in context.targets:
        workload = training_workload(context, target)
        disk = capacity_of(context, target, "disk")
        if workload is None or disk is None:
            continue
        usage = checkpoint_disk_usage(workload, arguments, context.facts)
        if usage is None or usage.total <= disk.bytes:
            continue
        most = 0
        if usage.each:
            most = int((disk.bytes - usage.downloaded) // usage.each) - 1
        advice = ""
        if most >= 1:
            advice = f"set `training.arguments.save_total_limit: {most}`, or "
        elif usage.downloaded + usage.kept * usage.weights_only <= disk.bytes:
            advice = "set `training.arguments.save_only_model: true`, or "
        kept, total = usage.kept, usage.total
        yield RULE.diagnostic(
            f"{kept} checkpoint{'s' if kept > 1 else ''} of "
            f"{format_size(usage.each)}{' each' if kept > 1 else ''} plus the downloaded weights "
            f"take {format_size(total)}, but {disk.provider} has {format_size(disk.bytes)}",
            ("training", "arguments") if arguments else ("training", "model", "parameters"),
            why=(
                "The download or the training run fails, and the progress since the last "
                "checkpoint is lost."
            ),
            help=f"{advice}use a disk larger than {format_size(total)}",
            related=related_if_written(context, disk.route, "determines this target's disk size"),
        )


RULE = Rule(
    id="MEM007",
    name="checkpoints-exceed-disk",
    severity=Severity.WARNING,
    sources=(
        (
            "transformers 5.23.0 trainer.py: model, optimizer and scheduler are saved, and "
            "older checkpoints are deleted afterwards"
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
        example(
            example_spec(
                "gpu: L4:8\n"
                "training: {framework: hf-trainer, precision: bf16, method: lora, strategy: "
                "deepspeed-zero3, model: {parameters: 60B}, arguments: "
                "«{save_only_model: true}»}\n",
                machine_type="auto",
            ),
            other_ids=("TRN009", "TRN011"),
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
