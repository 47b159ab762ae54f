"""What the facts know of the declared card and training: data sheet, and savings of memory."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.json_fields import FieldReader
from .model import JsonObject


@dataclass(frozen=True, slots=True)
class CardFacts:
    """The vendor's figures of the declared card: bytes, GB/s, dense TFLOP/s by number format."""

    memory_bytes: int
    bandwidth_gb_s: float | None
    tflops: dict[str, float]
    source: str


@dataclass(frozen=True, slots=True)
class Lever:
    """A change of `training` that saves memory: field to value, and bytes saved on each card."""

    change: JsonObject
    saves_bytes: int


def read_card(reader: FieldReader) -> CardFacts | None:
    """Return the data sheet of the declared card; None without one."""
    card = reader.optional_section("card")
    if card is None:
        return None
    has_bandwidth = card.document.get("bandwidth_gb_s") is not None
    return CardFacts(
        int(card.number("memory_bytes")),
        card.number("bandwidth_gb_s") if has_bandwidth else None,
        {name: card.number(f"tflops.{name}") for name in card.mapping("tflops")},
        card.text("source"),
    )


def read_levers(reader: FieldReader) -> tuple[Lever, ...]:
    """Return the changes of the training that save memory, in their order."""
    levers = []
    for position, row in enumerate(reader.items("levers")):
        match row:
            case {"change": dict(change), "saves_bytes": int(saved)} if not isinstance(saved, bool):
                levers.append(Lever(change, saved))
            case _:
                raise reader.error(f"levers[{position}]", "a change and saves_bytes", row)
    return tuple(levers)
