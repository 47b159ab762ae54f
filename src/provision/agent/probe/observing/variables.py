"""Environment variables that slow training down or change its results, each with the reason."""

from __future__ import annotations

import os
import re
from pathlib import Path

HARMFUL_VARIABLES: dict[str, str] = {
    # The first ten are those that NVIDIA DCGM's software plugin refuses (dcgm 4.6,
    # nvvs/plugin_src/software).
    "NSIGHT_CUDA_DEBUGGER": "attaches the Nsight debugger to every CUDA program",
    "CUDA_INJECTION32_PATH": "loads a tracing library into every CUDA program",
    "CUDA_INJECTION64_PATH": "loads a tracing library into every CUDA program",
    "CUDA_AUTO_BOOST": "changes the GPU's clocks for this process",
    "CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "writes GPU core dumps",
    "CUDA_COREDUMP_FILE": "writes GPU core dumps",
    "CUDA_DEVICE_WAITS_ON_EXCEPTION": "on a GPU error, the program stops and waits for a debugger",
    "CUDA_PROFILE": "turns on CUDA profiling",
    "COMPUTE_PROFILE": "turns on CUDA profiling",
    "OPENCL_PROFILE": "turns on OpenCL profiling",
    "CUDA_LAUNCH_BLOCKING": (
        "the program waits for each GPU kernel to finish, which makes training much slower (CUDA "
        "programming guide, environment variables)"
    ),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": (
        "every tensor is allocated by the driver; training becomes much slower (PyTorch, CUDA "
        "environment variables)"
    ),
    "NVIDIA_TF32_OVERRIDE": (
        "forces TF32 on or off underneath PyTorch, so fp32 results change (cuBLAS, cuDNN)"
    ),
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": (
        "lets fp32 matrix products run as TF32, so fp32 results change (PyTorch, CUDA environment"
        " variables)"
    ),
    "CUDA_CACHE_DISABLE": (
        "GPU code is recompiled at each start (CUDA programming guide, environment variables)"
    ),
    "CUDA_FORCE_PTX_JIT": (
        "the GPU code of the wheels is ignored and recompiled (CUDA programming guide, "
        "environment variables)"
    ),
    "TORCHDYNAMO_DISABLE": "torch.compile does nothing (PyTorch, torch._dynamo)",
    "TORCH_COMPILE_DISABLE": "torch.compile does nothing (PyTorch, torch._dynamo.config)",
    "ACCELERATE_USE_CPU": "Trainer and Accelerate do not use the GPU (accelerate, state.py)",
    "ACCELERATE_MIXED_PRECISION": (
        "changes the precision that Accelerate uses (accelerate, state.py)"
    ),
    "RANK": "the program acts as one of several processes and waits for the others (torchrun, "
    "environment variables)",
    "WORLD_SIZE": "the program acts as one of several processes and waits for "
    "the others (torchrun, "
    "environment variables)",
    "LOCAL_RANK": "the program acts as one of several processes and waits for "
    "the others (torchrun, "
    "environment variables)",
    "NCCL_P2P_DISABLE": (
        "GPUs communicate through host memory instead of NVLink or PCIe (NCCL, "
        "environment variables)"
    ),
    "LD_PRELOAD": "loads a library into every program before its own libraries",
    "LD_LIBRARY_PATH": "libraries of the host can replace the libraries in the wheels",
    "MKL_CBWR": "fixes MKL's instruction set, so results change",
    "ATEN_CPU_CAPABILITY": "fixes PyTorch's CPU instruction set, so results change",
    "PYTHONPATH": "modules outside the environment are imported first",
    "PYTHONHOME": "Python uses the standard library in a different folder",
    "PYTHONOPTIMIZE": "assert statements are removed",
    "PYTHONDEVMODE": "Python runs additional checks and is slower",
    "PYTHONMALLOC": "Python uses a different allocator; debug allocators are slower",
    "PYTHONTRACEMALLOC": "Python records every memory allocation and is slower",
}

SWITCHES = frozenset(
    {
        *(
            "NSIGHT_CUDA_DEBUGGER",
            "CUDA_ENABLE_COREDUMP_ON_EXCEPTION",
            "CUDA_DEVICE_WAITS_ON_EXCEPTION",
            "CUDA_PROFILE",
            "COMPUTE_PROFILE",
            "OPENCL_PROFILE",
        ),
        *(
            "CUDA_LAUNCH_BLOCKING",
            "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
            "CUDA_CACHE_DISABLE",
            "CUDA_FORCE_PTX_JIT",
            "TORCHDYNAMO_DISABLE",
        ),
        *(
            "TORCH_COMPILE_DISABLE",
            "ACCELERATE_USE_CPU",
            "NCCL_P2P_DISABLE",
            "PYTHONOPTIMIZE",
            "PYTHONDEVMODE",
            "PYTHONTRACEMALLOC",
        ),
    }
)
"""Variables that do nothing when switched off; the others have an effect with any value. A test
compares them with the rows of the facts (`when: on`).
"""
_OFF = frozenset({"0", "false", "no", "off"})
_PATH_OF_LIBRARIES = "LD_LIBRARY_PATH"
_OF_DRIVER = "libcuda.so.1"
_DRIVER_FOLDERS = ("/usr/lib64-nvidia", "/usr/local/nvidia/lib", "/usr/local/nvidia/lib64")
"""Folders of the driver's libraries on Colab and in containers with a card; images name them even
without a card (Colab; nvidia/cuda, Dockerfiles).
"""


def harmful_part(name: str, value: str, root: Path) -> str:
    """Return the harmful part of a variable's value, "" if it does no harm.

    Of LD_LIBRARY_PATH the driver's own folders are left out, which hold libcuda or are made for
    it: without them it may not be found.
    """
    if not value.strip() or (name in SWITCHES and value.strip().lower() in _OFF):
        return ""
    if name != _PATH_OF_LIBRARIES:
        return value
    return ":".join(
        folder for folder in re.split("[:;]", value) if folder and not _holds_driver(folder, root)
    )


def describe_harm(name: str, value: str) -> str:
    """Return a harmful variable with its reading, unless that is "set", and the reason."""
    return f"{name}{'' if value == 'set' else f'={value}'}: {HARMFUL_VARIABLES[name]}"


def _holds_driver(folder: str, root: Path) -> bool:
    return folder.rstrip("/") in _DRIVER_FOLDERS or (
        folder.startswith("/") and os.path.exists(root / folder.lstrip("/") / _OF_DRIVER)
    )


SHOWN_VALUES = frozenset(
    {
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "PYTHONPATH",
        "PYTHONHOME",
        "NVIDIA_TF32_OVERRIDE",
        "MKL_CBWR",
        "ATEN_CPU_CAPABILITY",
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
    }
)
"""Those whose value a person needs to see; of the others only that they are set is reported."""

OFFLINE_VARIABLES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")
HUB_PACKAGES = ("huggingface-hub", "transformers", "datasets")
"""Packages that ask the hub, and the variables that keep them from it."""
