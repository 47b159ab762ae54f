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
        "accelerate is absent or older than this transformers needs",
        "write transformers[torch] under packages: and lock again",
    ),
    (
        r"InvalidCxxCompiler|No working C\+\+ compiler|Python\.h|Failed to find C compiler",
        "torch.compile finds no compiler, or not the headers of this Python",
        "install g++ and python3-dev, or write torch_compile: false",
    ),
    (
        r"has been toggled on, but it cannot be used",
        "the declared attention needs a package that is not here, or another card",
        "write attn_implementation: sdpa under training.arguments, or lock the package that it names",
    ),
    (
        r"Importing the numpy C-extensions failed|No module named '\w+\.|module '\w+' has no attribute",
        "a package is there in part only: files of it are missing or cannot be read, or another package needs another version of it",
        "look at P02 and P07, which name what differs, then make the environment again from the lock",
    ),
    (
        r"PermissionError|Permission denied",
        "a file, a folder or /dev/shm may not be used by the user who runs this",
        "look at the path in the message; give it to that user (chown, chmod), or make the environment again as that user",
    ),
    (
        r"No module named|no distribution .* is installed|You need to install",
        "a package is not installed in this environment",
        "add it to packages:, lock and apply again",
    ),
    (
        r"cannot import name",
        "two packages do not fit each other's versions",
        "lock the packages together so that one resolver chooses the set",
    ),
    (
        r"GLIBC_\d|GLIBCXX_\d|CXXABI_\d",
        "a wheel needs a newer C or C++ library than this image has",
        "use a newer image, or a wheel with an older manylinux tag",
    ),
    (
        r"lib[\w.+-]+\.so[\d.]*: cannot open shared object file",
        "a shared library that the wheel expects is not on this machine",
        "install the system package that holds it, or make the environment again",
    ),
    (
        r"version [`'][\w.]+[`']? not found",
        "a shared library on this machine is older than the wheel needs, or an older one is found first",
        "unset LD_PRELOAD, and leave nothing but the driver's own folder in LD_LIBRARY_PATH; or use a newer image",
    ),
    (
        r"undefined symbol",
        "an extension was built against another version of its library",
        "lock the versions that were built together; leave nothing but the driver's own folder in LD_LIBRARY_PATH",
    ),
    (
        r"numpy\.core\.multiarray|compiled using NumPy 1|_ARRAY_API|compiled against ABI version",
        "a package was built for numpy 1 and finds numpy 2",
        "lock numpy<2, or newer versions of that package",
    ),
    (
        r"NVIDIA driver on your system is too old|driver version is insufficient",
        "the driver is older than this torch's CUDA needs",
        "choose an image with a newer driver, or a torch build for an older CUDA",
    ),
    (
        r"no kernel image is available",
        "this torch has no code for this GPU",
        "lock a torch flavour whose architectures cover it",
    ),
    (
        r"Found no NVIDIA driver",
        "no GPU is attached, or its driver is not installed",
        "choose a machine with a GPU, or install the driver",
    ),
    (
        r"busy or unavailable|cudaErrorDevicesUnavailable",
        "another program holds the GPU, and only one may use it",
        "end it (nvidia-smi and D08 name it), or take the compute mode Default (nvidia-smi -c 0; D09 tells the mode)",
    ),
    (
        r"No CUDA GPUs are available|no CUDA-capable device is detected",
        "torch sees no GPU: none is attached, or CUDA_VISIBLE_DEVICES hides it",
        "look at D01 and T02; unset CUDA_VISIBLE_DEVICES, or choose a machine or runtime with a GPU; in a container, give it the GPU (--gpus all)",
    ),
    (
        r"out of memory",
        "another process holds GPU memory, or the GPU is too small",
        "end the other process, or choose a larger GPU",
    ),
    (
        r"setup doesn't support bf16|bf16.*not supported",
        "this device has no bf16",
        "declare fp16 or fp32 for this target",
    ),
    (
        r"tf32",
        "tf32 exists on NVIDIA GPUs from Ampere on only",
        "declare fp32 or bf16 for this target",
    ),
    (
        r"SIGBUS|bus error|unable to allocate shared memory",
        "shared memory (/dev/shm) ran out of space, or a file in use is shorter than it was",
        "start the container with a larger --shm-size; look for a full disk, and for files that P07 names",
    ),
    (
        r"SIGKILL|killed by signal: Killed",
        "the kernel or the container killed it, most often for memory",
        "give the machine or container more memory",
    ),
    (
        r"SIGSEGV|Segmentation fault|SIGABRT|SIGILL",
        "native code crashed: extensions that do not fit each other, or CPU instructions this machine lacks",
        "make the environment again from the lock; look at the tail of the stage for the library",
    ),
    (
        r"did not end within|timed out after",
        "it hangs, or the machine is far slower than expected",
        "look at the tail of the stage; raise verify.timeout on a slow machine",
    ),
    (
        r"Too many open files",
        "the limit of open files is too low",
        "ulimit -n 65536",
    ),
    (
        r"No space left on device",
        "a disk or /dev/shm is full",
        "free space there, or point TMPDIR, HF_HOME or the output at a larger disk; H06 and H07 name what is low",
    ),
    (
        r"Read-only file system",
        "the folder lies on a file system that is mounted read-only, as in a container or an image that was packed",
        "point HOME, TMPDIR, HF_HOME or the output at a folder that takes files; W01, W03 and H10 name those that do not",
    ),
    (
        r"Tried to launch on distributed|environment variable (RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT) expected|`MASTER_ADDR` env",
        "RANK, WORLD_SIZE or LOCAL_RANK is set, so the program takes itself for one of several",
        "unset them (E01 names them), or start the program by torchrun or accelerate launch, which set all that is needed",
    ),
    (
        r"Couldn't connect|We couldn't connect|offline mode",
        "something wanted to download while the run is offline",
        "the proof needs no download; a package or plugin asks for one on import",
    ),
    (
        r"gai ?error|Name or service not known|Temporary failure in name resolution|nodename nor servname",
        "a name cannot be resolved: this machine's own, which its /etc/hosts lacks, or one that needs a name service",
        "write `127.0.1.1 NAME` into /etc/hosts, with the name that `hostname` prints; for other names look at /etc/resolv.conf",
    ),
    (
        r"NCCL.*unhandled system error|ncclSystemError",
        "a call of the system failed below NCCL: most often /dev/shm is too small, or a network interface cannot be used",
        "start the container with a larger --shm-size; run with NCCL_DEBUG=INFO, which names the call; NCCL_SOCKET_IFNAME names the interface to take",
    ),
)
