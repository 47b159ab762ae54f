"""Fills and reads back the memory of every card, and measures its bandwidth and speed."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import reduce
from operator import itemgetter, or_
from typing import Any

from ..context import ObserverContext
from ..model import ObservedValues, Readings
from .capabilities import FORMATS
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
_COPY, _LINK = "speed.copy_gb_s", "link.gb_s"
_PRODUCT, _OTHERS = "speed.product_tflops", "speed.others_tflops"
_MOVES = ("speed.to_card_gb_s", "speed.from_card_gb_s")
_PAGEABLE = ("speed.pageable_to_card_gb_s", "speed.pageable_from_card_gb_s")
_SHARE_HELD = 0.9
_BURN_S, _BURN_ROUNDS = 60.0, 100


def _held(context: ObserverContext) -> Readings:
    import torch

    blocks: dict[int, list[Any]] = context.memo.setdefault("blocks", {})
    # Memory is filled on all cards at once: nothing is timed, and one after the other would take a
    # machine of eight a minute.
    return _of_worst_card(
        context,
        lambda card: fill_memory(card, blocks, *torch.cuda.mem_get_info()),
        _share_held,
        "memory.total_bytes",
        together=True,
    )


def _of_worst_card(
    context: ObserverContext,
    measure: Callable[[ComputeDevice], Readings],
    rank: Callable[[ObservedValues], float],
    *keys: str,
    together: bool = False,
) -> Readings:
    """Return the readings of the card with the lowest rank; None for each key without a card."""
    cards = torch_cards(context)
    if not cards:
        return dict.fromkeys(keys)
    measure_cards = measure_all_cards if together else measure_each_card
    return readings_of_worst(cards, measure_cards(cards, measure, context.report_progress), rank)


def fill_memory(
    card: ComputeDevice, blocks: dict[int, list[Any]], free: int, total: int, block: int = _GIB
) -> Readings:
    """Fill 90 % of the free bytes of a card with blocks; return the bytes filled and required."""
    required = int(free * _SHARE_HELD) // block * block
    blocks[card.index] = allocate_blocks(card.device, required, block)
    return {
        "memory.total_bytes": total,
        "memory.free_bytes": free,
        "memory.wanted_bytes": required,
        "memory.held_bytes": len(blocks[card.index]) * block,
    }


def _share_held(readings: ObservedValues) -> float:
    """Rank a card with less than was free below one of which less is free."""
    total, free, required, filled = (
        readings[f"memory.{name}_bytes"] for name in ("total", "free", "wanted", "held")
    )
    return float(free / total - 10 * (required - filled) / total)


def _written(context: ObserverContext) -> Readings:
    import torch

    blocks: dict[int, list[Any]] = context.memo.pop("blocks", {})
    readings = _of_worst_card(
        context,
        lambda card: check_memory(blocks[card.index]),
        _soundness,
        "memory.wrong_words",
        together=True,
    )
    blocks.clear()
    torch.cuda.empty_cache()
    return readings


def check_memory(blocks: list[Any]) -> Readings:
    """Return how many words of these blocks differ from what was written; None without blocks."""
    return {"memory.wrong_words": count_wrong_words(blocks) if blocks else None}


def _soundness(readings: ObservedValues) -> float:
    """Rank a card: faulty, unobserved, sound."""
    wrong = readings["memory.wrong_words"]
    return -0.5 if wrong is None else -float(wrong)


def _copied(context: ObserverContext) -> Readings:
    return _of_worst_card(
        context,
        lambda card: {_COPY: copied_gb_s(card.device, _fitting(_COPY_BYTES))},
        itemgetter(_COPY),
        _COPY,
    )


def _moved(context: ObserverContext) -> Readings:
    # Pageable copies are recorded only, and depend more on the host than on a card: the first
    # card's are enough.
    pageable = measure_each_card(
        torch_cards(context)[:1],
        lambda card: moved_gb_s(card.device, _fitting(_MOVE_BYTES), False),
        context.report_progress,
    )
    return {
        **dict(zip(_PAGEABLE, *pageable, strict=True) if pageable else dict.fromkeys(_PAGEABLE)),
        **_of_worst_card(
            context,
            lambda card: _moved_by(context, card),
            lambda readings: min(map(readings.__getitem__, _MOVES)) / (readings[_LINK] or 1),
            *_MOVES,
            _LINK,
        ),
    }


def _moved_by(context: ObserverContext, card: ComputeDevice) -> Readings:
    return {
        **dict(zip(_MOVES, moved_gb_s(card.device, _fitting(_MOVE_BYTES)), strict=True)),
        _LINK: link_gb_s(context.root, card.address),
    }


def _fitting(wanted: int) -> int:
    import torch

    return int(min(wanted, torch.cuda.mem_get_info()[0] // 4))


def _multiplied(context: ObserverContext) -> Readings:
    name = _usual_format() if torch_cards(context) else None
    return {
        "speed.format": name,
        **_of_worst_card(
            context,
            lambda card: {_PRODUCT: multiplied_tflops(str(name), card.device, _SIZE)},
            itemgetter(_PRODUCT),
            _PRODUCT,
        ),
    }


def _usual_format() -> str:
    import torch

    return "bf16" if torch.cuda.get_device_capability() >= (8, 0) else "fp16"


def _others(context: ObserverContext) -> Readings:
    return _of_worst_card(
        context,
        lambda card: {
            _OTHERS: {
                name: multiplied_tflops(name, card.device, _SIZE) for name in _other_formats()
            }
        },
        lambda readings: float(sum(readings[_OTHERS].values())),
        _OTHERS,
    )


def _other_formats() -> list[str]:
    import torch

    capability = torch.cuda.get_device_capability()
    return [
        name for name, least in FORMATS.items() if capability >= least and name != _usual_format()
    ]


def _burnt(context: ObserverContext) -> Readings:
    # All cards at once, because they share the machine's cooling and power supply.
    return _of_worst_card(
        context,
        lambda card: run_burn_in(_usual_format(), card.device, _SIZE, _BURN_S, card.address),
        lambda readings: float(
            readings["burn.last_tflops"] / readings["burn.first_tflops"]
            - readings["burn.other_results"]
        ),
        "burn.first_tflops",
        "burn.last_tflops",
        "burn.other_results",
        "burn.reasons",
        "burn.temperature_c",
        "burn.power_w",
        together=True,
    )


def run_burn_in(name: str, device: str, size: int, seconds: float, address: str = "") -> Readings:
    """Multiply for some seconds; return median speeds of the first and last quarter, and more.

    `burn.other_results` counts products that differ from the first: a hot card may compute wrong
    without an error. NVML gives the reasons to slow down (bits), the highest temperature (degrees
    Celsius) and power (W), each None if unreported: of the card at `address` on the PCI bus, or of
    all cards if NVML does not report addresses.
    """
    speeds: list[float] = []
    moments: list[Readings] = []
    product = make_product(name, device, size)
    right, others = product().clone(), 0
    until = time.monotonic() + seconds
    with ExitStack() as stack:
        try:
            library = stack.enter_context(Nvml())
        except NvmlError:
            library = None
        while time.monotonic() < until or len(speeds) < 4:
            rounds = _BURN_ROUNDS if device == "cuda" else 1
            speeds.append(tflops_of(size, measure_times(product, device, 0, rounds)))
            others += differs(product(), right)
            moments += _live_values(library, address)
    quarter = len(speeds) // 4
    masks, heats, powers = (
        [moment[key] for moment in moments if moment[key] is not None]
        for key in ("reasons", "temperature_c", "power_mw")
    )
    return {
        "burn.first_tflops": median(speeds[:quarter]),
        "burn.last_tflops": median(speeds[-quarter:]),
        "burn.other_results": others,
        "burn.reasons": reduce(or_, masks) if masks else None,
        "burn.temperature_c": max(heats, default=None),
        "burn.power_w": max(powers) / 1000 if powers else None,
    }


def differs(result: Any, other: Any) -> bool:
    """Return whether two results are not the same bits."""
    import torch

    return not torch.equal(result, other)


def _live_values(library: Nvml | None, address: str) -> list[Readings]:
    if library is None:
        return []
    try:
        cards = list(zip(library.addresses(), library.live_values(), strict=False))
    except NvmlError:
        return []
    return [card for card_address, card in cards if card_address == address] or [
        card for _, card in cards
    ]


OBSERVERS = {
    "M01": _held,
    "M02": _written,
    "B01": _copied,
    "B02": _moved,
    "F01": _multiplied,
    "F02": _others,
    "F03": _burnt,
}
