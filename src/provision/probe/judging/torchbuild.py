"""Judges torch's build and the device it sees."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..values import Judgement
from ..versions import same_version
from .cases import Case, bad, ok, unknown


def _build(case: Case) -> Judgement:
    locked, flavour = case.expected.packages["torch"], case.expected.flavour
    version, cuda = case.seen["torch.version"], case.seen["torch.cuda"]
    expected, observed = {"version": locked, "flavour": flavour}, {"version": version, "cuda": cuda}
    if not same_version(locked, version) and not _only_metadata_lacks_tag(locked, version):
        cause = "another torch is imported than the one that is locked"
        return bad(f"torch {version} is imported, lock says {locked}", expected, observed, cause, "make the environment again from the lock")
    built_for = f"cu{cuda.replace('.', '')}" if cuda else "cpu"
    if flavour is not None and built_for != flavour:
        return bad(
            f"torch is built for {built_for}, lock says {flavour}",
            expected,
            observed,
            "the wheel came from another index: PyPI and each PyTorch index carry different builds of one version",
            f"install torch from the index of {flavour}, as the lock says",
        )
    return ok(f"torch {version}, built for {built_for}", expected, observed)


def _only_metadata_lacks_tag(locked: str, version: str) -> bool:
    # Wheels on PyPI are locked as "2.13.0" and say "2.13.0+cu130" when asked.
    return "+" not in locked and same_version(locked, version.partition("+")[0])


def _device(case: Case) -> Judgement:
    available, count, wanted = case.seen["gpu.available"], case.seen["gpu.count"], max(case.expected.gpu_count, 1)
    expected = f"{wanted} x {case.expected.gpu_type}"
    if available and count == wanted:
        return ok(f"torch sees {count} device(s)", expected, count)
    if available:
        cause = "the machine has another number of GPUs, or CUDA_VISIBLE_DEVICES hides or adds some"
        return bad(
            f"torch sees {count} device(s), {wanted} declared", expected, count, cause, "change the machine type or gpu.count, or unset CUDA_VISIBLE_DEVICES"
        )
    if case.seen.get("torch.cuda") is None and case.expected.gpu_type != "mps":
        return bad("torch sees no GPU: this torch is built for CPU", expected, 0, "a CPU wheel was installed", "lock and install a CUDA build of torch")
    return bad(
        f"torch sees no GPU, {expected} declared",
        expected,
        count,
        "no GPU is attached, its driver is absent or too old for this torch, or CUDA_VISIBLE_DEVICES hides it",
        "look at nvidia-smi; choose a runtime with a GPU, or a torch build for an older CUDA",
    )


def _architecture(case: Case) -> Judgement:
    capability, built = case.seen["gpu.compute_capability"], case.seen["torch.arch_list"]
    if capability is None or not built:
        return unknown("torch told no compute capability or no list of architectures")
    if covers(built, capability):
        return ok(f"compute capability {capability} is covered", built, capability)
    return bad(
        f"this torch has no code for compute capability {capability}",
        built,
        capability,
        "newer builds drop older GPUs, older builds do not know newer ones: 'no kernel image is available'",
        "lock the torch flavour whose architectures cover this GPU",
    )


def covers(built: str, capability: str) -> bool:
    """Whether an architecture list ("sm_80 sm_90 compute_90") has code for a capability ("8.6").

    Binary code runs on the same major with at least its minor; PTX (compute_) is compiled for any newer GPU.
    Source: CUDA programming guide, binary and PTX compatibility.
    """
    major, minor = (int(part) for part in capability.split("."))
    for kind, number in re.findall(r"(sm|compute)_(\d+)", built):
        built_major, built_minor = int(number[:-1]), int(number[-1])
        if kind == "sm" and built_major == major and built_minor <= minor:
            return True
        if kind == "compute" and (built_major, built_minor) <= (major, minor):
            return True
    return False


JUDGES: dict[str, Callable[[Case], Judgement]] = {
    "T01": _build,
    "T02": _device,
    "T03": _architecture,
}
