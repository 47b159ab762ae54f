"""Observes the NVIDIA driver and its cards without torch: NVML first, then nvidia-smi."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..checks.driver import slowdown_faults
from ..context import ObserverContext
from ..model import Environ, Readings
from . import nvidia_smi as program
from .kernel_log import read_xids
from .nvml import NO_LIBRARY, Nvml, NvmlError
from .visible_devices import find_visible_devices

_SURVEY = "nvml"
_SETTINGS = (
    "mig",
    "compute_mode",
    "persistence",
    "lanes",
    "lanes_most",
    "pcie_most",
    "pcie_of_card",
    "power_limit_mw",
    "power_default_mw",
)


def _opens(context: ObserverContext) -> Readings:
    found = _survey(context)
    return {
        "driver.error": found["error"],
        "driver.by": found["by"],
        "driver.version": found["driver"],
        "driver.major": found["driver"].split(".")[0] if found["driver"] else None,
        "driver.cuda": found["cuda"],
        "nvml.count": found["shown"],
        "nvml.count_all": found["there"],
        **_told_apart(context),
        "nvml.names": sorted([str(card["name"]) for card in found["cards"] if card["name"]]),
    }


def _version(context: ObserverContext) -> Readings:
    return {"driver.version": _survey(context)["driver"]}


def _model(context: ObserverContext) -> Readings:
    """Return names and identity of the cards; of several capabilities, the lowest counts."""
    capabilities = [
        tuple(int(part) for part in text.split("."))
        for text in _each(context, "capability")
        if text
    ]
    return {
        "gpu.name": " + ".join(sorted({str(name) for name in _each(context, "name") if name}))
        or None,
        "gpu.compute_capability": ".".join(map(str, min(capabilities))) if capabilities else None,
        "nvml.pci": sorted({str(one) for one in _each(context, "pci") if one}),
        **_told_apart(context),
    }


def _memory(context: ObserverContext) -> Readings:
    return {
        "gpu.vram_bytes": min(
            [size for size in _each(context, "total_bytes") if size], default=None
        ),
        "nvml.ecc": _each(context, "ecc"),
        "nvml.mig": _each(context, "mig"),
        **_told_apart(context),
    }


def _memory_errors(context: ObserverContext) -> Readings:
    return {
        f"nvml.{key}": _each(context, key)
        for key in ("ecc", "uncorrected", "remap_pending", "remap_failed", "retired_pending")
    }


def _clocks(context: ObserverContext) -> Readings:
    masks = _each(context, "reasons")
    return {"nvml.reasons": masks, "nvml.slowed": slowdown_faults(masks)}


def _recovery(context: ObserverContext) -> Readings:
    return {"nvml.recovery": _each(context, "recovery"), "nvml.fabric": _each(context, "fabric")}


def _settings(context: ObserverContext) -> Readings:
    return {f"nvml.{key}": _each(context, key) for key in _SETTINGS}


def _others(context: ObserverContext) -> Readings:
    return {f"nvml.{key}": _each(context, key) for key in ("used_bytes", "total_bytes", "holders")}


def _kernel_log(context: ObserverContext) -> Readings:
    return {"nvml.xids": read_xids(context.root)}


def _told_apart(context: ObserverContext) -> Readings:
    """Return whether it is unknown which cards CUDA shows; readings are then of all cards."""
    return {} if _survey(context)["told_apart"] else {"nvml.told_apart": False}


def _each(context: ObserverContext, key: str) -> list[Any]:
    return [card[key] for card in _survey(context)["cards"]]


def _survey(context: ObserverContext) -> Readings:
    """Query the driver once for all checks."""
    if _SURVEY not in context.memo:
        context.memo[_SURVEY] = _visible(_asked(), context.environ)
    found: Readings = context.memo[_SURVEY]
    return found


def _visible(found: Readings, environ: Environ) -> Readings:
    """Return the cards that CUDA shows with these variables; all if that is unknown."""
    cards = found["cards"]
    visible = find_visible_devices(cards, environ)
    kept = cards if visible.indices is None else [cards[place] for place in visible.indices]
    return {
        **found,
        "cards": kept,
        "shown": visible.count,
        "there": len(cards),
        "told_apart": visible.indices is not None,
    }


def _asked() -> Readings:
    empty: Readings = {"by": "nvml", "error": None, "driver": None, "cuda": None, "cards": []}
    try:
        with Nvml() as library:
            driver, cuda = library.driver(), library.cuda()
            reported = {**empty, "driver": driver, "cuda": cuda, **_or_error(library.cards)}
    except NvmlError as error:
        reported = {**empty, "error": error.code}
    if reported["error"] != NO_LIBRARY:
        return reported
    told_by_program = program.query_nvidia_smi()
    return (
        {**empty, "by": "nvidia-smi", **told_by_program}
        if told_by_program
        else {**empty, "error": NO_LIBRARY}
    )


def _or_error(cards: Callable[[], list[Readings]]) -> Readings:
    try:
        return {"cards": cards()}
    except NvmlError as error:
        return {"error": error.code}


OBSERVERS = {
    "D01": _opens,
    "D02": _version,
    "D03": _model,
    "D04": _memory,
    "D05": _memory_errors,
    "D06": _clocks,
    "D07": _recovery,
    "D08": _others,
    "D09": _settings,
    "D11": _kernel_log,
}
