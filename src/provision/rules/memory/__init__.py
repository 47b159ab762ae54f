"""Rules for memory and disk."""

NVIDIA_ONLY = frozenset(
    {
        "gpu_memory",
        "vram_beyond_card",
    }
)
