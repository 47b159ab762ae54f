"""Judges torch's build and the device it sees."""

from __future__ import annotations

import re

from ...core.versions import is_same_version, specifier_allows
from ..model import Judgement
from .judgement import RESTART_OR_REPLACE, JudgeInput, fails, format_list, passes, unknown
from .symptoms import explain_error

_ON_CHIPS = frozenset({(5, 3), (6, 2), (7, 2), (8, 7), (10, 1)})
"""Capabilities of systems on a chip (Jetson): neither do they run the code of cards of their major
version, nor these theirs.
"""
_CUDA_CODES = {
    46: (
        "another program is using the GPU, whose compute mode allows only one program",
        "end that program (nvidia-smi lists it), or set the compute mode to Default",
    ),
    100: (
        "CUDA finds no GPU",
        "use a machine or runtime with a GPU; start a container with --gpus all",
    ),
    802: (
        "the NVLink fabric of the cards is not initialized",
        "start nvidia-fabricmanager, or restart the machine",
    ),
    803: (
        "the driver's CUDA library and kernel module have different versions",
        "restart the machine; unset LD_LIBRARY_PATH if it contains a different libcuda",
    ),
    804: (
        "a compatibility package (cuda-compat) is found first, but this card does not support it",
        "remove cuda-compat from LD_LIBRARY_PATH",
    ),
    999: ("the driver's kernel module nvidia_uvm does not respond", "restart the machine"),
}
"""By the code with which CUDA starts (cuda.h, CUresult): cause, fix."""


def _build(given: JudgeInput) -> Judgement:
    locked, flavour = given.expected.packages["torch"], given.expected.flavour
    version, cuda = given["torch.version"], given["torch.cuda"]
    expected, observed = {"version": locked, "flavour": flavour}, {"version": version, "cuda": cuda}
    if not is_same_version(locked, version) and not (
        "+" not in locked and is_same_version(locked, version.partition("+")[0])
    ):
        return fails(
            f"torch {version} is imported, but {locked} is locked",
            expected,
            observed,
            "a different torch was installed, or another copy comes first on sys.path",
            "recreate the environment from the lock",
        )
    built_for = f"cu{cuda.replace('.', '')}" if cuda else "cpu"
    if flavour is not None and built_for != flavour:
        return fails(
            f"torch is built for {built_for}, but {flavour} is locked",
            expected,
            observed,
            "the wheel came from a different index: PyPI and the PyTorch indexes have different "
            "builds of the same version",
            f"install torch from the {flavour} index, as locked",
        )
    return passes(f"torch {version}, built for {built_for}", expected, observed)


def _device(given: JudgeInput) -> Judgement:
    available, count, required = (
        given["gpu.available"],
        given["gpu.count"],
        max(given.expected.gpu_count, 1),
    )
    expected = f"{required} x {given.expected.gpu_type}"
    if available and count == required:
        return _computing(given, expected, count)
    if available:
        return fails(
            f"torch sees {_devices(count)}, but the spec declares {required}",
            expected,
            count,
            "the machine has a different number of GPUs, or CUDA_VISIBLE_DEVICES exposes "
            "too few or too many",
            "change the machine type or `gpu.count`, or unset CUDA_VISIBLE_DEVICES",
        )
    if given.get("torch.cuda") is None and given.expected.gpu_type != "mps":
        return fails(
            "torch sees no GPU: this is a CPU build of torch",
            expected,
            0,
            "a CPU wheel was installed",
            "lock and install a CUDA build of torch",
        )
    reason = given.get("gpu.why")
    return fails(
        f"torch sees no GPU, but the spec declares {expected}{f': {reason}' if reason else ''}",
        expected,
        count,
        *_why_none(given),
    )


