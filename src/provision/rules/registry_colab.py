"""The rules that are asked where a target is a Colab runtime."""

from __future__ import annotations

from provision.rules.colab import (
    cli_runtime,
    drive_not_mounted,
    gpu_not_offered,
    kernel_dies,
    kernel_package,
    one_gpu,
    paid_gpu,
    pinned,
    python_differs,
    restart,
    runtime_ending,
    runtime_moves,
    runtime_unknown,
    torch_replaced,
)
from provision.rules.colab_enterprise import enterprise_python
from provision.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    python_differs.RULE,
    runtime_unknown.RULE,
    runtime_moves.RULE,
    cli_runtime.RULE,
    runtime_ending.RULE,
    gpu_not_offered.RULE,
    one_gpu.RULE,
    paid_gpu.RULE,
    kernel_dies.RULE,
    kernel_package.RULE,
    restart.RULE,
    pinned.RULE,
    torch_replaced.RULE,
    enterprise_python.RULE,
    drive_not_mounted.RULE,
)
