"""A precision that Apple silicon does not have, or has only with a newer torch or macOS.

## What it does

For `gpu: mps`, looks up what `training.precision` needs there: fp16 torch 2.5, with Trainer torch
2.8 and accelerate 1.11; bf16 torch 2.6 and macOS 14; tf32 and fp8 are NVIDIA's.

## Why

accelerate, and so Trainer, refuses fp16 and bf16 on MPS with an older torch, and from 0.30 to 1.10
fp16 with any: "fp16 mixed precision requires a GPU (not 'mps')". M1 and M2 do not compute bf16 in
hardware, but in fp32.

## How to fix

Declare fp32, or raise the bound of torch or accelerate.
"""

from __future__ import annotations

from provision.diagnostics import Severity
from provision.facts.schema_torch import MpsPrecision
from provision.facts.versions import has_version_in_range, parse_specifiers, require_version
from provision.rules.package_requirements import requested_package
from provision.rules.rule import (
    Example,
    Findings,
    LintContext,
    ResolvedSet,
    Rule,
    examples,
    related_at,
)
from provision.rules.torch_builds import possible_torch_releases


def _check(context: LintContext) -> Findings:
    precision = context.spec.training.precision
    for route in dict.fromkeys(
        device.gpu_route for device in context.devices if device.gpu.type == "mps"
    ):
        row = context.facts.mps.get(precision.value)
        if row is None:
            problem: _Problem | None = _unsupported(context)
        else:
            problem = _old_torch(context, row) or _old_accelerate(context, row) or _old_macos(row)
        if problem is not None:
            message, why, help_text, severity = problem
            yield RULE.diagnostic(
                message,
                ("training", "precision"),
                severity=severity,
                why=why,
                help=help_text,
                related=related_at(route, "MPS asked for here"),
            )


_Problem = tuple[str, str, str, Severity]


def _unsupported(context: LintContext) -> _Problem:
    precision = context.spec.training.precision.value
    return (
        f"precision: {precision} is declared for gpu: mps",
        "It is a format of NVIDIA's hardware.",
        "write precision: fp32, or bf16",
        Severity.ERROR,
    )


def _old_torch(context: LintContext, row: MpsPrecision) -> _Problem | None:
    releases = possible_torch_releases(context)
    trainer = context.uses_trainer
    needed = (row.trainer_torch if trainer else "") or row.torch
    if (
        releases is None
        or not releases.known
        or releases.includes_newer
        or require_version(releases.known[-1]) >= require_version(needed)
    ):
        return None
    return (
        (
            f"precision: {row.precision} on MPS needs torch {needed}, and {releases.requested} "
            f"admits {releases.known[-1]} at most"
        ),
        "accelerate, and so Trainer, refuses it."
        if trainer
        else "Older releases have it in part only.",
        f"ask for torch>={needed}, or write precision: fp32",
        row.evidence.cap_severity(Severity.ERROR) if trainer else Severity.WARNING,
    )


def _old_accelerate(context: LintContext, row: MpsPrecision) -> _Problem | None:
    package = None
    if row.accelerate and context.uses_trainer:
        package = requested_package(context, "accelerate")
    admits = (
        parse_specifiers(package.specifiers) if package is not None and package.specifiers else None
    )
    if (
        package is None
        or admits is None
        or has_version_in_range(admits, row.accelerate)
        or has_version_in_range(admits, "0", row.refused_first)
    ):
        return None
    return (
        (
            f"precision: {row.precision} on MPS needs accelerate {row.accelerate}, and "
            f"{package.description} is asked for"
        ),
        f"Trainer ends in \"{row.precision} mixed precision requires a GPU (not 'mps')\".",
        f"ask for accelerate>={row.accelerate}, or write precision: fp32",
        row.evidence.cap_severity(Severity.ERROR),
    )


def _old_macos(row: MpsPrecision) -> _Problem | None:
    if not row.macos:
        return None
    return (
        f"precision: {row.precision} on MPS needs macOS {row.macos}",
        "Older ones refuse it; M1 and M2 compute it in fp32.",
        "look with `sw_vers -productVersion`; nothing needs to change if it is newer",
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
    bad=(
        Example(
            'gpu: mps\npython: "3.12"\npackages: ["transformers[torch]"]\nplatforms: '
            "[macos-arm64]\ntraining: {precision: fp8}\n",
            "fp8",
            other_ids=("TRN015",),
        ),
        Example(
            'gpu: mps\npython: "3.12"\npackages: [torch==2.5.1]\nplatforms: '
            "[macos-arm64]\ntraining: {precision: bf16}\n",
            "bf16",
        ),
        Example(
            'gpu: mps\npython: "3.12"\npackages: [torch, '
            '"transformers[torch]>=5.1"]\nplatforms: [macos-arm64]\ntraining: {precision: '
            "fp16}\n",
            "fp16",
            ResolvedSet(
                {"torch": "2.4.1", "transformers": "5.1.0", "accelerate": "1.3.0"}, "3.12", "cpu"
            ),
            other_ids=("PKG024",),
        ),
        Example(
            'gpu: mps\npython: "3.12"\npackages: [torch, "transformers[torch]>=4.57", '
            '"accelerate<1.11,>=1.5"]\n'
            "platforms: [macos-arm64]\ntraining: {precision: fp16}\n",
            "fp16",
        ),
        Example(
            'gpu: mps\npython: "3.12"\npackages: [torch, '
            '"transformers[torch]>=5.1"]\nplatforms: [macos-arm64]\ntraining: {precision: '
            "fp16}\n",
            "fp16",
            ResolvedSet(
                {"torch": "2.7.1", "transformers": "5.1.0", "accelerate": "1.12.0"}, "3.12", "cpu"
            ),
        ),
        Example(
            'gpu: mps\npython: "3.12"\npackages: [torch==2.6.0]\nplatforms: '
            "[macos-arm64]\ntraining: {precision: bf16}\n",
            "bf16",
        ),
    ),
    good=(
        *examples(
            'gpu: mps\npython: "3.12"\npackages: [torch==2.5.0]\nplatforms: '
            "[macos-arm64]\ntraining: {precision: fp16}\n",
            'gpu: mps\npython: "3.12"\npackages: [torch]\nplatforms: [macos-arm64]\n',
            'gpu: mps\npython: "3.12"\npackages: ["torch>=2.8", '
            '"transformers[torch]>=5.1", "accelerate>=1.10"]\n'
            "platforms: [macos-arm64]\ntraining: {precision: fp16}\n",
        ),
        Example(
            'gpu: mps\npython: "3.12"\npackages: [torch, '
            '"transformers[torch]>=5.1"]\nplatforms: [macos-arm64]\ntraining: {precision: '
            "fp16}\n",
            resolved=ResolvedSet(
                {"torch": "2.9.1", "transformers": "5.1.0", "accelerate": "1.12.0"}, "3.12", "cpu"
            ),
        ),
    ),
)
