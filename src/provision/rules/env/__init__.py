"""Rules for environment variables."""

NVIDIA_ONLY = frozenset(
    {
        "devices_hidden",
    }
)
