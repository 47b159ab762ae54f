"""Observes the NVIDIA driver and its cards without torch: NVML first, then nvidia-smi."""

from __future__ import annotations

from ..checks.driver import slowdown_faults
from ..context import Observer, ObserverContext
from ..model import Environ, Readings
from .kernel_log import read_xids
from .nvidia_smi import query_nvidia_smi
from .nvml import NO_LIBRARY, Nvml, NvmlError
from .visible_devices import find_visible_devices

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


def _readings(context: ObserverContext, *keys: str) -> Readings:
    """Return readings of the shown cards."""
    cards = _survey(context)["cards"]
    return {f"nvml.{key}": [card[key] for card in cards] for key in keys}


def _of_cards(*keys: str) -> Observer:
    return lambda context: _readings(context, *keys)


def _opens(context: ObserverContext) -> Readings:
    survey = _survey(context)
    driver = survey["driver"]
    return {
        "driver.error": survey["error"],
        "driver.by": survey["by"],
        "driver.version": driver,
        "driver.major": driver.split(".")[0] if driver else None,
        "driver.cuda": survey["cuda"],
        "nvml.count": survey["shown"],
        "nvml.count_all": survey["there"],
        **_told_apart(context),
        "nvml.names": sorted(str(card["name"]) for card in survey["cards"] if card["name"]),
    }


def _model(context: ObserverContext) -> Readings:
    """Return names and identity of the cards; of several capabilities, the lowest counts."""
    cards = _survey(context)["cards"]
    capabilities = [
        tuple(map(int, card["capability"].split("."))) for card in cards if card["capability"]
    ]
    return {
        "gpu.name": " + ".join(sorted({str(card["name"]) for card in cards if card["name"]}))
        or None,
        "gpu.compute_capability": ".".join(map(str, min(capabilities))) if capabilities else None,
        "nvml.pci": sorted({str(card["pci"]) for card in cards if card["pci"]}),
        **_told_apart(context),
    }


def _memory(context: ObserverContext) -> Readings:
    sizes = [card["total_bytes"] for card in _survey(context)["cards"] if card["total_bytes"]]
    return {
        "gpu.vram_bytes": min(sizes, default=None),
        **_readings(context, "ecc", "mig"),
        **_told_apart(context),
    }


def _clocks(context: ObserverContext) -> Readings:
    readings = _readings(context, "reasons")
    return {**readings, "nvml.slowed": slowdown_faults(readings["nvml.reasons"])}


def _told_apart(context: ObserverContext) -> Readings:
    """Return whether it is unknown which cards CUDA shows; readings are then of all cards."""
    return {} if _survey(context)["told_apart"] else {"nvml.told_apart": False}


def _survey(context: ObserverContext) -> Readings:
    """Query the driver once for all checks."""
    if "driver" not in context.memo:
        context.memo["driver"] = _visible(_query_driver(), context.environ)
    survey: Readings = context.memo["driver"]
    return survey


def _visible(survey: Readings, environ: Environ) -> Readings:
    """Return the cards that CUDA shows with these variables; all if that is unknown."""
    cards = survey["cards"]
    visible = find_visible_devices(cards, environ)
    kept = cards if visible.indices is None else [cards[index] for index in visible.indices]
    return {
        **survey,
        "cards": kept,
        "shown": visible.count,
        "there": len(cards),
        "told_apart": visible.indices is not None,
    }


def _query_driver() -> Readings:
    empty: Readings = {"by": "nvml", "error": None, "driver": None, "cuda": None, "cards": []}
    reported = dict(empty)
    try:
        with Nvml() as library:
            reported |= {"driver": library.driver(), "cuda": library.cuda()}
            reported["cards"] = library.cards()
    except NvmlError as error:
        reported["error"] = error.code
    if reported["error"] != NO_LIBRARY:
        return reported
    by_program = query_nvidia_smi() or {"by": "nvml", "error": NO_LIBRARY}
    return {**empty, "by": "nvidia-smi", **by_program}


OBSERVERS = {
    "D01": _opens,
    "D02": lambda context: {"driver.version": _survey(context)["driver"]},
    "D03": _model,
    "D04": _memory,
    "D05": _of_cards("ecc", "uncorrected", "remap_pending", "remap_failed", "retired_pending"),
    "D06": _clocks,
    "D07": _of_cards("recovery", "fabric"),
    "D08": _of_cards("used_bytes", "total_bytes", "holders"),
    "D09": _of_cards(*_SETTINGS),
    "D11": lambda context: {"nvml.xids": read_xids(context.root)},
}
