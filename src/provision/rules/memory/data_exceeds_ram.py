"""The data does not fit in RAM.

## What it does

Compares `training.data.in_memory`, together with the weights that are read into RAM, with the RAM
of each target's machine. With `ddp`, `fsdp` and DeepSpeed every process has its own copy of the
data.

## Why

Linux kills a process that takes more RAM than the machine has. A notebook kernel then restarts,
without a traceback.

## How to fix

Read the data in parts (`tf.data`, a memory-mapped array, a streaming dataset) and remove
`in_memory`, or use a machine type or shape with more RAM.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.host_usage import loaded_weights
from provision.rules.edits import set_field_fix
from provision.rules.examples import example_spec
from provision.rules.memory.capacity import GIB, capacity_of, format_size, training_workload
from provision.rules.rule import Findings, LintContext, Rule, examples, related_if_written
from provision.target_facts import data_in_memory


def _check(context: LintContext) -> Findings:
    training = context.spec.training
    for target in context.targets:
        data = data_in_memory(training, target.gpu_settings.gpu.count)
        ram = capacity_of(context, target, "ram") if data else None
        if data is None or ram is None:
            continue
        workload = training_workload(context, target)
        loaded = loaded_weights(workload, training.arguments) if workload else None
        total = data + (loaded.bytes if loaded else 0)
        if total <= ram.bytes:
            continue
        weights = f" and the weights take {format_size(total - data)}" if loaded else ""
        larger = target.kind.machine_with_ram(total / GIB, target, context.facts)
        help_text, fix = "read the data in parts, and remove `in_memory`", None
        if larger:
            fix = set_field_fix(context, (*target.route, larger.field), larger.value)
            help_text += (
                f", or set `{larger.field}: {larger.value}`, which has {larger.ram_gib:g} GiB"
            )
        yield RULE.diagnostic(
            f"the data takes {format_size(data)} of RAM{weights}, but {ram.provider} has "
            f"{format_size(ram.bytes)}",
            ("training", "data", "in_memory"),
            evidence=ram.evidence,
            severity=Severity.ERROR if data > ram.bytes else Severity.WARNING,
            why="Linux kills a process that runs out of RAM, without a traceback.",
            help=help_text,
            related=related_if_written(context, ram.route, "machine requested here"),
            fix=fix,
        )


RULE = Rule(
    id="MEM008",
    name="data-exceeds-ram",
    severity=Severity.ERROR,
    sources=(
        "Compute Engine machine types (Cyclenerd/google-cloud-pricing-cost-calculator)",
        "googlecolab/google-colab-cli#105",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: none\npython: "3.12"\npackages: [numpy]\n'
        "training: {framework: none, data: {in_memory: «14GiB»}}\n"
        'targets: {colab: {kind: colab, runtime: "2026.07"}}\n',
        example_spec(
            "gpu: L4:2\n"
            "training: {framework: torch, precision: bf16, strategy: ddp, data: "
            "{in_memory: «60GiB»}}\n",
            machine_type="g2-standard-24",
        ),
        example_spec(
            "gpu: L4\n"
            "training: {precision: bf16, model: {parameters: 1B}, data: {in_memory: «14GiB»}}\n",
            machine_type="g2-standard-4",
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.12"\npackages: [numpy]\n'
        "training: {framework: none, data: {in_memory: 8GiB}}\n"
        'targets: {colab: {kind: colab, runtime: "2026.07"}}\n',
        example_spec(
            "gpu: L4:2\n"
            "training: {framework: torch, precision: bf16, strategy: ddp, data: "
            "{in_memory: 30GiB}}\n",
            machine_type="g2-standard-24",
        ),
    ),
)
