"""The checkpoints do not fit on the disk.

## What it does

Reckons the size of a checkpoint (trained weights in 32 bits and optimizer state) and how many
are kept at once, from `save_total_limit`, or from `max_steps`
and `save_steps`; adds the weights that are downloaded, in 16 bits; and compares the sum with the
disk of the place. Without any of these one checkpoint is
counted.

## Why

A checkpoint that does not fit ends the run after hours, and what was trained since the last one
is lost.

## How to fix

Set `save_total_limit`, save less often, keep the model only (`save_only_model: true`), or make
the disk larger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provision.diagnostics import Diagnostic, Severity
from provision.kinds.base import Capacity
from provision.rules.memory.capacity import disk_capacity, format_size, training_workload
from provision.rules.rule import Example, LintContext, Rule, related_if_written
from provision.rules.workbench_instances import example_spec


def check(case: LintContext) -> Iterator[Diagnostic]:
    """Yield a finding for each disk that is too small."""
    if (
        case.spec.training.model is None
        or case.spec.framework() != "hf-trainer"
        or case.spec.training.method == "inference"
    ):
        return
    kept = _kept(case.spec.training.arguments)
    for site in case.targets:
        work, room = training_workload(case, site), disk_capacity(case, site)
        each = case.facts.checkpoint_bytes(work) if work else None
        if work is None or room is None or each is None or not kept:
            continue
        alone = 4 * work.parameters if work.method == "full" else 0
        if case.spec.training.arguments.get("save_only_model") is True:
            each = alone
        downloaded = 2 * work.parameters
        if downloaded + kept * each > room.bytes:
            yield _found(
                case,
                kept,
                each,
                downloaded,
                room,
                enough_alone=downloaded + kept * alone <= room.bytes,
            )


def _found(
    case: LintContext, kept: int, each: int, downloaded: int, room: Capacity, *, enough_alone: bool
) -> Diagnostic:
    total = downloaded + kept * each
    most = int((room.bytes - downloaded) // each) - 1
    limit = f"write training.arguments.save_total_limit: {most}, or " if most >= 1 else ""
    model = (
        "write training.arguments.save_only_model: true, or " if enough_alone and not limit else ""
    )
    return RULE.diagnostic(
        f"{kept} checkpoint{'s' if kept > 1 else ''} of {format_size(each)} and the "
        f"downloaded weights take {format_size(total)}, and {room.provider} has "
        f"{format_size(room.bytes)}",
        ("training", "arguments")
        if case.spec.training.arguments
        else ("training", "model", "parameters"),
        why="What does not fit ends the download or the run, and what was trained since the "
        "last checkpoint is lost.",
        way_out=f"{limit}{model}make the disk larger than {format_size(total)}",
        related=related_if_written(case, room.route, "disk of this place"),
    )


def _kept(arguments: Mapping[str, Any]) -> int:
    """Return how many checkpoints lie on the disk at once. The newest is written before the oldest
    goes (Trainer, rotate_checkpoints).
    """
    if arguments.get("save_strategy") == "no":
        return 0
    limit, steps, every = (
        arguments.get(key) for key in ("save_total_limit", "max_steps", "save_steps")
    )
    made = (
        -(-steps // every)
        if type(steps) is int and type(every) is int and steps > 0 and every > 0
        else None
    )
    if type(limit) is int and limit > 0:
        return limit + 1 if made is None else min(limit + 1, made)
    return 1 if made is None else made


RULE = Rule(
    id="MEM007",
    name="checkpoints-exceed-disk",
    severity=Severity.WARNING,
    summary="The checkpoints do not fit on the disk.",
    sources=(
        (
            "transformers 5.23.0 trainer.py: model, optimizer and scheduler are saved, "
            "rotation follows the save"
        ),
        "notebooks.v2 discovery document, DataDisk.diskSizeGb",
    ),
    page=__doc__,
    check=check,
    bad=(
        Example(
            example_spec(
                "gpu: A100-80GB\ntraining: {framework: hf-trainer, precision: bf16, model: "
                "{parameters: 2B}, arguments: {save_total_limit: 4}}\n",
                machine_type="auto",
            ),
            "{save_total_limit: 4}",
        ),
        Example(
            example_spec(
                "gpu: L4\ntraining: {framework: hf-trainer, precision: bf16, model: "
                "{parameters: 1B}, arguments: {max_steps: 1000, save_steps: 100}}\n",
                machine_type="auto",
            ),
            "{max_steps: 1000, save_steps: 100}",
        ),
    ),
    good=(
        Example(
            example_spec(
                "gpu: A100-80GB\ntraining: {framework: hf-trainer, precision: bf16, model: "
                "{parameters: 2B}, arguments: {save_total_limit: 3}}\n",
                machine_type="auto",
            )
        ),
        Example(
            example_spec(
                "gpu: L4\ntraining: {framework: hf-trainer, precision: bf16, model: "
                "{parameters: 1B}, arguments: {max_steps: 800, save_steps: 100}}\n",
                machine_type="auto",
            )
        ),
        Example(
            example_spec(
                "gpu: L4\ntraining: {precision: bf16, model: {parameters: 1B}, arguments: "
                "{max_steps: 1000, save_steps: 100}}\n",
                machine_type="auto",
            )
        ),
    ),
)
