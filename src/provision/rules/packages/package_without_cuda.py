"""A package or setting needs an NVIDIA card, and the target has no such card.

## What it does

Where no target has an NVIDIA card, looks for flash-attn, which is CUDA code alone; for `method:
qlora` and 8-bit optimizers with a bitsandbytes that has them for CUDA only; and for `optimizer:
adamw_torch_fused` with a torch that has it for CUDA only.

## Why

flash-attn cannot be built there. bitsandbytes and torch install, and fail when training starts.

## How to fix

Leave the package out, ask for the release that the finding names, or ask for a card.
"""

from __future__ import annotations

from provision.diagnostics import Route, Severity
from provision.facts.schema_packages import CudaOnlyUse
from provision.facts.versions import next_version
from provision.rules.package_requirements import origin_route, requested_package
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    examples,
    related_at,
)


def _check(context: LintContext) -> Findings:
    routes = {device.gpu.type: device.gpu_route for device in context.devices}
    if not routes.keys() <= {"none", "mps"}:
        return
    for row in context.facts.cuda_only:
        use = _find_use(context, row)
        package = requested_package(context, row.package)
        if use is None or package is None:
            continue
        is_built = package.package and package.package.build
        if row.package == "flash-attn" and not is_built and context.resolved is None:
            continue
        for gpu, gpu_route in routes.items():
            first, device = (row.mps, "on Apple silicon") if gpu == "mps" else (row.cpu, "on a CPU")
            if first and package.may_be(first):
                continue
            severity = None
            if row.read and not first and package.may_be(next_version(row.read)):
                severity = Severity.WARNING
            what, route = use
            why = "It is CUDA code, and is compiled with nvcc."
            help_text = f"leave {package.name} out, or ask for a card"
            if what:
                why = f"It has no code for that {device}{f' before {first}' if first else ''}."
                help_text = f"ask for {row.package}>={first}" if first else "take another optimizer"
            yield RULE.diagnostic(
                f"{package.description} needs an NVIDIA card{what}, and gpu is {gpu}",
                route or origin_route(context, package, ("packages",)),
                severity=severity,
                evidence=row.evidence,
                why=why,
                help=help_text,
                related=related_at(gpu_route, "gpu asked for here")
                if "gpu" in context.spec.model_fields_set
                else (),
            )
            break


def _find_use(context: LintContext, row: CudaOnlyUse) -> tuple[str, Route] | None:
    """Return the phrase and the route of a use; "" and () for that of the package itself."""
    training = context.spec.training
    if row.use == "any":
        return "", ()
    if row.use == "4-bit":
        return (
            (f" for {training.method}", ("training", "method"))
            if training.method == "qlora"
            else None
        )
    optimizer = context.facts.optimizer_names.get(training.optimizer)
    is_8bit = (
        row.use == "8-bit optimizers"
        and optimizer is not None
        and optimizer.needs == row.package
        and training.optimizer.endswith("8bit")
    )
    if context.trains_with_trainer and (training.optimizer == row.use or is_8bit):
        return f" for {training.optimizer}", ("training", "optimizer")
    return None


RULE = Rule(
    id="PKG025",
    name="package-without-cuda",
    severity=Severity.ERROR,
    sources=(
        "Dao-AILab/flash-attention README.md and setup.py",
        "backends/ in the bitsandbytes wheels, 0.45.5 to 0.50.2",
        "torch/utils/_foreach_utils.py in the torch wheels, 2.3.1 to 2.5.0",
    ),
    check=_check,
    bad=(
        Example(
            'gpu: none\npython: "3.11"\npackages: [torch==2.13.0, {name: flash-attn, '
            "build: true}]\n",
            "{name: flash-attn, build: true}",
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]==4.51.3", peft, '
            "bitsandbytes==0.45.5]\ntraining: {method: qlora}\n",
            "qlora",
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5", '
            "bitsandbytes]\ntraining: {optimizer: adamw_bnb_8bit}\n",
            "adamw_bnb_8bit",
            ResolvedSet(
                {
                    "torch": "2.13.0",
                    "transformers": "5.13.1",
                    "accelerate": "1.15.0",
                    "bitsandbytes": "0.49.2",
                },
                "3.11",
                "cpu",
            ),
        ),
        Example(
            'gpu: mps\npython: "3.11"\npackages: ["transformers[torch]>=5", '
            "bitsandbytes]\nplatforms: [macos-arm64]\ntraining: {optimizer: "
            "adamw_bnb_8bit}\n",
            "adamw_bnb_8bit",
        ),
        Example(
            'gpu: none\npython: "3.11"\npackages: [torch==2.3.1, "numpy<2", '
            '"transformers[torch]==4.44.2"]\ntraining: {optimizer: adamw_torch_fused}\n',
            "adamw_torch_fused",
        ),
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5", peft, '
        "bitsandbytes]\ntraining: {method: qlora}\n",
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5", '
        '"bitsandbytes>=0.50"]\ntraining: {optimizer: adamw_bnb_8bit}\n',
        'gpu: none\npython: "3.11"\npackages: [torch==2.4.0, '
        '"transformers[torch]==4.44.2"]\ntraining: {optimizer: adamw_torch_fused}\n',
        'gpu: L4\npython: "3.11"\npackages: [torch==2.8.0, {name: flash-attn, build: true}]\n',
    ),
)
