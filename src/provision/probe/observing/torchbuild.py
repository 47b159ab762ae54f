"""Looks at the torch build and its device."""

from __future__ import annotations

from typing import Any

from . import Bench, Observer, abilities, mapped, numbers


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


OBSERVERS: dict[str, Observer] = {
    "T01": _build,
    "T02": _device,
    "T03": _architecture,
    **abilities.OBSERVERS,
    **numbers.OBSERVERS,
    **mapped.OBSERVERS,
}
