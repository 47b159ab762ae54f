"""The driver's cards that CUDA shows with these variables; NVML and nvidia-smi ignore them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..model import Environ

_NUMBER = re.compile(r"\+?\d+")


@dataclass(frozen=True, slots=True)
class VisibleDevices:
    """Number of cards that CUDA shows, and their indices; None if the variables leave them open."""

    count: int
    indices: tuple[int, ...] | None


def find_visible_devices(cards: Sequence[Mapping[str, Any]], environ: Environ) -> VisibleDevices:
    """Return which of the driver's cards CUDA shows.

    By the CUDA programming guide, CUDA_VISIBLE_DEVICES has numbers, or beginnings of UUIDs; the
    first that names no card ends the list. A card that is named twice leaves none (torch.cuda,
    _parse_visible_devices). Only CUDA can count parts of cards (MIG): all cards are returned.
    """
    everything = VisibleDevices(len(cards), tuple(range(len(cards))))
    text = environ.get("CUDA_VISIBLE_DEVICES")
    names = [name.strip() for name in (text or "").split(",")]
    by_uuid = [name for name in names if name.startswith("GPU-")]
    if (
        text is None
        or any(name.startswith("MIG-") for name in names)
        or any(card["mig"] for card in cards)
    ):
        return everything
    if by_uuid and not all(card["uuid"] for card in cards):
        return VisibleDevices(len(cards), None) if len(cards) > 1 else everything
    indices = _named(names, cards)
    if (
        not indices
        or len(indices) == len(cards)
        or len(by_uuid) == len(names)
        or _ordered(cards, environ)
    ):
        return VisibleDevices(len(indices), tuple(sorted(indices)))
    return VisibleDevices(len(indices), None)


def _named(names: Sequence[str], cards: Sequence[Mapping[str, Any]]) -> list[int]:
    order = sorted(range(len(cards)), key=lambda index: str(cards[index]["address"] or ""))
    indices: list[int] = []
    for name in names:
        index = _with_uuid(name, cards) if name.startswith("GPU-") else _with_number(name, order)
        if index is None:
            break
        if index in indices:
            return []
        indices.append(index)
    return indices


def _with_uuid(beginning: str, cards: Sequence[Mapping[str, Any]]) -> int | None:
    indices = [index for index, card in enumerate(cards) if card["uuid"].startswith(beginning)]
    return indices[0] if len(indices) == 1 else None


def _with_number(word: str, order: Sequence[int]) -> int | None:
    digits = _NUMBER.match(word)
    return order[int(digits[0])] if digits and int(digits[0]) < len(order) else None


def _ordered(cards: Sequence[Mapping[str, Any]], environ: Environ) -> bool:
    """Return whether CUDA numbers the cards by their places on the PCI bus.

    By default CUDA puts the fastest first, by an undocumented rule. Among cards of one kind the
    order matters little.
    """
    return (
        environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
        or len({(card["name"], card["total_bytes"]) for card in cards}) == 1
    )
