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
    "CUDA_DEVICE_WAITS_ON_EXCEPTION": "a GPU error halts the program and waits for a debugger",
    "CUDA_PROFILE": "turns CUDA profiling on",
    "COMPUTE_PROFILE": "turns CUDA profiling on",
    "OPENCL_PROFILE": "turns OpenCL profiling on",
    "CUDA_LAUNCH_BLOCKING": (
        "waits after every GPU kernel; training becomes much slower (CUDA programming guide, "
        "environment variables)"
    ),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": (
        "every tensor is allocated by the driver; training becomes much slower (PyTorch, CUDA "
        "environment variables)"
    ),
    "NVIDIA_TF32_OVERRIDE": (
        "forces TF32 on or off below PyTorch, so fp32 results change (cuBLAS, cuDNN)"
    ),
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": (
        "lets fp32 matrix products run as TF32, so fp32 results change (PyTorch, CUDA environment"
        " variables)"
    ),
    "CUDA_CACHE_DISABLE": (
        "code for the GPU is compiled anew at each start (CUDA programming guide, environment "
        "variables)"
    ),
    "CUDA_FORCE_PTX_JIT": (
        "the GPU code of the wheels is left aside and compiled anew (CUDA programming guide, "
        "environment variables)"
    ),
    "TORCHDYNAMO_DISABLE": "torch.compile does nothing (PyTorch, torch._dynamo)",
    "TORCH_COMPILE_DISABLE": "torch.compile does nothing (PyTorch, torch._dynamo.config)",
    "ACCELERATE_USE_CPU": "Trainer and Accelerate leave the GPU aside (accelerate, state.py)",
    "ACCELERATE_MIXED_PRECISION": (
        "changes the precision of what Accelerate starts (accelerate, state.py)"
    ),
    "RANK": "the program takes itself for one of several and waits for the others (torchrun, "
    "environment variables)",
    "WORLD_SIZE": "the program takes itself for one of several and waits for the others (torchrun, "
    "environment variables)",
    "LOCAL_RANK": "the program takes itself for one of several and waits for the others (torchrun, "
    "environment variables)",
    "NCCL_P2P_DISABLE": (
        "GPUs talk through host memory instead of NVLink or PCIe (NCCL, environment variables)"
    ),
    "LD_PRELOAD": "loads a library into every program before its own",
    "LD_LIBRARY_PATH": "libraries of the host can replace those that the wheels bring",
    "MKL_CBWR": "fixes MKL's instruction set, so results change",
    "ATEN_CPU_CAPABILITY": "fixes PyTorch's CPU instruction set, so results change",
    "PYTHONPATH": "modules outside the environment come first",
    "PYTHONHOME": "Python takes its standard library from elsewhere",
    "PYTHONOPTIMIZE": "assert statements are removed",
    "PYTHONDEVMODE": "Python checks itself while it runs, and is slower",
    "PYTHONMALLOC": "Python takes another allocator; those for debugging are slower",
    "PYTHONTRACEMALLOC": "Python notes where all memory was taken, and is slower",
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
