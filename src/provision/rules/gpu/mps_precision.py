"""A precision that Apple silicon does not support, or only with a newer torch or macOS.

## What it does

For `gpu: mps`, looks up the requirements of `training.precision`: fp16 requires torch 2.5, and with
Trainer torch 2.8 and accelerate 1.11; bf16 requires torch 2.6 and macOS 14; tf32 and fp8 are
NVIDIA's.

## Why

accelerate, and so Trainer, rejects fp16 and bf16 on MPS with an older torch, and from 0.30 to 1.10
fp16 with any: "fp16 mixed precision requires a GPU (not 'mps')". M1 and M2 do not compute bf16 in
hardware, but in fp32.

## How to fix

Set fp32, or raise the bound of torch or accelerate.
"""

from __future__ import annotations

from typing import NamedTuple

from provision.diagnostics import Severity
from provision.facts.schema_torch import MpsPrecision
from provision.facts.versions import require_version
from provision.rules.package_requirements import requested_package
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
from provision.rules.torch_builds import possible_torch_releases


class _Problem(NamedTuple):
    message: str
    why: str
    help: str
    severity: Severity


def _check(context: LintContext) -> Findings:
    routes = {device.gpu_route: None for device in context.devices if device.gpu.type == "mps"}
    problem = _find_problem(context) if routes else None
    if problem is None:
        return
    for route in routes:
        yield RULE.diagnostic(
            problem.message,
            ("training", "precision"),
            severity=problem.severity,
            why=problem.why,
            help=problem.help,
            related=related_at(route, "GPU requested here"),
        )


def _find_problem(context: LintContext) -> _Problem | None:
    precision = context.spec.training.precision.value
    row = context.facts.mps.get(precision)
    if row is None:
        return _Problem(
            f"`gpu: mps` does not support `precision: {precision}`",
            "This format needs NVIDIA hardware.",
            "set `precision: fp32` or `precision: bf16`",
            Severity.ERROR,
        )
    return _old_torch(context, row) or _old_accelerate(context, row) or _old_macos(row)


def _old_torch(context: LintContext, row: MpsPrecision) -> _Problem | None:
    releases = possible_torch_releases(context)
    needed = row.torch
    why, severity = "Older releases support it only partly.", Severity.WARNING
    if context.uses_trainer:
        needed = row.trainer_torch or row.torch
        why = "With an older release, accelerate rejects it, and so does Trainer."
        severity = row.evidence.cap_severity(Severity.ERROR)
    if (
        releases is None
        or not releases.known
        or releases.includes_newer
        or require_version(releases.known[-1]) >= require_version(needed)
    ):
        return None
    return _Problem(
        f"`precision: {row.precision}` on MPS requires torch {needed} or newer, but "
        f"{releases.requested} admits at most {releases.known[-1]}",
        why,
        f"use torch>={needed}, or set `precision: fp32`",
        severity,
    )


def _old_accelerate(context: LintContext, row: MpsPrecision) -> _Problem | None:
    if not row.accelerate or not context.uses_trainer:
        return None
    package = requested_package(context, "accelerate")
    if (
        package is None
        or not package.specifiers
        or package.may_be(row.accelerate)
        or package.may_be("0", row.refused_first)
    ):
        return None
    return _Problem(
        f"`precision: {row.precision}` on MPS requires accelerate {row.accelerate} or newer, but "
        f"{package.description} is {context.chosen}",
        f"Trainer fails with \"{row.precision} mixed precision requires a GPU (not 'mps')\".",
        f"use accelerate>={row.accelerate}, or set `precision: fp32`",
        row.evidence.cap_severity(Severity.ERROR),
    )


def _old_macos(row: MpsPrecision) -> _Problem | None:
    if not row.macos:
        return None
    return _Problem(
        f"`precision: {row.precision}` on MPS requires macOS {row.macos} or newer",
        "Older versions reject it; M1 and M2 chips compute it in fp32.",
        "check the macOS version with `sw_vers -productVersion`",
        Severity.INFO,
    )


RULE = Rule(
    id="GPU008",
    name="mps-precision",
    severity=Severity.ERROR,
    sources=(
        "accelerator.py and utils/modeling.py of accelerate 0.29.3 to 1.15.0",
        "is_torch_bf16_gpu_available in utils/import_utils.py of transformers 5.23.0",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        example(
            'gpu: mps\npython: "3.12"\npackages: ["transformers[torch]"]\n'
            "platforms: [macos-arm64]\ntraining: {precision: «fp8»}\n",
            other_ids=("TRN015",),
        ),
        'gpu: mps\npython: "3.12"\npackages: [torch==2.5.1]\nplatforms: [macos-arm64]\n'
        "training: {precision: «bf16»}\n",
        example(
            'gpu: mps\npython: "3.12"\npackages: [torch, "transformers[torch]>=5.1"]\n'
            "platforms: [macos-arm64]\ntraining: {precision: «fp16»}\n",
            ResolvedSet(
                {"torch": "2.4.1", "transformers": "5.1.0", "accelerate": "1.3.0"}, "3.12", "cpu"
            ),
            other_ids=("PKG024",),
        ),
        'gpu: mps\npython: "3.12"\n'
        'packages: [torch, "transformers[torch]>=4.57", "accelerate<1.11,>=1.5"]\n'
        "platforms: [macos-arm64]\ntraining: {precision: «fp16»}\n",
        example(
            'gpu: mps\npython: "3.12"\npackages: [torch, "transformers[torch]>=5.1"]\n'
            "platforms: [macos-arm64]\ntraining: {precision: «fp16»}\n",
            ResolvedSet(
                {"torch": "2.7.1", "transformers": "5.1.0", "accelerate": "1.12.0"}, "3.12", "cpu"
            ),
        ),
        'gpu: mps\npython: "3.12"\npackages: [torch==2.6.0]\nplatforms: [macos-arm64]\n'
        "training: {precision: «bf16»}\n",
    ),
    good=examples(
        'gpu: mps\npython: "3.12"\npackages: [torch==2.5.0]\nplatforms: [macos-arm64]\n'
        "training: {precision: fp16}\n",
        'gpu: mps\npython: "3.12"\npackages: [torch]\nplatforms: [macos-arm64]\n',
        'gpu: mps\npython: "3.12"\n'
        'packages: ["torch>=2.8", "transformers[torch]>=5.1", "accelerate>=1.10"]\n'
        "platforms: [macos-arm64]\ntraining: {precision: fp16}\n",
        Example(
            'gpu: mps\npython: "3.12"\npackages: [torch, "transformers[torch]>=5.1"]\n'
            "platforms: [macos-arm64]\ntraining: {precision: fp16}\n",
            resolved=ResolvedSet(
                {"torch": "2.9.1", "transformers": "5.1.0", "accelerate": "1.12.0"}, "3.12", "cpu"
            ),
        ),
    ),
)
