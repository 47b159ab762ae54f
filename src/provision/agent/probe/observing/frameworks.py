"""Observes what jax and Keras compute on: the device, products, memory and speed."""

from __future__ import annotations

import os

from ..context import ObserverContext
from ..model import Readings
from ..proofs.frameworks import (
    MEMORY_VARIABLES,
    prepare_framework,
    require_backend_instructions,
)
from .array_libraries import held_bytes, library_of, multiplied_tflops, product_errors


def _device(context: ObserverContext) -> Readings:
    require_backend_instructions(context.expected, context.root)
    name = context.expected.backend
    # Read before `prepare_framework` sets them for the checks.
    variables = {
        f"framework.memory_env.{variable}": context.environ.get(variable)
        for variable in MEMORY_VARIABLES[name]
    }
    prepare_framework(os.environ, context.expected)
    device = library_of(context).device()
    if context.expected.gpu_type is None:
        device["framework.why"] = None  # why it uses no GPU is of no interest
    return {"framework.name": name, **variables, **device}


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


def _memory_settings(context: ObserverContext) -> Readings:
    library = library_of(context)
    return {
        "framework.memory_growth": library.memory_growth(),
        "framework.memory_limit_bytes": library.memory_limit(),
    }


OBSERVERS = {
    "J01": _device,
    "J02": _products,
    "J03": _memory,
    "J04": _speed,
    "J10": _memory_settings,
}
