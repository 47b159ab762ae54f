"""Rules for the training that a spec declares."""

NVIDIA_ONLY = frozenset(
    {
        "deepspeed_needs_nvcc",
        "gpus_without_strategy",
    }
)
