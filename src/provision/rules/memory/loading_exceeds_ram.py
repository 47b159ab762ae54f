"""The weights do not fit in RAM while they are being loaded.

## What it does

Compares the weights that are read into RAM before they move to the GPU with the RAM of the machine:
4 bytes per parameter of a model that is fully trained, 2 of a frozen one; once for each process
with `ddp`, `fsdp` and `deepspeed-zero2`. Weights that go directly to the GPU (4-bit loading,
`device_map`, inference) are not counted.

## Why

Linux kills a process that takes more RAM than the machine has. The process ends with `Killed`,
exit code 137 or a restarted notebook kernel, and without a traceback.

## How to fix

Use a machine type or shape with more RAM, or load the weights as bf16 or fp16, directly onto the
GPU.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.host_usage import loaded_weights
from provision.rules.examples import example_spec
from provision.rules.memory.capacity import capacity_of, format_size, training_workload
from provision.rules.rule import Findings, LintContext, Rule, example, examples, related_if_written


def _check(context: LintContext) -> Findings:
    for target in context.targets:
        workload = training_workload(context, target)
        ram = capacity_of(context, target, "ram") if target.gpu_settings.is_nvidia else None
        loaded = loaded_weights(workload, context.spec.training.arguments) if workload else None
        if loaded is None or ram is None or loaded.bytes <= ram.bytes:
            continue
        copies = f" in {loaded.processes} processes" if loaded.processes > 1 else ""
        yield RULE.diagnostic(
            f"loading the weights in {loaded.bits}-bit precision takes {format_size(loaded.bytes)} "
            f"of RAM{copies}, but {ram.provider} has {format_size(ram.bytes)}",
            ("training", "model", "parameters"),
            severity=Severity.WARNING,
            why="Linux kills a process that runs out of RAM, without a traceback.",
            help='load with dtype="auto" and device_map, which loads the weights directly '
            "onto the GPU at 2 bytes per parameter, or use a machine with more RAM",
            related=related_if_written(context, ram.route, "machine requested here"),
        )


RULE = Rule(
    id="MEM004",
    name="loading-exceeds-ram",
    severity=Severity.WARNING,
    sources=(
        "transformers documentation, Loading models (dtype, device_map)",
        (
            "transformers 5.23.0 training_args.py and accelerate 1.15.0 utils/dataclasses.py "
            "(cpu_ram_efficient_loading)"
        ),
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        example(
            example_spec(
                "gpu: L4\ntraining: {precision: bf16, method: lora, model: {parameters: «9B»}}\n",
                machine_type="g2-standard-4",
            ),
            other_ids=("TRN011",),
        ),
        example(
            example_spec(
                "gpu: T4:2\n"
                "training: {precision: fp16, method: lora, strategy: ddp, model: "
                "{parameters: «4.1B»}}\n",
                machine_type="n1-standard-4",
            ),
            other_ids=("TRN011",),
        ),
    ),
    good=examples(
        example_spec(
            "gpu: T4:2\n"
            "training: {precision: fp16, method: lora, strategy: ddp, model: {parameters: 4B}}\n",
            machine_type="n1-standard-4",
        ),
        example_spec(
            "gpu: L4\ntraining: {precision: bf16, method: lora, model: {parameters: 8B}}\n",
            machine_type="g2-standard-4",
        ),
        example_spec(
            "gpu: L4\ntraining: {precision: bf16, method: qlora, model: {parameters: 9B}}\n",
            machine_type="g2-standard-4",
        ),
        'gpu: L4\npython: "3.12"\npackages: [torch]\n'
        "training: {precision: bf16, method: lora, model: {parameters: 9B}}\n",
    ),
)
