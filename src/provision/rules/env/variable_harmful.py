"""An environment variable slows training down, changes its results, or has no effect.

## What it does

Looks up the variables of `env` in a table of variables that hinder training, with the values and
the conditions under which they do: a switch for several GPUs is ignored if there is a single GPU,
and a variable that newer releases no longer read is ignored if an older release is requested.

## Why

A variable that was set once to find a bug stays in the file. From then on every run waits for every
GPU kernel, computes in a different precision or loads different libraries than those in the lock,
without any message.

## How to fix

Remove the variable. Set a value for one run in the shell of that run; use the spec's field for a
permanent setting.
"""

from __future__ import annotations

from provision.diagnostics import (
    Replace,
    RouteLocation,
    RoutePart,
    Severity,
)
from provision.facts.schema_variables import VariableEffect
from provision.rules.edits import unsafe_fix
from provision.rules.package_requirements import is_excluded
from provision.rules.rule import Findings, LintContext, ResolvedSet, Rule, example, examples
from provision.spec import Precision


def _check(context: LintContext) -> Findings:
    for name, value in context.spec.env.items():
        for row in context.facts.variables.get(name, ()):
            if not (row.applies_to(value) and _applies(context, row) and _has_effect(context, row)):
                continue
            fix = None
            help_text = row.cure or "remove it"
            if row.instead:
                key = RouteLocation(("env", name), RoutePart.KEY)
                fix = unsafe_fix(f"use {row.instead}", Replace(key, row.instead))
                help_text = row.cure or f"use {row.instead} instead"
            yield RULE.diagnostic(
                f"{name}={value}: {row.effect}" if len(value) <= 40 else f"{name}: {row.effect}",
                ("env", name),
                severity=Severity(row.severity),
                evidence=row.evidence,
                why=(
                    "Variables in `env` are set for every run on every target, and nothing in "
                    "the logs shows when one is ignored or harmful."
                ),
                help=help_text,
                fix=fix,
                source=row.evidence.source,
            )


def _applies(context: LintContext, row: VariableEffect) -> bool:
    """Return whether the row applies to an admitted release, or because of a missing package."""
    if not any(is_excluded(context, name, specifier) for name, specifier in row.holds_for.items()):
        return True
    return bool(row.else_without) and row.else_without not in context.package_names


def _has_effect(context: LintContext, row: VariableEffect) -> bool:
    """Return whether there is anything the variable could hinder."""
    training = context.spec.training
    cards = [
        target
        for target in context.targets
        if target.gpu_settings.is_nvidia
        and not (target.card and target.card.name.startswith(row.except_cards or ("?",)))
    ]
    match row.at:
        case "cuda":
            return bool(cards)
        case "several":
            return any(target.gpu_settings.gpu.count > 1 for target in cards)
        case "mps":
            return any(target.gpu_settings.gpu.type == "mps" for target in context.targets)
        case "workers":
            return training.dataloader_workers > 0
        case "compile":
            return training.torch_compile
        case "tf32":
            return training.precision is Precision.TF32
    return True


RULE = Rule(
    id="ENV010",
    name="variable-harmful",
    severity=Severity.WARNING,
    sources=(
        "docs.pytorch.org, CUDA Environment Variables",
        "NVIDIA NCCL and DCGM documentation",
        "the wheels that read them: `provision facts list variable`",
    ),
    check=_check,
    reads_settings=True,
    bad=examples(
        'gpu: L4\npython: "3.12"\npackages: []\nenv: {CUDA_LAUNCH_BLOCKING: «"1"»}\n',
        'gpu: L4\npython: "3.12"\npackages: []\nenv: {LD_LIBRARY_PATH: «/usr/local/cuda/lib64»}\n',
        "gpu: L4:2\npython: \"3.12\"\npackages: []\nenv: {NCCL_P2P_DISABLE: «'1'»}\n",
        'gpu: L4\npython: "3.12"\npackages: []\nenv: {TRANSFORMERS_CACHE: «/data/hf»}\n',
        'gpu: L4\npython: "3.12"\npackages: []\nenv: {HF_HUB_OFFLINE: «"1"»}\n',
        'gpu: L4\npython: "3.12"\npackages: [huggingface-hub==0.30.2]\n'
        'env: {HF_HUB_ENABLE_HF_TRANSFER: «"1"»}\n',
        'gpu: L4\npython: "3.12"\npackages: []\nenv: {TF_FORCE_GPU_ALLOW_GROWTH: «"1"»}\n',
        'gpu: L4\npython: "3.12"\npackages: []\nenv: {XLA_PYTHON_CLIENT_PREALLOCATE: «"no"»}\n',
        'gpu: L4\npython: "3.12"\npackages: []\nenv: {XLA_PYTHON_CLIENT_ALLOCATOR: «malloc»}\n',
        'gpu: L4\npython: "3.12"\npackages: []\nenv: {XLA_PYTHON_CLIENT_MEM_FRACTION: «50%»}\n',
        example(
            'gpu: L4\npython: "3.12"\npackages: [transformers>=4.57, accelerate]\n'
            'env: {WANDB_DISABLED: «"true"»}\n',
            ResolvedSet(
                {"torch": "2.13.0", "transformers": "5.13.1", "accelerate": "1.15.0"},
                "3.12",
                "cu130",
            ),
        ),
    ),
    good=examples(
        'gpu: L4\npython: "3.12"\npackages: []\n'
        'env: {CUDA_LAUNCH_BLOCKING: "0", PYTORCH_ALLOC_CONF: "expandable_segments:True"}\n',
        'gpu: L4\npython: "3.12"\npackages: []\nenv: {NCCL_P2P_DISABLE: "1"}\n',
        'gpu: L4\npython: "3.12"\npackages: []\nenv: {TF_FORCE_GPU_ALLOW_GROWTH: "true", '
        'XLA_PYTHON_CLIENT_MEM_FRACTION: ".5", XLA_PYTHON_CLIENT_ALLOCATOR: bfc, '
        'XLA_PYTHON_CLIENT_PREALLOCATE: "0"}\n',
        'gpu: L4\npython: "3.12"\npackages: [transformers==4.57.6, accelerate]\n'
        'env: {WANDB_DISABLED: "true", TRANSFORMERS_CACHE: /data/hf}\n',
        'gpu: L4\npython: "3.12"\npackages: [huggingface-hub==0.30.2, hf_transfer]\n'
        'env: {HF_HUB_ENABLE_HF_TRANSFER: "1"}\n',
        'gpu: none\npython: "3.12"\npackages: []\n'
        'env: {CUDA_LAUNCH_BLOCKING: "1", TOKENIZERS_PARALLELISM: "true"}\n',
    ),
)
