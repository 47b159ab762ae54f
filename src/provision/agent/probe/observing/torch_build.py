"""Observes the torch build and its device."""

from __future__ import annotations

import ctypes
import re

from ..context import ObserverContext
from ..model import Readings
from . import capabilities, loaded_libraries, numerics
from .cards import torch_cards

_LONGEST = 300
_TWO = 2.0


def _build(_context: ObserverContext) -> Readings:
    import torch

    torch.set_num_threads(1)
    return {
        "torch.version": str(torch.__version__),
        "torch.cuda": torch.version.cuda,
        "torch.mkl": _mkl(torch.__config__.show()),
        "torch.git": (getattr(torch.version, "git_version", None) or "")[:12] or None,
        "torch.cpu_capability": torch.backends.cpu.get_cpu_capability(),
    }


def _mkl(configuration: str) -> str | None:
    """Return the version of MKL in torch's build: results on a CPU depend on it."""
    match = re.search(r"Math Kernel Library Version (\S+)", configuration)
    return match[1] if match else None


def _device(context: ObserverContext) -> Readings:
    import torch

    if context.expected.gpu_type == "mps":
        available = bool(torch.backends.mps.is_available())
        return {"gpu.available": available, "gpu.count": int(available)}
    available, count = torch.cuda.is_available(), torch.cuda.device_count()
    shown = context.environ.get("CUDA_VISIBLE_DEVICES")
    set_here = {} if shown is None else {"env.CUDA_VISIBLE_DEVICES": shown}
    return {
        "gpu.available": available,
        "gpu.count": count,
        **set_here,
        **({"gpu.errors": _errors(context)} if available else _why_none()),
    }


def _errors(context: ObserverContext) -> dict[str, str]:
    """Return error texts of cards that cannot add two numbers.

    Empty if no card is declared, so that no card is initialized.
    """
    errors = {}
    for card in torch_cards(context):
        name = card.name or "cuda:0"
        context.report_progress(name)
        try:
            with card.current():
                problem = _added(card.device)
        except Exception as error:  # noqa: BLE001
            problem = f"{type(error).__name__}: {_first_line(error)}"
        if problem:
            errors[name] = problem
    context.report_progress("")
    return errors


def _added(device: str) -> str:
    import torch

    result = float((torch.ones(1, device=device) + 1).item())
    return "" if result == _TWO else f"1 + 1 is {result:g}"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:_LONGEST]


def _why_none() -> Readings:
    """Return the errors of torch and of the driver's library if torch sees no card."""
    import torch

    try:
        torch.cuda.init()
        reason = None
    except (RuntimeError, AssertionError) as error:
        reason = _first_line(error)
    return {"gpu.why": reason, "gpu.cuda_code": init_code()}


def init_code() -> int | None:
    """Return the code of cuInit, 0 for success; None if the driver's library does not load."""
    try:
        return int(ctypes.CDLL("libcuda.so.1").cuInit(0))
    except (OSError, AttributeError):
        return None


def _architecture(_context: ObserverContext) -> Readings:
    import torch

    flags = getattr(torch._C, "_cuda_getArchFlags", None)
    text = flags() if flags else None
    # If torch sees no card, the driver's reading of its capability (D03) is judged instead.
    return {
        "torch.arch_list": text or " ".join(torch.cuda.get_arch_list()) or None,
        **_capability(),
    }


def _capability() -> Readings:
    import torch

    if not torch.cuda.is_available():
        return {}
    cards = range(torch.cuda.device_count())
    lowest = min(torch.cuda.get_device_capability(index) for index in cards)
    names = sorted({str(torch.cuda.get_device_properties(index).name) for index in cards})
    return {"gpu.compute_capability": f"{lowest[0]}.{lowest[1]}", "_gpu.names": names}


OBSERVERS = {
    "T01": _build,
    "T02": _device,
    "T03": _architecture,
    **capabilities.OBSERVERS,
    **numerics.OBSERVERS,
    **loaded_libraries.OBSERVERS,
}
