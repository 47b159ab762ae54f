"""One record of what a program used on all machines of a job: the peaks are those of the largest.

`fit` compares a record with one machine, so a peak is the largest of any machine, not a sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from provision.agent.probe.monitor import SCHEMA
from provision.agent.probe.report_json import canonical_digest, to_canonical_json

_DICTS = ("subject", "program", "ended", "limits", "peaks", "monitor", "series")
_LARGEST = ("peak_bytes", "temperature_c", "power_w", "throttled_s")


def merge_records(records: Mapping[str, Mapping[str, Any]]) -> bytes | None:
    """Return the record of a job from those of its machines by name, the primary one first.

    Its curves are those of the machine with the largest RAM, its end is that of the primary one.
    Malformed records are left out; None if no record is left.
    """
    valid = {name: record for name, record in records.items() if _is_record(record)}
    if not valid:
        return None
    largest = max(valid.values(), key=lambda record: _number(record["peaks"].get("ram_bytes")))
    merged: dict[str, Any] = {key: value for key, value in largest.items() if key != "digest"}
    merged["ended"] = next(iter(valid.values()))["ended"]
    merged["peaks"] = _largest_values([record["peaks"] for record in valid.values()])
    merged["cards"] = _merge_cards([record["cards"] for record in valid.values()])
    merged["replicas"] = {
        name: {"ended": record["ended"], "peaks": record["peaks"], "cards": record["cards"]}
        for name, record in valid.items()
    }
    merged["digest"] = canonical_digest(merged)
    return (to_canonical_json(merged) + "\n").encode()


def _is_record(record: Mapping[str, Any]) -> bool:
    cards = record.get("cards")
    return (
        record.get("schema") == SCHEMA
        and all(isinstance(record.get(name), dict) for name in _DICTS)
        and isinstance(cards, list)
        and all(isinstance(card, dict) for card in cards)
        and isinstance(record.get("torch"), list)
    )


def _merge_cards(machines: Iterable[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the GPUs by their position, with the largest values of any machine."""
    merged: list[dict[str, Any]] = []
    for cards in machines:
        for index, card in enumerate(cards):
            if index == len(merged):
                merged.append(dict(card))
                continue
            for key in _LARGEST:
                merged[index][key] = _largest([merged[index].get(key), card.get(key)])
    return merged


def _largest_values(rows: list[Mapping[str, Any]]) -> dict[str, Any]:
    return {key: _largest([row.get(key) for row in rows]) for key in rows[0]}


def _largest(values: Iterable[Any]) -> Any:
    known = [value for value in values if isinstance(value, int | float)]
    return max(known, default=None)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
