"""The rules that are asked where a target has an NVIDIA card."""

from __future__ import annotations

from provision.rules.cuda import (
    cudnn_without_card,
    default_build_unfit,
    driver_not_for_card,
    driver_unknown,
    place_too_old,
    required_driver_not_there,
    required_driver_too_low,
    toolkit_major_differs,
    toolkit_without_card,
)
from provision.rules.env import devices_hidden
from provision.rules.gpu import (
    capability_beyond_card,
    card_not_in_build,
    fp16_without_tensor_cores,
    gpu_unknown,
    precision_beyond_card,
    tf32_not_default,
)
from provision.rules.memory import gpu_memory, vram_beyond_card
from provision.rules.packages import (
    bitsandbytes_binary_missing,
    package_beyond_card,
    package_built_for_other_cuda,
)
from provision.rules.rule import Rule
from provision.rules.training import deepspeed_needs_nvcc, gpus_without_strategy

RULES: tuple[Rule, ...] = (
    place_too_old.RULE,
    driver_not_for_card.RULE,
    required_driver_not_there.RULE,
    required_driver_too_low.RULE,
    driver_unknown.RULE,
    default_build_unfit.RULE,
    toolkit_major_differs.RULE,
    toolkit_without_card.RULE,
    cudnn_without_card.RULE,
    gpu_unknown.RULE,
    precision_beyond_card.RULE,
    gpu_memory.RULE,
    vram_beyond_card.RULE,
    card_not_in_build.RULE,
    fp16_without_tensor_cores.RULE,
    tf32_not_default.RULE,
    capability_beyond_card.RULE,
    bitsandbytes_binary_missing.RULE,
    package_built_for_other_cuda.RULE,
    package_beyond_card.RULE,
    gpus_without_strategy.RULE,
    deepspeed_needs_nvcc.RULE,
    devices_hidden.RULE,
)
