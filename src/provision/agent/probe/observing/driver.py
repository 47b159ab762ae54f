"""Looks at the NVIDIA driver and its cards without torch: NVML first, nvidia-smi where its library
cannot be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..checks.driver import slowdown_faults
from . import Observer, ObserverContext
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


def _opens(bench: ObserverContext) -> dict[str, Any]:
    found = _survey(bench)
    names = [str(card["name"]) for card in found["cards"] if card["name"]]
    return {
        "driver.error": found["error"],
        "driver.by": found["by"],
        "driver.version": found["driver"],
        "driver.major": found["driver"].split(".")[0] if found["driver"] else None,
        "driver.cuda": found["cuda"],
        "nvml.count": found["shown"],
        "nvml.count_all": found["there"],
        **_told_apart(bench),
        "nvml.names": sorted(names),
    }


def _version(bench: ObserverContext) -> dict[str, Any]:
    return {"driver.version": _survey(bench)["driver"]}


def _model(bench: ObserverContext) -> dict[str, Any]:
    """The cards' names and identity. `gpu.*` are told here without torch; the lowest capability
    counts, as it does for a build of torch.
    """
    names = sorted({str(name) for name in _each(bench, "name") if name})
    capabilities = [
        tuple(int(part) for part in text.split(".")) for text in _each(bench, "capability") if text
    ]
    return {
        "gpu.name": " + ".join(names) or None,
        "gpu.compute_capability": ".".join(map(str, min(capabilities))) if capabilities else None,
        "nvml.pci": sorted({str(one) for one in _each(bench, "pci") if one}),
        **_told_apart(bench),
    }


def _memory(bench: ObserverContext) -> dict[str, Any]:
    sizes = [size for size in _each(bench, "total_bytes") if size]
    return {
        "gpu.vram_bytes": min(sizes, default=None),
        "nvml.ecc": _each(bench, "ecc"),
        "nvml.mig": _each(bench, "mig"),
        **_told_apart(bench),
    }


def _memory_errors(bench: ObserverContext) -> dict[str, Any]:
    return {
        f"nvml.{key}": _each(bench, key)
        for key in ("ecc", "uncorrected", "remap_pending", "remap_failed", "retired_pending")
    }


def _clocks(bench: ObserverContext) -> dict[str, Any]:
    masks = _each(bench, "reasons")
    return {"nvml.reasons": masks, "nvml.slowed": slowdown_faults(masks)}


def _recovery(bench: ObserverContext) -> dict[str, Any]:
    return {"nvml.recovery": _each(bench, "recovery"), "nvml.fabric": _each(bench, "fabric")}


def _settings(bench: ObserverContext) -> dict[str, Any]:
    return {f"nvml.{key}": _each(bench, key) for key in _SETTINGS}


def _others(bench: ObserverContext) -> dict[str, Any]:
    return {f"nvml.{key}": _each(bench, key) for key in ("used_bytes", "total_bytes", "holders")}


def _kernel_log(bench: ObserverContext) -> dict[str, Any]:
    return {"nvml.xids": read_xids(bench.root)}


def _told_apart(bench: ObserverContext) -> dict[str, Any]:
    """Whether it is known which cards CUDA shows, where it is not: what is told of cards is then of
    all of them.
    """
    return {} if _survey(bench)["told_apart"] else {"nvml.told_apart": False}


def _each(bench: ObserverContext, key: str) -> list[Any]:
    return [card[key] for card in _survey(bench)["cards"]]


def _survey(bench: ObserverContext) -> dict[str, Any]:
    """Ask once, however many checks want to know."""
    if _SURVEY not in bench.memo:
        bench.memo[_SURVEY] = _visible(_asked(), bench.environ)
    found: dict[str, Any] = bench.memo[_SURVEY]
    return found


def _visible(found: dict[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """Keep the cards that CUDA shows to programs with these variables; all where it is not told
    which.
    """
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


def _asked() -> dict[str, Any]:
    empty: dict[str, Any] = {"by": "nvml", "error": None, "driver": None, "cuda": None, "cards": []}
    try:
        with Nvml() as library:
            driver, cuda = library.driver(), library.cuda()
            told = {**empty, "driver": driver, "cuda": cuda, **_or_error(library.cards)}
    except NvmlError as error:
        told = {**empty, "error": error.code}
    if told["error"] != NO_LIBRARY:
        return told
    told_by_program = program.query_nvidia_smi()
    return (
        {**empty, "by": "nvidia-smi", **told_by_program}
        if told_by_program
        else {**empty, "error": NO_LIBRARY}
    )


def _or_error(cards: Callable[[], list[dict[str, Any]]]) -> dict[str, Any]:
    try:
        return {"cards": cards()}
    except NvmlError as error:
        return {"error": error.code}


OBSERVERS: dict[str, Observer] = {
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
