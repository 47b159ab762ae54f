"""Fills the card's memory and reads it back, and measures what it moves and how fast it multiplies."""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import reduce
from operator import or_
from typing import Any

from . import Bench, Observer
from .memory import hold, wrong_words
from .nvml import Nvml, NvmlError
from .speed import FORMATS, copied_gb_s, link_gb_s, median, moved_gb_s, multiplied_tflops, pairs_of, tflops_of, times
from .tensors import device_of

_GIB = 1024**3
_SIZE, _COPY_BYTES, _MOVE_BYTES = 8192, 4 * _GIB, _GIB
_MOVES = ("speed.to_card_gb_s", "speed.from_card_gb_s", "speed.pageable_to_card_gb_s", "speed.pageable_from_card_gb_s")
_SHARE_HELD = 0.9
_BURN_S, _BURN_ROUNDS = 60.0, 100


def _held(bench: Bench) -> dict[str, Any]:
    import torch

    if device_of(bench) != "cuda":
        return {"memory.total_bytes": None}
    free, total = torch.cuda.mem_get_info()
    wanted = int(free * _SHARE_HELD) // _GIB * _GIB
    bench.memo["blocks"] = hold("cuda", wanted, _GIB)
    held = len(bench.memo["blocks"]) * _GIB
    return {"memory.total_bytes": total, "memory.free_bytes": free, "memory.wanted_bytes": wanted, "memory.held_bytes": held}


def _written(bench: Bench) -> dict[str, Any]:
    import torch

    blocks: list[Any] = bench.memo.pop("blocks", [])
    found = {"memory.wrong_words": wrong_words(blocks) if blocks else None}
    blocks.clear()
    torch.cuda.empty_cache()
    return found


def _copied(bench: Bench) -> dict[str, Any]:
    device = device_of(bench)
    return {"speed.copy_gb_s": copied_gb_s(device, _fitting(_COPY_BYTES)) if device == "cuda" else None}


def _moved(bench: Bench) -> dict[str, Any]:
    device = device_of(bench)
    if device != "cuda":
        return {**dict.fromkeys(_MOVES), "link.gb_s": None}
    speeds = [speed for pinned in (True, False) for speed in moved_gb_s(device, _fitting(_MOVE_BYTES), pinned)]
    return {**dict(zip(_MOVES, speeds, strict=True)), "link.gb_s": link_gb_s(bench.root, _address())}


def _fitting(wanted: int) -> int:
    import torch

    return int(min(wanted, torch.cuda.mem_get_info()[0] // 4))


def _address() -> str:
    """Return the card's place on the PCI bus as Linux writes it, "" where this torch does not tell."""
    import torch

    about = torch.cuda.get_device_properties(0)
    if not hasattr(about, "pci_bus_id"):
        return ""
    return f"{about.pci_domain_id:04x}:{about.pci_bus_id:02x}:{about.pci_device_id:02x}.0"


def _multiplied(bench: Bench) -> dict[str, Any]:
    device = device_of(bench)
    if device != "cuda":
        return {"speed.format": None, "speed.product_tflops": None}
    name = _usual_format()
    return {"speed.format": name, "speed.product_tflops": multiplied_tflops(name, device, _SIZE)}


def _usual_format() -> str:
    import torch

    return "bf16" if torch.cuda.get_device_capability() >= (8, 0) else "fp16"


def _others(bench: Bench) -> dict[str, Any]:
    import torch

    device = device_of(bench)
    if device != "cuda":
        return {"speed.others_tflops": None}
    capability = torch.cuda.get_device_capability()
    names = [name for name, least in FORMATS.items() if capability >= least and name != _usual_format()]
    return {"speed.others_tflops": {name: multiplied_tflops(name, device, _SIZE) for name in names}}


def _burnt(bench: Bench) -> dict[str, Any]:
    device = device_of(bench)
    if device != "cuda":
        return dict.fromkeys(("burn.first_tflops", "burn.last_tflops", "burn.reasons", "burn.temperature_c", "burn.power_w"))
    return burn(_usual_format(), device, _SIZE, _BURN_S)


def burn(name: str, device: str, size: int, seconds: float) -> dict[str, Any]:
    """Multiply for so many seconds. Returns the median speed of the first and of the last quarter, and what NVML told meanwhile, of all cards.

    That is the reasons to slow down (bits), the highest temperature (degrees Celsius) and the highest power (W), each None where it was not told.
    """
    speeds: list[float] = []
    moments: list[dict[str, Any]] = []
    product = pairs_of(name, device, size)
    until = time.monotonic() + seconds
    with ExitStack() as stack:
        library = _opened(stack)
        while time.monotonic() < until or len(speeds) < 4:
            speeds.append(tflops_of(size, times(product, device, 0, _BURN_ROUNDS if device == "cuda" else 1)))
            moments += _at_work(library)
    quarter = len(speeds) // 4
    return {"burn.first_tflops": median(speeds[:quarter]), "burn.last_tflops": median(speeds[-quarter:]), **_summed(moments)}


def _summed(moments: list[dict[str, Any]]) -> dict[str, Any]:
    masks, heats, powers = ([one[key] for one in moments if one[key] is not None] for key in ("reasons", "temperature_c", "power_mw"))
    return {
        "burn.reasons": reduce(or_, masks) if masks else None,
        "burn.temperature_c": max(heats, default=None),
        "burn.power_w": max(powers) / 1000 if powers else None,
    }


def _opened(stack: ExitStack) -> Nvml | None:
    try:
        return stack.enter_context(Nvml())
    except NvmlError:
        return None


def _at_work(library: Nvml | None) -> list[dict[str, Any]]:
    try:
        return library.at_work() if library else []
    except NvmlError:
        return []


OBSERVERS: dict[str, Observer] = {
    "M01": _held,
    "M02": _written,
    "B01": _copied,
    "B02": _moved,
    "F01": _multiplied,
    "F02": _others,
    "F03": _burnt,
}
