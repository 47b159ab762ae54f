"""Causes and fixes of known error texts, written by support/compile_facts.py."""

# ruff: noqa: E501
from __future__ import annotations

import re


def explain_error(text: str) -> tuple[str | None, str | None]:
    """Return the cause and the fix of an error text; (None, None) if it is not known."""
    for pattern, cause, fix in _SYMPTOMS:
        if re.search(pattern, text, re.IGNORECASE):
            return cause, fix
    return None, None


_SYMPTOMS: tuple[tuple[str, str, str], ...] = (
    (
        r"requires? .?accelerate|accelerate>=|No module named 'accelerate'",
        "accelerate is missing or too old for this transformers",
        "use transformers[torch] under `packages`, and lock again",
    ),
    (
        r"InvalidCxxCompiler|No working C\+\+ compiler|Python\.h|Failed to find C compiler",
        "torch.compile cannot find a compiler or the headers of this Python",
        "install g++ and python3-dev, or set `torch_compile: false`",
    ),
    (
        r"has been toggled on, but it cannot be used",
        "the declared attention needs a package that is not installed, or a different GPU",
        "set `attn_implementation: sdpa` under `training.arguments`, or lock the package that the message names",
    ),
    (
        r"Importing the numpy C-extensions failed|No module named '\w+\.|module '\w+' has no attribute",
        "a package is incomplete (files are missing or cannot be read), or another package needs a different version of it",
        "check P02 and P07, which name the differences, then recreate the environment from the lock",
    ),
    (
        r"PermissionError|Permission denied",
        "this user has no permission for a file, a folder or /dev/shm",
        "give this user access to the path in the message (chown, chmod), or recreate the environment as this user",
    ),
    (
        r"No module named|package .* is not installed for this interpreter|You need to install",
        "a package is not installed in this environment",
        "add it to `packages`, then lock and apply again",
    ),
    (
        r"cannot import name",
        "two packages have versions that do not match",
        "lock the packages together, so that one resolver chooses the set",
    ),
    (
        r"GLIBC_\d|GLIBCXX_\d|CXXABI_\d",
        "a wheel needs a newer C or C++ library than this image has",
        "use a newer image, or a wheel with an older manylinux tag",
    ),
    (
        r"lib[\w.+-]+\.so[\d.]*: cannot open shared object file",
        "a shared library that the wheel needs is not installed on this machine",
        "install the system package that contains it, or recreate the environment",
    ),
    (
        r"version [`'][\w.]+[`']? not found",
        "a shared library on this machine is older than the wheel needs, or an older copy is loaded first",
        "unset LD_PRELOAD, and keep only the driver's own folder in LD_LIBRARY_PATH; or use a newer image",
    ),
    (
        r"undefined symbol",
        "an extension was built against a different version of its library",
        "lock the versions that were built together; keep only the driver's own folder in LD_LIBRARY_PATH",
    ),
    (
        r"numpy\.core\.multiarray|compiled using NumPy 1|_ARRAY_API|compiled against ABI version",
        "a package was built for NumPy 1 and is used with NumPy 2",
        "lock numpy<2, or newer versions of that package",
    ),
    (
        r"NVIDIA driver on your system is too old|driver version is insufficient",
        "the driver is too old for this torch's CUDA",
        "use an image with a newer driver, or a torch build for an older CUDA",
    ),
    (
        r"no kernel image is available",
        "this torch has no code for this GPU",
        "lock a torch flavour whose architectures include it",
    ),
    (
        r"Found no NVIDIA driver",
        "no GPU is attached, or its driver is not installed",
        "use a machine with a GPU, or install the driver",
    ),
    (
        r"busy or unavailable|cudaErrorDevicesUnavailable",
        "another program uses the GPU, which allows only one program at a time",
        "end that program (nvidia-smi and D08 show it), or set the compute mode to Default (nvidia-smi -c 0; D09 shows the mode)",
    ),
    (
        r"No CUDA GPUs are available|no CUDA-capable device is detected",
        "torch sees no GPU: none is attached, or CUDA_VISIBLE_DEVICES hides it",
        "see D01 and T02; unset CUDA_VISIBLE_DEVICES, or use a machine or runtime with a GPU; in a container, give it the GPU (--gpus all)",
    ),
    (
        r"out of memory",
        "another process uses the GPU's memory, or the GPU is too small",
        "end the other process, or use a larger GPU",
    ),
    (
        r"setup doesn't support bf16|bf16.*not supported",
        "this device does not support bf16",
        "declare fp16 or fp32 for this target",
    ),
    (
        r"tf32",
        "tf32 exists only on NVIDIA GPUs from Ampere on",
        "declare fp32 or bf16 for this target",
    ),
    (
        r"SIGBUS|bus error|unable to allocate shared memory",
        "shared memory (/dev/shm) is full, or a file in use was truncated",
        "start the container with a larger --shm-size; check for a full disk, and see the files that P07 lists",
    ),
    (
        r"SIGKILL|killed by signal: Killed",
        "the kernel or the container killed the process, most often because of memory",
        "give the machine or container more memory",
    ),
    (
        r"SIGILL|Illegal instruction|AVX instructions are required",
        "a package uses processor instructions that this processor does not have; H13 reports AVX, which TensorFlow and jax need",
        "use a different machine type, or select the host's CPU type in the hypervisor; or install a build for older processors",
    ),
    (
        r"SIGSEGV|Segmentation fault|SIGABRT",
        "native code crashed, because extensions do not match each other, or this machine lacks CPU instructions that they need",
        "recreate the environment from the lock; check the end of the stage's log for the library that crashed",
    ),
    (
        r"did not end within|timed out after",
        "the program hangs, or the machine is much slower than expected",
        "check the end of the stage's log; raise `verify.timeout` on a slow machine",
    ),
    (
        r"Too many open files",
        "the limit of open files is too low",
        "raise the limit with `ulimit -n 65536`",
    ),
    (
        r"No space left on device",
        "a disk or /dev/shm is full",
        "free up space, or move TMPDIR, HF_HOME or the output to a larger disk; H06 and H07 show which one is low",
    ),
    (
        r"Read-only file system",
        "the folder is on a file system that is mounted read-only, as in a container or a read-only image",
        "set HOME, TMPDIR, HF_HOME or the output to a writable folder; W01, W03 and H10 list the folders that are not writable",
    ),
    (
        r"Tried to launch on distributed|environment variable (RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT) expected|`MASTER_ADDR` env",
        "RANK, WORLD_SIZE or LOCAL_RANK is set, so the program starts as one of several processes",
        "unset them (E01 lists them), or start the program with torchrun or accelerate launch, which set all required variables",
    ),
    (
        r"Couldn't connect|We couldn't connect|offline mode",
        "a download was attempted in an offline run",
        "the training proof needs no download, so find the package or plugin that downloads something on import",
    ),
    (
        r"gai ?error|Name or service not known|Temporary failure in name resolution|nodename nor servname",
        "a host name cannot be resolved: this machine's own name, which is missing from /etc/hosts, or a name that needs a name server",
        "add `127.0.1.1 NAME` to /etc/hosts, with the name that `hostname` prints; for other names check /etc/resolv.conf",
    ),
    (
        r"NCCL.*unhandled system error|ncclSystemError",
        "a system call below NCCL failed, most often because /dev/shm is too small, or a network interface cannot be used",
        "start the container with a larger --shm-size; set NCCL_DEBUG=INFO to see which call failed; set NCCL_SOCKET_IFNAME to the interface to use",
    ),
)
