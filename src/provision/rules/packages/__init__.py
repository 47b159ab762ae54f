"""Rules for packages and their indexes."""

NVIDIA_ONLY = frozenset(
    {
        "bitsandbytes_binary_missing",
        "package_beyond_card",
        "package_built_for_other_cuda",
    }
)
