"""A package or setting needs an NVIDIA GPU, and no target has one.

## What it does

If no target has an NVIDIA GPU, looks for flash-attn, which consists only of CUDA code; for `method:
qlora` and 8-bit optimizers with a bitsandbytes release that supports them only on CUDA; and for
`optimizer: adamw_torch_fused` with a torch that supports it only on CUDA.

## Why

flash-attn cannot be built without CUDA. bitsandbytes and torch install, and fail when training
starts.

## How to fix

Remove the package, use the release that the finding names, or request a GPU.
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
    example,
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
        is_built = package.package and package.package.is_built
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
            why = "The package is CUDA code, compiled with nvcc."
            help_text = f"remove {package.name}, or request a GPU"
            if what:
                why = f"It does not support this {device}{f' before {first}' if first else ''}."
                help_text = f"use {row.package}>={first}" if first else "use a different optimizer"
            yield RULE.diagnostic(
                f"{package.description} needs an NVIDIA GPU{what}, but `gpu` is {gpu}",
                route or origin_route(context, package, ("packages",)),
                severity=severity,
                evidence=row.evidence,
                why=why,
                help=help_text,
                related=related_at(gpu_route, "gpu set here")
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
    reads_settings=True,
    bad=examples(
        Example(
            'gpu: none\npython: "3.11"\n'
            "packages: [ninja, packaging, psutil, setuptools, wheel, "
            "torch==2.13.0, {name: flash-attn, build: true}]\n",
            "{name: flash-attn, build: true}",
        ),
        'gpu: none\npython: "3.11"\n'
        'packages: ["transformers[torch]==4.51.3", peft, bitsandbytes==0.45.5]\n'
        "training: {method: «qlora»}\n",
        example(
            'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5", bitsandbytes]\n'
            "training: {optimizer: «adamw_bnb_8bit»}\n",
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
        'gpu: mps\npython: "3.11"\npackages: ["transformers[torch]>=5", bitsandbytes]\n'
        "platforms: [macos-arm64]\ntraining: {optimizer: «adamw_bnb_8bit»}\n",
        'gpu: none\npython: "3.11"\n'
        'packages: [torch==2.3.1, "numpy<2", "transformers[torch]==4.44.2"]\n'
        "training: {optimizer: «adamw_torch_fused»}\n",
    ),
    good=examples(
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5", peft, bitsandbytes]\n'
        "training: {method: qlora}\n",
        'gpu: none\npython: "3.11"\npackages: ["transformers[torch]>=5", "bitsandbytes>=0.50"]\n'
        "training: {optimizer: adamw_bnb_8bit}\n",
        'gpu: none\npython: "3.11"\npackages: [torch==2.4.0, "transformers[torch]==4.44.2"]\n'
        "training: {optimizer: adamw_torch_fused}\n",
        'gpu: L4\npython: "3.11"\npackages: [ninja, packaging, psutil, setuptools, wheel, '
        "torch==2.8.0, {name: flash-attn, build: true}]\n",
    ),
)
