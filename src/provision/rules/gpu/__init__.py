"""Rules for the GPU and its precisions."""

NVIDIA_ONLY = frozenset(
    {
        "capability_beyond_card",
        "card_not_in_build",
        "fp16_without_tensor_cores",
        "framework_without_cuda",
        "gpu_unknown",
        "precision_beyond_card",
        "tf32_not_default",
    }
)
