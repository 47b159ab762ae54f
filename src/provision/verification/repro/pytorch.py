"""Programs for checks of torch: its build, its numbers, its workers and its compiler."""

from __future__ import annotations

from typing import Any

from provision.agent.probe.checks.numerics import (
    ATTENTION,
    BF16_ERROR,
    CONVOLUTION,
    FP8_ERROR,
    FP16_ERROR,
    FP32_ERROR,
    STEPS_ERROR,
    TF32_ERROR,
)
from provision.agent.probe.checks.torch_compile import COMPILED_ERROR
from provision.agent.probe.observing.capabilities import TORCH_FLAGS
from provision.agent.probe.observing.loaders import prefetched_bytes
from provision.agent.probe.observing.torch_compile import CPU_COMPILERS, CUDA_COMPILERS
from provision.verification.repro.failed_check import CaseBuilder, FailedCheck, Programs

_KINDS = {"bf16": "bfloat16", "fp8": "bfloat16", "fp16": "float16"}
_WORD = 4


def _build(failed: FailedCheck) -> dict[str, Any]:
    if failed.raised:
        return {"version": failed.readings.get("package.torch") or "", "flavour": None}
    return {"version": failed.expected["version"], "flavour": failed.expected["flavour"]}


def _libraries(failed: FailedCheck) -> dict[str, Any]:
    return {
        "libraries": {}
        if failed.raised
        else {str(name): str(version) for name, version in failed.expected.items()}
    }


def _flags(failed: FailedCheck) -> dict[str, Any]:
    return {
        "flags": {} if failed.raised else {str(name): TORCH_FLAGS[name] for name in failed.observed}
    }


def _products(failed: FailedCheck) -> dict[str, Any]:
    tf32 = (
        failed.expected.get("fp32") == TF32_ERROR.value
        if isinstance(failed.expected, dict)
        else False
    )
    card = failed.device == "cuda"
    short = {"bf16": BF16_ERROR.value, **({"fp16": FP16_ERROR.value} if card else {})}
    bounds = {
        "fp32": (TF32_ERROR if tf32 else FP32_ERROR).value,
        **(short if failed.check_id != "N02" else {}),
    }
    return {
        "device": failed.device,
        "card": failed.gpu_index,
        "bounds": bounds,
        "sizes": [[512, 1024], *([[4096, 4096]] if card and failed.check_id == "N01" else [])],
    }


def _computing(**values: Any) -> CaseBuilder:
    return lambda failed: {"device": failed.device, **values}


def _convolutions(failed: FailedCheck) -> dict[str, Any]:
    return {
        "device": failed.device,
        "bound": failed.expected_number(CONVOLUTION.value),
        "cudnn": "without cuDNN" not in failed.message,
    }


def _kind(failed: FailedCheck) -> str:
    declared = str(failed.expectation("training", "precision"))
    return (
        _KINDS.get(declared, "float32")
        if declared != "fp16" or failed.device == "cuda"
        else "float32"
    )


def _attention(wanted: str) -> CaseBuilder:
    def values(failed: FailedCheck) -> dict[str, Any]:
        slow = (
            failed.check_id == "T07" and failed.expected not in ("math", None) and not failed.raised
        )
        return {
            "device": failed.device,
            "kind": _kind(failed),
            "wanted": "fast" if slow else wanted,
            "times": ATTENTION.value,
        }

    return values


def _loaders(method: str) -> CaseBuilder:
    return lambda _: {"method": method, "workers": 2, "rows": 64, "batch": 8, "length": 131072}


def _large(failed: FailedCheck) -> dict[str, Any]:
    workers, batch, length = (
        failed.expectation("training", name)
        for name in ("dataloader_workers", "batch_size", "sequence_length")
    )
    return {
        "method": "fork",
        "workers": 1,
        "rows": 1,
        "batch": 1,
        "length": prefetched_bytes(workers or 0, batch, length) // _WORD,
    }


def _compilers(failed: FailedCheck) -> dict[str, Any]:
    card = failed.expectation("gpu", "type") or failed.readings.get("gpu.name")
    return {
        "variables": ["CC", "CXX"] if card else ["CXX"],
        "compilers": list(CUDA_COMPILERS if card else CPU_COMPILERS),
    }


PROGRAMS: Programs = {
    "T01": (("torch_build", _build),),
    "T04": (("torch_libraries", _libraries),),
    "T06": (("torch_flags", _flags),),
    "T07": (("attention", _attention("math")),),
    "N01": (("products", _products),),
    "N02": (("products", _products),),
    "N03": (("convolutions", _convolutions),),
    "N04": (("attention", _attention("right")),),
    "N05": (("fp8", lambda _: {"bound": FP8_ERROR.value}),),
    "N06": (("products", _products),),
    "N07": (("finite", lambda failed: {"device": failed.device, "kind": _kind(failed)}),),
    "N08": (("random_numbers", _computing()),),
    "N09": (("steps", _computing(bound=STEPS_ERROR.value)),),
    "L01": (("loaders", _loaders("fork")),),
    "L02": (("loaders", _loaders("spawn")),),
    "L03": (("loaders", _loaders("forkserver")),),
    "L04": (("loaders", _large),),
    "K01": (("compiler", _compilers),),
    "K02": (("compiled", _computing(bound=COMPILED_ERROR.value)),),
}
