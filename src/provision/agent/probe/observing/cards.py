"""Runs a measurement on every card, and keeps each result next to the worst."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from ..context import ObserverContext
from ..model import Readings
from .tensors import device_of

PER_CARD_PREFIX = "cards."
"""Before the key of a reading: each card's value, in torch's order, if there are several. The key
itself has the value of the worst.
"""
CARD_NAMES_KEY = f"{PER_CARD_PREFIX}names"

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ComputeDevice:
    """A device for computations: torch's name for it, its index, and how to make it current.

    `name` is how a person finds it among several ("cuda:5 (PCI 0000:c1:00.0)"), "" where there
    is one only; `address` is its place on the PCI bus.
    """

    device: str
    index: int = 0
    name: str = ""
    address: str = ""
    current: Callable[[], AbstractContextManager[Any]] = nullcontext


CPU = ComputeDevice("cpu")


def torch_cards(context: ObserverContext) -> list[ComputeDevice]:
    """Return the NVIDIA cards that torch sees, in its order; [] if none is declared."""
    if device_of(context) != "cuda":
        return []
    import torch

    count = torch.cuda.device_count()
    addresses = [_address(torch.cuda.get_device_properties(index)) for index in range(count)]
    names = [
        card_label(index, address) if count > 1 else "" for index, address in enumerate(addresses)
    ]
    return [
        ComputeDevice(
            "cuda", index, names[index], addresses[index], partial(torch.cuda.device, index)
        )
        for index in range(count)
    ]


def card_label(index: int, address: str) -> str:
    """Return a card's label: torch's number and the bus address that nvidia-smi shows too."""
    return f"cuda:{index} (PCI {address})" if address else f"cuda:{index}"


def measure_each_card(
    cards: Sequence[ComputeDevice],
    measure: Callable[[ComputeDevice], Result],
    report: Callable[[str], None],
) -> list[Result]:
    """Return `measure` of each card, one after the other.

    `report` is called with the card, so that a card that hangs can be named.
    """
    results = []
    for card in cards:
        report(card.name)
        results.append(_on(card, measure))
    report("")
    return results


def measure_all_cards(
    cards: Sequence[ComputeDevice],
    measure: Callable[[ComputeDevice], Result],
    report: Callable[[str], None],
) -> list[Result]:
    """Return `measure` of each card, all at the same time; `report` gets those that still run."""
    if len(cards) < 2:
        return measure_each_card(cards, measure, report)
    with ThreadPoolExecutor(len(cards)) as pool:
        works = {pool.submit(_on, card, measure): card.name for card in cards}
        left = dict(works)
        report(", ".join(left.values()))
        for work in as_completed(works):
            del left[work]
            report(", ".join(left.values()))
        return [work.result() for work in works]


def readings_of_worst(
    cards: Sequence[ComputeDevice],
    measured: Sequence[Mapping[str, Any]],
    rank: Callable[[Mapping[str, Any]], float],
) -> Readings:
    """Return the readings of the card with the lowest rank, and of several cards also each one's.

    NaN is the lowest rank.
    """
    ranks = [-math.inf if math.isnan(number) else number for number in map(rank, measured)]
    worst = dict(measured[ranks.index(min(ranks))])
    if len(cards) < 2:
        return worst
    return {
        **worst,
        CARD_NAMES_KEY: [card.name for card in cards],
        **{f"{PER_CARD_PREFIX}{key}": [readings[key] for readings in measured] for key in worst},
    }


def _on(card: ComputeDevice, measure: Callable[[ComputeDevice], Result]) -> Result:
    try:
        with card.current():
            return measure(card)
    except Exception as error:
        if not card.name:
            raise
        raise RuntimeError(f"{type(error).__name__} on {card.name}: {error}") from error


def _address(about: Any) -> str:
    """Return a card's PCI address as Linux writes it; "" if this torch does not report it."""
    if not hasattr(about, "pci_bus_id"):
        return ""
    return f"{about.pci_domain_id:04x}:{about.pci_bus_id:02x}:{about.pci_device_id:02x}.0"
