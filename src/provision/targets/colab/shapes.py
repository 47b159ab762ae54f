"""Colab's machines by GPU and shape."""

from __future__ import annotations

from provision.facts import Facts
from provision.facts.schema_platforms import ColabShape
from provision.spec import Gpu


def find_shape(gpu: Gpu, wanted: str, facts: Facts) -> ColabShape | None:
    """Return the machine with a GPU in a shape; None if Colab has none.

    Some cards come in the high shape only: a spec that says nothing else gets that one. A spec
    that says high never gets another.
    """
    name = "none"
    if not gpu.is_none:
        card = facts.card(gpu.type)
        name = card.name if card else ""
    shapes = {row.shape: row for row in facts.shapes if row.card == name}
    if wanted == "standard":
        return shapes.get("standard") or shapes.get("high")
    return shapes.get(wanted)
