"""Observes what jax and Keras compute on: the device, products, memory and speed."""

from __future__ import annotations

import os

from ..context import ObserverContext
from ..model import Readings
from ..proofs.frameworks import prepare_framework
from .array_libraries import held_bytes, library_of, multiplied_tflops, product_errors


def _device(context: ObserverContext) -> Readings:
    prepare_framework(os.environ, context.expected)
    readings = library_of(context).device()
    return {"framework.name": context.expected.backend, **readings}


def _products(context: ObserverContext) -> Readings:
    errors = product_errors(library_of(context))
    return {f"framework.{kind}_error": error for kind, error in errors.items()}


def _memory(context: ObserverContext) -> Readings:
    library = library_of(context)
    if library.device()["framework.platform"] != "gpu":
        return {"framework.wanted_bytes": None, "framework.held_bytes": None}
    card = context.expected.card
    limit = library.memory_limit() or (card.memory_bytes if card else None)
    if limit is None:
        return {"framework.wanted_bytes": None, "framework.held_bytes": None}
    return {"framework.limit_bytes": limit, **held_bytes(library, limit)}


def _speed(context: ObserverContext) -> Readings:
    library = library_of(context)
    if library.device()["framework.platform"] != "gpu":
        return {"framework.speed_tflops": None}
    return {"framework.speed_tflops": multiplied_tflops(library)}


OBSERVERS = {
    "J01": _device,
    "J02": _products,
    "J03": _memory,
    "J04": _speed,
}
