"""Which machine of Colab a spec asks for, and what a notebook says to get it."""

from __future__ import annotations

from provision.facts import Facts
from provision.facts.schema_platforms import ColabShape
from provision.spec import Gpu


def find_shape(gpu: Gpu, wanted: str, facts: Facts) -> ColabShape | None:
    """Return the machine with that card in that shape; None where Colab has none.

    Some cards come in the high shape only: a spec that says nothing else gets that one. A spec
    that says high never gets another.
    """
    card = facts.card(gpu.type) if not gpu.is_none else None
    name = "none" if gpu.is_none else card.name if card else ""
    there = {row.shape: row for row in facts.shapes if row.card == name}
    return there.get(wanted) or (there.get("high") if wanted == "standard" else None)
