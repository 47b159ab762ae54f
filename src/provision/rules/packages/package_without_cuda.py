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

from provision.diagnostics import Diagnostic, Route, Severity
from provision.facts.schema_packages import CudaOnlyUse
from provision.facts.versions import has_version_in_range, next_version, parse_specifiers
from provision.rules.package_requirements import RequestedPackage, origin_route, requested_package
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
    kinds = {device.gpu.type: device.gpu_route for device in context.devices}
    if not kinds.keys() <= {"none", "mps"}:
        return
    for row in context.facts.cuda_only:
        route = _use_route(context, row)
        package = requested_package(context, row.package) if route is not None else None
        if (
            route is None
            or package is None
            or (
                row.package == "flash-attn"
                and not (package.package and package.package.build)
                and context.resolved is None
            )
        ):
            continue
        for kind, gpu_route in kinds.items():
            severity = _severity(row, package, row.mps if kind == "mps" else row.cpu)
            if severity is not None:
                yield _finding(context, row, package, kind, gpu_route, severity, route)
                break


def _use_route(context: LintContext, row: CudaOnlyUse) -> Route | None:
    """Return the route that requests a use, () for the package's line, or None."""
    training = context.spec.training
    if row.use == "any":
        return ()
    if row.use == "4-bit":
        return ("training", "method") if training.method == "qlora" else None
    if not context.uses_trainer or training.method == "inference":
        return None
    name = context.facts.optimizer_names.get(training.optimizer)
    eight_bit = (
        name is not None and name.needs == row.package and training.optimizer.endswith("8bit")
    )
    if training.optimizer == row.use or (row.use == "8-bit optimizers" and eight_bit):
        return ("training", "optimizer")
    return None


def _severity(row: CudaOnlyUse, package: RequestedPackage, first: str) -> Severity | None:
    """Return the severity for a requested release; None if it may run without CUDA."""
    if not first and not row.read:
        return row.evidence.cap_severity(Severity.ERROR)
    open_end = not package.specifiers or has_version_in_range(
        parse_specifiers(package.specifiers), first or next_version(row.read)
    )
    if open_end:
        return None if first else Severity.WARNING
    return row.evidence.cap_severity(Severity.ERROR)


def _finding(
    context: LintContext,
    row: CudaOnlyUse,
    package: RequestedPackage,
    kind: str,
    gpu_route: Route,
    severity: Severity,
    route: Route,
) -> Diagnostic:
    first, device = (row.mps, "on Apple silicon") if kind == "mps" else (row.cpu, "on a CPU")
    if row.use == "any":
        why = "It is CUDA code, and is compiled with nvcc."
        help_text = f"leave {package.name} out, or ask for a card"
    elif first:
        why = f"It has no code for that {device} before {first}."
        help_text = f"ask for {row.package}>={first}"
    else:
        why = f"It has no code for that {device}."
        help_text = "take another optimizer"
    what = ""
    if row.use == "4-bit":
        what = f" for {context.spec.training.method}"
    elif row.use != "any":
        what = f" for {context.spec.training.optimizer}"
    return RULE.diagnostic(
        f"{package.description} needs an NVIDIA card{what}, and gpu is {kind}",
        route or origin_route(context, package, ("packages",)),
        severity=severity,
        why=why,
        help=help_text,
        related=related_at(gpu_route, "gpu asked for here")
        if "gpu" in context.spec.model_fields_set
        else (),
    )


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
