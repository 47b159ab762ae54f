"""Looks at the torch build and its device, and multiplies matrices whose products are known."""

from __future__ import annotations

import math
from typing import Any

from . import Bench, Observer, mapped

_ROWS, _DEPTH, _COLUMNS = 512, 1024, 512
_SEED = 20
_TOLERANCES = {"fp32": (1.3e-6, 1e-5), "bf16": (1.6e-2, 1e-5)}
"""Relative and absolute tolerance of torch.testing.assert_close for each type; the absolute one is scaled by the square root of the depth."""


def _build(_bench: Bench) -> dict[str, Any]:
    import torch

    torch.set_num_threads(1)
    return {
        "torch.version": str(torch.__version__),
        "torch.cuda": torch.version.cuda,
        "torch.git": (getattr(torch.version, "git_version", None) or "")[:12] or None,
        "torch.cpu_capability": torch.backends.cpu.get_cpu_capability(),
    }


def _device(bench: Bench) -> dict[str, Any]:
    import torch

    if bench.expected.gpu_type == "mps":
        there = bool(torch.backends.mps.is_available())
        return {"gpu.available": there, "gpu.count": int(there)}
    return {"gpu.available": torch.cuda.is_available(), "gpu.count": torch.cuda.device_count()}


def _architecture(_bench: Bench) -> dict[str, Any]:
    import torch

    flags = getattr(torch._C, "_cuda_getArchFlags", None)
    text = flags() if flags else None
    return {"torch.arch_list": text or " ".join(torch.cuda.get_arch_list()) or None, **_capability()}


def _capability() -> dict[str, Any]:
    import torch

    if not torch.cuda.is_available():
        return {"gpu.compute_capability": None}
    lowest = min(torch.cuda.get_device_capability(index) for index in range(torch.cuda.device_count()))
    return {"gpu.compute_capability": f"{lowest[0]}.{lowest[1]}"}


def _products(bench: Bench) -> dict[str, Any]:
    import torch

    device = _numeric_device(bench)
    found: dict[str, Any] = {"numerics.device": device}
    for name, kind in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        error, outside = product_error(name, kind, device)
        found[f"numerics.{name}_error"] = error
        found[f"numerics.{name}_outside"] = outside
    return found


def product_error(name: str, kind: Any, device: str) -> tuple[float, int]:
    """Relative Frobenius error of a product against float64 of the same rounded inputs, and how many elements lie outside torch's tolerances.

    Shapes (512, 1024) and (1024, 512), standard normal, seeded on the CPU so that every device multiplies the same numbers.
    """
    import torch

    left, right = _operands(kind)
    truth = left.double() @ right.double()
    # A result that is never written must not pass as zeros or as what the memory held before.
    result = torch.full((_ROWS, _COLUMNS), float("nan"), dtype=kind, device=device)
    torch.mm(left.to(device), right.to(device), out=result)
    difference = (result.double().cpu() - truth).abs()
    relative, absolute = _TOLERANCES[name]
    inside = difference <= absolute * math.sqrt(_DEPTH) + relative * truth.abs()
    return float(difference.norm() / truth.norm()), int((~inside).sum())


def _operands(kind: Any) -> tuple[Any, Any]:
    import torch

    generator = torch.Generator().manual_seed(_SEED)
    left, right = torch.randn(_ROWS, _DEPTH, generator=generator), torch.randn(_DEPTH, _COLUMNS, generator=generator)
    return left.to(kind), right.to(kind)


def _signature(bench: Bench) -> dict[str, Any]:
    import torch

    error, _ = product_error("fp32", torch.float32, _numeric_device(bench))
    return {"numerics.fp32_signature": error}


def _twice(bench: Bench) -> dict[str, Any]:
    import torch

    devices = {"cpu", _numeric_device(bench)}
    same = True
    for device in sorted(devices):
        for kind in (torch.float32, torch.bfloat16):
            left, right = (operand.to(device) for operand in _operands(kind))
            same = same and torch.equal(left @ right, left @ right)
    return {"numerics.repeats": same}


def _numeric_device(bench: Bench) -> str:
    import torch

    return "cuda" if bench.expected.gpu_type not in (None, "mps") and torch.cuda.is_available() else "cpu"


OBSERVERS: dict[str, Observer] = {
    "T01": _build,
    "T02": _device,
    "T03": _architecture,
    "N01": _products,
    "N02": _signature,
    "N06": _twice,
    **mapped.OBSERVERS,
}
