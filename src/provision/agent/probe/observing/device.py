"""Fills and reads back the memory of every card, and measures its bandwidth and speed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import reduce
from operator import or_
from typing import Any

from ..context import Observer, ObserverContext
from ..model import Readings
from .cards import (
    ComputeDevice,
    measure_all_cards,
    measure_each_card,
    readings_of_worst,
    torch_cards,
)
from .memory_test import allocate_blocks, count_wrong_words
from .nvml import Nvml, NvmlError
from .speed import (
    FORMATS,
    copied_gb_s,
    link_gb_s,
    make_product,
    measure_times,
    median,
    moved_gb_s,
    multiplied_tflops,
    tflops_of,
)

_GIB = 1024**3
_SIZE, _COPY_BYTES, _MOVE_BYTES = 8192, 4 * _GIB, _GIB
_MOVES = ("speed.to_card_gb_s", "speed.from_card_gb_s")
_PAGEABLE = ("speed.pageable_to_card_gb_s", "speed.pageable_from_card_gb_s")
_SHARE_HELD = 0.9
_BURN_S, _BURN_ROUNDS = 60.0, 100


def _held(context: ObserverContext) -> Readings:
    import torch

    cards = torch_cards(context)
    if not cards:
        return {"memory.total_bytes": None}
    blocks: dict[int, list[Any]] = context.memo.setdefault("blocks", {})
    # Memory is filled on all cards at once: nothing is timed, and one after the other would take a
    # machine of eight a minute.
    return readings_of_worst(
        cards,
        measure_all_cards(
            cards,
            lambda card: fill_memory(card, blocks, *torch.cuda.mem_get_info()),
            context.report_progress,
        ),
        _shortest,
    )


def fill_memory(
    card: ComputeDevice, blocks: dict[int, list[Any]], free: int, total: int, block: int = _GIB
) -> Readings:
    """Fill 90 % of the free bytes of a card with blocks; return the bytes filled and wanted."""
    required = int(free * _SHARE_HELD) // block * block
    blocks[card.index] = allocate_blocks(card.device, required, block)
    held = len(blocks[card.index]) * block
    return {
        "memory.total_bytes": total,
        "memory.free_bytes": free,
        "memory.wanted_bytes": required,
        "memory.held_bytes": held,
    }


def _shortest(one: Mapping[str, Any]) -> float:
    """A card that did not give what was free is worse than one of which less is free."""
    total, free, required, held = (
        one[f"memory.{name}_bytes"] for name in ("total", "free", "wanted", "held")
    )
    return float(free / total - 10 * (required - held) / total)


def _written(context: ObserverContext) -> Readings:
    import torch

    blocks: dict[int, list[Any]] = context.memo.pop("blocks", {})
    cards = torch_cards(context)
    if not cards:
        return {"memory.wrong_words": None}
    found = measure_all_cards(
        cards, lambda card: check_memory(blocks[card.index]), context.report_progress
    )
    blocks.clear()
    torch.cuda.empty_cache()
    return readings_of_worst(cards, found, _soundest)


def check_memory(blocks: list[Any]) -> Readings:
    """Return how many words of these blocks differ from what was written; None without blocks."""
    return {"memory.wrong_words": count_wrong_words(blocks) if blocks else None}


def _soundest(one: Mapping[str, Any]) -> float:
    """Return the rank of a card: faulty, unobserved, sound."""
    wrong = one["memory.wrong_words"]
    return -0.5 if wrong is None else -float(wrong)


def _copied(context: ObserverContext) -> Readings:
    cards = torch_cards(context)
    if not cards:
        return {"speed.copy_gb_s": None}
    found = measure_each_card(
        cards,
        lambda card: {"speed.copy_gb_s": copied_gb_s(card.device, _fitting(_COPY_BYTES))},
        context.report_progress,
    )
    return readings_of_worst(cards, found, lambda one: float(one["speed.copy_gb_s"]))


def _moved(context: ObserverContext) -> Readings:
    cards = torch_cards(context)
    if not cards:
        return {**dict.fromkeys((*_MOVES, *_PAGEABLE)), "link.gb_s": None}
    # Pageable copies are recorded only, and tell more of the host than of a card: the first one's
    # are enough.
    (pageable,) = measure_each_card(
        cards[:1],
        lambda card: moved_gb_s(card.device, _fitting(_MOVE_BYTES), False),
        context.report_progress,
    )
    found = measure_each_card(cards, lambda card: _moved_by(context, card), context.report_progress)
    return {
        **dict(zip(_PAGEABLE, pageable, strict=True)),
        **readings_of_worst(cards, found, _slowest_of_link),
    }


def _moved_by(context: ObserverContext, card: ComputeDevice) -> Readings:
    speeds = moved_gb_s(card.device, _fitting(_MOVE_BYTES))
    return {
        **dict(zip(_MOVES, speeds, strict=True)),
        "link.gb_s": link_gb_s(context.root, card.address),
    }


def _slowest_of_link(one: Mapping[str, Any]) -> float:
    return float(min(one[name] for name in _MOVES) / (one["link.gb_s"] or 1))


def _fitting(wanted: int) -> int:
    import torch

    return int(min(wanted, torch.cuda.mem_get_info()[0] // 4))


def _multiplied(context: ObserverContext) -> Readings:
    cards = torch_cards(context)
    if not cards:
        return {"speed.format": None, "speed.product_tflops": None}
    name = _usual_format()
    found = measure_each_card(
        cards,
        lambda card: {"speed.product_tflops": multiplied_tflops(name, card.device, _SIZE)},
        context.report_progress,
    )
    return {
        "speed.format": name,
        **readings_of_worst(cards, found, lambda one: float(one["speed.product_tflops"])),
    }


def _usual_format() -> str:
    import torch

    return "bf16" if torch.cuda.get_device_capability() >= (8, 0) else "fp16"


def _others(context: ObserverContext) -> Readings:
    import torch

    cards = torch_cards(context)
    if not cards:
        return {"speed.others_tflops": None}
    capability = torch.cuda.get_device_capability()
    names = [
        name for name, least in FORMATS.items() if capability >= least and name != _usual_format()
    ]
    found = measure_each_card(
        cards,
        lambda card: {
            "speed.others_tflops": {
                name: multiplied_tflops(name, card.device, _SIZE) for name in names
            }
        },
        context.report_progress,
    )
    return readings_of_worst(
        cards, found, lambda one: float(sum(one["speed.others_tflops"].values()))
    )


def _burnt(context: ObserverContext) -> Readings:
    cards = torch_cards(context)
    if not cards:
        return dict.fromkeys(
            (
                "burn.first_tflops",
                "burn.last_tflops",
                "burn.other_results",
                "burn.reasons",
                "burn.temperature_c",
                "burn.power_w",
            )
        )
    name = _usual_format()
    # All cards at once, because they share the machine's cooling and power supply.
    found = measure_all_cards(
        cards,
        lambda card: run_burn_in(name, card.device, _SIZE, _BURN_S, card.address),
        context.report_progress,
    )
    return readings_of_worst(
        cards,
        found,
        lambda one: float(
            one["burn.last_tflops"] / one["burn.first_tflops"] - one["burn.other_results"]
        ),
    )


def run_burn_in(name: str, device: str, size: int, seconds: float, address: str = "") -> Readings:
    """Multiply for some seconds; return median speeds of the first and last quarter, and more.

    That is how often the same product came out otherwise than at the beginning (a hot card may
    compute wrong and say nothing), and, from NVML, the reasons to slow down (bits), the highest
    temperature (degrees Celsius) and the highest power (W), each None where it was not told.
    These are of all cards, or of the one at `address` on the PCI bus, where NVML tells places.
    """
    speeds: list[float] = []
    moments: list[Readings] = []
    product = make_product(name, device, size)
    right, others = product().clone(), 0
    until = time.monotonic() + seconds
    with ExitStack() as stack:
        library = _opened(stack)
        while time.monotonic() < until or len(speeds) < 4:
            speeds.append(
                tflops_of(
                    size, measure_times(product, device, 0, _BURN_ROUNDS if device == "cuda" else 1)
                )
            )
            others += differs(product(), right)
            moments += _at_work(library, address)
    quarter = len(speeds) // 4
    return {
        "burn.first_tflops": median(speeds[:quarter]),
        "burn.last_tflops": median(speeds[-quarter:]),
        "burn.other_results": others,
        **_summed(moments),
    }


def differs(result: Any, other: Any) -> bool:
    """Return whether two results are not the same bits."""
    import torch

    return not torch.equal(result, other)


def _summed(moments: list[Readings]) -> Readings:
    masks, heats, powers = (
        [one[key] for one in moments if one[key] is not None]
        for key in ("reasons", "temperature_c", "power_mw")
    )
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


def _at_work(library: Nvml | None, address: str) -> list[Readings]:
    try:
        places, reported = (library.addresses(), library.live_values()) if library else ([], [])
    except NvmlError:
        return []
    return [
        one for place, one in zip(places, reported, strict=False) if place == address
    ] or reported


OBSERVERS: dict[str, Observer] = {
    "M01": _held,
    "M02": _written,
    "B01": _copied,
    "B02": _moved,
    "F01": _multiplied,
    "F02": _others,
    "F03": _burnt,
}
