"""Observes torch's capabilities: libraries, number formats, flags and attention backends."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from ..context import ObserverContext
from ..model import Readings
from .tensors import (
    device_of,
    dtype_of,
    normal_tensor,
    relative_errors,
    seeded_generator,
    worst_errors,
)

TORCH_FLAGS = {
    "fp32_precision": "none",
    "cuda.matmul.fp32_precision": "none",
    "mkldnn.fp32_precision": "none",
    "mkldnn.matmul.fp32_precision": "none",
    "mkldnn.conv.fp32_precision": "none",
    "cudnn.conv.fp32_precision": "tf32",
    "cudnn.rnn.fp32_precision": "tf32",
    "cuda.matmul.allow_fp16_accumulation": False,
    "cudnn.enabled": True,
    "cudnn.benchmark": False,
    "cudnn.deterministic": False,
}
"""Flags below torch.backends and what they are in a fresh process (torch 2.13). The older
`allow_tf32` is never read: torch raises where both are used.
"""
FORMATS = {"fp16": (7, 0), "bf16": (8, 0), "tf32": (8, 0), "fp8": (8, 9)}
"""The first compute capability with each format. Source: CUDA C++ programming guide."""
_HEADS = (64, 128)


def _libraries(context: ObserverContext) -> Readings:
    import torch

    nccl = torch.cuda.nccl.version() if hasattr(torch._C, "_nccl_version") else None
    versions = {
        "cudnn": format_cudnn_version(torch.backends.cudnn.version()),
        "nccl": ".".join(str(part) for part in nccl) if nccl else None,
    }
    if "triton" in context.expected.packages:
        versions["triton"] = str(import_module("triton").__version__)
    return {"torch.libraries": {name: version for name, version in versions.items() if version}}


def format_cudnn_version(version: int | None) -> str | None:
    """Turn cuDNN's number into a version: 92000 is 9.20.0, 8907 is 8.9.7 (cudnn_version.h)."""
    if not version:
        return None
    unit = 10000 if version >= 90000 else 1000
    return f"{version // unit}.{version % unit // 100}.{version % 100}"


def _formats(context: ObserverContext) -> Readings:
    context.memo["formats"] = _formats_here()
    return {"gpu.formats": context.memo["formats"]}


def _formats_here() -> list[str] | None:
    import torch

    if not torch.cuda.is_available():
        return None
    capability = min(
        torch.cuda.get_device_capability(index) for index in range(torch.cuda.device_count())
    )
    supports_bf16 = torch.cuda.is_bf16_supported
    # Without this argument it is true of cards that emulate bf16, which is many times slower.
    exact = (
        {"including_emulation": False}
        if "including_emulation" in inspect.signature(supports_bf16).parameters
        else {}
    )
    return native_formats(capability, capability >= FORMATS["bf16"] and supports_bf16(**exact))


def native_formats(capability: tuple[int, int], bf16: bool) -> list[str]:
    """Return the short formats that a card of this compute capability has itself."""
    formats = [name for name, least in FORMATS.items() if name == "fp16" or capability >= least]
    return [name for name in formats if name != "bf16" or bf16]


def _flags(_context: ObserverContext) -> Readings:
    return {"torch.flags": dict(changed_flags())}


def changed_flags() -> Iterator[tuple[str, Any]]:
    """Yield the flags that differ from a fresh process; unknown flags are left out."""
    import torch

    for name, usual in TORCH_FLAGS.items():
        value: Any = torch.backends
        for part in name.split("."):
            value = getattr(value, part, None)
        if value is not None and value != usual:
            yield name, value


def _attention(context: ObserverContext) -> Readings:
    """Run each backend once for both checks."""
    if "attention" not in context.memo:
        device = device_of(context)
        context.memo["attention"] = attention_errors(
            dtype_of(context.expected.training.precision, device), device
        )
    return {"attention.errors": context.memo["attention"]}


def attention_errors(kind: Any, device: str) -> dict[str, list[float]]:
    """Return the errors of causal attention by each backend alone, against float64.

    Shapes (2, 4, 128, 64) and (2, 4, 128, 128), standard normal, seeded on the CPU; the worse
    of the two counts.
    """
    from torch.nn.attention import SDPBackend

    backends = {
        "math": "MATH",
        "flash": "FLASH_ATTENTION",
        "efficient": "EFFICIENT_ATTENTION",
        "cudnn": "CUDNN_ATTENTION",
    }
    errors_by_backend = {
        name: _errors(getattr(SDPBackend, constant), kind, device)
        for name, constant in backends.items()
        if hasattr(SDPBackend, constant)
    }
    return {name: errors for name, errors in errors_by_backend.items() if errors}


def _errors(backend: Any, kind: Any, device: str) -> list[float]:
    import warnings

    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    pairs = []
    for head in _HEADS:
        generator = seeded_generator()
        operands = [normal_tensor((2, 4, 128, head), generator).to(kind) for _ in range(3)]
        with sdpa_kernel([SDPBackend.MATH]):
            truth = scaled_dot_product_attention(
                *(operand.double() for operand in operands), is_causal=True
            )
        try:
            # torch explains in warnings why a backend cannot run; that it cannot is all that counts
            # here.
            with sdpa_kernel([backend]), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pairs.append(
                    relative_errors(
                        scaled_dot_product_attention(
                            *(operand.to(device) for operand in operands), is_causal=True
                        ),
                        truth,
                    )
                )
        except RuntimeError:
            return []
    return worst_errors(pairs)


OBSERVERS = {
    "T04": _libraries,
    "T05": _formats,
    "T06": _flags,
    "T07": _attention,
    "N04": _attention,
}
