"""Rules for CUDA: builds of torch, drivers and the toolkit."""

NVIDIA_ONLY = frozenset(
    {
        "cudnn_without_card",
        "default_build_unfit",
        "driver_not_for_card",
        "driver_unknown",
        "place_too_old",
        "required_driver_not_there",
        "required_driver_too_low",
        "toolkit_major_differs",
        "toolkit_without_card",
    }
)
