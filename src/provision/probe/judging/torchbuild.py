"""Judges torch's build, the device it sees, and the numbers it computes."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..checks.numerics import BF16_ERROR, FP32_ERROR, TF32_ERROR
from ..observing.loaders import EXPECTED_SUM
from ..values import Judgement
from ..versions import same_version
from .cases import Case, bad, ok, skipped, unknown


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


def _products(case: Case) -> Judgement:
    tf32 = case.expected.training.precision == "tf32" and case.seen["numerics.device"] == "cuda"
    bounds = {"fp32": TF32_ERROR if tf32 else FP32_ERROR, "bf16": BF16_ERROR}
    observed = {name: case.seen[f"numerics.{name}_error"] for name in bounds}
    expected = {name: bound.value for name, bound in bounds.items()}
    for name, bound in bounds.items():
        error, outside = observed[name], case.seen[f"numerics.{name}_outside"]
        # A NaN arrives as a text and is never small.
        if not isinstance(error, (int, float)) or not error <= bound.value or (outside and not (tf32 and name == "fp32")):
            return bad(
                f"{name} products are wrong: relative error {error} (at most {bound.value:g}), {outside} elements outside torch's tolerances",
                expected,
                observed,
                "a broken BLAS, a faulty device, or a reduced-precision mode forced from outside",
                "run again; if it stays, reinstall torch, then try another machine",
                bound,
            )
    return ok("fp32 and bf16 products agree with float64", expected, observed)


def _signature(case: Case) -> Judgement:
    error = case.seen["numerics.fp32_signature"]
    if case.expected.training.precision == "tf32":
        return skipped("the spec asks for tf32", error)
    if isinstance(error, (int, float)) and error <= FP32_ERROR.value:
        return ok("fp32 products carry fp32's error", FP32_ERROR.value, error)
    return bad(
        f"an fp32 product has a relative error of {error}: it was not computed in fp32",
        FP32_ERROR.value,
        error,
        "TF32 or another short format is forced (NVIDIA_TF32_OVERRIDE, TORCH_ALLOW_TF32_CUBLAS_OVERRIDE)",
        "unset those variables, or declare precision: tf32",
    )


def _twice(case: Case) -> Judgement:
    if case.seen["numerics.repeats"]:
        return ok("the same product twice gives the same bits", True, True)
    return bad(
        "the same product twice gives different bits",
        True,
        False,
        "a nondeterministic kernel or a faulty device",
        "set CUBLAS_WORKSPACE_CONFIG=:4096:8 before torch starts; then try another machine",
    )


def _loader(method: str) -> Callable[[Case], Judgement]:
    def judge(case: Case) -> Judgement:
        total = case.seen[f"loaders.{method}_sum"]
        if total is None:
            return skipped(f"{method} is not used on this system")
        if total == EXPECTED_SUM:
            return ok(f"2 workers by {method} delivered every number", EXPECTED_SUM, total)
        return bad(
            f"workers by {method} delivered wrong numbers",
            EXPECTED_SUM,
            total,
            "shared memory was damaged or cut short",
            "check /dev/shm, then try another machine",
        )

    return judge


JUDGES: dict[str, Callable[[Case], Judgement]] = {
    "T01": _build,
    "T02": _device,
    "T03": _architecture,
    "N01": _products,
    "N02": _signature,
    "N06": _twice,
    "L01": _loader("fork"),
    "L02": _loader("spawn"),
}