def _computing(given: JudgeInput, expected: str, count: int) -> Judgement:
    if given.expected.gpu_type == "mps":
        return passes(f"torch sees {_devices(count)}", expected, count)
    errors: dict[str, str] | None = given.get("gpu.errors")
    if errors is None:
        return unknown(f"torch sees {_devices(count)}, but no computation was tried", expected)
    if not errors:
        return passes(f"torch can compute on {_devices(count)}", expected, count)
    cause, fix = explain_error(next(iter(errors.values())))
    return fails(
        f"torch sees {_devices(count)}, but cannot compute on "
        f"{format_list([f'{name}: {error}' for name, error in errors.items()])}",
        expected,
        count - len(errors),
        cause or "the card cannot compute, although the driver lists it",
        fix or f"see D05, D07, D09 and D11; {RESTART_OR_REPLACE}",
    )


def _devices(count: int) -> str:
    return "1 device" if count == 1 else f"{count} devices"


def _why_none(given: JudgeInput) -> tuple[str, str]:
    """Return cause and fix if a CUDA build of torch sees no card, the nearest cause first."""
    seen, code = given.seen, given.get("gpu.cuda_code")
    shown, count, driver = (
        seen.get("env.CUDA_VISIBLE_DEVICES"),
        seen.get("nvml.count_all", seen.get("nvml.count")),
        seen.get("driver.version"),
    )
    if shown is not None and count:
        return (
            f"CUDA_VISIBLE_DEVICES={shown!r} hides the {count} GPUs that the driver sees",
            "unset CUDA_VISIBLE_DEVICES, or set it to the card's number",
        )
    if seen.get("driver.error") is not None or count == 0:
        return (
            "the driver does not respond, or sees no GPU (see D01)",
            "follow the fix of D01, or use a machine or runtime with a GPU",
        )
    if driver and any(
        not specifier_allows(needed, driver) for needed in given.expected.driver_specifiers
    ):
        return (
            f"driver {driver} is too old for CUDA {seen.get('torch.cuda')} (see D02)",
            "use an image with a newer driver, or a torch build for an older CUDA",
        )
    if count and code is None and "gpu.cuda_code" in seen:
        return "the driver responds, but its CUDA library (libcuda.so.1) cannot be found", (
            "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility, or install "
            "the driver's CUDA library"
        )
    return _CUDA_CODES.get(code or 0) or (
        (
            "no GPU is attached, its driver is missing or too old for this torch, or "
            "CUDA_VISIBLE_DEVICES hides it"
        ),
        "run `nvidia-smi`; use a runtime with a GPU, or a torch build for an older CUDA",
    )


def _architecture(given: JudgeInput) -> Judgement:
    capability, built = given.get("gpu.compute_capability"), given["torch.arch_list"]
    if capability is None or not built:
        return unknown("torch reported no compute capability or no list of architectures")
    if has_code_for(built, capability):
        return passes(
            f"this torch build supports compute capability {capability}", built, capability
        )
    return fails(
        f"this torch build has no code for compute capability {capability}",
        built,
        capability,
        "newer builds drop older GPUs, and older builds do not support newer GPUs; programs "
        "fail with 'no kernel image is available'",
        "lock a torch build that supports this GPU",
    )


def has_code_for(built: str, capability: str) -> bool:
    """Return whether an architecture list ("sm_80 sm_90 compute_90") has code for "8.6".

    Binary code runs on the same major with at least its minor; PTX (compute_) is compiled for
    any newer GPU.
    Code for a system on a chip runs there alone. Source: CUDA programming guide, binary and PTX
    compatibility; exceptions: torch/cuda, DEVICE_REQUIREMENT.
    """
    major, minor = (int(part) for part in capability.split("."))
    for kind, number in re.findall(r"(sm|compute)_(\d+)", built):
        built_major, built_minor = int(number[:-1]), int(number[-1])
        if kind == "sm" and (built_major, built_minor, major, minor) == (10, 1, 11, 0):
            return True
        apart = _ON_CHIPS & {(built_major, built_minor), (major, minor)}
        if (
            kind == "sm"
            and built_major == major
            and (built_minor == minor if apart else built_minor <= minor)
        ):
            return True
        if kind == "compute" and (built_major, built_minor) <= (major, minor):
            return True
    return False


JUDGES = {
    "T01": _build,
    "T02": _device,
    "T03": _architecture,
}
