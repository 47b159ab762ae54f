"""The rules that are asked where a target has an NVIDIA card."""

from __future__ import annotations

from provision.rules import (
    cud_cudnn_without_card,
    cud_default_build_unfit,
    cud_driver_not_for_card,
    cud_driver_unknown,
    cud_place_too_old,
    cud_required_driver_not_there,
    cud_required_driver_too_low,
    cud_toolkit_major_differs,
    cud_toolkit_without_card,
    env_devices_hidden,
    gpu_capability_beyond_card,
    gpu_card_not_in_build,
    gpu_fp16_without_tensor_cores,
    gpu_name_unknown,
    gpu_precision_beyond_card,
    gpu_tf32_not_default,
    mem_gpu_memory,
    mem_requires_vram,
    pkg_beyond_card,
    pkg_bitsandbytes_binary_missing,
    trn_deepspeed_needs_nvcc,
    trn_gpus_without_strategy,
)
from provision.rules.rule import Rule

RULES: tuple[Rule, ...] = (
    cud_place_too_old.RULE,
    cud_driver_not_for_card.RULE,
    cud_required_driver_not_there.RULE,
    cud_required_driver_too_low.RULE,
    cud_driver_unknown.RULE,
    cud_default_build_unfit.RULE,
    cud_toolkit_major_differs.RULE,
    cud_toolkit_without_card.RULE,
    cud_cudnn_without_card.RULE,
    gpu_name_unknown.RULE,
    gpu_precision_beyond_card.RULE,
    mem_gpu_memory.RULE,
    mem_requires_vram.RULE,
    gpu_card_not_in_build.RULE,
    gpu_fp16_without_tensor_cores.RULE,
    gpu_tf32_not_default.RULE,
    gpu_capability_beyond_card.RULE,
    pkg_bitsandbytes_binary_missing.RULE,
    pkg_beyond_card.RULE,
    trn_gpus_without_strategy.RULE,
    trn_deepspeed_needs_nvcc.RULE,
    env_devices_hidden.RULE,
)
