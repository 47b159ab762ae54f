"""The rules that are asked where a target is a Colab runtime."""

from __future__ import annotations

from provision.rules import (
    img_colab_cli_runtime,
    img_colab_gpu_not_offered,
    img_colab_kernel_dies,
    img_colab_kernel_package,
    img_colab_one_gpu,
    img_colab_paid_gpu,
    img_colab_pinned,
    img_colab_python_differs,
    img_colab_restart,
    img_colab_runtime_ending,
    img_colab_runtime_moves,
    img_colab_runtime_unknown,
    img_colab_torch_replaced,
    img_enterprise_python,
    ref_drive_not_mounted,
)
from provision.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    img_colab_python_differs.RULE,
    img_colab_runtime_unknown.RULE,
    img_colab_runtime_moves.RULE,
    img_colab_cli_runtime.RULE,
    img_colab_runtime_ending.RULE,
    img_colab_gpu_not_offered.RULE,
    img_colab_one_gpu.RULE,
    img_colab_paid_gpu.RULE,
    img_colab_kernel_dies.RULE,
    img_colab_kernel_package.RULE,
    img_colab_restart.RULE,
    img_colab_pinned.RULE,
    img_colab_torch_replaced.RULE,
    img_enterprise_python.RULE,
    ref_drive_not_mounted.RULE,
)
