"""Capacity for a new instance: quota of the project, and GPUs that the zones offer.

The number of free GPUs is not known.
"""

from __future__ import annotations

from typing import NamedTuple

from provision.effects.google import CloudReader
from provision.facts import Card
from provision.facts.machines import region_of
from provision.targets.workbench.resource_names import ResourceNames

_METRICS = {
    "T4": "NVIDIA_T4_GPUS",
    "V100": "NVIDIA_V100_GPUS",
    "P4": "NVIDIA_P4_GPUS",
    "L4": "NVIDIA_L4_GPUS",
}
_METRICS |= {
    "A100-40GB": "NVIDIA_A100_GPUS",
    "A100-80GB": "NVIDIA_A100_80GB_GPUS",
    "H100-80GB": "NVIDIA_H100_GPUS",
}
"""Compute Engine's quotas by card (compute.v1 discovery document, Quota.metric)."""


class CapacityCheck(NamedTuple):
    """Notes for the plan, and why no zone has the capacity; "" if one may have it."""

    notes: tuple[str, ...] = ()
    problem: str = ""


class ReleasedGpus(NamedTuple):
    """GPUs of an instance that is deleted first: accelerator type, zone and count."""

    accelerator_type: str
    zone: str
    quantity: int


def check_capacity(
    names: ResourceNames,
    card: Card | None,
    count: int,
    cloud: CloudReader,
    released: ReleasedGpus | None = None,
) -> CapacityCheck:
    """Return the quota and the zones for GPUs; values that cannot be read are ignored."""
    if card is None:
        return CapacityCheck()
    notes, open_zones = [], list(names.zones)
    for region in dict.fromkeys(region_of(zone) for zone in names.zones):
        rows = cloud.quotas(names.project, region)
        if rows is None:
            notes.append(f"quota: the quota for {card.name} in {region} could not be read")
            continue
        row = next((row for row in rows if row.get("metric") == _METRICS.get(card.name)), None)
        if row is None:
            notes.append(f"quota: no quota is listed for {card.name} in {region}")
            continue
        limit, used = float(row.get("limit", 0)), float(row.get("usage", 0))
        notes.append(f"quota: {row['metric']} in {region}: {used:g} of {limit:g} used")
        if released and released.accelerator_type == card.workbench:
            used -= released.quantity if region_of(released.zone) == region else 0
        if limit - used < count:
            open_zones = [zone for zone in open_zones if region_of(zone) != region]
    if not open_zones:
        return CapacityCheck(tuple(notes), "; ".join(notes))
    for zone in list(open_zones):
        kinds = cloud.accelerator_types(names.project, zone)
        if kinds is not None and not any(kind.get("name") == card.gcp for kind in kinds):
            notes.append(f"capacity: {zone} does not offer {card.name}")
            open_zones.remove(zone)
    problem = f"none of the zones offers {card.name}: {', '.join(names.zones)}"
    return CapacityCheck(tuple(notes), "" if open_zones else problem)
